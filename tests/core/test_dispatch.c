/* gm_dispatch.c: levels, sizes, which problems may take the fast path, group sizes. */
#include "check.h"
#include "gm_lanes.h"
#include "gm_system.h"
#include "problems.h"

static void
test_the_levels_are_listed_best_last_and_found_by_name(void)
{
    const gm_cpu *best = NULL;
    int lanes = 0;

    for (int i = 0; gm_cpu_list(i) != NULL; i++) {
        const char *name = gm_cpu_list(i);
        const gm_cpu *cpu = gm_cpu_level(name);
        check_note("level %s", name);
        if (cpu == NULL) {
            continue; /* not on this machine */
        }
        CHECK(strcmp(gm_cpu_name(cpu), name) == 0);
        CHECK(gm_cpu_lanes(cpu) > lanes && gm_cpu_lanes(cpu) <= GM_MOST_LANES);
        lanes = gm_cpu_lanes(cpu);
        best = cpu;
    }
    check_note("best");
    CHECK(best != NULL && gm_cpu_best() == best);
    CHECK(strcmp(gm_cpu_list(0), "plain") == 0 && gm_cpu_level("plain") != NULL);
    CHECK(gm_cpu_lanes(gm_cpu_level("plain")) == 2);
}

static void
test_unknown_levels_do_not_exist(void)
{
    const char *names[] = {"", "Plain", "plain ", "nonsense", "avx", "avx5122"};
    for (int i = 0; i < LENGTH(names); i++) {
        check_note("'%s'", names[i]);
        CHECK(gm_cpu_level(names[i]) == NULL);
    }
    CHECK(gm_cpu_list(-1) == NULL && gm_cpu_list(1000) == NULL);
}

static void
test_work_sizes_grow_with_the_problem_and_refuse_what_overflows(void)
{
    int most = 2147483647;
    for (int n = 0; n < 140; n++) {
        for (int m = 0; m < 140; m++) {
            size_t size = gm_work_size(n, m);
            check_note("n = %d, m = %d", n, m);
            CHECK(size > 0 && size < SIZE_MAX && size % sizeof(double) == 0);
            CHECK(size / sizeof(double) >= gm_system_size(n, m));
            CHECK(size / sizeof(double) >= gm_lanes_size(n, m));
        }
    }
    check_note("too large");
    CHECK(gm_work_size(most, 0) == SIZE_MAX && gm_work_size(0, most) == SIZE_MAX);
    CHECK(gm_work_size(most, most) == SIZE_MAX);
    CHECK(gm_work_size(1 << 28, 1 << 28) == SIZE_MAX);
    CHECK(gm_work_size(-1, 0) == SIZE_MAX && gm_work_size(0, -1) == SIZE_MAX);
    /* no size wraps around on the way up: each holds M at least */
    for (int e = 1; e < 31; e++) {
        for (int f = 0; f < 31; f++) {
            size_t N = (size_t)1 << e, K = (size_t)1 << f;
            size_t size = gm_work_size((int)N, (int)K);
            check_note("n = 2^%d, m = 2^%d", e, f);
            CHECK(size == SIZE_MAX || (size / 8 / N >= 5 * N && size / 8 / N >= 2 * K));
        }
    }
}

static void
test_the_fast_path_is_for_problems_that_it_decides_like_the_general_one(void)
{
    char byte = 0;
    gm_problem p = {.rtol = NAN};
    gm_motion r = {0};

    check_note("may");
    CHECK(gm_lanes_may(3, 2, &p, &r) && gm_lanes_may(3, 3, &p, &r));
    CHECK(gm_lanes_may(1, 0, &p, &r));
    CHECK(!gm_lanes_may(3, 4, &p, &r)); /* dependent rows */
    CHECK(!gm_lanes_may(0, 0, &p, &r));
    p.rtol = 1e-4;
    CHECK(gm_lanes_may(3, 2, &p, &r));
    p.rtol = nextafter(1e-4, 1.0); /* a rank decision beyond the gate's reach */
    CHECK(!gm_lanes_may(3, 2, &p, &r));
    p.rtol = 0.0;
    r.blame.data = &byte;
    CHECK(!gm_lanes_may(3, 2, &p, &r));
    r.blame.data = NULL;
    r.kernel.data = &byte;
    CHECK(!gm_lanes_may(3, 2, &p, &r));
}

/* --- group sizes: kernels that only count --- */

