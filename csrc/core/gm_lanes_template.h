/* The fast path for GM_VL systems at once; included once per instruction set and lane
 * count with GM_VL, GM_KERNEL (the name of the kernel) and GM_(x) (a prefix for the
 * rest) defined. Element (i, j) of a matrix is a vector with one entry per system.
 *
 * Sums are fixed chains of explicit FMA or FNMA (GM_FMA, ... of the including file) and
 * the compiler must not contract anything itself (-ffp-contract=off), so that every
 * lane count gives the same bits on one instruction set. */

#if GM_VL == 1
typedef double GM_(V);
typedef int64_t GM_(I);
#define COMPARE(test) (-(int64_t)(test))
#define LANE(v, l) (v)
#define FMA(x, y, z) GM_FMA_ONE(x, y, z)   /* z + x y */
#define FNMA(x, y, z) GM_FNMA_ONE(x, y, z) /* z - x y */
#else
typedef double GM_(V) __attribute__((vector_size(8 * GM_VL), may_alias));
typedef int64_t GM_(I) __attribute__((vector_size(8 * GM_VL), may_alias));
#define COMPARE(test) (test)
#define LANE(v, l) (v)[l]
#define FMA(x, y, z) GM_FMA(x, y, z)
#define FNMA(x, y, z) GM_FNMA(x, y, z)
#endif
/* one large system takes the costly steps from LAPACK; `large` is its table or NULL */
#if GM_VL == 1
#define GM_LARGE_ELSE(op, args, own) (large != NULL ? gm_large_##op args : (own))
#else
#define GM_LARGE_ELSE(op, args, own) ((void)large, (own))
#endif
#define GM_LARGE_OR(op, args, own) ((void)(GM_LARGE_ELSE(op, args, own)))
#define V GM_(V)
#define I GM_(I)
#define AT(X, ld, i, j) (X)[(size_t)(i) * (size_t)(ld) + (size_t)(j)]

typedef union {
    V v;
    I i;
    double d[GM_VL];
} GM_(bits);

static inline V
GM_(splat)(double x)
{
    GM_(bits) u;
    for (int l = 0; l < GM_VL; l++) {
        u.d[l] = x;
    }
    return u.v;
}

static inline V
GM_(select)(I mask, V yes, V no)
{
    GM_(bits) a = {.v = yes}, b = {.v = no};
    a.i = (a.i & mask) | (b.i & ~mask);
    return a.v;
}

static inline V
GM_(abs)(V x)
{
    GM_(bits) a = {.v = x};
    a.i &= INT64_MAX;
    return a.v;
}

static inline V
GM_(min)(V x, V y)
{
    return GM_(select)(COMPARE(x < y), x, y);
}

static inline V
GM_(max)(V x, V y)
{
    return GM_(select)(COMPARE(x > y), x, y);
}

static inline V
GM_(sqrt)(V x)
{
    GM_(bits) u = {.v = x};
    for (int l = 0; l < GM_VL; l++) {
        u.d[l] = __builtin_sqrt(u.d[l]);
    }
    return u.v;
}

static inline int
GM_(any)(I mask)
{
    int64_t sum = 0;
    for (int l = 0; l < GM_VL; l++) {
        sum |= LANE(mask, l);
    }
    return sum != 0;
}

/* the power of two d with x d^2 in [0.5, 2), for positive normal x; gm_pow2_rsqrt */
static inline V
GM_(pow2_rsqrt)(V x)
{
    GM_(bits) u = {.v = x};
    u.i = (1535 - (((u.i >> 52) + 2) >> 1)) << 52;
    return u.v;
}

/* 1 / d for a power of two */
static inline V
GM_(pow2_inverse)(V d)
{
    GM_(bits) u = {.v = d};
    u.i = ((int64_t)2046 << 52) - u.i;
    return u.v;
}

/* Four numbers of every lane (two with two lanes) become four vectors, or the reverse;
 * `at` are the lanes' addresses. Transposed in registers, a fraction of a cycle each. */
#if GM_VL == 1
#define CHUNK 1
static inline void
GM_(load_chunk)(const char *const *at, ptrdiff_t offset, V *X)
{
    X[0] = *(const double *)(const void *)(at[0] + offset);
}

static inline void
GM_(store_chunk)(char *const *at, ptrdiff_t offset, const V *X)
{
    *(double *)(void *)(at[0] + offset) = X[0];
}
#elif GM_VL == 2
#define CHUNK 2
typedef double GM_(loose) __attribute__((vector_size(16), may_alias, aligned(8)));

static inline void
GM_(load_chunk)(const char *const *at, ptrdiff_t offset, V *X)
{
    V a = *(const GM_(loose) *)(const void *)(at[0] + offset);
    V b = *(const GM_(loose) *)(const void *)(at[1] + offset);
    X[0] = __builtin_shufflevector(a, b, 0, 2);
    X[1] = __builtin_shufflevector(a, b, 1, 3);
}

static inline void
GM_(store_chunk)(char *const *at, ptrdiff_t offset, const V *X)
{
    V a = X[0], b = X[1];
    *(GM_(loose) *)(void *)(at[0] + offset) = __builtin_shufflevector(a, b, 0, 2);
    *(GM_(loose) *)(void *)(at[1] + offset) = __builtin_shufflevector(a, b, 1, 3);
}
#elif GM_VL == 4
#define CHUNK 4
typedef double GM_(loose) __attribute__((vector_size(32), may_alias, aligned(8)));

