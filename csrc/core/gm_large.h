/* The costly steps of the fast path for one large system, on LAPACK; row-major, as in
 * gm_lanes_template.h, whose functions they replace. Inside the core only. */
#ifndef GM_LARGE_H
#define GM_LARGE_H

#include "gm_core.h"

/* L L' = K; all bits set when every pivot is > tol, else 0. L may be K. */
int64_t gm_large_cholesky(const gm_lapack *lp, int n, const double *K, double tol,
                          double *L, double *inv, double *least, int64_t *null);
/* K <- M + A'A, lower triangle */
void gm_large_augment(const gm_lapack *lp, int n, int m, const double *M,
                      const double *A, double *K);
/* rows of B <- L^-1 rows */
void gm_large_whiten(const gm_lapack *lp, int n, int m, const double *L, double *B);
/* Householder QR of the rows of B; work: m * m doubles */
void gm_large_orth(const gm_lapack *lp, int n, int m, double *B, double *tau,
                   double *work);
/* x <- L^-1 x, or L^-T x */
void gm_large_solve(const gm_lapack *lp, int n, const double *L, int transposed,
                    double *x);
/* y <- y - X x */
void gm_large_subtract_rows(const gm_lapack *lp, int rows, int cols, const double *X,
                            const double *x, double *y);

#endif
