/* The costly steps of the fast path for one large system, on LAPACK; row-major, as in
 * gm_lanes_template.h, whose functions they replace. Inside the core only. */
#ifndef GM_LARGE_H
#define GM_LARGE_H

#include "gm_core.h"

/* L L' = K: smallest pivot, at most 1, or 0 when one is not clear of rounding (its
 * product with the smallest one before it not > tol). L may be K. */
double gm_large_cholesky(const gm_lapack *lp, int n, const double *K, double tol,
                         double *L);
/* K <- M + A'A, lower triangle */
void gm_large_augment(const gm_lapack *lp, int n, int m, const double *M,
                      const double *A, double *K);
/* rows of B <- L^-1 rows */
void gm_large_whiten(const gm_lapack *lp, int n, int m, const double *L, double *B);
/* Householder QR of the first m rows of B, the reflectors applied to `more` rows behind
 * them; work: m * m doubles */
void gm_large_orth(const gm_lapack *lp, int n, int m, int more, double *B, double *tau,
                   double *work);
/* x <- L^-1 x, or L^-T x */
void gm_large_solve(const gm_lapack *lp, int n, const double *L, int transposed,
                    double *x);
/* y <- y - X x */
void gm_large_subtract_rows(const gm_lapack *lp, int rows, int cols, const double *X,
                            const double *x, double *y);

#endif
