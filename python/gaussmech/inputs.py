"""From what users pass to float64 arrays that fit together, or a sentence that says why not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from .results import Labels

__all__ = [
    "as_float",
    "as_problem",
    "as_rows",
    "batch_shape",
    "check_finite",
    "check_names",
    "check_shapes",
]

Float = NDArray[np.float64]

# core dimensions of every operand, as letters; the first to use a letter sets its size
CORE = {
    "M": ("n", "n"),
    "A": ("m", "n"),
    "Q": ("n",),
    "qdd": ("n",),
    "qd": ("n",),
    "direction": ("n",),
    "Q_c": ("n",),
    "dq": ("n",),
    "b": ("m",),
    "multipliers": ("m",),
    "C": ("n",),
    "row_scale": ("m",),
    "b_atol": ("m",),
    "alpha": (),
    "rtol": (),
}


def as_float(name: str, value: object) -> NDArray[np.float64]:
    """Return `value` as a float64 array; TypeError for what would lose something on the way."""
    if hasattr(value, "toarray") and hasattr(value, "nnz"):
        kind = type(value).__name__
        raise TypeError(f"{name} is a sparse {kind}; expected a dense array: pass {name}.toarray()")
    if isinstance(value, np.ma.MaskedArray):
        if np.ma.getmaskarray(value).any():
            where = np.argwhere(np.ma.getmaskarray(value))[0].tolist()
            raise TypeError(
                f"{name} has masked entries, the first at {where}; expected a value for each: "
                f"pass {name}.filled(x) with the number x that is meant"
            )
        value = value.data
    if value is None:
        raise TypeError(f"{name} is None; expected an array of real numbers")
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ValueError(
            f"{name} is not rectangular: its rows have different lengths ({error})"
        ) from None
    kind = array.dtype.kind
    if kind == "c":
        raise TypeError(
            f"{name} is complex ({array.dtype}); expected real numbers: pass {name}.real if the "
            "imaginary part is only rounding"
        )
    if kind == "O":
        inner = type(array.flat[0]).__name__ if array.size else "object"
        raise TypeError(
            f"{name} has dtype object (first entry: {inner}); expected real numbers: "
            f"pass np.array({name}, dtype=float) after substituting values"
        )
    if kind not in "biuf":
        raise TypeError(f"{name} has dtype {array.dtype}; expected real numbers")
    if array.dtype.itemsize > 8 and kind == "f":
        raise TypeError(
            f"{name} has dtype {array.dtype}; the kernel computes in float64: "
            f"pass {name}.astype(float) to round it"
        )
    # aligned, native, and a plain array whatever came
    return np.require(array, np.float64, ["A"]).view(np.ndarray)


def as_rows(A: object, M: Float) -> Float:
    """A as an array; an empty list is a matrix without rows."""
    rows = as_float("A", A)
    if rows.shape == (0,) and M.ndim >= 2:
        rows = rows.reshape(0, M.shape[-1])
    return rows


def as_problem(
    M: object, Q: object, A: object, b: object, C: object | None = None, **more: object
) -> dict[str, Float | None]:
    """Return the operands of a problem as float64 arrays that fit together, by name.

    `more` are further operands named as in `CORE`; those that are None stay None.
    """
    mass = as_float("M", M)
    arrays: dict[str, Float | None] = {
        "M": mass,
        "Q": as_float("Q", Q),
        "A": as_rows(A, mass),
        "b": as_float("b", b),
    }
    for name, value in {"C": C, **more}.items():
        arrays[name] = None if value is None else as_float(name, value)
    check_shapes(arrays)
    return arrays


def check_shapes(arrays: Mapping[str, NDArray[np.float64] | None]) -> tuple[int, int]:
    """Check core shapes and broadcasting of operands named as in `CORE`; return (n, m)."""
    given = {name: a for name, a in arrays.items() if a is not None}
    sizes: dict[str, tuple[int, str]] = {}

    for name, letters in CORE.items():
        if letters and name in given:
            _check_core(name, given[name], sizes)
    try:
        np.broadcast_shapes(*(_batch(name, a) for name, a in given.items()))
    except ValueError:
        shapes = ", ".join(f"{name} {_batch(name, a)}" for name, a in given.items())
        raise ValueError(
            f"batch dimensions do not broadcast: {shapes}; expected equal sizes or 1, "
            "aligned on the right"
        ) from None
    return sizes.get("n", (0, ""))[0], sizes.get("m", (0, ""))[0]


def _batch(name: str, array: NDArray[np.float64]) -> tuple[int, ...]:
    return array.shape[: array.ndim - len(CORE[name])]


def batch_shape(arrays: Mapping[str, NDArray[np.float64] | None]) -> tuple[int, ...]:
    """Return the batch shape that operands named as in `CORE` broadcast to."""
    return np.broadcast_shapes(*(_batch(name, a) for name, a in arrays.items() if a is not None))


def _check_core(name: str, array: NDArray[np.float64], sizes: dict[str, tuple[int, str]]) -> None:
    letters = CORE[name]
    shape = array.shape
    wanted = "(..., " + ", ".join(str(sizes[c][0]) if c in sizes else c for c in letters) + ")"

    def fail(advice: str) -> ValueError:
        owners = sorted({sizes[c][1] for c in letters if c in sizes and sizes[c][1] != name})
        match = f" to match {' and '.join(owners)}" if owners else ""
        return ValueError(f"{name} has shape {shape}; expected {wanted}{match}{advice}")

    if len(shape) < len(letters):
        if name == "A" and len(shape) == 1:
            raise fail(": for a single row pass A[None, :]")
        if name == "M":
            raise fail(": masses alone go in as np.diag(masses)")
        raise fail(f": pass np.atleast_1d({name})")
    core = shape[len(shape) - len(letters) :]
    if name == "M" and core[0] != core[1]:
        raise ValueError(f"M has shape {shape}; expected (..., n, n): a square matrix")
    for letter, size in zip(letters, core, strict=True):
        if letter in sizes and size != sizes[letter][0]:
            expected = sizes[letter][0]
            advice = ""
            if len(letters) == 1 and size == 1 and len(shape) > 1 and shape[-2] == expected:
                advice = f": pass {name}.ravel()" if len(shape) == 2 else f": pass {name}[..., 0]"
            elif len(letters) == 1 and len(shape) > 1 and shape[0] == expected:
                advice = f": the batch comes first, pass np.moveaxis({name}, 0, -1)"
            elif name == "A" and core[0] == expected and letter == "n":
                advice = ": one row per constraint, pass A.T"
            raise fail(advice)
        sizes.setdefault(letter, (size, name))


def check_finite(arrays: Mapping[str, NDArray[np.float64] | None]) -> None:
    """Refuse operands with entries that are nan or inf."""
    for name, array in arrays.items():
        if array is not None and not np.isfinite(array).all():
            bad = np.argwhere(~np.isfinite(array))
            place = [int(i) for i in bad[0]]
            more = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
            raise ValueError(
                f"{name}{place} is {array[tuple(bad[0])]}{more}; expected finite numbers"
            )


def check_names(names: Mapping[str, Sequence[str]] | None, n: int, m: int) -> tuple[Labels, Labels]:
    """Return (row names, coordinate names), each None when not given."""
    if names is None:
        return None, None
    if not isinstance(names, Mapping):
        raise TypeError(
            f"names is a {type(names).__name__}; expected a mapping such as "
            "{'rows': ['rod'], 'coordinates': ['x', 'y']}"
        )
    unknown = [key for key in names if key not in ("rows", "coordinates")]
    if unknown:
        raise ValueError(f"names has the key {unknown[0]!r}; expected 'rows' and 'coordinates'")
    result = []
    for key, size, what in (("rows", m, "constraint rows"), ("coordinates", n, "coordinates")):
        labels = names.get(key)
        if labels is not None:
            if isinstance(labels, str):
                raise TypeError(f"names[{key!r}] is a string; expected a list of {size} names")
            labels = [str(label) for label in labels]
            if len(labels) != size:
                raise ValueError(
                    f"names[{key!r}] has {len(labels)} names; expected {size}, one for each of "
                    f"the {what}"
                )
        result.append(labels)
    return result[0], result[1]
