"""Plain records of results and how they print. Records compute nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import IntEnum
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Motion", "Status"]


class Status(IntEnum):
    """What became of a system: negative, no answer; positive, an answer with a remark.

    The numbers are part of the interface and never change.
    """

    OK = 0
    PROJECTED = 1
    MINIMUM_NORM = 2
    PROJECTED_MINIMUM_NORM = 3
    NONFINITE = -1
    ASYMMETRIC = -2
    INDEFINITE = -3
    INCONSISTENT = -4
    INDETERMINATE_MANY = -5
    INDETERMINATE_NONE = -6
    NO_CONVERGENCE = -7


STATUS_MEANING = {
    Status.OK: "solved",
    Status.PROJECTED: "constraints clash: least squares in the units of the rows, then least Zwang",
    Status.MINIMUM_NORM: "not unique: the acceleration of minimum norm",
    Status.PROJECTED_MINIMUM_NORM: "constraints clash and the acceleration is not unique: "
    "least squares, then minimum norm",
    Status.NONFINITE: "no answer: an input is nan or inf",
    Status.ASYMMETRIC: "no answer: M is not symmetric",
    Status.INDEFINITE: "no answer: M is not positive semidefinite",
    Status.INCONSISTENT: "no answer: constraints clash",
    Status.INDETERMINATE_MANY: "no answer: a direction has neither mass nor constraint",
    Status.INDETERMINATE_NONE: "no answer: a force acts where there is neither mass nor constraint",
    Status.NO_CONVERGENCE: "no answer: the numbers leave the range of float64",
}

STATUSES = {int(s): s for s in Status}
Labels = Sequence[str] | None


@dataclass(slots=True, eq=False, repr=False)
class Motion:
    """Acceleration and constraint forces of one system or of a batch.

    Fields not asked for are None. A system without an answer (``status`` < 0) has NaN in
    its floating-point fields, False in its flags and -1 in ranks that are not known.

    Attributes
    ----------
    qdd : (..., n) ndarray
        Acceleration q̈.
    Q_c : (..., n) ndarray
        Total constraint force, M q̈ - Q.
    Q_ideal, K : (..., n) ndarray
        Its parts: ``Q_ideal = A.T @ multipliers`` does no virtual work, K is the
        non-ideal one.
    multipliers, multipliers_total : (..., m) ndarray
        Of the ideal part, and of Q_c - C; of minimum norm where rows depend on each other.
    multipliers_unique : (..., m) ndarray of bool
        True where the row is not in the span of the others.
    vanished : (..., m) ndarray of bool
        Rows that are zero at this state and have no effect.
    zwang : float or (...) ndarray
        Gauss's Z = (q̈-a)ᵀ M (q̈-a), without ½; NaN where Q is not in the range of M.
    rank, nullity : int or (...) ndarray
        Rank of A; dimension of ker M ∩ ker A, 0 when the acceleration is unique.
    residual : (..., m) ndarray
        A q̈ - b.
    status : Status or (...) ndarray of int8
        See `Status`.
    row_names, coordinate_names : sequence of str or None
        Labels for printing.
    remark : str
        What else a reader should know.
    """

    qdd: NDArray[np.float64] | None
    Q_c: NDArray[np.float64] | None
    Q_ideal: NDArray[np.float64] | None
    K: NDArray[np.float64] | None
    multipliers: NDArray[np.float64] | None
    multipliers_total: NDArray[np.float64] | None
    multipliers_unique: NDArray[np.bool_] | None
    vanished: NDArray[np.bool_] | None
    zwang: Any
    rank: Any
    nullity: Any
    residual: NDArray[np.float64] | None
    status: Any
    row_names: Labels = None
    coordinate_names: Labels = None
    remark: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the computed fields as a dictionary, in the order of the record."""
        values = {f.name: getattr(self, f.name) for f in fields(self)[:13]}
        return {name: value for name, value in values.items() if value is not None}

    def __bool__(self) -> bool:
        raise ValueError(
            "the truth value of a Motion is ambiguous: test motion.status, "
            "e.g. motion.status == gm.Status.OK"
        )

    def __repr__(self) -> str:
        title, lines = _describe(self)
        left = max((len(name) for name, _, _ in lines), default=0)
        width = max((len(value) for _, value, _ in lines if len(value) <= 60), default=0)
        text = [title]
        for name, value, note in lines:
            text.append(f"  {name:<{left}} {value:<{width}}  {note}".rstrip())
        return "\n".join(text)

    def _repr_html_(self) -> str:
        title, lines = _describe(self)
        rows = "".join(
            f"<tr><th style='text-align:left'>{escape(name)}</th>"
            f"<td style='text-align:left'><code style='white-space:pre'>{escape(value)}</code></td>"
            f"<td style='text-align:left'>{escape(note)}</td></tr>"
            for name, value, note in lines
        )
        return f"<table><caption>{escape(title)}</caption><tbody>{rows}</tbody></table>"


