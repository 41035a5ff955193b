"""Stochastic passes where each class has an inverse Hessian of its own: rows are whitened as they are visited.

After a refresh of H a class goes on from the weights w it has: the score of a visited row is <w, x> + <u, z>, z in
the new basis and u from zero (doc/methods/slnd.md, "Estimating H anew"). The step is `class_steps`, the same as in
the plain pass.
"""

from cython cimport floating
from libc.stdint cimport int64_t

from cmargin._core.sgd._class_sgd cimport class_state, class_steps, pass_sums, step_rule
from cmargin._core.rows._rows cimport Rows, row_times, rows_view
from cmargin._core.util._shapes cimport must_fit, within
from cmargin._core.util._team cimport share_out
from cmargin._core.sgd._whiten cimport whiten_block

cdef enum:
    BLOCK = 64


def block_size():
    """Visits whitened at a time: the workspace of `run_refreshed_steps`."""
    return BLOCK


cdef struct refreshed_work:         # what threads share; void pointers are to floats where ``single``, else to doubles
    const rows_view *X
    const double *row_weight
    const int64_t *visits
    const int64_t *offsets
    const double *step              # (n_classes,)
    const double *bias_rate         # (n_classes,)
    const void *P                   # (n_classes or 1, n_features, k)
    const void *factor              # (n_classes or 1, k)
    const double *tail_root
    const double *tail_inverse
    const void *W                   # (n_classes, n_features)
    void *U                         # (n_classes, width)
    void *U_mean
    void *V                         # (n_classes, n_features)
    void *V_lag
    double *bias                    # (n_classes, 2)
    int64_t *n_steps
    double *sums                    # (n_classes, 3)
    void *dense                     # workspace of every thread
    void *low
    void *out
    double *base
    int64_t *picked
    double low_sign
    Py_ssize_t dense_size, low_size, out_size, base_size, picked_size
    Py_ssize_t class_lo, first, last, k, width
    int loss
    bint own_inverse, single


