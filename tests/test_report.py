"""The report on one's own acceleration: the right line is marked, and the slip is guessed."""

import re

import numpy as np
import pytest

import gaussmech as gm
import random_problems
import systems
from gaussmech.principles import report

CONSTRAINTS = "constraint_residual"
BALANCE = [
    "dalembert_residual",
    "jourdain_residual",
    "gauss_residual",
    "lagrange_first_kind_residual",
    "gibbs_appell_residual",
]
ALL = [CONSTRAINTS, *BALANCE, "solve"]


def failed(verdict):
    return [row.name for row in verdict if not row.ok]


def pendulum(angle=0.7, rate=1.3, length=2.0, mass=1.5, g=9.81):
    """M, Q, A, b of a bob in the plane, φ = (x² + y² - l²)/2."""
    x, y = length * np.sin(angle), -length * np.cos(angle)
    v = length * rate
    return mass * np.eye(2), np.array([0, -mass * g]), np.array([[x, y]]), np.array([-v * v])


def spiral(r=1.2, rd=0.4, rate=2.0, mass=0.5, force=3.0, coriolis=1.0):
    """A bead on the spiral r = c φ in polar coordinates, pushed along the radius."""
    c = rd / rate
    M = mass * np.diag([1, r * r])
    Q = np.array([force + mass * r * rate**2, -coriolis * 2 * mass * r * rd * rate])
    return M, Q, np.array([[1, -c]]), np.array([0.0])


@pytest.mark.parametrize("kind", [k for k in random_problems.KINDS if k != "inconsistent"])
def test_the_motion_passes_every_line(kind):
    for seed in range(40):
        *problem, _ = random_problems.problem(kind, seed)
        motion = gm.solve(*problem)
        verdict = report(*problem, qdd=motion.qdd)
        assert verdict, f"{seed}\n{verdict}"
        assert [row.name for row in verdict] == ALL
        assert report(*problem, qdd=motion.qdd, accuracy=0), f"{seed}"


@pytest.mark.parametrize("kind", systems.KINDS)
def test_the_motion_passes_with_mass_ratios_and_near_dependence_too(kind):
    for size in [(3, 2), (6, 3), (12, 6)]:
        problem = systems.get(kind, *size, 2)
        verdict = report(*problem, qdd=gm.acceleration(*problem))
        assert verdict, f"{size}\n{verdict}"


@pytest.mark.parametrize("kind", [k for k in random_problems.KINDS if k != "inconsistent"])
def test_a_change_of_a_millionth_is_caught(kind):
    for seed in range(40):
        *problem, _ = random_problems.problem(kind, seed)
        qdd = gm.acceleration(*problem)
        rng = np.random.default_rng(seed)
        N = gm.principles.virtual_displacements(problem[2])
        along = N @ rng.standard_normal(N.shape[1])
        across = problem[2].T @ rng.standard_normal(len(problem[3]))
        size = np.abs(qdd).max()
        verdict = report(*problem, qdd=qdd + 1e-4 * size * along / np.abs(along).max())
        assert not verdict and CONSTRAINTS not in failed(verdict)
        assert {"dalembert_residual", "solve"} <= set(failed(verdict))
        verdict = report(*problem, qdd=qdd + 1e-4 * size * across / np.abs(across).max())
        assert {CONSTRAINTS, "solve"} <= set(failed(verdict))


# ------------------------------------------------------------------ the slips of a derivation


def test_a_wrong_sign_of_b_marks_the_constraints_and_nothing_else():
    M, Q, A, b = pendulum()
    wrong = gm.acceleration(M, Q, A, -b)
    verdict = report(M, Q, A, b, qdd=wrong, names={"rows": ["rod"]})
    assert failed(verdict) == [CONSTRAINTS, "solve"]
    assert verdict[CONSTRAINTS].remark == "'rod' (row 0): A q̈ is -b: the sign of b?"


def test_a_factor_two_in_b_marks_the_constraints():
    # A = (2x, 2y) with the b that belongs to (x, y)
    M, Q, A, b = pendulum()
    verdict = report(M, Q, 2 * A, 2 * b, qdd=gm.acceleration(M, Q, 2 * A, b))
    assert failed(verdict) == [CONSTRAINTS, "solve"]
    assert verdict[CONSTRAINTS].remark == "row 0: A q̈ is b/2: a factor 2 in b?"
    verdict = report(M, Q, A, b, qdd=gm.acceleration(M, Q, A, 2 * b))
    assert verdict[CONSTRAINTS].remark == "row 0: A q̈ is 2 b: a factor 2 in b?"