static int seen_lanes, seen_one;
static ptrdiff_t seen_first;

static unsigned
count_many(const gm_lapack *lp, int n, int m, const gm_problem *p, ptrdiff_t first,
           int lanes, const gm_motion *r, void *work)
{
    (void)lp, (void)n, (void)m, (void)p, (void)r, (void)work;
    seen_lanes = lanes;
    seen_first = first;
    return 5u;
}

static unsigned
count_one(const gm_lapack *lp, int n, int m, const gm_problem *p, ptrdiff_t first,
          int lanes, const gm_motion *r, void *work)
{
    seen_one++;
    return count_many(lp, n, m, p, first, lanes, r, work) & 1u;
}

static void
test_groups_fill_the_register_and_the_last_one_takes_what_is_left(void)
{
    gm_cpu cpu = {"counting", 4, count_many, count_many, count_one};
    unsigned done;
    int from = GM_LAPACK_MIN;

    for (ptrdiff_t left = 1; left <= 9; left++) {
        check_note("%ld left", (long)left);
        int lanes = left < 4 ? (int)left : 4;
        seen_one = 0;
        CHECK(lanes ==
              gm_lanes_solve(&cpu, NULL, 6, 3, NULL, 7, left, NULL, NULL, &done));
        CHECK(seen_lanes == lanes && seen_first == 7);
        CHECK(done == (left == 1 ? 1u : 5u) && seen_one == (left == 1));
    }
    check_note("large");
    for (int n = from - 1; n <= from; n++) {
        seen_one = 0;
        int lanes = n < from ? 4 : 1;
        CHECK(gm_lanes_solve(&cpu, NULL, n, 3, NULL, 0, 9, NULL, NULL, &done) == lanes);
        CHECK(seen_lanes == lanes && seen_one == (n == from));
    }
}

static void
test_the_zwang_of_one_lane_is_that_of_the_system(void)
{
    for (int lanes = 1; lanes <= GM_MOST_LANES; lanes *= 2) {
        for (int n = 2; n <= 9; n++) {
            size_t N = (size_t)n, L = (size_t)lanes;
            systems s = systems_new(n, 1, 1, 0);
            double *M = doubles(N * N * L), *Q = doubles(N * L), *F = doubles(N * L);
            double *inner = doubles((N - 1) * (N - 1));
            double *z = doubles(N), *f = doubles(N);
            void *work = exact_bytes(gm_system_size(n, 0) * sizeof(double));

            check_note("n = %d, %d lanes", n, lanes);
            make_system(MASSLESS, &s, 0);
            s.Q[0] = 0.0;
            fill_uniform(N, f);
            f[0] = 0.0;
            for (int i = 1; i < n; i++) {
                memcpy(&AT(inner, n - 1, i - 1, 0), &AT(s.M, n, i, 1),
                       (N - 1) * sizeof(double));
            }
            slow_motion(n - 1, 0, inner, NULL, f + 1, NULL, z, NULL);
            double want = gm_dot(n - 1, z, f + 1);
            for (size_t l = 0; l < L; l++) {
                for (size_t e = 0; e < N * N * L; e++) {
                    M[e] = e % L == l ? s.M[e / L] : NAN;
                }
                for (size_t e = 0; e < N * L; e++) {
                    Q[e] = e % L == l ? s.Q[e / L] : NAN;
                    F[e] = e % L == l ? f[e / L] : NAN;
                }
                double have =
                    gm_lanes_singular_zwang(n, M + l, Q + l, F + l, lanes, work);
                CHECK_BELOW(fabs(have - want), 1e5 * EPS * want);
                Q[l] = 1.0; /* a force on the coordinate without mass */
                have = gm_lanes_singular_zwang(n, M + l, Q + l, F + l, lanes, work);
                CHECK(isnan(have));
            }
            systems_free(&s);
            free(M);
            free(Q);
            free(F);
            free(inner);
            free(z);
            free(f);
            free(work);
        }
    }
}

int
main(void)
{
    test_the_levels_are_listed_best_last_and_found_by_name();
    test_unknown_levels_do_not_exist();
    test_work_sizes_grow_with_the_problem_and_refuse_what_overflows();
    test_the_fast_path_is_for_problems_that_it_decides_like_the_general_one();
    test_groups_fill_the_register_and_the_last_one_takes_what_is_left();
    test_the_zwang_of_one_lane_is_that_of_the_system();
    return check_report();
}
