"""Sums of a loss along a line: margins z + step * change are known per row, so a trial step reads no row of X.

Rows are cut into blocks by their number alone, each block sums for itself, and the blocks are folded in order: the
same bits for any number of threads.
"""

import numpy as np

from cmargin._core.losses._losses cimport point, point_loss
from cmargin._core.losses._point cimport loss_of, loss_t
from cmargin._core.util._team cimport share_out

cdef Py_ssize_t BLOCK = 8192            # rows: three arrays of them fit into a second-level cache


cdef void sum_block(loss_t loss, const double *weight, const double *z, const double *change, double step,
                    Py_ssize_t lo, Py_ssize_t hi, double *out) noexcept nogil:
    # out = sum s F(z + step change), and its derivative in the step
    cdef Py_ssize_t i
    cdef double value = 0, slope = 0
    cdef point at
    for i in range(lo, hi):
        at = point_loss(&loss, z[i] + step * change[i])
        value += weight[i] * at.value
        slope += weight[i] * at.slope * change[i]
    out[0], out[1] = value, slope


cdef void move_block(loss_t loss, const double *weight, double *z, const double *change, double step,
                     Py_ssize_t lo, Py_ssize_t hi, double *slope) noexcept nogil:
    # z <- z + step change, slope = s F'(z)
    cdef Py_ssize_t i
    for i in range(lo, hi):
        z[i] += step * change[i]
        slope[i] = weight[i] * point_loss(&loss, z[i]).slope


cdef struct line_work:              # what threads share of a trial along a line, or of a move
    loss_t loss
    double step
    const double *weight
    const double *change
    double *z
    double *out                     # (n_blocks, 2) sums, or (n,) slopes
    Py_ssize_t n


cdef void do_sum(void *of, Py_ssize_t b, int thread) noexcept nogil:
    cdef const line_work *by = <line_work *> of
    sum_block(by.loss, by.weight, by.z, by.change, by.step, b * BLOCK, min(by.n, (b + 1) * BLOCK),
              by.out + 2 * b)


cdef void do_move(void *of, Py_ssize_t b, int thread) noexcept nogil:
    cdef const line_work *by = <line_work *> of
    move_block(by.loss, by.weight, by.z, by.change, by.step, b * BLOCK, min(by.n, (b + 1) * BLOCK), by.out)


def line(int loss, double a, const double[::1] weight, const double[::1] z, const double[::1] change, double step,
         int n_threads):
    """sum s_i F(z_i + step change_i) and its derivative in ``step``; all arrays (n_rows,). ``a``: see `point_loss`."""
    cdef Py_ssize_t b, n = z.shape[0], n_blocks = (n + BLOCK - 1) // BLOCK
    cdef double[:, ::1] parts = np.empty((n_blocks, 2))
    cdef double value = 0, slope = 0
    cdef line_work work
    if weight.shape[0] != n or change.shape[0] != n:
        raise ValueError("line: shapes do not fit")
    work.loss, work.step, work.n, work.out = loss_of(loss, a, 1), step, n, &parts[0, 0]
    work.weight, work.change, work.z = &weight[0], &change[0], <double *> &z[0]         # which is not written to
    with nogil:
        share_out(do_sum, &work, n_blocks, n_threads)
    for b in range(n_blocks):
        value += parts[b, 0]
        slope += parts[b, 1]
    return value, slope


def move(int loss, double a, const double[::1] weight, double[::1] z, const double[::1] change, double step,
         double[::1] slope_out, int n_threads):
    """Stay at ``step``: z (INOUT) becomes z + step change, ``slope_out`` s_i F'(z_i); all arrays (n_rows,)."""
    cdef Py_ssize_t n = z.shape[0], n_blocks = (n + BLOCK - 1) // BLOCK
    cdef line_work work
    if weight.shape[0] != n or change.shape[0] != n or slope_out.shape[0] != n:
        raise ValueError("move: shapes do not fit")
    work.loss, work.step, work.n, work.out = loss_of(loss, a, 1), step, n, &slope_out[0]
    work.weight, work.change, work.z = &weight[0], &change[0], &z[0]
    with nogil:
        share_out(do_move, &work, n_blocks, n_threads)
