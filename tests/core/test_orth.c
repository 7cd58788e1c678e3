/* gm_orth.c: the rows come back, the basis is orthonormal, the rank is decided on both
 * sides of rtol; products against plain loops. */
#include "check.h"
#include "gm_dense.h"
#include "problems.h"

/* a row of the factorised B with what Householder's method stores taken out: the
 * triangle in front of row j < rank, everything of a row that was not accepted */
static void
triangle_row(int n, int rank, int j, const double *B, double *x)
{
    for (int i = 0; i < n; i++) {
        x[i] = j >= rank || i <= j ? AT(B, n, j, i) : 0.0;
    }
}

/* rows (m, n), of rank `rank` by construction: the later ones are mixtures */
static double *
rows_of_rank(int n, int m, int rank)
{
    double *B = doubles((size_t)(n * m));
    for (int k = 0; k < m; k++) {
        for (int j = 0; j < n; j++) {
            double near = (j == k ? 1.0 : 0.0) + 0.3 * uniform() / n;
            AT(B, n, k, j) = k < rank ? near : 0.0;
        }
        for (int l = 0; k >= rank && l < rank; l++) {
            gm_axpy(n, uniform(), &AT(B, n, l, 0), &AT(B, n, k, 0));
        }
    }
    return B;
}

static void
test_the_pivoted_factor_gives_all_rows_back(void)
{
    for (int t = 0; t < LENGTH(sizes); t++) {
        for (int u = 0; u < LENGTH(sizes); u++) {
            int n = sizes[t], m = sizes[u], most = n < m ? n : m;
            for (int want = 0; want <= most; want += 1 + most / 2) {
                size_t size = (size_t)n * (size_t)m, R = (size_t)most;
                double *A = rows_of_rank(n, m, want), *B = guarded(size);
                double *tau = guarded(R), *work = doubles(64 * (size_t)(n + m));
                double *x = doubles((size_t)n), rtol = 1e-12;
                int *perm = need(malloc(((size_t)m + 1) * sizeof *perm));
                int *seen = need(calloc((size_t)m + 1, sizeof *seen));

                check_note("n = %d, m = %d, rank %d", n, m, want);
                perm[m] = 99;
                memcpy(B, A, size * sizeof *B);
                int rank = gm_orth_rows(NULL, n, m, B, rtol, perm, tau, work);
                CHECK(rank == want);
                CHECK(perm[m] == 99);
                CHECK(guards_hold(B, size) && guards_hold(tau, R));
                for (int j = 0; j < m; j++) {
                    CHECK(perm[j] >= 0 && perm[j] < m && seen[perm[j]]++ == 0);
                    if (j < rank) {
                        double sine = fabs(AT(B, n, j, j));
                        CHECK(sine > rtol);
                        CHECK(j == 0 || sine <= fabs(AT(B, n, j - 1, j - 1)) *
                                                    (1.0 + 4.0 * n * EPS));
                    }
                    triangle_row(n, rank, j, B, x);
                    gm_orth_q(n, rank, B, tau, x);
                    double gap = 0.0, length = gm_norm(n, &AT(A, n, perm[j], 0));
                    for (int i = 0; i < n; i++) {
                        gap = fmax(gap, fabs(x[i] - AT(A, n, perm[j], i)));
                    }
                    /* Householder: c n r eps on each row, of rows as long as r */
                    CHECK_BELOW(gap, 8.0 * (n + 1) * (rank + 1) * EPS * (1.0 + length));
                }
                free(A);
                free_guarded(B);
                free_guarded(tau);
                free(work);
                free(x);
                free(perm);
                free(seen);
            }
        }
    }
}

static void
test_the_rank_changes_exactly_at_rtol(void)
{
    /* sqrt(x^2) = |x| in IEEE arithmetic, so the sine of these rows is exact */
    double tolerances[] = {1e-12, 1e-3, 0.3, ldexp(1.0, -30)};
    for (int t = 0; t < LENGTH(tolerances); t++) {
        for (int n = 2; n <= 9; n++) {
            for (int side = 0; side < 2; side++) {
                double rtol = tolerances[t], s = side ? nextafter(rtol, 1.0) : rtol;
                double *B = doubles((size_t)(2 * n)), tau[2];
                double *work = doubles(64 * (size_t)(n + 2));
                int perm[2];
                check_note("n = %d, rtol %g, side %d", n, rtol, side);
                gm_zero((size_t)(2 * n), B);
                AT(B, n, 0, 0) = 0.5;
                AT(B, n, 0, n - 1) = s;
                AT(B, n, 1, 0) = 1.0;
                CHECK(gm_orth_rows(NULL, n, 2, B, rtol, perm, tau, work) == 1 + side);
                CHECK(perm[0] == 1 && perm[1] == 0);
                free(B);
                free(work);
            }
        }
    }
}

