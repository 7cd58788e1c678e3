/* Random systems of every kind, strided views of them, records of all outputs with
 * guard zones, and slow obvious solutions in long double. */
#ifndef GM_PROBLEMS_H
#define GM_PROBLEMS_H

#include "check.h"
#include "gm_core.h"

/* sizes around every unrolling and register width */
static const int sizes[] = {0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 33};

/* --- views --- */

/* How the elements of (count, rows, cols) lie in memory, in elements. */
typedef struct {
    ptrdiff_t start, item, row, col, total;
} layout;

enum { PLAIN, BACKWARDS, GAPS, ITEMS_INNERMOST, FORTRAN, LAYOUTS };

static inline layout
layout_of(int pattern, ptrdiff_t count, int rows, int cols)
{
    ptrdiff_t R = rows, C = cols;
    layout l = {0, R * C, C, 1, count * R * C};

    if (pattern == BACKWARDS) {
        l.start = l.total > 0 ? l.total - 1 : 0;
        l.item = -l.item;
        l.row = -l.row;
        l.col = -l.col;
    } else if (pattern == GAPS) {
        l.col = 2;
        l.row = 2 * C + 1;
        l.item = R * l.row + 3;
        l.start = 1;
        l.total = count * l.item + 2;
    } else if (pattern == ITEMS_INNERMOST) {
        l.item = 1;
        l.col = count;
        l.row = count * C;
    } else if (pattern == FORTRAN) {
        l.row = 1;
        l.col = R;
    }
    return l;
}

/* --- inputs: contiguous here, strided when passed on --- */

typedef struct {
    int n, m;
    ptrdiff_t count;
    double *M, *Q, *A, *b, *C, *row_scale; /* the last two may be NULL */
} systems;

static inline systems
systems_new(int n, int m, ptrdiff_t count, int with_C)
{
    size_t N = (size_t)n, K = (size_t)m, k = (size_t)count;
    systems s = {n, m, count, doubles(k * N * N), doubles(k * N), doubles(k * K * N),
                 doubles(k * K), with_C ? doubles(k * N) : NULL, NULL};
    return s;
}

static inline void
systems_free(systems *s)
{
    free(s->M);
    free(s->Q);
    free(s->A);
    free(s->b);
    free(s->C);
    free(s->row_scale);
}

/* system `item` alone, in the memory of the batch */
static inline systems
systems_at(const systems *s, ptrdiff_t item)
{
    size_t N = (size_t)s->n, K = (size_t)s->m, i = (size_t)item;
    systems one = {s->n, s->m, 1, s->M + i * N * N, s->Q + i * N, s->A + i * K * N,
                   s->b + i * K, s->C ? s->C + i * N : NULL,
                   s->row_scale ? s->row_scale + i * K : NULL};
    return one;
}

static inline void
systems_copy(const systems *from, ptrdiff_t item, const systems *to, ptrdiff_t at)
{
    systems x = systems_at(from, item), y = systems_at(to, at);
    size_t N = (size_t)from->n, K = (size_t)from->m, d = sizeof(double);

    memcpy(y.M, x.M, N * N * d);
    memcpy(y.Q, x.Q, N * d);
    memcpy(y.A, x.A, K * N * d);
    memcpy(y.b, x.b, K * d);
    if (x.C != NULL && y.C != NULL) {
        memcpy(y.C, x.C, N * d);
    }
}

static inline gm_input
plain_input(const double *x, int rows, int cols)
{
    gm_input v = {(const char *)x, (ptrdiff_t)sizeof(double) * rows * cols,
                  (ptrdiff_t)sizeof(double) * cols, (ptrdiff_t)sizeof(double)};
    return v;
}

