"""The 32 laws that every answer obeys, as property tests: no law needs to know the answer.

`oracle` (exact fractions, plain NumPy) supplies null spaces, exact answers and the error that
float64 data allow; it shares no code with the product.

How the generators bound the conditioning
-----------------------------------------
`integers`: small whole numbers, so dependent rows and singular masses are exact. In coordinates
where the answer is easy, M is (B B.T + 1) for the bodies with mass and 0 for the k massless ones, A
is [X, L] with a unit triangular L (determinant 1) whose last columns hold the massless ones. A few
shears (determinant 1) and a permutation hide that structure; dependent rows are whole combinations
of the others. `floats`: M = U diag(s) U.T and A = V diag(t) W.T from orthogonal factors with chosen
singular values, so dependence and singularity are there only up to rounding. Both keep an example
only if cond(A), cond(H) (H = N.T M N) and the condition of M on its range are at most COND.
"""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import gaussmech as gm
import oracle
from gaussmech import ufuncs
from oracle import EPS, bounds, null_space

COND = 1e4
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

laws = settings(
    deadline=None,
    max_examples=60,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


# ------------------------------------------------------------------ systems


@dataclass
class System:
    M: np.ndarray
    Q: np.ndarray
    A: np.ndarray
    b: np.ndarray
    C: np.ndarray
    rank: int  # of A
    mass_rank: int  # of M

    @property
    def n(self):
        return len(self.Q)

    @property
    def m(self):
        return len(self.b)

    @property
    def N(self):
        return null_space(self.A, self.rank)

    def ideal(self):
        return replace(self, C=np.zeros(self.n))

    def force_only(self):
        """The problem of K alone: force C, nothing else."""
        return replace(self, Q=np.zeros(self.n), b=np.zeros(self.m))


def whole(shape, size):
    return arrays(np.int64, shape, elements=st.integers(-size, size), fill=st.nothing())


def well_conditioned(s):
    H = oracle.reduced_mass(s.M, s.A, s.rank)
    return (
        oracle.condition(s.A, s.rank) <= COND
        and oracle.condition(H, s.n - s.rank) <= COND
        and oracle.condition(s.M, s.mass_rank) <= COND
    )


@st.composite
def sizes(draw, n=None, m=None, regular=None, independent=None, square=False):
    """(n, m, rank of A, number of massless directions)."""
    n = draw(st.integers(1, 8)) if n is None else n
    rank = n if square else draw(st.integers(0, n if m is None else min(n, m)))
    if m is None:
        m = rank if square or independent else draw(st.integers(rank, max(rank, n + 2)))
    if m and not rank:
        m = m if draw(st.booleans()) else 0  # zero rows only: legal, and rare
    if regular is None:
        regular = draw(st.booleans())
    massless = 0 if regular else draw(st.integers(min(rank, 1), rank))
    return n, m, rank, massless


@st.composite
def integers(draw, n=None, m=None, regular=None, independent=None, square=False):
    fixed = n, m
    n, m, rank, massless = draw(sizes(n, m, regular, independent, square))
    if fixed[1] is not None:
        m = fixed[1]
    B = draw(whole((n - massless, n - massless), 2))
    M = np.zeros((n, n), dtype=np.int64)
    M[: n - massless, : n - massless] = B @ B.T + np.eye(n - massless, dtype=np.int64)
    L = np.tril(draw(whole((rank, rank), 1)), -1) + np.eye(rank, dtype=np.int64)
    A = np.hstack([draw(whole((rank, n - rank), 3)), L])
    for _ in range(draw(st.integers(0, 3)) if n > 1 else 0):
        i, j = draw(st.permutations(range(n)))[:2]
        shear = np.eye(n, dtype=np.int64)
        shear[i, j] = draw(st.sampled_from([-2, -1, 1, 2]))
        M, A = shear.T @ M @ shear, A @ shear
    order = draw(st.permutations(range(n)))
    M, A = M[np.ix_(order, order)], A[:, order]
    mixed = np.vstack([np.eye(rank, dtype=np.int64), draw(whole((m - rank, rank), 2))])
    mixed = mixed[draw(st.permutations(range(m)))]
    b = mixed @ draw(whole(rank, 9))
    Q, C = draw(whole(n, 20)), draw(whole(n, 9))
    system = System(
        *(np.asarray(x, dtype=float) for x in (M, Q, mixed @ A, b, C)), rank, n - massless
    )
    assume(well_conditioned(system))
    return system


@st.composite
def floats(draw, regular=None, independent=None, square=False):
    n, m, rank, massless = draw(sizes(None, None, regular, independent, square))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))

    def orthogonal(k):
        return np.linalg.qr(rng.standard_normal((k, k)))[0]

    def spread(k):
        return np.exp(rng.uniform(-1, 1, k) * draw(st.floats(0, np.log(COND) / 2)))

    U = orthogonal(n)[:, : n - massless]
    M = (U * spread(n - massless)) @ U.T
    A = (orthogonal(m)[:, :rank] * spread(rank)) @ orthogonal(n)[:rank]
    b = A @ rng.standard_normal(n)
    system = System(
        (M + M.T) / 2, rng.standard_normal(n), A, b, rng.standard_normal(n), rank, n - massless
    )
    assume(well_conditioned(system))
    return system


def systems(**kind):
    return integers(**kind) | floats(**kind)


# ------------------------------------------------------------------ comparing


def solve(s, **options):
    """The motion; every generated system has exactly one and a known rank."""
    motion = gm.solve(s.M, s.Q, s.A, s.b, s.C, **options)
    assert motion.status == gm.Status.OK
    assert motion.rank == s.rank
    assert motion.nullity == 0
    return motion


def allowed(s):
    return bounds(s.M, s.Q, s.A, s.b, s.C, rank=s.rank)


def assert_close(x, y, tolerance):
    x, y = np.asarray(x), np.asarray(y)
    assert x.shape == y.shape
    error = np.linalg.norm((x - y).ravel())
    assert error <= tolerance, f"{error:.3e} > {tolerance:.3e}\n{x}\n{y}"


