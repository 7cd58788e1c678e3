"""Records of models: matrices with names, motions with bodies, reports on start and rank."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .bodies import Body, RigidBody, quaternion_rates
from .kernel import solve
from .results import Motion, listed

__all__ = ["Assembly", "BodyMotion", "ModelMotion", "RankReport", "Reaction", "StartReport"]

Float = NDArray[np.float64]


class Assembly(tuple[Any, ...]):
    """M, Q, A, b, C of a model: a tuple of five, with names and tolerances.

    Attributes
    ----------
    row_names, coordinate_names : list of str
    row_scale : (..., m) ndarray
        Size of the terms that are added up in each row.
    b_error : (..., m) ndarray
        Rounding error of each entry of b.
    rtol : float or (...) ndarray
        Rank tolerance that the state asks for: ten times its distance from the constraints, at
        least the default.
    """

    row_names: list[str]
    coordinate_names: list[str]
    row_scale: Float
    b_error: Float
    rtol: Any

    def __new__(cls, parts: Sequence[Any], **_: Any) -> Assembly:
        return super().__new__(cls, parts)

    def __init__(
        self,
        parts: Sequence[Any],
        *,
        row_scale: Float,
        b_error: Float,
        off: Any,
        row_names: list[str],
        coordinate_names: list[str],
    ) -> None:
        self.row_scale, self.b_error = row_scale, b_error
        self.row_names, self.coordinate_names = row_names, coordinate_names
        n = len(coordinate_names)
        default = max(1e-12, 16 * n * float(np.finfo(float).eps))
        rtol = np.minimum(np.maximum(default, 10 * np.asarray(off)), max(default, 0.1))
        self.rtol = float(rtol) if rtol.ndim == 0 else rtol

    @property
    def names(self) -> dict[str, list[str]]:
        """Names as `gaussmech.solve` takes them."""
        return {"rows": self.row_names, "coordinates": self.coordinate_names}

    def solve(self, **options: Any) -> Motion:
        """Solve with the names, scales and tolerances of the model.

        Parameters
        ----------
        **options
            As in `gaussmech.solve`; they win over what the model says, but for `rtol` and
            `ctol`, which are never smaller than the state asks for.

        Returns
        -------
        Motion
            With the bits of ``System.solve``.

        Raises
        ------
        GaussmechError, TypeError, ValueError
            As `gaussmech.solve`.
        """
        M, Q, A, b, C = self
        options.setdefault("row_scale", self.row_scale)
        options.setdefault("b_atol", self.b_error)
        options.setdefault("names", self.names)
        rtol, ctol = options.pop("rtol", None), options.pop("ctol", 1e-9)

        def tolerances(own: float) -> dict[str, Any]:
            default = max(1e-12, 16 * len(self.coordinate_names) * float(np.finfo(float).eps))
            if own <= default:
                return {"rtol": rtol, "ctol": ctol}
            return {"rtol": max(own, rtol or 0.0), "ctol": max(own, ctol)}

        if np.ndim(self.rtol) == 0:
            return solve(M, Q, A, b, C, **tolerances(float(self.rtol)), **options)
        lowest = float(np.min(self.rtol, initial=np.inf))
        if not self.rtol.size or np.all(self.rtol == lowest):
            return solve(M, Q, A, b, C, **tolerances(lowest if self.rtol.size else 0.0), **options)
        # systems that are off the constraints have a tolerance of their own
        given = {k: options.pop(k) for k in ("row_scale", "b_atol")}
        raising = options.pop("errors", "raise")
        whole: Motion | None = None
        for own in np.unique(self.rtol):
            part = solve(M, Q, A, b, C, **tolerances(float(own)), **given, **options,
                         errors="status")  # fmt: skip
            if whole is None:
                whole = part
                continue
            mine = self.rtol == own
            for name, value in part.to_dict().items():
                getattr(whole, name)[mine] = value[mine]
        assert whole is not None
        if raising == "raise" and np.any(np.asarray(whole.status) < 0):
            for index in np.argwhere(np.asarray(whole.status) < 0)[:1]:
                at = tuple(int(i) for i in index)
                own = float(self.rtol[at])
                solve(M, Q, A, b, C, **tolerances(own), **given, **options)
        return whole

    def __repr__(self) -> str:
        M, _, A, *_ = self
        batch = f", batch shape {M.shape[:-2]}" if M.ndim > 2 else ""
        n, m = M.shape[-1], A.shape[-2]
        return (
            f"Assembly of {n} coordinate{'s' if n != 1 else ''} "
            f"({listed(self.coordinate_names, 8)}) and {m} row{'s' if m != 1 else ''}"
            + (f" ({listed(self.row_names, 8)})" if m else "")
            + batch
        )


@dataclass(slots=True, eq=False)
class Reaction:
    """What a constraint exerts.

    Attributes
    ----------
    generalized : (..., n) ndarray
        A_kᵀ μ_k, on the coordinates.
    forces : dict
        The force on each body, by name.
    moments, moments_body : dict
        The moment about the centre of mass of each body that turns: in the plane a number; in
        space a vector of space, and of the frame of the body.
    unique : bool or (...) ndarray
        Whether it is unique: not, where other constraints say the same.
    """

    generalized: Float
    forces: dict[str, Float]
    unique: Any
    moments: dict[str, Float] = field(default_factory=dict)
    moments_body: dict[str, Float] = field(default_factory=dict)

    def __repr__(self) -> str:
        lines = [
            f"  {name}  {_vector(force)}"
            + (f"  moment {_vector(self.moments[name])}" if name in self.moments else "")
            for name, force in self.forces.items()
        ]
        note = "" if np.all(self.unique) else "   (not unique: minimum norm)"
        title = f"Reaction {_vector(self.generalized)}{note}"
        return "\n".join([title, *lines])


@dataclass(slots=True, eq=False)
class BodyMotion:
    """State and acceleration of one body.

    Attributes
    ----------
    position, velocity, acceleration : (..., d) ndarray
    constraint_force : (..., d) ndarray
        Total force of all constraints on it.
    angular_velocity, angular_acceleration : float or (..., 3) ndarray, or None
        Of a body that turns: in space in the frame of the body.
    """

    position: Float
    velocity: Float
    acceleration: Float
    constraint_force: Float
    angular_velocity: Any = None
    angular_acceleration: Any = None

    def __repr__(self) -> str:
        return "\n".join(
            f"  {name:<20} {_vector(getattr(self, name))}"
            for name in (
                "position",
                "velocity",
                "acceleration",
                "constraint_force",
                "angular_velocity",
                "angular_acceleration",
            )
            if getattr(self, name) is not None
        )


def _vector(x: Float) -> str:
    return np.array2string(np.asarray(x) + 0.0, precision=6, suppress_small=True, threshold=12)


@dataclass(slots=True, eq=False, repr=False)
class ModelMotion(Motion):
    """A `Motion` of a system: fields as there, with names.

    ``motion["bob"]`` is the motion of a particle, ``motion.reaction("rod")`` what a constraint
    exerts.
    """

    rows: dict[str, slice] = field(default_factory=dict)
    bodies: tuple[Body, ...] = ()
    assemble: Callable[[], Assembly] | None = None
    q: Any = None
    qd: Any = None

    def reaction(self, name: str) -> Reaction:
        """Return what a constraint exerts: A_kᵀ μ_k, with μ of `multipliers_total`.

        Parameters
        ----------
        name : str
            Of the constraint.

        Returns
        -------
        Reaction

        Raises
        ------
        KeyError
            There is no such constraint.
        ValueError
            The multipliers were not asked for.
        """
        if name not in self.rows:
            known = ", ".join(map(repr, self.rows)) or "none"
            raise KeyError(f"no constraint has the name {name!r}; there are {known}")
        if self.multipliers_total is None or self.multipliers_unique is None:
            raise ValueError(
                "reaction needs the multipliers; solve with outputs that contain "
                "'multipliers_total' and 'multipliers_unique', or with all of them"
            )
        assert self.assemble is not None
        part = self.rows[name]
        A = self.assemble()[2][..., part, :]
        force: Float = (A * self.multipliers_total[..., part, None]).sum(axis=-2)
        unique = self.multipliers_unique[..., part].all(axis=-1)
        reaction = Reaction(force, {}, bool(unique) if np.ndim(unique) == 0 else unique)
        for body in self.bodies:
            k = body.coordinates
            if not np.any(A[..., k] != 0) or body.kind == "coordinate":
                continue
            reaction.forces[body.name] = force[..., body.place]
            if body.size == 3 and body.turns():
                reaction.moments[body.name] = force[..., body.first + 2]
            elif isinstance(body, RigidBody):
                q = np.asarray(self.q, dtype=float)
                own = 0.5 * _turned(_rates(q[..., body.quaternion]), force[..., body.quaternion])
                reaction.moments_body[body.name] = own
                reaction.moments[body.name] = _turned(body.rotation_at(q), own)
        return reaction

    def __getitem__(self, name: str) -> BodyMotion:
        for p in self.bodies:
            if p.name == name and p.kind != "coordinate":
                if self.qdd is None or self.Q_c is None:
                    raise ValueError("a body needs qdd and Q_c; solve with all outputs")
                return self._of(p)
        known = ", ".join(repr(p.name) for p in self.bodies) or "none"
        raise KeyError(f"no body has the name {name!r}; there are {known}")

    def _of(self, body: Body) -> BodyMotion:
        q, qd = np.asarray(self.q, dtype=float), np.asarray(self.qd, dtype=float)
        k = body.place
        assert self.qdd is not None and self.Q_c is not None
        motion = BodyMotion(q[..., k], qd[..., k], self.qdd[..., k], self.Q_c[..., k])
        if body.size == 3 and body.turns():
            a = body.first + 2
            motion.angular_velocity = qd[..., a]
            motion.angular_acceleration = self.qdd[..., a]
        elif isinstance(body, RigidBody):
            G = _rates(q[..., body.quaternion])
            # G(ė) ė = 0, so that the derivative of 2 G ė is 2 G ë
            motion.angular_velocity = 2 * _turned(G, qd[..., body.quaternion])
            motion.angular_acceleration = 2 * _turned(G, self.qdd[..., body.quaternion])
        return motion


def _rates(e: Float) -> Float:
    """G(e) of quaternions, (..., 3, 4)."""
    G: Float = np.moveaxis(np.array(quaternion_rates(np.moveaxis(e, -1, 0))), (0, 1), (-2, -1))
    return G


def _turned(X: Float, x: Float) -> Float:
    product: Float = (X @ x[..., None])[..., 0]
    return product


@dataclass(slots=True, eq=False, repr=False)
class StartReport:
    """What `System.project_start` did.

    Attributes
    ----------
    moved : dict
        For each coordinate that moved, the change of its value and of its velocity.
    before, after : dict
        The largest residual of each constraint.
    iterations : int
    """

    moved: dict[str, tuple[float, float]]
    before: dict[str, float]
    after: dict[str, float]
    iterations: int

    def __repr__(self) -> str:
        lines = [f"StartReport: {len(self.moved)} coordinates moved, {self.iterations} iterations"]
        lines += [
            f"  {name:<12} {dq:+.6g}  velocity {dv:+.6g}" for name, (dq, dv) in self.moved.items()
        ]
        lines += [
            f"  constraint {name!r}: residual {self.before[name]:.3g} -> {self.after[name]:.3g}"
            for name in self.before
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(repr(self))}</pre>"


@dataclass(slots=True, eq=False, repr=False)
class RankReport:
    """What the constraints of a system say beside each other.

    Attributes
    ----------
    rank, rows : int
        Independent rows, and all of them.
    freedom : int
        Degrees of freedom.
    redundant : list of str
        Constraints that add nothing to those before them, in the order in which they were added.
    shared : list of str
        Constraints whose multipliers are not unique: each could be left out for the others.
    vanishing : list of str
        Constraints with a row that is zero at this state.
    clashing : list of str
        Constraints that ask for different accelerations.
    redundant_rows : list of str
    rtol : float
        The tolerance of the decision.
    """

    rank: int
    rows: int
    freedom: int
    redundant: list[str]
    shared: list[str]
    vanishing: list[str]
    clashing: list[str]
    redundant_rows: list[str]
    rtol: float

    def __repr__(self) -> str:
        lines = [
            f"RankReport: rank {self.rank} of {self.rows} rows, {self.freedom} degree"
            f"{'s' if self.freedom != 1 else ''} of freedom"
        ]

        def line(names: list[str], one: str, many: str) -> None:
            if names:
                lines.append(
                    f"  {listed([repr(n) for n in names])} {one if len(names) == 1 else many}"
                )

        line(
            self.redundant,
            "says nothing that the constraints before it do not say",
            "say nothing that the constraints before them do not say",
        )
        line(self.shared, "has no unique multipliers", "share their load in no unique way")
        line(self.vanishing, "is zero at this state", "are zero at this state")
        line(self.clashing, "clashes", "ask for different accelerations")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(repr(self))}</pre>"
