"""Rows as the dual of the joint hinge sees them: scores of all classes, and dual variables in a simplex.

    max over a_i >= 0, sum_c a_ic = C_i of   sum_i (C_i - a_iy) - |W|^2 / 2,     W = sum_i x_i (C_i e_y - a_i)'

is the dual of min |W|^2 / 2 + sum_i C_i max_c (1[c != y_i] + <w_c - w_y, x_i>), in units of 1/l2 (Crammer and Singer
2001). Rows may be seen from their mean: with a free intercept sum_i (C_i e_y - a_i) = 0, and that changes nothing but
how far rows depend on each other. The slope in a_ic is z_ic = 1[c != y_i] + <w_c, x_i>, up to the same number for all
classes. Over a row alone the dual is -|x|^2 |a - a_i|^2 / 2 + <z, a>, largest at the point of the simplex nearest to
a_i + z / |x|^2.
"""

from libc.math cimport fabs
from libc.string cimport memset

from cmargin._core.rows._rows cimport from_entry

cdef double NO_CHANGE = 1e-15            # of what a row's dual variables add up to


cdef void scores_of(joint_rows *rows, Py_ssize_t i, const double *W) noexcept nogil:
    cdef const rows_view *X = &rows.X
    cdef Py_ssize_t lo, n, c
    cdef const void *x
    memset(rows.z, 0, rows.width * sizeof(double))
    if X.starts == NULL:
        x = from_entry(X, i * X.row_stride)
        if X.storage == FLOAT32:
            row_scores_dense_f(<const float *> x, NULL, rows.m, W, rows.width, rows.z)
        else:
            row_scores_dense_d(<const double *> x, NULL, rows.m, W, rows.width, rows.z)
    else:
        lo, n, x = X.starts[i], X.starts[i + 1] - X.starts[i], from_entry(X, X.starts[i])
        if X.columns == NULL and X.storage == FLOAT32:
            row_scores_csr_f_64(<const float *> x, X.columns_64 + lo, n, W, rows.width, rows.z)
        elif X.columns == NULL:
            row_scores_csr_d_64(<const double *> x, X.columns_64 + lo, n, W, rows.width, rows.z)
        elif X.storage == FLOAT32:
            row_scores_csr_f(<const float *> x, X.columns + lo, n, W, rows.width, rows.z)
        else:
            row_scores_csr_d(<const double *> x, X.columns + lo, n, W, rows.width, rows.z)
    for c in range(rows.k):
        rows.z[c] += 1 + rows.bias * W[rows.m * rows.width + c]
    rows.z[rows.labels[i]] -= 1
    if rows.mean != NULL:
        for c in range(rows.k):
            rows.z[c] -= rows.constant[c] + rows.held[c] * (rows.x_dot_mean[i] - rows.mean_square)


cdef void add_change(joint_rows *rows, Py_ssize_t i, Py_ssize_t n_moved, double *W) noexcept nogil:
    cdef const rows_view *X = &rows.X
    cdef Py_ssize_t lo, n, j, c
    cdef const void *x
    if X.starts == NULL:
        x = from_entry(X, i * X.row_stride)
        if X.storage == FLOAT32:
            add_row_dense_f(<const float *> x, NULL, rows.m, rows.change, rows.moved, n_moved, rows.width, W)
        else:
            add_row_dense_d(<const double *> x, NULL, rows.m, rows.change, rows.moved, n_moved, rows.width, W)
    else:
        lo, n, x = X.starts[i], X.starts[i + 1] - X.starts[i], from_entry(X, X.starts[i])
        if X.columns == NULL and X.storage == FLOAT32:
            add_row_csr_f_64(<const float *> x, X.columns_64 + lo, n, rows.change, rows.moved, n_moved, rows.width, W)
        elif X.columns == NULL:
            add_row_csr_d_64(<const double *> x, X.columns_64 + lo, n, rows.change, rows.moved, n_moved, rows.width, W)
        elif X.storage == FLOAT32:
            add_row_csr_f(<const float *> x, X.columns + lo, n, rows.change, rows.moved, n_moved, rows.width, W)
        else:
            add_row_csr_d(<const double *> x, X.columns + lo, n, rows.change, rows.moved, n_moved, rows.width, W)
    for j in range(n_moved):
        c = rows.moved[j]
        W[rows.m * rows.width + c] += rows.bias * rows.change[c]
        if rows.mean != NULL:
            rows.held[c] += rows.change[c]
            rows.constant[c] += rows.x_dot_mean[i] * rows.change[c]


cdef void open_weights(joint_rows *rows, const double *W) noexcept nogil:
    cdef Py_ssize_t j, c
    memset(rows.held, 0, rows.width * sizeof(double))
    memset(rows.constant, 0, rows.width * sizeof(double))
    if rows.mean != NULL:
        for j in range(rows.m):
            for c in range(rows.k):
                rows.constant[c] += rows.mean[j] * W[j * rows.width + c]


cdef void settle_weights(joint_rows *rows, double *W) noexcept nogil:
    cdef Py_ssize_t j, c
    if rows.mean != NULL:
        for j in range(rows.m):
            for c in range(rows.k):
                W[j * rows.width + c] -= rows.mean[j] * rows.held[c]
    memset(rows.held, 0, rows.width * sizeof(double))


cdef double threshold(const double *t, Py_ssize_t k, double mass) noexcept nogil:
    # Newton's method from below, on a convex function of straight pieces: ever fewer classes are above theta
    cdef double theta = t[0], total
    cdef Py_ssize_t c, above, before = k + 1
    for c in range(1, k):
        theta = max(theta, t[c])
    theta -= mass
    while True:
        total, above = 0, 0
        for c in range(k):
            if t[c] > theta:
                total += t[c]
                above += 1
        if above == 0 or above >= before:
            return theta
        before = above
        theta = (total - mass) / above


cdef Py_ssize_t to_simplex(joint_rows *rows, Py_ssize_t i, const double *t, double *a) noexcept nogil:
    cdef double theta = threshold(t, rows.k, rows.upper[i]), least = NO_CHANGE * rows.upper[i], new
    cdef Py_ssize_t c, n_moved = 0
    for c in range(rows.k):
        new = max(t[c] - theta, 0.0)
        rows.change[c] = a[c] - new
        if fabs(rows.change[c]) > least:
            rows.moved[n_moved] = <int> c
            n_moved += 1
            a[c] = new
        else:
            rows.change[c] = 0
    return n_moved
