"""Virtual displacements: what the constraints leave free, and accelerations that differ by it.

What is public here is part of `gaussmech.principles`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .digits import EPS, scales
from .errors import GaussmechError
from .inputs import as_float, check_shapes
from .kernel import independent_rows

__all__ = ["competitors", "partition", "virtual_displacements", "virtual_work"]

Float = NDArray[np.float64]
Function = TypeVar("Function", bound=Callable[..., Any])


def stands_for(formula: str) -> Callable[[Function], Function]:
    """Let a notebook show the formula of a function that is looked at without being called."""

    def mark(function: Function) -> Function:
        setattr(function, "_repr_latex_", lambda: f"$\\displaystyle {formula}$")  # noqa: B010
        return function

    return mark


@stands_for(r"A\,\delta q = 0,\quad \delta q = N z,\quad N^T N = I")
def virtual_displacements(
    A: ArrayLike, M: ArrayLike | None = None, *, rtol: float | None = None
) -> Float:
    """Return an orthonormal basis N of the virtual displacements, A N = 0.

    Parameters
    ----------
    A : (..., m, n) array_like
        Constraint matrix.
    M : (..., n, n) array_like, optional
        Mass matrix. With it the basis is orthonormal in its metric, NᵀMN = I, otherwise
        NᵀN = I.
    rtol : float, optional
        Rank tolerance, as in `solve`.

    Returns
    -------
    (..., n, n - rank) ndarray
        The basis in columns, as many as there are degrees of freedom; the largest entry of
        each is positive.

    Raises
    ------
    IndeterminateMotionError, GaussmechError
        M is given and some virtual displacement has no mass.
    ValueError
        Systems of a batch differ in rank: their bases have different shapes.
    TypeError, NotSemidefiniteError
        As `solve`.

    Notes
    -----
    Virtual displacements δq satisfy A δq = 0 at a fixed time; for constraints that move with
    time the velocity is none of them. Lanczos, The Variational Principles of Mechanics,
    chapter III.1.

    Examples
    --------
    >>> from gaussmech import principles
    >>> print(principles.virtual_displacements([[0, 1], [0, 2]]))
    [[1.]
     [0.]]
    """
    mass = None if M is None else as_float("M", M)
    rows = as_float("A", A)
    check_shapes({"A": rows} if mass is None else {"M": mass, "A": rows})
    if mass is None:
        N = _null_space(chosen_rows(rows, None, rtol))
    else:
        N = scaled_basis(mass, rows, rtol)
        H = N.swapaxes(-1, -2) @ mass @ N
        if H.size and np.any(np.linalg.eigvalsh(H)[..., 0] <= 64 * N.shape[-2] * EPS):
            raise GaussmechError(
                "some virtual displacement has no mass, so there is no basis that is orthonormal "
                "in the metric of M; leave M out for the Euclidean one"
            )
        L = np.linalg.cholesky(H)
        across = np.broadcast_to(N.swapaxes(-1, -2), (*L.shape[:-1], N.shape[-2]))
        N = np.linalg.solve(L, across).swapaxes(-1, -2)
    if N.size:
        largest = np.take_along_axis(N, np.abs(N).argmax(axis=-2)[..., None, :], axis=-2)
        N = N * np.where(largest < 0, -1.0, 1.0)
    return N + 0.0


def scaled_basis(M: Float, A: Float, rtol: float | None) -> Float:
    """Virtual displacements that are orthonormal in coordinates of unit mass (see `scales`)."""
    d = scales(M, A).coordinates
    M = M * d[..., :, None] * d[..., None, :]
    return d[..., :, None] * _null_space(chosen_rows(A * d[..., None, :], M, rtol))


def _null_space(chosen: Float) -> Float:
    """Orthonormal columns that the given independent rows leave free."""
    r, n = chosen.shape[-2:]
    if not r:
        return np.broadcast_to(np.eye(n), (*chosen.shape[:-2], n, n))
    basis: Float = np.linalg.qr(chosen.swapaxes(-1, -2), mode="complete")[0][..., r:]
    return basis


@stands_for(r"A = (A_d\ A_i),\quad \delta q_d = -A_d^{-1} A_i\,\delta q_i")
def partition(
    A: ArrayLike, *, rtol: float | None = None
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return which coordinates depend on the others, and which are independent.

    Parameters
    ----------
    A : (..., m, n) array_like
        Constraint matrix.
    rtol : float, optional
        Rank tolerance, as in `solve`.

    Returns
    -------
    dependent : (..., rank) ndarray of int
        Coordinates that the constraints can be solved for.
    independent : (..., n - rank) ndarray of int
        The others, the degrees of freedom, in ascending order.

    Raises
    ------
    ValueError
        Systems of a batch differ in rank.
    TypeError
        As `solve`.

    Notes
    -----
    The columns that a QR factorisation with pivoting picks first: Wehage and Haug, J. Mech.
    Des. 104 (1982) 247.

    Examples
    --------
    >>> from gaussmech import principles
    >>> dependent, independent = principles.partition([[1, 5, 0], [0, 0, 2]])
    >>> print(dependent, independent)
    [1 2] [0]
    """
    from scipy.linalg import qr  # type: ignore[import-untyped]

    rows = as_float("A", A)
    check_shapes({"A": rows})
    chosen = chosen_rows(rows, None, rtol)
    batch, r, n = chosen.shape[:-2], chosen.shape[-2], chosen.shape[-1]
    dependent = np.empty((*batch, r), np.intp)
    independent = np.empty((*batch, n - r), np.intp)
    for index in np.ndindex(batch):
        pivots = qr(chosen[index], mode="r", pivoting=True)[1] if r else np.arange(n)
        dependent[index], independent[index] = np.sort(pivots[:r]), np.sort(pivots[r:])
    return dependent, independent


