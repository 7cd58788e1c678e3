/* gm_lanes_template.h: on every level of the machine, the same bits in every lane and
 * with any neighbours; the gate on both sides. */
#include "check.h"
#include "gm_dense.h"
#include "gm_lanes.h"
#include "problems.h"

/* runs the rest of its scope for every level that runs here */
#define FOR_EACH_LEVEL(cpu)                                                            \
    for (int level_ = 0; gm_cpu_list(level_) != NULL; level_++)                        \
        for (const gm_cpu *cpu = gm_cpu_level(gm_cpu_list(level_)); cpu != NULL;       \
             cpu = NULL)

enum { MOST = 17 };

static void
run(const gm_cpu *cpu, const gm_problem *p, const record *r, ptrdiff_t count)
{
    void *work = exact_work(r->n, r->m);
    gm_gauss(cpu, NULL, r->n, r->m, count, p, &r->motion, work);
    free(work);
}

/* each system of a batch alone */
static record *
singles(const gm_cpu *cpu, const systems *s, ptrdiff_t count, double rtol)
{
    record *all = need(malloc((size_t)count * sizeof *all));
    for (ptrdiff_t i = 0; i < count; i++) {
        systems one = systems_at(s, i);
        gm_problem p = plain_problem(&one);
        p.rtol = rtol;
        record_open(&all[i], s->n, s->m, 1, ALL_FIELDS, PLAIN);
        run(cpu, &p, &all[i], 1);
    }
    return all;
}

static void
free_singles(record *all, ptrdiff_t count)
{
    for (ptrdiff_t i = 0; i < count; i++) {
        record_close(&all[i]);
    }
    free(all);
}

/* the problem of a batch in another layout; blocks[6] to be freed */
static gm_problem
strided_problem(const systems *s, ptrdiff_t count, int pattern, double **blocks)
{
    gm_problem p = {.rtol = NAN, .ctol = 1e-9};
    p.M = strided_input(s->M, count, s->n, s->n, pattern, &blocks[0]);
    p.Q = strided_input(s->Q, count, s->n, 1, (pattern + 1) % LAYOUTS, &blocks[1]);
    p.A = strided_input(s->A, count, s->m, s->n, (pattern + 2) % LAYOUTS, &blocks[2]);
    p.b = strided_input(s->b, count, s->m, 1, (pattern + 3) % LAYOUTS, &blocks[3]);
    blocks[4] = NULL;
    if (s->C != NULL) {
        p.C = strided_input(s->C, count, s->n, 1, pattern, &blocks[4]);
    }
    return p;
}

static void
test_the_kinds_of_the_fast_path_take_it_and_are_right(void)
{
    FOR_EACH_LEVEL(cpu)
    {
        for (int t = 0; t < LENGTH(sizes) * GOOD_KINDS; t++) {
            int n = sizes[t / GOOD_KINDS], kind = t % GOOD_KINDS;
            for (int m = 0; m <= n; m += 1 + n / 3) {
                if (n == 0 || !kind_fits(kind, n, m)) {
                    continue;
                }
                for (int with_C = 0; with_C < 2; with_C++) {
                    int lanes = gm_cpu_lanes(cpu);
                    systems s = systems_new(n, m, lanes, with_C);
                    void *work = exact_work(n, m);
                    record r;

                    check_note("%s, kind %d, n = %d, m = %d, C %d", gm_cpu_name(cpu),
                               kind, n, m, with_C);
                    for (int l = 0; l < lanes; l++) {
                        make_system(kind, &s, l);
                    }
                    gm_problem p = plain_problem(&s);
                    for (int one = 0; one < 2; one++) {
                        int count = one ? 1 : lanes;
                        record_open(&r, n, m, lanes, ALL_FIELDS, PLAIN);
                        unsigned all = (1u << count) - 1u;
                        CHECK((one ? cpu->one : cpu->many)(NULL, n, m, &p, 0, count,
                                                           &r.motion, work) == all);
                        for (int l = 0; l < count; l++) {
                            CHECK(record_written(&r, l));
                            check_motion(kind, &s, l, &r, l, kind_bound(kind));
                        }
                        CHECK(record_clean(&r, count));
                        record_close(&r);
                    }
                    free(work);
                    systems_free(&s);
                }
            }
        }
    }
}

