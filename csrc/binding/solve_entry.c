/* _kernel.solve: one system or a batch, straight from float64 arrays.
 *
 * It takes what needs no conversion and answers None to everything else, so that
 * kernel.py converts, checks and complains in words, and the usual call costs only the
 * mathematics. */
#include "binding.h"

#include <string.h>

enum { INPUTS = 7 };

const char gm_solve_doc[] =
    "solve(M, Q, A, b, C, row_scale, rtol, ctol, b_atol, options, wanted)\n\n"
    "A tuple of 15 in the order of bits in `wanted` (qdd, Q_c, Q_ideal, K, multipliers,\n"
    "multipliers_total, multipliers_unique, vanished, zwang, rank, nullity, residual,\n"
    "status, blame, kernel), None where not wanted; or None when an input is not a\n"
    "plain aligned float64 array or the shapes do not fit. b_atol: a float, or (..., m).";

/* the outputs in the order of the bits of `wanted` */
static const struct {
    int type;
    char core[3]; /* one letter per core dimension */
} fields[] = {
    {NPY_DOUBLE, "n"}, {NPY_DOUBLE, "n"}, {NPY_DOUBLE, "n"}, {NPY_DOUBLE, "n"},
    {NPY_DOUBLE, "m"}, {NPY_DOUBLE, "m"}, {NPY_BOOL, "m"},   {NPY_BOOL, "m"},
    {NPY_DOUBLE, ""},  {NPY_INT64, ""},   {NPY_INT64, ""},   {NPY_DOUBLE, "m"},
    {NPY_INT8, ""},    {NPY_BOOL, "m"},   {NPY_DOUBLE, "nn"},
};
_Static_assert(sizeof fields / sizeof *fields == GM_FIELDS, "one type per field");
enum { STATUS = 12 };

/* what one row of a batch needs */
typedef struct {
    int n, m;
    gm_operand *in, *out;
    gm_problem problem;
    gm_motion motion;
    void *work;
} call;

static void
solve_row(void *context, npy_intp count)
{
    call *c = context;
    gm_problem *p = &c->problem;
    gm_input *inputs[INPUTS] = {&p->M, &p->Q, &p->A, &p->b, &p->C, &p->row_scale, &p->b_error};

    for (int o = 0; o < INPUTS; o++) {
        gm_input v = {c->in[o].data, c->in[o].item, c->in[o].core[0], c->in[o].core[1]};
        *inputs[o] = v;
    }
    gm_motion_views(c->out, &c->motion);
    gm_gauss(machine.cpu, &machine.lapack, c->n, c->m, count, p, &c->motion, c->work);
}

void
gm_motion_views(const gm_operand *out, gm_motion *r)
{
    gm_output *outputs[GM_FIELDS] = {
        &r->qdd, &r->Q_c, &r->Q_ideal, &r->K, &r->multipliers, &r->multipliers_total,
        &r->multipliers_unique, &r->vanished, &r->zwang, &r->rank, &r->nullity,
        &r->residual, &r->status, &r->blame, &r->kernel};

    for (int o = 0; o < GM_FIELDS; o++) {
        gm_output v = {out[o].data, out[o].item, out[o].core[0], out[o].core[1]};
        *outputs[o] = v;
    }
}

int
gm_new_fields(long wanted, int n, int m, int ndim, const npy_intp *shape,
              PyObject **made, gm_operand *out, gm_operand **all)
{
    int used = 0;

    for (int f = 0; f < GM_FIELDS; f++) {
        if (!(wanted >> f & 1) && f != STATUS) {
            continue;
        }
        npy_intp sizes[2] = {0};
        int core = 0;
        for (const char *c = fields[f].core; *c; c++) {
            sizes[core++] = *c == 'n' ? n : m;
        }
        made[f] = gm_new_output(fields[f].type, core, sizes, ndim, shape, &out[f]);
        if (made[f] == NULL) {
            return -1;
        }
        all[used++] = &out[f];
    }
    return used;
}

/* numbers of one system are Python numbers, not arrays without dimensions */
static PyObject *
as_number(PyObject *array, int field)
{
    const char *data = PyArray_BYTES((PyArrayObject *)array);
    PyObject *number;

    if (fields[field].type == NPY_DOUBLE) {
        double x;
        memcpy(&x, data, sizeof x);
        number = PyFloat_FromDouble(x);
    } else if (fields[field].type == NPY_INT64) {
        int64_t x;
        memcpy(&x, data, sizeof x);
        number = PyLong_FromLongLong(x);
    } else {
        number = PyLong_FromLong((signed char)*data);
    }
    Py_DECREF(array);
    return number;
}

