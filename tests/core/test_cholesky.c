/* gm_cholesky.c: factors, verdicts on both sides of the tolerance, null vectors. */
#include "check.h"
#include "gm_dense.h"
#include "problems.h"

/* random G G' with G (n, k) near the identity */
static double *
semidefinite(int n, int k)
{
    double *G = doubles((size_t)(n * k)), *A = doubles((size_t)(n * n));
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < k; j++) {
            AT(G, k, i, j) = (i == j ? 1.0 : 0.0) + 0.3 * uniform();
        }
    }
    gram(n, k, G, A);
    free(G);
    return A;
}

/* |(L L')_ij - A_pipj| at most, over the leading `rank` columns of L */
static double
factor_gap(int n, int rank, const double *L, const int *perm, const double *A)
{
    double worst = 0.0;
    for (int i = 0; i < n; i++) {
        for (int j = 0; j <= i; j++) {
            long double sum = 0.0L;
            for (int k = 0; k <= j && k < rank; k++) {
                sum += (long double)AT(L, n, i, k) * AT(L, n, j, k);
            }
            int p = perm ? perm[i] : i, q = perm ? perm[j] : j;
            double gap = fabs((double)(sum - AT(A, n, p, q)));
            worst = gap > worst ? gap : worst;
        }
    }
    return worst;
}

static double
trace(int n, const double *A)
{
    double sum = 0.0;
    for (int i = 0; i < n; i++) {
        sum += AT(A, n, i, i);
    }
    return sum;
}

static void
test_the_factor_gives_the_matrix_back_and_the_smallest_pivot(void)
{
    for (int t = 0; t < LENGTH(sizes); t++) {
        int n = sizes[t];
        size_t N = (size_t)n, count = N * N;
        double *A = semidefinite(n, n), *L = guarded(count);

        check_note("n = %d", n);
        for (size_t e = 0; e < count; e++) {
            /* the upper triangle is neither read nor written */
            L[e] = e % N > e / N ? 999.0 : A[e];
        }
        double pivot = gm_cholesky(NULL, n, L, 0.0), smallest = INFINITY;
        CHECK(guards_hold(L, count));
        for (int i = 0; i < n; i++) {
            double square = AT(L, n, i, i) * AT(L, n, i, i);
            smallest = square < smallest ? square : smallest;
            for (int j = i + 1; j < n; j++) {
                CHECK(AT(L, n, i, j) == 999.0);
            }
        }
        /* textbook bound: (n + 1) eps |L| |L'|, whose entries are below the trace */
        CHECK_BELOW(factor_gap(n, n, L, NULL, A), (n + 1) * EPS * trace(n, A));
        CHECK(n == 0 ? pivot == INFINITY
                     : fabs(pivot - smallest) <= 4 * EPS * smallest);
        free(A);
        free_guarded(L);
    }
}

static void
test_a_pivot_at_the_tolerance_fails_and_the_next_number_passes(void)
{
    double tol = 1e-3;
    for (int n = 1; n <= 9; n++) {
        for (int at = 0; at < n; at++) {
            double *A = doubles((size_t)(n * n));
            check_note("n = %d, pivot %d", n, at);
            for (int side = 0; side < 2; side++) {
                for (int e = 0; e < n * n; e++) {
                    A[e] = e % (n + 1) ? 0.0 : 1.0;
                }
                AT(A, n, at, at) = side ? nextafter(tol, 1.0) : tol;
                double pivot = gm_cholesky(NULL, n, A, tol);
                CHECK((pivot > tol) == side);
            }
            free(A);
        }
    }
}

static void
test_not_a_number_never_passes_as_a_pivot(void)
{
    for (int n = 1; n <= 9; n++) {
        for (int i = 0; i < n; i++) {
            for (int j = 0; j <= i; j++) {
                double *A = semidefinite(n, n);
                check_note("n = %d, entry %d %d", n, i, j);
                AT(A, n, i, j) = NAN;
                CHECK(!(gm_cholesky(NULL, n, A, 0.0) > 0.0));
                AT(A, n, i, j) = NAN;
                CHECK(!(gm_cholesky(NULL, n, A, -1.0) > -1.0));
                free(A);
            }
        }
    }
}

