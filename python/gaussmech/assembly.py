"""Records of models: matrices with names, motions with bodies, reports on start and rank."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .bodies import Body
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
        The force on each particle, by name.
    unique : bool or (...) ndarray
        Whether it is unique: not, where other constraints say the same.
    """

    generalized: Float
    forces: dict[str, Float]
    unique: Any

    def __repr__(self) -> str:
        lines = [f"  {name}  {_vector(force)}" for name, force in self.forces.items()]
        note = "" if np.all(self.unique) else "   (not unique: minimum norm)"
        title = f"Reaction {_vector(self.generalized)}{note}"
        return "\n".join([title, *lines])


@dataclass(slots=True, eq=False)
class BodyMotion:
    """State and acceleration of one particle.

    Attributes
    ----------
    position, velocity, acceleration : (..., d) ndarray
    constraint_force : (..., d) ndarray
        Total force of all constraints on it.
    """

    position: Float
    velocity: Float
    acceleration: Float
    constraint_force: Float

    def __repr__(self) -> str:
        return "\n".join(
            f"  {name:<16} {_vector(getattr(self, name))}"
            for name in ("position", "velocity", "acceleration", "constraint_force")
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
        forces = {
            p.name: force[..., p.coordinates]
            for p in self.bodies
            if np.any(A[..., p.coordinates] != 0)
        }
        return Reaction(force, forces, bool(unique) if np.ndim(unique) == 0 else unique)

    def __getitem__(self, name: str) -> BodyMotion:
        for p in self.bodies:
            if p.name == name:
                if self.qdd is None or self.Q_c is None:
                    raise ValueError("a particle needs qdd and Q_c; solve with all outputs")
                k = p.coordinates
                return BodyMotion(
                    self.q[..., k], self.qd[..., k], self.qdd[..., k], self.Q_c[..., k]
                )
        known = ", ".join(repr(p.name) for p in self.bodies) or "none"
        raise KeyError(f"no particle has the name {name!r}; there are {known}")


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
