"""What one writes by hand for the constrained acceleration, in plain NumPy and SciPy.

Every function takes ``M (n, n)``, ``Q (n,)``, ``A (m, n)``, ``b (m,)`` and returns
``(qdd, Q_c, multipliers)`` with ``M qdd = Q + Q_c`` and ``Q_c = A.T @ multipliers``. They want
a full row rank of A and, but for `kkt` and `null_space`, a regular M; none of them checks
anything. The ``batch`` variants take leading dimensions.
"""

import numpy as np
import scipy.linalg
from scipy.linalg.lapack import dgglse, dgglse_lwork


def kkt(M, Q, A, b):
    """One linear system ``[[M, -A.T], [A, 0]] [qdd, multipliers] = [Q, b]``, assembly included."""
    n, m = len(Q), len(b)
    K = np.zeros((n + m, n + m))
    K[:n, :n] = M
    K[:n, n:] = -A.T
    K[n:, :n] = A
    rhs = np.empty(n + m)
    rhs[:n] = Q
    rhs[n:] = b
    x = np.linalg.solve(K, rhs)
    qdd = x[:n]
    return qdd, M @ qdd - Q, x[n:]


def kkt_matrix_batch(M, Q, A, b):
    """The matrices and right sides of `kkt` for a batch: ``(..., n+m, n+m)``, ``(..., n+m, 1)``."""
    n, m = Q.shape[-1], b.shape[-1]
    K = np.zeros((*Q.shape[:-1], n + m, n + m))
    K[..., :n, :n] = M
    K[..., :n, n:] = -A.swapaxes(-1, -2)
    K[..., n:, :n] = A
    rhs = np.empty((*Q.shape[:-1], n + m, 1))
    rhs[..., :n, 0] = Q
    rhs[..., n:, 0] = b
    return K, rhs


def kkt_batch(M, Q, A, b):
    """`kkt` for a batch, assembly included."""
    n = Q.shape[-1]
    x = np.linalg.solve(*kkt_matrix_batch(M, Q, A, b))[..., 0]
    qdd = x[..., :n]
    return qdd, (M @ qdd[..., None])[..., 0] - Q, x[..., n:]


def gglse(M, Q, A, b):
    """Gauss's principle as least squares: min ``|F.T qdd - F^-1 Q|`` with ``A qdd = b``, M = F F.T.

    LAPACK's dgglse returns no multipliers; they are fitted to the constraint force afterwards.
    """
    n, m = len(Q), len(b)
    F = np.linalg.cholesky(M)
    c = scipy.linalg.solve_triangular(F, Q, lower=True)
    lwork, _ = dgglse_lwork(n, n, m)
    *_, qdd, info = dgglse(F.T, A, c, b, lwork=int(lwork))
    if info != 0:
        raise np.linalg.LinAlgError(f"dgglse returned info = {info}")
    Q_c = M @ qdd - Q
    return qdd, Q_c, np.linalg.lstsq(A.T, Q_c, rcond=None)[0]


def null_space(M, Q, A, b):
    """Null-space method: ``A.T = Y R``, N the other columns of the QR; project onto N."""
    m = len(b)
    q, r = scipy.linalg.qr(A.T)
    Y, N, R = q[:, :m], q[:, m:], r[:m]
    x = Y @ scipy.linalg.solve_triangular(R, b, trans="T")
    H = N.T @ M @ N
    qdd = x + N @ scipy.linalg.solve(H, N.T @ (Q - M @ x), assume_a="pos")
    Q_c = M @ qdd - Q
    return qdd, Q_c, scipy.linalg.solve_triangular(R, Y.T @ Q_c)


def udwadia_kalaba(M, Q, A, b):
    """The printed formula, ``Q_c = M^1/2 (A M^-1/2)^+ (b - A M^-1 Q)``, with eigh and pinv."""
    w, V = np.linalg.eigh(M)
    root = np.sqrt(w)
    M_half = (V * root) @ V.T
    M_minus_half = (V / root) @ V.T
    a = M_minus_half @ (M_minus_half @ Q)
    B_plus = np.linalg.pinv(A @ M_minus_half)
    y = B_plus @ (b - A @ a)
    return a + M_minus_half @ y, M_half @ y, B_plus.T @ y


def schur(M, Q, A, b):
    """Range-space method: Cholesky of M, then of ``A M^-1 A.T``; the fewest operations of all."""
    n = len(Q)
    rhs = np.empty((n, len(b) + 1))
    rhs[:, 0] = Q
    rhs[:, 1:] = A.T
    x = scipy.linalg.cho_solve(scipy.linalg.cho_factor(M, lower=True), rhs)
    a, X = x[:, 0], x[:, 1:]
    S = scipy.linalg.cho_factor(A @ X, lower=True)
    multipliers = scipy.linalg.cho_solve(S, b - A @ a)
    return a + X @ multipliers, A.T @ multipliers, multipliers


SINGLE = {
    "KKT": kkt,
    "dgglse": gglse,
    "null-space QR": null_space,
    "eigh+pinv": udwadia_kalaba,
    "Schur": schur,
}


def reference(M, Q, A, b, steps=8):
    """``(qdd, Q_c, multipliers)`` of a batch for checking: the equilibrated KKT system, refined
    with residuals in extended precision (where the platform's long double has it)."""
    n = Q.shape[-1]
    K, rhs = kkt_matrix_batch(M, Q, A, b)
    rhs = rhs[..., 0]
    # powers of two, so that scaling is exact: coordinates by M's diagonal, then rows of A
    d = np.exp2(-np.round(np.log2(np.diagonal(M, axis1=-2, axis2=-1)) / 2))
    s = np.exp2(-np.round(np.log2(np.linalg.norm(A * d[..., None, :], axis=-1))))
    scale = np.concatenate([d, s], axis=-1)
    K *= scale[..., :, None] * scale[..., None, :]
    rhs *= scale
    inverse = np.linalg.inv(K)
    K = K.astype(np.longdouble)
    x = np.zeros(rhs.shape, np.longdouble)
    for _ in range(steps):
        r = (rhs - (K * x[..., None, :]).sum(-1)).astype(float)
        x += (inverse @ r[..., None])[..., 0]
    x *= scale
    qdd, multipliers = x[..., :n], x[..., n:]
    Q_c = (A * multipliers[..., :, None]).sum(-2)
    return qdd.astype(float), Q_c.astype(float), multipliers.astype(float)