def test_a_b_left_out_marks_the_constraints():
    M, Q, A, b = pendulum()
    verdict = report(M, Q, A, b, qdd=gm.acceleration(M, Q, A, 0 * b))
    assert failed(verdict) == [CONSTRAINTS, "solve"]
    assert verdict[CONSTRAINTS].remark == "row 0: A q̈ is 0: b left out?"


def test_a_dropped_coriolis_term_in_b_marks_the_row_that_it_belongs_to():
    # a bead in a slot that turns: y cos θ - x sin θ = 0 and θ' = rate, both rows
    theta, rate, speed = 0.3, 2.0, 0.7
    A = np.array([[-np.sin(theta), np.cos(theta)], [np.cos(theta), np.sin(theta)]])
    b = np.array([2 * rate * speed, 1.0])
    wrong = gm.acceleration(np.eye(2), [0, 0], A, [rate * speed, 1.0])
    names = {"rows": ["slot", "motor"], "coordinates": ["x", "y"]}
    verdict = report(np.eye(2), [0, 0], A, b, qdd=wrong, names=names)
    assert CONSTRAINTS in failed(verdict)
    assert verdict[CONSTRAINTS].remark == "'slot' (row 0): A q̈ is b/2: a factor 2 in b?"


def test_a_dropped_coriolis_term_in_the_forces_marks_the_balance_and_not_the_constraints():
    right, wrong = spiral(), spiral(coriolis=0)
    verdict = report(*right, qdd=gm.acceleration(*wrong))
    assert failed(verdict) == [*BALANCE, "solve"]
    assert verdict[CONSTRAINTS].ok


@pytest.mark.parametrize(
    ("factor", "guess"),
    [(-1, "fits -Q: the sign of Q?"), (2, "fits 2 Q: a factor 2 in Q or M?"),
     (0.5, "fits Q/2: a factor 2 in Q or M?"), (0, "fits Q = 0: the force left out?")],
)  # fmt: skip
def test_a_factor_in_the_force_is_guessed(factor, guess):
    M, Q, A, b = pendulum()
    verdict = report(M, Q, A, b, qdd=gm.acceleration(M, factor * Q, A, b))
    assert failed(verdict) == [*BALANCE, "solve"]
    assert verdict["dalembert_residual"].remark == guess


@pytest.mark.parametrize(
    ("factor", "guess"),
    [(0, "fits C = 0: the non-ideal part left out?"), (-1, "fits -C: the sign of C?")],
)
def test_a_slip_in_the_non_ideal_part_is_guessed(factor, guess):
    M, Q, A, b = pendulum()
    C = np.array([0.3, -0.2])
    verdict = report(M, Q, A, b, C, qdd=gm.acceleration(M, Q, A, b, factor * C))
    assert failed(verdict) == [*BALANCE, "solve"]
    assert verdict["dalembert_residual"].remark == guess
    assert report(M, Q, A, b, C, qdd=gm.acceleration(M, Q, A, b, C))


def test_multiplying_b_by_the_mass_marks_only_what_is_wrong_and_says_by_how_much():
    M, Q, A, b = pendulum()
    verdict = report(M, Q, A, b, qdd=gm.acceleration(M, Q, A, 1.5 * b))
    assert failed(verdict) == [CONSTRAINTS, "solve"]
    assert verdict[CONSTRAINTS].remark == f"row 0: A q̈ − b is {0.5 * b[0]:.4g}"


# ------------------------------------------------------------------ a verdict


def test_an_assertion_on_a_wrong_acceleration_fails():
    M, Q, A, b = pendulum()
    qdd = gm.acceleration(M, Q, A, b)
    assert report(M, Q, A, b, qdd=qdd)
    with pytest.raises(AssertionError):
        assert report(M, Q, A, b, qdd=1.001 * qdd)
    with pytest.raises(AssertionError):
        assert (
            report(M, Q, A, b, qdd=qdd)[CONSTRAINTS] and report(M, Q, A, b, qdd=-qdd)[CONSTRAINTS]
        )


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_an_acceleration_that_is_no_number_is_not_accepted(value):
    with pytest.raises(ValueError, match=r"qdd\[0\] is (nan|inf); expected finite numbers"):
        report(*pendulum(), qdd=[value, 1.0])


