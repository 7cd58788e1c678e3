/* gm_system.c: loading and scaling, input checks, verdicts on both sides of every
 * tolerance, the solve against slow loops. */
#include "check.h"
#include "gm_system.h"
#include "problems.h"

typedef struct {
    systems given;
    gm_problem p;
    gm_system s;
    void *work;
    gm_status status;
} loaded;

static void
reload(loaded *x)
{
    int n = x->given.n, m = x->given.m;
    size_t bytes = gm_system_size(n, m) * sizeof(double);

    memset(x->work, 0xa5, bytes);
    gm_system_place(&x->s, NULL, n, m, x->work);
    x->s.rank = 0;
    x->s.nullity = 0;
    x->status = gm_system_load(&x->s, &x->p, 0);
}

static void
open_system(loaded *x, int kind, int n, int m, int with_C)
{
    x->given = systems_new(n, m, 1, with_C);
    make_system(kind, &x->given, 0);
    x->p = plain_problem(&x->given);
    x->work = exact_bytes(gm_system_size(n, m) * sizeof(double));
    reload(x);
}

static void
close_system(loaded *x)
{
    systems_free(&x->given);
    free(x->work);
}

static gm_status
factor(loaded *x)
{
    gm_status status = gm_system_factor_mass(&x->s);
    gm_system_factor_rows(&x->s);
    gm_system_factor_motion(&x->s);
    return status;
}

static int
is_power_of_two(double x)
{
    int e;
    return isfinite(x) && x > 0.0 && frexp(x, &e) == 0.5;
}

static void
test_the_block_holds_all_arrays_without_overlap(void)
{
    for (int t = 0; t < LENGTH(sizes) * LENGTH(sizes); t++) {
        int n = sizes[t % LENGTH(sizes)], m = sizes[t / LENGTH(sizes)];
        size_t N = (size_t)n, K = (size_t)m, k = N < K ? N : K;
        void *work = exact_bytes(gm_system_size(n, m) * sizeof(double));
        gm_system s;

        check_note("n = %d, m = %d", n, m);
        gm_system_place(&s, NULL, n, m, work);
        struct {
            double *at;
            size_t size;
        } arrays[] = {{s.M, N * N},   {s.mass, N * N},         {s.Z, N * N},
                      {s.H, N * N},   {s.V, N * N},            {s.A, K * N},
                      {s.B, K * N},   {s.X, K * k},            {s.G, K * k},
                      {s.Q, N},       {s.C, N},                {s.f, N},
                      {s.d, N},       {s.g, N},                {s.x, N},
                      {s.x1, N},      {s.r1, N},               {s.t, N + K},
                      {s.b, K},       {s.s, K},                {s.unit, K},
                      {s.tau, k},     {s.Gt, K},               {s.mu, K},
                      {s.mu1, K},     {s.r2, K},               {s.work, 64 * (N + K)}};
        for (int a = 0; a < LENGTH(arrays); a++) {
            for (size_t e = 0; e < arrays[a].size; e++) {
                arrays[a].at[e] = a;
            }
        }
        for (int j = 0; j < n; j++) {
            s.mass_perm[j] = -1 - j;
            s.H_perm[j] = -1000 - j;
        }
        for (int i = 0; i < m; i++) {
            s.row[i] = -2000 - i;
            s.clash[i] = 1;
        }
        int good = 1;
        for (int a = 0; a < LENGTH(arrays); a++) {
            for (size_t e = 0; e < arrays[a].size; e++) {
                good = good && arrays[a].at[e] == a;
            }
        }
        for (int j = 0; j < n; j++) {
            good = good && s.mass_perm[j] == -1 - j && s.H_perm[j] == -1000 - j;
        }
        for (int i = 0; i < m; i++) {
            good = good && s.row[i] == -2000 - i && s.clash[i] == 1;
        }
        CHECK(good);
        free(work);
    }
}

static void
test_sizes_that_overflow_are_refused(void)
{
    int huge = 1 << 28, most = 2147483647;
    check_note("overflow");
    CHECK(gm_system_size(0, 0) > 0);
    CHECK(gm_system_size(most, 1) == 0 && gm_system_size(1, most) == 0);
    CHECK(gm_system_size(huge + 1, 0) == 0 && gm_system_size(0, huge + 1) == 0);
    CHECK(gm_system_size(-1, 0) == 0 && gm_system_size(0, -1) == 0);
    CHECK(gm_system_size(huge, huge) == 0);
    CHECK(gm_system_size(100000, 100000) > 0);
}