def assert_same_bits(x, y):
    """Equal bit for bit; any NaN equals any NaN."""
    x, y = np.asarray(x), np.asarray(y)
    assert x.shape == y.shape
    assert x.dtype == y.dtype
    if x.dtype.kind == "f":
        nan = np.isnan(x)
        assert np.array_equal(nan, np.isnan(y))
        x, y = x[~nan].view(np.int64), y[~nan].view(np.int64)
    assert np.array_equal(x, y)


def rounding(*terms):
    """What adding up products of these sizes costs: FACTOR eps on each."""
    return oracle.FACTOR * EPS * sum(np.linalg.norm(t) for t in terms)


# ------------------------------------------------------------------ against the exact answer


@laws
@given(integers())
def test_every_field_of_the_motion_is_the_exact_answer_rounded(s):
    motion, answer = solve(s), oracle.exact(s.M, s.Q, s.A, s.b, s.C)
    total, ideal, extra = allowed(s), allowed(s.ideal()), allowed(s.force_only())
    assert answer.kind == "unique"
    assert_close(motion.qdd, answer.qdd, total.qdd)
    assert_close(motion.Q_c, answer.Q_c, total.Q_c)
    assert_close(motion.Q_ideal, answer.Q_ideal, ideal.Q_c)
    assert_close(motion.K, answer.K, extra.Q_c)
    assert_close(motion.multipliers, answer.multipliers, ideal.multipliers)
    assert_close(motion.multipliers_total, answer.multipliers_total, total.multipliers)
    assert np.array_equal(motion.vanished, answer.vanished)
    assert np.isnan(motion.zwang) == np.isnan(answer.zwang)
    if not np.isnan(answer.zwang):
        slack = oracle.zwang_bound(s.M, s.Q, answer.qdd, total.qdd, s.mass_rank)
        assert_close(motion.zwang, answer.zwang, slack)


@laws
@given(integers())
def test_without_C_the_two_sets_of_multipliers_and_of_forces_coincide(s):
    motion = gm.solve(s.M, s.Q, s.A, s.b)
    assert_same_bits(motion.multipliers_total, motion.multipliers)
    assert_same_bits(motion.Q_c, motion.Q_ideal)
    assert not motion.K.any()


@st.composite
def stiff_joints(draw):
    """Bodies in rigid groups that share one coordinate too many: M is made of blocks of ones, A
    sees only the sum of each group. dim W is known, and the diagonal of M is 1, so that the
    equilibrated metric is the plain one."""
    groups = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    sums = np.repeat(np.eye(len(groups)), groups, axis=1)
    A = draw(whole((draw(st.integers(0, len(groups))), len(groups)), 3)) @ sums
    return sums.T @ sums, A, sums, draw(whole(len(A), 9)).astype(float)


@laws
@given(stiff_joints(), st.data())
def test_kernel_common_to_M_and_A_gives_many_motions_or_none_and_Q_c_stays_unique(system, data):
    """Spec section 3, the table, and the minimum-norm answer on request."""
    M, A, sums, b = system
    n = len(M)
    rank = oracle.exact_rank(A)
    assume(oracle.exact(M, np.zeros(n), A, b).kind != "inconsistent")
    assume(oracle.condition(A, rank) <= COND)
    Q = sums.T @ data.draw(whole(len(sums), 9))
    if data.draw(st.booleans()):
        Q = Q + data.draw(whole(n, 3))
    answer = oracle.exact(M, Q, A, b)
    expected = {
        "unique": gm.Status.OK,
        "many": gm.Status.INDETERMINATE_MANY,
        "none": gm.Status.INDETERMINATE_NONE,
    }[answer.kind]
    plain = gm.solve(M, Q, A, b, errors="status")
    assert (plain.status, plain.rank, plain.nullity) == (expected, answer.rank, answer.nullity)
    shortest = gm.solve(M, Q, A, b, errors="status", indeterminate="minimum_norm")
    if answer.kind == "none":
        assert shortest.status == gm.Status.INDETERMINATE_NONE
        assert np.isnan(shortest.qdd).all()
        return
    # the range of M and the rows of A together are `sums`: there the problem is a regular one
    lift = np.linalg.pinv(sums)
    small = bounds(np.eye(len(sums)), lift.T @ Q, A @ lift, b, rank=rank)
    assert shortest.status == (gm.Status.MINIMUM_NORM if answer.nullity else gm.Status.OK)
    # and a rounding of Q off `sums` reaches qdd unmagnified: H is at least 1 where it is not 0
    assert_close(shortest.qdd, answer.qdd, n * (small.qdd + rounding(Q, answer.qdd)))
    assert_close(shortest.Q_c, answer.Q_c, n * (small.Q_c + rounding(Q, answer.Q_c)))


# ------------------------------------------------------------------ the 32


@laws
@given(systems())
def test_accelerations_satisfy_the_constraints(s):
    """Oracle 1: A qdd = b, and `residual` says how well."""
    motion = solve(s)
    assert_close(s.A @ motion.qdd, s.b, np.linalg.norm(s.A, 2) * allowed(s).qdd)
    terms = rounding(np.abs(s.A) @ np.abs(motion.qdd), s.b)
    assert_close(motion.residual, s.A @ motion.qdd - s.b, terms)


@laws
@given(systems())
def test_ideal_constraint_forces_do_no_virtual_work(s):
    """Oracle 2: N.T Q_c = 0 when C = 0."""
    s = s.ideal()
    assert_close(s.N.T @ solve(s).Q_c, np.zeros(s.n - s.rank), allowed(s).Q_c)


@laws
@given(systems())
def test_constraint_force_balances_the_equation_of_motion(s):
    """Oracle 3: M qdd = Q + Q_c, and Q_c is made of its two parts."""
    motion, error = solve(s), allowed(s)
    assert_close(s.M @ motion.qdd, s.Q + motion.Q_c, error.Q_c + np.linalg.norm(s.M, 2) * error.qdd)
    # total, ideal part and K may come from three solves, each with its own error
    parts = error.Q_c + allowed(s.ideal()).Q_c + allowed(s.force_only()).Q_c
    assert_close(motion.Q_c, motion.Q_ideal + motion.K, parts)
    error = allowed(s.ideal())
    assert_close(
        motion.Q_ideal,
        s.A.T @ motion.multipliers,
        error.Q_c + np.linalg.norm(s.A, 2) * error.multipliers,
    )


