/* gm_gauss.c: the functions that the binding calls. Answers against slow loops, every
 * status, every layout, every choice of outputs, all that is wanted written and nothing
 * else. */
#include "check.h"
#include "gm_dense.h"
#include "problems.h"

static void
run(const gm_problem *p, const record *r, ptrdiff_t count)
{
    void *work = exact_work(r->n, r->m);
    gm_gauss(gm_cpu_best(), NULL, r->n, r->m, count, p, &r->motion, work);
    free(work);
}

/* one system of a kind, solved with `wanted` outputs */
static record
solved(const systems *s, unsigned wanted, int options)
{
    record r;
    gm_problem p = plain_problem(s);
    p.options = options;
    record_open(&r, s->n, s->m, 1, wanted, PLAIN);
    run(&p, &r, 1);
    return r;
}

static systems
one_of(int kind, int n, int m, int with_C)
{
    systems s = systems_new(n, m, 1, with_C);
    make_system(kind, &s, 0);
    return s;
}

static void
test_both_paths_agree_with_slow_elimination(void)
{
    for (int t = 0; t < LENGTH(sizes) * GOOD_KINDS; t++) {
        int n = sizes[t / GOOD_KINDS], kind = t % GOOD_KINDS;
        for (int m = 0; m <= n; m += 1 + n / 3) {
            for (int with_C = 0; with_C < 2 && kind_fits(kind, n, m); with_C++) {
                systems s = one_of(kind, n, m, with_C);
                for (int general = 0; general < 2; general++) {
                    check_note("kind %d, n = %d, m = %d, C %d, general %d", kind, n, m,
                               with_C, general);
                    record r = solved(&s, general ? EVERYTHING : ALL_FIELDS, 0);
                    check_motion(kind, &s, 0, &r, 0, kind_bound(kind));
                    CHECK(record_written(&r, 0));
                    record_close(&r);
                }
                systems_free(&s);
            }
        }
    }
}

static void
test_every_kind_gets_its_status_and_writes_all_that_is_wanted(void)
{
    for (int t = 0; t < LENGTH(sizes) * KINDS; t++) {
        int n = sizes[t / KINDS], kind = t % KINDS;
        int rows[] = {0, 1, n / 2, n, n + 2};
        for (int u = 0; u < LENGTH(rows); u++) {
            int m = rows[u];
            if (!kind_fits(kind, n, m)) {
                continue;
            }
            for (int pattern = 0; pattern < LAYOUTS; pattern++) {
                systems s = one_of(kind, n, m, pattern % 2);
                gm_problem p = plain_problem(&s);
                record r;
                check_note("kind %d, n = %d, m = %d, layout %d", kind, n, m, pattern);
                unsigned wanted = pattern == 3 ? EVERYTHING : ALL_FIELDS;
                record_open(&r, n, m, 2, wanted, pattern);
                run(&p, &r, 1);
                int status = kind_status(kind);
                CHECK(status_at(&r, 0) == status);
                CHECK(record_written(&r, 0));
                CHECK(record_clean(&r, 1));
                CHECK(status >= 0 || record_void(&r, 0));
                int64_t rank = integer_at(&r, RANK, 0);
                int64_t null = integer_at(&r, NULLITY, 0);
                if (status >= GM_INDEFINITE && status < 0) {
                    CHECK(rank == -1 && null == -1);
                } else if (status == GM_INDETERMINATE_MANY ||
                           status == GM_INDETERMINATE_NONE) {
                    CHECK(rank == m && null == 1);
                } else if (status == GM_OK) {
                    CHECK(rank >= 0 && rank <= (m < n ? m : n) && null == 0);
                }
                record_close(&r);
                systems_free(&s);
            }
        }
    }
}

static void
test_faults_are_reported_in_the_order_of_the_contract(void)
{
    /* each fault on top of the earlier ones: the last one added wins */
    systems s = one_of(CLASH, 5, 3, 0);
    struct {
        const char *name;
        int status;
    } want[] = {{"clash", GM_INCONSISTENT},    {"and many", GM_INCONSISTENT},
                {"and none", GM_INCONSISTENT}, {"and out of range", GM_NO_CONVERGENCE},
                {"and negative", GM_INDEFINITE}, {"and skew", GM_ASYMMETRIC},
                {"and nan", GM_NONFINITE}};
    for (int t = 0; t < LENGTH(want); t++) {
        if (t == 1) {
            for (int j = 0; j < 5; j++) {
                AT(s.M, 5, 4, j) = AT(s.M, 5, j, 4) = 0.0;
            }
            for (int k = 0; k < 3; k++) {
                AT(s.A, 5, k, 4) = 0.0;
            }
            s.Q[4] = 0.0;
        } else if (t == 2) {
            s.Q[4] = 1.0;
        } else if (t == 3) {
            AT(s.M, 5, 3, 3) = 1e-250;
            for (int j = 0; j < 5; j++) {
                if (j != 3) {
                    AT(s.M, 5, 3, j) = AT(s.M, 5, j, 3) = 0.0;
                }
            }
            s.Q[3] = 1e200;
        } else if (t == 4) {
            AT(s.M, 5, 2, 2) *= -1.0;
        } else if (t == 5) {
            AT(s.M, 5, 0, 1) += 1.0;
        } else if (t == 6) {
            s.b[0] = NAN;
        }
        check_note("%s", want[t].name);
        record r = solved(&s, EVERYTHING, 0);
        CHECK(status_at(&r, 0) == want[t].status);
        record_close(&r);
        r = solved(&s, ALL_FIELDS, 0);
        CHECK(status_at(&r, 0) == want[t].status);
        record_close(&r);
    }
    systems_free(&s);

    check_note("none before many");
    s = one_of(NONE, 4, 1, 0);
    for (int options = 0; options < 4; options++) {
        record r = solved(&s, ALL_FIELDS, options);
        CHECK(status_at(&r, 0) == GM_INDETERMINATE_NONE); /* always */
        record_close(&r);
    }
    systems_free(&s);
}

