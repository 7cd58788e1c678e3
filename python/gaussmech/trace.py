"""Reading a plain NumPy function: it is called once with arguments that record what it does.

A number of the function is an `Expression`, an array of them a `TracedArray`. What cannot be
recorded raises `TypeError` with a sentence that names the function, the line and the way out;
nothing is guessed.
"""

from __future__ import annotations

import dis
import linecache
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import CodeType, FrameType, TracebackType
from typing import Any, NoReturn, cast

import numpy as np
from numpy.typing import NDArray

from . import graph as g
from .graph import CODE, Graph

__all__ = ["Expression", "TracedArray", "call_traced", "describe", "where"]

# functions of one argument: NumPy's name -> expression
_UNARY: dict[str, Callable[[Expression], Expression]] = {}
_PLAIN = ("sqrt", "exp", "log", "sin", "cos", "tan", "arcsin", "arccos", "arctan",
          "sinh", "cosh", "tanh", "sign")  # fmt: skip
_HERE = Path(__file__).parent


class UntraceableError(TypeError):
    """What a function does cannot be recorded; the sentence says where and what to do."""


# ------------------------------------------------------------------ where it happened


def describe(function: Callable[..., Any]) -> str:
    """Name of a function and where it stands: "phi (model.py, line 12)"."""
    name = getattr(function, "__name__", type(function).__name__)
    name = "the function" if name == "<lambda>" else name
    code = getattr(function, "__code__", None)
    if code is None:
        return name
    return f"{name} ({Path(code.co_filename).name}, line {code.co_firstlineno})"


def _outside(frame: FrameType | None) -> FrameType | None:
    """The nearest frame that is neither ours nor NumPy's."""
    while frame is not None:
        path = frame.f_code.co_filename
        if Path(path).parent != _HERE and f"{Path(np.__file__).parent}" not in path:
            return frame
        frame = frame.f_back
    return None


def _place(code: CodeType, line: int) -> str:
    text = linecache.getline(code.co_filename, line).strip()
    shown = f": `{text}`" if text else ""
    name = "a lambda" if code.co_name == "<lambda>" else code.co_name
    return f"{name} ({Path(code.co_filename).name}, line {line}){shown}"


def _refuse(what: str) -> NoReturn:
    frame = _outside(sys._getframe(1))
    where = "" if frame is None else f"in {_place(frame.f_code, frame.f_lineno)}: "
    raise UntraceableError(where + what)


_BRANCH = (
    "a branch on a coordinate cannot be traced, since its value is not known then; write it as "
    "gm.where(condition, a, b), np.abs, np.minimum, np.maximum or np.sign"
)
_WRITING = (
    "an expression cannot be written into an array of floats; build the array of its entries "
    "with np.array([...])"
)
_NUMBER = (
    "a number is needed where only an expression is known (math.sin, float(), a table, a solver "
    "of numbers); use the functions of np, such as np.sin, or wrap a force in gm.opaque"
)


class Condition:
    """A comparison of expressions: what `where` decides by."""

    __slots__ = ("graph", "node")

    def __init__(self, graph: Graph, node: int) -> None:
        self.graph, self.node = graph, node

    def __bool__(self) -> bool:
        known = self.graph.number(self.node)
        if known is None:
            _refuse(_BRANCH)
        return bool(known)

    def _both(self, other: object, either: bool) -> Condition:
        """and as a product, or as a maximum of ones and zeros"""
        node = _condition_node(self.graph, other)
        return Condition(self.graph, self.graph.apply(g.MAX if either else g.MUL, self.node, node))

    def __and__(self, other: object) -> Condition:
        return self._both(other, False)

    def __or__(self, other: object) -> Condition:
        return self._both(other, True)

    __rand__, __ror__ = __and__, __or__

    def __invert__(self) -> Condition:
        one = self.graph.constant(1.0)
        return Condition(self.graph, self.graph.sub(one, self.node))

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        return _ufunc(ufunc, method, inputs, options)

    def _no_number(self, *_: object) -> NoReturn:
        _refuse(f"a comparison is used as a number; {_BRANCH}")

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __float__ = _no_number
    __truediv__ = __rtruediv__ = __neg__ = __int__ = __index__ = _no_number


def _condition_node(graph: Graph, value: object) -> int:
    if isinstance(value, Condition):
        return value.node
    if isinstance(value, (bool, np.bool_)):
        return graph.constant(1.0 if value else 0.0)
    _refuse(f"{value!r} is no condition; compare expressions with <, <=, >, >=")


