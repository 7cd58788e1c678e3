"""Exceptions: what a constrained problem can have wrong with it.

Wrong types, shapes, options and non-finite numbers are plain `TypeError` and
`ValueError`; the classes here are for problems that are well formed and have no answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "GaussmechError",
    "InconsistentConstraintsError",
    "InconsistentStateError",
    "IndeterminateMotionError",
    "NotSemidefiniteError",
]


class GaussmechError(np.linalg.LinAlgError):
    """A constrained problem without an answer; a `ValueError` by way of `LinAlgError`.

    Attributes
    ----------
    index : tuple of int
        Batch index of the first system at fault, ``()`` for a single system.
    """

    def __init__(self, message: str, *, index: tuple[int, ...] = ()) -> None:
        super().__init__(message)
        self.index = index

    def __reduce__(self) -> tuple[object, ...]:
        # keyword-only arguments do not survive the default pickling of exceptions
        return (_rebuild, (type(self), str(self), self.__dict__))


def _rebuild(kind: type[GaussmechError], message: str, state: dict[str, object]) -> GaussmechError:
    error = kind.__new__(kind, message)
    error.args = (message,)
    error.__dict__.update(state)
    return error


class IndeterminateMotionError(GaussmechError):
    """Some direction has neither mass nor constraint: rank [M; A] < n.

    Attributes
    ----------
    null_vectors : (nullity, n) ndarray
        Directions of acceleration that M and A both ignore, largest entry one.
    kind : {"many", "none"}
        "many": the acceleration is unique only modulo these directions.
        "none": a force acts along one of them, no finite acceleration exists.
    """

    def __init__(
        self,
        message: str,
        *,
        null_vectors: NDArray[np.float64],
        kind: str,
        index: tuple[int, ...] = (),
    ) -> None:
        super().__init__(message, index=index)
        self.null_vectors = null_vectors
        self.kind = kind


class InconsistentConstraintsError(GaussmechError):
    """No acceleration satisfies A q̈ = b.

    Attributes
    ----------
    rows : tuple of int
        The rows that clash with each other.
    residual : (m,) ndarray
        A q̈ - b of the least-squares compromise.
    """

    def __init__(
        self,
        message: str,
        *,
        rows: tuple[int, ...],
        residual: NDArray[np.float64],
        index: tuple[int, ...] = (),
    ) -> None:
        super().__init__(message, index=index)
        self.rows = rows
        self.residual = residual


class InconsistentStateError(GaussmechError):
    """A start state is off the constraints.

    Attributes
    ----------
    residual : dict
        By how much each constraint at fault is missed, by its name.
    """

    def __init__(
        self, message: str, *, residual: dict[str, float], index: tuple[int, ...] = ()
    ) -> None:
        super().__init__(message, index=index)
        self.residual = residual


class NotSemidefiniteError(GaussmechError):
    """The mass matrix is not symmetric, or not positive semidefinite.

    Attributes
    ----------
    entry : tuple of int or None
        ``(i, j)`` of the entry that shows it, when one does.
    eigenvalue : float or None
        The most negative eigenvalue, when M is symmetric.
    """

    def __init__(
        self,
        message: str,
        *,
        entry: tuple[int, int] | None = None,
        eigenvalue: float | None = None,
        index: tuple[int, ...] = (),
    ) -> None:
        super().__init__(message, index=index)
        self.entry = entry
        self.eigenvalue = eigenvalue
