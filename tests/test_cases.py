"""Every case of data/cases.json that the kernel answers: the expected values or the error due.

A handler belongs to every key of `input` and `expected`; a key without one fails the case, so that
nothing in the file goes unread. Cases of later layers are listed in LATER, which must be exact.
Second half, by machinery: every case with values again, tiled, strided, of size zero, as gufunc.
"""

import json
import os
import re
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import gaussmech as gm
from gaussmech import ufuncs

CASES = json.loads((Path(__file__).parent / "data" / "cases.json").read_text(encoding="utf-8"))
BY_ID = {case["id"]: case for case in CASES}
FORMS = ("kernel", "model", "batch", "process")

# Cases of layers that are not the kernel's: simulation, projection of start states, contact.
LATER = (
    "dri-01-cartesian-pendulum-10s",
    "ini-01-off-the-circle",
    "uni-01-release",
    "uni-03-rod-small-friction",
)

FIELDS = (
    "qdd",
    "Q_c",
    "Q_ideal",
    "K",
    "multipliers",
    "multipliers_total",
    "multipliers_unique",
    "vanished",
    "zwang",
    "rank",
    "nullity",
    "residual",
    "status",
)
FLOATS = tuple(
    k for k in FIELDS if k not in ("multipliers_unique", "vanished", "rank", "nullity", "status")
)
CORE = {"M": 2, "Q": 1, "A": 2, "b": 1, "C": 1}  # dimensions of one system


def ids(*forms, error=None):
    """Ids of the cases of these forms, with or without an error due."""
    return [
        case["id"]
        for case in CASES
        if case["input"]["form"] in forms
        and (error is None or ("error" in case["expected"]) == error)
    ]


def test_the_cases_of_later_layers_are_exactly_those_that_are_listed():
    assert len(BY_ID) == len(CASES) == 44
    run = (
        ids("kernel", "model", "batch", error=False)
        + ids("kernel", "model", "batch", error=True)
        + ids("process")
    )
    assert sorted(run + list(LATER)) == sorted(BY_ID)
    assert {BY_ID[k]["input"]["form"] for k in LATER}.isdisjoint(FORMS)


# ----------------------------------------------------------------------------------------
# input: from the text of a case to arrays


class UnknownKey(AssertionError):
    """A case says something that the runner cannot check."""


def known(keys, key, where):
    if key not in keys:
        raise UnknownKey(f"{where} has the unknown key {key!r}: give it a handler")


def handled(table, key, where):
    known(table, key, where)
    return table[key]


def floats(x):
    """Nested lists as they are, with "nan" and "inf" turned into numbers."""
    if isinstance(x, list):
        return [floats(v) for v in x]
    return float(x) if isinstance(x, str) else x


def every_second_row_and_column(x, filler):
    big = np.full(tuple(2 * s + 1 for s in x.shape), filler)
    big[tuple(slice(1, None, 2) for _ in x.shape)] = x
    return big[tuple(slice(1, None, 2) for _ in x.shape)]


def every_second_column(x, filler):
    big = np.full((*x.shape[:-1], 2 * x.shape[-1]), filler)
    big[..., ::2] = x
    return big[..., ::2]


def stride_four(x, filler):
    big = np.full(4 * x.size, filler)
    big[::4] = x
    return big[::4]


def last_column(x, filler):
    big = np.full((x.size, 3), filler)
    big[:, -1] = x
    return big[:, -1]


def without_write_flag(x, filler=None):
    x = x.copy()
    x.flags.writeable = False
    return x


LAYOUTS = {
    "every second row and column of a larger array": every_second_row_and_column,
    "every second column of a larger array": every_second_column,
    "stride 4 view": stride_four,
    "last column of a 2-D array": last_column,
    "flags.writeable = False": without_write_flag,
}
PERTURBED = {"M[0,1] = 1 + 2**-50": ("M", (0, 1), 1 + 2.0**-50)}
DTYPES = {
    "int64": dict.fromkeys(CORE, np.int64),
    "complex128 for M": {"M": np.complex128},
}
INPUT = {"form", "exact", "perturbed", "layout", "dtype", "mask", "model"}
INPUT |= set(CORE) | {f"{k}_shape" for k in CORE}


def arrays_of(case):
    """The arrays M, Q, A, b (and C) of a case, in the memory that its input asks for."""
    given = case["input"]
    for key in given:
        known(INPUT, key, f"input of {case['id']}")
    dtypes = handled(DTYPES, given["dtype"], "dtype") if "dtype" in given else {}
    arrays = {}
    for name in CORE:
        if name in given or f"{name}_shape" in given:
            x = np.array(floats(given.get(name, [])), dtypes.get(name, np.float64))
            arrays[name] = x.reshape(given.get(f"{name}_shape", x.shape))
    for name, mask in given.get("mask", {}).items():
        arrays[name] = np.ma.array(handled(arrays, name, "mask"), mask=mask)
    layout = dict(given.get("layout", {}))
    filler = float(layout.pop("filler", "nan"))
    for name, how in layout.items():
        for k in arrays if name == "all" else [name]:
            x = handled(LAYOUTS, how, "layout")(handled(arrays, k, "layout"), filler)
            assert np.array_equal(x, arrays[k])
            arrays[k] = x
    return arrays


