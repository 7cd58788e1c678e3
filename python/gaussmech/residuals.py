"""What each principle of mechanics says of a given acceleration, as residuals that are zero.

What is public here is part of `gaussmech.principles`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .digits import scales
from .inputs import as_float, as_problem, batch_shape, check_finite, check_shapes
from .kernel import gauss_function, solve, zwang
from .virtual import (
    chosen_rows,
    independent_basis,
    plain,
    sampled,
    stands_for,
    times,
    virtual_displacements,
)

__all__ = [
    "GaussResidual",
    "constraint_residual",
    "dalembert_residual",
    "gauss_residual",
    "gibbs_appell",
    "gibbs_appell_residual",
    "hertz_curvature",
    "jourdain_residual",
    "lagrange_first_kind_residual",
    "reaction",
    "zwang_variation",
]

Float = NDArray[np.float64]


def motion_arrays(
    M: ArrayLike, Q: ArrayLike, A: ArrayLike, b: ArrayLike, C: ArrayLike | None, qdd: ArrayLike
) -> tuple[Float, Float, Float, Float, Float, Float]:
    """The problem with zeros for a C that is not given, and q̈ with the full batch shape."""
    arrays = as_problem(M, Q, A, b, C, qdd=qdd)
    given = {name: array for name, array in arrays.items() if array is not None}
    check_finite(given)
    n = given["M"].shape[-1]
    given.setdefault("C", np.zeros(n))
    given["qdd"] = np.broadcast_to(given["qdd"], (*batch_shape(arrays), n))
    return tuple(given[name] for name in ("M", "Q", "A", "b", "C", "qdd"))  # type: ignore[return-value]


@stands_for(r"A \ddot q - b")
def constraint_residual(
    M: ArrayLike,
    Q: ArrayLike,
    A: ArrayLike,
    b: ArrayLike,
    C: ArrayLike | None = None,
    *,
    qdd: ArrayLike,
) -> Float:
    """Return A q̈ - b, by how much an acceleration misses the constraints.

    Parameters
    ----------
    M, Q, A, b, C : array_like
        The problem, as in `solve`.
    qdd : (..., n) array_like
        The acceleration to judge.

    Returns
    -------
    (..., m) ndarray
        The residual.

    Raises
    ------
    TypeError, ValueError
        As `solve`.

    Examples
    --------
    >>> from gaussmech import principles
    >>> print(principles.constraint_residual([[1]], [0], [[2]], [6], qdd=[3]))
    [0.]
    """
    _, _, rows, targets, _, x = motion_arrays(M, Q, A, b, C, qdd)
    return times(rows, x) - targets


@stands_for(r"\delta q^T (M \ddot q - Q - C) = 0\ \text{ for all } A\,\delta q = 0")
def dalembert_residual(
    M: ArrayLike,
    Q: ArrayLike,
    A: ArrayLike,
    b: ArrayLike,
    C: ArrayLike | None = None,
    *,
    qdd: ArrayLike,
    rtol: float | None = None,
) -> Float:
    """Return Nᵀ(M q̈ - Q - C), the virtual work that d'Alembert's principle says is none.

    Parameters
    ----------
    M, Q, A, b, C : array_like
        The problem, as in `solve`.
    qdd : (..., n) array_like
        The acceleration to judge.
    rtol : float, optional
        Rank tolerance, as in `solve`.

    Returns
    -------
    (..., n - rank) ndarray
        The work along each column of ``virtual_displacements(A)``.

    Raises
    ------
    TypeError, ValueError
        As `virtual_displacements`.

    Notes
    -----
    Lagrange's form of the principle of d'Alembert: Goldstein, Classical Mechanics, section
    1.4; with C, Udwadia and Kalaba, J. Appl. Mech. 68 (2001) 462. Whether q̈ satisfies the
    constraints is another question: `constraint_residual`.

    Examples
    --------
    On the table the sideways force is not balanced by an acceleration of 2:

    >>> from gaussmech import principles
    >>> print(principles.dalembert_residual([[1, 0], [0, 1]], [3, -10], [[0, 1]], [0],
    ...                                     qdd=[2, 0]))
    [-1.]
    """
    mass, force, rows, _, given, x = motion_arrays(M, Q, A, b, C, qdd)
    N = virtual_displacements(rows, rtol=rtol)
    return times(N.swapaxes(-1, -2), times(mass, x) - force - given)


@stands_for(r"\delta v^T (M \ddot q - Q - C) = 0\ \text{ for all } A\,\delta v = 0")
def jourdain_residual(
    M: ArrayLike,
    Q: ArrayLike,
    A: ArrayLike,
    b: ArrayLike,
    C: ArrayLike | None = None,
    *,
    qdd: ArrayLike,
    rtol: float | None = None,
) -> Float:
    """Return Nᵀ(M q̈ - Q - C), the virtual power that Jourdain's principle says is none.

    The same numbers as `dalembert_residual`: a virtual velocity δv is a change of velocity at
    a fixed place and time, and satisfies A δv = 0 as δq does, also for constraints that are
    not linear in the velocities.

    Parameters
    ----------
    M, Q, A, b, C, qdd, rtol
        As in `dalembert_residual`.

    Returns
    -------
    (..., n - rank) ndarray
        The power along each column of ``virtual_displacements(A)``.

    Raises
    ------
    TypeError, ValueError
        As `virtual_displacements`.

    Notes
    -----
    Jourdain, Quart. J. Pure Appl. Math. 40 (1909) 153.

    Examples
    --------
    >>> from gaussmech import principles
    >>> print(principles.jourdain_residual([[1, 0], [0, 1]], [3, -10], [[0, 1]], [0],
    ...                                    qdd=[3, 0]))
    [0.]
    """
    return dalembert_residual(M, Q, A, b, C, qdd=qdd, rtol=rtol)


class GaussResidual(NamedTuple):
    """What Gauss's principle says is zero: see `gauss_residual`."""

    stationarity: Float
    pythagoras: Float


