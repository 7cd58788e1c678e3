#include <math.h>

#include "gm_lanes.h"
#include "gm_system.h"

#define AT(A, n, i, j) (A)[(size_t)(i) * (size_t)(n) + (size_t)(j)]

size_t
gm_work_size(int n, int m)
{
    size_t general = gm_system_size(n, m), lanes = gm_lanes_size(n, m);

    if (n < 0 || m < 0 || general == 0 || lanes == 0) {
        return SIZE_MAX;
    }
    return (general > lanes ? general : lanes) * sizeof(double);
}

/* no answer: NaN, false, and what is known of the ranks */
static void
write_fault(const gm_motion *r, int n, int m, ptrdiff_t item, gm_status status,
            int rank, int nullity)
{
    const gm_output *per_n[] = {&r->qdd, &r->Q_c, &r->Q_ideal, &r->K};
    const gm_output *per_m[] = {&r->multipliers, &r->multipliers_total, &r->residual};
    const gm_output *flags[] = {&r->multipliers_unique, &r->vanished};

    for (int v = 0; v < 4; v++) {
        for (int i = 0; per_n[v]->data != NULL && i < n; i++) {
            gm_put(per_n[v], item, i, 0, NAN);
        }
    }
    for (int v = 0; v < 3; v++) {
        for (int k = 0; per_m[v]->data != NULL && k < m; k++) {
            gm_put(per_m[v], item, k, 0, NAN);
        }
    }
    for (int v = 0; v < 2; v++) {
        for (int k = 0; flags[v]->data != NULL && k < m; k++) {
            gm_put_flag(flags[v], item, k, 0);
        }
    }
    if (r->zwang.data != NULL) {
        gm_put(&r->zwang, item, 0, 0, NAN);
    }
    if (r->rank.data != NULL) {
        gm_put_int(&r->rank, item, rank);
    }
    if (r->nullity.data != NULL) {
        gm_put_int(&r->nullity, item, nullity);
    }
    gm_put_status(&r->status, item, status);
}

/* what messages need: clashing rows, null vectors in the caller's coordinates */
static void
write_diagnosis(const gm_system *s, const gm_motion *r, ptrdiff_t item)
{
    int n = s->n, k = n - s->rank;

    for (int i = 0; r->blame.data != NULL && i < s->m; i++) {
        gm_put_flag(&r->blame, item, i, s->clash[i]);
    }
    for (int v = 0; r->kernel.data != NULL && v < s->nullity; v++) {
        for (int j = 0; j < n; j++) {
            double sum = 0.0;
            for (int i = 0; i < k; i++) {
                sum += AT(s->V, k, v, i) * AT(s->Z, n, i, j);
            }
            gm_put(&r->kernel, item, v, j, sum * s->d[j]);
        }
    }
}

/* + 0.0 here and below: no negative zeros in answers */
static void
write_scaled(const gm_output *out, ptrdiff_t item, int n, const double *x,
             const double *d, int divide)
{
    for (int i = 0; out->data != NULL && i < n; i++) {
        gm_put(out, item, i, 0, (divide ? x[i] / d[i] : x[i] * d[i]) + 0.0);
    }
}

static void
write_multipliers(gm_system *s, const gm_output *out, ptrdiff_t item, const double *mu)
{
    double *lambda = s->mu1;

    if (out->data == NULL) {
        return;
    }
    gm_system_multipliers(s, mu, lambda);
    for (int k = 0; k < s->m; k++) {
        gm_put(out, item, k, 0, lambda[k] + 0.0);
    }
}

static void
write_nan(const gm_output *out, ptrdiff_t item, int n)
{
    for (int i = 0; out->data != NULL && i < n; i++) {
        gm_put(out, item, i, 0, NAN);
    }
}

/* row k is unique when no relation between the unit rows involves it */
static void
write_row_flags(const gm_system *s, const gm_motion *r, ptrdiff_t item)
{
    int rank = s->rank;

    for (int k = 0; k < s->m; k++) {
        if (r->vanished.data != NULL) {
            gm_put_flag(&r->vanished, item, k, !(s->unit[k] > 0.0));
        }
        if (r->multipliers_unique.data != NULL) {
            gm_put_flag(&r->multipliers_unique, item, k, 0);
        }
    }
    for (int j = 0; r->multipliers_unique.data != NULL && j < rank; j++) {
        int unique = 1;
        for (int c = 0; c < s->kept - rank && unique; c++) {
            const double *X = &AT(s->X, rank, c, 0);
            double length = sqrt(1.0 + gm_dot(rank, X, X));
            unique = fabs(X[j]) <= 1e-9 * length;
        }
        gm_put_flag(&r->multipliers_unique, item, s->row[j], unique);
    }
}

