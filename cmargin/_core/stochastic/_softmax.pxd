"""Softmax of one row of scores (see ``_softmax.h``), fused over float and double."""

from cython cimport floating


cdef extern from "_softmax.h" nogil:
    double softmax_row_f(float *h, Py_ssize_t n, double *top_out) noexcept
    double softmax_row_d(double *h, Py_ssize_t n, double *top_out) noexcept


# h (n,): scores in, probabilities exp(h_c - top) / sum out; ln sum_c exp(h_c) = top_out + ln(returned sum), n >= 1
cdef inline double softmax_row(floating *h, Py_ssize_t n, double *top_out) noexcept nogil:
    if floating is float:
        return softmax_row_f(h, n, top_out)
    else:
        return softmax_row_d(h, n, top_out)