static void
test_scaling_is_exact_and_brings_masses_and_rows_near_one(void)
{
    for (int t = 0; t < LENGTH(sizes); t++) {
        for (int kind = ROUND; kind <= DEPENDENT; kind++) {
            int n = sizes[t], m = (n + 2) / 2;
            if (!kind_fits(kind, n, m)) {
                continue;
            }
            loaded x;
            check_note("kind %d, n = %d, m = %d", kind, n, m);
            open_system(&x, kind, n, m, 1);
            gm_system *s = &x.s;
            CHECK(x.status == GM_OK);
            CHECK(s->has_C && s->clashes == 0);
            double largest = 0.0;
            for (int i = 0; i < n; i++) {
                double d = s->d[i], sum = 0.0, mass = AT(s->M, n, i, i);
                CHECK(is_power_of_two(d));
                CHECK(mass == 0.0 || (mass >= 0.5 && mass < 2.0));
                CHECK(s->Q[i] == x.given.Q[i] * d);
                CHECK(s->C[i] == x.given.C[i] * d);
                CHECK(s->f[i] == s->Q[i] + s->C[i]);
                for (int j = 0; j < n; j++) {
                    CHECK(AT(s->M, n, i, j) == AT(x.given.M, n, i, j) * d * s->d[j]);
                    sum += fabs(AT(s->M, n, i, j));
                }
                largest = sum > largest ? sum : largest;
            }
            CHECK(s->mass_size == largest);
            for (int k = 0; k < m && n > 0; k++) {
                double *row = &AT(s->A, n, k, 0), length = gm_norm(n, row);
                CHECK(is_power_of_two(s->s[k]));
                CHECK(length >= 0.7 && length < 1.42); /* its square in [0.5, 2) */
                CHECK_BELOW(fabs(s->unit[k] * length - 1.0), 4.0 * EPS);
                CHECK(s->b[k] == x.given.b[k] * s->s[k]);
                for (int j = 0; j < n; j++) {
                    CHECK(row[j] == AT(x.given.A, n, k, j) * s->s[k] * s->d[j]);
                }
            }
            close_system(&x);
        }
    }
}

static void
test_tolerances_have_the_defaults_of_the_contract(void)
{
    loaded x;
    check_note("rtol");
    open_system(&x, ROUND, 33, 3, 0);
    CHECK(x.s.rtol == 1e-12); /* 16 n eps is less up to n = 281 */
    x.p.rtol = 1e-3;
    reload(&x);
    CHECK(x.s.rtol == 1e-3);
    x.p.rtol = 0.0;
    reload(&x);
    CHECK(x.s.rtol == 0.0);
    x.p.rtol = -1.0;
    reload(&x);
    CHECK(x.s.rtol == 1e-12);
    CHECK(!x.s.has_C && x.s.ctol == 1e-9 && x.s.b_atol == 0.0);
    close_system(&x);
    open_system(&x, ROUND, 300, 1, 0);
    CHECK(x.s.rtol == 16.0 * 300.0 * EPS);
    close_system(&x);
}

static void
test_every_entry_that_is_not_finite_is_found(void)
{
    int n = 5, m = 3;
    double bad[] = {NAN, INFINITY, -INFINITY};
    loaded x;

    open_system(&x, ROUND, n, m, 1);
    x.given.row_scale = doubles((size_t)m);
    for (int k = 0; k < m; k++) {
        x.given.row_scale[k] = 1.0;
    }
    x.p = plain_problem(&x.given);
    reload(&x);
    CHECK(x.status == GM_OK);
    struct {
        const char *name;
        double *at;
        int size;
    } inputs[] = {{"M", x.given.M, n * n}, {"Q", x.given.Q, n}, {"A", x.given.A, m * n},
                  {"b", x.given.b, m},     {"C", x.given.C, n},
                  {"row_scale", x.given.row_scale, m}};
    for (int i = 0; i < LENGTH(inputs); i++) {
        for (int e = 0; e < inputs[i].size; e++) {
            double kept = inputs[i].at[e];
            for (int v = 0; v < LENGTH(bad); v++) {
                check_note("%s, entry %d is %g", inputs[i].name, e, bad[v]);
                inputs[i].at[e] = bad[v];
                reload(&x);
                CHECK(x.status == GM_NONFINITE);
            }
            inputs[i].at[e] = kept;
        }
    }
    close_system(&x);
}

static void
test_asymmetry_counts_from_1e10_of_the_masses_on(void)
{
    double masses[] = {1.0, 1e-100, 1e100, 3.7};
    for (int t = 0; t < LENGTH(masses); t++) {
        for (int upper = 0; upper < 2; upper++) {
            double a = masses[t], c = 2.0 * a;
            double bound = 1e-10 * sqrt(a) * sqrt(c);
            loaded x;
            open_system(&x, ROUND, 2, 0, 0);
            double *M = x.given.M;
            M[0] = a, M[3] = c, M[1] = M[2] = 0.0;
            check_note("masses near %g, upper %d", a, upper);
            M[upper ? 1 : 2] = bound;
            reload(&x);
            CHECK(x.status == GM_OK);
            CHECK(x.s.M[1] == x.s.M[2]); /* the mean, twice */
            CHECK(x.s.M[1] == 0.5 * bound * x.s.d[0] * x.s.d[1]);
            M[upper ? 1 : 2] = nextafter(bound, INFINITY);
            reload(&x);
            CHECK(x.status == GM_ASYMMETRIC);
            M[upper ? 1 : 2] = -nextafter(bound, INFINITY);
            reload(&x);
            CHECK(x.status == GM_ASYMMETRIC);
            close_system(&x);
        }
    }
}

