"""Bodies: what has mass, a place and perhaps an orientation; points and directions on them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .inputs import as_float

if TYPE_CHECKING:
    from .scene import Scene

__all__ = [
    "Body",
    "BodyPoint",
    "Coordinate",
    "Direction",
    "Ground",
    "OrientedBody",
    "Particle",
    "PlanarBody",
    "RigidBody",
]

Float = NDArray[np.float64]
AXES = "xyz"


class Ground:
    """A point that is fixed in space: ``s.ground([0, 0, 0])``."""

    __slots__ = ("dimension", "name", "place")

    def __init__(self, place: Float) -> None:
        self.place = place
        self.dimension = int(place.shape[-1])
        self.name = "ground"

    body = None

    def position(self, scene: Scene) -> Any:
        return scene.number("the place of a ground point", self.place, (self.dimension,))

    def start(self, q: Float) -> Float:
        """Its place at a state."""
        return self.place

    def __repr__(self) -> str:
        return f"ground({np.array2string(self.place, separator=', ')})"


class Body:
    """What all bodies have: a name, a place in q, and a point, the centre of mass.

    Attributes
    ----------
    name : str
    mass : float or (B,) ndarray
    dimension : int
        Of space.
    first, size : int
        Its coordinates are ``q[first : first + size]``.
    """

    __slots__ = ("dimension", "first", "mass", "name")

    size: int

    def __init__(self, name: str, mass: Any, dimension: int, first: int) -> None:
        self.name, self.mass, self.dimension, self.first = name, mass, dimension, first

    kind = "body"

    @property
    def body(self) -> Body:
        """Itself: a body is the point of its centre of mass."""
        return self

    @property
    def coordinates(self) -> slice:
        """Where its coordinates are in q."""
        return slice(self.first, self.first + self.size)

    @property
    def place(self) -> slice:
        """Where the coordinates of its centre of mass are in q."""
        return slice(self.first, self.first + self.dimension)

    def labels(self) -> list[str]:
        """Names of its coordinates."""
        return [f"{self.name}.{axis}" for axis in AXES[: self.dimension]]

    def position(self, scene: Scene) -> Any:
        return scene.q[self.place]

    def start(self, q: Float) -> Float:
        """Its place at a state."""
        place: Float = q[..., self.place]
        return place

    def inertia_block(self, scene: Scene) -> Any:
        """Its part of the mass matrix, (size, size) expressions or numbers."""
        m = scene.number(f"mass of {self.name!r}", self.mass)
        return np.eye(self.dimension) * m

    def turns(self) -> bool:
        """Whether it has an orientation."""
        return False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, mass={self.mass!r})"


class Particle(Body):
    """A point of mass: made by `System.add_particle`."""

    __slots__ = ()
    kind = "particle"

    @property
    def size(self) -> int:  # type: ignore[override]
        return self.dimension


class Coordinate(Body):
    """A coordinate without mass, such as the place of a bead along a wire."""

    __slots__ = ()
    kind = "coordinate"
    size = 1

    def labels(self) -> list[str]:
        return [self.name]

    def inertia_block(self, scene: Scene) -> Any:
        return np.zeros((1, 1))


class OrientedBody(Body):
    """A body with an orientation: points and directions are fixed on it."""

    __slots__ = ("inertia",)

    def __init__(self, name: str, mass: Any, dimension: int, first: int, inertia: Any) -> None:
        super().__init__(name, mass, dimension, first)
        self.inertia = inertia

    def turns(self) -> bool:
        return True

    def at(self, place: ArrayLike) -> BodyPoint:
        """Return a point that is fixed on the body.

        Parameters
        ----------
        place : (d,) array_like
            In the frame of the body, whose origin is the centre of mass.

        Returns
        -------
        BodyPoint

        Raises
        ------
        ValueError
            It has not d numbers.
        """
        return BodyPoint(self, self._vector("a point", place))

    def axis(self, direction: ArrayLike) -> Direction:
        """Return a direction that is fixed on the body.

        Parameters
        ----------
        direction : (d,) array_like
            In the frame of the body; not zero.

        Returns
        -------
        Direction

        Raises
        ------
        ValueError
            It has not d numbers, or no length.
        """
        vector = self._vector("an axis", direction)
        length = np.linalg.norm(vector)
        if not length > 0:
            raise ValueError(f"an axis of {self.name!r} has no length")
        return Direction(self, vector / length)

    def _vector(self, what: str, value: ArrayLike) -> Float:
        vector = as_float(f"{what} of {self.name!r}", value)
        if vector.shape != (self.dimension,):
            raise ValueError(
                f"{what} of {self.name!r} has shape {vector.shape}; expected ({self.dimension},)"
            )
        return vector

    def rotation(self, scene: Scene) -> Any:
        """The matrix that takes vectors of the body to space, as expressions."""
        raise NotImplementedError

    def rotation_at(self, q: Float) -> Float:
        """The same at a state, (..., d, d)."""
        raise NotImplementedError


class PlanarBody(OrientedBody):
    """A body in the plane, coordinates x, y and an angle: made by `System.add_planar_body`."""

    __slots__ = ()
    kind = "planar body"
    size = 3

    def labels(self) -> list[str]:
        return [f"{self.name}.{axis}" for axis in ("x", "y", "angle")]

    def angle(self, scene: Scene) -> Any:
        return scene.q[self.first + 2]

    def rotation(self, scene: Scene) -> Any:
        c, s = np.cos(self.angle(scene)), np.sin(self.angle(scene))
        return np.array([[c, -s], [s, c]])

    def rotation_at(self, q: Float) -> Float:
        a = q[..., self.first + 2]
        c, s = np.cos(a), np.sin(a)
        return np.stack([np.stack([c, -s], -1), np.stack([s, c], -1)], -2)

    def inertia_block(self, scene: Scene) -> Any:
        m = scene.number(f"mass of {self.name!r}", self.mass)
        J = scene.number(f"inertia of {self.name!r}", self.inertia)
        return np.diag([1.0, 1.0, 0.0]) * m + np.diag([0.0, 0.0, 1.0]) * J

    def omega(self, qd: ArrayLike) -> Any:
        """Return its angular velocity at velocities qd."""
        return np.asarray(qd)[..., self.first + 2]


def quaternion_rates(e: Any) -> Any:
    """G(e), (3, 4), with the angular velocity 2 G ė in the frame of the body."""
    a, b, c, d = e
    return np.array([[-b, a, d, -c], [-c, -d, a, b], [-d, c, -b, a]])


class RigidBody(OrientedBody):
    """A body in space, coordinates x, y, z and a unit quaternion e0 … e3, scalar first.

    Made by `System.add_rigid_body`. Its mass matrix is singular along the quaternion, which the
    constraint of unit length holds: Udwadia and Schutte, J. Appl. Mech. 77 (2010) 044503.
    """

    __slots__ = ()
    kind = "rigid body"
    size = 7

    def labels(self) -> list[str]:
        return [f"{self.name}.{axis}" for axis in ("x", "y", "z", "e0", "e1", "e2", "e3")]

    @property
    def quaternion(self) -> slice:
        """Where its quaternion is in q."""
        return slice(self.first + 3, self.first + 7)

    def rotation(self, scene: Scene) -> Any:
        return _rotation(scene.q[self.quaternion])

    def rotation_at(self, q: Float) -> Float:
        e = np.moveaxis(np.asarray(q)[..., self.quaternion], -1, 0)
        return np.moveaxis(np.array(_rotation(e)), (0, 1), (-2, -1))

    def inertia_block(self, scene: Scene) -> Any:
        m = scene.number(f"mass of {self.name!r}", self.mass)
        J = scene.number(f"inertia of {self.name!r}", self.inertia, (3, 3))
        G = quaternion_rates(scene.q[self.quaternion])
        turning = 4.0 * (G.T @ J @ G)
        block = np.zeros((7, 7), dtype=object)
        block[:3, :3] = np.eye(3) * m
        block[3:, 3:] = turning
        return block

    def omega(self, q: ArrayLike, qd: ArrayLike, *, frame: str = "body") -> Float:
        """Return its angular velocity at a state.

        Parameters
        ----------
        q, qd : (..., n) array_like
            Of the system.
        frame : {"body", "world"}

        Returns
        -------
        (..., 3) ndarray

        Raises
        ------
        ValueError
            Another frame.
        """
        if frame not in ("body", "world"):
            raise ValueError(f"frame is {frame!r}; expected 'body' or 'world'")
        e = np.asarray(q, dtype=float)[..., self.quaternion]
        ed = np.asarray(qd, dtype=float)[..., self.quaternion]
        G = np.moveaxis(np.array(quaternion_rates(np.moveaxis(e, -1, 0))), (0, 1), (-2, -1))
        omega: Float = 2.0 * (G @ ed[..., None])[..., 0]
        if frame == "world":
            omega = (self.rotation_at(np.asarray(q, dtype=float)) @ omega[..., None])[..., 0]
        return omega


def _rotation(e: Any) -> Any:
    """R(e), homogeneous of degree two, orthogonal for unit quaternions."""
    a, b, c, d = e
    return np.array(
        [
            [a * a + b * b - c * c - d * d, 2 * (b * c - a * d), 2 * (b * d + a * c)],
            [2 * (b * c + a * d), a * a - b * b + c * c - d * d, 2 * (c * d - a * b)],
            [2 * (b * d - a * c), 2 * (c * d + a * b), a * a - b * b - c * c + d * d],
        ]
    )


class BodyPoint:
    """A point that is fixed on a body."""

    __slots__ = ("body", "local")

    def __init__(self, body: OrientedBody, local: Float) -> None:
        self.body, self.local = body, local

    @property
    def name(self) -> str:
        return self.body.name

    @property
    def dimension(self) -> int:
        return self.body.dimension

    def position(self, scene: Scene) -> Any:
        return self.body.position(scene) + self.body.rotation(scene) @ self.local

    def start(self, q: Float) -> Float:
        """Its place at a state."""
        place: Float = self.body.start(q) + self.body.rotation_at(q) @ self.local
        return place

    def __repr__(self) -> str:
        return f"{self.body.name}.at({np.array2string(self.local, separator=', ')})"


class Direction:
    """A direction that is fixed on a body, or in space where body is None."""

    __slots__ = ("body", "local")

    def __init__(self, body: OrientedBody | None, local: Float) -> None:
        self.body, self.local = body, local

    def vector(self, scene: Scene) -> Any:
        """The direction in space, as expressions."""
        if self.body is None:
            return scene.number("a direction", self.local, self.local.shape[-1:])
        return self.body.rotation(scene) @ scene.number(
            f"an axis of {self.body.name!r}", self.local, self.local.shape[-1:]
        )

    def start(self, q: Float) -> Float:
        """The direction in space at a state."""
        if self.body is None:
            return self.local
        vector: Float = (self.body.rotation_at(q) @ self.local[..., None])[..., 0]
        return vector


def fixed_direction(body: Any, vector: Float, q: Float) -> Direction:
    """The direction that is fixed on a body (None: in space) and points along `vector` at q."""
    if body is None or not body.turns():
        return Direction(None, vector)
    back = np.swapaxes(body.rotation_at(q), -1, -2)
    return Direction(body, (back @ vector[..., None])[..., 0])
