"""Pictures: Gauss's principle drawn, static with matplotlib and as a live page."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .digits import scales
from .inputs import as_problem, batch_shape, check_names
from .kernel import solve
from .results import Labels, number
from .virtual import scaled_basis

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["zwang"]

Float = NDArray[np.float64]
# radii of the ellipses drawn, in units of the one that touches the constraint
RADII = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5)
VIEW = 1.9
INK = {"level": "#9aa5b1", "touch": "#d97706", "line": "#2563eb", "force": "#dc2626"}


def zwang(
    M: ArrayLike,
    Q: ArrayLike,
    A: ArrayLike,
    b: ArrayLike,
    C: ArrayLike | None = None,
    *,
    plane: Sequence[Any] | ArrayLike | None = None,
    path: str | Path | None = None,
    names: Mapping[str, Sequence[str]] | None = None,
    rtol: float | None = None,
) -> Figure:
    """Draw Gauss's principle: the ellipses Z = const, the constraints, and where they touch.

    A plane of accelerations through the motion q̈. Around the free acceleration a = M⁻¹Q lie
    the ellipses of equal Zwang; the motion is where one of them touches the line A q̈ = b, and
    the constraint force Q_c stands across the line there. With a non-ideal part C the motion
    is not where they touch, and that point is shown too.

    Parameters
    ----------
    M : (n, n) array_like
        Mass matrix, symmetric positive semidefinite; one system, n ≥ 2.
    Q : (n,) array_like
        Applied generalized force.
    A : (m, n) array_like
        Constraint matrix.
    b : (m,) array_like
        Right side of the constraints.
    C : (n,) array_like, optional
        Non-ideal part.
    plane : pair, optional
        Two coordinates, by index or by name, that vary while the others keep the values of
        q̈; or two directions, an array of shape (2, n). By default the two coordinates when
        n = 2, otherwise the plane of q̈ - a and one virtual displacement, drawn in the metric
        of M, where ellipses are circles.
    path : str or Path, optional
        File to write: ``.html`` for a page of its own in which a competitor can be dragged
        along the constraint or off it, while Z and ‖y - q̈‖²_M follow; any ending that
        matplotlib knows for a picture.
    names : mapping, optional
        As in `solve`: names of coordinates for the axes.
    rtol : float, optional
        Rank tolerance, as in `solve`.

    Returns
    -------
    matplotlib.figure.Figure
        The picture. A notebook shows the live page for it.

    Raises
    ------
    GaussmechError
        The problem has no unique motion, as in `solve`.
    ImportError
        matplotlib is not installed.
    TypeError, ValueError
        As `solve`; a batch, fewer than two coordinates, a plane that is none.

    Notes
    -----
    .. math:: Z(y) = (y - a)^T M (y - a) = Z(\\ddot q) + \\|y - \\ddot q\\|_M^2
              + 2 (y - \\ddot q) \\cdot C

    for every y with A y = A q̈: Gauss, J. reine angew. Math. 4 (1829) 232. Where M is
    singular and Z does not exist, Γ = q̈ᵀMq̈ - 2Qᵀq̈ is drawn, which differs by a constant
    where both exist.

    Examples
    --------
    >>> import gaussmech as gm
    >>> figure = gm.plot.zwang([[1, 0], [0, 2]], [3, -10], [[1, 1]], [0])
    >>> [axis.get_xlabel() for axis in figure.axes]
    ['$\\\\ddot q$ 0']
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError(
            "gaussmech.plot needs matplotlib, which is not installed; "
            "install it with: pip install 'gaussmech[plot]'"
        ) from None
    section = _section(M, Q, A, b, C, plane, names, rtol)
    figure = Figure(figsize=(6.4, 5.6), layout="constrained")
    _draw(figure, section)
    page = _page(section)
    # IPython asks the object for it
    setattr(figure, "_repr_html_", lambda: _framed(page))  # noqa: B010
    if path is not None:
        target = Path(path)
        if target.suffix.lower() in (".html", ".htm"):
            target.write_text(page, encoding="utf-8")
        else:
            figure.savefig(target, dpi=150)
    return figure


@dataclass(slots=True)
class _Section:
    """A plane y = q̈ + x P[0] + y P[1] and what is to be seen in it."""

    P: Float  # (2, n), the directions
    H: Float  # (2, 2), ‖·‖²_M in the plane
    slope: Float  # (2,), half the gradient of Z at q̈: the force Q_c in the plane
    nonideal: Float  # (2,), C in the plane
    rows: Float  # (m, 2), A in the plane
    line: Float | None  # (2,), direction of A y = b in the plane, if it is a line
    whole: bool  # all of the plane satisfies A y = b
    least: Float | None  # (2,), where Z is least in the plane
    free: bool  # that is the free acceleration
    ideal: Float | None  # (2,), the ideal motion, where it differs and lies in the plane
    value: float  # Z(q̈), or Γ(q̈)
    letter: str  # "Z" or "Γ"
    labels: tuple[str, str]  # of the axes
    shift: Float  # (2,), what the axes show at q̈
    Q_c: Float
    half: Float  # (2,), half the width of the view