static void
test_rows_that_are_zero_have_no_effect_or_clash(void)
{
    loaded x;
    check_note("zero row");
    open_system(&x, ZERO_ROW, 4, 3, 0);
    CHECK(x.status == GM_OK && x.s.clashes == 0);
    CHECK(x.s.unit[0] == 0.0 && x.s.s[0] == 0.0 && x.s.unit[1] > 0.0);
    x.given.b[0] = 1e-300; /* nothing cancels: any b is a clash */
    reload(&x);
    CHECK(x.s.clashes == 1 && x.s.clash[0] == 1 && x.s.clash[1] == 0);
    x.p.b_atol = 1e-300;
    reload(&x);
    CHECK(x.s.clashes == 0);
    x.p.b_atol = nextafter(1e-300, 0.0);
    reload(&x);
    CHECK(x.s.clashes == 1);
    close_system(&x);
}

static void
test_row_scale_decides_at_rtol_what_is_rounding_of_a_zero_row(void)
{
    /* M = I: d = 1, and a row with one entry has exactly its length */
    loaded x;
    open_system(&x, ROUND, 3, 1, 0);
    gm_zero(9, x.given.M);
    x.given.M[0] = x.given.M[4] = x.given.M[8] = 1.0;
    gm_zero(3, x.given.A);
    x.given.row_scale = doubles(1);
    x.given.row_scale[0] = 1.0;
    x.p = plain_problem(&x.given);
    x.p.rtol = ldexp(1.0, -30);
    for (int axis = 0; axis < 3; axis++) {
        check_note("axis %d", axis);
        gm_zero(3, x.given.A);
        x.given.A[axis] = ldexp(1.0, -30);
        x.given.b[0] = 0.0;
        reload(&x);
        CHECK(x.status == GM_OK && x.s.unit[0] == 0.0 && x.s.clashes == 0);
        x.given.A[axis] = ldexp(1.0 + 1e-15, -30);
        reload(&x);
        CHECK(x.s.unit[0] > 0.0);
    }
    /* in any unit of the coordinate: (A, mass) = (2^p, 4^p) is the same row */
    for (int p = -40; p <= 40; p += 40) {
        check_note("unit 2^%d", p);
        x.given.M[8] = ldexp(1.0, 2 * p);
        x.given.row_scale[0] = ldexp(1.0, p);
        x.given.A[2] = ldexp(1.0, p - 30);
        reload(&x);
        CHECK(x.s.unit[0] == 0.0);
        x.given.A[2] = ldexp(1.0 + 1e-15, p - 30);
        reload(&x);
        CHECK(x.s.unit[0] > 0.0);
    }
    x.given.M[8] = x.given.row_scale[0] = 1.0;
    /* such a row clashes when b is above the rounding of its terms and of the forces */
    check_note("right side of a cancelled row");
    x.given.A[2] = ldexp(1.0, -40);
    double force = gm_norm(3, x.given.Q), noise = 1e-9 * force / (1.0 - 1e-9);
    x.given.b[0] = noise * 0.999;
    reload(&x);
    CHECK(x.s.unit[0] == 0.0 && x.s.clashes == 0);
    x.given.b[0] = noise * 1.001;
    reload(&x);
    CHECK(x.s.unit[0] == 0.0 && x.s.clashes == 1);
    x.p.b_atol = noise * 0.002;
    reload(&x);
    CHECK(x.s.clashes == 0);
    close_system(&x);
}

static void
test_numbers_that_leave_the_range_are_reported(void)
{
    for (int n = 1; n <= 5; n++) {
        loaded x;
        check_note("n = %d", n);
        open_system(&x, OUT_OF_RANGE, n, 1, 0);
        CHECK(x.status == GM_NO_CONVERGENCE);
        x.given.Q[0] = 0.0;
        reload(&x);
        CHECK(x.status == GM_OK);
        close_system(&x);
    }
}

static void
test_a_row_whose_scale_leaves_the_range_is_reported(void)
{
    /* its power of two would be 2^-1495 or 2^1495: no zero row, and no usable one */
    double masses[] = {1e-300, 1e300}, rows[] = {1e300, 1e-300};
    for (int t = 0; t < 2; t++) {
        loaded x;
        check_note("mass %g, row %g", masses[t], rows[t]);
        open_system(&x, ROUND, 1, 1, 0);
        x.given.M[0] = masses[t];
        x.given.A[0] = rows[t];
        x.given.Q[0] = 0.0;
        for (int b = 0; b < 2; b++) {
            x.given.b[0] = b;
            reload(&x);
            CHECK(x.status == GM_NO_CONVERGENCE && x.s.clashes == 0);
        }
        close_system(&x);
    }
}

/* M^ of two coordinates with the last pivot 1 - c^2 */
static void
set_pivot(loaded *x, double pivot)
{
    double c = sqrt(1.0 - pivot);
    x->given.M[0] = x->given.M[3] = 1.0;
    x->given.M[1] = x->given.M[2] = c;
    reload(x);
}

