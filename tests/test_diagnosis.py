"""Errors name what is at fault: rows, coordinates, numbers, the batch index, and what to do."""

import pickle
import re

import numpy as np
import pytest

import gaussmech as gm

NAMES = {"rows": ["rod", "guide", "pin"], "coordinates": ["x", "y", "phi"]}
EYE, ZERO = np.eye(3), np.zeros(3)


def caught(error, *args, **options):
    with pytest.raises(error) as info:
        gm.solve(*args, **options)
    return info.value


def test_clashing_rows_are_named_with_the_residual_of_the_compromise():
    A = [[1, 0, 0], [0, 1, 0], [2, 0, 0]]
    error = caught(gm.InconsistentConstraintsError, EYE, ZERO, A, [1, 5, 4], names=NAMES)
    # min (x - 1)^2 + (2x - 4)^2 at x = 9/5: residuals 4/5 and -2/5
    assert "constraints 'rod' and 'pin' (rows 0 and 2) ask for different accelerations" in str(
        error
    )
    assert 'inconsistent="project"' in str(error)
    assert error.rows == (0, 2)
    np.testing.assert_allclose(error.residual, [0.8, 0.0, -0.4], atol=1e-15)
    assert error.index == ()


def test_only_the_rows_that_take_part_in_the_clash_are_named():
    A = [[1, 0, 0], [0, 1, 0], [1, 1, 0], [0, 0, 1]]
    error = caught(gm.InconsistentConstraintsError, EYE, ZERO, A, [1, 1, 3, 0])
    assert error.rows == (0, 1, 2)
    assert "rows 0, 1 and 2" in str(error)


def test_a_zero_row_with_a_right_side_is_named_with_it():
    error = caught(gm.InconsistentConstraintsError, EYE, ZERO, [[0, 0, 0]], [2.5])
    assert "row 0 is zero at this state but b[0] = 2.5" in str(error)


def test_many_clashing_rows_are_counted_rather_than_listed():
    A, b = np.ones((40, 3)), np.arange(40.0)
    error = caught(gm.InconsistentConstraintsError, EYE, ZERO, A, b)
    assert "(40 in all)" in str(error)
    assert len(str(error)) < 300


def test_the_clash_is_found_with_an_unconstrained_massless_coordinate_beside_it():
    M, A = np.diag([1.0, 1.0, 0.0]), [[1, 0, 0], [1, 0, 0]]
    error = caught(gm.InconsistentConstraintsError, M, [0, 0, 1], A, [1, 2])
    np.testing.assert_allclose(error.residual, [0.5, -0.5])


def test_a_massless_coordinate_is_named_with_what_is_missing():
    M = np.diag([1.0, 1.0, 0.0])
    error = caught(
        gm.IndeterminateMotionError,
        M,
        [0, 0, 1],
        [[1, 0, 0]],
        [0],
        names={"coordinates": ["x", "y", "phi"]},
    )
    assert "rank [M; A] is 2 of 3: coordinate 'phi' (2) has no mass and no constraint" in str(error)
    assert "a force acts there" in str(error)
    assert error.kind == "none"
    np.testing.assert_array_equal(error.null_vectors, [[0, 0, 1]])
    error = caught(gm.IndeterminateMotionError, M, ZERO, [[1, 0, 0]], [0])
    assert "the acceleration is not unique" in str(error)
    assert 'indeterminate="minimum_norm"' in str(error)
    assert error.kind == "many"


def test_a_hidden_direction_is_printed_as_a_null_vector():
    M = np.array([[2.0, -2, 0], [-2, 2, 0], [0, 0, 1]])
    error = caught(gm.IndeterminateMotionError, M, ZERO, [[1, -1, 0]], [0])
    assert "the direction [1., 1., 0.] (coordinates 0, 1)" in str(error).replace(
        "[-1., -1., ", "[1., 1., "
    )
    np.testing.assert_allclose(M @ error.null_vectors[0], 0, atol=1e-15)


def test_several_massless_coordinates_are_all_named():
    M = np.diag([0.0, 1.0, 0.0])
    error = caught(gm.IndeterminateMotionError, M, ZERO, np.zeros((0, 3)), [])
    assert "rank [M; A] is 1 of 3: coordinates 0, 2 have no mass and no constraint" in str(error)
    assert error.null_vectors.shape == (2, 3)


