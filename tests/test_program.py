"""Programs: the value of the function, exact derivatives, the same bits everywhere, sentences."""

import itertools
import math
import pickle
import random
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import gaussmech as gm
import high_precision as high
from gaussmech.graph import CODE, CONSTANT, INPUT, OPERATIONS

EPS = np.finfo(float).eps
ROOT = Path(__file__).parents[1]


def angles(t, q):
    return np.array([np.sin(q[0] * t), np.cos(q[0] - q[1]), np.tan(q[1] * 0.7)])


def inverses(t, q):
    return np.array([np.arcsin(q[0]), np.arccos(q[1] * t), np.arctan(q[0] / q[1]),
                     np.arctan2(q[0], -q[1])])  # fmt: skip


def hyperbolic(t, q):
    return np.array([np.sinh(q[0]), np.cosh(q[1] * t), np.tanh(q[0] * 3), np.arcsinh(q[0]),
                     np.arctanh(q[1] * 0.9), np.arccosh(1 + q[0])])  # fmt: skip


def exponentials(t, q):
    return np.array([np.exp(-q[0]), np.log(q[1]), np.exp2(q[0]), np.log2(q[1]), np.log10(q[0]),
                     np.log1p(q[0]), np.expm1(q[1])])  # fmt: skip


def powers(t, q):
    return np.array(
        [
            q[0] ** 2,
            q[1] ** 5,
            q[0] ** -3,
            q[1] ** 0.5,
            q[0] ** 1.7,
            2.5 ** q[1],
            q[0] ** q[1],
            np.cbrt(q[0]),
            np.square(q[1]),
            np.reciprocal(q[0]),
        ]
    )


def algebra(t, q):
    return np.array(
        [
            (q[0] - t) * (q[1] + 2) / (q[0] + q[1]),
            -q[0] + 3 - q[1],
            1 / (1 + q[0]),
            np.sqrt(q[0] * q[1]),
            np.hypot(q[0], q[1]),
            np.deg2rad(q[0]),
            +q[0],
        ]
    )


def matrices(t, q):
    R = np.array([[np.cos(q[0]), -np.sin(q[0])], [np.sin(q[0]), np.cos(q[0])]])
    r = R @ np.array([q[1], t]) + np.eye(2) @ q
    return np.array(
        [r @ r, np.linalg.norm(q - 2 * r), np.dot(q, r), np.sum(r), *np.cross([*q, t], [*r, 1.0])]
    )


def kinks(t, q):
    return np.array(
        [
            np.abs(q[0] - 0.5),
            np.minimum(q[0], q[1]),
            np.maximum(q[1] - t, 0.2),
            np.sign(q[0] - 0.5) * q[1],
            gm.where(q[0] > 0.4, q[1] ** 2, q[0]),
        ]
    )


FUNCTIONS = [angles, inverses, hyperbolic, exponentials, powers, algebra, matrices, kinks]
each = pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)


def in_high(f):
    """kinks decides by numbers where it asks gm.where and np.minimum"""
    if f is not kinks:
        return f

    def plain(t, q):
        a, b = q
        return np.array([abs(a - 0.5), min(a, b), max(b - t, high.Mp(0.2)),
                         (a - 0.5).sign() * b, b**2 if a > 0.4 else a])  # fmt: skip

    return plain


