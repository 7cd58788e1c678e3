"""The textbook's routes from (M, Q, A, b, C) to the motion, each in the few lines of its book.

They are references: plain NumPy, one system at a time, no scaling and no refinement. Each says
what it cannot do and raises `GaussmechError` there. `solve` uses none of them; `cross_check`
runs all of them beside it.

Every route returns ``(qdd, Q_c, multipliers)`` in the signs of `solve`: M q̈ = Q + Q_c, and the
multipliers are those of the ideal part, of minimum norm where rows depend on each other. Ranks
are counted on rows of unit length in coordinates of unit mass, above the tolerance `rtol`
(default ``max(1e-12, 16 n eps)``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .digits import scales
from .errors import GaussmechError
from .inputs import as_problem, batch_shape, check_finite
from .virtual import stands_for

__all__ = [
    "augmented",
    "elimination",
    "gauss",
    "jourdain",
    "lagrange_first_kind",
    "udwadia_kalaba",
]

Float = NDArray[np.float64]
Answer = tuple[Float, Float, Float]
System = tuple[Float, Float, Float, Float, Float]
# M, Q, A, b, C, rank of A -> (qdd, Q_c, multipliers), of one system
Formula = Callable[[Float, Float, Float, Float, Float, int], Answer]
EPS = float(np.finfo(np.float64).eps)


class NotApplicable(Exception):
    """What a route needs and does not find, as the end of a sentence."""


class Route(Protocol):
    """How a route is called."""

    __name__: str

    def __call__(
        self,
        M: ArrayLike,
        Q: ArrayLike,
        A: ArrayLike,
        b: ArrayLike,
        C: ArrayLike | None = None,
        *,
        rtol: float | None = None,
    ) -> Answer: ...


@dataclass(slots=True, frozen=True)
class Entry:
    """One route of the list: how it is called by people, by name, and for one system."""

    title: str
    name: str
    formula: Formula


ROUTES: list[Entry] = []


def _route(title: str, equation: str) -> Callable[[Formula], Route]:
    """Turn the formula for one system into a function that checks, batches and complains.

    A notebook that looks at the function shows its equation.
    """

    def wrap(formula: Formula) -> Route:
        name = formula.__name__
        ROUTES.append(Entry(title, name, formula))

        def route(
            M: ArrayLike,
            Q: ArrayLike,
            A: ArrayLike,
            b: ArrayLike,
            C: ArrayLike | None = None,
            *,
            rtol: float | None = None,
        ) -> Answer:
            arrays = with_zero_C(as_problem(M, Q, A, b, C))
            check_finite(arrays)
            batch = batch_shape(arrays)
            items = systems(arrays, batch)
            answers = []
            for index, item in zip(np.ndindex(batch), items, strict=True):
                where = f"system {index}: " if batch else ""
                rank = rank_of(item[0], item[2], rtol)
                try:
                    answers.append(formula(*item, rank))
                except (NotApplicable, np.linalg.LinAlgError) as error:
                    raise GaussmechError(f"{where}{name} {error}", index=index) from None
            n, m = arrays["A"].shape[:-3:-1]
            shapes = (n, n, m)
            qdd, Q_c, multipliers = (
                np.array([answer[j] for answer in answers], dtype=float).reshape(*batch, shapes[j])
                for j in range(3)
            )
            return qdd, Q_c, multipliers

        route.__name__ = route.__qualname__ = name
        route.__module__ = formula.__module__
        route.__doc__ = formula.__doc__
        return stands_for(equation)(route)

    return wrap


def with_zero_C(arrays: dict[str, Float | None]) -> dict[str, Float]:
    """Return the operands of a problem with zeros for a C that is not given."""
    given = {name: array for name, array in arrays.items() if array is not None}
    given.setdefault("C", np.zeros(given["M"].shape[-1]))
    return given


def systems(arrays: dict[str, Float], batch: tuple[int, ...]) -> list[System]:
    """Return the operands of every system of a batch, in the order of ``np.ndindex(batch)``."""
    spread = []
    for name, array in arrays.items():
        core = array.shape[array.ndim - (2 if name in "MA" else 1) :]
        spread.append(np.broadcast_to(array, batch + core))
    M, Q, A, b, C = spread
    return [(M[i], Q[i], A[i], b[i], C[i]) for i in np.ndindex(batch)]


def rank_of(M: Float, A: Float, rtol: float | None = None) -> int:
    """Return the rank of A, of rows of unit length in coordinates of unit mass."""
    size = scales(M, A)
    rows = A * size.coordinates / size.rows[:, None]
    tolerance = max(1e-12, 16 * len(M) * EPS) if rtol is None else rtol
    s = np.linalg.svd(rows, compute_uv=False) if rows.size else np.zeros(0)
    return int(np.count_nonzero(s > tolerance * max(s.max(initial=0.0), 1e-300)))


# ------------------------------------------------------------------ pieces that books name


def _pseudo_inverse(A: Float, rank: int) -> Float:
    """The Moore-Penrose inverse A⁺ of a matrix whose rank is known."""
    U, s, Vt = np.linalg.svd(A, full_matrices=False)
    inverse: Float = (Vt[:rank].T / s[:rank]) @ U[:, :rank].T
    return inverse


def _null_space(A: Float, rank: int) -> Float:
    """An orthonormal basis of ker A, the virtual displacements, in columns."""
    basis: Float = np.linalg.svd(A, full_matrices=True)[2][rank:].T
    return basis


def _multipliers(A: Float, Q_ideal: Float, rank: int) -> Float:
    """The shortest λ with Aᵀλ = Q_ideal."""
    return _pseudo_inverse(A.T, rank) @ Q_ideal


def _rank_of_mass(M: Float) -> int:
    d = scales(M, M[:0]).coordinates
    values = np.linalg.eigvalsh(M * np.multiply.outer(d, d))
    return int(np.count_nonzero(values > 16 * max(len(M), 1) * EPS))


def _need_regular(M: Float) -> None:
    rank = _rank_of_mass(M)
    if rank < len(M):
        raise NotApplicable(f"needs M regular: its rank is {rank} of {len(M)}")


def _need_unique(M: Float, A: Float, rank: int) -> None:
    """rank [M; A] = n, or else the acceleration is not unique."""
    size = scales(M, A)
    N = _null_space(A * size.coordinates / size.rows[:, None], rank)
    H = N.T @ (M * np.multiply.outer(size.coordinates, size.coordinates)) @ N
    free = int(np.count_nonzero(np.linalg.eigvalsh(H) <= 16 * max(len(M), 1) * EPS))
    if free:
        raise NotApplicable(
            f"needs a unique acceleration: {free} direction{'s' if free > 1 else ''} without mass "
            "and constraint"
        )


def _roots(M: Float) -> tuple[Float, Float]:
    """M^1/2 and M^-1/2, symmetric."""
    w, V = np.linalg.eigh(M)
    if w.min(initial=np.inf) <= len(M) * EPS * w.max(initial=0.0):
        raise NotApplicable(
            f"needs masses of like size: they spread over {w.max() / abs(w.min()):.0e}, and "
            "M^1/2 has no digit of the smallest"
        )
    return (V * np.sqrt(w)) @ V.T, (V / np.sqrt(w)) @ V.T


# ------------------------------------------------------------------ the routes


@_route(
    "Udwadia–Kalaba (M^1/2 and the pseudo-inverse)", r"Q_c = M^{1/2} (A M^{-1/2})^+ (b - A a) + K"
)
def udwadia_kalaba(M: Float, Q: Float, A: Float, b: Float, C: Float, rank: int) -> Answer:
    """Return the motion by the explicit formula of Udwadia and Kalaba.

    Needs M regular; loses digits with the ratio of the largest to the smallest mass. Dependent
    rows are fine, and clashing ones get the least-squares compromise of
    ``solve(..., inconsistent="project")``.

    Parameters
    ----------
    M : (..., n, n) array_like
        Mass matrix, symmetric positive definite.
    Q : (..., n) array_like
        Applied generalized force.
    A : (..., m, n) array_like
        Constraint matrix.
    b : (..., m) array_like
        Right side of the constraints.
    C : (..., n) array_like, optional
        Non-ideal part: the constraint force does the virtual work δqᵀC.
    rtol : float, optional
        Rank tolerance; default ``max(1e-12, 16 n eps)``.

    Returns
    -------
    qdd, Q_c : (..., n) ndarray
        Acceleration and total constraint force.
    multipliers : (..., m) ndarray
        λ of the ideal part, ``Q_ideal = A.T @ multipliers``.

    Raises
    ------
    GaussmechError
        M is singular, or its masses spread beyond the digits of a float64.
    TypeError, ValueError
        As `solve`.

    Notes
    -----
    .. math:: Q_c = M^{1/2} B^+ (b - A a) + M^{1/2} (I - B^+ B) M^{-1/2} C,\\quad
              B = A M^{-1/2},\\quad a = M^{-1} Q.

    Udwadia and Kalaba, Proc. R. Soc. A 439 (1992) 407; with C, J. Appl. Mech. 68 (2001) 462.

    Examples
    --------
    >>> from gaussmech import formulations
    >>> qdd, Q_c, multipliers = formulations.udwadia_kalaba(
    ...     [[1, 0], [0, 1]], [3, -10], [[0, 1]], [0])
    >>> print(qdd, Q_c, multipliers)
    [3. 0.] [ 0. 10.] [10.]
    """
    _need_regular(M)
    return _udwadia_kalaba(M, Q, A, b, C, rank)


def _udwadia_kalaba(M: Float, Q: Float, A: Float, b: Float, C: Float, rank: int) -> Answer:
    root, inverse_root = _roots(M)
    B = A @ inverse_root
    B_plus = _pseudo_inverse(B, rank)
    a = np.linalg.solve(M, Q)
    Q_ideal = root @ B_plus @ (b - A @ a)
    K = root @ (np.eye(len(Q)) - B_plus @ B) @ inverse_root @ C
    Q_c = Q_ideal + K
    qdd: Any = np.linalg.solve(M, Q + Q_c)
    return qdd, Q_c, _multipliers(A, Q_ideal, rank)


@_route("Udwadia–Phohomsiri (augmented mass matrix)", r"M_A = M + A^+ A,\quad Q_b = Q + A^+ b")
def augmented(M: Float, Q: Float, A: Float, b: Float, C: Float, rank: int) -> Answer:
    """Return the motion by the formula of Udwadia and Kalaba with an augmented mass matrix.

    M may be singular as long as the acceleration is unique. M + A⁺A adds unlike units, which
    the result is free of but its digits are not.

    Parameters
    ----------
    M, Q, A, b, C, rtol
        As in `udwadia_kalaba`; M positive semidefinite.

    Returns
    -------
    qdd, Q_c, multipliers : ndarray
        As `udwadia_kalaba`.

    Raises
    ------
    GaussmechError
        The acceleration is not unique.
    TypeError, ValueError
        As `solve`.

    Notes
    -----
    The formulas of `udwadia_kalaba` with

    .. math:: M_A = M + A^+ A,\\quad Q_b = Q + A^+ b

    in place of M and Q; Q_c is that of the original problem. Udwadia and Phohomsiri, Proc. R.
    Soc. A 462 (2006) 2097, section 3.

    Examples
    --------
    The first coordinate has no mass:

    >>> from gaussmech import formulations
    >>> qdd, Q_c, _ = formulations.augmented([[0, 0], [0, 2]], [3, 0], [[1, -1]], [0])
    >>> print(qdd.round(12), Q_c.round(12))
    [1.5 1.5] [-3.  3.]
    """
    _need_unique(M, A, rank)
    A_plus = _pseudo_inverse(A, rank)
    M_A = M + A_plus @ A
    Q_b = Q + A_plus @ b
    return _udwadia_kalaba(0.5 * (M_A + M_A.T), Q_b, A, b, C, rank)


@_route(
    "Lagrange's first kind (multipliers, KKT matrix)",
    r"M \ddot q = Q + C + A^T \mu,\quad A \ddot q = b",
)
def lagrange_first_kind(M: Float, Q: Float, A: Float, b: Float, C: Float, rank: int) -> Answer:
    """Return the motion by Lagrange's equations of the first kind.

    Needs independent rows, or else the matrix is singular; M may be singular.

    Parameters
    ----------
    M, Q, A, b, C, rtol
        As in `udwadia_kalaba`; M positive semidefinite.

    Returns
    -------
    qdd, Q_c, multipliers : ndarray
        As `udwadia_kalaba`.

    Raises
    ------
    GaussmechError
        Rows depend on each other, or the acceleration is not unique.
    TypeError, ValueError
        As `solve`.

    Notes
    -----
    .. math:: \\begin{pmatrix} M & -A^T \\\\ A & 0 \\end{pmatrix}
              \\begin{pmatrix} \\ddot q \\\\ \\mu \\end{pmatrix} =
              \\begin{pmatrix} Q + C \\\\ b \\end{pmatrix},\\quad Q_c = C + A^T \\mu.

    The multipliers λ of the ideal part come from the same matrix with C = 0. Lagrange,
    Mécanique analytique (1788); Goldstein, Classical Mechanics, section 2.4.

    Examples
    --------
    >>> from gaussmech import formulations
    >>> formulations.lagrange_first_kind([[1]], [2], [[1], [1]], [0, 0])
    Traceback (most recent call last):
        ...
    gaussmech.errors.GaussmechError: lagrange_first_kind needs independent rows: rank 1 of 2 rows
    """
    n, m = len(Q), len(b)
    if rank < m:
        raise NotApplicable(f"needs independent rows: rank {rank} of {m} rows")
    _need_unique(M, A, rank)
    KKT = np.block([[M, -A.T], [A, np.zeros((m, m))]])
    condition = np.linalg.cond(KKT) if KKT.size else 1.0
    if condition * EPS > 0.1:
        raise NotApplicable(f"needs a better KKT matrix: its condition is {condition:.0e}")
    right = np.array([np.concatenate([Q + C, b]), np.concatenate([Q, b])]).T
    x = np.linalg.solve(KKT, right)
    return x[:n, 0], C + A.T @ x[n:, 0], x[n:, 1]


@_route(
    "Gauss (equality-constrained least squares)",
    r"\|M^{1/2} (\ddot q - a)\| = \min,\quad A \ddot q = b",
)
def gauss(M: Float, Q: Float, A: Float, b: Float, C: Float, rank: int) -> Answer:
    """Return the motion of least Zwang, as a least-squares problem with equality constraints.

    Needs M regular, since the free acceleration has to exist. Clashing rows are met in the
    sense of least squares first.

    Parameters
    ----------
    M, Q, A, b, C, rtol
        As in `udwadia_kalaba`.

    Returns
    -------
    qdd, Q_c, multipliers : ndarray
        As `udwadia_kalaba`.

    Raises
    ------
    GaussmechError
        M is singular.
    TypeError, ValueError
        As `solve`.

    Notes
    -----
    .. math:: Z = \\|L^T (\\ddot q - a)\\|^2 = \\min,\\quad A \\ddot q = b,\\quad M = L L^T.

    Solved with q̈ = A⁺b + N z, N a basis of ker A. With C the motion is that of the force
    Q + C; it does not minimise the Zwang that belongs to Q. Gauss, J. reine angew. Math. 4
    (1829) 232; Lanczos, The Variational Principles of Mechanics, chapter IV.8; the algorithm:
    Golub and Van Loan, Matrix Computations, section 6.2.

    Examples
    --------
    >>> from gaussmech import formulations
    >>> qdd, Q_c, _ = formulations.gauss([[1, 0], [0, 4]], [2, 0], [[1, 1]], [0])
    >>> print(qdd.round(12), Q_c.round(12))
    [ 0.4 -0.4] [-1.6 -1.6]
    """
    _need_regular(M)
    L = np.linalg.cholesky(M)
    N = _null_space(A, rank)
    x0 = _pseudo_inverse(A, rank) @ b

    def least(force: Float) -> Float:
        a = np.linalg.solve(M, force)
        z = np.linalg.lstsq(L.T @ N, L.T @ (a - x0), rcond=0.0)[0]
        motion: Float = x0 + N @ z
        return motion

    qdd = least(Q + C)
    return qdd, M @ qdd - Q, _multipliers(A, M @ least(Q) - Q, rank)


@_route(
    "Jourdain (projection on the virtual velocities; Maggi, Kane)",
    r"N^T (M \ddot q - Q - C) = 0,\quad A N = 0",
)
def jourdain(M: Float, Q: Float, A: Float, b: Float, C: Float, rank: int) -> Answer:
    """Return the motion by projection on the virtual velocities: Jourdain, Maggi, Kane.

    The one that takes every system with a unique acceleration: singular M, dependent rows, and
    clashing ones in the sense of least squares.

    Parameters
    ----------
    M, Q, A, b, C, rtol
        As in `udwadia_kalaba`; M positive semidefinite.

    Returns
    -------
    qdd, Q_c, multipliers : ndarray
        As `udwadia_kalaba`.

    Raises
    ------
    GaussmechError
        The acceleration is not unique.
    TypeError, ValueError
        As `solve`.

    Notes
    -----
    .. math:: \\delta v^T (M \\ddot q - Q - C) = 0 \\text{ for all } \\delta v = N z,\\ A N = 0:
              \\quad N^T M N\\, z = N^T (Q + C - M A^+ b),\\quad \\ddot q = A^+ b + N z.

    Jourdain, Quart. J. Pure Appl. Math. 40 (1909) 153; Kane and Levinson, Dynamics: Theory and
    Applications (1985), chapter 6, where the columns of N are the partial velocities.

    Examples
    --------
    >>> from gaussmech import formulations
    >>> qdd, _, multipliers = formulations.jourdain(
    ...     [[0, 0], [0, 2]], [3, 0], [[1, -1], [2, -2]], [0, 0])
    >>> print(qdd.round(12), multipliers.round(12))
    [1.5 1.5] [-0.6 -1.2]
    """
    _need_unique(M, A, rank)
    N = _null_space(A, rank)
    x0 = _pseudo_inverse(A, rank) @ b

    def projected(force: Float) -> Float:
        motion: Float = x0 + N @ np.linalg.solve(N.T @ M @ N, N.T @ (force - M @ x0))
        return motion

    qdd = projected(Q + C)
    return qdd, M @ qdd - Q, _multipliers(A, M @ projected(Q) - Q, rank)


@_route("Elimination (independent coordinates)", r"\ddot q_d = A_d^+ (b - A_i \ddot q_i)")
def elimination(M: Float, Q: Float, A: Float, b: Float, C: Float, rank: int) -> Answer:
    """Return the motion by solving the constraints for dependent coordinates.

    The r dependent coordinates are those whose columns of A a QR factorisation with pivoting
    picks first. Takes every system with a unique acceleration.

    Parameters
    ----------
    M, Q, A, b, C, rtol
        As in `udwadia_kalaba`; M positive semidefinite.

    Returns
    -------
    qdd, Q_c, multipliers : ndarray
        As `udwadia_kalaba`.

    Raises
    ------
    GaussmechError
        The acceleration is not unique.
    TypeError, ValueError
        As `solve`.

    Notes
    -----
    With A = [A_d, A_i] and A_d of rank r,

    .. math:: \\ddot q_d = A_d^+ (b - A_i \\ddot q_i),\\quad
              T^T M T\\, \\ddot q_i = T^T (Q + C - M x_0),\\quad
              T = \\begin{pmatrix} -A_d^+ A_i \\\\ I \\end{pmatrix},\\quad
              x_0 = \\begin{pmatrix} A_d^+ b \\\\ 0 \\end{pmatrix}.

    Wehage and Haug, J. Mech. Des. 104 (1982) 247: generalized coordinate partitioning.

    Examples
    --------
    >>> from gaussmech import formulations
    >>> qdd, Q_c, _ = formulations.elimination([[1, 0], [0, 4]], [2, 0], [[1, 1]], [0])
    >>> print(qdd.round(12), Q_c.round(12))
    [ 0.4 -0.4] [-1.6 -1.6]
    """
    from scipy.linalg import qr  # type: ignore[import-untyped]

    _need_unique(M, A, rank)
    n = len(Q)
    pivots = qr(A, mode="r", pivoting=True)[1] if A.size else np.arange(n)
    d, i = pivots[:rank], pivots[rank:]
    A_d_plus = _pseudo_inverse(A[:, d], rank)
    T, x0 = np.zeros((n, n - rank)), np.zeros(n)
    T[i] = np.eye(n - rank)
    T[d] = -A_d_plus @ A[:, i]
    x0[d] = A_d_plus @ b

    def reduced(force: Float) -> Float:
        motion: Float = x0 + T @ np.linalg.solve(T.T @ M @ T, T.T @ (force - M @ x0))
        return motion

    qdd = reduced(Q + C)
    return qdd, M @ qdd - Q, _multipliers(A, M @ reduced(Q) - Q, rank)
