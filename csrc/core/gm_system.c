#include <math.h>

#include "gm_system.h"

#define AT(A, n, i, j) (A)[(size_t)(i) * (size_t)(n) + (size_t)(j)]
#define EPS 2.220446049250313e-16
/* An unpivoted factorisation is believed down to pivots of this size: rounding in a
 * pivot is eps over the pivots before it. */
#define GM_TRUSTED 1e-4

size_t
gm_system_size(int n, int m)
{
    size_t N = (size_t)n, K = (size_t)m, k = N < K ? N : K;

    if (N > (1u << 28) || K > (1u << 28)) {
        return 0;
    }
    if (N != 0 && (N > SIZE_MAX / 64 / (5 * N) || N > SIZE_MAX / 64 / (K + 1))) {
        return 0;
    }
    if (K != 0 && K > SIZE_MAX / 64 / (2 * k + 1)) {
        return 0;
    }
    return 5 * N * N + 2 * K * N + 2 * K * k + 91 * (N + K) + 64;
}

void
gm_system_place(gm_system *s, const gm_lapack *lp, int n, int m, void *work)
{
    double *next = (double *)work;
    size_t N = (size_t)n, K = (size_t)m, k = N < K ? N : K;

#define TAKE(field, count) (s->field = next, next += (count))
    s->lp = lp;
    s->n = n;
    s->m = m;
    TAKE(M, N * N);
    TAKE(mass, N * N);
    TAKE(Z, N * N);
    TAKE(H, N * N);
    TAKE(V, N * N);
    TAKE(A, K * N);
    TAKE(B, K * N);
    TAKE(X, K * k);
    TAKE(G, K * k);
    TAKE(Q, N);
    TAKE(C, N);
    TAKE(f, N);
    TAKE(d, N);
    TAKE(g, N);
    TAKE(x, N);
    TAKE(x1, N);
    TAKE(r1, N);
    TAKE(t, N + K);
    TAKE(b, K);
    TAKE(s, K);
    TAKE(unit, K);
    TAKE(b_error, K);
    TAKE(tau, N + K);
    TAKE(Gt, K);
    TAKE(mu, K);
    TAKE(mu1, K);
    TAKE(r2, K);
    TAKE(work, 64 * (N + K));
#undef TAKE
    /* integers and flags share what is left: 2 N + 2 K ints and K bytes */
    s->mass_perm = (int *)(void *)next;
    s->H_perm = s->mass_perm + n;
    s->row = s->H_perm + n;
    s->clash = (char *)(s->row + m);
}

/* x * 0 is 0 for finite x and NaN otherwise: one sum tests them all */
static double
poison(const gm_input *v, ptrdiff_t item, int rows, int cols)
{
    double sum = 0.0;
    for (int i = 0; i < rows; i++) {
        for (int j = 0; j < cols; j++) {
            sum += gm_get(v, item, i, j) * 0.0;
        }
    }
    return sum;
}

/* scale one row of A into out, its length near one; returns its scale, 0 for a zero row,
 * NaN when the scale is out of range */
static double
scale_row(int n, const gm_input *A, ptrdiff_t item, int k, const double *d,
          double *out)
{
    double largest = 0.0;
    int e;

    for (int j = 0; j < n; j++) {
        double v = fabs(gm_get(A, item, k, j));
        largest = v > largest ? v : largest;
    }
    if (largest == 0.0) {
        gm_zero((size_t)n, out);
        return 0.0;
    }
    /* in steps, so that no product overflows on the way */
    (void)frexp(largest, &e);
    double first = ldexp(1.0, -(e / 2)), second = ldexp(1.0, -(e - e / 2));
    largest = 0.0;
    for (int j = 0; j < n; j++) {
        out[j] = gm_get(A, item, k, j) * first * second * d[j];
        double v = fabs(out[j]);
        largest = v > largest ? v : largest;
    }
    (void)frexp(largest, &e);
    double third = ldexp(1.0, -e);
    double length2 = 0.0;
    for (int j = 0; j < n; j++) {
        out[j] *= third;
        length2 += out[j] * out[j];
    }
    double last = gm_pow2_rsqrt(length2);
    for (int j = 0; j < n; j++) {
        out[j] *= last;
    }
    double scale = first * second * third * last;
    return isnormal(scale) ? scale : (double)NAN;
}

