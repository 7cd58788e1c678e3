"""The kernel in words: shapes in, a Motion or a sentence out.

The mathematics is in the C core; this module converts what needs converting, chooses
between raising and reporting, and labels the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _kernel
from .diagnosis import Arrays, fault
from .inputs import as_float, as_problem, as_rows, batch_shape, check_names, check_shapes
from .results import STATUSES, Motion

__all__ = [
    "acceleration",
    "augment",
    "constraint_force",
    "free_acceleration",
    "gauss_function",
    "independent_rows",
    "nonideal_force",
    "sensitivity",
    "solve",
    "zwang",
]

Names = Mapping[str, Sequence[str]] | None
Float = NDArray[np.float64]

_solve = _kernel.solve
# the order of bits in _kernel.solve's `wanted`
_FIELDS = (
    "qdd",
    "Q_c",
    "Q_ideal",
    "K",
    "multipliers",
    "multipliers_total",
    "multipliers_unique",
    "vanished",
    "zwang",
    "rank",
    "nullity",
    "residual",
    "status",
)
_BIT = {name: 1 << i for i, name in enumerate(_FIELDS)}
ALL_FIELDS = (1 << len(_FIELDS)) - 1
_QDD, _Q_C, _K = _BIT["qdd"], _BIT["Q_c"], _BIT["K"]
_RANK, _RESIDUAL, _STATUS = _BIT["rank"], _BIT["residual"], _BIT["status"]
_BLAME, _NULL_VECTORS = 1 << 13, 1 << 14
_PROJECT, _MINIMUM_NORM = 1, 2
_INCONSISTENT = {"raise": 0, "project": _PROJECT}
_INDETERMINATE = {"raise": 0, "minimum_norm": _MINIMUM_NORM}
_ERRORS = {"raise": True, "status": False}


def solve(
    M: ArrayLike,
    Q: ArrayLike,
    A: ArrayLike,
    b: ArrayLike,
    C: ArrayLike | None = None,
    *,
    rtol: float | None = None,
    ctol: float = 1e-9,
    b_atol: ArrayLike = 0.0,
    row_scale: ArrayLike | None = None,
    inconsistent: str = "raise",
    indeterminate: str = "raise",
    errors: str = "raise",
    outputs: Iterable[str] | None = None,
    names: Names = None,
) -> Motion:
    """Solve a constrained system for its acceleration and constraint forces.

    Finds q̈ and Q_c with M q̈ = Q + Q_c, A q̈ = b and δqᵀQ_c = δqᵀC for every virtual
    displacement δq in ker A. Redundant rows, more rows than coordinates, no rows and a
    singular M are all normal.

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
        A row counts as dependent when the sine of its angle with the rows before it is
        not above `rtol`. Default ``max(1e-12, 16 n eps)``.
    ctol : float
        Relative tolerance within which dependent rows agree.
    b_atol : float or (..., m) array_like
        Absolute error of `b`, in the units of the rows. A number is what the row at hand may
        be off by; as an array it has the error of each entry, and those of rows that are
        compared add up.
    row_scale : (..., m) array_like, optional
        Size of the terms that were added up in each row: a row not longer than `rtol`
        times its scale counts as zero.
    inconsistent : {"raise", "project"}
        What clashing rows get: an error, or the least-squares compromise in the units of
        the rows, then the least Zwang.
    indeterminate : {"raise", "minimum_norm"}
        What directions without mass and constraint get: an error, or the acceleration of
        minimum norm in scaled coordinates. A force along one is an error in any case.
    errors : {"raise", "status"}
        With "status" nothing is raised for a single system at fault: its numbers are NaN
        and ``motion.status`` says why. Wrong shapes and types always raise.
    outputs : iterable of str, optional
        Fields of `Motion` to compute; the others are None. ``status`` always comes.
    names : mapping, optional
        ``{"rows": [...], "coordinates": [...]}``, each optional: labels for messages and
        printing.

    Returns
    -------
    Motion
        Numbers for one system, arrays over the broadcast batch dimensions otherwise.

    Raises
    ------
    TypeError
        An input is complex, sparse, masked, or does not hold numbers.
    ValueError
        A shape or an option does not fit, or a number is not finite.
    NotSemidefiniteError
        M is not symmetric, or not positive semidefinite.
    InconsistentConstraintsError
        No acceleration satisfies all rows.
    IndeterminateMotionError
        A direction has neither mass nor constraint.
    GaussmechError
        The numbers leave the range of float64.

    Notes
    -----
    For regular M,

    .. math:: Q_c = M^{1/2} (A M^{-1/2})^+ (b - A M^{-1} Q) + K,\\quad
              K = M N (N^T M N)^{-1} N^T C,

    N a basis of ker A: Udwadia and Kalaba, Proc. R. Soc. A 439 (1992) 407; with C,
    J. Appl. Mech. 68 (2001) 462; for singular M, Udwadia and Phohomsiri, Proc. R. Soc. A
    462 (2006) 2097. Computed by orthogonal factorisations of scaled data with one step of
    refinement, not by this formula.

    Examples
    --------
    A block of mass 1 on a table, pulled by the force (3, -10):

    >>> import gaussmech as gm
    >>> motion = gm.solve([[1, 0], [0, 1]], [3, -10], [[0, 1]], [0])
    >>> motion
    Motion
      qdd         [3. 0.]     acceleration
      Q_c         [ 0. 10.]   constraint force   (= Q_ideal, no non-ideal part)
      multipliers [10.]       Q_ideal = A.T @ multipliers
      zwang       100         Gauss's constraint
      rank        1 of 1 row
    """
    wanted = ALL_FIELDS if outputs is None else fields_wanted(outputs)
    raw = _run(
        M, Q, A, b, C, row_scale, rtol, ctol, b_atol, inconsistent, indeterminate, errors,
        wanted, names,
    )  # fmt: skip
    motion = Motion(*raw[:13])
    status = motion.status
    if status.__class__ is int:
        motion.status = STATUSES[status]
    if names is not None:
        n, m = np.shape(Q)[-1], np.shape(b)[-1]
        motion.row_names, motion.coordinate_names = check_names(names, n, m)
    return motion


def acceleration(
    M: ArrayLike,
    Q: ArrayLike,
    A: ArrayLike,
    b: ArrayLike,
    C: ArrayLike | None = None,
    *,
    rtol: float | None = None,
    ctol: float = 1e-9,
    b_atol: ArrayLike = 0.0,
    row_scale: ArrayLike | None = None,
    inconsistent: str = "raise",
    indeterminate: str = "raise",
    errors: str = "raise",
    names: Names = None,
) -> Float:
    """Return only the acceleration q̈ of `solve`, with the same bits.

    Parameters
    ----------
    M, Q, A, b, C : array_like
        As in `solve`, and so are the keywords.

    Returns
    -------
    (..., n) ndarray
        The acceleration.

    Raises
    ------
    TypeError, ValueError, GaussmechError
        As `solve`.

    Examples
    --------
    >>> import gaussmech as gm
    >>> gm.acceleration([[2, 0], [0, 3]], [1, 0], [[1, 1]], [0])
    array([ 0.2, -0.2])
    """
    qdd: Float = _run(
        M, Q, A, b, C, row_scale, rtol, ctol, b_atol, inconsistent, indeterminate, errors,
        _QDD, names,
    )[0]  # fmt: skip
    return qdd


def constraint_force(
    M: ArrayLike,
    Q: ArrayLike,
    A: ArrayLike,
    b: ArrayLike,
    C: ArrayLike | None = None,
    *,
    rtol: float | None = None,
    ctol: float = 1e-9,
    b_atol: ArrayLike = 0.0,
    row_scale: ArrayLike | None = None,
    inconsistent: str = "raise",
    indeterminate: str = "raise",
    errors: str = "raise",
    names: Names = None,
) -> Float:
    """Return only the total constraint force Q_c = M q̈ - Q of `solve`, with the same bits.

    Parameters
    ----------
    M, Q, A, b, C : array_like
        As in `solve`, and so are the keywords.

    Returns
    -------
    (..., n) ndarray
        The constraint force.

    Raises
    ------
    TypeError, ValueError, GaussmechError
        As `solve`.

    Examples
    --------
    >>> import gaussmech as gm
    >>> gm.constraint_force([[2, 0], [0, 3]], [1, 0], [[1, 1]], [0])
    array([-0.6, -0.6])
    """
    Q_c: Float = _run(
        M, Q, A, b, C, row_scale, rtol, ctol, b_atol, inconsistent, indeterminate, errors,
        _Q_C, names,
    )[1]  # fmt: skip
    return Q_c


def nonideal_force(
    M: ArrayLike,
    A: ArrayLike,
    C: ArrayLike,
    *,
    rtol: float | None = None,
    row_scale: ArrayLike | None = None,
    errors: str = "raise",
    names: Names = None,
) -> Float:
    """Return the part K of the constraint force that does virtual work.

    K = M N (NᵀMN)⁻¹ NᵀC, N a basis of ker A. Only NᵀC matters: a C in the row space of A
    gives K = 0, a C in M ker A gives K = C. K is unique also where directions have neither
    mass nor constraint, as long as C does not act along them.

    Parameters
    ----------
    M : (..., n, n) array_like
        Mass matrix, symmetric positive semidefinite.
    A : (..., m, n) array_like
        Constraint matrix.
    C : (..., n) array_like
        Non-ideal part: the constraint force does the virtual work δqᵀC.
    rtol, row_scale, errors, names
        As in `solve`.

    Returns
    -------
    (..., n) ndarray
        The non-ideal constraint force.

    Raises
    ------
    TypeError, ValueError, GaussmechError
        As `solve`.

    Notes
    -----
    Udwadia and Kalaba, J. Appl. Mech. 68 (2001) 462, eq. for C.

    Examples
    --------
    >>> import gaussmech as gm
    >>> gm.nonideal_force([[2, 1], [1, 3]], [[1, 1]], [2, -1])
    array([ 1., -2.])
    """
    M, A, C = as_float("M", M), as_rows(A, M), as_float("C", C)
    n, m = check_shapes({"M": M, "A": A, "C": C})
    K: Float = _run(
        M, np.zeros(n), A, np.zeros(m), C, row_scale, rtol, 1e-9, 0.0, "raise", "minimum_norm",
        errors, _K, names,
    )[3]  # fmt: skip
    return K


def augment(
    M: ArrayLike,
    Q: ArrayLike,
    A: ArrayLike,
    b: ArrayLike,
    alpha: ArrayLike = 1.0,
    *,
    rtol: float | None = None,
) -> tuple[Float, Float]:
    """Return the augmented mass matrix and force, M_A = M + α²A⁺A and Q_b = Q + α²A⁺b.

    M_A is positive definite exactly when M and A have no common null vector, and put in
    place of M and Q in the formulas for regular M they give the constraint force of the
    original problem for every α ≠ 0. They are the textbook's; `solve` does not need them.

    Parameters
    ----------
    M, Q, A, b : array_like
        As in `solve`.
    alpha : float or (...) array_like
        Weight that carries the units of M^{1/2}; not zero.
    rtol : float, optional
        Rank tolerance, as in `solve`.

    Returns
    -------
    M_A : (..., n, n) ndarray
    Q_b : (..., n) ndarray

    Raises
    ------
    TypeError, ValueError, NotSemidefiniteError
        As `solve`. Clashing rows are no fault: A⁺b is their least-squares compromise.

    Notes
    -----
    Udwadia and Phohomsiri, Proc. R. Soc. A 462 (2006) 2097, section 3, where α = 1.

    Examples
    --------
    >>> import gaussmech as gm
    >>> M_A, Q_b = gm.augment([[0, 0], [0, 2]], [3, 0], [[1, 0]], [5])
    >>> print(M_A, Q_b)
    [[1. 0.]
     [0. 2.]] [8. 0.]
    """
    M = as_float("M", M)
    arrays: Arrays = {
        "M": M,
        "Q": as_float("Q", Q),
        "A": as_rows(A, M),
        "b": as_float("b", b),
        "alpha": as_float("alpha", alpha),
    }
    check_shapes(arrays)
    if not np.all(arrays["alpha"]):
        raise ValueError("alpha is 0; expected a nonzero weight: with 0 nothing is augmented")
    M_A, Q_b, status = _kernel.augment(*arrays.values(), _tolerance(rtol))
    _raise_faults(arrays, status)
    return M_A, Q_b


def free_acceleration(M: ArrayLike, Q: ArrayLike) -> Float:
    """Return the acceleration a = M⁻¹Q that the system would have without constraints.

    Parameters
    ----------
    M : (..., n, n) array_like
        Mass matrix, symmetric positive semidefinite.
    Q : (..., n) array_like
        Applied generalized force.

    Returns
    -------
    (..., n) ndarray
        The free acceleration.

    Raises
    ------
    IndeterminateMotionError
        M is singular: some direction has no mass.
    TypeError, ValueError, NotSemidefiniteError
        As `solve`.

    Examples
    --------
    >>> import gaussmech as gm
    >>> gm.free_acceleration([[2, 0], [0, 4]], [1, 2])
    array([0.5, 0.5])
    """
    M = as_float("M", M)
    n, _ = check_shapes({"M": M})
    return acceleration(M, Q, np.zeros((0, n)), np.zeros(0))


def zwang(M: ArrayLike, Q: ArrayLike, qdd: ArrayLike, half: bool = False) -> Any:
    """Return Gauss's Zwang Z = (q̈ - a)ᵀ M (q̈ - a) of any acceleration, a = M⁻¹Q.

    Parameters
    ----------
    M : (..., n, n) array_like
        Mass matrix, symmetric positive semidefinite.
    Q : (..., n) array_like
        Applied generalized force.
    qdd : (..., n) array_like
        The acceleration to judge, constrained or not.
    half : bool
        Return Z/2, the convention of some books; the minimiser is the same.

    Returns
    -------
    float or (...) ndarray
        The Zwang; NaN where M is singular and Q is not in its range, since a does not
        exist. `gauss_function` is defined there too.

    Raises
    ------
    TypeError, ValueError, NotSemidefiniteError
        As `solve`.

    Notes
    -----
    Gauss, J. reine angew. Math. 4 (1829) 232: Σ m |r̈ - F/m|² is a minimum. Computed from
    the constraint force as (Mq̈ - Q)ᵀ M⁺ (Mq̈ - Q), which does not form a.

    Examples
    --------
    >>> import gaussmech as gm
    >>> gm.zwang([[1, 0], [0, 1]], [3, -10], [3, 0])
    100.0
    """
    value = _motion_function(M, Q, qdd)[0]
    return 0.5 * value if half else value


def gauss_function(M: ArrayLike, Q: ArrayLike, qdd: ArrayLike) -> Any:
    """Return Gauss's function Γ = q̈ᵀ M q̈ - 2 Qᵀ q̈, defined for singular M too.

    Z = Γ + aᵀMa where both exist: the two have the same minimiser.

    Parameters
    ----------
    M : (..., n, n) array_like
        Mass matrix, symmetric positive semidefinite.
    Q : (..., n) array_like
        Applied generalized force.
    qdd : (..., n) array_like
        The acceleration to judge.

    Returns
    -------
    float or (...) ndarray
        The value of Γ.

    Raises
    ------
    TypeError, ValueError, NotSemidefiniteError
        As `solve`.

    Examples
    --------
    >>> import gaussmech as gm
    >>> gm.gauss_function([[1, 0], [0, 1]], [3, -10], [3, 0])
    -9.0
    """
    return _motion_function(M, Q, qdd)[1]


def independent_rows(
    A: ArrayLike, M: ArrayLike | None = None, rtol: float | None = None
) -> NDArray[np.bool_]:
    """Return which rows of A the rank decision accepts as independent.

    Parameters
    ----------
    A : (..., m, n) array_like
        Constraint matrix.
    M : (..., n, n) array_like, optional
        Mass matrix, whose diagonal gives coordinates a common scale; without it they are
        taken as they stand.
    rtol : float, optional
        As in `solve`. A state known to within a relative error e needs ``rtol > e``.

    Returns
    -------
    (..., m) ndarray of bool
        True for the accepted rows; their number is the rank.

    Raises
    ------
    TypeError, ValueError, NotSemidefiniteError
        As `solve`.

    Notes
    -----
    Column-pivoted QR of the scaled rows: the size of a pivot is the sine of the angle
    between a row and the span of those accepted before it.

    Examples
    --------
    >>> import gaussmech as gm
    >>> gm.independent_rows([[1, 0], [2, 0], [0, 1]]).sum()
    np.int64(2)
    """
    mass = None if M is None else as_float("M", M)
    rows = as_float("A", A) if mass is None else as_rows(A, mass)
    n, _ = check_shapes({"A": rows} if mass is None else {"M": mass, "A": rows})
    arrays: Arrays = {"A": rows, "M": np.eye(n) if mass is None else mass}
    mask, status = _kernel.independent_rows(*arrays.values(), _tolerance(rtol))
    _raise_faults(arrays, status)
    return np.asarray(mask)


def sensitivity(
    M: ArrayLike,
    A: ArrayLike,
    *,
    rtol: float | None = None,
    row_scale: ArrayLike | None = None,
) -> tuple[Float, Float]:
    """Return how the acceleration answers to the force and to the constraints.

    Parameters
    ----------
    M : (..., n, n) array_like
        Mass matrix, symmetric positive semidefinite.
    A : (..., m, n) array_like
        Constraint matrix.
    rtol, row_scale
        As in `solve`.

    Returns
    -------
    dqdd_dQ : (..., n, n) ndarray
        ∂q̈/∂Q = N (NᵀMN)⁻¹ Nᵀ, symmetric positive semidefinite.
    dqdd_db : (..., n, m) ndarray
        ∂q̈/∂b; where rows depend on each other, of the solution with ``inconsistent="project"``.

    Raises
    ------
    IndeterminateMotionError
        A direction has neither mass nor constraint.
    TypeError, ValueError, NotSemidefiniteError
        As `solve`.

    Examples
    --------
    >>> import gaussmech as gm
    >>> dqdd_dQ, dqdd_db = gm.sensitivity([[2, 0], [0, 2]], [[1, 0]])
    >>> print(dqdd_dQ, dqdd_db)
    [[0.  0. ]
     [0.  0.5]] [[1.]
     [0.]]
    """
    mass = as_float("M", M)
    rows = as_rows(A, mass)
    _, m = check_shapes({"M": mass, "A": rows})
    scale = np.zeros(m) if row_scale is None else as_float("row_scale", row_scale)
    arrays: Arrays = {"M": mass, "A": rows, "row_scale": scale}
    check_shapes(arrays)
    dqdd_dQ, dqdd_db, status = _kernel.sensitivity(*arrays.values(), _tolerance(rtol))
    _raise_faults(arrays, status)
    return dqdd_dQ, dqdd_db


def _run(
    M: Any,
    Q: Any,
    A: Any,
    b: Any,
    C: Any,
    row_scale: Any,
    rtol: float | None,
    ctol: float,
    b_atol: Any,
    inconsistent: str,
    indeterminate: str,
    errors: str,
    wanted: int,
    names: Names,
) -> tuple[Any, ...]:
    """Call the core; convert first where it does not take the inputs as they are."""
    if b_atol.__class__ is not float:
        b_atol = _allowance(b_atol)
    options, raising = check_options(rtol, ctol, b_atol, inconsistent, indeterminate, errors)
    raw = _solve(M, Q, A, b, C, row_scale, rtol, ctol, b_atol, options, wanted)
    if raw is None:
        M, Q, A, b, C, row_scale, b_atol = _convert(M, Q, A, b, C, row_scale, b_atol)
        raw = _solve(M, Q, A, b, C, row_scale, rtol, ctol, b_atol, options, wanted)
        assert raw is not None, "converted inputs are what the core takes"
    status = raw[12]
    failed = status < 0 if status.__class__ is int else bool((status < 0).any())
    if failed and raising:
        arrays: dict[str, Any] = {"M": M, "Q": Q, "A": A, "b": b, "C": C, "row_scale": row_scale}
        if b_atol.__class__ is np.ndarray:
            arrays["b_atol"] = b_atol
            b_atol = 0.0
        _raise_faults(arrays, status, names, rtol, ctol, b_atol)
    if names is not None:
        check_names(names, np.shape(Q)[-1], np.shape(b)[-1])
    return raw


def _allowance(b_atol: Any) -> Any:
    """A number as a float, more than one as an array of errors; what is neither as it is."""
    if isinstance(b_atol, (int, float, np.integer, np.floating)):
        return float(b_atol)
    if isinstance(b_atol, str) or b_atol is None:
        return b_atol
    errors = as_float("b_atol", b_atol)
    if errors.ndim == 0:
        return float(errors)
    if (errors < 0).any():
        place = [int(i) for i in np.argwhere(errors < 0)[0]]
        raise ValueError(f"b_atol{place} is negative; expected errors of 0 or more")
    return errors


def _convert(
    M: Any, Q: Any, A: Any, b: Any, C: Any, row_scale: Any, b_atol: Any
) -> tuple[Any, ...]:
    errors = b_atol if b_atol.__class__ is np.ndarray else None
    arrays = as_problem(M, Q, A, b, C, row_scale=row_scale, b_atol=errors)
    if len(batch_shape(arrays)) > 30:
        raise ValueError(f"{len(batch_shape(arrays))} batch dimensions; at most 30 are possible")
    converted = tuple(arrays.values())
    return converted if errors is not None else (*converted[:6], b_atol)


def _motion_function(M: ArrayLike, Q: ArrayLike, qdd: ArrayLike) -> tuple[Any, Any]:
    arrays: Arrays = {"M": as_float("M", M), "Q": as_float("Q", Q), "qdd": as_float("qdd", qdd)}
    check_shapes(arrays)
    value, function, status = _kernel.zwang(*arrays.values())
    _raise_faults(arrays, status)
    if np.ndim(value) == 0:
        return float(value), float(function)
    return value, function


def _raise_faults(
    arrays: Arrays,
    status: Any,
    names: Names = None,
    rtol: float | None = None,
    ctol: float = 1e-9,
    b_atol: float = 0.0,
) -> None:
    if not np.any(np.less(status, 0)):
        return

    def diagnose(item: Arrays) -> tuple[Any, Any, int, Any]:
        """Solve once more, with every compromise allowed, for what messages need."""
        n = len(item["M"])  # type: ignore[arg-type]
        A = item.get("A")
        A = np.zeros((0, n)) if A is None else A
        Q, b = item.get("Q"), item.get("b")
        raw = _solve(
            item["M"],
            np.zeros(n) if Q is None else Q,
            A,
            np.zeros(len(A)) if b is None else b,
            item.get("C"),
            item.get("row_scale"),
            rtol,
            ctol,
            b_atol if item.get("b_atol") is None else item["b_atol"],
            _PROJECT | _MINIMUM_NORM,
            _RANK | _RESIDUAL | _BIT["nullity"] | _STATUS | _BLAME | _NULL_VECTORS,
        )
        assert raw is not None
        return raw[13], raw[14][: max(raw[10], 0)], raw[9], raw[11]

    b = arrays.get("b")
    n = arrays["M"].shape[-1]  # type: ignore[union-attr]
    m = 0 if b is None else b.shape[-1]
    labels = check_names(names, n, m)
    raise fault(arrays, status, labels, diagnose)


def _tolerance(rtol: float | None) -> float:
    if rtol is None:
        return float("nan")
    try:
        if 0.0 <= rtol < 1.0:
            return float(rtol)
    except TypeError:
        pass
    raise _option_error(rtol, 0.0, 0.0, "raise", "raise", "raise")


def check_options(
    rtol: Any, ctol: Any, b_atol: Any, inconsistent: Any, indeterminate: Any, errors: Any
) -> tuple[int, bool]:
    """Return the options as the core takes them, and whether to raise."""
    try:
        options = _INCONSISTENT[inconsistent] | _INDETERMINATE[indeterminate]
        raising = _ERRORS[errors]
        if (rtol is not None and not 0.0 <= rtol < 1.0) or not ctol >= 0.0:
            raise ValueError
        if b_atol.__class__ is not np.ndarray and not b_atol >= 0.0:
            raise ValueError
    except (KeyError, TypeError, ValueError):
        raise _option_error(rtol, ctol, b_atol, inconsistent, indeterminate, errors) from None
    return options, raising


def fields_wanted(outputs: Iterable[str]) -> int:
    if isinstance(outputs, str):
        outputs = (outputs,)
    bits = _STATUS
    for name in outputs:
        if name not in _BIT:
            raise ValueError(f"outputs has {name!r}; expected names out of {', '.join(_FIELDS)}")
        bits |= _BIT[name]
    return bits


def _option_error(
    rtol: Any, ctol: Any, b_atol: Any, inconsistent: Any, indeterminate: Any, errors: Any
) -> Exception:
    """The sentence for the first option that is not one."""
    for name, value, known in (
        ("inconsistent", inconsistent, _INCONSISTENT),
        ("indeterminate", indeterminate, _INDETERMINATE),
        ("errors", errors, _ERRORS),
    ):
        if not isinstance(value, str) or value not in known:
            return ValueError(f"{name} is {value!r}; expected {' or '.join(map(repr, known))}")
    for name, value, top in (("rtol", rtol, 1.0), ("ctol", ctol, None), ("b_atol", b_atol, None)):
        if name == "rtol" and value is None:
            continue
        wanted = "a number from 0 to below 1, or None" if top else "a number that is not negative"
        if not isinstance(value, (int, float, np.integer, np.floating)):
            return TypeError(f"{name} is {value!r}; expected {wanted}")
        if not (value >= 0 and (top is None or value < top)):
            return ValueError(f"{name} is {value!r}; expected {wanted}")
    return ValueError("an option is not valid")
