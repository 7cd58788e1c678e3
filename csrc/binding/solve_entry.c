/* _kernel.solve: one system or a batch, straight from float64 arrays.
 *
 * It takes what needs no conversion and answers None to everything else, so that
 * kernel.py converts, checks and complains in words, and the usual call costs only the
 * mathematics. */
#include "binding.h"

#include <string.h>

enum { INPUTS = 6, MOST_DIMS = 32 };

const char gm_solve_doc[] =
    "solve(M, Q, A, b, C, row_scale, rtol, ctol, b_atol, options, wanted)\n\n"
    "A tuple of 15 in the order of bits in `wanted` (qdd, Q_c, Q_ideal, K, multipliers,\n"
    "multipliers_total, multipliers_unique, vanished, zwang, rank, nullity, residual,\n"
    "status, blame, kernel), None where not wanted; or None when an input is not a\n"
    "plain aligned float64 array or the shapes do not fit.";

/* an operand: its core dimensions and its strides over the batch */
typedef struct {
    char *data;
    npy_intp core[2];
    npy_intp batch[MOST_DIMS];
} operand;

/* 1: fits, 0: not for this entry */
static int
take(PyObject *object, int core, operand *out, int *ndim, npy_intp *shape)
{
    if (!PyArray_CheckExact(object)) {
        return 0;
    }
    PyArrayObject *array = (PyArrayObject *)object;
    int dims = PyArray_NDIM(array), extra = dims - core;
    if (extra < 0 || extra > MOST_DIMS || PyArray_TYPE(array) != NPY_DOUBLE ||
        !PyArray_ISBEHAVED_RO(array)) {
        return 0;
    }
    out->data = PyArray_BYTES(array);
    for (int i = 0; i < core; i++) {
        out->core[i] = PyArray_STRIDE(array, extra + i);
    }
    /* right-aligned against the batch shape known so far */
    if (extra > *ndim) {
        memmove(shape + (extra - *ndim), shape, (size_t)*ndim * sizeof *shape);
        for (int i = 0; i < extra - *ndim; i++) {
            shape[i] = 1;
        }
        *ndim = extra;
    }
    for (int i = 0; i < extra; i++) {
        npy_intp size = PyArray_DIM(array, i), *known = &shape[*ndim - extra + i];
        if (size != 1) {
            if (*known != 1 && *known != size) {
                return 0;
            }
            *known = size;
        }
    }
    return 1;
}

static void
batch_strides(PyObject *object, int core, int ndim, operand *out)
{
    PyArrayObject *array = (PyArrayObject *)object;
    int extra = PyArray_NDIM(array) - core;

    for (int i = 0; i < ndim; i++) {
        int own = i - (ndim - extra);
        out->batch[i] =
            own >= 0 && PyArray_DIM(array, own) != 1 ? PyArray_STRIDE(array, own) : 0;
    }
}

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
enum { FIELDS = sizeof fields / sizeof *fields, STATUS = 12, BLAME = 13 };

/* merge neighbouring batch dimensions that every operand walks through evenly */
static int
merge_dims(int ndim, npy_intp *shape, operand **all, int count)
{
    int kept = 0;
    for (int d = 0; d < ndim; d++) {
        if (shape[d] == 1) {
            continue;
        }
        int even = kept > 0;
        for (int o = 0; o < count && even; o++) {
            even = all[o]->batch[kept - 1] == all[o]->batch[d] * shape[d];
        }
        if (!even) {
            kept++;
        }
        shape[kept - 1] = even ? shape[kept - 1] * shape[d] : shape[d];
        for (int o = 0; o < count; o++) {
            all[o]->batch[kept - 1] = all[o]->batch[d];
        }
    }
    return kept;
}

static gm_input
input_view(const operand *o, ptrdiff_t item)
{
    gm_input v = {o->data, item, o->core[0], o->core[1]};
    return v;
}

static void
run(int n, int m, int ndim, const npy_intp *shape, operand *in, operand *out,
    gm_problem *p, gm_motion *r, void *work)
{
    npy_intp at[MOST_DIMS] = {0};
    gm_input *inputs[INPUTS] = {&p->M, &p->Q, &p->A, &p->b, &p->C, &p->row_scale};
    gm_output *outputs[FIELDS] = {
        &r->qdd, &r->Q_c, &r->Q_ideal, &r->K, &r->multipliers, &r->multipliers_total,
        &r->multipliers_unique, &r->vanished, &r->zwang, &r->rank, &r->nullity,
        &r->residual, &r->status, &r->blame, &r->kernel};
    int inner = ndim - 1;
    npy_intp count = ndim > 0 ? shape[inner] : 1;

    for (;;) {
        for (int o = 0; o < INPUTS; o++) {
            *inputs[o] = input_view(&in[o], ndim > 0 ? in[o].batch[inner] : 0);
        }
        for (int o = 0; o < FIELDS; o++) {
            gm_output v = {out[o].data, ndim > 0 ? out[o].batch[inner] : 0,
                           out[o].core[0], out[o].core[1]};
            *outputs[o] = v;
        }
        gm_gauss(machine.cpu, &machine.lapack, n, m, count, p, r, work);

        int d = inner - 1;
        for (; d >= 0; d--) {
            npy_intp step = ++at[d] < shape[d] ? 1 : 1 - shape[d];
            for (int o = 0; o < INPUTS; o++) {
                in[o].data += in[o].data ? step * in[o].batch[d] : 0;
            }
            for (int o = 0; o < FIELDS; o++) {
                out[o].data += out[o].data ? step * out[o].batch[d] : 0;
            }
            if (step == 1) {
                break;
            }
            at[d] = 0;
        }
        if (d < 0) {
            return;
        }
    }
}

