"""The functions of gaussmech.kernel: what they return, which options they take."""

import re

import numpy as np
import pytest

import gaussmech as gm

EPS = np.finfo(float).eps
FIELDS = (
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


def problem(n, m, seed=0, batch=()):
    """A well-conditioned regular problem: M has eigenvalues of one to about four."""
    rng = np.random.default_rng(seed)
    half = rng.standard_normal((*batch, n, n)) / max(n, 1) ** 0.5
    M = half @ half.swapaxes(-1, -2) + np.eye(n)
    return (
        M,
        rng.standard_normal((*batch, n)),
        rng.standard_normal((*batch, m, n)),
        rng.standard_normal((*batch, m)),
        rng.standard_normal((*batch, n)),
    )


def quaternion(seed, batch=()):
    """A free body with a unit quaternion: M = 4 E'JE is singular along q, one row q'q̈ = b."""
    rng = np.random.default_rng(seed)
    q = rng.standard_normal((*batch, 4))
    q /= np.linalg.norm(q, axis=-1, keepdims=True)
    w, x, y, z = np.moveaxis(q, -1, 0)
    E = np.stack(
        [
            np.stack([-x, w, z, -y], -1),
            np.stack([-y, -z, w, x], -1),
            np.stack([-z, y, -x, w], -1),
        ],
        -2,
    )
    M = np.zeros((*batch, 7, 7))
    M[..., range(3), range(3)] = 2.0
    M[..., 3:, 3:] = 4 * E.swapaxes(-1, -2) @ np.diag([1.0, 2.0, 3.0]) @ E
    M = 0.5 * (M + M.swapaxes(-1, -2))
    A = np.zeros((*batch, 1, 7))
    A[..., 0, 3:] = 2 * q
    return M, rng.standard_normal((*batch, 7)), A, rng.standard_normal((*batch, 1))


def kkt(M, Q, A, b):
    n, m = len(Q), len(b)
    K = np.block([[M, -A.T], [A, np.zeros((m, m))]])
    x = np.linalg.solve(K, np.concatenate([Q, b]))
    return x[:n], x[n:]


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 9, 16, 17, 33, 95, 96, 97, 130])
def test_a_regular_problem_is_solved_on_both_sides_of_every_size_threshold(n):
    for m in {0, 1, n // 2, n}:
        M, Q, A, b, _ = problem(n, m, seed=n + m)
        motion = gm.solve(M, Q, A, b)
        qdd, multipliers = kkt(M, Q, A, b)
        # square random A: its condition number bounds what NumPy's solve can give
        tolerance = 50 * n * EPS * np.linalg.cond(A) ** 2 if m else 50 * n * EPS
        np.testing.assert_allclose(motion.qdd, qdd, rtol=0, atol=tolerance * np.abs(qdd).max())
        if m:
            scale = np.abs(multipliers).max()
            np.testing.assert_allclose(motion.multipliers, multipliers, atol=tolerance * scale)
        assert motion.rank == m
        assert motion.nullity == 0
        assert motion.status is gm.Status.OK


@pytest.mark.parametrize("size", [(2, 1), (6, 3), (7, 0), (12, 6)])
def test_one_system_gives_python_numbers_and_a_batch_gives_arrays(size):
    one = gm.solve(*problem(*size)[:4])
    assert type(one.zwang) is float
    assert type(one.rank) is int
    assert type(one.nullity) is int
    assert type(one.status) is gm.Status
    many = gm.solve(*problem(*size, batch=(2, 3))[:4])
    assert many.zwang.shape == many.rank.shape == many.nullity.shape == (2, 3)
    assert many.status.dtype == np.int8
    assert many.multipliers_unique.dtype == many.vanished.dtype == bool


def test_every_output_alone_has_the_bits_of_the_full_call():
    for arrays in (problem(6, 3), problem(6, 3, batch=(11,)), (*quaternion(1), None)):
        *arrays, C = arrays
        full = gm.solve(*arrays, C)
        for name in FIELDS:
            part = gm.solve(*arrays, C, outputs=(name,))
            assert np.array_equal(getattr(part, name), getattr(full, name), equal_nan=True), name
            assert part.status is not None
            assert all(getattr(part, f) is None for f in FIELDS if f not in (name, "status"))


def test_single_outputs_are_the_functions_of_their_name():
    M, Q, A, b, C = problem(6, 3, seed=4)
    motion = gm.solve(M, Q, A, b, C)
    assert np.array_equal(gm.acceleration(M, Q, A, b, C), motion.qdd)
    assert np.array_equal(gm.constraint_force(M, Q, A, b, C), motion.Q_c)
    np.testing.assert_allclose(gm.nonideal_force(M, A, C), motion.K, rtol=100 * EPS)


@pytest.mark.parametrize("maker", [lambda k: problem(6, 3, k)[:4], quaternion])
def test_a_system_has_the_same_bits_alone_and_at_any_place_of_a_batch(maker):
    systems = [maker(k) for k in range(19)]
    for count in (1, 2, 3, 7, 8, 9, 19):
        stacked = [np.stack(parts) for parts in zip(*systems[:count], strict=True)]
        batch = gm.solve(*stacked)
        for k in range(count):
            one = gm.solve(*systems[k])
            for name in FIELDS:
                mine = getattr(batch, name)[k]
                assert np.array_equal(mine, getattr(one, name), equal_nan=True), (name, k)


def test_batch_dimensions_broadcast_in_every_operand():
    M, Q, A, b, C = problem(4, 2)
    shapes = {"M": (3, 1), "Q": (5,), "A": (2, 1, 1), "b": (3, 5), "C": ()}
    rng = np.random.default_rng(1)

    def vary(x, shape):
        return x * (1 + 0.1 * rng.random((*shape, *(1,) * x.ndim)))

    full = {k: vary(x, shapes[k]) for k, x in zip(shapes, (M, Q, A, b, C), strict=True)}
    motion = gm.solve(*full.values())
    assert motion.qdd.shape == (2, 3, 5, 4)
    assert motion.status.shape == (2, 3, 5)
    for index in np.ndindex(2, 3, 5):
        cores = (2, 1, 2, 1, 1)
        item = [
            np.broadcast_to(x, (2, 3, 5, *x.shape[x.ndim - c :]))[index]
            for x, c in zip(full.values(), cores, strict=True)
        ]
        assert np.array_equal(motion.qdd[index], gm.solve(*item).qdd)


@pytest.mark.parametrize("batch", [(0,), (3, 0), (0, 2)])
@pytest.mark.parametrize("size", [(3, 2), (0, 0), (2, 0), (0, 2)])
def test_empty_batches_and_sizes_give_empty_arrays_of_the_right_shape(batch, size):
    motion = gm.solve(*problem(*size, batch=batch)[:4])
    assert motion.qdd.shape == (*batch, size[0])
    assert motion.multipliers.shape == (*batch, size[1])
    assert motion.zwang.shape == batch


def test_a_system_without_coordinates_is_solved_when_its_rows_allow_it():
    assert gm.solve(np.zeros((0, 0)), [], np.zeros((2, 0)), [0, 0]).rank == 0
    with pytest.raises(gm.InconsistentConstraintsError, match="row 1 is zero"):
        gm.solve(np.zeros((0, 0)), [], np.zeros((2, 0)), [0, 1])


def test_an_empty_list_is_a_problem_without_constraints():
    qdd = gm.acceleration([[2, 0], [0, 4]], [1, 2], [], [])
    np.testing.assert_allclose(qdd, [0.5, 0.5], rtol=2 * EPS)


def test_status_mode_reports_each_fault_in_its_own_slice():
    M = np.broadcast_to(np.diag([1.0, 2.0, 3.0]), (7, 3, 3)).copy()
    Q = np.ones((7, 3))
    A = np.broadcast_to([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]], (7, 2, 3)).copy()
    b = np.zeros((7, 2))
    good = gm.solve(M[0], Q[0], A[0], b[0])
    Q[1, 2] = np.nan
    M[2, 0, 1] = 1.0
    M[3, 0, 0] = -1.0
    A[4, 1], b[4] = A[4, 0], [0.0, 1.0]
    M[5], A[5, 1], Q[5] = np.diag([1.0, 2.0, 0.0]), [1.0, 0.0, 0.0], [1.0, 1.0, 0.0]
    M[6], A[6, 1] = np.diag([1.0, 2.0, 0.0]), [1.0, 0.0, 0.0]
    motion = gm.solve(M, Q, A, b, errors="status")
    s = gm.Status
    assert motion.status.tolist() == [
        s.OK,
        s.NONFINITE,
        s.ASYMMETRIC,
        s.INDEFINITE,
        s.INCONSISTENT,
        s.INDETERMINATE_MANY,
        s.INDETERMINATE_NONE,
    ]
    assert np.array_equal(motion.qdd[0], good.qdd)
    for name in ("qdd", "Q_c", "Q_ideal", "K", "multipliers", "multipliers_total", "residual"):
        assert np.isnan(getattr(motion, name)[1:]).all(), name
    assert np.isnan(motion.zwang[1:]).all()
    assert not motion.multipliers_unique[1:].any()
    assert motion.rank.tolist() == [2, -1, -1, -1, 1, 2, 2]
    assert motion.nullity.tolist() == [0, -1, -1, -1, 0, 1, 1]


