/* _kernel.Program: a compiled program as a Python object, called on arrays, and solved
 * as a whole model: program, checks and kernel in one call, without arrays in between. */
#include "binding.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_OPERANDS = 16, MODEL_OUTPUTS = 8, OFF = 7 };
/* A block of assembled systems stays in the second-level cache: so many doubles, but a whole
 * number of the widest groups that the core and programs take at once. */
enum { BLOCK_DOUBLES = 65536, BLOCK_LEAST = 16 };

typedef struct {
    PyObject_HEAD
    gm_program p;
    PyObject *code, *constants; /* bytes that p points into */
    int32_t shape[MOST_OPERANDS][2]; /* inputs, then outputs */
    unsigned char core[MOST_OPERANDS]; /* their dimensions */
    unsigned char sparse[MOST_OPERANDS]; /* outputs with entries that are never stored */
    PyObject *fixed; /* a tuple: bytes of the doubles of an output that is constant, or None */
} program;

static void
program_dealloc(PyObject *self)
{
    program *g = (program *)self;
    PyTypeObject *type = Py_TYPE(self);

    Py_XDECREF(g->code);
    Py_XDECREF(g->constants);
    Py_XDECREF(g->fixed);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static PyObject *
program_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    PyObject *code, *constants, *fixed;
    const char *shapes, *cores, *sparse;
    Py_ssize_t shapes_size, cores_size, sparse_size;
    int registers, inputs, outputs;

    if (keywords != NULL && PyDict_Size(keywords) > 0) {
        PyErr_SetString(PyExc_TypeError, "Program takes no keywords");
        return NULL;
    }
    if (!PyArg_ParseTuple(args, "SSiiiy#y#y#O!", &code, &constants, &registers, &inputs,
                          &outputs, &shapes, &shapes_size, &cores, &cores_size, &sparse,
                          &sparse_size, &PyTuple_Type, &fixed)) {
        return NULL;
    }
    int total = inputs + outputs;
    if (registers < 0 || inputs < 0 || outputs < 0 || total > MOST_OPERANDS ||
        shapes_size != total * 2 * (Py_ssize_t)sizeof(int32_t) || cores_size != total ||
        sparse_size != outputs || PyTuple_Size(fixed) != outputs ||
        PyBytes_Size(code) % (Py_ssize_t)sizeof(gm_instruction) != 0 ||
        PyBytes_Size(code) / (Py_ssize_t)sizeof(gm_instruction) > INT32_MAX ||
        PyBytes_Size(constants) % (Py_ssize_t)sizeof(double) != 0) {
        PyErr_SetString(PyExc_ValueError, "the parts of a program do not fit together");
        return NULL;
    }
    allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    program *g = (program *)alloc(type, 0);
    if (g == NULL) {
        return NULL;
    }
    g->code = Py_NewRef(code);
    g->constants = Py_NewRef(constants);
    g->p.code = (const gm_instruction *)(const void *)PyBytes_AsString(code);
    g->p.constants = (const double *)(const void *)PyBytes_AsString(constants);
    g->p.count = (int)(PyBytes_Size(code) / (Py_ssize_t)sizeof(gm_instruction));
    g->p.registers = registers;
    g->p.inputs = inputs;
    g->p.outputs = outputs;
    memcpy(g->shape, shapes, (size_t)shapes_size);
    memcpy(g->core, cores, (size_t)total);
    memcpy(g->sparse, sparse, (size_t)outputs);

    g->fixed = Py_NewRef(fixed);
    for (int i = 0; i < outputs; i++) {
        PyObject *bytes = PyTuple_GetItem(fixed, i);
        const int32_t *shape = g->shape[inputs + i];
        Py_ssize_t size = (Py_ssize_t)shape[0] * shape[1] * (Py_ssize_t)sizeof(double);
        if (bytes != Py_None && (!PyBytes_Check(bytes) || PyBytes_Size(bytes) != size)) {
            PyErr_SetString(PyExc_ValueError, "a constant output has another size");
            Py_DECREF(g);
            return NULL;
        }
    }
    unsigned char *seen = malloc((size_t)registers + 1);
    int valid = seen != NULL &&
                gm_program_valid(&g->p,
                                 (int)(PyBytes_Size(constants) / (Py_ssize_t)sizeof(double)),
                                 g->shape[0], seen);
    free(seen);
    if (!valid) {
        PyErr_SetString(PyExc_ValueError, "the code of a program is not valid");
        Py_DECREF(g);
        return NULL;
    }
    return (PyObject *)g;
}