static void
test_options_turn_faults_into_remarks(void)
{
    int both = GM_PROJECT | GM_ALLOW_MINIMUM_NORM;
    systems s = systems_new(5, 3, 1, 0);
    for (int kind = 0; kind < 4; kind++) {
        int clash = kind & 1, many = kind & 2;
        make_system(clash ? CLASH : DEPENDENT, &s, 0);
        if (many) {
            for (int j = 0; j < 5; j++) {
                AT(s.M, 5, 4, j) = AT(s.M, 5, j, 4) = 0.0;
            }
            for (int k = 0; k < 3; k++) {
                AT(s.A, 5, k, 4) = 0.0;
            }
            s.Q[4] = 0.0;
        }
        for (int options = 0; options <= both; options++) {
            int want = (clash ? GM_PROJECTED : 0) | (many ? GM_MINIMUM_NORM : 0);
            if (clash && !(options & GM_PROJECT)) {
                want = GM_INCONSISTENT;
            } else if (many && !(options & GM_ALLOW_MINIMUM_NORM)) {
                want = GM_INDETERMINATE_MANY;
            }
            check_note("clash %d, many %d, options %d", clash, many, options);
            record r = solved(&s, ALL_FIELDS, options);
            CHECK(status_at(&r, 0) == want);
            CHECK(integer_at(&r, RANK, 0) == 2);
            CHECK(integer_at(&r, NULLITY, 0) == (many ? 1 : 0));
            CHECK((want < 0) == record_void(&r, 0));
            if (many && want >= 0) {
                CHECK_BELOW(fabs(number_at(&r, QDD, 0, 4)), 1e3 * EPS); /* least norm */
            }
            record_close(&r);
        }
    }
    systems_free(&s);
}

static void
test_projection_is_least_squares_and_the_residual_tells_what_is_left(void)
{
    /* rows x = 1, 2 x = 5: b_fit minimises (x - 1)^2 + (2 x - 5)^2, x = 11 / 5 */
    systems s = systems_new(2, 2, 1, 0);
    double M[] = {2.0, 0.0, 0.0, 3.0}, A[] = {1.0, 0.0, 2.0, 0.0};
    memcpy(s.M, M, sizeof M);
    memcpy(s.A, A, sizeof A);
    s.Q[0] = 4.0, s.Q[1] = 6.0, s.b[0] = 1.0, s.b[1] = 5.0;
    record r = solved(&s, EVERYTHING, GM_PROJECT);
    check_note("projection");
    double want[] = {2.2, 2.0}, residual[] = {1.2, -0.6};
    CHECK(status_at(&r, 0) == GM_PROJECTED && integer_at(&r, RANK, 0) == 1);
    CHECK_BELOW(field_distance(&r, QDD, 0, want), 8.0 * EPS);
    CHECK_BELOW(field_distance(&r, RESIDUAL, 0, residual), 8.0 * EPS);
    /* Q_c = 2 * 2.2 - 4 on x; multipliers of least norm: along (1, 2) / 5 */
    double multipliers[] = {0.4 / 5.0, 0.8 / 5.0};
    CHECK_BELOW(field_distance(&r, MULTIPLIERS, 0, multipliers), 32.0 * EPS);
    CHECK(flag_at(&r, UNIQUE, 0, 0) == 0 && flag_at(&r, UNIQUE, 0, 1) == 0);
    CHECK(flag_at(&r, BLAME, 0, 0) == 1 && flag_at(&r, BLAME, 0, 1) == 1);
    record_close(&r);
    systems_free(&s);
}

static void
test_flags_tell_vanished_rows_from_rows_that_share_their_force(void)
{
    /* e_0; zero; 1e9 e_0; e_1 */
    systems s = systems_new(3, 4, 1, 0);
    make_system(ROUND, &s, 0);
    gm_zero(12, s.A);
    s.A[0] = 1.0, s.A[6] = 1e9, s.A[10] = 1.0;
    s.b[0] = 0.5, s.b[1] = 0.0, s.b[2] = 0.5e9, s.b[3] = -1.0;
    int unique[] = {0, 0, 0, 1}, vanished[] = {0, 1, 0, 0};
    record r = solved(&s, EVERYTHING, 0);
    check_note("flags");
    CHECK(status_at(&r, 0) == GM_OK && integer_at(&r, RANK, 0) == 2);
    for (int k = 0; k < 4; k++) {
        CHECK(flag_at(&r, UNIQUE, 0, k) == unique[k]);
        CHECK(flag_at(&r, VANISHED, 0, k) == vanished[k]);
        CHECK(flag_at(&r, BLAME, 0, k) == 0);
    }
    CHECK(number_at(&r, MULTIPLIERS, 0, 1) == 0.0);
    record_close(&r);
    systems_free(&s);
}