def rationals(x):
    return [rationals(v) for v in x] if isinstance(x, list) else Fraction(x)


def exact_of(case):
    """The intended problem in rational numbers: from `exact` where given, else the doubles."""
    given = case["input"]
    exact = given.get("exact", {k: given[k] for k in CORE if k in given})
    for key in exact:
        known(CORE, key, "exact")
    return {k: rationals(v) for k, v in exact.items()}


def rank_of(rows):
    """Rank of a rational matrix by elimination."""
    rows, rank = [list(row) for row in rows], 0
    for column in range(len(rows[0]) if rows else 0):
        pivot = next((i for i in range(rank, len(rows)) if rows[i][column]), None)
        if pivot is None:
            continue
        rows[rank], rows[pivot] = rows[pivot], rows[rank]
        for i in range(rank + 1, len(rows)):
            factor = rows[i][column] / rows[rank][column]
            rows[i] = [x - factor * y for x, y in zip(rows[i], rows[rank], strict=True)]
        rank += 1
    return rank


def times(X, y):
    return [sum((a * v for a, v in zip(row, y, strict=True)), Fraction(0)) for row in X]


def transposed(X):
    return [list(column) for column in zip(*X, strict=True)]


@pytest.mark.parametrize("key", [c["id"] for c in CASES if "exact" in c["input"]])
def test_the_doubles_of_a_case_are_the_nearest_to_its_exact_numbers(key):
    case = BY_ID[key]
    given = case["input"]
    exact = exact_of(case)
    assert set(exact) == {k for k in CORE if k in given}
    doubles = {k: np.array(given[k], float) for k in exact}
    nearest = {
        k: np.array([float(v) for v in np.ravel(np.array(exact[k], object))]).reshape(x.shape)
        for k, x in doubles.items()
    }
    if "perturbed" in given:
        name, entry, value = handled(PERTURBED, given["perturbed"], "perturbed")
        assert nearest[name][entry] != value
        nearest[name][entry] = value
    for k, x in doubles.items():
        assert np.array_equal(x, nearest[k])


def test_every_perturbed_case_says_what_its_exact_numbers_are():
    assert all("exact" in c["input"] for c in CASES if "perturbed" in c["input"])


# ----------------------------------------------------------------------------------------
# model cases: the typed matrices follow from the words of the model


def pendulum(m, arrays):
    q, v, length = np.array(m["q"], float), np.array(m["qd"], float), 5
    A = [q / length]
    return {
        "M": 2 * np.eye(2),
        "Q": [0, -20],
        "A": A,
        "b": [(q @ v) ** 2 / length**3 - v @ v / length],
    }


def pinned_body(m, arrays):
    theta, rate = m["q"][2], m["qd"][2]
    x, y = 2 * np.cos(theta), 2 * np.sin(theta)
    return {
        "M": np.diag([1, 1, 2]),
        "Q": [0, -10, 0],
        "A": [[1, 0, -y], [0, 1, x]],
        "b": [rate**2 * x, rate**2 * y],
    }


def turntable(m, arrays):
    (theta, x, y), (rate, xd, yd) = m["q"], m["qd"]
    s, c = np.sin(theta), np.cos(theta)
    return {
        "M": np.diag([5, 1, 1]),
        "Q": [0, 0, 0],
        "A": [[-c * x - s * y, -s, c]],
        "b": [2 * rate * (c * xd + s * yd) - rate**2 * (s * x - c * y)],
    }


def rotating_rod(m, arrays):
    # -sin(2t) x + cos(2t) y = 0 at t = 0
    return {
        "M": np.eye(2),
        "Q": [0, 0],
        "A": [[0, 1]],
        "b": [4 * m["qd"][0] + 4 * m["q"][1]],
    }


def skate(m, arrays):
    xd, yd, rate = m["qd"]
    return {
        "M": np.eye(3),
        "Q": [5, 0, 0],
        "A": [[0.6, -0.8, 0]],
        "b": [-rate * (0.8 * xd + 0.6 * yd)],
    }


def perpendicular(m, arrays):
    v1, v2 = m["qd"][:2], m["qd"][2:]
    return {"M": np.diag([1, 1, 2, 2]), "A": [[*v2, *v1]], "b": [0]}


def sloping_block(m, arrays):
    drive, weight = arrays["Q"]
    return {
        "M": 2 * np.eye(2),
        "A": [[0, 1]],
        "b": [0],
        "C": [-min(m["mu"] * -weight, drive), 0],
    }


def geared_joints(m, arrays):
    return {"M": np.eye(2), "Q": [3, 0], "A": [[1, -1]], "b": [0], "C": [0, -1]}