/* load and factor; a fault that ends the work, or GM_OK */
static gm_status
prepare(gm_system *s, const gm_problem *p, ptrdiff_t item)
{
    s->rank = 0;
    s->nullity = 0;
    gm_status status = gm_system_load(s, p, item), mass;
    if (status != GM_OK && status != GM_NO_CONVERGENCE) {
        return status;
    }
    mass = gm_system_factor_mass(s);
    return mass != GM_OK ? mass : status;
}

/* one system on the general path */
static void
solve_general(gm_system *s, const gm_problem *p, const gm_motion *r, ptrdiff_t item)
{
    int n = s->n, m = s->m;
    double *x = s->x, *mu = s->mu, *force = s->r1;
    gm_status status = prepare(s, p, item);

    if (status != GM_OK) {
        write_fault(r, n, m, item, status, -1, -1);
        return;
    }
    gm_system_factor_rows(s);
    gm_system_factor_motion(s);
    if (s->clashes > 0 && !(p->options & GM_PROJECT)) {
        status = GM_INCONSISTENT;
    } else if (gm_system_drives_kernel(s, s->f)) {
        status = GM_INDETERMINATE_NONE;
    } else if (s->nullity > 0 && !(p->options & GM_ALLOW_MINIMUM_NORM)) {
        status = GM_INDETERMINATE_MANY;
    }
    write_diagnosis(s, r, item);
    if (status != GM_OK) {
        write_fault(r, n, m, item, status, s->rank, s->nullity);
        return;
    }

    if (s->clashes > 0) {
        gm_system_project(s);
    }
    gm_system_solve(s, s->f, s->b, x, mu);
    double finite = 0.0;
    for (int i = 0; i < n; i++) {
        finite += x[i] * s->d[i] * 0.0;
    }
    for (int j = 0; j < s->rank; j++) {
        finite += mu[j] * s->unit[s->row[j]] * s->s[s->row[j]] * 0.0;
    }
    if (!(finite == 0.0)) {
        write_fault(r, n, m, item, GM_NO_CONVERGENCE, s->rank, s->nullity);
        return;
    }
    write_scaled(&r->qdd, item, n, x, s->d, 0);
    for (int k = 0; r->residual.data != NULL && k < m; k++) {
        double sum = -gm_get(&p->b, item, k, 0); /* b as given, not as projected */
        for (int j = 0; j < n; j++) {
            sum += gm_get(&p->A, item, k, j) * (x[j] * s->d[j]);
        }
        gm_put(&r->residual, item, k, 0, sum + 0.0);
    }
    write_multipliers(s, &r->multipliers_total, item, mu);
    if (!s->has_C) {
        write_multipliers(s, &r->multipliers, item, mu);
    }
    write_row_flags(s, r, item);
    if (r->rank.data != NULL) {
        gm_put_int(&r->rank, item, s->rank);
    }
    if (r->nullity.data != NULL) {
        gm_put_int(&r->nullity, item, s->nullity);
    }
    gm_put_status(&r->status, item,
                  (gm_status)((s->clashes > 0 ? GM_PROJECTED : 0) |
                              (s->nullity > 0 ? GM_MINIMUM_NORM : 0)));

    gm_system_force(s, x, mu, s->Q, s->C, force);
    write_scaled(&r->Q_c, item, n, force, s->d, 1);
    if (!s->has_C) {
        write_scaled(&r->Q_ideal, item, n, force, s->d, 1);
        for (int i = 0; r->K.data != NULL && i < n; i++) {
            gm_put(&r->K, item, i, 0, 0.0);
        }
    }
    gm_copy((size_t)n, force, s->f); /* f is done with: it keeps Q_c for the Zwang */

    if (s->has_C && gm_system_drives_kernel(s, s->C)) {
        write_nan(&r->Q_ideal, item, n);
        write_nan(&r->K, item, n);
        write_nan(&r->multipliers, item, m);
    } else if (s->has_C) {
        if (r->Q_ideal.data != NULL || r->multipliers.data != NULL) {
            gm_system_solve(s, s->Q, s->b, x, mu);
            write_multipliers(s, &r->multipliers, item, mu);
            gm_zero((size_t)n, s->x1);
            gm_system_force(s, x, mu, s->Q, s->x1, force);
            write_scaled(&r->Q_ideal, item, n, force, s->d, 1);
        }
        if (r->K.data != NULL) {
            gm_zero((size_t)m, s->b);
            gm_system_solve(s, s->C, s->b, x, mu);
            gm_zero((size_t)n, s->x1);
            gm_system_force(s, x, mu, s->x1, s->C, force);
            write_scaled(&r->K, item, n, force, s->d, 1);
        }
    }
    if (r->zwang.data != NULL) {
        gm_put(&r->zwang, item, 0, 0, gm_system_zwang(s, s->f));
    }
}

