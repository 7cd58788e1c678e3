"""Joints of bodies: what holds points, directions and orientations together.

Each is a plain function of places and directions, traced and differentiated like one of the user's.
Directions that are not given are taken from the start. In space an axis is a direction of a body,
``body.axis([0, 0, 1])``, or a vector of space at the start; in the plane axes along the plane have
two numbers, and hinges need none.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .bodies import Direction, OrientedBody, PlanarBody, RigidBody, fixed_direction
from .constraints import Constraint, as_points
from .inputs import as_float
from .trace import as_array

if TYPE_CHECKING:
    from .scene import Scene
    from .system import System

__all__ = [
    "Cylindrical",
    "Gear",
    "KnifeEdge",
    "PointOnCurve",
    "PointOnLine",
    "PointOnPlane",
    "PointOnPoint",
    "Prismatic",
    "Pulley",
    "Revolute",
    "RollingDisk",
    "RollingSphere",
    "RollingWheel",
    "Universal",
    "Weld",
]

Float = NDArray[np.float64]


class Joint(Constraint):
    """A constraint between two points p and q."""

    def __init__(self, name: str, p: Any, q: Any, *, nonideal: Any = None) -> None:
        super().__init__(name, nonideal)
        self.points = as_points(self, [p, q])
        d = self.points[0].dimension
        if self.points[1].dimension != d:
            raise ValueError(
                f"{type(self).__name__} {name!r} joins {self.points[0].name!r} in {d} dimensions "
                f"and {self.points[1].name!r} in {self.points[1].dimension}"
            )
        self.dimension = d

    def gap(self, scene: Scene) -> Any:
        """r_p - r_q."""
        p, q = self.points
        return p.position(scene) - q.position(scene)

    def body(self, which: int) -> Any:
        """The body that carries a point, None for the ground."""
        return self.points[which].body

    def needs_orientation(self) -> None:
        """ValueError where both ends are particles or ground."""
        if not any(isinstance(self.body(k), OrientedBody) for k in (0, 1)):
            raise ValueError(
                f"{type(self).__name__} {self.name!r} joins no body that turns; expected a planar "
                "or a rigid body"
            )

    def direction(self, given: Any, which: int, q: Float, what: str = "axis") -> Direction:
        """A direction as given, fixed on the body of one of the points."""
        if isinstance(given, Direction):
            if given.body is self.body(which):
                return given
            return fixed_direction(self.body(which), given.start(q), q)
        vector = as_float(f"{what} of {self.name!r}", given)
        if vector.shape != (self.dimension,) or not np.linalg.norm(vector) > 0:
            raise ValueError(
                f"{what} of {self.name!r} is {given!r}; expected body.axis([...]) or a vector of "
                f"{self.dimension} numbers that is not zero"
            )
        return fixed_direction(self.body(which), vector / np.linalg.norm(vector), q)

    def across(self, axis: Direction, which: int, q: Float) -> list[Direction]:
        """Directions across an axis, fixed on the body of one of the points."""
        u = axis.start(q)
        if self.dimension == 2:
            normal = np.stack([-u[..., 1], u[..., 0]], axis=-1)
            return [fixed_direction(self.body(which), normal, q)]
        least = np.argmin(np.abs(u), axis=-1)
        first = np.cross(u, np.eye(3)[least])
        first = first / np.linalg.norm(first, axis=-1, keepdims=True)
        return [fixed_direction(self.body(which), v, q) for v in (first, np.cross(u, first))]

    def triads(self, q: Float) -> list[tuple[Direction, Direction]]:
        """Pairs of directions, one on each body, at right angles as long as both turn alike."""
        axes = [[fixed_direction(self.body(k), e, q) for e in np.eye(3)] for k in (0, 1)]
        return [(axes[0][i], axes[1][j]) for i, j in ((0, 1), (1, 2), (2, 0))]

    def same_orientation(self, scene: Scene) -> list[Any]:
        """Rows that hold the orientation of the bodies to each other, as at the start."""
        if self.dimension == 2:
            return [_angle(self.body(0), scene) - _angle(self.body(1), scene) - self._twist(scene)]
        return [a.vector(scene) @ b.vector(scene) for a, b in self._triads]

    _triads: list[tuple[Direction, Direction]]
    _start_twist: Any = 0.0

    def _twist(self, scene: Scene) -> Any:
        return scene.number(f"angle of {self.name!r}", self._start_twist)

    def set_orientation(self, q: Float) -> None:
        if self.dimension == 2:
            self._start_twist = _angle_at(self.body(0), q) - _angle_at(self.body(1), q)
        else:
            self._triads = self.triads(q)


def _angle(body: Any, scene: Scene) -> Any:
    """The angle of a planar body; of the ground and of particles it is zero."""
    if isinstance(body, PlanarBody):
        return body.angle(scene)
    return scene.number("no angle", 0.0)


def _angle_at(body: Any, q: Float) -> Any:
    return q[..., body.first + 2] if isinstance(body, PlanarBody) else 0.0


class PointOnPoint(Joint):
    """Two points coincide: a ball joint in space, a pin in the plane.

    Parameters
    ----------
    name : str
    p, q : points
        ``body.at([...])``, a body (its centre of mass), a particle, ``s.ground([...])``.
    nonideal : optional
        As in `Holonomic`.
    """

    def residual(self, scene: Scene) -> Any:
        return self.gap(scene)


class Revolute(Joint):
    """A hinge: two points coincide, and in space an axis is common to both bodies.

    Parameters
    ----------
    name : str
    p, q : points
    axis : direction, optional
        ``body.axis([...])``, or a vector of space at the start; none in the plane.
    nonideal : optional
        As in `Holonomic`.
    """

    def __init__(
        self, name: str, p: Any, q: Any, axis: Any = None, *, nonideal: Any = None
    ) -> None:
        super().__init__(name, p, q, nonideal=nonideal)
        if (axis is None) != (self.dimension == 2):
            raise ValueError(
                f"Revolute {name!r} has "
                + ("no axis; expected one in space" if axis is None else "an axis in the plane")
            )
        self.needs_orientation()
        self.axis = axis

    def set_start(self, q: Float) -> None:
        if self.dimension == 3:
            self._axis = self.direction(self.axis, 0, q)
            self._across = self.across(self._axis, 1, q)

    def residual(self, scene: Scene) -> Any:
        rows = [*self.gap(scene)]
        if self.dimension == 3:
            u = self._axis.vector(scene)
            rows += [u @ n.vector(scene) for n in self._across]
        return np.array(rows)


class Cylindrical(Joint):
    """Two bodies slide along a common axis and turn about it, in space.

    Parameters
    ----------
    name : str
    p, q : points
        On the axis.
    axis : direction
    nonideal : optional
        As in `Holonomic`.
    """

    def __init__(self, name: str, p: Any, q: Any, axis: Any, *, nonideal: Any = None) -> None:
        super().__init__(name, p, q, nonideal=nonideal)
        if self.dimension != 3:
            raise ValueError(f"Cylindrical {name!r} is in the plane; expected bodies in space")
        self.needs_orientation()
        self.axis = axis

    def set_start(self, q: Float) -> None:
        self._axis = self.direction(self.axis, 0, q)
        self._across = self.across(self._axis, 1, q)

    def residual(self, scene: Scene) -> Any:
        u, gap = self._axis.vector(scene), self.gap(scene)
        normals = [n.vector(scene) for n in self._across]
        return np.array([*(u @ n for n in normals), *(gap @ n for n in normals)])


class Prismatic(Joint):
    """Two bodies slide along an axis and do not turn to each other.

    Parameters
    ----------
    name : str
    p, q : points
        On a line along the axis.
    axis : direction
        In the plane too.
    nonideal : optional
        As in `Holonomic`.
    """

    def __init__(self, name: str, p: Any, q: Any, axis: Any, *, nonideal: Any = None) -> None:
        super().__init__(name, p, q, nonideal=nonideal)
        self.needs_orientation()
        self.axis = axis

    def set_start(self, q: Float) -> None:
        self._axis = self.direction(self.axis, 1, q)
        self._across = self.across(self._axis, 1, q)
        self.set_orientation(q)

    def residual(self, scene: Scene) -> Any:
        gap = self.gap(scene)
        along = [gap @ n.vector(scene) for n in self._across]
        return np.array([*along, *self.same_orientation(scene)])


class Universal(Joint):
    """A Cardan joint: two points coincide, and an axis of each body are at right angles.

    Parameters
    ----------
    name : str
    p, q : points
    axis_p, axis_q : direction
        On the bodies of p and of q, at right angles at the start.
    nonideal : optional
        As in `Holonomic`.
    """

    def __init__(
        self, name: str, p: Any, q: Any, axis_p: Any, axis_q: Any, *, nonideal: Any = None
    ) -> None:
        super().__init__(name, p, q, nonideal=nonideal)
        if self.dimension != 3:
            raise ValueError(f"Universal {name!r} is in the plane; expected bodies in space")
        self.needs_orientation()
        self.axis_p, self.axis_q = axis_p, axis_q

    def set_start(self, q: Float) -> None:
        self._axes = [self.direction(self.axis_p, 0, q), self.direction(self.axis_q, 1, q)]

    def residual(self, scene: Scene) -> Any:
        u, v = (axis.vector(scene) for axis in self._axes)
        return np.array([*self.gap(scene), u @ v])


class Weld(Joint):
    """Two bodies move as one: points coincide and orientations stay as at the start.

    Parameters
    ----------
    name : str
    p, q : points
    nonideal : optional
        As in `Holonomic`.
    """

    def __init__(self, name: str, p: Any, q: Any, *, nonideal: Any = None) -> None:
        super().__init__(name, p, q, nonideal=nonideal)
        self.needs_orientation()

    def set_start(self, q: Float) -> None:
        self.set_orientation(q)

    def residual(self, scene: Scene) -> Any:
        return np.array([*self.gap(scene), *self.same_orientation(scene)])


class PointOnLine(Joint):
    """A point stays on a line.

    Parameters
    ----------
    name : str
    p : point
    q : point
        Of the line.
    axis : direction
        Of the line, on the body of q.
    nonideal : optional
        As in `Holonomic`.
    """

    def __init__(self, name: str, p: Any, q: Any, axis: Any, *, nonideal: Any = None) -> None:
        super().__init__(name, p, q, nonideal=nonideal)
        self.axis = axis

    def set_start(self, q: Float) -> None:
        self._across = self.across(self.direction(self.axis, 1, q), 1, q)

    def residual(self, scene: Scene) -> Any:
        gap = self.gap(scene)
        return np.array([gap @ n.vector(scene) for n in self._across])


class PointOnPlane(Joint):
    """A point stays on a plane (in two dimensions: a line).

    Parameters
    ----------
    name : str
    p : point
    q : point
        Of the plane.
    normal : direction
        Of the plane, on the body of q.
    nonideal : optional
        As in `Holonomic`.
    """

    def __init__(self, name: str, p: Any, q: Any, normal: Any, *, nonideal: Any = None) -> None:
        super().__init__(name, p, q, nonideal=nonideal)
        self.normal = normal

    def set_start(self, q: Float) -> None:
        self._normal = self.direction(self.normal, 1, q, "normal")

    def residual(self, scene: Scene) -> Any:
        return np.array([self.gap(scene) @ self._normal.vector(scene)])


class PointOnCurve(Constraint):
    """A point stays on a curve, fixed or moving: r = curve(t, u).

    The place u along the curve is a coordinate without mass, ``name.u``: the mass matrix is
    singular, and the constraint holds it.

    Parameters
    ----------
    name : str
    point : point
    curve : callable
        curve(u) or curve(t, u), the place in space.
    u, ud : float
        The place along the curve at the start, and its rate.
    nonideal : optional
        As in `Holonomic`.
    """

    def __init__(
        self,
        name: str,
        point: Any,
        curve: Callable[..., Any],
        *,
        u: Any,
        ud: Any = 0.0,
        nonideal: Any = None,
    ) -> None:
        super().__init__(name, nonideal)
        self.points = as_points(self, [point])
        if not callable(curve):
            raise TypeError(f"curve of {name!r} is {curve!r}; expected a function curve(t, u)")
        self.curve, self.u, self.ud = curve, u, ud

    def join(self, system: System) -> None:
        self._u = system.add_coordinate(f"{self.name}.u", self.u, self.ud)

    def residual(self, scene: Scene) -> Any:
        (point,) = self.points
        return point.position(scene) - self._place(scene)

    def slip(self, scene: Scene) -> Any:
        # along the wire, which may move: ∂curve/∂u u̇
        graph, u = scene.graph, scene.q[self._u.first].node
        rate = {u: scene.qd[self._u.first].node}
        nodes = graph.rate([e.node for e in self._place(scene)], rate)
        return as_array(graph, nodes, (len(nodes),))

    def _place(self, scene: Scene) -> Any:
        extra = 1 if scene.has_parameters else 0
        moving = len(inspect.signature(self.curve).parameters) - extra >= 2
        return scene.call(
            self.curve,
            f"constraint {self.name!r}",
            "tu" if moving else "u",
            (self.points[0].dimension,),
            coordinate=self._u.first,
        )


class Gear(Constraint):
    """Two planar bodies turn in a fixed ratio: ω_p = ratio ω_q, in the plane.

    Parameters
    ----------
    name : str
    p, q : PlanarBody
    ratio : float or (B,) array_like
        Negative for gears that touch from outside: minus the radius of q over that of p.
    nonideal : optional
        As in `Holonomic`.
    """

    def __init__(self, name: str, p: Any, q: Any, ratio: Any, *, nonideal: Any = None) -> None:
        super().__init__(name, nonideal)
        self.points = as_points(self, [p, q])
        for body in (p, q):
            if not isinstance(body, PlanarBody):
                raise TypeError(f"Gear {name!r} has {body!r}; expected planar bodies")
        self.ratio = ratio

    def set_start(self, q: Float) -> None:
        first, second = (_angle_at(p, q) for p in self.points)
        self._offset = first - as_float(f"ratio of {self.name!r}", self.ratio) * second

    def residual(self, scene: Scene) -> Any:
        first, second = (_angle(p, scene) for p in self.points)
        ratio = scene.number(f"ratio of {self.name!r}", self.ratio)
        offset = scene.number(f"offset of {self.name!r}", self._offset)
        return np.array([first - ratio * second - offset])


class Pulley(Constraint):
    """A rope over a pulley: the distances of two points from fixed ones add up to its length.

    |r_p - a| + ratio |r_q - b| stays as it is at the start (Atwood's machine).

    Parameters
    ----------
    name : str
    p, a : points
        An end of the rope, and where it leaves the pulley.
    q, b : points
        The other end.
    ratio : float or (B,) array_like
    nonideal : optional
        As in `Holonomic`.
    """

    def __init__(
        self, name: str, p: Any, a: Any, q: Any, b: Any, ratio: Any = 1.0, *, nonideal: Any = None
    ) -> None:
        super().__init__(name, nonideal)
        self.points = as_points(self, [p, a, q, b])
        self.ratio = ratio

    def set_start(self, q: Float) -> None:
        p, a, r, b = (np.asarray(point.start(q)) for point in self.points)  # type: ignore[attr-defined]
        ratio = as_float(f"ratio of {self.name!r}", self.ratio)
        self._length = np.linalg.norm(p - a, axis=-1) + ratio * np.linalg.norm(r - b, axis=-1)

    def residual(self, scene: Scene) -> Any:
        p, a, r, b = (point.position(scene) for point in self.points)
        ratio = scene.number(f"ratio of {self.name!r}", self.ratio)
        length = scene.number(f"length of {self.name!r}", self._length)
        first, second = np.sqrt((p - a) @ (p - a)), np.sqrt((r - b) @ (r - b))
        return np.array([first + ratio * second - length])


class KnifeEdge(Constraint):
    """A point moves along a direction of its planar body only: a skate, a blade, a wheel's rim.

    Parameters
    ----------
    name : str
    point : point
        On a planar body.
    direction : direction
        Of the blade: ``body.axis([...])``, or a vector of the plane at the start.
    nonideal : optional
        As in `Holonomic`.
    """

    kind = "nonholonomic"

    def __init__(self, name: str, point: Any, direction: Any, *, nonideal: Any = None) -> None:
        super().__init__(name, nonideal)
        self.points = as_points(self, [point])
        if not isinstance(self.points[0].body, PlanarBody):
            raise TypeError(f"KnifeEdge {name!r} has {point!r}; expected a point of a planar body")
        self.given = direction

    def set_start(self, q: Float) -> None:
        body = self.points[0].body
        if isinstance(self.given, Direction):
            along = self.given.start(q)
        else:
            along = as_float(f"direction of {self.name!r}", self.given)
        normal = np.stack([-along[..., 1], along[..., 0]], axis=-1)
        self._normal = fixed_direction(body, normal, q)

    def residual(self, scene: Scene) -> Any:
        (point,) = self.points
        return np.array([scene.velocity(point) @ self._normal.vector(scene)])


class RollingWheel(Constraint):
    """A planar body rolls without slipping on a straight line: its contact point is at rest.

    The contact point is the centre less the radius along the normal; that the centre keeps the
    distance from the line is a constraint of its own (`PointOnPlane`).

    Parameters
    ----------
    name : str
    wheel : PlanarBody
    radius : float or (B,) array_like
    tangent : (2,) array_like
        Of the line; the wheel is on its left side. Default: x, the wheel above.
    nonideal : optional
        As in `Holonomic`.
    """

    kind = "nonholonomic"

    def __init__(
        self,
        name: str,
        wheel: Any,
        radius: Any,
        tangent: Any = (1.0, 0.0),
        *,
        nonideal: Any = None,
    ) -> None:
        super().__init__(name, nonideal)
        if not isinstance(wheel, PlanarBody):
            raise TypeError(f"RollingWheel {name!r} has {wheel!r}; expected a planar body")
        self.points = as_points(self, [wheel])
        self.radius = radius
        along = as_float(f"tangent of {name!r}", tangent)
        if along.shape != (2,) or not np.linalg.norm(along) > 0:
            raise ValueError(f"tangent of {name!r} is {tangent!r}; expected two numbers, not zero")
        self._tangent = along / np.linalg.norm(along)

    def residual(self, scene: Scene) -> Any:
        (wheel,) = self.points
        v = scene.velocity(wheel)
        spin = scene.qd[wheel.first + 2]  # type: ignore[attr-defined]
        radius = scene.number(f"radius of {self.name!r}", self.radius)
        return np.array([v @ self._tangent + radius * spin])


class Rolling(Constraint):
    """A rigid body rolls without slipping on a horizontal plane: its contact point is at rest."""

    kind = "nonholonomic"

    def __init__(
        self, name: str, body: Any, radius: Any, up: Any = (0.0, 0.0, 1.0), *, nonideal: Any = None
    ) -> None:
        super().__init__(name, nonideal)
        if not isinstance(body, RigidBody):
            raise TypeError(f"{type(self).__name__} {name!r} has {body!r}; expected a rigid body")
        self.points = as_points(self, [body])
        self.radius = radius
        normal = as_float(f"up of {name!r}", up)
        if normal.shape != (3,) or not np.linalg.norm(normal) > 0:
            raise ValueError(f"up of {name!r} is {up!r}; expected three numbers, not zero")
        self.up = normal / np.linalg.norm(normal)

    def to_contact(self, scene: Scene, body: RigidBody) -> Any:
        """From the centre to the contact point, in space."""
        raise NotImplementedError

    def residual(self, scene: Scene) -> Any:
        (body,) = self.points
        assert isinstance(body, RigidBody)
        omega = scene.omega(body)
        contact = self.to_contact(scene, body)
        return scene.velocity(body) + np.cross(omega, contact)


class RollingSphere(Rolling):
    """A sphere rolls without slipping on a plane.

    The three rows say that the contact point is at rest; the one across the plane holds the
    centre at its height.

    Parameters
    ----------
    name : str
    body : RigidBody
        With its centre of mass at the centre of the sphere.
    radius : float or (B,) array_like
    up : (3,) array_like
        Normal of the plane, towards the sphere.
    nonideal : optional
        As in `Holonomic`.
    """

    def to_contact(self, scene: Scene, body: RigidBody) -> Any:
        return scene.number(f"radius of {self.name!r}", self.radius) * -self.up


class RollingDisk(Rolling):
    """A thin disk rolls without slipping on a plane, at any lean.

    Parameters
    ----------
    name : str
    body : RigidBody
        With its centre of mass at the centre of the disk.
    radius : float or (B,) array_like
    axis : direction
        Of the disk, ``body.axis([...])``.
    up : (3,) array_like
        Normal of the plane, towards the disk.
    nonideal : optional
        As in `Holonomic`.
    """

    def __init__(
        self,
        name: str,
        body: Any,
        radius: Any,
        axis: Any,
        up: Any = (0.0, 0.0, 1.0),
        *,
        nonideal: Any = None,
    ) -> None:
        super().__init__(name, body, radius, up, nonideal=nonideal)
        if not isinstance(axis, Direction) or axis.body is not body:
            raise TypeError(f"axis of {name!r} is {axis!r}; expected body.axis([...]) of the disk")
        self.axis = axis

    def to_contact(self, scene: Scene, body: RigidBody) -> Any:
        n = self.axis.vector(scene)
        # the lowest point of the rim: down, less its part along the axis, to the length r
        down = n * (n @ self.up) - self.up
        radius = scene.number(f"radius of {self.name!r}", self.radius)
        return down * (radius / np.sqrt(down @ down))