gm_status
gm_system_load(gm_system *s, const gm_problem *p, ptrdiff_t item)
{
    int n = s->n, m = s->m;
    double nan_sum = poison(&p->M, item, n, n) + poison(&p->A, item, m, n);

    s->has_C = p->C.data != NULL;
    s->rtol = p->rtol;
    if (!(p->rtol >= 0.0)) {
        s->rtol = 16.0 * n * EPS > 1e-12 ? 16.0 * n * EPS : 1e-12;
    }
    s->ctol = p->ctol;
    s->b_atol = p->b_atol;
    s->clashes = 0;
    nan_sum += p->Q.data != NULL ? poison(&p->Q, item, n, 1) : 0.0;
    nan_sum += p->b.data != NULL ? poison(&p->b, item, m, 1) : 0.0;
    nan_sum += s->has_C ? poison(&p->C, item, n, 1) : 0.0;
    nan_sum += p->row_scale.data != NULL ? poison(&p->row_scale, item, m, 1) : 0.0;
    nan_sum += p->b_error.data != NULL ? poison(&p->b_error, item, m, 1) : 0.0;
    if (!(nan_sum == 0.0)) {
        return GM_NONFINITE;
    }

    /* scales; the raw rows stand in B for the massless coordinates */
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) {
            AT(s->M, n, i, j) = gm_get(&p->M, item, i, j);
        }
    }
    for (int k = 0; k < m; k++) {
        for (int j = 0; j < n; j++) {
            AT(s->B, n, k, j) = gm_get(&p->A, item, k, j);
        }
    }
    gm_scale_coordinates(n, m, s->M, s->B, s->d, s->t);

    for (int i = 0; i < n; i++) {
        double mass_i = fabs(AT(s->M, n, i, i));
        for (int j = 0; j < i; j++) {
            double upper = AT(s->M, n, j, i), lower = AT(s->M, n, i, j);
            double bound = 1e-10 * sqrt(mass_i) * sqrt(fabs(AT(s->M, n, j, j)));
            if (fabs(upper - lower) > bound) {
                return GM_ASYMMETRIC;
            }
        }
    }
    s->mass_size = 0.0;
    for (int i = 0; i < n; i++) {
        for (int j = 0; j <= i; j++) {
            double mean = 0.5 * AT(s->M, n, i, j) + 0.5 * AT(s->M, n, j, i);
            AT(s->M, n, i, j) = mean * s->d[i] * s->d[j];
            AT(s->M, n, j, i) = AT(s->M, n, i, j);
        }
    }
    for (int i = 0; i < n; i++) {
        double sum = 0.0;
        for (int j = 0; j < n; j++) {
            sum += fabs(AT(s->M, n, i, j));
        }
        s->mass_size = sum > s->mass_size ? sum : s->mass_size;
    }

    double range = 0.0;
    for (int i = 0; i < n; i++) {
        s->Q[i] = p->Q.data != NULL ? gm_get(&p->Q, item, i, 0) * s->d[i] : 0.0;
        s->C[i] = s->has_C ? gm_get(&p->C, item, i, 0) * s->d[i] : 0.0;
        s->f[i] = s->Q[i] + s->C[i];
        range += s->f[i] * 0.0;
    }
    for (int k = 0; k < m; k++) {
        double *row = &AT(s->A, n, k, 0);
        double scale = scale_row(n, &p->A, item, k, s->d, row);
        double b = p->b.data != NULL ? gm_get(&p->b, item, k, 0) : 0.0;
        double foot = p->row_scale.data != NULL ? gm_get(&p->row_scale, item, k, 0) : 0.0;
        double touched = 0.0;

        s->b_error[k] = p->b_error.data != NULL ? fabs(gm_get(&p->b_error, item, k, 0)) : 0.0;
        s->clash[k] = 0;
        s->s[k] = scale;
        s->unit[k] = scale > 0.0 ? 1.0 / gm_norm(n, row) : 0.0;
        for (int j = 0; j < n; j++) {
            double reach = scale == 0.0 || row[j] != 0.0 ? s->d[j] : 0.0;
            touched = reach > touched ? reach : touched;
        }
        foot *= touched;
        /* a row that is zero, or as small as rounding leaves one that cancels */
        if (scale == 0.0 || 1.0 <= s->rtol * foot * scale * s->unit[k]) {
            double size = foot > 0.0 ? fabs(b) / foot : fabs(b);
            double noise = foot > 0.0 ? s->ctol * (size + gm_norm(n, s->f)) : 0.0;
            double given = s->b_atol + s->b_error[k];
            s->clash[k] = size > noise + (foot > 0.0 ? given / foot : given);
            s->clashes += s->clash[k];
            s->unit[k] = 0.0;
            s->s[k] = 0.0;
        }
        s->b[k] = b * s->s[k];
        range += s->b[k] * 0.0 + s->unit[k] * 0.0 + scale * 0.0;
    }
    return range == 0.0 ? GM_OK : GM_NO_CONVERGENCE;
}

