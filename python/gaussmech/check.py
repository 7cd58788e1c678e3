"""Verdicts on a whole problem: does everybody who can solve it get the same motion?"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .digits import EPS, Moved, one_ulp, scales
from .formulations import (
    ROUTES,
    Answer,
    Entry,
    NotApplicable,
    System,
    rank_of,
    systems,
    with_zero_C,
)
from .inputs import as_problem
from .kernel import independent_rows, solve
from .results import listed
from .verdicts import CrossCheck, CrossCheckRow

__all__ = ["cross_check"]

Float = NDArray[np.float64]
FIELDS = ("qdd", "Q_c", "multipliers")
# The yardstick of the project: thirty times what one ulp in the data changes.
ALLOWED = 30.0
DRAWS = 8


def cross_check(
    M: ArrayLike,
    Q: ArrayLike,
    A: ArrayLike,
    b: ArrayLike,
    C: ArrayLike | None = None,
    *,
    rtol: float | None = None,
    inconsistent: str = "raise",
    names: Mapping[str, Sequence[str]] | None = None,
) -> CrossCheck:
    """Solve one problem by the kernel and by every textbook formulation, and compare.

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
        Non-ideal part: the constraint force does the virtual work δqᵀC.
    rtol : float, optional
        Rank tolerance, as in `solve`.
    inconsistent : {"raise", "project"}
        As in `solve`. With "project" the formulations that mean least squares take part.
    names : mapping, optional
        As in `solve`, for messages.

    Returns
    -------
    CrossCheck
        A verdict: true when every formulation that applies agrees. It prints as a table.

    Raises
    ------
    GaussmechError
        The problem has no answer, as in `solve`.
    TypeError, ValueError
        As `solve`.

    Notes
    -----
    Distances are measured against what one ulp in every entry of the data can change, to first
    order and entry by entry: ε |K⁻¹| (|K||x| + |f|) for the KKT system K x = f. A formulation
    agrees when it is within 30 times that. One that loses digits by its construction (the
    square root of a mass matrix with a large mass ratio, say) would not: its own accuracy is
    found by solving the same problem in other units of the coordinates, where its answers
    scatter. Within 30 times that it agrees too, and its line says how many digits it keeps.

    Examples
    --------
    A body on a table that is given twice:

    >>> import gaussmech as gm
    >>> check = gm.cross_check([[1, 0], [0, 1]], [3, -10], [[0, 1], [0, 1]], [0, 0])
    >>> check.ok
    True
    >>> print(check["lagrange_first_kind"].remark)
    needs independent rows: rank 1 of 2 rows
    """
    given = as_problem(M, Q, A, b, C)
    motion = solve(**given, rtol=rtol, inconsistent=inconsistent, names=names)  # type: ignore[arg-type]
    arrays = with_zero_C(given)
    batch: tuple[int, ...] = np.shape(motion.status)
    items = systems(arrays, batch)
    chosen = independent_rows(arrays["A"], arrays["M"], rtol)
    chosen = np.broadcast_to(chosen, (*batch, chosen.shape[-1]))
    moves = [
        one_ulp(*item, independent=chosen[index])
        for index, item in zip(np.ndindex(batch), items, strict=True)
    ]
    rows = tuple(_compared(entry, motion, items, moves, batch, rtol) for entry in ROUTES)
    seconds = 0.0
    if items:
        seconds = _time(lambda: solve(*items[0], rtol=rtol, inconsistent=inconsistent))
    verdicts = [row.ok for row in rows if row.ok is not None]
    # nothing to compare with is no confirmation
    return CrossCheck(bool(verdicts) and all(verdicts), motion, seconds, rows)


def _time(call: Callable[[], object], rounds: int = 5) -> float:
    """Seconds of the quickest of a few calls."""
    least = np.inf
    for _ in range(rounds):
        start = time.perf_counter()
        call()
        least = min(least, time.perf_counter() - start)
    return least


@dataclass(slots=True)
class _Finding:
    """One formulation on one system: an answer and how far it is off, or a refusal."""

    answer: Answer | None = None
    refusal: str = ""
    apart: list[float] = field(default_factory=list)  # distances from the kernel
    size: list[float] = field(default_factory=list)  # of the kernel's answer
    effect: list[float] = field(default_factory=list)  # of one ulp in the data
    agrees: bool = True
    lost: float = 0.0  # relative error where digits are lost by construction


def _find(
    entry: Entry, item: System, moved: Moved, own: list[Float], rank: int, rtol: float | None
) -> _Finding:
    """Run one formulation on one system and judge it."""
    if rank_of(item[0], item[2], rtol) != rank:
        return _Finding(refusal="needs a rank that singular values of unit rows show")
    try:
        answer = entry.formula(*item, rank)
    except (NotApplicable, np.linalg.LinAlgError) as error:
        return _Finding(refusal=str(error))
    units = _units(item)
    apart = _distances(answer, own, units)
    size = _distances(own, [np.zeros_like(x) for x in own], units)
    effect = [
        float(np.linalg.norm(x * u)) + EPS * s
        for x, u, s in zip((moved.qdd, moved.Q_c, moved.multipliers), units, size, strict=True)
    ]
    found = _Finding(answer, "", apart, size, effect)
    if any(x > ALLOWED * limit for x, limit in zip(apart, effect, strict=True)):
        limits = map(max, effect, _scatter(entry, item, rank, answer, units))
        found.agrees = all(x <= ALLOWED * limit for x, limit in zip(apart, limits, strict=True))
        found.lost = max(x / s if s else 0.0 for x, s in zip(apart, size, strict=True))
        if found.agrees and found.lost > 0.1:
            return _Finding(refusal="needs data that are kinder to it: it keeps no digit here")
    return found


def _compared(
    entry: Entry,
    motion: Any,
    items: list[System],
    moves: list[Moved],
    batch: tuple[int, ...],
    rtol: float | None,
) -> CrossCheckRow:
    """Run one formulation on every system and sum up."""
    indices = list(np.ndindex(batch))
    ranks = np.asarray(motion.rank)
    findings = [
        _find(entry, item, moved, [getattr(motion, k)[i] for k in FIELDS], int(ranks[i]), rtol)
        for i, item, moved in zip(indices, items, moves, strict=True)
    ]
    refused = [i for i, f in zip(indices, findings, strict=True) if f.answer is None]
    remarks = []
    if refused:
        first = findings[indices.index(refused[0])].refusal
        if len(refused) == len(items):
            return CrossCheckRow(
                entry.title, entry.name, None, None, None, {}, {}, 0.0, None, first
            )
        remarks.append(
            f"{first} ({len(refused)} of {len(items)} systems, first at index {refused[0]})"
        )
    applied = [f for f in findings if f.answer is not None]
    distance = {
        name: max((f.apart[j] / f.effect[j] if f.effect[j] else 0.0 for f in applied), default=0.0)
        for j, name in enumerate(FIELDS)
    }
    difference = {
        name: max((f.apart[j] / (f.size[j] or 1.0) for f in applied), default=0.0)
        for j, name in enumerate(FIELDS)
    }
    wrong = [i for i, f in zip(indices, findings, strict=True) if not f.agrees]
    lost = max((f.lost for f in applied if f.agrees), default=0.0)
    if lost:
        digits = int(-np.log10(lost))
        remarks.insert(0, f"it keeps {digits} digit{'s' if digits != 1 else ''} here")
    if wrong:
        where = f" in {len(wrong)} systems, first at index {wrong[0]}" if batch else ""
        by = listed([f"{k} by {difference[k]:.1g}" for k in FIELDS if difference[k] > 0])
        remarks.insert(0, f"differs{where} in {by} (relative)")
    seconds = 0.0
    for item, found in zip(items, findings, strict=True):
        if found.answer is not None:
            rank = rank_of(item[0], item[2], rtol)
            seconds = _time(partial(entry.formula, *item, rank))
            break
    answers = [f.answer for f in findings]
    qdd, Q_c, multipliers = (
        _stack(answers, j, getattr(motion, name)) for j, name in enumerate(FIELDS)
    )
    return CrossCheckRow(
        entry.title,
        entry.name,
        qdd,
        Q_c,
        multipliers,
        distance,
        difference,
        seconds,
        not wrong,
        "; ".join(remarks),
    )


def _distances(
    answer: Sequence[Float], own: Sequence[Float], units: Sequence[Float]
) -> list[float]:
    return [float(np.linalg.norm((x - y) * u)) for x, y, u in zip(answer, own, units, strict=True)]


def _units(item: System) -> list[Float]:
    """Factors that free accelerations, forces and multipliers of one system from their units."""
    size = scales(item[0], item[2])
    return [1.0 / size.coordinates, size.coordinates, size.rows]


def _scatter(
    entry: Entry, item: System, rank: int, answer: Answer, units: list[Float]
) -> list[float]:
    """How far a formulation's own answers to the same problem lie apart.

    Every coordinate gets a unit of its own, 1 to 2 times the caller's. That changes the problem
    by rounding only, and all the roundings on the way.
    """
    rng = np.random.default_rng(0)
    found = [0.0] * len(FIELDS)
    M, Q, A, b, C = item
    for _ in range(DRAWS):
        d = 1.0 + rng.random(len(Q))
        try:
            again = entry.formula(M * np.multiply.outer(d, d), Q * d, A * d, b, C * d, rank)
        except (NotApplicable, np.linalg.LinAlgError):
            continue
        back = (again[0] * d, again[1] / d, again[2])
        found = [max(x, y) for x, y in zip(found, _distances(back, answer, units), strict=True)]
    return found


def _stack(answers: Sequence[Sequence[Float] | None], j: int, like: Float) -> Float:
    """One field of all systems, NaN where the formulation does not apply."""
    values = np.full(like.shape, np.nan)
    flat = values.reshape(len(answers), like.shape[-1])
    for row, answer in zip(flat, answers, strict=True):
        if answer is not None:
            row[:] = answer[j]
    return values