def test_several_faults_at_once_report_the_first_in_the_documented_order():
    M, Q, A, b = np.diag([1.0, 0.0]), np.array([0.0, 1.0]), np.ones((2, 2)), np.array([0.0, 1.0])
    A[:, 1] = 0.0
    assert gm.solve(M, Q, A, b, errors="status").status == gm.Status.INCONSISTENT
    b[:] = 0.0
    assert gm.solve(M, Q, A, b, errors="status").status == gm.Status.INDETERMINATE_NONE
    b[1] = np.inf
    M[0, 1] = 5.0
    assert gm.solve(M, Q, A, b, errors="status").status == gm.Status.NONFINITE
    b[1] = 1.0
    assert gm.solve(M, Q, A, b, errors="status").status == gm.Status.ASYMMETRIC
    M[1, 0] = 5.0
    assert gm.solve(M, Q, A, b, errors="status").status == gm.Status.INDEFINITE


def test_both_compromises_at_once_carry_both_remarks():
    M, A = np.diag([1.0, 0.0]), np.array([[1.0, 0.0], [1.0, 0.0]])
    motion = gm.solve(M, [0, 0], A, [1, 2], inconsistent="project", indeterminate="minimum_norm")
    assert motion.status is gm.Status.PROJECTED_MINIMUM_NORM
    np.testing.assert_allclose(motion.qdd, [1.5, 0.0], atol=4 * EPS)