static void
test_groups_of_1_to_17_give_the_bits_of_the_single_call(void)
{
    FOR_EACH_LEVEL(cpu)
    {
        for (int t = 0; t < LENGTH(sizes); t++) {
            int n = sizes[t];
            for (int m = 0; m <= n + 1; m += 1 + n / 2) {
                int with_C = (n + m) % 2;
                systems s = systems_new(n, m, MOST, with_C);
                for (int i = 0, kind = 0; i < MOST; i++) {
                    do {
                        kind = (kind + 1) % (ZERO_ROW + 1);
                    } while (!kind_fits(kind, n, m));
                    make_system(kind, &s, i);
                }
                check_note("%s, n = %d, m = %d alone", gm_cpu_name(cpu), n, m);
                record *alone = singles(cpu, &s, MOST, NAN);
                for (int i = 0; i < MOST; i++) {
                    CHECK(status_at(&alone[i], 0) == GM_OK);
                    CHECK(record_written(&alone[i], 0) && record_clean(&alone[i], 1));
                }
                for (int count = 1; count <= MOST; count++) {
                    double *blocks[5];
                    gm_problem p = strided_problem(&s, count, count % LAYOUTS, blocks);
                    record r;
                    check_note("%s, n = %d, m = %d, %d systems", gm_cpu_name(cpu), n, m,
                               count);
                    record_open(&r, n, m, MOST, ALL_FIELDS, (count / 2) % LAYOUTS);
                    run(cpu, &p, &r, count);
                    for (int i = 0; i < count; i++) {
                        CHECK(record_same(&r, i, &alone[i], 0));
                    }
                    CHECK(record_clean(&r, count));
                    record_close(&r);
                    for (int v = 0; v < 5; v++) {
                        free(blocks[v]);
                    }
                }
                free_singles(alone, MOST);
                systems_free(&s);
            }
        }
    }
}

static void
test_one_bad_system_in_any_place_never_changes_its_neighbours(void)
{
    int shapes[][2] = {{1, 0}, {1, 1}, {2, 1}, {3, 2}, {4, 4}, {6, 3}, {9, 4}};
    FOR_EACH_LEVEL(cpu)
    {
        int lanes = gm_cpu_lanes(cpu);
        for (int t = 0; t < LENGTH(shapes); t++) {
            int n = shapes[t][0], m = shapes[t][1];
            systems s = systems_new(n, m, lanes, t % 2), mixed, bad;
            mixed = systems_new(n, m, lanes, t % 2);
            bad = systems_new(n, m, 1, t % 2);
            for (int i = 0, kind = 0; i < lanes; i++) {
                do {
                    kind = (kind + 1) % GOOD_KINDS;
                } while (!kind_fits(kind, n, m));
                make_system(kind, &s, i);
            }
            record *alone = singles(cpu, &s, lanes, NAN);
            for (int kind = GOOD_KINDS; kind < KINDS; kind++) {
                if (!kind_fits(kind, n, m)) {
                    continue;
                }
                make_system(kind, &bad, 0);
                record *bad_alone = singles(cpu, &bad, 1, NAN);
                check_note("%s, kind %d, n = %d, m = %d", gm_cpu_name(cpu), kind, n, m);
                CHECK(status_at(bad_alone, 0) == kind_status(kind));
                CHECK(kind_status(kind) >= 0 || record_void(bad_alone, 0));
                for (int count = 2; count <= lanes; count++) {
                    for (int at = 0; at < count; at++) {
                        record r;
                        for (int i = 0; i < count; i++) {
                            const systems *from = i == at ? &bad : &s;
                            systems_copy(from, i == at ? 0 : i, &mixed, i);
                        }
                        gm_problem p = plain_problem(&mixed);
                        check_note("%s, kind %d, n = %d, m = %d, place %d of %d",
                                   gm_cpu_name(cpu), kind, n, m, at, count);
                        record_open(&r, n, m, count, ALL_FIELDS, PLAIN);
                        run(cpu, &p, &r, count);
                        for (int i = 0; i < count; i++) {
                            const record *want = i == at ? bad_alone : &alone[i];
                            CHECK(record_same(&r, i, want, 0));
                        }
                        CHECK(record_clean(&r, count));
                        record_close(&r);
                    }
                }
                free_singles(bad_alone, 1);
            }
            free_singles(alone, lanes);
            systems_free(&s);
            systems_free(&mixed);
            systems_free(&bad);
        }
    }
}