/* its own inverse */
static inline void
GM_(transpose)(V *r)
{
    V ab = __builtin_shufflevector(r[0], r[1], 0, 4, 2, 6);
    V cd = __builtin_shufflevector(r[2], r[3], 0, 4, 2, 6);
    V AB = __builtin_shufflevector(r[0], r[1], 1, 5, 3, 7);
    V CD = __builtin_shufflevector(r[2], r[3], 1, 5, 3, 7);
    r[0] = __builtin_shufflevector(ab, cd, 0, 1, 4, 5);
    r[1] = __builtin_shufflevector(AB, CD, 0, 1, 4, 5);
    r[2] = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
    r[3] = __builtin_shufflevector(AB, CD, 2, 3, 6, 7);
}

static inline void
GM_(load_chunk)(const char *const *at, ptrdiff_t offset, V *X)
{
    V r[4];
    for (int l = 0; l < 4; l++) {
        r[l] = *(const GM_(loose) *)(const void *)(at[l] + offset);
    }
    GM_(transpose)(r);
    for (int j = 0; j < 4; j++) {
        X[j] = r[j];
    }
}

static inline void
GM_(store_chunk)(char *const *at, ptrdiff_t offset, const V *X)
{
    V r[4] = {X[0], X[1], X[2], X[3]};
    GM_(transpose)(r);
    for (int l = 0; l < 4; l++) {
        *(GM_(loose) *)(void *)(at[l] + offset) = r[l];
    }
}
#else
#define CHUNK 4
typedef double GM_(half) __attribute__((vector_size(32), may_alias));
typedef double GM_(loose) __attribute__((vector_size(32), may_alias, aligned(8)));

/* both halves as four lanes; its own inverse */
static inline void
GM_(transpose)(V *r)
{
    V ab = __builtin_shufflevector(r[0], r[1], 0, 8, 2, 10, 4, 12, 6, 14);
    V cd = __builtin_shufflevector(r[2], r[3], 0, 8, 2, 10, 4, 12, 6, 14);
    V AB = __builtin_shufflevector(r[0], r[1], 1, 9, 3, 11, 5, 13, 7, 15);
    V CD = __builtin_shufflevector(r[2], r[3], 1, 9, 3, 11, 5, 13, 7, 15);
    r[0] = __builtin_shufflevector(ab, cd, 0, 1, 8, 9, 4, 5, 12, 13);
    r[1] = __builtin_shufflevector(AB, CD, 0, 1, 8, 9, 4, 5, 12, 13);
    r[2] = __builtin_shufflevector(ab, cd, 2, 3, 10, 11, 6, 7, 14, 15);
    r[3] = __builtin_shufflevector(AB, CD, 2, 3, 10, 11, 6, 7, 14, 15);
}

static inline void
GM_(load_chunk)(const char *const *at, ptrdiff_t offset, V *X)
{
    V r[4];
    for (int l = 0; l < 4; l++) {
        GM_(half) low = *(const GM_(loose) *)(const void *)(at[l] + offset);
        GM_(half) high = *(const GM_(loose) *)(const void *)(at[l + 4] + offset);
        r[l] = __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7);
    }
    GM_(transpose)(r);
    for (int j = 0; j < 4; j++) {
        X[j] = r[j];
    }
}

static inline void
GM_(store_chunk)(char *const *at, ptrdiff_t offset, const V *X)
{
    V r[4] = {X[0], X[1], X[2], X[3]};
    GM_(transpose)(r);
    for (int l = 0; l < 4; l++) {
        *(GM_(loose) *)(void *)(at[l] + offset) =
            __builtin_shufflevector(r[l], r[l], 0, 1, 2, 3);
        *(GM_(loose) *)(void *)(at[l + 4] + offset) =
            __builtin_shufflevector(r[l], r[l], 4, 5, 6, 7);
    }
}
#endif

/* the lanes' numbers from the caller's strides, missing lanes repeat the first;
 * returns a sum that is NaN in the lanes with an entry that is not finite */
static V
GM_(gather)(const gm_input *v, ptrdiff_t first, int lanes, int rows, int cols, V *X)
{
    const char *from[GM_VL];
    V zero = GM_(splat)(0.0), sum = zero, sum1 = zero;

    for (int l = 0; l < GM_VL; l++) {
        from[l] = v->data + (first + (l < lanes ? l : 0)) * v->item;
    }
    /* rows that follow each other are one long row */
    if (v->col == 8 && v->row == 8 * (ptrdiff_t)cols) {
        cols *= rows;
        rows = rows > 0;
    } else if (cols == 1 && v->row == 8) {
        cols = rows;
        rows = rows > 0;
    }
    int close = v->col == 8 || (cols > 1 && v->row == 8 && rows == 1);
    ptrdiff_t step = close ? 8 : v->col;
    for (int i = 0; i < rows; i++) {
        int j = 0;
        for (; close && j + CHUNK <= cols; j += CHUNK, X += CHUNK) {
            GM_(load_chunk)(from, 8 * j, X);
            for (int l = 0; l < GM_VL && (j & 7) == 0; l++) {
                __builtin_prefetch(from[l] + 8 * j + GM_VL * v->item);
            }
            for (int c = 0; c < CHUNK; c += 2) {
                sum = FMA(X[c], zero, sum);
                if (c + 1 < CHUNK) {
                    sum1 = FMA(X[c + 1], zero, sum1);
                }
            }
        }
        for (; j < cols; j++) {
            GM_(bits) u;
            for (int l = 0; l < GM_VL; l++) {
                u.d[l] = *(const double *)(const void *)(from[l] + j * step);
            }
            *X++ = u.v;
            sum = FMA(u.v, zero, sum);
        }
        for (int l = 0; l < GM_VL; l++) {
            from[l] += v->row;
        }
    }
    return sum + sum1;
}