static void
test_zero_rows_and_rows_without_a_length_are_never_accepted(void)
{
    double tau[3], work[64 * 6];
    int perm[3];

    check_note("zero rows, rtol 0");
    double zero[9] = {0};
    CHECK(gm_orth_rows(NULL, 3, 3, zero, 0.0, perm, tau, work) == 0);
    double one[9] = {0};
    one[5] = 1e-300; /* its square is zero: no length to speak of */
    CHECK(gm_orth_rows(NULL, 3, 3, one, 0.0, perm, tau, work) == 0);
    one[5] = 1e-150;
    CHECK(gm_orth_rows(NULL, 3, 3, one, 0.0, perm, tau, work) == 1);
    CHECK(perm[0] == 1);
    check_note("a row that is not a number");
    double bad[9] = {NAN, 1.0, 2.0};
    CHECK(gm_orth_rows(NULL, 3, 1, bad, 1e-12, perm, tau, work) == 0);
}

static void
test_more_rows_than_coordinates_stop_at_the_coordinates(void)
{
    for (int n = 1; n <= 9; n++) {
        int m = n + 3;
        double *B = doubles((size_t)(n * m)), *tau = doubles((size_t)n);
        double *work = doubles(64 * (size_t)(n + m));
        int *perm = need(malloc((size_t)m * sizeof *perm));
        check_note("n = %d", n);
        fill_uniform((size_t)(n * m), B);
        CHECK(gm_orth_rows(NULL, n, m, B, 0.0, perm, tau, work) == n);
        free(B);
        free(tau);
        free(work);
        free(perm);
    }
}

static void
test_the_plain_factor_keeps_order_and_gives_all_rows_back(void)
{
    for (int t = 0; t < LENGTH(sizes); t++) {
        int n = sizes[t];
        for (int k = 0; k <= n; k += 1 + n / 4) {
            size_t size = (size_t)n * (size_t)k;
            double *A = rows_of_rank(n, k, k), *B = guarded(size);
            double *tau = guarded((size_t)k), *x = doubles((size_t)n);

            check_note("n = %d, k = %d", n, k);
            memcpy(B, A, size * sizeof *B);
            gm_orth_plain(n, k, B, tau);
            CHECK(guards_hold(B, size) && guards_hold(tau, (size_t)k));
            for (int j = 0; j < k; j++) {
                triangle_row(n, k, j, B, x);
                gm_orth_q(n, k, B, tau, x);
                CHECK_BELOW(distance(n, x, &AT(A, n, j, 0)), 8.0 * n * (k + 1) * EPS);
            }
            free(A);
            free_guarded(B);
            free_guarded(tau);
            free(x);
        }
    }
}

static void
test_q_and_its_transpose_undo_each_other_and_keep_lengths(void)
{
    for (int t = 0; t < LENGTH(sizes); t++) {
        int n = sizes[t];
        for (int k = 0; k <= n; k += 1 + n / 3) {
            double *B = rows_of_rank(n, k, k), *tau = doubles((size_t)k);
            double *x = guarded((size_t)n), *given = doubles((size_t)n);

            check_note("n = %d, k = %d", n, k);
            gm_orth_plain(n, k, B, tau);
            fill_uniform((size_t)n, given);
            memcpy(x, given, (size_t)n * sizeof *x);
            gm_orth_qt(n, k, B, tau, x);
            CHECK_BELOW(fabs(gm_norm(n, x) - gm_norm(n, given)),
                        8.0 * (n + 1) * (k + 1) * EPS * gm_norm(n, given));
            gm_orth_q(n, k, B, tau, x);
            CHECK_BELOW(distance(n, x, given), 8.0 * (n + 1) * (k + 1) * EPS);
            CHECK(guards_hold(x, (size_t)n));
            free(B);
            free(tau);
            free_guarded(x);
            free(given);
        }
    }
}

