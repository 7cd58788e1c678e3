"""Decisions do not depend on units: ranks, and which rows contradict each other.

All systems come from seeded whole numbers, so the truth (`oracle.exact_rank`, planted combinations)
is known; units are then changed by factors spread over 1e12, which rounds every entry once. The
verdicts are counted: a rule that is right 999 times out of 1,000 fails.
"""

import numpy as np
import pytest

import gaussmech as gm
import oracle

SPREAD = 6.0  # factors 10^-6 .. 10^6


def factors(rng, k, spread=SPREAD):
    """k factors 10^u with the ends of the range among them whenever k >= 2."""
    u = rng.uniform(-spread, spread, k)
    if k >= 2:
        u[rng.choice(k, 2, replace=False)] = -spread, spread
    return 10.0**u


class Planted:
    """Whole numbers: M = B B.T + 1, A with planted dependent rows, G with A = G A[independent]."""

    def __init__(self, rng, dependent=True, massless=False):
        self.n = n = int(rng.integers(2, 9))
        while True:
            rank = int(rng.integers(1, n + 1))
            extra = int(rng.integers(1, n + 3 - rank)) if dependent else 0
            base = rng.integers(-3, 4, (rank, n)).astype(float)
            B = rng.integers(-1, 2, (n, n)).astype(float)
            self.M = B @ B.T + np.eye(n)
            if massless:
                gone = rng.choice(n, rng.integers(1, rank + 1), replace=False)
                self.M[gone], self.M[:, gone] = 0.0, 0.0
            # the planted rows must be independent by a margin that 1e-12 cannot touch, and A must
            # hold every massless body
            if (
                oracle.exact_rank(base) == rank
                and oracle.condition(base, rank) < 1e3
                and (not massless or oracle.exact_rank(np.vstack([self.M, base])) == n)
            ):
                break
        combinations = rng.integers(-2, 3, (extra, rank)).astype(float)
        empty = ~combinations.any(axis=1)
        combinations[empty, 0] = 1.0
        self.G = np.vstack([np.eye(rank), combinations])
        self.order = rng.permutation(rank + extra)
        self.G = self.G[self.order]
        self.A = self.G @ base
        self.rank, self.m = rank, rank + extra
        self.force = rng.integers(-9, 10, n).astype(float)
        self.target = self.A @ rng.integers(-9, 10, n).astype(float)

    def in_units(self, rng, masses=None):
        """(M, Q, A, b) after a change of row, coordinate and mass units; `masses` multiplies the
        mass of each coordinate by a factor of its own, which is another system of equal rank."""
        rows, D, c = factors(rng, self.m), factors(rng, self.n), factors(rng, 1)[0]
        M = self.M
        if masses is not None:
            root = np.sqrt(masses)
            M = root[:, None] * M * root
        M = c * (D[:, None] * M * D)
        M = np.triu(M) + np.triu(M, 1).T  # rounding must not make it asymmetric
        return M, c * D * self.force, rows[:, None] * self.A * D, rows * self.target


# ------------------------------------------------------------------ ranks


@pytest.mark.parametrize("masses", ["units only", "mass ratios", "massless coordinates"])
def test_rank_of_1000_systems_is_right_in_units_spread_over_1e12(masses):
    """Rows, coordinates and masses, 1,000 systems of each kind, 0 wrong."""
    rng = np.random.default_rng(12)
    wrong = []
    for i in range(1000):
        system = Planted(rng, dependent=i % 4 != 0, massless=masses == "massless coordinates")
        ratios = factors(rng, system.n) if masses == "mass ratios" else None
        M, Q, A, b = system.in_units(rng, ratios)
        motion = gm.solve(M, Q, A, b, errors="status")
        kept = gm.independent_rows(A, M)
        if motion.rank != system.rank or kept.sum() != system.rank:
            wrong.append((i, motion.rank, int(kept.sum()), system.rank))
        # the rows that were kept do span: exactly independent before the change of units
        elif oracle.exact_rank(system.A[kept]) != system.rank:
            wrong.append((i, "kept rows are dependent"))
    assert wrong == []


