"""Reading a system: its functions are traced and compiled to one program, faults collected."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .bodies import Body
from .constraints import Constraint, Prescribed
from .friction import Friction, sliding
from .graph import ABS, MAX, SQRT, Graph
from .inputs import as_float
from .program import Compiled, compile_outputs
from .results import listed
from .scene import Opaque, Scene
from .trace import Expression, as_array

if TYPE_CHECKING:
    from .system import System

__all__ = ["NAMES", "Model", "read"]

Float = NDArray[np.float64]
EPS = float(np.finfo(np.float64).eps)
# b of a row is known to that many ε of the terms that are added up in it
B_ERROR = 16.0
# arguments of the programs of a model: x is what functions in Python return
NAMES = ("t", "q", "qd", "p", "x")


@dataclass(slots=True)
class Model:
    """A system as it was read: programs and where things are."""

    n: int
    rows: dict[str, slice]  # of each constraint
    row_names: list[str]
    compiled: Compiled  # M, Q, A, b, C, row_scale, b_error, off
    state: Compiled  # residual, its size, its rate, the size of the rate
    holonomic: NDArray[np.bool_]  # rows that have φ
    velocity: NDArray[np.bool_]  # rows that have G
    parameters: Float
    opaque: list[tuple[Opaque, int]]
    has_C: bool
    names: tuple[list[str], list[str]]
    # where the total multipliers stand in x, and the sliding speeds, if friction asks for them
    multipliers: slice | None
    slips: tuple[list[str], Compiled] | None
    start_ok: bool  # the start state was found to satisfy the constraints
    bodies: tuple[Body, ...]


def read(s: System) -> Model:
    """The system as programs; all faults are collected and raised at once."""
    if s._model is not None:
        return s._model
    faults: list[str] = []
    n = s._q.shape[-1]
    if n == 0:
        raise ValueError("the system has no coordinates; add a particle, or name coordinates")
    if s._coordinates and s._mass is None:
        faults.append(
            "mass_matrix is missing for the coordinates "
            f"{listed([repr(c) for c in s._coordinates])}"
        )
    names = s.coordinate_names
    for constraint in s._constraints:
        if isinstance(constraint, Prescribed):
            constraint.index = _index(s, constraint, names, faults)
    try:
        first = np.reshape(np.broadcast_to(s._q, np.shape(s._q)), (-1, n))
        firstd = np.reshape(s._qd, (-1, n))
    except ValueError:
        first = firstd = np.zeros((0, n))
    start = first[0] if len(first) else np.zeros(n)
    speed = firstd[0] if len(firstd) else np.zeros(n)
    scene = Scene(n, s._parameters, (float(s.t), start, speed))
    graph = scene.graph

    def attempt(action: Callable[[], Any]) -> Any:
        try:
            return action()
        except (TypeError, ValueError) as error:
            faults.append(str(error))
            return None

    M = [graph.constant(0.0)] * (n * n)
    attempt(lambda: _mass(s, scene, M))
    for force in s._forces:
        attempt(lambda force=force: force.apply(scene, s._bodies))  # type: ignore[misc]
    if s._coordinates and s._force is not None:
        attempt(lambda: _generalized_force(s, scene))
    C = [graph.constant(0.0)] * n
    rows: dict[str, slice] = {}
    parts = _Rows()
    for constraint in s._constraints:
        before = len(parts.A)
        attempt(lambda c=constraint: _constraint(s, scene, c, parts))  # type: ignore[misc]
        rows[constraint.name] = slice(before, len(parts.A))
    slips: list[tuple[str, int]] = []
    for constraint in s._constraints:
        if constraint.nonideal is not None:
            given = attempt(lambda c=constraint: _nonideal(scene, c, rows, parts, slips))  # type: ignore[misc]
            if given is not None:
                C = [graph.add(x, y) for x, y in zip(C, given, strict=True)]
    if faults:
        if len(faults) == 1:
            raise ValueError(faults[0])
        raise ValueError(
            f"the system has {len(faults)} faults:\n" + "\n".join(f"  {f}" for f in faults)
        )
    s._model = _compiled(s, scene, M, C, rows, parts, slips)
    return s._model


def _index(s: System, constraint: Prescribed, names: list[str], faults: list[str]) -> int:
    what = constraint.what
    if isinstance(what, str) and what in names:
        return names.index(what)
    whole = isinstance(what, (int, np.integer)) and not isinstance(what, bool)
    if whole and 0 <= int(what) < len(names):
        return int(what)
    faults.append(
        f"Prescribed {constraint.name!r} has the coordinate {what!r}; expected one of "
        f"{', '.join(map(repr, names))}"
    )
    return 0


def _mass(s: System, scene: Scene, M: list[int]) -> None:
    k, n = len(s._coordinates), scene.n
    graph = scene.graph
    if k and s._mass is not None:
        if callable(s._mass):
            _mass_function(s, scene, M)
        else:
            constant = as_float("mass_matrix", s._mass)
            if constant.shape == (k, k):
                # most entries are zero, and there are many
                for i, j in np.argwhere(constant):
                    M[i * n + j] = graph.constant(float(constant[i, j]))
            else:
                _block(scene, M, scene.number("mass_matrix", constant, (k, k)), 0, False)
    for body in s._bodies:
        block = body.inertia_block(scene)
        _block(scene, M, block, body.first, body.turns() and body.size > 3)


def _mass_function(s: System, scene: Scene, M: list[int]) -> None:
    k = len(s._coordinates)
    arguments = "tq"
    if s._coriolis == "included" and _count(s._mass, scene) >= 3:
        arguments = "tqv"
    block = scene.call(s._mass, "mass_matrix", arguments, (k, k))
    _block(scene, M, block, 0, s._coriolis == "derive")


def _block(scene: Scene, M: list[int], block: Any, first: int, derive: bool) -> None:
    """Put a block on the diagonal of M; its velocity terms, if it has some, into Q."""
    n, graph = scene.n, scene.graph
    size = len(block)
    for i, j in np.ndindex(size, size):
        entry = block[i, j]
        node = entry.node if isinstance(entry, Expression) else graph.constant(float(entry))
        M[(first + i) * n + first + j] = node
    if derive:
        # h = d/dt (M q̇) at constant q̇, less ∂T/∂q
        v = scene.qd[first : first + size]
        momenta = block @ v
        rates = graph.rate([e.node for e in momenta], scene.flow())
        energy = (v @ momenta) * 0.5
        slopes = graph.gradient(energy.node, [e.node for e in scene.q])
        zero = graph.constant(0.0)
        for i, e in enumerate(scene.q):
            rate = rates[i - first] if first <= i < first + size else zero
            h = graph.sub(rate, slopes.get(e.node, zero))
            scene.Q[i] = graph.sub(scene.Q[i], h)


def _generalized_force(s: System, scene: Scene) -> None:
    k = len(s._coordinates)
    force = scene.vector(s._force, "force", "tqv", k)
    zeros = as_array(scene.graph, [scene.graph.constant(0.0)] * (scene.n - k), (scene.n - k,))
    scene.add_force([*force, *zeros])


def _nonideal(
    scene: Scene,
    constraint: Constraint,
    rows: dict[str, slice],
    parts: _Rows,
    slips: list[tuple[str, int]],
) -> list[int]:
    """Nodes of the non-ideal part of a constraint, (n,)."""
    name = f"nonideal of {constraint.name!r}"
    law = constraint.nonideal
    if not isinstance(law, Friction):
        m = len(parts.A)
        if callable(law) and _count(law, scene) >= 4:
            force = scene.call(law, name, "tqvm", (scene.n,), extra=scene.ask_multipliers(m))
        else:
            force = scene.vector(law, name, "tqv", scene.n)
        return [e.node for e in force]
    point, other, slip = sliding(scene, constraint)
    graph = scene.graph
    normal = None
    if law.implicit:
        part = rows[constraint.name]
        multipliers = scene.ask_multipliers(len(parts.A))[part]
        body = point.body
        if body is None:
            raise ValueError(f"{name}: the first point is the ground; expected one that slides")
        square = graph.constant(0.0)
        for i in range(body.first, body.first + body.dimension):
            terms = [
                graph.mul(parts.A[part.start + k][i], e.node) for k, e in enumerate(multipliers)
            ]
            force_i = graph.total(terms)
            square = graph.add(square, graph.mul(force_i, force_i))
        normal = Expression(graph, graph.apply(SQRT, square))
        speed = graph.apply(SQRT, (slip @ slip).node)
        slips.append((constraint.name, speed))
    force = law.force(scene, constraint.name, slip, normal)
    before, scene.Q = scene.Q, [graph.constant(0.0)] * scene.n
    scene.push(point, force)
    if other is not None:
        scene.push(other, force * -1.0)
    pushed, scene.Q = scene.Q, before
    return pushed


def _constraint(s: System, scene: Scene, constraint: Constraint, parts: _Rows) -> None:
    graph = scene.graph
    q, v = ([e.node for e in vector] for vector in (scene.q, scene.qd))
    zero = graph.constant(0.0)
    if constraint.kind == "acceleration":
        A, b = constraint.rows(scene)  # type: ignore[attr-defined]
        for row, target in zip(A, b, strict=True):
            parts.add([e.node for e in row], target.node, None, None, None)
        return
    residual = [e.node for e in constraint.residual(scene)]
    flow = scene.flow()
    # q̇ is held: what q̈ adds is A q̈
    rates = graph.rate(residual, flow)
    holonomic = constraint.kind == "holonomic"
    drift = graph.rate(rates, flow) if holonomic else rates
    for k, node in enumerate(residual):
        slopes = graph.gradient(node, q if holonomic else v)
        where = f" in entry {k}" if len(residual) > 1 else ""
        if not slopes and not holonomic:
            raise ValueError(
                f"constraint {constraint.name!r} does not contain the velocities{where}: use "
                "Holonomic(name, phi(t, q)) for what holds of places"
            )
        if not slopes:
            raise ValueError(
                f"constraint {constraint.name!r} does not contain the coordinates{where}: no "
                "motion can satisfy it; expected phi(t, q)"
            )
        A = [slopes.get(i, zero) for i in (q if holonomic else v)]
        rate = rates[k] if holonomic else None
        parts.add(A, graph.neg(drift[k]), node, rate, holonomic)
    _check_given(s, scene, constraint, residual, rates)


def _check_given(
    s: System, scene: Scene, constraint: Constraint, residual: list[int], rates: list[int]
) -> None:
    """A Jacobian or a rate that the user states is compared with what is derived."""
    graph = scene.graph
    holonomic = constraint.kind == "holonomic"
    by = [e.node for e in (scene.q if holonomic else scene.qd)]
    zero = graph.constant(0.0)
    derived: dict[str, list[int]] = {}
    if getattr(constraint, "jacobian", None) is not None:
        slopes = [graph.gradient(node, by) for node in residual]
        derived["jacobian"] = [found.get(i, zero) for found in slopes for i in by]
    if getattr(constraint, "rate", None) is not None:
        derived["rate"] = rates
    for what, nodes in derived.items():
        shape = (len(residual), scene.n) if what == "jacobian" else (len(residual),)
        arguments = "tq" if holonomic and what == "jacobian" else "tqv"
        name = f"{what} of {constraint.name!r}"
        given = scene.call(getattr(constraint, what), name, arguments)
        flat = [e.node for e in np.ravel(given)]
        if len(flat) != len(nodes):
            raise ValueError(f"{name} has {len(flat)} entries; expected shape {shape}")
        compiled = compile_outputs(
            graph, _sizes(graph), [(flat, (len(flat),)), (nodes, (len(nodes),))]
        )
        t, q, v = scene.state
        rng = np.random.default_rng(0)
        for state in ((t, q, v), (t + 0.3, q + 0.1 * rng.random(scene.n), v + 1.0)):
            p = np.array([float(np.ravel(x)[0]) for x in scene._numbers])
            x = np.zeros(graph.arguments[4])
            mine, ours = compiled(NAMES, *state, p, x)
            size = np.maximum(np.abs(mine), np.abs(ours)).max(initial=1e-300)
            bad = np.abs(mine - ours) > 1e-8 * size
            if bad.any():
                k = int(np.argmax(bad))
                index = [int(i) for i in np.unravel_index(k, shape)]
                raise ValueError(
                    f"{name}{index} is {mine[k]:.10g} at q = {np.array2string(state[1])}, but "
                    f"what is derived from the function is {ours[k]:.10g}; leave it out, or "
                    "correct it"
                )


def _compiled(
    s: System,
    scene: Scene,
    M: list[int],
    C: list[int],
    rows: dict[str, slice],
    parts: _Rows,
    slips: list[tuple[str, int]],
) -> Model:
    graph, n, m = scene.graph, scene.n, len(parts.A)
    flat = [node for row in parts.A for node in row]
    there = [[node for node in row if not graph.is_zero(node)] for row in parts.A]
    row_scale = [graph.total(graph.sizes(row)) for row in there]
    some = graph.constant(B_ERROR * EPS)
    b_error = [graph.mul(some, size) for size in graph.sizes(parts.b)]
    zero = graph.constant(0.0)
    residual = [zero if r is None else r for r in parts.residual]
    rate = [zero if r is None else r for r in parts.rate]
    holonomic = np.array([h is True for h in parts.holonomic], dtype=bool)
    velocity = np.array([h is False for h in parts.holonomic], dtype=bool)
    off, tiny = zero, graph.constant(1e-300)
    for size, node, h in zip(graph.sizes(residual), residual, holonomic, strict=True):
        if h and not graph.is_zero(node):
            part = graph.div(graph.apply(ABS, node), graph.apply(MAX, size, tiny))
            off = part if off == zero else graph.apply(MAX, off, part)
    outputs: list[tuple[list[int], tuple[int, ...]]] = [
        (M, (n, n)), (scene.Q, (n,)), (flat, (m, n)), (parts.b, (m,)), (C, (n,)),
        (row_scale, (m,)), (b_error, (m,)), ([off], ()),
    ]  # fmt: skip
    compiled = compile_outputs(graph, _sizes(graph), outputs)
    checked = [residual, graph.sizes(residual), rate, graph.sizes(rate)]
    state = compile_outputs(graph, _sizes(graph), [(x, (m,)) for x in checked])
    row_names = [
        name if part.stop - part.start == 1 else f"{name}[{k - part.start}]"
        for name, part in rows.items()
        for k in range(part.start, part.stop)
    ]
    speeds = None
    if slips:
        nodes = [node for _, node in slips]
        speeds = (
            [name for name, _ in slips],
            compile_outputs(graph, _sizes(graph), [(nodes, (len(nodes),))]),
        )
    has_C = any(constraint.nonideal is not None for constraint in s._constraints)
    return Model(
        n, rows, row_names, compiled, state, holonomic, velocity, scene.values(),
        scene._opaque, has_C, (row_names, s.coordinate_names), scene.multipliers_at, speeds, False,
        tuple(s._bodies),
    )  # fmt: skip


class _Rows:
    """Rows of A and b while constraints are read."""

    def __init__(self) -> None:
        self.A: list[list[int]] = []
        self.b: list[int] = []
        self.residual: list[int | None] = []
        self.rate: list[int | None] = []
        self.holonomic: list[bool | None] = []

    def add(
        self, A: list[int], b: int, residual: int | None, rate: int | None, holonomic: bool | None
    ) -> None:
        self.A.append(A)
        self.b.append(b)
        self.residual.append(residual)
        self.rate.append(rate)
        self.holonomic.append(holonomic)


def _sizes(graph: Graph) -> list[tuple[int, ...]]:
    return [() if i == 0 else (size,) for i, size in enumerate(graph.arguments)]


def _count(f: Any, scene: Scene) -> int:
    return len(inspect.signature(f).parameters) - (1 if scene.has_parameters else 0)