static void
test_the_kernel_is_orthonormal_and_orthogonal_to_the_rows(void)
{
    for (int t = 0; t < LENGTH(sizes); t++) {
        int n = sizes[t];
        for (int k = 0; k <= n; k += 1 + n / 4) {
            int left = n - k;
            size_t size = (size_t)left * (size_t)n;
            double *A = rows_of_rank(n, k, k), *Z = guarded(size);
            double *B = copy_of((size_t)(k * n), A), *tau = doubles((size_t)k);
            double *work = doubles(64 * (size_t)(n + k));

            check_note("n = %d, k = %d", n, k);
            gm_orth_plain(n, k, B, tau);
            gm_orth_kernel(NULL, n, k, B, tau, Z, work);
            CHECK(guards_hold(Z, size));
            for (int i = 0; i < left; i++) {
                const double *z = &AT(Z, n, i, 0);
                for (int j = 0; j <= i; j++) {
                    CHECK_BELOW(fabs(gm_dot(n, z, &AT(Z, n, j, 0)) - (i == j)),
                                8.0 * n * (k + 1) * EPS);
                }
                for (int j = 0; j < k; j++) {
                    const double *row = &AT(A, n, j, 0);
                    CHECK_BELOW(fabs(gm_dot(n, z, row)),
                                8.0 * n * (k + 1) * EPS * (1.0 + gm_norm(n, row)));
                }
            }
            free(A);
            free(B);
            free_guarded(Z);
            free(tau);
            free(work);
        }
    }
}

static void
test_a_row_along_the_first_axis_needs_no_reflection(void)
{
    double B[] = {-2.0, 0.0, 0.0, 1.0, 3.0, 0.0}, tau[2] = {9.0, 9.0};
    check_note("axis");
    gm_orth_plain(3, 2, B, tau);
    CHECK(tau[0] == 0.0 && B[0] == -2.0 && B[3] == 1.0);
    CHECK(fabs(B[4]) == 3.0);
}

static void
test_products_agree_with_plain_loops(void)
{
    int some[] = {0, 1, 3, 4, 5, 8, 17};
    for (int t = 0; t < LENGTH(some) * LENGTH(some) * LENGTH(some); t++) {
        int p = some[t % 7], q = some[t / 7 % 7], k = some[t / 49];
        for (int y_t = 0; y_t < 2; y_t++) {
            size_t size = (size_t)p * (size_t)q;
            double *X = doubles((size_t)(p * k)), *Y = doubles((size_t)(k * q));
            double *C = guarded(size);

            check_note("p = %d, q = %d, k = %d, transposed %d", p, q, k, y_t);
            fill_uniform((size_t)(p * k), X);
            fill_uniform((size_t)(k * q), Y);
            gm_matmul(NULL, p, q, k, X, Y, y_t, C);
            CHECK(guards_hold(C, size));
            for (int i = 0; i < p; i++) {
                for (int j = 0; j < q; j++) {
                    long double sum = 0.0L;
                    for (int l = 0; l < k; l++) {
                        sum += (long double)AT(X, k, i, l) *
                               (y_t ? AT(Y, k, j, l) : AT(Y, q, l, j));
                    }
                    CHECK_BELOW(fabs((double)(AT(C, q, i, j) - sum)), k * k * EPS);
                }
            }
            free(X);
            free(Y);
            free_guarded(C);
        }
    }
}

static void
test_sums_agree_with_plain_loops(void)
{
    for (int t = 0; t < LENGTH(sizes); t++) {
        int n = sizes[t];
        double *x = doubles((size_t)n), *z = doubles((size_t)n);
        double *y = guarded((size_t)n);
        long double dot = 0.0L, square = 0.0L;
        double a = uniform();

        check_note("n = %d", n);
        fill_uniform((size_t)n, x);
        fill_uniform((size_t)n, z);
        gm_copy((size_t)n, z, y);
        for (int i = 0; i < n; i++) {
            dot += (long double)x[i] * z[i];
            square += (long double)x[i] * x[i];
        }
        CHECK_BELOW(fabs((double)(gm_dot(n, x, z) - dot)), n * EPS * n);
        CHECK_BELOW(fabs(gm_norm(n, x) - (double)sqrtl(square)), n * EPS * n);
        gm_axpy(n, a, x, y);
        for (int i = 0; i < n; i++) {
            CHECK_BELOW(fabs(y[i] - (z[i] + a * x[i])), 2.0 * EPS);
        }
        gm_zero((size_t)n, y);
        for (int i = 0; i < n; i++) {
            CHECK(y[i] == 0.0);
        }
        CHECK(guards_hold(y, (size_t)n));
        free(x);
        free_guarded(y);
        free(z);
    }
}

int
main(void)
{
    test_the_pivoted_factor_gives_all_rows_back();
    test_the_rank_changes_exactly_at_rtol();
    test_zero_rows_and_rows_without_a_length_are_never_accepted();
    test_more_rows_than_coordinates_stop_at_the_coordinates();
    test_the_plain_factor_keeps_order_and_gives_all_rows_back();
    test_q_and_its_transpose_undo_each_other_and_keep_lengths();
    test_the_kernel_is_orthonormal_and_orthogonal_to_the_rows();
    test_a_row_along_the_first_axis_needs_no_reflection();
    test_products_agree_with_plain_loops();
    test_sums_agree_with_plain_loops();
    return check_report();
}