def test_project_leaves_consistent_rows_as_they_stand():
    M, Q, A, b, _ = problem(5, 2)
    A, b = np.vstack([A, A[0] + A[1]]), np.append(b, b.sum())
    plain = gm.solve(M, Q, A, b)
    projected = gm.solve(M, Q, A, b, inconsistent="project")
    assert projected.status is gm.Status.OK
    assert np.array_equal(plain.qdd, projected.qdd)


def test_a_force_on_a_massless_free_direction_is_an_error_under_every_option():
    with pytest.raises(gm.IndeterminateMotionError):
        gm.solve(np.diag([1.0, 0.0]), [1, 1], [[1, 0]], [0], indeterminate="minimum_norm")


def test_minimum_norm_leaves_the_unique_parts_as_they_are():
    # coordinates 1 and 2 share one mass: their difference is free
    M = np.array([[1.0, 0, 0], [0, 2, 2], [0, 2, 2]])
    motion = gm.solve(M, [1, 4, 4], [[1, -1, -1]], [0], indeterminate="minimum_norm")
    assert motion.status is gm.Status.MINIMUM_NORM
    assert motion.nullity == 1
    qdd = motion.qdd
    # x1 = x2 + x3 = s with 3 s = 5
    np.testing.assert_allclose([qdd[0], qdd[1] + qdd[2]], [5 / 3, 5 / 3], rtol=8 * EPS)
    np.testing.assert_allclose(qdd[1], qdd[2], rtol=8 * EPS)
    np.testing.assert_allclose(motion.Q_c, [2 / 3, -2 / 3, -2 / 3], rtol=8 * EPS)


def test_non_ideal_parts_are_nan_where_C_acts_on_a_free_massless_direction():
    M = np.diag([1.0, 0.0])
    motion = gm.solve(
        M, [0, -1], [[1, 0]], [0], [0, 1], indeterminate="minimum_norm"
    )  # Q + C does not act along coordinate 1, C does
    assert np.isnan(motion.K).all()
    assert np.isnan(motion.Q_ideal).all()
    assert np.isfinite(motion.Q_c).all()
    with pytest.raises(gm.IndeterminateMotionError):
        gm.nonideal_force(M, [[1, 0]], [0, 1])
    assert np.array_equal(gm.nonideal_force(M, [[1, 0]], [3, 0]), [0, 0])


def test_the_augmented_problem_has_the_constraint_force_of_the_singular_one():
    M, Q, A, b = quaternion(3)
    for alpha in (0.5, 1.0, 20.0):
        M_A, Q_b = gm.augment(M, Q, A, b, alpha)
        assert np.linalg.eigvalsh(M_A).min() > 0.0
        # the regular formula, as printed, on (M_A, Q_b)
        values, vectors = np.linalg.eigh(M_A)
        root, inverse = (vectors * values**0.5) @ vectors.T, (vectors * values**-0.5) @ vectors.T
        free = np.linalg.solve(M_A, Q_b)
        Q_c = root @ np.linalg.pinv(A @ inverse) @ (b - A @ free)
        tolerance = 100 * EPS * np.linalg.cond(M_A) * np.abs(Q_b).max()
        np.testing.assert_allclose(Q_c, gm.constraint_force(M, Q, A, b), atol=tolerance)