/* the numbers of an output that is the same for all states, NULL for others */
static const char *
fixed_data(const program *g, int output)
{
    PyObject *bytes = PyTuple_GetItem(g->fixed, output);
    return bytes == Py_None ? NULL : PyBytes_AsString(bytes);
}

/* --- what calls share ----------------------------------------------------------------- */

typedef struct {
    const program *g;
    gm_operand in[MOST_OPERANDS];
    double numbers[MOST_OPERANDS]; /* arguments that are Python floats */
    int ndim;
    npy_intp shape[GM_MOST_DIMS], items;
} arguments;

/* Read the arguments: 1, or 0 when some need conversion or do not fit. */
static int
read_arguments(const program *g, PyObject *const *args, arguments *a)
{
    a->g = g;
    for (int i = 0; i < g->p.inputs; i++) {
        gm_operand *o = &a->in[i];
        if (g->core[i] == 0 && PyFloat_CheckExact(args[i])) {
            a->numbers[i] = PyFloat_AsDouble(args[i]);
            o->data = (char *)&a->numbers[i];
            continue;
        }
        if (!gm_take(args[i], g->core[i], o, &a->ndim, a->shape)) {
            return 0;
        }
        PyArrayObject *array = (PyArrayObject *)args[i];
        int lead = PyArray_NDIM(array) - g->core[i];
        for (int k = 0; k < g->core[i]; k++) {
            if (PyArray_DIM(array, lead + k) != g->shape[i][k]) {
                return 0;
            }
        }
    }
    a->items = 1;
    for (int d = 0; d < a->ndim; d++) {
        a->items *= a->shape[d];
    }
    for (int i = 0; i < g->p.inputs; i++) {
        if (a->in[i].data != (char *)&a->numbers[i]) {
            gm_batch_strides(args[i], g->core[i], a->ndim, &a->in[i]);
        }
    }
    return 1;
}

static void
input_views(const arguments *a, ptrdiff_t first, gm_input *in)
{
    for (int i = 0; i < a->g->p.inputs; i++) {
        const gm_operand *o = &a->in[i];
        gm_input v = {o->data + first * o->item, o->item, o->core[0], o->core[1]};
        in[i] = v;
    }
}

/* --- calling --------------------------------------------------------------------------- */

typedef struct {
    arguments *a;
    gm_operand out[MOST_OPERANDS];
    double *work;
} evaluation;

static void
evaluate_row(void *context, npy_intp count)
{
    evaluation *e = context;
    const gm_program *p = &e->a->g->p;
    gm_input in[MOST_OPERANDS];
    gm_output out[MOST_OPERANDS];

    input_views(e->a, 0, in);
    for (int i = 0; i < p->outputs; i++) {
        const gm_operand *o = &e->out[i];
        gm_output v = {o->data, o->item, o->core[0], o->core[1]};
        out[i] = v;
    }
    gm_program_run(p, count, in, out, e->work);
}

