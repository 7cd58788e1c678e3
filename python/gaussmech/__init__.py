"""Exact accelerations and constraint forces of constrained mechanical systems.

Sign convention, everywhere: M q̈ = Q + Q_c, A q̈ = b, Q_c = Q_ideal + K,
Q_ideal = Aᵀ multipliers.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._kernel import build_info
from .errors import (
    GaussmechError,
    InconsistentConstraintsError,
    InconsistentStateError,
    IndeterminateMotionError,
    NotSemidefiniteError,
)
from .kernel import (
    acceleration,
    augment,
    constraint_force,
    free_acceleration,
    gauss_function,
    independent_rows,
    nonideal_force,
    sensitivity,
    solve,
    zwang,
)
from .results import Motion, Status

if TYPE_CHECKING:
    from . import formulations, plot, principles
    from .check import cross_check
    from .constraints import (
        Acceleration,
        Distance,
        Holonomic,
        Nonholonomic,
        Pfaffian,
        PointOnSurface,
        Prescribed,
        Rod,
    )
    from .forces import (
        AppliedForce,
        Damper,
        GeneralizedForce,
        NewtonianAttraction,
        Potential,
        Spring,
        UniformGravity,
    )
    from .friction import CoulombFriction, ViscousFriction
    from .joints import (
        Cylindrical,
        Gear,
        KnifeEdge,
        PointOnCurve,
        PointOnLine,
        PointOnPlane,
        PointOnPoint,
        Prismatic,
        Pulley,
        Revolute,
        RollingDisk,
        RollingSphere,
        RollingWheel,
        Universal,
        Weld,
    )
    from .program import Program
    from .scene import opaque
    from .system import System
    from .trace import where

__version__ = "0.1.0"

__all__ = [
    "Acceleration",
    "AppliedForce",
    "CoulombFriction",
    "Cylindrical",
    "Damper",
    "Distance",
    "GaussmechError",
    "Gear",
    "GeneralizedForce",
    "Holonomic",
    "InconsistentConstraintsError",
    "InconsistentStateError",
    "IndeterminateMotionError",
    "KnifeEdge",
    "Motion",
    "NewtonianAttraction",
    "Nonholonomic",
    "NotSemidefiniteError",
    "Pfaffian",
    "PointOnCurve",
    "PointOnLine",
    "PointOnPlane",
    "PointOnPoint",
    "PointOnSurface",
    "Potential",
    "Prescribed",
    "Prismatic",
    "Program",
    "Pulley",
    "Revolute",
    "Rod",
    "RollingDisk",
    "RollingSphere",
    "RollingWheel",
    "Spring",
    "Status",
    "System",
    "UniformGravity",
    "Universal",
    "ViscousFriction",
    "Weld",
    "acceleration",
    "augment",
    "build_info",
    "constraint_force",
    "cross_check",
    "formulations",
    "free_acceleration",
    "gauss_function",
    "independent_rows",
    "nonideal_force",
    "opaque",
    "plot",
    "principles",
    "sensitivity",
    "solve",
    "where",
    "zwang",
]

# imported when first asked for, so that `import gaussmech` stays quick: name -> module
_LATER = {
    "cross_check": "check",
    "formulations": "formulations",
    "plot": "plot",
    "principles": "principles",
    "Program": "program",
    "where": "trace",
    "Acceleration": "constraints",
    "Distance": "constraints",
    "Holonomic": "constraints",
    "Nonholonomic": "constraints",
    "Pfaffian": "constraints",
    "PointOnSurface": "constraints",
    "Prescribed": "constraints",
    "Rod": "constraints",
    "AppliedForce": "forces",
    "Damper": "forces",
    "GeneralizedForce": "forces",
    "NewtonianAttraction": "forces",
    "Potential": "forces",
    "Spring": "forces",
    "UniformGravity": "forces",
    "opaque": "scene",
    "System": "system",
    "Cylindrical": "joints",
    "Gear": "joints",
    "KnifeEdge": "joints",
    "PointOnCurve": "joints",
    "PointOnLine": "joints",
    "PointOnPlane": "joints",
    "PointOnPoint": "joints",
    "Prismatic": "joints",
    "Pulley": "joints",
    "Revolute": "joints",
    "RollingDisk": "joints",
    "RollingSphere": "joints",
    "RollingWheel": "joints",
    "Universal": "joints",
    "Weld": "joints",
    "CoulombFriction": "friction",
    "ViscousFriction": "friction",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f".{_LATER[name]}", __name__)
    value = module if name == _LATER[name] else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
