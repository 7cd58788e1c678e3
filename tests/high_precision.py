"""Derivatives of plain NumPy functions in 80-digit arithmetic: the second oracle of programs.

A function is called with object arrays of `Mp`, whose entries know the functions that NumPy asks
objects for. Derivatives are central differences with a step of 1e-25 (first) and 1e-18 (second),
good to about 45 and 35 digits.
"""

import mpmath as mp
import numpy as np

DIGITS = 80
# NumPy's name -> mpmath's
FUNCTIONS = {
    "sqrt": mp.sqrt, "exp": mp.exp, "log": mp.log, "sin": mp.sin, "cos": mp.cos, "tan": mp.tan,
    "arcsin": mp.asin, "arccos": mp.acos, "arctan": mp.atan, "sinh": mp.sinh, "cosh": mp.cosh,
    "tanh": mp.tanh, "log1p": mp.log1p, "expm1": mp.expm1, "log2": lambda x: mp.log(x, 2),
    "log10": mp.log10, "exp2": lambda x: mp.mpf(2) ** x, "arcsinh": mp.asinh,
    "arccosh": mp.acosh, "arctanh": mp.atanh, "cbrt": mp.cbrt, "deg2rad": mp.radians,
    "rad2deg": mp.degrees, "sign": mp.sign,
}  # fmt: skip


class Mp:
    """A number that NumPy's object loops can work with."""

    def __init__(self, value):
        self.v = value.v if isinstance(value, Mp) else mp.mpf(value)

    def _with(self, other, operation, swapped=False):
        if isinstance(other, np.ndarray):
            return NotImplemented
        y = other.v if isinstance(other, Mp) else mp.mpf(float(other))
        return Mp(operation(y, self.v) if swapped else operation(self.v, y))

    def __add__(self, o):
        return self._with(o, lambda x, y: x + y)

    __radd__ = __add__

    def __sub__(self, o):
        return self._with(o, lambda x, y: x - y)

    def __rsub__(self, o):
        return self._with(o, lambda x, y: x - y, True)

    def __mul__(self, o):
        return self._with(o, lambda x, y: x * y)

    __rmul__ = __mul__

    def __truediv__(self, o):
        return self._with(o, lambda x, y: x / y)

    def __rtruediv__(self, o):
        return self._with(o, lambda x, y: x / y, True)

    def __pow__(self, o):
        return self._with(o, lambda x, y: x**y)

    def __rpow__(self, o):
        return self._with(o, lambda x, y: x**y, True)

    def __neg__(self):
        return Mp(-self.v)

    def __pos__(self):
        return self

    def __abs__(self):
        return Mp(abs(self.v))

    def __lt__(self, o):
        return self.v < Mp(o).v

    def __le__(self, o):
        return self.v <= Mp(o).v

    def __gt__(self, o):
        return self.v > Mp(o).v

    def __ge__(self, o):
        return self.v >= Mp(o).v

    def __float__(self):
        return float(self.v)

    def conjugate(self):
        return self

    def arctan2(self, x):
        return Mp(mp.atan2(self.v, Mp(x).v))

    def hypot(self, y):
        return Mp(mp.sqrt(self.v**2 + Mp(y).v ** 2))


for _name, _function in FUNCTIONS.items():
    setattr(Mp, _name, lambda self, f=_function: Mp(f(self.v)))


def lifted(x):
    """Floats as `Mp`: arrays as object arrays."""
    if np.ndim(x) == 0:
        return Mp(x) if not isinstance(x, Mp) else x
    out = np.empty(np.shape(x), dtype=object)
    for index in np.ndindex(out.shape):
        out[index] = lifted(x[index])
    return out


def values(f, *arguments):
    """f in 80 digits, as a flat list of mpf."""
    with mp.workdps(DIGITS):
        result = np.asarray(f(*map(lifted, arguments)), dtype=object)
        return [Mp(v).v for v in result.ravel()]


def shifted(arguments, directions, step):
    """arguments + step * directions, in 80 digits."""
    moved = []
    for x, d in zip(arguments, directions, strict=True):
        if d is None:
            moved.append(lifted(x))
        else:
            moved.append(lifted(x) + lifted(d) * Mp(step))
    return moved


def derivative(f, arguments, directions):
    """d/ds f(x + s x') at 0, flat."""
    with mp.workdps(DIGITS):
        h = mp.mpf(10) ** -25
        high = values(f, *shifted(arguments, directions, h))
        low = values(f, *shifted(arguments, directions, -h))
        return [(a - b) / (2 * h) for a, b in zip(high, low, strict=True)]


def second_derivative(f, arguments, directions):
    """d²/ds² f(x + s x') at 0, flat."""
    with mp.workdps(DIGITS):
        h = mp.mpf(10) ** -18
        high = values(f, *shifted(arguments, directions, h))
        low = values(f, *shifted(arguments, directions, -h))
        here = values(f, *arguments)
        return [(a - 2 * c + b) / h**2 for a, b, c in zip(high, low, here, strict=True)]


def jacobian(f, arguments, which):
    """Derivatives by every entry of one argument: rows of the value, columns of the argument."""
    size = np.size(arguments[which])
    columns = []
    for k in range(size):
        unit = np.zeros(size)
        unit[k] = 1.0
        directions = [None] * len(arguments)
        directions[which] = unit.reshape(np.shape(arguments[which]))[()]
        columns.append(derivative(f, arguments, directions))
    rows = len(columns[0]) if columns else 0
    return [[columns[k][i] for k in range(size)] for i in range(rows)]


def worst(found, exact, sizes):
    """The largest error of floats against exact numbers, in units of `sizes`."""
    with mp.workdps(DIGITS):
        found, sizes = np.ravel(found), np.ravel(sizes)
        exact = [v for row in exact for v in (row if isinstance(row, list) else [row])]
        errors = [
            abs(mp.mpf(float(x)) - y) / max(mp.mpf(float(s)), abs(y), mp.mpf("1e-30"))
            for x, y, s in zip(found, exact, sizes, strict=True)
        ]
        return float(max(errors, default=0))