@stands_for(r"y = \ddot q + N z,\quad A y = A \ddot q")
def competitors(
    M: ArrayLike,
    A: ArrayLike,
    qdd: ArrayLike,
    *,
    count: int = 8,
    spread: float = 1.0,
    seed: int | np.random.Generator = 0,
    rtol: float | None = None,
) -> Float:
    """Return accelerations that satisfy the same constraints as a given one, at random.

    Parameters
    ----------
    M : (..., n, n) array_like
        Mass matrix, for the metric.
    A : (..., m, n) array_like
        Constraint matrix.
    qdd : (..., n) array_like
        The acceleration to compete with.
    count : int
        How many.
    spread : float
        Their distance ‖y - q̈‖_M from it, in units of ‖q̈‖_M (of 1 where that is zero).
    seed : int or numpy.random.Generator
        For NumPy's ``default_rng``.
    rtol : float, optional
        Rank tolerance, as in `solve`.

    Returns
    -------
    (count, ..., n) ndarray
        The competitors, first axis first, so that ``gm.zwang(M, Q, competitors(...))``
        broadcasts. All equal `qdd` where no degree of freedom is left.

    Raises
    ------
    TypeError, ValueError, NotSemidefiniteError
        As `virtual_displacements`.

    Examples
    --------
    >>> from gaussmech import principles
    >>> y = principles.competitors([[1, 0], [0, 1]], [[0, 1]], [3, 0], count=2)
    >>> print(y.shape, y[:, 1])
    (2, 2) [0. 0.]
    """
    arrays = {"M": as_float("M", M), "A": as_float("A", A), "qdd": as_float("qdd", qdd)}
    check_shapes(arrays)
    if isinstance(count, bool) or not isinstance(count, (int, np.integer)) or count < 0:
        raise ValueError(f"count is {count!r}; expected a number of competitors, 0 or more")
    return sampled(*arrays.values(), count=count, spread=spread, seed=seed, rtol=rtol)


