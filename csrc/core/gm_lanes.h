/* The fast path: several systems at once, one per SIMD lane. Inside the core only.
 *
 * Cholesky of the scaled M (or of M + A'A where M is singular or badly conditioned),
 * whitened rows, unpivoted Householder QR, a refinement step where the masses call for
 * it. A lane that does not pass the gate is left alone: the general path decides what
 * is wrong with it, if anything is. A system gets the same bits alone, in any lane and
 * with any neighbours. */
#ifndef GM_LANES_H
#define GM_LANES_H

#include "gm_core.h"

enum { GM_MOST_LANES = 8 };

/* Bits of the lanes that were solved and written. `lanes` systems from `first` on. */
typedef unsigned (*gm_lane_kernel)(const gm_lapack *lp, int n, int m,
                                   const gm_problem *p, ptrdiff_t first, int lanes,
                                   const gm_motion *r, void *work);

struct gm_cpu {
    const char *name;
    int lanes;
    gm_lane_kernel many, small, one;
};

/* Sizes for which `small` has a kernel of its own: pendulums, points in the plane and
 * in space on a curve or a surface. */
#define GM_SMALL_SIZES(X) X(2, 1) X(3, 1) X(3, 2)

/* Doubles of scratch; 0 on overflow. */
size_t gm_lanes_size(int n, int m);

/* May these sizes and options take the fast path at all? */
int gm_lanes_may(int n, int m, const gm_problem *p, const gm_motion *r);

/* Try the next group of at most `left` systems; returns how many it took. */
int gm_lanes_solve(const gm_cpu *cpu, const gm_lapack *lp, int n, int m,
                   const gm_problem *p, ptrdiff_t first, ptrdiff_t left,
                   const gm_motion *r, void *work, unsigned *done);

/* Zwang of one lane with singular M: scaled M (n, n), Q, Q_c; stride between entries.
 * work: gm_system_size(n, 0) doubles. */
double gm_lanes_singular_zwang(int n, const double *M, const double *Q,
                               const double *Qc, int stride, double *work);

#define GM_LANE_KERNELS(isa)                                                            \
    unsigned gm_lanes_##isa##_many(const gm_lapack *, int, int, const gm_problem *,     \
                                   ptrdiff_t, int, const gm_motion *, void *);          \
    unsigned gm_lanes_##isa##_small(const gm_lapack *, int, int, const gm_problem *,    \
                                    ptrdiff_t, int, const gm_motion *, void *);         \
    unsigned gm_lanes_##isa##_one(const gm_lapack *, int, int, const gm_problem *,      \
                                  ptrdiff_t, int, const gm_motion *, void *)
GM_LANE_KERNELS(plain);
GM_LANE_KERNELS(avx2);
GM_LANE_KERNELS(avx512);

#endif
