"""The start state of a system, and the ranks of its constraints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .assembly import RankReport, StartReport
from .errors import InconsistentStateError
from .kernel import independent_rows, solve
from .reading import NAMES, Model, read
from .results import listed

if TYPE_CHECKING:
    from .system import System

__all__ = ["check_start", "project_start", "rank_report"]

Float = NDArray[np.float64]
EPS = float(np.finfo(np.float64).eps)
# a start state is on a constraint when it is off by no more than that of the terms of φ
START = 1e-9


def check_start(s: System, model: Model) -> None:
    """InconsistentStateError when the start state is off the constraints."""
    if model.start_ok:
        return
    arguments = s._arguments(model, None, None, None)
    residual, size, rate, rate_size = model.state(NAMES, *arguments)
    position = np.abs(residual) > START * np.maximum(size, 1e-300)
    velocity = np.abs(rate) > START * np.maximum(rate_size, 1e-300)
    bad = (position & (model.holonomic | model.velocity)) | (velocity & model.holonomic)
    if not bad.any():
        model.start_ok = True
        return
    index = tuple(int(i) for i in np.argwhere(bad)[0][:-1])
    found: dict[str, float] = {}
    words = []
    for name, part in model.rows.items():
        if bad[index][part].any():
            k = part.start + int(np.argmax(bad[index][part]))
            on_place = bool(position[index][k])
            value = float(residual[index][k] if on_place else rate[index][k])
            found[name] = value
            what = "dphi/dt" if not on_place else "phi" if model.holonomic[k] else "G"
            number = list(model.rows).index(name)
            words.append(f"constraint {number} {model.row_names[k]!r} ({what} = {value:.6g})")
    where = f" at index {index}" if index else ""
    raise InconsistentStateError(
        f"the start state{where} does not satisfy {listed(words)}; correct it, or let "
        "s.project_start() move it",
        residual=found,
        index=index,
    )


def project_start(
    s: System, hold: Sequence[str] | None, hold_rate: Sequence[str] | None
) -> StartReport:
    """Move the start onto the constraints: see `System.project_start`."""
    model = read(s)
    if s._q.ndim != 1 or s._qd.ndim != 1 or model.parameters.ndim != 1:
        raise ValueError("project_start takes one state; the start of this system is a batch")
    held = _held(s, "hold", hold), _held(s, "hold_rate", hold_rate)
    before = s._q.copy(), s._qd.copy()
    q, qd = s._q.copy(), s._qd.copy()
    start = _residuals(s, model, q, qd)
    try:
        q, steps = _newton(s, model, q, qd, held[0], place=True)
        qd, more = _newton(s, model, q, qd, held[1], place=False)
    except InconsistentStateError as error:
        raise InconsistentStateError(
            f"{error}{_held_words(s, hold, hold_rate)}", residual=error.residual
        ) from None
    s._q, s._qd = q, qd
    s._model = None
    names = s.coordinate_names
    moved = {
        name: (float(q[k] - before[0][k]), float(qd[k] - before[1][k]))
        for k, name in enumerate(names)
        if q[k] != before[0][k] or qd[k] != before[1][k]
    }
    return StartReport(moved, start, _residuals(s, model, q, qd), steps + more)


def _held(s: System, what: str, names: Sequence[str] | None) -> list[int]:
    known = s.coordinate_names
    if isinstance(names, str):
        raise TypeError(f"{what} is the string {names!r}; expected a list of names")
    for name in names or ():
        if name not in known:
            raise ValueError(
                f"{what} has {name!r}; expected coordinates out of {', '.join(map(repr, known))}"
            )
    return [known.index(name) for name in names or ()]


def _held_words(s: System, hold: Any, hold_rate: Any) -> str:
    words = [repr(str(name)) for name in [*(hold or ()), *(hold_rate or ())]]
    return f"; {listed(words)} {'is' if len(words) == 1 else 'are'} held" if words else ""


def _residuals(s: System, model: Model, q: Float, qd: Float) -> dict[str, float]:
    """The largest residual of each constraint, of place or velocity."""
    residual, _, rate, _ = model.state(NAMES, *s._arguments(model, None, q, qd))
    found = {}
    for name, part in model.rows.items():
        values = [*residual[part], *rate[part]]
        found[name] = float(max(values, key=abs, default=0.0))
    return found


def _newton(
    s: System, model: Model, q: Float, qd: Float, held: list[int], place: bool
) -> tuple[Float, int]:
    n = model.n
    x = q if place else qd
    kept = np.eye(n)[held]
    last = np.inf
    for step in range(60):
        state = (x, qd) if place else (q, x)
        arguments = s._arguments(model, None, *state)
        residual, size, rate, rate_size = model.state(NAMES, *arguments)
        M, _, A, _, _, row_scale, _, _ = model.compiled(NAMES, *arguments)
        if place:
            target, scale, rows = residual, size, model.holonomic
        else:
            target = np.where(model.holonomic, rate, residual)
            scale = np.where(model.holonomic, rate_size, size)
            rows = model.holonomic | model.velocity
        ratio = np.abs(target[rows]) / np.maximum(scale[rows], 1e-300)
        off = float(np.max(ratio, initial=0.0))
        done = np.all(np.abs(target[rows]) <= 8 * EPS * np.maximum(scale[rows], 1e-300))
        # at rounding level, and no longer getting better
        if done or (step > 3 and off <= 1e-13 and off >= 0.5 * last):
            return x, step
        last = off
        matrix = np.vstack([A[rows], kept])
        right = np.concatenate([-target[rows], np.zeros(len(held))])
        move = solve(
            M, np.zeros(n), matrix, right, inconsistent="project", indeterminate="minimum_norm",
            rtol=min(max(1e-9, 10 * off), 1e-3), errors="status",
            row_scale=np.concatenate([row_scale[rows], np.zeros(len(held))]),
        )  # fmt: skip
        if move.qdd is None or not np.isfinite(move.qdd).all():
            break
        delta = move.qdd.copy()
        delta[held] = 0.0
        x = x + delta
    worst: dict[str, float] = {}
    for name, part in model.rows.items():
        chosen = [k for k in range(part.start, part.stop) if rows[k]]
        if chosen:
            k = max(chosen, key=lambda k: abs(target[k]))
            if abs(target[k]) > 1e-12 * max(scale[k], 1e-300):
                worst[name] = float(target[k])
    words = listed([f"{name!r} ({value:.3g})" for name, value in worst.items()])
    what = "the places" if place else "the velocities"
    raise InconsistentStateError(
        f"the start cannot be closed: {what} still miss {words} after {step + 1} steps; start "
        "nearer to a state that satisfies the constraints",
        residual=worst,
    )


def rank_report(
    s: System, t: ArrayLike | None, q: ArrayLike | None, qd: ArrayLike | None
) -> RankReport:
    """Which constraints repeat each other: see `System.rank_report`."""
    model = read(s)
    arguments = s._arguments(model, t, q, qd)
    M, Q, A, b, _, row_scale, b_error, off = model.compiled(NAMES, *arguments)
    if M.ndim > 2:
        raise ValueError(f"rank_report takes one state; the batch shape is {M.shape[:-2]}")
    tolerance = max(1e-12, 16 * model.n * EPS, 10 * float(off))
    tolerance = min(tolerance, 0.1)
    motion = solve(
        M, Q, A, b, rtol=tolerance, ctol=max(1e-9, tolerance), row_scale=row_scale,
        b_atol=b_error, inconsistent="project", indeterminate="minimum_norm", errors="status",
    )  # fmt: skip
    vanished = np.asarray(motion.vanished)
    # rows in the order in which they were added: which of them add nothing
    redundant = np.zeros(len(b), dtype=bool)
    kept: list[int] = []
    for k in range(len(b)):
        if vanished[k]:
            continue
        trial = [*kept, k]
        if independent_rows(A[trial], M, tolerance).sum() > len(kept):
            kept = trial
        else:
            redundant[k] = True
    clashing: list[str] = []
    if motion.status in (1, 3):
        clash = np.abs(np.asarray(motion.residual)) > 1e-9 * np.maximum(
            np.abs(b) + np.abs(A) @ np.abs(np.asarray(motion.qdd)), 1e-300
        )
        clashing = [name for name, part in model.rows.items() if clash[part].any()]
    shared = ~np.asarray(motion.multipliers_unique) & ~vanished

    def named(mask: NDArray[np.bool_]) -> list[str]:
        return [name for name, part in model.rows.items() if mask[part].any()]

    return RankReport(
        rank=len(kept),
        rows=len(b),
        freedom=model.n - len(kept),
        redundant=named(redundant),
        shared=named(shared),
        vanishing=named(vanished),
        clashing=clashing,
        redundant_rows=[model.row_names[k] for k in np.flatnonzero(redundant)],
        rtol=tolerance,
    )