static void
test_an_indefinite_matrix_never_passes(void)
{
    for (int t = 0; t < LENGTH(sizes); t++) {
        int n = sizes[t];
        for (int at = 0; at < n; at += 1 + n / 4) {
            double *A = semidefinite(n, n);
            check_note("n = %d, entry %d", n, at);
            AT(A, n, at, at) = -AT(A, n, at, at);
            CHECK(!(gm_cholesky(NULL, n, A, 0.0) > 0.0));
            free(A);
        }
    }
}

static void
test_triangular_solves_invert_triangular_products(void)
{
    for (int t = 0; t < LENGTH(sizes); t++) {
        int n = sizes[t];
        for (int pad = 0; pad <= 3; pad += 3) {
            int ld = n + pad;
            double *L = doubles((size_t)(n * ld) + 1), *x = guarded((size_t)n);
            double *given = doubles((size_t)n), *y = doubles((size_t)n);
            double *size = doubles((size_t)n);

            check_note("n = %d, row length %d", n, ld);
            for (int i = 0; i < n; i++) {
                for (int j = 0; j < ld; j++) {
                    /* beyond the triangle there is nothing to read */
                    AT(L, ld, i, j) = j < i ? uniform() / n : j == i ? 2.0 : NAN;
                }
                given[i] = uniform();
            }
            for (int transposed = 0; transposed < 2; transposed++) {
                memcpy(x, given, (size_t)n * sizeof *x);
                (transposed ? gm_solve_lower_t : gm_solve_lower)(n, ld, L, x);
                CHECK(guards_hold(x, (size_t)n));
                for (int i = 0; i < n; i++) {
                    long double sum = 0.0L, sizes_ = 0.0L;
                    for (int j = 0; j < n; j++) {
                        double l = transposed ? (j >= i ? AT(L, ld, j, i) : 0.0)
                                              : (j <= i ? AT(L, ld, i, j) : 0.0);
                        sum += (long double)l * x[j];
                        sizes_ += fabsl((long double)l * x[j]);
                    }
                    y[i] = (double)(sum - given[i]);
                    size[i] = (double)sizes_;
                    /* backward stable: n eps |L| |x| for every entry */
                    CHECK_BELOW(fabs(y[i]), (n + 1) * EPS * size[i]);
                }
            }
            free(L);
            free_guarded(x);
            free(given);
            free(y);
            free(size);
        }
    }
}

static int
is_permutation(int n, const int *perm)
{
    int *seen = need(calloc((size_t)n + 1, sizeof *seen)), good = 1;
    for (int i = 0; i < n; i++) {
        good = good && perm[i] >= 0 && perm[i] < n && seen[perm[i]]++ == 0;
    }
    free(seen);
    return good;
}

static void
test_the_pivoted_factor_finds_rank_and_null_vectors(void)
{
    for (int t = 0; t < LENGTH(sizes); t++) {
        int n = sizes[t];
        for (int rank = 0; rank <= n; rank += 1 + n / 5) {
            size_t N = (size_t)n, left = (size_t)(n - rank);
            double *A = semidefinite(n, rank), *L = guarded(N * N);
            double *V = guarded(left * N), *work = doubles(N);
            double size = trace(n, A), tol = 32.0 * n * EPS * (1.0 + size);
            int *perm = need(malloc((N + 1) * sizeof *perm)), found = -1;

            check_note("n = %d, rank %d", n, rank);
            perm[n] = 99;
            for (size_t e = 0; e < N * N; e++) {
                L[e] = e % (N ? N : 1) > e / N ? 999.0 : A[e];
            }
            CHECK(gm_cholesky_pivoted(n, L, tol, perm, &found) == GM_OK);
            CHECK(found == rank);
            CHECK(perm[n] == 99 && is_permutation(n, perm));
            CHECK(guards_hold(L, N * N));
            for (int i = 0; i < n; i++) {
                for (int j = i + 1; j < n; j++) {
                    CHECK(AT(L, n, i, j) == 999.0);
                }
            }
            for (int i = 1; i < rank; i++) {
                CHECK(AT(L, n, i, i) <= AT(L, n, i - 1, i - 1) * (1.0 + n * EPS));
            }
            /* what is left out is below tol */
            CHECK_BELOW(factor_gap(n, rank, L, perm, A), tol + n * EPS * size);

            gm_cholesky_kernel(n, rank, L, perm, V, work);
            CHECK(guards_hold(V, left * N));
            for (int v = 0; v < n - rank; v++) {
                for (int w = 0; w <= v; w++) {
                    double dot = gm_dot(n, &AT(V, n, v, 0), &AT(V, n, w, 0));
                    /* twice orthogonalised: rounding of sums of n terms */
                    CHECK_BELOW(fabs(dot - (v == w)), 8.0 * (n + 4) * EPS);
                }
                double *y = doubles(N);
                slow_product(n, n, A, &AT(V, n, v, 0), 0.0, y);
                /* rounding of A, times the growth of L1^-1 L2 (cond below 1e3) */
                CHECK_BELOW(gm_norm(n, y), 1e3 * n * EPS * (1.0 + size));
                free(y);
            }
            free(A);
            free_guarded(L);
            free_guarded(V);
            free(work);
            free(perm);
        }
    }
}

