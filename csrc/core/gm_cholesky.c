#include <math.h>

#include "gm_dense.h"

#define AT(A, n, i, j) (A)[(size_t)(i) * (size_t)(n) + (size_t)(j)]

double
gm_cholesky(const gm_lapack *lp, int n, double *A, double tol)
{
    double smallest = INFINITY;

    if (lp != NULL && lp->dpotrf != NULL && n >= GM_LAPACK_MIN) {
        int info = 0;
        lp->dpotrf((char *)"U", &n, A, &n, &info);
        if (info != 0) {
            return -1.0;
        }
        for (int j = 0; j < n; j++) {
            double p = AT(A, n, j, j) * AT(A, n, j, j);
            if (!(p > tol)) {
                return p;
            }
            smallest = p < smallest ? p : smallest;
        }
        return smallest;
    }
    for (int i = 0; i < n; i++) {
        double *row = &AT(A, n, i, 0);
        for (int j = 0; j < i; j++) {
            const double *other = &AT(A, n, j, 0);
            row[j] = (row[j] - gm_dot(j, row, other)) / other[j];
        }
        double p = row[i] - gm_dot(i, row, row);
        if (!(p > tol)) {
            return p;
        }
        smallest = p < smallest ? p : smallest;
        row[i] = sqrt(p);
    }
    return smallest;
}

/* exchange coordinates p < q of a symmetric matrix kept in its lower triangle, and
 * the rows of the factor in front of it */
static void
exchange(int n, double *A, int p, int q)
{
    double t;
#define SWAP(x, y) (t = (x), (x) = (y), (y) = t)
    SWAP(AT(A, n, p, p), AT(A, n, q, q));
    for (int j = 0; j < p; j++) {
        SWAP(AT(A, n, p, j), AT(A, n, q, j));
    }
    for (int i = p + 1; i < q; i++) {
        SWAP(AT(A, n, i, p), AT(A, n, q, i));
    }
    for (int i = q + 1; i < n; i++) {
        SWAP(AT(A, n, i, p), AT(A, n, i, q));
    }
#undef SWAP
}

gm_status
gm_cholesky_pivoted(int n, double *A, double tol, int *perm, int *rank)
{
    int r = 0;

    for (int j = 0; j < n; j++) {
        perm[j] = j;
    }
    for (; r < n; r++) {
        int best = r;
        for (int j = r + 1; j < n; j++) {
            if (AT(A, n, j, j) > AT(A, n, best, best)) {
                best = j;
            }
        }
        if (!(AT(A, n, best, best) > tol)) {
            break;
        }
        if (best != r) {
            int t = perm[r];
            perm[r] = perm[best];
            perm[best] = t;
            exchange(n, A, r, best);
        }
        double pivot = sqrt(AT(A, n, r, r));
        AT(A, n, r, r) = pivot;
        for (int i = r + 1; i < n; i++) {
            AT(A, n, i, r) /= pivot;
        }
        for (int i = r + 1; i < n; i++) {
            double l = AT(A, n, i, r);
            for (int j = r + 1; j <= i; j++) {
                AT(A, n, i, j) -= l * AT(A, n, j, r);
            }
        }
    }
    *rank = r;
    for (int i = r; i < n; i++) {
        if (!(AT(A, n, i, i) >= -tol)) {
            return GM_INDEFINITE;
        }
        for (int j = r; j < i; j++) {
            if (!(fabs(AT(A, n, i, j)) <= tol)) {
                return GM_INDEFINITE;
            }
        }
    }
    return GM_OK;
}

void
gm_solve_lower(int n, int ld, const double *L, double *x)
{
    for (int i = 0; i < n; i++) {
        const double *row = &AT(L, ld, i, 0);
        x[i] = (x[i] - gm_dot(i, row, x)) / row[i];
    }
}

void
gm_solve_lower_t(int n, int ld, const double *L, double *x)
{
    for (int i = n - 1; i >= 0; i--) {
        const double *row = &AT(L, ld, i, 0);
        x[i] /= row[i];
        gm_axpy(i, -x[i], row, x);
    }
}

void
gm_cholesky_kernel(int n, int rank, const double *L, const int *perm, double *V,
                   double *work)
{
    int left = n - rank;

    /* P'AP = [L1; L2][L1; L2]' has the null vectors [-L1^-T L2'; I] */
    for (int k = 0; k < left; k++) {
        double *v = &AT(V, n, k, 0);

        for (int j = 0; j < n; j++) {
            work[j] = j < rank ? -AT(L, n, rank + k, j) : j == rank + k ? 1.0 : 0.0;
        }
        gm_solve_lower_t(rank, n, L, work);
        for (int j = 0; j < n; j++) {
            v[perm[j]] = work[j];
        }
        /* orthogonal to the earlier ones; twice is enough */
        for (int pass = 0; pass < 2; pass++) {
            for (int l = 0; l < k; l++) {
                const double *w = &AT(V, n, l, 0);
                gm_axpy(n, -gm_dot(n, v, w), w, v);
            }
        }
        double norm = gm_norm(n, v);
        for (int j = 0; j < n; j++) {
            v[j] /= norm;
        }
    }
}