MODELS = {
    "planar pendulum m=2 g=10 l=5, constraint sqrt(x^2+y^2)-l=0": pendulum,
    "planar body m=1 I=2 g=10, body point (2,0) pinned": pinned_body,
    "turntable I=5 about z with a straight slot, bead m=1 in the slot; coordinates (theta,x,y)": (
        turntable
    ),
    "bead m=1 on a straight rod turning at 2 rad/s, no gravity, t=0": rotating_rod,
    "skate (x,y,theta) m=1 I=1, slope force 5 along x, sin theta=0.6": skate,
    "two particles m=1,2 with v1.v2=0": perpendicular,
    "block m=2 on a slope, mu=0.5, at rest; N=16, mu N=8 < 12 so it starts to slide": sloping_block,
    "two unit joints geared 1:1, drive torque 3 on the first, dry friction 1 on the second, "
    "moving or about to move forward": geared_joints,
}
MODEL = {"what", "q", "qd", "mu", "stick_if_mu", "stick_qdd", "stick_friction"}


@pytest.mark.parametrize("key", ids("model"))
def test_the_typed_matrices_of_a_model_case_follow_from_its_description(key):
    case = BY_ID[key]
    model, arrays = case["input"]["model"], arrays_of(case)
    for k in model:
        known(MODEL, k, "model")
    built = handled(MODELS, model["what"], "model")(model, arrays)
    for name, x in built.items():
        # a handful of products of numbers of order ten
        assert np.max(np.abs(np.array(x, float) - arrays[name])) <= 1e-14


# ----------------------------------------------------------------------------------------
# expected values: one handler per key


def agrees(x, ref, tol):
    """max |x - ref| <= tol * max(1, max |ref|), NaN only where NaN is expected."""
    x, ref = np.asarray(x, float), np.asarray(floats(ref), float)
    if x.shape != ref.shape or not np.array_equal(np.isnan(x), np.isnan(ref)):
        return False
    scale = max(1.0, np.max(np.abs(np.nan_to_num(ref)), initial=0.0))
    return bool(np.max(np.abs(np.nan_to_num(x) - np.nan_to_num(ref)), initial=0.0) <= tol * scale)


class Run:
    """One case on its way through the kernel."""

    def __init__(self, case):
        self.case = case
        self.expected = case["expected"]
        self.tol = case["tolerance"]
        self.arrays = arrays_of(case)
        self.before = {k: np.array(x, copy=True) for k, x in self.arrays.items()}
        self.error = None
        self.motion = None

    def solve(self, **changes):
        keywords = {k: v for k, v in changes.items() if k not in CORE}
        return gm.solve(
            **{**self.arrays, **{k: changes[k] for k in changes if k in CORE}}, **keywords
        )

    def check_all(self):
        for key, value in self.expected.items():
            handled(EXPECTED, key, f"expected of {self.case['id']}")(self, value)
        for name, x in self.arrays.items():
            assert bits_equal(x, self.before[name]), f"{name} was written to"


def bits_equal(x, y):
    """Same shape, type and bits; any NaN equals any NaN."""
    x, y = np.asarray(x), np.asarray(y)
    if x.shape != y.shape or x.dtype != y.dtype:
        return False
    if x.dtype.kind in "fc":
        x, y = np.where(np.isnan(x), np.nan, x), np.where(np.isnan(y), np.nan, y)
    return x.tobytes() == y.tobytes()


def value_of(field):
    def check(run, ref):
        x = getattr(run.motion, field)
        assert agrees(x, ref, run.tol), f"{field}\n{x}\nexpected\n{ref}"

    return check


def shape_of(field):
    def check(run, shape):
        assert np.shape(getattr(run.motion, field)) == tuple(shape)

    return check


def check_ranks(run, ranks):
    assert set(ranks) == {"M", "A", "MA", "n"}
    exact = exact_of(run.case)
    motion = run.motion if run.error is None else run.solve(errors="status")
    assert np.shape(motion.qdd)[-1] == ranks["n"] == len(exact["Q"])
    assert rank_of(exact["M"]) == ranks["M"]
    assert rank_of(exact["A"]) == ranks["A"]
    assert rank_of(exact["M"] + exact["A"]) == ranks["MA"]
    # a system without an answer may leave them unknown
    unknown = () if run.error is None else (-1,)
    assert motion.rank in (ranks["A"], *unknown)
    assert motion.nullity in (ranks["n"] - ranks["MA"], *unknown)


def check_exact_qdd(run, strings):
    qdd = rationals(strings)
    exact = exact_of(run.case)
    A, b = exact["A"], exact["b"]
    gap = [x - y for x, y in zip(times(A, qdd), b, strict=True)]
    if run.error is None:
        assert not any(gap)
        motion = run.motion
    else:  # of inconsistent rows: least squares
        assert not any(times(transposed(A), gap))
        motion = run.solve(inconsistent="project")
    C = exact.get("C", [Fraction(0)] * len(qdd))
    rest = [x - q - c for x, q, c in zip(times(exact["M"], qdd), exact["Q"], C, strict=True)]
    assert rank_of([*A, rest]) == rank_of(A)  # M qdd - Q - C is in the row space of A
    assert agrees(motion.qdd, [float(v) for v in qdd], run.tol)