static inline gm_problem
plain_problem(const systems *s)
{
    gm_problem p = {.rtol = NAN, .ctol = 1e-9};

    p.M = plain_input(s->M, s->n, s->n);
    p.Q = plain_input(s->Q, s->n, 1);
    p.A = plain_input(s->A, s->m, s->n);
    p.b = plain_input(s->b, s->m, 1);
    if (s->C != NULL) {
        p.C = plain_input(s->C, s->n, 1);
    }
    if (s->row_scale != NULL) {
        p.row_scale = plain_input(s->row_scale, s->m, 1);
    }
    return p;
}

/* the same numbers in another layout; *block is to be freed. Gaps hold NaN. */
static inline gm_input
strided_input(const double *x, ptrdiff_t count, int rows, int cols, int pattern,
              double **block)
{
    layout l = layout_of(pattern, count, rows, cols);
    ptrdiff_t size = (ptrdiff_t)sizeof(double);
    double *y = doubles((size_t)l.total);

    for (ptrdiff_t e = 0; e < l.total; e++) {
        y[e] = NAN;
    }
    for (ptrdiff_t k = 0; k < count; k++) {
        for (int i = 0; i < rows; i++) {
            for (int j = 0; j < cols; j++) {
                y[l.start + k * l.item + i * l.row + j * l.col] = *x++;
            }
        }
    }
    *block = y;
    gm_input v = {(const char *)(y + l.start), l.item * size, l.row * size,
                  l.col * size};
    return v;
}

/* --- outputs --- */

enum {
    QDD, Q_C, Q_IDEAL, K_PART, MULTIPLIERS, TOTAL, UNIQUE, VANISHED, ZWANG, RANK,
    NULLITY, RESIDUAL, STATUS, BLAME, KERNEL, FIELDS
};
enum { ALL_FIELDS = (1 << BLAME) - 1, EVERYTHING = (1 << FIELDS) - 1 };

static const struct {
    const char *name;
    int size;   /* bytes of an element */
    char shape; /* n, m, 1 or s for n x n */
} fields[FIELDS] = {
    {"qdd", 8, 'n'},         {"Q_c", 8, 'n'},
    {"Q_ideal", 8, 'n'},     {"K", 8, 'n'},
    {"multipliers", 8, 'm'}, {"multipliers_total", 8, 'm'},
    {"unique", 1, 'm'},      {"vanished", 1, 'm'},
    {"zwang", 8, '1'},       {"rank", 8, '1'},
    {"nullity", 8, '1'},     {"residual", 8, 'm'},
    {"status", 1, '1'},      {"blame", 1, 'm'},
    {"kernel", 8, 's'},
};

typedef struct {
    int n, m;
    ptrdiff_t count;
    unsigned wanted;
    char *block[FIELDS]; /* with GUARD elements on both sides */
    layout at[FIELDS];
    gm_motion motion;
} record;

static inline int
field_rows(const record *r, int f)
{
    char shape = fields[f].shape;
    return shape == 'm' ? r->m : shape == '1' ? 1 : r->n;
}

static inline int
field_cols(const record *r, int f)
{
    return fields[f].shape == 's' ? r->n : 1;
}

static inline gm_output *
motion_field(gm_motion *m, int f)
{
    gm_output *all[FIELDS] = {
        &m->qdd, &m->Q_c, &m->Q_ideal, &m->K, &m->multipliers, &m->multipliers_total,
        &m->multipliers_unique, &m->vanished, &m->zwang, &m->rank, &m->nullity,
        &m->residual, &m->status, &m->blame, &m->kernel};
    return all[f];
}

/* what an element holds that nobody has written */
static inline void
unwritten(int f, char *to)
{
    double number = 999.0;
    int64_t integer = 999;
    if (fields[f].size == 1) {
        *to = 99;
    } else if (f == RANK || f == NULLITY) {
        memcpy(to, &integer, sizeof integer);
    } else {
        memcpy(to, &number, sizeof number);
    }
}

