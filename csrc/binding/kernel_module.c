/* The extension module _kernel: its functions, gufuncs, CPU level and LAPACK table. */
#define GM_BINDING_MAIN
#include "binding.h"

#include <fenv.h>
#include <stdlib.h>
#include <string.h>

gm_machine machine;

static void *
scratch_of(gm_scratch *s, size_t size)
{
    char *start = s->stack;

    s->block = NULL;
    if (size > SIZE_MAX - 64) {
        return NULL;
    }
    if (size + 64 > sizeof s->stack) {
        start = s->block = malloc(size + 64);
        if (start == NULL) {
            return NULL;
        }
    }
    s->aligned = start + (64 - (uintptr_t)start % 64) % 64;
    return s->aligned;
}

void *
gm_scratch_open(gm_scratch *s, int n, int m)
{
    return scratch_of(s, gm_work_size(n, m));
}

double *
gm_scratch_doubles(gm_scratch *s, size_t count)
{
    return scratch_of(s, count > SIZE_MAX / 16 ? SIZE_MAX : count * sizeof(double));
}

void
gm_scratch_close(gm_scratch *s)
{
    free(s->block);
}

void
gm_forget_float_flags(void)
{
    feclearexcept(FE_ALL_EXCEPT);
}

#ifdef GM_LINKED_LAPACK

/* --- LAPACK of scipy-openblas32, linked ------------------------------------------- */

#define GM_DECLARE(name, args) void scipy_##name##_ args;
GM_LAPACK_ROUTINES(GM_DECLARE)
GM_BLAS_ROUTINES(GM_DECLARE)

void
gm_want_lapack(int n)
{
#define GM_LINKED(name, args) scipy_##name##_,
    static const gm_lapack table = {GM_LAPACK_ROUTINES(GM_LINKED)
                                        GM_BLAS_ROUTINES(GM_LINKED)};
    if (n >= GM_LAPACK_MIN && !machine.lapack_tried) {
        machine.lapack = table;
        machine.lapack_tried = 1;
    }
}

#define GM_LAPACK_SOURCE "scipy-openblas32"

#else

/* --- LAPACK out of SciPy's Cython modules, without linking ------------------------- */

/* the function behind `name`, NULL unless its integers are C ints */
static void *
routine(PyObject *table, const char *name)
{
    PyObject *capsule = table ? PyMapping_GetItemString(table, name) : NULL;
    void *found = NULL;

    if (capsule != NULL && PyCapsule_CheckExact(capsule)) {
        const char *signature = PyCapsule_GetName(capsule);
        if (signature != NULL && strstr(signature, "int *") != NULL &&
            strstr(signature, "int64") == NULL && strstr(signature, "long") == NULL) {
            found = PyCapsule_GetPointer(capsule, signature);
        }
    }
    Py_XDECREF(capsule);
    PyErr_Clear();
    return found;
}

static PyObject *
cython_table(const char *module_name)
{
    PyObject *module = PyImport_ImportModule(module_name);
    PyObject *table = module ? PyObject_GetAttrString(module, "__pyx_capi__") : NULL;

    Py_XDECREF(module);
    PyErr_Clear();
    return table;
}

void
gm_want_lapack(int n)
{
    if (n < GM_LAPACK_MIN || machine.lapack_tried) {
        return;
    }
    gm_lapack table;
    int complete = 1;
    PyObject *lapack = cython_table("scipy.linalg.cython_lapack");
    PyObject *blas = cython_table("scipy.linalg.cython_blas");
    void *found;

#define FETCH_LAPACK(name, args)                                                        \
    found = routine(lapack, #name);                                                     \
    complete = complete && found != NULL;                                               \
    memcpy(&table.name, &found, sizeof found);
#define FETCH_BLAS(name, args)                                                          \
    found = routine(blas, #name);                                                       \
    complete = complete && found != NULL;                                               \
    memcpy(&table.name, &found, sizeof found);
    GM_LAPACK_ROUTINES(FETCH_LAPACK)
    GM_BLAS_ROUTINES(FETCH_BLAS)
    Py_XDECREF(lapack);
    Py_XDECREF(blas);
    /* importing may have let another thread in: the first one to finish fills it */
    if (complete && !machine.lapack_tried) {
        machine.lapack = table;
    }
    machine.lapack_tried = 1;
}

#define GM_LAPACK_SOURCE "scipy"

#endif

/* --- module ------------------------------------------------------------------------ */

static PyObject *
build_info(PyObject *self, PyObject *unused)
{
    PyObject *levels = PyList_New(0);
    (void)self;
    (void)unused;

    for (int i = 0; levels != NULL && gm_cpu_list(i) != NULL; i++) {
        if (gm_cpu_level(gm_cpu_list(i)) != NULL) {
            PyObject *name = PyUnicode_FromString(gm_cpu_list(i));
            if (name == NULL || PyList_Append(levels, name) < 0) {
                Py_CLEAR(levels);
            }
            Py_XDECREF(name);
        }
    }
    if (levels == NULL) {
        return NULL;
    }
    return Py_BuildValue(
        "{s:s,s:N,s:i,s:s,s:i}", "cpu", gm_cpu_name(machine.cpu), "cpu_levels", levels,
        "lanes", gm_cpu_lanes(machine.cpu), "lapack",
        machine.lapack.dpotrf ? GM_LAPACK_SOURCE : machine.lapack_tried ? "none" : "not loaded",
        "lapack_from", GM_LAPACK_MIN);
}

static PyMethodDef methods[] = {
    {"solve", (PyCFunction)(void (*)(void))gm_solve_entry, METH_FASTCALL, gm_solve_doc},
    {"build_info", build_info, METH_NOARGS, "build_info() -> dict"},
    {NULL, NULL, 0, NULL},
};

static int
choose_cpu(void)
{
    const char *forced = getenv("GAUSSMECH_CPU");

    machine.cpu = forced && *forced ? gm_cpu_level(forced) : gm_cpu_best();
    if (machine.cpu == NULL) {
        PyErr_Format(PyExc_ImportError,
                     "GAUSSMECH_CPU=%s: this machine or build has no such level; unset it "
                     "or take one of those that gaussmech.build_info() lists",
                     forced);
        return -1;
    }
    return 0;
}

static int
import_numpy(void)
{
    import_array1(-1);
    import_umath1(-1);
    return 0;
}

static int
exec_module(PyObject *module)
{
    if (import_numpy() < 0 || choose_cpu() < 0) {
        return -1;
    }
    return gm_add_program_type(module) < 0 ? -1 : gm_add_gufuncs(module);
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, (void *)exec_module},
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_kernel", "The C core of gaussmech.", 0, methods, slots,
    NULL, NULL, NULL,
};

PyMODINIT_FUNC
PyInit__kernel(void)
{
    return PyModuleDef_Init(&definition);
}
