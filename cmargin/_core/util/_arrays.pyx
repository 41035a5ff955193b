"""What is asked of small arrays between two kernels, without letting other threads of Python in.

NumPy lets them in for every operation on more than 500 numbers, and a thread that gives the interpreter's lock away
waits until it gets it back: many short operations in many fits at once are mostly waiting (doc/lab-notebook).
"""

import numpy as np

from cython cimport floating
from libc.math cimport sqrt
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcpy, memset

from cmargin._core.util._shapes cimport must_fit
from cmargin._core.util._team cimport share_out


cdef enum:
    SMALL_BYTES = 1 << 18       # up to here a few ten microseconds are waited for
    MANY = 1 << 16              # the same of numbers that are only read
    CHUNK = 1 << 20             # numbers that a thread reads at a time, where several do


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


def transposed(const floating[:, :] a):
    """A copy of the transpose of ``a`` (n, m), in C order."""
    cdef Py_ssize_t i, j, n = a.shape[0], m = a.shape[1]
    if n * m * <Py_ssize_t> sizeof(floating) > SMALL_BYTES:
        return np.array(np.asarray(a).T, order="C")
    b = np.empty((m, n), np.float32 if floating is float else np.float64)
    cdef floating[:, ::1] out = b
    for i in range(n):
        for j in range(m):
            out[j, i] = a[i, j]
    return b


ctypedef fused place_t:
    int32_t
    int64_t


def marked(const place_t[::1] places, Py_ssize_t n):
    """(n,) bool: which of 0 .. n - 1 stand in ``places``."""
    cdef Py_ssize_t k
    cdef bint within = True
    there = np.zeros(n, bool)
    cdef unsigned char[::1] out = there.view(np.uint8)
    with nogil:
        for k in range(places.shape[0]):
            if 0 <= places[k] < n:
                out[places[k]] = 1
            else:
                within = False
    must_fit(within, "marked")
    return there


cdef struct finite_work:
    const void *a
    double *spoilt                  # (n_chunks,)
    Py_ssize_t n, n_chunks
    bint single                     # ``a`` is of floats, else of doubles


cdef void do_chunk(void *of, Py_ssize_t chunk, int thread) noexcept nogil:
    cdef const finite_work *by = <finite_work *> of
    cdef Py_ssize_t lo = chunk * by.n // by.n_chunks, n = (chunk + 1) * by.n // by.n_chunks - lo
    if by.single:
        by.spoilt[chunk] = spoilt_by(<const float *> by.a + lo, n)
    else:
        by.spoilt[chunk] = spoilt_by(<const double *> by.a + lo, n)


def all_finite(const floating[::1] a, int n_threads=1):
    """Whether every number of ``a`` (n,) is finite."""
    cdef double spoilt = 0
    cdef finite_work work
    cdef double[::1] of_chunks
    cdef Py_ssize_t n = a.shape[0], chunk
    if n_threads > 1 and n >= 2 * CHUNK:
        of_chunks = np.empty(n // CHUNK)
        work.a, work.spoilt, work.n, work.n_chunks, work.single = &a[0], &of_chunks[0], n, n // CHUNK, floating is float
        with nogil:
            share_out(do_chunk, &work, work.n_chunks, n_threads)
        for chunk in range(work.n_chunks):
            spoilt += of_chunks[chunk]
    elif n > MANY:
        with nogil:
            spoilt = spoilt_by(&a[0], n)
    elif n > 0:
        spoilt = spoilt_by(&a[0], n)
    return spoilt == 0


def lines_finite(const floating[:, :] a):
    """Whether every number of ``a`` (n, m) is finite; of any strides."""
    cdef double spoilt
    if a.shape[0] * a.shape[1] > MANY:
        with nogil:
            spoilt = lines_spoilt_by(a)
    else:
        spoilt = lines_spoilt_by(a)
    return spoilt == 0


cdef double lines_spoilt_by(const floating[:, :] a) noexcept nogil:
    cdef double spoilt = 0
    cdef Py_ssize_t i, j
    for i in range(a.shape[0]):
        if a.shape[1] > 0 and a.strides[1] == sizeof(floating):
            spoilt += spoilt_by(&a[i, 0], a.shape[1])
            continue
        for j in range(a.shape[1]):
            spoilt += a[i, j] * 0
    return spoilt


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


def difference_moments(const double[::1] a, const double[::1] b):
    """Mean and standard deviation, over n, of a - b (n,); no number where one of them is none."""
    cdef Py_ssize_t i, n = a.shape[0]
    cdef double mean = 0, square = 0
    must_fit(b.shape[0] == n > 0, "difference_moments")
    for i in range(n):
        mean += a[i] - b[i]
    mean /= n
    for i in range(n):
        square += (a[i] - b[i] - mean) * (a[i] - b[i] - mean)
    return mean, sqrt(square / n)


def square_sum(const floating[:, ::1] Z, const double[::1] weight):
    """sum_i s_i |z_i|^2 over the rows of ``Z`` (n, width), ``weight`` (n,)."""
    cdef Py_ssize_t i, j
    cdef double sums = 0, row
    must_fit(Z.shape[0] == weight.shape[0], "square_sum")
    with nogil:
        for i in range(Z.shape[0]):
            row = 0
            for j in range(Z.shape[1]):
                row += <double> Z[i, j] * Z[i, j]
            sums += weight[i] * row
    return sums


def any_nonzero(const floating[::1] a):
    """Whether ``a`` (n,) holds anything but zeros."""
    cdef Py_ssize_t i
    for i in range(a.shape[0]):
        if a[i] != 0:
            return True
    return False