static void
test_null_vectors_are_in_the_units_of_the_caller_and_only_as_many_as_there_are(void)
{
    for (int n = 2; n <= 9; n++) {
        systems s = one_of(MANY, n, n / 2, 0);
        record r = solved(&s, EVERYTHING, 0);
        check_note("n = %d", n);
        CHECK(status_at(&r, 0) == GM_INDETERMINATE_MANY);
        CHECK(integer_at(&r, NULLITY, 0) == 1);
        for (int i = 0; i < n; i++) {
            double v, rest;
            memcpy(&v, record_element(&r, KERNEL, 0, 0, i), sizeof v);
            CHECK_BELOW(fabs(fabs(v) - (i == n - 1)), 1e3 * EPS);
            for (int k = 1; k < n; k++) {
                memcpy(&rest, record_element(&r, KERNEL, 0, k, i), sizeof rest);
                CHECK(rest == 999.0);
            }
        }
        record_close(&r);
        systems_free(&s);
    }
}

static void
test_null_vectors_of_coordinates_in_different_units_are_null_vectors(void)
{
    /* M = v v', v = (1, 1000): the null vector is along (1000, -1) */
    systems s = systems_new(2, 0, 1, 0);
    double M[] = {1.0, 1e3, 1e3, 1e6}, v[2];
    memcpy(s.M, M, sizeof M);
    s.Q[0] = s.Q[1] = 0.0;
    record r = solved(&s, EVERYTHING, 0);
    check_note("units");
    CHECK(status_at(&r, 0) == GM_INDETERMINATE_MANY);
    for (int i = 0; i < 2; i++) {
        memcpy(&v[i], record_element(&r, KERNEL, 0, 0, i), sizeof v[i]);
    }
    CHECK(v[0] != 0.0);
    /* the scaled M is singular to within 32 n eps at most */
    CHECK_BELOW(fabs(v[0] + 1e3 * v[1]), 64.0 * EPS * fabs(v[0]));
    record_close(&r);
    systems_free(&s);
}

static void
test_forces_on_massless_directions_leave_the_parts_undefined(void)
{
    /* C along W: Q + C = 0 there, so the motion exists but Q_ideal and K do not */
    systems s = one_of(MANY, 4, 1, 1);
    s.Q[3] = -2.0;
    s.C[3] = 2.0;
    for (int general = 0; general < 2; general++) {
        check_note("general %d", general);
        record r =
            solved(&s, general ? EVERYTHING : ALL_FIELDS, GM_ALLOW_MINIMUM_NORM);
        CHECK(status_at(&r, 0) == GM_MINIMUM_NORM);
        for (int i = 0; i < 4; i++) {
            CHECK(isfinite(number_at(&r, QDD, 0, i)));
            CHECK(isfinite(number_at(&r, Q_C, 0, i)));
            CHECK(isnan(number_at(&r, Q_IDEAL, 0, i)) &&
                  isnan(number_at(&r, K_PART, 0, i)));
        }
        CHECK(isnan(number_at(&r, MULTIPLIERS, 0, 0)));
        CHECK(isfinite(number_at(&r, TOTAL, 0, 0)));
        record_close(&r);
    }
    systems_free(&s);
}

static void
test_any_choice_of_outputs_has_the_bits_of_the_full_call(void)
{
    int kinds[] = {ROUND, SINGULAR, WEAK, DEPENDENT, ZERO_ROW, MANY, CLASH, NAN_FORCE};
    for (int t = 0; t < LENGTH(kinds); t++) {
        for (int with_C = 0; with_C < 2; with_C++) {
            int options = kinds[t] == MANY ? GM_ALLOW_MINIMUM_NORM : 0;
            systems s = one_of(kinds[t], 6, 3, with_C);
            record full = solved(&s, ALL_FIELDS, options);
            for (unsigned wanted = 0; wanted < 1u << BLAME; wanted += 1 + wanted % 7) {
                check_note("kind %d, C %d, outputs %x", kinds[t], with_C, wanted);
                record r = solved(&s, wanted, options);
                CHECK(record_same(&r, 0, &full, 0));
                CHECK(record_written(&r, 0) && record_clean(&r, 1));
                record_close(&r);
            }
            for (int f = 0; f < BLAME; f++) {
                check_note("kind %d, C %d, %s only", kinds[t], with_C, fields[f].name);
                record r = solved(&s, 1u << f, options);
                CHECK(record_same(&r, 0, &full, 0));
                CHECK(record_written(&r, 0) && record_clean(&r, 1));
                record_close(&r);
            }
            record_close(&full);
            systems_free(&s);
        }
    }
}