static void
test_powers_of_two_in_the_units_change_neither_rank_nor_digits(void)
{
    FOR_EACH_LEVEL(cpu)
    {
        for (int t = 0; t < 150; t++) {
            int n = 1 + t % 9, m = t % (n + 1), kind = t % (ZERO_ROW + 1);
            if (!kind_fits(kind, n, m)) {
                continue;
            }
            systems s = systems_new(n, m, 1, 1), u = systems_new(n, m, 1, 1);
            int p[9], q[9] = {0};
            check_note("%s, kind %d, n = %d, m = %d", gm_cpu_name(cpu), kind, n, m);
            make_system(kind, &s, 0);
            for (int i = 0; i < n; i++) {
                p[i] = (int)(random_bits() % 61) - 30;
                u.Q[i] = ldexp(s.Q[i], p[i]);
                u.C[i] = ldexp(s.C[i], p[i]);
            }
            for (int k = 0; k < m; k++) {
                q[k] = kind == DEPENDENT ? 0 : (int)(random_bits() % 61) - 30;
                u.b[k] = ldexp(s.b[k], q[k]);
                for (int i = 0; i < n; i++) {
                    AT(u.A, n, k, i) = ldexp(AT(s.A, n, k, i), p[i] + q[k]);
                }
            }
            for (int i = 0; i < n; i++) {
                for (int j = 0; j < n; j++) {
                    AT(u.M, n, i, j) = ldexp(AT(s.M, n, i, j), p[i] + p[j]);
                }
            }
            record *x = singles(cpu, &s, 1, NAN), *y = singles(cpu, &u, 1, NAN);
            CHECK(status_at(x, 0) == GM_OK && status_at(y, 0) == GM_OK);
            CHECK(integer_at(x, RANK, 0) == integer_at(y, RANK, 0));
            for (int k = 0; k < m; k++) {
                CHECK(flag_at(x, UNIQUE, 0, k) == flag_at(y, UNIQUE, 0, k));
                CHECK(flag_at(x, VANISHED, 0, k) == flag_at(y, VANISHED, 0, k));
            }
            /* for good masses their units decide whether a step of refinement is due */
            int exact = n > 1 && kind != ROUND && kind != SPREAD;
            for (int i = 0; i < n && exact; i++) {
                CHECK(number_at(y, QDD, 0, i) == ldexp(number_at(x, QDD, 0, i), -p[i]));
                CHECK(number_at(y, Q_C, 0, i) == ldexp(number_at(x, Q_C, 0, i), p[i]));
                CHECK(number_at(y, K_PART, 0, i) ==
                      ldexp(number_at(x, K_PART, 0, i), p[i]));
            }
            for (int k = 0; k < m && exact; k++) {
                CHECK(number_at(y, TOTAL, 0, k) ==
                      ldexp(number_at(x, TOTAL, 0, k), -q[k]));
            }
            free_singles(x, 1);
            free_singles(y, 1);
            systems_free(&s);
            systems_free(&u);
        }
    }
}

/* --- the gate --- */

/* Does the fast path take this system: alone, and in a full register? Whatever it does
 * not take it leaves unwritten, and the general path gives the same status and, to
 * within `bound`, the same acceleration. */