def sampled(
    M: Float,
    A: Float,
    qdd: Float,
    *,
    count: int = 8,
    spread: float = 1.0,
    seed: int | np.random.Generator = 0,
    rtol: float | None = None,
) -> Float:
    N = scaled_basis(M, A, rtol)
    d = scales(M, A).coordinates
    batch = np.broadcast_shapes(N.shape[:-2], d.shape[:-1], qdd.shape[:-1])
    z = np.random.default_rng(seed).standard_normal((count, *batch, N.shape[-1]))
    step = times(N, z)

    def size(x: Float) -> Any:
        """‖x‖_M, or in coordinates of unit mass where that is zero."""
        square = (x * times(M, x)).sum(axis=-1, keepdims=True)
        whole = ((x / d) ** 2).sum(axis=-1, keepdims=True)
        return np.sqrt(np.where(square > 1e-20 * whole, square, whole))

    length, wanted = size(step), size(qdd)
    wanted = np.where(wanted > 0, wanted, 1.0) * spread
    return qdd + step * (wanted / np.where(length > 0, length, 1.0))


@stands_for(r"\delta W = Q_c \cdot \delta q")
def virtual_work(Q_c: ArrayLike, dq: ArrayLike) -> Any:
    """Return the virtual work Q_c·δq of a force along a displacement.

    Parameters
    ----------
    Q_c : (..., n) array_like
        Generalized force.
    dq : (..., n) array_like
        Virtual displacement, or virtual velocity for a power.

    Returns
    -------
    float or (...) ndarray
        The work.

    Raises
    ------
    TypeError, ValueError
        As `solve`.

    Examples
    --------
    The force of a table does no work along it:

    >>> from gaussmech import principles
    >>> principles.virtual_work([0, 10], [1, 0])
    0.0
    """
    force, step = as_float("Q_c", Q_c), as_float("dq", dq)
    check_shapes({"Q_c": force, "dq": step})
    return plain((force * step).sum(axis=-1))


def independent_basis(A: Float, rtol: float | None) -> Float:
    """T with δq = T δq_i, the virtual displacements by their independent coordinates."""
    dependent, independent = partition(A, rtol=rtol)
    chosen = chosen_rows(A, None, rtol)
    batch, r, n = chosen.shape[:-2], chosen.shape[-2], chosen.shape[-1]
    T = np.zeros((*batch, n, n - r))
    for index in np.ndindex(batch):
        d, i, rows = dependent[index], independent[index], chosen[index]
        T[index][i] = np.eye(n - r)
        if r and n > r:
            T[index][d] = -np.linalg.solve(rows[:, d], rows[:, i])
    return T


def chosen_rows(A: Float, M: Float | None, rtol: float | None) -> Float:
    """The independent rows of A, to unit length: (..., rank, n)."""
    mask = independent_rows(A, M, rtol)
    batch = mask.shape[:-1]
    ranks = mask.sum(axis=-1)
    if ranks.size and ranks.min() != ranks.max():
        flat = np.ravel(ranks)
        other = int(np.flatnonzero(flat != flat[0])[0])
        index = tuple(int(i) for i in np.unravel_index(other, batch))
        raise ValueError(
            f"systems differ in rank: {flat[0]} at index {(0,) * len(batch)} but {flat[other]} at "
            f"index {index}, so their virtual displacements have different shapes; pass systems "
            "of one rank at a time"
        )
    rank = int(ranks.max()) if ranks.size else 0
    order = np.argsort(~mask, axis=-1, kind="stable")[..., :rank, None]
    rows = np.take_along_axis(np.broadcast_to(A, (*batch, *A.shape[-2:])), order, axis=-2)
    chosen: Float = rows / np.linalg.norm(rows, axis=-1, keepdims=True) if rows.size else rows
    return chosen


def times(X: Float, x: Float) -> Float:
    """Matrix times vector, over batches."""
    product: Float = (X @ x[..., None])[..., 0]
    return product


def plain(x: Any) -> Any:
    return float(x) if np.ndim(x) == 0 else x
