"""The raw gufuncs: ``out=``, broadcasting, the GIL released, no exceptions.

The last output of each is the int8 status of every system, `gaussmech.Status`; a system
with a negative status has NaN in its other outputs. Tolerances are scalar operands. The
operands are listed in each gufunc's docstring and signature.

>>> import numpy as np
>>> from gaussmech import ufuncs
>>> ufuncs.acceleration.signature
'(n,n),(n),(m,n),(m),(n),(m),(),(),(),()->(n),()'
>>> qdd, status = ufuncs.acceleration(
...     np.diag([2.0, 1.0]), [1.0, 2.0], [[1.0, 1.0]], [0.0],   # M, Q, A, b
...     [0.0, 0.0], [0.0], np.nan, 1e-9, 0.0, 0)   # C, row_scale, rtol, ctol, b_atol, flags
>>> print(qdd, status)
[-0.33333333  0.33333333] 0
"""

from ._kernel import (
    acceleration,
    augment,
    constraint_force,
    gauss,
    independent_rows,
    nonideal_force,
)

__all__ = [
    "acceleration",
    "augment",
    "constraint_force",
    "gauss",
    "independent_rows",
    "nonideal_force",
]