def test_accuracy_is_what_is_asked_of_the_acceleration():
    M, Q, A, b = pendulum()
    rounded = gm.acceleration(M, Q, A, b).round(4)
    assert not report(M, Q, A, b, qdd=rounded)
    assert report(M, Q, A, b, qdd=rounded, accuracy=1e-4)
    with pytest.raises(ValueError, match="accuracy is 2; expected a number from 0 to below 1"):
        report(M, Q, A, b, qdd=rounded, accuracy=2)


def test_an_equilibrium_of_rounding_errors_is_accepted():
    # a bob at rest below its pivot: q̈ = 0, computed as 1e-16
    M, Q, A, b = pendulum(angle=0.0, rate=0.0)
    assert report(M, Q, A, b, qdd=[1e-16, -2e-16])
    assert not report(M, Q, A, b, qdd=[1e-12, 0])


def test_units_do_not_change_the_verdict():
    for seed in range(20):
        M, Q, A, b, C, _ = random_problems.problem("non-ideal", seed)
        d = 10.0 ** np.random.default_rng(seed).integers(-6, 7, len(Q))
        x = gm.acceleration(M, Q, A, b, C)
        scaled = (M * np.outer(d, d), Q * d, A * d, b, C * d)
        assert report(*scaled, qdd=x / d)
        for k in range(len(Q)):
            # one coordinate wrong in its fourth digit, whatever the others measure
            wrong = (x + 1e-4 * np.abs(x).max() * (np.arange(len(Q)) == k)) / d
            assert not report(*scaled, qdd=wrong)


def test_the_table_says_what_is_judged_and_where_it_fails():
    M, Q, A, b = pendulum()
    names = {"rows": ["rod"], "coordinates": ["x", "y"]}
    text = repr(report(M, Q, A, b, qdd=[1, 2], names=names))
    lines = text.splitlines()
    assert lines[0] == "report: this acceleration fails 7 of 7 lines"
    assert re.match(r"  Constraints +A q̈ = b +\d+ +\de-\d+ +NO +'rod' \(row 0\): A q̈", lines[2])
    assert "worst in coordinate 'x' (0)" in lines[8] or "worst in coordinate 'y' (1)" in lines[8]
    assert lines[-1].startswith("  tolerance: what a q̈ does that is off by 1e-09 of its size")
    html = report(M, Q, A, b, qdd=[1, 2], names=names)._repr_html_()
    assert html.count("background") == 7 and "d&#x27;Alembert" in html


def test_columns_stand_below_each_other_in_spite_of_combining_dots():
    lines = repr(report(*pendulum(), qdd=[1, 2])).splitlines()[1:-1]
    columns = {
        line.replace("\u0308", "").find(mark) for line in lines[1:] for mark in ("NO", "yes")
    }
    assert len(columns - {-1}) == 1


def test_a_batch_is_judged_by_its_worst_system_and_names_it():
    M, Q, A, b = pendulum()
    qdd = np.tile(gm.acceleration(M, Q, A, b), (4, 1))
    assert report(M, Q, A, b, qdd=qdd)
    qdd[2] *= 1.01
    verdict = report(M, Q, A, b, qdd=qdd)
    assert verdict[CONSTRAINTS].remark.startswith("row 0 at index (2,): A q̈ − b is ")
    assert verdict["solve"].remark.endswith("of the system at index (2,)")
    assert verdict["solve"].residual.shape == (4, 2)
    assert report(M, Q, A, b, qdd=qdd[:0])


def test_what_is_not_unique_does_not_matter():
    # a massless free coordinate may have any acceleration
    problem = (np.diag([1.0, 1, 0]), [3, -10, 0], [[0, 1, 0]], [0])
    for free in (0.0, 1.0, -1e6):
        assert report(*problem, qdd=[3, 0, free])
    assert not report(*problem, qdd=[3, 1, 0])


def test_a_problem_without_an_answer_raises_as_solve_does():
    with pytest.raises(gm.InconsistentConstraintsError):
        report([[1]], [0], [[1], [1]], [0, 1], qdd=[0])
    with pytest.raises(gm.IndeterminateMotionError):
        report([[0]], [1], [[0]], [0], qdd=[0])


@pytest.mark.parametrize("n, m", [(1, 0), (1, 1), (2, 2), (3, 0)])
def test_the_smallest_problems_are_judged(n, m):
    problem = (np.eye(n), np.ones(n), np.eye(m, n), np.ones(m))
    assert report(*problem, qdd=np.ones(n))
    assert not report(*problem, qdd=np.full(n, 2.0))
