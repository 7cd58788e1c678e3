"""What one ulp in the data can change: bounds that random moves of the data keep, and reach."""

import numpy as np
import pytest

import gaussmech as gm
import systems
from gaussmech.digits import one_ulp

FIELDS = ("qdd", "Q_c", "multipliers")
KINDS = [k for k in systems.KINDS if "dep" not in k]


def moved(rng, X):
    """Every nonzero entry moved by one ulp, up or down."""
    return np.where(X != 0, np.nextafter(X, np.where(rng.random(X.shape) < 0.5, -9e9, 9e9)), X)


def largest_change(system, ref, draws=10):
    """The largest change of each field, in 80 digits, over random moves by one ulp."""
    rng = np.random.default_rng(system.seed)
    found = [0.0] * 3
    for _ in range(draws):
        M = moved(rng, system.M)
        other = systems.System(
            system.kind, system.n, system.m, system.seed,
            np.triu(M) + np.triu(M, 1).T, moved(rng, system.Q), moved(rng, system.A),
            moved(rng, system.b), system.rank,
        )  # fmt: skip
        new = systems.reference(other)
        for j, key in enumerate(("qdd", "Qc", "lam")):
            # the difference is taken in 80 digits too
            found[j] = max(
                found[j],
                float(sum((x - y) ** 2 for x, y in zip(new[key], ref[key], strict=True)) ** 0.5),
            )
    return found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [(2, 1), (6, 3)], ids=["2x1", "6x3"])
def test_random_moves_of_the_data_stay_below_the_bound_and_come_near_it(kind, size):
    if size[1] < 2 and kind.startswith("near"):
        pytest.skip("needs two rows")
    system = systems.make(kind, *size, 5)
    ref = systems.reference(system)
    given = system.M, system.Q, system.A, system.b
    bound = one_ulp(*given, None, gm.independent_rows(system.A, system.M))
    for name, change in zip(FIELDS, largest_change(system, ref), strict=True):
        limit = np.linalg.norm(getattr(bound, name))
        # an ulp is eps to eps/2 of its number, so that second-order terms do not matter
        assert change <= 1.01 * limit, name
        assert change >= limit / 60, f"{name}: the bound is {limit / change:.0f} times too large"


def test_units_of_coordinates_and_rows_go_into_the_bound_as_into_the_answer():
    system = systems.make("dense:1e4", 6, 3, 1)
    M, Q, A, b = system.M, system.Q, system.A, system.b
    rows = gm.independent_rows(A, M)
    plain = one_ulp(M, Q, A, b, None, rows)
    d, s = 2.0 ** np.arange(-3, 3) * 4.0, 2.0 ** np.arange(3)
    other = one_ulp(M * np.outer(d, d), Q * d, (A * d) * s[:, None], b * s, None, rows)
    assert np.allclose(other.qdd * d, plain.qdd, rtol=1e-6)
    assert np.allclose(other.Q_c / d, plain.Q_c, rtol=1e-6)
    assert np.allclose(other.multipliers * s, plain.multipliers, rtol=1e-6)


def test_what_nothing_determines_does_not_disturb_the_rest():
    # a massless, unconstrained coordinate beside a table
    bound = one_ulp(
        np.diag([1.0, 1.0, 0.0]), np.array([3.0, -10.0, 0.0]), np.array([[0.0, 1.0, 0.0]]),
        np.zeros(1), None, np.array([True]),
    )  # fmt: skip
    assert np.isfinite(bound.qdd).all() and bound.qdd[2] == 0
    assert bound.qdd[0] == pytest.approx(2 * 3 * np.finfo(float).eps)