def number(x: float) -> str:
    """Return a number as a book prints it: short, without losing what matters."""
    return f"{x:.6g}"


def listed(items: Sequence[object], most: int = 6) -> str:
    """Return items as a phrase: "0", "0 and 1", "0, 1 and 2", "0, 1, 2, … (9 in all)"."""
    words = [str(i) for i in items]
    if len(words) > most:
        return ", ".join(words[: most - 1]) + f", … ({len(words)} in all)"
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1]


def rows_phrase(rows: Sequence[int], names: Labels) -> str:
    """Return rows as a phrase, with their names where there are any."""
    word = f"row{'s' if len(rows) > 1 else ''} {listed(rows)}"
    if names is None:
        return word
    quoted = listed([f"'{names[k]}'" for k in rows])
    return f"constraint{'s' if len(rows) > 1 else ''} {quoted} ({word})"


def _vector(x: NDArray[Any]) -> str:
    x = x + 0.0  # a book has no negative zero
    return np.array2string(x, precision=6, suppress_small=True, threshold=12, max_line_width=1000)


def _columns(head: str, names: Labels, lines: list[tuple[str, Any, str]]) -> list[tuple[str, ...]]:
    """Lines of one group; a table with the names above the columns where there are names."""
    if names is None or not lines or len(names) > 8:
        return [(name, _vector(value), note) for name, value, note in lines]
    cells = [list(names)]
    cells += [[number(v + 0.0) for v in value] for _, value, _ in lines]
    widths = [max(len(row[j]) for row in cells) for j in range(len(names))]
    text = ["  ".join(c.rjust(w) for c, w in zip(row, widths, strict=True)) for row in cells]
    shown = [(name, row, note) for (name, _, note), row in zip(lines, text[1:], strict=True)]
    return [(head, text[0], ""), *shown]


