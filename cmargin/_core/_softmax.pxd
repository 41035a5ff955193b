"""Softmax of one row of scores, inline."""

from cython cimport floating
from libc.math cimport exp, expf, log


cdef inline double softmax_row(const floating *scores, Py_ssize_t n, floating *out) noexcept nogil:
    # out_c = exp(scores_c) / sum; answers ln sum_c exp(scores_c). The largest score is taken off: nothing overflows.
    cdef Py_ssize_t c
    cdef floating top = scores[0], scale
    cdef double total = 0
    for c in range(1, n):
        if scores[c] > top:
            top = scores[c]
    for c in range(n):
        out[c] = expf(scores[c] - top) if floating is float else exp(scores[c] - top)
        total += out[c]
    scale = <floating> (1 / total)
    for c in range(n):
        out[c] *= scale
    return <double> top + log(total)