@laws
@given(systems())
def test_constraint_force_does_the_virtual_work_of_C(s):
    """Oracle 4: N.T (Q_c - C) = 0, and what is left is A.T multipliers_total."""
    motion, error = solve(s), allowed(s)
    assert_close(s.N.T @ (motion.Q_c - s.C), np.zeros(s.n - s.rank), error.Q_c)
    assert_close(
        motion.Q_c - s.C,
        s.A.T @ motion.multipliers_total,
        error.Q_c + np.linalg.norm(s.A, 2) * error.multipliers,
    )


@laws
@given(systems(), st.integers(0, 2**32 - 1))
def test_any_other_admissible_motion_is_worse_by_the_square_of_its_distance(s, seed):
    """Oracle 5: Z(qdd + N z) = Z(qdd) + |N z|_M^2; with Gauss's function for singular M as well."""
    s = s.ideal()
    motion, error = solve(s), allowed(s)
    z = np.random.default_rng(seed).standard_normal(s.n - s.rank)
    other = motion.qdd + s.N @ z
    gap = oracle.norm_M(s.M, s.N @ z) ** 2
    cross = 2 * np.linalg.norm(z) * error.Q_c  # 2 z.T N.T (M qdd - Q) would be 0
    sizes = [
        np.abs(x) @ np.abs(s.M) @ np.abs(x) + 2 * np.abs(s.Q) @ np.abs(x)
        for x in (motion.qdd, other)
    ]
    gamma = [gm.gauss_function(s.M, s.Q, x) for x in (motion.qdd, other)]
    assert_close(gamma[1], gamma[0] + gap, cross + rounding(*sizes) * s.n)
    if s.mass_rank == s.n:
        slack = sum(oracle.zwang_bound(s.M, s.Q, x, error.qdd, s.n) for x in (motion.qdd, other))
        Z = [gm.zwang(s.M, s.Q, x) for x in (motion.qdd, other)]
        assert_close(Z[1], Z[0] + gap, cross + slack)
        assert_close(Z[0], motion.zwang, slack)
        assert_same_bits(gm.zwang(s.M, s.Q, other, half=True), np.float64(Z[1]) / 2)


@laws
@given(systems(regular=True))
def test_constraints_that_the_free_motion_obeys_change_nothing(s):
    """Oracle 6: b = A a gives qdd = a and Q_c = 0."""
    a = np.linalg.solve(s.M, s.Q)
    s = replace(s.ideal(), b=s.A @ a)
    motion, error = solve(s), allowed(s)
    # a and A a are themselves rounded: cond(M) eps in a
    slack = rounding(a) * s.n * oracle.condition(s.M, s.n)
    assert_close(gm.free_acceleration(s.M, s.Q), a, slack)
    assert_close(motion.qdd, a, error.qdd + slack)
    assert_close(motion.Q_c, np.zeros(s.n), error.Q_c + np.linalg.norm(s.M, 2) * slack)


@laws
@given(systems(), st.floats(-1e3, 1e3).filter(lambda t: abs(t) > 1e-3))
def test_forces_and_targets_times_t_give_everything_times_t(s, t):
    """Oracle 7: homogeneity, of degree 2 for the Zwang."""
    one, error = solve(s), allowed(s)
    many = solve(replace(s, Q=t * s.Q, b=t * s.b, C=t * s.C))
    size = 2 * abs(t)
    assert_close(many.qdd, t * one.qdd, size * error.qdd)
    assert_close(many.Q_c, t * one.Q_c, size * error.Q_c)
    assert_close(many.multipliers_total, t * one.multipliers_total, size * error.multipliers)
    assert np.isnan(many.zwang) == np.isnan(one.zwang)
    if not np.isnan(one.zwang):
        slack = oracle.zwang_bound(s.M, s.Q, one.qdd, error.qdd, s.mass_rank)
        assert_close(many.zwang, t**2 * one.zwang, 2 * t**2 * slack)


@laws
@given(systems(), st.integers(0, 2**32 - 1))
def test_answers_to_two_loads_add_up(s, seed):
    """Oracle 8: superposition in (Q, b), and in C."""
    rng = np.random.default_rng(seed)
    second = replace(
        s, Q=rng.standard_normal(s.n), C=rng.standard_normal(s.n), b=s.A @ rng.standard_normal(s.n)
    )
    both = replace(s, Q=s.Q + second.Q, b=s.b + second.b, C=s.C + second.C)
    x, y, xy = solve(s), solve(second), solve(both)
    errors = [allowed(one) for one in (s, second, both)]
    assert_close(xy.qdd, x.qdd + y.qdd, sum(e.qdd for e in errors))
    assert_close(xy.Q_c, x.Q_c + y.Q_c, sum(e.Q_c for e in errors))
    assert_close(
        xy.multipliers_total,
        x.multipliers_total + y.multipliers_total,
        sum(e.multipliers for e in errors),
    )


@laws
@given(systems(), st.randoms(use_true_random=False))
def test_order_of_the_coordinates_does_not_matter(s, random):
    """Oracle 9: coordinate permutation."""
    p = random.sample(range(s.n), s.n)
    one, error = solve(s), allowed(s)
    two = solve(replace(s, M=s.M[np.ix_(p, p)], Q=s.Q[p], A=s.A[:, p], C=s.C[p]))
    assert_close(two.qdd, one.qdd[p], 2 * error.qdd)
    assert_close(two.Q_c, one.Q_c[p], 2 * error.Q_c)
    assert_close(two.multipliers_total, one.multipliers_total, 2 * error.multipliers)
    assert np.array_equal(two.multipliers_unique, one.multipliers_unique)
    assert np.isnan(two.zwang) == np.isnan(one.zwang)


@laws
@given(systems(), st.randoms(use_true_random=False))
def test_order_of_the_rows_does_not_matter(s, random):
    """Oracle 10: row permutation, multipliers and their mask go with the rows."""
    p = random.sample(range(s.m), s.m)
    one, error = solve(s), allowed(s)
    two = solve(replace(s, A=s.A[p], b=s.b[p]))
    assert_close(two.qdd, one.qdd, 2 * error.qdd)
    assert_close(two.Q_c, one.Q_c, 2 * error.Q_c)
    assert_close(two.multipliers_total, one.multipliers_total[p], 2 * error.multipliers)
    assert np.array_equal(two.multipliers_unique, one.multipliers_unique[p])


