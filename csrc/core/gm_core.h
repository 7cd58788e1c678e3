/* The core of gaussmech: constrained accelerations of k systems at once.
 *
 * Everything here is plain C11 without allocation, output or state of its own.
 * The caller owns all memory: inputs and outputs are strided views, scratch is one
 * block whose size gm_work_size tells. A system that has no answer gets NaN in its
 * own outputs and a negative status; its neighbours are not touched.
 *
 *   M qdd = Q + Q_c,   A qdd = b,   dq'Q_c = dq'C  for every dq in ker A
 */
#ifndef GM_CORE_H
#define GM_CORE_H

#include <stddef.h>
#include <stdint.h>

#include "gm_lapack.h"

/* The numbers are part of the interface and never change. */
typedef enum {
    GM_OK = 0,
    GM_PROJECTED = 1,
    GM_MINIMUM_NORM = 2,
    GM_PROJECTED_MINIMUM_NORM = 3,
    GM_NONFINITE = -1,
    GM_ASYMMETRIC = -2,
    GM_INDEFINITE = -3,
    GM_INCONSISTENT = -4,
    GM_INDETERMINATE_MANY = -5,
    GM_INDETERMINATE_NONE = -6,
    GM_NO_CONVERGENCE = -7
} gm_status;

/* Options of a problem, or-ed together. */
enum { GM_PROJECT = 1, GM_ALLOW_MINIMUM_NORM = 2 };

/* Strided views. Strides are in bytes and may be zero or negative; `item` leads from
 * one system to the next. data == NULL means "not given" or "not wanted". */
typedef struct {
    const char *data;
    ptrdiff_t item, row, col;
} gm_input;

typedef struct {
    char *data;
    ptrdiff_t item, row, col;
} gm_output;

typedef struct {
    gm_input M;         /* (n, n) */
    gm_input Q;         /* (n) */
    gm_input A;         /* (m, n) */
    gm_input b;         /* (m) */
    gm_input C;         /* (n), or not given */
    gm_input row_scale; /* (m), or not given */
    gm_input b_error;   /* (m) error of each entry of b, or not given */
    double rtol;        /* rank tolerance; NaN means the default */
    double ctol, b_atol; /* b_atol: what b may be off by, in units of the row at hand */
    int options;
} gm_problem;

typedef struct {
    gm_output qdd, Q_c, Q_ideal, K;           /* (n) double */
    gm_output multipliers, multipliers_total; /* (m) double */
    gm_output multipliers_unique, vanished;   /* (m) bool, one byte */
    gm_output zwang;                          /* double */
    gm_output rank, nullity;                  /* int64, -1 when not known */
    gm_output residual;                       /* (m) double */
    gm_output status;                         /* int8, always wanted */
    /* For messages; only the general path fills them. */
    gm_output blame; /* (m) bool: rows that clash with each other */
    gm_output kernel; /* (n, n) double: rows [0, nullity) span ker M and ker A */
} gm_motion;

/* What the machine offers; filled once by gm_cpu_init, constant afterwards. */
typedef struct gm_cpu gm_cpu;
const gm_cpu *gm_cpu_level(const char *name); /* NULL: no such level here */
const gm_cpu *gm_cpu_best(void);
const char *gm_cpu_name(const gm_cpu *cpu);
int gm_cpu_lanes(const gm_cpu *cpu);
/* Name of level i, best last, NULL past the end; whether or not it runs here. */
const char *gm_cpu_list(int i);

/* Bytes of scratch for one call of any function below with these sizes, for any
 * count. SIZE_MAX when the sizes overflow. Scratch must be 64-byte aligned. */
size_t gm_work_size(int n, int m);

/* From this many coordinates on, LAPACK is faster than the loops here. */
#define GM_LAPACK_MIN 96

/* The problem itself, `count` systems. lp may be NULL or empty: own loops for any n.
 * About n^3/3 + n^2 m + 2 m^2 n flops a system on the fast path. */
void gm_gauss(const gm_cpu *cpu, const gm_lapack *lp, int n, int m, ptrdiff_t count,
              const gm_problem *p, const gm_motion *r, void *work);

/* M_A = M + alpha^2 A^+A and Q_b = Q + alpha^2 A^+b. Uses M, Q, A, b, rtol of p.
 * Status: the input checks only; inconsistent b is no fault here. */
void gm_augment(const gm_lapack *lp, int n, int m, ptrdiff_t count,
                const gm_problem *p, gm_input alpha, gm_output M_A, gm_output Q_b,
                gm_output status, void *work);

/* mask (m) bool: rows accepted by the pivoted QR of A in the scale of M. */
void gm_independent_rows(const gm_lapack *lp, int n, int m, ptrdiff_t count,
                         const gm_problem *p, gm_output mask, gm_output status,
                         void *work);

/* d qdd / d Q (n, n) = N H^-1 N' and d qdd / d b (n, m). Uses M, A, rtol, row_scale. */
void gm_sensitivity(const gm_lapack *lp, int n, int m, ptrdiff_t count,
                    const gm_problem *p, gm_output dQ, gm_output db,
                    gm_output status, void *work);

/* Z = (qdd - a)' M (qdd - a), a = M^-1 Q, and Gauss's function qdd'M qdd - 2 Q'qdd.
 * zwang is NaN when M is singular and Q is not in its range. Uses M, Q of p. */
void gm_zwang(const gm_lapack *lp, int n, ptrdiff_t count, const gm_problem *p,
              gm_input qdd, gm_output zwang, gm_output gauss_function,
              gm_output status, void *work);

#endif