static PyObject *
program_evaluate(PyObject *self, PyObject *const *args, Py_ssize_t nargs)
{
    const program *g = (const program *)self;
    arguments a = {0};
    evaluation e = {.a = &a};
    gm_operand *all[2 * MOST_OPERANDS];
    int used = 0;

    if (nargs != g->p.inputs) {
        PyErr_Format(PyExc_TypeError, "the program takes %d arguments", g->p.inputs);
        return NULL;
    }
    if (!read_arguments(g, args, &a)) {
        Py_RETURN_NONE;
    }
    PyObject *result = PyTuple_New(g->p.outputs);
    for (int i = 0; result != NULL && i < g->p.outputs; i++) {
        const int32_t *shape = g->shape[g->p.inputs + i];
        npy_intp sizes[2] = {shape[0], shape[1]};
        if (fixed_data(g, i) != NULL) {
            PyTuple_SetItem(result, i, Py_NewRef(Py_None));
            continue;
        }
        PyObject *array = gm_new_output(NPY_DOUBLE, g->core[g->p.inputs + i], sizes, a.ndim,
                                        a.shape, &e.out[i]);
        if (array == NULL) {
            Py_CLEAR(result);
            break;
        }
        PyTuple_SetItem(result, i, array);
        if (g->sparse[i]) {
            memset(e.out[i].data, 0, (size_t)PyArray_NBYTES((PyArrayObject *)array));
        }
    }
    if (result == NULL || a.items == 0) {
        return result;
    }
    for (int i = 0; i < g->p.inputs; i++) {
        all[used++] = &a.in[i];
    }
    for (int i = 0; i < g->p.outputs; i++) {
        if (fixed_data(g, i) == NULL) {
            all[used++] = &e.out[i];
        }
    }
    gm_scratch scratch;
    e.work = gm_scratch_doubles(&scratch, gm_program_work(&g->p));
    if (e.work == NULL) {
        Py_DECREF(result);
        return PyErr_NoMemory();
    }
    int merged = gm_merge_dims(a.ndim, a.shape, all, used);
    if (a.items > 1 || g->p.count > 4000) {
        Py_BEGIN_ALLOW_THREADS;
        gm_each_row(merged, a.shape, all, used, evaluate_row, &e);
        Py_END_ALLOW_THREADS;
    } else {
        gm_each_row(merged, a.shape, all, used, evaluate_row, &e);
    }
    gm_forget_float_flags();
    gm_scratch_close(&scratch);
    return result;
}

/* --- solving a model ------------------------------------------------------------------ */

typedef struct {
    arguments *a;
    gm_operand out[GM_FIELDS];
    gm_problem problem;
    gm_output block[MODEL_OUTPUTS];
    npy_intp most; /* systems in a block */
    double rtol, ctol, least, largest_off;
    int n, m;
    double *work;
    void *solver;
} solution;

/* Systems first ... first + size of a row; `start` in the block. A state that is off its
 * constraints by `off` cannot tell rows that depend on each other from others nearer than
 * that (spec: redundant rows are redundant on the constraints only). */
static void
solve_part(solution *s, npy_intp first, npy_intp start, npy_intp size, double off)
{
    gm_operand out[GM_FIELDS];
    gm_motion motion = {0};
    gm_problem p = s->problem;
    gm_input *views[] = {&p.M, &p.Q, &p.A, &p.b, &p.C, &p.row_scale, &p.b_error};

    for (size_t i = 0; i < sizeof views / sizeof *views; i++) {
        views[i]->data += views[i]->data != NULL ? start * views[i]->item : 0;
    }
    for (int f = 0; f < GM_FIELDS; f++) {
        out[f] = s->out[f];
        out[f].data += out[f].data != NULL ? first * out[f].item : 0;
    }
    p.rtol = s->rtol;
    p.ctol = s->ctol;
    if (off > 0.0) {
        p.rtol = s->rtol > off ? s->rtol : off;
        p.ctol = s->ctol > off ? s->ctol : off;
    }
    gm_motion_views(out, &motion);
    gm_gauss(machine.cpu, &machine.lapack, s->n, s->m, size, &p, &motion, s->solver);
}