@st.composite
def invertible(draw, k):
    """Whole k x k matrix of determinant 1 or -1: unit lower times permutation times unit upper."""
    lower = np.tril(draw(whole((k, k), 1)), -1) + np.eye(k)
    upper = np.triu(draw(whole((k, k), 1)), 1) + np.eye(k)
    T = lower @ np.eye(k)[draw(st.permutations(range(k)))] @ upper
    assume(oracle.condition(T, k) <= 1e2)
    return T


@laws
@given(integers(), st.data())
def test_mixed_rows_ask_for_the_same_motion(s, data):
    """Oracle 11: A -> T A, b -> T b with regular T."""
    T = data.draw(invertible(s.m))
    mixed = replace(s, A=T @ s.A, b=T @ s.b)
    assume(well_conditioned(mixed))
    one, two, e1, e2 = solve(s), solve(mixed), allowed(s), allowed(mixed)
    assert_close(two.qdd, one.qdd, e1.qdd + e2.qdd)
    assert_close(two.Q_c, one.Q_c, e1.Q_c + e2.Q_c)
    if s.m == s.rank:
        assert_close(
            T.T @ two.multipliers_total,
            one.multipliers_total,
            e1.multipliers + np.linalg.norm(T, 2) * e2.multipliers,
        )


@laws
@given(integers(), st.data())
def test_other_coordinates_describe_the_same_motion(s, data):
    """Oracle 12: q = D q' gives qdd = D qdd' and Q_c' = D.T Q_c; multipliers stay."""
    D = data.draw(invertible(s.n))
    other = replace(s, M=D.T @ s.M @ D, Q=D.T @ s.Q, A=s.A @ D, C=D.T @ s.C)
    assume(well_conditioned(other))
    one, two, e1, e2 = solve(s), solve(other), allowed(s), allowed(other)
    size = np.linalg.norm(D, 2)
    assert_close(D @ two.qdd, one.qdd, e1.qdd + size * e2.qdd)
    assert_close(two.Q_c, D.T @ one.Q_c, e2.Q_c + size * e1.Q_c)
    assert_close(two.multipliers_total, one.multipliers_total, e1.multipliers + e2.multipliers)


@laws
@given(integers(), st.data())
def test_redundant_row_changes_neither_motion_nor_force(s, data):
    """Oracle 13: a combination of the rows, put in anywhere, is normal mechanics."""
    y = data.draw(whole(s.m, 2))
    at = data.draw(st.integers(0, s.m))
    more = replace(s, A=np.insert(s.A, at, y @ s.A, axis=0), b=np.insert(s.b, at, y @ s.b))
    assume(well_conditioned(more))
    one, two, e1, e2 = solve(s), solve(more), allowed(s), allowed(more)
    assert_close(two.qdd, one.qdd, e1.qdd + e2.qdd)
    assert_close(two.Q_c, one.Q_c, e1.Q_c + e2.Q_c)
    assert not two.multipliers_unique[at]


@laws
@given(systems(), st.floats(1e-3, 1e3))
def test_unit_of_mass_drops_out_of_the_accelerations(s, c):
    """Oracle 14: (cM, cQ, cC) gives the same qdd and c Q_c."""
    one, error = solve(s), allowed(s)
    two = solve(replace(s, M=c * s.M, Q=c * s.Q, C=c * s.C))
    assert_close(two.qdd, one.qdd, 2 * error.qdd)
    assert_close(two.Q_c, c * one.Q_c, 2 * c * error.Q_c)
    assert_close(two.multipliers_total, c * one.multipliers_total, 2 * c * error.multipliers)


@laws
@given(systems(), st.integers(0, 2**32 - 1))
def test_force_along_the_constraints_is_taken_up_by_them(s, seed):
    """Oracle 15: Q + A.T y gives the same qdd and Q_c - A.T y."""
    push = s.A.T @ np.random.default_rng(seed).standard_normal(s.m)
    pushed = replace(s, Q=s.Q + push)
    one, two, e1, e2 = solve(s), solve(pushed), allowed(s), allowed(pushed)
    # A.T y is rounded: N.T A.T y is not quite 0
    N_push = rounding(np.abs(push)) * np.sqrt(s.n)
    shift = (
        N_push / np.linalg.svd(oracle.reduced_mass(s.M, s.A, s.rank), compute_uv=False)[-1]
        if s.rank < s.n
        else 0.0
    )
    assert_close(two.qdd, one.qdd, e1.qdd + e2.qdd + shift)
    assert_close(two.Q_c, one.Q_c - push, e1.Q_c + e2.Q_c + N_push + np.linalg.norm(s.M, 2) * shift)


@laws
@given(integers(), st.data())
def test_mass_may_be_completed_along_the_constraints(s, data):
    """Oracle 16: M + A.T X + X.T A with Q + X.T b gives the same qdd."""
    X = data.draw(whole((s.m, s.n), 2)).astype(float)
    # Finsler: enough of A.T A in it and the sum is positive definite, because dim W = 0
    for weight in 4.0 ** np.arange(8):
        Y = X + weight * s.A
        M = s.M + s.A.T @ Y + Y.T @ s.A
        if not s.m or np.linalg.eigvalsh(M)[0] > 1e-2:
            break
    else:
        assume(False)
    other = replace(s, M=M, Q=s.Q + Y.T @ s.b, mass_rank=s.n if s.m else s.mass_rank)
    assume(well_conditioned(other))
    one, two, e1, e2 = solve(s), solve(other), allowed(s), allowed(other)
    assert_close(two.qdd, one.qdd, e1.qdd + e2.qdd)
    # M' qdd - Q' = Q_c + A.T Y qdd
    work = np.linalg.norm(s.A.T @ Y, 2) * e1.qdd
    assert_close(two.Q_c, one.Q_c + s.A.T @ (Y @ one.qdd), e1.Q_c + e2.Q_c + work)


@laws
@given(integers(), st.data())
def test_nonideal_part_along_the_constraints_has_no_effect(s, data):
    """Oracle 17: C in im A.T gives K = 0."""
    s = replace(s, C=s.A.T @ data.draw(whole(s.m, 9)))
    zero = np.zeros(s.n)
    error = allowed(s.force_only()).Q_c
    assert_close(gm.nonideal_force(s.M, s.A, s.C), zero, error)
    assert_close(solve(s).K, zero, error)
    assert_close(solve(s).qdd, solve(s.ideal()).qdd, allowed(s).qdd + allowed(s.ideal()).qdd)


