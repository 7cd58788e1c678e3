/* One system on the general path: scale, factor, solve. Inside the core only.
 *
 * All numbers are kept in scaled form, M^ = D M D, A^ = S A D, f^ = D f, b^ = S b with
 * powers of two D and S, so that scaling loses nothing and residuals of the scaled
 * system are residuals of the caller's. Rows of unit length, u_k = unit_k s_k, exist
 * only inside the factorisation. */
#ifndef GM_SYSTEM_H
#define GM_SYSTEM_H

#include "gm_dense.h"

typedef struct {
    const gm_lapack *lp;
    int n, m;
    double rtol, ctol, b_atol;

    /* the scaled problem */
    double *M, *A, *Q, *C, *b; /* C is zero when there is none */
    double *f;                 /* Q + C */
    double *d, *s, *unit;      /* D; S; 1 / length of the scaled row */
    double *b_error;           /* error of each entry of b, in the caller's units */
    int has_C;

    /* M^ = L L', pivoted where a pivot is small */
    double *mass;
    int *mass_perm;
    int mass_rank, mass_pivoted, regular;
    double mass_size; /* infinity norm of M^ */

    /* rows: `kept` nonzero ones, index in `row`, pivots first; rank r */
    double *B, *tau;
    int *row, kept, rank;
    double *X;      /* (kept - rank, rank): dropped unit rows = X * accepted unit rows */
    double *G, *Gt; /* QR of [I X'] in the caller's row units: (rank, kept), tau */
    char *clash;    /* (m) */
    int clashes;

    /* motion along ker A^: basis Z, H = Z M^ Z', its null vectors V */
    double *Z, *H, *g, *V;
    int *H_perm;
    int H_rank, nullity, pivoted;

    double *work; /* 64 (n + m) */
    double *x, *mu, *x1, *mu1, *r1, *r2, *t;
} gm_system;

/* Doubles needed by gm_system_place for sizes n, m; 0 on overflow. */
size_t gm_system_size(int n, int m);

/* Carve the arrays of a system out of one block. */
void gm_system_place(gm_system *s, const gm_lapack *lp, int n, int m, void *work);

/* Read system `item`, check finiteness and symmetry, scale. Rows of length zero (also
 * after row_scale) get unit_k = 0. GM_NO_CONVERGENCE when scaled numbers leave the
 * range of double. */
gm_status gm_system_load(gm_system *s, const gm_problem *p, ptrdiff_t item);

/* M^ semidefinite? Factors it. GM_INDEFINITE when not. */
gm_status gm_system_factor_mass(gm_system *s);

/* Rank of the rows, relations between them, clashes of b. */
void gm_system_factor_rows(gm_system *s);

/* H and its null vectors. */
void gm_system_factor_motion(gm_system *s);

/* Least squares over clashing rows in the caller's units: b <- A A^+ b. */
void gm_system_project(gm_system *s);

/* |W'f| > 1e-8 |f|: f drives a direction without mass and without constraint. */
int gm_system_drives_kernel(const gm_system *s, const double *f);

/* Scaled x and total multipliers mu (kept, unit rows, dropped ones zero) for the
 * applied force f and the right side b (scaled), with one refinement step. */
void gm_system_solve(gm_system *s, const double *f, const double *b, double *x,
                     double *mu);

/* Multipliers in the caller's units, of minimum norm: out (m). */
void gm_system_multipliers(gm_system *s, const double *mu, double *out);

/* Z of a motion with the scaled constraint force Qc; NaN when undefined. */
double gm_system_zwang(gm_system *s, const double *Qc);

/* out (n) <- M^ x - f */
void gm_system_residual(const gm_system *s, const double *x, const double *f,
                        double *out);

/* The same for a solution x, mu: c + A^' mu where that adds up smaller terms. */
void gm_system_force(const gm_system *s, const double *x, const double *mu,
                     const double *f, const double *c, double *out);

/* One element of a strided view. */
static inline double
gm_get(const gm_input *v, ptrdiff_t item, ptrdiff_t i, ptrdiff_t j)
{
    return *(const double *)(const void *)(v->data + item * v->item + i * v->row +
                                           j * v->col);
}

static inline void
gm_put(const gm_output *v, ptrdiff_t item, ptrdiff_t i, ptrdiff_t j, double x)
{
    *(double *)(void *)(v->data + item * v->item + i * v->row + j * v->col) = x;
}

static inline void
gm_put_flag(const gm_output *v, ptrdiff_t item, ptrdiff_t i, int x)
{
    v->data[item * v->item + i * v->row] = (char)x;
}

static inline void
gm_put_int(const gm_output *v, ptrdiff_t item, int64_t x)
{
    *(int64_t *)(void *)(v->data + item * v->item) = x;
}

static inline void
gm_put_status(const gm_output *v, ptrdiff_t item, gm_status x)
{
    *(int8_t *)(void *)(v->data + item * v->item) = (int8_t)x;
}

#endif