void
gm_gauss(const gm_cpu *cpu, const gm_lapack *lp, int n, int m, ptrdiff_t count,
         const gm_problem *p, const gm_motion *r, void *work)
{
    gm_system s;
    int fast = gm_lanes_may(n, m, p, r);

    for (ptrdiff_t item = 0; item < count;) {
        int lanes = 1;
        unsigned done = 0;

        if (fast) {
            lanes = gm_lanes_solve(cpu, lp, n, m, p, item, count - item, r, work, &done);
        }
        for (int l = 0; l < lanes; l++) {
            if (!(done >> l & 1u)) {
                gm_system_place(&s, lp, n, m, work);
                solve_general(&s, p, r, item + l);
            }
        }
        item += lanes;
    }
}

void
gm_augment(const gm_lapack *lp, int n, int m, ptrdiff_t count, const gm_problem *p,
           gm_input alpha, gm_output M_A, gm_output Q_b, gm_output status, void *work)
{
    gm_system s;

    for (ptrdiff_t item = 0; item < count; item++) {
        double a2, *y = NULL;
        gm_system_place(&s, lp, n, m, work);
        a2 = gm_get(&alpha, item, 0, 0);
        a2 *= a2;
        gm_status fault = prepare(&s, p, item);
        if (fault == GM_OK && !isfinite(a2)) {
            fault = GM_NONFINITE;
        }
        gm_put_status(&status, item, fault);
        if (fault != GM_OK) {
            write_nan(&Q_b, item, n);
            for (int i = 0; i < n; i++) {
                for (int j = 0; j < n; j++) {
                    gm_put(&M_A, item, i, j, NAN);
                }
            }
            continue;
        }
        gm_system_factor_rows(&s);
        gm_system_project(&s);

        /* A^+A projects on the accepted rows in the caller's coordinates; B takes the
         * rows at a length near one, y their right side at the same scale */
        int r = s.rank;
        y = s.x;
        gm_zero((size_t)n, y);
        for (int j = 0; j < r; j++) {
            int row = s.row[j];
            double largest = 0.0;
            for (int i = 0; i < n; i++) {
                AT(s.B, n, j, i) = AT(s.A, n, row, i) / s.d[i];
                double v = fabs(AT(s.B, n, j, i));
                largest = v > largest ? v : largest;
            }
            for (int i = 0; i < n; i++) {
                AT(s.B, n, j, i) /= largest;
            }
            y[j] = s.b[row] / largest;
        }
        gm_orth_plain(n, r, s.B, s.tau);
        gm_solve_lower(r, n, s.B, y);
        gm_orth_q(n, r, s.B, s.tau, y);
        for (int j = 0; j < r; j++) {
            double *q = &AT(s.Z, n, j, 0);
            gm_zero((size_t)n, q);
            q[j] = 1.0;
            gm_orth_q(n, r, s.B, s.tau, q);
        }
        for (int i = 0; i < n; i++) {
            gm_put(&Q_b, item, i, 0, gm_get(&p->Q, item, i, 0) + a2 * y[i]);
            for (int j = 0; j <= i; j++) {
                double sum = 0.0;
                for (int k = 0; k < r; k++) {
                    sum += AT(s.Z, n, k, i) * AT(s.Z, n, k, j);
                }
                double mass = 0.5 * gm_get(&p->M, item, i, j) +
                              0.5 * gm_get(&p->M, item, j, i) + a2 * sum;
                gm_put(&M_A, item, i, j, mass);
                gm_put(&M_A, item, j, i, mass);
            }
        }
    }
}

