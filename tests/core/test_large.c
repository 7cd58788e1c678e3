/* gm_large.c and the LAPACK calls of the dense factorisations: the same answers as the
 * own loops, from GM_LAPACK_MIN coordinates on and never below.
 *
 * Usage: test_large LIBRARY PREFIX SUFFIX, a shared library with 32-bit LAPACK whose
 * symbols are PREFIX name SUFFIX. */
#include "check.h"

#include <dlfcn.h>

#include "gm_dense.h"
#include "gm_lanes.h"
#include "gm_large.h"
#include "problems.h"

static gm_lapack lapack;

static int
load(const char *library, const char *prefix, const char *suffix)
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL), *found;
    char name[100];
    int complete = 1;

    if (handle == NULL) {
        say("%s\n", dlerror());
        return 0;
    }
#define FETCH(routine, args)                                                           \
    (void)snprintf(name, sizeof name, "%s" #routine "%s", prefix, suffix);             \
    found = dlsym(handle, name);                                                       \
    complete = complete && found != NULL;                                              \
    memcpy(&lapack.routine, &found, sizeof found);
    GM_LAPACK_ROUTINES(FETCH)
    GM_BLAS_ROUTINES(FETCH)
#undef FETCH
    return complete;
}

static const int large_sizes[] = {GM_LAPACK_MIN - 1, GM_LAPACK_MIN, 120};

/* --- a table that counts its calls and hands them on --- */

static int calls_dpotrf, calls_dgeqrf, calls_dgeqp3, calls_dormqr, calls_dgemm;
static int calls_dsyrk, calls_dtrsm, calls_dgemv, calls_dtrsv;

static void
count_dpotrf(char *uplo, int *n, double *a, int *lda, int *info)
{
    calls_dpotrf++;
    lapack.dpotrf(uplo, n, a, lda, info);
}

static void
count_dgeqrf(int *m, int *n, double *a, int *lda, double *tau, double *work, int *lwork,
             int *info)
{
    calls_dgeqrf++;
    lapack.dgeqrf(m, n, a, lda, tau, work, lwork, info);
    CHECK(*info == 0);
}

static void
count_dgeqp3(int *m, int *n, double *a, int *lda, int *jpvt, double *tau, double *work,
             int *lwork, int *info)
{
    calls_dgeqp3++;
    lapack.dgeqp3(m, n, a, lda, jpvt, tau, work, lwork, info);
    CHECK(*info == 0);
}

static void
count_dormqr(char *side, char *trans, int *m, int *n, int *k, double *a, int *lda,
             double *tau, double *c, int *ldc, double *work, int *lwork, int *info)
{
    calls_dormqr++;
    lapack.dormqr(side, trans, m, n, k, a, lda, tau, c, ldc, work, lwork, info);
    CHECK(*info == 0);
}

