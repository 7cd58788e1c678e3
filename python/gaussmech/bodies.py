"""Bodies: what has mass and a place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from .scene import Scene

__all__ = ["Ground", "Particle"]

Float = NDArray[np.float64]
AXES = "xyz"


class Ground:
    """A point that is fixed in space: ``s.ground([0, 0, 0])``."""

    __slots__ = ("dimension", "name", "place")

    def __init__(self, place: Float) -> None:
        self.place = place
        self.dimension = int(place.shape[-1])
        self.name = "ground"

    def position(self, scene: Scene) -> Any:
        return scene.number("the place of a ground point", self.place, (self.dimension,))

    def start(self, q: Float) -> Float:
        """Its place at a state."""
        return self.place

    def __repr__(self) -> str:
        return f"ground({np.array2string(self.place, separator=', ')})"


class Particle:
    """A point of mass: made by `System.add_particle`.

    Attributes
    ----------
    name : str
    mass : float or (B,) ndarray
    dimension : int
    first : int
        Its first coordinate in q.
    """

    __slots__ = ("dimension", "first", "mass", "name")

    def __init__(self, name: str, mass: Any, dimension: int, first: int) -> None:
        self.name, self.mass, self.dimension, self.first = name, mass, dimension, first

    @property
    def coordinates(self) -> slice:
        """Where its coordinates are in q."""
        return slice(self.first, self.first + self.dimension)

    def position(self, scene: Scene) -> Any:
        return scene.q[self.coordinates]

    def start(self, q: Float) -> Float:
        """Its place at a state."""
        place: Float = q[..., self.coordinates]
        return place

    def __repr__(self) -> str:
        return f"Particle({self.name!r}, mass={self.mass!r})"
