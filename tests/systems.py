# ruff: noqa  (copied unchanged below this line from shared/accuracy/systems.py, see data/README.md)
"""Seeded constrained-dynamics test systems and their high-precision reference.

Everything is generated with splitmix64 + mpmath (60+ digits) and rounded to float64 once, so a
(seed, n, m, kind) tuple gives the same bits on every machine (no LAPACK, no NumPy RNG involved).

  make(kind, n, m, seed)      -> System with float64 M (n,n), Q (n,), A (m,n), b (m,)
  get(kind, n, m, seed)       -> (M, Q, A, b)
  reference(system, dps=80)   -> dict of mpmath column lists: a, qdd, Qc, lam, Z   (exact data = stored float64)
  reference_f64(...)          -> the same rounded to float64 arrays
  threshold(system)           -> bounds on the relative errors of (qdd, Qc, lam), see there

kinds
  diag:R     diagonal M, masses log-spaced 1..1/R, shuffled                (R = mass ratio)
  graded:R   D^1/2 W D^1/2, W well conditioned SPD, D as above             (light part coupled to heavy part)
  dense:R    H D H^T, H = product of 3 random Householder reflectors       (mass ratio hidden by a rotation)
  near:s     M = dense:10, A with sigma_max = 1, sigma_min = s, b = A x0   (nearly dependent rows)
  dep        M = dense:10, last max(1, m//3) rows exact integer combinations of the first ones, b consistent
             (exact in float64; m+1 rows when m == 1)
  sing       M PSD exactly rank n - k, k = max(1, m//2), A full row rank, rank [M;A] = n
  singdep    sing + dependent rows as in dep
"""
from dataclasses import dataclass, field
import math
import numpy as np
import mpmath as mp

MASK = (1 << 64) - 1

class Rng:                       # splitmix64, uniform integers only
    def __init__(self, seed):
        self.s = seed & MASK
    def u64(self):
        self.s = (self.s + 0x9E3779B97F4A7C15) & MASK
        z = self.s
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return z ^ (z >> 31)
    def below(self, k):
        return self.u64() % k
    def grid(self, scale=1024):  # multiple of 1/scale in (-1, 1)
        return mp.mpf(int(self.below(2 * scale - 1)) - (scale - 1)) / scale
    def vec(self, n, scale=1024):
        return np.array([self.grid(scale) for _ in range(n)], dtype=object)
    def mat(self, m, n, scale=1024):
        return np.array([[self.grid(scale) for _ in range(n)] for _ in range(m)], dtype=object)
    def shuffle(self, lst):
        for i in range(len(lst) - 1, 0, -1):
            j = self.below(i + 1)
            lst[i], lst[j] = lst[j], lst[i]
        return lst

@dataclass
class System:
    kind: str
    n: int
    m: int
    seed: int
    M: np.ndarray
    Q: np.ndarray
    A: np.ndarray
    b: np.ndarray
    rank: int                    # exact rank of A
    G: np.ndarray = field(default=None, repr=False)   # A = G @ A[:rank], integers (only for dep kinds)

def f64(x):
    return np.array([[float(v) for v in r] for r in x]) if x.ndim == 2 else np.array([float(v) for v in x])

def _reflect_left(v, X):         # (I - 2 v v^T / v^T v) X
    vv = v.dot(v)
    w = v.dot(X) * (mp.mpf(2) / vv)
    return X - np.multiply.outer(v, w)

def _masses(rng, n, R):
    R = mp.mpf(R)
    if n == 1:
        return [mp.mpf(1)]
    d = [R ** (-mp.mpf(i) / (n - 1)) for i in range(n)]
    return rng.shuffle(d)

def _sym(X):
    n = len(X)
    for i in range(n):
        for j in range(i):
            X[i, j] = X[j, i]
    return X

def _mass(rng, kind, n, R):
    d = _masses(rng, n, R)
    if kind == 'diag':
        M = np.full((n, n), mp.mpf(0), dtype=object)
        for i in range(n):
            M[i, i] = d[i]
        return M
    if kind == 'graded':
        # W = H diag(1..4) H^T : condition 4
        e = [1 + mp.mpf(3) * i / max(1, n - 1) for i in range(n)]
        X = np.full((n, n), mp.mpf(0), dtype=object)
        for i in range(n):
            X[i, i] = e[i]
        for _ in range(3):
            v = rng.vec(n)
            X = _reflect_left(v, X); X = _reflect_left(v, X.T).T
        s = np.array([mp.sqrt(v) for v in d], dtype=object)
        return _sym(X * np.multiply.outer(s, s))
    if kind == 'dense':
        X = np.full((n, n), mp.mpf(0), dtype=object)
        for i in range(n):
            X[i, i] = d[i]
        for _ in range(3):
            v = rng.vec(n)
            X = _reflect_left(v, X); X = _reflect_left(v, X.T).T
        return _sym(X)
    raise ValueError(kind)

