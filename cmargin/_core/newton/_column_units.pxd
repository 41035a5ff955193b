"""Columns less a centre, over a unit of their own, x~_j = (x_j - centre_j) / unit_j, while the rows stay as they are.

Scores are the same where weights are translated, <w~, x~> = <w, x>: what a solver asks of the rows is translated on
the way there, and sums over the rows on the way back. A centre is for where there is a column of ones, the last.
"""


cdef struct column_units:
    Py_ssize_t n                 # columns, that of ones included
    const double *centre         # (n,), 0 for the column of ones
    const double *inverse        # (n,) 1 / unit, 1 for the column of ones; NULL: columns are as they are
    const double *last           # (n,) 1 for the last column, 0 for the others
    double *asked                # (n,) scratch of `in_rows`


cdef inline void weights_of_rows(const column_units *by, const double *x, double *out) noexcept nogil:
    # w of the rows' own columns from w~ = x; neither is the other
    cdef Py_ssize_t last = by.n - 1, j
    cdef double shift = 0
    for j in range(by.n):
        out[j] = x[j] * by.inverse[j]
        shift += by.centre[j] * out[j]
    out[last] -= shift


cdef inline const double *in_rows(const column_units *by, const double *x) noexcept nogil:
    # the same, as rows are asked by it; NULL for NULL
    if x == NULL or by.inverse == NULL:
        return x
    weights_of_rows(by, x, by.asked)
    return by.asked


cdef inline void sums_in_units(const column_units *by, double *g) noexcept nogil:
    # sum r x~ from sum r x, in place
    cdef Py_ssize_t j
    cdef double total = g[by.n - 1]
    for j in range(by.n):
        g[j] = (g[j] - by.centre[j] * total) * by.inverse[j]


cdef inline void block_in_units(const column_units *by, double *upper) noexcept nogil:
    # the upper triangle of sum h x~ x~' from that of sum h x x', in place; the last column is needed until the end
    cdef Py_ssize_t n = by.n, last = by.n - 1, i, j
    cdef double total = upper[n * n - 1]
    cdef double *row
    for i in range(n):
        row = upper + i * n
        for j in range(i, last):
            row[j] += by.centre[i] * (by.centre[j] * total - upper[j * n + last]) - by.centre[j] * row[last]
            row[j] *= by.inverse[i] * by.inverse[j]
        row[last] = (row[last] - by.centre[i] * total) * by.inverse[i]


cdef inline void diagonal_in_units(const column_units *by, const double *of_ones, double *diagonal) noexcept nogil:
    # the diagonal of sum h x~ x~' from that of sum h x x' and its last column, in place
    cdef Py_ssize_t last = by.n - 1, j
    for j in range(by.n):
        diagonal[j] += by.centre[j] * (by.centre[j] * of_ones[last] - 2 * of_ones[j])
        diagonal[j] *= by.inverse[j] * by.inverse[j]
