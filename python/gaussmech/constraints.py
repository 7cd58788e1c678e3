"""Constraints: what a motion has to satisfy, as plain functions of time, place and velocity.

None of them states A or b: the rows are derived from the function. The first argument of each is
its name.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .forces import is_point
from .scene import Point
from .trace import TracedArray

if TYPE_CHECKING:
    from .bodies import RigidBody
    from .scene import Scene
    from .system import System

__all__ = [
    "Acceleration",
    "Constraint",
    "Distance",
    "Holonomic",
    "Nonholonomic",
    "Pfaffian",
    "PointOnSurface",
    "Prescribed",
    "Rod",
]

Float = NDArray[np.float64]


class Constraint:
    """What all constraints have: a name, and perhaps a non-ideal part.

    Attributes
    ----------
    name : str
    kind : {"holonomic", "nonholonomic", "acceleration"}
        Whether its function is φ(t, q), G(t, q, q̇), or A and b themselves.
    """

    kind = "holonomic"
    points: tuple[Point, ...] = ()

    def __init__(self, name: str, nonideal: Any = None) -> None:
        if not isinstance(name, str) or not name:
            raise TypeError(
                f"the name of a {type(self).__name__} is {name!r}; expected a string: the name "
                "comes first"
            )
        self.name, self.nonideal = name, nonideal

    def residual(self, scene: Scene) -> Any:
        """φ(t, q) or G(t, q, q̇) as expressions, (rows,)."""
        raise NotImplementedError

    def join(self, system: System) -> None:
        """Bring what it needs of its own into a system, such as a coordinate."""

    def set_start(self, q: Float) -> None:
        """Take from the start state what was not given."""

    def slip(self, scene: Scene) -> Any:
        """The velocity with which its first point slides, (d,): for friction."""
        velocity = scene.velocity(self.points[0])
        if len(self.points) > 1:
            velocity = velocity - scene.velocity(self.points[1])
        return velocity

    def note(self) -> str:
        """What a reader should know about it."""
        return ""

    def __repr__(self) -> str:
        note = self.note()
        points = "".join(f", {p.name}" for p in self.points)
        return f"{type(self).__name__}({self.name!r}{points}{', ' + note if note else ''})"


def as_points(owner: Constraint, points: Sequence[Any]) -> tuple[Point, ...]:
    for point in points:
        if not is_point(point):
            raise TypeError(
                f"{type(owner).__name__} {owner.name!r} has {point!r} for a point; expected a "
                "particle, a body, body.at([...]) or s.ground([...])"
            )
    return tuple(points)


class Holonomic(Constraint):
    """φ(t, q) = 0.

    Parameters
    ----------
    name : str
    phi : callable
        φ(t, q), a number or a vector.
    jacobian, rate : callable, optional
        ∂φ/∂q as a function of (t, q), and dφ/dt of (t, q, qd): they are checked against what is
        derived, and not needed.
    nonideal : callable, optional
        C(t, q, qd), (n,): the constraint force does the virtual work δqᵀC.

    Notes
    -----
    A = φ_q, b = -(φ_q q̇)_q q̇ - 2 φ_qt q̇ - φ_tt: Udwadia and Kalaba, Analytical Dynamics (1996),
    chapter 3.
    """

    def __init__(
        self,
        name: str,
        phi: Callable[..., Any],
        *,
        jacobian: Callable[..., Any] | None = None,
        rate: Callable[..., Any] | None = None,
        nonideal: Any = None,
    ) -> None:
        super().__init__(name, nonideal)
        if not callable(phi):
            raise TypeError(f"phi of {name!r} is {phi!r}; expected a function phi(t, q)")
        self.phi, self.jacobian, self.rate = phi, jacobian, rate

    def residual(self, scene: Scene) -> Any:
        return scene.call(self.phi, f"constraint {self.name!r}", "tq", (None,))


class Nonholonomic(Constraint):
    """G(t, q, q̇) = 0, linear in the velocities or not.

    Parameters
    ----------
    name : str
    G : callable
        G(t, q, qd), a number or a vector.
    jacobian : callable, optional
        ∂G/∂q̇ as a function of (t, q, qd), to be checked against what is derived.
    nonideal : callable, optional
        As in `Holonomic`.

    Notes
    -----
    A = G_v, b = -(G_t + G_q q̇). A function without velocities is refused: its derivative would
    leave A zero.
    """

    kind = "nonholonomic"

    def __init__(
        self,
        name: str,
        G: Callable[..., Any],
        *,
        jacobian: Callable[..., Any] | None = None,
        nonideal: Any = None,
    ) -> None:
        super().__init__(name, nonideal)
        if not callable(G):
            raise TypeError(f"G of {name!r} is {G!r}; expected a function G(t, q, qd)")
        self.G, self.jacobian = G, jacobian

    def residual(self, scene: Scene) -> Any:
        return scene.call(self.G, f"constraint {self.name!r}", "tqv", (None,))


class Pfaffian(Constraint):
    """a(t, q) q̇ + a0(t, q) = 0: linear in the velocities.

    Parameters
    ----------
    name : str
    a : (n,) or (k, n) array_like, or callable
        The coefficients, constant or a(t, q).
    a0 : float or (k,) array_like, or callable, optional
        What does not depend on the velocities, constant or a0(t, q).
    nonideal : callable, optional
        As in `Holonomic`.
    """

    kind = "nonholonomic"

    def __init__(self, name: str, a: Any, a0: Any = None, *, nonideal: Any = None) -> None:
        super().__init__(name, nonideal)
        self.a, self.a0 = a, a0

    def residual(self, scene: Scene) -> Any:
        name = f"constraint {self.name!r}"
        a = scene.call(self.a, name, "tq") if callable(self.a) else np.asarray(self.a, float)
        if np.ndim(a) not in (1, 2) or np.shape(a)[-1] != scene.n:
            raise ValueError(
                f"{name}: a has shape {np.shape(a)}; expected ({scene.n},) or (k, {scene.n})"
            )
        rows = np.atleast_2d(a) @ scene.qd
        if self.a0 is None:
            return rows
        if callable(self.a0):
            return rows + scene.call(self.a0, name, "tq", (len(rows),))
        return rows + scene.number(f"a0 of {name}", np.atleast_1d(self.a0), (len(rows),))


class Acceleration(Constraint):
    """A q̈ = b, as it stands.

    Parameters
    ----------
    name : str
    A : (n,) or (k, n) array_like, or callable
        Rows, constant or A(t, q, qd).
    b : float or (k,) array_like, or callable
        Right sides, constant or b(t, q, qd).
    nonideal : callable, optional
        As in `Holonomic`.
    """

    kind = "acceleration"

    def __init__(self, name: str, A: Any, b: Any, *, nonideal: Any = None) -> None:
        super().__init__(name, nonideal)
        self.A, self.b = A, b

    def rows(self, scene: Scene) -> tuple[Any, Any]:
        """A (k, n) and b (k,) as expressions."""
        name = f"constraint {self.name!r}"
        A = scene.call(self.A, name, "tqv") if callable(self.A) else np.asarray(self.A, float)
        if np.ndim(A) not in (1, 2) or np.shape(A)[-1] != scene.n:
            raise ValueError(
                f"{name}: A has shape {np.shape(A)}; expected ({scene.n},) or (k, {scene.n})"
            )
        A = np.atleast_2d(A)
        if not isinstance(A, TracedArray):
            A = scene.number(f"A of {name}", A, A.shape)
        if callable(self.b):
            return A, scene.call(self.b, name, "tqv", (len(A),))
        return A, scene.number(f"b of {name}", np.atleast_1d(self.b), (len(A),))


class Distance(Constraint):
    """The distance of two points is fixed: |r_p - r_q| = length.

    The multiplier is the force along the line of the points, positive where they are pushed
    apart.

    Parameters
    ----------
    name : str
    p, q : points
        Particles, ground.
    length : float or (B,) array_like, optional
        Default: the distance at the start.
    nonideal : callable, optional
        As in `Holonomic`.
    """

    def __init__(
        self, name: str, p: Any, q: Any, length: Any = None, *, nonideal: Any = None
    ) -> None:
        super().__init__(name, nonideal)
        self.points = as_points(self, [p, q])
        self.length, self._given = length, length is not None

    def set_start(self, q: Float) -> None:
        if not self._given:
            first, second = (p.start(q) for p in self.points)  # type: ignore[attr-defined]
            self.length = np.linalg.norm(np.asarray(first) - np.asarray(second), axis=-1)

    def residual(self, scene: Scene) -> Any:
        p, q = self.points
        r = p.position(scene) - q.position(scene)
        length = scene.number(f"length of {self.name!r}", self.length)
        return np.array([np.sqrt(r @ r) - length])

    def note(self) -> str:
        if self._given or self.length is None:
            return f"length={self.length!r}" if self._given else "length at the start"
        return f"length={self.length:.6g} at the start" if np.ndim(self.length) == 0 else "at start"


class Rod(Constraint):
    """A straight massless rod through two or more points, which keep their places on it.

    Distances alone do not say that: of three of them only two are independent while the points
    are in line, and they may leave it. So the distance of the first and the last point is fixed,
    and each point between them divides it in the ratio of the start.

    Parameters
    ----------
    name : str
    *points : points
        Particles, ground; in line at the start.
    nonideal : callable, optional
        As in `Holonomic`.
    """

    def __init__(self, name: str, *points: Any, nonideal: Any = None) -> None:
        super().__init__(name, nonideal)
        self.points = as_points(self, points)
        if len(points) < 2:
            raise ValueError(f"Rod {name!r} has {len(points)} points; expected two or more")
        self._length: Any = None
        self._shares: list[Any] = []

    def set_start(self, q: Float) -> None:
        first, *between, last = (np.asarray(p.start(q)) for p in self.points)  # type: ignore[attr-defined]
        whole = last - first
        square = (whole * whole).sum(axis=-1)
        if not np.all(square > 0):
            raise ValueError(f"Rod {self.name!r}: its first and last point meet; expected a length")
        self._length = np.sqrt(square)
        self._shares = [((r - first) * whole).sum(axis=-1) / square for r in between]

    def residual(self, scene: Scene) -> Any:
        first, *between, last = (p.position(scene) for p in self.points)
        whole = last - first
        name = f"length of {self.name!r}"
        rows = [np.sqrt(whole @ whole) - scene.number(name, self._length)]
        for r, share in zip(between, self._shares, strict=True):
            rows.extend(r - first - whole * scene.number(f"a share of {self.name!r}", share))
        return np.array(rows)

    def note(self) -> str:
        return "places at the start"


class Prescribed(Constraint):
    """A coordinate follows a function of time; the multiplier is the driving force.

    Parameters
    ----------
    name : str
    what : str or int
        The coordinate, by name ("x", "bob.x") or index.
    f : callable or float
        Its course f(t).
    nonideal : callable, optional
        As in `Holonomic`.
    """

    def __init__(self, name: str, what: str | int, f: Any, *, nonideal: Any = None) -> None:
        super().__init__(name, nonideal)
        self.what, self.f = what, f
        self.index: int | None = None

    def residual(self, scene: Scene) -> Any:
        assert self.index is not None, "the system has looked it up"
        course = (
            scene.call(self.f, f"constraint {self.name!r}", "t", (1,))[0]
            if callable(self.f)
            else scene.number(f"value of {self.name!r}", self.f)
        )
        return np.array([scene.q[self.index] - course])


class PointOnSurface(Constraint):
    """A point stays on a surface (in the plane: a curve) f = 0.

    Parameters
    ----------
    name : str
    p : point
        A particle.
    f : callable
        f(r) of the place r, or f(t, r) for one that moves; a number, or several for a curve in
        space.
    nonideal : callable, optional
        As in `Holonomic`.
    """

    def __init__(self, name: str, p: Any, f: Callable[..., Any], *, nonideal: Any = None) -> None:
        super().__init__(name, nonideal)
        self.points = as_points(self, [p])
        if not callable(f):
            raise TypeError(f"f of {name!r} is {f!r}; expected a function f(r) or f(t, r)")
        self.f = f

    def residual(self, scene: Scene) -> Any:
        (point,) = self.points
        extra = 1 if scene.has_parameters else 0
        moving = len(inspect.signature(self.f).parameters) - extra >= 2
        name = f"constraint {self.name!r}"
        return scene.call(self.f, name, "tr" if moving else "r", (None,), point)


class UnitQuaternion(Constraint):
    """The quaternion of a rigid body has length one; made with the body."""

    def __init__(self, name: str, body: RigidBody) -> None:
        super().__init__(name)
        self.points = as_points(self, [body])

    def residual(self, scene: Scene) -> Any:
        (body,) = self.points
        e = scene.q[body.quaternion]  # type: ignore[attr-defined]
        return np.array([(e @ e - 1.0) * 0.5])