def make(kind, n, m, seed):
    with mp.workdps(70):
        base, _, arg = kind.partition(':')
        tag = sum(ord(c) * 131 ** i for i, c in enumerate(kind))
        rng = Rng((seed * 1000003 + n * 7919 + m * 104729 + tag) & MASK)
        G = None; rank = m
        if base in ('diag', 'graded', 'dense'):
            M = _mass(rng, base, n, arg or 1)
            A = rng.mat(m, n); b = rng.vec(m); Q = rng.vec(n)
        elif base == 'near':
            if m < 2:
                raise ValueError('near needs m >= 2')
            s = mp.mpf(arg)
            M = _mass(rng, 'dense', n, 10)
            A = np.full((m, n), mp.mpf(0), dtype=object)
            for i in range(m):
                A[i, i] = mp.mpf(1) - (mp.mpf(i) / (2 * (m - 1)))
            A[m - 1, m - 1] = s
            for _ in range(3):
                A = _reflect_left(rng.vec(m), A)
                A = _reflect_left(rng.vec(n), A.T).T
            A = np.array([[mp.mpf(float(v)) for v in r] for r in A], dtype=object)   # round A first
            b = A.dot(rng.vec(n)); Q = rng.vec(n)
        elif base in ('dep', 'sing', 'singdep'):
            if base == 'dep':
                M = _mass(rng, 'dense', n, 10)
            else:
                k = max(1, m // 2)
                L = rng.mat(n, n - k, 256)
                M = L.dot(L.T)                      # exact in float64: multiples of 2^-16
            A = rng.mat(m, n); Q = rng.vec(n)
            if base == 'sing':
                b = rng.vec(m)
            else:
                mm = max(m, 2); nd = max(1, mm // 3); rank = mm - nd
                G = np.zeros((mm, rank), dtype=int)
                for i in range(rank):
                    G[i, i] = 1
                for i in range(rank, mm):
                    for j in range(rank):
                        G[i, j] = int(rng.below(5)) - 2
                    if not G[i].any():
                        G[i, 0] = 1
                A1 = A[:rank] if m > 1 else A
                b1 = rng.vec(rank)
                A = G.dot(A1); b = G.dot(b1); m = mm
        else:
            raise ValueError(kind)
        return System(kind, n, m, seed, f64(M), f64(Q), f64(A), f64(b), rank, G)

def get(kind, n, m, seed):
    s = make(kind, n, m, seed)
    return s.M, s.Q, s.A, s.b

try:                             # same arithmetic, about 20x faster at n = 200; results agree (see check_engines)
    import gmpy2
except ImportError:
    gmpy2 = None

def _obj(x, engine):
    num = (lambda v: gmpy2.mpfr(float(v))) if engine == 'gmpy2' else (lambda v: mp.mpf(float(v)))
    return np.vectorize(num, otypes=[object])(x)

def _solve(K, R):
    """Gaussian elimination with partial pivoting on object (mpf) arrays; R is 1-d or 2-d."""
    K = K.copy(); one = R.ndim == 1
    R = (R.reshape(-1, 1) if one else R).copy()
    n = len(K)
    W = np.concatenate([K, R], axis=1)
    for i in range(n):
        p = i + max(range(n - i), key=lambda r: abs(W[i + r, i]))
        if p != i:
            W[[i, p]] = W[[p, i]]
        piv = 1 / W[i, i]
        for r in range(i + 1, n):
            if W[r, i] != 0:
                W[r, i + 1:] -= (W[r, i] * piv) * W[i, i + 1:]
    X = W[:, n:]
    for i in range(n - 1, -1, -1):
        if i < n - 1:
            X[i] = X[i] - W[i, i + 1:n].dot(X[i + 1:])
        X[i] = X[i] / W[i, i]
    return X[:, 0] if one else X

def reference(s, dps=80, engine=None):
    """KKT system with the independent rows only, min-norm lambda for dependent rows.
    engine: 'mpmath' or 'gmpy2' (default: gmpy2 when installed and n > 30)."""
    if engine is None:
        engine = 'gmpy2' if gmpy2 is not None and s.n > 30 else 'mpmath'
    if engine == 'gmpy2':
        with gmpy2.context(gmpy2.get_context(), precision=int(dps * 3.3219281) + 8):
            return _reference(s, 'gmpy2')
    with mp.workdps(dps):
        return _reference(s, 'mpmath')

def _reference(s, engine):
    if True:
        M, Q, A, b = (_obj(x, engine) for x in (s.M, s.Q, s.A, s.b))
        zero = _obj(np.zeros(1), engine)[0]
        r = s.rank; n = s.n
        A1, b1 = A[:r], b[:r]
        K = np.full((n + r, n + r), zero, dtype=object)
        K[:n, :n] = M; K[:n, n:] = -A1.T; K[n:, :n] = A1
        x = _solve(K, np.concatenate([Q, b1]))
        qdd, mu = x[:n], x[n:]
        Qc = M.dot(qdd) - Q
        lam = mu
        if s.G is not None:
            Gm = _obj(s.G, engine)
            lam = Gm.dot(_solve(Gm.T.dot(Gm), mu))
        out = dict(qdd=qdd, Qc=Qc, lam=lam)
        out['cons_res'] = max(abs(v) for v in (A.dot(qdd) - b))
        if not s.kind.startswith('sing'):
            # Z = (qdd-a)^T M (qdd-a) = Qc^T (qdd-a) = Qc^T M^{-1} Qc = lam^T (b - A a)
            a = _solve(M, Q); d = qdd - a
            out['a'] = a; out['Z'] = d.dot(M.dot(d))
        return out

def reference_f64(s, dps=80, engine=None):
    r = reference(s, dps, engine)
    return {k: (f64(v) if isinstance(v, np.ndarray) else float(v)) for k, v in r.items()}

def rel(x, r):
    """Relative 2-norm error of x against r (absolute where r = 0)."""
    nr = float(np.linalg.norm(r)); d = float(np.linalg.norm(np.asarray(x, float) - r))
    return d / nr if nr else d

def ulp_effect(s, draws=3, ref=None):
    """Largest relative change of (qdd, Qc, lam) when every nonzero of M (kept symmetric), Q, A, b moves by one ulp
    with a random sign: the yardstick of what float64 input can determine. Undefined for the dep kinds (returns zeros)."""
    import copy
    out = np.zeros(3)
    if 'dep' in s.kind:
        return out
    ref = ref or reference_f64(s)
    rng = Rng(s.seed * 7919 + s.n)
    for _ in range(draws):
        def move(X):
            F = np.array([rng.below(2) for _ in range(X.size)]).reshape(X.shape)
            return np.where(F > 0, np.nextafter(X, np.inf), np.nextafter(X, -np.inf)) * (X != 0)
        p = copy.copy(s)
        Mp = move(s.M); p.M = np.triu(Mp) + np.triu(Mp, 1).T
        p.Q, p.A, p.b = move(s.Q), move(s.A), move(s.b)
        rp = reference_f64(p)
        out = np.maximum(out, [rel(rp[k], ref[k]) for k in ('qdd', 'Qc', 'lam')])
    return out

def threshold(s, draws=3, ref=None):
    """Bounds on the relative errors of (qdd, Qc, lam): max(30 x ulp_effect, 1e-13); 1e-11 for dep and singdep."""
    return np.full(3, 1e-11) if 'dep' in s.kind else np.maximum(30 * ulp_effect(s, draws, ref), 1e-13)

KINDS = [f'{t}:{R}' for t in ('diag', 'graded', 'dense') for R in ('1', '1e4', '1e8', '1e12')] + \
        ['near:1e-6', 'near:1e-10', 'dep', 'sing', 'singdep']
SIZES = [(2, 1), (6, 3), (12, 6), (24, 12), (60, 30), (200, 100)]

if __name__ == '__main__':
    import time
    for kind in KINDS:           # check_engines
        s = make(kind, 8, 4, 3)
        r1 = reference_f64(s, engine='mpmath'); r2 = reference_f64(s, 60, engine='gmpy2' if gmpy2 else 'mpmath')
        same = all(np.array_equal(r1[k], r2[k]) for k in r1 if k != 'cons_res')
        print(f'{kind:12s} engines agree bit for bit in float64: {same}  cons_res {r1["cons_res"]:.1e} |qdd| {np.linalg.norm(r1["qdd"]):.2e}')
    for n, m in SIZES:
        t = time.time(); s = make('dense:1e8', n, m, 1); t1 = time.time(); r = reference_f64(s); t2 = time.time()
        print(n, m, f'{t1-t:.2f}s gen {t2-t1:.2f}s ref', r['Z'])