static gm_status
verdict(int n, const double *given, double tol, int *rank)
{
    double *A = copy_of((size_t)(n * n), given);
    int *perm = need(malloc((size_t)n * sizeof *perm));
    gm_status status = gm_cholesky_pivoted(n, A, tol, perm, rank);
    free(A);
    free(perm);
    return status;
}

static void
test_verdicts_change_exactly_at_the_tolerance(void)
{
    double tol = ldexp(1.0, -20), above = nextafter(tol, 1.0);
    int rank;

    check_note("pivots");
    double small[] = {1.0, 0.0, 0.0, tol}, passes[] = {1.0, 0.0, 0.0, above};
    CHECK(verdict(2, small, tol, &rank) == GM_OK && rank == 1);
    CHECK(verdict(2, passes, tol, &rank) == GM_OK && rank == 2);

    check_note("a negative remainder");
    double slightly[] = {1.0, 0.0, 0.0, -tol}, clearly[] = {1.0, 0.0, 0.0, -above};
    CHECK(verdict(2, slightly, tol, &rank) == GM_OK && rank == 1);
    CHECK(verdict(2, clearly, tol, &rank) == GM_INDEFINITE && rank == 1);

    check_note("coupling in the remainder");
    double c[9] = {1.0};
    for (int sign = -1; sign <= 1; sign += 2) {
        c[7] = sign * tol; /* entry (2, 1) */
        CHECK(verdict(3, c, tol, &rank) == GM_OK && rank == 1);
        c[7] = sign * above;
        CHECK(verdict(3, c, tol, &rank) == GM_INDEFINITE && rank == 1);
    }

    check_note("nothing but a remainder");
    double nothing[4] = {0};
    CHECK(verdict(2, nothing, tol, &rank) == GM_OK && rank == 0);
    CHECK(verdict(1, nothing, 0.0, &rank) == GM_OK && rank == 0);
    CHECK(verdict(0, nothing, tol, &rank) == GM_OK && rank == 0);
}

static void
test_not_a_number_is_indefinite_to_the_pivoted_factor(void)
{
    for (int n = 1; n <= 5; n++) {
        for (int i = 0; i < n; i++) {
            for (int j = 0; j <= i; j++) {
                double *A = semidefinite(n, n);
                int rank;
                check_note("n = %d, entry %d %d", n, i, j);
                AT(A, n, i, j) = NAN;
                CHECK(verdict(n, A, 1e-14, &rank) == GM_INDEFINITE);
                free(A);
            }
        }
    }
}

/* [1 1+d; 1+d 1] has the eigenvalue -d: the usual indefinite matrix of rounding size */
static void
test_a_remainder_of_rounding_size_is_singular_and_a_larger_one_indefinite(void)
{
    double tol = 64.0 * EPS;
    int rank;
    for (int k = 1; k <= 100; k++) {
        double c = 1.0 + k * EPS, A[] = {1.0, c, c, 1.0};
        double rest = 1.0 - c * c; /* -2 k eps, give or take its rounding */
        check_note("d = %d eps", k);
        CHECK(verdict(2, A, tol, &rank) == (rest >= -tol ? GM_OK : GM_INDEFINITE));
        CHECK(rank == 1);
    }
}

int
main(void)
{
    test_the_factor_gives_the_matrix_back_and_the_smallest_pivot();
    test_a_pivot_at_the_tolerance_fails_and_the_next_number_passes();
    test_not_a_number_never_passes_as_a_pivot();
    test_an_indefinite_matrix_never_passes();
    test_triangular_solves_invert_triangular_products();
    test_the_pivoted_factor_finds_rank_and_null_vectors();
    test_verdicts_change_exactly_at_the_tolerance();
    test_not_a_number_is_indefinite_to_the_pivoted_factor();
    test_a_remainder_of_rounding_size_is_singular_and_a_larger_one_indefinite();
    return check_report();
}