def check_multipliers_unique(run, value):
    assert value in (True, False)
    assert np.array_equal(run.motion.multipliers_unique, np.full(len(run.arrays["b"]), value))


def check_Q_c_unique(run, value):
    assert value is True
    # whichever rows carry the load, the total force is the same
    M, Q, A, b = (run.arrays[k] for k in "MQAb")
    independent = gm.independent_rows(A, M)
    for rows in (np.flatnonzero(independent), np.arange(len(b))[::-1]):
        other = gm.solve(M, Q, A[rows], b[rows])
        assert agrees(other.Q_c, run.expected["Q_c"], run.tol)
        assert agrees(other.qdd, run.expected["qdd"], run.tol)
    assert independent.sum() < len(b)


def check_power(run, power):
    assert agrees(run.motion.Q_c @ np.array(run.case["input"]["model"]["qd"]), power, run.tol)


def check_virtual_work(run, work):
    virtual = np.linalg.svd(run.arrays["A"])[2][run.motion.rank :]
    assert len(virtual) > 0
    assert agrees(virtual @ run.motion.Q_c, np.full(len(virtual), work), run.tol)


def check_pair(run, pair):
    assert set(pair) == {"A", "multipliers", "qdd", "Q_c"}
    other = run.solve(A=pair["A"])
    for field in ("multipliers", "qdd", "Q_c"):
        assert agrees(getattr(other, field), pair[field], run.tol)


TRAP = {"how", "how_mixed", "qdd", "qdd_symmetrised_upper", "b"}


def check_trap(run, trap):
    for key in trap:
        known(TRAP, key, "trap")
    assert isinstance(trap["how"], str)
    motion = run.motion if run.error is None else run.solve(errors="status")
    for key in ("qdd", "qdd_symmetrised_upper"):
        if key in trap:
            # far from the wrong answer, not only outside of the tolerance
            assert not agrees(motion.qdd, trap[key], 1e-3)
    if "b" in trap:
        assert not agrees(run.solve(b=trap["b"]).qdd, run.expected["qdd"], 1e-3)


def check_inputs_unchanged(run, value):
    assert value is True
    assert not any(x.flags.writeable for x in run.arrays.values())
    for name, x in run.arrays.items():
        assert bits_equal(x, run.before[name])


def check_dtype(run, dtype):
    assert all(np.asarray(getattr(run.motion, k)).dtype == np.dtype(dtype) for k in FLOATS)


# faults


CAUSES = {
    "inconsistent": (gm.InconsistentConstraintsError, gm.Status.INCONSISTENT),
    "asymmetric_mass": (gm.NotSemidefiniteError, gm.Status.ASYMMETRIC),
    "indefinite_mass": (gm.NotSemidefiniteError, gm.Status.INDEFINITE),
    "non_finite": (ValueError, gm.Status.NONFINITE),
    "underdetermined": (gm.IndeterminateMotionError, None),  # many or none: by W.T Q
    "dtype": (TypeError, None),
}


def check_error(run, error):
    assert set(error) == {"type", "must_mention"}
    base = re.fullmatch(r"\w+\((\w+)\)|(\w+)", error["type"])
    base = {"ValueError": ValueError, "TypeError": TypeError}[base[1] or base[2]]
    kind, status = CAUSES[run.case["kind"]]
    assert isinstance(run.error, base)
    assert isinstance(run.error, kind)
    if kind in (ValueError, TypeError):
        assert not isinstance(run.error, gm.GaussmechError)
    else:
        assert run.error.index == ()
    message = str(run.error)
    for fact in error["must_mention"]:
        if re.fullmatch("[A-Z]", fact):  # the name of an array, not a letter of some word
            assert re.search(rf"\b{fact}\b", message), f"{fact!r} is not in {message!r}"
        else:
            assert fact.lower() in message.lower(), f"{fact!r} is not in {message!r}"
    if base is TypeError:  # no fault of a single system
        with pytest.raises(TypeError):
            run.solve(errors="status")
        return
    motion = run.solve(errors="status")
    if status is None:
        MA = np.vstack([run.arrays["M"], run.arrays["A"]])
        free = np.linalg.svd(MA)[2][np.linalg.matrix_rank(MA) :]
        many = agrees(free @ run.arrays["Q"], np.zeros(len(free)), run.tol)
        assert run.error.kind == ("many" if many else "none")
        status = gm.Status.INDETERMINATE_MANY if many else gm.Status.INDETERMINATE_NONE
    if np.ndim(motion.status) == 0:
        assert motion.status == status
        for field in FLOATS:
            assert np.all(np.isnan(getattr(motion, field)))
        assert not np.any(motion.multipliers_unique) and not np.any(motion.vanished)
    else:
        assert sorted(set(motion.status.tolist())) == [status, gm.Status.OK]