def _section(
    M: Any, Q: Any, A: Any, b: Any, C: Any, plane: Any, names: Any, rtol: float | None
) -> _Section:
    arrays = as_problem(M, Q, A, b, C)
    batch = batch_shape(arrays)
    if batch:
        raise ValueError(f"the batch shape is {batch}; expected one system: pass M[i], Q[i], …")
    given = {name: array for name, array in arrays.items() if array is not None}
    n = given["Q"].shape[-1]
    if n < 2:
        raise ValueError(
            f"{n} coordinate{'s' if n != 1 else ''}; expected two or more: for one the picture is "
            "a parabola, which principles.zwang_variation gives"
        )
    motion = solve(**arrays, rtol=rtol)  # type: ignore[arg-type]
    mass, force, rows = given["M"], given["Q"], given["A"]
    nonideal = given.get("C", np.zeros(n))
    assert motion.qdd is not None and motion.Q_c is not None
    _, coordinates = check_names(names, n, len(rows))
    P, labels, at_axes = _plane(plane, mass, rows, motion, coordinates, rtol)

    d = scales(mass, rows).coordinates
    lengths = np.linalg.norm(P / d, axis=1)
    H = P @ mass @ P.T
    slope = P @ motion.Q_c
    in_plane = rows @ P.T
    sizes: Any = (np.abs(rows) @ np.abs(P.T)).max(axis=1, keepdims=True, initial=0.0)
    scaled = in_plane / np.where(sizes > 0, sizes, 1.0)
    _, sines, Vt = np.linalg.svd(scaled) if len(rows) else (None, np.zeros(2), np.eye(2))
    rank = int(np.count_nonzero(sines > 1e-9))
    unit_H = H / np.multiply.outer(lengths, lengths)
    least: Any = None
    ideal: Any = None
    free = False
    if np.linalg.eigvalsh(unit_H)[0] > 1e-12 * float(np.abs(unit_H).max()):
        least = -np.linalg.solve(H, slope)
        y = motion.qdd + least @ P
        rest = np.abs(mass @ y - force) * d
        size = (np.abs(mass) @ np.abs(y) + np.abs(force)) * d
        free = bool(np.max(rest) <= 1e-9 * np.max(size))
    if nonideal.any():
        other = solve(mass, force, rows, given["b"], rtol=rtol).qdd
        assert other is not None
        step = (other - motion.qdd) / d
        along = np.linalg.lstsq((P / d).T, step, rcond=None)[0]
        if np.linalg.norm(along @ (P / d) - step) <= 1e-9 * max(
            float(np.linalg.norm(step)), 1e-300
        ):
            ideal = along
    value, letter = float(motion.zwang), "Z"
    if np.isnan(value):
        value = float(motion.qdd @ mass @ motion.qdd - 2 * force @ motion.qdd)
        letter = "Γ"
    shift = motion.qdd[at_axes] if at_axes is not None else np.zeros(2)
    return _Section(
        P=P,
        H=H,
        slope=slope,
        nonideal=P @ nonideal,
        rows=in_plane,
        line=Vt[1] if rank == 1 else None,
        whole=rank == 0,
        least=least,
        free=free,
        ideal=ideal,
        value=value,
        letter=letter,
        labels=labels,
        shift=shift,
        Q_c=motion.Q_c,
        half=_half_width(H, slope, least, motion.qdd, lengths, d),
    )


def _half_width(
    H: Float, slope: Float, least: Float | None, qdd: Float, lengths: Float, d: Float
) -> Float:
    """How far to look, so that the touching ellipse is seen whole."""
    if least is not None:
        radius = float(slope @ np.linalg.solve(H, slope)) ** 0.5
        if radius > 0:
            width: Float = VIEW * radius * np.sqrt(np.diag(np.linalg.inv(H)))
            return width
    size = float(np.abs(qdd / d).max(initial=0.0)) or 1.0
    width = VIEW * size / lengths
    return width