static void
GM_(scatter)(const gm_output *v, ptrdiff_t first, unsigned lanes, int n, const V *x)
{
    char *to[GM_VL];
    int i = 0;

    if (v->data == NULL) {
        return;
    }
    for (int l = 0; l < GM_VL; l++) {
        to[l] = v->data + (first + l) * v->item;
    }
    /* + 0.0: no negative zeros in answers */
    for (; lanes == (1u << GM_VL) - 1 && v->row == 8 && i + CHUNK <= n; i += CHUNK) {
        V chunk[CHUNK];
        for (int c = 0; c < CHUNK; c++) {
            chunk[c] = x[i + c] + GM_(splat)(0.0);
        }
        GM_(store_chunk)(to, 8 * i, chunk);
    }
    for (; i < n; i++) {
        GM_(bits) u = {.v = x[i] + GM_(splat)(0.0)};
        for (int l = 0; l < GM_VL; l++) {
            if (lanes >> l & 1u) {
                *(double *)(void *)(to[l] + i * v->row) = u.d[l];
            }
        }
    }
}

/* sum of squares in four chains */
static inline V
GM_(square)(int n, const V *x)
{
    V s0 = GM_(splat)(0.0), s1 = s0, s2 = s0, s3 = s0;
    int i = 0;
    for (; i + 4 <= n; i += 4) {
        s0 = FMA(x[i], x[i], s0);
        s1 = FMA(x[i + 1], x[i + 1], s1);
        s2 = FMA(x[i + 2], x[i + 2], s2);
        s3 = FMA(x[i + 3], x[i + 3], s3);
    }
    for (; i < n; i++) {
        s0 = FMA(x[i], x[i], s0);
    }
    return (s0 + s1) + (s2 + s3);
}

/* y_i -= sum_j X_ij x_j over `rows` rows; four rows share every load of x */
static void
GM_(subtract_rows)(int rows, int cols, int ld, const V *X, const V *x, V *y)
{
    int i = 0;
    for (; i + 4 <= rows; i += 4) {
        const V *r0 = &AT(X, ld, i, 0), *r1 = r0 + ld, *r2 = r1 + ld, *r3 = r2 + ld;
        V s0 = y[i], s1 = y[i + 1], s2 = y[i + 2], s3 = y[i + 3];
        for (int j = 0; j < cols; j++) {
            V xj = x[j];
            s0 = FNMA(r0[j], xj, s0);
            s1 = FNMA(r1[j], xj, s1);
            s2 = FNMA(r2[j], xj, s2);
            s3 = FNMA(r3[j], xj, s3);
        }
        y[i] = s0;
        y[i + 1] = s1;
        y[i + 2] = s2;
        y[i + 3] = s3;
    }
    for (; i < rows; i++) {
        const V *r0 = &AT(X, ld, i, 0);
        V s0 = y[i];
        for (int j = 0; j < cols; j++) {
            s0 = FNMA(r0[j], x[j], s0);
        }
        y[i] = s0;
    }
}

/* y_j += sum_i X_ij x_i; four rows share every load and store of y */
static void
GM_(add_columns)(int rows, int cols, int ld, const V *X, const V *x, V *y)
{
    int i = 0;
    for (; i + 4 <= rows; i += 4) {
        const V *r0 = &AT(X, ld, i, 0), *r1 = r0 + ld, *r2 = r1 + ld, *r3 = r2 + ld;
        V x0 = x[i], x1 = x[i + 1], x2 = x[i + 2], x3 = x[i + 3];
        for (int j = 0; j < cols; j++) {
            V s = y[j];
            s = FMA(r0[j], x0, s);
            s = FMA(r1[j], x1, s);
            s = FMA(r2[j], x2, s);
            s = FMA(r3[j], x3, s);
            y[j] = s;
        }
    }
    for (; i < rows; i++) {
        const V *r0 = &AT(X, ld, i, 0);
        V x0 = x[i];
        for (int j = 0; j < cols; j++) {
            y[j] = FMA(r0[j], x0, y[j]);
        }
    }
}

/* x <- L^-1 x; inv holds 1 / L_ii */
static void
GM_(forward)(int n, const V *L, const V *inv, V *x)
{
    for (int i = 0; i < n; i += 4) {
        int block = n - i < 4 ? n - i : 4;
        GM_(subtract_rows)(block, i, n, &AT(L, n, i, 0), x, x + i);
        for (int a = 0; a < block; a++) {
            V s = x[i + a];
            for (int c = 0; c < a; c++) {
                s = FNMA(AT(L, n, i + a, i + c), x[i + c], s);
            }
            x[i + a] = s * inv[i + a];
        }
    }
}

