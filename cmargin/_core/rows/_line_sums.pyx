"""Sums of a loss along a line: margins z + step * change are known per row, so a trial step reads no row of X.

`between` is the same of two points where every row's slack is known, or dual variable, for losses of a margin.

Rows are cut into blocks by their number alone, each block sums for itself, and the blocks are folded in order: the
same bits for any number of threads.
"""

import numpy as np

from libc.math cimport fabs

from cmargin._core.losses._losses cimport HINGE, point, point_loss, vectorised_gains, vectorised_line
from cmargin._core.losses._point cimport loss_of, loss_t
from cmargin._core.util._shapes cimport must_fit
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


# ---------------------------------------------------------------- between two points

cdef enum:
    AT_A_TIME = 1024                # rows whose change is held, a multiple of those of ``_smooth_rows.h``


cdef struct between_work:           # what threads share
    loss_t loss
    bint dual
    bint known                      # whether the loss is one of those
    double part
    const double *signed_weight
    const double *first
    const double *second
    double *out                     # (n_blocks,)
    Py_ssize_t n


cdef void do_between(void *of, Py_ssize_t b, int thread) noexcept nogil:
    cdef between_work *by = <between_work *> of
    cdef Py_ssize_t lo = b * BLOCK, hi = min(by.n, (b + 1) * BLOCK), i, n
    cdef double change[AT_A_TIME]
    cdef double found[3]
    by.out[b] = 0
    while lo < hi:
        n = min(AT_A_TIME, hi - lo)
        if by.dual:
            if not vectorised_gains(&by.loss, by.part, n, by.signed_weight + lo, by.first + lo, by.second + lo, found):
                by.known = False
        else:
            for i in range(n):
                change[i] = by.second[lo + i] - by.first[lo + i]
            if by.loss.id == HINGE:
                found[0] = 0
                for i in range(n):
                    found[0] += fabs(by.signed_weight[lo + i]) * max(0, by.second[lo + i] - by.part * change[i])
            elif not vectorised_line(&by.loss, by.part, n, by.signed_weight + lo, by.second + lo, change, found):
                by.known = False
        by.out[b] += found[0]
        lo += n


def between(of, bint dual, const double[::1] signed_weight, const double[::1] first, const double[::1] second,
            double part, int n_threads):
    """sum s F(1 - u), or with ``dual`` sum s G(a), where u or a is ``part`` of the first and the rest of the second.

    ``of``: a `Loss`; all arrays (n_rows,).
    """
    cdef Py_ssize_t b, n = signed_weight.shape[0], n_blocks = (n + BLOCK - 1) // BLOCK
    cdef double[::1] parts = np.empty(n_blocks)
    cdef double total = 0
    cdef between_work work
    must_fit(first.shape[0] == second.shape[0] == n, "between")
    if n == 0:
        return 0.0
    work.loss, work.dual, work.known, work.part = loss_of(of.id, of.numbers[0], of.numbers[1]), dual, True, part
    work.signed_weight, work.first, work.second = &signed_weight[0], &first[0], &second[0]
    work.out, work.n = &parts[0], n
    with nogil:
        share_out(do_between, &work, n_blocks, n_threads)
    must_fit(work.known, "the loss of `between`")
    for b in range(n_blocks):
        total += parts[b]
    return total