def states(count=100, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(0.1, 0.95, count), rng.uniform(0.1, 0.95, (count, 2))


# ------------------------------------------------------------------ values and derivatives


@each
def test_the_value_is_that_of_the_function(f):
    program = gm.Program(f, (), 2)
    t, q = states()
    for x, y in zip(t, q, strict=True):
        assert np.allclose(program(x, y), f(x, y), rtol=4e-15, atol=1e-15)


@each
def test_derivatives_agree_with_80_digit_differences_at_100_states(f):
    # 1e-13 of the sum of absolute terms: a few dozen roundings
    program = gm.Program(f, (), 2)
    exact = in_high(f)
    by_q, by_t = program.jacobian("q"), program.jacobian(0)
    rate = program.rate((1.0, "qd"))
    second = rate.rate((1.0, "qd", None))
    sizes = [p.sizes() for p in (program, by_q, by_t, rate, second)]
    t, q = states()
    qd = np.random.default_rng(1).uniform(-1, 1, q.shape)
    for x, y, v in zip(t, q, qd, strict=True):
        at = (x, y)
        size = [p(*at) for p in sizes[:3]] + [p(*at, v) for p in sizes[3:]]
        assert high.worst(program(*at), high.values(exact, *at), size[0]) <= 1e-13
        assert high.worst(by_q(*at), high.jacobian(exact, at, 1), size[1]) <= 1e-13
        assert high.worst(by_t(*at), high.jacobian(exact, at, 0), size[2]) <= 1e-13
        along = (1.0, v)
        assert high.worst(rate(*at, v), high.derivative(exact, at, along), size[3]) <= 1e-13
        found = second(*at, v)
        assert high.worst(found, high.second_derivative(exact, at, along), size[4]) <= 1e-13


@each
def test_sizes_bound_the_rounding_of_the_value(f):
    program = gm.Program(f, (), 2)
    sizes = program.sizes()
    exact = in_high(f)
    for x, y in zip(*states(40, 5), strict=True):
        assert np.all(sizes(x, y) >= np.abs(program(x, y)) * (1 - 1e-12))
        # constants of the function are rounded once too
        assert high.worst(program(x, y), high.values(exact, x, y), sizes(x, y)) <= 8 * EPS


def test_sizes_show_what_cancels():
    one_minus_cos = gm.Program(lambda x: 1 - np.cos(x), ())
    assert one_minus_cos(1e-9) == 0.0 and one_minus_cos.sizes()(1e-9) == pytest.approx(2)
    sine = gm.Program(lambda x: np.sin(x), ())
    assert abs(sine(math.pi)) < 2e-16 and sine.sizes()(math.pi) == pytest.approx(math.pi)
    product = gm.Program(lambda x: (x - 1) * 1e6, ())
    assert product.sizes()(1.0) == 2e6


def test_the_derivative_of_a_kink_is_that_of_the_side_that_is_taken():
    program = gm.Program(kinks, (), 2)
    J = program.jacobian("q")(0.3, [0.7, 0.6])
    assert J.tolist() == [[1, 0], [0, 1], [0, 1], [0, 1], [0, 1.2]]
    assert gm.Program(lambda x: np.abs(x), ()).gradient(0)(0.0) == 0.0


def test_the_gradient_is_the_jacobian_of_a_number():
    V = gm.Program(lambda q: 0.5 * q @ q + q[0] * q[1], 3)
    assert V.gradient("q")([1.0, 2.0, 3.0]).tolist() == [3, 3, 3]
    assert V.gradient(-1).shape == (3,)
    hessian = V.gradient("q").jacobian("q")
    assert hessian([0.0, 0, 0]).tolist() == [[1, 1, 0], [1, 1, 0], [0, 0, 1]]
    with pytest.raises(ValueError, match=r"the value has shape \(3,\); expected a number"):
        V.gradient("q").gradient("q")
    with pytest.raises(ValueError, match="argument is 'p'; expected a position or one of 'q'"):
        V.jacobian("p")


def test_a_jacobian_of_a_matrix_has_the_indices_of_both():
    M = gm.Program(lambda q: np.outer(q, q), 2)
    J = M.jacobian("q")
    assert J.shape == (2, 2, 2)
    assert J([3.0, 5.0]).tolist() == [[[6, 0], [5, 3]], [[5, 3], [0, 10]]]
    assert J(np.ones((4, 2))).shape == (4, 2, 2, 2)


def test_rates_take_numbers_arrays_names_and_nothing():
    f = gm.Program(lambda t, q: t * q[0] + q[1], (), 2)
    assert f.rate((1.0, None))(2.0, [3.0, 4.0]) == 3
    assert f.rate((None, [1.0, 10.0]))(2.0, [3.0, 4.0]) == 12
    named = f.rate((1.0, "qd"))
    assert named.names == ("t", "q", "qd") and named.shapes == ((), (2,), (2,))
    # another program of the same function may name its new argument otherwise
    other = f.rate((None, "direction"))
    assert other.names == ("t", "q", "direction")
    assert other(2.0, [3.0, 4.0], [1.0, 1.0]) == 3 and named(2.0, [3.0, 4.0], [1.0, 1.0]) == 6
    assert f.rate((1.0, "q"))(2.0, [3.0, 4.0]) == 3 + 2 * 3 + 4
    with pytest.raises(ValueError, match="1 directions; expected 2, one for each"):
        f.rate((1.0,))
    with pytest.raises(ValueError, match=r"directions\[1\] has shape \(3,\); expected \(2,\)"):
        f.rate((1.0, [1.0, 2.0, 3.0]))
    with pytest.raises(ValueError, match=r"the direction of q is 't' of shape \(\); expected"):
        f.rate((None, "t"))


def test_structural_zeros_are_known():
    f = gm.Program(lambda t, q: np.array([q[0] ** 2, q[1] * t, 3.0]), (), 3)
    assert f.jacobian("q").nonzeros.tolist() == [[True, False, False], [False, True, False],
                                                  [False, False, False]]  # fmt: skip
    assert f.jacobian("q").jacobian("q").nonzeros.sum() == 1
    assert f.nonzeros.all() and f.jacobian("t").nonzeros.tolist() == [False, True, False]
    assert f.jacobian("q")(1.0, [1.0, 2, 3]).tolist() == [[2, 0, 0], [0, 1, 0], [0, 0, 0]]


# ------------------------------------------------------------------ the first oracle


def interpreted(program, *arguments):
    """The same graph, node by node with NumPy."""
    graph = program._graph
    with np.errstate(all="ignore"):
        value = {}
        for node in graph.ancestors(program._nodes):
            code, *operands = graph.nodes[node]
            if code == CONSTANT:
                value[node] = np.float64(graph.values[node])
            elif code == INPUT:
                which, place = graph.inputs[node]
                value[node] = np.float64(np.ravel(arguments[which])[place])
            else:
                name = OPERATIONS[code].name
                name = {"abs": "absolute", "neg": "negative", "sub": "subtract", "mul": "multiply",
                        "div": "divide", "pow": "power"}.get(name, name)  # fmt: skip
                value[node] = np.float64(getattr(np, name)(*(value[i] for i in operands)))
        return np.array([value[i] for i in program._nodes]).reshape(program.shape)


@each
def test_the_code_does_what_its_graph_says(f):
    program = gm.Program(f, (), 2)
    second = program.rate((1.0, "qd")).rate((1.0, "qd", None))
    v = np.array([0.3, -0.8])
    for x, y in zip(*states(10), strict=True):
        for p, at in ((program, (x, y)), (program.jacobian("q"), (x, y)), (second, (x, y, v))):
            assert np.allclose(p(*at), interpreted(p, *at), rtol=1e-14, atol=1e-15)


LEAVES = st.sampled_from(["q[0]", "q[1]", "t", "2.0", "0.5", "-1.0", "0.0", "3.0"])


def _grown(inner):
    pairs = st.tuples(inner, st.sampled_from(["+", "-", "*", "/"]), inner).map(
        lambda p: f"({p[0]} {p[1]} {p[2]})"
    )
    calls = st.tuples(st.sampled_from(["sin", "cos", "tanh", "abs", "exp"]), inner).map(
        lambda p: f"np.{p[0]}({p[1]})"
    )
    squares = inner.map(lambda x: f"({x})**2")
    choices = st.tuples(inner, inner, inner).map(lambda p: f"gm.where({p[0]} < {p[1]}, {p[2]}, t)")
    return st.one_of(pairs, calls, squares, choices)


@given(text=st.recursive(LEAVES, _grown, max_leaves=12), seed=st.integers(0, 99))
@settings(max_examples=150, deadline=None, derandomize=True, phases=(Phase.generate,))
def test_random_expressions_have_their_value_and_exact_derivatives(text, seed):
    f = eval(f"lambda t, q: {text} + 0.0*t", {"np": np, "gm": gm})
    try:
        with np.errstate(all="ignore"):
            f(0.3, np.array([0.4, 0.5]))
    except ZeroDivisionError:
        return  # between numbers of the function itself
    program = gm.Program(f, (), 2)
    rng = np.random.default_rng(seed)
    t, q = rng.uniform(0.2, 1.0), rng.uniform(0.2, 1.0, 2)
    with np.errstate(all="ignore"):
        value, plain = program(t, q), float(f(t, q))
    size = program.sizes()(t, q)
    if not (np.isfinite(plain) and np.isfinite(size) and size < 1e12):
        return
    assert abs(value - plain) <= 64 * EPS * size
    J = program.jacobian("q")
    assert np.array_equal(J(t, q), interpreted(J, t, q)) or np.allclose(
        J(t, q), interpreted(J, t, q), rtol=1e-12, atol=1e-12, equal_nan=True
    )
    limit = J.sizes()(t, q)
    if "where" in text or "abs" in text or not np.all(np.isfinite(limit) & (limit < 1e12)):
        return
    try:
        exact = high.jacobian(f, (t, q), 1)
    except ZeroDivisionError:
        return
    assert high.worst(J(t, q), exact, limit) <= 1e-13
    assert np.array_equal(program(np.full(21, t), np.tile(q, (21, 1))), np.full(21, value))


# ------------------------------------------------------------------ batches


@each
def test_a_state_has_the_same_bits_alone_and_in_any_place_of_a_batch(f):
    program = gm.Program(f, (), 2).rate((1.0, "qd"))
    rng = np.random.default_rng(3)
    for count in (1, 2, 3, 4, 5, 15, 16, 17, 33, 100):
        t, q, qd = rng.uniform(0.1, 0.9, count), *rng.uniform(0.1, 0.9, (2, count, 2))
        together = program(t, q, qd)
        alone = np.array([program(*state) for state in zip(t, q, qd, strict=True)])
        assert together.tobytes() == alone.tobytes()


def test_batches_broadcast_with_strides_of_all_kinds():
    f = gm.Program(lambda t, q, p: np.array([t * q[0], q[1] * p[0, 1], p[1, 0]]), (), 2, (2, 2))
    rng = np.random.default_rng(0)
    t, q, p = rng.random((3, 1)), rng.random((4, 2)), rng.random((3, 4, 2, 2))
    plain = np.array([[[t[i, 0] * q[j, 0], q[j, 1] * p[i, j, 0, 1], p[i, j, 1, 0]]
                       for j in range(4)] for i in range(3)])  # fmt: skip
    assert np.array_equal(f(t, q, p), plain)
    strided = np.zeros((3, 8, 2, 4))[:, ::2, :, ::2]
    strided[...] = p
    assert np.array_equal(f(t[::-1][::-1], np.asfortranarray(q), strided), plain)
    assert np.array_equal(f(t, q[::-1], p[:, ::-1]), plain[:, ::-1])
    q.flags.writeable = False
    assert np.array_equal(f(t, q, p), plain)
    assert f(np.zeros((0, 1)), q, p[:1]).shape == (0, 4, 3)
    assert f(2, [1, 2], np.eye(2, dtype=np.float32)).tolist() == [2, 0, 0]


def test_arguments_that_do_not_fit_get_a_sentence():
    f = gm.Program(lambda t, q: t * q, (), 2)
    with pytest.raises(ValueError, match=r"q has shape \(3,\); expected \(..., 2\)"):
        f(0.0, [1.0, 2, 3])
    with pytest.raises(ValueError, match=r"do not broadcast: t \(3,\), q \(2,\)"):
        f(np.zeros(3), np.zeros((2, 2)))
    with pytest.raises(TypeError, match=r"takes 2 arguments \(t, q\); 1 were given"):
        f(0.0)
    with pytest.raises(TypeError, match="q is complex"):
        f(0.0, [1j, 0])


def test_a_value_may_be_a_number_a_vector_a_matrix_or_a_constant():
    assert gm.Program(lambda q: q[0], 1)([2.0]) == 2.0
    assert isinstance(gm.Program(lambda q: q[0], 1)([2.0]), float)
    assert gm.Program(lambda q: [q[0], 1.0], 1)([2.0]).tolist() == [2, 1]
    assert gm.Program(lambda q: q.reshape(2, 2).T, 4)([1.0, 2, 3, 4]).tolist() == [[1, 3], [2, 4]]
    assert gm.Program(lambda q: np.zeros(3), 1)([2.0]).tolist() == [0, 0, 0]
    assert gm.Program(lambda q: 7, 1)(np.zeros((5, 1))).tolist() == [7] * 5
    assert gm.Program(lambda q: np.zeros((0,)), 1)([2.0]).shape == (0,)
    with pytest.raises(ValueError, match="expected two dimensions at most"):
        gm.Program(lambda q: q.reshape(2, 2, 1), 4)


def test_special_values_are_those_of_numpy():
    f = gm.Program(
        lambda x, y: np.array([np.minimum(x, y), np.maximum(x, y), np.sign(x), x / y, np.sqrt(x),
                               np.arctan2(x, y), np.abs(x), np.log(x), x**0.3]),
        (), (),
    )  # fmt: skip
    special = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 5e-324, 1e308]
    for x in special:
        for y in special:
            with np.errstate(all="ignore"):
                plain = np.array([np.minimum(x, y), np.maximum(x, y), np.sign(x),
                                  np.float64(x) / y, np.sqrt(x), np.arctan2(x, y), np.abs(x),
                                  np.log(x), np.float64(x) ** 0.3])  # fmt: skip
            assert np.allclose(f(x, y), plain, rtol=1e-15, atol=0, equal_nan=True), (x, y)


