/* Dense factorisations of one system, row-major, any n. The reference for every fast
 * kernel; inside the core only. With a filled LAPACK table and n >= GM_LAPACK_MIN the
 * costly ones go to LAPACK. */
#ifndef GM_DENSE_H
#define GM_DENSE_H

#include "gm_core.h"

/* x'y in four partial sums: shorter dependency chains and a smaller rounding error. */
static inline double
gm_dot(int n, const double *x, const double *y)
{
    double s[4] = {0.0, 0.0, 0.0, 0.0};
    int i = 0;
    for (; i + 4 <= n; i += 4) {
        for (int l = 0; l < 4; l++) {
            s[l] += x[i + l] * y[i + l];
        }
    }
    for (; i < n; i++) {
        s[0] += x[i] * y[i];
    }
    return (s[0] + s[1]) + (s[2] + s[3]);
}

static inline void
gm_axpy(int n, double a, const double *x, double *y)
{
    for (int i = 0; i < n; i++) {
        y[i] += a * x[i];
    }
}

static inline void
gm_zero(size_t n, double *x)
{
    for (size_t i = 0; i < n; i++) {
        x[i] = 0.0;
    }
}

static inline void
gm_copy(size_t n, const double *x, double *y)
{
    for (size_t i = 0; i < n; i++) {
        y[i] = x[i];
    }
}

static inline double
gm_norm(int n, const double *x)
{
    return __builtin_sqrt(gm_dot(n, x, x));
}

/* --- gm_cholesky.c --- */

/* Factor the symmetric A = L L' in place; reads and writes the lower triangle.
 * Returns the smallest pivot (the square of the smallest diagonal entry of L), or a
 * number that is not > tol as soon as a pivot is not; A is then spoilt. */
double gm_cholesky(const gm_lapack *lp, int n, double *A, double tol);

/* Factor P'AP = L L' with diagonal pivoting until no pivot is > tol. Column and row j
 * of the factor belong to coordinate perm[j]; *rank pivots were found.
 * GM_INDEFINITE when what remains has a diagonal entry < -tol or any other entry of
 * size > tol; GM_OK otherwise. */
gm_status gm_cholesky_pivoted(int n, double *A, double tol, int *perm, int *rank);

/* x <- L^-1 x and x <- L^-T x for the leading n rows of L with row length ld. */
void gm_solve_lower(int n, int ld, const double *L, double *x);
void gm_solve_lower_t(int n, int ld, const double *L, double *x);

/* Orthonormal basis V (n - rank rows of length n) of ker A out of the pivoted factor.
 * work: n doubles. */
void gm_cholesky_kernel(int n, int rank, const double *L, const int *perm, double *V,
                        double *work);

/* --- gm_orth.c --- */

/* Pivoted Householder QR of m rows of length n in B: in place, row j of the result
 * holds row j of the triangle L (j + 1 entries, A[perm] = L Q1') and behind it the
 * reflector j. Stops at the first pivot that is not > rtol, or at min(n, m); returns
 * the rank. Rows from rank on hold their components along Q1 in front.
 * work: 64 (n + m) doubles. */
int gm_orth_rows(const gm_lapack *lp, int n, int m, double *B, double rtol, int *perm,
                 double *tau, double *work);

/* Orthonormalise k rows of length n without pivoting; the same storage. */
void gm_orth_plain(int n, int k, double *B, double *tau);

/* x <- Q'x and x <- Q x for the first k reflectors of B. */
void gm_orth_qt(int n, int k, const double *B, const double *tau, double *x);
void gm_orth_q(int n, int k, const double *B, const double *tau, double *x);

/* Z <- the n - k orthonormal rows that are orthogonal to all rows of B. */
void gm_orth_kernel(const gm_lapack *lp, int n, int k, double *B, double *tau,
                    double *Z, double *work);

/* C (p, q) <- X (p, k) Y (k, q), or X Y' with Y (q, k) when y_t. */
void gm_matmul(const gm_lapack *lp, int p, int q, int k, const double *X,
               const double *Y, int y_t, double *C);

/* --- gm_scale.c --- */

/* The power of two d with x d^2 in [0.5, 2), for 0 < x < inf. */
double gm_pow2_rsqrt(double x);

/* Powers of two d (n) that bring the diagonal of M near one; massless coordinates take
 * their scale from the rows of A, breadth first. seen: n + m doubles. */
void gm_scale_coordinates(int n, int m, const double *M, const double *A, double *d,
                          double *seen);

#endif