def _plane(
    plane: Any, M: Float, A: Float, motion: Any, names: Labels, rtol: float | None
) -> tuple[Float, tuple[str, str], list[int] | None]:
    """Two directions, the labels of the axes, and which coordinates the axes are, if any."""
    n = len(M)
    if plane is None and n == 2:
        plane = (0, 1)
    if plane is None:
        return _natural_plane(M, A, motion, rtol), ("along the constraints", "across them"), None
    known = f"0 to {n - 1}" + ("" if names is None else f", or {', '.join(map(repr, names))}")
    if np.ndim(plane) == 1 and len(plane) == 2:
        chosen = []
        for item in plane:
            if isinstance(item, str) and names is not None and item in names:
                item = names.index(item)
            whole = isinstance(item, (int, np.integer)) and not isinstance(item, bool)
            if not whole or not -n <= item < n:
                raise ValueError(f"plane has the coordinate {item!r}; expected {known}")
            chosen.append(int(item) % n)
        if chosen[0] == chosen[1]:
            raise ValueError(f"plane has coordinate {chosen[0]} twice; expected two different ones")
        x, y = (f"q̈ {i}" if names is None else f"q̈ of {names[i]}" for i in chosen)
        return np.eye(n)[chosen], (x, y), chosen
    try:
        P = np.asarray(plane, dtype=float)
    except (TypeError, ValueError):
        P = np.zeros(0)
    if P.shape != (2, n) or not np.isfinite(P).all() or np.linalg.matrix_rank(P) < 2:
        raise ValueError(
            f"plane is {plane!r}; expected two coordinates ({known}) or two independent "
            f"directions, an array of shape (2, {n})"
        )
    return P, ("first direction", "second direction"), None


def _natural_plane(M: Float, A: Float, motion: Any, rtol: float | None) -> Float:
    """A virtual displacement and q̈ - a, orthonormal in the metric of M where that exists."""
    d = scales(M, A).coordinates
    mass = M * np.multiply.outer(d, d)
    virtual = scaled_basis(M, A, rtol).T / d
    across = np.linalg.lstsq(mass, motion.Q_c * d, rcond=1e-12)[0]
    rest = mass @ across - motion.Q_c * d
    if np.linalg.norm(rest) > 1e-9 * np.linalg.norm(motion.Q_c * d):
        across = motion.Q_c * d
    if np.linalg.norm(across) <= 1e-12 * max(float(np.linalg.norm(motion.qdd / d)), 1e-300):
        across = np.zeros(len(M))
    found: list[Float] = []
    # one virtual displacement, then what stands across, then whatever is left
    x: Any
    for x in [*virtual[:1], across, *virtual[1:], *np.eye(len(M))]:
        start = np.linalg.norm(x)
        for _ in range(2):
            for y in found:
                weight = y @ mass @ y
                metric = mass if weight > 1e-12 else np.eye(len(M))
                x = x - y * (y @ metric @ x) / (y @ metric @ y)
        if start > 0 and np.linalg.norm(x) > 1e-9 * start:
            length = float(x @ mass @ x) ** 0.5
            found.append(x / (length if length > 1e-6 * np.linalg.norm(x) else np.linalg.norm(x)))
        if len(found) == 2:
            break
    return np.array(found) * d


def _levels(
    section: _Section, reach: float = 1.0
) -> tuple[Float, Float, Float, list[float], float | None]:
    """A grid over `reach` views, the function on it, the levels to draw, and the touching one."""
    centre = np.zeros(2) if section.least is None else section.least
    x, y = (
        np.linspace(c - reach * h, c + reach * h, 241)
        for c, h in zip(centre, section.half, strict=True)
    )
    grid = np.stack(np.meshgrid(x, y), axis=-1)
    values = (grid @ section.H * grid).sum(axis=-1) + 2 * grid @ section.slope + section.value
    if section.least is None:
        low, high = float(values.min()), float(values.max())
        steps = [low + (high - low) * k / 8 for k in range(1, 8)]
        return x, y, values, sorted([*steps, section.value]), section.value
    bottom = section.value + float(section.slope @ section.least)
    rise = section.value - bottom
    if rise <= 1e-12 * max(abs(section.value), 1e-300):
        corner = (float(values.max()) - bottom) / reach**2
        return x, y, values, [bottom + corner * (k / 5) ** 2 for k in range(1, 5)], None
    return x, y, values, [bottom + rise * r * r for r in RADII], section.value


def _numbers(section: _Section) -> str:
    return (
        "("
        + ", ".join(f"{v + 0.0:.4g}" for v in section.Q_c[:6])
        + (", …)" if len(section.Q_c) > 6 else ")")
    )


