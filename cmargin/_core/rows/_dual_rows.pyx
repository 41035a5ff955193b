"""CSR rows of one binary problem, seen from their dual variables.

(a) w = sum_i a_i y_i x_i, 0 <= a_i <= upper_i: whatever changes a_i adds a multiple of one row to w, and the slope in
    a_i is the deficit u_i = 1 - y_i <w, x_i>. The last entry of w belongs to a column of
    constants ``bias``, 0 without an intercept.
(b) Every function reads the rows of a list, in its order, on one thread: the same bits for any number of threads,
    which work on different classes.
(c) X = (values, columns, starts) is float32 or float64 with 32- or 64-bit indices, checked by `Rows`; w and all sums
    are float64. Of a code s_i y_i only the sign is read; 0 counts as positive.
"""

from libc.stdint cimport int64_t

from cmargin._core.rows._csr cimport csr_axpy, csr_dot, index_t, real_t
from cmargin._core.small._simd cimport row_prefetch


def add_squares(
    const real_t[::1] values,        # IN
    const int64_t[::1] starts,       # IN    (n_rows + 1,)
    double[::1] out,                 # INOUT (n_rows,)
):
    """out_i += |x_i|^2."""
    cdef Py_ssize_t i
    cdef int64_t k
    cdef double total
    with nogil:
        for i in range(out.shape[0]):
            total = 0
            for k in range(starts[i], starts[i + 1]):
                total += <double> values[k] * values[k]
            out[i] += total


def products(
    const real_t[::1] values,        # IN
    const index_t[::1] columns,      # IN
    const int64_t[::1] starts,       # IN  (n_rows + 1,)
    const double[::1] code,          # IN  (n_rows,)
    const Py_ssize_t[::1] rows,      # IN  (n,)
    double bias,
    const double[::1] v,             # IN  (m + 1,)
    double[::1] out,                 # OUT (n,)
):
    """out_k = y_i <(x_i, bias), v>, i = rows[k]."""
    cdef Py_ssize_t k, i
    cdef int64_t start
    cdef double z, constant
    with nogil:
        constant = bias * v[v.shape[0] - 1]
        for k in range(rows.shape[0]):
            i = rows[k]
            start = starts[i]
            z = constant + csr_dot(&values[0] + start, &columns[0] + start, starts[i + 1] - start, &v[0])
            out[k] = z if code[i] >= 0 else -z


def add(
    const real_t[::1] values,        # IN
    const index_t[::1] columns,      # IN
    const int64_t[::1] starts,       # IN    (n_rows + 1,)
    const double[::1] code,          # IN    (n_rows,)
    const Py_ssize_t[::1] rows,      # IN    (n,)
    const double[::1] c,             # IN    (n,)
    double bias,
    double[::1] v,                   # INOUT (m + 1,)
):
    """v += sum_k c_k y_i (x_i, bias), i = rows[k]."""
    cdef Py_ssize_t k, i
    cdef int64_t start
    cdef double signed, total = 0
    with nogil:
        for k in range(rows.shape[0]):
            if c[k] == 0:
                continue
            i = rows[k]
            signed = c[k] if code[i] >= 0 else -c[k]
            total += signed
            start = starts[i]
            csr_axpy(signed, &values[0] + start, &columns[0] + start, starts[i + 1] - start, &v[0])
        v[v.shape[0] - 1] += bias * total


def sweep(
    const real_t[::1] values,        # IN
    const index_t[::1] columns,      # IN
    const int64_t[::1] starts,       # IN    (n_rows + 1,)
    const double[::1] code,          # IN    (n_rows,)
    Py_ssize_t[::1] order,           # INOUT (n,) rows; those that leave are moved to the end
    double low,                      # a row at 0 with a smaller deficit leaves the list,
    double high,                     # and one at its upper bound with a larger one
    const double[::1] upper,         # IN    (n_rows,)
    const double[::1] square,        # IN    (n_rows,) |x|^2 + bias^2, positive
    double bias,
    double[::1] a,                   # INOUT (n_rows,)
    double[::1] w,                   # INOUT (m + 1,)
):
    """One dual variable after the other to the minimum along it, a_i = clip(a_i + u_i / square_i, 0, upper_i).

    Returns the number of rows that stay; the smallest and the largest deficit that moved a dual variable; the part
    sum_i upper_i max(0, u_i) - a_i u_i of the duality gap, each row as it was when its turn came; and the number of
    rows that came to a bound or left one.
    """
    cdef Py_ssize_t k = 0, n = order.shape[0], m = w.shape[0] - 1, i, moved = 0
    cdef int64_t start, size
    cdef double u, sign, old, new, change, smallest = 0, largest = 0, gap = 0
    with nogil:
        while k < n:
            i = order[k]
            if k + 2 < n:                                    # the next rows lie anywhere
                row_prefetch(&values[0] + starts[order[k + 2]], 64)
            start = starts[i]
            size = starts[i + 1] - start
            sign = 1 if code[i] >= 0 else -1
            u = 1 - sign * (bias * w[m] + csr_dot(&values[0] + start, &columns[0] + start, size, &w[0]))
            old = a[i]
            if (old == 0 and u < low) or (old == upper[i] and u > high):
                n -= 1
                order[k], order[n] = order[n], i
                continue
            k += 1
            gap += upper[i] * max(u, 0.0) - old * u
            new = min(max(old + u / square[i], 0.0), upper[i])
            change = new - old
            if change != 0:
                smallest, largest = min(smallest, u), max(largest, u)
                moved += (old == 0 or old == upper[i]) != (new == 0 or new == upper[i])
                a[i] = new
                w[m] += bias * sign * change
                csr_axpy(sign * change, &values[0] + start, &columns[0] + start, size, &w[0])
    return n, smallest, largest, gap, moved


def cg_pass(
    const real_t[::1] values,        # IN
    const index_t[::1] columns,      # IN
    const int64_t[::1] starts,       # IN    (n_rows + 1,)
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
    cdef Py_ssize_t k, i, m = direction.shape[0] - 1
    cdef int64_t start, size
    cdef double z, sign, r, gap = 0, square_sum = 0, signed_sum = 0
    with nogil:
        for k in range(m + 1):
            total[k] = 0
        for k in range(rows.shape[0]):
            i = rows[k]
            start = starts[i]
            size = starts[i + 1] - start
            sign = 1 if code[i] >= 0 else -1
            r = residual[k]
            if step != 0:
                z = bias * direction[m] + csr_dot(&values[0] + start, &columns[0] + start, size, &direction[0])
                r -= step * sign * z
            z = r / square[k]
            residual[k] = r
            scaled[k] = z
            square_sum += r * z
            gap += upper[k] * max(r, 0.0) - a[k] * r
            signed_sum += sign * z
            csr_axpy(sign * z, &values[0] + start, &columns[0] + start, size, &total[0])
        total[m] = bias * signed_sum
    return square_sum, gap
