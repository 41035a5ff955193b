"""What a look of the dual makes of all deficits at once: the best intercept, the best multiple of w, the hinge there.

Both are roots of a sum that rises from breakpoint to breakpoint. Only one place of their order is wanted, so they are
never sorted: a pivot splits those still in question, and one side of it is done with.
"""

import numpy as np

from cmargin._core.small._shapes cimport must_fit


cdef struct parts_sums:              # weights of the keys below the pivot and beside it
    double below, beside


cdef inline double pivot_of(const double *key, Py_ssize_t lo, Py_ssize_t hi) noexcept nogil:
    cdef double a = key[lo + (hi - lo) // 4], b = key[lo + (hi - lo) // 2], c = key[lo + 3 * (hi - lo) // 4]
    return max(min(a, b), min(max(a, b), c))


cdef parts_sums split(double *key, double *weight, double pivot, Py_ssize_t lo, Py_ssize_t hi, Py_ssize_t *first,
                      Py_ssize_t *last) noexcept nogil:
    # keys below the pivot to lo .. first - 1, its equals to first .. last - 1
    cdef parts_sums sums
    cdef Py_ssize_t i = lo
    sums.below = sums.beside = 0
    first[0], last[0] = lo, hi
    while i < last[0]:
        if key[i] < pivot:
            sums.below += weight[i]
            key[i], key[first[0]] = key[first[0]], key[i]
            weight[i], weight[first[0]] = weight[first[0]], weight[i]
            first[0] += 1
            i += 1
        elif key[i] == pivot:
            sums.beside += weight[i]
            i += 1
        else:
            last[0] -= 1
            key[i], key[last[0]] = key[last[0]], key[i]
            weight[i], weight[last[0]] = weight[last[0]], weight[i]
    return sums


def best_shift(const double[::1] code, const double[::1] u):
    """argmin over t of sum |code_i| max(0, u_i - y_i t): a weighted quantile of y u."""
    cdef Py_ssize_t n = u.shape[0], lo = 0, hi = n, i, first = 0, last = 0
    cdef double[::1] key = np.empty(n), weight = np.empty(n)
    cdef double wanted = 0, pivot = 0
    cdef parts_sums sums
    must_fit(code.shape[0] == n, "best_shift")
    with nogil:
        for i in range(n):
            key[i] = u[i] if code[i] >= 0 else -u[i]
            weight[i] = code[i] if code[i] >= 0 else -code[i]
            wanted += max(code[i], 0.0)
        while lo < hi:
            pivot = pivot_of(&key[0], lo, hi)
            sums = split(&key[0], &weight[0], pivot, lo, hi, &first, &last)
            if first > lo and sums.below >= wanted:
                hi = first
            elif first == last or sums.below + sums.beside >= wanted:        # not a number, or here
                break
            else:
                wanted -= sums.below + sums.beside
                lo = last
    return pivot


def best_scale(const double[::1] upper, const double[::1] z, double square):
    """argmin over t >= 0 of t^2 square / 2 + sum upper max(0, 1 - t z): where its slope, which rises, passes 0."""
    cdef Py_ssize_t n = z.shape[0], lo = 0, hi = 0, i, first = 0, last = 0
    cdef double[::1] key = np.empty(n), weight = np.empty(n)
    cdef double pull = 0, reached = 0, pivot        # of the rows not yet at their margin; where the last one got there
    cdef parts_sums sums
    must_fit(upper.shape[0] == n, "best_scale")
    if not square > 0:
        return 1.0
    with nogil:
        for i in range(n):
            pull += upper[i] * z[i]
            if z[i] > 0 and upper[i] > 0:
                key[hi] = 1 / z[i]
                weight[hi] = upper[i] * z[i]
                hi += 1
        while lo < hi:
            pivot = pivot_of(&key[0], lo, hi)
            sums = split(&key[0], &weight[0], pivot, lo, hi, &first, &last)
            if square * pivot >= pull - sums.below:
                hi = first
            else:
                pull -= sums.below + sums.beside
                reached = pivot
                lo = max(last, lo + 1)
    return max(pull / square, reached)


def margins(const double[::1] code, const double[::1] u, double shift):
    """(n,) 1 - u + y t, from deficits and a shift t of the intercept."""
    cdef Py_ssize_t n = u.shape[0], i
    must_fit(code.shape[0] == n, "margins")
    out = np.empty(n)
    cdef double[::1] z = out
    with nogil:
        for i in range(n):
            z[i] = 1 - (u[i] - (shift if code[i] >= 0 else -shift))
    return out


def hinge(const double[::1] upper, const double[::1] z, double scale):
    """sum upper max(0, 1 - scale z)."""
    cdef Py_ssize_t i
    cdef double total = 0
    must_fit(upper.shape[0] == z.shape[0], "hinge")
    with nogil:
        for i in range(z.shape[0]):
            total += upper[i] * max(1 - scale * z[i], 0.0)
    return total