gm_status
gm_system_factor_mass(gm_system *s)
{
    int n = s->n;
    double tol = 32.0 * n * EPS;
    size_t count = (size_t)n * (size_t)n;

    for (int i = 0; i < n; i++) {
        /* a negative mass, coupling without mass, or more coupling than mass */
        double mass = AT(s->M, n, i, i);
        for (int j = 0; j < n; j++) {
            double v = fabs(AT(s->M, n, i, j));
            if (mass < 0.0 || (mass == 0.0 && v > 0.0) || !(v < 2.0 + 1e-9)) {
                return GM_INDEFINITE;
            }
        }
    }
    s->mass_rank = n;
    s->regular = 1;
    gm_copy(count, s->M, s->mass);
    s->mass_pivoted = !(gm_cholesky(s->lp, n, s->mass, GM_TRUSTED) > GM_TRUSTED);
    if (!s->mass_pivoted) {
        return GM_OK;
    }
    gm_copy(count, s->M, s->mass);
    gm_status status = gm_cholesky_pivoted(n, s->mass, tol, s->mass_perm, &s->mass_rank);
    s->regular = s->mass_rank == n;
    return status;
}

void
gm_system_factor_rows(gm_system *s)
{
    int n = s->n, m = s->m, kept = 0;

    for (int k = 0; k < m; k++) {
        if (s->unit[k] > 0.0) {
            for (int j = 0; j < n; j++) {
                AT(s->B, n, kept, j) = s->unit[k] * AT(s->A, n, k, j);
            }
            s->row[kept++] = k;
        }
    }
    s->kept = kept;

    /* the multipliers are not in use yet: their memory holds the sorting */
    int *perm = (int *)(void *)s->mu, *old = (int *)(void *)s->mu1;
    s->rank = gm_orth_rows(s->lp, n, kept, s->B, s->rtol, perm, s->tau, s->work);
    for (int k = 0; k < kept; k++) {
        old[k] = s->row[k];
    }
    for (int k = 0; k < kept; k++) {
        s->row[k] = old[perm[k]];
    }

    int r = s->rank, dropped = kept - r;
    if (dropped == 0) {
        return;
    }
    double force = gm_norm(n, s->f);
    for (int c = 0; c < dropped; c++) {
        double *X = &AT(s->X, r, c, 0);
        int row = s->row[r + c];
        double b = s->unit[row] * s->b[row], gap = b, size = fabs(b);
        double given = s->unit[row] * s->s[row] * (s->b_atol + s->b_error[row]);

        gm_copy((size_t)r, &AT(s->B, n, r + c, 0), X);
        gm_solve_lower_t(r, n, s->B, X);
        for (int j = 0; j < r; j++) {
            int other = s->row[j];
            double term = X[j] * s->unit[other] * s->b[other];
            gap -= term;
            size += fabs(term);
            given += fabs(X[j]) * s->unit[other] * s->s[other] * s->b_error[other];
        }
        if (fabs(gap) > s->ctol * (size + force) + given) {
            s->clash[row] = 1;
            s->clashes++;
            for (int j = 0; j < r; j++) {
                if (fabs(X[j]) > 1e-9) {
                    s->clash[s->row[j]] = 1;
                }
            }
        }
    }
    /* [I X'] in the caller's units: A_c = sum_j X_cj (u_j / u_c) A_j */
    for (int j = 0; j < r; j++) {
        double *G = &AT(s->G, kept, j, 0);
        int row = s->row[j];
        for (int i = 0; i < r; i++) {
            G[i] = i == j ? 1.0 : 0.0;
        }
        for (int c = 0; c < dropped; c++) {
            int other = s->row[r + c];
            double ratio = (s->unit[row] / s->unit[other]) * (s->s[row] / s->s[other]);
            G[r + c] = AT(s->X, r, c, j) * ratio;
        }
    }
    gm_orth_plain(kept, r, s->G, s->Gt);
}