/* x <- L^-T x */
static void
GM_(backward)(int n, const V *L, const V *inv, V *x)
{
    for (int i = n - 1; i >= 0; i--) {
        const V *row = &AT(L, n, i, 0);
        V xi = x[i] * inv[i];
        x[i] = xi;
        for (int j = 0; j < i; j++) {
            x[j] = FNMA(row[j], xi, x[j]);
        }
    }
}

/* K <- M + A'A in the weak lanes, M in the others; lower triangle */
static void
GM_(augment)(int n, int m, const V *M, const V *A, I weak, V *K)
{
    for (int i = 0; i < n; i++) {
        V *row = &AT(K, n, i, 0);
        for (int j = 0; j <= i; j++) {
            row[j] = AT(M, n, i, j);
        }
        for (int k = 0; k < m; k++) {
            const V *a = &AT(A, n, k, 0);
            V scale = a[i];
            for (int j = 0; j <= i; j++) {
                row[j] = FMA(scale, a[j], row[j]);
            }
        }
        for (int j = 0; j <= i; j++) {
            row[j] = GM_(select)(weak, row[j], AT(M, n, i, j));
        }
    }
}

/* L L' = K in the lower triangle, inv = 1 / L_ii. A pivot that is not > tol counts as
 * zero: its column must be within tol of zero, and is then left out. *least is the
 * smallest pivot above tol, *null tells where a pivot was zero; returns the lanes in
 * which the matrix is semidefinite to within tol. */
static I
GM_(cholesky)(int n, const V *K, double tol, V *L, V *inv, V *least, I *null)
{
    V zero = GM_(splat)(0.0), one = GM_(splat)(1.0), bound = GM_(splat)(tol);
    V smallest = GM_(splat)(INFINITY);
    I good = ~(COMPARE(zero > zero)), gone = COMPARE(zero > zero);

    for (int i = 0; i < n; i++) {
        const V *given = &AT(K, n, i, 0);
        V *row = &AT(L, n, i, 0);
        for (int j = 0; j < i; j += 4) {
            int block = i - j < 4 ? i - j : 4;
            for (int c = 0; c < block; c++) {
                row[j + c] = given[j + c];
            }
            GM_(subtract_rows)(block, j, n, &AT(L, n, j, 0), row, row + j);
            for (int c = 0; c < block; c++) {
                V s = row[j + c];
                for (int k = 0; k < c; k++) {
                    s = FNMA(AT(L, n, j + c, j + k), row[j + k], s);
                }
                if (GM_(any)(gone)) {
                    I lost = COMPARE(inv[j + c] == zero);
                    good &= ~lost | COMPARE(GM_(abs)(s) <= bound);
                }
                row[j + c] = s * inv[j + c];
            }
        }
        V p = given[i] - GM_(square)(i, row);
        I found = COMPARE(p > bound);
        good &= COMPARE(p >= -bound);
        gone |= ~found;
        smallest = GM_(select)(found, GM_(min)(p, smallest), smallest);
        inv[i] = GM_(select)(found, one / GM_(sqrt)(p), zero);
    }
    *least = smallest;
    *null = gone;
    return good;
}

/* B_k <- L^-1 B_k for all rows of B */
static void
GM_(whiten)(int n, int m, const V *L, const V *inv, V *B)
{
    int k = 0;
    for (; k + 4 <= m; k += 4) {
        V *b0 = &AT(B, n, k, 0), *b1 = b0 + n, *b2 = b1 + n, *b3 = b2 + n;
        for (int i = 0; i < n; i++) {
            const V *row = &AT(L, n, i, 0);
            V s0 = b0[i], s1 = b1[i], s2 = b2[i], s3 = b3[i];
            for (int j = 0; j < i; j++) {
                V l = row[j];
                s0 = FNMA(l, b0[j], s0);
                s1 = FNMA(l, b1[j], s1);
                s2 = FNMA(l, b2[j], s2);
                s3 = FNMA(l, b3[j], s3);
            }
            b0[i] = s0 * inv[i];
            b1[i] = s1 * inv[i];
            b2[i] = s2 * inv[i];
            b3[i] = s3 * inv[i];
        }
    }
    for (; k < m; k++) {
        GM_(forward)(n, L, inv, &AT(B, n, k, 0));
    }
}

/* y <- (1 - tau v v') y, v_0 = 1 implied; for one vector and for four at once */
static inline void
GM_(reflect)(int n, const V *v, V tau, V *y)
{
    V s = y[0], s1 = GM_(splat)(0.0), s2 = s1, s3 = s1;
    int k = 1;
    for (; k + 4 <= n; k += 4) {
        s = FMA(v[k], y[k], s);
        s1 = FMA(v[k + 1], y[k + 1], s1);
        s2 = FMA(v[k + 2], y[k + 2], s2);
        s3 = FMA(v[k + 3], y[k + 3], s3);
    }
    for (; k < n; k++) {
        s = FMA(v[k], y[k], s);
    }
    s = ((s + s1) + (s2 + s3)) * tau;
    y[0] -= s;
    for (int i = 1; i < n; i++) {
        y[i] = FNMA(s, v[i], y[i]);
    }
}