static void
test_the_mass_matrix_is_judged_at_32_n_eps(void)
{
    double tol = 64.0 * EPS;
    loaded x;
    open_system(&x, ROUND, 2, 1, 0);

    /* the rounding of 1 - c^2 moves the pivot by up to 2 eps of 64 */
    check_note("regular");
    set_pivot(&x, 1.1 * tol);
    CHECK(gm_system_factor_mass(&x.s) == GM_OK && x.s.regular && x.s.mass_rank == 2);
    check_note("singular");
    set_pivot(&x, 0.9 * tol);
    CHECK(gm_system_factor_mass(&x.s) == GM_OK && !x.s.regular && x.s.mass_rank == 1);
    set_pivot(&x, -0.9 * tol);
    CHECK(gm_system_factor_mass(&x.s) == GM_OK && !x.s.regular && x.s.mass_rank == 1);
    check_note("indefinite");
    set_pivot(&x, -1.1 * tol);
    CHECK(gm_system_factor_mass(&x.s) == GM_INDEFINITE);

    check_note("negative mass");
    set_pivot(&x, 1.0);
    x.given.M[3] = -1e-300;
    reload(&x);
    CHECK(gm_system_factor_mass(&x.s) == GM_INDEFINITE);
    check_note("coupling without mass");
    x.given.M[3] = 0.0;
    x.given.M[1] = x.given.M[2] = 1e-20;
    reload(&x);
    CHECK(x.status == GM_OK && gm_system_factor_mass(&x.s) == GM_INDEFINITE);
    check_note("negative zero");
    x.given.M[1] = x.given.M[2] = 0.0;
    x.given.M[3] = -0.0;
    reload(&x);
    CHECK(gm_system_factor_mass(&x.s) == GM_OK && x.s.mass_rank == 1);
    close_system(&x);
}

static void
test_every_kind_gets_its_verdict_on_the_mass_matrix(void)
{
    for (int t = 0; t < LENGTH(sizes); t++) {
        for (int kind = 0; kind < KINDS; kind++) {
            int n = sizes[t], m = n / 2;
            loaded x;
            if (!kind_fits(kind, n, m) || kind == CLASH || kind >= MANY) {
                continue;
            }
            check_note("kind %d, n = %d", kind, n);
            open_system(&x, kind, n, m, 0);
            gm_status status = x.status;
            status = status == GM_OK ? gm_system_factor_mass(&x.s) : status;
            CHECK(status == (gm_status)kind_status(kind));
            if (status == GM_OK) {
                int lost = kind == SINGULAR || kind == MASSLESS;
                CHECK(x.s.regular == !lost && x.s.mass_rank == n - lost);
            }
            close_system(&x);
        }
    }
}

/* The last pivot of an elimination in the given order is lambda / v_n^2 with the null
 * vector v: far above rounding where v_n is small. */
static void
test_a_singular_mass_matrix_is_found_wherever_its_null_vector_points(void)
{
    int some[] = {3, 6, 12, 24};
    for (int t = 0; t < LENGTH(some); t++) {
        int n = some[t], missed = 0, refused = 0;
        loaded x;
        double *G = doubles((size_t)(n * n));
        check_note("n = %d", n);
        open_system(&x, ROUND, n, 0, 0);
        for (int draw = 0; draw < 500; draw++) {
            /* a sum of n - 1 squares: rank n - 1 to within rounding */
            fill_uniform((size_t)(n * (n - 1)), G);
            gram(n, n - 1, G, x.given.M);
            reload(&x);
            gm_status status = gm_system_factor_mass(&x.s);
            refused += x.status != GM_OK || status != GM_OK;
            missed += x.s.regular || x.s.mass_rank != n - 1;
        }
        CHECK_BELOW(refused, 0);
        CHECK_BELOW(missed, 0);
        free(G);
        close_system(&x);
    }
}

static void
test_dropped_rows_are_mixtures_of_accepted_ones(void)
{
    for (int t = 0; t < LENGTH(sizes); t++) {
        int n = sizes[t];
        for (int m = 2; m <= n + 3; m += 1 + n / 3) {
            loaded x;
            if (!kind_fits(DEPENDENT, n, m)) {
                continue;
            }
            check_note("n = %d, m = %d", n, m);
            open_system(&x, DEPENDENT, n, m, 0);
            gm_system *s = &x.s;
            (void)gm_system_factor_mass(s);
            gm_system_factor_rows(s);
            int rank = m - 1 < n ? m - 1 : n;
            CHECK(s->rank == rank && s->kept == m && s->clashes == 0);
            for (int c = 0; c < m - s->rank; c++) {
                int row = s->row[s->rank + c];
                for (int i = 0; i < n; i++) {
                    long double sum = 0.0L, total = 0.0L;
                    for (int j = 0; j < s->rank; j++) {
                        int other = s->row[j];
                        long double term = (long double)AT(s->X, s->rank, c, j) *
                                           s->unit[other] * AT(s->A, n, other, i);
                        sum += term;
                        total += fabsl(term);
                    }
                    double want = s->unit[row] * AT(s->A, n, row, i);
                    /* X carries the condition of the rows, below 1e2 */
                    CHECK_BELOW(fabs((double)(sum - want)),
                                100.0 * n * EPS * (1.0 + (double)total));
                }
            }
            close_system(&x);
        }
    }
}