void
gm_system_factor_motion(gm_system *s)
{
    int n = s->n, r = s->rank, k = n - r;
    double *MZ = s->V;
    size_t count = (size_t)k * (size_t)k;

    gm_orth_kernel(s->lp, n, r, s->B, s->tau, s->Z, s->work);
    gm_matmul(s->lp, k, n, n, s->Z, s->M, 0, MZ);
    gm_matmul(s->lp, k, k, n, MZ, s->Z, 1, s->H);
    gm_copy(count, s->H, s->V);

    /* unit diagonal; where M is singular, small pivots are judged again with pivoting, in
     * the scale of M^ */
    double trusted = s->regular ? 0.0 : GM_TRUSTED * s->mass_size;
    int ok = 1;
    for (int i = 0; i < k; i++) {
        double h = AT(s->H, k, i, i);
        ok = ok && h > trusted;
        s->g[i] = h > trusted ? gm_pow2_rsqrt(h) : 1.0;
    }
    for (int i = 0; i < k; i++) {
        for (int j = 0; j <= i; j++) {
            AT(s->H, k, i, j) *= s->g[i] * s->g[j];
        }
    }
    ok = ok && gm_cholesky(s->lp, k, s->H, 0.0) > 0.0;
    for (int i = 0; i < k && ok; i++) {
        double pivot = AT(s->H, k, i, i) / s->g[i];
        ok = pivot * pivot > trusted;
    }
    s->pivoted = !ok;
    s->nullity = 0;
    s->H_rank = k;
    if (ok) {
        return;
    }
    gm_copy(count, s->V, s->H);
    (void)gm_cholesky_pivoted(k, s->H, 64.0 * n * EPS * s->mass_size, s->H_perm,
                              &s->H_rank);
    s->nullity = k - s->H_rank;
    gm_cholesky_kernel(k, s->H_rank, s->H, s->H_perm, s->V, s->work);
}

void
gm_system_project(gm_system *s)
{
    int r = s->rank, kept = s->kept;
    double *y = s->t;

    if (kept == r) {
        return;
    }
    for (int k = 0; k < kept; k++) {
        int row = s->row[k];
        y[k] = s->b[row] / s->s[row];
    }
    gm_orth_qt(kept, r, s->G, s->Gt, y);
    gm_solve_lower_t(r, kept, s->G, y);
    for (int j = 0; j < r; j++) {
        int row = s->row[j];
        s->b[row] = y[j] * s->s[row];
    }
}

int
gm_system_drives_kernel(const gm_system *s, const double *f)
{
    int n = s->n, k = n - s->rank;
    double sum = 0.0, *w = s->work;

    if (s->nullity == 0) {
        return 0;
    }
    for (int i = 0; i < k; i++) {
        w[i] = gm_dot(n, &AT(s->Z, n, i, 0), f);
    }
    for (int i = 0; i < s->nullity; i++) {
        double v = gm_dot(k, &AT(s->V, k, i, 0), w);
        sum += v * v;
    }
    return sqrt(sum) > 1e-8 * gm_norm(n, f);
}

void
gm_system_residual(const gm_system *s, const double *x, const double *f, double *out)
{
    for (int i = 0; i < s->n; i++) {
        out[i] = gm_dot(s->n, &AT(s->M, s->n, i, 0), x) - f[i];
    }
}

void
gm_system_force(const gm_system *s, const double *x, const double *mu, const double *f,
                const double *c, double *out)
{
    int n = s->n, r = s->rank;
    double by_mass = 0.0, by_rows = 0.0;

    for (int i = 0; i < n; i++) {
        by_mass += fabs(x[i]) + fabs(f[i]);
        by_rows += fabs(c[i]);
    }
    for (int j = 0; j < r; j++) {
        by_rows += fabs(mu[j]);
    }
    if (by_mass < by_rows) {
        gm_system_residual(s, x, f, out);
        return;
    }
    gm_copy((size_t)n, c, out);
    for (int j = 0; j < r; j++) {
        int row = s->row[j];
        gm_axpy(n, mu[j] * s->unit[row], &AT(s->A, n, row, 0), out);
    }
}