static inline void
GM_(reflect4)(int n, const V *v, V tau, V *y0, int ld)
{
    V *y1 = y0 + ld, *y2 = y1 + ld, *y3 = y2 + ld;
    V s0 = y0[0], s1 = y1[0], s2 = y2[0], s3 = y3[0];
    for (int i = 1; i < n; i++) {
        s0 = FMA(v[i], y0[i], s0);
        s1 = FMA(v[i], y1[i], s1);
        s2 = FMA(v[i], y2[i], s2);
        s3 = FMA(v[i], y3[i], s3);
    }
    s0 *= tau;
    s1 *= tau;
    s2 *= tau;
    s3 *= tau;
    y0[0] -= s0;
    y1[0] -= s1;
    y2[0] -= s2;
    y3[0] -= s3;
    for (int i = 1; i < n; i++) {
        y0[i] = FNMA(s0, v[i], y0[i]);
        y1[i] = FNMA(s1, v[i], y1[i]);
        y2[i] = FNMA(s2, v[i], y2[i]);
        y3[i] = FNMA(s3, v[i], y3[i]);
    }
}

/* B = L Q1' in place: row j holds j + 1 entries of L and then reflector j */
static void
GM_(orth)(int n, int m, V *B, V *tau)
{
    V zero = GM_(splat)(0.0), one = GM_(splat)(1.0);

    for (int j = 0; j < m; j++) {
        V *x = &AT(B, n, j, j), alpha = x[0];
        V tail = GM_(square)(n - j - 1, x + 1);
        V size = GM_(sqrt)(alpha * alpha + tail);
        V beta = GM_(select)(COMPARE(alpha > zero), -size, size);
        V head = alpha - beta, scale = one / head;
        int k = j + 1;

        for (int i = 1; i < n - j; i++) {
            x[i] *= scale;
        }
        x[0] = beta;
        tau[j] = -head / beta;
        for (; k + 4 <= m; k += 4) {
            GM_(reflect4)(n - j, x, tau[j], &AT(B, n, k, j), n);
        }
        for (; k < m; k++) {
            GM_(reflect)(n - j, x, tau[j], &AT(B, n, k, j));
        }
    }
}

/* W <- inverse of the lower triangle of B */
static void
GM_(invert)(int n, int m, const V *B, V *W)
{
    V one = GM_(splat)(1.0), zero = GM_(splat)(0.0);

    for (int i = 0; i < m; i++) {
        V *row = &AT(W, m, i, 0), inv = one / AT(B, n, i, i);
        for (int j = 0; j < i; j++) {
            row[j] = zero;
        }
        for (int k = 0; k < i; k++) {
            const V *other = &AT(W, m, k, 0);
            V l = AT(B, n, i, k);
            for (int j = 0; j <= k; j++) {
                row[j] = FNMA(l, other[j], row[j]);
            }
        }
        for (int j = 0; j < i; j++) {
            row[j] *= inv;
        }
        row[i] = inv;
    }
}

/* what the solves need */
typedef struct {
    int n, m;
    const gm_lapack *large; /* NULL below the LAPACK threshold */
    I augmented, refine;
    int augmented_any, refine_any;
    const V *M, *A, *L, *inv, *B, *tau, *W;
    V *y, *r1, *r2, *dx, *dmu;
} GM_(factors);

/* x, mu of M x = f + A' mu, A x = b by the factors, one pass */
static void
GM_(solve_once)(const GM_(factors) *s, const V *f, const V *b, V *x, V *mu)
{
    int n = s->n, m = s->m;
    V zero = GM_(splat)(0.0), *y = s->y;
    const gm_lapack *large = s->large;

    for (int i = 0; i < n; i++) {
        x[i] = f[i];
    }
    if (s->augmented_any) {
        GM_(add_columns)(m, n, n, s->A, b, x);
        for (int i = 0; i < n; i++) {
            x[i] = GM_(select)(s->augmented, x[i], f[i]);
        }
    }
    GM_LARGE_OR(solve, (large, n, s->L, 0, x), GM_(forward)(n, s->L, s->inv, x));
    for (int j = 0; j < m; j++) {
        GM_(reflect)(n - j, &AT(s->B, n, j, j), s->tau[j], x + j);
    }
    /* along the rows: L^-1 b instead of what is there; mu from the difference */
    for (int k = 0; k < m; k++) {
        const V *row = &AT(s->W, m, k, 0);
        V sum = zero;
        for (int j = 0; j <= k; j++) {
            sum = FMA(row[j], b[j], sum);
        }
        y[k] = sum - x[k];
        x[k] = sum;
    }
    for (int k = 0; k < m; k++) {
        mu[k] = zero;
    }
    for (int k = 0; k < m; k++) {
        const V *row = &AT(s->W, m, k, 0);
        for (int j = 0; j <= k; j++) {
            mu[j] = FMA(row[j], y[k], mu[j]);
        }
    }
    for (int j = m - 1; j >= 0; j--) {
        GM_(reflect)(n - j, &AT(s->B, n, j, j), s->tau[j], x + j);
    }
    GM_LARGE_OR(solve, (large, n, s->L, 1, x), GM_(backward)(n, s->L, s->inv, x));
}

