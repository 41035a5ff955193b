"""What is asked of small arrays between two kernels, without letting other threads of Python in.

NumPy lets them in for every operation on more than 500 numbers, and a thread that gives the interpreter's lock away
waits until it gets it back: many short operations in many fits at once are mostly waiting (doc/decisions.md).
"""

import numpy as np

from cython cimport floating
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset

from cmargin._core.small._shapes cimport must_fit


cdef enum:
    SMALL_BYTES = 1 << 18       # up to here a few ten microseconds are waited for


def zeros(shape, dtype=float):
    """`numpy.zeros`, which lets other threads in from a kilobyte on."""
    if dtype not in (float, np.float64, np.float32, np.int64):
        return np.zeros(shape, dtype)
    a = np.empty(shape, dtype)
    if a.nbytes > SMALL_BYTES:
        return np.zeros(shape, dtype)
    cdef unsigned char[::1] memory
    if a.nbytes:
        memory = a.reshape(-1).view(np.uint8)
        memset(&memory[0], 0, memory.shape[0])
    return a


def copied(a):
    """A copy of ``a``, in C order."""
    if a.nbytes > SMALL_BYTES or not a.nbytes or not a.flags.c_contiguous:
        return np.array(a, order="C")
    cdef unsigned char[::1] out
    cdef const unsigned char[::1] given = a.reshape(-1).view(np.uint8)
    b = np.empty(a.shape, a.dtype)
    out = b.reshape(-1).view(np.uint8)
    memcpy(&out[0], &given[0], given.shape[0])
    return b


def all_finite(const floating[::1] a):
    """Whether every number of ``a`` (n,) is finite."""
    cdef double spoilt = 0
    if a.shape[0] > 65536:
        with nogil:
            spoilt = spoilt_by(&a[0], a.shape[0])
    elif a.shape[0] > 0:
        spoilt = spoilt_by(&a[0], a.shape[0])
    return spoilt == 0


cdef double spoilt_by(const floating *a, Py_ssize_t n) noexcept nogil:
    # 0, or NaN once an infinity or NaN was met; eight sums, so that the loop fits vectors
    cdef double sums[8]
    cdef Py_ssize_t i, j
    for j in range(8):
        sums[j] = 0
    for i in range(0, n - n % 8, 8):
        for j in range(8):
            sums[j] += a[i + j] * 0
    for i in range(n - n % 8, n):
        sums[0] += a[i] * 0
    for j in range(1, 8):
        sums[0] += sums[j]
    return sums[0]


def total(const double[::1] a):
    """Sum of ``a`` (n,), one number after the other."""
    cdef Py_ssize_t i
    cdef double sums = 0
    for i in range(a.shape[0]):
        sums += a[i]
    return sums


def any_nonzero(const floating[::1] a):
    """Whether ``a`` (n,) holds anything but zeros."""
    cdef Py_ssize_t i
    for i in range(a.shape[0]):
        if a[i] != 0:
            return True
    return False


def margins_of(double[:, ::1] scores, const int64_t[::1] starts, const int64_t[::1] classes, Py_ssize_t row,
               Py_ssize_t first):
    """y_ic h_c(x_i) in place of the scores h_c(x_i) of classes ``first``, ``first`` + 1, ...

    Parameters
    ----------
    scores : (n, n_classes) array
        Of rows ``row``, ``row`` + 1, ...
    starts : (n_rows + 1,) array, classes : (nnz,) array
        CSR indicator of the positives of all rows and classes.
    """
    cdef Py_ssize_t i, c, k, n = scores.shape[0], n_classes = scores.shape[1]
    must_fit(0 <= row and row + n < starts.shape[0], "margins_of")
    for i in range(n):
        must_fit(0 <= starts[row + i] <= starts[row + i + 1] <= classes.shape[0], "margins_of, starts")
    with nogil:
        for i in range(n):
            for c in range(n_classes):
                scores[i, c] = -scores[i, c]
            for k in range(starts[row + i], starts[row + i + 1]):
                c = classes[k] - first
                if 0 <= c < n_classes:
                    scores[i, c] = -scores[i, c]
