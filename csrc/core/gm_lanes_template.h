/* The fast path for GM_VL systems at once; included once per instruction set and lane
 * count with GM_VL, GM_KERNEL (the name of the kernel) and GM_(x) (a prefix for the
 * rest) defined. Element (i, j) of a matrix is a vector with one entry per system.
 *
 * Sums are fixed chains of explicit FMA or FNMA (GM_FMA, ... of the including file) and
 * the compiler must not contract anything itself (-ffp-contract=off), so that every
 * lane count gives the same bits on one instruction set. Comparisons of vectors are the
 * including file's too (GM_LT, ...): gcc 12 fails on some uses of its own. */

#if GM_VL == 1
typedef double GM_(V);
typedef int64_t GM_(I);
typedef uint64_t GM_(U);
#define LT(x, y) (-(int64_t)((x) < (y)))
#define LE(x, y) (-(int64_t)((x) <= (y)))
#define EQ(x, y) (-(int64_t)((x) == (y)))
#define LANE(v, l) (v)
#define BITS(mask) ((unsigned)((mask) != 0))
#define FMA(x, y, z) GM_FMA_ONE(x, y, z)   /* z + x y */
#define FNMA(x, y, z) GM_FNMA_ONE(x, y, z) /* z - x y */
#else
typedef double GM_(V) __attribute__((vector_size(8 * GM_VL), may_alias));
typedef int64_t GM_(I) __attribute__((vector_size(8 * GM_VL), may_alias));
typedef uint64_t GM_(U) __attribute__((vector_size(8 * GM_VL), may_alias));
#define LT(x, y) ((GM_(I))GM_LT(x, y))
#define LE(x, y) ((GM_(I))GM_LE(x, y))
#define EQ(x, y) ((GM_(I))GM_EQ(x, y))
#define LANE(v, l) (v)[l]
#define BITS(mask) GM_BITS(mask)
#define FMA(x, y, z) GM_FMA(x, y, z)
#define FNMA(x, y, z) GM_FNMA(x, y, z)
#endif
/* one large system takes the costly steps from LAPACK; `large` is its table or NULL */
#if GM_VL == 1
#define GM_LARGE_OR(op, args, own) (large != NULL ? gm_large_##op args : (own))
#else
#define GM_LARGE_OR(op, args, own) ((void)large, (own))
#endif
#if defined GM_SMALL && !defined __SANITIZE_ADDRESS__
/* a kernel for each small size: everything is known to the compiler and in one piece
 * (too large a piece for the sanitizers) */
#define STAGE __attribute__((always_inline)) static inline
#else
/* apart from each other, or the registers of one spill into the next */
#define STAGE __attribute__((noinline)) static
#endif
#define V GM_(V)
#define I GM_(I)
#define AT(X, ld, i, j) (X)[(size_t)(i) * (size_t)(ld) + (size_t)(j)]

typedef union {
    V v;
    I i;
    GM_(U) u;
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
    return GM_(select)(LT(x, y), x, y);
}