class Expression:
    """One number of a traced function."""

    __slots__ = ("graph", "node")
    __array_priority__ = 1000.0

    def __init__(self, graph: Graph, node: int) -> None:
        self.graph, self.node = graph, node

    # -------------------------------------------------------------- arithmetic

    def _lift(self, other: object) -> int | None:
        """The node of another operand; None when it is something that knows better."""
        if isinstance(other, Expression):
            if other.graph is not self.graph:
                _refuse(
                    "an expression of another function is used here; pass what it stands for "
                    "as an argument"
                )
            return other.node
        if isinstance(other, (int, float, np.integer, np.floating, np.bool_)):
            return self.graph.constant(float(other))
        if isinstance(other, (complex, np.complexfloating)):
            _refuse("a complex number cannot be traced; write sines and cosines")
        return None

    def _binary(self, other: object, code: int, swapped: bool = False) -> Any:
        node = self._lift(other)
        if node is None:
            return NotImplemented
        operands = (node, self.node) if swapped else (self.node, node)
        return Expression(self.graph, self.graph.apply(code, *operands))

    def _compare(self, other: object, code: int, swapped: bool = False) -> Any:
        node = self._lift(other)
        if node is None:
            return NotImplemented
        operands = (node, self.node) if swapped else (self.node, node)
        return Condition(self.graph, self.graph.apply(code, *operands))

    def __add__(self, other: object) -> Any:
        return self._binary(other, g.ADD)

    def __radd__(self, other: object) -> Any:
        return self._binary(other, g.ADD, True)

    def __sub__(self, other: object) -> Any:
        return self._binary(other, g.SUB)

    def __rsub__(self, other: object) -> Any:
        return self._binary(other, g.SUB, True)

    def __mul__(self, other: object) -> Any:
        return self._binary(other, g.MUL)

    def __rmul__(self, other: object) -> Any:
        return self._binary(other, g.MUL, True)

    def __truediv__(self, other: object) -> Any:
        return self._binary(other, g.DIV)

    def __rtruediv__(self, other: object) -> Any:
        return self._binary(other, g.DIV, True)

    def __pow__(self, other: object) -> Any:
        return self._binary(other, g.POW)

    def __rpow__(self, other: object) -> Any:
        return self._binary(other, g.POW, True)

    def _unary(self, code: int) -> Expression:
        return Expression(self.graph, self.graph.apply(code, self.node))

    def __neg__(self) -> Expression:
        return self._unary(g.NEG)

    def __pos__(self) -> Expression:
        return self

    def __abs__(self) -> Expression:
        return self._unary(g.ABS)

    def __lt__(self, other: object) -> Any:
        return self._compare(other, g.LESS)

    def __le__(self, other: object) -> Any:
        return self._compare(other, g.LESS_EQUAL)

    def __gt__(self, other: object) -> Any:
        return self._compare(other, g.LESS, True)

    def __ge__(self, other: object) -> Any:
        return self._compare(other, g.LESS_EQUAL, True)

    def __eq__(self, other: object) -> Any:
        return self._compare(other, g.EQUAL)

    def __ne__(self, other: object) -> Any:
        same = self._compare(other, g.EQUAL)
        return same if same is NotImplemented else ~same

    __hash__ = None  # type: ignore[assignment]

    # -------------------------------------------------------------- what NumPy asks of objects

    def conjugate(self) -> Expression:
        return self

    conj = conjugate

    @property
    def real(self) -> Expression:
        return self

    @property
    def imag(self) -> float:
        return 0.0

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        return _ufunc(ufunc, method, inputs, options)

    # -------------------------------------------------------------- what needs a number

    def __bool__(self) -> bool:
        known = self.graph.number(self.node)
        if known is None:
            _refuse(_BRANCH)
        return bool(known)

    def __float__(self) -> float:
        known = self.graph.number(self.node)
        if known is not None:
            return known
        frame = _outside(sys._getframe(1))
        _refuse(_WRITING if frame is not None and _is_writing(frame) else _NUMBER)

    def _needs_a_number(self, *_: object) -> NoReturn:
        _refuse(_NUMBER)

    __int__ = __index__ = __complex__ = __round__ = __trunc__ = __floor__ = _needs_a_number
    __ceil__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __divmod__ = _needs_a_number

    def __repr__(self) -> str:
        return f"<expression {self.node}>"

    def __format__(self, spec: str) -> str:
        return repr(self)