static int
passes(const gm_cpu *cpu, const systems *one, double rtol, double bound)
{
    int n = one->n, m = one->m, lanes = gm_cpu_lanes(cpu);
    systems s = systems_new(n, m, lanes, one->C != NULL);
    void *work = exact_work(n, m);
    record group, alone, whole, slow;

    if (one->row_scale != NULL) {
        s.row_scale = doubles((size_t)(m * lanes));
    }
    for (int l = 0; l < lanes; l++) {
        systems_copy(one, 0, &s, l);
        for (int k = 0; k < m && s.row_scale != NULL; k++) {
            s.row_scale[l * m + k] = one->row_scale[k];
        }
    }
    gm_problem p = plain_problem(&s);
    p.rtol = rtol;
    record_open(&group, n, m, lanes, ALL_FIELDS, PLAIN);
    record_open(&alone, n, m, 1, ALL_FIELDS, PLAIN);
    record_open(&whole, n, m, 1, ALL_FIELDS, PLAIN);
    record_open(&slow, n, m, 1, EVERYTHING, PLAIN); /* never on the fast path */
    unsigned done = cpu->many(NULL, n, m, &p, 0, lanes, &group.motion, work);
    unsigned once = cpu->one(NULL, n, m, &p, 0, 1, &alone.motion, work);
    CHECK(done == 0 || done == (1u << lanes) - 1u);
    CHECK(once == (done & 1u));
    CHECK(record_clean(&group, done ? lanes : 0) && record_clean(&alone, (int)once));
    gm_gauss(cpu, NULL, n, m, 1, &p, &whole.motion, work);
    gm_gauss(cpu, NULL, n, m, 1, &p, &slow.motion, work);
    CHECK(status_at(&whole, 0) == status_at(&slow, 0));
    if (status_at(&whole, 0) == GM_OK) {
        double *x = doubles((size_t)n);
        for (int i = 0; i < n; i++) {
            x[i] = number_at(&slow, QDD, 0, i);
        }
        CHECK_BELOW(field_distance(&whole, QDD, 0, x), bound);
        free(x);
    }
    CHECK(record_same(&whole, 0, once ? &alone : &slow, 0));
    for (int l = 0; l < lanes && done; l++) {
        CHECK(record_same(&group, l, &alone, 0));
    }
    record_close(&group);
    record_close(&alone);
    record_close(&whole);
    record_close(&slow);
    systems_free(&s);
    free(work);
    return once != 0;
}

/* M = I, Q and b random, A zero */
static systems
plain_gate_system(int n, int m)
{
    systems s = systems_new(n, m, 1, 0);
    gm_zero((size_t)(n * n), s.M);
    gm_zero((size_t)(m * n), s.A);
    for (int i = 0; i < n; i++) {
        AT(s.M, n, i, i) = 1.0;
    }
    fill_uniform((size_t)n, s.Q);
    fill_uniform((size_t)m, s.b);
    return s;
}

static void
test_rows_pass_from_a_sine_of_a_thousandth_on(void)
{
    FOR_EACH_LEVEL(cpu)
    {
        for (int side = 0; side < 2; side++) {
            for (int n = 2; n <= 9; n++) {
                systems s = plain_gate_system(n, 2);
                double sine = 1e-3 * (side ? 1.0 + 1e-9 : 1.0 - 1e-9);
                check_note("%s, n = %d, side %d", gm_cpu_name(cpu), n, side);
                AT(s.A, n, 0, 0) = 1.0;
                AT(s.A, n, 1, 0) = sqrt(1.0 - sine * sine);
                AT(s.A, n, 1, n - 1) = sine;
                /* two paths, each within a few eps / sine */
                CHECK(passes(cpu, &s, NAN, 1e5 * EPS) == side);
                systems_free(&s);
            }
        }
    }
}

static void
test_rows_that_depend_only_together_are_stopped_by_the_inverse(void)
{
    /* a chain: every sine is s, but the inverse grows to 1 + 1/s + 1/s^2 */
    FOR_EACH_LEVEL(cpu)
    {
        for (int side = 0; side < 2; side++) {
            systems s = plain_gate_system(3, 3);
            double sine = side ? 1.0010e-3 : 1.0002e-3; /* 0.9990e6 and 1.0006e6 */
            double cosine = sqrt(1.0 - sine * sine);
            check_note("%s, side %d", gm_cpu_name(cpu), side);
            s.A[0] = 1.0;
            s.A[3] = cosine, s.A[4] = sine;
            s.A[7] = cosine, s.A[8] = sine;
            CHECK(passes(cpu, &s, NAN, 1e8 * EPS) == side);
            systems_free(&s);
        }
    }
}