/* z <- H^-1 z, or the solution without a part in the kernel */
static void
solve_motion(gm_system *s, double *z)
{
    int k = s->n - s->rank, h = s->H_rank;
    double *y = s->work;

    if (!s->pivoted) {
        for (int i = 0; i < k; i++) {
            z[i] *= s->g[i];
        }
        gm_solve_lower(k, k, s->H, z);
        gm_solve_lower_t(k, k, s->H, z);
        for (int i = 0; i < k; i++) {
            z[i] *= s->g[i];
        }
        return;
    }
    for (int i = 0; i < k; i++) {
        y[i] = z[s->H_perm[i]];
    }
    gm_solve_lower(h, k, s->H, y);
    gm_solve_lower_t(h, k, s->H, y);
    for (int i = 0; i < k; i++) {
        z[s->H_perm[i]] = i < h ? y[i] : 0.0;
    }
    for (int i = 0; i < s->nullity; i++) {
        const double *v = &AT(s->V, k, i, 0);
        gm_axpy(k, -gm_dot(k, v, z), v, z);
    }
}

/* one pass: x and unit-row multipliers of the accepted rows for f and unit-row b */
static void
solve_once(gm_system *s, const double *f, const double *b, double *x, double *mu)
{
    int n = s->n, r = s->rank;
    double *t = s->t;

    /* particular motion in the row space */
    for (int j = 0; j < n; j++) {
        x[j] = j < r ? b[j] : 0.0;
    }
    gm_solve_lower(r, n, s->B, x);
    gm_copy((size_t)n, x, t);
    gm_orth_q(n, r, s->B, s->tau, t);
    /* what it leaves over along ker A */
    gm_system_residual(s, t, f, s->work);
    gm_orth_qt(n, r, s->B, s->tau, s->work);
    for (int j = r; j < n; j++) {
        x[j] = -s->work[j];
    }
    solve_motion(s, x + r);
    gm_orth_q(n, r, s->B, s->tau, x);
    /* multipliers from what M x - f leaves along the rows */
    gm_system_residual(s, x, f, t);
    gm_orth_qt(n, r, s->B, s->tau, t);
    gm_copy((size_t)r, t, mu);
    gm_solve_lower_t(r, n, s->B, mu);
}

void
gm_system_solve(gm_system *s, const double *f, const double *b, double *x, double *mu)
{
    int n = s->n, r = s->rank;

    for (int j = 0; j < r; j++) {
        s->r2[j] = s->unit[s->row[j]] * b[s->row[j]];
    }
    solve_once(s, f, s->r2, x, mu);

    /* one refinement step on the caller's equations */
    gm_system_residual(s, x, f, s->r1);
    for (int i = 0; i < n; i++) {
        s->r1[i] = -s->r1[i];
    }
    for (int j = 0; j < r; j++) {
        int row = s->row[j];
        const double *A = &AT(s->A, n, row, 0);
        gm_axpy(n, mu[j] * s->unit[row], A, s->r1);
        s->r2[j] = s->unit[row] * (b[row] - gm_dot(n, A, x));
    }
    solve_once(s, s->r1, s->r2, s->x1, s->mu1);
    gm_axpy(n, 1.0, s->x1, x);
    gm_axpy(r, 1.0, s->mu1, mu);
}

void
gm_system_multipliers(gm_system *s, const double *mu, double *out)
{
    int r = s->rank, kept = s->kept;
    double *y = s->t;

    for (int k = 0; k < s->m; k++) {
        out[k] = 0.0;
    }
    for (int j = 0; j < kept; j++) {
        int row = s->row[j];
        y[j] = j < r ? mu[j] * s->unit[row] * s->s[row] : 0.0;
    }
    if (kept > r) {
        gm_solve_lower(r, kept, s->G, y);
        gm_orth_q(kept, r, s->G, s->Gt, y);
    }
    for (int j = 0; j < kept; j++) {
        out[s->row[j]] = y[j];
    }
}

double
gm_system_zwang(gm_system *s, const double *Qc)
{
    int n = s->n, rank = s->mass_rank;
    double *y = s->t, *V = s->V, off = 0.0;

    if (!s->mass_pivoted) {
        gm_copy((size_t)n, Qc, y);
        gm_solve_lower(n, n, s->mass, y);
        return gm_dot(n, y, y);
    }
    gm_cholesky_kernel(n, rank, s->mass, s->mass_perm, V, s->work);
    for (int i = 0; i < n - rank; i++) {
        double v = gm_dot(n, &AT(V, n, i, 0), s->Q);
        off += v * v;
    }
    if (sqrt(off) > 1e-8 * gm_norm(n, s->Q)) {
        return NAN;
    }
    for (int i = 0; i < n; i++) {
        y[i] = Qc[s->mass_perm[i]];
    }
    gm_solve_lower(rank, n, s->mass, y);
    return gm_dot(rank, y, y);
}