static inline void
record_open(record *r, int n, int m, ptrdiff_t count, unsigned wanted, int pattern)
{
    memset(r, 0, sizeof *r);
    r->n = n;
    r->m = m;
    r->count = count;
    r->wanted = wanted | 1u << STATUS;
    for (int f = 0; f < FIELDS; f++) {
        if (!(r->wanted >> f & 1)) {
            continue;
        }
        layout l = layout_of(pattern, count, field_rows(r, f), field_cols(r, f));
        ptrdiff_t size = fields[f].size, total = l.total + 2 * GUARD;
        r->at[f] = l;
        r->block[f] = need(malloc((size_t)(total * size)));
        for (ptrdiff_t e = 0; e < total; e++) {
            unwritten(f, r->block[f] + e * size);
        }
        gm_output v = {r->block[f] + (l.start + GUARD) * size, l.item * size,
                       l.row * size, l.col * size};
        *motion_field(&r->motion, f) = v;
    }
}

static inline void
record_close(record *r)
{
    for (int f = 0; f < FIELDS; f++) {
        free(r->block[f]);
    }
}

static inline const char *
record_element(const record *r, int f, ptrdiff_t item, int i, int j)
{
    const layout *l = &r->at[f];
    return r->block[f] + (l->start + GUARD + item * l->item + i * l->row + j * l->col) *
                             fields[f].size;
}

static inline double
number_at(const record *r, int f, ptrdiff_t item, int i)
{
    double x;
    memcpy(&x, record_element(r, f, item, i, 0), sizeof x);
    return x;
}

static inline int64_t
integer_at(const record *r, int f, ptrdiff_t item)
{
    int64_t x;
    memcpy(&x, record_element(r, f, item, 0, 0), sizeof x);
    return x;
}

static inline int
flag_at(const record *r, int f, ptrdiff_t item, int i)
{
    return *(const signed char *)record_element(r, f, item, i, 0);
}

static inline int
status_at(const record *r, ptrdiff_t item)
{
    return flag_at(r, STATUS, item, 0);
}

/* Is every wanted element of system `item` written? BLAME and KERNEL apart: they are
 * for messages and not always filled. */
static inline int
record_written(const record *r, ptrdiff_t item)
{
    char fresh[8];
    int good = 1;

    for (int f = 0; f < BLAME; f++) {
        unwritten(f, fresh);
        for (int i = 0; (r->wanted >> f & 1) && i < field_rows(r, f); i++) {
            const char *x = record_element(r, f, item, i, 0);
            if (memcmp(x, fresh, (size_t)fields[f].size) == 0) {
                if (good) {
                    say("    %s[%d] of system %ld is not written\n", fields[f].name,
                           i, (long)item);
                }
                good = 0;
            }
        }
    }
    return good;
}

/* Is everything else as it was: guards, gaps, the systems from `used` on? */
static inline int
record_clean(const record *r, ptrdiff_t used)
{
    char fresh[8];
    int good = 1;

    for (int f = 0; f < FIELDS; f++) {
        if (!(r->wanted >> f & 1)) {
            continue;
        }
        const layout *l = &r->at[f];
        ptrdiff_t size = fields[f].size, total = l->total + 2 * GUARD;
        char *mine = need(calloc((size_t)total, 1));
        unwritten(f, fresh);
        for (ptrdiff_t k = 0; k < used; k++) {
            for (int i = 0; i < field_rows(r, f); i++) {
                for (int j = 0; j < field_cols(r, f); j++) {
                    mine[l->start + GUARD + k * l->item + i * l->row + j * l->col] = 1;
                }
            }
        }
        for (ptrdiff_t e = 0; e < total; e++) {
            if (!mine[e] && memcmp(r->block[f] + e * size, fresh, (size_t)size) != 0) {
                say("    %s is written outside of its elements\n", fields[f].name);
                good = 0;
                break;
            }
        }
        free(mine);
    }
    return good;
}