static void
test_layouts_of_inputs_and_outputs_do_not_change_a_bit(void)
{
    for (int kind = 0; kind <= ZERO_ROW; kind++) {
        int n = 5, m = 3;
        systems s = systems_new(n, m, 3, 1);
        s.row_scale = doubles(9);
        for (int i = 0; i < 3; i++) {
            make_system(kind, &s, i);
        }
        for (int k = 0; k < 9; k++) {
            s.row_scale[k] = 1e-3 * (k + 1);
        }
        gm_problem p = plain_problem(&s);
        record plain;
        record_open(&plain, n, m, 3, ALL_FIELDS, PLAIN);
        run(&p, &plain, 3);
        for (int in = 0; in < LAYOUTS; in++) {
            for (int out = 0; out < LAYOUTS; out++) {
                double *x[6];
                record r;
                check_note("kind %d, layouts %d and %d", kind, in, out);
                p.M = strided_input(s.M, 3, n, n, in, &x[0]);
                p.Q = strided_input(s.Q, 3, n, 1, in, &x[1]);
                p.A = strided_input(s.A, 3, m, n, in, &x[2]);
                p.b = strided_input(s.b, 3, m, 1, in, &x[3]);
                p.C = strided_input(s.C, 3, n, 1, in, &x[4]);
                p.row_scale = strided_input(s.row_scale, 3, m, 1, in, &x[5]);
                record_open(&r, n, m, 3, ALL_FIELDS, out);
                run(&p, &r, 3);
                for (int i = 0; i < 3; i++) {
                    CHECK(record_same(&r, i, &plain, i) && record_written(&r, i));
                }
                CHECK(record_clean(&r, 3));
                record_close(&r);
                for (int v = 0; v < 6; v++) {
                    free(x[v]);
                }
            }
        }
        record_close(&plain);
        systems_free(&s);
    }
}

static void
test_strides_of_zero_repeat_one_number(void)
{
    double one = 1.0, two = 2.0, zero = 0.0;
    gm_problem p = {.rtol = NAN, .ctol = 1e-9};
    double M[] = {2.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 2.0};
    record r;

    /* 2 x'' = 1 for all three, the rows x + y + z = 2 all the same */
    check_note("zero strides");
    p.M = plain_input(M, 3, 3);
    p.M.item = 0;
    p.Q.data = (const char *)&one;
    p.A.data = (const char *)&one;
    p.b.data = (const char *)&two;
    p.C.data = (const char *)&zero;
    record_open(&r, 3, 2, 5, ALL_FIELDS, GAPS);
    run(&p, &r, 5);
    for (int i = 0; i < 5; i++) {
        CHECK(status_at(&r, i) == GM_OK && integer_at(&r, RANK, i) == 1);
        for (int j = 0; j < 3; j++) {
            CHECK_BELOW(fabs(number_at(&r, QDD, i, j) - 2.0 / 3.0), 8.0 * EPS);
            CHECK_BELOW(fabs(number_at(&r, Q_C, i, j) - 1.0 / 3.0), 8.0 * EPS);
        }
        /* the force 1/3 is shared by both rows */
        CHECK_BELOW(fabs(number_at(&r, TOTAL, i, 0) - 1.0 / 6.0), 8.0 * EPS);
        CHECK_BELOW(fabs(number_at(&r, TOTAL, i, 1) - 1.0 / 6.0), 8.0 * EPS);
    }
    CHECK(record_clean(&r, 5));
    record_close(&r);
}

static void
test_nothing_is_done_for_no_systems(void)
{
    systems s = systems_new(3, 1, 1, 0);
    record r;
    check_note("count 0");
    make_system(ROUND, &s, 0);
    gm_problem p = plain_problem(&s);
    record_open(&r, 3, 1, 1, EVERYTHING, PLAIN);
    run(&p, &r, 0);
    CHECK(record_clean(&r, 0));
    record_close(&r);
    systems_free(&s);
}

static void
test_no_coordinates_is_a_problem_with_an_answer(void)
{
    for (int m = 0; m <= 3; m++) {
        systems s = systems_new(0, m, 1, 0);
        for (int k = 0; k < m; k++) {
            s.b[k] = 0.0;
        }
        check_note("n = 0, m = %d", m);
        record r = solved(&s, EVERYTHING, 0);
        CHECK(status_at(&r, 0) == GM_OK && integer_at(&r, RANK, 0) == 0);
        CHECK(number_at(&r, ZWANG, 0, 0) == 0.0);
        CHECK(record_written(&r, 0) && record_clean(&r, 1));
        record_close(&r);
        if (m > 0) {
            s.b[m - 1] = 1.0; /* 0 = 1 */
            r = solved(&s, EVERYTHING, 0);
            CHECK(status_at(&r, 0) == GM_INCONSISTENT);
            CHECK(flag_at(&r, BLAME, 0, m - 1) == 1);
            record_close(&r);
            r = solved(&s, ALL_FIELDS, GM_PROJECT);
            CHECK(status_at(&r, 0) == GM_PROJECTED);
            CHECK(number_at(&r, RESIDUAL, 0, m - 1) == -1.0);
            record_close(&r);
        }
        systems_free(&s);
    }
}

static void
test_inputs_are_never_written(void)
{
    int n = 6, m = 4;
    for (int kind = 0; kind < KINDS; kind++) {
        systems s = one_of(kind, n, m, 1), kept = systems_new(n, m, 1, 1);
        systems_copy(&s, 0, &kept, 0);
        record r = solved(&s, EVERYTHING, GM_PROJECT | GM_ALLOW_MINIMUM_NORM);
        check_note("kind %d", kind);
        CHECK(memcmp(s.M, kept.M, (size_t)(n * n) * 8) == 0);
        CHECK(memcmp(s.A, kept.A, (size_t)(n * m) * 8) == 0);
        CHECK(memcmp(s.Q, kept.Q, (size_t)n * 8) == 0);
        CHECK(memcmp(s.C, kept.C, (size_t)n * 8) == 0);
        CHECK(memcmp(s.b, kept.b, (size_t)m * 8) == 0);
        record_close(&r);
        systems_free(&s);
        systems_free(&kept);
    }
}

