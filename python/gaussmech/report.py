"""One acceleration before all principles: which of them does it satisfy?

What is public here is part of `gaussmech.principles`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .digits import EPS, one_ulp, scales
from .inputs import as_problem, check_names
from .kernel import independent_rows, solve
from .residuals import (
    constraint_residual,
    dalembert_residual,
    gauss_residual,
    gibbs_appell_residual,
    jourdain_residual,
    lagrange_first_kind_residual,
    motion_arrays,
)
from .results import Labels, listed
from .verdicts import Report, ReportRow
from .virtual import independent_basis, sampled, times, virtual_displacements

__all__ = ["report"]

Float = NDArray[np.float64]


def report(
    M: ArrayLike,
    Q: ArrayLike,
    A: ArrayLike,
    b: ArrayLike,
    C: ArrayLike | None = None,
    *,
    qdd: ArrayLike,
    accuracy: float = 1e-9,
    rtol: float | None = None,
    names: Mapping[str, Sequence[str]] | None = None,
) -> Report:
    """Say whether an acceleration satisfies the principles of mechanics, one by one.

    Parameters
    ----------
    M : (..., n, n) array_like
        Mass matrix, symmetric positive semidefinite.
    Q : (..., n) array_like
        Applied generalized force.
    A : (..., m, n) array_like
        Constraint matrix.
    b : (..., m) array_like
        Right side of the constraints on the acceleration.
    C : (..., n) array_like, optional
        Non-ideal part.
    qdd : (..., n) array_like
        The acceleration to judge.
    accuracy : float
        Relative accuracy that is asked of `qdd`, in coordinates of unit mass.
    rtol : float, optional
        Rank tolerance, as in `solve`.
    names : mapping, optional
        As in `solve`: names of rows and coordinates for the remarks.

    Returns
    -------
    Report
        A verdict: true when every line says yes. It prints as a table, with a guess at the
        mistake where one fits.

    Raises
    ------
    GaussmechError
        The problem itself has no answer, as in `solve`.
    TypeError, ValueError
        As `solve`; systems of a batch differ in rank.

    Notes
    -----
    The acceleration may be off by δ = `accuracy` times its size, and by 30 times what one ulp
    in every entry of the data changes; the tolerance of each line is what such a δ does to it:
    \\|A\\|δ for the constraints, \\|N\\|ᵀ\\|M\\|δ for d'Alembert, and so on.

    Examples
    --------
    The sign of b is wrong:

    >>> import gaussmech as gm
    >>> verdict = gm.principles.report([[1, 0], [0, 1]], [3, -10], [[0, 1]], [2], qdd=[3, -2])
    >>> verdict.ok
    False
    >>> print(verdict["constraint_residual"].remark)
    row 0: A q̈ is -b: the sign of b?
    >>> verdict["dalembert_residual"].ok
    True
    """
    if not (isinstance(accuracy, (int, float)) and 0 <= accuracy < 1):
        raise ValueError(f"accuracy is {accuracy!r}; expected a number from 0 to below 1")
    arrays = as_problem(M, Q, A, b, C, qdd=qdd)
    arrays.pop("qdd")
    expected = solve(**arrays, rtol=rtol, indeterminate="minimum_norm", names=names)  # type: ignore[arg-type]
    mass, force, rows, targets, given, x = motion_arrays(M, Q, A, b, C, qdd)
    labels = check_names(names, x.shape[-1], targets.shape[-1])
    ideal = C is None
    problem = mass, force, rows, targets, None if ideal else given
    return Report(*_judge(problem, x, expected, accuracy, rtol, labels))


def _judge(
    problem: tuple[Float, Float, Float, Float, Float | None],
    x: Float,
    expected: Any,
    accuracy: float,
    rtol: float | None,
    labels: tuple[Labels, Labels],
) -> tuple[bool, tuple[ReportRow, ...], str, Any]:
    M, Q, A, b, C = problem
    row_names, coordinate_names = labels

    # Everything is judged in coordinates of unit mass, so that units do not matter; the scales
    # are powers of two and cost no digit.
    d = scales(M, A).coordinates
    M, A, Q = M * d[..., :, None] * d[..., None, :], A * d[..., None, :], Q * d
    C = None if C is None else C * d
    x, best = x / d, expected.qdd / d
    given = np.zeros(x.shape[-1]) if C is None else C
    problem = M, Q, A, b, C

    # what q̈ may be off by, entry by entry: its claimed accuracy, the effect of the data's last
    # digit, and the rounding of the largest terms, which a good method may bring into all entries
    heavy = np.diagonal(M, axis1=-2, axis2=-1) > 0
    loads = np.where(heavy, np.abs(Q) + np.abs(given), 0.0).max(axis=-1, initial=0.0)
    targets = (np.abs(b) / scales(M, A).rows).max(axis=-1, initial=0.0)
    largest = np.abs(best).max(axis=-1, keepdims=True, initial=0.0)
    off = accuracy * largest + 30 * _moved(M, Q, A, b, given, best, rtol)
    off = off + 30 * EPS * np.maximum(loads, targets)[..., None]
    by_rows = times(np.abs(A), off) + 30 * EPS * np.abs(b)
    by_mass = times(np.abs(M), off) + 30 * EPS * (np.abs(Q) + np.abs(given))

    N = virtual_displacements(A, rtol=rtol)
    T = independent_basis(A, rtol)
    work = times(np.abs(N).swapaxes(-1, -2), by_mass)
    state: dict[str, Any] = {"qdd": x, "rtol": rtol}
    missed = constraint_residual(*problem, qdd=x)
    power = dalembert_residual(*problem, **state)
    others = sampled(M, A, x, rtol=rtol)
    step = np.abs(others - x)
    gauss = gauss_residual(*problem, **state, competitors=others).pythagoras
    terms = step * (times(np.abs(M), 2 * np.abs(x) + step) + 2 * np.abs(Q) + 2 * np.abs(given))
    allowed = (2 * step * by_mass).sum(axis=-1) + 30 * EPS * terms.sum(axis=-1)
    size = np.abs(x) * (times(np.abs(M), np.abs(x)) + 2 * np.abs(Q))
    allowed = allowed + 30 * EPS * size.sum(axis=-1)

    plus_C = "" if C is None else " − C"
    hint = _force_hint(problem, N, x, work)
    lines = [
        ("Constraints", constraint_residual, "A q̈ = b", missed, by_rows,
         _row_hint(A, b, x, by_rows, row_names)),
        ("d'Alembert (virtual displacements)", dalembert_residual,
         f"δqᵀ(M q̈ − Q{plus_C}) = 0", power, work, hint),
        ("Jourdain (virtual velocities)", jourdain_residual,
         f"δvᵀ(M q̈ − Q{plus_C}) = 0", jourdain_residual(*problem, **state), work, hint),
        ("Gauss (least constraint)", gauss_residual,
         "Z(y) − Z(q̈) = ‖y − q̈‖²" + ("" if C is None else " + 2(y − q̈)·C"), gauss, allowed,
         "an admissible acceleration has less Zwang" if C is None else ""),
        ("Lagrange, first kind (multipliers)", lagrange_first_kind_residual,
         f"M q̈ − Q{plus_C} = Aᵀλ", lagrange_first_kind_residual(*problem, **state) / d,
         (2 * times(np.abs(N), work) + 4 * EPS * x.shape[-1] * by_mass) / d,
         "no multipliers give this force"),
        ("Gibbs–Appell (independent coordinates)", gibbs_appell_residual,
         "∂S/∂q̈ᵢ = Πᵢ", gibbs_appell_residual(*problem, **state),
         times(np.abs(T).swapaxes(-1, -2), by_mass), ""),
        ("Udwadia–Kalaba (explicit constraint force)", solve,
         "M q̈ = Q + Q_c", times(M, x - best) / d, by_mass / d, ""),
    ]  # fmt: skip
    made = []
    for title, function, statement, residual, tolerance, remark in lines:
        residual, tolerance = np.broadcast_arrays(residual, tolerance)
        # NaN is no agreement
        bad = ~(np.abs(residual) <= tolerance)
        if bad.any() and not remark:
            remark = _where(bad, residual, tolerance, coordinate_names, x.shape[-1])
        made.append(
            ReportRow(title, function.__name__, statement, residual, tolerance,
                      not bad.any(), remark if bad.any() else "")
        )  # fmt: skip
    reason = (
        f"tolerance: what a q̈ does that is off by {accuracy:.0e} of its size, or by 30 times what "
        "one ulp in the data changes"
    )
    return all(row.ok for row in made), tuple(made), reason, expected


def _moved(
    M: Float, Q: Float, A: Float, b: Float, C: Float, qdd: Float, rtol: float | None
) -> Float:
    """`one_ulp` of the acceleration for every system of a batch."""
    batch = qdd.shape[:-1]
    mask = independent_rows(A, M, rtol)
    parts: list[Any] = [np.broadcast_to(p, (*batch, *p.shape[p.ndim - core :]))
             for p, core in ((M, 2), (Q, 1), (A, 2), (b, 1), (C, 1), (mask, 1))]  # fmt: skip
    moved = np.empty(qdd.shape)
    for index in np.ndindex(batch):
        moved[index] = one_ulp(*(p[index] for p in parts)).qdd
    return moved


def _where(bad: Any, residual: Float, tolerance: Float, names: Labels, n: int) -> str:
    """Where the residual is worst: the coordinate, if it has one for each, and the system."""
    excess = np.where(bad, np.abs(residual) / np.maximum(tolerance, np.finfo(float).tiny), 0.0)
    place = tuple(int(i) for i in np.unravel_index(int(np.argmax(excess)), bad.shape))
    words = []
    if n == bad.shape[-1]:
        k = place[-1]
        words.append(f"coordinate {k}" if names is None else f"coordinate '{names[k]}' ({k})")
    if bad.ndim > 1:
        words.append(f"the system at index {place[:-1]}")
    return f"worst in {' of '.join(words)}" if words else ""


def _row_hint(A: Float, b: Float, x: Float, tolerance: Float, names: Labels) -> str:
    """Which rows are missed, and whether a common slip explains it."""
    value = times(A, x)
    target = np.broadcast_to(b, value.shape)
    limit = np.broadcast_to(tolerance, value.shape)
    bad = ~(np.abs(value - target) <= limit)
    if not bad.any():
        return ""
    place = tuple(int(i) for i in np.argwhere(bad)[0][:-1])
    wrong = np.flatnonzero(bad[place]).tolist()
    said = f"row {wrong[0]}" if len(wrong) == 1 else f"rows {listed(wrong)}"
    if names is not None:
        said = listed([f"'{names[k]}'" for k in wrong]) + f" ({said})"
    if place:
        said += f" at index {place}"
    got, due, slack = value[place][wrong], target[place][wrong], 2 * limit[place][wrong]
    for factor, guess in (
        (-1.0, "A q̈ is -b: the sign of b?"),
        (2.0, "A q̈ is 2 b: a factor 2 in b?"),
        (0.5, "A q̈ is b/2: a factor 2 in b?"),
        (0.0, "A q̈ is 0: b left out?"),
    ):
        if np.all(np.abs(got - factor * due) <= slack):
            return f"{said}: {guess}"
    return f"{said}: A q̈ − b is {listed([f'{v:.4g}' for v in got - due])}"


def _force_hint(problem: tuple[Any, ...], N: Float, x: Float, tolerance: Float) -> str:
    """Whether a common slip in the forces explains what is missed."""
    M, Q, _, _, C = problem
    inertia = times(M, x)
    given = np.zeros(x.shape[-1]) if C is None else C
    guesses = [
        (inertia + Q - given, "fits -Q: the sign of Q?"),
        (inertia - 2 * Q - given, "fits 2 Q: a factor 2 in Q or M?"),
        (inertia - 0.5 * Q - given, "fits Q/2: a factor 2 in Q or M?"),
        (inertia - given, "fits Q = 0: the force left out?"),
    ]
    if C is not None:
        guesses.insert(0, (inertia - Q, "fits C = 0: the non-ideal part left out?"))
        guesses.insert(1, (inertia - Q + given, "fits -C: the sign of C?"))
    for rest, guess in guesses:
        work = times(N.swapaxes(-1, -2), rest)
        if work.size and np.all(np.abs(work) <= 2 * tolerance):
            return guess
    return ""