static void
test_a_larger_rtol_asks_for_more_distance(void)
{
    /* the inverse, 1 + 1/s here, times rtol must stay below a hundredth */
    double tolerances[] = {1e-4, 2e-5};
    FOR_EACH_LEVEL(cpu)
    {
        for (int t = 0; t < LENGTH(tolerances); t++) {
            double rtol = tolerances[t], limit = 1.0 / (1e-2 / rtol - 1.0);
            for (int side = 0; side < 2; side++) {
                systems s = plain_gate_system(2, 2);
                /* cot = limit^-1; sin and tan differ by limit^2 / 2 */
                double sine = limit * (side ? 1.0 + 1e-4 : 1.0 - 1e-3);
                check_note("%s, rtol %g, side %d", gm_cpu_name(cpu), rtol, side);
                s.A[0] = 1.0;
                s.A[2] = sqrt(1.0 - sine * sine), s.A[3] = sine;
                CHECK(passes(cpu, &s, rtol, 1e5 * EPS) == side);
                systems_free(&s);
            }
        }
    }
}

static void
test_a_weak_mass_matrix_passes_from_100_n_eps_on(void)
{
    FOR_EACH_LEVEL(cpu)
    {
        double floor = 100.0 * 2.0 * EPS, pivots[] = {0.95 * floor, 1.05 * floor};
        for (int side = 0; side < 2; side++) {
            systems s = plain_gate_system(2, 0);
            check_note("%s, side %d", gm_cpu_name(cpu), side);
            s.M[1] = s.M[2] = sqrt(1.0 - pivots[side]);
            /* whatever the path, the pivot itself is known to 2 eps of 200 only */
            CHECK(passes(cpu, &s, NAN, 0.1) == side);
            systems_free(&s);
        }
    }
}

static void
test_pivots_at_the_thresholds_are_right_on_both_sides_and_in_mixed_groups(void)
{
    FOR_EACH_LEVEL(cpu)
    {
        for (int m = 0; m <= 1; m++) {
            int lanes = 8; /* one register of the widest, several of the others */
            double below = 1.0 - 1e-9, above = 1.0 + 1e-9;
            systems s = systems_new(3, m, lanes, 0);
            check_note("%s, m = %d", gm_cpu_name(cpu), m);
            for (int l = 0; l < lanes; l++) {
                systems one = plain_gate_system(3, m);
                /* augmented below 1e-4, refined below 0.1 */
                double pivot = (l % 4 < 2 ? 1e-4 : 0.1) * (l % 2 ? above : below);
                one.M[1] = one.M[3] = sqrt(1.0 - pivot);
                for (int j = 0; j < 3 * m; j++) {
                    one.A[j] = uniform();
                }
                CHECK(passes(cpu, &one, NAN, 1e7 * EPS) == 1);
                systems_copy(&one, 0, &s, l);
                systems_free(&one);
            }
            record *alone = singles(cpu, &s, lanes, NAN), r;
            gm_problem p = plain_problem(&s);
            record_open(&r, 3, m, lanes, ALL_FIELDS, PLAIN);
            run(cpu, &p, &r, lanes);
            for (int l = 0; l < lanes; l++) {
                CHECK(record_same(&r, l, &alone[l], 0));
                check_motion(ROUND, &s, l, &r, l, 1e7 * EPS); /* cond 1e4 */
            }
            record_close(&r);
            free_singles(alone, lanes);
            systems_free(&s);
        }
    }
}

static void
test_a_spread_of_masses_of_a_hundred_is_right_on_both_sides(void)
{
    FOR_EACH_LEVEL(cpu)
    {
        for (int side = 0; side < 2; side++) {
            systems s = plain_gate_system(4, 2);
            check_note("%s, side %d", gm_cpu_name(cpu), side);
            s.M[0] = side ? nextafter(100.0, 101.0) : 100.0;
            fill_uniform(8, s.A);
            CHECK(passes(cpu, &s, NAN, 1e5 * EPS) == 1);
            systems_free(&s);
        }
    }
}

static void
test_singular_masses_pass_when_the_rows_hold_them_at_1e8(void)
{
    /* two massless coordinates on rows (0 1 1), (0 1 1 + e): last pivot e^2 / 8 */
    FOR_EACH_LEVEL(cpu)
    {
        for (int side = 0; side < 2; side++) {
            systems s = plain_gate_system(3, 2);
            double e = sqrt(8e-8) * (side ? 1.0 + 1e-3 : 1.0 - 1e-3);
            check_note("%s, side %d", gm_cpu_name(cpu), side);
            AT(s.M, 3, 1, 1) = AT(s.M, 3, 2, 2) = 0.0;
            s.A[1] = s.A[2] = s.A[4] = 1.0;
            s.A[5] = 1.0 + e;
            CHECK(passes(cpu, &s, NAN, 1e6 * EPS / e) == side);
            systems_free(&s);
        }
    }
}