static void
test_a_dependent_row_clashes_from_ctol_on(void)
{
    /* row 1 = 2 row 0, M = I, no force: gap / size = |b1 - 2 b0| / (|b1| + 2 |b0|) */
    loaded x;
    open_system(&x, ROUND, 2, 2, 0);
    double M[] = {1.0, 0.0, 0.0, 1.0}, A[] = {3.0, 4.0, 6.0, 8.0};
    memcpy(x.given.M, M, sizeof M);
    memcpy(x.given.A, A, sizeof A);
    gm_zero(2, x.given.Q);
    double ctol = 1e-9;
    for (int side = 0; side < 2; side++) {
        check_note("side %d", side);
        /* (2 + g - 2) / (4 + g) = ctol at g = 4 ctol / (1 - ctol) */
        double g = 4.0 * ctol / (1.0 - ctol) * (side ? 1.0 + 1e-5 : 1.0 - 1e-5);
        x.given.b[0] = 1.0;
        x.given.b[1] = 2.0 + g;
        x.p.b_atol = 0.0;
        reload(&x);
        (void)factor(&x);
        CHECK(x.s.rank == 1);
        CHECK(x.s.clashes == side);
        CHECK(x.s.clash[0] == side && x.s.clash[1] == side); /* both are named */
    }
    /* forces widen what counts as rounding, in the scale of the coordinates */
    check_note("with a force");
    x.given.Q[0] = 1.0;
    reload(&x);
    (void)factor(&x);
    CHECK(x.s.clashes == 0);
    gm_zero(2, x.given.Q);
    /* b_atol in the units of the dropped row: the one that is longer is kept */
    check_note("b_atol");
    double off = 2e-5;
    x.given.b[1] = 2.0 + off;
    for (int side = 0; side < 2; side++) {
        x.p.b_atol = 0.0;
        reload(&x);
        (void)factor(&x);
        CHECK(x.s.clashes == 1);
        int dropped = x.s.row[1];
        double slack = 4.0 * ctol * (dropped == 1 ? 1.0 : 0.5);
        x.p.b_atol = (off * (dropped == 1 ? 1.0 : 0.5) - slack) *
                     (side ? 1.0 - 1e-6 : 1.0 + 1e-6);
        reload(&x);
        (void)factor(&x);
        CHECK(x.s.clashes == side);
    }
    close_system(&x);
}

static void
test_a_consistent_system_never_clashes_and_one_off_by_a_tenth_always(void)
{
    for (int t = 0; t < 300; t++) {
        int n = 2 + t % 9, m = 2 + t % 5;
        loaded x;
        check_note("draw %d", t);
        open_system(&x, DEPENDENT, n, m, 0);
        /* units of coordinates and rows over twelve decades; row m - 1 stays a multiple
         * of row 0 */
        double f0 = pow(10.0, 6.0 * uniform()), f1 = pow(10.0, 6.0 * uniform());
        for (int j = 0; j < n; j++) {
            double u = pow(10.0, 3.0 * uniform());
            for (int i = 0; i < n; i++) {
                AT(x.given.M, n, i, j) *= u;
                AT(x.given.M, n, j, i) *= u;
            }
            x.given.Q[j] *= u;
            for (int k = 0; k < m; k++) {
                AT(x.given.A, n, k, j) *= u;
            }
        }
        for (int j = 0; j < n; j++) {
            for (int i = 0; i < j; i++) {
                AT(x.given.M, n, i, j) = AT(x.given.M, n, j, i);
            }
            AT(x.given.A, n, 0, j) *= f0;
            AT(x.given.A, n, m - 1, j) *= f1;
        }
        x.given.b[0] = f0;
        x.given.b[m - 1] = -2.0 * f1;
        for (int k = 1; k < m - 1; k++) {
            x.given.b[k] = k >= n ? 1.0 : x.given.b[k];
        }
        reload(&x);
        CHECK(x.status == GM_OK);
        (void)factor(&x);
        CHECK(x.s.clashes == 0);
        CHECK(x.s.rank == (m - 1 < n ? m - 1 : n));
        gm_zero((size_t)n, x.given.Q);
        x.given.b[m - 1] *= 1.1;
        reload(&x);
        (void)factor(&x);
        CHECK(x.s.clashes > 0);
        close_system(&x);
    }
}

static void
test_the_nullity_changes_exactly_at_64_n_eps_of_the_mass(void)
{
    /* without rows H = M^; its second pivot is set by hand, |M^| to a power of two */
    double tol = 64.0 * 2.0 * EPS;
    for (int size = -2; size <= 2; size++) {
        for (int side = 0; side < 2; side++) {
            double at = ldexp(tol, size);
            loaded x;
            check_note("size 2^%d, side %d", size, side);
            open_system(&x, ROUND, 2, 0, 0);
            gm_system *s = &x.s;
            CHECK(gm_system_factor_mass(s) == GM_OK);
            gm_system_factor_rows(s);
            s->regular = 0;
            s->mass_size = ldexp(1.0, size);
            s->M[0] = 1.0;
            s->M[1] = s->M[2] = 0.0;
            s->M[3] = side ? nextafter(at, 1.0) : at;
            gm_system_factor_motion(s);
            CHECK(s->nullity == !side);
            CHECK(s->H_rank == 1 + side);
            /* a regular M has no kernel, however small its pivots */
            s->regular = 1;
            gm_system_factor_motion(s);
            CHECK(s->nullity == 0);
            close_system(&x);
        }
    }
}