/* Bit for bit the same results, in the fields that both have? */
static inline int
record_same(const record *x, ptrdiff_t item, const record *y, ptrdiff_t other)
{
    for (int f = 0; f < BLAME; f++) {
        if (!(x->wanted & y->wanted & 1u << f)) {
            continue;
        }
        for (int i = 0; i < field_rows(x, f); i++) {
            if (memcmp(record_element(x, f, item, i, 0),
                       record_element(y, f, other, i, 0),
                       (size_t)fields[f].size) != 0) {
                say("    %s[%d] differs: system %ld", fields[f].name, i, (long)item);
                if (fields[f].size == 8 && f != RANK && f != NULLITY) {
                    say(", %.17g and %.17g", number_at(x, f, item, i),
                           number_at(y, f, other, i));
                }
                say("\n");
                return 0;
            }
        }
    }
    return 1;
}

/* NaN in every number, false in every flag */
static inline int
record_void(const record *r, ptrdiff_t item)
{
    for (int f = 0; f < STATUS; f++) {
        for (int i = 0; (r->wanted >> f & 1) && i < field_rows(r, f); i++) {
            if (f == RANK || f == NULLITY) {
                continue;
            }
            if (fields[f].size == 1 ? flag_at(r, f, item, i) != 0
                                    : !isnan(number_at(r, f, item, i))) {
                return 0;
            }
        }
    }
    return 1;
}

/* --- scratch: exactly as many bytes as the core asks for --- */

static inline void *
exact_bytes(size_t size)
{
    static void *p; /* gcc 12 takes what comes through a local for that local */
    if (posix_memalign(&p, 64, size) != 0) {
        p = NULL;
    }
    return memset(need(p), 0xa5, size);
}

static inline void *
exact_work(int n, int m)
{
    return exact_bytes(gm_work_size(n, m));
}

/* --- the kinds of systems --- */

enum {
    /* answered, on the fast path where sizes allow */
    ROUND,    /* well conditioned */
    SPREAD,   /* masses over twelve decades: refined */
    SINGULAR, /* M of rank n - 1, fixed by the rows */
    WEAK,     /* a pivot of M near 4e-6, below 1e-4: augmented */
    MASSLESS, /* a coordinate without mass, tied by a row */
    /* answered on the general path */
    DEPENDENT, ZERO_ROW,
    /* not answered */
    NAN_MASS, NAN_ROW, NAN_FORCE, INFINITE_B, SKEW, NEGATIVE, SADDLE, CLASH, MANY,
    NONE, OUT_OF_RANGE,
    KINDS
};
enum { GOOD_KINDS = DEPENDENT };

/* can a system of this kind have these sizes? */
static inline int
kind_fits(int kind, int n, int m)
{
    switch (kind) {
    case SINGULAR: return n >= 1 && m >= 1;
    case WEAK: return n >= 2;
    case MASSLESS: return n >= 1 && m >= 1;
    case DEPENDENT: case CLASH: return n >= 1 && m >= 2;
    case ZERO_ROW: return m >= 1;
    case NAN_ROW: return n >= 1 && m >= 1;
    case INFINITE_B: return m >= 1;
    case SKEW: case SADDLE: return n >= 2;
    case NAN_MASS: case NAN_FORCE: case NEGATIVE: return n >= 1;
    case OUT_OF_RANGE: return n >= 1;
    case MANY: case NONE: return n >= 2 && m < n;
    default: return 1;
    }
}

static inline int
kind_status(int kind)
{
    switch (kind) {
    case NAN_MASS: case NAN_ROW: case NAN_FORCE: case INFINITE_B: return GM_NONFINITE;
    case SKEW: return GM_ASYMMETRIC;
    case NEGATIVE: case SADDLE: return GM_INDEFINITE;
    case CLASH: return GM_INCONSISTENT;
    case MANY: return GM_INDETERMINATE_MANY;
    case NONE: return GM_INDETERMINATE_NONE;
    case OUT_OF_RANGE: return GM_NO_CONVERGENCE;
    default: return GM_OK;
    }
}