@laws
@given(systems())
def test_nonideal_force_of_the_nonideal_force_is_itself(s):
    """Oracle 18: K(K) = K, and `solve` returns the same K."""
    K = gm.nonideal_force(s.M, s.A, s.C)
    first, second = allowed(s.force_only()), allowed(replace(s.force_only(), C=K))
    # K(.) maps an error of K no further than its own norm, |M N H^-1 N.T|
    P = s.M @ s.N @ np.linalg.solve(oracle.reduced_mass(s.M, s.A, s.rank), s.N.T)
    stretch = 1 + np.linalg.norm(P, 2)
    assert_close(gm.nonideal_force(s.M, s.A, K), K, second.Q_c + stretch * first.Q_c)
    assert_close(solve(s).K, K, 2 * first.Q_c)


@laws
@given(systems())
def test_motion_with_C_is_the_ideal_motion_under_Q_plus_C(s):
    """Oracle 19: same qdd, Q_c - C is the ideal force there, multipliers_total its multipliers."""
    motion = solve(s)
    ideal = solve(replace(s.ideal(), Q=s.Q + s.C))
    error = allowed(s)
    assert_close(motion.qdd, ideal.qdd, 2 * error.qdd)
    assert_close(motion.Q_c, ideal.Q_c + s.C, 2 * error.Q_c)
    assert_close(motion.multipliers_total, ideal.multipliers, 2 * error.multipliers)


@laws
@given(systems(regular=True))
def test_ideal_and_nonideal_part_are_orthogonal_in_the_inverse_mass(s):
    """Oracle 20: Q_ideal.T M^-1 K = 0 for regular M."""
    motion = solve(s)
    ideal, extra = allowed(s.ideal()).Q_c, allowed(s.force_only()).Q_c
    u, v = np.linalg.solve(s.M, motion.Q_ideal), np.linalg.solve(s.M, motion.K)
    # plus the solve with M of this test itself, backward stable: eps |M^-1| |M| |v|
    inverse = np.linalg.norm(np.linalg.inv(s.M), 2)
    own = rounding(motion.Q_ideal) * s.n * inverse * np.linalg.norm(s.M, 2) * np.linalg.norm(v)
    terms = ideal * np.linalg.norm(v) + extra * np.linalg.norm(u) + inverse * ideal * extra
    assert_close(motion.Q_ideal @ v, 0.0, terms + own)


@laws
@given(integers(regular=True), st.data())
def test_constraints_added_in_two_steps_obey_pythagoras(s, data):
    """Oracle 21: Z(x2) = Z(x1) + |x2 - x1|_M^2 for nested constraints."""
    first, second = nested(s, data)
    one, two = solve(first), solve(second)
    step = oracle.norm_M(s.M, two.qdd - one.qdd)
    apart = np.sqrt(np.linalg.norm(s.M, 2)) * (allowed(first).qdd + allowed(second).qdd)
    assert_close(
        two.zwang,
        one.zwang + step**2,
        zwang_slack(first, one) + zwang_slack(second, two) + 2 * step * apart + apart**2,
    )


@laws
@given(integers(regular=True), st.data())
def test_adding_rows_never_lowers_the_zwang(s, data):
    """Oracle 22."""
    first, second = nested(s, data)
    one, two = solve(first), solve(second)
    assert two.zwang >= one.zwang - zwang_slack(first, one) - zwang_slack(second, two)


def nested(s, data):
    """(some of the rows, all of the rows), ideal."""
    s = s.ideal()
    k = data.draw(st.integers(0, s.m))
    A = s.A[:k]
    part = replace(s, A=A, b=s.b[:k], rank=oracle.exact_rank(A) if k else 0)
    assume(well_conditioned(part))
    return part, s


def zwang_slack(s, motion):
    return oracle.zwang_bound(s.M, s.Q, motion.qdd, allowed(s).qdd, s.mass_rank)


@laws
@given(systems(), systems())
def test_systems_without_common_bodies_do_not_feel_each_other(s, t):
    """Oracle 23: block-diagonal input decouples."""

    def blocks(x, y):
        return np.block(
            [[x, np.zeros((x.shape[0], y.shape[1]))], [np.zeros((y.shape[0], x.shape[1])), y]]
        )

    joint = System(
        blocks(s.M, t.M),
        np.append(s.Q, t.Q),
        blocks(s.A, t.A),
        np.append(s.b, t.b),
        np.append(s.C, t.C),
        s.rank + t.rank,
        s.mass_rank + t.mass_rank,
    )
    one, two, both = solve(s), solve(t), solve(joint)
    e1, e2 = allowed(s), allowed(t)
    # reflections and least squares round relative to the joint system, hence its bound as well
    joined = allowed(joint)
    pairs = [("qdd", "qdd"), ("Q_c", "Q_c"), ("multipliers_total", "multipliers")]
    for name, kind in pairs:
        apart = np.append(getattr(one, name), getattr(two, name))
        error = getattr(joined, kind) + getattr(e1, kind) + getattr(e2, kind)
        assert_close(getattr(both, name), apart, error)
    unique = np.append(one.multipliers_unique, two.multipliers_unique)
    assert np.array_equal(both.multipliers_unique, unique)


@laws
@given(systems(square=True))
def test_as_many_independent_rows_as_coordinates_fix_the_motion(s):
    """Oracle 24: m = n gives qdd = A^-1 b, whatever the masses."""
    s = replace(s, M=s.M if s.mass_rank else np.zeros((s.n, s.n)))
    slack = rounding(
        np.abs(np.linalg.inv(s.A)) @ (np.abs(s.A) @ np.abs(np.linalg.solve(s.A, s.b)) + np.abs(s.b))
    )
    assert_close(solve(s).qdd, np.linalg.solve(s.A, s.b), allowed(s).qdd + slack)


