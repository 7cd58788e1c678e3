/* The only place where a LAPACK or BLAS name is spelt.
 *
 * The core calls LAPACK through this table and never links it. The owner fills the
 * table once, from whatever LAPACK it has (32-bit integers), and keeps it constant.
 * A table whose `dpotrf` is NULL is empty: the core then uses its own loops. */
#ifndef GM_LAPACK_H
#define GM_LAPACK_H

/* X(name, argument types). The order is the order of the table's fields. */
#define GM_LAPACK_ROUTINES(X)                                                           \
    X(dpotrf, (char *uplo, int *n, double *a, int *lda, int *info))                     \
    X(dgeqrf, (int *m, int *n, double *a, int *lda, double *tau, double *work,          \
               int *lwork, int *info))                                                  \
    X(dgeqp3, (int *m, int *n, double *a, int *lda, int *jpvt, double *tau,             \
               double *work, int *lwork, int *info))                                    \
    X(dormqr, (char *side, char *trans, int *m, int *n, int *k, double *a, int *lda,    \
               double *tau, double *c, int *ldc, double *work, int *lwork, int *info))

#define GM_BLAS_ROUTINES(X)                                                             \
    X(dgemm, (char *ta, char *tb, int *m, int *n, int *k, double *alpha, double *a,     \
              int *lda, double *b, int *ldb, double *beta, double *c, int *ldc))        \
    X(dsyrk, (char *uplo, char *trans, int *n, int *k, double *alpha, double *a,        \
              int *lda, double *beta, double *c, int *ldc))                             \
    X(dtrsm, (char *side, char *uplo, char *ta, char *diag, int *m, int *n,             \
              double *alpha, double *a, int *lda, double *b, int *ldb))                 \
    X(dgemv, (char *trans, int *m, int *n, double *alpha, double *a, int *lda,          \
              double *x, int *incx, double *beta, double *y, int *incy))                \
    X(dtrsv, (char *uplo, char *trans, char *diag, int *n, double *a, int *lda,         \
              double *x, int *incx))

#define GM_LAPACK_FIELD(name, args) void(*name) args;
typedef struct {
    GM_LAPACK_ROUTINES(GM_LAPACK_FIELD)
    GM_BLAS_ROUTINES(GM_LAPACK_FIELD)
} gm_lapack;
#undef GM_LAPACK_FIELD

#endif