def _is_writing(frame: FrameType) -> bool:
    """Whether the instruction that runs in a frame stores into a subscript."""
    for instruction in dis.get_instructions(frame.f_code):
        if instruction.offset == frame.f_lasti:
            return instruction.opname == "STORE_SUBSCR"
    return False


# ------------------------------------------------------------------ functions of NumPy


def _define() -> None:
    def plain(code: int) -> Callable[[Expression], Expression]:
        return lambda x: x._unary(code)

    for name in _PLAIN:
        _UNARY[name] = plain(CODE[name])
    _UNARY.update(
        negative=lambda x: -x,
        positive=lambda x: x,
        absolute=abs,
        fabs=abs,
        square=lambda x: x * x,
        reciprocal=lambda x: 1.0 / x,
        conjugate=lambda x: x,
        exp2=lambda x: np.exp(x * np.log(2.0)),
        log2=lambda x: np.log(x) / np.log(2.0),
        log10=lambda x: np.log(x) / np.log(10.0),
        log1p=lambda x: np.log(1.0 + x),
        expm1=lambda x: np.exp(x) - 1.0,
        arcsinh=lambda x: np.log(x + np.sqrt(x * x + 1.0)),
        arccosh=lambda x: np.log(x + np.sqrt(x * x - 1.0)),
        arctanh=lambda x: 0.5 * np.log((1.0 + x) / (1.0 - x)),
        cbrt=lambda x: np.sign(x) * abs(x) ** (1.0 / 3.0),
        deg2rad=lambda x: x * (np.pi / 180.0),
        radians=lambda x: x * (np.pi / 180.0),
        rad2deg=lambda x: x * (180.0 / np.pi),
        degrees=lambda x: x * (180.0 / np.pi),
    )
    for name, function in _UNARY.items():
        if not hasattr(Expression, name):
            setattr(Expression, name, function)
    setattr(Expression, "arctan2", lambda y, x: np.arctan2(y, x))  # noqa: B010
    setattr(Expression, "hypot", lambda x, y: np.sqrt(x * x + y * y))  # noqa: B010


def _by_code(code: int) -> Callable[[Any, Any], Any]:
    def apply(x: Any, y: Any) -> Any:
        if isinstance(x, Expression):
            return x._binary(y, code)
        return y._binary(x, code, True)

    return apply


_BINARY: dict[str, Callable[..., Any]] = {
    "clip": lambda x, low, high: np.minimum(np.maximum(x, low), high),
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "divide": lambda x, y: x / y,
    "power": lambda x, y: x**y,
    "float_power": lambda x, y: x**y,
    "arctan2": _by_code(g.ATAN2),
    "minimum": _by_code(g.MIN),
    "maximum": _by_code(g.MAX),
    "fmin": _by_code(g.MIN),
    "fmax": _by_code(g.MAX),
    "hypot": lambda x, y: np.sqrt(x * x + y * y),
    "less": lambda x, y: x < y,
    "less_equal": lambda x, y: x <= y,
    "greater": lambda x, y: x > y,
    "greater_equal": lambda x, y: x >= y,
    "equal": lambda x, y: x == y,
    "not_equal": lambda x, y: x != y,
    "logical_and": lambda x, y: x & y,
    "logical_or": lambda x, y: x | y,
    "bitwise_and": lambda x, y: x & y,
    "bitwise_or": lambda x, y: x | y,
}
_define()


class TracedArray(np.ndarray[Any, np.dtype[np.object_]]):
    """An array of expressions and numbers."""

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        return _ufunc(ufunc, method, inputs, options)

    def __array_function__(
        self, func: Callable[..., Any], types: Any, args: Any, kwargs: Any
    ) -> Any:
        if func is np.clip and len(args) == 3 and not kwargs:
            return _elementwise(_on_numbers(np.clip, _BINARY["clip"]), args)
        if func is np.where:
            _refuse(f"np.where cannot be traced; {_BRANCH}")
        if func.__module__ == "numpy.linalg" and func.__name__ not in ("norm", "cross", "vecdot"):
            _refuse(
                f"np.linalg.{func.__name__} cannot be traced; write the solution out, or make "
                "what it solves for a coordinate with a constraint"
            )
        return super().__array_function__(func, types, args, kwargs)

    def __bool__(self) -> bool:
        if self.size != 1:
            _refuse(_BRANCH)
        return bool(cast(object, self.item()))