@laws
@given(systems(), st.integers(0, 2**32 - 1))
def test_sensitivities_are_the_slopes_of_the_motion(s, seed):
    """Oracle 25: d qdd/dQ = N H^-1 N.T, symmetric positive semidefinite; d qdd/db."""
    by_force, by_target = gm.sensitivity(s.M, s.A)
    assert by_force.shape == (s.n, s.n)
    assert by_target.shape == (s.n, s.m)

    # each column is a motion: one bound for a unit force, one for a unit target in im A
    def column(Q, b):
        return bounds(s.M, Q, s.A, b, rank=s.rank).qdd

    force_errors = [column(e, np.zeros(s.m)) for e in np.eye(s.n)]
    projector = s.A @ oracle.pinv(s.A, s.rank)
    target_errors = [column(np.zeros(s.n), p) for p in projector.T]
    # and H^-1 of this test: cond(H) n eps
    H = oracle.reduced_mass(s.M, s.A, s.rank)
    expected = s.N @ np.linalg.solve(H, s.N.T)
    own = rounding(expected) * s.n * oracle.condition(H, s.n - s.rank)
    own *= oracle.condition(s.A, s.rank)  # N itself moves by eps cond(A)
    error = np.linalg.norm(force_errors)
    assert_close(by_force, expected, error + own)
    assert_close(by_force, by_force.T, 2 * error)
    assert np.linalg.eigvalsh((by_force + by_force.T) / 2)[0] >= -error

    rng = np.random.default_rng(seed)
    force, target = rng.standard_normal(s.n), s.A @ rng.standard_normal(s.n)
    load = replace(s.ideal(), Q=force, b=target)
    predicted = by_force @ force + by_target @ target
    # rounded targets leave im A by eps, which cond(A) |d qdd/db| may magnify
    stray = rounding(target) * np.linalg.norm(by_target) * oracle.condition(s.A, s.rank)
    assert_close(
        solve(load).qdd,
        predicted,
        allowed(load).qdd
        + error * np.linalg.norm(force)
        + np.linalg.norm(target_errors) * np.linalg.norm(target)
        + stray,
    )


@laws
@given(systems())
def test_five_formulations_agree(s):
    """Oracle 26: Udwadia-Kalaba, augmented mass, multipliers, null space, least squares."""
    motion, error = solve(s), allowed(s)
    inverse = oracle.pinv(s.A, s.rank)
    augmented = s.M + inverse @ s.A
    free = np.linalg.norm(np.linalg.solve(augmented, s.Q + s.C + inverse @ s.b))
    worst = oracle.condition(s.A, s.rank) * oracle.condition(augmented, s.n)
    for name, formulation in oracle.FORMULATIONS.items():
        if formulation is oracle.by_udwadia_kalaba:
            if s.mass_rank < s.n:
                continue
            worst = max(worst, oracle.condition(s.A, s.rank) * oracle.condition(s.M, s.n))
            free = max(free, np.linalg.norm(np.linalg.solve(s.M, s.Q + s.C)))
        # the textbook formulas lose cond(M) cond(A) against all that they add and subtract:
        # the free acceleration, the answer, and A+ b
        sizes = free + np.linalg.norm(motion.qdd) + np.linalg.norm(inverse @ s.b)
        slack = oracle.FACTOR * EPS * s.n * worst * sizes
        qdd = formulation(s.M, s.Q + s.C, s.A, s.b, s.rank)
        assert qdd.shape == (s.n,), name
        assert_close(motion.qdd, qdd, error.qdd + slack)
        assert_close(motion.Q_c, s.M @ qdd - s.Q, error.Q_c + np.linalg.norm(s.M, 2) * slack)


@laws
@given(integers(), st.sampled_from([0.25, 0.5, 1.0, 2.0, 3.0, -1.5]), st.data())
def test_augmented_mass_gives_the_same_answer_for_every_alpha(s, alpha, data):
    """Oracle 27: (M_A, Q_b) is what is printed, and Q_c' = Q_c, K_A = K; b may be inconsistent."""
    b = s.b
    consistent = s.rank == s.m or data.draw(st.booleans())
    if not consistent:
        b = b + data.draw(whole(s.m, 9))
    M_A, Q_b = gm.augment(s.M, s.Q, s.A, b, alpha)
    inverse = oracle.pinv(s.A, s.rank)
    # A+ A and A+ b: the pseudo-inverse is known to cond(A) n eps
    slack = oracle.FACTOR * EPS * s.n * oracle.condition(s.A, s.rank) * alpha**2
    assert_close(M_A, s.M + alpha**2 * inverse @ s.A, slack * s.n + rounding(s.M))
    pull = inverse @ b
    assert_close(
        Q_b,
        s.Q + alpha**2 * pull,
        slack * np.linalg.norm(inverse, 2) * np.linalg.norm(b) + rounding(s.Q),
    )
    np.linalg.cholesky(M_A)  # positive definite, as dim W = 0

    options = {"inconsistent": "project"}
    plain = gm.solve(s.M, s.Q, s.A, b, s.C, **options)
    other = gm.solve(M_A, Q_b, s.A, b, s.C, **options)
    assert plain.status == other.status
    s = replace(s, b=b if consistent else s.A @ (inverse @ b))
    e1, e2 = allowed(s), allowed(replace(s, M=M_A, Q=Q_b))
    # M_A, Q_b and (when inconsistent) the projected b carry the slack of above
    given_slack = (
        slack
        * np.linalg.norm(np.linalg.inv(M_A), 2)
        * (s.n * np.linalg.norm(plain.qdd) + np.linalg.norm(inverse, 2) * np.linalg.norm(b))
    )
    given_slack += 2 * slack * np.linalg.norm(inverse, 2) * np.linalg.norm(b) / alpha**2
    assert_close(other.qdd, plain.qdd, e1.qdd + e2.qdd + given_slack)
    reach = np.linalg.norm(M_A, 2) * given_slack
    assert_close(other.Q_c, plain.Q_c, e1.Q_c + e2.Q_c + reach)
    assert_close(
        gm.nonideal_force(M_A, s.A, s.C),
        gm.nonideal_force(s.M, s.A, s.C),
        e1.Q_c + e2.Q_c + reach + slack * s.n * np.linalg.norm(s.C),
    )


