"""Stochastic passes where each class has an inverse Hessian of its own: rows are whitened as they are visited.

After a refresh of H a class goes on from the weights w it has: the score of a visited row is <w, x> + <u, z>, z in
the new basis and u from zero (doc/algorithms/slnd.md, "Estimating H anew"). The step is `class_steps`, the same as in
the plain pass.
"""

from cython cimport floating
from cython.parallel cimport prange, threadid
from libc.stdint cimport int64_t

from cmargin._core.small._fp_control cimport fp_set, fp_settings, fp_standard
from cmargin._core.stochastic._class_sgd cimport class_state, class_steps, pass_sums, step_rule
from cmargin._core.rows._rows cimport Rows, row_times, rows_view
from cmargin._core.small._shapes cimport must_fit, within
from cmargin._core.stochastic._whiten cimport whiten_block

cdef enum:
    BLOCK = 64


def block_size():
    """Visits whitened at a time: the workspace of `run_refreshed_steps`."""
    return BLOCK


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
    cdef fp_settings settings
    cdef Py_ssize_t o, t, c, shared = 1 if P.shape[0] > 1 else 0
    cdef const double *weight = &row_weight[0] if row_weight.shape[0] else NULL
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
    cdef const int64_t *all_visits = &visits[0] if visits.shape[0] else NULL        # a class may have none
    for o in prange(offsets.shape[0] - 1, nogil=True, num_threads=n_threads, schedule="dynamic"):
        settings = fp_standard()
        t = threadid()
        c = (class_lo + o) * shared
        one_class(&X.view, weight, all_visits + offsets[o], first, min(last, offsets[o + 1] - offsets[o]), loss,
                  step[class_lo + o], bias_rate[class_lo + o], low_sign, &P[c, 0, 0], P.shape[2], &factor[c, 0],
                  tail_root[c], tail_inverse[c], &W[class_lo + o, 0], &U[class_lo + o, 0], U.shape[1],
                  &U_mean[class_lo + o, 0] if average else NULL, &V[class_lo + o, 0] if tail else NULL,
                  &V_lag[class_lo + o, 0] if tail and average else NULL, &bias[class_lo + o, 0],
                  &n_steps[class_lo + o], &sums[class_lo + o, 0], &dense[t, 0], &low[t, 0], &out[t, 0], &base[t, 0],
                  &picked[t, 0])
        fp_set(settings)


cdef void one_class(const rows_view *X, const double *row_weight, const int64_t *visits, Py_ssize_t first,
                    Py_ssize_t last, int loss, double step, double bias_rate, double low_sign, const floating *P,
                    Py_ssize_t k, const floating *factor, double tail_root, double tail_inverse, const floating *w,
                    floating *u, Py_ssize_t width, floating *u_mean, floating *v, floating *v_lag, double *bias,
                    int64_t *n_steps, double *sums, floating *dense, floating *low, floating *out, double *base,
                    int64_t *picked) noexcept nogil:
    cdef Py_ssize_t b, lo, n, i
    cdef step_rule rule
    cdef class_state state
    cdef pass_sums total
    rule.loss, rule.step, rule.bias_rate = loss, step, bias_rate
    rule.low_sign, rule.tail_inverse = low_sign, tail_inverse
    state.bias, state.bias_mean, state.n_steps = bias[0], bias[1], n_steps[0]
    total.loss, total.errors, total.weight = sums[0], sums[1], sums[2]
    for b in range((last - first + BLOCK - 1) // BLOCK):
        lo = first + b * BLOCK
        n = min(BLOCK, last - lo)
        for i in range(n):
            picked[i] = visits[lo + i] if visits[lo + i] >= 0 else -1 - visits[lo + i]
            base[i] = row_times(X, picked[i], w, dense)
        whiten_block(X, picked, 0, n, P, k, factor, NULL, NULL, tail_root, dense, low, out)
        class_steps(&rule, <const floating *> out, width, True, X, row_weight, base, visits + lo, n, u, u_mean, v,
                    v_lag, &state, &total)
    bias[0], bias[1], n_steps[0] = state.bias, state.bias_mean, state.n_steps
    sums[0], sums[1], sums[2] = total.loss, total.errors, total.weight
