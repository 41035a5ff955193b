"""Sweeps over dual variables; what is behind them stands in ``_dual_sweeps.pyx``."""

from libc.stdint cimport uint64_t

from cmargin._core.rows._dual_centre cimport dual_centre
from cmargin._core.rows._dual_moves cimport dual_moves
from cmargin._core.rows._dual_rows cimport DualBlocks, dual_rows
from cmargin._core.util._serialise cimport span


cdef enum:
    RATE_OVER = 16                   # sweeps over which their rate of convergence is measured
    KEPT = RATE_OVER + 1
    SWEEPS_PER_EVALUATION = 12       # between two evaluations over all rows, at least
    LONGEST_NAP = 7                  # sweeps that a row at its bound may be left out of, until the next evaluation

cdef enum wish_id:
    ANOTHER_SWEEP, AN_EVALUATION


cdef struct dual_sweeps:
    dual_rows *rows
    double *a                        # (n,) dual variables
    double *w                        # (m + 1,) sum a y (x - mean), or w beside a centre; the last times `bias`: b
    dual_moves moves                 # of whole sweeps, where columns have no
    dual_centre centre
    double *apart                    # (m + 1,) w without `held` times the mean, which a sweep takes off at its end
    Py_ssize_t *order                # (n,) the rows at work come first
    Py_ssize_t *queue                # (n,) the rows of a sweep, in its order
    int *nap                         # (n,) sweeps that a row was left out of last; the sweep that it comes back in
    int *wake
    uint64_t *stream                 # (4,)
    # ---- what a checkpoint holds, beside these arrays: down to ``now``
    double total                     # sum of what a adds to the bound,
    double balance                   # sum a y
    double smallest                  # slopes that moved a row,
    double largest
    double low                       # and bounds that follow for the next sweep
    double high
    double seen                      # gap of the rows so far
    # sum upper max(0, u) - a u, or what takes its place (`gap_at`): the part of the duality gap that the last sweep
    # saw, each row as it was when its turn came; with a free intercept, and what that adds
    double gap
    double part
    double enough
    double patience
    double held
    double constant
    double gaps[KEPT]
    bint under_way
    bint stretches                   # whether the sweep ends at the best point along the last moves
    bint slow                        # more sweeps are needed than `patience`
    Py_ssize_t n_active
    Py_ssize_t n_queued
    Py_ssize_t n_gaps
    Py_ssize_t on_face
    Py_ssize_t at                    # place in the queue
    int now                          # number of the sweep
    # ---- a call: some sweeps, see `begin_call`
    Py_ssize_t at_most
    double tol
    double slice_rows
    double allowed
    Py_ssize_t done                  # sweeps that ended
    Py_ssize_t rows_read
    Py_ssize_t worked
    wish_id wish


cdef class DualSweeps:
    cdef dual_sweeps at
    cdef readonly DualBlocks blocks
    cdef list arrays
    cdef object column
    cdef object order
    cdef void spans_of(self, span *out) noexcept nogil


# at most so many sweeps until something else is wished for; `call_part` until it answers that the call has ended
cdef void begin_call(dual_sweeps *at, Py_ssize_t at_most, double tol, double slice_rows, double allowed) noexcept nogil
cdef bint call_part(dual_sweeps *at, Py_ssize_t most) noexcept nogil

cdef void choose_rows(dual_sweeps *at, const double *u) noexcept nogil
cdef void take_sums(dual_sweeps *at) noexcept nogil