def _plain_objects(x: Any) -> NDArray[np.object_]:
    if isinstance(x, (Expression, Condition)):
        made = np.empty((), dtype=object)
        made[()] = x
        return made
    return np.asarray(x, dtype=object).view(np.ndarray)


def _elementwise(function: Callable[..., Any], inputs: Sequence[Any]) -> Any:
    arrays = np.broadcast_arrays(*(_plain_objects(x) for x in inputs))
    out = np.empty(arrays[0].shape, dtype=object)
    for index in np.ndindex(out.shape):
        out[index] = function(*(array[index] for array in arrays))
    return out[()] if out.ndim == 0 else out.view(TracedArray)


def _on_numbers(ufunc: Callable[..., Any], rule: Callable[..., Any]) -> Callable[..., Any]:
    """The rule for expressions, NumPy itself for numbers among them."""

    def apply(*values: Any) -> Any:
        # numbers of NumPy would ask for this rule again, those of Python do not
        values = tuple(x.item() if isinstance(x, np.generic) else x for x in values)
        if any(isinstance(x, (Expression, Condition)) for x in values):
            return rule(*values)
        return ufunc(*values)

    return apply


def _ufunc(ufunc: np.ufunc, method: str, inputs: Sequence[Any], options: dict[str, Any]) -> Any:
    name = ufunc.__name__
    rule: Callable[..., Any] | None = _UNARY.get(name) or _BINARY.get(name)
    out = options.pop("out", None)
    if method == "__call__" and name in ("matmul", "vecdot", "matvec", "vecmat"):
        result = ufunc(*(_plain_objects(x) for x in inputs), **options)
        result = result.view(TracedArray) if isinstance(result, np.ndarray) else result
    elif method == "__call__" and name == "invert":
        result = _elementwise(lambda x: ~x, inputs)
    elif rule is not None and method == "__call__" and options.pop("where", True) is True:
        result = _elementwise(_on_numbers(ufunc, rule), inputs)
    elif rule is not None and method == "outer":
        first, second = (_plain_objects(x) for x in inputs)
        wide = first.reshape(first.shape + (1,) * second.ndim)
        result = _elementwise(_on_numbers(ufunc, rule), [wide, second])
    elif rule is not None and method in ("reduce", "accumulate") and len(inputs) == 1:
        pairwise = np.frompyfunc(_on_numbers(ufunc, rule), 2, 1)
        array = _plain_objects(inputs[0])
        options.pop("dtype", None)
        axis = options.pop("axis", 0)
        if method == "accumulate":
            result = pairwise.accumulate(array, axis, dtype=object)
        else:
            result = _reduced(pairwise, array, axis, name, options)
        result = result.view(TracedArray) if isinstance(result, np.ndarray) else result
    else:
        what = name if method == "__call__" else f"{name}.{method}"
        _refuse(
            f"np.{what} cannot be traced; {', '.join(_PLAIN)}, arctan2, abs, minimum, maximum, "
            "hypot, powers and gm.where can"
        )
    if out is None:
        return result
    target = out[0]
    if not isinstance(target, np.ndarray) or target.dtype != object:
        _refuse(_WRITING)
    target[...] = result
    return target


def _reduced(
    pairwise: Any, array: NDArray[np.object_], axis: Any, name: str, options: dict[str, Any]
) -> Any:
    given = range(array.ndim) if axis is None else np.atleast_1d(axis).tolist()
    axes = sorted((int(a) % max(array.ndim, 1) for a in given), reverse=True)
    keep = options.pop("keepdims", False)
    for a in axes:
        if array.shape[a] == 0:
            array = np.full(
                array.shape[:a] + array.shape[a + 1 :], 1.0 if name == "multiply" else 0.0, object
            )
        else:
            array = pairwise.reduce(array, axis=a)
            array = array if isinstance(array, np.ndarray) else _plain_objects(array)
        if keep:
            array = np.expand_dims(array, a)
    return array[()] if array.ndim == 0 else array