static void
test_a_zero_pivot_is_believed_behind_pivots_of_1e4_only(void)
{
    FOR_EACH_LEVEL(cpu)
    {
        for (int side = 0; side < 2; side++) {
            systems s = plain_gate_system(3, 1);
            double pivot = 1e-4 * (side ? 1.0 + 1e-9 : 1.0 - 1e-9);
            check_note("%s, side %d", gm_cpu_name(cpu), side);
            s.M[1] = s.M[3] = sqrt(1.0 - pivot);
            s.M[8] = 0.0;
            s.A[0] = s.A[2] = 1.0;
            CHECK(passes(cpu, &s, NAN, 1e7 * EPS) == side); /* cond 1e4 */
            systems_free(&s);
        }
    }
}

static void
test_a_zero_pivot_with_a_column_is_indefinite(void)
{
    /* a coordinate without mass that is coupled all the same; a pivot of zero with 0.1
     * below it: the determinant is -0.01 */
    double coupled[] = {0.0, 0.1, 0.0, 0.1, 1.0, 0.0, 0.0, 0.0, 1.0};
    double saddle[] = {1.0, 1.0, 0.0, 1.0, 1.0, 0.1, 0.0, 0.1, 1.0};
    FOR_EACH_LEVEL(cpu)
    {
        for (int t = 0; t < 2; t++) {
            systems s = plain_gate_system(3, 1);
            check_note("%s, %s", gm_cpu_name(cpu), t ? "saddle" : "coupled");
            memcpy(s.M, t ? saddle : coupled, sizeof saddle);
            s.A[0] = s.A[1] = s.A[2] = 1.0;
            CHECK(passes(cpu, &s, NAN, 0.0) == 0);
            record *alone = singles(cpu, &s, 1, NAN);
            CHECK(status_at(alone, 0) == GM_INDEFINITE);
            free_singles(alone, 1);
            systems_free(&s);
        }
    }
}

static void
test_asymmetry_is_left_to_the_general_path_before_it_counts(void)
{
    /* the sum of the squares, 1e-21: 3.16e-11 for one pair of masses of one */
    double skew[] = {0.0, 3.1e-11, 3.2e-11, 9.99e-11, 1.001e-10, -3.1e-11, -1.001e-10};
    int taken[] = {1, 1, 0, 0, 0, 1, 0};
    FOR_EACH_LEVEL(cpu)
    {
        for (int t = 0; t < LENGTH(skew); t++) {
            systems s = plain_gate_system(2, 1);
            check_note("%s, skew %g", gm_cpu_name(cpu), skew[t]);
            s.A[0] = s.A[1] = 1.0;
            s.M[1] = 0.3;
            s.M[2] = 0.3 + skew[t];
            s.M[0] = s.M[3] = 1.0;
            CHECK(passes(cpu, &s, NAN, 1e3 * EPS) == taken[t]);
            systems_free(&s);
        }
    }
}

static void
test_numbers_far_out_are_left_to_the_general_path(void)
{
    FOR_EACH_LEVEL(cpu)
    {
        for (int side = 0; side < 2; side++) {
            double out = side ? 1.0 + 1e-6 : 1.0 - 1e-6;
            systems s = plain_gate_system(1, 1);
            s.A[0] = 1.0;
            check_note("%s, side %d, light", gm_cpu_name(cpu), side);
            s.M[0] = 1e-200 * out;
            s.Q[0] *= 1e-200;
            CHECK(passes(cpu, &s, NAN, 1e3 * EPS) == side);
            check_note("%s, side %d, heavy", gm_cpu_name(cpu), side);
            s.M[0] = 1e200 / out;
            CHECK(passes(cpu, &s, NAN, 1e3 * EPS) == side);
            check_note("%s, side %d, short row", gm_cpu_name(cpu), side);
            s.M[0] = 1.0;
            s.Q[0] = 1.0;
            s.A[0] = 1e-100 * out;
            s.b[0] = 1e-100;
            CHECK(passes(cpu, &s, NAN, 1e3 * EPS) == side);
            check_note("%s, side %d, long row", gm_cpu_name(cpu), side);
            s.A[0] = 1e100 / out;
            s.b[0] = 1e100;
            CHECK(passes(cpu, &s, NAN, 1e3 * EPS) == side);
            systems_free(&s);
        }
    }
}