def test_an_asymmetric_mass_matrix_is_shown_by_its_first_pair():
    M = np.array([[2.0, 1, 0], [1, 3, 0.5], [0, 0, 1]])
    error = caught(gm.NotSemidefiniteError, M, ZERO, [[1, 0, 0]], [0])
    assert "M is not symmetric: M[1, 2] = 0.5 but M[2, 1] = 0.0" in str(error)
    assert error.entry == (1, 2)
    assert error.eigenvalue is None


@pytest.mark.parametrize(
    ("M", "eigenvalue", "entry", "text"),
    [
        (np.diag([1.0, -2.0, 1.0]), -2, (1, 1), "M[1, 1] = -2 is negative"),
        ([[1, 2, 0], [2, 1, 0], [0, 0, 1]], -1, None, "in a direction of coordinates 0, 1"),
        ([[0, 1, 0], [1, 0, 0], [0, 0, 1]], -1, (0, 1), "M[0, 0] = 0"),
        ([[1e20, 0, 0], [0, 1, 2], [0, 2, 1]], -1, None, "in a direction of coordinates 1, 2"),
    ],
)
def test_an_indefinite_mass_matrix_is_shown_by_its_eigenvalue(M, eigenvalue, entry, text):
    error = caught(gm.NotSemidefiniteError, M, ZERO, [[1, 0, 0]], [0])
    assert f"M is not positive semidefinite: eigenvalue {eigenvalue}" in str(error)
    assert text in str(error)
    assert error.eigenvalue == pytest.approx(eigenvalue, rel=1e-4)
    assert error.entry == entry


def test_symmetry_is_judged_on_both_sides_of_its_tolerance():
    for gap, fine in ((0.9e-10, True), (1.1e-10, False)):
        # the scale is sqrt(M_00 M_11) = 6
        M = np.array([[4.0, 1.0 + 6 * gap], [1.0, 9.0]])
        assert (gm.solve(M, [1, 1], [[1, 0]], [0], errors="status").status == 0) == fine


def test_semidefiniteness_is_judged_on_both_sides_of_its_tolerance():
    tolerance = 32 * 2 * np.finfo(float).eps
    for excess, status in ((0.4, 0), (4.0, gm.Status.INDEFINITE)):
        # the second pivot is 1 - (1 + d)^2 = -2 d
        M = np.array([[1.0, 1 + excess * tolerance], [1 + excess * tolerance, 1.0]])
        assert gm.solve(M, [1, 1], [[1, -1]], [0], errors="status").status == status


def test_a_fault_in_a_batch_says_how_many_and_where_the_first_is():
    A = np.broadcast_to([[1.0, 0, 0], [1.0, 0, 0]], (4, 5, 2, 3))
    b = np.zeros((4, 5, 2))
    b[1, 3] = [0, 1]
    b[2, 2] = [0, 1]
    error = caught(gm.InconsistentConstraintsError, EYE, ZERO, A, b, names={"rows": ["a", "b"]})
    assert str(error).startswith("2 of 20 systems, first at index (1, 3): inconsistent")
    assert error.index == (1, 3)


def test_faults_of_broadcast_operands_are_found_in_their_own_system():
    M = np.stack([np.eye(2), np.diag([1.0, 0.0])])
    error = caught(gm.IndeterminateMotionError, M[:, None], np.ones((3, 2)), [[1, 0]], [0])
    assert error.index == (1, 0)
    assert "3 of 6 systems" in str(error)


@pytest.mark.parametrize(
    "args",
    [
        (EYE, ZERO, [[1, 0, 0], [1, 0, 0]], [1, 2]),
        (np.diag([1.0, 1, 0]), ZERO, [[1, 0, 0]], [0]),
        (-EYE, ZERO, [[1, 0, 0]], [0]),
    ],
)
def test_every_error_is_a_linalg_error_and_a_value_error_and_survives_pickling(args):
    error = caught(gm.GaussmechError, *args)
    assert isinstance(error, np.linalg.LinAlgError)
    assert isinstance(error, ValueError)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert again.__dict__.keys() == error.__dict__.keys()


def test_no_message_is_longer_than_a_reader_bears_or_shows_raw_numpy():
    n = 50
    M = np.diag(np.r_[np.ones(n - 10), np.zeros(10)])
    error = caught(gm.IndeterminateMotionError, M, np.zeros(n), np.ones((1, n)), [0])
    assert len(str(error)) < 500
    assert re.search(r"coordinates 40, 41, 42, 43, 44, 45, …", str(error))