/* X <- G G' with G (n, k) */
static inline void
gram(int n, int k, const double *G, double *X)
{
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) {
            long double sum = 0.0L;
            for (int l = 0; l < k; l++) {
                sum += (long double)AT(G, k, i, l) * AT(G, k, j, l);
            }
            AT(X, n, i, j) = (double)sum;
        }
    }
}

/* Fill system `item`. Rows are near unit rows and M near the identity: scaled condition
 * numbers stay below 1e3, for WEAK below 1e7. */
static inline void
make_system(int kind, const systems *s, ptrdiff_t item)
{
    systems x = systems_at(s, item);
    int n = x.n, m = x.m, last = n - 1;
    double soft = 0.4 / sqrt(n > 0 ? n : 1);
    double *G = doubles((size_t)n * (size_t)n);

    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) {
            AT(G, n, i, j) = (i == j ? 1.0 : 0.0) + soft * uniform();
        }
    }
    for (int k = 0; k < m; k++) {
        for (int j = 0; j < n; j++) {
            AT(x.A, n, k, j) = (j == k ? 1.0 : 0.0) + soft * uniform();
        }
    }
    if (kind == SINGULAR) {
        /* one column less: the null vector is near the last axis, which row 0 holds */
        for (int i = 0; i < n; i++) {
            AT(G, n, i, last) = 0.0;
        }
        AT(x.A, n, 0, last) += 1.0;
    }
    if (kind == WEAK) {
        /* two rows of G that differ by 2e-3: a pivot of M near 4e-6 */
        for (int j = 0; j < n; j++) {
            double step = 2e-3 / sqrt(n);
            AT(G, n, 0, j) = AT(G, n, 1, j) + (random_bits() & 1 ? step : -step);
        }
    }
    gram(n, n, G, x.M);
    free(G);
    if (kind == SPREAD) {
        /* units: masses over twelve decades, rows and forces to match */
        for (int i = 0; i < n; i++) {
            double unit = pow(10.0, 3.0 * uniform());
            for (int j = 0; j < n; j++) {
                AT(x.M, n, i, j) *= unit;
                AT(x.M, n, j, i) = i == j ? AT(x.M, n, i, i) * unit : AT(x.M, n, i, j);
            }
            for (int k = 0; k < m; k++) {
                AT(x.A, n, k, i) *= unit;
            }
        }
    }
    if (kind == MASSLESS) {
        for (int j = 0; j < n; j++) {
            AT(x.M, n, 0, j) = AT(x.M, n, j, 0) = 0.0;
        }
        AT(x.A, n, 0, 0) = 3.0;
    }
    fill_uniform((size_t)n, x.Q);
    fill_uniform((size_t)m, x.b);
    if (x.C != NULL) {
        fill_uniform((size_t)n, x.C);
    }
    /* rows that are more than there are coordinates repeat the first */
    for (int k = n; k < m; k++) {
        memcpy(&AT(x.A, n, k, 0), x.A, (size_t)n * sizeof(double));
        x.b[k] = n > 0 ? x.b[0] : 0.0;
    }
    if (kind == DEPENDENT || kind == CLASH) {
        for (int j = 0; j < n; j++) {
            AT(x.A, n, m - 1, j) = -2.0 * AT(x.A, n, 0, j);
        }
        x.b[m - 1] = -2.0 * x.b[0] + (kind == CLASH ? 1.0 : 0.0);
    }
    if (kind == ZERO_ROW) {
        for (int k = 0; k < m; k++) {
            for (int j = 0; j < n && (k == 0 || k >= n); j++) {
                AT(x.A, n, k, j) = 0.0;
            }
            x.b[k] = k == 0 || k >= n ? 0.0 : x.b[k];
        }
    }
    if (kind == NAN_MASS) {
        AT(x.M, n, last, 0) = NAN;
    } else if (kind == NAN_ROW) {
        AT(x.A, n, m - 1, last) = NAN;
    } else if (kind == NAN_FORCE) {
        x.Q[last] = NAN;
    } else if (kind == INFINITE_B) {
        x.b[m - 1] = INFINITY;
    } else if (kind == SKEW) {
        AT(x.M, n, 0, last) += 1e-3;
    } else if (kind == NEGATIVE) {
        AT(x.M, n, last, last) = -AT(x.M, n, last, last);
    } else if (kind == SADDLE) {
        double c = 1.5 * sqrt(AT(x.M, n, 0, 0) * AT(x.M, n, last, last));
        AT(x.M, n, 0, last) = AT(x.M, n, last, 0) = c;
    } else if (kind == MANY || kind == NONE) {
        for (int j = 0; j < n; j++) {
            AT(x.M, n, last, j) = AT(x.M, n, j, last) = 0.0;
        }
        for (int k = 0; k < m; k++) {
            AT(x.A, n, k, last) = 0.0;
        }
        x.Q[last] = kind == NONE ? 1.0 : 0.0;
        if (x.C != NULL) {
            x.C[last] = 0.0;
        }
    } else if (kind == OUT_OF_RANGE) {
        for (int e = 0; e < n * n; e++) {
            x.M[e] *= 1e-250;
        }
        x.Q[0] = 1e200;
    }
}

