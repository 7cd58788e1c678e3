"""Slow, obvious answers to (P): M qdd = Q + Q_c, A qdd = b, dq.Q_c = dq.C for every dq in ker A.

Two parts that share nothing with the product:

* `exact` works with fractions. A float is a fraction, so ranks, null spaces and answers are decided
  without any tolerance; only the finished result is rounded to float64, once. It is meant for
  inputs whose dependent rows and singular masses are exact: small integers, or dyadic numbers.
* Plain NumPy: null spaces from the SVD, five textbook formulations, and `bounds`, which says how
  far float64 data determine an answer at all. Every tolerance of the tests comes from there.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

EPS = np.finfo(float).eps


# ------------------------------------------------------------------ exact linear algebra


def rational(x):
    """The same array with every float replaced by the fraction that it is."""
    x = np.asarray(x)
    out = np.empty(x.shape, dtype=object)
    for index in np.ndindex(x.shape):
        value = x[index]
        out[index] = Fraction(value if isinstance(value, Fraction) else float(value))
    return out


def rounded(x):
    """float64, correctly rounded."""
    return np.array([float(v) for v in x.ravel()], dtype=float).reshape(x.shape)


def echelon(X):
    """(reduced row echelon form, pivot columns)."""
    X = X.copy()
    pivots = []
    for j in range(X.shape[1]):
        row = len(pivots)
        hits = [i for i in range(row, len(X)) if X[i, j] != 0]
        if not hits:
            continue
        X[[row, hits[0]]] = X[[hits[0], row]]
        X[row] = X[row] / X[row, j]
        for i in range(len(X)):
            if i != row and X[i, j] != 0:
                X[i] = X[i] - X[i, j] * X[row]
        pivots.append(j)
    return X, pivots


def exact_rank(X):
    return len(echelon(rational(X))[1])


def kernel(X):
    """Columns that span ker X, exactly."""
    R, pivots = echelon(X)
    free = [j for j in range(X.shape[1]) if j not in pivots]
    basis = np.full((X.shape[1], len(free)), Fraction(0), dtype=object)
    for k, j in enumerate(free):
        basis[j, k] = Fraction(1)
        for i, p in enumerate(pivots):
            basis[p, k] = -R[i, j]
    return basis


def one_solution(X, y):
    """Some x with X x = y, or None when there is none."""
    R, pivots = echelon(np.concatenate([X, y.reshape(-1, 1)], axis=1))
    columns = X.shape[1]
    if columns in pivots:
        return None
    x = np.full(columns, Fraction(0), dtype=object)
    for i, p in enumerate(pivots):
        x[p] = R[i, columns]
    return x


def least_squares(X, y):
    """Some x that minimises |X x - y|."""
    return one_solution(X.T @ X, X.T @ y)


def minimum_norm(X, y):
    """The shortest x with X x = y, or None: x = X.T z is orthogonal to ker X."""
    z = one_solution(X @ X.T, y)
    return None if z is None or any(X @ (X.T @ z) != y) else X.T @ z


# ------------------------------------------------------------------ the exact answer


@dataclass
class Exact:
    """kind: "unique", "many", "none" (spec section 3) or "inconsistent"; the rest as in `Motion`.

    Where kind is "none" or "inconsistent" only the fields that still mean something are set.
    """

    kind: str
    rank: int
    nullity: int
    multipliers_unique: np.ndarray
    vanished: np.ndarray
    null_vectors: np.ndarray  # columns, span of ker M and ker A
    qdd: np.ndarray = None
    Q_c: np.ndarray = None
    Q_ideal: np.ndarray = None
    K: np.ndarray = None
    multipliers: np.ndarray = None
    multipliers_total: np.ndarray = None
    zwang: float = None
    residual: np.ndarray = None


def exact(M, Q, A, b, C=None, *, project=False, scale=None):
    """The exact answer by the null-space method.

    project: least squares in the caller's row units first, as the Moore-Penrose formula does.
    scale: (n,) d; where qdd is not unique, return the one with the smallest |qdd / d|.
    """
    M, Q, A, b = rational(M), rational(Q), rational(A), rational(b)
    n = len(Q)
    C = rational(np.zeros(n) if C is None else C)
    d = rational(np.ones(n) if scale is None else scale)

    N = kernel(A)
    left = kernel(A.T)
    W = kernel(np.concatenate([M, A]))
    found = {
        "rank": n - N.shape[1],
        "nullity": W.shape[1],
        "multipliers_unique": np.array([all(row == 0) for row in left], dtype=bool),
        "vanished": np.array([all(row == 0) for row in A], dtype=bool),
        "null_vectors": rounded(W),
    }

    x0 = least_squares(A, b)
    if any(A @ x0 != b) and not project:
        return Exact("inconsistent", **found)
    if any(W.T @ (Q + C) != 0):
        return Exact("none", **found)

    H = N.T @ M @ N

    def motion(force):
        return x0 + N @ one_solution(H, N.T @ (force - M @ x0))

    qdd = motion(Q + C)
    if W.shape[1]:
        weighted = W.T / d**2
        qdd = qdd - W @ one_solution(weighted @ W, weighted @ qdd)
    Q_c = M @ qdd - Q

    if any(W.T @ C != 0):
        Q_ideal = K = multipliers = None
    else:
        Q_ideal = M @ motion(Q) - Q
        K = Q_c - Q_ideal
        multipliers = minimum_norm(A.T, Q_ideal)
    total = minimum_norm(A.T, Q_c - C)

    free = one_solution(M, Q)  # None: Q is not in the range of M
    zwang = float("nan") if free is None else float((qdd - free) @ M @ (qdd - free))

    def done(x):
        return np.full(n, np.nan) if x is None else rounded(x)

    return Exact(
        "many" if W.shape[1] else "unique",
        **found,
        qdd=rounded(qdd),
        Q_c=rounded(Q_c),
        Q_ideal=done(Q_ideal),
        K=done(K),
        multipliers=np.full(len(b), np.nan) if multipliers is None else rounded(multipliers),
        multipliers_total=rounded(total),
        zwang=zwang,
        residual=rounded(A @ qdd - b),
    )


# ------------------------------------------------------------------ NumPy, rank given


def null_space(A, rank):
    """(n, n - rank) orthonormal columns that span ker A."""
    return np.linalg.svd(A, full_matrices=True)[2][rank:].T


def pinv(A, rank):
    """A+ from the SVD, cut at a rank that is known."""
    U, s, Vt = np.linalg.svd(A, full_matrices=False)
    return (Vt[:rank].T / s[:rank]) @ U[:, :rank].T


def condition(A, rank):
    """Largest over smallest nonzero singular value."""
    if rank == 0:
        return 1.0
    s = np.linalg.svd(A, compute_uv=False)
    return s[0] / s[rank - 1]


def reduced_mass(M, A, rank):
    """H = N.T M N, the mass that the virtual displacements see."""
    N = null_space(A, rank)
    return N.T @ M @ N


def norm_M(M, x):
    """sqrt(x.T M x)."""
    return np.sqrt(max(x @ M @ x, 0.0))


def rows_that_span(A, rank):
    """Indices of `rank` independent rows, the most upright ones first (unit rows, greedy)."""
    lengths = np.linalg.norm(A, axis=1)
    rest = A / np.where(lengths > 0, lengths, 1.0)[:, None]
    chosen = []
    for _ in range(rank):
        k = int(np.argmax(np.linalg.norm(rest, axis=1)))
        u = rest[k] / np.linalg.norm(rest[k])
        rest = rest - np.outer(rest @ u, u)
        rest[k] = 0.0
        chosen.append(k)
    return chosen


# ------------------------------------------------------------------ how well the data determine it

FACTOR = 32


@dataclass
class Bounds:
    """Allowed 2-norm errors, absolute."""

    qdd: float
    Q_c: float
    multipliers: float


def bounds(M, Q, A, b, C=None, *, rank):
    """FACTOR times the largest first-order effect of one ulp in every entry of M, Q + C, A and b.

    With K = [[M, -A.T], [A, 0]] (independent rows) and K x = f, entries changed by eps|K|, eps|f|
    change x by at most eps |K^-1| (|K||x| + |f|), entry by entry. The worst case over the signs is
    what no algorithm can beat by much; a stable one stays within a modest multiple of it, and 30 is
    the multiple that the accuracy yardstick of the project grants (rounded up to a power of two).
    """
    M, Q, A, b = (np.asarray(x, dtype=float) for x in (M, Q, A, b))
    n = len(Q)
    force = Q if C is None else Q + C
    size = np.abs(Q) if C is None else np.abs(Q) + np.abs(C)
    k = rows_that_span(A, rank)
    K = np.block([[M, -A[k].T], [A[k], np.zeros((rank, rank))]])
    inverse = np.linalg.inv(K)
    x = inverse @ np.concatenate([force, b[k]])
    moved = np.abs(inverse) @ (np.abs(K) @ np.abs(x) + np.concatenate([size, np.abs(b[k])]))
    qdd = np.linalg.norm(moved[:n])
    local = np.abs(M) @ np.abs(x[:n]) + size
    # Q_c is M qdd - Q and also C + A.T mu: the change in either is a bound. On top of it,
    # multipliers that are perfect but for their own rounding give A.T mu to eps |A.T||mu|.
    pull = np.abs(A[k]).T @ np.abs(x[n:])
    by_mass = np.abs(M) @ moved[:n] + local
    by_rows = np.abs(A[k]).T @ moved[n:] + size
    Q_c = min(np.linalg.norm(by_mass + pull), np.linalg.norm(by_rows + pull))
    # minimum-norm multipliers are (A.T)+ (Q_c - C): error of the force, and of the pseudo-inverse
    if rank:
        inverse_norm = np.linalg.norm(pinv(A, rank), 2)
        reaction = np.linalg.norm(A[k].T @ x[n:])
        multipliers = inverse_norm * (Q_c + 2 * condition(A, rank) * reaction)
    else:
        multipliers = 0.0
    return Bounds(FACTOR * EPS * qdd, FACTOR * EPS * Q_c, FACTOR * EPS * multipliers)


def zwang_bound(M, Q, qdd, qdd_error, mass_rank):
    """Allowed error of Z = |qdd - a|_M^2, where qdd is off by qdd_error.

    a = M^-1 Q cannot be had better than FACTOR n eps cond(M) |a|_M; with d the sum of both errors
    in the norm of M, Z moves by 2 sqrt(Z) d + d^2, and by n eps Z when the product is added up.
    """
    n = len(Q)
    a = pinv(M, mass_rank) @ Q
    Z = (qdd - a) @ M @ (qdd - a)
    heaviest = np.linalg.norm(M, 2) if n else 0.0
    d = np.sqrt(heaviest) * qdd_error
    d += FACTOR * n * EPS * condition(M, mass_rank) * norm_M(M, a)
    return 2 * np.sqrt(max(Z, 0.0)) * d + d**2 + FACTOR * n * EPS * abs(Z)


# ------------------------------------------------------------------ five formulations (C as Q + C)


def inverse_root(M):
    """M^-1/2, symmetric."""
    w, V = np.linalg.eigh(M)
    return (V / np.sqrt(w)) @ V.T


def by_udwadia_kalaba(M, Q, A, b, rank):
    """qdd = a + M^-1/2 (A M^-1/2)+ (b - A a), regular M."""
    root = inverse_root(M)
    a = np.linalg.solve(M, Q)
    return a + root @ (pinv(A @ root, rank) @ (b - A @ a))


def by_augmented_mass(M, Q, A, b, rank):
    """The same with M_A = M + A+ A and Q_b = Q + A+ b; M may be singular."""
    inverse = pinv(A, rank)
    return by_udwadia_kalaba(M + inverse @ A, Q + inverse @ b, A, b, rank)


def by_multipliers(M, Q, A, b, rank):
    """Lagrange's first kind: [[M, -A.T], [A, 0]] with independent rows."""
    k = rows_that_span(A, rank)
    K = np.block([[M, -A[k].T], [A[k], np.zeros((rank, rank))]])
    return np.linalg.solve(K, np.concatenate([Q, b[k]]))[: len(Q)]


