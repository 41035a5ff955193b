"""Rows of one binary problem, dense or CSR, seen from their dual variables.

(a) w = sum_i a_i y_i x_i, 0 <= a_i <= upper_i: whatever changes a_i adds a multiple of one row to w, and the slope in
    a_i is the slack u_i = target_i - y_i <w, x_i> less ridge_i a_i. Ridges are 0 where the loss is the hinge; where its
    dual variables add less to the bound the larger they are, they say how much. The last entry of w belongs to a column
    of constants ``bias``, 0 without an intercept.
(b) Every function reads the rows of a list, in its order, on one thread: the same bits for any number of threads,
    which work on different classes.
(c) The format is known to `row_product`, `add_row` and `fetch_row` only; w and all sums are float64 whatever the rows.
    The sign of the signed weight s_i y_i is the class; 0 counts as positive.
(d) Rows may be seen from their mean: x_i then stands for x_i - mean, and rows stay as they are.
(e) The targets are 1, and every row has one dual variable, but in a regression: there every row stands twice in the
    lists, with y = 1 and y = -1, for what its residual costs above and below, and its entries once in the memory.
    Of one class all signs are +, targets differ, and sum a is to be what `hold_sum` says in place of 0.
"""

import numpy as np

from cmargin._core.rows._rows cimport Rows
from cmargin._core.rows._tiles cimport (
    add_row, fetch_row, open_tile, row_product, row_source, row_tile, source_of, tile_add_squares, tile_row_squares,
)
from cmargin._core.util._shapes cimport must_fit


cdef double mean_product(const dual_rows *rows, const double *v) noexcept nogil:
    cdef Py_ssize_t j
    cdef double total = 0
    if rows.mean != NULL:
        for j in range(rows.m):
            total += v[j] * rows.mean[j]
    return total


cdef void take_mean(const dual_rows *rows, double times, double *v) noexcept nogil:
    cdef Py_ssize_t j
    if rows.mean != NULL:
        for j in range(rows.m):
            v[j] -= times * rows.mean[j]


cdef void dual_products(dual_rows *rows, const Py_ssize_t *listed, Py_ssize_t lo, Py_ssize_t hi, const double *v,
                        double *out) noexcept nogil:
    cdef double constant = rows.bias * v[rows.m] - mean_product(rows, v), z
    cdef Py_ssize_t k, i
    for k in range(lo, hi):
        i = k if listed == NULL else listed[k]
        if k + AHEAD < hi:
            fetch_row(&rows.source, row_of(rows, k + AHEAD if listed == NULL else listed[k + AHEAD]))
        z = constant + row_product(&rows.source, row_of(rows, i), v)
        out[k] = z if rows.signed_weight[i] >= 0 else -z
    rows.n_read += hi - lo


cdef double add_listed(dual_rows *rows, const Py_ssize_t *listed, Py_ssize_t lo, Py_ssize_t hi, const double *c,
                       double *v) noexcept nogil:
    cdef Py_ssize_t k, i
    cdef double signed, total = 0
    for k in range(lo, hi):
        if c[k] == 0:
            continue
        i = k if listed == NULL else listed[k]
        signed = c[k] if rows.signed_weight[i] >= 0 else -c[k]
        total += signed
        add_row(signed, &rows.source, row_of(rows, i), v)
        rows.n_read += 1
    return total


cdef void add_rest(const dual_rows *rows, double total, double *v) noexcept nogil:
    take_mean(rows, total, v)
    v[rows.m] += rows.bias * total


