"""A few rows as BLAS wants them: of one type, the columns side by side; and one stored entry, whatever its type."""

from cython cimport floating
from libc.stdint cimport int64_t

from cmargin._core.rows._rows cimport rows_view


cdef inline double value_at(const rows_view *X, bint single, int64_t at) noexcept nogil:
    return (<const float *> X.values)[at] if single else (<const double *> X.values)[at]


cdef inline int64_t column_of(const rows_view *X, int64_t entry) noexcept nogil:
    return X.columns[entry] if X.columns != NULL else X.columns_64[entry]


cdef inline const floating *dense_tile(
    const rows_view *X,
    bint single,                # values are float32
    Py_ssize_t first,
    Py_ssize_t every,           # rows first, first + every, first + 2 every, ...
    Py_ssize_t n,
    floating *copy,             # WORK  (n, n_features)
    Py_ssize_t *stride,         # OUT   from one row to the next
) noexcept nogil:
    # rows as they lie where their type and order allow it, else a copy
    cdef Py_ssize_t i, j, row, m = X.n_features
    if (X.column_stride == 1 or m == 1) and X.row_stride * every >= m and single == (sizeof(floating) == sizeof(float)):
        stride[0] = X.row_stride * every
        return <const floating *> X.values + first * X.row_stride
    stride[0] = m
    for i in range(n):
        row = (first + i * every) * X.row_stride
        if X.column_stride != 1:
            for j in range(m):
                copy[i * m + j] = <floating> value_at(X, single, row + j * X.column_stride)
        elif single:
            for j in range(m):
                copy[i * m + j] = <floating> (<const float *> X.values)[row + j]
        else:
            for j in range(m):
                copy[i * m + j] = <floating> (<const double *> X.values)[row + j]
    return copy