static void
test_a_mass_of_rank_one_without_rows_has_a_free_direction(void)
{
    loaded x;
    check_note("singular M, no rows");
    open_system(&x, ROUND, 2, 0, 0);
    set_pivot(&x, 30.0 * EPS);
    CHECK(factor(&x) == GM_OK && !x.s.regular);
    CHECK(x.s.nullity == 1 && x.s.H_rank == 1);
    /* its direction is (1, -1) */
    CHECK_BELOW(fabs(x.s.V[0] + x.s.V[1]), 1e-7); /* sqrt(30 eps) */
    close_system(&x);
}

static void
test_a_massless_coordinate_on_a_row_is_never_free_whatever_its_unit(void)
{
    for (int e = -300; e <= 300; e += 20) {
        loaded x;
        check_note("unit 1e%d", e);
        open_system(&x, MASSLESS, 2, 1, 0);
        x.given.A[0] = pow(10.0, e);
        reload(&x);
        CHECK(x.status == GM_OK && factor(&x) == GM_OK);
        CHECK(x.s.mass_rank == 1 && x.s.nullity == 0);
        close_system(&x);
    }
}

static void
test_the_motion_matrix_is_z_m_z(void)
{
    for (int t = 0; t < LENGTH(sizes); t++) {
        int n = sizes[t], m = n / 3, k = n - m;
        loaded x;
        check_note("n = %d", n);
        open_system(&x, ROUND, n, m, 0);
        CHECK(factor(&x) == GM_OK);
        gm_system *s = &x.s;
        CHECK(s->rank == m && s->nullity == 0 && !s->pivoted);
        for (int i = 0; i < k; i++) {
            for (int j = 0; j <= i; j++) {
                long double want = 0.0L, have = 0.0L;
                for (int a = 0; a < n; a++) {
                    for (int b = 0; b < n; b++) {
                        want += (long double)AT(s->Z, n, i, a) * AT(s->M, n, a, b) *
                                AT(s->Z, n, j, b);
                    }
                }
                for (int l = 0; l <= j; l++) {
                    have += (long double)AT(s->H, k, i, l) * AT(s->H, k, j, l);
                }
                have /= (long double)s->g[i] * s->g[j];
                CHECK_BELOW(fabs((double)(want - have)),
                            8.0 * (n + 1) * EPS * s->mass_size);
            }
            CHECK(is_power_of_two(s->g[i]));
        }
        close_system(&x);
    }
}

/* least squares of A x = b by the normal equations in long double, on `rank` rows that
 * span: b_fit = A A^+ b. The rows are given as combinations of base rows. */
static void
test_projection_is_least_squares_in_the_units_of_the_caller(void)
{
    for (int t = 0; t < 100; t++) {
        int n = 3 + t % 6, m = 2 + t % 4;
        loaded x;
        check_note("draw %d", t);
        open_system(&x, CLASH, n, m, 0);
        for (int j = 0; j < n; j++) {
            /* row m - 1 is c times row 0 */
            AT(x.given.A, n, m - 1, j) = -7.0 * AT(x.given.A, n, 0, j);
        }
        for (int k = n; k < m - 1; k++) {
            for (int j = 0; j < n; j++) {
                AT(x.given.A, n, k, j) = AT(x.given.A, n, k - n + 1, j);
            }
        }
        reload(&x);
        CHECK(x.status == GM_OK);
        (void)factor(&x);
        gm_system *s = &x.s;
        CHECK(s->clashes > 0);
        gm_system_project(s);

        /* x_fit: minimum-norm least squares by A'(A A' restricted) in long double:
         * with B = accepted rows and A = T B, b_fit of B is (T'T)^-1 T' b */
        int r = s->rank;
        long double *T = need(calloc((size_t)(m * r) + 1, sizeof *T));
        long double *K = need(calloc((size_t)(r * r) + 1, sizeof *K));
        long double *z = need(calloc((size_t)r + 1, sizeof *z));
        for (int k = 0; k < m; k++) {
            /* T_k: row k in terms of the accepted ones, by their Gram matrix */
            for (int i = 0; i < r; i++) {
                const double *B = &AT(x.given.A, n, s->row[i], 0);
                z[i] = 0.0L;
                for (int a = 0; a < n; a++) {
                    z[i] += (long double)B[a] * AT(x.given.A, n, k, a);
                }
                for (int j = 0; j < r; j++) {
                    long double sum = 0.0L;
                    for (int a = 0; a < n; a++) {
                        sum += (long double)B[a] * AT(x.given.A, n, s->row[j], a);
                    }
                    AT(K, r, i, j) = sum;
                }
            }
            eliminate(r, K, z);
            memcpy(&AT(T, r, k, 0), z, (size_t)r * sizeof *z);
        }
        for (int i = 0; i < r; i++) {
            z[i] = 0.0L;
            for (int k = 0; k < m; k++) {
                z[i] += AT(T, r, k, i) * x.given.b[k];
            }
            for (int j = 0; j < r; j++) {
                AT(K, r, i, j) = 0.0L;
                for (int k = 0; k < m; k++) {
                    AT(K, r, i, j) += AT(T, r, k, i) * AT(T, r, k, j);
                }
            }
        }
        eliminate(r, K, z);
        for (int i = 0; i < r; i++) {
            int row = s->row[i];
            double have = s->b[row] / s->s[row], want = (double)z[i];
            /* condition of T below 1e2, of the rows below 1e2 */
            CHECK_BELOW(fabs(have - want), 1e4 * EPS * 8.0);
        }
        free(T);
        free(K);
        free(z);
        close_system(&x);
    }
}

