"""Programs: a plain NumPy function and its exact derivatives, evaluated in C.

A function is read once (`trace`), becomes a graph (`graph`) that is differentiated exactly, and is
compiled to straight-line code for registers, which `csrc/core/gm_program.c` carries out for one
state or a million. This module knows no mechanics.
"""

from __future__ import annotations

import inspect
import struct
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _kernel
from .graph import CODE, CONSTANT, INPUT, OPERATIONS, Graph
from .inputs import as_float
from .trace import as_argument, call_traced, describe

__all__ = ["Compiled", "Program", "compile_outputs"]

Float = NDArray[np.float64]
Shape = tuple[int, ...]
STORE = CODE["store"]


# ------------------------------------------------------------------ compiling


class Compiled:
    """Outputs of a graph as code: what the C core runs."""

    __slots__ = ("code", "constants", "fixed", "kernel", "outputs", "registers", "shapes")

    def __init__(
        self,
        code: list[tuple[int, int, int, int, int]],
        constants: list[float],
        registers: int,
        shapes: Sequence[Shape],
        outputs: Sequence[Shape],
        sparse: Sequence[bool],
        fixed: Sequence[Float | None] | None = None,
    ) -> None:
        # outputs that are the same for all states
        self.fixed = [None] * len(outputs) if fixed is None else list(fixed)
        self.code, self.constants, self.registers = code, constants, registers
        self.shapes, self.outputs = list(shapes), list(outputs)
        flat = [size for shape in [*shapes, *outputs] for size in (*shape, 1, 1)[:2]]
        self.kernel = _kernel.Program(
            struct.pack(f"={5 * len(code)}i", *(x for line in code for x in line)),
            struct.pack(f"={len(constants)}d", *constants),
            registers,
            len(shapes),
            len(outputs),
            struct.pack(f"={len(flat)}i", *flat),
            bytes(len(shape) for shape in [*shapes, *outputs]),
            bytes(sparse),
            tuple(None if x is None else x.tobytes() for x in self.fixed),
        )

    def __len__(self) -> int:
        return len(self.code)

    def __call__(self, names: Sequence[str], *arguments: Any) -> tuple[Any, ...]:
        """Evaluate; arguments are converted where that is needed."""
        raw = self.kernel.evaluate(*arguments)
        if raw is None:
            given = convert_arguments(names, self.shapes, arguments)
            raw = self.kernel.evaluate(*given)
            assert raw is not None, "converted arguments are what the core takes"
        if all(x is None for x in self.fixed):
            return raw
        varying = [(a, len(s)) for a, s in zip(raw, self.outputs, strict=True) if a is not None]
        if varying:
            batch = varying[0][0].shape[: varying[0][0].ndim - varying[0][1]]
        else:
            shapes = zip(arguments, self.shapes, strict=True)
            batch = np.broadcast_shapes(*(np.shape(a)[: np.ndim(a) - len(s)] for a, s in shapes))
        return tuple(
            a if x is None else np.broadcast_to(x, batch + x.shape) if batch else x.copy()
            for a, x in zip(raw, self.fixed, strict=True)
        )


def convert_arguments(
    names: Sequence[str], shapes: Sequence[Shape], arguments: Sequence[Any]
) -> list[Float]:
    """Arguments as float64 arrays whose core shapes fit and whose batch shapes broadcast."""
    given = []
    for name, shape, value in zip(names, shapes, arguments, strict=True):
        array = as_float(name, value)
        core = array.shape[array.ndim - len(shape) :] if array.ndim >= len(shape) else None
        if core != shape:
            wanted = "a number" if shape == () else f"(..., {', '.join(map(str, shape))})"
            raise ValueError(f"{name} has shape {array.shape}; expected {wanted}")
        given.append(array)
    batches = [a.shape[: a.ndim - len(s)] for a, s in zip(given, shapes, strict=True)]
    try:
        np.broadcast_shapes(*batches)
    except ValueError:
        listed = ", ".join(f"{n} {b}" for n, b in zip(names, batches, strict=True))
        raise ValueError(
            f"batch dimensions do not broadcast: {listed}; expected equal sizes or 1, aligned on "
            "the right"
        ) from None
    return given


