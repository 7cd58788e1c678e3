#include <math.h>

#include "gm_dense.h"

double
gm_pow2_rsqrt(double x)
{
    int e;
    (void)frexp(x, &e); /* x in [2^(e-1), 2^e) */
    int half = e >= 0 ? e / 2 : -((1 - e) / 2);
    return ldexp(1.0, -half);
}

/* largest |A_kj| d_j over the coordinates whose scale is known */
static double
known_size(int n, const double *row, const double *d)
{
    double size = 0.0;
    for (int j = 0; j < n; j++) {
        double v = fabs(row[j]) * d[j];
        if (v > size) {
            size = v;
        }
    }
    return size;
}

void
gm_scale_coordinates(int n, int m, const double *M, const double *A, double *d,
                     double *seen)
{
    double *fresh = seen, *size = seen + n;
    int massless = 0;

    for (int j = 0; j < n; j++) {
        double mass = fabs(M[(size_t)j * (size_t)n + (size_t)j]);
        d[j] = mass > 0.0 ? gm_pow2_rsqrt(mass) : 0.0;
        massless += !(mass > 0.0);
    }
    for (int k = 0; k < m && massless > 0; k++) {
        size[k] = known_size(n, A + (size_t)k * (size_t)n, d);
    }
    while (massless > 0) {
        int reached = 0, seed = -1;

        /* one level: every massless coordinate that a row ties to a scaled one */
        for (int j = 0; j < n; j++) {
            double ratio = 0.0;
            fresh[j] = 0.0;
            if (d[j] > 0.0) {
                continue;
            }
            for (int k = 0; k < m; k++) {
                double v = fabs(A[(size_t)k * (size_t)n + (size_t)j]);
                if (v > 0.0 && seed < 0) {
                    seed = j;
                }
                if (v > 0.0 && size[k] > 0.0 && v / size[k] > ratio) {
                    ratio = v / size[k];
                }
            }
            if (ratio > 0.0) {
                int e;
                (void)frexp(ratio, &e);
                fresh[j] = ldexp(1.0, e > 1000 ? -1000 : e < -1000 ? 1000 : 1 - e);
                reached++;
            }
        }
        /* nothing left is tied to a mass: the next group starts a scale of its own */
        if (reached == 0) {
            if (seed < 0) {
                for (int j = 0; j < n; j++) {
                    d[j] = d[j] > 0.0 ? d[j] : 1.0;
                }
                return;
            }
            fresh[seed] = 1.0;
            reached = 1;
        }
        for (int j = 0; j < n; j++) {
            d[j] = fresh[j] > 0.0 ? fresh[j] : d[j];
        }
        massless -= reached;
        for (int k = 0; k < m; k++) {
            if (!(size[k] > 0.0)) {
                size[k] = known_size(n, A + (size_t)k * (size_t)n, d);
            }
        }
    }
}