/* a wanted output as a new array */
static PyObject *
new_output(int field, int ndim, const npy_intp *shape, int n, int m, operand *out)
{
    npy_intp dims[MOST_DIMS + 2];
    int total = ndim;

    memcpy(dims, shape, (size_t)ndim * sizeof *shape);
    for (const char *c = fields[field].core; *c; c++) {
        dims[total++] = *c == 'n' ? n : m;
    }
    PyObject *array = PyArray_SimpleNew(total, dims, fields[field].type);
    if (array != NULL) {
        out->data = PyArray_BYTES((PyArrayObject *)array);
        for (int i = 0; i < ndim; i++) {
            out->batch[i] = PyArray_STRIDE((PyArrayObject *)array, i);
        }
        for (int i = ndim; i < total; i++) {
            out->core[i - ndim] = PyArray_STRIDE((PyArrayObject *)array, i);
        }
    }
    return array;
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
gm_solve_entry(PyObject *self, PyObject *const *args, Py_ssize_t nargs)
{
    static const int cores[INPUTS] = {2, 1, 2, 1, 1, 1};
    operand in[INPUTS] = {{0}}, out[FIELDS] = {{0}};
    operand *all[INPUTS + FIELDS];
    npy_intp shape[MOST_DIMS] = {0}, full[MOST_DIMS];
    int ndim = 0, used = 0;
    gm_problem p = {0};
    gm_motion r = {0};
    (void)self;

    if (nargs != 11) {
        PyErr_SetString(PyExc_TypeError, "_kernel.solve takes 11 arguments");
        return NULL;
    }
    for (int o = 0; o < INPUTS; o++) {
        if (o >= 4 && args[o] == Py_None) {
            continue;
        }
        if (!take(args[o], cores[o], &in[o], &ndim, shape)) {
            Py_RETURN_NONE;
        }
    }
    npy_intp n = PyArray_DIM((PyArrayObject *)args[1],
                             PyArray_NDIM((PyArrayObject *)args[1]) - 1);
    npy_intp m = PyArray_DIM((PyArrayObject *)args[3],
                             PyArray_NDIM((PyArrayObject *)args[3]) - 1);
    const npy_intp expect[INPUTS][2] = {{n, n}, {n, 0}, {m, n}, {m, 0}, {n, 0}, {m, 0}};
    for (int o = 0; o < INPUTS; o++) {
        if (in[o].data == NULL) {
            continue;
        }
        PyArrayObject *array = (PyArrayObject *)args[o];
        int lead = PyArray_NDIM(array) - cores[o];
        for (int i = 0; i < cores[o]; i++) {
            if (PyArray_DIM(array, lead + i) != expect[o][i]) {
                Py_RETURN_NONE;
            }
        }
        batch_strides(args[o], cores[o], ndim, &in[o]);
        all[used++] = &in[o];
    }
    p.rtol = args[6] == Py_None ? Py_NAN : PyFloat_AsDouble(args[6]);
    p.ctol = PyFloat_AsDouble(args[7]);
    p.b_atol = PyFloat_AsDouble(args[8]);
    p.options = (int)PyLong_AsLong(args[9]);
    long wanted = PyLong_AsLong(args[10]);
    if (PyErr_Occurred()) {
        return NULL;
    }
    if (n > INT32_MAX / 4 || m > INT32_MAX / 4) {
        return PyErr_NoMemory();
    }
    gm_want_lapack((int)n);

    PyObject *result = PyTuple_New(FIELDS);
    PyObject *made[FIELDS] = {NULL};
    npy_intp items = 1;
    for (int d = 0; d < ndim; d++) {
        items *= shape[d];
        full[d] = shape[d];
    }
    for (int f = 0; result != NULL && f < FIELDS; f++) {
        if (!(wanted >> f & 1) && f != STATUS) {
            continue;
        }
        made[f] = new_output(f, ndim, full, (int)n, (int)m, &out[f]);
        if (made[f] == NULL) {
            Py_CLEAR(result);
        }
        all[used++] = &out[f];
    }
    if (result != NULL && items > 0) {
        gm_scratch scratch;
        void *work = gm_scratch_open(&scratch, (int)n, (int)m);
        if (work == NULL) {
            Py_CLEAR(result);
            PyErr_NoMemory();
        } else {
            int merged = merge_dims(ndim, shape, all, used);
            if (items > 1 || n >= 16) {
                Py_BEGIN_ALLOW_THREADS;
                run((int)n, (int)m, merged, shape, in, out, &p, &r, work);
                Py_END_ALLOW_THREADS;
            } else {
                run((int)n, (int)m, merged, shape, in, out, &p, &r, work);
            }
            gm_forget_float_flags();
            gm_scratch_close(&scratch);
        }
    }
    for (int f = 0; f < FIELDS; f++) {
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