def check_null_vector(run, vectors):
    found = np.atleast_2d(run.error.null_vectors)
    vectors = np.array(vectors, float)
    assert found.shape == vectors.shape
    for matrix in (run.arrays["M"], run.arrays["A"]):
        assert agrees(matrix @ found.T, np.zeros((len(matrix), len(found))), run.tol)
    part = np.linalg.lstsq(found.T, vectors.T, rcond=None)[0]
    assert agrees(found.T @ part, vectors.T, run.tol)


def check_least_squares_qdd(run, qdd):
    motion = run.solve(inconsistent="project")
    assert motion.status == gm.Status.PROJECTED
    assert agrees(motion.qdd, qdd, run.tol)


def check_least_squares_Q_c(run, Q_c):
    assert agrees(run.solve(inconsistent="project").Q_c, Q_c, run.tol)


NOTES = {
    "minimises the plain 2-norm of A qdd - b (rows unscaled), then the Zwang; "
    "row scaling changes this value"
}


def check_least_squares_note(run, note):
    known(NOTES, note, "least_squares_note")
    M, Q, A, b = (run.arrays[k] for k in "MQAb")
    for weight in (1.0, 2.0):
        weights = np.array([1.0, weight])
        WA, Wb = A * weights[:, None], b * weights
        motion = gm.solve(M, Q, WA, Wb, inconsistent="project")
        # normal equations, and no force along the directions that they leave free
        assert agrees(WA.T @ (WA @ motion.qdd - Wb), np.zeros(len(Q)), run.tol)
        free = np.linalg.svd(A)[2][np.linalg.matrix_rank(A) :]
        assert agrees(free @ (M @ motion.qdd - Q), np.zeros(len(free)), run.tol)
        assert agrees(motion.qdd, run.expected["least_squares_qdd"], 1e-3) == (weight == 1.0)


def check_residual(run, residual):
    assert agrees(run.error.residual, residual, run.tol)
    assert agrees(run.solve(inconsistent="project").residual, residual, run.tol)
    # the clashing rows are those of the message
    rows = [f for f in run.expected["error"]["must_mention"] if f.startswith("rows ")]
    assert [tuple(map(int, re.findall(r"\d+", f))) for f in rows] == [tuple(run.error.rows)]


def check_residual_norm(run, norm):
    assert agrees(np.linalg.norm(run.error.residual), norm, run.tol)


def check_with_check_off(run, expected):
    assert set(expected) == {"qdd"}
    motion = run.solve(errors="status")
    assert agrees(motion.qdd, expected["qdd"], run.tol)
    bad = np.isnan(run.arrays["Q"]).any(axis=-1)
    assert np.array_equal(motion.status == gm.Status.NONFINITE, bad)
    assert np.array_equal(motion.status == gm.Status.OK, ~bad)
    for field in FLOATS:
        x = np.asarray(getattr(motion, field)).reshape(len(bad), -1)
        assert np.isnan(x[bad]).all() and np.isfinite(x[~bad]).all()
    for k in np.flatnonzero(~bad):
        alone = gm.solve(*(run.arrays[name][k] for name in "MQAb"))
        for field in FIELDS:
            assert bits_of(alone, field) == bits_of(motion, field, k)