# ------------------------------------------------------------------ ways to write NumPy


def test_many_ways_of_writing_the_same_are_read():
    def check(f, *shapes):
        program = gm.Program(f, *shapes)
        rng = np.random.default_rng(0)
        values = [rng.uniform(0.2, 0.9, s) if s != () else 0.4 for s in shapes]
        assert np.allclose(program(*values), f(*values), rtol=1e-14)

    check(lambda q: np.stack([q, 2 * q]).sum(axis=0), 3)
    check(lambda q: np.concatenate([q[:1], q[1:] ** 2]), 3)
    check(lambda q: np.cross(q, [1.0, 2, 3]), 3)
    check(lambda q: np.einsum("ij,j->i", np.eye(3), q), 3)
    check(lambda q: np.linalg.norm(q.reshape(2, 2), axis=1), 4)
    check(lambda q: np.diff(q) * np.cumsum(q)[1:], 4)
    check(lambda q: sum(x * y for x, y in itertools.pairwise(q)), 4)
    check(lambda q: np.diag(q) @ q + np.outer(q, q) @ q, 3)
    check(lambda q: np.prod(q) + np.mean(q) + q.mean() + np.add.reduce(q), 3)
    check(lambda q: np.max(q) - np.min(q) + np.maximum.reduce(q), 3)
    check(lambda q: np.array([q[0] * 2, q[1]]) @ np.array([[1.0, 2], [3, 4]]), 2)
    check(lambda q: np.tensordot(q, np.ones((3, 2)), axes=1), 3)
    check(lambda q: np.vdot(q, q) + np.inner(q, q) + q.dot(q), 3)
    check(lambda q: np.hstack([q, q])[::-2], 3)
    check(lambda q: np.kron(q, np.array([1.0, -1.0])), 2)
    check(lambda q: np.trace(np.outer(q, q)), 3)
    check(lambda t, q: np.float64(2.0) * q + np.arange(3) * t, (), 3)
    check(lambda q: np.multiply.outer(q, q).ravel(), 2)
    check(lambda q: np.clip(q, 0.3, 0.5), 3)
    check(lambda q: np.zeros_like(q) + q**3, 2)


