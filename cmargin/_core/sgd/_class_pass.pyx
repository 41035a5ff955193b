"""Passes over one-vs-rest classes, shared out by class: what every kind of step begins with and ends with.

A kind of step (`_class_sgd`, `_refreshed_sgd`, `_theory_sgd`, `_sgdqn`) is one function that takes the steps of one
class; here its state is made ready and written back, and threads are given their classes.

Everything a class writes (its weights, its stream, its sums) belongs to that class alone, so the bits do not depend
on the thread count.
"""

from cython cimport floating
from libc.stdint cimport int64_t

from cmargin._core.losses._point cimport loss_of
from cmargin._core.rows._rows cimport Rows
from cmargin._core.util._shapes cimport must_fit, within
from cmargin._core.util._team cimport share_out


cdef void *line_of(const void *matrix, Py_ssize_t c, Py_ssize_t n_bytes) noexcept nogil:
    # row c of a C-contiguous matrix, NULL where there is none
    return <char *> matrix + c * n_bytes if matrix != NULL else NULL


cdef void begin_class(const class_pass *by, Py_ssize_t o, class_state *now) noexcept nogil:
    cdef Py_ssize_t c = by.class_lo + o, narrow = by.width * by.item_size, wide = by.X.n_features * by.item_size
    cdef const double *sums = by.sums + 3 * c
    now.c, now.visits = c, by.visits + by.offsets[o] + by.first
    now.n_visits = min(by.last, by.offsets[o + 1] - by.offsets[o]) - by.first
    now.u, now.u_mean = line_of(by.U, c, narrow), line_of(by.U_mean, c, narrow)
    now.v, now.v_lag = line_of(by.V, c, wide), line_of(by.V_lag, c, wide)
    now.loss, now.errors, now.weight = sums[0], sums[1], sums[2]
    if by.bias != NULL:
        now.bias, now.bias_mean, now.n_steps = by.bias[2 * c], by.bias[2 * c + 1], by.n_steps[c]
        now.bias_rate, now.tail_inverse = by.bias_rate[c * by.rate_stride], by.tail_inverse[c * by.inverse_stride]


cdef void end_class(const class_pass *by, const class_state *now) noexcept nogil:
    cdef double *sums = by.sums + 3 * now.c
    sums[0], sums[1], sums[2] = now.loss, now.errors, now.weight
    if by.bias != NULL:
        by.bias[2 * now.c], by.bias[2 * now.c + 1], by.n_steps[now.c] = now.bias, now.bias_mean, now.n_steps


cdef struct steps_work:             # what threads share
    const class_pass *by
    single_steps of_single
    double_steps of_double


cdef void do_class(void *of, Py_ssize_t o, int thread) noexcept nogil:
    cdef const steps_work *work = <const steps_work *> of
    cdef class_state now
    begin_class(work.by, o, &now)
    if now.n_visits <= 0:
        return
    if work.by.item_size == sizeof(float):
        work.of_single(work.by, &now, thread, <float *> now.u)
    else:
        work.of_double(work.by, &now, thread, <double *> now.u)
    end_class(work.by, &now)


cdef void take_steps(class_pass *by, single_steps of_single, double_steps of_double, int n_threads) noexcept nogil:
    cdef steps_work work
    work.by, work.of_single, work.of_double = by, of_single, of_double
    share_out(do_class, &work, by.n_lists, n_threads)


cdef class Visits:
    """The rows that classes from ``class_lo`` on visit, in their order."""

    def __init__(
        self,
        Py_ssize_t class_lo,
        const int64_t[::1] offsets,          # IN    (n_lists + 1,), list o is that of class class_lo + o
        const int64_t[::1] visits,           # IN    (offsets[-1],), row i for a positive, -1-i for a negative
    ):
        must_fit(within(offsets, visits.shape[0]) and class_lo >= 0, "Visits")
        self.class_lo, self.offsets, self.visits = class_lo, offsets, visits