/* the same, refined once on the true M where the masses call for it */
static void
GM_(solve)(const GM_(factors) *s, const V *f, const V *b, V *x, V *mu)
{
    int n = s->n, m = s->m;
    const gm_lapack *large = s->large;

    GM_(solve_once)(s, f, b, x, mu);
    if (!s->refine_any) {
        return;
    }
    for (int i = 0; i < n; i++) {
        s->r1[i] = f[i];
    }
    for (int k = 0; k < m; k++) {
        s->r2[k] = b[k];
    }
    GM_(add_columns)(m, n, n, s->A, mu, s->r1);
    GM_LARGE_OR(subtract_rows, (large, n, n, s->M, x, s->r1),
                GM_(subtract_rows)(n, n, n, s->M, x, s->r1));
    GM_LARGE_OR(subtract_rows, (large, m, n, s->A, x, s->r2),
                GM_(subtract_rows)(m, n, n, s->A, x, s->r2));
    GM_(solve_once)(s, s->r1, s->r2, s->dx, s->dmu);
    for (int i = 0; i < n; i++) {
        x[i] = GM_(select)(s->refine, x[i] + s->dx[i], x[i]);
    }
    for (int k = 0; k < m; k++) {
        mu[k] = GM_(select)(s->refine, mu[k] + s->dmu[k], mu[k]);
    }
}

/* a function of its own: gcc 12 fails where this mask meets its use on SSE2 */
__attribute__((noinline)) static I
GM_(not_above)(V x, V y)
{
    return COMPARE(x <= y);
}

/* out <- (M x - f) / d = (c + A' mu) / d, by the form that adds up smaller terms */
static void
GM_(force)(const GM_(factors) *s, const V *x, const V *mu, const V *f, const V *c,
           const V *d, V *out)
{
    int n = s->n, m = s->m;
    V zero = GM_(splat)(0.0), by_mass = zero, by_rows = zero;
    V *y = s->r1;
    const gm_lapack *large = s->large;

    for (int i = 0; i < n; i++) {
        by_mass += GM_(abs)(x[i]) + GM_(abs)(f[i]);
        by_rows += GM_(abs)(c[i]);
    }
    for (int k = 0; k < m; k++) {
        by_rows += GM_(abs)(mu[k]);
    }
    I rows = GM_(not_above)(by_rows, by_mass);
    for (int i = 0; i < n; i++) {
        out[i] = c[i];
        y[i] = f[i];
    }
    GM_(add_columns)(m, n, n, s->A, mu, out);
    if (GM_(any)(~rows)) {
        GM_LARGE_OR(subtract_rows, (large, n, n, s->M, x, y),
                    GM_(subtract_rows)(n, n, n, s->M, x, y));
        for (int i = 0; i < n; i++) {
            out[i] = GM_(select)(rows, out[i], zero - y[i]);
        }
    }
    for (int i = 0; i < n; i++) {
        out[i] *= GM_(pow2_inverse)(d[i]);
    }
}

/* scales of coordinates where a lane has a massless one: lane by lane */
static void
GM_(scale_massless)(int n, int m, const V *M, const V *A, I massless, V *d, double *w)
{
    double *one_M = w, *one_A = w + (size_t)n * (size_t)n;
    double *one_d = one_A + (size_t)m * (size_t)n, *seen = one_d + n;

    for (int l = 0; l < GM_VL; l++) {
        if (!LANE(massless, l)) {
            continue;
        }
        for (size_t e = 0; e < (size_t)n * (size_t)n; e++) {
            one_M[e] = LANE(M[e], l);
        }
        for (size_t e = 0; e < (size_t)m * (size_t)n; e++) {
            one_A[e] = LANE(A[e], l);
        }
        gm_scale_coordinates(n, m, one_M, one_A, one_d, seen);
        for (int i = 0; i < n; i++) {
            LANE(d[i], l) = one_d[i];
        }
    }
}

