"""What each principle says of a motion: zero for the right one, by formulas with known answers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gaussmech as gm
import oracle
import random_problems
from gaussmech import principles

EPS = np.finfo(float).eps
TABLE = ([[1.0, 0], [0, 1]], [3.0, -10], [[0.0, 1]], [0.0])
JUDGES = (
    principles.constraint_residual,
    principles.dalembert_residual,
    principles.jourdain_residual,
    principles.lagrange_first_kind_residual,
    principles.gibbs_appell_residual,
)
KINDS = [k for k in random_problems.KINDS if k != "inconsistent"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("judge", JUDGES, ids=lambda f: f.__name__)
def test_the_motion_satisfies_every_principle(judge, kind):
    for seed in range(40):
        *problem, _ = random_problems.problem(kind, seed)
        motion = gm.solve(*problem)
        size = np.abs(problem[0]).sum() * np.abs(motion.qdd).max() + np.abs(problem[1]).max()
        assert np.max(np.abs(judge(*problem, qdd=motion.qdd)), initial=0.0) <= 1e-12 * size


@pytest.mark.parametrize("kind", KINDS)
def test_gauss_holds_by_pythagoras_for_every_competitor(kind):
    for seed in range(40):
        *problem, _ = random_problems.problem(kind, seed)
        M, Q, A, _, C = problem
        motion = gm.solve(*problem)
        stationarity, pythagoras = principles.gauss_residual(*problem, qdd=motion.qdd)
        size = np.abs(M).sum() * np.abs(motion.qdd).max() + np.abs(Q).max()
        assert np.max(np.abs(stationarity), initial=0.0) <= 1e-12 * size
        assert pythagoras.shape == (8,)
        assert np.max(np.abs(pythagoras)) <= 1e-11 * size * np.abs(motion.qdd).max()
        y = principles.competitors(M, A, motion.qdd, count=5, seed=1)
        if C is None:
            assert np.all(gm.gauss_function(M, Q, y) > gm.gauss_function(M, Q, motion.qdd))


def test_residuals_of_a_wrong_acceleration_are_what_one_computes_by_hand():
    wrong = [2.0, 1.0]
    assert principles.constraint_residual(*TABLE, qdd=wrong).tolist() == [1]
    assert principles.dalembert_residual(*TABLE, qdd=wrong).tolist() == [-1]
    assert principles.jourdain_residual(*TABLE, qdd=wrong).tolist() == [-1]
    assert principles.gibbs_appell_residual(*TABLE, qdd=wrong).tolist() == [-1]
    assert principles.lagrange_first_kind_residual(*TABLE, qdd=wrong).tolist() == [-1, 0]
    fixed = principles.lagrange_first_kind_residual(*TABLE, qdd=wrong, multipliers=[10])
    assert fixed.tolist() == [-1, 1]
    # Z(y) - Z(q) - |y - q|^2 = 2 (y - q).(q - a), with y - q = (1, 0) and q - a = (-1, 11)
    found = principles.gauss_residual(*TABLE, qdd=wrong, competitors=[[3.0, 1.0]])
    assert found.pythagoras.tolist() == [-2]


def test_multipliers_of_solve_close_lagranges_equations_with_a_non_ideal_part():
    *problem, _ = random_problems.problem("non-ideal", 3)
    motion = gm.solve(*problem)
    rest = principles.lagrange_first_kind_residual(
        *problem, qdd=motion.qdd, multipliers=motion.multipliers_total
    )
    assert np.max(np.abs(rest)) <= 1e-12 * np.abs(problem[1]).max()


def test_competitors_that_violate_the_constraints_are_refused():
    with pytest.raises(ValueError, match=r"competitors violates the constraints: row 0 gives 1 "):
        principles.gauss_residual(*TABLE, qdd=[3, 0], competitors=[[3, 0], [3, 1]])
    with pytest.raises(ValueError, match=r"competitors has shape \(3,\); expected \(k, ..., 2\)"):
        principles.gauss_residual(*TABLE, qdd=[3, 0], competitors=[3, 1, 2])


def test_competitors_may_round_where_a_row_has_nothing_to_say():
    # what the row sees of y - q is rounding alone; y itself is large elsewhere
    found = principles.gauss_residual(*TABLE, qdd=[3, 1e-17], competitors=[[5, 2e-16]])
    assert abs(found.pythagoras[0]) <= 1e-13


# ------------------------------------------------------------------ Zwang along a variation


def test_zwang_grows_with_the_square_of_the_variation():
    alpha = np.array([-2.0, -1, 0, 1, 2])
    assert principles.zwang_variation(*TABLE, alpha=alpha).tolist() == [104, 101, 100, 101, 104]
    stretched = principles.zwang_variation(*TABLE, alpha=alpha, direction=[2, 0])
    assert stretched.tolist() == [116, 104, 100, 104, 116]
    assert principles.zwang_variation(*TABLE, alpha=3.0) == 109.0


@given(seed=st.integers(0, 10**6), exponent=st.floats(-2, 2))
@settings(max_examples=50, deadline=None, derandomize=True)
def test_the_slope_with_a_non_ideal_part_is_twice_its_work(seed, exponent):
    # dZ/dα = 2 δ.M(q - a) = 2 δ.Q_c = 2 δ.C: Z is a parabola, so central differences are exact
    M, Q, A, b, C, rank = random_problems.problem("non-ideal", seed)
    delta = oracle.null_space(A, rank)[:, 0] * 10.0**exponent
    low, high = principles.zwang_variation(M, Q, A, b, C, direction=delta, alpha=[-1.0, 1.0])
    size = max(low, high)
    assert (high - low) / 4 == pytest.approx(delta @ C, abs=1e-12 * size)
    middle = principles.zwang_variation(M, Q, A, b, direction=delta, alpha=[-1.0, 0.0, 1.0])
    assert middle[1] <= min(middle[0], middle[2]) + 1e-13 * size


def test_a_variation_that_the_constraints_forbid_is_refused():
    with pytest.raises(ValueError, match="direction violates the constraints: row 0 gives 1 "):
        principles.zwang_variation(*TABLE, direction=[0, 1], alpha=1.0)
    with pytest.raises(ValueError, match="no degree of freedom is left"):
        principles.zwang_variation([[1]], [0], [[1]], [0], alpha=1.0)


def test_a_variation_of_a_batch_has_the_shape_of_alpha_first():
    M = np.eye(2) * np.array([1.0, 2.0, 3.0])[:, None, None]
    found = principles.zwang_variation(M, *TABLE[1:], alpha=np.zeros((4, 5)))
    assert found.shape == (4, 5, 3)
    assert np.allclose(found[0, 0], [gm.solve(m, *TABLE[1:]).zwang for m in M])


def test_zwang_that_does_not_exist_is_nan():
    singular = ([[1, 0], [0, 0]], [0, 1], [[1, -1]], [0])
    assert np.isnan(principles.zwang_variation(*singular, alpha=0.0))


# ------------------------------------------------------------------ Gibbs-Appell and Hertz


@given(seed=st.integers(0, 10**6))
@settings(max_examples=50, deadline=None, derandomize=True)
def test_half_the_zwang_is_gibbs_appell_less_the_work_up_to_a_constant(seed):
    M, Q, *_ = random_problems.problem("regular", seed)
    rng = np.random.default_rng(seed)
    x, y = rng.standard_normal((2, len(Q)))
    a = np.linalg.solve(M, Q)

    def left(z):
        return 0.5 * (z - a) @ M @ (z - a)

    def right(z):
        return principles.gibbs_appell(M, z) - Q @ z

    size = max(left(x), left(y))
    assert left(x) - left(y) == pytest.approx(right(x) - right(y), abs=1e-12 * size)


def test_gibbs_appell_is_a_number_for_one_system_and_an_array_for_many():
    assert principles.gibbs_appell([[2, 0], [0, 4]], [1, 3]) == 19
    assert isinstance(principles.gibbs_appell([[2]], [1]), float)
    assert principles.gibbs_appell(np.eye(2), np.ones((3, 2))).tolist() == [1, 1, 1]


def test_a_force_across_the_path_and_one_along_it_are_told_apart():
    # 5 m/s² along a path at 2 m/s, 8 m/s² across: only the latter curves it, 8/2² = 2
    assert principles.hertz_curvature(np.eye(2), [2, 0], [5, 8]) == 2.0
    assert principles.hertz_curvature(np.eye(2), [2, 0], [5, 8], squared=True) == 4.0
    assert principles.hertz_curvature(np.eye(2), [2, 0], [5, 0]) == 0.0
    # 1e9 times more along than across: no digit lost
    assert principles.hertz_curvature(np.eye(2), [2, 0], [8e9, 8]) == 2.0


def test_a_particle_has_the_curvature_of_its_path_whatever_its_mass():
    for mass in (1e-3, 1.0, 7.0):
        M = mass * np.eye(3)
        assert principles.hertz_curvature(
            M, [0, 3, 0], [-4.5, 0, 0], total_mass=mass
        ) == pytest.approx(0.5, rel=4 * EPS)


@pytest.mark.parametrize("qd", [[0, 0], [[1, 0], [0, 0]]])
def test_a_system_at_rest_has_no_path(qd):
    where = r" at index \(1,\)" if np.ndim(qd) > 1 else ""
    with pytest.raises(ValueError, match=f"the kinetic energy is zero{where}: a system at rest"):
        principles.hertz_curvature(np.eye(2), qd, [1, 0])
    with pytest.raises(ValueError, match="total_mass is 0; expected a positive mass"):
        principles.hertz_curvature(np.eye(2), [1, 0], [1, 0], total_mass=0)


# ------------------------------------------------------------------ reactions


def test_the_reactions_of_the_rows_add_up_to_the_ideal_force():
    *problem, _ = random_problems.problem("rank-deficient", 4)
    motion = gm.solve(*problem)
    A, m = problem[2], len(problem[3])
    parts = [principles.reaction(A, motion.multipliers, k) for k in range(m)]
    assert np.allclose(sum(parts), motion.Q_ideal, rtol=1e-12)
    assert np.allclose(principles.reaction(A, motion.multipliers, slice(None)), sum(parts))
    assert np.allclose(principles.reaction(A, motion.multipliers, [0, 1]), parts[0] + parts[1])
    assert np.array_equal(principles.reaction(A, motion.multipliers, -1), parts[-1])


def test_a_row_that_is_not_there_is_named():
    with pytest.raises(IndexError, match=r"k is 2; expected a row from 0 to 1 \(A has 2 rows\)"):
        principles.reaction([[1, 0], [0, 1]], [1, 2], 2)


# ------------------------------------------------------------------ all of them


@pytest.mark.parametrize("judge", [*JUDGES, principles.gauss_residual], ids=lambda f: f.__name__)
def test_a_batch_is_its_systems_one_by_one(judge):
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((2, 4)), rng.standard_normal(2)
    M = np.eye(4) + 0.1 * np.ones((4, 4))
    Q, x = rng.standard_normal((3, 1, 4)), rng.standard_normal((2, 4))
    both = judge(M, Q, A, b, qdd=x)
    both = both.stationarity if isinstance(both, tuple) else both
    assert both.shape[:2] == (3, 2)
    for i in range(3):
        for j in range(2):
            alone = judge(M, Q[i, 0], A, b, qdd=x[j])
            alone = alone.stationarity if isinstance(alone, tuple) else alone
            assert np.allclose(both[i, j], alone, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("judge", JUDGES, ids=lambda f: f.__name__)
def test_a_function_shows_its_formula_and_refuses_what_does_not_fit(judge):
    assert judge._repr_latex_().startswith(r"$\displaystyle ")
    with pytest.raises(ValueError, match=r"qdd has shape \(3,\); expected \(..., 2\)"):
        judge(*TABLE, qdd=[1, 2, 3])
    with pytest.raises(TypeError, match="complex"):
        judge(*TABLE, qdd=[1, 2j])
