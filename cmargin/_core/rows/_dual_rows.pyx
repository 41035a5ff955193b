"""Rows of one binary problem, dense or CSR, seen from their dual variables.

(a) w = sum_i a_i y_i x_i, 0 <= a_i <= upper_i: whatever changes a_i adds a multiple of one row to w, and the slope in
    a_i is the deficit u_i = 1 - y_i <w, x_i>. The last entry of w belongs to a column of
    constants ``bias``, 0 without an intercept.
(b) Every function reads the rows of a list, in its order, on one thread: the same bits for any number of threads,
    which work on different classes.
(c) The format is known to `row_product`, `add_row` and `fetch_row` only; w and all sums are float64 whatever the rows.
    Of a code s_i y_i only the sign is read; 0 counts as positive.
(d) Rows may be seen from a `Centre`: x_i then stands for x_i - mean, and rows stay as they are.
"""

import numpy as np

from libc.math cimport INFINITY
from libc.stdint cimport uint8_t

from cmargin._core.rows._rows cimport Rows
from cmargin._core.rows._tiles cimport (
    add_row, fetch_row, open_tile, row_product, row_source, row_tile, source_of, tile_row_squares,
)
from cmargin._core.small._shapes cimport must_fit

cdef class Centre:
    """Where rows are seen from; without ``mean``, from 0, at no cost.

    Parameters
    ----------
    n : int
        Rows.
    mean : (m,) array, optional
    along : (n,) array, optional
        <x_i, mean>.
    """

    def __init__(self, Py_ssize_t n, mean=None, along=None):
        self.mean = np.empty(0) if mean is None else mean
        self.along = np.zeros(n) if along is None else along
        self.square = self.product(self.mean)

    cdef double product(self, const double[::1] v) noexcept nogil:
        # <v, mean>
        cdef Py_ssize_t j
        cdef double total = 0
        for j in range(self.mean.shape[0]):
            total += v[j] * self.mean[j]
        return total

    cdef void take(self, double times, double[::1] v) noexcept nogil:
        # v -= times mean
        cdef Py_ssize_t j
        for j in range(self.mean.shape[0]):
            v[j] -= times * self.mean[j]

    cdef bint fits(self, Py_ssize_t n, Py_ssize_t m) noexcept nogil:
        return self.along.shape[0] == n and self.mean.shape[0] in (0, m)


cdef int check(str name, Rows X, Centre centre, const double[::1] code, const Py_ssize_t[::1] rows,
               Py_ssize_t n_numbers, const double[::1] v) except -1:
    # codes of all rows, a list of rows and as many numbers, a vector of columns
    cdef Py_ssize_t k, n = X.view.n_rows
    must_fit(code.shape[0] == n and rows.shape[0] == n_numbers and v.shape[0] == X.view.n_features + 1
             and centre.fits(n, X.view.n_features), name)
    for k in range(rows.shape[0]):
        must_fit(0 <= rows[k] < n, name)
    return 0


cdef int check_face(str name, const Py_ssize_t[::1] rows, const double[::1] upper, const double[::1] a,
                    const double[::1] square, const double[::1] residual, const double[::1] scaled,
                    const double[::1] direction, const double[::1] total) except -1:
    cdef Py_ssize_t n = rows.shape[0]
    must_fit(upper.shape[0] == a.shape[0] == square.shape[0] == residual.shape[0] == scaled.shape[0] == n
             and direction.shape[0] == total.shape[0], name)
    return 0


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


def products(
    Rows X,
    Centre centre,
    const double[::1] code,          # IN  (n_rows,)
    const Py_ssize_t[::1] rows,      # IN  (n,)
    double bias,
    const double[::1] v,             # IN  (m + 1,)
    double[::1] out,                 # OUT (n,)
):
    """out_k = y_i <(x_i, bias), v>, i = rows[k]."""
    cdef row_source source = source_of(X)
    cdef Py_ssize_t k, i, n = rows.shape[0]
    cdef double z, constant
    check("products", X, centre, code, rows, out.shape[0], v)
    with nogil:
        constant = bias * v[v.shape[0] - 1] - centre.product(v)
        for k in range(n):
            i = rows[k]
            if k + AHEAD < n:
                fetch_row(&source, rows[k + AHEAD])
            z = constant + row_product(&source, i, &v[0])
            out[k] = z if code[i] >= 0 else -z


def add(
    Rows X,
    Centre centre,
    const double[::1] code,          # IN    (n_rows,)
    const Py_ssize_t[::1] rows,      # IN    (n,)
    const double[::1] c,             # IN    (n,)
    double bias,
    double[::1] v,                   # INOUT (m + 1,)
):
    """v += sum_k c_k y_i (x_i, bias), i = rows[k]."""
    cdef row_source source = source_of(X)
    cdef Py_ssize_t k, i
    cdef double signed, total = 0
    check("add", X, centre, code, rows, c.shape[0], v)
    with nogil:
        for k in range(rows.shape[0]):
            if c[k] == 0:
                continue
            i = rows[k]
            signed = c[k] if code[i] >= 0 else -c[k]
            total += signed
            add_row(signed, &source, i, &v[0])
        centre.take(total, v)
        v[v.shape[0] - 1] += bias * total