def check_max_seconds(run, seconds):
    # in a process of its own: a solver that never returns must not hang the tests
    code = f"""
import json, sys, time
sys.path.insert(0, {str(Path(__file__).parent)!r})
import test_cases
run = test_cases.Run(test_cases.BY_ID[{run.case["id"]!r}])
start = time.perf_counter()
try:
    run.solve()
except ValueError:
    pass
print(time.perf_counter() - start)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60 + 10 * seconds
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) <= seconds


EXPECTED = {
    "qdd": value_of("qdd"),
    "Q_c": value_of("Q_c"),
    "K": value_of("K"),
    "zwang": value_of("zwang"),
    "multipliers": value_of("multipliers_total"),
    "multipliers_ideal": value_of("multipliers"),
    "qdd_shape": shape_of("qdd"),
    "Q_c_shape": shape_of("Q_c"),
    "multipliers_shape": shape_of("multipliers"),
    "ranks": check_ranks,
    "exact_qdd": check_exact_qdd,
    "multipliers_unique": check_multipliers_unique,
    "Q_c_unique": check_Q_c_unique,
    "power_of_Q_c": check_power,
    "virtual_work_of_Q_c": check_virtual_work,
    "pair": check_pair,
    "trap": check_trap,
    "inputs_unchanged": check_inputs_unchanged,
    "dtype": check_dtype,
    "error": check_error,
    "null_vector": check_null_vector,
    "least_squares_qdd": check_least_squares_qdd,
    "least_squares_Q_c": check_least_squares_Q_c,
    "least_squares_note": check_least_squares_note,
    "residual": check_residual,
    "residual_norm": check_residual_norm,
    "with_check_off": check_with_check_off,
    "max_seconds": check_max_seconds,
}


@pytest.mark.parametrize("key", ids("kernel", "model", "batch", error=False))
def test_a_case_gives_every_value_that_it_expects(key):
    run = Run(BY_ID[key])
    run.motion = run.solve()
    assert np.all(np.asarray(run.motion.status) == gm.Status.OK)
    if "C" not in run.arrays:  # without C both multipliers are the same numbers
        assert bits_equal(run.motion.multipliers, run.motion.multipliers_total)
    run.check_all()


@pytest.mark.parametrize("key", [k for k in ids("batch", error=False) if "M" in BY_ID[k]["input"]])
def test_an_item_of_a_batch_case_has_the_bits_of_that_item_alone(key):
    arrays = arrays_of(BY_ID[key])
    batch = gm.solve(**arrays)
    (count,) = batch.status.shape
    assert count > 1
    for item in range(count):
        one = {
            k: np.broadcast_to(x, (count, *x.shape[x.ndim - CORE[k] :]))[item]
            for k, x in arrays.items()
        }
        same(batch, gm.solve(**one), [item])


@pytest.mark.parametrize("key", ids("kernel", "model", "batch", error=True))
def test_a_faulty_case_raises_an_error_that_carries_its_facts(key):
    run = Run(BY_ID[key])
    with pytest.raises((TypeError, ValueError)) as caught:
        run.solve()
    run.error = caught.value
    run.check_all()


def test_the_block_of_the_friction_case_sticks_when_the_friction_it_needs_is_available():
    (case,) = (c for c in CASES if "stick_if_mu" in c["input"].get("model", {}))
    run, model = Run(case), case["input"]["model"]
    C = run.arrays["C"]
    normal = run.solve().multipliers_total
    assert agrees(np.linalg.norm(C), model["mu"] * np.abs(normal[0]), run.tol)
    needed = model["stick_friction"] * np.abs(C) / np.linalg.norm(C)
    stuck = run.solve(C=needed)
    assert agrees(stuck.qdd, model["stick_qdd"], run.tol)
    assert agrees(stuck.K, needed, run.tol)
    available = model["stick_if_mu"] * np.abs(stuck.multipliers_total[0])
    assert model["mu"] * np.abs(normal[0]) < np.linalg.norm(needed) <= available


@pytest.mark.parametrize("where", ["input", "input.model", "input.exact", "expected"])
def test_a_key_that_the_runner_does_not_know_fails_the_case(where):
    case = json.loads(json.dumps(BY_ID["sgn-01-pendulum-unit-gradient"]))
    level = case
    for part in where.split("."):
        level = level[part]
    level["colour"] = "blue"
    with pytest.raises(UnknownKey, match="colour"):
        if where == "input.model":
            for k in case["input"]["model"]:
                known(MODEL, k, "model")
        exact_of(case)
        run = Run(case)
        run.motion = run.solve()
        run.check_all()


def test_the_runner_knows_no_keys_that_no_case_uses():
    seen = {k for c in CASES if c["id"] not in LATER for k in c["expected"]}
    process = {"child_exit", "same_result"}
    assert seen == set(EXPECTED) | process
    assert {k for c in CASES for k in c["input"].get("model", {}) if c["id"] not in LATER} >= MODEL


def test_every_case_has_the_same_outer_keys():
    outer = {"id", "kind", "source", "story", "input", "expected", "tolerance", "why"}
    assert all(set(case) == outer for case in CASES)


# ----------------------------------------------------------------------------------------
# the process case

FORK = """
import os, sys
import numpy as np
import gaussmech as gm

rng = np.random.default_rng(5)
B = rng.standard_normal((200, 200))
M = B @ B.T + 200 * np.eye(200)
Q, A, b = rng.standard_normal(200), rng.standard_normal((100, 200)), rng.standard_normal(100)

def answer():
    motion = gm.solve(M, Q, A, b)
    return b"".join(np.ascontiguousarray(x).tobytes()
                    for x in (motion.qdd, motion.Q_c, motion.multipliers))

first = answer()                     # a 200-coordinate problem in the parent
read, write = os.pipe()
child = os.fork()
if child == 0:
    os.close(read)
    with os.fdopen(write, "wb") as pipe:
        pipe.write(answer())         # the same in the child
    os._exit(0)
os.close(write)
second = answer()                    # and in the parent
with os.fdopen(read, "rb") as pipe:
    third = pipe.read()
