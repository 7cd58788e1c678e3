#include <math.h>
#include <string.h>

#include "gm_lanes.h"
#include "gm_system.h"

/* best last */
static const gm_cpu levels[] = {
    {"plain", 2, gm_lanes_plain_many, gm_lanes_plain_small, gm_lanes_plain_one},
#ifdef GM_X86
    {"avx2", 4, gm_lanes_avx2_many, gm_lanes_avx2_small, gm_lanes_avx2_one},
    {"avx512", 8, gm_lanes_avx512_many, gm_lanes_avx512_small, gm_lanes_avx512_one},
#endif
};
enum { LEVELS = sizeof levels / sizeof *levels };

static int
runs_here(int level)
{
#ifdef GM_X86
    __builtin_cpu_init();
    if (level == 1) {
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    }
    if (level == 2) {
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
    }
#endif
    return level == 0;
}

const char *
gm_cpu_list(int i)
{
    return i >= 0 && i < LEVELS ? levels[i].name : NULL;
}

const gm_cpu *
gm_cpu_level(const char *name)
{
    for (int i = 0; i < LEVELS; i++) {
        if (strcmp(levels[i].name, name) == 0 && runs_here(i)) {
            return &levels[i];
        }
    }
    return NULL;
}

const gm_cpu *
gm_cpu_best(void)
{
    int i = LEVELS - 1;
    while (i > 0 && !runs_here(i)) {
        i--;
    }
    return &levels[i];
}

const char *
gm_cpu_name(const gm_cpu *cpu)
{
    return cpu->name;
}

int
gm_cpu_lanes(const gm_cpu *cpu)
{
    return cpu->lanes;
}

size_t
gm_lanes_size(int n, int m)
{
    size_t N = (size_t)n, K = (size_t)m, single = gm_system_size(n, 0);

    if (m > n || single == 0) {
        return single; /* never taken */
    }
    if (N != 0 && N > SIZE_MAX / (8 * 8 * GM_MOST_LANES) / N) {
        return 0;
    }
    /* large systems go one by one */
    size_t lanes = n >= GM_LAPACK_MIN ? 1 : GM_MOST_LANES;
    return lanes * (3 * N * N + (2 * K + 1) * N + K * K + 11 * N + 8 * K) + single;
}

int
gm_lanes_may(int n, int m, const gm_problem *p, const gm_motion *r)
{
    return n > 0 && m <= n && !(p->rtol > 1e-4) && r->blame.data == NULL &&
           r->kernel.data == NULL;
}

int
gm_lanes_solve(const gm_cpu *cpu, const gm_lapack *lp, int n, int m,
               const gm_problem *p, ptrdiff_t first, ptrdiff_t left,
               const gm_motion *r, void *work, unsigned *done)
{
    if (left == 1 || n >= GM_LAPACK_MIN) {
        *done = cpu->one(lp, n, m, p, first, 1, r, work);
        return 1;
    }
    int lanes = left < cpu->lanes ? (int)left : cpu->lanes;
#define SIZE(N, M) || (n == N && m == M)
    gm_lane_kernel kernel = 0 GM_SMALL_SIZES(SIZE) ? cpu->small : cpu->many;
#undef SIZE
    *done = kernel(lp, n, m, p, first, lanes, r, work);
    return lanes;
}

double
gm_lanes_singular_zwang(int n, const double *M, const double *Q, const double *Qc,
                        int stride, double *work)
{
    gm_system s;

    gm_system_place(&s, NULL, n, 0, work);
    for (size_t e = 0; e < (size_t)n * (size_t)n; e++) {
        s.M[e] = M[e * (size_t)stride];
    }
    for (int i = 0; i < n; i++) {
        s.Q[i] = Q[i * stride];
        s.r1[i] = Qc[i * stride];
    }
    return gm_system_factor_mass(&s) == GM_OK ? gm_system_zwang(&s, s.r1) : (double)NAN;
}