/* |x - y| */
static double
gap(int n, const double *x, const double *y)
{
    double sum = 0.0;
    for (int i = 0; i < n; i++) {
        sum += (x[i] - y[i]) * (x[i] - y[i]);
    }
    return sqrt(sum);
}

static void
test_the_solve_agrees_with_slow_elimination(void)
{
    for (int t = 0; t < LENGTH(sizes); t++) {
        for (int kind = ROUND; kind < GOOD_KINDS; kind++) {
            int n = sizes[t];
            for (int m = 0; m <= n; m += 1 + n / 3) {
                loaded x;
                if (!kind_fits(kind, n, m)) {
                    continue;
                }
                check_note("kind %d, n = %d, m = %d", kind, n, m);
                open_system(&x, kind, n, m, 1);
                gm_system *s = &x.s;
                CHECK(x.status == GM_OK && factor(&x) == GM_OK);
                CHECK(s->rank == m && s->nullity == 0);
                double *y = doubles((size_t)n), *nu = doubles((size_t)m);
                double *have = doubles((size_t)m);
                /* in scaled numbers */
                slow_motion(n, m, s->M, s->A, s->f, s->b, y, nu);
                gm_system_solve(s, s->f, s->b, s->x, s->mu);
                for (int j = 0; j < m; j++) {
                    have[s->row[j]] = s->mu[j] * s->unit[s->row[j]];
                }
                double bound = kind_bound(kind);
                CHECK_BELOW(distance(n, s->x, y), bound);
                CHECK_BELOW(distance(m, have, nu), bound);
                /* force = M x - Q, from either side, with and without C; in units of
                 * the forces that it is the difference of */
                double *force = copy_of((size_t)n, s->Q), *zero = doubles((size_t)n);
                double unit = bound * (gm_norm(n, s->f) + gm_norm(n, y));
                gm_zero((size_t)n, zero);
                slow_product(n, n, s->M, y, -1.0, force);
                gm_system_residual(s, s->x, s->Q, s->r1);
                CHECK_BELOW(gap(n, s->r1, force), unit);
                gm_system_force(s, s->x, s->mu, s->Q, s->C, s->r1);
                CHECK_BELOW(gap(n, s->r1, force), unit);
                gm_copy((size_t)n, s->f, force);
                slow_product(n, n, s->M, y, -1.0, force);
                gm_system_force(s, s->x, s->mu, s->f, zero, s->r1);
                CHECK_BELOW(gap(n, s->r1, force), unit);
                free(zero);
                free(force);
                free(y);
                free(nu);
                free(have);
                close_system(&x);
            }
        }
    }
}

/* Without the step of refinement the mean errors of these systems are 7 eps for x and
 * 13 eps for the multipliers. */
static void
test_a_step_of_refinement_leaves_little_more_than_the_rounding_of_the_result(void)
{
    int n = 6, m = 3, draws = 200;
    double motion = 0.0, multipliers = 0.0;
    for (int t = 0; t < draws; t++) {
        loaded x;
        double y[6], nu[3], have[3];
        open_system(&x, ROUND, n, m, 0);
        gm_zero((size_t)(n * n), x.given.M);
        for (int i = 0; i < n; i++) {
            AT(x.given.M, n, i, i) = pow(10.0, 4.0 * (i % 3));
        }
        reload(&x);
        CHECK(factor(&x) == GM_OK);
        gm_system *s = &x.s;
        slow_motion(n, m, s->M, s->A, s->f, s->b, y, nu);
        gm_system_solve(s, s->f, s->b, s->x, s->mu);
        for (int j = 0; j < m; j++) {
            have[s->row[j]] = s->mu[j] * s->unit[s->row[j]];
        }
        motion += distance(n, s->x, y);
        multipliers += distance(m, have, nu);
        close_system(&x);
    }
    check_note("masses over eight decades");
    CHECK_BELOW(motion / draws, 2.0 * EPS);
    CHECK_BELOW(multipliers / draws, 3.0 * EPS);
}

static void
test_multipliers_of_dependent_rows_have_the_least_norm(void)
{
    for (int t = 0; t < 100; t++) {
        int n = 2 + t % 8, m = 2 + t % 5;
        loaded x;
        if (m > n + 1) {
            continue;
        }
        check_note("draw %d", t);
        open_system(&x, DEPENDENT, n, m, 0);
        CHECK(factor(&x) == GM_OK);
        gm_system *s = &x.s;
        double *lambda = doubles((size_t)m), *force = doubles((size_t)n);
        gm_system_solve(s, s->f, s->b, s->x, s->mu);
        gm_system_multipliers(s, s->mu, lambda);
        /* A'lambda is the force: M q - Q in the caller's numbers */
        gm_system_residual(s, s->x, s->f, s->r1);
        slow_transposed(m, n, x.given.A, lambda, 0.0, force);
        for (int j = 0; j < n; j++) {
            force[j] *= s->d[j];
        }
        CHECK_BELOW(distance(n, force, s->r1), 1e4 * EPS);
        /* lambda is orthogonal to the relation 2 row 0 + row m-1 = 0 */
        double size = gm_norm(m, lambda);
        CHECK_BELOW(fabs(2.0 * lambda[0] + lambda[m - 1]), 1e4 * EPS * size);
        free(lambda);
        free(force);
        close_system(&x);
    }
}

