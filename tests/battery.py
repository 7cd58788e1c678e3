"""Everything the package can be asked for, in one run: for processes of their own.

test_process.py starts fresh interpreters under a sanitizer, at a forced CPU level, with threads or
after a fork; they import this module and call `answers`, `calls` and `errors`. Each raises
AssertionError at the first thing that is wrong.
"""

import itertools

import numpy as np

import gaussmech as gm
from gaussmech import ufuncs

EPS = np.finfo(float).eps
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
# around every register width and unrolling, and where LAPACK begins
SIZES = [(1, 0), (1, 1), (2, 1), (2, 2), (3, 2), (4, 2), (5, 5), (6, 3), (7, 3), (8, 4), (9, 4)]
SIZES += [(12, 6), (15, 7), (16, 8), (17, 8), (24, 12), (33, 16), (95, 20), (96, 20), (120, 60)]


def problem(n, m, seed=0, batch=(), singular=False):
    """M, Q, A, b, C near unit matrices; with `singular` M has a null vector that row 0 holds."""
    rng = np.random.default_rng([seed, n, m])

    def near_unit(rows):
        return np.eye(rows, n) + rng.uniform(-0.4, 0.4, (*batch, rows, n)) / n**0.5

    half, A = near_unit(n), near_unit(m)
    if singular:
        half[..., -1] = 0.0
        A[..., 0, -1] += 1.0
    M = half @ half.swapaxes(-1, -2)
    M = 0.5 * (M + M.swapaxes(-1, -2))
    Q, b, C = (rng.uniform(-1, 1, (*batch, k)) for k in (n, m, n))
    return M, Q, A, b, C


def reference(M, Q, A, b, C):
    """Acceleration, constraint force, multipliers and the condition number of one system.

    The textbook's KKT system, with residuals in long double until nothing changes: what remains
    is of the size of eps, far below eps times the condition number.
    """
    n, m = len(Q), len(b)
    K = np.block([[M, -A.T], [A, np.zeros((m, m))]])
    right = np.concatenate([Q + C, b])
    z = np.zeros(n + m, np.longdouble)
    for _ in range(5):
        rest = right.astype(np.longdouble) - K.astype(np.longdouble) @ z
        z = z + np.linalg.solve(K, rest.astype(float))
    force = A.T.astype(np.longdouble) @ z[n:] + C
    return z[:n].astype(float), force.astype(float), z[n:].astype(float), np.linalg.cond(K)


def bits(motion, item=()):
    """All results of one system as bytes, whole numbers in one type."""
    results = [np.asarray(getattr(motion, name))[item] for name in FIELDS]
    return [(np.int64(x) if x.dtype.kind == "i" else x).tobytes() for x in results]


def answers():
    """Accuracy against `reference` at all sizes; a batch is its members, bit for bit."""
    for (n, m), singular in itertools.product(SIZES, (False, True)):
        if singular and m == 0:
            continue
        count = 11 if n < 96 else 3
        arrays = problem(n, m, 1, (count,), singular)
        for given in (arrays, arrays[:4]):
            batch = gm.solve(*given)
            assert np.all(batch.status == gm.Status.OK), (n, m, singular)
            assert np.all(batch.rank == m) and np.all(batch.nullity == 0)
            for i in range(count):
                one = [a[i] for a in given]
                single = gm.solve(*one)
                assert bits(single) == bits(batch, i), (n, m, singular, i)
                C = one[4] if len(one) == 5 else np.zeros(n)
                *want, condition = reference(*one[:4], C)
                # backward stable: eps times the condition, n for the sums, 8 for the steps
                bound = 8 * (n + 1) * EPS * condition
                size = 1 + np.linalg.norm(np.concatenate(want))
                found = (single.qdd, single.Q_c, single.multipliers_total)
                for have, exact in zip(found, want, strict=True):
                    assert np.linalg.norm(have - exact) <= bound * size, (n, m, singular, i)


