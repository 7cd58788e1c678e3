"""What forces and constraints see while a model is traced: time, state, parameters, points.

One `Scene` belongs to one reading of a model. It hands out expressions for whatever a physical
object is made of, and collects the generalized forces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .bodies import quaternion_rates
from .graph import Graph
from .inputs import as_float
from .program import compare, compile_outputs
from .trace import as_argument, as_array, call_traced, describe

__all__ = ["Opaque", "Parameters", "Point", "Scene", "opaque"]

Float = NDArray[np.float64]


class Parameters(Mapping[str, Any]):
    """Parameters of a model, by name: ``p["m"]`` or ``p.m``."""

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, Any]) -> None:
        object.__setattr__(self, "_values", dict(values))

    def __getitem__(self, name: str) -> Any:
        try:
            return self._values[name]
        except KeyError:
            known = ", ".join(map(repr, self._values)) or "none"
            raise KeyError(f"no parameter has the name {name!r}; there are {known}") from None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self[name]
        except KeyError as error:
            raise AttributeError(error.args[0]) from None

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("parameters are changed on the System, not inside a function")

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"Parameters({self._values!r})"


class Opaque:
    """A function that stays Python: see `opaque`."""

    __slots__ = ("function",)

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __repr__(self) -> str:
        return f"opaque({describe(self.function)})"


def opaque(f: Callable[..., Any]) -> Opaque:
    """Let a force stay a Python function: a table, a controller, a call of other code.

    It is called with numbers, once for every state, and is not differentiated: allowed for
    forces only.

    Parameters
    ----------
    f : callable
        The force, f(t, q, qd), with the parameters last where the system has some.

    Returns
    -------
    Opaque
        The function, marked.

    Raises
    ------
    TypeError
        `f` is no function.

    Examples
    --------
    >>> import numpy as np
    >>> import gaussmech as gm
    >>> table = gm.opaque(lambda t, q, qd: np.interp(q, [0, 1], [0, 5]))
    >>> s = gm.System(coordinates=["x"], q=[0.5], qd=[0], mass_matrix=[[2.0]], force=table)
    >>> print(s.solve().qdd)
    [1.25]
    """
    if not callable(f):
        raise TypeError(f"f is a {type(f).__name__}; expected a function")
    return Opaque(f)


class Point(Protocol):
    """Something that has a place: a particle, a point of the ground."""

    @property
    def name(self) -> str: ...

    @property
    def dimension(self) -> int: ...

    @property
    def body(self) -> Any: ...

    def position(self, scene: Scene) -> Any:
        """Its place as expressions, (dimension,)."""


class Scene:
    """Arguments of a model while it is read, and what is pushed onto its coordinates."""

    def __init__(
        self,
        n: int,
        parameters: Mapping[str, Any],
        state: tuple[float, Float, Float],
    ) -> None:
        self.graph = Graph()
        self.n = n
        self.t = as_argument(self.graph, ())
        self.q = as_argument(self.graph, (n,))
        self.qd = as_argument(self.graph, (n,))
        # numbers that differ from system to system, and what opaque functions return
        self._numbers: list[Any] = []
        self._opaque: list[tuple[Opaque, int]] = []
        self.graph.argument(0)
        self.graph.argument(0)
        self._p_index, self._x_index = 3, 4
        self.has_parameters = bool(parameters)
        self._plain: dict[str, Any] = {}
        self.parameters = Parameters({k: self._parameter(k, v) for k, v in parameters.items()})
        self.Q: list[int] = [self.graph.constant(0.0)] * n
        self.state = state
        # total multipliers, where a law of friction asks for them
        self.multipliers: Any = None
        self.multipliers_at: slice | None = None

    # -------------------------------------------------------------- numbers

    def _parameter(self, name: str, value: Any) -> Any:
        array = as_float(f"parameters[{name!r}]", value)
        self._plain[name] = float(array.ravel()[0]) if array.size else 1.0
        return as_array(self.graph, [self._hidden(array)], ())

    def _hidden(self, value: Float) -> int:
        """The node of a number that is given at run time, one for each system."""
        self._numbers.append(value)
        return self.graph.extend(self._p_index)

    def number(self, name: str, value: Any, shape: tuple[int, ...] = ()) -> Any:
        """A number or vector as the model sees it: constants, or one value for each system."""
        array = as_float(name, value)
        if array.ndim < len(shape) or tuple(array.shape[array.ndim - len(shape) :]) != shape:
            wanted = "a number" if shape == () else f"shape {shape}"
            raise ValueError(f"{name} has shape {array.shape}; expected {wanted}")
        if array.ndim == len(shape):
            nodes = [self.graph.constant(float(x)) for x in array.ravel()]
        else:
            flat = array.reshape(*array.shape[: array.ndim - len(shape)], -1)
            nodes = [self._hidden(flat[..., k]) for k in range(flat.shape[-1])]
        return as_array(self.graph, nodes, shape)

    def values(self) -> Float:
        """The numbers that are given at run time: (..., count), batch dimensions first."""
        if not self._numbers:
            return np.zeros(0)
        return np.stack(np.broadcast_arrays(*self._numbers), axis=-1).astype(float)

    # -------------------------------------------------------------- functions of the user

    def call(
        self,
        f: Any,
        name: str,
        arguments: str,
        shape: tuple[int | None, ...] | None = None,
        point: Any = None,
        coordinate: int | None = None,
        extra: Any = None,
    ) -> Any:
        """What a function of the user returns: arguments are letters out of t, q, v, r and u.

        r is the place of `point`, u one coordinate. Checked against the function on numbers, at
        the start and near it. A shape has None where any size will do; a number stands for a
        vector of one.
        """
        given = {"t": self.t, "q": self.q, "v": self.qd}
        if point is not None:
            given["r"] = point.position(self)
        if coordinate is not None:
            given["u"] = self.q[coordinate]
        if extra is not None:
            given["m"] = extra
        values: list[Any] = [_fresh(given[letter]) for letter in arguments]
        if self.has_parameters:
            values.append(self.parameters)
        nodes, found = call_traced(f, self.graph, values)
        if shape is not None and len(shape) == 1 and found == ():
            found = (1,)
        fits = shape is None or (
            len(found) == len(shape)
            and all(n is None or n == m for n, m in zip(shape, found, strict=True))
        )
        if not fits:
            assert shape is not None
            wanted = ", ".join("any" if n is None else str(n) for n in shape)
            raise ValueError(f"{name}: {describe(f)} returns shape {found}; expected ({wanted})")
        self._compare(f, name, arguments, nodes, found, point, coordinate)
        return as_array(self.graph, nodes, found)

    def _compare(
        self,
        f: Any,
        name: str,
        arguments: str,
        nodes: Sequence[int],
        shape: tuple[int, ...],
        point: Any,
        coordinate: int | None,
    ) -> None:
        graph = self.graph
        sizes = [() if i == 0 else (n,) for i, n in enumerate(graph.arguments)]
        compiled = compile_outputs(graph, sizes, [(nodes, shape)])
        numbers = np.array([float(np.ravel(v)[0]) if np.size(v) else 1.0 for v in self._numbers])
        external = np.linspace(0.5, 1.5, graph.arguments[self._x_index])
        states = []
        for seed in (0, 1):
            rng = np.random.default_rng(seed)
            t, q, v = self.state
            far = 0.1 * (1 + np.abs(q)) * rng.uniform(-1, 1, self.n) * seed
            fast = rng.uniform(-1, 1, self.n) * (1 + np.abs(v)) * seed
            states.append((t + 0.37 * seed, q + far, v + fast))

        def plain(*state: Any) -> Any:
            by_letter = dict(zip("tqv", state, strict=True))
            if point is not None:
                by_letter["r"] = point.start(state[1])
            if coordinate is not None:
                by_letter["u"] = float(state[1][coordinate])
            if self.multipliers_at is not None:
                by_letter["m"] = external[self.multipliers_at]
            values = [by_letter[letter] for letter in arguments]
            if self.has_parameters:
                values.append(Parameters(self._plain))
            result = np.asarray(f(*values), dtype=float)
            return result.reshape(shape) if result.shape == () and shape == (1,) else result

        def traced(*state: Any) -> Any:
            names = ("t", "q", "qd", "p", "x")
            return compiled(names, *state, numbers, external)[0]

        compare(plain, (), traced, f"{name}: {describe(f)}", states)

    def vector(self, f: Any, name: str, arguments: str, size: int) -> Any:
        """A vector of the model: an array, a function of the user, or one that stays Python."""
        if isinstance(f, Opaque):
            return self.opaque(f, size)
        if callable(f):
            return self.call(f, name, arguments, (size,))
        return self.number(name, f, (size,))

    def opaque(self, f: Opaque, size: int) -> Any:
        """The value of a function that stays Python, given at run time."""
        self._opaque.append((f, size))
        return as_array(
            self.graph, [self.graph.extend(self._x_index) for _ in range(size)], (size,)
        )

    def ask_multipliers(self, m: int) -> Any:
        """The total multipliers as expressions: they are solved for together with the motion."""
        if self.multipliers is None:
            first = self.graph.arguments[self._x_index]
            nodes = [self.graph.extend(self._x_index) for _ in range(m)]
            self.multipliers = as_array(self.graph, nodes, (m,))
            self.multipliers_at = slice(first, first + m)
        return self.multipliers

    # -------------------------------------------------------------- forces

    def push(self, point: Point, force: Any) -> None:
        """Let a force act on a point: the generalized force is Jᵀ F, J = ∂r/∂q."""
        place = point.position(self)
        inputs = [e.node for e in self.q]
        for r, component in zip(place, force, strict=True):
            node = getattr(component, "node", None)
            node = self.graph.constant(float(component)) if node is None else node
            for i, slope in self.graph.gradient(r.node, inputs).items():
                k = inputs.index(i)
                self.Q[k] = self.graph.add(self.Q[k], self.graph.mul(slope, node))

    def add_force(self, force: Sequence[Any]) -> None:
        """Add generalized forces, one for each coordinate."""
        for k, component in enumerate(force):
            self.Q[k] = self.graph.add(self.Q[k], component.node)

    def velocity(self, point: Point) -> Any:
        """The velocity of a point: ∂r/∂t + ∂r/∂q q̇."""
        nodes = self.graph.rate([e.node for e in point.position(self)], self.flow())
        return as_array(self.graph, nodes, (len(nodes),))

    def omega(self, body: Any, frame: str = "world") -> Any:
        """The angular velocity of a rigid body, 2 G(e) ė in its own frame."""
        own = quaternion_rates(self.q[body.quaternion]) @ self.qd[body.quaternion] * 2.0
        return own if frame == "body" else body.rotation(self) @ own

    def turn(self, body: Any, moment: Any) -> None:
        """Let a moment act on a body: in the plane a number, in space a vector of space."""
        graph = self.graph
        if body.size == 3:
            k = body.first + 2
            self.Q[k] = graph.add(self.Q[k], moment.node)
            return
        own = body.rotation(self).T @ moment
        for k, component in enumerate((quaternion_rates(self.q[body.quaternion]).T @ own) * 2.0):
            place = body.first + 3 + k
            self.Q[place] = graph.add(self.Q[place], component.node)

    def flow(self) -> dict[int, int]:
        """The rates of time and coordinates: 1 and q̇."""
        rates = {e.node: v.node for e, v in zip(self.q, self.qd, strict=True)}
        return {self.t.node: self.graph.constant(1.0), **rates}


def _fresh(x: Any) -> Any:
    """A function may change its argument."""
    return x.copy() if isinstance(x, np.ndarray) else x