@stands_for(r"Z(y) - Z(\ddot q) = \|y - \ddot q\|_M^2")
def gauss_residual(
    M: ArrayLike,
    Q: ArrayLike,
    A: ArrayLike,
    b: ArrayLike,
    C: ArrayLike | None = None,
    *,
    qdd: ArrayLike,
    competitors: ArrayLike | None = None,
    rtol: float | None = None,
) -> GaussResidual:
    """Return by how much an acceleration misses Gauss's principle of least constraint.

    Parameters
    ----------
    M, Q, A, b, C : array_like
        The problem, as in `solve`.
    qdd : (..., n) array_like
        The acceleration to judge.
    competitors : (k, ..., n) array_like, optional
        Accelerations y to compare with, with the same A y as `qdd`; by default eight that
        `competitors` draws.
    rtol : float, optional
        Rank tolerance, as in `solve`.

    Returns
    -------
    GaussResidual
        ``stationarity`` (..., n - rank) is half the slope of Z along each virtual
        displacement, less what C prescribes: Nᵀ(M(q̈ - a) - C). ``pythagoras`` (k, ...) is
        Z(y) - Z(q̈) - ‖y - q̈‖²_M - 2(y - q̈)·C, zero for every y exactly when q̈ is the
        motion, and without C the reason why Z(q̈) is the least.

    Raises
    ------
    ValueError
        A competitor violates the constraints; shapes do not fit.
    TypeError, NotSemidefiniteError
        As `solve`.

    Notes
    -----
    Gauss, J. reine angew. Math. 4 (1829) 232. Differences of Z are those of Γ
    (`gauss_function`), which exists for singular M too.

    Examples
    --------
    >>> from gaussmech import principles
    >>> problem = [[1, 0], [0, 1]], [3, -10], [[0, 1]], [0]
    >>> stationarity, pythagoras = principles.gauss_residual(
    ...     *problem, qdd=[3, 0], competitors=[[5, 0], [-1, 0]])
    >>> print(stationarity, pythagoras)
    [0.] [0. 0.]
    """
    mass, force, rows, targets, given, x = motion_arrays(M, Q, A, b, C, qdd)
    stationarity = dalembert_residual(mass, force, rows, targets, given, qdd=x, rtol=rtol)
    if competitors is None:
        others = sampled(mass, rows, x, rtol=rtol)
    else:
        others = as_float("competitors", competitors)
        if others.ndim < 1 or others.shape[-1] != x.shape[-1]:
            raise ValueError(
                f"competitors has shape {others.shape}; expected (k, ..., {x.shape[-1]}), one "
                "acceleration per competitor"
            )
        _check_admissible(mass, rows, others - x, others, "competitors", "A y = A qdd")
    step = others - x
    pythagoras = gauss_function(mass, force, others) - gauss_function(mass, force, x)
    pythagoras = pythagoras - (step * times(mass, step)).sum(axis=-1)
    pythagoras = pythagoras - 2 * (step * given).sum(axis=-1)
    return GaussResidual(stationarity, pythagoras)