static void
count_dgemm(char *ta, char *tb, int *m, int *n, int *k, double *alpha, double *a,
            int *lda, double *b, int *ldb, double *beta, double *c, int *ldc)
{
    calls_dgemm++;
    lapack.dgemm(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

static void
count_dsyrk(char *uplo, char *trans, int *n, int *k, double *alpha, double *a, int *lda,
            double *beta, double *c, int *ldc)
{
    calls_dsyrk++;
    lapack.dsyrk(uplo, trans, n, k, alpha, a, lda, beta, c, ldc);
}

static void
count_dtrsm(char *side, char *uplo, char *ta, char *diag, int *m, int *n, double *alpha,
            double *a, int *lda, double *b, int *ldb)
{
    calls_dtrsm++;
    lapack.dtrsm(side, uplo, ta, diag, m, n, alpha, a, lda, b, ldb);
}

static void
count_dgemv(char *trans, int *m, int *n, double *alpha, double *a, int *lda, double *x,
            int *incx, double *beta, double *y, int *incy)
{
    calls_dgemv++;
    lapack.dgemv(trans, m, n, alpha, a, lda, x, incx, beta, y, incy);
}

static void
count_dtrsv(char *uplo, char *trans, char *diag, int *n, double *a, int *lda, double *x,
            int *incx)
{
    calls_dtrsv++;
    lapack.dtrsv(uplo, trans, diag, n, a, lda, x, incx);
}

static const gm_lapack counting = {
    count_dpotrf, count_dgeqrf, count_dgeqp3, count_dormqr, count_dgemm,
    count_dsyrk,  count_dtrsm,  count_dgemv,  count_dtrsv};

static int
all_calls(void)
{
    return calls_dpotrf + calls_dgeqrf + calls_dgeqp3 + calls_dormqr + calls_dgemm +
           calls_dsyrk + calls_dtrsm + calls_dgemv + calls_dtrsv;
}

static void
forget_calls(void)
{
    calls_dpotrf = calls_dgeqrf = calls_dgeqp3 = calls_dormqr = calls_dgemm = 0;
    calls_dsyrk = calls_dtrsm = calls_dgemv = calls_dtrsv = 0;
}

/* --- the dense factorisations --- */

/* |x - y| at most, relative to the largest |y| */
static double
worst_gap(size_t n, const double *x, const double *y)
{
    double gap = 0.0, size = 0.0;
    for (size_t e = 0; e < n; e++) {
        gap = fmax(gap, fabs(x[e] - y[e]));
        size = fmax(size, fabs(y[e]));
    }
    return size > 0.0 ? gap / size : gap;
}

/* M and A of a well conditioned system; M (n, n) below 1e3, rows likewise */
static systems
some_system(int kind, int n, int m, int with_C)
{
    systems s = systems_new(n, m, 1, with_C);
    make_system(kind, &s, 0);
    return s;
}

static void
test_cholesky_by_lapack_is_that_of_the_loops(void)
{
    for (int t = 0; t < LENGTH(large_sizes); t++) {
        int n = large_sizes[t];
        size_t N = (size_t)n, count = N * N;
        systems s = some_system(ROUND, n, 0, 0);
        double *X = guarded(count), *Y = copy_of(count, s.M);

        check_note("n = %d", n);
        memcpy(X, s.M, count * sizeof *X);
        forget_calls();
        double one = gm_cholesky(&counting, n, X, 1e-6);
        CHECK(calls_dpotrf == (n >= GM_LAPACK_MIN));
        double two = gm_cholesky(NULL, n, Y, 1e-6);
        CHECK(guards_hold(X, count));
        for (int i = 0; i < n; i++) {
            for (int j = i + 1; j < n; j++) {
                AT(X, n, i, j) = AT(Y, n, i, j) = 0.0; /* not part of the factor */
            }
        }
        /* n eps times the condition, below 1e3 */
        CHECK_BELOW(worst_gap(count, X, Y), n * 1e3 * EPS);
        CHECK_BELOW(fabs(one - two), n * 1e3 * EPS * two);

        check_note("n = %d, indefinite, and not above the tolerance", n);
        memcpy(X, s.M, count * sizeof *X);
        AT(X, n, n - 1, n - 1) *= -1.0;
        CHECK(!(gm_cholesky(&counting, n, X, 0.0) > 0.0));
        memcpy(X, s.M, count * sizeof *X);
        CHECK(!(gm_cholesky(&counting, n, X, 2.0 * two) > 2.0 * two));
        memcpy(X, s.M, count * sizeof *X);
        AT(X, n, n / 2, n / 3) = NAN;
        CHECK(!(gm_cholesky(&counting, n, X, 0.0) > 0.0));
        free_guarded(X);
        free(Y);
        systems_free(&s);
    }
}

/* rows of A (m, n) as the factor gives them back */
static double
rows_gap(int n, int m, int rank, const double *B, const double *tau, const int *perm,
         const double *A)
{
    double gap = 0.0, *x = doubles((size_t)n);
    for (int j = 0; j < m; j++) {
        for (int i = 0; i < n; i++) {
            x[i] = j >= rank || i <= j ? AT(B, n, j, i) : 0.0;
        }
        gm_orth_q(n, rank, B, tau, x);
        gap = fmax(gap, worst_gap((size_t)n, x, &AT(A, n, perm[j], 0)));
    }
    free(x);
    return gap;
}

static void
test_pivoted_rows_by_lapack_have_the_rank_and_the_span_of_the_loops(void)
{
    for (int t = 0; t < LENGTH(large_sizes); t++) {
        int n = large_sizes[t], rows[] = {1, 7, n / 2, n, n + 3};
        for (int u = 0; u < LENGTH(rows); u++) {
            int m = rows[u], most = m < n ? m : n;
            size_t size = (size_t)n * (size_t)m, R = (size_t)most;
            systems s = some_system(m > 1 ? DEPENDENT : ROUND, n, m, 0);
            double *X = guarded(size), *Y = copy_of(size, s.A);
            double *tau = guarded(R), *own = doubles(R);
            double *work = guarded(64 * (size_t)(n + m));
            int *perm = need(malloc((size_t)m * sizeof *perm));
            int *other = need(malloc((size_t)m * sizeof *other));

            check_note("n = %d, m = %d", n, m);
            for (int k = 0; k < m; k++) {
                /* unit rows, as the core passes them */
                double length = gm_norm(n, &AT(s.A, n, k, 0));
                for (int i = 0; i < n; i++) {
                    AT(s.A, n, k, i) /= length;
                }
            }
            memcpy(X, s.A, size * sizeof *X);
            memcpy(Y, s.A, size * sizeof *Y);
            forget_calls();
            int rank = gm_orth_rows(&counting, n, m, X, 1e-12, perm, tau, work);
            CHECK(calls_dgeqp3 == (n >= GM_LAPACK_MIN));
            CHECK(guards_hold(X, size) && guards_hold(tau, R));
            CHECK(guards_hold(work, 64 * (size_t)(n + m)));
            CHECK(rank == gm_orth_rows(NULL, n, m, Y, 1e-12, other, own, work));
            CHECK(rank == (m > 1 && m <= n ? m - 1 : most));
            CHECK_BELOW(rows_gap(n, m, rank, Y, own, other, s.A), 8.0 * n * EPS * 10.0);
            if (rank == most) {
                CHECK_BELOW(rows_gap(n, m, rank, X, tau, perm, s.A),
                            8.0 * n * EPS * 10.0);
            } else {
                /* LAPACK goes on past the rank: rows beyond it keep their components
                 * along the accepted ones in front, and only rounding behind */
                for (int j = 0; j < rank; j++) {
                    CHECK(fabs(AT(X, n, j, j)) > 1e-12);
                }
                CHECK(!(fabs(AT(X, n, rank, rank)) > 1e-12));
                CHECK_BELOW(rows_gap(n, rank, rank, X, tau, perm, s.A),
                            8.0 * n * EPS * 10.0);
                double *x = doubles((size_t)n);
                for (int j = rank; j < m; j++) {
                    for (int i = 0; i < n; i++) {
                        x[i] = i < rank ? AT(X, n, j, i) : 0.0;
                    }
                    gm_orth_q(n, rank, X, tau, x);
                    CHECK_BELOW(worst_gap((size_t)n, x, &AT(s.A, n, perm[j], 0)),
                                8.0 * n * EPS * 10.0);
                }
                free(x);
            }

            /* kernel of the accepted rows */
            if (rank < n) {
                int left = n - rank;
                size_t Zs = (size_t)left * (size_t)n;
                double *Z = guarded(Zs), *Zx = doubles(Zs);
                forget_calls();
                gm_orth_kernel(&counting, n, rank, X, tau, Z, work);
                CHECK(calls_dormqr == (n >= GM_LAPACK_MIN));
                CHECK(guards_hold(Z, Zs));
                gm_orth_kernel(NULL, n, rank, X, tau, Zx, work);
                CHECK_BELOW(worst_gap(Zs, Z, Zx), 8.0 * n * EPS * 10.0);
                free_guarded(Z);
                free(Zx);
            }
            free_guarded(X);
            free(Y);
            free_guarded(tau);
            free(own);
            free_guarded(work);
            free(perm);
            free(other);
            systems_free(&s);
        }
    }
}

static void
test_the_rank_by_lapack_changes_at_rtol(void)
{
    int n = GM_LAPACK_MIN;
    double rtol = 1e-9;
    for (int side = 0; side < 2; side++) {
        size_t N = (size_t)n;
        double *B = doubles(2 * N), tau[2], *work = doubles(64 * (N + 2));
        double sine = rtol * (side ? 1.0 + 1e-6 : 1.0 - 1e-6);
        int perm[2];
        check_note("side %d", side);
        gm_zero(2 * N, B);
        AT(B, n, 0, 3) = 0.5;
        AT(B, n, 0, n - 1) = sine;
        AT(B, n, 1, 3) = 1.0;
        /* LAPACK's own rounding is eps of the rows, 2e-7 of rtol */
        CHECK(gm_orth_rows(&lapack, n, 2, B, rtol, perm, tau, work) == 1 + side);
        CHECK(perm[0] == 1 && perm[1] == 0);
        free(B);
        free(work);
    }
}

static void
test_products_by_lapack_are_those_of_the_loops(void)
{
    int from = GM_LAPACK_MIN;
    int shapes[][3] = {{from - 1, 5, from - 1}, {from, 5, 7}, {3, 4, from},
                       {120, 97, 33}, {from, 1, 1}, {from, 0, 5}, {0, 5, from},
                       {from, 4, 0}};
    for (int t = 0; t < LENGTH(shapes); t++) {
        int p = shapes[t][0], q = shapes[t][1], k = shapes[t][2];
        size_t size = (size_t)p * (size_t)q;
        for (int y_t = 0; y_t < 2; y_t++) {
            double *X = doubles((size_t)(p * k)), *Y = doubles((size_t)(k * q));
            double *one = guarded(size), *two = doubles(size);
            check_note("p = %d, q = %d, k = %d, transposed %d", p, q, k, y_t);
            fill_uniform((size_t)(p * k), X);
            fill_uniform((size_t)(k * q), Y);
            forget_calls();
            gm_matmul(&counting, p, q, k, X, Y, y_t, one);
            CHECK(calls_dgemm == (size > 0 && (p >= from || k >= from)));
            gm_matmul(NULL, p, q, k, X, Y, y_t, two);
            CHECK(guards_hold(one, size));
            CHECK_BELOW(worst_gap(size, one, two), (k + 1) * EPS * k);
            free(X);
            free(Y);
            free_guarded(one);
            free(two);
        }
    }
}

/* --- the steps of the fast path --- */

static void
test_the_steps_of_a_large_system_do_what_their_headers_say(void)
{
    for (int t = 0; t < LENGTH(large_sizes); t++) {
        int n = large_sizes[t], m = n / 2;
        size_t N = (size_t)n, K = (size_t)m;
        systems s = some_system(ROUND, n, m, 0);
        double *L = guarded(N * N), *x = guarded(N);
        double *y = doubles(N), *B = guarded(K * N), *KK = guarded(N * N);
        double *tau = guarded(K), *work = guarded(K * K), *r = guarded(K);

        check_note("n = %d, factor", n);
        double least = gm_large_cholesky(&lapack, n, s.M, 1e-6, L);
        CHECK(guards_hold(L, N * N));
        double *own = copy_of(N * N, s.M), smallest = gm_cholesky(NULL, n, own, 1e-6);
        CHECK_BELOW(fabs(least - smallest), n * 1e3 * EPS * smallest);
        for (int i = 0; i < n; i++) {
            for (int j = 0; j <= i; j++) {
                CHECK_BELOW(fabs(AT(L, n, i, j) - AT(own, n, i, j)), n * 1e3 * EPS);
            }
        }
        check_note("n = %d, refusals", n);
        CHECK(gm_large_cholesky(&lapack, n, s.M, 2.0 * smallest, L) == 0.0);
        AT(s.M, n, n - 1, n - 1) *= -1.0;
        CHECK(gm_large_cholesky(&lapack, n, s.M, 1e-6, L) == 0.0);
        AT(s.M, n, n - 1, n - 1) *= -1.0;
        AT(s.M, n, 5, 5) = NAN;
        CHECK(gm_large_cholesky(&lapack, n, s.M, 1e-6, L) == 0.0);
        make_system(ROUND, &s, 0);
        memcpy(L, s.M, N * N * sizeof *L); /* in place */
        CHECK(gm_large_cholesky(&lapack, n, L, 1e-6, L) > 1e-6);

        check_note("n = %d, triangular solves", n);
        for (int transposed = 0; transposed < 2; transposed++) {
            fill_uniform(N, y);
            memcpy(x, y, N * sizeof *x);
            gm_large_solve(&lapack, n, L, transposed, x);
            (transposed ? gm_solve_lower_t : gm_solve_lower)(n, n, L, y);
            CHECK(guards_hold(x, N));
            CHECK_BELOW(worst_gap(N, x, y), n * 1e2 * EPS); /* cond L below 1e2 */
        }

        check_note("n = %d, augmented matrix", n);
        for (int rows = 0; rows <= m; rows += m) {
            gm_large_augment(&lapack, n, rows, s.M, s.A, KK);
            CHECK(guards_hold(KK, N * N));
            for (int i = 0; i < n; i++) {
                for (int j = 0; j <= i; j++) {
                    long double sum = AT(s.M, n, i, j);
                    for (int k = 0; k < rows; k++) {
                        sum += (long double)AT(s.A, n, k, i) * AT(s.A, n, k, j);
                    }
                    CHECK_BELOW(fabs((double)(AT(KK, n, i, j) - sum)), n * EPS * 4.0);
                }
            }
        }

        check_note("n = %d, whitened and orthogonalised rows", n);
        memcpy(B, s.A, K * N * sizeof *B);
        gm_large_whiten(&lapack, n, m, L, B);
        gm_large_whiten(&lapack, n, 0, L, B); /* no rows: nothing happens */
        CHECK(guards_hold(B, K * N));
        for (int k = 0; k < m; k++) {
            memcpy(y, &AT(s.A, n, k, 0), N * sizeof *y);
            gm_solve_lower(n, n, L, y);
            CHECK_BELOW(worst_gap(N, &AT(B, n, k, 0), y), n * 1e2 * EPS);
        }
        double *white = copy_of(K * N, B);
        int *perm = need(malloc(K * sizeof *perm));
        for (int k = 0; k < m; k++) {
            perm[k] = k;
        }
        gm_large_orth(&lapack, n, m, 0, B, tau, work);
        gm_large_orth(&lapack, n, 0, 0, B, tau, work);
        CHECK(guards_hold(B, K * N) && guards_hold(tau, K) && guards_hold(work, K * K));
        CHECK_BELOW(rows_gap(n, m, m, B, tau, perm, white), 8.0 * n * EPS * 10.0);

        /* rows behind the factorised ones are only turned */
        memcpy(B, white, K * N * sizeof *B);
        gm_large_orth(&lapack, n, m - 2, 2, B, tau, work);
        for (int k = m - 2; k < m; k++) {
            memcpy(y, &AT(B, n, k, 0), N * sizeof *y);
            gm_orth_q(n, m - 2, B, tau, y);
            CHECK_BELOW(worst_gap(N, y, &AT(white, n, k, 0)), 8.0 * n * EPS * 10.0);
        }
        CHECK(guards_hold(B, K * N));

        check_note("n = %d, residuals", n);
        for (int rows = 0; rows <= m; rows += m) {
            double *want = doubles(K);
            fill_uniform(N, y);
            fill_uniform(K, want);
            memcpy(r, want, K * sizeof *r);
            gm_large_subtract_rows(&lapack, rows, n, s.A, y, r);
            CHECK(guards_hold(r, K));
            for (int k = 0; k < m; k++) {
                double dot = k < rows ? gm_dot(n, &AT(s.A, n, k, 0), y) : 0.0;
                CHECK_BELOW(fabs(r[k] - (want[k] - dot)), n * EPS * 4.0);
            }
            free(want);
        }
        free(own), free(y), free(white), free(perm);
        free_guarded(L), free_guarded(x), free_guarded(B);
        free_guarded(KK), free_guarded(tau), free_guarded(work), free_guarded(r);
        systems_free(&s);
    }
}

/* --- whole systems --- */

static record
solved(const systems *s, const gm_lapack *lp, unsigned wanted, int options)
{
    record r;
    gm_problem p = plain_problem(s);
    void *work = exact_work(s->n, s->m);
    p.options = options;
    record_open(&r, s->n, s->m, 1, wanted, PLAIN);
    gm_gauss(gm_cpu_best(), lp, s->n, s->m, 1, &p, &r.motion, work);
    CHECK(record_written(&r, 0) && record_clean(&r, 1));
    free(work);
    return r;
}

static void
test_systems_by_lapack_are_those_of_the_loops_and_right(void)
{
    for (int t = 0; t < LENGTH(large_sizes) * GOOD_KINDS; t++) {
        int n = large_sizes[t / GOOD_KINDS], kind = t % GOOD_KINDS;
        int rows[] = {0, 1, n / 4};
        for (int u = 0; u < LENGTH(rows); u++) {
            int m = rows[u];
            if (!kind_fits(kind, n, m)) {
                continue;
            }
            systems s = some_system(kind, n, m, u % 2);
            for (int general = 0; general < 2; general++) {
                unsigned wanted = general ? EVERYTHING : ALL_FIELDS;
                check_note("kind %d, n = %d, m = %d, general %d", kind, n, m, general);
                forget_calls();
                record one = solved(&s, &counting, wanted, 0);
                CHECK((all_calls() > 0) == (n >= GM_LAPACK_MIN));
                record two = solved(&s, NULL, wanted, 0);
                /* sums three times as long as in the small tests */
                if (m <= 1 || general == 0) {
                    check_motion(kind, &s, 0, &one, 0, 10.0 * kind_bound(kind));
                }
                double *x = doubles((size_t)n);
                int compared[] = {QDD, Q_C, Q_IDEAL, TOTAL, MULTIPLIERS};
                for (int c = 0; c < LENGTH(compared); c++) {
                    int f = compared[c], length = field_rows(&one, f);
                    if (kind == SPREAD || (f != QDD && m == 0)) {
                        continue; /* of mixed units, or zero but for rounding */
                    }
                    for (int i = 0; i < length; i++) {
                        x[i] = number_at(&two, f, 0, i);
                    }
                    CHECK_BELOW(field_distance(&one, f, 0, x), 10.0 * kind_bound(kind));
                }
                free(x);
                record_close(&one);
                record_close(&two);
            }
            systems_free(&s);
        }
    }
}

static void
test_verdicts_by_lapack_are_those_of_the_loops(void)
{
    for (int t = 0; t < 2 * KINDS; t++) {
        int n = GM_LAPACK_MIN + 4 * (t / KINDS), m = 10, kind = t % KINDS;
        if (!kind_fits(kind, n, m)) {
            continue;
        }
        systems s = some_system(kind, n, m, 0);
        check_note("kind %d, n = %d", kind, n);
        record one = solved(&s, &lapack, ALL_FIELDS, 0);
        record two = solved(&s, NULL, ALL_FIELDS, 0);
        CHECK(status_at(&one, 0) == kind_status(kind));
        CHECK(status_at(&two, 0) == kind_status(kind));
        CHECK(integer_at(&one, RANK, 0) == integer_at(&two, RANK, 0));
        CHECK(integer_at(&one, NULLITY, 0) == integer_at(&two, NULLITY, 0));
        for (int k = 0; k < m; k++) {
            CHECK(flag_at(&one, UNIQUE, 0, k) == flag_at(&two, UNIQUE, 0, k));
            CHECK(flag_at(&one, VANISHED, 0, k) == flag_at(&two, VANISHED, 0, k));
        }
        CHECK(kind_status(kind) >= 0 || record_void(&one, 0));
        record_close(&one);
        record_close(&two);
        systems_free(&s);
    }
}

static void
test_more_rows_than_coordinates_work_by_lapack(void)
{
    int n = GM_LAPACK_MIN, m = n + 5;
    systems s = some_system(ROUND, n, m, 0);
    check_note("n = %d, m = %d", n, m);
    record one = solved(&s, &lapack, ALL_FIELDS, 0);
    record two = solved(&s, NULL, ALL_FIELDS, 0);
    double *x = doubles((size_t)n);
    for (int i = 0; i < n; i++) {
        x[i] = number_at(&two, QDD, 0, i);
    }
    CHECK(status_at(&one, 0) == GM_OK && status_at(&two, 0) == GM_OK);
    CHECK(integer_at(&one, RANK, 0) == n);
    CHECK_BELOW(field_distance(&one, QDD, 0, x), 1e6 * EPS);
    free(x);
    record_close(&one);
    record_close(&two);
    systems_free(&s);
}

/* Solve M = I but for one coupling and one mass, on the fast path; what it calls shows
 * what it decides: dsyrk builds M + A'A of a weak M, dgemv residuals for refinement. */
static void
check_decisions(double pivot, double mass, int augmented, int refined)
{
    int n = GM_LAPACK_MIN;
    systems s = systems_new(n, 1, 1, 0);

    gm_zero((size_t)(n * n), s.M);
    gm_zero((size_t)n, s.A);
    for (int i = 0; i < n; i++) {
        AT(s.M, n, i, i) = 1.0;
    }
    fill_uniform((size_t)n, s.Q);
    s.b[0] = 1.0;
    s.A[0] = 1.0;
    AT(s.M, n, 7, 8) = AT(s.M, n, 8, 7) = sqrt(1.0 - pivot);
    AT(s.M, n, 3, 3) = mass;
    check_note("pivot %.17g, mass %.17g", pivot, mass);
    forget_calls();
    record r = solved(&s, &counting, 1u << QDD, 0);
    CHECK(status_at(&r, 0) == GM_OK && calls_dgeqp3 == 0);
    CHECK(calls_dsyrk == augmented && calls_dpotrf == 1 + augmented);
    CHECK((calls_dgemv > 0) == refined);
    record_close(&r);
    systems_free(&s);
}

static void
test_the_gate_augments_and_refines_on_its_side_of_every_threshold(void)
{
    double below = 1.0 - 1e-9, above = 1.0 + 1e-9;
    check_decisions(1e-4 * below, 1.0, 1, 1);
    check_decisions(1e-4 * above, 1.0, 0, 1);
    check_decisions(0.1 * below, 1.0, 0, 1);
    check_decisions(0.1 * above, 1.0, 0, 0);
    check_decisions(1.0, 100.0, 0, 0);
    check_decisions(1.0, nextafter(100.0, 101.0), 0, 1);
    check_decisions(1.0, 0.01, 0, 0); /* 1e2 * 0.01 rounds to one */
    check_decisions(1.0, nextafter(0.01, 0.0), 0, 1);
}

static void
test_large_batches_give_the_bits_of_the_single_call(void)
{
    for (int t = 0; t < 2; t++) {
        int n = GM_LAPACK_MIN - 1 + t, m = 3, count = 5;
        systems s = systems_new(n, m, count, 0);
        int kinds[] = {ROUND, DEPENDENT, SINGULAR, NAN_ROW, SPREAD};
        for (int i = 0; i < count; i++) {
            make_system(kinds[i], &s, i);
        }
        for (int own = 0; own < 2; own++) {
            const gm_lapack *lp = own ? NULL : &lapack;
            gm_problem p = plain_problem(&s);
            void *work = exact_work(n, m);
            record r;
            record_open(&r, n, m, count, ALL_FIELDS, GAPS);
            gm_gauss(gm_cpu_best(), lp, n, m, count, &p, &r.motion, work);
            for (int i = 0; i < count; i++) {
                systems one = systems_at(&s, i);
                check_note("n = %d, own loops %d, system %d", n, own, i);
                record alone = solved(&one, lp, ALL_FIELDS, 0);
                CHECK(status_at(&alone, 0) == kind_status(kinds[i]));
                CHECK(record_same(&r, i, &alone, 0));
                record_close(&alone);
            }
            CHECK(record_clean(&r, count));
            record_close(&r);
            free(work);
        }
        systems_free(&s);
    }
}

static void
test_an_empty_table_means_the_own_loops(void)
{
    gm_lapack empty;
    systems s = some_system(SPREAD, GM_LAPACK_MIN, 4, 1);
    memset(&empty, 0, sizeof empty);
    check_note("empty table");
    record one = solved(&s, &empty, ALL_FIELDS, 0);
    record two = solved(&s, NULL, ALL_FIELDS, 0);
    CHECK(record_same(&one, 0, &two, 0));
    record_close(&one);
    record_close(&two);
    systems_free(&s);
}

static void
test_the_other_functions_by_lapack_are_those_of_the_loops(void)
{
    int n = GM_LAPACK_MIN, m = 6;
    size_t N = (size_t)n, K = (size_t)m;
    ptrdiff_t d = sizeof(double);
    systems s = some_system(DEPENDENT, n, m, 0);
    gm_problem p = plain_problem(&s);
    double alpha = 2.0, *x[2][5], *motion = doubles(N), z[2], f[2];
    char mask[2][6], status;
    size_t length[5] = {N * N, N, N * N, N * K, 0};
    gm_input a = {(const char *)&alpha, 0, 0, 0};
    gm_output ok = {&status, 1, 0, 0};

    fill_uniform(N, motion);
    for (int own = 0; own < 2; own++) {
        const gm_lapack *lp = own ? NULL : &lapack;
        void *work = exact_work(n, m);
        check_note("own loops %d", own);
        for (int v = 0; v < 4; v++) {
            x[own][v] = guarded(length[v]);
        }
        gm_output M_A = {(char *)x[own][0], 0, d * n, d};
        gm_output Q_b = {(char *)x[own][1], 0, d, 0};
        gm_output dQ = {(char *)x[own][2], 0, d * n, d};
        gm_output db = {(char *)x[own][3], 0, d * m, d};
        gm_output rows = {mask[own], 0, 1, 0}, zwang = {(char *)&z[own], 0, 0, 0};
        gm_output function = {(char *)&f[own], 0, 0, 0};
        gm_augment(lp, n, m, 1, &p, a, M_A, Q_b, ok, work);
        CHECK(status == GM_OK);
        gm_sensitivity(lp, n, m, 1, &p, dQ, db, ok, work);
        CHECK(status == GM_OK);
        gm_independent_rows(lp, n, m, 1, &p, rows, ok, work);
        CHECK(status == GM_OK);
        free(work);
        work = exact_work(n, 0);
        gm_zwang(lp, n, 1, &p, plain_input(motion, n, 1), zwang, function, ok, work);
        CHECK(status == GM_OK);
        for (int v = 0; v < 4; v++) {
            CHECK(guards_hold(x[own][v], length[v]));
        }
        free(work);
    }
    int accepted[2] = {0, 0};
    for (int v = 0; v < 4; v++) {
        CHECK_BELOW(worst_gap(length[v], x[0][v], x[1][v]), 1e6 * EPS);
        free_guarded(x[0][v]);
        free_guarded(x[1][v]);
    }
    for (int k = 0; k < m; k++) {
        accepted[0] += mask[0][k];
        accepted[1] += mask[1][k];
    }
    CHECK(accepted[0] == m - 1 && accepted[1] == m - 1);
    CHECK_BELOW(fabs(z[0] - z[1]), 1e6 * EPS * z[1]);
    CHECK_BELOW(fabs(f[0] - f[1]), 1e6 * EPS * fabs(f[1]));
    free(motion);
    systems_free(&s);
}

int
main(int argc, char **argv)
{
    if (argc != 4 || !load(argv[1], argv[2], argv[3])) {
        say("usage: test_large LIBRARY PREFIX SUFFIX, 32-bit LAPACK\n");
        return 2;
    }
    test_cholesky_by_lapack_is_that_of_the_loops();
    test_pivoted_rows_by_lapack_have_the_rank_and_the_span_of_the_loops();
    test_the_rank_by_lapack_changes_at_rtol();
    test_products_by_lapack_are_those_of_the_loops();
    test_the_steps_of_a_large_system_do_what_their_headers_say();
    test_systems_by_lapack_are_those_of_the_loops_and_right();
    test_verdicts_by_lapack_are_those_of_the_loops();
    test_more_rows_than_coordinates_work_by_lapack();
    test_the_gate_augments_and_refines_on_its_side_of_every_threshold();
    test_large_batches_give_the_bits_of_the_single_call();
    test_an_empty_table_means_the_own_loops();
    test_the_other_functions_by_lapack_are_those_of_the_loops();
    return check_report();
}
