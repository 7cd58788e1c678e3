/* Operands of a batch: how float64 arrays broadcast against each other, and walking
 * through them. */
#include "binding.h"

#include <string.h>

int
gm_take(PyObject *object, int core, gm_operand *out, int *ndim, npy_intp *shape)
{
    if (!PyArray_CheckExact(object)) {
        return 0;
    }
    PyArrayObject *array = (PyArrayObject *)object;
    int dims = PyArray_NDIM(array), extra = dims - core;
    if (extra < 0 || extra > GM_MOST_DIMS || PyArray_TYPE(array) != NPY_DOUBLE ||
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

void
gm_batch_strides(PyObject *object, int core, int ndim, gm_operand *out)
{
    PyArrayObject *array = (PyArrayObject *)object;
    int extra = PyArray_NDIM(array) - core;

    for (int i = 0; i < ndim; i++) {
        int own = i - (ndim - extra);
        out->batch[i] =
            own >= 0 && PyArray_DIM(array, own) != 1 ? PyArray_STRIDE(array, own) : 0;
    }
}

int
gm_merge_dims(int ndim, npy_intp *shape, gm_operand **all, int count)
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

void
gm_each_row(int ndim, const npy_intp *shape, gm_operand **all, int count, gm_row body,
            void *context)
{
    npy_intp at[GM_MOST_DIMS] = {0};
    int inner = ndim - 1;

    for (int o = 0; o < count; o++) {
        all[o]->item = ndim > 0 ? all[o]->batch[inner] : 0;
    }
    for (;;) {
        body(context, ndim > 0 ? shape[inner] : 1);
        int d = inner - 1;
        for (; d >= 0; d--) {
            npy_intp step = ++at[d] < shape[d] ? 1 : 1 - shape[d];
            for (int o = 0; o < count; o++) {
                all[o]->data += step * all[o]->batch[d];
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

PyObject *
gm_new_output(int type, int core, const npy_intp *sizes, int ndim, const npy_intp *shape,
              gm_operand *out)
{
    npy_intp dims[GM_MOST_DIMS + 2];

    memcpy(dims, shape, (size_t)ndim * sizeof *shape);
    memcpy(dims + ndim, sizes, (size_t)core * sizeof *sizes);
    PyObject *array = PyArray_SimpleNew(ndim + core, dims, type);
    if (array != NULL) {
        out->data = PyArray_BYTES((PyArrayObject *)array);
        for (int i = 0; i < ndim; i++) {
            out->batch[i] = PyArray_STRIDE((PyArrayObject *)array, i);
        }
        for (int i = 0; i < core; i++) {
            out->core[i] = PyArray_STRIDE((PyArrayObject *)array, ndim + i);
        }
    }
    return array;
}
