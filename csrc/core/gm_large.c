#include "gm_large.h"

#include "gm_dense.h"


/* LAPACK takes everything by plain pointer, also what it only reads */
static double *
plain(const double *x)
{
    return (double *)(uintptr_t)x;
}

double
gm_large_cholesky(const gm_lapack *lp, int n, const double *K, double tol, double *L)
{
    size_t N = (size_t)n;
    double least = 1.0;
    int info = 0;

    for (size_t e = 0; e < N * N && L != K; e++) {
        L[e] = K[e];
    }
    lp->dpotrf((char *)"U", &n, L, &n, &info);
    for (size_t i = 0; i < N && info == 0; i++) {
        double pivot = L[i * N + i] * L[i * N + i];
        if (!(pivot * least > tol)) { /* not clear of rounding */
            return 0.0;
        }
        least = pivot < least ? pivot : least;
    }
    return info == 0 ? least : 0.0;
}

void
gm_large_augment(const gm_lapack *lp, int n, int m, const double *M, const double *A,
                 double *K)
{
    double one = 1.0;

    for (size_t e = 0; e < (size_t)n * (size_t)n; e++) {
        K[e] = M[e];
    }
    if (m > 0) {
        lp->dsyrk((char *)"U", (char *)"N", &n, &m, &one, plain(A), &n, &one, K, &n);
    }
}

void
gm_large_whiten(const gm_lapack *lp, int n, int m, const double *L, double *B)
{
    double one = 1.0;

    if (m > 0) {
        lp->dtrsm((char *)"L", (char *)"U", (char *)"T", (char *)"N", &n, &m, &one,
                  plain(L), &n, B, &n);
    }
}

void
gm_large_orth(const gm_lapack *lp, int n, int m, int more, double *B, double *tau,
              double *work)
{
    int lwork = m * m, info = 0;

    if (m > 0) {
        lp->dgeqrf(&n, &m, B, &n, tau, work, &lwork, &info);
    }
    for (int k = m; k < m + more; k++) {
        gm_orth_qt(n, m, B, tau, B + (size_t)k * (size_t)n);
    }
}

void
gm_large_solve(const gm_lapack *lp, int n, const double *L, int transposed, double *x)
{
    int step = 1;

    lp->dtrsv((char *)"U", (char *)(transposed ? "N" : "T"), (char *)"N", &n, plain(L),
              &n, x, &step);
}

void
gm_large_subtract_rows(const gm_lapack *lp, int rows, int cols, const double *X,
                       const double *x, double *y)
{
    double minus = -1.0, one = 1.0;
    int step = 1;

    if (rows > 0) {
        lp->dgemv((char *)"T", &cols, &rows, &minus, plain(X), &cols, plain(x), &step,
                  &one, y, &step);
    }
}