def by_null_space(M, Q, A, b, rank):
    """Jourdain: N.T (M qdd - Q) = 0 with qdd = A+ b + N z."""
    N = null_space(A, rank)
    x0 = pinv(A, rank) @ b
    return x0 + N @ np.linalg.solve(N.T @ M @ N, N.T @ (Q - M @ x0))


def by_least_squares(M, Q, A, b, rank):
    """Gauss: min |L.T x - L^-1 f| subject to A x = b, where L L.T = M + A+ A and f = Q + A+ b.

    On A x = b the added A+ A only shifts Gauss's function by a constant, so M may be singular. The
    constraint is eliminated with the orthogonal factor of A.T; M itself is never projected.
    """
    inverse = pinv(A, rank)
    L = np.linalg.cholesky(M + inverse @ A)
    k = rows_that_span(A, rank)
    orth, R = np.linalg.qr(A[k].T, mode="complete")
    x0 = orth[:, :rank] @ np.linalg.solve(R[:rank].T, b[k])
    N = orth[:, rank:]
    target = np.linalg.solve(L, Q + inverse @ b) - L.T @ x0
    return x0 + N @ np.linalg.lstsq(L.T @ N, target, rcond=None)[0]


FORMULATIONS = {
    "Udwadia-Kalaba, M^1/2 and pinv": by_udwadia_kalaba,
    "augmented mass matrix": by_augmented_mass,
    "multipliers (KKT)": by_multipliers,
    "null space (Jourdain)": by_null_space,
    "equality constrained least squares": by_least_squares,
}