static void
solve_row(void *context, npy_intp count)
{
    solution *s = context;
    gm_input in[MOST_OPERANDS];

    for (npy_intp first = 0; first < count; first += s->most) {
        npy_intp size = count - first < s->most ? count - first : s->most, begun = 0;
        const gm_output *view = &s->block[OFF];
        input_views(s->a, first, in);
        gm_program_run(&s->a->g->p, size, in, s->block, s->work);
        for (npy_intp i = 0; i < size; i++) {
            double off = 0.0;
            if (view->data != NULL) {
                memcpy(&off, view->data + i * view->item, sizeof off);
            }
            s->largest_off = off > s->largest_off ? off : s->largest_off;
            if (!(10.0 * off > s->least)) {
                continue;
            }
            if (i > begun) {
                solve_part(s, first + begun, begun, i - begun, 0.0);
            }
            double most = s->least > 0.1 ? s->least : 0.1;
            solve_part(s, first + i, i, 1, 10.0 * off < most ? 10.0 * off : most);
            begun = i + 1;
        }
        if (size > begun) {
            solve_part(s, first + begun, begun, size - begun, 0.0);
        }
    }
}

/* the block of assembled systems: M, Q, A, b, C, row_scale, b_error, off one behind the
 * other */
static size_t
lay_out(solution *s, const program *g, double *block)
{
    gm_input unused, *views[MODEL_OUTPUTS] = {&s->problem.M, &s->problem.Q, &s->problem.A,
                                      &s->problem.b, &s->problem.C,
                                      &s->problem.row_scale, &s->problem.b_error, &unused};
    const int32_t(*shape)[2] = &g->shape[g->p.inputs];
    ptrdiff_t item = 0;

    for (int o = 0; o < MODEL_OUTPUTS; o++) {
        item += fixed_data(g, o) != NULL ? 0 : (ptrdiff_t)shape[o][0] * shape[o][1];
    }
    double *next = block;
    for (int o = 0; o < MODEL_OUTPUTS && block != NULL; o++) {
        ptrdiff_t row = (ptrdiff_t)sizeof(double) * (g->core[g->p.inputs + o] == 2 ? shape[o][1] : 1);
        gm_output v = {(char *)next, item * (ptrdiff_t)sizeof(double), row, sizeof(double)};
        gm_input same = {v.data, v.item, v.row, v.col};
        if (fixed_data(g, o) != NULL) {
            /* one for all systems; the program never stores there */
            same.data = fixed_data(g, o);
            same.item = 0;
            v.data = NULL;
            s->block[o] = v;
            *views[o] = same;
            continue;
        }
        s->block[o] = v;
        *views[o] = same;
        next += (ptrdiff_t)shape[o][0] * shape[o][1];
    }
    return (size_t)item;
}

