"""Random problems of five kinds with bounded conditioning, for comparisons of whole answers.

M = U diag(s) Uᵀ with s spread log-uniformly over 1 ... 100, A = V diag(t) Wᵀ with t over 1 ... 10,
U, V, W from QR factorisations of normal matrices: the condition of M is at most 100, that of A on
its row space at most 10, and that of NᵀMN at most that of M. Dependent rows are combinations of
the others with weights of size one; singular masses have up to rank(A) zeros among s, and a draw
is kept only if the smallest eigenvalue of NᵀMN is at least 1e-2 of the largest.
"""

import numpy as np

KINDS = ("regular", "rank-deficient", "non-ideal", "singular", "inconsistent")


def orthogonal(rng, n):
    return np.linalg.qr(rng.standard_normal((n, n)))[0]


def problem(kind, seed):
    """(M, Q, A, b, C, rank); C is None but for "non-ideal"."""
    rng = np.random.default_rng([KINDS.index(kind), seed])
    while True:
        n = int(rng.integers(2, 9))
        rank = int(rng.integers(1, n))
        extra = int(rng.integers(1, 4)) if kind in ("rank-deficient", "inconsistent") else 0
        s = 10 ** rng.uniform(0, 2, n)
        if kind == "singular":
            s[: rng.integers(1, rank + 1)] = 0.0
        U = orthogonal(rng, n)
        M = (U * s) @ U.T
        M = 0.5 * (M + M.T)
        V, W = orthogonal(rng, rank), orthogonal(rng, n)
        A = V @ (10 ** rng.uniform(0, 1, rank)[:, None] * W[:, :rank].T)
        b = rng.standard_normal(rank)
        if extra:
            mix = rng.uniform(-1, 1, (extra, rank))
            A, b = np.vstack([A, mix @ A]), np.concatenate([b, mix @ b])
            order = rng.permutation(rank + extra)
            A, b = A[order], b[order]
        if kind == "inconsistent":
            b = b + rng.standard_normal(len(b))
        Q = 10 * rng.standard_normal(n)
        C = rng.standard_normal(n) if kind == "non-ideal" else None
        H = np.linalg.eigvalsh(W[:, rank:].T @ M @ W[:, rank:])
        if H[0] >= 1e-2 * H[-1]:
            return M, Q, A, b, C, rank
