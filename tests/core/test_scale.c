/* gm_scale.c: powers of two, exactly. */
#include "check.h"
#include "gm_dense.h"
#include "problems.h"

static int
is_power_of_two(double x)
{
    int e;
    return isfinite(x) && x > 0.0 && frexp(x, &e) == 0.5;
}

static void
test_a_power_of_two_brings_every_number_between_a_half_and_two(void)
{
    for (int e = -1073; e <= 1024; e++) {
        double numbers[] = {ldexp(0.5, e), nextafter(ldexp(0.5, e), INFINITY),
                            ldexp(0.75, e), nextafter(ldexp(1.0, e), 0.0)};
        for (int i = 0; i < LENGTH(numbers); i++) {
            double x = numbers[i], d = gm_pow2_rsqrt(x);
            check_note("x = %a", x);
            if (!(x > 0.0 && isfinite(x))) {
                continue; /* the exponent is one of a subnormal number, or too large */
            }
            CHECK(is_power_of_two(d));
            CHECK((x * d) * d >= 0.5 && (x * d) * d < 2.0);
        }
    }
}

static void
test_a_factor_of_four_halves_the_scale(void)
{
    for (int t = 0; t < 1000; t++) {
        double x = ldexp(1.0 + 0.999 * uniform(), (int)(random_bits() % 1000) - 500);
        check_note("x = %a", x);
        CHECK(gm_pow2_rsqrt(4.0 * x) == 0.5 * gm_pow2_rsqrt(x));
    }
}

static void
scales(int n, int m, const double *M, const double *A, double *d)
{
    double *seen = doubles((size_t)(n + m)), *out = guarded((size_t)n);
    gm_scale_coordinates(n, m, M, A, out, seen);
    CHECK(guards_hold(out, (size_t)n));
    memcpy(d, out, (size_t)n * sizeof *d);
    free_guarded(out);
    free(seen);
}

static void
test_a_coordinate_with_mass_takes_its_scale_from_it(void)
{
    for (int t = 0; t < LENGTH(sizes); t++) {
        int n = sizes[t], m = n / 2;
        double *M = doubles((size_t)(n * n)), *A = doubles((size_t)(m * n));
        double *d = doubles((size_t)n);
        check_note("n = %d", n);
        fill_uniform((size_t)(n * n), M);
        fill_uniform((size_t)(m * n), A);
        for (int i = 0; i < n; i++) {
            AT(M, n, i, i) = pow(10.0, 100.0 * uniform());
        }
        scales(n, m, M, A, d);
        for (int i = 0; i < n; i++) {
            CHECK(d[i] == gm_pow2_rsqrt(AT(M, n, i, i)));
        }
        free(M);
        free(A);
        free(d);
    }
}

static void
test_massless_coordinates_are_reached_breadth_first(void)
{
    /* a chain: mass - row 0 - coordinate 1 - row 1 - coordinate 2, and one alone */
    double M[16] = {0}, d[4];
    double A[] = {3.0, 40.0, 0.0, 0.0, 0.0, 1e-5, 7e6, 0.0};

    M[0] = 1e6;
    check_note("a chain");
    scales(4, 2, M, A, d);
    CHECK(d[0] == gm_pow2_rsqrt(1e6));
    for (int i = 0; i < 3; i++) {
        CHECK(is_power_of_two(d[i]));
    }
    /* the massless side of a row is as long as the other, to within a factor of two */
    CHECK(40.0 * d[1] / (3.0 * d[0]) >= 1.0 && 40.0 * d[1] / (3.0 * d[0]) <= 2.0);
    CHECK(7e6 * d[2] / (1e-5 * d[1]) >= 1.0 && 7e6 * d[2] / (1e-5 * d[1]) <= 2.0);
    /* nothing ties the last one */
    CHECK(d[3] == 1.0);
}

static void
test_massless_coordinates_without_any_mass_start_a_scale_of_their_own(void)
{
    double M[9] = {0}, d[3], A[] = {0.0, 1e8, 1.0};

    check_note("no mass at all");
    scales(3, 1, M, A, d);
    CHECK(d[0] == 1.0 && d[1] == 1.0);
    CHECK(d[2] >= 0.5e8 && d[2] <= 2e8 && is_power_of_two(d[2]));
    scales(3, 0, M, A, d);
    CHECK(d[0] == 1.0 && d[1] == 1.0 && d[2] == 1.0);
}

