/* The gufuncs: one table, one loop. Every loop walks NumPy's strides into a gm_problem
 * and hands the whole batch to the core; the last output is the int8 status. */
#include "binding.h"

#include <string.h>

enum { MOST_OPERANDS = 24 };

/* How a gufunc's operands map on the core. `roles` has a letter per operand:
 * M Q A b C s(row_scale) for the problem, r c a o for rtol, ctol, b_atol, options,
 * l for alpha, x for a motion; outputs are addressed by position. */
typedef struct gufunc {
    const char *name, *signature, *roles, *types, *doc;
    int nin, nout;
    /* where core sizes n and m stand in dims, 0: not there */
    int n_at, m_at;
    void (*call)(int n, int m, ptrdiff_t count, const gm_problem *p, const gm_input *in,
                 const gm_output *out, void *work);
} gufunc;

static void
call_gauss(int n, int m, ptrdiff_t count, const gm_problem *p, const gm_input *in,
           const gm_output *out, void *work)
{
    gm_motion r = {out[0], out[1], out[2], out[3],  out[4],  out[5],  out[6],
                   out[7], out[8], out[9], out[10], out[11], out[12], {0}, {0}};
    (void)in;
    gm_gauss(machine.cpu, &machine.lapack, n, m, count, p, &r, work);
}

static void
call_acceleration(int n, int m, ptrdiff_t count, const gm_problem *p, const gm_input *in,
                  const gm_output *out, void *work)
{
    gm_motion r = {.qdd = out[0], .status = out[1]};
    (void)in;
    gm_gauss(machine.cpu, &machine.lapack, n, m, count, p, &r, work);
}

static void
call_constraint_force(int n, int m, ptrdiff_t count, const gm_problem *p,
                      const gm_input *in, const gm_output *out, void *work)
{
    gm_motion r = {.Q_c = out[0], .status = out[1]};
    (void)in;
    gm_gauss(machine.cpu, &machine.lapack, n, m, count, p, &r, work);
}

static void
call_nonideal_force(int n, int m, ptrdiff_t count, const gm_problem *p,
                    const gm_input *in, const gm_output *out, void *work)
{
    static const double zero = 0.0;
    gm_input nothing = {(const char *)&zero, 0, 0, 0};
    gm_problem with = *p;
    gm_motion r = {.K = out[0], .status = out[1]};
    (void)in;
    /* K depends on M, A and C alone, and is unique also where the motion is not */
    with.Q = nothing;
    with.b = nothing;
    with.options = GM_ALLOW_MINIMUM_NORM;
    gm_gauss(machine.cpu, &machine.lapack, n, m, count, &with, &r, work);
}

static void
call_augment(int n, int m, ptrdiff_t count, const gm_problem *p, const gm_input *in,
             const gm_output *out, void *work)
{
    gm_augment(&machine.lapack, n, m, count, p, in[4], out[0], out[1], out[2], work);
}

static void
call_independent_rows(int n, int m, ptrdiff_t count, const gm_problem *p,
                      const gm_input *in, const gm_output *out, void *work)
{
    (void)in;
    gm_independent_rows(&machine.lapack, n, m, count, p, out[0], out[1], work);
}

static void
call_sensitivity(int n, int m, ptrdiff_t count, const gm_problem *p, const gm_input *in,
                 const gm_output *out, void *work)
{
    (void)in;
    gm_sensitivity(&machine.lapack, n, m, count, p, out[0], out[1], out[2], work);
}

static void
call_zwang(int n, int m, ptrdiff_t count, const gm_problem *p, const gm_input *in,
           const gm_output *out, void *work)
{
    (void)m;
    gm_zwang(&machine.lapack, n, count, p, in[2], out[0], out[1], out[2], work);
}

#define PROBLEM "(n,n),(n),(m,n),(m),(n),(m),(),(),(),()->"
#define OPERANDS                                                                        \
    "M, Q, A, b, C, row_scale, rtol, ctol, b_atol, flags: C zeros(n) for none,\n"       \
    "row_scale zeros(m) for none, rtol nan for the default; flags 1 projects clashing\n" \
    "rows, 2 accepts the minimum norm, 0 neither. Status as gaussmech.Status; a\n"      \
    "negative one leaves NaN.\n"

/* types: one letter per operand; d float64, q int64, ? bool, b int8 */
static const gufunc gufuncs[] = {
    {"gauss", PROBLEM "(n),(n),(n),(n),(m),(m),(m),(m),(),(),(),(m),()", "MQAbCsrcao",
     "dddddddddqdddddd??dqqdb",
     OPERANDS "-> qdd, Q_c, Q_ideal, K, multipliers, multipliers_total,\n"
              "multipliers_unique, vanished, zwang, rank, nullity, residual, status",
     10, 13, 1, 2, call_gauss},
    {"acceleration", PROBLEM "(n),()", "MQAbCsrcao", "dddddddddqdb",
     OPERANDS "-> qdd, status", 10, 2, 1, 2, call_acceleration},
    {"constraint_force", PROBLEM "(n),()", "MQAbCsrcao", "dddddddddqdb",
     OPERANDS "-> Q_c, status", 10, 2, 1, 2, call_constraint_force},
    {"nonideal_force", "(n,n),(m,n),(n),()->(n),()", "MACr", "dddddb",
     "M, A, C, rtol (nan: default) -> K, status", 4, 2, 1, 2, call_nonideal_force},
    {"augment", "(n,n),(n),(m,n),(m),(),()->(n,n),(n),()", "MQAblr", "ddddddddb",
     "M, Q, A, b, alpha, rtol (nan: default) -> M_A, Q_b, status", 6, 3, 1, 2,
     call_augment},
    {"independent_rows", "(m,n),(n,n),()->(m),()", "AMr", "ddd?b",
     "A, M, rtol (nan: default) -> mask, status; M the identity for coordinates as they stand", 3, 2, 2,
     1, call_independent_rows},
    {"sensitivity", "(n,n),(m,n),(m),()->(n,n),(n,m),()", "MAsr", "ddddddb",
     "M, A, row_scale, rtol -> dqdd_dQ, dqdd_db, status", 4, 3, 1, 2, call_sensitivity},
    {"zwang", "(n,n),(n),(n)->(),(),()", "MQx", "dddddb",
     "M, Q, qdd -> zwang, gauss_function, status", 3, 3, 1, 0, call_zwang},
};
enum { GUFUNCS = sizeof gufuncs / sizeof *gufuncs };