def cg_pass(
    Rows X,
    Centre centre,
    const double[::1] code,          # IN    (n_rows,)
    const Py_ssize_t[::1] rows,      # IN    (n,)
    const double[::1] upper,         # IN    (n,)
    const double[::1] a,             # IN    (n,)
    const double[::1] square,        # IN    (n,)
    double bias,
    double step,
    const double[::1] direction,     # IN    (m + 1,) X' (y o p), p the direction in the dual variables
    double[::1] residual,            # INOUT (n,) deficits at the end of the steps
    double[::1] scaled,              # OUT   (n,) residual / square
    double[::1] total,               # OUT   (m + 1,) X' (y o scaled)
):
    """One iteration of conjugate gradients in the dual variables of ``rows``, in one read of these rows.

    The step is known before the rows are read, since <p, K p> = |X' (y o p)|^2: a row is read for its product with
    ``direction`` and added to the next one while it is in cache.
    Returns <residual, scaled>, and the part of the duality gap of these rows.
    """
    cdef row_source source = source_of(X)
    cdef double gap
    check("cg_pass", X, centre, code, rows, rows.shape[0], direction)
    check_face("cg_pass", rows, upper, a, square, residual, scaled, direction, total)
    with nogil:
        gap = read_face(&source, centre, code, rows, upper, a, square, bias, step, direction, residual, scaled, total)
    return inner(residual, scaled), gap


cdef double inner(const double[::1] x, const double[::1] y) noexcept nogil:
    cdef Py_ssize_t k
    cdef double sum_of = 0
    for k in range(x.shape[0]):
        sum_of += x[k] * y[k]
    return sum_of


cdef double read_face(const row_source *source, Centre centre, const double[::1] code, const Py_ssize_t[::1] rows,
                      const double[::1] upper, const double[::1] a, const double[::1] square, double bias, double step,
                      const double[::1] direction, double[::1] residual, double[::1] scaled,
                      double[::1] total) noexcept nogil:
    # see `cg_pass`; returns the gap
    cdef Py_ssize_t k, i, m = direction.shape[0] - 1
    cdef double constant = bias * direction[m] - centre.product(direction)
    cdef double z, sign, r, gap = 0, signed_sum = 0
    for k in range(m + 1):
        total[k] = 0
    for k in range(rows.shape[0]):
        i = rows[k]
        if k + AHEAD < rows.shape[0]:
            fetch_row(source, rows[k + AHEAD])
        sign = 1 if code[i] >= 0 else -1
        r = residual[k]
        if step != 0:
            r -= step * sign * (constant + row_product(source, i, &direction[0]))
        z = r / square[k]
        residual[k] = r
        scaled[k] = z
        gap += upper[k] * max(r, 0.0) - a[k] * r
        signed_sum += sign * z
        add_row(sign * z, source, i, &total[0])
    centre.take(signed_sum, total)
    total[m] = bias * signed_sum
    return gap


cdef double first_bound(const double[::1] a, const double[::1] p, const double[::1] upper) noexcept nogil:
    cdef Py_ssize_t k
    cdef double least = INFINITY
    for k in range(a.shape[0]):
        if p[k] != 0:
            least = min(least, ((upper[k] if p[k] > 0 else 0.0) - a[k]) / p[k])
    return least


def cg_steps(
    Rows X,
    Centre centre,
    const double[::1] code,          # IN    (n_rows,)
    const Py_ssize_t[::1] rows,      # IN    (n,)
    const double[::1] upper,         # IN    (n,)
    double[::1] a,                   # INOUT (n,)
    const double[::1] square,        # IN    (n,)
    double bias,
    double[::1] w,                   # INOUT (m + 1,)
    double[::1] p,                   # INOUT (n,) direction in the dual variables
    double[::1] direction,           # INOUT (m + 1,) X' (y o p)
    double[::1] residual,            # INOUT (n,)
    double[::1] scaled,              # OUT   (n,)
    double[::1] total,               # OUT   (m + 1,)
    uint8_t[::1] hit,                # OUT   (n,) 1 where the last step ended at a bound
    double target,
    double rz,                       # <residual, residual / square>
    Py_ssize_t at_most,
):
    """Conjugate gradients until the gap of these rows is below ``target`` or a bound is met, ``at_most`` passes.

    Returns the passes taken, <residual, scaled>, the gap, and whether the last step ended at a bound.
    """
    cdef row_source source = source_of(X)
    cdef Py_ssize_t n = rows.shape[0], n_columns = w.shape[0], k, done = 0
    cdef double gap = INFINITY, curvature, step, bound, before
    cdef bint met = False
    check("cg_steps", X, centre, code, rows, p.shape[0], direction)
    check_face("cg_steps", rows, upper, a, square, residual, scaled, direction, total)
    must_fit(n_columns == direction.shape[0] and hit.shape[0] == n, "cg_steps")
    with nogil:
        while done < at_most and not met and gap > target and rz > 0:
            curvature = inner(direction, direction)          # 0 along opposite rows: on to the next bound
            step = rz / curvature if curvature > 0 else INFINITY
            bound = first_bound(a, p, upper)
            met = not bound > step
            step = min(step, bound)
            for k in range(n):
                hit[k] = met and p[k] != 0 and not ((upper[k] if p[k] > 0 else 0.0) - a[k]) / p[k] > step
                a[k] += step * p[k]
                if hit[k]:
                    a[k] = upper[k] if p[k] > 0 else 0.0
            for k in range(n_columns):
                w[k] += step * direction[k]
            before = rz
            gap = read_face(&source, centre, code, rows, upper, a, square, bias, step, direction, residual, scaled,
                            total)
            rz = inner(residual, scaled)
            done += 1
            if not met:
                for k in range(n):
                    p[k] = scaled[k] + rz / before * p[k]
                for k in range(n_columns):
                    direction[k] = total[k] + rz / before * direction[k]
    return done, rz, gap, met