unsigned
GM_KERNEL(const gm_lapack *lp, int n, int m, const gm_problem *p, ptrdiff_t first,
          int lanes, const gm_motion *r, void *work)
{
    size_t N = (size_t)n, K = (size_t)m;
    V zero = GM_(splat)(0.0);
    V *raw = (V *)work, *LK = raw, *M = raw + N * N, *L = M + N * N, *A = L + N * N;
    V *B = A + K * N, *W = B + K * N, *d = W + K * K, *inv = d + N, *invK = inv + N;
    V *Q = invK + N, *C = Q + N, *f = C + N, *x = f + N, *out = x + N, *s = out + N;
    V *b = s + K, *mu = b + K, *size = mu + K, *tau = size + K, *sums = tau + K;
    GM_(factors) F = {.n = n, .m = m};
    int has_C = p->C.data != NULL;
    double tol = 32.0 * n * GM_EPS;

    const gm_lapack *large = n >= GM_LAPACK_MIN && lp != NULL && lp->dpotrf != NULL ? lp : NULL;

    F.large = large;
    F.r2 = sums + K;
    F.dmu = F.r2 + K;
    F.y = F.dmu + K;
    F.r1 = F.y + N;
    F.dx = F.r1 + N;
    double *single = (double *)(void *)(F.dx + N); /* for one system of the group */

    V nan_sum = GM_(gather)(&p->M, first, lanes, n, n, raw);
    nan_sum += GM_(gather)(&p->A, first, lanes, m, n, B);
    nan_sum += GM_(gather)(&p->Q, first, lanes, n, 1, Q);
    nan_sum += GM_(gather)(&p->b, first, lanes, m, 1, b);
    if (has_C) {
        nan_sum += GM_(gather)(&p->C, first, lanes, n, 1, C);
    } else {
        for (int i = 0; i < n; i++) {
            C[i] = zero;
        }
    }
    I pass = COMPARE(nan_sum == zero), massless = COMPARE(zero > zero);

    /* scales of the coordinates */
    V heaviest = zero, lightest = GM_(splat)(INFINITY);
    for (int i = 0; i < n; i++) {
        V mass = AT(raw, n, i, i);
        massless |= COMPARE(mass == zero);
        pass &= COMPARE(mass == zero) |
                (COMPARE(mass > GM_(splat)(1e-200)) & COMPARE(mass < GM_(splat)(1e200)));
        heaviest = GM_(max)(mass, heaviest);
        lightest = GM_(min)(mass, lightest);
        d[i] = GM_(pow2_rsqrt)(mass);
    }
    massless &= pass;
    if (GM_(any)(massless)) {
        GM_(scale_massless)(n, m, raw, B, massless, d, single);
    }

    /* M^ = D M D, both halves; asymmetry beyond rounding is for the general path */
    for (int i = 0; i < n; i++) {
        V mass = AT(raw, n, i, i) * d[i] * d[i], bound = mass * GM_(splat)(0.9e-20);
        AT(M, n, i, i) = mass;
        for (int j = 0; j < i; j++) {
            V scale = d[i] * d[j];
            V upper = AT(raw, n, j, i), lower = AT(raw, n, i, j);
            V mean = (upper + lower) * (GM_(splat)(0.5) * scale);
            V gap = (upper - lower) * scale;
            pass &= COMPARE(gap * gap <= bound * AT(M, n, j, j));
            AT(M, n, i, j) = mean;
            AT(M, n, j, i) = mean;
        }
    }
    /* A^ = S A D */
    for (int k = 0; k < m; k++) {
        V *row = &AT(A, n, k, 0);
        for (int j = 0; j < n; j++) {
            row[j] = AT(B, n, k, j) * d[j];
        }
        V length2 = GM_(square)(n, row);
        pass &= COMPARE(length2 > GM_(splat)(1e-200)) & COMPARE(length2 < GM_(splat)(1e200));
        s[k] = GM_(pow2_rsqrt)(length2);
        b[k] *= s[k];
        for (int j = 0; j < n; j++) {
            row[j] *= s[k];
        }
        size[k] = length2; /* until the rows are whitened */
    }
    if (p->row_scale.data != NULL) {
        /* anywhere near the row's own scale of zero: the general path decides */
        V reach = zero;
        for (int j = 0; j < n; j++) {
            reach = GM_(max)(d[j], reach);
        }
        pass &= COMPARE(GM_(gather)(&p->row_scale, first, lanes, m, 1, sums) == zero);
        for (int k = 0; k < m; k++) {
            V foot = sums[k] * reach * GM_(splat)(1e-3);
            pass &= COMPARE(size[k] > foot * foot);
        }
    }
    for (int i = 0; i < n; i++) {
        Q[i] *= d[i];
        C[i] *= d[i];
        f[i] = Q[i] + C[i];
    }

    /* M^ = L L'; the weak lanes go on with M^ + A^'A^ */
    V least, leastK;
    I null, nullK;
    pass &= GM_LARGE_ELSE(cholesky, (large, n, M, tol, L, inv, &least, &null),
                          GM_(cholesky)(n, M, tol, L, inv, &least, &null));
    I weak = null | ~COMPARE(least >= GM_(splat)(1e-4));
    I rough = ~COMPARE(least >= GM_(splat)(0.1));
    F.augmented = weak;
    F.augmented_any = GM_(any)(weak & pass);
    F.refine = weak | rough | ~COMPARE(heaviest <= GM_(splat)(1e2) * lightest);
    F.refine_any = GM_(any)(F.refine & pass);
    F.M = M;
    F.A = A;
    F.L = L;
    F.inv = inv;
    leastK = least;
    if (F.augmented_any) {
        GM_LARGE_OR(augment, (large, n, m, M, A, LK), GM_(augment)(n, m, M, A, weak, LK));
        pass &= GM_LARGE_ELSE(cholesky, (large, n, LK, tol, LK, invK, &leastK, &nullK),
                              GM_(cholesky)(n, LK, tol, LK, invK, &leastK, &nullK));
        /* far from the kernels that the general path looks for */
        V floor = GM_(select)(null, GM_(splat)(1e-8), GM_(splat)(100.0 * n * GM_EPS));
        pass &= ~nullK & COMPARE(leastK >= floor);
        F.L = LK;
        F.inv = invK;
    } else {
        pass &= ~null;
    }

    /* rows: whitened, orthogonalised, and how far they are from depending */
    for (size_t e = 0; e < K * N; e++) {
        B[e] = A[e];
    }
    GM_LARGE_OR(whiten, (large, n, m, F.L, B), GM_(whiten)(n, m, F.L, F.inv, B));
    for (int k = 0; k < m; k++) {
        size[k] = GM_(sqrt)(GM_(square)(n, &AT(B, n, k, 0)));
        sums[k] = zero;
    }
    GM_LARGE_OR(orth, (large, n, m, B, tau, (double *)(void *)W), GM_(orth)(n, m, B, tau));
    GM_(invert)(n, m, B, W);
    F.B = B;
    F.tau = tau;
    F.W = W;
    for (int i = 0; i < m; i++) {
        pass &= COMPARE(GM_(abs)(AT(B, n, i, i)) >= GM_(splat)(1e-3) * size[i]);
        for (int j = 0; j <= i; j++) {
            sums[j] += GM_(abs)(AT(W, m, i, j));
        }
    }
    double rtol = p->rtol >= 0.0 ? p->rtol : 16.0 * n * GM_EPS;
    V most = GM_(sqrt)(leastK) * GM_(splat)(1e-2 / (rtol > 1e-12 ? rtol : 1e-12));
    most = GM_(min)(most, GM_(splat)(1e6));
    for (int j = 0; j < m; j++) {
        pass &= COMPARE(sums[j] * size[j] <= most);
    }

    GM_(solve)(&F, f, b, x, mu);
    V finite = zero;
    for (int i = 0; i < n; i++) {
        finite += (x[i] * d[i]) * zero;
    }
    for (int k = 0; k < m; k++) {
        finite += (mu[k] * s[k]) * zero;
    }
    pass &= COMPARE(finite == zero);

    unsigned done = 0;
    for (int l = 0; l < lanes; l++) {
        done |= LANE(pass, l) ? 1u << l : 0u;
    }
    if (done == 0) {
        return 0;
    }

    /* outputs, in the caller's units */
    V *lambda = sums;
    if (r->residual.data != NULL) {
        for (int k = 0; k < m; k++) {
            lambda[k] = b[k];
        }
        GM_(subtract_rows)(m, n, n, A, x, lambda);
        for (int k = 0; k < m; k++) {
            lambda[k] = (zero - lambda[k]) * GM_(pow2_inverse)(s[k]);
        }
        GM_(scatter)(&r->residual, first, done, m, lambda);
    }
    for (int k = 0; k < m; k++) {
        lambda[k] = mu[k] * s[k];
    }
    GM_(scatter)(&r->multipliers_total, first, done, m, lambda);
    if (!has_C) {
        GM_(scatter)(&r->multipliers, first, done, m, lambda);
    }
    GM_(force)(&F, x, mu, Q, C, d, out);
    GM_(scatter)(&r->Q_c, first, done, n, out);
    if (!has_C) {
        GM_(scatter)(&r->Q_ideal, first, done, n, out);
    }
    if (r->qdd.data != NULL) {
        for (int i = 0; i < n; i++) {
            F.r1[i] = x[i] * d[i];
        }
        GM_(scatter)(&r->qdd, first, done, n, F.r1);
    }
    if (r->zwang.data != NULL) {
        V z;
        for (int i = 0; i < n; i++) {
            F.r1[i] = out[i] * d[i];
            F.dx[i] = F.r1[i];
        }
        GM_LARGE_OR(solve, (large, n, L, 0, F.r1), GM_(forward)(n, L, inv, F.r1));
        z = GM_(square)(n, F.r1);
        for (int l = 0; l < lanes; l++) {
            if (LANE(null & pass, l)) {
                LANE(z, l) = gm_lanes_singular_zwang(
                    n, (const double *)(const void *)M + l,
                    (const double *)(const void *)Q + l,
                    (const double *)(const void *)F.dx + l, GM_VL, single);
            }
        }
        GM_(scatter)(&r->zwang, first, done, 1, &z);
    }
    if (has_C && (r->Q_ideal.data != NULL || r->multipliers.data != NULL)) {
        GM_(solve)(&F, Q, b, x, mu);
        for (int k = 0; k < m; k++) {
            lambda[k] = mu[k] * s[k];
        }
        for (int i = 0; i < n; i++) {
            f[i] = zero;
        }
        GM_(force)(&F, x, mu, Q, f, d, out);
        GM_(scatter)(&r->multipliers, first, done, m, lambda);
        GM_(scatter)(&r->Q_ideal, first, done, n, out);
    }
    if (r->K.data != NULL) {
        for (int i = 0; i < n; i++) {
            out[i] = zero;
            f[i] = zero;
        }
        if (has_C) {
            for (int k = 0; k < m; k++) {
                b[k] = zero;
            }
            GM_(solve)(&F, C, b, x, mu);
            GM_(force)(&F, x, mu, f, C, d, out);
        }
        GM_(scatter)(&r->K, first, done, n, out);
    }
    for (int l = 0; l < lanes; l++) {
        ptrdiff_t item = first + l;
        if (!(done >> l & 1u)) {
            continue;
        }
        for (int k = 0; k < m; k++) {
            if (r->multipliers_unique.data != NULL) {
                gm_put_flag(&r->multipliers_unique, item, k, 1);
            }
            if (r->vanished.data != NULL) {
                gm_put_flag(&r->vanished, item, k, 0);
            }
        }
        if (r->rank.data != NULL) {
            gm_put_int(&r->rank, item, m);
        }
        if (r->nullity.data != NULL) {
            gm_put_int(&r->nullity, item, 0);
        }
        gm_put_status(&r->status, item, GM_OK);
    }
    return done;
}

#undef V
#undef I
#undef AT
#undef COMPARE
#undef LANE
#undef CHUNK
#undef FMA
#undef FNMA
#undef GM_LARGE_ELSE
#undef GM_LARGE_OR
