#include <math.h>

#include "gm_dense.h"

#define AT(A, n, i, j) (A)[(size_t)(i) * (size_t)(n) + (size_t)(j)]

/* Householder reflector of x (n): H x = beta e_0, H = I - tau v v', v_0 = 1.
 * beta replaces x[0], the rest of v the rest of x; returns tau. */
static double
reflector(int n, double *x)
{
    double tail = n > 1 ? gm_dot(n - 1, x + 1, x + 1) : 0.0;
    double alpha = x[0];

    if (tail == 0.0) {
        return 0.0;
    }
    double beta = -copysign(sqrt(alpha * alpha + tail), alpha);
    double head = alpha - beta;
    for (int i = 1; i < n; i++) {
        x[i] /= head;
    }
    x[0] = beta;
    return -head / beta;
}

/* y <- H y, v_0 = 1 implied */
static void
reflect(int n, const double *v, double tau, double *y)
{
    double s = tau * (y[0] + gm_dot(n - 1, v + 1, y + 1));
    y[0] -= s;
    gm_axpy(n - 1, -s, v + 1, y + 1);
}

static int
use_lapack(const gm_lapack *lp, int n)
{
    return lp != NULL && lp->dpotrf != NULL && n >= GM_LAPACK_MIN;
}

int
gm_orth_rows(const gm_lapack *lp, int n, int m, double *B, double rtol, int *perm,
             double *tau, double *work)
{
    int most = n < m ? n : m, r;

    if (use_lapack(lp, n) && most > 0) {
        int lwork = 64 * (n + m), info = 0;
        for (int k = 0; k < m; k++) {
            perm[k] = 0;
        }
        lp->dgeqp3(&n, &m, B, &n, perm, tau, work, &lwork, &info);
        for (int k = 0; k < m; k++) {
            perm[k] -= 1;
        }
        for (r = 0; r < most && fabs(AT(B, n, r, r)) > rtol; r++) {
        }
        return r;
    }
    for (int k = 0; k < m; k++) {
        perm[k] = k;
    }
    for (r = 0; r < most; r++) {
        double largest = -1.0;
        int best = r;
        for (int k = r; k < m; k++) {
            const double *row = &AT(B, n, k, r);
            double size = gm_dot(n - r, row, row);
            if (size > largest) {
                largest = size;
                best = k;
            }
        }
        if (!(sqrt(largest) > rtol)) {
            break;
        }
        if (best != r) {
            int t = perm[r];
            perm[r] = perm[best];
            perm[best] = t;
            for (int j = 0; j < n; j++) {
                double x = AT(B, n, r, j);
                AT(B, n, r, j) = AT(B, n, best, j);
                AT(B, n, best, j) = x;
            }
        }
        tau[r] = reflector(n - r, &AT(B, n, r, r));
        for (int k = r + 1; k < m; k++) {
            reflect(n - r, &AT(B, n, r, r), tau[r], &AT(B, n, k, r));
        }
    }
    return r;
}

void
gm_orth_plain(int n, int k, double *B, double *tau)
{
    for (int r = 0; r < k; r++) {
        tau[r] = reflector(n - r, &AT(B, n, r, r));
        for (int j = r + 1; j < k; j++) {
            reflect(n - r, &AT(B, n, r, r), tau[r], &AT(B, n, j, r));
        }
    }
}

void
gm_orth_qt(int n, int k, const double *B, const double *tau, double *x)
{
    for (int r = 0; r < k; r++) {
        reflect(n - r, &AT(B, n, r, r), tau[r], x + r);
    }
}

void
gm_orth_q(int n, int k, const double *B, const double *tau, double *x)
{
    for (int r = k - 1; r >= 0; r--) {
        reflect(n - r, &AT(B, n, r, r), tau[r], x + r);
    }
}

void
gm_orth_kernel(const gm_lapack *lp, int n, int k, double *B, double *tau, double *Z,
               double *work)
{
    int left = n - k;

    gm_zero((size_t)left * (size_t)n, Z);
    for (int i = 0; i < left; i++) {
        AT(Z, n, i, k + i) = 1.0;
    }
    if (use_lapack(lp, n) && left > 0 && k > 0) {
        int lwork = 64 * (n + k), info = 0;
        lp->dormqr((char *)"L", (char *)"N", &n, &left, &k, B, &n, tau, Z, &n, work,
                   &lwork, &info);
        return;
    }
    for (int i = 0; i < left; i++) {
        gm_orth_q(n, k, B, tau, &AT(Z, n, i, 0));
    }
}

void
gm_matmul(const gm_lapack *lp, int p, int q, int k, const double *X, const double *Y,
          int y_t, double *C)
{
    if (use_lapack(lp, p > k ? p : k) && p > 0 && q > 0) {
        double one = 1.0, zero = 0.0;
        int ldx = k > 0 ? k : 1, ldy = y_t ? ldx : q;
        /* column-major: C' = op(Y)' X' */
        lp->dgemm((char *)(y_t ? "T" : "N"), (char *)"N", &q, &p, &k, &one,
                  (double *)(uintptr_t)Y, &ldy, (double *)(uintptr_t)X, &ldx, &zero, C,
                  &q);
        return;
    }
    for (int i = 0; i < p; i++) {
        double *row = &AT(C, q, i, 0);
        if (y_t) {
            for (int j = 0; j < q; j++) {
                row[j] = gm_dot(k, &AT(X, k, i, 0), &AT(Y, k, j, 0));
            }
            continue;
        }
        gm_zero((size_t)q, row);
        for (int l = 0; l < k; l++) {
            gm_axpy(q, AT(X, k, i, l), &AT(Y, q, l, 0), row);
        }
    }
}