static void
test_answers_do_not_depend_on_what_the_scratch_held(void)
{
    for (int kind = 0; kind < KINDS; kind++) {
        systems s = one_of(kind, 6, 4, 1);
        gm_problem p = plain_problem(&s);
        record r[2];
        size_t bytes = gm_work_size(6, 4);
        check_note("kind %d", kind);
        for (int v = 0; v < 2; v++) {
            void *work = exact_bytes(bytes);
            memset(work, v ? 0xff : 0, bytes); /* all NaN, or all zero */
            record_open(&r[v], 6, 4, 1, ALL_FIELDS, PLAIN);
            gm_gauss(gm_cpu_best(), NULL, 6, 4, 1, &p, &r[v].motion, work);
            free(work);
        }
        CHECK(record_same(&r[0], 0, &r[1], 0));
        record_close(&r[0]);
        record_close(&r[1]);
        systems_free(&s);
    }
}

/* --- the other functions --- */

/* an output of rows x cols for `count` systems, all 999 between guards */
static gm_output
output_of(double *x, int rows, int cols)
{
    ptrdiff_t d = sizeof(double);
    gm_output v = {(char *)x, d * rows * cols, d * cols, d};
    return v;
}

static gm_output
bytes_of(char *x, int rows)
{
    gm_output v = {x, rows, 1, 0};
    return v;
}

/* does everything from here on hold NaN? */
static int
all_nan(size_t n, const double *x)
{
    int all = 1;
    for (size_t i = 0; i < n; i++) {
        all = all && isnan(x[i]);
    }
    return all;
}

static void
test_augmentation_adds_the_projector_on_the_rows(void)
{
    for (int t = 0; t < LENGTH(sizes) * KINDS; t++) {
        int n = sizes[t / KINDS], kind = t % KINDS, m = (n + 2) / 2;
        if (!kind_fits(kind, n, m) || kind == OUT_OF_RANGE) {
            continue;
        }
        size_t N = (size_t)n, bytes = gm_work_size(n, m);
        systems s = one_of(kind, n, m, 0);
        gm_problem p = plain_problem(&s);
        double alpha = 1.5, *M_A = guarded(N * N), *Q_b = guarded(N);
        char status[3] = {99, 99, 99};
        gm_input a = {(const char *)&alpha, 0, 0, 0};
        void *work = exact_bytes(bytes);

        check_note("kind %d, n = %d", kind, n);
        gm_augment(NULL, n, m, 1, &p, a, output_of(M_A, n, n), output_of(Q_b, n, 1),
                   bytes_of(status + 1, 1), work);
        CHECK(guards_hold(M_A, N * N) && guards_hold(Q_b, N));
        CHECK(status[0] == 99 && status[2] == 99);
        /* only what is wrong with the inputs counts here */
        int want = kind_status(kind) >= GM_INDEFINITE ? kind_status(kind) : GM_OK;
        CHECK(status[1] == want);
        if (want < 0) {
            CHECK(all_nan(N * N, M_A) && all_nan(N, Q_b));
        } else {
            /* P = (M_A - M) / alpha^2 is a symmetric projector with P A' = A', and
             * (Q_b - Q) / alpha^2 lies in its range and answers A y = b */
            double *P = doubles(N * N), *y = doubles(N), *x = doubles(N);
            int rank = 0;
            double trace = 0.0;
            for (int i = 0; i < n; i++) {
                y[i] = (Q_b[i] - s.Q[i]) / 2.25;
                for (int j = 0; j < n; j++) {
                    AT(P, n, i, j) = (AT(M_A, n, i, j) - AT(s.M, n, i, j)) / 2.25;
                    CHECK(AT(M_A, n, i, j) == AT(M_A, n, j, i));
                }
                trace += AT(P, n, i, i);
            }
            record r = solved(&s, 1u << RANK | 1u << BLAME,
                              GM_PROJECT | GM_ALLOW_MINIMUM_NORM);
            rank = (int)integer_at(&r, RANK, 0);
            record_close(&r);
            /* M cancels: eps of the largest mass, 1e6 for SPREAD */
            double scale = 1.0;
            for (int i = 0; i < n; i++) {
                scale = fmax(scale, AT(s.M, n, i, i));
            }
            /* rows of SPREAD have columns over six decades */
            double bound = (kind == SPREAD ? 1e3 : 1.0) * 1e4 * EPS * scale;
            if (kind != NONE) {
                CHECK_BELOW(fabs(trace - rank), n * bound);
            }
            slow_product(n, n, P, y, 0.0, x);
            CHECK_BELOW(distance(n, x, y), bound * 10.0);
            for (int k = 0; k < m; k++) {
                const double *row = &AT(s.A, n, k, 0);
                double size = gm_norm(n, row);
                slow_product(n, n, P, row, 0.0, x);
                for (int i = 0; i < n; i++) {
                    CHECK_BELOW(fabs(x[i] - row[i]), bound * size);
                }
                if (kind != CLASH) {
                    CHECK_BELOW(fabs(gm_dot(n, row, y) - s.b[k]),
                                bound * 10.0 * (size * gm_norm(n, y) + 1.0));
                }
            }
            free(P);
            free(y);
            free(x);
        }
        free_guarded(M_A);
        free_guarded(Q_b);
        free(work);
        systems_free(&s);
    }
}

