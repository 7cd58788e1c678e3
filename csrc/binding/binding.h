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
#include "gm_program.h"

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

/* 64-byte aligned scratch for sizes n, m, or for a number of doubles; NULL when there is
 * not enough memory (no exception set). */
void *gm_scratch_open(gm_scratch *s, int n, int m);
double *gm_scratch_doubles(gm_scratch *s, size_t count);
void gm_scratch_close(gm_scratch *s);

/* Flops and NaN handling leave floating-point flags that concern nobody. */
void gm_forget_float_flags(void);

enum { GM_MOST_DIMS = 32, GM_FIELDS = 15 };

/* An operand: its core strides, its strides over the batch, and the one of the batch
 * dimension that is walked through just now. */
typedef struct {
    char *data;
    npy_intp core[2];
    npy_intp batch[GM_MOST_DIMS], item;
} gm_operand;

/* operands.c. Read an operand with `core` core dimensions, and extend the batch shape by
 * what it has before them: 1, or 0 when it is no plain aligned float64 array, or does
 * not broadcast. Its batch strides are known when the shape is complete. */
int gm_take(PyObject *object, int core, gm_operand *out, int *ndim, npy_intp *shape);
void gm_batch_strides(PyObject *object, int core, int ndim, gm_operand *out);

/* Merge neighbouring batch dimensions that every operand walks through evenly; the
 * number of those that are left. */
int gm_merge_dims(int ndim, npy_intp *shape, gm_operand **all, int count);

/* Call `body` for each row of the innermost batch dimension, operands set to its start. */
typedef void (*gm_row)(void *context, npy_intp count);
void gm_each_row(int ndim, const npy_intp *shape, gm_operand **all, int count,
                 gm_row body, void *context);

/* A new array of batch shape and core sizes, as an operand. */
PyObject *gm_new_output(int type, int core, const npy_intp *sizes, int ndim,
                        const npy_intp *shape, gm_operand *out);

/* solve_entry.c. New arrays for the fields in the bits of `wanted` and for the status;
 * their number, listed in `all`, or -1 with an exception. Views of them, and what
 * Python gets for them (takes over the references; NULL with an exception). */
int gm_new_fields(long wanted, int n, int m, int ndim, const npy_intp *shape,
                  PyObject **made, gm_operand *out, gm_operand **all);
void gm_motion_views(const gm_operand *out, gm_motion *r);
PyObject *gm_fields_tuple(PyObject **made, int ndim);

/* the FASTCALL entry of kernel.py */
PyObject *gm_solve_entry(PyObject *self, PyObject *const *args, Py_ssize_t nargs);
extern const char gm_solve_doc[];

/* program_type.c: add the type Program to the module; -1 with an exception */
int gm_add_program_type(PyObject *module);

/* gufunc_loops.c: add every gufunc to the module; -1 with an exception */
int gm_add_gufuncs(PyObject *module);

#endif
