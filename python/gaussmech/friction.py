"""Laws of friction: the non-ideal part of a constraint, from how it slides and what it carries.

Coulomb's law takes the norm of the Cartesian reaction of the whole named constraint at the point
that slides, and never a sum of multipliers, which would change with how its rows are written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .scene import Point

if TYPE_CHECKING:
    from .constraints import Constraint
    from .scene import Scene

__all__ = ["CoulombFriction", "Friction", "ViscousFriction"]


class Friction:
    """A force against the sliding of a constraint; given to it as ``nonideal=``."""

    implicit = False

    def force(self, scene: Scene, name: str, slip: Any, normal: Any) -> Any:
        """The force on the sliding point, (d,), from its velocity and the size of the reaction."""
        raise NotImplementedError


class ViscousFriction(Friction):
    """A force against the sliding velocity, F = -c v.

    Parameters
    ----------
    c : float or (B,) array_like
        Not negative.
    """

    def __init__(self, c: Any) -> None:
        self.c = _not_negative("c of ViscousFriction", c)

    def force(self, scene: Scene, name: str, slip: Any, normal: Any) -> Any:
        return slip * -scene.number(f"c of the friction of {name!r}", self.c)

    def __repr__(self) -> str:
        return f"ViscousFriction({self.c!r})"


class CoulombFriction(Friction):
    """Dry friction while sliding, F = -mu N v/|v|, N the size of the reaction.

    Parameters
    ----------
    mu : float or (B,) array_like
        Not negative.
    mu_static : float or (B,) array_like, optional
        For contact laws, which decide between stick and slip; not used while sliding.

    Notes
    -----
    N is that of the total multipliers, so that motion and friction are solved for together. At
    zero sliding speed the direction is open, and an error says so.
    """

    implicit = True

    def __init__(self, mu: Any, *, mu_static: Any = None) -> None:
        self.mu = _not_negative("mu of CoulombFriction", mu)
        self.mu_static = mu_static

    def force(self, scene: Scene, name: str, slip: Any, normal: Any) -> Any:
        mu = scene.number(f"mu of the friction of {name!r}", self.mu)
        return slip * (-mu * normal / np.sqrt(slip @ slip))

    def __repr__(self) -> str:
        return f"CoulombFriction({self.mu!r})"


def _not_negative(name: str, value: Any) -> Any:
    if not np.all(np.asarray(value, dtype=float) >= 0):
        raise ValueError(f"{name} is {value!r}; expected a number of 0 or more")
    return value


def sliding(scene: Scene, constraint: Constraint) -> tuple[Point, Any, Any]:
    """The point of a constraint that slides, on what, and its sliding velocity."""
    points = constraint.points
    if not points:
        raise ValueError(
            f"constraint {constraint.name!r} has no points that slide; give its friction as a "
            "function nonideal(t, q, qd, multipliers_total)"
        )
    point = points[0]
    return point, points[1] if len(points) > 1 else None, constraint.slip(scene)