static void
test_forces_on_free_massless_directions_are_found_at_1e8(void)
{
    for (int side = 0; side < 2; side++) {
        loaded x;
        check_note("side %d", side);
        open_system(&x, MANY, 3, 1, 0);
        CHECK(factor(&x) == GM_OK);
        gm_system *s = &x.s;
        CHECK(s->nullity == 1 && !gm_system_drives_kernel(s, s->f));
        double size = gm_norm(3, s->f), f[3];
        gm_copy(3, s->f, f);
        f[2] = size * 1e-8 * (side ? 1.0 + 1e-6 : 1.0 - 1e-6);
        CHECK(gm_system_drives_kernel(s, f) == side);
        /* nothing in ker M and ker A for regular M: nothing to drive */
        close_system(&x);
        open_system(&x, ROUND, 3, 1, 0);
        CHECK(factor(&x) == GM_OK && !gm_system_drives_kernel(&x.s, f));
        close_system(&x);
    }
}

static void
test_zwang_is_the_norm_of_the_force_in_the_inverse_mass(void)
{
    for (int t = 0; t < LENGTH(sizes); t++) {
        int n = sizes[t];
        loaded x;
        check_note("n = %d", n);
        open_system(&x, ROUND, n, n / 2, 0);
        CHECK(factor(&x) == GM_OK);
        gm_system *s = &x.s;
        double *z = doubles((size_t)n), *f = doubles((size_t)n);
        fill_uniform((size_t)n, f);
        slow_motion(n, 0, s->M, NULL, f, NULL, z, NULL);
        double want = gm_dot(n, z, f), have = gm_system_zwang(s, f);
        CHECK_BELOW(fabs(have - want), 1e4 * EPS * fabs(want));
        free(z);
        free(f);
        close_system(&x);
    }
}

static void
test_zwang_of_a_singular_mass_is_defined_when_the_force_is_in_its_range(void)
{
    for (int side = 0; side < 2; side++) {
        loaded x;
        check_note("side %d", side);
        open_system(&x, MASSLESS, 4, 2, 0);
        CHECK(factor(&x) == GM_OK);
        gm_system *s = &x.s;
        s->Q[0] = 0.0;
        s->Q[0] = gm_norm(4, s->Q) * 1e-8 * (side ? 1.0 + 1e-6 : 1.0 - 1e-6);
        double f[4] = {0.0, 0.3, -0.2, 0.7}, z[3], want;
        double M[9];
        for (int i = 0; i < 9; i++) {
            M[i] = AT(s->M, 4, 1 + i / 3, 1 + i % 3);
        }
        slow_motion(3, 0, M, NULL, f + 1, NULL, z, NULL);
        want = gm_dot(3, z, f + 1);
        double have = gm_system_zwang(s, f);
        CHECK(side ? isnan(have) : fabs(have - want) <= 1e4 * EPS * want);
        close_system(&x);
    }
}

int
main(void)
{
    test_the_block_holds_all_arrays_without_overlap();
    test_sizes_that_overflow_are_refused();
    test_scaling_is_exact_and_brings_masses_and_rows_near_one();
    test_tolerances_have_the_defaults_of_the_contract();
    test_every_entry_that_is_not_finite_is_found();
    test_asymmetry_counts_from_1e10_of_the_masses_on();
    test_rows_that_are_zero_have_no_effect_or_clash();
    test_row_scale_decides_at_rtol_what_is_rounding_of_a_zero_row();
    test_numbers_that_leave_the_range_are_reported();
    test_a_row_whose_scale_leaves_the_range_is_reported();
    test_the_mass_matrix_is_judged_at_32_n_eps();
    test_every_kind_gets_its_verdict_on_the_mass_matrix();
    test_a_singular_mass_matrix_is_found_wherever_its_null_vector_points();
    test_dropped_rows_are_mixtures_of_accepted_ones();
    test_a_dependent_row_clashes_from_ctol_on();
    test_a_consistent_system_never_clashes_and_one_off_by_a_tenth_always();
    test_the_nullity_changes_exactly_at_64_n_eps_of_the_mass();
    test_a_mass_of_rank_one_without_rows_has_a_free_direction();
    test_a_massless_coordinate_on_a_row_is_never_free_whatever_its_unit();
    test_the_motion_matrix_is_z_m_z();
    test_projection_is_least_squares_in_the_units_of_the_caller();
    test_the_solve_agrees_with_slow_elimination();
    test_a_step_of_refinement_leaves_little_more_than_the_rounding_of_the_result();
    test_multipliers_of_dependent_rows_have_the_least_norm();
    test_forces_on_free_massless_directions_are_found_at_1e8();
    test_zwang_is_the_norm_of_the_force_in_the_inverse_mass();
    test_zwang_of_a_singular_mass_is_defined_when_the_force_is_in_its_range();
    return check_report();
}