static void
test_the_largest_of_several_ties_decides(void)
{
    /* coordinate 1 hangs on coordinate 0 by a weak row and by a strong one */
    double M[4] = {1.0}, d[2], A[] = {1.0, 1e-3, 1.0, 1e3};

    check_note("two rows");
    scales(2, 2, M, A, d);
    CHECK(1e3 * d[1] >= 1.0 && 1e3 * d[1] <= 2.0);
}

static void
test_extreme_ratios_stay_in_range(void)
{
    double M[4] = {1e300}, d[2];
    double small[] = {1e300, 5e-324}, large[] = {5e-324, 1e300};

    check_note("ratio of the range of double");
    scales(2, 1, M, small, d);
    CHECK(is_power_of_two(d[1]));
    M[0] = 1e-300;
    scales(2, 1, M, large, d);
    CHECK(is_power_of_two(d[1]));
}

/* Units: coordinate j counted in 2^-p_j, its mass in 4^p_j, rows in any 2^q_k. */
static void
test_powers_of_two_in_the_units_come_back_exactly(void)
{
    for (int t = 0; t < 200; t++) {
        int n = 1 + t % 9, m = t % 5;
        double *M = doubles((size_t)(n * n)), *A = doubles((size_t)(m * n + 1));
        double *d = doubles((size_t)n), *d2 = doubles((size_t)n);
        int p[9];
        check_note("n = %d, m = %d, draw %d", n, m, t);
        for (int e = 0; e < n * n; e++) {
            M[e] = 0.0;
        }
        for (int e = 0; e < m * n; e++) {
            A[e] = random_bits() % 3 ? uniform() : 0.0;
        }
        for (int i = 0; i < n; i++) {
            AT(M, n, i, i) = random_bits() % 2 ? exp(5.0 * uniform()) : 0.0;
            p[i] = (int)(random_bits() % 41) - 20;
        }
        scales(n, m, M, A, d);
        for (int i = 0; i < n; i++) {
            p[i] = AT(M, n, i, i) > 0.0 ? p[i] : 0;
            AT(M, n, i, i) = ldexp(AT(M, n, i, i), 2 * p[i]);
        }
        for (int k = 0; k < m; k++) {
            int q = (int)(random_bits() % 41) - 20;
            for (int i = 0; i < n; i++) {
                AT(A, n, k, i) = ldexp(AT(A, n, k, i), p[i] + q);
            }
        }
        scales(n, m, M, A, d2);
        for (int i = 0; i < n; i++) {
            CHECK(d2[i] == ldexp(d[i], -p[i]));
        }
        free(M);
        free(A);
        free(d);
        free(d2);
    }
}

static void
test_the_unit_of_a_massless_coordinate_comes_back_exactly(void)
{
    double M[4] = {1.7}, d[2], d2[2], A[] = {0.3, 11.0, -4.0, 0.9};

    check_note("a massless coordinate");
    scales(2, 2, M, A, d);
    for (int p = -30; p <= 30; p++) {
        double B[] = {A[0], ldexp(A[1], p), A[2], ldexp(A[3], p)};
        scales(2, 2, M, B, d2);
        CHECK(d2[0] == d[0] && d2[1] == ldexp(d[1], -p));
    }
}

int
main(void)
{
    test_a_power_of_two_brings_every_number_between_a_half_and_two();
    test_a_factor_of_four_halves_the_scale();
    test_a_coordinate_with_mass_takes_its_scale_from_it();
    test_massless_coordinates_are_reached_breadth_first();
    test_massless_coordinates_without_any_mass_start_a_scale_of_their_own();
    test_the_largest_of_several_ties_decides();
    test_extreme_ratios_stay_in_range();
    test_powers_of_two_in_the_units_come_back_exactly();
    test_the_unit_of_a_massless_coordinate_comes_back_exactly();
    return check_report();
}