_, status = os.waitpid(child, 0)
print(os.waitstatus_to_exitcode(status), first == second == third and len(first) == 8 * 500)
"""
STEPS = [
    "solve a 200-coordinate problem in the parent",
    "os.fork",
    "solve the same in child and parent",
    "waitpid",
]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")
@pytest.mark.parametrize("key", ids("process"))
def test_a_forked_child_solves_the_same_problem_as_its_parent(key):
    case = BY_ID[key]
    assert set(case["input"]) == {"form", "steps"}
    assert case["input"]["steps"] == STEPS
    assert set(case["expected"]) == {"child_exit", "max_seconds", "same_result"}
    done = subprocess.run(
        [sys.executable, "-c", FORK],
        capture_output=True,
        text=True,
        timeout=case["expected"]["max_seconds"],
    )
    assert done.returncode == 0, done.stderr
    child, same = done.stdout.split()
    assert int(child) == case["expected"]["child_exit"]
    assert (same == "True") == case["expected"]["same_result"]


# ----------------------------------------------------------------------------------------
# machinery: the same cases tiled, strided, of size zero and through the raw gufunc

PLAIN = ids("kernel", "model", error=False)


def bits_of(motion, field, item=()):
    """Bytes of one field of one system, whatever its type; any NaN is the same NaN."""
    x = np.asarray(getattr(motion, field))[item]
    x = x.astype(np.int64) if x.dtype.kind in "iu" else x
    x = np.where(np.isnan(x), np.nan, x) if x.dtype.kind == "f" else x
    return x.shape, x.dtype.kind, x.tobytes()


def same(motion, single, items=((),)):
    """Every field of these items has the bits of the single system."""
    for item in items:
        for field in FIELDS:
            assert bits_of(motion, field, item) == bits_of(single, field), (field, item)


def plain(key):
    """Contiguous float64 arrays of a case and its single solution."""
    arrays = {k: np.array(x, np.float64, order="C") for k, x in arrays_of(BY_ID[key]).items()}
    return arrays, gm.solve(**arrays)


def tiled(arrays, count=7):
    return {k: np.tile(x, (count,) + (1,) * x.ndim) for k, x in arrays.items()}


def reversed_in_memory(x):
    return np.flip(np.flip(x).copy())


def every_second(x):
    return every_second_row_and_column(x, np.nan)


def outer_axis_last(x):
    """The first axis runs fastest through memory, the rest as in C."""
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 0, -1)), -1, 0)


def unaligned(x):
    y = np.ndarray(x.shape, x.dtype, buffer=bytearray(x.nbytes + 8), offset=1)
    y[...] = x
    return y


def byteswapped(x):
    return x.astype(x.dtype.newbyteorder())


STRIDES = {
    "fortran": np.asfortranarray,
    "reversed": reversed_in_memory,
    "every-second": every_second,
    "every-second-reversed": lambda x: every_second(np.flip(x))[(slice(None, None, -1),) * x.ndim],
    "outer-axis-last": outer_axis_last,
    "read-only": without_write_flag,
    "unaligned": unaligned,
    "byteswapped": byteswapped,
}


def test_the_stride_patterns_are_what_their_names_say():
    x = np.arange(12.0).reshape(3, 4)
    strides = {k: f(x) for k, f in STRIDES.items()}
    for y in strides.values():
        assert np.array_equal(x, y)
    assert strides["fortran"].strides == (8, 24)
    assert strides["reversed"].strides == (-32, -8)
    assert strides["every-second"].strides == (144, 16)
    assert strides["every-second-reversed"].strides == (-144, -16)
    assert not strides["read-only"].flags.writeable
    assert not strides["unaligned"].flags.aligned
    assert not strides["byteswapped"].dtype.isnative


@pytest.mark.parametrize("key", PLAIN)
def test_a_case_in_a_tiled_batch_has_the_bits_of_the_single_system(key):
    arrays, single = plain(key)
    motion = gm.solve(**tiled(arrays))
    assert motion.qdd.shape == (7, *single.qdd.shape)
    same(motion, single, range(7))


@pytest.mark.parametrize("pattern", STRIDES)
@pytest.mark.parametrize("key", PLAIN)
def test_a_case_in_any_memory_has_the_bits_of_the_contiguous_one(key, pattern):
    arrays, single = plain(key)
    same(gm.solve(**{k: STRIDES[pattern](x) for k, x in arrays.items()}), single)
    batch = gm.solve(**{k: STRIDES[pattern](x) for k, x in tiled(arrays).items()})
    same(batch, single, range(7))


@pytest.mark.parametrize("key", PLAIN)
def test_a_case_with_one_operand_in_other_memory_has_the_bits_of_the_contiguous_one(key):
    arrays, single = plain(key)
    for name in arrays:
        for pattern in STRIDES.values():
            same(gm.solve(**{**arrays, name: pattern(arrays[name])}), single)


@pytest.mark.parametrize("key", PLAIN)
def test_a_broadcast_case_has_the_bits_of_the_single_system(key):
    arrays, single = plain(key)
    still = {k: np.broadcast_to(x, (7, *x.shape)) for k, x in arrays.items()}
    assert all(x.strides[0] == 0 for x in still.values())
    same(gm.solve(**still), single, range(7))
    # M for each of 3 rows, Q for each of 2 columns of a (3, 2) batch, the rest once
    mixed = {
        **arrays,
        "M": np.tile(arrays["M"], (3, 1, 1, 1)),
        "Q": np.tile(arrays["Q"], (2, 1)),
    }
    motion = gm.solve(**mixed)
    assert motion.qdd.shape == (3, 2, *single.qdd.shape)
    same(motion, single, np.ndindex(3, 2))


@pytest.mark.parametrize("batch", [(0,), (0, 3), (2, 0)], ids=str)
@pytest.mark.parametrize("key", PLAIN)
def test_a_case_in_an_empty_batch_gives_empty_results_of_the_right_shape_and_type(key, batch):
    arrays, single = plain(key)
    one = gm.solve(**tiled(arrays, 1))
    motion = gm.solve(**{k: np.empty((*batch, *x.shape)) for k, x in arrays.items()})
    for field in FIELDS:
        x = getattr(motion, field)
        assert x.shape == (*batch, *np.shape(getattr(single, field)))
        assert x.dtype == getattr(one, field).dtype


@pytest.mark.parametrize("key", PLAIN)
def test_a_case_among_faulty_neighbours_has_the_bits_of_the_single_system(key):
    arrays, single = plain(key)
    faulty = tiled(arrays)
    faulty["Q"][1] = np.nan
    faulty["M"][2] = -np.eye(len(arrays["Q"]))
    faulty["M"][4, 0, 1] += 10 * (1 + np.abs(arrays["M"]).max())
    faulty["M"][5] = np.inf
    motion = gm.solve(**faulty, errors="status")
    bad = {
        1: gm.Status.NONFINITE,
        2: gm.Status.INDEFINITE,
        4: gm.Status.ASYMMETRIC,
        5: gm.Status.NONFINITE,
    }
    for item, status in bad.items():
        assert motion.status[item] == status
        for field in FLOATS:
            assert np.isnan(getattr(motion, field)[item]).all()
    same(motion, single, [k for k in range(7) if k not in bad])


def narrower(dtype):
    """Cases all of whose numbers this type holds exactly."""
    found = []
    for key in PLAIN:
        arrays = arrays_of(BY_ID[key])
        with np.errstate(invalid="ignore", over="ignore"):
            if all(np.array_equal(x.astype(dtype).astype(float), x) for x in arrays.values()):
                found.append(key)
    return found


NARROW = [(t, k) for t in ("float32", "int64", "int16") for k in narrower(t)]


@pytest.mark.parametrize(("dtype", "key"), NARROW, ids=["-".join(p) for p in NARROW])
def test_a_case_in_a_narrower_type_is_computed_in_double_precision(dtype, key):
    arrays, single = plain(key)
    same(gm.solve(**{k: x.astype(dtype) for k, x in arrays.items()}), single)
    batch = gm.solve(**{k: x.astype(dtype) for k, x in tiled(arrays).items()})
    same(batch, single, range(7))


@pytest.mark.parametrize("key", [k for k in PLAIN if "A_shape" not in BY_ID[k]["input"]])
def test_a_case_typed_as_lists_has_the_bits_of_the_arrays(key):
    arrays, single = plain(key)
    same(gm.solve(**{k: x.tolist() for k, x in arrays.items()}), single)
    same(gm.solve(**{k: x.tolist() for k, x in tiled(arrays).items()}), single, range(7))


def operands(arrays):
    """The ten operands of ufuncs.gauss with every option at its default."""
    n, m = arrays["Q"].shape[-1], arrays["b"].shape[-1]
    C = arrays.get("C", np.zeros(n))
    return [*(arrays[k] for k in "MQAb"), C, np.zeros(m), np.nan, 1e-9, 0.0, 0]


def prefilled(like, pattern):
    """An output of this shape and type full of nonsense, in the memory of the pattern."""
    fill = 99 if like.dtype.kind == "i" else 999
    full = np.full(tuple(2 * s + 1 for s in like.shape), fill).astype(like.dtype)
    inner = full[tuple(slice(1, None, 2) for _ in like.shape)]
    if pattern == "reversed":
        inner = inner[tuple(slice(None, None, -1) for _ in like.shape)]
    return inner.copy() if pattern == "contiguous" else inner, full


@pytest.mark.parametrize("pattern", ["contiguous", "every-second", "reversed"])
@pytest.mark.parametrize("key", PLAIN)
def test_the_raw_gufunc_overwrites_all_of_its_outputs_and_nothing_else(key, pattern):
    arrays, single = plain(key)
    batch = tiled(arrays)
    first = ufuncs.gauss(*operands(batch))
    assert len(first) == len(FIELDS)
    outputs = [prefilled(x, pattern) for x in first]
    results = ufuncs.gauss(*operands(batch), out=tuple(x for x, _ in outputs))
    for field, x, (out, full) in zip(FIELDS, results, outputs, strict=True):
        assert np.shares_memory(x, out) or x.size == 0
        view = type("Fields", (), {field: out})
        for item in range(7):
            assert bits_of(view, field, item) == bits_of(single, field), field
        if pattern != "contiguous":  # the gaps between the elements are as they were
            gaps = full.copy()
            inner = gaps[tuple(slice(1, None, 2) for _ in out.shape)]
            inner[...] = full.flat[0]
            assert (gaps == full.flat[0]).all()