def test_uniqueness_of_multipliers_is_the_same_in_all_units():
    """The mask is decided on unit rows: 300 systems, 0 wrong."""
    rng = np.random.default_rng(31)
    wrong = []
    for i in range(300):
        system = Planted(rng)
        plain = oracle.exact(system.M, system.force, system.A, system.target)
        motion = gm.solve(*system.in_units(rng))
        if not np.array_equal(motion.multipliers_unique, plain.multipliers_unique):
            wrong.append(i)
    assert wrong == []


@pytest.mark.parametrize("sine", [1e-2, 1e-3, 1e-6, 1e-9, 1e-11])
def test_rtol_decides_the_rank_on_both_sides_of_the_sine_between_two_rows(sine):
    """Two rows at an angle: the second one counts while its sine is above rtol."""
    A = np.array([[1.0, 0.0], [1.0, sine]])
    for rtol, rank in [(sine / 2, 2), (2 * sine, 1)]:
        for units in [1.0, 2.0**20, 2.0**-20]:
            rows = np.array([units, 1 / units])
            motion = gm.solve(np.eye(2), [3.0, 5.0], rows[:, None] * A, [0.0, 0.0], rtol=rtol)
            assert motion.rank == rank
            assert gm.independent_rows(rows[:, None] * A, np.eye(2), rtol=rtol).sum() == rank
            # with rank 1 the second coordinate is free: (5 - 3 sine) / (1 + sine^2) or 5
            assert motion.qdd[1] == pytest.approx(0.0 if rank == 2 else 5.0, abs=4 * sine)


def test_default_rtol_is_1e12_for_small_systems():
    """max(1e-12, 16 n eps): both sides of 1e-12 at n = 2; eight coordinates do not raise it."""
    for n in (2, 8):
        for sine, rank in [(2e-12, 2), (5e-13, 1)]:
            A = np.zeros((2, n))
            A[:, 0] = 1.0
            A[1, 1] = sine
            motion = gm.solve(np.eye(n), np.zeros(n), A, [1.0, 1.0])
            assert motion.rank == rank
            assert gm.independent_rows(A).sum() == rank


def test_sine_is_taken_in_the_metric_of_the_masses():
    """A heavy and a light coordinate: the same two rows are nearly parallel by mass alone."""
    A = np.array([[1.0, 0.0], [1.0, 1.0]])
    light = np.diag([1.0, 2.0**40])  # sine 2^-20 = 9.5e-7
    for M, rank in [(np.eye(2), 2), (light, 1)]:
        assert gm.independent_rows(A, M, rtol=1e-5).sum() == rank
        assert gm.solve(M, [0.0, 0.0], A, [0.0, 0.0], rtol=1e-5).rank == rank
    assert gm.independent_rows(A, light).sum() == 2


@pytest.mark.parametrize("units", [1.0, 1e-6, 1e6])
def test_row_scale_decides_whether_a_row_that_cancelled_counts_as_zero(units):
    """The row sin(pi) is 1.2e-16 long: a row of full rank, unless its terms were of order 1."""
    sine = np.sin(np.pi)
    A = units * np.array([[sine, 0.0], [0.0, 1.0]])
    b = np.array([0.0, 0.0])
    Q = [3.0, 5.0]
    plain = gm.solve(np.eye(2), Q, A, b)
    assert (plain.rank, plain.qdd[0]) == (2, 0.0)
    assert not plain.vanished.any()
    # the default rtol is 1e-12: scales on both sides of sine / 1e-12
    for scale, rank in [(2 * sine / 1e-12, 1), (sine / 2e-12, 2)]:
        motion = gm.solve(np.eye(2), Q, A, b, row_scale=units * np.array([scale, 1.0]))
        assert motion.rank == rank
        assert list(motion.vanished) == [rank == 1, False]
        assert list(motion.multipliers_unique) == [rank == 2, True]
        assert motion.qdd[0] == (3.0 if rank == 1 else 0.0)
        assert motion.qdd[1] == 0.0
    # and on both sides of rtol, for the scale 1 that the model layer would give
    for rtol, rank in [(1e-15, 1), (1e-17, 2)]:
        motion = gm.solve(np.eye(2), Q, A, b, row_scale=[units, units], rtol=rtol)
        assert motion.rank == rank