static void
test_augmentation_refuses_a_weight_that_is_not_finite(void)
{
    double weights[] = {NAN, INFINITY, 1e200}; /* the last one overflows when squared */
    systems s = one_of(ROUND, 2, 1, 0);
    gm_problem p = plain_problem(&s);
    for (int t = 0; t < LENGTH(weights); t++) {
        double M_A[4], Q_b[2];
        char status = 99;
        gm_input a = {(const char *)&weights[t], 0, 0, 0};
        void *work = exact_work(2, 1);
        check_note("alpha %g", weights[t]);
        gm_augment(NULL, 2, 1, 1, &p, a, output_of(M_A, 2, 2), output_of(Q_b, 2, 1),
                   bytes_of(&status, 1), work);
        CHECK(status == GM_NONFINITE && all_nan(4, M_A) && all_nan(2, Q_b));
        free(work);
    }
    systems_free(&s);
}

static void
test_accepted_rows_are_as_many_as_the_rank_and_independent(void)
{
    for (int t = 0; t < LENGTH(sizes) * KINDS; t++) {
        int n = sizes[t / KINDS], kind = t % KINDS, m = n + 1;
        if (!kind_fits(kind, n, m) || kind >= CLASH) {
            continue;
        }
        systems s = one_of(kind, n, m, 0);
        gm_problem p = plain_problem(&s);
        char *mask = need(malloc((size_t)m + 2)), status[3] = {99, 99, 99};
        void *work = exact_work(n, m);
        int count = 0, want = kind_status(kind);

        check_note("kind %d, n = %d", kind, n);
        memset(mask, 99, (size_t)m + 2);
        if (kind == NAN_FORCE || kind == INFINITE_B) {
            p.Q.data = p.b.data = NULL; /* neither is needed */
            want = GM_OK;
        }
        gm_independent_rows(NULL, n, m, 1, &p, bytes_of(mask + 1, m),
                            bytes_of(status + 1, 1), work);
        CHECK(status[0] == 99 && status[1] == want && status[2] == 99);
        CHECK(mask[0] == 99 && mask[m + 1] == 99);
        for (int k = 1; k <= m; k++) {
            CHECK(mask[k] == 0 || mask[k] == 1);
            count += mask[k];
        }
        /* row n repeats row 0, which ZERO_ROW has lost */
        int rank = kind == ZERO_ROW && n > 0 ? n - 1 : n;
        CHECK(count == (want < 0 ? 0 : rank));
        free(mask);
        free(work);
        systems_free(&s);
    }
}

static void
test_the_rank_tolerance_of_the_caller_selects_the_rows(void)
{
    systems s = systems_new(2, 2, 1, 0);
    make_system(ROUND, &s, 0);
    double M[] = {1.0, 0.0, 0.0, 1.0}, sine = 1e-6;
    memcpy(s.M, M, sizeof M);
    for (int side = 0; side < 2; side++) {
        char mask[2], status;
        void *work = exact_work(2, 2);
        gm_problem p = plain_problem(&s);
        check_note("side %d", side);
        s.A[0] = 1.0, s.A[1] = 0.0;
        s.A[2] = sqrt(1.0 - sine * sine), s.A[3] = sine;
        p.rtol = sine * (side ? 1.0 - 1e-9 : 1.0 + 1e-9);
        gm_independent_rows(NULL, 2, 2, 1, &p, bytes_of(mask, 2), bytes_of(&status, 1),
                            work);
        CHECK(status == GM_OK && mask[0] + mask[1] == 1 + side);
        free(work);
    }
    systems_free(&s);
}

static void
test_the_sensitivity_is_the_derivative_of_the_motion(void)
{
    for (int t = 0; t < LENGTH(sizes) * GOOD_KINDS; t++) {
        int n = sizes[t / GOOD_KINDS], kind = t % GOOD_KINDS, m = (n + 1) / 2;
        if (!kind_fits(kind, n, m)) {
            continue;
        }
        size_t N = (size_t)n, K = (size_t)m;
        systems s = one_of(kind, n, m, 0);
        gm_problem p = plain_problem(&s);
        double *dQ = guarded(N * N), *db = guarded(N * K), *x = doubles(N);
        double *mu = doubles(K), *f = doubles(N), *b = doubles(K), *d = doubles(N);
        char status[3] = {99, 99, 99};
        void *work = exact_work(n, m);

        check_note("kind %d, n = %d", kind, n);
        gm_sensitivity(NULL, n, m, 1, &p, output_of(dQ, n, n), output_of(db, n, m),
                       bytes_of(status + 1, 1), work);
        CHECK(status[0] == 99 && status[1] == GM_OK && status[2] == 99);
        CHECK(guards_hold(dQ, N * N) && guards_hold(db, N * K));
        for (int i = 0; i < n; i++) {
            d[i] = sqrt(fmax(AT(s.M, n, i, i), kind == SPREAD ? 0.0 : 1.0));
        }
        /* the motion is linear: a unit force, a unit right side; SPREAD as it stands
         * has condition 1e12, which long double has 1e19 for */
        for (int j = 0; j < n + m; j++) {
            double gap = 0.0, size = 0.0;
            gm_zero(N, f);
            gm_zero(K, b);
            *(j < n ? &f[j] : &b[j - n]) = 1.0;
            slow_motion(n, m, s.M, s.A, f, b, x, mu);
            for (int i = 0; i < n; i++) {
                double have = j < n ? AT(dQ, n, i, j) : AT(db, m, i, j - n);
                gap = fmax(gap, fabs(have - x[i]) * d[i]);
                size = fmax(size, fabs(x[i]) * d[i]);
                CHECK(j >= n || AT(dQ, n, i, j) == AT(dQ, n, j, i));
            }
            double unit = j < n ? 1.0 / d[j] : 1.0;
            CHECK_BELOW(gap, kind_bound(kind) * (size + unit) * 10.0);
        }
        free_guarded(dQ);
        free_guarded(db);
        free(x), free(mu), free(f), free(b), free(d);
        free(work);
        systems_free(&s);
    }
}

