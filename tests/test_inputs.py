"""What users pass: conversions that lose nothing, and sentences for everything else."""

import re
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse

import gaussmech as gm

GOOD = {
    "M": np.diag([2.0, 1.0, 3.0]),
    "Q": np.array([1.0, 2.0, 3.0]),
    "A": np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]]),
    "b": np.array([0.5, -1.0]),
    "C": np.array([0.5, 0.0, 1.0]),
}
QDD = gm.acceleration(**GOOD)


def refused(error, text, **changed):
    with pytest.raises(error, match=re.escape(text)) as caught:
        gm.solve(**{**GOOD, **changed})
    assert "\n" not in str(caught.value)
    # errors="status" covers faults of single systems only
    with pytest.raises(error, match=re.escape(text)):
        gm.solve(**{**GOOD, **changed}, errors="status")


@pytest.mark.parametrize("name", GOOD)
def test_complex_input_is_refused_with_the_way_out(name):
    text = f"{name} is complex (complex128); expected real numbers: pass {name}.real"
    refused(TypeError, text, **{name: GOOD[name] * (1 + 0j)})


@pytest.mark.parametrize("name", GOOD)
def test_masked_entries_are_refused_and_masks_without_any_are_dropped(name):
    masked = np.ma.array(GOOD[name])
    assert np.array_equal(gm.acceleration(**{**GOOD, name: masked}), QDD)
    masked[(0,) * masked.ndim] = np.ma.masked
    refused(
        TypeError, f"{name} has masked entries, the first at {[0] * masked.ndim}", **{name: masked}
    )


@pytest.mark.parametrize("name", ["M", "A"])
@pytest.mark.parametrize("kind", [scipy.sparse.csr_array, scipy.sparse.coo_matrix])
def test_sparse_matrices_are_refused_with_the_way_out(name, kind):
    text = f"{name} is a sparse {kind.__name__}; expected a dense array: pass {name}.toarray()"
    refused(TypeError, text, **{name: kind(GOOD[name])})


@pytest.mark.parametrize("name", GOOD)
def test_objects_strings_and_none_are_refused(name):
    objects = np.vectorize(Fraction)(GOOD[name])
    refused(TypeError, f"{name} has dtype object (first entry: Fraction)", **{name: objects})
    refused(TypeError, f"{name} has dtype <U", **{name: GOOD[name].astype(str)})
    if name != "C":
        refused(TypeError, f"{name} is None; expected an array of real numbers", **{name: None})


def test_ragged_lists_are_refused():
    refused(ValueError, "A is not rectangular: its rows have different lengths", A=[[1, 1], [1]])


def test_long_doubles_are_refused_rather_than_rounded_in_silence():
    refused(TypeError, "pass Q.astype(float) to round it", Q=GOOD["Q"].astype(np.longdouble))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int64, np.int8, np.uint8, bool])
def test_smaller_numbers_compute_in_float64(dtype):
    exact = {k: np.abs(v).astype(dtype) for k, v in GOOD.items()}
    wide = {k: v.astype(float) for k, v in exact.items()}
    qdd = gm.acceleration(**exact)
    assert qdd.dtype == np.float64
    assert np.array_equal(qdd, gm.acceleration(**wide))