def test_vanished_row_with_a_target_is_inconsistent_and_without_one_has_no_effect():
    """1 - cos at its foot, and the same row with a target that nothing can meet."""
    A = np.array([[0.0, 0.0], [1.0, 1.0]])
    motion = gm.solve(np.eye(2), [1.0, 3.0], A, [0.0, 0.0])
    assert motion.rank == 1
    assert list(motion.vanished) == [True, False]
    assert list(motion.multipliers_unique) == [False, True]
    assert motion.multipliers[0] == 0.0
    np.testing.assert_allclose(motion.qdd, [-1.0, 1.0], rtol=8 * oracle.EPS)
    with pytest.raises(gm.InconsistentConstraintsError) as caught:
        gm.solve(np.eye(2), [1.0, 3.0], A, [1.0, 0.0])
    assert 0 in caught.value.rows
    cancelled = np.array([[np.sin(np.pi), 0.0], [1.0, 1.0]])
    verdict = gm.solve(
        np.eye(2), [1.0, 3.0], cancelled, [1.0, 0.0], row_scale=[1.0, 2.0], errors="status"
    )
    assert verdict.status == gm.Status.INCONSISTENT


# ------------------------------------------------------------------ singular masses


def massless_along(rng, n):
    """(M, v): M v = 0 exactly but for rounding, the other eigenvalues within 1e3 of each other.

    So nothing is in doubt about M. But the rounding that stands where a pivot should be 0 is
    magnified by 1 / (the pivots before it), and those depend on the order of the coordinates.
    """
    U = np.linalg.qr(rng.standard_normal((n, n)))[0]
    M = (U[:, 1:] * 10.0 ** rng.uniform(-1.5, 1.5, n - 1)) @ U[:, 1:].T
    return (M + M.T) / 2, U[:, 0]


@pytest.mark.parametrize("n", [3, 5, 8])
def test_mass_that_is_singular_up_to_rounding_is_so_in_every_order_of_the_coordinates(n):
    """300 masses held by one row: a force along v has no free acceleration, so no `zwang`."""
    rng = np.random.default_rng(51)
    defined = []
    for i in range(300):
        M, v = massless_along(rng, n)
        A = rng.standard_normal((1, n))
        for order in (np.arange(n), np.arange(n)[::-1], rng.permutation(n)):
            M_, Q_, A_ = M[np.ix_(order, order)], v[order], A[:, order]
            motion = gm.solve(M_, Q_, A_, [0.0])
            alone = gm.zwang(M_, Q_, motion.qdd)
            if not (np.isnan(motion.zwang) and np.isnan(alone)):
                defined.append((i, motion.zwang, alone))
    assert defined == []


@pytest.mark.parametrize("n", [3, 5, 8])
@pytest.mark.parametrize("rows", [0, 1])
def test_massless_direction_that_no_row_holds_is_found_up_to_rounding(n, rows):
    """300 systems with v in ker M and ker A: none with a force along v, else many; 0 missed."""
    rng = np.random.default_rng(52)
    missed = []
    for i in range(300):
        M, v = massless_along(rng, n)
        A = rng.standard_normal((rows, n))
        A -= np.outer(A @ v, v)
        inside = M @ rng.standard_normal(n)
        for Q, expected in [
            (inside + v, gm.Status.INDETERMINATE_NONE),
            (inside, gm.Status.INDETERMINATE_MANY),
        ]:
            motion = gm.solve(M, Q, A, np.zeros(rows), errors="status")
            if motion.status != expected or motion.nullity != 1:
                missed.append((i, motion.status, motion.nullity))
    assert missed == []


