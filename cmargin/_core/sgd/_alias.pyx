"""Rows drawn with probability proportional to their weight: a table (Walker 1977, built as by Vose 1991), read at once.

A draw picks one of n buckets; bucket k holds row k up to the height ``cut[k]`` and row ``other[k]`` above.
"""

from libc.stdint cimport int64_t


cdef void fill_table(
    Py_ssize_t n,
    double *cut,            # INOUT (n,) weights of mean 1; then heights
    int64_t *other,         # OUT   (n,)
    int64_t *stack,         # WORK  (n,) short rows from the left, tall ones from the right
) noexcept nogil:
    cdef Py_ssize_t i, n_short = 0, tallest = n
    cdef int64_t low, tall
    for i in range(n):
        other[i] = i
        if cut[i] < 1:
            stack[n_short] = i
            n_short += 1
        else:
            tallest -= 1
            stack[tallest] = i
    while n_short > 0 and tallest < n:
        n_short -= 1
        low, tall = stack[n_short], stack[tallest]
        other[low] = tall
        cut[tall] -= 1 - cut[low]
        if cut[tall] < 1:
            tallest += 1
            stack[n_short] = tall
            n_short += 1
    for i in range(n_short):             # by rounding: nobody is left to share with
        cut[stack[i]] = 1
    for i in range(tallest, n):
        cut[stack[i]] = 1


def alias_table(double[::1] cut, int64_t[::1] other, int64_t[::1] stack):
    """Turn weights of mean 1 in ``cut`` (n,) into the table ``cut``, ``other``; ``stack`` (n,) is overwritten."""
    if not cut.shape[0] == other.shape[0] == stack.shape[0]:
        raise ValueError(f"arrays of {cut.shape[0]}, {other.shape[0]} and {stack.shape[0]} entries for the same rows")
    if cut.shape[0]:
        fill_table(cut.shape[0], &cut[0], &other[0], &stack[0])