static PyObject *
program_solve(PyObject *self, PyObject *const *args, Py_ssize_t nargs)
{
    const program *g = (const program *)self;
    arguments a = {0};
    solution s = {.a = &a};
    gm_operand *all[MOST_OPERANDS + GM_FIELDS];
    PyObject *made[GM_FIELDS] = {NULL};
    npy_intp full[GM_MOST_DIMS];
    int used = 0, inputs = g->p.inputs;

    if (g->p.outputs != MODEL_OUTPUTS || nargs != inputs + 5) {
        PyErr_SetString(PyExc_TypeError, "solve takes a model's arguments, rtol, ctol, "
                                         "options, wanted and whether there is a C");
        return NULL;
    }
    if (!read_arguments(g, args, &a)) {
        Py_RETURN_NONE;
    }
    PyObject *const *rest = args + inputs;
    double rtol = rest[0] == Py_None ? Py_NAN : PyFloat_AsDouble(rest[0]);
    double ctol = PyFloat_AsDouble(rest[1]);
    int options = (int)PyLong_AsLong(rest[2]);
    long wanted = PyLong_AsLong(rest[3]);
    int has_C = PyObject_IsTrue(rest[4]);
    if (PyErr_Occurred()) {
        return NULL;
    }
    s.n = g->shape[inputs][0];
    s.m = g->shape[inputs + 2][0];
    gm_want_lapack(s.n);
    memcpy(full, a.shape, sizeof full);
    for (int i = 0; i < inputs; i++) {
        all[used++] = &a.in[i];
    }
    int fields = gm_new_fields(wanted, s.n, s.m, a.ndim, full, made, s.out, all + used);
    if (fields >= 0 && a.items > 0) {
        size_t each = lay_out(&s, g, NULL), work = gm_program_work(&g->p);
        size_t solver = (gm_work_size(s.n, s.m) + 63) / sizeof(double);
        npy_intp most = (npy_intp)(BLOCK_DOUBLES / (each + 1));
        s.most = most < BLOCK_LEAST ? BLOCK_LEAST : most - most % BLOCK_LEAST;
        s.most = s.most < a.items ? s.most : a.items;
        gm_scratch scratch;
        size_t block = each * (size_t)s.most;
        double *memory = gm_scratch_doubles(&scratch, solver + 8 + work + block);
        if (memory == NULL) {
            fields = -1;
            PyErr_NoMemory();
        } else {
            s.solver = memory;
            s.work = memory + (solver + 7) / 8 * 8;
            double *systems = s.work + work;
            lay_out(&s, g, systems);
            /* entries that are zero by structure are never written again */
            memset(systems, 0, block * sizeof *systems);
            s.rtol = rtol;
            s.ctol = ctol;
            s.least = 16.0 * s.n * 2.220446049250313e-16;
            s.least = s.least > 1e-12 ? s.least : 1e-12;
            s.problem.options = options;
            if (!has_C) {
                s.problem.C.data = NULL;
            }
            used += fields;
            int merged = gm_merge_dims(a.ndim, a.shape, all, used);
            if (a.items > 1 || s.n >= 16) {
                Py_BEGIN_ALLOW_THREADS;
                gm_each_row(merged, a.shape, all, used, solve_row, &s);
                Py_END_ALLOW_THREADS;
            } else {
                gm_each_row(merged, a.shape, all, used, solve_row, &s);
            }
            gm_forget_float_flags();
            gm_scratch_close(&scratch);
        }
    }
    if (fields < 0) {
        for (int f = 0; f < GM_FIELDS; f++) {
            Py_XDECREF(made[f]);
        }
        return NULL;
    }
    PyObject *result = gm_fields_tuple(made, a.ndim);
    PyObject *rest_of = result ? Py_BuildValue("(d)", s.largest_off) : NULL;
    PyObject *whole = rest_of ? PySequence_Concat(result, rest_of) : NULL;
    Py_XDECREF(result);
    Py_XDECREF(rest_of);
    return whole;
}

/* --- the type --------------------------------------------------------------------------- */

static PyMethodDef program_methods[] = {
    {"evaluate", (PyCFunction)(void (*)(void))program_evaluate, METH_FASTCALL,
     "evaluate(*arguments): a tuple of arrays, one for each output, None for those that are\n"
     "constant; None instead of the tuple when an argument\n"
     "is no plain aligned float64 array (or, for a number, a float) or does not fit."},
    {"solve", (PyCFunction)(void (*)(void))program_solve, METH_FASTCALL,
     "solve(*arguments, rtol, ctol, options, wanted, has_C): the motion of the model whose\n"
     "outputs are M, Q, A, b, C, row_scale, the errors of b and how far the state is off;\n"
     "as _kernel.solve, with the largest of the latter behind."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot program_slots[] = {
    {Py_tp_doc, "Program(code, constants, registers, inputs, outputs, shapes, cores, sparse, fixed)"},
    {Py_tp_new, (void *)program_new},
    {Py_tp_dealloc, (void *)program_dealloc},
    {Py_tp_methods, program_methods},
    {0, NULL},
};

static PyType_Spec program_spec = {
    "gaussmech._kernel.Program", sizeof(program), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, program_slots,
};

int
gm_add_program_type(PyObject *module)
{
    PyObject *type = PyType_FromModuleAndSpec(module, &program_spec, NULL);
    int failed = type == NULL || PyModule_AddType(module, (PyTypeObject *)type) < 0;

    Py_XDECREF(type);
    return failed ? -1 : 0;
}