@laws
@given(integers(), st.data())
def test_projection_answers_contradictory_rows_by_least_squares(s, data):
    """Oracle 28: A qdd = A A+ b on request, an error that is not to be missed without."""
    b = s.b + data.draw(whole(s.m, 9))
    answer = oracle.exact(s.M, s.Q, s.A, b, s.C)
    projected = oracle.exact(s.M, s.Q, s.A, b, s.C, project=True)
    motion = gm.solve(s.M, s.Q, s.A, b, s.C, inconsistent="project")
    if answer.kind == "inconsistent":
        assert motion.status == gm.Status.PROJECTED
        with pytest.raises(gm.InconsistentConstraintsError):
            gm.solve(s.M, s.Q, s.A, b, s.C)
        verdict = gm.solve(s.M, s.Q, s.A, b, s.C, errors="status")
        assert verdict.status == gm.Status.INCONSISTENT
        assert np.isnan(verdict.qdd).all()
    else:
        assert motion.status == gm.Status.OK
    # the projected target is known to cond(A) n eps of |b|, and moves qdd by |d qdd/db| times that
    target = replace(s, b=s.A @ (oracle.pinv(s.A, s.rank) @ b))
    error = allowed(target)
    stray = rounding(b) * s.n * oracle.condition(s.A, s.rank)
    slope = np.linalg.norm(oracle_slope(s), 2)
    assert_close(
        s.A @ motion.qdd, target.b, np.linalg.norm(s.A, 2) * (error.qdd + slope * stray) + stray
    )
    assert_close(motion.qdd, projected.qdd, error.qdd + slope * stray)
    assert_close(motion.Q_c, projected.Q_c, error.Q_c + np.linalg.norm(s.M, 2) * slope * stray)
    assert_close(
        motion.residual,
        projected.residual,
        np.linalg.norm(s.A, 2) * (error.qdd + slope * stray) + stray,
    )


def oracle_slope(s):
    """d qdd/db = (1 - N H^-1 N.T M) A+."""
    inverse = oracle.pinv(s.A, s.rank)
    if s.rank == s.n:
        return inverse
    H = oracle.reduced_mass(s.M, s.A, s.rank)
    return inverse - s.N @ np.linalg.solve(H, s.N.T @ (s.M @ inverse))


@laws
@given(systems(), st.integers(0, 2**32 - 1))
def test_plastic_impact_loses_the_energy_of_the_lost_velocity(s, seed):
    """Oracle 29, Carnot: T- - T+ = 1/2 |v+ - v-|_M^2 when A v+ = 0; and Z is twice the loss."""
    before = np.random.default_rng(seed).standard_normal(s.n)
    hit = replace(s.ideal(), Q=np.zeros(s.n), b=-(s.A @ before))
    impact, error = solve(hit), allowed(hit)
    after = before + impact.qdd
    lost = (before @ s.M @ before - after @ s.M @ after) / 2
    kick = impact.qdd @ s.M @ impact.qdd / 2
    # lost - kick = -v+.T M dv = -v+.T A.T lambda: Q_c acting on the part of v+ that is not in ker A
    slip = np.linalg.norm(s.A, 2) * error.qdd + rounding(s.A @ before, np.abs(s.A) @ np.abs(before))
    lift = np.linalg.norm(oracle.pinv(s.A, s.rank), 2) if s.rank else 0.0
    tolerance = np.linalg.norm(after) * (error.Q_c + np.linalg.norm(s.M, 2) * error.qdd)
    tolerance += np.linalg.norm(impact.Q_c) * lift * slip
    speeds = before, after, impact.qdd
    tolerance += rounding(*(np.abs(v) @ np.abs(s.M) @ np.abs(v) for v in speeds))
    assert_close(lost, kick, tolerance)
    assert lost >= -tolerance
    # Q = 0 is in the range of every M, so Z always exists
    assert_close(impact.zwang / 2, kick, zwang_slack(hit, impact) + tolerance)


@laws
@given(integers(), st.data())
def test_powers_of_two_as_units_change_no_bit(s, data):
    """Oracle 30: rows and coordinates times powers of two, masses times a power of four."""

    def exponents(k):
        return data.draw(arrays(np.int64, k, elements=st.integers(-20, 20), fill=st.nothing()))

    rows, D = 2.0 ** exponents(s.m), 2.0 ** exponents(s.n)
    mass = 4.0 ** data.draw(st.integers(-20, 20))
    by_units = replace(
        s, M=mass * s.M, Q=mass * s.Q, C=mass * s.C, A=rows[:, None] * s.A, b=rows * s.b
    )
    by_all = replace(
        by_units,
        M=D[:, None] * by_units.M * D,
        Q=D * by_units.Q,
        C=D * by_units.C,
        A=by_units.A * D,
    )
    plain = solve(s)
    for scaled in (by_units, by_all):
        motion = solve(scaled)
        assert motion.rank == plain.rank
        assert motion.nullity == plain.nullity
        assert_same_bits(motion.multipliers_unique, plain.multipliers_unique)
        assert_same_bits(motion.vanished, plain.vanished)
        kept = gm.independent_rows(scaled.A, scaled.M)
        assert_same_bits(kept, gm.independent_rows(s.A, s.M))
    # the answer itself: bits under units of rows and masses. Units of single coordinates look like
    # mass ratios, which may turn on the refinement step; then it is the same answer to rounding
    if has_scale(s.M, s.A).all():
        error = allowed(s)
        assert_same_bits(solve(by_units).qdd, plain.qdd)
        assert_same_bits(solve(by_units).Q_c / mass, plain.Q_c)
        assert_close(D * solve(by_all).qdd, plain.qdd, 2 * error.qdd)
        assert_close(solve(by_all).Q_c / (mass * D), plain.Q_c, 2 * error.Q_c)


def has_scale(M, A):
    """Coordinates with mass, or linked to one by rows: the unit of any other is anybody's guess."""
    known = np.diag(M) > 0
    for _ in range(len(M)):
        linked = (A[:, known] != 0).any(axis=1)
        known = known | (A[linked] != 0).any(axis=0)
    return known


@laws
@given(integers())
def test_multipliers_unique_marks_exactly_the_rows_outside_the_span_of_the_others(s):
    """Oracle 31."""
    answer = oracle.exact(s.M, s.Q, s.A, s.b)
    assert np.array_equal(solve(s).multipliers_unique, answer.multipliers_unique)
    for k in range(s.m):
        others = np.delete(s.A, k, axis=0)
        alone = s.m == 1 or oracle.exact_rank(others) < s.rank
        assert answer.multipliers_unique[k] == (alone and s.A[k].any())
    # a long and a short copy of one row are both not unique
    if s.m:
        twice = replace(s, A=np.vstack([s.A, 2.0**30 * s.A[0]]), b=np.append(s.b, 2.0**30 * s.b[0]))
        unique = solve(twice).multipliers_unique
        assert not unique[0]
        assert not unique[-1]