# ------------------------------------------------------------------ the consistency rule

FAMILY = 300


def refused(M, Q, A, b):
    status = gm.solve(M, Q, A, b, errors="status").status
    assert status in (gm.Status.OK, gm.Status.INCONSISTENT)
    return status == gm.Status.INCONSISTENT


def test_consistent_dependent_rows_in_units_spread_over_1e12_raise_no_alarm():
    """Family a: 300 good systems, 0 refused."""
    rng = np.random.default_rng(41)
    count = sum(refused(*Planted(rng).in_units(rng)) for _ in range(FAMILY))
    assert count == 0


def test_equilibrium_with_dependent_rows_and_large_forces_raises_no_alarm():
    """Family b: b = 0, forces up to 1e9, and no acceleration at all when A has full rank."""
    rng = np.random.default_rng(42)
    count = 0
    for _ in range(FAMILY):
        system = Planted(rng)
        M, Q, A, b = system.in_units(rng)
        count += refused(M, 10.0 ** rng.uniform(0, 9) * Q, A, np.zeros_like(b))
    assert count == 0


def test_equilibrium_with_noise_of_1e16_in_the_targets_raises_no_alarm():
    """Family c: what should be 0 is 1e-16, and forces of order 1 are the only scale there is."""
    rng = np.random.default_rng(43)
    count = 0
    for _ in range(FAMILY):
        system = Planted(rng)
        Q = rng.uniform(0.5, 2.0, system.n) * rng.choice([-1.0, 1.0], system.n)
        noise = 1e-16 * rng.standard_normal(system.m)
        count += refused(system.M, Q, system.A, noise)
    assert count == 0


def test_targets_that_disagree_by_a_tenth_are_never_missed():
    """Family d: one dependent row asks for 10 % more or less, in units spread over 1e12."""
    rng = np.random.default_rng(44)
    missed = made = 0
    while made < FAMILY:
        system = Planted(rng)
        row = int(rng.integers(system.m))
        free = oracle.exact(system.M, system.force, system.A, system.target).multipliers_unique[row]
        if free or system.target[row] == 0.0:
            continue  # that row may ask for what it likes, or asks for nothing
        made += 1
        M, Q, A, b = system.in_units(rng)
        b[row] *= rng.choice([0.9, 1.1])
        missed += not refused(M, Q, A, b)
        # and a disagreement of a tenth against a target of 0
        M, Q, A, b = system.in_units(rng)
        one_unit = b[row] / system.target[row]
        b[:] = 0.0
        b[row] = 0.1 * one_unit
        missed += not refused(M, Q, A, b)
    assert missed == 0


@pytest.mark.parametrize("rows", [(1.0, 1.0), (1e6, 1e-6), (1e-6, 1e6)])
@pytest.mark.parametrize("force", [0.0, 10.0])
@pytest.mark.parametrize("ctol", [None, 1e-3, 1e-6])
def test_ctol_is_relative_to_the_targets_and_the_forces(rows, force, ctol):
    """Two equal rows: clash when |b1 - b0| > ctol (|b1| + |b0| + |D(Q + C)|), in any row units."""
    options = {} if ctol is None else {"ctol": ctol}
    ctol = 1e-9 if ctol is None else ctol
    rows = np.array(rows)
    A = rows[:, None] * np.array([[1.0, 0.0], [1.0, 0.0]])
    threshold = ctol * (2.0 + force)  # the change of b itself adds ctol^2 at most
    for share, expected in [(0.9, gm.Status.OK), (1.1, gm.Status.INCONSISTENT)]:
        b = rows * [1.0, 1.0 + share * threshold]
        # the force counts as Q, as C and as their sum
        for Q, C in [(force, 0.0), (0.0, force), (3 * force, -2 * force)]:
            motion = gm.solve(np.eye(2), [0.0, Q], A, b, [0.0, C], errors="status", **options)
            assert motion.status == expected