/* core dimensions of operand `which` in a signature */
static int
core_dims(const char *signature, int which)
{
    const char *c = signature;
    int dims = 0;

    for (; which > 0; c++) {
        which -= *c == ')';
    }
    for (; *c != '('; c++) {
    }
    for (c++; *c != ')'; c++) {
        dims += *c == 'n' || *c == 'm';
    }
    return dims;
}

static double
scalar(const gm_input *v)
{
    return *(const double *)(const void *)v->data;
}

static void
run(const gufunc *g, ptrdiff_t count, int n, int m, const gm_input *in,
    const gm_output *out, void *work)
{
    gm_problem p = {.rtol = Py_NAN, .ctol = 1e-9};

    for (int o = 0; o < g->nin; o++) {
        switch (g->roles[o]) {
        case 'M': p.M = in[o]; break;
        case 'Q': p.Q = in[o]; break;
        case 'A': p.A = in[o]; break;
        case 'b': p.b = in[o]; break;
        case 'C': p.C = in[o]; break;
        case 's': p.row_scale = in[o]; break;
        case 'r': p.rtol = scalar(&in[o]); break;
        case 'c': p.ctol = scalar(&in[o]); break;
        case 'a': p.b_atol = scalar(&in[o]); break;
        case 'o': p.options = (int)*(const int64_t *)(const void *)in[o].data; break;
        default: break;
        }
    }
    g->call(n, m, count, &p, in, out, work);
}

static void
loop(char **args, npy_intp const *dims, npy_intp const *steps, void *data)
{
    const gufunc *g = data;
    int operands = g->nin + g->nout;
    const npy_intp *core = steps + operands;
    int n = g->n_at ? (int)dims[g->n_at] : 0, m = g->m_at ? (int)dims[g->m_at] : 0;
    gm_input in[MOST_OPERANDS];
    gm_output out[MOST_OPERANDS];
    ptrdiff_t count = dims[0], together = count;
    gm_scratch scratch;

    if (count == 0) {
        return;
    }
    if (n >= GM_LAPACK_MIN && !machine.lapack_tried) {
        PyGILState_STATE gil = PyGILState_Ensure();
        gm_want_lapack(n);
        PyGILState_Release(gil);
    }
    void *work = gm_scratch_open(&scratch, n, m);
    if (work == NULL) {
        PyGILState_STATE gil = PyGILState_Ensure();
        PyErr_NoMemory();
        PyGILState_Release(gil);
        return;
    }
    for (int o = 0; o < operands; o++) {
        npy_intp stride[2] = {0, 0};
        for (int i = 0; i < core_dims(g->signature, o); i++) {
            stride[i] = *core++;
        }
        if (o < g->nin) {
            gm_input v = {args[o], steps[o], stride[0], stride[1]};
            in[o] = v;
            /* tolerances are per call: where they vary, one system at a time */
            if (strchr("rcao", g->roles[o]) != NULL && steps[o] != 0) {
                together = 1;
            }
        } else {
            gm_output v = {args[o], steps[o], stride[0], stride[1]};
            out[o - g->nin] = v;
        }
    }
    for (ptrdiff_t done = 0; done < count; done += together) {
        run(g, together, n, m, in, out, work);
        for (int o = 0; o < g->nin; o++) {
            in[o].data += together * in[o].item;
        }
        for (int o = 0; o < g->nout; o++) {
            out[o].data += together * out[o].item;
        }
    }
    gm_scratch_close(&scratch);
    gm_forget_float_flags();
}

/* what NumPy keeps pointers to */
static char type_numbers[GUFUNCS][MOST_OPERANDS];
static void *loop_data[GUFUNCS][1];
static PyUFuncGenericFunction loops[1] = {loop};

static char
type_number(char letter)
{
    return (char)(letter == 'd'   ? NPY_DOUBLE
                  : letter == 'q' ? NPY_INT64
                  : letter == '?' ? NPY_BOOL
                                  : NPY_INT8);
}

int
gm_add_gufuncs(PyObject *module)
{
    for (int i = 0; i < GUFUNCS; i++) {
        const gufunc *g = &gufuncs[i];
        for (int o = 0; o < g->nin + g->nout; o++) {
            type_numbers[i][o] = type_number(g->types[o]);
        }
        loop_data[i][0] = (void *)(uintptr_t)g;
        PyObject *f = PyUFunc_FromFuncAndDataAndSignature(
            loops, loop_data[i], type_numbers[i], 1, g->nin, g->nout, PyUFunc_None,
            g->name, g->doc, 0, g->signature);
        if (f == NULL || PyModule_AddObjectRef(module, g->name, f) < 0) {
            Py_XDECREF(f);
            return -1;
        }
        Py_DECREF(f);
    }
    return 0;
}
