/* Programs: every operation alone and in blocks, strides, and code that must be refused. */
#include <math.h>
#include <string.h>

#include "check.h"
#include "gm_program.h"

enum { STATES = 41 };

static double work[64 * 16];

static gm_program
of(const gm_instruction *code, int count, const double *constants, int registers)
{
    gm_program p = {code, constants, count, registers, 3, 1};
    return p;
}

static double
expected(int code, double a, double b, double c)
{
    switch (code) {
    case GM_NEG: return -a;
    case GM_ABS: return fabs(a);
    case GM_SIGN: return a > 0.0 ? 1.0 : a < 0.0 ? -1.0 : a;
    case GM_SQRT: return sqrt(a);
    case GM_EXP: return exp(a);
    case GM_LOG: return log(a);
    case GM_SIN: return sin(a);
    case GM_COS: return cos(a);
    case GM_TAN: return tan(a);
    case GM_ARCSIN: return asin(a);
    case GM_ARCCOS: return acos(a);
    case GM_ARCTAN: return atan(a);
    case GM_SINH: return sinh(a);
    case GM_COSH: return cosh(a);
    case GM_TANH: return tanh(a);
    case GM_ADD: return a + b;
    case GM_SUB: return a - b;
    case GM_MUL: return a * b;
    case GM_DIV: return a / b;
    case GM_POW: return pow(a, b);
    case GM_ARCTAN2: return atan2(a, b);
    case GM_MINIMUM: return isnan(a) || isnan(b) ? a + b : fmin(a, b);
    case GM_MAXIMUM: return isnan(a) || isnan(b) ? a + b : fmax(a, b);
    case GM_LESS: return (double)(a < b);
    case GM_LESS_EQUAL: return (double)(a <= b);
    case GM_EQUAL: return (double)(a == b);
    default: return a != 0.0 ? b : c;
    }
}

static int
same(double x, double y)
{
    return (isnan(x) && isnan(y)) || x == y;
}

static void
every_operation(void)
{
    static const double special[] = {0.0, -0.0, 0.3, -0.7, 1.0, -2.5, 1e300, -1e-300, NAN, INFINITY};
    double a[STATES], b[STATES], c[STATES], out[STATES];
    enum { SPECIAL = sizeof special / sizeof *special };

    for (int i = 0; i < STATES; i++) {
        a[i] = special[i % SPECIAL];
        b[i] = special[(i / 3 + i) % SPECIAL];
        c[i] = special[(7 * i + 1) % SPECIAL];
    }
    for (int32_t code = GM_NEG; code < GM_OPERATIONS; code++) {
        /* the result may take the register of an operand */
        for (int32_t d = 0; d < 4; d++) {
            const gm_instruction lines[] = {{GM_INPUT, 0, 0, 0, 0}, {GM_INPUT, 1, 1, 0, 0},
                                            {GM_INPUT, 2, 2, 0, 0}, {code, d, 0, 1, 2},
                                            {GM_STORE, 0, d, 0, 0}};
            gm_program p = of(lines, 5, NULL, 4);
            const ptrdiff_t step = sizeof(double);
            gm_input in[3] = {{(char *)a, step, 0, 0}, {(char *)b, step, 0, 0},
                              {(char *)c, step, 0, 0}};
            for (int count = 1; count <= STATES; count += count < 20 ? 1 : 7) {
                gm_output to = {(char *)out, step, 0, 0};
                for (int i = 0; i < STATES; i++) {
                    out[i] = 999.0;
                }
                gm_program_run(&p, count, in, &to, work);
                int good = 1;
                for (int i = 0; i < STATES; i++) {
                    double want = i < count ? expected(code, a[i], b[i], c[i]) : 999.0;
                    good = good && same(out[i], want);
                }
                CHECK(good);
            }
        }
    }
}

static void
strides_and_structure(void)
{
    /* out = [[x[1], 5], [untouched, y x[1]]], x reversed in memory, y shared */
    static const gm_instruction lines[] = {
        {GM_INPUT, 0, 0, 1, 0}, {GM_STORE, 0, 0, 0, 0},    {GM_CONSTANT, 1, 0, 0, 0},
        {GM_STORE, 0, 1, 0, 1}, {GM_INPUT, 1, 1, 0, 0},    {GM_MUL, 0, 0, 1, 0},
        {GM_STORE, 0, 0, 1, 1}};
    static const double five = 5.0;
    gm_program p = of(lines, 7, &five, 2);
    double x[2 * STATES], y = 3.0, out[STATES][2][2];
    const ptrdiff_t step = sizeof(double);
    gm_input in[3] = {{(char *)(x + 2 * STATES - 1), -2 * step, -step, 0},
                      {(char *)&y, 0, 0, 0},
                      {(char *)&y, 0, 0, 0}};
    gm_output to = {(char *)out, 4 * step, 2 * step, step};

    for (int i = 0; i < 2 * STATES; i++) {
        x[i] = i;
    }
    for (int i = 0; i < STATES; i++) {
        out[i][1][0] = 999.0;
    }
    gm_program_run(&p, STATES, in, &to, work);
    int good = 1;
    for (int i = 0; i < STATES; i++) {
        double mine = x[2 * STATES - 2 - 2 * i];
        good = good && out[i][0][0] == mine && out[i][0][1] == 5.0 && out[i][1][0] == 999.0 &&
               out[i][1][1] == 3.0 * mine;
    }
    CHECK(good);
    gm_program_run(&p, 0, in, &to, work);
    CHECK(gm_program_work(&p) >= 2);
}

static void
invalid_code(void)
{
    static const int32_t shapes[] = {2, 1, 1, 1, 3, 3, 2, 2};
    unsigned char seen[4];
    const gm_instruction good[] = {{GM_INPUT, 0, 2, 2, 2}, {GM_STORE, 0, 0, 1, 1}};
    gm_program p = of(good, 2, NULL, 4);

    CHECK(gm_program_valid(&p, 0, shapes, seen));
    const gm_instruction bad[] = {
        {GM_OPERATIONS, 0, 0, 0, 0}, {-1, 0, 0, 0, 0},       {GM_NEG, 0, 1, 0, 0},
        {GM_NEG, 4, 0, 0, 0},        {GM_ADD, 1, 0, 2, 0},   {GM_WHERE, 1, 0, 0, 3},
        {GM_INPUT, 0, 3, 0, 0},      {GM_INPUT, 0, 0, 2, 0}, {GM_INPUT, 0, 0, 0, 1},
        {GM_INPUT, 0, 0, -1, 0},     {GM_CONSTANT, 0, 0, 0, 0}, {GM_STORE, 1, 0, 0, 0},
        {GM_STORE, 0, 0, 2, 0},      {GM_STORE, 0, 1, 0, 0}, {GM_INPUT, -1, 0, 0, 0}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const gm_instruction lines[] = {good[0], bad[i]};
        p = of(lines, 2, NULL, 4);
        CHECK(!gm_program_valid(&p, 0, shapes, seen));
    }
}

int
main(void)
{
    every_operation();
    strides_and_structure();
    invalid_code();
    return check_report();
}