cdef class DualBlocks:
    """The rows of one problem; ``reads`` counts how many were read, in reads of all of them.

    All of (n_rows,): ``signed_weight``; ``upper``, largest dual variables; ``ridge``, bends of their gains; ``square``,
    |x|^2 + bias^2 + ridge, positive; ``x_dot_mean``, <x_i, mean>, zeros without a ``mean`` (m,) where rows are seen
    from; ``target``, slacks at w = 0, None: 1. In a regression they are all (2 n_rows,), of rows above and below it:
    the latter with negative ``signed_weight``. ``bias``, ``free``: the column of constants, and whether its weight is
    free. ``density``: part of the entries that is stored.
    """

    def __init__(self, Rows X, const double[::1] signed_weight, const double[::1] upper, const double[::1] ridge,
                 const double[::1] square, double bias, bint free, double density, const double[::1] x_dot_mean,
                 const double[::1] mean=None, const double[::1] target=None):
        cdef dual_rows *rows = &self.rows
        cdef Py_ssize_t n = signed_weight.shape[0]
        must_fit(n in (X.view.n_rows, 2 * X.view.n_rows) and (n == X.view.n_rows or target is not None), "DualBlocks")
        must_fit(n > 0 and upper.shape[0] == ridge.shape[0] == square.shape[0] == x_dot_mean.shape[0] == n
                 and (mean is None or mean.shape[0] == X.view.n_features)
                 and (target is None or target.shape[0] == n), "DualBlocks")
        self.keep = X, signed_weight, upper, ridge, square, x_dot_mean, mean, target
        rows.source, rows.n, rows.n_source, rows.m = source_of(X), n, X.view.n_rows, X.view.n_features
        if target is not None:
            rows.target = &target[0]
        rows.signed_weight, rows.upper, rows.ridge = &signed_weight[0], &upper[0], &ridge[0]
        rows.square, rows.x_dot_mean = &square[0], &x_dot_mean[0]
        rows.bias, rows.free, rows.density, rows.smooth = bias, free, density, np.any(ridge)
        if mean is not None and mean.shape[0] > 0:
            rows.mean = &mean[0]
            rows.mean_square = mean_product(rows, rows.mean)

    def hold_sum(self, double total, double beyond, double least):
        """sum a is to be ``total``; gaps are relative to ``beyond`` less the dual value, and at least to ``least``."""
        self.rows.sum, self.rows.beyond, self.rows.least = total, beyond, least

    @property
    def reads(self):
        return reads_of(&self.rows)

    cdef int must_list(self, const Py_ssize_t[::1] listed, const double[::1] v) except -1:
        cdef Py_ssize_t k
        must_fit(v.shape[0] == self.rows.m + 1, "a vector of columns")
        for k in range(listed.shape[0]):
            must_fit(0 <= listed[k] < self.rows.n, "listed rows")
        return 0

    def products(self, const Py_ssize_t[::1] listed, const double[::1] v):
        """(n,) y_i <(x_i, bias), v> of the listed rows."""
        cdef double[::1] out = np.empty(listed.shape[0])
        self.must_list(listed, v)
        if listed.shape[0] > 0:
            with nogil:
                dual_products(&self.rows, &listed[0], 0, listed.shape[0], &v[0], &out[0])
        return out.base

    def add(self, const Py_ssize_t[::1] listed, const double[::1] c, double[::1] v):
        """v += sum c y (x, bias) over the listed rows."""
        self.must_list(listed, v)
        must_fit(c.shape[0] == listed.shape[0], "add")
        if listed.shape[0] > 0:
            with nogil:
                add_rest(&self.rows, add_listed(&self.rows, &listed[0], 0, listed.shape[0], &c[0], &v[0]), &v[0])


def squares(
    Rows X,
    const double[::1] ones,          # IN  (max(1, m),)
    double[::1] out,                 # OUT (n_rows,)
):
    """out_i = |x_i|^2."""
    cdef row_source source = source_of(X)
    cdef row_tile tile
    must_fit(out.shape[0] == X.view.n_rows and ones.shape[0] >= max(1, X.view.n_features), "squares")
    if out.shape[0] == 0:
        return
    with nogil:
        tile = open_tile(&source, 0, out.shape[0], NULL)
        tile_row_squares(&tile, &ones[0], &out[0])


def column_squares(
    Rows X,
    const double[::1] c,             # IN  (n_rows,)
    double[::1] out,                 # OUT (m,)
):
    """out_j = sum_i c_i x_ij^2."""
    cdef row_source source = source_of(X)
    cdef row_tile tile
    must_fit(c.shape[0] == X.view.n_rows and out.shape[0] == X.view.n_features, "column_squares")
    if out.shape[0] == 0 or c.shape[0] == 0:
        return
    out[:] = 0
    with nogil:
        tile = open_tile(&source, 0, c.shape[0], NULL)
        tile_add_squares(&tile, &c[0], &out[0])
