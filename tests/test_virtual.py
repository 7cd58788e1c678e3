"""Virtual displacements, independent coordinates and competitors."""

import numpy as np
import pytest

import gaussmech as gm
import random_problems
from gaussmech import principles

TABLE = [[0.0, 1.0], [0.0, 2.0]]


@pytest.mark.parametrize("kind", random_problems.KINDS)
def test_the_basis_spans_what_the_constraints_leave_free(kind):
    for seed in range(40):
        M, _, A, _, _, rank = random_problems.problem(kind, seed)
        n = A.shape[1]
        N = principles.virtual_displacements(A)
        assert N.shape == (n, n - rank)
        assert np.max(np.abs(A @ N), initial=0) <= 1e-13 * np.abs(A).max()
        assert np.allclose(N.T @ N, np.eye(n - rank), atol=1e-14)
        B = principles.virtual_displacements(A, M)
        assert np.allclose(B.T @ M @ B, np.eye(n - rank), atol=1e-11)
        assert np.max(np.abs(A @ B), initial=0) <= 1e-12 * np.abs(A).max() * np.abs(B).max()
        largest = np.abs(N).argmax(axis=0)
        assert np.all(N[largest, range(n - rank)] > 0)


def test_rows_of_any_length_count_alike():
    N = principles.virtual_displacements([[1e-9, 0, 0], [0, 1e9, 0], [1, 1, 0]])
    assert np.array_equal(N, [[0], [0], [1]])


@pytest.mark.parametrize("shape", [(0, 3), (2, 3)])
def test_no_constraint_leaves_everything_free(shape):
    assert np.array_equal(principles.virtual_displacements(np.zeros(shape)), np.eye(3))


def test_nothing_is_left_free_by_as_many_rows_as_coordinates():
    assert principles.virtual_displacements(np.eye(3)).shape == (3, 0)
    assert principles.virtual_displacements(np.eye(3), np.eye(3)).shape == (3, 0)
    assert principles.virtual_displacements(np.zeros((5, 2, 3))).shape == (5, 3, 3)
    assert principles.virtual_displacements(np.zeros((0, 2, 3))).shape == (0, 3, 3)


def test_a_massless_virtual_displacement_has_no_length_in_the_metric_of_the_mass():
    with pytest.raises(gm.GaussmechError, match="some virtual displacement has no mass"):
        principles.virtual_displacements([[0, 1]], [[0, 0], [0, 1]])
    # held by a constraint it does not matter
    assert principles.virtual_displacements([[1, 0]], [[0, 0], [0, 4]]).tolist() == [[0], [0.5]]


def test_a_batch_has_one_rank_or_an_error_that_names_the_odd_one():
    A = np.array([[[1.0, 0], [0, 0]], [[1, 1], [2, 2]], [[0, 1], [0, 1]]])
    N = principles.virtual_displacements(A)
    assert N.shape == (3, 2, 1)
    for a, basis in zip(A, N, strict=True):
        assert np.array_equal(basis, principles.virtual_displacements(a))
    A[1] = np.eye(2)
    for function in (principles.virtual_displacements, principles.partition):
        with pytest.raises(
            ValueError, match=r"differ in rank: 1 at index \(0,\) but 2 at .*\(1,\)"
        ):
            function(A)


@pytest.mark.parametrize("kind", random_problems.KINDS)
def test_the_constraints_can_be_solved_for_the_dependent_coordinates(kind):
    for seed in range(40):
        _, _, A, _, _, rank = random_problems.problem(kind, seed)
        dependent, independent = principles.partition(A)
        assert len(dependent) == rank
        assert sorted([*dependent, *independent]) == list(range(A.shape[1]))
        assert np.linalg.matrix_rank(A[:, dependent]) == rank


def test_a_partition_of_a_batch_has_a_row_for_each():
    A = np.array([[[1.0, 5, 0]], [[7, 1, 1]]])
    dependent, independent = principles.partition(A)
    assert dependent.tolist() == [[1], [0]]
    assert independent.tolist() == [[0, 2], [1, 2]]
    assert [x.tolist() for x in principles.partition(np.zeros((0, 2)))] == [[], [0, 1]]


def test_competitors_satisfy_the_same_constraints_at_the_distance_asked_for():
    M, Q, A, b, _, _ = random_problems.problem("regular", 7)
    x = gm.acceleration(M, Q, A, b)
    y = principles.competitors(M, A, x, count=50, spread=0.25, seed=3)
    assert y.shape == (50, len(x))
    assert np.max(np.abs((y - x) @ A.T)) <= 1e-13 * np.abs(A).max() * np.abs(y).max()
    step = y - x
    lengths = np.sqrt(np.einsum("ki,ij,kj->k", step, M, step))
    assert np.allclose(lengths, 0.25 * np.sqrt(x @ M @ x), rtol=1e-12)
    assert len(np.unique(y[:, 0])) == 50
    again = principles.competitors(M, A, x, count=50, spread=0.25, seed=3)
    assert np.array_equal(y, again)
    assert not np.array_equal(y, principles.competitors(M, A, x, count=50, seed=4))


def test_competitors_exist_for_a_batch_at_rest_without_mass_and_without_freedom():
    x = np.zeros((3, 2))
    y = principles.competitors(np.eye(2), TABLE, x, count=4)
    assert y.shape == (4, 3, 2) and np.allclose(np.abs(y[..., 0]), 1)
    assert np.isfinite(principles.competitors(np.zeros((2, 2)), TABLE, [1, 0])).all()
    assert np.all(principles.competitors(np.eye(2), np.eye(2), [1, 2]) == [1, 2])
    assert principles.competitors(np.eye(2), TABLE, [1, 0], count=0).shape == (0, 2)
    with pytest.raises(ValueError, match="count is -1"):
        principles.competitors(np.eye(2), TABLE, [1, 0], count=-1)


def test_virtual_work_is_a_number_or_one_for_each_system():
    assert principles.virtual_work([1, 2], [3, 4]) == 11
    assert principles.virtual_work(np.ones((3, 2)), [3, 4]).tolist() == [7, 7, 7]
    with pytest.raises(ValueError, match="dq has shape"):
        principles.virtual_work([1, 2], [3, 4, 5])


def test_ideal_forces_do_no_virtual_work_and_the_non_ideal_part_does_that_of_C():
    for seed in range(20):
        *problem, _ = random_problems.problem("non-ideal", seed)
        motion = gm.solve(*problem)
        N = principles.virtual_displacements(problem[2])
        size = np.abs(motion.Q_c).max()
        assert np.max(np.abs(principles.virtual_work(motion.Q_ideal, N.T))) <= 1e-13 * size
        work = principles.virtual_work(motion.Q_c, N.T)
        assert np.allclose(work, problem[4] @ N, atol=1e-13 * size)