def layouts(array, core):
    """The same numbers in other places: reversed, strided, Fortran, read-only, broadcast."""
    yield array
    yield array[::-1].copy()[::-1]
    spread = np.full(tuple(2 * k for k in array.shape), np.nan)
    spread[tuple(slice(None, None, 2) for _ in array.shape)] = array
    yield spread[tuple(slice(None, None, 2) for _ in array.shape)]
    yield np.asfortranarray(array)
    yield np.moveaxis(np.moveaxis(array, 0, -1).copy(), -1, 0)
    locked = array.copy()
    locked.flags.writeable = False
    yield locked
    flipped = array[(..., *(slice(None, None, -1) for _ in range(core)))].copy()
    yield flipped[(..., *(slice(None, None, -1) for _ in range(core)))]


def models():
    """Programs and whole models in C: alone, in batches and blocks of all sizes, strided."""
    f = gm.Program(lambda t, q: np.array([np.sin(t) * q[0], gm.where(q[1] > 0, q[1], -t)]), (), 2)
    J = f.jacobian("q")
    for count in (0, 1, 3, 16, 37):
        q = np.linspace(-1, 1, 4 * max(count, 1)).reshape(-1, 4)[:count, ::2]
        assert f(0.5, q).shape == (count, 2) and J(0.5, q[::-1]).shape == (count, 2, 2)
    for links in (1, 3, 20, 40):
        s = gm.System()
        last = s.ground([0.0, 0.0])
        for k in range(links):
            p = s.add_particle(f"p{k}", mass=1.0, position=[k + 1.0, 0.0], velocity=[0.0, 0.0])
            s.add_constraint(gm.Distance(f"rod {k}", last, p))
            last = p
        s.add_constraint(gm.Distance("again", s.ground([0.0, 0.0]), s._bodies[0]))
        s.add_force(gm.UniformGravity([0.0, -1.0]))
        one = s.solve()
        assert one.rank == links
        for count in (0, 1, 2, 17, 100):
            off = np.where(np.arange(count) % 5 == 1, 1e-9, 0.0)[:, None]
            many = s.solve(0.0, s.q + off, np.zeros((count, 2 * links)))
            assert many.qdd.shape == (count, 2 * links)
            assert count == 0 or many.qdd[0].tobytes() == one.qdd.tobytes()