def compile_outputs(
    graph: Graph, shapes: Sequence[Shape], outputs: Sequence[tuple[Sequence[int], Shape]]
) -> Compiled:
    """Compile nodes of a graph, given with the shape of each output, to code.

    Registers are used again as soon as their last reader is done; what is stored is stored at
    once. Entries that are zero by structure are not stored.
    """
    wanted: dict[int, list[tuple[int, int, int]]] = {}
    sparse: list[bool] = []
    fixed: list[Float | None] = []
    for k, (nodes, shape) in enumerate(outputs):
        numbers = {graph.number(node) for node in set(nodes)}
        if None not in numbers:
            fixed.append(np.array([graph.values[node] for node in nodes]).reshape(shape))
            sparse.append(False)
            continue
        fixed.append(None)
        columns = shape[1] if len(shape) == 2 else 1
        zero = graph.constant(0.0)
        sparse.append(zero in nodes)
        for i, node in enumerate(nodes):
            if node != zero:
                wanted.setdefault(node, []).append((k, i // columns, i % columns))
    order = graph.ancestors(wanted)
    last: dict[int, int] = {}
    for step, node in enumerate(order):
        for operand in graph.nodes[node][1:]:
            last[operand] = step
    code: list[tuple[int, int, int, int, int]] = []
    constants: list[float] = []
    register: dict[int, int] = {}
    free: list[int] = []
    used = 0
    for step, node in enumerate(order):
        operation, *operands = graph.nodes[node]
        read = [register[i] for i in operands]
        # operands that are read here for the last time leave their registers to the result
        free.extend(register[i] for i in set(operands) if last[i] == step)
        if free:
            mine = free.pop()
        else:
            mine, used = used, used + 1
        register[node] = mine
        if operation == CONSTANT:
            code.append((CONSTANT, mine, len(constants), 0, 0))
            constants.append(graph.values[node])
        elif operation == INPUT:
            argument, place = graph.inputs[node]
            shape = shapes[argument]
            columns = shape[1] if len(shape) == 2 else 1
            code.append((INPUT, mine, argument, place // columns, place % columns))
        else:
            a, b, c = (*read, 0, 0)[:3]
            code.append((operation, mine, a, b, c))
        for k, row, column in wanted.get(node, ()):
            code.append((STORE, k, mine, row, column))
        if node not in last:
            free.append(mine)
    return Compiled(code, constants, used, shapes, [shape for _, shape in outputs], sparse, fixed)


# ------------------------------------------------------------------ the public class


class Program:
    """A plain NumPy function, its exact derivatives, and both in C.

    Parameters
    ----------
    f : callable
        A function of numbers and arrays, written with NumPy. It is called once with arguments
        that record what it does, and twice with numbers, to see that the record is complete.
    *shapes : int or tuple of int
        Shape of each argument: ``()`` for a number, ``n`` or ``(n,)`` for a vector,
        ``(m, n)`` for a matrix.

    Attributes
    ----------
    names : tuple of str
        Names of the arguments, as `f` has them.
    shapes : tuple of tuple
        Their shapes.
    shape : tuple of int
        Shape of the value.
    nonzeros : ndarray of bool
        False where the value is zero whatever the arguments: the sparsity pattern.

    Raises
    ------
    TypeError
        `f` does what cannot be recorded: a branch on an argument, a function of numbers such as
        ``math.sin``, writing into ``np.zeros``, an interpolation table. The message names the
        function and the line, and says what to write instead.
    ValueError
        `f` depends on something beside its arguments, so that its record is not the function.

    Notes
    -----
    Derivatives are programs again: backwards for Jacobians, forwards for rates, both exact:
    Griewank and Walther, Evaluating Derivatives (2008), chapters 3 and 4. Every state gets the
    same bits alone and in any place of a batch.

    Examples
    --------
    >>> import numpy as np
    >>> import gaussmech as gm
    >>> phi = gm.Program(lambda t, q: q[0]**2 + q[1]**2 - np.exp(t), (), 2)
    >>> print(phi(0.0, [2.0, 1.0]))
    4.0
    >>> print(phi.jacobian("q")(0.0, [[2.0, 1.0], [0.0, 3.0]]))
    [[4. 2.]
     [0. 6.]]
    >>> rate = phi.rate((1.0, "qd"))
    >>> print(rate(0.0, [2.0, 1.0], [1.0, 1.0]))
    5.0
    """

    __slots__ = ("_compiled", "_graph", "_label", "_nodes", "names", "shape", "shapes")

    names: tuple[str, ...]
    shapes: tuple[Shape, ...]
    shape: Shape

    def __init__(self, f: Callable[..., Any], *shapes: int | Sequence[int]) -> None:
        if not callable(f):
            raise TypeError(f"f is a {type(f).__name__}; expected a function")
        fixed = tuple(_as_shape(shape) for shape in shapes)
        graph = Graph()
        arguments = [as_argument(graph, shape) for shape in fixed]
        nodes, shape = call_traced(f, graph, arguments)
        if len(shape) > 2:
            raise ValueError(
                f"{describe(f)} returned an array of shape {shape}; expected two dimensions at most"
            )
        self._set(graph, nodes, shape, fixed, _argument_names(f, len(fixed)), describe(f))
        compare(f, fixed, lambda *values: self(*values), describe(f))

    def _set(
        self,
        graph: Graph,
        nodes: Sequence[int],
        shape: Shape,
        shapes: tuple[Shape, ...],
        names: tuple[str, ...],
        label: str,
    ) -> None:
        self._graph, self._nodes, self.shape = graph, list(nodes), shape
        self.shapes, self.names, self._label = shapes, names, label
        self._compiled: Compiled | None = None

    @classmethod
    def _of(cls, *parts: Any) -> Program:
        made = cls.__new__(cls)
        made._set(*parts)
        return made

    # -------------------------------------------------------------- evaluating

    def _code(self) -> Compiled:
        if self._compiled is None:
            flat = self.shape if len(self.shape) <= 2 else (len(self._nodes),)
            self._compiled = compile_outputs(self._graph, self.shapes, [(self._nodes, flat)])
        return self._compiled

    def __call__(self, *arguments: ArrayLike) -> Any:
        """Evaluate for one state or a batch: a number or array, batch dimensions first."""
        if len(arguments) != len(self.shapes):
            raise TypeError(
                f"the program takes {len(self.shapes)} arguments ({', '.join(self.names)}); "
                f"{len(arguments)} were given"
            )
        value = self._code()(self.names, *arguments)[0]
        if len(self.shape) > 2:
            value = value.reshape(*value.shape[:-1], *self.shape)
        return float(value) if value.ndim == 0 else value

    def __len__(self) -> int:
        """The number of instructions."""
        return len(self._code())

    @property
    def nonzeros(self) -> NDArray[np.bool_]:
        """Entries of the value that are not zero by structure."""
        zero = [self._graph.is_zero(node) for node in self._nodes]
        return ~np.array(zero, dtype=bool).reshape(self.shape)

    # -------------------------------------------------------------- derivatives

    def jacobian(self, argument: int | str) -> Program:
        """Return the derivative by one argument: a program of the same arguments.

        Parameters
        ----------
        argument : int or str
            Which argument, by position or by name.

        Returns
        -------
        Program
            Its value has the shape of the value followed by that of the argument.

        Raises
        ------
        ValueError
            There is no such argument.
        """
        which = self._which(argument)
        inputs = self._input_nodes(which)
        zero = self._graph.constant(0.0)
        nodes: list[int] = []
        for node in self._nodes:
            found = self._graph.gradient(node, inputs)
            nodes.extend(found.get(i, zero) for i in inputs)
        shape = self.shape + self.shapes[which]
        label = f"derivative by {self.names[which]} of {self._label}"
        return self._of(self._graph, nodes, shape, self.shapes, self.names, label)

    def gradient(self, argument: int | str) -> Program:
        """Return the derivative of a scalar program by one argument, of the argument's shape.

        Parameters
        ----------
        argument : int or str
            Which argument, by position or by name.

        Returns
        -------
        Program
            The gradient.

        Raises
        ------
        ValueError
            The value is no number, or there is no such argument.
        """
        if self.shape != ():
            raise ValueError(
                f"the value has shape {self.shape}; expected a number: use jacobian(...)"
            )
        return self.jacobian(argument)

    def rate(self, directions: Sequence[float | str | ArrayLike | None]) -> Program:
        """Return the derivative along directions of the arguments: d/dε f(x + ε x').

        Parameters
        ----------
        directions : sequence
            One for each argument: None where it does not change, a number or an array of its
            shape, or the name of an argument that has the rate; a new name is a new argument at
            the end. ``phi.rate((1.0, "qd"))`` is the time derivative of phi(t, q), a program of
            (t, q, qd).

        Returns
        -------
        Program
            Its value has the shape of this one.

        Raises
        ------
        ValueError
            There is not one direction for each argument, or a shape does not fit.

        Examples
        --------
        >>> import gaussmech as gm
        >>> phi = gm.Program(lambda t, q: q[0]*q[1], (), 2)
        >>> twice = phi.rate((1.0, "qd")).rate((1.0, "qd", None))
        >>> print(twice(0.0, [0.0, 0.0], [2.0, 3.0]))
        12.0
        """
        directions = list(directions)
        if len(directions) != len(self.shapes):
            raise ValueError(
                f"{len(directions)} directions; expected {len(self.shapes)}, one for each of the "
                f"arguments {', '.join(self.names)} (None where it does not change)"
            )
        graph = self._graph
        names, shapes = list(self.names), list(self.shapes)
        tangent: dict[int, int] = {}
        # arguments of the graph belong to all programs that share it
        graph = _copy_if_taken(self, directions)
        for which, direction in enumerate(directions):
            if direction is None:
                continue
            shape = self.shapes[which]
            inputs = _argument_nodes(graph, which)
            if isinstance(direction, str):
                if direction not in names:
                    names.append(direction)
                    shapes.append(shape)
                    graph.argument(len(inputs))
                source = names.index(direction)
                if shapes[source] != shape:
                    raise ValueError(
                        f"the direction of {self.names[which]} is {direction!r} of shape "
                        f"{shapes[source]}; expected {shape}"
                    )
                rates = _argument_nodes(graph, source)
            else:
                values = as_float(f"directions[{which}]", direction)
                if values.shape not in ((), shape):
                    raise ValueError(
                        f"directions[{which}] has shape {values.shape}; expected {shape}"
                    )
                spread = np.broadcast_to(values, shape).ravel()
                rates = [graph.constant(float(x)) for x in spread]
            tangent.update(
                {i: r for i, r in zip(inputs, rates, strict=True) if not graph.is_zero(r)}
            )
        nodes = graph.rate(self._nodes, tangent)
        label = f"rate of {self._label}"
        return self._of(graph, nodes, self.shape, tuple(shapes), tuple(names), label)

    def sizes(self) -> Program:
        """Return how large the terms are that are added up in each entry of the value.

        ε times that bounds the rounding error of the value to first order, up to the number of
        operations. A value that is small beside it is zero but for rounding: sin(π), 1 - cos(0).

        Returns
        -------
        Program
            Of the same arguments and shape.
        """
        nodes = self._graph.sizes(self._nodes)
        label = f"sizes of terms of {self._label}"
        return self._of(self._graph, nodes, self.shape, self.shapes, self.names, label)

    def _input_nodes(self, which: int) -> list[int]:
        return _argument_nodes(self._graph, which)

    def _which(self, argument: int | str) -> int:
        if isinstance(argument, str) and argument in self.names:
            return self.names.index(argument)
        whole = isinstance(argument, (int, np.integer)) and not isinstance(argument, bool)
        if whole and -len(self.shapes) <= int(argument) < len(self.shapes):
            return int(argument) % len(self.shapes)
        known = ", ".join(map(repr, self.names))
        raise ValueError(f"argument is {argument!r}; expected a position or one of {known}")

    # -------------------------------------------------------------- printing, pickling

    def __repr__(self) -> str:
        lines = _formulas(self, latex=False)
        inputs = ", ".join(f"{n} {s}" for n, s in zip(self.names, self.shapes, strict=True))
        title = f"Program of {self._label}: {inputs} -> {self.shape}, {len(self)} instructions"
        return "\n".join([title, *(f"  {name} = {text}" for name, text in lines)])

    def _repr_latex_(self) -> str:
        lines = [rf"{name} &= {text}" for name, text in _formulas(self, latex=True)]
        return "$\\displaystyle \\begin{aligned}" + r" \\ ".join(lines) + "\\end{aligned}$"

    def __reduce__(self) -> tuple[Any, ...]:
        # only what this program needs, numbered anew
        keep = self._graph.ancestors(self._nodes)
        place = {node: i for i, node in enumerate(keep)}
        table: list[tuple[Any, ...]] = []
        for node in keep:
            code, *operands = self._graph.nodes[node]
            if code == INPUT:
                table.append((code, *self._graph.inputs[node]))
            elif code == CONSTANT:
                table.append((code, self._graph.values[node]))
            else:
                table.append((code, *(place[i] for i in operands)))
        nodes = [place[i] for i in self._nodes]
        return _restore, (table, nodes, self.shape, self.shapes, self.names, self._label)


def _argument_nodes(graph: Graph, which: int) -> list[int]:
    found = sorted((place, node) for node, (index, place) in graph.inputs.items() if index == which)
    return [node for _, node in found]


def _copy_if_taken(program: Program, directions: Sequence[Any]) -> Graph:
    """The graph of a program, or a copy where another program has added arguments to it."""
    graph = program._graph
    if len(graph.arguments) == len(program.shapes):
        return graph
    copy = Graph()
    copy.nodes, copy.values = list(graph.nodes), list(graph.values)
    copy._known = dict(graph._known)
    taken = len(program.shapes)
    copy.arguments = graph.arguments[:taken]
    copy.inputs = {node: at for node, at in graph.inputs.items() if at[0] < taken}
    # inputs of the others stay as nodes without a name that nothing here refers to
    for key in [k for k in copy._known if k[0] == INPUT and cast(int, k[1]) >= taken]:
        del copy._known[key]
    return copy


def _restore(
    table: list[tuple[Any, ...]],
    nodes: list[int],
    shape: Shape,
    shapes: tuple[Shape, ...],
    names: tuple[str, ...],
    label: str,
) -> Program:
    graph = Graph()
    arguments = [graph.argument(int(np.prod(s, dtype=int))) for s in shapes]
    made: list[int] = []
    for code, *rest in table:
        if code == INPUT:
            made.append(arguments[rest[0]][rest[1]])
        elif code == CONSTANT:
            made.append(graph.constant(rest[0]))
        else:
            made.append(graph.apply(code, *(made[i] for i in rest)))
    return Program._of(graph, [made[i] for i in nodes], shape, shapes, names, label)


def _as_shape(shape: int | Sequence[int]) -> Shape:
    try:
        fixed = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
        if all(isinstance(n, (int, np.integer)) and n >= 0 for n in fixed) and len(fixed) <= 2:
            return tuple(int(n) for n in fixed)
    except TypeError:
        pass
    raise ValueError(f"a shape is {shape!r}; expected (), a number, (n,) or (m, n)")


def _argument_names(f: Callable[..., Any], count: int) -> tuple[str, ...]:
    try:
        parameters = list(inspect.signature(f).parameters.values())
        names = [
            p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        ]
    except (TypeError, ValueError):
        names = []
    return tuple((names + [f"x{i}" for i in range(len(names), count)])[:count])


def probe_values(shapes: Sequence[Shape], seed: int) -> list[Any]:
    """Numbers to call a function with: between 0.1 and 1, none of them special."""
    rng = np.random.default_rng(seed)
    values = [rng.uniform(0.1, 1.0, shape) for shape in shapes]
    return [float(v) if v.ndim == 0 else v for v in values]


def compare(
    f: Callable[..., Any],
    shapes: Sequence[Shape],
    traced: Callable[..., Any],
    label: str,
    states: Sequence[Sequence[Any]] | None = None,
) -> None:
    """ValueError unless a function and its record have the same value at two states."""
    if states is None:
        states = [probe_values(shapes, seed) for seed in (1, 2)]
    for values in states:
        copies = [np.array(v) if isinstance(v, np.ndarray) else v for v in values]
        try:
            with np.errstate(all="ignore"):
                plain = np.asarray(f(*copies), dtype=float)
        except Exception:  # the state may be outside of what f is made for
            continue
        found = np.asarray(traced(*values))
        if plain.shape != found.shape:
            raise ValueError(
                f"{label} returns shape {plain.shape} for numbers but {found.shape} when traced; "
                "expected a function of its arguments alone"
            )
        with np.errstate(all="ignore"):
            size = np.maximum(np.abs(plain), np.abs(found))
            differ = ~(np.abs(plain - found) <= 1e-8 * np.maximum(size, 1e-3))
            differ &= ~((plain == found) | (np.isnan(plain) & np.isnan(found)))
            # what is not finite on one side is outside of what f is made for
            differ &= np.isfinite(plain) & np.isfinite(found)
        if differ.any():
            index = tuple(int(i) for i in np.argwhere(differ)[0])
            at = f" in entry {list(index)}" if index else ""
            raise ValueError(
                f"{label} gives {plain[index]:.10g}{at} for numbers but {found[index]:.10g} when "
                "traced: it depends on something beside its arguments (a random number, a counter, "
                "a type of its arguments, a global that changes); make that an argument"
            )


# ------------------------------------------------------------------ formulas


def _formulas(program: Program, latex: bool) -> list[tuple[str, str]]:
    """Names and formulas of what is used more than once, then of the entries of the value."""
    graph = program._graph
    order = graph.ancestors(program._nodes)
    uses: dict[int, int] = {}
    for node in order:
        for operand in graph.nodes[node][1:]:
            uses[operand] = uses.get(operand, 0) + 1
    text: dict[int, tuple[str, int]] = {}  # formula, and how tightly it binds
    lines: list[tuple[str, str]] = []
    for node in order:
        code, *operands = graph.nodes[node]
        formula = _formula(program, node, [text[i] for i in operands], latex)
        if uses.get(node, 0) > 1 and code not in (CONSTANT, INPUT):
            name = f"x_{{{len(lines)}}}" if latex else f"x{len(lines)}"
            lines.append((name, formula[0]))
            formula = (name, 9)
        text[node] = formula
    for index, node in zip(np.ndindex(program.shape), program._nodes, strict=True):
        if graph.is_zero(node) and program.shape:
            continue
        place = ", ".join(map(str, index))
        name = (
            ("f" if not index else f"f_{{{place}}}") if latex else f"f[{place}]" if index else "f"
        )
        lines.append((name, text[node][0]))
    return lines


_BINDS = {"add": 1, "sub": 1, "mul": 2, "div": 2, "neg": 2, "pow": 3,
          "less": 0, "less_equal": 0, "equal": 0}  # fmt: skip


def _formula(
    program: Program, node: int, operands: list[tuple[str, int]], latex: bool
) -> tuple[str, int]:
    graph = program._graph
    code = graph.nodes[node][0]
    if code == CONSTANT:
        value = graph.values[node]
        shown = f"{value:.17g}"
        short = f"{value:.6g}"
        shown = short if float(short) == value or latex else repr(value)
        return shown, 9 if value >= 0 else 2
    if code == INPUT:
        argument, place = graph.inputs[node]
        name, shape = program.names[argument], program.shapes[argument]
        if shape == ():
            return name, 9
        index = ", ".join(str(int(i)) for i in np.unravel_index(place, shape))
        if latex:
            letter = {"qd": r"\dot q", "qdd": r"\ddot q"}.get(name, name)
            return f"{{{letter}}}_{{{index}}}", 9
        return f"{name}[{index}]", 9
    operation = OPERATIONS[code]
    own = _BINDS.get(operation.name, 9)
    parts = []
    for k, (formula, binds) in enumerate(operands):
        # the right side of - and / has to bind tighter
        need = own + (1 if operation.name in ("sub", "div", "pow") and k == 1 else 0)
        need = own + 1 if operation.name in ("pow", "neg") else need
        inner = latex and (operation.name == "div" or (operation.name == "pow" and k == 1))
        if own < 9 and binds < need and not inner:
            formula = rf"\left({formula}\right)" if latex else f"({formula})"
        parts.append(formula)
    return (operation.latex if latex else operation.text).format(*parts), own
