"""Exact accelerations and constraint forces of constrained mechanical systems.

Sign convention, everywhere: M q̈ = Q + Q_c, A q̈ = b, Q_c = Q_ideal + K,
Q_ideal = Aᵀ multipliers.
"""

from ._kernel import build_info
from .errors import (
    GaussmechError,
    InconsistentConstraintsError,
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

__version__ = "0.1.0"

__all__ = [
    "GaussmechError",
    "InconsistentConstraintsError",
    "IndeterminateMotionError",
    "Motion",
    "NotSemidefiniteError",
    "Status",
    "acceleration",
    "augment",
    "build_info",
    "constraint_force",
    "free_acceleration",
    "gauss_function",
    "independent_rows",
    "nonideal_force",
    "sensitivity",
    "solve",
    "zwang",
]
