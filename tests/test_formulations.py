"""Each textbook route gives the exact answer where it applies and says why where it does not."""

import numpy as np
import pytest

import gaussmech as gm
import oracle
import random_problems
import systems
from gaussmech import formulations

ROUTES = formulations.__all__
NEED_REGULAR_M = ("udwadia_kalaba", "gauss")
NEED_INDEPENDENT_ROWS = ("lagrange_first_kind",)
COUNT = 500
# dyadic numbers, so that `oracle.exact` works on what the routes are given
REGULAR = ([[2, 1, 0], [1, 3, 0], [0, 0, 4]], [1, -2, 3], [[1, 1, 0], [0, 1, -1]], [2, 1])
DEPENDENT = (*REGULAR[:2], [[1, 1, 0], [0, 1, -1], [1, 2, -1]], [2, 1, 3])
SINGULAR = ([[2, 1, 0], [1, 3, 0], [0, 0, 0]], *REGULAR[1:])
CLASHING = (*DEPENDENT[:3], [2, 1, 7])
C = [0.5, -1, 2]


def call(name, *problem):
    return getattr(formulations, name)(*problem)


def near(answer, exact, tol=1e-13):
    """An answer of order one, of problems with a condition below ten."""
    for name, value in zip(("qdd", "Q_c", "multipliers"), answer, strict=True):
        expected = getattr(exact, name)
        assert np.max(np.abs(value - expected), initial=0.0) <= tol * 30, name


@pytest.mark.parametrize("c", [None, C], ids=["ideal", "non-ideal"])
@pytest.mark.parametrize("name", ROUTES)
def test_every_route_has_the_exact_answer_of_a_regular_problem(name, c):
    near(call(name, *REGULAR, c), oracle.exact(*REGULAR, c))


@pytest.mark.parametrize("c", [None, C], ids=["ideal", "non-ideal"])
@pytest.mark.parametrize("name", [r for r in ROUTES if r not in NEED_INDEPENDENT_ROWS])
def test_dependent_rows_have_the_multipliers_of_least_norm(name, c):
    near(call(name, *DEPENDENT, c), oracle.exact(*DEPENDENT, c))


@pytest.mark.parametrize("c", [None, C], ids=["ideal", "non-ideal"])
@pytest.mark.parametrize("name", [r for r in ROUTES if r not in NEED_REGULAR_M])
def test_a_singular_mass_matrix_is_fine_for_the_others(name, c):
    near(call(name, *SINGULAR, c), oracle.exact(*SINGULAR, c))


@pytest.mark.parametrize("name", [r for r in ROUTES if r not in NEED_INDEPENDENT_ROWS])
def test_clashing_rows_are_met_in_the_sense_of_least_squares(name):
    near(call(name, *CLASHING), oracle.exact(*CLASHING, project=True))


@pytest.mark.parametrize("name", NEED_REGULAR_M)
def test_a_route_that_needs_a_regular_mass_matrix_says_so(name):
    with pytest.raises(gm.GaussmechError, match=f"^{name} needs M regular: its rank is 2 of 3$"):
        call(name, *SINGULAR)


def test_lagrange_says_that_it_needs_independent_rows():
    with pytest.raises(gm.GaussmechError, match="needs independent rows: rank 2 of 3 rows"):
        formulations.lagrange_first_kind(*DEPENDENT)


@pytest.mark.parametrize("name", [r for r in ROUTES if r not in NEED_REGULAR_M])
def test_a_motion_that_is_not_unique_is_refused(name):
    free = (np.diag([1.0, 0.0, 0.0]), [1, 0, 0], [[0, 1, 0]], [0])
    with pytest.raises(gm.GaussmechError, match="unique acceleration: 1 direction without mass"):
        call(name, *free)


def test_masses_that_square_roots_cannot_hold_are_refused_with_their_ratio():
    with pytest.raises(gm.GaussmechError, match=r"masses of like size: they spread over 1e\+20"):
        formulations.udwadia_kalaba(np.diag([1.0, 1e-20]), [1, 1], [[1, 1]], [0])


