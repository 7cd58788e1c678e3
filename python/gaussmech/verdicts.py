"""Records that answer yes or no, and how they print. Records compute nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from unicodedata import combining

import numpy as np
from numpy.typing import NDArray

from .results import Motion

__all__ = ["CrossCheck", "CrossCheckRow", "Report", "ReportRow"]

Float = NDArray[np.float64]
Cells = Sequence[str]
UNIT = "* distance from the kernel; 1 is what one ulp in every entry of the data can change"


@dataclass(slots=True, eq=False, repr=False)
class CrossCheckRow:
    """What one formulation found.

    Attributes
    ----------
    title, name : str
        What books call it, and its name in `gaussmech.formulations`.
    qdd, Q_c, multipliers : ndarray or None
        Its answer; None where it does not apply, NaN for those systems of a batch.
    distance : dict
        For each of these names, how far it is from the kernel, in units of what one ulp in
        every entry of the data can change: below about one nothing better can be had. A
        float, of the worst system of a batch.
    difference : dict
        For each of these names the largest relative difference from the kernel.
    seconds : float
        Time of one call for one system, the least of a few.
    ok : bool or None
        Whether it agrees with the kernel; None where it does not apply.
    remark : str
        A sentence where it does not apply, disagrees, or has lost digits.
    """

    title: str
    name: str
    qdd: Float | None
    Q_c: Float | None
    multipliers: Float | None
    distance: dict[str, float]
    difference: dict[str, float]
    seconds: float
    ok: bool | None
    remark: str

    def __repr__(self) -> str:
        return f"{self.title}: {_agreement(self)}"

    def __bool__(self) -> bool:
        return _refuse("row of a cross-check", "row.ok, which is None where it does not apply")


@dataclass(slots=True, eq=False, repr=False)
class CrossCheck:
    """The kernel and every textbook formulation on one problem.

    ``assert gm.cross_check(...)`` means that all formulations that apply agree.

    Attributes
    ----------
    ok : bool
        Every formulation that applies agrees with the kernel.
    motion : Motion
        The kernel's answer.
    seconds : float
        Its time for one system.
    rows : tuple of CrossCheckRow
        One for each formulation; ``check["gauss"]`` is the one of that name.
    """

    ok: bool
    motion: Motion
    seconds: float
    rows: tuple[CrossCheckRow, ...]

    def __bool__(self) -> bool:
        return self.ok

    def __iter__(self) -> Iterator[CrossCheckRow]:
        return iter(self.rows)

    def __getitem__(self, name: str) -> CrossCheckRow:
        return self.rows[_position(self.rows, name, "formulation")]

    def __repr__(self) -> str:
        return "\n".join([_check_title(self), *_text(*_check_table(self)), f"  {UNIT}"])

    def _repr_html_(self) -> str:
        marks = [None, *(row.ok for row in self.rows)]
        return _html(_check_title(self), *_check_table(self), marks, UNIT)


@dataclass(slots=True, eq=False, repr=False)
class ReportRow:
    """What one principle says of a given acceleration.

    Attributes
    ----------
    title, name : str
        What books call it, and the function of `gaussmech.principles` that it is.
    statement : str
        The equation that is judged.
    residual : ndarray
        By how much it fails, entry by entry.
    tolerance : ndarray
        How much is allowed, entry by entry.
    ok : bool
        No residual is above its tolerance.
    remark : str
        Where it fails: the entry, and a guess at the mistake.
    """

    title: str
    name: str
    statement: str
    residual: Float
    tolerance: Float
    ok: bool
    remark: str

    def __repr__(self) -> str:
        return f"{self.title}: {'yes' if self.ok else 'NO'}, {self.statement}"

    def __bool__(self) -> bool:
        return self.ok


@dataclass(slots=True, eq=False, repr=False)
class Report:
    """Whether an acceleration satisfies the principles of mechanics, one by one.

    ``assert gm.principles.report(...)`` means that it satisfies all of them.

    Attributes
    ----------
    ok : bool
        Every line says yes.
    rows : tuple of ReportRow
        One for each principle; ``report["dalembert"]`` is the one of that name.
    reason : str
        Where the tolerances come from.
    expected : Motion
        The motion that the kernel finds.
    """

    ok: bool
    rows: tuple[ReportRow, ...]
    reason: str
    expected: Motion

    def __bool__(self) -> bool:
        return self.ok

    def __iter__(self) -> Iterator[ReportRow]:
        return iter(self.rows)

    def __getitem__(self, name: str) -> ReportRow:
        return self.rows[_position(self.rows, name, "principle")]

    def __repr__(self) -> str:
        return "\n".join([_report_title(self), *_text(*_report_table(self)), f"  {self.reason}"])

    def _repr_html_(self) -> str:
        marks = [row.ok for row in self.rows]
        return _html(_report_title(self), *_report_table(self), marks, self.reason)


def _refuse(what: str, instead: str) -> bool:
    raise ValueError(f"the truth value of a {what} is ambiguous: test {instead}")


def _position(rows: Sequence[CrossCheckRow | ReportRow], name: str, what: str) -> int:
    names = [row.name for row in rows]
    if name not in names:
        known = ", ".join(map(repr, names))
        raise KeyError(f"no {what} has the name {name!r}; expected one of {known}")
    return names.index(name)


# ------------------------------------------------------------------ tables


def _width(text: str) -> int:
    """Columns that a text takes: the dots of q̈ take none."""
    return sum(not combining(c) for c in text)


def _text(head: Cells, rows: Sequence[Cells]) -> list[str]:
    """A table in text; the last column is free to be long."""
    widths = [max(_width(row[j]) for row in [head, *rows]) for j in range(len(head) - 1)]
    lines = []
    for row in [head, *rows]:
        cells = [c + " " * (w - _width(c)) for c, w in zip(row, widths, strict=False)]
        lines.append("  " + "  ".join([*cells, row[-1]]).rstrip())
    return lines


def _html(
    title: str, head: Cells, rows: Sequence[Cells], marks: Sequence[bool | None], foot: str
) -> str:
    """A table for a notebook; rows marked False stand out."""
    left = "style='text-align:left;padding:1px 12px 1px 0'"
    top = "".join(f"<th {left}>{escape(c)}</th>" for c in head)
    body = ""
    for row, mark in zip(rows, marks, strict=True):
        shade = " style='background:rgba(220,50,47,.18)'" if mark is False else ""
        cells = f"<th {left}>{escape(row[0])}</th>"
        cells += "".join(f"<td {left}>{escape(c)}</td>" for c in row[1:])
        body += f"<tr{shade}>{cells}</tr>"
    return (
        f"<table><caption {left}>{escape(title)}</caption>"
        f"<thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"
        f"<p style='font-size:smaller;margin-top:0'>{escape(foot)}</p>"
    )


def _short(x: Float | None) -> str:
    """A vector in a cell: all of it, or its first entries."""
    if x is None:
        return "–"
    if x.ndim > 1:
        return f"{x.shape}"
    x = np.where(np.abs(x) <= 1e-13 * np.abs(x).max(initial=0.0), 0.0, x)
    words = [f"{v:.4g}" for v in x]
    if len(words) > 4:
        words = [*words[:3], f"… ({len(words)})"]
    return "[" + " ".join(words) + "]"


def _clock(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def _agreement(row: CrossCheckRow) -> str:
    word = {True: "agrees", False: "DISAGREES", None: "does not apply"}[row.ok]
    return f"{word}: {row.remark}" if row.remark else word


def _check_title(check: CrossCheck) -> str:
    applied = [row for row in check.rows if row.ok is not None]
    agreeing = sum(row.ok is True for row in applied)
    size = np.size(check.motion.status)
    what = f" in all of {size} systems" if np.ndim(check.motion.status) else ""
    return (
        f"cross_check: {agreeing} of {len(applied)} formulations that apply agree with the "
        f"kernel{what}"
    )


def _check_table(check: CrossCheck) -> tuple[Cells, list[Cells]]:
    motion = check.motion
    head = ("formulation", "qdd", "Q_c", "distance*", "time", "verdict")
    rows: list[Cells] = [
        (
            "kernel (gm.solve)",
            _short(motion.qdd),
            _short(motion.Q_c),
            "",
            _clock(check.seconds),
            "",
        )
    ]
    for row in check.rows:
        applies = row.qdd is not None
        rows.append(
            (
                row.title,
                _short(row.qdd),
                _short(row.Q_c),
                f"{max(row.distance.values()):.2g}" if applies else "–",
                _clock(row.seconds) if applies else "–",
                _agreement(row),
            )
        )
    return head, rows


def _report_title(report: Report) -> str:
    wrong = [row.title for row in report.rows if not row.ok]
    if not wrong:
        return "report: this acceleration satisfies every principle"
    return f"report: this acceleration fails {len(wrong)} of {len(report.rows)} lines"


def _report_table(report: Report) -> tuple[Cells, list[Cells]]:
    head = ("principle", "does it satisfy", "residual", "tolerance", "verdict", "remark")
    rows: list[Cells] = []
    for row in report.rows:
        residual, tolerance = np.abs(row.residual), row.tolerance
        shown = ("0", "–")
        if residual.size:
            # the entry that is worst in units of its tolerance
            worst = np.unravel_index(
                np.argmax(residual / np.maximum(tolerance, np.finfo(float).tiny)), residual.shape
            )
            shown = (f"{float(residual[worst]):.2g}", f"{float(tolerance[worst]):.1g}")
        mark = "yes" if row.ok else "NO"
        rows.append((row.title, row.statement, *shown, mark, row.remark))
    return head, rows