def _check_admissible(
    M: Float, A: Float, step: Float, terms: Float, name: str, equation: str
) -> None:
    """ValueError when A step is not zero within the rounding of the terms it comes from."""
    off = np.abs(times(A, step))
    size = scales(M, A)
    largest = (np.abs(step) + np.abs(terms)) / size.coordinates
    limit = 1e-9 * size.rows * largest.max(axis=-1, keepdims=True, initial=0.0)
    if np.any(off > limit):
        place = np.unravel_index(int(np.argmax(off - limit)), off.shape)
        raise ValueError(
            f"{name} violates the constraints: row {int(place[-1])} gives {off[place]:.3g} where "
            f"{equation} asks for 0"
            + (f", at index {tuple(int(i) for i in place[:-1])}" if off.ndim > 1 else "")
            + "; add combinations of the columns of virtual_displacements(A)"
        )


@stands_for(r"Z(\ddot q + \alpha\,\delta),\quad A\,\delta = 0")
def zwang_variation(
    M: ArrayLike,
    Q: ArrayLike,
    A: ArrayLike,
    b: ArrayLike,
    C: ArrayLike | None = None,
    *,
    direction: ArrayLike | None = None,
    alpha: ArrayLike,
    rtol: float | None = None,
) -> Any:
    """Return the Zwang Z(q̈ + α δ) along a virtual displacement δ, q̈ being the motion.

    Without C the least value is at α = 0, where Z(q̈ + αδ) = Z(q̈) + α²‖δ‖²_M. With C the
    slope there is 2 δᵀC, since δᵀQ_c = δᵀC.

    Parameters
    ----------
    M, Q, A, b, C : array_like
        The problem, as in `solve`.
    direction : (..., n) array_like, optional
        δ, with A δ = 0; by default the first of ``virtual_displacements(A)``.
    alpha : float or array_like
        How far to go along δ; any shape.
    rtol : float, optional
        Rank tolerance, as in `solve`.

    Returns
    -------
    float or ndarray
        Z, of the shape of `alpha` followed by the batch dimensions. NaN where M is singular
        and Q is not in its range.

    Raises
    ------
    ValueError
        A δ is not zero, or no degree of freedom is left.
    GaussmechError, TypeError
        As `solve`.

    Examples
    --------
    >>> from gaussmech import principles
    >>> problem = [[1, 0], [0, 1]], [3, -10], [[0, 1]], [0]
    >>> print(principles.zwang_variation(*problem, alpha=[-2, 0, 2]))
    [104. 100. 104.]
    """
    arrays = as_problem(M, Q, A, b, C, direction=direction)
    check_finite(arrays)
    delta = arrays.pop("direction")
    motion = solve(**arrays, rtol=rtol, outputs=("qdd",))  # type: ignore[arg-type]
    mass, force, rows = arrays["M"], arrays["Q"], arrays["A"]
    assert mass is not None and force is not None and rows is not None
    assert motion.qdd is not None
    if delta is None:
        N = virtual_displacements(rows, rtol=rtol)
        if not N.shape[-1]:
            raise ValueError(
                "no degree of freedom is left: the constraints alone determine the acceleration, "
                "and there is no virtual displacement to go along"
            )
        delta = N[..., 0]
    else:
        _check_admissible(mass, rows, delta, delta, "direction", "A δ = 0")
    step = np.asarray(as_float("alpha", alpha))
    shape = step.shape
    batch = np.broadcast_shapes(motion.qdd.shape[:-1], delta.shape[:-1])
    step = step.reshape(shape + (1,) * (len(batch) + 1))
    return zwang(mass, force, motion.qdd + step * delta)


