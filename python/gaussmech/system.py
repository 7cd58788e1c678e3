"""Systems: bodies, forces and constraints become M, Q, A, b, C.

All functions are read once, differentiated exactly and compiled to one program of
(t, q, q̇, parameters), so that assembling and solving a state is one call into C.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .assembly import Assembly, ModelMotion, RankReport, StartReport
from .bodies import AXES, Ground, Particle
from .constraints import Constraint, Prescribed
from .errors import InconsistentStateError
from .forces import Force
from .graph import ABS, MAX, Graph
from .inputs import as_float
from .kernel import ALL_FIELDS, check_options, fields_wanted, independent_rows, solve
from .program import Compiled, compile_outputs, convert_arguments
from .results import STATUSES, listed
from .scene import Opaque, Parameters, Scene
from .trace import as_array

__all__ = ["System"]

Float = NDArray[np.float64]
EPS = float(np.finfo(np.float64).eps)
# b of a row is known to that many ε of the terms that are added up in it
B_ERROR = 16.0
# a start state is on a constraint when it is off by no more than that of the terms of φ
START = 1e-9
NAMES = ("t", "q", "qd", "p", "x")
BOTH_SENTENCES = (
    'say coriolis="derive": force holds the applied forces, and the velocity terms are derived '
    'from mass_matrix(t, q); or coriolis="included": force is the full right-hand side of '
    "M q̈ = force + Q_c, with the velocity terms in it"
)


@dataclass(slots=True)
class _Model:
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
    particles: tuple[Particle, ...]


class System:
    """A mechanical system: particles or generalized coordinates, forces, constraints.

    Parameters
    ----------
    coordinates : sequence of str, optional
        Names of generalized coordinates. Particles bring their own.
    dimension : {1, 2, 3}, optional
        Of space; by default that of the first point.
    q, qd : (n,) or (B, n) array_like, or mapping of name to value, optional
        Start state of the generalized coordinates.
    mass_matrix : (n, n) array_like or callable, optional
        Of the generalized coordinates: an array, or f(t, q); with ``coriolis="included"`` also
        f(t, q, qd).
    force : (n,) array_like or callable, optional
        Generalized force: an array, f(t, q, qd), or an `opaque` function.
    coriolis : {"derive", "included"}, optional
        Required where `mass_matrix` is a function: whether the velocity terms are derived from
        it, or `force` is the full right-hand side.
    parameters : mapping, optional
        Numbers by name, or (B,) arrays of them. All functions then take a last argument p,
        with ``p["name"]`` or ``p.name``.

    Attributes
    ----------
    q, qd : (n,) or (B, n) ndarray
        The start state.
    t : float
        The start time, 0 unless set.
    coordinate_names : list of str

    Notes
    -----
    T = ½ q̇ᵀM(t, q)q̇ gives M q̈ = Q + Q_c, Q = ΣJᵀF - ∂V/∂q - h with
    h = d/dt|_{q̈=0} (M q̇) - ∂T/∂q. Derivatives are exact; see `Program` for what functions may do.

    Examples
    --------
    A bob on a rod:

    >>> import gaussmech as gm
    >>> s = gm.System()
    >>> bob = s.add_particle("bob", mass=1.0, position=[0.6, -0.8], velocity=[0, 0])
    >>> s.add_force(gm.UniformGravity([0, -9.81]))
    >>> s.add_constraint(gm.Distance("rod", s.ground([0, 0]), bob))
    >>> motion = s.solve()
    >>> print(motion["bob"].acceleration, motion.reaction("rod").forces["bob"])
    [-4.7088 -3.5316] [-4.7088  6.2784]
    """

    def __init__(
        self,
        coordinates: Sequence[str] | None = None,
        *,
        dimension: int | None = None,
        q: Any = None,
        qd: Any = None,
        mass_matrix: Any = None,
        force: Any = None,
        coriolis: str | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> None:
        if dimension is not None and dimension not in (1, 2, 3):
            raise ValueError(f"dimension is {dimension!r}; expected 1, 2 or 3")
        if isinstance(coordinates, str):
            raise TypeError(f"coordinates is the string {coordinates!r}; expected a list of names")
        self._coordinates = [str(name) for name in coordinates or ()]
        double = [c for i, c in enumerate(self._coordinates) if c in self._coordinates[:i]]
        if double:
            raise ValueError(f"the coordinate {double[0]!r} is named twice")
        self.dimension = dimension
        self.t = 0.0
        k = len(self._coordinates)
        self._q = self._start("q", q, k)
        self._qd = self._start("qd", qd, k)
        self._mass, self._force, self._coriolis = mass_matrix, force, coriolis
        self._check_generalized()
        if parameters is not None and not isinstance(parameters, Mapping):
            raise TypeError(
                f"parameters is a {type(parameters).__name__}; expected a mapping of name to number"
            )
        self._parameters = dict(parameters or {})
        self._particles: list[Particle] = []
        self._forces: list[Force] = []
        self._constraints: list[Constraint] = []
        self._model: _Model | None = None

    # -------------------------------------------------------------- building

    def _start(self, name: str, value: Any, k: int) -> Float:
        if isinstance(value, Mapping):
            unknown = [key for key in value if key not in self._coordinates]
            missing = [key for key in self._coordinates if key not in value]
            if unknown or missing:
                what = (
                    f"no coordinate {unknown[0]!r}" if unknown else f"no value for {missing[0]!r}"
                )
                raise ValueError(
                    f"{name} has {what}; expected {', '.join(map(repr, self._coordinates))}"
                )
            columns = [as_float(f"{name}[{key!r}]", value[key]) for key in self._coordinates]
            value = np.stack(np.broadcast_arrays(*columns), axis=-1)
        if value is None:
            if k:
                raise ValueError(f"{name} is not given; expected the start, {k} numbers")
            return np.zeros(0)
        array = as_float(name, value)
        if array.ndim == 0 or array.shape[-1] != k:
            hint = "" if k else ": generalized coordinates are named by coordinates=[...]"
            raise ValueError(f"{name} has shape {array.shape}; expected (..., {k}){hint}")
        return array.copy()

    def _check_generalized(self) -> None:
        k = len(self._coordinates)
        if k == 0:
            for name in ("mass_matrix", "force", "coriolis"):
                if getattr(self, {"mass_matrix": "_mass"}.get(name, f"_{name}")) is not None:
                    raise ValueError(
                        f"{name} is given without coordinates; name them: "
                        'System(coordinates=["x", ...], q=..., qd=..., ...)'
                    )
            return
        if self._coriolis not in (None, "derive", "included"):
            raise ValueError(f"coriolis is {self._coriolis!r}; {BOTH_SENTENCES}")
        if callable(self._mass) and self._coriolis is None:
            raise ValueError(f"mass_matrix is a function, so {BOTH_SENTENCES}")
        if self._coriolis is not None and not callable(self._mass):
            raise ValueError(
                f"coriolis is {self._coriolis!r} but mass_matrix is no function: a constant one "
                "has no velocity terms; leave coriolis out"
            )

    @property
    def coordinate_names(self) -> list[str]:
        """Names of all coordinates: the generalized ones, then those of particles."""
        names = list(self._coordinates)
        for p in self._particles:
            names += [f"{p.name}.{axis}" for axis in AXES[: p.dimension]]
        return names

    @property
    def q(self) -> Float:
        """Start coordinates."""
        return self._q

    @q.setter
    def q(self, value: ArrayLike) -> None:
        self._q = self._full("q", value)
        self._model = None

    @property
    def qd(self) -> Float:
        """Start velocities."""
        return self._qd

    @qd.setter
    def qd(self, value: ArrayLike) -> None:
        self._qd = self._full("qd", value)
        self._model = None

    def _full(self, name: str, value: ArrayLike) -> Float:
        array = as_float(name, value)
        n = len(self.coordinate_names)
        if array.ndim == 0 or array.shape[-1] != n:
            raise ValueError(f"{name} has shape {array.shape}; expected (..., {n})")
        return array.copy()

    def _take_name(self, name: str, what: str) -> None:
        if not isinstance(name, str) or not name:
            raise TypeError(f"the name of a {what} is {name!r}; expected a string")
        taken = {p.name for p in self._particles} | {c.name for c in self._constraints}
        if name in taken:
            raise ValueError(f"the name {name!r} is taken; expected a new one for the {what}")

    def _check_dimension(self, d: int, who: str) -> None:
        if d not in (1, 2, 3):
            raise ValueError(f"{who} has {d} coordinates; expected 1, 2 or 3")
        if self.dimension is None:
            self.dimension = d
        elif self.dimension != d:
            raise ValueError(
                f"{who} is {d}-dimensional in a {self.dimension}-dimensional system; expected "
                f"{self.dimension} coordinates"
            )

    def add_particle(
        self, name: str, *, mass: ArrayLike, position: ArrayLike, velocity: ArrayLike
    ) -> Particle:
        """Add a point of mass.

        Parameters
        ----------
        name : str
        mass : float or (B,) array_like
            Not negative; zero is a massless particle, which something has to hold.
        position, velocity : (d,) or (B, d) array_like
            Its start, d = 1, 2 or 3.

        Returns
        -------
        Particle
            A point for forces and constraints.

        Raises
        ------
        TypeError, ValueError
            A name that is taken, a negative mass, a dimension that is not the system's.
        """
        self._take_name(name, "particle")
        m = as_float(f"mass of {name!r}", mass)
        if not (np.isfinite(m).all() and np.all(m >= 0)):
            raise ValueError(f"mass of {name!r} is {mass!r}; expected a number of 0 or more")
        r = np.atleast_1d(as_float(f"position of {name!r}", position))
        v = np.atleast_1d(as_float(f"velocity of {name!r}", velocity))
        self._check_dimension(r.shape[-1], f"particle {name!r}")
        if v.shape[-1] != r.shape[-1]:
            raise ValueError(
                f"velocity of {name!r} has shape {v.shape}; expected (..., {r.shape[-1]}) like its "
                "position"
            )
        if not (np.isfinite(r).all() and np.isfinite(v).all()):
            raise ValueError(f"the start of {name!r} is not finite; expected numbers")
        particle = Particle(name, m if m.ndim else float(m), r.shape[-1], self._q.shape[-1])
        self._q, self._qd = _joined(self._q, r), _joined(self._qd, v)
        self._particles.append(particle)
        self._model = None
        return particle

    def ground(self, place: ArrayLike) -> Ground:
        """Return a point that is fixed in space.

        Parameters
        ----------
        place : (d,) or (B, d) array_like
            Where.

        Returns
        -------
        Ground
            A point for forces and constraints.

        Raises
        ------
        TypeError, ValueError
            A dimension that is not the system's.
        """
        at = np.atleast_1d(as_float("the place of a ground point", place))
        self._check_dimension(at.shape[-1], "a ground point")
        return Ground(at)

    def add_force(self, force: Force) -> None:
        """Add a force.

        Parameters
        ----------
        force : Force
            `UniformGravity`, `Spring`, `Potential`, …

        Raises
        ------
        TypeError, ValueError
            It is none, or acts on a point of another system.
        """
        if not isinstance(force, Force):
            raise TypeError(f"force is {force!r}; expected a force such as gm.UniformGravity(...)")
        self._check_points(force.points, repr(force))
        self._forces.append(force)
        self._model = None

    def add_constraint(self, constraint: Constraint) -> None:
        """Add a constraint.

        Parameters
        ----------
        constraint : Constraint
            `Distance`, `Holonomic`, `Nonholonomic`, …

        Raises
        ------
        TypeError, ValueError
            It is none, its name is taken, or it holds a point of another system.
        """
        if not isinstance(constraint, Constraint):
            raise TypeError(
                f"constraint is {constraint!r}; expected one such as gm.Distance('rod', p, q)"
            )
        self._take_name(constraint.name, "constraint")
        self._check_points(constraint.points, f"constraint {constraint.name!r}")
        constraint.set_start(self._q)
        self._constraints.append(constraint)
        self._model = None

    def _check_points(self, points: Iterable[Any], who: str) -> None:
        for point in points:
            if isinstance(point, Particle) and point not in self._particles:
                raise ValueError(f"{who} holds {point.name!r}, which is not in this system")
            self._check_dimension(point.dimension, f"{who} at {point.name!r}")

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Parameters by name; set them with ``set_parameters``."""
        return dict(self._parameters)

    def set_parameters(self, **values: ArrayLike) -> None:
        """Change parameters: numbers, or (B,) arrays for a batch of systems.

        Raises
        ------
        ValueError
            There is no parameter of that name.
        """
        for name, value in values.items():
            if name not in self._parameters:
                known = ", ".join(map(repr, self._parameters)) or "none"
                raise ValueError(f"no parameter has the name {name!r}; there are {known}")
            self._parameters[name] = as_float(f"parameters[{name!r}]", value)
        self._model = None

    # -------------------------------------------------------------- reading

    def _read(self) -> _Model:
        """The system as programs; all faults are collected and raised at once."""
        if self._model is not None:
            return self._model
        faults: list[str] = []
        n = self._q.shape[-1]
        if n == 0:
            raise ValueError("the system has no coordinates; add a particle, or name coordinates")
        if self._coordinates and self._mass is None:
            faults.append(
                "mass_matrix is missing for the coordinates "
                f"{listed([repr(c) for c in self._coordinates])}"
            )
        names = self.coordinate_names
        for constraint in self._constraints:
            if isinstance(constraint, Prescribed):
                constraint.index = self._index(constraint, names, faults)
        try:
            first = np.reshape(np.broadcast_to(self._q, np.shape(self._q)), (-1, n))
            firstd = np.reshape(self._qd, (-1, n))
        except ValueError:
            first = firstd = np.zeros((0, n))
        start = first[0] if len(first) else np.zeros(n)
        speed = firstd[0] if len(firstd) else np.zeros(n)
        scene = Scene(n, self._parameters, (float(self.t), start, speed))
        graph = scene.graph

        def attempt(action: Callable[[], Any]) -> Any:
            try:
                return action()
            except (TypeError, ValueError) as error:
                faults.append(str(error))
                return None

        M = [graph.constant(0.0)] * (n * n)
        attempt(lambda: self._read_mass(scene, M))
        for force in self._forces:
            attempt(lambda force=force: force.apply(scene, self._particles))  # type: ignore[misc]
        if self._coordinates and self._force is not None:
            attempt(lambda: self._read_force(scene))
        C = [graph.constant(0.0)] * n
        rows: dict[str, slice] = {}
        parts = _Rows()
        for constraint in self._constraints:
            before = len(parts.A)
            attempt(lambda c=constraint: self._read_constraint(scene, c, parts))  # type: ignore[misc]
            rows[constraint.name] = slice(before, len(parts.A))
            if constraint.nonideal is not None:
                given = attempt(lambda c=constraint: self._read_nonideal(scene, c))  # type: ignore[misc]
                if given is not None:
                    C = [graph.add(x, e.node) for x, e in zip(C, given, strict=True)]
        if faults:
            if len(faults) == 1:
                raise ValueError(faults[0])
            raise ValueError(
                f"the system has {len(faults)} faults:\n" + "\n".join(f"  {f}" for f in faults)
            )
        self._model = self._compile(scene, M, C, rows, parts)
        return self._model

    def _index(self, constraint: Prescribed, names: list[str], faults: list[str]) -> int:
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

    def _read_mass(self, scene: Scene, M: list[int]) -> None:
        k, n = len(self._coordinates), scene.n
        graph = scene.graph
        if k and self._mass is not None:
            if callable(self._mass):
                self._read_mass_function(scene, M)
            else:
                constant = as_float("mass_matrix", self._mass)
                if constant.shape == (k, k):
                    # most entries are zero, and there are many
                    for i, j in np.argwhere(constant):
                        M[i * n + j] = graph.constant(float(constant[i, j]))
                else:
                    _place(scene.number("mass_matrix", constant, (k, k)), M, n)
        for particle in self._particles:
            m = scene.number(f"mass of {particle.name!r}", particle.mass)
            for i in range(particle.first, particle.first + particle.dimension):
                M[i * n + i] = m.node

    def _read_mass_function(self, scene: Scene, M: list[int]) -> None:
        k, n = len(self._coordinates), scene.n
        graph = scene.graph
        arguments = "tq"
        if self._coriolis == "included" and _count(self._mass, scene) >= 3:
            arguments = "tqv"
        block = scene.call(self._mass, "mass_matrix", arguments, (k, k))
        _place(block, M, n)
        if self._coriolis == "derive":
            # h = d/dt (M q̇) at constant q̇, less ∂T/∂q
            v = scene.qd[:k]
            momenta = block @ v
            flow = scene.flow()
            rates = graph.rate([e.node for e in momenta], flow)
            energy = (v @ momenta) * 0.5
            slopes = graph.gradient(energy.node, [e.node for e in scene.q])
            zero = graph.constant(0.0)
            for i, e in enumerate(scene.q):
                rate = rates[i] if i < k else zero
                h = graph.sub(rate, slopes.get(e.node, zero))
                scene.Q[i] = graph.sub(scene.Q[i], h)

    def _read_force(self, scene: Scene) -> None:
        k = len(self._coordinates)
        force = scene.vector(self._force, "force", "tqv", k)
        zeros = as_array(scene.graph, [scene.graph.constant(0.0)] * (scene.n - k), (scene.n - k,))
        scene.add_force([*force, *zeros])

    def _read_nonideal(self, scene: Scene, constraint: Constraint) -> Any:
        name = f"nonideal of {constraint.name!r}"
        return scene.vector(constraint.nonideal, name, "tqv", scene.n)

    def _read_constraint(self, scene: Scene, constraint: Constraint, parts: _Rows) -> None:
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
        self._check_given(scene, constraint, residual, rates)

    def _check_given(
        self, scene: Scene, constraint: Constraint, residual: list[int], rates: list[int]
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

    def _compile(
        self, scene: Scene, M: list[int], C: list[int], rows: dict[str, slice], parts: _Rows
    ) -> _Model:
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
        has_C = any(constraint.nonideal is not None for constraint in self._constraints)
        return _Model(
            n, rows, row_names, compiled, state, holonomic, velocity, scene.values(),
            scene._opaque, has_C, (row_names, self.coordinate_names), tuple(self._particles),
        )  # fmt: skip

    # -------------------------------------------------------------- states

    def _arguments(self, model: _Model, t: Any, q: Any, qd: Any) -> tuple[Any, ...]:
        """What the programs take: the start state where nothing is given.

        They ask for a conversion themselves; only functions in Python need it beforehand.
        """
        t = self.t if t is None else t
        q = self._q if q is None else q
        qd = self._qd if qd is None else qd
        if not model.opaque:
            return t, q, qd, model.parameters, _NOTHING
        shapes = model.compiled.shapes[:4]
        t, q, qd, _ = convert_arguments(NAMES[:4], shapes, (t, q, qd, model.parameters))
        return t, q, qd, model.parameters, self._opaque(model, t, q, qd)

    def _opaque(self, model: _Model, t: Any, q: Float, qd: Float) -> Float:
        """Values of the functions that stay Python, state by state."""
        batch = np.broadcast_shapes(
            np.shape(t), q.shape[:-1], qd.shape[:-1], model.parameters.shape[:-1]
        )
        total = sum(size for _, size in model.opaque)
        out = np.empty((*batch, total))
        ts = np.broadcast_to(t, batch)
        qs, vs = (np.broadcast_to(x, (*batch, model.n)) for x in (q, qd))
        names = list(self._parameters)
        for index in np.ndindex(batch):
            arguments: list[Any] = [float(ts[index]), qs[index].copy(), vs[index].copy()]
            if names:
                values = {k: np.asarray(v, dtype=float) for k, v in self._parameters.items()}
                one = {
                    k: float(np.broadcast_to(v, batch)[index] if v.ndim else v)
                    for k, v in values.items()
                }
                arguments.append(Parameters(one))
            place = 0
            for f, size in model.opaque:
                value = np.asarray(f.function(*arguments), dtype=float)
                if value.shape != (size,) and not (size == 1 and value.shape == ()):
                    raise ValueError(
                        f"{f!r} returned shape {value.shape}; expected ({size},)"
                        + (f", at index {index}" if index else "")
                    )
                out[(*index, slice(place, place + size))] = value
                place += size
        return out

    def _check_start(self, model: _Model) -> None:
        """InconsistentStateError when the start state is off the constraints."""
        arguments = self._arguments(model, None, None, None)
        residual, size, rate, rate_size = model.state(NAMES, *arguments)
        position = np.abs(residual) > START * np.maximum(size, 1e-300)
        velocity = np.abs(rate) > START * np.maximum(rate_size, 1e-300)
        bad = (position & (model.holonomic | model.velocity)) | (velocity & model.holonomic)
        if not bad.any():
            return
        index = tuple(int(i) for i in np.argwhere(bad)[0][:-1])
        found: dict[str, float] = {}
        words = []
        for name, part in model.rows.items():
            if bad[index][part].any():
                k = part.start + int(np.argmax(bad[index][part]))
                on_place = bool(position[index][k])
                value = float(residual[index][k] if on_place else rate[index][k])
                found[name] = value
                what = "dphi/dt" if not on_place else "phi" if model.holonomic[k] else "G"
                number = list(model.rows).index(name)
                words.append(f"constraint {number} {model.row_names[k]!r} ({what} = {value:.6g})")
        where = f" at index {index}" if index else ""
        raise InconsistentStateError(
            f"the start state{where} does not satisfy {listed(words)}; correct it, or let "
            "s.project_start() move it",
            residual=found,
            index=index,
        )

    # -------------------------------------------------------------- answers

    def assemble(
        self, t: ArrayLike | None = None, q: ArrayLike | None = None, qd: ArrayLike | None = None
    ) -> Assembly:
        """Return M, Q, A, b, C of a state or a batch of states.

        Parameters
        ----------
        t : float or (...) array_like, optional
            Time; the start by default, as for the others.
        q, qd : (..., n) array_like, optional
            State.

        Returns
        -------
        Assembly
            A 5-tuple (M, Q, A, b, C) with names, scales and tolerances; C is None where no
            constraint has a non-ideal part.

        Raises
        ------
        InconsistentStateError
            The start state is off the constraints.
        TypeError, ValueError
            Faults of the system, all of them at once; shapes that do not fit.
        """
        model = self._read()
        if t is None and q is None and qd is None:
            self._check_start(model)
        arguments = self._arguments(model, t, q, qd)
        M, Q, A, b, C, row_scale, b_error, off = model.compiled(NAMES, *arguments)
        return Assembly(
            (M, Q, A, b, C if model.has_C else None),
            row_scale=row_scale,
            b_error=b_error,
            off=off,
            row_names=list(model.names[0]),
            coordinate_names=list(model.names[1]),
        )

    def solve(
        self,
        t: ArrayLike | None = None,
        q: ArrayLike | None = None,
        qd: ArrayLike | None = None,
        *,
        rtol: float | None = None,
        ctol: float = 1e-9,
        inconsistent: str = "raise",
        indeterminate: str = "raise",
        errors: str = "raise",
        outputs: Iterable[str] | None = None,
    ) -> ModelMotion:
        """Return the motion at a state or a batch of states.

        Parameters
        ----------
        t, q, qd
            As in `assemble`.
        rtol, ctol, inconsistent, indeterminate, errors, outputs
            As in `gaussmech.solve`. `rtol` is never smaller than ten times the constraint
            residual of the state, since redundant rows are redundant on the constraints only;
            the motion says so.

        Returns
        -------
        ModelMotion
            A `Motion` with names: ``motion["bob"]``, ``motion.reaction("rod")``.

        Raises
        ------
        InconsistentStateError
            The start state is off the constraints. A state that is given is taken as it is.
        GaussmechError
            As `gaussmech.solve`, with the names of constraints and coordinates.
        TypeError, ValueError
            As `assemble`.
        """
        model = self._model
        start = t is None and q is None and qd is None
        if model is None:
            model = self._read()
        if start:
            self._check_start(model)
        arguments = self._arguments(model, t, q, qd)
        options, raising = check_options(rtol, ctol, 0.0, inconsistent, indeterminate, errors)
        wanted = ALL_FIELDS if outputs is None else fields_wanted(outputs)
        raw = model.compiled.kernel.solve(*arguments, rtol, ctol, options, wanted, model.has_C)
        if raw is None:
            arguments = tuple(convert_arguments(NAMES, model.compiled.shapes, arguments))
            raw = model.compiled.kernel.solve(*arguments, rtol, ctol, options, wanted, model.has_C)
            assert raw is not None, "converted arguments are what the core takes"
        status = raw[12]
        failed = status < 0 if status.__class__ is int else bool((status < 0).any())
        if failed and raising:
            self.assemble(*arguments[:3]).solve(
                rtol=rtol, ctol=ctol, inconsistent=inconsistent, indeterminate=indeterminate
            )
        more: dict[str, Any] = {
            "row_names": model.names[0],
            "coordinate_names": model.names[1],
            "rows": model.rows,
            "particles": model.particles,
            "assemble": lambda: self.assemble(*arguments[:3]),
            "q": arguments[1],
            "qd": arguments[2],
        }
        motion = ModelMotion(*raw[:13], **more)
        if status.__class__ is int:
            motion.status = STATUSES[status]
        off = raw[15]
        if 10 * off > 1e-12:
            motion.remark = (
                f"the state is off the constraints by {off:.1g}: rows count as dependent within "
                f"{min(10 * off, 0.1):.1g}"
            )
        return motion

    def report(
        self,
        qdd: ArrayLike,
        t: ArrayLike | None = None,
        q: ArrayLike | None = None,
        qd: ArrayLike | None = None,
        *,
        accuracy: float = 1e-9,
    ) -> Any:
        """Say whether an acceleration satisfies the principles of mechanics for this system.

        Parameters
        ----------
        qdd : (..., n) array_like
            The acceleration to judge.
        t, q, qd
            As in `assemble`.
        accuracy : float
            As in `principles.report`.

        Returns
        -------
        Report
            As `principles.report`, with the names of this system.

        Raises
        ------
        InconsistentStateError, GaussmechError, TypeError, ValueError
            As `solve`.
        """
        from .report import report

        assembly = self.assemble(t, q, qd)
        names = {"rows": assembly.row_names, "coordinates": assembly.coordinate_names}
        return report(*assembly, qdd=qdd, accuracy=accuracy, names=names)

    # -------------------------------------------------------------- the start state

    def project_start(
        self, *, hold: Sequence[str] | None = None, hold_rate: Sequence[str] | None = None
    ) -> StartReport:
        """Move the start state onto the constraints, as little as possible in the mass metric.

        Parameters
        ----------
        hold, hold_rate : sequence of str, optional
            Coordinates whose value, or whose velocity, stays exactly as it is.

        Returns
        -------
        StartReport
            What moved, by coordinate, and the residuals before and after.

        Raises
        ------
        InconsistentStateError
            It does not close: no such state exists near, or with what is held.
        TypeError, ValueError
            As `assemble`; a coordinate of that name does not exist.

        Notes
        -----
        Newton's method, q ← q - M⁻¹Aᵀ(A M⁻¹Aᵀ)⁺ φ, then the velocity: each step is a problem of
        least constraint, min ‖δq‖_M with A δq = -φ, solved by the kernel.
        """
        model = self._read()
        if self._q.ndim != 1 or self._qd.ndim != 1 or model.parameters.ndim != 1:
            raise ValueError("project_start takes one state; the start of this system is a batch")
        held = self._held("hold", hold), self._held("hold_rate", hold_rate)
        before = self._q.copy(), self._qd.copy()
        q, qd = self._q.copy(), self._qd.copy()
        start = self._residuals(model, q, qd)
        try:
            q, steps = self._newton(model, q, qd, held[0], place=True)
            qd, more = self._newton(model, q, qd, held[1], place=False)
        except InconsistentStateError as error:
            raise InconsistentStateError(
                f"{error}{self._held_words(hold, hold_rate)}", residual=error.residual
            ) from None
        self._q, self._qd = q, qd
        self._model = None
        names = self.coordinate_names
        moved = {
            name: (float(q[k] - before[0][k]), float(qd[k] - before[1][k]))
            for k, name in enumerate(names)
            if q[k] != before[0][k] or qd[k] != before[1][k]
        }
        return StartReport(moved, start, self._residuals(model, q, qd), steps + more)

    def _held_words(self, hold: Any, hold_rate: Any) -> str:
        words = [repr(str(name)) for name in [*(hold or ()), *(hold_rate or ())]]
        return f"; {listed(words)} {'is' if len(words) == 1 else 'are'} held" if words else ""

    def _held(self, what: str, names: Sequence[str] | None) -> list[int]:
        known = self.coordinate_names
        if isinstance(names, str):
            raise TypeError(f"{what} is the string {names!r}; expected a list of names")
        for name in names or ():
            if name not in known:
                raise ValueError(
                    f"{what} has {name!r}; expected coordinates out of "
                    f"{', '.join(map(repr, known))}"
                )
        return [known.index(name) for name in names or ()]

    def _residuals(self, model: _Model, q: Float, qd: Float) -> dict[str, float]:
        """The largest residual of each constraint, of place or velocity."""
        residual, _, rate, _ = model.state(NAMES, *self._arguments(model, None, q, qd))
        found = {}
        for name, part in model.rows.items():
            values = [*residual[part], *rate[part]]
            found[name] = float(max(values, key=abs, default=0.0))
        return found

    def _newton(
        self, model: _Model, q: Float, qd: Float, held: list[int], place: bool
    ) -> tuple[Float, int]:
        n = model.n
        x = q if place else qd
        kept = np.eye(n)[held]
        last = np.inf
        for step in range(60):
            state = (x, qd) if place else (q, x)
            arguments = self._arguments(model, None, *state)
            residual, size, rate, rate_size = model.state(NAMES, *arguments)
            M, _, A, _, _, row_scale, _, _ = model.compiled(NAMES, *arguments)
            if place:
                target, scale, rows = residual, size, model.holonomic
            else:
                target = np.where(model.holonomic, rate, residual)
                scale = np.where(model.holonomic, rate_size, size)
                rows = model.holonomic | model.velocity
            ratio = np.abs(target[rows]) / np.maximum(scale[rows], 1e-300)
            off = float(np.max(ratio, initial=0.0))
            done = np.all(np.abs(target[rows]) <= 8 * EPS * np.maximum(scale[rows], 1e-300))
            # at rounding level, and no longer getting better
            if done or (step > 3 and off <= 1e-13 and off >= 0.5 * last):
                return x, step
            last = off
            matrix = np.vstack([A[rows], kept])
            right = np.concatenate([-target[rows], np.zeros(len(held))])
            move = solve(
                M, np.zeros(n), matrix, right, inconsistent="project", indeterminate="minimum_norm",
                rtol=min(max(1e-9, 10 * off), 1e-3), errors="status",
                row_scale=np.concatenate([row_scale[rows], np.zeros(len(held))]),
            )  # fmt: skip
            if move.qdd is None or not np.isfinite(move.qdd).all():
                break
            delta = move.qdd.copy()
            delta[held] = 0.0
            x = x + delta
        worst: dict[str, float] = {}
        for name, part in model.rows.items():
            chosen = [k for k in range(part.start, part.stop) if rows[k]]
            if chosen:
                k = max(chosen, key=lambda k: abs(target[k]))
                if abs(target[k]) > 1e-12 * max(scale[k], 1e-300):
                    worst[name] = float(target[k])
        words = listed([f"{name!r} ({value:.3g})" for name, value in worst.items()])
        what = "the places" if place else "the velocities"
        raise InconsistentStateError(
            f"the start cannot be closed: {what} still miss {words} after {step + 1} steps; start "
            "nearer to a state that satisfies the constraints",
            residual=worst,
        )

    # -------------------------------------------------------------- ranks

    def rank_report(
        self, t: ArrayLike | None = None, q: ArrayLike | None = None, qd: ArrayLike | None = None
    ) -> RankReport:
        """Say which constraints repeat each other, vanish or clash, and count the freedom.

        Parameters
        ----------
        t, q, qd
            As in `assemble`; one state.

        Returns
        -------
        RankReport
            Constraints by name; it never raises for what they ask of each other.

        Raises
        ------
        TypeError, ValueError
            As `assemble`.
        """
        model = self._read()
        arguments = self._arguments(model, t, q, qd)
        M, Q, A, b, _, row_scale, b_error, off = model.compiled(NAMES, *arguments)
        if M.ndim > 2:
            raise ValueError(f"rank_report takes one state; the batch shape is {M.shape[:-2]}")
        tolerance = max(1e-12, 16 * model.n * EPS, 10 * float(off))
        tolerance = min(tolerance, 0.1)
        motion = solve(
            M, Q, A, b, rtol=tolerance, ctol=max(1e-9, tolerance), row_scale=row_scale,
            b_atol=b_error, inconsistent="project", indeterminate="minimum_norm", errors="status",
        )  # fmt: skip
        vanished = np.asarray(motion.vanished)
        # rows in the order in which they were added: which of them add nothing
        redundant = np.zeros(len(b), dtype=bool)
        kept: list[int] = []
        for k in range(len(b)):
            if vanished[k]:
                continue
            trial = [*kept, k]
            if independent_rows(A[trial], M, tolerance).sum() > len(kept):
                kept = trial
            else:
                redundant[k] = True
        clashing: list[str] = []
        if motion.status in (1, 3):
            clash = np.abs(np.asarray(motion.residual)) > 1e-9 * np.maximum(
                np.abs(b) + np.abs(A) @ np.abs(np.asarray(motion.qdd)), 1e-300
            )
            clashing = [name for name, part in model.rows.items() if clash[part].any()]
        shared = ~np.asarray(motion.multipliers_unique) & ~vanished

        def named(mask: NDArray[np.bool_]) -> list[str]:
            return [name for name, part in model.rows.items() if mask[part].any()]

        return RankReport(
            rank=len(kept),
            rows=len(b),
            freedom=model.n - len(kept),
            redundant=named(redundant),
            shared=named(shared),
            vanishing=named(vanished),
            clashing=clashing,
            redundant_rows=[model.row_names[k] for k in np.flatnonzero(redundant)],
            rtol=tolerance,
        )

    # -------------------------------------------------------------- printing

    def __repr__(self) -> str:
        n = self._q.shape[-1]
        lines = [f"System of {n} coordinate{'s' if n != 1 else ''}"]
        if self._coordinates:
            lines.append(f"  coordinates  {', '.join(self._coordinates)}")
        lines += [f"  particle     {p.name}, mass {p.mass}" for p in self._particles]
        if self._force is not None:
            shown = self._force if isinstance(self._force, Opaque) else "given"
            lines.append(f"  force        {shown!r}")
        for force in self._forces:
            inner = getattr(force, "f", getattr(force, "force", None))
            note = f", {inner!r}" if isinstance(inner, Opaque) else ""
            lines.append(f"  force        {force!r}{note}")
        lines += [f"  constraint   {c!r}" for c in self._constraints]
        if self._parameters:
            lines.append(f"  parameters   {', '.join(self._parameters)}")
        return "\n".join(lines)


_NOTHING = np.zeros(0)


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


def _joined(start: Float, more: Float) -> Float:
    """Coordinates of a system with those of one more body, over any batch."""
    if start.shape[-1] == 0:
        return more.copy()
    batch = np.broadcast_shapes(start.shape[:-1], more.shape[:-1])
    return np.concatenate(
        [np.broadcast_to(x, (*batch, x.shape[-1])) for x in (start, more)], axis=-1
    )


def _place(block: Any, M: list[int], n: int) -> None:
    for i, row in enumerate(block):
        for j, entry in enumerate(row):
            M[i * n + j] = entry.node


def _sizes(graph: Graph) -> list[tuple[int, ...]]:
    return [() if i == 0 else (size,) for i, size in enumerate(graph.arguments)]


def _count(f: Any, scene: Scene) -> int:
    return len(inspect.signature(f).parameters) - (1 if scene.has_parameters else 0)