static void
test_the_sensitivity_of_dependent_rows_is_that_of_the_projected_motion(void)
{
    /* x twice: b = (b0 + b1) / 2 */
    systems s = systems_new(2, 2, 1, 0);
    double M[] = {2.0, 0.0, 0.0, 4.0}, A[] = {1.0, 0.0, 1.0, 0.0}, dQ[4], db[4];
    char status;
    void *work = exact_work(2, 2);
    memcpy(s.M, M, sizeof M);
    memcpy(s.A, A, sizeof A);
    gm_problem p = plain_problem(&s);
    p.Q.data = p.b.data = NULL; /* neither is needed */
    check_note("dependent");
    gm_sensitivity(NULL, 2, 2, 1, &p, output_of(dQ, 2, 2), output_of(db, 2, 2),
                   bytes_of(&status, 1), work);
    double want_Q[] = {0.0, 0.0, 0.0, 0.25}, want_b[] = {0.5, 0.5, 0.0, 0.0};
    CHECK(status == GM_OK);
    CHECK_BELOW(distance(4, dQ, want_Q), 8.0 * EPS);
    CHECK_BELOW(distance(4, db, want_b), 8.0 * EPS);
    free(work);
    systems_free(&s);
}

static void
test_faults_of_the_sensitivity_leave_nan(void)
{
    int kinds[] = {NAN_MASS, NAN_ROW, SKEW, NEGATIVE, SADDLE, MANY};
    for (int t = 0; t < LENGTH(kinds); t++) {
        systems s = one_of(kinds[t], 3, 2, 0);
        gm_problem p = plain_problem(&s);
        double *dQ = guarded(9), *db = guarded(6);
        char status = 99;
        void *work = exact_work(3, 2);
        check_note("kind %d", kinds[t]);
        gm_sensitivity(NULL, 3, 2, 1, &p, output_of(dQ, 3, 3), output_of(db, 3, 2),
                       bytes_of(&status, 1), work);
        CHECK(status == kind_status(kinds[t]));
        CHECK(all_nan(9, dQ) && all_nan(6, db));
        CHECK(guards_hold(dQ, 9) && guards_hold(db, 6));
        free_guarded(dQ);
        free_guarded(db);
        free(work);
        systems_free(&s);
    }
}

static void
test_zwang_and_gauss_function_of_any_motion(void)
{
    for (int t = 0; t < LENGTH(sizes) * GOOD_KINDS; t++) {
        int n = sizes[t / GOOD_KINDS], kind = t % GOOD_KINDS;
        if (!kind_fits(kind, n, 1) || kind == SPREAD) {
            continue;
        }
        size_t N = (size_t)n;
        systems s = one_of(kind, n, 1, 0);
        gm_problem p = plain_problem(&s);
        double *x = doubles(N), *a = doubles(N), *g = doubles(N);
        double *z = guarded(1), *f = guarded(1), want = 0.0, form = 0.0;
        char status[3] = {99, 99, 99};
        void *work = exact_work(n, 0);

        check_note("kind %d, n = %d", kind, n);
        fill_uniform(N, x);
        gm_zwang(NULL, n, 1, &p, plain_input(x, n, 1), output_of(z, 1, 1),
                 output_of(f, 1, 1), bytes_of(status + 1, 1), work);
        CHECK(status[0] == 99 && status[1] == GM_OK && status[2] == 99);
        CHECK(guards_hold(z, 1) && guards_hold(f, 1));
        slow_product(n, n, s.M, x, 0.0, g);
        for (int i = 0; i < n; i++) {
            form += x[i] * (g[i] - 2.0 * s.Q[i]);
        }
        CHECK_BELOW(fabs(*f - form), 1e3 * n * EPS);
        if (kind == SINGULAR || kind == MASSLESS) {
            CHECK(isnan(*z)); /* Q is not in the range of M */
        } else {
            slow_motion(n, 0, s.M, NULL, s.Q, NULL, a, NULL);
            for (int i = 0; i < n; i++) {
                for (int j = 0; j < n; j++) {
                    want += (x[i] - a[i]) * AT(s.M, n, i, j) * (x[j] - a[j]);
                }
            }
            CHECK_BELOW(fabs(*z - want), kind_bound(kind) * (1.0 + want));
        }
        free(x), free(a), free(g);
        free_guarded(z);
        free_guarded(f);
        free(work);
        systems_free(&s);
    }
}