PyObject *
gm_fields_tuple(PyObject **made, int ndim)
{
    PyObject *result = PyTuple_New(GM_FIELDS);

    for (int f = 0; f < GM_FIELDS; f++) {
        if (result == NULL) {
            Py_XDECREF(made[f]);
            continue;
        }
        if (made[f] == NULL) {
            made[f] = Py_NewRef(Py_None);
        } else if (ndim == 0 && fields[f].core[0] == '\0') {
            made[f] = as_number(made[f], f);
        }
        if (made[f] == NULL) {
            Py_CLEAR(result);
            continue;
        }
        PyTuple_SetItem(result, f, made[f]);
    }
    return result;
}

PyObject *
gm_solve_entry(PyObject *self, PyObject *const *args, Py_ssize_t nargs)
{
    /* b_atol stands behind rtol and ctol, and may be a number */
    static const int cores[INPUTS] = {2, 1, 2, 1, 1, 1, 1}, at[INPUTS] = {0, 1, 2, 3, 4, 5, 8};
    gm_operand in[INPUTS] = {{0}}, out[GM_FIELDS] = {{0}};
    gm_operand *all[INPUTS + GM_FIELDS];
    npy_intp shape[GM_MOST_DIMS] = {0}, full[GM_MOST_DIMS];
    int ndim = 0, used = 0;
    call c = {.in = in, .out = out};
    (void)self;

    if (nargs != 11) {
        PyErr_SetString(PyExc_TypeError, "_kernel.solve takes 11 arguments");
        return NULL;
    }
    for (int o = 0; o < INPUTS; o++) {
        PyObject *given = args[at[o]];
        if ((o >= 4 && given == Py_None) || (o == 6 && PyFloat_Check(given))) {
            continue;
        }
        if (!gm_take(given, cores[o], &in[o], &ndim, shape)) {
            Py_RETURN_NONE;
        }
    }
    npy_intp n = PyArray_DIM((PyArrayObject *)args[1],
                             PyArray_NDIM((PyArrayObject *)args[1]) - 1);
    npy_intp m = PyArray_DIM((PyArrayObject *)args[3],
                             PyArray_NDIM((PyArrayObject *)args[3]) - 1);
    const npy_intp expect[INPUTS][2] = {{n, n}, {n, 0}, {m, n}, {m, 0}, {n, 0}, {m, 0}, {m, 0}};
    for (int o = 0; o < INPUTS; o++) {
        if (in[o].data == NULL) {
            continue;
        }
        PyArrayObject *array = (PyArrayObject *)args[at[o]];
        int lead = PyArray_NDIM(array) - cores[o];
        for (int i = 0; i < cores[o]; i++) {
            if (PyArray_DIM(array, lead + i) != expect[o][i]) {
                Py_RETURN_NONE;
            }
        }
        gm_batch_strides(args[at[o]], cores[o], ndim, &in[o]);
        all[used++] = &in[o];
    }
    c.problem.rtol = args[6] == Py_None ? Py_NAN : PyFloat_AsDouble(args[6]);
    c.problem.ctol = PyFloat_AsDouble(args[7]);
    c.problem.b_atol = in[6].data != NULL ? 0.0 : PyFloat_AsDouble(args[8]);
    c.problem.options = (int)PyLong_AsLong(args[9]);
    long wanted = PyLong_AsLong(args[10]);
    if (PyErr_Occurred()) {
        return NULL;
    }
    if (n > INT32_MAX / 4 || m > INT32_MAX / 4) {
        return PyErr_NoMemory();
    }
    gm_want_lapack((int)n);
    c.n = (int)n;
    c.m = (int)m;

    PyObject *made[GM_FIELDS] = {NULL};
    npy_intp items = 1;
    for (int d = 0; d < ndim; d++) {
        items *= shape[d];
        full[d] = shape[d];
    }
    int fields_made = gm_new_fields(wanted, c.n, c.m, ndim, full, made, out, all + used);
    if (fields_made >= 0 && items > 0) {
        gm_scratch scratch;
        c.work = gm_scratch_open(&scratch, c.n, c.m);
        if (c.work == NULL) {
            fields_made = -1;
            PyErr_NoMemory();
        } else {
            used += fields_made;
            int merged = gm_merge_dims(ndim, shape, all, used);
            if (items > 1 || n >= 16) {
                Py_BEGIN_ALLOW_THREADS;
                gm_each_row(merged, shape, all, used, solve_row, &c);
                Py_END_ALLOW_THREADS;
            } else {
                gm_each_row(merged, shape, all, used, solve_row, &c);
            }
            gm_forget_float_flags();
            gm_scratch_close(&scratch);
        }
    }
    if (fields_made < 0) {
        for (int f = 0; f < GM_FIELDS; f++) {
            Py_XDECREF(made[f]);
        }
        return NULL;
    }
    return gm_fields_tuple(made, ndim);
}