def _draw(figure: Any, section: _Section) -> None:
    axes = figure.add_subplot()
    shift, half = section.shift, section.half
    centre = np.zeros(2) if section.least is None else section.least
    x, y, values, levels, touching = _levels(section)
    widths = [2.2 if level == touching else 0.9 for level in levels]
    colors = [INK["touch"] if level == touching else INK["level"] for level in levels]
    axes.contour(
        x + shift[0], y + shift[1], values, levels=levels, linewidths=widths, colors=colors
    )
    far = 4 * np.hypot(*half)
    if section.line is not None:
        ends = np.array([-far, far])[:, None] * section.line + shift
        axes.plot(*ends.T, color=INK["line"], lw=2, label="$A \\ddot q = b$")
    elif section.whole:
        axes.plot([], [], " ", label="$A \\ddot q = b$ everywhere in this plane")
    else:
        axes.plot([], [], " ", label="$A \\ddot q = b$ at $\\ddot q$ alone in this plane")
    if touching is not None:
        axes.plot([], [], color=INK["touch"], lw=2.2,
                  label=f"{section.letter} = {number(section.value)}")  # fmt: skip
    if section.least is not None and touching is not None:
        start = section.least + shift
        axes.plot(*start, "o", color="black", ms=5)
        axes.plot(*np.array([start, shift]).T, color="black", lw=0.8, ls=":")
        what = "free acceleration $a$" if section.free else "least in this plane"
        axes.annotate(what, start, xytext=(6, -14), textcoords="offset points")
    if section.ideal is not None:
        axes.plot(*(section.ideal + shift), "o", mfc="white", mec="black", ms=7,
                  label="without the non-ideal part")  # fmt: skip
    if np.linalg.norm(section.slope) > 0:
        tip = _arrow(section)
        axes.annotate(
            "", shift + tip, xytext=shift,
            arrowprops={"arrowstyle": "-|>", "color": INK["force"], "lw": 2, "shrinkA": 0,
                        "shrinkB": 0, "mutation_scale": 16},
        )  # fmt: skip
        axes.plot([], [], color=INK["force"], lw=2, label=f"$Q_c$ = {_numbers(section)}")
    axes.plot(*shift, "o", color=INK["line"], ms=8, zorder=5)
    axes.annotate("$\\ddot q$", shift, xytext=(8, 6), textcoords="offset points", fontsize=13)
    axes.set_xlim(centre[0] - half[0] + shift[0], centre[0] + half[0] + shift[0])
    axes.set_ylim(centre[1] - half[1] + shift[1], centre[1] + half[1] + shift[1])
    if max(half) < 5 * min(half):
        axes.set_aspect("equal")
    x_label, y_label = (
        label.replace("$", r"\$").replace("q̈", r"$\ddot q$") for label in section.labels
    )
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    figure.suptitle(_title(section), fontsize=10.5)
    axes.legend(loc="best", fontsize=9, framealpha=0.9)


def _title(section: _Section) -> str:
    if section.nonideal.any():
        return "With a non-ideal part the motion is not where an ellipse touches"
    if section.whole:
        return "Gauss: all of this plane is admissible, the motion has the least Zwang"
    if section.line is None:
        return "Gauss: no other acceleration in this plane is admissible"
    return "Gauss: the motion is where an ellipse of equal Zwang touches the constraint"


def _arrow(section: _Section) -> Float:
    """Q_c in the plane, a third of the view long."""
    direction = section.slope / section.half
    tip: Float = 0.38 * section.slope / float(np.hypot(*direction))
    return tip


def _page(section: _Section) -> str:
    """The live page: one file, nothing loaded from elsewhere."""
    from matplotlib.figure import Figure

    x, y, values, levels, touching = _levels(section, 1.8)
    drawn = Figure().add_subplot().contour(x, y, values, levels=levels)
    curves = [
        {
            "touching": level == touching,
            "value": number(level),
            "points": [part.tolist() for part in parts if len(part)],
        }
        for level, parts in zip(levels, drawn.allsegs, strict=True)
    ]
    data = {
        "H": section.H.tolist(),
        "slope": section.slope.tolist(),
        "nonideal": section.nonideal.tolist(),
        "rows": section.rows.tolist(),
        "line": None if section.line is None else section.line.tolist(),
        "whole": section.whole,
        "least": None if section.least is None or touching is None else section.least.tolist(),
        "free": section.free,
        "ideal": None if section.ideal is None else section.ideal.tolist(),
        "value": section.value,
        "letter": section.letter,
        "labels": section.labels,
        "title": _title(section),
        "shift": section.shift.tolist(),
        "force": _numbers(section),
        "arrow": _arrow(section).tolist() if np.linalg.norm(section.slope) > 0 else None,
        "centre": (np.zeros(2) if section.least is None else section.least).tolist(),
        "half": section.half.tolist(),
        "curves": curves,
        "ink": INK,
    }
    text = json.dumps(data, allow_nan=False, ensure_ascii=False).replace("<", "\\u003c")
    template = files(__package__).joinpath("zwang.html").read_text(encoding="utf-8")
    return template.replace("/*DATA*/null", text)


def _framed(page: str) -> str:
    """The page inside a notebook's cell."""
    return (
        f'<iframe srcdoc="{escape(page)}" style="width:100%;max-width:760px;height:720px;border:0" '
        'title="Gauss\'s principle"></iframe>'
    )