static inline V
GM_(max)(V x, V y)
{
    return GM_(select)(LT(y, x), x, y);
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

/* bit l tells of lane l */
static inline unsigned
GM_(lanes)(I mask)
{
    return BITS(mask);
}

static inline int
GM_(any)(I mask)
{
    return GM_(lanes)(mask) != 0;
}

/* the power of two d with x d^2 in [0.5, 2), for positive normal x; gm_pow2_rsqrt */
static inline V
GM_(pow2_rsqrt)(V x)
{
    GM_(bits) a = {.v = x};
    a.u = (1535 - (((a.u >> 52) + 2) >> 1)) << 52;
    return a.v;
}

/* 1 / d for a power of two */
static inline V
GM_(pow2_inverse)(V d)
{
    GM_(bits) a = {.v = d};
    a.u = ((uint64_t)2046 << 52) - a.u;
    return a.v;
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
STAGE V
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
                __builtin_prefetch(from[l] + 8 * j + GM_VL * v->item, 0, 2);
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

STAGE void
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
STAGE void
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
STAGE void
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

/* x <- D^-1/2 L^-1 x, L with unit diagonal, root holds D^-1/2 */
STAGE void
GM_(forward)(int n, const V *L, const V *root, V *x)
{
    for (int i = 0; i < n; i += 4) {
        int block = n - i < 4 ? n - i : 4;
        GM_(subtract_rows)(block, i, n, &AT(L, n, i, 0), x, x + i);
        for (int a = 1; a < block; a++) {
            V s = x[i + a];
            for (int c = 0; c < a; c++) {
                s = FNMA(AT(L, n, i + a, i + c), x[i + c], s);
            }
            x[i + a] = s;
        }
    }
    for (int i = 0; i < n; i++) {
        x[i] *= root[i];
    }
}

/* x <- L^-T D^-1/2 x */
STAGE void
GM_(backward)(int n, const V *L, const V *root, V *x)
{
    for (int i = 0; i < n; i++) {
        x[i] *= root[i];
    }
    for (int i = n - 1; i > 0; i--) {
        const V *row = &AT(L, n, i, 0);
        V xi = x[i];
        for (int j = 0; j < i; j++) {
            x[j] = FNMA(row[j], xi, x[j]);
        }
    }
}

/* K <- M + A'A in the weak lanes, M in the others; lower triangle */
STAGE void
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

/* C_ac -= sum_k X_ak Y_ck for four rows of X and of Y: the inner product of everything
 * cubic. As many rows of X at once as the registers hold. */
static inline void
GM_(block)(int depth, int ldx, const V *X, int ldy, const V *Y, int ldc, V *C)
{
    enum { ROWS = GM_VL == 8 ? 4 : 2 };

    for (int a0 = 0; a0 < 4; a0 += ROWS) {
        V sum[ROWS][4];
        for (int a = 0; a < ROWS; a++) {
            for (int c = 0; c < 4; c++) {
                sum[a][c] = AT(C, ldc, a0 + a, c);
            }
        }
        for (int k = 0; k < depth; k++) {
            V y[4];
            for (int c = 0; c < 4; c++) {
                y[c] = AT(Y, ldy, c, k);
            }
            for (int a = 0; a < ROWS; a++) {
                V x = AT(X, ldx, a0 + a, k);
                for (int c = 0; c < 4; c++) {
                    sum[a][c] = FNMA(x, y[c], sum[a][c]);
                }
            }
        }
        for (int a = 0; a < ROWS; a++) {
            for (int c = 0; c < 4; c++) {
                AT(C, ldc, a0 + a, c) = sum[a][c];
            }
        }
    }
}

/* what a Cholesky factorisation finds out lane by lane */
typedef struct {
    V least;      /* smallest pivot that is not zero, at most 1 */
    I sound;      /* semidefinite within the tolerance */
    I null;       /* some pivot is zero */
    int null_any;
} GM_(verdict);

/* 1 / p, or 0 where the pivot p counts as zero. Rounding in a pivot is up to eps over
 * the pivots before it: one that is not clear of that, nor zero after good ones, is for
 * the general path, which pivots. */
static inline V
GM_(pivot)(V p, double tol, GM_(verdict) *found)
{
    V zero = GM_(splat)(0.0), one = GM_(splat)(1.0), bound = GM_(splat)(tol);
    I doubtful = ~LT(bound, p * found->least);

    if (__builtin_expect(GM_(any)(doubtful), 0)) {
        found->sound &= ~doubtful | (LE(GM_(abs)(p), bound) &
                                     LE(GM_(splat)(1e-4), found->least));
        found->null |= doubtful;
        found->null_any = 1;
        found->least = GM_(select)(doubtful, found->least, GM_(min)(p, found->least));
        return GM_(select)(doubtful, zero, one / p);
    }
    found->least = GM_(min)(p, found->least);
    return one / p;
}

/* entries j, ..., j + block - 1 of a row of L D through the triangle of L there; where
 * a pivot was zero the column must be zero too */
static inline void
GM_(through)(int n, int j, int block, const V *L, const V *inv, double tol, V *row,
             GM_(verdict) *found)
{
    for (int c = 0; c < block; c++) {
        V s = row[j + c];
        for (int k = 0; k < c; k++) {
            s = FNMA(AT(L, n, j + c, j + k), row[j + k], s);
        }
        if (__builtin_expect(found->null_any, 0)) {
            I lost = EQ(inv[j + c], GM_(splat)(0.0));
            found->sound &= ~lost | LE(GM_(abs)(s), GM_(splat)(tol));
        }
        row[j + c] = s;
    }
}

/* L D L' = K from the lower triangle, root = D^-1/2; L may be K and has a unit diagonal
 * that is not written. A pivot within tol of zero counts as zero. Rows are kept as L D
 * until their block is done: one division a row is all that has to wait for another. */
STAGE GM_(verdict)
GM_(cholesky)(const gm_lapack *large, int n, const V *K, double tol, V *L, V *root)
{
    GM_(verdict) found = {.least = GM_(splat)(1.0)};
    found.null = LT(found.least, found.least);
    found.sound = ~found.null;
    found.null_any = 0;
#if GM_VL == 1
    if (large != NULL) { /* a zero pivot is left to the general path */
        found.least = gm_large_cholesky(large, n, K, tol, L);
        found.sound = LT(tol, found.least);
        return found;
    }
#endif
    (void)large;

    V *inv = root; /* 1 / D until the end */
    for (int i = 0; i < n; i += 4) {
        int rows = n - i < 4 ? n - i : 4;
        for (int a = 0; L != K && a < rows; a++) {
            for (int j = 0; j <= i + a; j++) {
                AT(L, n, i + a, j) = AT(K, n, i + a, j);
            }
        }
        for (int j = 0; j < i; j += 4) {
            if (rows == 4) {
                GM_(block)(j, n, &AT(L, n, i, 0), n, &AT(L, n, j, 0), n, &AT(L, n, i, j));
            } else {
                for (int a = 0; a < rows; a++) {
                    V *row = &AT(L, n, i + a, 0);
                    GM_(subtract_rows)(4, j, n, &AT(L, n, j, 0), row, row + j);
                }
            }
            for (int a = 0; a < rows; a++) {
                GM_(through)(n, j, 4, L, inv, tol, &AT(L, n, i + a, 0), &found);
            }
        }
        /* the diagonal block, lower part; then the rows become rows of L */
        for (int a = 0; a < rows; a++) {
            V *row = &AT(L, n, i + a, 0);
            V p = row[i + a], q = GM_(splat)(0.0);
            GM_(subtract_rows)(a, i, n, &AT(L, n, i, 0), row, row + i);
            GM_(through)(n, i, a, L, inv, tol, row, &found);
            for (int k = 0; k < i + a; k++) {
                V scaled = row[k] * inv[k];
                if (k & 1) {
                    q = FMA(row[k], scaled, q);
                } else {
                    p = FNMA(row[k], scaled, p);
                }
                row[k] = scaled;
            }
            inv[i + a] = GM_(pivot)(p - q, tol, &found);
        }
    }
    for (int i = 0; i < n; i++) {
        root[i] = GM_(sqrt)(root[i]);
    }
    return found;
}

/* B_k <- D^-1/2 L^-1 B_k for all rows of B */
STAGE void
GM_(whiten)(int n, int m, const V *L, const V *root, V *B)
{
    int k = 0;
    for (; k + 4 <= m; k += 4) {
        V *b0 = &AT(B, n, k, 0), *b1 = b0 + n, *b2 = b1 + n, *b3 = b2 + n;
        for (int i = 0; i < n; i += 4) {
            int block = n - i < 4 ? n - i : 4;
            if (block == 4) {
                GM_(block)(i, n, b0, n, &AT(L, n, i, 0), n, b0 + i);
            }
            for (int c = 0; c < block; c++) {
                const V *row = &AT(L, n, i + c, 0);
                V s0 = b0[i + c], s1 = b1[i + c], s2 = b2[i + c], s3 = b3[i + c];
                for (int j = block == 4 ? i : 0; j < i + c; j++) {
                    V l = row[j];
                    s0 = FNMA(l, b0[j], s0);
                    s1 = FNMA(l, b1[j], s1);
                    s2 = FNMA(l, b2[j], s2);
                    s3 = FNMA(l, b3[j], s3);
                }
                b0[i + c] = s0;
                b1[i + c] = s1;
                b2[i + c] = s2;
                b3[i + c] = s3;
            }
        }
        for (int i = 0; i < n; i++) {
            b0[i] *= root[i];
            b1[i] *= root[i];
            b2[i] *= root[i];
            b3[i] *= root[i];
        }
    }
    for (; k < m; k++) {
        GM_(forward)(n, L, root, &AT(B, n, k, 0));
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
        V vi = v[i];
        s0 = FMA(vi, y0[i], s0);
        s1 = FMA(vi, y1[i], s1);
        s2 = FMA(vi, y2[i], s2);
        s3 = FMA(vi, y3[i], s3);
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
        V vi = v[i];
        V t0 = y0[i], t1 = y1[i], t2 = y2[i], t3 = y3[i];
        y0[i] = FNMA(s0, vi, t0);
        y1[i] = FNMA(s1, vi, t1);
        y2[i] = FNMA(s2, vi, t2);
        y3[i] = FNMA(s3, vi, t3);
    }
}

/* B = L Q1' in place for the first m rows: row j holds j + 1 entries of L and then
 * reflector j. All reflectors are applied to `more` further rows. */
STAGE void
GM_(orth)(int n, int m, int more, V *B, V *tau)
{
    V zero = GM_(splat)(0.0), one = GM_(splat)(1.0);

    for (int j = 0; j < m; j++) {
        V *x = &AT(B, n, j, j), alpha = x[0];
        V tail = GM_(square)(n - j - 1, x + 1);
        V size = GM_(sqrt)(FMA(alpha, alpha, tail));
        V beta = GM_(select)(LT(zero, alpha), -size, size);
        V head = alpha - beta, scale = one / head;
        int k = j + 1;

        for (int i = 1; i < n - j; i++) {
            x[i] *= scale;
        }
        x[0] = beta;
        tau[j] = -head / beta;
        for (; k + 4 <= m + more; k += 4) {
            GM_(reflect4)(n - j, x, tau[j], &AT(B, n, k, j), n);
        }
        for (; k < m + more; k++) {
            GM_(reflect)(n - j, x, tau[j], &AT(B, n, k, j));
        }
    }
}

/* W <- inverse of the lower triangle of B */
STAGE void
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

/* A group of systems on its way: everything is in scaled form, M^ = D M D, A^ = S A D,
 * as in gm_system.h. */
typedef struct {
    int n, m, lanes, has_C;
    ptrdiff_t first;
    const gm_lapack *large; /* NULL below the LAPACK threshold */
    I pass;                 /* lanes that are still in */
    I null;                 /* M is singular */
    I augmented, refine;    /* lanes that go on with M + A'A, that get a refinement step */
    int augmented_any, refine_any, mirrored;

    V *raw, *M, *L, *root;        /* M as it came; M^, lower half; its factor */
    V *LK, *rootK;                /* of M^ + A^'A^ in the augmented lanes; LK is raw */
    const V *factor, *factor_root; /* of the two the one in use */
    V *A, *B, *tau, *W;           /* A^; its whitened rows and the right side, QR; R^-T */
    V *d, *s, *Q, *C, *f, *b, *x, *mu, *size;
    V *y, *out, *r1, *dx; /* scratch, n */
    V *lambda, *r2, *dmu; /* scratch, m */
    V least;              /* smallest pivot of the factor in use */
    double *single;       /* scratch for one system */
} GM_(group);

static void
GM_(place)(GM_(group) *g, void *work)
{
    size_t n = (size_t)g->n, m = (size_t)g->m;
    V *next = (V *)work;

#define TAKE(field, count) (g->field = next, next += (count))
    TAKE(raw, n * n);
    TAKE(M, n * n);
    TAKE(L, n * n);
    TAKE(A, m * n);
    TAKE(B, (m + 1) * n);
    TAKE(W, m * m);
    TAKE(d, n);
    TAKE(root, n);
    TAKE(rootK, n);
    TAKE(Q, n);
    TAKE(C, n);
    TAKE(f, n);
    TAKE(x, n);
    TAKE(y, n);
    TAKE(out, n);
    TAKE(r1, n);
    TAKE(dx, n);
    TAKE(s, m);
    TAKE(b, m);
    TAKE(mu, m);
    TAKE(size, m);
    TAKE(tau, m);
    TAKE(lambda, m);
    TAKE(r2, m);
    TAKE(dmu, m);
#undef TAKE
    g->LK = g->raw;
    g->single = (double *)(void *)next;
}

/* scales of coordinates where a lane has a massless one: lane by lane */
STAGE void
GM_(scale_massless)(const GM_(group) *g, I massless)
{
    int n = g->n, m = g->m;
    double *M = g->single, *A = M + (size_t)n * (size_t)n;
    double *d = A + (size_t)m * (size_t)n, *seen = d + n;

    for (int l = 0; l < GM_VL; l++) {
        if (!LANE(massless, l)) {
            continue;
        }
        for (size_t e = 0; e < (size_t)n * (size_t)n; e++) {
            M[e] = LANE(g->raw[e], l);
        }
        for (size_t e = 0; e < (size_t)m * (size_t)n; e++) {
            A[e] = LANE(g->B[e], l);
        }
        gm_scale_coordinates(n, m, M, A, d, seen);
        for (int i = 0; i < n; i++) {
            LANE(g->d[i], l) = d[i];
        }
    }
}

/* gather and scale */
STAGE void
GM_(read)(GM_(group) *g, const gm_problem *p)
{
    int n = g->n, m = g->m, lanes = g->lanes;
    ptrdiff_t first = g->first;
    V zero = GM_(splat)(0.0), *d = g->d, *raw = g->raw, *M = g->M;

    V nan_sum = GM_(gather)(&p->M, first, lanes, n, n, raw);
    nan_sum += GM_(gather)(&p->A, first, lanes, m, n, g->B);
    nan_sum += GM_(gather)(&p->Q, first, lanes, n, 1, g->Q);
    nan_sum += GM_(gather)(&p->b, first, lanes, m, 1, g->b);
    if (g->has_C) {
        nan_sum += GM_(gather)(&p->C, first, lanes, n, 1, g->C);
    } else {
        for (int i = 0; i < n; i++) {
            g->C[i] = zero;
        }
    }
    g->pass = EQ(nan_sum, zero);

    /* coordinates; masses far from one and massless coordinates are rare */
    V heaviest = zero, lightest = GM_(splat)(INFINITY);
    for (int i = 0; i < n; i++) {
        V mass = AT(raw, n, i, i);
        heaviest = GM_(max)(mass, heaviest);
        lightest = GM_(min)(mass, lightest);
        d[i] = GM_(pow2_rsqrt)(mass);
    }
    g->refine = ~LE(heaviest, GM_(splat)(1e2) * lightest);
    g->pass &= LT(heaviest, GM_(splat)(1e200));
    if (GM_(any)(g->pass & ~LT(GM_(splat)(1e-200), lightest))) {
        I massless = LT(zero, zero);
        for (int i = 0; i < n; i++) {
            V mass = AT(raw, n, i, i);
            massless |= EQ(mass, zero);
            g->pass &= EQ(mass, zero) | LT(GM_(splat)(1e-200), mass);
        }
        GM_(scale_massless)(g, massless & g->pass);
    }

    /* M^ = D M D; asymmetry beyond rounding is for the general path, and what rounding
     * leaves is averaged */
    V gaps = zero;
    for (int i = 0; i < n; i++) {
        V di = d[i];
        for (int j = 0; j < i; j++) {
            V scale = di * d[j], lower = AT(raw, n, i, j);
            V gap = (AT(raw, n, j, i) - lower) * scale;
            gaps = FMA(gap, gap, gaps);
            AT(M, n, i, j) = lower * scale;
        }
        AT(M, n, i, i) = AT(raw, n, i, i) * di * di;
    }
    g->pass &= LE(gaps, GM_(splat)(1e-21));
    if (GM_(any)(LT(zero, gaps))) {
        for (int i = 0; i < n; i++) {
            for (int j = 0; j < i; j++) {
                V half = d[i] * d[j] * GM_(splat)(0.5);
                AT(M, n, i, j) = (AT(raw, n, i, j) + AT(raw, n, j, i)) * half;
            }
        }
    }

    /* A^ = S A D */
    V shortest = GM_(splat)(INFINITY), longest = zero;
    for (int k = 0; k < m; k++) {
        V *row = &AT(g->A, n, k, 0);
        for (int j = 0; j < n; j++) {
            row[j] = AT(g->B, n, k, j) * d[j];
        }
        V length2 = GM_(square)(n, row), scale = GM_(pow2_rsqrt)(length2);
        shortest = GM_(min)(length2, shortest);
        longest = GM_(max)(length2, longest);
        g->s[k] = scale;
        g->size[k] = length2;
        g->b[k] *= scale;
        for (int j = 0; j < n; j++) {
            row[j] *= scale;
        }
    }
    g->pass &= LT(GM_(splat)(1e-200), shortest) & LT(longest, GM_(splat)(1e200));
    if (p->row_scale.data != NULL) {
        /* anywhere near a row's own scale of zero: the general path decides */
        V reach = zero;
        for (int j = 0; j < n; j++) {
            reach = GM_(max)(d[j], reach);
        }
        nan_sum = GM_(gather)(&p->row_scale, first, lanes, m, 1, g->lambda);
        g->pass &= EQ(nan_sum, zero);
        for (int k = 0; k < m; k++) {
            V foot = g->lambda[k] * reach * GM_(splat)(1e-3);
            g->pass &= LT(foot * foot, g->size[k]);
        }
    }
    for (int i = 0; i < n; i++) {
        g->Q[i] *= d[i];
        g->C[i] *= d[i];
        g->f[i] = g->Q[i] + g->C[i];
    }
}

/* M^ x needs the upper half too */
STAGE void
GM_(mirror)(GM_(group) *g)
{
    int n = g->n;

    for (int i = 0; i < n && !g->mirrored; i++) {
        for (int j = 0; j < i; j++) {
            AT(g->M, n, j, i) = AT(g->M, n, i, j);
        }
    }
    g->mirrored = 1;
}

/* y <- f, in the augmented lanes f + A^'b */
STAGE void
GM_(augmented_force)(const GM_(group) *g, const V *f, const V *b, V *y)
{
    int n = g->n;

    for (int i = 0; i < n; i++) {
        y[i] = f[i];
    }
    if (g->augmented_any) {
        GM_(add_columns)(g->m, n, n, g->A, b, y);
        for (int i = 0; i < n; i++) {
            y[i] = GM_(select)(g->augmented, y[i], f[i]);
        }
    }
}

/* factor M^, or M^ + A^'A^ where M^ is weak */
STAGE void
GM_(factor_mass)(GM_(group) *g)
{
    int n = g->n;
    const gm_lapack *large = g->large;
    double tol = 32.0 * n * GM_EPS;
    GM_(verdict) found = GM_(cholesky)(large, n, g->M, tol, g->L, g->root);

    g->pass &= found.sound;
    g->null = found.null;
    g->least = found.least;
    g->augmented = found.null | ~LE(GM_(splat)(1e-4), found.least);
    g->refine |= g->augmented | ~LE(GM_(splat)(0.1), found.least);
    g->augmented_any = GM_(any)(g->augmented & g->pass);
    g->refine_any = GM_(any)(g->refine & g->pass);
    g->factor = g->L;
    g->factor_root = g->root;
    if (!g->augmented_any) {
        g->pass &= ~found.null;
        return;
    }
    GM_LARGE_OR(augment, (large, n, g->m, g->M, g->A, g->LK),
                GM_(augment)(n, g->m, g->M, g->A, g->augmented, g->LK));
    found = GM_(cholesky)(large, n, g->LK, tol, g->LK, g->rootK);
    /* far from the kernels that the general path looks for */
    V floor = GM_(select)(g->null, GM_(splat)(1e-8), GM_(splat)(100.0 * n * GM_EPS));
    g->pass &= found.sound & ~found.null & LE(floor, found.least);
    g->least = found.least;
    g->factor = g->LK;
    g->factor_root = g->rootK;
}

/* whiten and orthogonalise the rows, the right side with them as row m of B; keep the
 * lanes in which the rows are far from depending on each other */
STAGE void
GM_(factor_rows)(GM_(group) *g, double given_rtol)
{
    int n = g->n, m = g->m;
    const gm_lapack *large = g->large;
    V zero = GM_(splat)(0.0), *B = g->B, *W = g->W, *sums = g->lambda;

    for (size_t e = 0; e < (size_t)m * (size_t)n; e++) {
        B[e] = g->A[e];
    }
    GM_(augmented_force)(g, g->f, g->b, &AT(B, n, m, 0));
    GM_LARGE_OR(whiten, (large, n, m + 1, g->factor, B),
                GM_(whiten)(n, m + 1, g->factor, g->factor_root, B));
    for (int k = 0; k < m; k++) {
        g->size[k] = GM_(square)(n, &AT(B, n, k, 0));
        sums[k] = zero;
    }
    GM_LARGE_OR(orth, (large, n, m, 1, B, g->tau, (double *)(void *)W),
                GM_(orth)(n, m, 1, B, g->tau));
    GM_(invert)(n, m, B, W);

    V worst = GM_(splat)(INFINITY), largest = zero;
    for (int i = 0; i < m; i++) {
        V r = AT(B, n, i, i);
        worst = GM_(min)(r * r - GM_(splat)(1e-6) * g->size[i], worst);
        for (int j = 0; j <= i; j++) {
            sums[j] += GM_(abs)(AT(W, m, i, j));
        }
    }
    g->pass &= LE(zero, worst);
    for (int j = 0; j < m; j++) {
        largest = GM_(max)(sums[j] * sums[j] * g->size[j], largest);
    }
    /* ||R^-1||^2 against its bounds */
    double rtol = given_rtol >= 0.0 ? given_rtol : 16.0 * n * GM_EPS;
    double reach = 1e-2 / (rtol > 1e-12 ? rtol : 1e-12);
    g->pass &= LE(largest, GM_(splat)(1e12)) &
               LE(largest, g->least * GM_(splat)(reach * reach));
}

/* x holds Q'L^-1 f: along the rows put what b asks for, mu from the difference, and
 * go back to coordinates */
STAGE void
GM_(finish)(const GM_(group) *g, const V *b, V *x, V *mu)
{
    int n = g->n, m = g->m;
    const gm_lapack *large = g->large;
    V zero = GM_(splat)(0.0), *y = g->y;

    for (int k = 0; k < m; k++) {
        const V *row = &AT(g->W, m, k, 0);
        V sum = zero;
        for (int j = 0; j <= k; j++) {
            sum = FMA(row[j], b[j], sum);
        }
        y[k] = sum - x[k];
        x[k] = sum;
        mu[k] = zero;
    }
    for (int k = 0; k < m; k++) {
        const V *row = &AT(g->W, m, k, 0);
        for (int j = 0; j <= k; j++) {
            mu[j] = FMA(row[j], y[k], mu[j]);
        }
    }
    for (int j = m - 1; j >= 0; j--) {
        GM_(reflect)(n - j, &AT(g->B, n, j, j), g->tau[j], x + j);
    }
    GM_LARGE_OR(solve, (large, n, g->factor, 1, x),
                GM_(backward)(n, g->factor, g->factor_root, x));
}

/* x, mu of M x = f + A' mu, A x = b by the factors, one pass */
STAGE void
GM_(solve_once)(const GM_(group) *g, const V *f, const V *b, V *x, V *mu)
{
    int n = g->n;
    const gm_lapack *large = g->large;

    GM_(augmented_force)(g, f, b, x);
    GM_LARGE_OR(solve, (large, n, g->factor, 0, x),
                GM_(forward)(n, g->factor, g->factor_root, x));
    for (int j = 0; j < g->m; j++) {
        GM_(reflect)(n - j, &AT(g->B, n, j, j), g->tau[j], x + j);
    }
    GM_(finish)(g, b, x, mu);
}

/* one refinement step on the true M in the lanes whose masses call for it */
STAGE void
GM_(improve)(GM_(group) *g, const V *f, const V *b, V *x, V *mu)
{
    int n = g->n, m = g->m;
    const gm_lapack *large = g->large;

    if (!g->refine_any) {
        return;
    }
    GM_(mirror)(g);
    for (int i = 0; i < n; i++) {
        g->r1[i] = f[i];
    }
    for (int k = 0; k < m; k++) {
        g->r2[k] = b[k];
    }
    GM_(add_columns)(m, n, n, g->A, mu, g->r1);
    GM_LARGE_OR(subtract_rows, (large, n, n, g->M, x, g->r1),
                GM_(subtract_rows)(n, n, n, g->M, x, g->r1));
    GM_LARGE_OR(subtract_rows, (large, m, n, g->A, x, g->r2),
                GM_(subtract_rows)(m, n, n, g->A, x, g->r2));
    GM_(solve_once)(g, g->r1, g->r2, g->dx, g->dmu);
    for (int i = 0; i < n; i++) {
        x[i] = GM_(select)(g->refine, x[i] + g->dx[i], x[i]);
    }
    for (int k = 0; k < m; k++) {
        mu[k] = GM_(select)(g->refine, mu[k] + g->dmu[k], mu[k]);
    }
}

/* out <- (M x - f) / d = (c + A' mu) / d, by the form that adds up smaller terms */
STAGE void
GM_(force)(GM_(group) *g, const V *f, const V *c)
{
    int n = g->n, m = g->m;
    const gm_lapack *large = g->large;
    V zero = GM_(splat)(0.0), by_mass = zero, by_rows = zero, *out = g->out, *y = g->r1;

    for (int i = 0; i < n; i++) {
        by_mass += GM_(abs)(g->x[i]) + GM_(abs)(f[i]);
        by_rows += GM_(abs)(c[i]);
        out[i] = c[i];
    }
    for (int k = 0; k < m; k++) {
        by_rows += GM_(abs)(g->mu[k]);
    }
    I rows = LE(by_rows, by_mass);
    GM_(add_columns)(m, n, n, g->A, g->mu, out);
    if (GM_(any)(g->pass & ~rows)) {
        GM_(mirror)(g);
        for (int i = 0; i < n; i++) {
            y[i] = f[i];
        }
        GM_LARGE_OR(subtract_rows, (large, n, n, g->M, g->x, y),
                    GM_(subtract_rows)(n, n, n, g->M, g->x, y));
        for (int i = 0; i < n; i++) {
            out[i] = GM_(select)(rows, out[i], zero - y[i]);
        }
    }
    for (int i = 0; i < n; i++) {
        out[i] *= GM_(pow2_inverse)(g->d[i]);
    }
}

STAGE void
GM_(write_multipliers)(const GM_(group) *g, const gm_output *v, unsigned done)
{
    for (int k = 0; k < g->m; k++) {
        g->lambda[k] = g->mu[k] * g->s[k];
    }
    GM_(scatter)(v, g->first, done, g->m, g->lambda);
}

STAGE void
GM_(write_zwang)(const GM_(group) *g, const gm_output *v, unsigned done)
{
    int n = g->n;
    const gm_lapack *large = g->large;
    V z, *force = g->dx, *y = g->r1;

    for (int i = 0; i < n; i++) {
        force[i] = g->out[i] * g->d[i];
        y[i] = force[i];
    }
    GM_LARGE_OR(solve, (large, n, g->L, 0, y), GM_(forward)(n, g->L, g->root, y));
    z = GM_(square)(n, y);
    for (int l = 0; l < g->lanes && GM_(any)(g->null & g->pass); l++) {
        if (LANE(g->null, l) && (done >> l & 1u)) {
            LANE(z, l) = gm_lanes_singular_zwang(
                n, (const double *)(const void *)g->M + l,
                (const double *)(const void *)g->Q + l,
                (const double *)(const void *)force + l, GM_VL, g->single);
        }
    }
    GM_(scatter)(v, g->first, done, 1, &z);
}

/* the solved lanes in the caller's units; x and mu are overwritten by the parts */
STAGE void
GM_(write)(GM_(group) *g, const gm_motion *r, unsigned done)
{
    int n = g->n, m = g->m;
    ptrdiff_t first = g->first;
    V zero = GM_(splat)(0.0);

    if (r->qdd.data != NULL) {
        for (int i = 0; i < n; i++) {
            g->out[i] = g->x[i] * g->d[i];
        }
        GM_(scatter)(&r->qdd, first, done, n, g->out);
    }
    if (r->residual.data != NULL) {
        for (int k = 0; k < m; k++) {
            g->lambda[k] = g->b[k];
        }
        GM_(subtract_rows)(m, n, n, g->A, g->x, g->lambda);
        for (int k = 0; k < m; k++) {
            g->lambda[k] = (zero - g->lambda[k]) * GM_(pow2_inverse)(g->s[k]);
        }
        GM_(scatter)(&r->residual, first, done, m, g->lambda);
    }
    if (r->multipliers_total.data != NULL) {
        GM_(write_multipliers)(g, &r->multipliers_total, done);
    }
    if (!g->has_C && r->multipliers.data != NULL) {
        GM_(write_multipliers)(g, &r->multipliers, done);
    }
    if (r->Q_c.data != NULL || r->zwang.data != NULL ||
        (!g->has_C && r->Q_ideal.data != NULL)) {
        GM_(force)(g, g->Q, g->C);
        GM_(scatter)(&r->Q_c, first, done, n, g->out);
        if (!g->has_C) {
            GM_(scatter)(&r->Q_ideal, first, done, n, g->out);
        }
        if (r->zwang.data != NULL) {
            GM_(write_zwang)(g, &r->zwang, done);
        }
    }
    /* the ideal and the non-ideal part by solves of their own; f serves as zero */
    for (int i = 0; i < n; i++) {
        g->f[i] = zero;
        g->out[i] = zero;
    }
    if (g->has_C && (r->Q_ideal.data != NULL || r->multipliers.data != NULL)) {
        GM_(solve_once)(g, g->Q, g->b, g->x, g->mu);
        GM_(improve)(g, g->Q, g->b, g->x, g->mu);
        GM_(write_multipliers)(g, &r->multipliers, done);
        GM_(force)(g, g->Q, g->f);
        GM_(scatter)(&r->Q_ideal, first, done, n, g->out);
    }
    if (g->has_C && r->K.data != NULL) {
        for (int k = 0; k < m; k++) {
            g->b[k] = zero;
        }
        GM_(solve_once)(g, g->C, g->b, g->x, g->mu);
        GM_(improve)(g, g->C, g->b, g->x, g->mu);
        GM_(force)(g, g->f, g->C);
    }
    GM_(scatter)(&r->K, first, done, n, g->out);

    for (int l = 0; l < g->lanes; l++) {
        ptrdiff_t item = first + l;
        if (!(done >> l & 1u)) {
            continue;
        }
        gm_put_status(&r->status, item, GM_OK);
        for (int k = 0; k < m && r->multipliers_unique.data != NULL; k++) {
            gm_put_flag(&r->multipliers_unique, item, k, 1);
        }
        for (int k = 0; k < m && r->vanished.data != NULL; k++) {
            gm_put_flag(&r->vanished, item, k, 0);
        }
        if (r->rank.data != NULL) {
            gm_put_int(&r->rank, item, m);
        }
        if (r->nullity.data != NULL) {
            gm_put_int(&r->nullity, item, 0);
        }
    }
}

STAGE unsigned
GM_(run)(const gm_lapack *lp, int n, int m, const gm_problem *p, ptrdiff_t first,
         int lanes, const gm_motion *r, void *work)
{
    GM_(group) group = {.n = n, .m = m, .lanes = lanes, .first = first}, *g = &group;
    V zero = GM_(splat)(0.0), finite = zero;

    g->has_C = p->C.data != NULL;
    g->large = n >= GM_LAPACK_MIN && lp != NULL && lp->dpotrf != NULL ? lp : NULL;
    GM_(place)(g, work);
    GM_(read)(g, p);
    GM_(factor_mass)(g);
    GM_(factor_rows)(g, p->rtol);
    for (int i = 0; i < n; i++) {
        g->x[i] = AT(g->B, n, m, i);
    }
    GM_(finish)(g, g->b, g->x, g->mu);
    GM_(improve)(g, g->f, g->b, g->x, g->mu);
    for (int i = 0; i < n; i++) {
        finite = FMA(g->x[i] * g->d[i], zero, finite);
    }
    for (int k = 0; k < m; k++) {
        finite = FMA(g->mu[k] * g->s[k], zero, finite);
    }
    g->pass &= EQ(finite, zero);

    unsigned done = GM_(lanes)(g->pass) & ((1u << lanes) - 1);
    if (done != 0) {
        GM_(write)(g, r, done);
    }
    return done;
}

unsigned
GM_KERNEL(const gm_lapack *lp, int n, int m, const gm_problem *p, ptrdiff_t first,
          int lanes, const gm_motion *r, void *work)
{
#ifdef GM_SMALL
#define SIZE(N, M)                                                                      \
    if (n == N && m == M) {                                                             \
        return GM_(run)(lp, N, M, p, first, lanes, r, work);                            \
    }
    GM_SMALL_SIZES(SIZE)
#undef SIZE
    return 0;
#else
    return GM_(run)(lp, n, m, p, first, lanes, r, work);
#endif
}

#undef STAGE
#undef V
#undef I
#undef AT
#undef LT
#undef LE
#undef EQ
#undef LANE
#undef CHUNK
#undef BITS
#undef FMA
#undef FNMA
#undef GM_LARGE_OR