def test_lists_tuples_matrices_and_foreign_byte_orders_are_taken():
    for change in (
        {k: v.tolist() for k, v in GOOD.items()},
        {k: tuple(v.tolist()) for k, v in GOOD.items()},
        {k: v.astype(">f8") for k, v in GOOD.items()},
    ):
        assert np.array_equal(gm.acceleration(**{**GOOD, **change}), QDD)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            {"M": np.ones(3)},
            "M has shape (3,); expected (..., n, n): masses alone go in as np.diag",
        ),
        ({"M": np.ones((3, 2))}, "M has shape (3, 2); expected (..., n, n): a square matrix"),
        ({"M": 1.0}, "M has shape (); expected (..., n, n)"),
        (
            {"Q": np.ones((3, 1))},
            "Q has shape (3, 1); expected (..., 3) to match M: pass Q.ravel()",
        ),
        (
            {"Q": np.ones((5, 3, 1))},
            "Q has shape (5, 3, 1); expected (..., 3) to match M: pass Q[..., 0]",
        ),
        ({"Q": np.ones(2)}, "Q has shape (2,); expected (..., 3) to match M"),
        (
            {"Q": np.ones((3, 5))},
            "Q has shape (3, 5); expected (..., 3) to match M: the batch comes first, "
            "pass np.moveaxis(Q, 0, -1)",
        ),
        ({"Q": 1.0}, "Q has shape (); expected (..., 3) to match M: pass np.atleast_1d(Q)"),
        (
            {"A": np.ones(3)},
            "A has shape (3,); expected (..., m, 3) to match M: for a single row pass A[None, :]",
        ),
        (
            {"A": np.ones((3, 2))},
            "A has shape (3, 2); expected (..., m, 3) to match M: one row per constraint, pass A.T",
        ),
        (
            {"b": np.ones((2, 1))},
            "b has shape (2, 1); expected (..., 2) to match A: pass b.ravel()",
        ),
        ({"b": np.ones(3)}, "b has shape (3,); expected (..., 2) to match A"),
        (
            {"C": np.ones((3, 1))},
            "C has shape (3, 1); expected (..., 3) to match M: pass C.ravel()",
        ),
        ({"row_scale": np.ones(3)}, "row_scale has shape (3,); expected (..., 2) to match A"),
        (
            {"Q": np.ones((4, 3)), "b": np.ones((5, 2))},
            "batch dimensions do not broadcast: M (), A (), Q (4,), b (5,)",
        ),
    ],
)
def test_wrong_shapes_are_refused_with_what_came_what_is_expected_and_the_fix(change, text):
    changed = {**GOOD, **change}
    with pytest.raises(ValueError, match=re.escape(text.split(": M ()")[0])) as caught:
        gm.solve(**changed)
    assert "gufunc" not in str(caught.value)
    assert "core dimension" not in str(caught.value)


@pytest.mark.parametrize("name", GOOD)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_are_named_with_their_place(name, value):
    spoilt = GOOD[name].copy()
    spoilt[(-1,) * spoilt.ndim] = value
    place = [int(s) - 1 for s in spoilt.shape]
    with pytest.raises(ValueError, match=re.escape(f"{name}{place} is {value}")):
        gm.solve(**{**GOOD, name: spoilt})
    batch = np.stack([GOOD[name], spoilt])
    where = f"1 of 2 systems, first at index (1,): {name}{[1, *place]} is {value}"
    with pytest.raises(ValueError, match=re.escape(where)):
        gm.solve(**{**GOOD, name: batch})
    with pytest.raises(ValueError, match=re.escape(f"{name}{place} is {value}")):
        # a shared bad operand has the place that it has in the operand
        gm.solve(
            **{**GOOD, "M": np.stack([GOOD["M"]] * 3), name: spoilt}
            if name != "M"
            else {**GOOD, "M": spoilt, "Q": np.stack([GOOD["Q"]] * 3)}
        )


def test_every_function_of_arrays_refuses_wrong_input_in_words():
    M, Q, A, b = (GOOD[k] for k in "MQAb")
    for call in (
        lambda: gm.nonideal_force(M, A, Q[:2]),
        lambda: gm.augment(M, Q[:2], A, b),
        lambda: gm.augment(M, Q, A, b, "x"),
        lambda: gm.augment(M, Q, A, b, np.nan),
        lambda: gm.free_acceleration(M, Q[:2]),
        lambda: gm.zwang(M, Q, Q[:2]),
        lambda: gm.zwang(M, Q, Q * np.nan),
        lambda: gm.gauss_function(M[:2], Q, Q),
        lambda: gm.independent_rows(A[0]),
        lambda: gm.independent_rows(A, M[:2, :2]),
        lambda: gm.independent_rows(A, rtol=2),
        lambda: gm.sensitivity(M, A[:, :2]),
        lambda: gm.sensitivity(M - np.inf, A),
    ):
        with pytest.raises((ValueError, TypeError)) as caught:
            call()
        text = str(caught.value)
        assert "gufunc" not in text
        assert re.search(r"expected|nan|inf", text), text


def test_numpy_matrices_are_taken_as_arrays():
    with pytest.warns(PendingDeprecationWarning):
        M = np.matrix(GOOD["M"])
    assert np.array_equal(gm.acceleration(**{**GOOD, "M": M}), QDD)