def where(condition: Any, a: Any, b: Any) -> Any:
    """Return a where a condition holds and b elsewhere: the branch that programs can take.

    Works on numbers and arrays as ``np.where`` does, and on what a program is traced with. Both
    a and b are computed; derivatives are those of the one that is taken.

    Parameters
    ----------
    condition : bool or array_like of bool
        A comparison of coordinates, ``q[0] > 0``; combine with ``&``, ``|`` and ``~``.
    a, b : array_like
        What holds there and elsewhere.

    Returns
    -------
    ndarray, float or expression
        The choice, entry by entry.

    Raises
    ------
    TypeError
        The condition is none.

    Examples
    --------
    >>> import gaussmech as gm
    >>> spring = gm.Program(lambda t, q: gm.where(q[0] > 0, -5 * q[0], 0.0), (), 1)
    >>> print(spring(0.0, [2.0]), spring(0.0, [-2.0]))
    -10.0 0.0
    """
    parts = [condition, a, b]
    if not any(_is_traced(x) for x in parts):
        chosen = np.where(condition, a, b)
        return chosen if chosen.ndim else chosen[()]

    def choose(c: Any, x: Any, y: Any) -> Any:
        graph = next(v.graph for v in (c, x, y) if isinstance(v, (Expression, Condition)))
        test = _condition_node(graph, c)
        nodes = (v.node if isinstance(v, Expression) else graph.constant(float(v)) for v in (x, y))
        return Expression(graph, graph.apply(g.WHERE, test, *nodes))

    def either(c: Any, x: Any, y: Any) -> Any:
        traced = any(isinstance(v, (Expression, Condition)) for v in (c, x, y))
        return choose(c, x, y) if traced else (x if c else y)

    return _elementwise(either, parts)


def _is_traced(x: Any) -> bool:
    if isinstance(x, (Expression, Condition, TracedArray)):
        return True
    if isinstance(x, np.ndarray):
        return bool(x.dtype == object)
    return isinstance(x, (list, tuple)) and any(_is_traced(i) for i in x)


# ------------------------------------------------------------------ calling


def as_argument(graph: Graph, shape: tuple[int, ...]) -> Any:
    """A new argument of that shape, as the function sees it."""
    nodes = graph.argument(int(np.prod(shape, dtype=int)))
    return as_array(graph, nodes, shape)


def as_array(graph: Graph, nodes: Sequence[int], shape: tuple[int, ...]) -> Any:
    """Nodes as the function sees them: an expression, or an array of them."""
    if shape == ():
        return Expression(graph, nodes[0])
    array = np.empty(len(nodes), dtype=object)
    for i, node in enumerate(nodes):
        array[i] = Expression(graph, node)
    return array.reshape(shape).view(TracedArray)


def call_traced(
    function: Callable[..., Any], graph: Graph, arguments: Sequence[Any]
) -> tuple[list[int], tuple[int, ...]]:
    """Call a function with traced arguments; return the nodes of its value, and their shape."""
    try:
        value = function(*arguments)
    except UntraceableError as error:
        raise TypeError(f"{describe(function)} cannot be traced: {error}") from None
    except Exception as error:
        raise TypeError(
            f"{describe(function)} cannot be traced: {_where_raised(error)}"
            f"{type(error).__name__}: {error}"
        ) from error
    if value is None:
        raise TypeError(f"{describe(function)} returned None; expected a number or an array")
    try:
        array = _plain_objects(value)
    except ValueError:
        raise TypeError(
            f"{describe(function)} returned entries of different lengths; expected a number or "
            "a rectangular array"
        ) from None
    nodes: list[int] = []
    for index in np.ndindex(array.shape):
        entry = array[index]
        if isinstance(entry, Expression) and entry.graph is graph:
            nodes.append(entry.node)
        elif isinstance(entry, (int, float, np.integer, np.floating)):
            nodes.append(graph.constant(float(entry)))
        else:
            kind = "a comparison" if isinstance(entry, Condition) else type(entry).__name__
            at = f" in entry {list(index)}" if index else ""
            raise TypeError(
                f"{describe(function)} returned {kind}{at}; expected numbers made of its arguments"
            )
    return nodes, array.shape


def _where_raised(error: Exception) -> str:
    """The last line outside of this package and NumPy that an exception came through."""
    trace: TracebackType | None = error.__traceback__
    found = ""
    while trace is not None:
        frame = trace.tb_frame
        if _outside(frame) is frame:
            found = f"in {_place(frame.f_code, trace.tb_lineno)}: "
        trace = trace.tb_next
    return found
