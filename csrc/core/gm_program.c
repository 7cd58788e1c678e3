/* One loop over instructions, each carried out for all states of a block. Arithmetic is
 * rounded operation by operation and functions are libm's, one state at a time, so that
 * a state has the same bits alone and in a block. */
#include "gm_program.h"

#include <math.h>
#include <string.h>

enum { LANES = 16 };

/* operands that are registers */
static int
arity(int code)
{
    return code <= GM_INPUT ? 0 : code < GM_ADD ? 1 : code < GM_WHERE ? 2 : 3;
}

static int
inside(int32_t x, int size)
{
    return x >= 0 && x < size;
}

static int
entry_exists(const int32_t *shapes, int32_t which, int32_t row, int32_t col)
{
    return inside(row, shapes[2 * which]) && inside(col, shapes[2 * which + 1]);
}

int
gm_program_valid(const gm_program *p, int constants, const int32_t *shapes,
                 unsigned char *seen)
{
    memset(seen, 0, (size_t)p->registers);
    for (int i = 0; i < p->count; i++) {
        const gm_instruction *s = &p->code[i];
        if (!inside(s->code, GM_OPERATIONS)) {
            return 0;
        }
        const int32_t read[3] = {s->a, s->b, s->c};
        for (int k = 0; k < arity(s->code); k++) {
            if (!inside(read[k], p->registers) || !seen[read[k]]) {
                return 0;
            }
        }
        if (s->code == GM_STORE) {
            if (!inside(s->d, p->outputs) ||
                !entry_exists(shapes + 2 * p->inputs, s->d, s->b, s->c)) {
                return 0;
            }
            continue;
        }
        if ((s->code == GM_CONSTANT && !inside(s->a, constants)) ||
            (s->code == GM_INPUT &&
             (!inside(s->a, p->inputs) || !entry_exists(shapes, s->a, s->b, s->c))) ||
            !inside(s->d, p->registers)) {
            return 0;
        }
        seen[s->d] = 1;
    }
    return 1;
}

size_t
gm_program_work(const gm_program *p)
{
    return (size_t)p->registers * LANES;
}

static inline double
sign(double x)
{
    return x == 0.0 || x != x ? x : copysign(1.0, x);
}

/* `lanes` is a constant where this is inlined; its register r stands at r * lanes */
static inline __attribute__((always_inline)) void
run(const gm_program *p, const int lanes, ptrdiff_t first, const gm_input *in,
    const gm_output *out, double *restrict work)
{
    const gm_instruction *s = p->code, *end = s + p->count;

#define EACH(expression)                                                                \
    for (int l = 0; l < lanes; l++) {                                                   \
        d[l] = (expression);                                                            \
    }                                                                                   \
    break
    for (; s < end; s++) {
        double *d = work + (ptrdiff_t)s->d * lanes;
        const double *a = work + (ptrdiff_t)s->a * lanes;
        const double *b = work + (ptrdiff_t)s->b * lanes;
        const double *c = work + (ptrdiff_t)s->c * lanes;
        switch (s->code) {
        case GM_CONSTANT: {
            double x = p->constants[s->a];
            EACH(x);
        }
        case GM_INPUT: {
            const gm_input *v = &in[s->a];
            const char *from = v->data + first * v->item + s->b * v->row + s->c * v->col;
            for (int l = 0; l < lanes; l++) {
                memcpy(&d[l], from + l * v->item, sizeof *d);
            }
            break;
        }
        case GM_STORE: {
            const gm_output *v = &out[s->d];
            char *to = v->data + first * v->item + s->b * v->row + s->c * v->col;
            for (int l = 0; l < lanes; l++) {
                memcpy(to + l * v->item, &a[l], sizeof *a);
            }
            break;
        }
        case GM_NEG: EACH(-a[l]);
        case GM_ABS: EACH(fabs(a[l]));
        case GM_SIGN: EACH(sign(a[l]));
        case GM_SQRT: EACH(sqrt(a[l]));
        case GM_EXP: EACH(exp(a[l]));
        case GM_LOG: EACH(log(a[l]));
        case GM_SIN: EACH(sin(a[l]));
        case GM_COS: EACH(cos(a[l]));
        case GM_TAN: EACH(tan(a[l]));
        case GM_ARCSIN: EACH(asin(a[l]));
        case GM_ARCCOS: EACH(acos(a[l]));
        case GM_ARCTAN: EACH(atan(a[l]));
        case GM_SINH: EACH(sinh(a[l]));
        case GM_COSH: EACH(cosh(a[l]));
        case GM_TANH: EACH(tanh(a[l]));
        case GM_ADD: EACH(a[l] + b[l]);
        case GM_SUB: EACH(a[l] - b[l]);
        case GM_MUL: EACH(a[l] * b[l]);
        case GM_DIV: EACH(a[l] / b[l]);
        case GM_POW: EACH(pow(a[l], b[l]));
        case GM_ARCTAN2: EACH(atan2(a[l], b[l]));
        /* NaN wins, as in NumPy */
        case GM_MINIMUM: EACH(a[l] <= b[l] || a[l] != a[l] ? a[l] : b[l]);
        case GM_MAXIMUM: EACH(a[l] >= b[l] || a[l] != a[l] ? a[l] : b[l]);
        case GM_LESS: EACH(a[l] < b[l] ? 1.0 : 0.0);
        case GM_LESS_EQUAL: EACH(a[l] <= b[l] ? 1.0 : 0.0);
        case GM_EQUAL: EACH(a[l] == b[l] ? 1.0 : 0.0);
        default: /* GM_WHERE */ EACH(a[l] != 0.0 ? b[l] : c[l]);
        }
    }
#undef EACH
}

void
gm_program_run(const gm_program *p, ptrdiff_t count, const gm_input *in,
               const gm_output *out, double *work)
{
    ptrdiff_t item = 0;

    for (; item + LANES <= count; item += LANES) {
        run(p, LANES, item, in, out, work);
    }
    for (; item + 4 <= count; item += 4) {
        run(p, 4, item, in, out, work);
    }
    for (; item < count; item++) {
        run(p, 1, item, in, out, work);
    }
}