cdef void one_class(const refreshed_work *by, Py_ssize_t o, int thread, const floating *W) noexcept nogil:
    cdef Py_ssize_t c = by.class_lo + o, group = c if by.own_inverse else 0, d = by.X.n_features, b, lo, n, i
    cdef Py_ssize_t last = min(by.last, by.offsets[o + 1] - by.offsets[o])
    cdef const int64_t *visits = by.visits + by.offsets[o]
    cdef const floating *P = <const floating *> by.P + group * d * by.k
    cdef const floating *factor = <const floating *> by.factor + group * by.k
    cdef floating *u = <floating *> by.U + c * by.width
    cdef floating *u_mean = <floating *> by.U_mean + c * by.width if by.U_mean != NULL else NULL
    cdef floating *v = <floating *> by.V + c * d if by.V != NULL else NULL
    cdef floating *v_lag = <floating *> by.V_lag + c * d if by.V_lag != NULL else NULL
    cdef floating *dense = <floating *> by.dense + thread * by.dense_size if by.dense != NULL else NULL
    cdef floating *low = <floating *> by.low + thread * by.low_size
    cdef floating *out = <floating *> by.out + thread * by.out_size
    cdef double *base = by.base + thread * by.base_size
    cdef int64_t *picked = by.picked + thread * by.picked_size
    cdef double *bias = by.bias + 2 * c
    cdef double *sums = by.sums + 3 * c
    cdef step_rule rule
    cdef class_state state
    cdef pass_sums total
    rule.loss, rule.step, rule.bias_rate = by.loss, by.step[c], by.bias_rate[c]
    rule.low_sign, rule.tail_inverse = by.low_sign, by.tail_inverse[group]
    state.bias, state.bias_mean, state.n_steps = bias[0], bias[1], by.n_steps[c]
    total.loss, total.errors, total.weight = sums[0], sums[1], sums[2]
    for b in range((last - by.first + BLOCK - 1) // BLOCK):
        lo = by.first + b * BLOCK
        n = min(BLOCK, last - lo)
        for i in range(n):
            picked[i] = visits[lo + i] if visits[lo + i] >= 0 else -1 - visits[lo + i]
            base[i] = row_times(by.X, picked[i], W + c * d, dense)
        whiten_block(by.X, picked, 0, n, P, by.k, factor, NULL, NULL, by.tail_root[group], dense, low, out)
        class_steps(&rule, <const floating *> out, by.width, True, by.X, by.row_weight, base, visits + lo, n, u, u_mean,
                    v, v_lag, &state, &total)
    bias[0], bias[1], by.n_steps[c] = state.bias, state.bias_mean, state.n_steps
    sums[0], sums[1], sums[2] = total.loss, total.errors, total.weight


cdef void do_class(void *of, Py_ssize_t o, int thread) noexcept nogil:
    if (<refreshed_work *> of).single:
        one_class(<refreshed_work *> of, o, thread, <const float *> (<refreshed_work *> of).W)
    else:
        one_class(<refreshed_work *> of, o, thread, <const double *> (<refreshed_work *> of).W)


def run_refreshed_steps(
    Rows X,
    const double[::1] row_weight,        # IN    (n_rows,), or (0,) for ones
    Py_ssize_t class_lo,
    const int64_t[::1] offsets,          # IN    (n_drawn + 1,)
    const int64_t[::1] visits,           # IN    (offsets[-1],)
    Py_ssize_t first,
    Py_ssize_t last,
    int loss,
    const double[::1] step,              # IN    (n_classes,)
    const double[::1] bias_rate,         # IN    (n_classes,)
    double low_sign,
    const floating[:, :, ::1] P,         # IN    (n_classes or 1, n_features, k)
    const floating[:, ::1] factor,       # IN    (n_classes or 1, k)
    const double[::1] tail_root,         # IN    (n_classes or 1,), 0: no full-width rows
    const double[::1] tail_inverse,      # IN    (n_classes or 1,), 0: CSR rows carry no tail
    const floating[:, ::1] W,            # IN    (n_classes, n_features), the weights u starts from
    floating[:, ::1] U,                  # INOUT (n_classes, width)
    floating[:, ::1] U_mean,             # INOUT (n_classes, width), or (0, width)
    floating[:, ::1] V,                  # INOUT (n_classes, n_features) or (0, 0)
    floating[:, ::1] V_lag,              # INOUT (n_classes, n_features) or (0, 0)
    double[:, ::1] bias,                 # INOUT (n_classes, 2)
    int64_t[::1] n_steps,                # INOUT (n_classes,)
    double[:, ::1] sums,                 # INOUT (n_classes, 3)
    floating[:, ::1] dense,              # WORK  (n_threads, BLOCK n_features)
    floating[:, ::1] low,                # WORK  (n_threads, BLOCK k)
    floating[:, ::1] out,                # WORK  (n_threads, BLOCK width)
    double[:, ::1] base,                 # WORK  (n_threads, BLOCK)
    int64_t[:, ::1] picked,              # WORK  (n_threads, BLOCK)
    int n_threads,
):
    """Take steps ``first .. last - 1`` of the lists of every class from ``class_lo`` on."""
    cdef refreshed_work shared
    cdef bint average = U_mean.shape[0] > 0, tail = V.shape[0] > 0
    cdef Py_ssize_t n_classes = U.shape[0], width = U.shape[1], d = X.view.n_features
    cdef Py_ssize_t k = P.shape[2], groups = P.shape[0]
    must_fit(row_weight.shape[0] in (0, X.view.n_rows) and within(offsets, visits.shape[0]) and class_lo >= 0
             and first >= 0 and class_lo + offsets.shape[0] - 1 <= n_classes
             and step.shape[0] == bias_rate.shape[0] == bias.shape[0] == n_steps.shape[0] == sums.shape[0] == n_classes
             and bias.shape[1] == 2 and sums.shape[1] == 3, "run_refreshed_steps")
    must_fit(groups in (1, n_classes) and P.shape[1] == d and factor.shape[0] == groups and factor.shape[1] == k
             and tail_root.shape[0] == tail_inverse.shape[0] == groups, "run_refreshed_steps, inverse")
    must_fit(W.shape[0] == n_classes and W.shape[1] == d and width in (k, d)
             and U_mean.shape[0] in (0, n_classes) and (U_mean.shape[1] == width or not average)
             and (not tail or (V.shape[0] == n_classes and V.shape[1] == d))
             and (not (tail and average) or (V_lag.shape[0] == n_classes and V_lag.shape[1] == d)),
             "run_refreshed_steps, weights")
    must_fit(min(dense.shape[0], low.shape[0], out.shape[0], base.shape[0], picked.shape[0]) >= n_threads
             and dense.shape[1] >= BLOCK * d and low.shape[1] >= BLOCK * k and out.shape[1] >= BLOCK * width
             and base.shape[1] >= BLOCK and picked.shape[1] >= BLOCK, "run_refreshed_steps, workspace")
    if offsets.shape[0] < 2:
        return
    shared.X, shared.row_weight = &X.view, &row_weight[0] if row_weight.shape[0] else NULL
    shared.visits, shared.offsets = &visits[0] if visits.shape[0] else NULL, &offsets[0]      # a class may have none
    shared.class_lo, shared.first, shared.last = class_lo, first, last
    shared.loss, shared.step, shared.bias_rate, shared.low_sign = loss, &step[0], &bias_rate[0], low_sign
    shared.P, shared.factor, shared.own_inverse, shared.k = &P[0, 0, 0], &factor[0, 0], groups > 1, k
    shared.tail_root, shared.tail_inverse = &tail_root[0], &tail_inverse[0]
    shared.W, shared.U, shared.U_mean = &W[0, 0], &U[0, 0], &U_mean[0, 0] if average else NULL
    shared.V, shared.V_lag = &V[0, 0] if tail else NULL, &V_lag[0, 0] if tail and average else NULL
    shared.bias, shared.n_steps, shared.sums = &bias[0, 0], &n_steps[0], &sums[0, 0]
    shared.dense, shared.low, shared.out = &dense[0, 0] if dense.shape[1] else NULL, &low[0, 0], &out[0, 0]
    shared.base, shared.picked = &base[0, 0], &picked[0, 0]
    shared.dense_size, shared.low_size, shared.out_size = dense.shape[1], low.shape[1], out.shape[1]
    shared.base_size, shared.picked_size = base.shape[1], picked.shape[1]
    shared.width, shared.single = width, floating is float
    with nogil:
        share_out(do_class, &shared, offsets.shape[0] - 1, n_threads)