def calls():
    """Every function, dtype, layout and shape once."""
    arrays = problem(5, 3, 2, (4,))
    M, Q, A, b, C = arrays
    plain = gm.solve(*arrays)
    for others in zip(
        *(list(layouts(a, k)) for a, k in zip(arrays, (2, 1, 2, 1, 1), strict=True)), strict=True
    ):
        again = gm.solve(*others)
        for name in FIELDS:
            assert np.array_equal(getattr(again, name), getattr(plain, name), equal_nan=True), name
    # broadcasting, many dimensions, none
    gm.solve(M[0], Q, A[:, None], b[:, None], C[None, None])
    deep = (1,) * 28
    assert gm.solve(M.reshape(*deep, 4, 5, 5), Q, A, b).qdd.shape == (*deep, 4, 5)
    for shape in ((0,), (3, 0), (0, 2)):
        empty = [np.zeros((*shape, *a.shape[1:])) for a in arrays]
        assert gm.solve(*empty).qdd.shape == (*shape, 5)
        assert gm.augment(*empty[:4])[0].shape == (*shape, 5, 5)
    for n, m in ((0, 0), (0, 2), (4, 0), (3, 5)):
        zero = gm.solve(np.eye(n), np.ones(n), np.zeros((m, n)), np.zeros(m), np.ones(n))
        assert zero.rank == 0 and zero.qdd.shape == (n,)
        assert gm.independent_rows(np.zeros((m, n))).sum() == 0
    # other numbers
    for dtype in (np.int8, np.int64, np.uint16, np.float32, bool, ">f8"):
        motion = gm.solve(
            *(np.asarray(x, dtype) for x in ([[1, 0], [0, 1]], [1, 0], [[1, 1]], [0]))
        )
        assert np.abs(motion.qdd - [0.5, -0.5]).max() <= 4 * EPS
    models()
    unaligned = np.frombuffer(b"x" + M[0].tobytes(), np.uint8)[1:].view(float).reshape(5, 5)
    gm.solve(unaligned, Q[0], A[0], b[0])
    # options
    for keywords in (
        {"rtol": 1e-9},
        {"rtol": 0.5},
        {"ctol": 0.0, "b_atol": 1.0},
        {"row_scale": np.ones(3)},
        {"row_scale": np.full((4, 3), 1e6)},
        {"inconsistent": "project", "indeterminate": "minimum_norm"},
        {"outputs": ("qdd", "zwang")},
        {"outputs": ()},
        {"names": {"rows": ["a", "b", "c"], "coordinates": list("vwxyz")}},
    ):
        motion = gm.solve(*arrays, **keywords)
        assert repr(motion) and motion.to_dict()
    gm.acceleration(*arrays)
    gm.constraint_force(*arrays)
    gm.nonideal_force(M, A, C)
    gm.augment(M, Q, A, b, np.array([1.0, 2.0, 3.0, 4.0]))
    gm.free_acceleration(M, Q)
    gm.zwang(M, Q, plain.qdd)
    gm.zwang(M[0], Q[0], plain.qdd[0], half=True)
    gm.gauss_function(M, Q, plain.qdd)
    gm.independent_rows(A)
    gm.independent_rows(A, M, rtol=1e-3)
    gm.sensitivity(M, A)
    gm.sensitivity(M[0], A[0], row_scale=np.ones(3))
    # the raw functions, with outputs of the caller's in any layout
    options = (np.nan, 1e-9, 0.0, 0)
    scale = np.zeros(3)
    whole = ufuncs.gauss(*arrays, scale, *options)
    assert np.array_equal(whole[0], plain.qdd) and whole[-1].dtype == np.int8
    target = np.full((4, 11), 999.0)
    status = np.full(8, 99, np.int8)
    ufuncs.acceleration(*arrays, scale, *options, out=(target[::-1, ::-2][:, 1:], status[::2]))
    assert np.array_equal(target[::-1, ::-2][:, 1:], plain.qdd) and np.all(target[:, 1::2] == 999)
    assert np.all(status[::2] == 0) and np.all(status[1::2] == 99)
    ufuncs.constraint_force(*arrays, scale, np.full(4, np.nan), 1e-9, 0.0, np.arange(4))
    ufuncs.nonideal_force(M, A, C, np.nan)
    ufuncs.augment(M, Q, A, b, 1.0, np.nan)
    ufuncs.independent_rows(A, M, np.nan)
    # sizes beyond the scratch on the stack, and of LAPACK
    for n in (40, 96, 130):
        large = problem(n, n // 2, 3, (2,))
        assert np.all(gm.solve(*large).status == gm.Status.OK)
        assert np.all(ufuncs.gauss(*large, np.zeros(n // 2), *options)[-1] == 0)
        gm.augment(*large[:4])
        gm.sensitivity(large[0], large[2])
        gm.zwang(large[0], large[1], large[4])
        gm.independent_rows(large[2])
        gm.nonideal_force(large[0], large[2], large[4])


def faults():
    """(M, Q, A, b) and what solving it must raise and report, for every negative status."""
    M, Q, A, b = np.eye(3), np.ones(3), np.array([[1.0, 0, 0], [0, 1.0, 0]]), np.zeros(2)
    light = np.diag([1.0, 1.0, 0.0])
    return {
        "nan": ((M, Q * np.nan, A, b), ValueError, gm.Status.NONFINITE),
        "inf": ((M, Q, A, b + np.inf), ValueError, gm.Status.NONFINITE),
        "skew": ((M + np.eye(3, k=1), Q, A, b), gm.NotSemidefiniteError, gm.Status.ASYMMETRIC),
        "negative": ((-M, Q, A, b), gm.NotSemidefiniteError, gm.Status.INDEFINITE),
        "saddle": (
            (M + np.eye(3)[::-1] * 2, Q, A, b),
            gm.NotSemidefiniteError,
            gm.Status.INDEFINITE,
        ),
        "clash": (
            (M, Q, A[[0, 0]], np.array([0.0, 1.0])),
            gm.InconsistentConstraintsError,
            gm.Status.INCONSISTENT,
        ),
        "zero row": (
            (M, Q, A * 0, np.ones(2)),
            gm.InconsistentConstraintsError,
            gm.Status.INCONSISTENT,
        ),
        "many": (
            (light, Q * [1, 1, 0], A, b),
            gm.IndeterminateMotionError,
            gm.Status.INDETERMINATE_MANY,
        ),
        "none": ((light, Q, A, b), gm.IndeterminateMotionError, gm.Status.INDETERMINATE_NONE),
        "range": ((M * 1e-250, Q * 1e200, A, b), gm.GaussmechError, gm.Status.NO_CONVERGENCE),
    }


def refusals():
    """Calls that must raise before anything is computed: (call, exception)."""
    M, Q, A, b = np.eye(3), np.ones(3), np.ones((2, 3)), np.zeros(2)
    masked = np.ma.masked_array(Q, [True, False, False])
    return {
        "shape of M": (lambda: gm.solve(np.ones((3, 2)), Q, A, b), ValueError),
        "shape of Q": (lambda: gm.solve(M, Q[:, None], A, b), ValueError),
        "shape of A": (lambda: gm.solve(M, Q, A.T, b), ValueError),
        "dimensions of A": (lambda: gm.solve(M, Q, Q, b), ValueError),
        "batches": (lambda: gm.solve(M, np.ones((2, 3)), A, np.zeros((3, 2))), ValueError),
        "ragged": (lambda: gm.solve(M, [[1, 2], [3]], A, b), ValueError),
        "complex": (lambda: gm.solve(M * 1j, Q, A, b), TypeError),
        "object": (lambda: gm.solve(M, Q.astype(object), A, b), TypeError),
        "text": (lambda: gm.solve(M, ["a", "b", "c"], A, b), TypeError),
        "masked": (lambda: gm.solve(M, masked, A, b), TypeError),
        "nothing": (lambda: gm.solve(None, Q, A, b), TypeError),
        "rtol": (lambda: gm.solve(M, Q, A, b, rtol=2.0), ValueError),
        "kind of rtol": (lambda: gm.solve(M, Q, A, b, rtol="a"), TypeError),
        "ctol": (lambda: gm.solve(M, Q, A, b, ctol=-1.0), ValueError),
        "option": (lambda: gm.solve(M, Q, A, b, inconsistent="no"), ValueError),
        "output": (lambda: gm.solve(M, Q, A, b, outputs=("x",)), ValueError),
        "names": (lambda: gm.solve(M, Q, A, b, names={"rows": ["a"]}), ValueError),
        "alpha": (lambda: gm.augment(M, Q, A, b, 0.0), ValueError),
        "augment": (lambda: gm.augment(-M, Q, A, b), gm.NotSemidefiniteError),
        "free": (lambda: gm.free_acceleration(M * 0, Q), gm.IndeterminateMotionError),
        "zwang": (lambda: gm.zwang(-M, Q, Q), gm.NotSemidefiniteError),
        "rows": (lambda: gm.independent_rows(A * np.nan), ValueError),
        "sensitivity": (lambda: gm.sensitivity(M * 0, A), gm.IndeterminateMotionError),
        "raw shape": (lambda: ufuncs.independent_rows(A, np.eye(2), np.nan), ValueError),
    }


def must_raise(call, kind):
    try:
        call()
    except kind as error:
        return str(error)
    raise AssertionError(f"no {kind.__name__}")


def errors():
    """Every status alone and inside a batch of good systems, raised and reported; every refusal."""
    M, Q, A, b = np.eye(3), np.ones(3), np.array([[1.0, 0, 0], [0, 1.0, 0]]), np.zeros(2)
    good = gm.solve(M, Q, A, b)
    for name, (bad, kind, status) in faults().items():
        assert must_raise(lambda bad=bad: gm.solve(*bad), kind), name
        alone = gm.solve(*bad, errors="status")
        assert alone.status == status and np.all(np.isnan(alone.qdd)), name
        assert repr(alone), name
        for count, at in itertools.product((2, 8, 9), (0, 1, 7)):
            if at >= count:
                continue
            batch = [np.stack([x] * count) for x in (M, Q, A, b)]
            for array, x in zip(batch, bad, strict=True):
                array[at] = x
            assert f"({at},)" in must_raise(lambda batch=batch: gm.solve(*batch), kind), name
            motion = gm.solve(*batch, errors="status")
            for i in range(count):
                assert bits(motion, i) == bits(alone if i == at else good), (name, count, at)
    for name, (call, kind) in refusals().items():
        assert must_raise(call, kind), name
    for n in (40, 96):
        large = problem(n, 4, 5)
        large[0][-1, -1] = -1.0
        must_raise(lambda large=large: gm.solve(*large), gm.NotSemidefiniteError)
        large[1][0] = np.nan
        must_raise(lambda large=large: gm.solve(*large), ValueError)
