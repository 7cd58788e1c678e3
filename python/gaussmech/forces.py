"""Forces: what pushes on points and coordinates.

Each is a plain function of place and velocity, traced like one of the user's; generalized forces
are Jᵀ F with the Jacobian of the point, never taken from a power.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .bodies import Body, BodyPoint, Coordinate, Ground
from .scene import Point
from .trace import as_array

if TYPE_CHECKING:
    from .scene import Scene

__all__ = [
    "AppliedForce",
    "Damper",
    "GeneralizedForce",
    "NewtonianAttraction",
    "Potential",
    "Spring",
    "UniformGravity",
]


class Force:
    """Something that acts on a system."""

    points: tuple[Point, ...] = ()

    def apply(self, scene: Scene, bodies: list[Body]) -> None:
        """Push on the points and coordinates of a scene, given all bodies."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(p.name for p in self.points)})"


class UniformGravity(Force):
    """Weight of every body, F = m g at its centre of mass.

    Parameters
    ----------
    g : (d,) or (B, d) array_like
        Acceleration of gravity, e.g. ``[0, 0, -9.81]``.
    """

    def __init__(self, g: Any) -> None:
        self.g = g

    def apply(self, scene: Scene, bodies: list[Body]) -> None:
        for body in bodies:
            if isinstance(body, Coordinate):
                continue
            g = scene.number("g of UniformGravity", self.g, (body.dimension,))
            scene.push(body, g * scene.number(f"mass of {body.name!r}", body.mass))


class NewtonianAttraction(Force):
    """Gravitation, F = G m₁ m₂ / r², along the line between two bodies.

    Parameters
    ----------
    G : float or (B,) array_like
        The constant of gravitation.
    p, q : points, optional
        The bodies; without them every pair of bodies. A point of the ground counts with mass
        one, so that G is then the gravitational parameter of the centre.
    """

    def __init__(self, G: Any, p: Point | None = None, q: Point | None = None) -> None:
        if (p is None) != (q is None):
            raise ValueError(
                "NewtonianAttraction has one point; expected two, or none for all pairs"
            )
        self.G = G
        self.points = () if p is None or q is None else (p, q)

    def apply(self, scene: Scene, bodies: list[Body]) -> None:
        heavy = [b for b in bodies if not isinstance(b, Coordinate)]
        pairs: list[Any] = [self.points] if self.points else [
            (a, b) for i, a in enumerate(heavy) for b in heavy[i + 1 :]
        ]  # fmt: skip
        for p, q in pairs:
            r = p.position(scene) - q.position(scene)
            strength = scene.number("G of NewtonianAttraction", self.G)
            for body in (p, q):
                if isinstance(body, Body):
                    strength = strength * scene.number(f"mass of {body.name!r}", body.mass)
            square = r @ r
            pull = r * (-strength / (square * np.sqrt(square)))
            scene.push(p, pull)
            scene.push(q, -pull)


class Spring(Force):
    """A linear spring between two points: the force k (l - l₀) along their line.

    Parameters
    ----------
    p, q : points
        Its ends: particles, ground.
    stiffness : float or (B,) array_like
        k.
    length : float or (B,) array_like
        Length l₀ without force. With 0 the force is k times the distance vector, defined where
        the ends meet too.
    """

    def __init__(self, p: Point, q: Point, stiffness: Any, length: Any) -> None:
        self.points = (p, q)
        self.stiffness, self.length = stiffness, length

    def apply(self, scene: Scene, bodies: list[Body]) -> None:
        p, q = self.points
        r = p.position(scene) - q.position(scene)
        k = scene.number("stiffness of a Spring", self.stiffness)
        free = scene.number("length of a Spring", self.length)
        stretch = 1.0 if scene.graph.is_zero(free.node) else 1.0 - free / np.sqrt(r @ r)
        pull = r * (-k * stretch)
        scene.push(p, pull)
        scene.push(q, -pull)


class Damper(Force):
    """A linear damper between two points: the force c times the rate of their distance.

    Parameters
    ----------
    p, q : points
        Its ends.
    damping : float or (B,) array_like
        c.
    """

    def __init__(self, p: Point, q: Point, damping: Any) -> None:
        self.points = (p, q)
        self.damping = damping

    def apply(self, scene: Scene, bodies: list[Body]) -> None:
        p, q = self.points
        r = p.position(scene) - q.position(scene)
        v = scene.velocity(p) - scene.velocity(q)
        c = scene.number("damping of a Damper", self.damping)
        pull = r * (-c * (r @ v) / (r @ r))
        scene.push(p, pull)
        scene.push(q, -pull)


class AppliedForce(Force):
    """A force on a point.

    Parameters
    ----------
    p : point
        Where it acts.
    force : (d,) array_like or callable
        The force, constant or f(t, q, qd); (B, d) over a batch; `opaque` allowed.
    """

    def __init__(self, p: Point, force: Any) -> None:
        self.points = (p,)
        self.force = force

    def apply(self, scene: Scene, bodies: list[Body]) -> None:
        (p,) = self.points
        name = f"force on {p.name!r}"
        scene.push(p, scene.vector(self.force, name, "tqv", p.dimension))


class GeneralizedForce(Force):
    """A force on the coordinates.

    Parameters
    ----------
    f : (n,) array_like or callable
        The force, constant or f(t, q, qd); `opaque` allowed.
    """

    def __init__(self, f: Any) -> None:
        self.f = f

    def apply(self, scene: Scene, bodies: list[Body]) -> None:
        scene.add_force(scene.vector(self.f, "GeneralizedForce", "tqv", scene.n))


class Potential(Force):
    """A potential energy; the force is -∂V/∂q, taken for you.

    Parameters
    ----------
    V : callable
        V(t, q), a number.
    """

    def __init__(self, V: Any) -> None:
        if not callable(V):
            raise TypeError(f"V is a {type(V).__name__}; expected a function V(t, q)")
        self.V = V

    def apply(self, scene: Scene, bodies: list[Body]) -> None:
        energy = scene.call(self.V, "Potential", "tq", (1,))
        graph = scene.graph
        inputs = [e.node for e in scene.q]
        slopes = graph.gradient(energy[0].node, inputs)
        zero = graph.constant(0.0)
        nodes = [graph.neg(slopes.get(i, zero)) for i in inputs]
        scene.add_force(as_array(graph, nodes, (scene.n,)))


def is_point(x: object) -> bool:
    """Whether something can carry a force or a constraint."""
    return isinstance(x, (Body, BodyPoint, Ground)) and not isinstance(x, Coordinate)