FAULTS = {
    "fine": gm.Status.OK,
    "nan": gm.Status.NONFINITE,
    "inf": gm.Status.NONFINITE,
    "asymmetric": gm.Status.ASYMMETRIC,
    "indefinite": gm.Status.INDEFINITE,
    "inconsistent": gm.Status.INCONSISTENT,
    "many": gm.Status.INDETERMINATE_MANY,
    "none": gm.Status.INDETERMINATE_NONE,
}


def broken(s, fault):
    """The system with one fault, or the nearest one that its size allows."""
    s = replace(s, **{k: getattr(s, k).copy() for k in ("M", "Q", "A", "b", "C")})
    if (fault == "asymmetric" and s.n == 1) or (fault == "inconsistent" and s.m == 0):
        fault = "fine"
    if fault == "nan":
        s.Q[-1] = np.nan
    elif fault == "inf":
        s.M[0, 0] = np.inf
    elif fault == "asymmetric":
        s.M += np.diag(np.full(s.n, 8.0))
        s.M[0, -1] += 1.0
    elif fault == "indefinite":
        s.M[0, 0] = -1.0
    elif fault == "inconsistent":
        s.M += np.eye(s.n)  # a row less must not set a massless body free
        s.A[-1], s.b[-1] = 0.0, 1.0
    elif fault in ("many", "none"):
        s.M[0], s.M[:, 0], s.A[:, 0] = 0.0, 0.0, 0.0
        s.b[:] = s.Q[:] = s.C[:] = 0.0
        s.Q[0] = float(fault == "none")
    return s, FAULTS[fault]


@st.composite
def batches(draw):
    n = draw(st.integers(1, 5))
    m = draw(st.integers(0, n + 2))
    kinds = draw(st.lists(st.sampled_from(list(FAULTS)), min_size=1, max_size=9))
    items = [broken(draw(integers(n=n, m=m)), kind) for kind in kinds]
    return [s for s, _ in items], [status for _, status in items]


@laws
@given(batches(), st.sampled_from(["raise", "project"]), st.sampled_from(["raise", "minimum_norm"]))
def test_batch_gives_the_bits_and_statuses_of_a_loop(batch, inconsistent, indeterminate):
    """Oracle 32, with failing systems among the good ones."""
    items, expected = batch
    options = {"inconsistent": inconsistent, "indeterminate": indeterminate, "errors": "status"}
    together = gm.solve(*(np.stack([getattr(s, k) for s in items]) for k in "MQAbC"), **options)
    if inconsistent == "project":
        expected = [gm.Status.PROJECTED if e == gm.Status.INCONSISTENT else e for e in expected]
    if indeterminate == "minimum_norm":
        expected = [
            gm.Status.MINIMUM_NORM if e == gm.Status.INDETERMINATE_MANY else e for e in expected
        ]
    assert list(together.status) == expected
    for i, s in enumerate(items):
        alone = gm.solve(s.M, s.Q, s.A, s.b, s.C, **options)
        for name in FIELDS:
            of_batch = np.asarray(getattr(together, name))[i]
            of_loop = np.asarray(getattr(alone, name), dtype=of_batch.dtype)
            assert_same_bits(of_batch, of_loop)
        if alone.status < 0:
            assert np.isnan(alone.qdd).all()
            assert np.isnan(alone.zwang)
            assert not alone.multipliers_unique.any()


@laws
@given(batches(), st.sampled_from([0, 1, 2, 3]))
def test_raw_gufuncs_give_the_bits_of_the_checked_functions(batch, flags):
    """`gaussmech.ufuncs`: same core, same bits, status last."""
    items, _ = batch
    M, Q, A, b, C = (np.stack([getattr(s, k) for s in items]) for k in "MQAbC")
    options = {
        "inconsistent": "project" if flags & 1 else "raise",
        "indeterminate": "minimum_norm" if flags & 2 else "raise",
        "errors": "status",
    }
    operands = (np.zeros(A.shape[-2]), np.nan, 1e-9, 0.0, flags)
    raw = ufuncs.gauss(M, Q, A, b, C, *operands)
    motion = gm.solve(M, Q, A, b, C, **options)
    assert len(raw) == len(FIELDS)
    assert raw[-1].dtype == np.int8
    for name, value in zip(FIELDS, raw, strict=True):
        checked = np.asarray(getattr(motion, name))
        assert_same_bits(checked, np.asarray(value).astype(checked.dtype))
    for ufunc, name in [(ufuncs.acceleration, "qdd"), (ufuncs.constraint_force, "Q_c")]:
        value, status = ufunc(M, Q, A, b, C, *operands)
        assert_same_bits(value, getattr(motion, name))
        assert_same_bits(status, np.asarray(motion.status))
    assert_same_bits(gm.acceleration(M, Q, A, b, C, **options), motion.qdd)
    assert_same_bits(gm.constraint_force(M, Q, A, b, C, **options), motion.Q_c)


@laws
@given(integers(), st.sampled_from([0.5, 1.0, 3.0]))
def test_raw_gufuncs_of_the_parts_give_the_bits_of_the_checked_functions(s, alpha):
    """`nonideal_force`, `augment` and `independent_rows` beside their raw gufuncs."""
    K, status = ufuncs.nonideal_force(s.M, s.A, s.C, np.nan)
    assert status == 0
    assert_same_bits(K, gm.nonideal_force(s.M, s.A, s.C))
    M_A, Q_b, status = ufuncs.augment(s.M, s.Q, s.A, s.b, alpha, np.nan)
    assert status == 0
    checked = gm.augment(s.M, s.Q, s.A, s.b, alpha)
    assert_same_bits(M_A, checked[0])
    assert_same_bits(Q_b, checked[1])
    mask, status = ufuncs.independent_rows(s.A, s.M, np.nan)
    assert status == 0
    assert_same_bits(mask, gm.independent_rows(s.A, s.M))
    assert mask.sum() == s.rank