@pytest.mark.parametrize("mass", [1.0, 4.0**10, 4.0**-10])
@pytest.mark.parametrize("length", [1.0, 4.0])
def test_b_atol_is_an_absolute_allowance_in_the_units_of_b(mass, length):
    """Two equal rows of any length and mass: clash when |b1 - b0| > b_atol, however short b is."""
    A = np.array([[length, 0.0], [length, 0.0]])
    for b_atol in (1e-3, 1e-12):
        for share, expected in [(0.9, gm.Status.OK), (1.1, gm.Status.INCONSISTENT)]:
            motion = gm.solve(
                mass * np.eye(2),
                [0.0, 0.0],
                A,
                [0.0, share * b_atol],
                b_atol=b_atol,
                errors="status",
            )
            assert motion.status == expected
    nothing_allowed = gm.solve(mass * np.eye(2), [0.0, 0.0], A, [0.0, 1e-300], errors="status")
    assert nothing_allowed.status == gm.Status.INCONSISTENT


def test_b_atol_forgives_noise_in_the_target_of_a_vanished_row():
    """A row that cancelled to nothing, with rounding in b: refused, unless the caller allows it."""
    A = np.array([[np.sin(np.pi), 0.0], [0.0, 1.0]])
    for b_atol, expected in [(2e-6, gm.Status.OK), (5e-7, gm.Status.INCONSISTENT)]:
        motion = gm.solve(
            np.eye(2),
            [0.0, 0.0],
            A,
            [1e-6, 0.0],
            row_scale=[1.0, 1.0],
            b_atol=b_atol,
            errors="status",
        )
        assert motion.status == expected


def test_errors_of_every_entry_of_b_forgive_what_they_explain():
    """b_atol as an array: 1e-17 against 3e-17 is no clash where each is known to 2e-17."""
    rows = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]])
    b = np.array([1e-17, 6e-17, 0.0])
    # row 1 is kept, row 0 dropped: the gap is 1e-17 - 3e-17, the errors e0 + e1/2
    for errors, expected in [
        ([1.1e-17, 2e-17, 0.0], gm.Status.OK),
        ([0.9e-17, 2e-17, 0.0], gm.Status.INCONSISTENT),
        ([0.0, 4.1e-17, 0.0], gm.Status.OK),
        ([0.0, 3.9e-17, 0.0], gm.Status.INCONSISTENT),
        ([0.0, 0.0, 1.0], gm.Status.INCONSISTENT),
    ]:
        given = np.eye(2), np.zeros(2), rows, b
        for wanted in (errors, np.array(errors), [errors, errors]):
            motion = gm.solve(*given, b_atol=wanted, errors="status")
            assert np.all(np.asarray(motion.status) == expected), (errors, motion.status)
    with pytest.raises(gm.InconsistentConstraintsError, match="rows 0 and 1"):
        gm.solve(*given, b_atol=[0.0, 0.0, 1.0])
    with pytest.raises(ValueError, match=r"b_atol has shape \(2,\); expected \(..., 3\)"):
        gm.solve(*given, b_atol=[0.0, 0.0])
    with pytest.raises(ValueError, match=r"b_atol\[1\] is negative"):
        gm.solve(*given, b_atol=[0.0, -1.0, 0.0])


def test_errors_of_a_vanished_row_forgive_its_target():
    for error, expected in [(2e-6, gm.Status.OK), (5e-7, gm.Status.INCONSISTENT)]:
        motion = gm.solve(
            np.eye(2), [1.0, 1.0], [[0.0, 0.0]], [1e-6], b_atol=[error], errors="status"
        )
        assert motion.status == expected