def test_an_argument_may_be_changed_inside_without_changing_the_callers_array():
    def f(q):
        q += 1.0
        q[0] = q[1] * 2
        return q

    given = np.array([1.0, 2.0])
    assert gm.Program(f, 2)(given).tolist() == [6, 3]
    assert given.tolist() == [1, 2]


def test_numbers_of_numpy_and_python_are_constants():
    assert len(gm.Program(lambda q: q[0] * 2.0 * 3.0 * np.sin(np.pi / 6), 1)) <= 6
    assert len(gm.Program(lambda q: q[0] * 1 + 0 * q[0] + q[0] ** 1, 1)) == 3
    same = gm.Program(lambda q: np.sin(q[0]) * np.sin(q[0]) + np.sin(q[0] + 0), 1)
    assert len(same) == 5  # input, one sine, product, sum, store


# ------------------------------------------------------------------ what cannot be traced


def hidden(x):
    if x > 0:  # the branch
        return x
    return -x


def uses_helper(t, q):
    return hidden(q[0]) + 1.0


def says(f, *shapes):
    with pytest.raises(TypeError) as caught:
        gm.Program(f, *shapes)
    return str(caught.value)


def test_an_if_hidden_in_a_helper_is_named_with_its_line():
    message = says(uses_helper, (), 1)
    line = next(
        i
        for i, text in enumerate(Path(__file__).read_text().splitlines(), 1)
        if "# the branch" in text
    )
    assert "uses_helper (test_program.py, line " in message
    assert f"in hidden (test_program.py, line {line}): `if x > 0:  # the branch`" in message
    assert "gm.where(condition, a, b)" in message


