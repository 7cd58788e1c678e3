"""From a failed status to an exception that names what is at fault."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from .errors import (
    GaussmechError,
    InconsistentConstraintsError,
    IndeterminateMotionError,
    NotSemidefiniteError,
)
from .inputs import CORE
from .results import Labels, Status, listed, number, rows_phrase

__all__ = ["fault"]

Arrays = Mapping[str, NDArray[np.float64] | None]
# of one system: rows that clash, null vectors of [M; A], rank of A, residual of the compromise
Diagnose = Callable[
    [Arrays], tuple[NDArray[np.bool_], NDArray[np.float64], int, NDArray[np.float64]]
]


def fault(
    arrays: Arrays,
    status: NDArray[np.int8] | int,
    labels: tuple[Labels, Labels],
    diagnose: Diagnose,
) -> Exception:
    """Return the exception for the first system whose status is negative."""
    statuses = np.asarray(status)
    failed = np.argwhere(statuses < 0)
    index = tuple(int(i) for i in failed[0])
    code = Status(int(statuses[index]))
    where = ""
    if index:
        plural = "s" if statuses.size != 1 else ""
        where = f"{len(failed)} of {statuses.size} system{plural}, first at index {index}: "

    if code == Status.NONFINITE:
        return ValueError(where + _nonfinite(arrays, index, statuses.ndim))
    item = {name: None if a is None else _item(name, a, index)[0] for name, a in arrays.items()}
    rows, coordinates = labels
    if code == Status.ASYMMETRIC:
        return _asymmetric(item, where, index)
    if code == Status.INDEFINITE:
        return _indefinite(item, where, index, coordinates)
    if code == Status.NO_CONVERGENCE:
        return GaussmechError(
            f"{where}the numbers leave the range of float64 on the way to the answer; "
            "choose units in which masses, constraint rows and forces are nearer to one",
            index=index,
        )
    if code == Status.INCONSISTENT:
        return _inconsistent(item, where, index, rows, diagnose)
    return _indeterminate(item, where, index, coordinates, code, diagnose)


def _item(
    name: str, array: NDArray[np.float64], index: tuple[int, ...]
) -> tuple[NDArray[np.float64], tuple[int, ...]]:
    """The part of an operand that belongs to one system, and where it stands in the operand."""
    own = array.ndim - len(CORE[name])
    at = tuple(
        0 if array.shape[d] == 1 else i
        for d, i in enumerate(index[len(index) - own :] if own else ())
    )
    return array[at], at


def _nonfinite(arrays: Arrays, index: tuple[int, ...], ndim: int) -> str:
    for name, array in arrays.items():
        if array is None:
            continue
        part, at = _item(name, array, index)
        bad = np.argwhere(~np.isfinite(part))
        if len(bad):
            place = [*at, *(int(i) for i in bad[0])]
            value = part[tuple(bad[0])]
            more = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
            return f"{name}{place} is {value}{more}; expected finite numbers"
    return "an input is not finite"


def _asymmetric(item: Arrays, where: str, index: tuple[int, ...]) -> NotSemidefiniteError:
    M = _given(item, "M")
    mass = np.sqrt(np.abs(np.diag(M)))
    bad = np.argwhere(np.triu(np.abs(M - M.T) > 1e-10 * np.multiply.outer(mass, mass), 1))
    i, j = (int(v) for v in bad[0])
    return NotSemidefiniteError(
        f"{where}M is not symmetric: M[{i}, {j}] = {float(M[i, j])!r} but M[{j}, {i}] = "
        f"{float(M[j, i])!r}; fill both halves (np.triu(M) + np.triu(M, 1).T when only the upper "
        "one is filled)",
        entry=(i, j),
        index=index,
    )


def _indefinite(
    item: Arrays, where: str, index: tuple[int, ...], names: Labels
) -> NotSemidefiniteError:
    M = _given(item, "M")
    M = 0.5 * M + 0.5 * M.T
    diagonal = np.diag(M)
    values = np.linalg.eigvalsh(M)
    # units may hide a small negative eigenvalue behind large ones: look again in scaled ones
    d = np.sqrt(np.where(diagonal != 0, np.abs(diagonal), 1.0))
    scaled, vectors = np.linalg.eigh(M / np.multiply.outer(d, d))
    least = float(values[0])
    text = f"eigenvalue {number(least)}"
    if not least < -1e-13 * float(np.abs(values).max(initial=0.0)):
        least = float(scaled[0])
        text = f"eigenvalue {number(least)} after scaling the diagonal to one"
    entry = None
    cause = ""
    negative = np.flatnonzero(diagonal < 0)
    coupled = np.argwhere((diagonal[:, None] == 0) & (M != 0))
    if negative.size:
        i = int(negative[0])
        entry = (i, i)
        cause = f"; M[{i}, {i}] = {number(float(M[i, i]))} is negative"
    elif len(coupled):
        i, j = (int(v) for v in coupled[0])
        entry = (i, j)
        cause = (
            f"; {_coordinates([i], names)} has M[{i}, {i}] = 0 and can therefore not be coupled, "
            f"but M[{i}, {j}] = {number(float(M[i, j]))}"
        )
    else:
        involved = np.flatnonzero(np.abs(vectors[:, 0]) > 1e-6).tolist()
        cause = f", in a direction of {_coordinates(involved, names)}"
    return NotSemidefiniteError(
        f"{where}M is not positive semidefinite: {text}{cause}; a kinetic energy cannot be "
        "negative, check signs and products of inertia",
        entry=entry,
        eigenvalue=least,
        index=index,
    )


def _inconsistent(
    item: Arrays, where: str, index: tuple[int, ...], names: Labels, diagnose: Diagnose
) -> InconsistentConstraintsError:
    blame, _, _, residual = diagnose(item)
    A, b = _given(item, "A"), _given(item, "b")
    if not np.isfinite(residual).all():
        residual = A @ np.linalg.lstsq(A, b, rcond=None)[0] - b
    rows = np.flatnonzero(blame).tolist()
    size = number(float(np.linalg.norm(residual)))
    if len(rows) == 1:
        k = rows[0]
        what = (
            f"{rows_phrase(rows, names)} is zero at this state but b[{k}] = {number(float(b[k]))} "
            f"(residual {size})"
        )
    else:
        what = f"{rows_phrase(rows, names)} ask for different accelerations (residual {size})"
    return InconsistentConstraintsError(
        f"{where}inconsistent constraints: {what}; correct A or b, or take the least-squares "
        'compromise with inconsistent="project"',
        rows=tuple(rows),
        residual=residual,
        index=index,
    )


def _indeterminate(
    item: Arrays,
    where: str,
    index: tuple[int, ...],
    names: Labels,
    code: Status,
    diagnose: Diagnose,
) -> IndeterminateMotionError:
    _, vectors, _, _ = diagnose(item)
    vectors = vectors / np.abs(vectors).max(axis=1, keepdims=True)
    vectors[np.abs(vectors) < 1e-12] = 0.0
    M = _given(item, "M")
    n = len(M)
    involved = np.flatnonzero(np.abs(vectors).max(axis=0) > 1e-9).tolist()
    who = _coordinates(involved, names)
    rank = f"rank [M; A] is {n - len(vectors)} of {n}"
    if len(involved) == len(vectors):
        has = "has" if len(involved) == 1 else "have"
        what = f"{who} {has} no mass and no constraint"
    else:
        shown = ", ".join(
            np.array2string(v, precision=4, suppress_small=True, separator=", ", threshold=12)
            for v in vectors[:2]
        )
        more = f" and {len(vectors) - 2} more" if len(vectors) > 2 else ""
        plural = "s" if len(vectors) > 1 else ""
        what = f"the direction{plural} {shown}{more} ({who}) has no mass and no constraint"
    if code == Status.INDETERMINATE_NONE:
        message = (
            f"{where}{rank}: {what}, yet a force acts there, so that no finite acceleration "
            "exists; give it a mass, constrain it or remove the force"
        )
        kind = "none"
    else:
        message = (
            f"{where}{rank}: {what}, so that the acceleration is not unique; give it a mass, "
            'constrain it, or take indeterminate="minimum_norm"'
        )
        kind = "many"
    return IndeterminateMotionError(message, null_vectors=vectors, kind=kind, index=index)


def _coordinates(which: Sequence[int], names: Labels) -> str:
    word = "coordinate" if len(which) == 1 else "coordinates"
    most = 6
    shown = ", ".join(str(i) for i in which[:most]) + (", …" if len(which) > most else "")
    if names is None:
        return f"{word} {shown}"
    quoted = listed([f"'{names[i]}'" for i in which])
    return f"{word} {quoted} ({word} {shown})" if len(which) > 1 else f"{word} {quoted} ({shown})"


def _given(item: Arrays, name: str) -> NDArray[np.float64]:
    array = item[name]
    assert array is not None
    return array