void
gm_independent_rows(const gm_lapack *lp, int n, int m, ptrdiff_t count,
                    const gm_problem *p, gm_output mask, gm_output status, void *work)
{
    gm_system s;

    for (ptrdiff_t item = 0; item < count; item++) {
        gm_system_place(&s, lp, n, m, work);
        gm_status fault = prepare(&s, p, item);
        for (int k = 0; k < m; k++) {
            gm_put_flag(&mask, item, k, 0);
        }
        gm_put_status(&status, item, fault);
        if (fault != GM_OK) {
            continue;
        }
        gm_system_factor_rows(&s);
        for (int j = 0; j < s.rank; j++) {
            gm_put_flag(&mask, item, s.row[j], 1);
        }
    }
}

void
gm_sensitivity(const gm_lapack *lp, int n, int m, ptrdiff_t count, const gm_problem *p,
               gm_output dQ, gm_output db, gm_output status, void *work)
{
    gm_system s;

    for (ptrdiff_t item = 0; item < count; item++) {
        gm_system_place(&s, lp, n, m, work);
        gm_status fault = prepare(&s, p, item);
        if (fault == GM_OK) {
            gm_system_factor_rows(&s);
            gm_system_factor_motion(&s);
            fault = s.nullity > 0 ? GM_INDETERMINATE_MANY : GM_OK;
        }
        gm_put_status(&status, item, fault);
        gm_zero((size_t)n, s.Q);
        gm_zero((size_t)m, s.b);
        for (int j = 0; j < n; j++) {
            if (fault == GM_OK) {
                s.Q[j] = s.d[j];
                gm_system_solve(&s, s.Q, s.b, s.x, s.mu);
                s.Q[j] = 0.0;
            }
            for (int i = 0; i < n; i++) {
                gm_put(&dQ, item, i, j, fault == GM_OK ? s.x[i] * s.d[i] + 0.0 : NAN);
            }
        }
        /* symmetric by theory: the mean of both halves */
        gm_input whole = {dQ.data, dQ.item, dQ.row, dQ.col};
        for (int i = 0; i < n; i++) {
            for (int j = 0; j < i; j++) {
                double mean = 0.5 * (gm_get(&whole, item, i, j) +
                                     gm_get(&whole, item, j, i));
                gm_put(&dQ, item, i, j, mean);
                gm_put(&dQ, item, j, i, mean);
            }
        }
        for (int k = 0; k < m; k++) {
            if (fault == GM_OK) {
                gm_zero((size_t)m, s.b);
                s.b[k] = s.s[k];
                gm_system_project(&s);
                gm_system_solve(&s, s.Q, s.b, s.x, s.mu);
            }
            for (int i = 0; i < n; i++) {
                gm_put(&db, item, i, k, fault == GM_OK ? s.x[i] * s.d[i] + 0.0 : NAN);
            }
        }
    }
}

void
gm_zwang(const gm_lapack *lp, int n, ptrdiff_t count, const gm_problem *p, gm_input qdd,
         gm_output zwang, gm_output gauss_function, gm_output status, void *work)
{
    gm_system s;

    for (ptrdiff_t item = 0; item < count; item++) {
        double finite = 0.0;
        gm_system_place(&s, lp, n, 0, work);
        gm_status fault = prepare(&s, p, item);
        for (int i = 0; i < n; i++) {
            finite += gm_get(&qdd, item, i, 0) * 0.0;
        }
        if (!(finite == 0.0)) {
            fault = GM_NONFINITE;
        }
        gm_put_status(&status, item, fault);
        if (fault != GM_OK) {
            gm_put(&zwang, item, 0, 0, NAN);
            gm_put(&gauss_function, item, 0, 0, NAN);
            continue;
        }
        for (int i = 0; i < n; i++) {
            s.x[i] = gm_get(&qdd, item, i, 0) / s.d[i];
        }
        gm_system_residual(&s, s.x, s.Q, s.r1);
        gm_put(&gauss_function, item, 0, 0,
               gm_dot(n, s.x, s.r1) - gm_dot(n, s.x, s.Q));
        gm_put(&zwang, item, 0, 0, gm_system_zwang(&s, s.r1));
    }
}
