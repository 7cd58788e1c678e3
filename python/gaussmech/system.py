"""Systems: bodies, forces and constraints become M, Q, A, b, C.

All functions are read once, differentiated exactly and compiled to one program of
(t, q, q̇, parameters), so that assembling and solving a state is one call into C.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .assembly import Assembly, ModelMotion, RankReport, StartReport
from .bodies import (
    Body,
    Coordinate,
    Ground,
    Particle,
    PlanarBody,
    RigidBody,
    quaternion_rates,
)
from .constraints import Constraint, UnitQuaternion
from .errors import GaussmechError
from .forces import Force
from .inputs import as_float
from .kernel import ALL_FIELDS, check_options, fields_wanted
from .program import convert_arguments
from .reading import NAMES, Model, read
from .results import STATUSES
from .scene import Opaque, Parameters
from .start import check_start, project_start, rank_report

__all__ = ["System"]

Float = NDArray[np.float64]
BOTH_SENTENCES = (
    'say coriolis="derive": force holds the applied forces, and the velocity terms are derived '
    'from mass_matrix(t, q); or coriolis="included": force is the full right-hand side of '
    "M q̈ = force + Q_c, with the velocity terms in it"
)


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
        self._t = 0.0
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
        self._bodies: list[Body] = []
        self._forces: list[Force] = []
        self._constraints: list[Constraint] = []
        self._model: Model | None = None

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
        """Names of all coordinates: the generalized ones, then those of bodies."""
        names = list(self._coordinates)
        for p in self._bodies:
            names += p.labels()
        return names

    @property
    def t(self) -> float:
        """Start time."""
        return self._t

    @t.setter
    def t(self, value: float) -> None:
        self._t = float(value)
        self._model = None

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
        taken = {p.name for p in self._bodies} | {c.name for c in self._constraints}
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
        m = self._mass_of(name, "particle", mass)
        r, v = self._placed(name, "particle", position, velocity)
        particle = Particle(name, m, r.shape[-1], self._q.shape[-1])
        self._join(particle, r, v)
        return particle

    def add_planar_body(
        self,
        name: str,
        *,
        mass: ArrayLike,
        inertia: ArrayLike,
        position: ArrayLike,
        angle: ArrayLike,
        velocity: ArrayLike,
        angular_velocity: ArrayLike,
    ) -> PlanarBody:
        """Add a body in the plane; its coordinates are x, y and an angle.

        Parameters
        ----------
        name : str
        mass, inertia : float or (B,) array_like
            Not negative; the inertia about the centre of mass.
        position, velocity : (2,) or (B, 2) array_like
            Of the centre of mass, at the start.
        angle, angular_velocity : float or (B,) array_like
            In radians, counter-clockwise.

        Returns
        -------
        PlanarBody
            ``body.at([x, y])`` is a point that is fixed on it.

        Raises
        ------
        TypeError, ValueError
            As `add_particle`.
        """
        m = self._mass_of(name, "planar body", mass)
        J = self._mass_of(name, "planar body", inertia, "inertia")
        r, v = self._placed(name, "planar body", position, velocity, 2)
        turn = as_float(f"angle of {name!r}", angle)[..., None]
        rate = as_float(f"angular_velocity of {name!r}", angular_velocity)[..., None]
        self._finite(name, turn, rate)
        body = PlanarBody(name, m, 2, self._q.shape[-1], J)
        self._join(body, _joined(r, turn), _joined(v, rate))
        return body

    def add_rigid_body(
        self,
        name: str,
        *,
        mass: ArrayLike,
        inertia: ArrayLike,
        position: ArrayLike,
        quaternion: ArrayLike = (1.0, 0.0, 0.0, 0.0),
        velocity: ArrayLike,
        angular_velocity: ArrayLike,
    ) -> RigidBody:
        """Add a rigid body in space; its coordinates are x, y, z and a unit quaternion.

        A constraint ``name.unit`` keeps the quaternion to length one.

        Parameters
        ----------
        name : str
        mass : float or (B,) array_like
            Not negative.
        inertia : (3,) or (3, 3) array_like, or (B, 3, 3)
            About the centre of mass, in the frame of the body; three numbers are principal
            moments.
        position, velocity : (3,) or (B, 3) array_like
            Of the centre of mass, in space, at the start.
        quaternion : (4,) or (B, 4) array_like
            Orientation, scalar first; of length one within 1e-6, and made so.
        angular_velocity : (3,) or (B, 3) array_like
            In the frame of the body.

        Returns
        -------
        RigidBody
            ``body.at([x, y, z])`` is a point, ``body.axis([x, y, z])`` a direction on it.

        Raises
        ------
        TypeError, ValueError
            As `add_particle`; an inertia that is not positive semidefinite; a quaternion that is
            no orientation.

        Notes
        -----
        T = ½ m v² + ½ ωᵀJω with ω = 2 G(e) ė: the mass matrix 4 GᵀJG of the quaternion has rank
        three.
        """
        m = self._mass_of(name, "rigid body", mass)
        J = as_float(f"inertia of {name!r}", inertia)
        if J.shape == (3,):
            J = np.diag(J)
        if J.shape[-2:] != (3, 3):
            raise ValueError(
                f"inertia of {name!r} has shape {J.shape}; expected (3, 3), or three principal "
                "moments"
            )
        scale = max(float(np.abs(J).max(initial=0.0)), 1e-300)
        skew = np.abs(J - np.swapaxes(J, -1, -2)).max(initial=0.0)
        if not np.isfinite(J).all() or skew > 1e-10 * scale:
            raise ValueError(f"inertia of {name!r} is not symmetric; expected J[i, j] = J[j, i]")
        least = float(np.linalg.eigvalsh(J).min(initial=np.inf))
        if least < -1e-12 * scale:
            raise ValueError(
                f"inertia of {name!r} has the eigenvalue {least:.6g}; expected moments of 0 or more"
            )
        r, v = self._placed(name, "rigid body", position, velocity, 3)
        e = as_float(f"quaternion of {name!r}", quaternion)
        omega = as_float(f"angular_velocity of {name!r}", angular_velocity)
        if e.shape[-1:] != (4,) or omega.shape[-1:] != (3,):
            raise ValueError(
                f"quaternion and angular_velocity of {name!r} have shapes {e.shape} and "
                f"{omega.shape}; expected (..., 4) and (..., 3)"
            )
        self._finite(name, e, omega)
        length = np.linalg.norm(e, axis=-1, keepdims=True)
        if np.any(np.abs(length - 1.0) > 1e-6):
            raise ValueError(
                f"quaternion of {name!r} has length {float(length.ravel()[0]):.6g}; expected 1"
            )
        e = e / length
        G = np.moveaxis(np.array(quaternion_rates(np.moveaxis(e, -1, 0))), (0, 1), (-2, -1))
        ed = 0.5 * (np.swapaxes(G, -1, -2) @ omega[..., None])[..., 0]
        body = RigidBody(name, m, 3, self._q.shape[-1], J)
        self._join(body, _joined(r, e), _joined(v, ed))
        self._constraints.append(UnitQuaternion(f"{name}.unit", body))
        return body

    def _mass_of(self, name: str, kind: str, value: ArrayLike, what: str = "mass") -> Any:
        if what == "mass":
            self._take_name(name, kind)
        m = as_float(f"{what} of {name!r}", value)
        if not (np.isfinite(m).all() and np.all(m >= 0)):
            raise ValueError(f"{what} of {name!r} is {value!r}; expected a number of 0 or more")
        return m if m.ndim else float(m)

    def _placed(
        self, name: str, kind: str, position: ArrayLike, velocity: ArrayLike, d: int | None = None
    ) -> tuple[Float, Float]:
        r = np.atleast_1d(as_float(f"position of {name!r}", position))
        v = np.atleast_1d(as_float(f"velocity of {name!r}", velocity))
        if d is not None and r.shape[-1] != d:
            raise ValueError(f"position of {name!r} has shape {r.shape}; expected (..., {d})")
        self._check_dimension(r.shape[-1], f"{kind} {name!r}")
        if v.shape[-1] != r.shape[-1]:
            raise ValueError(
                f"velocity of {name!r} has shape {v.shape}; expected (..., {r.shape[-1]}) like its "
                "position"
            )
        self._finite(name, r, v)
        return r, v

    def _finite(self, name: str, *values: Float) -> None:
        if not all(np.isfinite(x).all() for x in values):
            raise ValueError(f"the start of {name!r} is not finite; expected numbers")

    def _join(self, body: Body, q: Float, qd: Float) -> None:
        """Add a body with its start."""
        self._q, self._qd = _joined(self._q, q), _joined(self._qd, qd)
        self._bodies.append(body)
        self._model = None

    def add_coordinate(self, name: str, value: ArrayLike, rate: ArrayLike) -> Coordinate:
        """Add a coordinate without mass, which constraints have to hold.

        Parameters
        ----------
        name : str
        value, rate : float or (B,) array_like
            Its start.

        Returns
        -------
        Coordinate

        Raises
        ------
        TypeError, ValueError
            A name that is taken, a start that is not finite.
        """
        self._take_name(name, "coordinate")
        u = as_float(f"the start of {name!r}", value)[..., None]
        ud = as_float(f"the rate of {name!r}", rate)[..., None]
        self._finite(name, u, ud)
        coordinate = Coordinate(name, 0.0, 1, self._q.shape[-1])
        self._join(coordinate, u, ud)
        return coordinate

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
        constraint.join(self)
        constraint.set_start(self._q)
        self._constraints.append(constraint)
        self._model = None

    def _check_points(self, points: Iterable[Any], who: str) -> None:
        for point in points:
            body = point.body
            if body is not None and body not in self._bodies:
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

    # -------------------------------------------------------------- states

    def _arguments(self, model: Model, t: Any, q: Any, qd: Any) -> tuple[Any, ...]:
        """What the programs take: the start state where nothing is given.

        They ask for a conversion themselves; only functions in Python need it beforehand.
        """
        t = self.t if t is None else t
        q = self._q if q is None else q
        qd = self._qd if qd is None else qd
        if not model.opaque and model.multipliers is None:
            return t, q, qd, model.parameters, _NOTHING
        shapes = model.compiled.shapes[:4]
        t, q, qd, _ = convert_arguments(NAMES[:4], shapes, (t, q, qd, model.parameters))
        x = self._opaque(model, t, q, qd) if model.opaque else _NOTHING
        if model.multipliers is not None:
            x = self._with_friction(model, t, q, qd, x)
        return t, q, qd, model.parameters, x

    def _with_friction(self, model: Model, t: Any, q: Float, qd: Float, x: Float) -> Float:
        """x with the total multipliers for which friction and motion agree."""
        m = len(model.row_names)
        p = model.parameters
        batch = np.broadcast_shapes(np.shape(t), q.shape[:-1], qd.shape[:-1], p.shape[:-1])
        whole = np.zeros((*batch, x.shape[-1] + m))
        whole[..., : x.shape[-1]] = x
        if model.slips is not None:
            names, speeds = model.slips
            (slip,) = speeds(NAMES, t, q, qd, p, whole)
            if np.any(slip == 0):
                *at, k = (int(i) for i in np.argwhere(slip == 0)[0])
                where = f" at index {tuple(at)}" if at else ""
                raise ValueError(
                    f"constraint {names[k]!r} does not slide{where}: at zero sliding speed the "
                    "direction of dry friction is open (stick or slip), which needs contact laws"
                )
        part = model.multipliers
        wanted = fields_wanted(("multipliers_total",))
        last = np.inf
        for step in range(MOST_ITERATIONS):
            raw = model.compiled.kernel.solve(t, q, qd, p, whole, None, 1e-9, 0, wanted, True)
            assert raw is not None, "converted arguments are what the core takes"
            found = raw[5]
            if not np.isfinite(found).all() and step == 0:
                return whole  # without friction it has no answer either: solving says why
            change = np.abs(found - whole[..., part])
            size = np.abs(found).max(axis=-1, keepdims=True, initial=0.0)
            whole[..., part] = found
            ratio = float(np.max(change / np.maximum(size, 1e-300), initial=0.0))
            # at rounding level, and no longer getting better
            if ratio <= 4e-16 or (ratio <= 1e-13 and ratio >= 0.5 * last):
                return whole
            if not ratio < np.inf:
                break
            last = ratio
        raise GaussmechError(
            f"friction and reactions do not agree after {step + 1} iterations: the coupling is too "
            "strong, and the mechanism jams or there is no answer (Painlevé); smaller coefficients "
            "of friction, or contact laws, are needed"
        )

    def _opaque(self, model: Model, t: Any, q: Float, qd: Float) -> Float:
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
        model = read(self)
        if t is None and q is None and qd is None:
            check_start(self, model)
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
            model = read(self)
        if start:
            check_start(self, model)
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
            "bodies": model.bodies,
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
        return project_start(self, hold, hold_rate)

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
        return rank_report(self, t, q, qd)

    # -------------------------------------------------------------- printing

    def __repr__(self) -> str:
        n = self._q.shape[-1]
        lines = [f"System of {n} coordinate{'s' if n != 1 else ''}"]
        if self._coordinates:
            lines.append(f"  coordinates  {', '.join(self._coordinates)}")
        lines += [
            f"  {p.kind:<12} {p.name}, mass {p.mass}"
            for p in self._bodies
            if not isinstance(p, Coordinate)
        ]
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
MOST_ITERATIONS = 400


def _joined(start: Float, more: Float) -> Float:
    """Coordinates of a system with those of one more body, over any batch."""
    if start.shape[-1] == 0:
        return more.copy()
    batch = np.broadcast_shapes(start.shape[:-1], more.shape[:-1])
    return np.concatenate(
        [np.broadcast_to(x, (*batch, x.shape[-1])) for x in (start, more)], axis=-1
    )