@stands_for(r"M \ddot q - Q - C - A^T \mu = 0")
def lagrange_first_kind_residual(
    M: ArrayLike,
    Q: ArrayLike,
    A: ArrayLike,
    b: ArrayLike,
    C: ArrayLike | None = None,
    *,
    qdd: ArrayLike,
    multipliers: ArrayLike | None = None,
    rtol: float | None = None,
) -> Float:
    """Return M q̈ - Q - C - Aᵀμ, the residual of Lagrange's equations of the first kind.

    Parameters
    ----------
    M, Q, A, b, C : array_like
        The problem, as in `solve`.
    qdd : (..., n) array_like
        The acceleration to judge.
    multipliers : (..., m) array_like, optional
        The multipliers μ to judge with it: ``multipliers_total`` of `solve`, which without C
        are the ``multipliers``. By default those that leave the smallest residual: what then
        remains no multipliers can explain.
    rtol : float, optional
        Rank tolerance, as in `solve`.

    Returns
    -------
    (..., n) ndarray
        The residual.

    Raises
    ------
    TypeError, ValueError
        As `virtual_displacements`.

    Notes
    -----
    Lagrange, Mécanique analytique (1788); Goldstein, Classical Mechanics, section 2.4.

    Examples
    --------
    >>> from gaussmech import principles
    >>> problem = [[1, 0], [0, 1]], [3, -10], [[0, 1]], [0]
    >>> print(principles.lagrange_first_kind_residual(*problem, qdd=[3, 0], multipliers=[10]))
    [0. 0.]
    """
    mass, force, rows, _, given, x = motion_arrays(M, Q, A, b, C, qdd)
    rest = times(mass, x) - force - given
    if multipliers is None:
        chosen = chosen_rows(rows, None, rtol)
        orthonormal = np.linalg.qr(chosen.swapaxes(-1, -2))[0]
        for _ in range(2):  # twice is enough: Gram-Schmidt
            rest = rest - times(orthonormal, times(orthonormal.swapaxes(-1, -2), rest))
        return rest
    values = as_float("multipliers", multipliers)
    check_shapes({"A": rows, "multipliers": values})
    return rest - times(rows.swapaxes(-1, -2), values)


@stands_for(r"S = \tfrac12\, \ddot q^T M \ddot q,\quad \tfrac12 Z = S - Q \cdot \ddot q + \dots")
def gibbs_appell(M: ArrayLike, qdd: ArrayLike) -> Any:
    """Return the Gibbs-Appell function S = ½ q̈ᵀ M q̈, the energy of the accelerations.

    Z/2 = S - Q·q̈ + terms free of q̈, so that Gauss's principle and the Gibbs-Appell
    equations ∂S/∂q̈ = Q, for independent accelerations, are the same.

    Parameters
    ----------
    M : (..., n, n) array_like
        Mass matrix.
    qdd : (..., n) array_like
        Acceleration.

    Returns
    -------
    float or (...) ndarray
        S, less terms that are constant or linear in q̈: they belong to Q as Coriolis terms do.

    Raises
    ------
    TypeError, ValueError
        As `solve`.

    Notes
    -----
    Gibbs, Amer. J. Math. 2 (1879) 49; Appell, J. reine angew. Math. 121 (1900) 310.

    Examples
    --------
    >>> from gaussmech import principles
    >>> principles.gibbs_appell([[2, 0], [0, 4]], [1, 3])
    19.0
    """
    mass, x = as_float("M", M), as_float("qdd", qdd)
    check_shapes({"M": mass, "qdd": x})
    return plain(0.5 * (x * times(mass, x)).sum(axis=-1))


@stands_for(r"\frac{\partial S}{\partial \ddot q_i} - \Pi_i")
def gibbs_appell_residual(
    M: ArrayLike,
    Q: ArrayLike,
    A: ArrayLike,
    b: ArrayLike,
    C: ArrayLike | None = None,
    *,
    qdd: ArrayLike,
    rtol: float | None = None,
) -> Float:
    """Return ∂S/∂q̈_i - Π_i for the independent accelerations q̈_i of `partition`.

    The dependent ones are expressed by them through the constraints, in S as in the work
    Π_i that the forces Q + C do.

    Parameters
    ----------
    M, Q, A, b, C, qdd, rtol
        As in `dalembert_residual`.

    Returns
    -------
    (..., n - rank) ndarray
        The residuals, in the order of the independent coordinates.

    Raises
    ------
    TypeError, ValueError
        As `partition`.

    Notes
    -----
    Appell, J. reine angew. Math. 121 (1900) 310.

    Examples
    --------
    >>> from gaussmech import principles
    >>> print(principles.gibbs_appell_residual([[1, 0], [0, 1]], [3, -10], [[0, 1]], [0],
    ...                                        qdd=[3, 0]))
    [0.]
    """
    mass, force, rows, _, given, x = motion_arrays(M, Q, A, b, C, qdd)
    T = independent_basis(rows, rtol)
    return times(T.swapaxes(-1, -2), times(mass, x) - force - given)