def _describe(motion: Motion) -> tuple[str, list[tuple[str, ...]]]:
    if np.ndim(motion.status) > 0:
        return _describe_batch(motion)
    status = Status(motion.status)
    failed = status < 0
    ideal = motion.K is not None and not motion.K.any()
    split = not (ideal and not failed)

    note = "constraint force" + ("" if split else "   (= Q_ideal, no non-ideal part)")
    per_coordinate = [("qdd", motion.qdd, "acceleration"), ("Q_c", motion.Q_c, note)]
    if split:
        per_coordinate.append(("Q_ideal", motion.Q_ideal, "its ideal part"))
        per_coordinate.append(("K", motion.K, "its non-ideal part"))

    rows = motion.row_names
    note = "Q_ideal = A.T @ multipliers"
    if motion.multipliers_unique is not None and not failed:
        loose = np.flatnonzero(~motion.multipliers_unique)
        if motion.vanished is not None:
            loose = loose[~motion.vanished[loose]]
        if loose.size:
            note += f"; {rows_phrase(loose.tolist(), rows)} not unique, minimum norm"
    per_row = [("multipliers", motion.multipliers, note)]
    if split or motion.multipliers is None:
        note = "Q_c - C = A.T @ multipliers_total"
        per_row.append(("multipliers_total", motion.multipliers_total, note))
    if status in (Status.PROJECTED, Status.PROJECTED_MINIMUM_NORM):
        per_row.append(("residual", motion.residual, "A @ qdd - b"))

    lines: list[tuple[str, ...]] = []
    for head, names, group in (
        ("coordinate", motion.coordinate_names, per_coordinate),
        ("constraint", rows, per_row),
    ):
        lines += _columns(head, names, [line for line in group if line[1] is not None])
    if motion.zwang is not None:
        undefined = np.isnan(motion.zwang) and not failed
        note = "undefined: Q not in the range of M" if undefined else "Gauss's constraint"
        lines.append(("zwang", number(motion.zwang), note))
    if motion.rank is not None:
        value = "unknown" if motion.rank < 0 else str(motion.rank)
        held = next((v for v in (motion.multipliers, motion.residual) if v is not None), None)
        if held is not None and motion.rank >= 0:
            value += f" of {len(held)} row{'s' if len(held) != 1 else ''}"
        note = ""
        if motion.vanished is not None and motion.vanished.any():
            gone = np.flatnonzero(motion.vanished).tolist()
            verb = "is" if len(gone) == 1 else "are"
            note = f"{rows_phrase(gone, rows)} {verb} zero: no effect"
        lines.append(("rank", value, note))
    if motion.nullity is not None and motion.nullity != 0:
        value = "unknown" if motion.nullity < 0 else str(motion.nullity)
        lines.append(("nullity", value, "directions without mass and constraint"))
    if status != Status.OK:
        lines.append(("status", status.name, STATUS_MEANING[status]))
    if motion.remark:
        lines.append(("remark", "", motion.remark))
    return "Motion", lines


_NOTES = {
    "qdd": "acceleration",
    "Q_c": "constraint force",
    "Q_ideal": "its ideal part",
    "K": "its non-ideal part",
    "multipliers": "Q_ideal = A.T @ multipliers",
    "multipliers_total": "Q_c - C = A.T @ multipliers_total",
    "multipliers_unique": "",
    "vanished": "",
    "zwang": "Gauss's constraint",
    "rank": "",
    "nullity": "",
    "residual": "A @ qdd - b",
}


def _describe_batch(motion: Motion) -> tuple[str, list[tuple[str, ...]]]:
    shape = motion.status.shape
    count = motion.status.size
    lines: list[tuple[str, ...]] = []
    for name, note in _NOTES.items():
        value = getattr(motion, name)
        if value is None:
            continue
        text = f"{value.dtype} {value.shape}"
        if name in ("rank", "nullity") and count:
            low, high = value.min(), value.max()
            text = str(low) if low == high else f"{low} to {high}"
        elif name in ("multipliers_unique", "vanished"):
            text = f"{np.count_nonzero(value)} of {value.size} rows"
        elif name == "zwang" and count:
            undefined = np.count_nonzero(np.isnan(value) & (motion.status >= 0))
            if undefined:
                note += f"; undefined in {undefined} of {count}: Q not in the range of M"
        lines.append((name, text, note))
    for code, times in zip(*np.unique(motion.status, return_counts=True), strict=True):
        status = Status(int(code))
        note = STATUS_MEANING[status]
        if status != Status.OK:
            first = tuple(int(i) for i in np.argwhere(motion.status == code)[0])
            note += f"; first at index {first}"
        lines.append(("status", f"{times} {status.name}", note))
    if motion.remark:
        lines.append(("remark", "", motion.remark))
    plural = "s" if count != 1 else ""
    return f"Motion of {count} system{plural}, batch shape {shape}", lines
