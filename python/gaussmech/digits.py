"""How many digits of an answer the data determine: what one ulp in every entry can change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Moved", "Scales", "one_ulp", "scales"]

Float = NDArray[np.float64]
EPS = float(np.finfo(np.float64).eps)


@dataclass(slots=True)
class Moved:
    """First-order bounds on the change of each entry of an answer, absolute."""

    qdd: Float
    Q_c: Float
    multipliers: Float


@dataclass(slots=True)
class Scales:
    """Sizes that free the numbers of systems from their units.

    Divided by `coordinates` (..., n) an acceleration is one in coordinates of unit mass; forces
    are multiplied. `rows` (..., m) are the lengths of the rows of A in these coordinates.
    """

    coordinates: Float
    rows: Float


def scales(M: Float, A: Float) -> Scales:
    """Return the scales of systems: 1/√M_ii, rounded to powers of two.

    A coordinate without mass takes its scale from the constraints that tie it to the others.
    """
    masses = np.diagonal(M, axis1=-2, axis2=-1)
    heavy = masses > 0
    d = _power_of_two(1.0 / np.sqrt(np.where(heavy, masses, 1.0)))
    if not heavy.all():
        size = np.abs(A)
        known = (size * np.where(heavy, d, 0.0)[..., None, :]).max(axis=-1, initial=0.0)
        known = np.where(known > 0, known, size.max(axis=-1, initial=0.0))
        pull = size / np.where(known > 0, known, 1.0)[..., None]
        pull = pull.max(axis=-2, initial=0.0)
        d, heavy, pull = np.broadcast_arrays(d, heavy, pull)
        d = np.where(heavy | (pull == 0), d, _power_of_two(1.0 / np.where(pull > 0, pull, 1.0)))
    lengths = np.linalg.norm(A * d[..., None, :], axis=-1)
    return Scales(d, np.where(lengths > 0, lengths, 1.0))


def _power_of_two(x: Float) -> Float:
    power: Float = np.exp2(np.rint(np.log2(x)))
    return power


def one_ulp(M: Float, Q: Float, A: Float, b: Float, C: Float | None, independent: Any) -> Moved:
    """Return what one ulp in every nonzero entry of one system can change in its answer.

    With the independent rows k, K = [[M, -A_kᵀ], [A_k, 0]] and K x = f, entries that change by
    ε|K| and ε|f| change x by at most ε |K⁻¹| (|K||x| + |f|) to first order (Higham, Accuracy
    and Stability of Numerical Algorithms, section 7.2). Q_c is M q̈ - Q and also C + A_kᵀμ: the
    smaller change counts, entry by entry. Multipliers of dependent rows are those of minimum
    norm, (Aᵀ)⁺(Q_c - C).
    """
    n, m = len(Q), len(b)
    k = np.flatnonzero(independent)
    size = scales(M, A)
    s = np.concatenate([size.coordinates, 1.0 / size.rows[k]])
    force = Q if C is None else Q + C
    force_size = np.abs(Q) if C is None else np.abs(Q) + np.abs(C)

    # rows that clash or are only nearly consistent: all of them have a say in the targets
    targets, target_size = b[k], np.abs(b[k])
    if len(k) < m:
        inverse = np.linalg.pinv(A, rtol=1e-12)
        rest = b - A @ (inverse @ b)
        targets = targets - rest[k]
        target_size = np.abs(A[k]) @ np.abs(inverse) @ (np.abs(b) + np.abs(rest)) + np.abs(rest[k])
        target_size += np.abs(A[k]) @ np.abs(inverse @ inverse.T) @ np.abs(A).T @ np.abs(rest)

    K_size, K_inverse = _saddle(M, A[k], s)
    x = K_inverse @ (np.concatenate([force, targets]) * s)
    f_size = np.concatenate([force_size, target_size]) * s
    moved = EPS * np.abs(K_inverse) @ (K_size @ np.abs(x) + f_size) * s
    x = x * s

    qdd = moved[:n]
    by_mass = np.abs(M) @ (qdd + EPS * np.abs(x[:n])) + EPS * force_size
    by_rows = np.abs(A[k]).T @ (moved[n:] + EPS * np.abs(x[n:])) + EPS * force_size
    Q_c = np.minimum(by_mass, by_rows)
    if len(k) == m:
        multipliers = moved[n:]
    else:
        back = np.abs(np.linalg.pinv(A.T, rtol=1e-12))
        pull = np.abs(A).T @ (back @ np.abs(A[k].T @ x[n:]))
        multipliers = back @ (Q_c + 2 * EPS * pull)
    return Moved(qdd, Q_c, multipliers)


def _saddle(M: Float, A: Float, s: Float) -> tuple[Float, Float]:
    """|K| and K⁻¹ of K = [[M, -Aᵀ], [A, 0]], rows and columns scaled by s; A has full rank.

    By way of ker A, so that K⁻¹ has its digits where rows depend on each other but for 1e-10:
    K itself is then singular to working precision. Where ker M ∩ ker A is not {0} the inverse
    is that of the rest.
    """
    r, n = A.shape
    M = M * np.multiply.outer(s[:n], s[:n])
    A = A * np.multiply.outer(s[n:], s[:n])
    U, sines, Vt = np.linalg.svd(A, full_matrices=True)
    A_plus = (Vt[:r].T / sines[:r]) @ U.T
    N = Vt[r:].T
    H = N.T @ M @ N
    P = N @ np.linalg.pinv(H, rtol=64 * max(n, 1) * EPS, hermitian=True) @ N.T
    G = A_plus - P @ (M @ A_plus)
    K = np.block([[M, A.T], [A, np.zeros((r, r))]])
    return np.abs(K), np.block([[P, G], [-G.T, A_plus.T @ M @ G]])