@stands_for(
    r"\kappa = \frac{\sqrt{\ddot q^T M \ddot q - \ddot s^2}}{2T},\quad"
    r"\ddot s = \frac{\dot q^T M \ddot q}{\sqrt{2T}}"
)
def hertz_curvature(
    M: ArrayLike,
    qd: ArrayLike,
    qdd: ArrayLike,
    *,
    total_mass: ArrayLike = 1.0,
    squared: bool = False,
) -> Any:
    """Return Hertz's curvature of the path in configuration space, ds² = dqᵀM dq.

    Parameters
    ----------
    M : (..., n, n) array_like
        Mass matrix; constant along the path, as it is in Cartesian coordinates.
    qd : (..., n) array_like
        Velocity, not zero.
    qdd : (..., n) array_like
        Acceleration.
    total_mass : float or (...) array_like
        Mass to divide the metric by. Hertz takes that of the whole system, so that one
        particle has the curvature of its path in space, in 1/length, whatever its mass.
    squared : bool
        Return the square of the curvature; without forces, and T constant, it is Z/(2T)².

    Returns
    -------
    float or (...) ndarray
        The curvature κ.

    Raises
    ------
    ValueError
        T = 0: a point at rest has no path; or a `total_mass` that is not positive.
    TypeError
        As `solve`.

    Notes
    -----
    .. math:: \\kappa^2 = \\frac{\\ddot q^T M \\ddot q - \\ddot s^2}{(2T)^2},\\quad
              \\ddot s = \\frac{\\dot q^T M \\ddot q}{\\sqrt{2T}},

    where s̈ = 0 when T is constant, and q̈ᵀMq̈ = Z when no force acts. The free motion is the
    straightest of all that the constraints admit. Hertz, Die Prinzipien der Mechanik (1894),
    book 1. The denominator is (2T)², by the dimensions; some texts print 2T.

    Examples
    --------
    A point on a circle of radius 2:

    >>> from gaussmech import principles
    >>> principles.hertz_curvature([[1, 0], [0, 1]], [0, 3], [-4.5, 0])
    0.5
    """
    mass, v, x = as_float("M", M), as_float("qd", qd), as_float("qdd", qdd)
    whole = as_float("total_mass", total_mass)
    check_shapes({"M": mass, "qd": v, "qdd": x})
    if not np.all(whole > 0):
        raise ValueError(f"total_mass is {total_mass!r}; expected a positive mass")
    Mv = times(mass, v)
    twice_T = (v * Mv).sum(axis=-1)
    if not np.all(twice_T > 0):
        at = ""
        if np.ndim(twice_T):
            at = f" at index {tuple(int(i) for i in np.argwhere(~(twice_T > 0))[0])}"
        raise ValueError(f"the kinetic energy is zero{at}: a system at rest has no path to curve")
    # what is across the path, formed before it is squared: no difference of large terms
    across = x - v * ((x * Mv).sum(axis=-1) / twice_T)[..., None]
    square = (across * times(mass, across)).sum(axis=-1)
    curvature = np.sqrt(np.maximum(square, 0.0) * whole) / twice_T
    return plain(curvature**2 if squared else curvature)


@stands_for(r"Q_{c,k} = A_k^T \lambda_k")
def reaction(A: ArrayLike, multipliers: ArrayLike, k: int | Sequence[int] | slice) -> Float:
    """Return the generalized force A_kᵀ λ_k that row k exerts.

    Parameters
    ----------
    A : (..., m, n) array_like
        Constraint matrix.
    multipliers : (..., m) array_like
        Its multipliers.
    k : int, sequence of int, or slice
        The row, or all rows of one constraint.

    Returns
    -------
    (..., n) ndarray
        The force. It is unique only where `multipliers_unique` is true for row k.

    Raises
    ------
    IndexError
        There is no row k.
    TypeError, ValueError
        As `solve`.

    Examples
    --------
    >>> import gaussmech as gm
    >>> A = [[0, 1], [1, 0]]
    >>> motion = gm.solve([[1, 0], [0, 1]], [3, -10], A, [0, 0])
    >>> print(gm.principles.reaction(A, motion.multipliers, 0))
    [ 0. 10.]
    """
    rows, values = as_float("A", A), as_float("multipliers", multipliers)
    _, m = check_shapes({"A": rows, "multipliers": values})
    try:
        part = np.atleast_1d(np.arange(m)[k])
    except IndexError:
        raise IndexError(
            f"k is {k!r}; expected a row from 0 to {m - 1} (A has {m} row{'s' if m != 1 else ''})"
        ) from None
    force: Float = (rows[..., part, :] * values[..., part, None]).sum(axis=-2)
    return force