@pytest.mark.parametrize("name", ROUTES)
def test_a_batch_is_its_systems_one_by_one(name):
    M = np.array([REGULAR[0], np.diag([1.0, 2.0, 3.0])])
    Q = np.array([[1.0, 2, 3]] * 2)[:, None] * np.array([1.0, 2.0, -1.0])[:, None]
    batch = call(name, M, Q.swapaxes(0, 1), *REGULAR[2:])
    assert [x.shape for x in batch] == [(3, 2, 3), (3, 2, 3), (3, 2, 2)]
    for i in range(3):
        for j in range(2):
            alone = call(name, M[j], Q[j, i], *REGULAR[2:])
            assert all(np.array_equal(x[i, j], y) for x, y in zip(batch, alone, strict=True))


@pytest.mark.parametrize("name", ROUTES)
def test_a_fault_in_a_batch_names_its_index(name):
    M = np.zeros((2, 3, 3))
    M[0] = REGULAR[0]
    with pytest.raises(gm.GaussmechError, match=r"system \(1,\): ") as caught:
        call(name, M, [1, 2, 3], [[1, 1, 0]], [0])
    assert caught.value.index == (1,)


@pytest.mark.parametrize("name", ROUTES)
@pytest.mark.parametrize("n, m", [(0, 0), (0, 2), (3, 0), (1, 1)])
def test_empty_and_smallest_problems_are_solved(name, n, m):
    A, b = np.ones((m, n)), np.zeros(m)
    if name in NEED_INDEPENDENT_ROWS and n == 0 and m:
        pytest.skip("two empty rows depend on each other")
    qdd, Q_c, multipliers = call(name, np.eye(n), np.ones(n), A, b)
    motion = gm.solve(np.eye(n), np.ones(n), A, b)
    assert np.allclose(qdd, motion.qdd, atol=1e-14) and np.allclose(Q_c, motion.Q_c, atol=1e-14)
    assert multipliers.shape == (m,)
    empty = call(name, np.zeros((0, n, n)), np.ones(n), A, b)
    assert [x.shape for x in empty] == [(0, n), (0, n), (0, m)]


@pytest.mark.parametrize("name", ROUTES)
def test_bad_input_gets_a_sentence(name):
    with pytest.raises(ValueError, match="Q has shape"):
        call(name, np.eye(2), [1, 2, 3], [[1, 0]], [0])
    with pytest.raises(ValueError, match=r"b\[0\] is nan; expected finite numbers"):
        call(name, np.eye(2), [1, 2], [[1, 0]], [np.nan])
    with pytest.raises(TypeError, match="complex"):
        call(name, np.eye(2), [1, 2j], [[1, 0]], [0])


@pytest.mark.parametrize("name", ROUTES)
def test_a_route_shows_its_equation_and_its_source(name):
    route = getattr(formulations, name)
    assert route._repr_latex_().startswith("$")
    for section in ("Parameters", "Returns", "Raises", "Notes", "Examples"):
        assert f"{section}\n    ---" in route.__doc__


# ------------------------------------------------------------------ all of them beside the kernel


@pytest.mark.parametrize("kind", random_problems.KINDS)
def test_all_routes_agree_with_the_kernel_on_500_random_problems(kind):
    inconsistent = "project" if kind == "inconsistent" else "raise"
    for seed in range(COUNT):
        *problem, rank = random_problems.problem(kind, seed)
        check = gm.cross_check(*problem, inconsistent=inconsistent)
        assert check.motion.rank == rank
        assert check.ok, f"{kind} {seed}\n{check}"
        for row in check:
            if kind == "singular" and row.name in NEED_REGULAR_M:
                assert row.ok is None and row.remark.startswith("needs M regular: its rank is ")
            elif len(problem[3]) > rank and row.name in NEED_INDEPENDENT_ROWS:
                assert row.ok is None and row.remark.startswith("needs independent rows: rank ")
            else:
                # M^1/2 of M + A⁺A loses up to seven digits (masses of 100 beside rows of 1)
                assert row.ok is True, f"{kind} {seed}: {row}"
                assert max(row.difference.values()) <= 1e-8, f"{kind} {seed}: {row}"


@pytest.mark.parametrize("kind", systems.KINDS)
def test_the_yardstick_systems_cross_check(kind):
    # mass ratios to 1e12 and rows 1e-10 from dependent: digits get lost, and the lines say so
    for size in [(2, 1), (6, 3), (12, 6)]:
        if size == (2, 1) and kind.startswith("near"):
            continue
        for seed in range(5):
            check = gm.cross_check(*systems.get(kind, *size, seed))
            assert check, f"{size} {seed}\n{check}"