/* --- slow and obvious --- */

/* z <- K^-1 z by Gaussian elimination with complete pivoting; K (n, n) is spoilt */
static inline void
eliminate(int n, long double *K, long double *z)
{
    int *place = need(malloc(((size_t)n + 1) * sizeof *place));
    long double *out = need(malloc(((size_t)n + 1) * sizeof *out)), t;

    for (int j = 0; j < n; j++) {
        place[j] = j;
    }
    for (int p = 0; p < n; p++) {
        int row = p, col = p;
        for (int i = p; i < n; i++) {
            for (int j = p; j < n; j++) {
                if (fabsl(AT(K, n, i, j)) > fabsl(AT(K, n, row, col))) {
                    row = i;
                    col = j;
                }
            }
        }
        for (int j = 0; j < n; j++) {
            t = AT(K, n, p, j), AT(K, n, p, j) = AT(K, n, row, j), AT(K, n, row, j) = t;
        }
        t = z[p], z[p] = z[row], z[row] = t;
        for (int i = 0; i < n; i++) {
            t = AT(K, n, i, p), AT(K, n, i, p) = AT(K, n, i, col), AT(K, n, i, col) = t;
        }
        int q = place[p];
        place[p] = place[col];
        place[col] = q;
        for (int i = p + 1; i < n; i++) {
            long double l = AT(K, n, i, p) / AT(K, n, p, p);
            for (int j = p; j < n; j++) {
                AT(K, n, i, j) -= l * AT(K, n, p, j);
            }
            z[i] -= l * z[p];
        }
    }
    for (int i = n - 1; i >= 0; i--) {
        for (int j = i + 1; j < n; j++) {
            z[i] -= AT(K, n, i, j) * out[place[j]];
        }
        out[place[i]] = z[i] / AT(K, n, i, i);
    }
    memcpy(z, out, (size_t)n * sizeof *z);
    free(place);
    free(out);
}

/* x, mu of M x - A'mu = f, A x = b for independent rows */
static inline void
slow_motion(int n, int m, const double *M, const double *A, const double *f,
            const double *b, double *x, double *mu)
{
    int N = n + m;
    size_t size = (size_t)N * (size_t)N + 1;
    long double *K = need(calloc(size, sizeof *K));
    long double *z = need(calloc((size_t)N + 1, sizeof *z));

    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) {
            AT(K, N, i, j) = AT(M, n, i, j);
        }
        z[i] = f[i];
    }
    for (int k = 0; k < m; k++) {
        for (int j = 0; j < n; j++) {
            AT(K, N, j, n + k) = -AT(A, n, k, j);
            AT(K, N, n + k, j) = AT(A, n, k, j);
        }
        z[n + k] = b[k];
    }
    eliminate(N, K, z);
    for (int i = 0; i < n; i++) {
        x[i] = (double)z[i];
    }
    for (int k = 0; k < m; k++) {
        mu[k] = (double)z[n + k];
    }
    free(K);
    free(z);
}

