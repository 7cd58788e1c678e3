/* Checks that count failures instead of stopping, seeded random numbers, and memory
 * with guard zones. Every test program ends with `return check_report();`. */
#ifndef GM_CHECK_H
#define GM_CHECK_H

/* posix_memalign under -std=c11; so this header comes first */
#define _POSIX_C_SOURCE 200809L

#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EPS 2.220446049250313e-16
#define AT(X, ld, i, j) (X)[(size_t)(i) * (size_t)(ld) + (size_t)(j)]
#define LENGTH(x) ((int)(sizeof(x) / sizeof *(x)))

/* unbuffered: what a sanitizer stops must not be lost */
#define say(...) ((void)fprintf(stderr, __VA_ARGS__))

static long check_count, check_failures;
static char check_scene[160];

/* what the next checks are about; printed with a failure */
__attribute__((format(printf, 1, 2))) static inline void
check_note(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(check_scene, sizeof check_scene, format, arguments);
    va_end(arguments);
}

static inline int
check_that(int true_, const char *text, const char *file, int line)
{
    check_count++;
    if (!true_ && ++check_failures <= 30) {
        say("%s:%d: %s  [%s]\n", file, line, text, check_scene);
    }
    return true_;
}

static inline int
check_below(double x, double bound, const char *text, const char *file, int line)
{
    int good = check_that(x <= bound, text, file, line);
    if (!good && check_failures <= 30) {
        say("    %.3g is not below %.3g\n", x, bound);
    }
    return good;
}

#define CHECK(condition) check_that((condition) != 0, #condition, __FILE__, __LINE__)
/* x <= bound; NaN fails */
#define CHECK_BELOW(x, bound) check_below((x), (bound), #x, __FILE__, __LINE__)

static inline int
check_report(void)
{
    say("%ld checks, %ld failures\n", check_count, check_failures);
    return check_failures != 0 || check_count == 0;
}

/* --- random numbers, the same on every machine --- */

static uint64_t check_seed = 1;

static inline uint64_t
random_bits(void)
{
    uint64_t z = (check_seed += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* uniform in (-1, 1) */
static inline double
uniform(void)
{
    return ldexp((double)(random_bits() >> 11), -52) - 1.0;
}

static inline void
fill_uniform(size_t n, double *x)
{
    for (size_t i = 0; i < n; i++) {
        x[i] = uniform();
    }
}

/* --- memory --- */

enum { GUARD = 8 };

static inline void *
need(void *p)
{
    if (p == NULL) {
        say("out of memory\n");
        exit(2);
    }
    return p;
}

/* exactly n doubles, uninitialised */
static inline double *
doubles(size_t n)
{
    return need(malloc(n ? n * sizeof(double) : 1));
}

static inline double *
copy_of(size_t n, const double *x)
{
    double *y = doubles(n);
    memcpy(y, x, n * sizeof *x);
    return y;
}

/* n doubles of 999 between two guard zones of 999 */
static inline double *
guarded(size_t n)
{
    double *block = doubles(n + 2 * GUARD);
    for (size_t i = 0; i < n + 2 * GUARD; i++) {
        block[i] = 999.0;
    }
    return block + GUARD;
}

static inline int
guards_hold(const double *x, size_t n)
{
    int hold = 1;
    for (int i = 1; i <= GUARD; i++) {
        hold = hold && x[-i] == 999.0 && x[n + (size_t)i - 1] == 999.0;
    }
    return hold;
}

static inline void
free_guarded(double *x)
{
    free(x - GUARD);
}

#endif
