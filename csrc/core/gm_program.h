/* Straight-line programs: functions of a state, and their derivatives, as scalar
 * instructions on registers. Traced, differentiated and compiled in Python (program.py);
 * here they are only carried out, for one state or for many side by side. */
#ifndef GM_PROGRAM_H
#define GM_PROGRAM_H

#include "gm_core.h"

/* Codes of instructions; graph.py has the same list in the same order. */
enum {
    GM_CONSTANT, GM_INPUT, GM_STORE, GM_NEG, GM_ABS, GM_SIGN, GM_SQRT, GM_EXP, GM_LOG,
    GM_SIN, GM_COS, GM_TAN, GM_ARCSIN, GM_ARCCOS, GM_ARCTAN, GM_SINH, GM_COSH, GM_TANH,
    GM_ADD, GM_SUB, GM_MUL, GM_DIV, GM_POW, GM_ARCTAN2, GM_MINIMUM, GM_MAXIMUM, GM_LESS,
    GM_LESS_EQUAL, GM_EQUAL, GM_WHERE, GM_OPERATIONS
};

/* One instruction. d: register written; a, b, c: registers read. But
 * GM_CONSTANT: constant a; GM_INPUT: entry (b, c) of input a; GM_STORE: register a to
 * entry (b, c) of output d. */
typedef struct {
    int32_t code, d, a, b, c;
} gm_instruction;

typedef struct {
    const gm_instruction *code;
    const double *constants;
    int count, registers, inputs, outputs;
} gm_program;

/* 1 when every register, constant, input and output of the code exists and every
 * register is written before it is read; shapes[2 k], shapes[2 k + 1] are rows and
 * columns of input k, then of output k. seen: scratch of `registers` bytes. */
int gm_program_valid(const gm_program *p, int constants, const int32_t *shapes,
                     unsigned char *seen);

/* Doubles of scratch for any number of states. */
size_t gm_program_work(const gm_program *p);

/* Carry out the program for `count` states. Only entries that the program stores are
 * written. Every state gets the same bits, whichever its neighbours and its place. */
void gm_program_run(const gm_program *p, ptrdiff_t count, const gm_input *in,
                    const gm_output *out, double *work);

#endif