@pytest.mark.parametrize(
    ("f", "expected"),
    [
        (lambda q: math.sin(q[0]), "np.sin"),
        (lambda q: float(q[0]) ** 2, "use the functions of np"),
        (lambda q: q[0] if q[1] > 0 else -q[0], "gm.where(condition, a, b)"),
        (lambda q: np.where(q > 0, q, -q), "gm.where(condition, a, b)"),
        (lambda q: np.where(q[0] > 0, q[0], -q[0]), "gm.where(condition, a, b)"),
        (lambda q: np.where(np.array([q[0], 1.0]) > 0, 1.0, 0.0), "gm.where(condition, a, b)"),
        (lambda q: max(q[0], 0.0), "gm.where(condition, a, b)"),
        (lambda q: np.sort(q), "gm.where(condition, a, b)"),
        (lambda q: q[0] and q[1], "gm.where(condition, a, b)"),
        (lambda q: (q[0] > 0) * q[0], "a comparison is used as a number"),
        (lambda q: np.linalg.inv(np.outer(q, q)), "np.linalg.inv cannot be traced"),
        (lambda q: np.linalg.solve(np.outer(q, q), q), "np.linalg.solve cannot be traced"),
        (lambda q: np.linalg.det(np.outer(q, q)), "np.linalg.det cannot be traced"),
        (lambda q: np.interp(q[0], [0, 1], [0, 1]), "gm.opaque"),
        (lambda q: np.floor(q[0]), "np.floor cannot be traced"),
        (lambda q: q[0] // 1, "a number is needed"),
        (lambda q: q[0] % 1, "a number is needed"),
        (lambda q: np.arange(3)[q[0]], "a number is needed"),
        (lambda q: range(q[0]), "a number is needed"),
        (lambda q: round(q[0]), "a number is needed"),
        (lambda q: np.exp(1j * q[0]), "a complex number cannot be traced"),
        (lambda q: q[0] > 0, "returned a comparison"),
        (lambda q: None, "returned None"),
        (lambda q: "x", "returned str"),
        (lambda q: [q[0], [q[1]]], "returned list in entry [1]"),
        (lambda q: np.array(q, dtype=float), "a number is needed"),
        (lambda q: q[5], "IndexError"),
    ],
)
def test_what_cannot_be_traced_gets_its_sentence(f, expected):
    message = says(f, 2)
    assert expected in message
    assert "test_program.py, line" in message


def writes_into_zeros(q):
    z = np.zeros(2)
    z[0] = q[0]  # the writing
    return z


def writes_into_many(q):
    z = np.zeros((2, 2))
    z[0, :] = q
    return z


@pytest.mark.parametrize("f", [writes_into_zeros, writes_into_many], ids=["entry", "row"])
def test_writing_into_zeros_is_refused_with_the_way_out(f):
    message = says(f, 2)
    assert "np.array([...])" in message
    assert f"in {f.__name__} (test_program.py, line " in message


class Counter:
    def __init__(self):
        self.calls = 0

    def __call__(self, q):
        self.calls += 1
        return q * self.calls


def typed(q):
    return q * (2.0 if isinstance(q[0], float) else 3.0)


@pytest.mark.parametrize(
    "f",
    [
        Counter(),
        lambda q: q * random.random(),
        lambda q: q + np.random.default_rng().random(2),
        typed,
    ],
    ids=["counter", "random", "generator", "type"],
)
def test_a_function_of_something_beside_its_arguments_is_an_error(f):
    with pytest.raises(ValueError, match="it depends on something beside its arguments"):
        gm.Program(f, 2)


def test_what_is_no_function_or_no_shape_gets_a_sentence():
    with pytest.raises(TypeError, match="f is a float; expected a function"):
        gm.Program(3.0, 2)
    for shape in (-1, "x", (1, 2, 3), (1.5,), None):
        with pytest.raises(ValueError, match="a shape is "):
            gm.Program(lambda q: q, shape)
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        gm.Program(lambda t, q: q, 2)


def test_an_expression_of_another_function_does_not_get_in():
    kept = []
    gm.Program(lambda q: kept.append(q[0]) or q[0], 1)
    with pytest.raises(TypeError, match="an expression of another function is used here"):
        gm.Program(lambda q: q[0] + kept[0], 1)


# ------------------------------------------------------------------ gm.where beside programs


def test_where_works_on_numbers_as_numpy_does():
    assert gm.where(True, 1.0, 2.0) == 1.0
    x = np.array([-1.0, 2.0])
    assert gm.where(x > 0, x, 0.0).tolist() == [0, 2]


def test_conditions_combine():
    f = gm.Program(lambda x: gm.where((x > 0) & (x < 1) | ~(x > -2), 1.0, 0.0), ())
    assert [f(x) for x in (0.5, 2.0, -1.0, -3.0)] == [1, 0, 0, 1]
    g = gm.Program(lambda q: gm.where(q > 0, q, [1.0, 2.0]), 2)
    assert g([3.0, -1.0]).tolist() == [3, 2]
    h = gm.Program(lambda q: gm.where(np.logical_and(q[0] > 0, q[1] > 0), 1.0, 0.0), 2)
    assert [h(q) for q in ([1.0, 1.0], [1.0, -1.0])] == [1, 0]


# ------------------------------------------------------------------ printing, pickling


def test_a_program_prints_as_formulas_that_python_reads():
    f = gm.Program(
        lambda t, q: np.array([q[0] ** 2 - (q[1] - t), -((q[0] / (q[1] * 2)) ** 1.5)]), (), 2
    )
    lines = repr(f).splitlines()
    title = (
        r"Program of the function \(test_program.py, line \d+\): t \(\), q \(2,\) -> \(2,\), \d+"
    )
    assert re.match(title, lines[0])
    scope = {"q": [0.7, 0.4], "t": 0.3, "f": [0, 0], "sqrt": math.sqrt}
    for line in lines[1:]:
        exec(line.strip(), scope)
    assert np.allclose(scope["f"], f(0.3, [0.7, 0.4]), rtol=1e-15)


@each
def test_formulas_of_every_operation_are_python_and_latex(f):
    program = gm.Program(f, (), 2)
    names = {name: getattr(np, name) for name in dir(np) if not name.startswith("_")}
    scope = {**names, "q": np.array([0.7, 0.4]), "t": 0.3, "f": np.zeros(program.shape),
             "sign": np.sign, "abs": abs, "where": np.where}  # fmt: skip
    for line in repr(program).splitlines()[1:]:
        exec(line.strip(), scope)
    assert np.allclose(scope["f"], program(0.3, [0.7, 0.4]), rtol=1e-14)
    latex = program._repr_latex_()
    assert latex.startswith("$") and latex.count("{") == latex.count("}")


@each
def test_a_program_comes_back_from_a_pickle(f):
    program = gm.Program(f, (), 2).rate((1.0, "qd"))
    again = pickle.loads(pickle.dumps(program))
    t, q = states(7)
    assert again(t, q, q).tobytes() == program(t, q, q).tobytes()
    assert len(again) == len(program) and again.names == program.names
    assert len(again.jacobian("qd")) == len(program.jacobian("qd"))


# ------------------------------------------------------------------ the core


def test_python_and_c_have_the_same_list_of_operations():
    text = (ROOT / "csrc" / "core" / "gm_program.h").read_text(encoding="utf-8")
    names = re.search(r"enum \{(.*?)GM_OPERATIONS", text, re.S).group(1)
    found = [name.strip().removeprefix("GM_").lower() for name in names.split(",") if name.strip()]
    assert found == [operation.name for operation in OPERATIONS]


@pytest.mark.parametrize(
    "line",
    [(99, 0, 0, 0, 0), (-1, 0, 0, 0, 0), (CODE["neg"], 0, 1, 0, 0), (CODE["neg"], 5, 0, 0, 0),
     (INPUT, 0, 1, 0, 0), (INPUT, 0, 0, 2, 0), (INPUT, 0, 0, 0, 1), (CONSTANT, 0, 3, 0, 0),
     (CODE["store"], 1, 0, 0, 0), (CODE["store"], 0, 0, 2, 0), (CODE["add"], 0, 0, -1, 0),
     (CODE["where"], 0, 0, 0, 9)],
)  # fmt: skip
def test_the_core_refuses_code_that_reaches_outside(line):
    from gaussmech.program import Compiled

    good = [(INPUT, 0, 0, 0, 0), (CODE["store"], 0, 0, 1, 0)]
    Compiled(good, [], 2, [(2,)], [(2,)], [True])
    with pytest.raises(ValueError, match="the code of a program is not valid"):
        Compiled([good[0], line, good[1]], [], 2, [(2,)], [(2,)], [True])