cdef class ClassPass:
    """The arguments of a pass over classes that do not depend on the kind of step."""

    def __init__(
        self,
        Rows X not None,
        const double[::1] row_weight,        # IN    (n_rows,), or (0,) for ones
        int loss,
        double[:, ::1] sums,                 # INOUT (n_classes, 3), loss, errors, weight of the visits: added to
    ):
        must_fit(row_weight.shape[0] in (0, X.view.n_rows) and sums.shape[1] == 3, "ClassPass")
        self.kept = [X, row_weight, sums]
        self.at.X, self.at.loss, self.at.n_classes = &X.view, loss_of(loss, 0, 0), sums.shape[0]
        self.at.row_weight = &row_weight[0] if row_weight.shape[0] else NULL
        self.at.sums = &sums[0, 0] if sums.shape[0] else NULL

    def whitened(
        self,
        floating[:, ::1] U,                  # INOUT (n_classes, width)
        floating[:, ::1] U_mean,             # INOUT (n_classes, width), or (0, width): no mean is kept
        floating[:, ::1] V,                  # INOUT (n_classes, n_features) where tail_inverse > 0, else (0, 0)
        floating[:, ::1] V_lag,              # INOUT likewise where a mean is kept, else (0, 0)
        double[:, ::1] bias,                 # INOUT (n_classes, 2), b and its running mean
        int64_t[::1] n_steps,                # INOUT (n_classes,)
        const double[::1] bias_rate,         # IN    (n_classes or 1,), beta of the intercept
        const double[::1] tail_inverse,      # IN    (n_classes or 1,), 0: CSR rows carry no tail
        double low_sign,
    ):
        """Work on the weights ``U`` of whitened rows; returns the pass."""
        cdef class_pass *at = &self.at
        cdef Py_ssize_t n = at.n_classes, width = U.shape[1], d = at.X.n_features
        cdef bint average = U_mean.shape[0] > 0, tail = V.shape[0] > 0
        must_fit(U.shape[0] == bias.shape[0] == n_steps.shape[0] == n and bias.shape[1] == 2
                 and U_mean.shape[0] in (0, n) and (U_mean.shape[1] == width or not average)
                 and bias_rate.shape[0] in (1, n) and tail_inverse.shape[0] in (1, n), "ClassPass.whitened")
        must_fit((V.shape[0] == n and V.shape[1] == d) if tail else not max(tail_inverse) > 0, "ClassPass.whitened, V")
        must_fit(not (tail and average) or (V_lag.shape[0] == n and V_lag.shape[1] == d), "ClassPass.whitened, V_lag")
        if n == 0:
            return self
        self.kept += [U, U_mean, V, V_lag, bias, n_steps, bias_rate, tail_inverse]
        at.item_size, at.average, at.width, at.low_sign = sizeof(floating), average, width, low_sign
        at.U, at.U_mean = &U[0, 0] if width else NULL, &U_mean[0, 0] if average and width else NULL
        at.V, at.V_lag = &V[0, 0] if tail else NULL, &V_lag[0, 0] if tail and average else NULL
        at.bias, at.n_steps, at.bias_rate, at.tail_inverse = &bias[0, 0], &n_steps[0], &bias_rate[0], &tail_inverse[0]
        at.rate_stride, at.inverse_stride = bias_rate.shape[0] > 1, tail_inverse.shape[0] > 1
        return self

    cdef class_pass part(self, Visits visits, Py_ssize_t first, Py_ssize_t last, const void *own) except *:
        cdef class_pass at = self.at
        at.class_lo, at.n_lists, at.first, at.last = visits.class_lo, visits.offsets.shape[0] - 1, first, last
        must_fit(first >= 0 and at.class_lo + at.n_lists <= at.n_classes, "ClassPass, visits")
        at.visits = &visits.visits[0] if visits.visits.shape[0] else NULL           # a class may have none
        at.offsets, at.own = &visits.offsets[0], own
        return at