def test_augment_is_what_numpys_pseudoinverse_makes_of_it():
    M, Q, A, b, _ = problem(5, 2, batch=(4,))
    A, b = np.concatenate([A, A[:, :1] * 2], 1), np.concatenate([b, b[:, :1] + 1], 1)
    M_A, Q_b = gm.augment(M, Q, A, b, 3.0)
    plus = np.linalg.pinv(A)
    np.testing.assert_allclose(M_A, M + 9 * plus @ A, atol=1000 * EPS)
    expected = Q + 9 * (plus @ b[..., None])[..., 0]
    np.testing.assert_allclose(Q_b, expected, atol=1000 * EPS * np.abs(expected).max())
    with pytest.raises(ValueError, match="alpha is 0"):
        gm.augment(M, Q, A, b, 0.0)


def test_sensitivity_is_the_change_of_the_acceleration():
    for M, Q, A, b in (problem(5, 2)[:4], quaternion(5)):
        dQ, db = gm.sensitivity(M, A)
        base = gm.acceleration(M, Q, A, b)
        assert np.array_equal(dQ, dQ.T)
        # linear: a step of one is exact but for rounding
        for j in range(len(Q)):
            moved = gm.acceleration(M, Q + np.eye(len(Q))[j], A, b)
            np.testing.assert_allclose(dQ[:, j], moved - base, atol=1e4 * EPS)
        for k in range(len(b)):
            moved = gm.acceleration(M, Q, A, b + np.eye(len(b))[k])
            np.testing.assert_allclose(db[:, k], moved - base, atol=1e4 * EPS)


def test_zwang_and_gauss_function_differ_by_a_constant_and_have_the_same_minimum():
    M, Q, A, b, _ = problem(6, 3, seed=8)
    motion = gm.solve(M, Q, A, b)
    a = gm.free_acceleration(M, Q)
    assert gm.zwang(M, Q, motion.qdd) == pytest.approx(motion.zwang, rel=100 * EPS)
    assert gm.zwang(M, Q, motion.qdd, half=True) == pytest.approx(motion.zwang / 2, rel=100 * EPS)
    rng = np.random.default_rng(0)
    _, _, V = np.linalg.svd(A)
    for _ in range(20):
        y = motion.qdd + V[3:].T @ rng.standard_normal(3)
        assert gm.zwang(M, Q, y) > motion.zwang
        gap = gm.zwang(M, Q, y) - gm.gauss_function(M, Q, y)
        assert gap == pytest.approx(a @ M @ a, rel=1e4 * EPS)


def test_zwang_is_nan_where_the_free_acceleration_does_not_exist():
    M, A = np.diag([2.0, 0.0]), [[1, -1]]
    motion = gm.solve(M, [0, 3], A, [0])
    assert np.isnan(motion.zwang)
    assert motion.status is gm.Status.OK
    assert "undefined: Q not in the range of M" in repr(motion)
    assert np.isnan(gm.zwang(M, [0, 3], [1.5, 1.5]))
    assert gm.gauss_function(M, [0, 3], [1.5, 1.5]) == 2 * 1.5**2 - 2 * 3 * 1.5
    assert gm.solve(M, [3, 0], A, [0]).zwang < EPS**2 * 100


@pytest.mark.parametrize("foot", [0.0, np.sin(np.pi)])
def test_a_vanishing_row_has_no_effect_and_says_so(foot):
    motion = gm.solve(np.eye(2), [1, 2], [[foot, 0]], [0], row_scale=[1.0])
    assert motion.vanished.tolist() == [True]
    assert motion.multipliers.tolist() == [0.0]
    assert motion.rank == 0
    assert np.array_equal(motion.qdd, [1, 2])
    assert "row 0 is zero: no effect" in repr(motion)


def test_row_scale_separates_zero_rows_from_short_ones_at_rtol():
    for factor, zero in ((0.5, True), (2.0, False)):
        row = [[factor * 1e-6, 0.0]]
        motion = gm.solve(np.eye(2), [1, 2], row, [0], row_scale=[1.0], rtol=1e-6)
        assert motion.vanished.tolist() == [zero]