static void
test_zwang_reports_faults(void)
{
    int kinds[] = {NAN_MASS, NAN_FORCE, SKEW, NEGATIVE, SADDLE, ROUND};
    for (int t = 0; t < LENGTH(kinds); t++) {
        systems s = one_of(kinds[t], 3, 0, 0);
        gm_problem p = plain_problem(&s);
        double x[] = {1.0, 2.0, kinds[t] == ROUND ? NAN : 3.0}, z = 999.0, f = 999.0;
        char status = 99;
        void *work = exact_work(3, 0);
        check_note("kind %d", kinds[t]);
        gm_zwang(NULL, 3, 1, &p, plain_input(x, 3, 1), output_of(&z, 1, 1),
                 output_of(&f, 1, 1), bytes_of(&status, 1), work);
        CHECK(status == (kinds[t] == ROUND ? GM_NONFINITE : kind_status(kinds[t])));
        CHECK(isnan(z) && isnan(f));
        free(work);
        systems_free(&s);
    }
}

static void
test_one_fault_in_a_batch_of_the_other_functions_stays_its_own(void)
{
    int n = 4, m = 2;
    for (int at = 0; at < 3; at++) {
        systems s = systems_new(n, m, 3, 0);
        double alpha = 1.0, M_A[48], Q_b[12], dQ[48], db[24], z[3], f[3], x[12];
        char mask[6], status[4][3];
        for (int i = 0; i < 3; i++) {
            make_system(i == at ? NEGATIVE : ROUND, &s, i);
        }
        fill_uniform(12, x);
        gm_problem p = plain_problem(&s);
        gm_input a = {(const char *)&alpha, 0, 0, 0};
        void *work = exact_work(n, m);
        gm_augment(NULL, n, m, 3, &p, a, output_of(M_A, n, n), output_of(Q_b, n, 1),
                   bytes_of(status[0], 1), work);
        gm_sensitivity(NULL, n, m, 3, &p, output_of(dQ, n, n), output_of(db, n, m),
                       bytes_of(status[1], 1), work);
        gm_zwang(NULL, n, 3, &p, plain_input(x, n, 1), output_of(z, 1, 1),
                 output_of(f, 1, 1), bytes_of(status[2], 1), work);
        gm_independent_rows(NULL, n, m, 3, &p, bytes_of(mask, m),
                            bytes_of(status[3], 1), work);
        for (int i = 0; i < 3; i++) {
            size_t j = (size_t)i;
            check_note("fault at %d, system %d", at, i);
            for (int v = 0; v < 4; v++) {
                CHECK(status[v][i] == (i == at ? GM_INDEFINITE : GM_OK));
            }
            CHECK(all_nan(16, M_A + 16 * j) == (i == at));
            CHECK(isnan(Q_b[4 * j]) == (i == at));
            CHECK(all_nan(16, dQ + 16 * j) == (i == at));
            CHECK(isnan(db[8 * j]) == (i == at));
            CHECK(isnan(z[i]) == (i == at) && isnan(f[i]) == (i == at));
            CHECK(mask[2 * i] + mask[2 * i + 1] == (i == at ? 0 : 2));
        }
        free(work);
        systems_free(&s);
    }
}

int
main(void)
{
    test_both_paths_agree_with_slow_elimination();
    test_every_kind_gets_its_status_and_writes_all_that_is_wanted();
    test_faults_are_reported_in_the_order_of_the_contract();
    test_options_turn_faults_into_remarks();
    test_projection_is_least_squares_and_the_residual_tells_what_is_left();
    test_flags_tell_vanished_rows_from_rows_that_share_their_force();
    test_null_vectors_are_in_the_units_of_the_caller_and_only_as_many_as_there_are();
    test_null_vectors_of_coordinates_in_different_units_are_null_vectors();
    test_forces_on_massless_directions_leave_the_parts_undefined();
    test_any_choice_of_outputs_has_the_bits_of_the_full_call();
    test_layouts_of_inputs_and_outputs_do_not_change_a_bit();
    test_strides_of_zero_repeat_one_number();
    test_nothing_is_done_for_no_systems();
    test_no_coordinates_is_a_problem_with_an_answer();
    test_inputs_are_never_written();
    test_answers_do_not_depend_on_what_the_scratch_held();
    test_augmentation_adds_the_projector_on_the_rows();
    test_augmentation_refuses_a_weight_that_is_not_finite();
    test_accepted_rows_are_as_many_as_the_rank_and_independent();
    test_the_rank_tolerance_of_the_caller_selects_the_rows();
    test_the_sensitivity_is_the_derivative_of_the_motion();
    test_the_sensitivity_of_dependent_rows_is_that_of_the_projected_motion();
    test_faults_of_the_sensitivity_leave_nan();
    test_zwang_and_gauss_function_of_any_motion();
    test_zwang_reports_faults();
    test_one_fault_in_a_batch_of_the_other_functions_stays_its_own();
    return check_report();
}