/* y <- X x + s y, X (rows, cols) */
static inline void
slow_product(int rows, int cols, const double *X, const double *x, double s, double *y)
{
    for (int i = 0; i < rows; i++) {
        long double sum = s == 0.0 ? 0.0L : (long double)s * y[i];
        for (int j = 0; j < cols; j++) {
            sum += (long double)AT(X, cols, i, j) * x[j];
        }
        y[i] = (double)sum;
    }
}

/* y <- X' x + s y, X (rows, cols), y (cols) */
static inline void
slow_transposed(int rows, int cols, const double *X, const double *x, double s,
                double *y)
{
    for (int j = 0; j < cols; j++) {
        long double sum = s == 0.0 ? 0.0L : (long double)s * y[j];
        for (int i = 0; i < rows; i++) {
            sum += (long double)AT(X, cols, i, j) * x[i];
        }
        y[j] = (double)sum;
    }
}

/* |x - y| / |y|, or |x - y| where y is zero */
static inline double
distance(int n, const double *x, const double *y)
{
    long double gap = 0.0L, size = 0.0L;
    for (int i = 0; i < n; i++) {
        long double d = (long double)x[i] - y[i];
        gap += d * d;
        size += (long double)y[i] * y[i];
    }
    return (double)(size > 0.0L ? sqrtl(gap / size) : sqrtl(gap));
}

/* Error of a solution of a system of this kind, at most: eps times the condition
 * number, and a factor of 100 for sums of up to 33 terms. */
static inline double
kind_bound(int kind)
{
    return kind == WEAK ? 1e9 * EPS : 1e5 * EPS;
}

/* the same for a field of a record */
static inline double
field_distance(const record *r, int f, ptrdiff_t item, const double *y)
{
    int rows = field_rows(r, f);
    double *x = doubles((size_t)rows);
    for (int i = 0; i < rows; i++) {
        x[i] = number_at(r, f, item, i);
    }
    double d = distance(rows, x, y);
    free(x);
    return d;
}

/* the power of two near 1 / |x|, one for zero */
static inline double
near_inverse(double x)
{
    int e;
    (void)frexp(x, &e);
    return x == 0.0 ? 1.0 : ldexp(1.0, 1 - e);
}

/* Compare system `item` of a record with slow loops: a system of a kind below
 * GOOD_KINDS with m <= n. Numbers are compared in units in which masses and rows are
 * near one, forces with the forces that they are differences of. */