def test_rtol_decides_the_rank_on_both_sides():
    for angle, rank in ((0.9e-5, 1), (1.1e-5, 2)):
        A = [[1.0, 0.0], [np.cos(angle), np.sin(angle)]]
        assert gm.solve(np.eye(2), [1, 1], A, [0, 0], rtol=1e-5).rank == rank
        assert gm.independent_rows(A, rtol=1e-5).sum() == rank


def test_independent_rows_do_not_depend_on_the_units_of_anything():
    A = np.array([[1e9, 0, 0], [1e-9, 1e-9, 0], [5, 5e18, 0]])
    assert gm.independent_rows(A).sum() == 2
    assert gm.independent_rows(A, np.diag([1e-9, 1e12, 1.0])).sum() == 2
    assert gm.independent_rows(np.zeros((0, 3))).shape == (0,)
    assert gm.independent_rows(np.ones((4, 2, 3))).shape == (4, 2)


def test_free_acceleration_of_a_massless_coordinate_is_an_error_that_names_it():
    with pytest.raises(gm.IndeterminateMotionError, match="coordinate 1 has no mass"):
        gm.free_acceleration(np.diag([1.0, 0.0]), [1, 1])


def test_extreme_units_are_solved_or_refused_but_never_wrong():
    for scale in (1e-300, 1e-150, 1e150, 1e300):
        # masses and forces in the same odd unit: the motion is that of ordinary ones
        motion = gm.solve(np.diag([2.0, 1.0]) * scale, np.array([1.0, 2.0]) * scale, [[1, 1]], [0])
        np.testing.assert_allclose(motion.qdd, [-1 / 3, 1 / 3], rtol=8 * EPS)
        motion = gm.solve(np.diag([2.0, 1.0]), [1, 2], np.array([[1.0, 1.0]]) * scale, [0])
        np.testing.assert_allclose(motion.qdd, [-1 / 3, 1 / 3], rtol=8 * EPS)
    overflow = gm.solve(np.diag([1e-300]), [1e300], np.zeros((0, 1)), [], errors="status")
    assert overflow.status is gm.Status.NO_CONVERGENCE
    with pytest.raises(gm.GaussmechError, match="range of float64"):
        gm.solve(np.diag([1e-300]), [1e300], np.zeros((0, 1)), [])


def test_inputs_are_never_written_to():
    arrays = [x for x in problem(6, 3)]
    copies = [x.copy() for x in arrays]
    for x in arrays:
        x.flags.writeable = False
    gm.solve(*arrays)
    for x, y in zip(arrays, copies, strict=True):
        assert np.array_equal(x, y)


def test_outputs_of_different_fields_do_not_share_memory():
    motion = gm.solve(*problem(4, 2)[:4])
    motion.Q_c[:] = 0
    motion.multipliers[:] = 0
    assert motion.Q_ideal.any()
    assert motion.multipliers_total.any()


@pytest.mark.parametrize(
    ("option", "error", "text"),
    [
        ({"rtol": -1.0}, ValueError, "rtol is -1.0; expected a number from 0 to below 1, or None"),
        ({"rtol": np.nan}, ValueError, "rtol is nan"),
        ({"rtol": "small"}, TypeError, "rtol is 'small'"),
        ({"ctol": -1e-9}, ValueError, "ctol is -1e-09; expected a number that is not negative"),
        ({"ctol": None}, TypeError, "ctol is None"),
        ({"b_atol": np.nan}, ValueError, "b_atol is nan"),
        ({"inconsistent": "ignore"}, ValueError, "expected 'raise' or 'project'"),
        ({"indeterminate": True}, ValueError, "expected 'raise' or 'minimum_norm'"),
        ({"errors": "ignore"}, ValueError, "expected 'raise' or 'status'"),
        ({"outputs": ("qdd", "force")}, ValueError, "outputs has 'force'; expected names out of"),
        ({"names": {"row": ["a"]}}, ValueError, "names has the key 'row'"),
        ({"names": {"rows": ["a", "b"]}}, ValueError, "has 2 names; expected 1, one for each"),
        ({"names": ["a"]}, TypeError, "names is a list; expected a mapping"),
        ({"names": {"rows": "a"}}, TypeError, "is a string; expected a list"),
    ],
)
def test_a_wrong_option_is_refused_with_what_came_and_what_is_expected(option, error, text):
    with pytest.raises(error, match=re.escape(text)):
        gm.solve(np.eye(2), [1, 2], [[1, 1]], [0], **option)


def test_build_info_says_which_instructions_are_in_use():
    info = gm.build_info()
    assert info["cpu"] in info["cpu_levels"]
    assert info["cpu_levels"][0] == "plain"
    assert info["lanes"] in (2, 4, 8)