static void
test_rows_near_their_row_scale_are_left_to_the_general_path(void)
{
    FOR_EACH_LEVEL(cpu)
    {
        for (int side = 0; side < 2; side++) {
            systems s = plain_gate_system(2, 1);
            s.row_scale = doubles(1);
            s.row_scale[0] = 1e3 * (side ? 1.0 - 1e-9 : 1.0 + 1e-9);
            s.A[1] = 1.0;
            check_note("%s, side %d", gm_cpu_name(cpu), side);
            CHECK(passes(cpu, &s, NAN, 1e3 * EPS) == side);
            s.row_scale[0] = NAN;
            CHECK(passes(cpu, &s, NAN, 1e3 * EPS) == 0);
            systems_free(&s);
        }
    }
}

static void
test_negative_zeros_and_tiny_negative_masses_get_their_verdict(void)
{
    FOR_EACH_LEVEL(cpu)
    {
        systems s = plain_gate_system(2, 1);
        check_note("%s, mass -0", gm_cpu_name(cpu));
        s.A[0] = s.A[1] = 1.0;
        s.M[3] = -0.0;
        CHECK(passes(cpu, &s, NAN, 1e3 * EPS) == 1);
        double masses[] = {-5e-324, -1e-300, -1.0, -1e300};
        for (int t = 0; t < LENGTH(masses); t++) {
            check_note("%s, mass %g", gm_cpu_name(cpu), masses[t]);
            s.M[3] = masses[t];
            CHECK(passes(cpu, &s, NAN, 1e3 * EPS) == 0);
        }
        systems_free(&s);
    }
}

static void
test_a_group_of_equal_systems_shares_one_memory(void)
{
    /* item strides of zero: one system, `count` answers */
    FOR_EACH_LEVEL(cpu)
    {
        systems s = systems_new(5, 2, 1, 1);
        record r;
        make_system(SPREAD, &s, 0);
        record *alone = singles(cpu, &s, 1, NAN);
        gm_problem p = plain_problem(&s);
        p.M.item = p.Q.item = p.A.item = p.b.item = p.C.item = 0;
        check_note("%s", gm_cpu_name(cpu));
        record_open(&r, 5, 2, 11, ALL_FIELDS, BACKWARDS);
        run(cpu, &p, &r, 11);
        for (int i = 0; i < 11; i++) {
            CHECK(record_same(&r, i, alone, 0));
        }
        CHECK(record_clean(&r, 11));
        record_close(&r);
        free_singles(alone, 1);
        systems_free(&s);
    }
}

int
main(void)
{
    test_the_kinds_of_the_fast_path_take_it_and_are_right();
    test_groups_of_1_to_17_give_the_bits_of_the_single_call();
    test_one_bad_system_in_any_place_never_changes_its_neighbours();
    test_powers_of_two_in_the_units_change_neither_rank_nor_digits();
    test_rows_pass_from_a_sine_of_a_thousandth_on();
    test_rows_that_depend_only_together_are_stopped_by_the_inverse();
    test_a_larger_rtol_asks_for_more_distance();
    test_a_weak_mass_matrix_passes_from_100_n_eps_on();
    test_pivots_at_the_thresholds_are_right_on_both_sides_and_in_mixed_groups();
    test_a_spread_of_masses_of_a_hundred_is_right_on_both_sides();
    test_singular_masses_pass_when_the_rows_hold_them_at_1e8();
    test_a_zero_pivot_is_believed_behind_pivots_of_1e4_only();
    test_a_zero_pivot_with_a_column_is_indefinite();
    test_asymmetry_is_left_to_the_general_path_before_it_counts();
    test_numbers_far_out_are_left_to_the_general_path();
    test_rows_near_their_row_scale_are_left_to_the_general_path();
    test_negative_zeros_and_tiny_negative_masses_get_their_verdict();
    test_a_group_of_equal_systems_shares_one_memory();
    return check_report();
}
