"""A few rows as BLAS wants them: of one type, the columns side by side."""

from cython cimport floating

from cmargin._core.rows._rows cimport rows_view, stored_as, value_at


cdef inline const floating *dense_tile(
    const rows_view *X,
    Py_ssize_t first,
    Py_ssize_t every,           # rows first, first + every, first + 2 every, ...
    Py_ssize_t n,
    floating *copy,             # WORK  (n, n_features)
    Py_ssize_t *stride,         # OUT   from one row to the next
) noexcept nogil:
    # rows as they lie where their type and order allow it, else a copy
    cdef Py_ssize_t i, j, row, m = X.n_features
    if (X.column_stride == 1 or m == 1) and X.row_stride * every >= m and stored_as(X, copy):
        stride[0] = X.row_stride * every
        return <const floating *> X.values + first * X.row_stride
    stride[0] = m
    for i in range(n):
        row = (first + i * every) * X.row_stride
        if X.column_stride != 1:
            for j in range(m):
                copy[i * m + j] = <floating> value_at(X, row + j * X.column_stride)
        else:
            for j in range(m):
                copy[i * m + j] = <floating> value_at(X, row + j)
    return copy
