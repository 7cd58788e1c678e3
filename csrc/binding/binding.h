/* Shared by the files of the extension: Python and NumPy at 3.11 / 2.0, scratch memory,
 * the CPU level and the LAPACK table. No mechanics. */
#ifndef GM_BINDING_H
#define GM_BINDING_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL gaussmech_ARRAY_API
#define PY_UFUNC_UNIQUE_SYMBOL gaussmech_UFUNC_API
#ifndef GM_BINDING_MAIN
#define NO_IMPORT_ARRAY
#define NO_IMPORT_UFUNC
#endif
#include <numpy/arrayobject.h>
#include <numpy/ufuncobject.h>

#include "gm_core.h"

/* Written under the GIL: cpu at import, lapack once at the first large problem. */
typedef struct {
    const gm_cpu *cpu;
    gm_lapack lapack;
    int lapack_tried;
} gm_machine;
extern gm_machine machine;

/* Fill the LAPACK table if a problem with n coordinates wants it. Needs the GIL and
 * leaves no exception: without SciPy the core uses its own loops. */
void gm_want_lapack(int n);

/* Scratch for one call: on the stack when small. */
typedef struct {
    void *block, *aligned;
    char stack[32768];
} gm_scratch;

/* 64-byte aligned scratch for sizes n, m, or NULL (no exception set). */
void *gm_scratch_open(gm_scratch *s, int n, int m);
void gm_scratch_close(gm_scratch *s);

/* Flops and NaN handling leave floating-point flags that concern nobody. */
void gm_forget_float_flags(void);

/* solve_entry.c: the FASTCALL entry of kernel.py */
PyObject *gm_solve_entry(PyObject *self, PyObject *const *args, Py_ssize_t nargs);
extern const char gm_solve_doc[];

/* gufunc_loops.c: add every gufunc to the module; -1 with an exception */
int gm_add_gufuncs(PyObject *module);

#endif