static inline void
check_motion(int kind, const systems *batch, ptrdiff_t from, const record *r,
             ptrdiff_t item, double bound)
{
    systems s = systems_at(batch, from);
    int n = s.n, m = s.m;
    size_t N = (size_t)n, K = (size_t)m;
    double *d = doubles(N), *M = doubles(N * N), *A = doubles(K * N), *c = doubles(K);
    double *b = doubles(K), *zero = doubles(K), *have = doubles(N + K);
    double *part[3], *x[3], *mu[3], *force[3]; /* all of it, the ideal part, K */

    for (int i = 0; i < n; i++) {
        d[i] = near_inverse(sqrt(AT(s.M, n, i, i)));
    }
    for (int k = 0; k < m; k++) {
        double longest = 0.0;
        for (int i = 0; i < n; i++) {
            AT(A, n, k, i) = AT(s.A, n, k, i) * d[i];
            longest = fmax(longest, fabs(AT(A, n, k, i)));
        }
        c[k] = near_inverse(longest);
        b[k] = s.b[k] * c[k];
        zero[k] = 0.0;
        for (int i = 0; i < n; i++) {
            AT(A, n, k, i) *= c[k];
        }
    }
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) {
            AT(M, n, i, j) = AT(s.M, n, i, j) * d[i] * d[j];
        }
    }
    for (int v = 0; v < 3; v++) {
        part[v] = doubles(N);
        x[v] = doubles(N);
        mu[v] = doubles(K);
        force[v] = doubles(N);
        for (int i = 0; i < n; i++) {
            double C = s.C != NULL ? s.C[i] : 0.0;
            part[v][i] = (v == 0 ? s.Q[i] + C : v == 1 ? s.Q[i] : C) * d[i];
        }
        slow_motion(n, m, M, A, part[v], v == 2 ? zero : b, x[v], mu[v]);
        for (int i = 0; i < n; i++) {
            force[v][i] = v == 2 ? 0.0 : s.Q[i] * d[i];
        }
        slow_product(n, n, M, x[v], -1.0, force[v]);
    }
    double size = 1.0;
    for (int i = 0; i < n; i++) {
        size += fabs(part[0][i]) + fabs(part[2][i]) + fabs(x[0][i]);
    }

    CHECK(status_at(r, item) == GM_OK);
    CHECK(!(r->wanted >> RANK & 1) || integer_at(r, RANK, item) == m);
    CHECK(!(r->wanted >> NULLITY & 1) || integer_at(r, NULLITY, item) == 0);
    const struct {
        int field, rows, multiply;
        const double *scale, *want;
    } results[] = {
        {QDD, n, 0, d, x[0]},        {Q_C, n, 1, d, force[0]},
        {Q_IDEAL, n, 1, d, force[1]}, {K_PART, n, 1, d, force[2]},
        {TOTAL, m, 0, c, mu[0]},     {MULTIPLIERS, m, 0, c, mu[1]},
    };
    for (int v = 0; v < LENGTH(results); v++) {
        double gap = 0.0;
        if (!(r->wanted >> results[v].field & 1)) {
            continue;
        }
        for (int i = 0; i < results[v].rows; i++) {
            double y = number_at(r, results[v].field, item, i), t = results[v].scale[i];
            y = results[v].multiply ? y * t : y / t;
            gap += fabs(y - results[v].want[i]);
            have[i] = y;
        }
        if (!(gap <= bound * size)) {
            say("    %s\n", fields[results[v].field].name);
        }
        CHECK_BELOW(gap, bound * size);
    }
    for (int k = 0; k < m; k++) {
        CHECK(!(r->wanted >> UNIQUE & 1) || flag_at(r, UNIQUE, item, k) == 1);
        CHECK(!(r->wanted >> VANISHED & 1) || flag_at(r, VANISHED, item, k) == 0);
        CHECK(!(r->wanted >> RESIDUAL & 1) ||
              fabs(number_at(r, RESIDUAL, item, k) * c[k]) <= bound * size);
    }
    if (r->wanted >> ZWANG & 1) {
        double z = number_at(r, ZWANG, item, 0), want;
        if (kind == SINGULAR || kind == MASSLESS) {
            CHECK(isnan(z)); /* Q has a part without mass */
        } else {
            slow_motion(n, 0, M, NULL, force[0], NULL, have, NULL);
            want = 0.0;
            for (int i = 0; i < n; i++) {
                want += have[i] * force[0][i];
            }
            CHECK_BELOW(fabs(z - want), bound * size * (1.0 + want));
        }
    }
    if (s.C == NULL && (r->wanted & ALL_FIELDS) == ALL_FIELDS) {
        /* one and the same where nothing is non-ideal */
        for (int i = 0; i < n; i++) {
            CHECK(number_at(r, Q_IDEAL, item, i) == number_at(r, Q_C, item, i));
            CHECK(number_at(r, K_PART, item, i) == 0.0);
        }
        for (int k = 0; k < m; k++) {
            CHECK(number_at(r, MULTIPLIERS, item, k) == number_at(r, TOTAL, item, k));
        }
    }
    for (int v = 0; v < 3; v++) {
        free(part[v]);
        free(x[v]);
        free(mu[v]);
        free(force[v]);
    }
    free(d), free(M), free(A), free(c), free(b), free(zero), free(have);
}

#endif
