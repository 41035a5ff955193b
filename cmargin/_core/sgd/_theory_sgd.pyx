"""Stochastic passes with the step of SLND theorem 2, its sums over a fixed subset of each class and the row visited.

    eta_t = 2 (1 - eps) e_t / (F''(0) Pi_t),  e_t = sum_i p_i y_i y_t pi_i,  Pi_t = sum_i pi_i^2,  pi_i = p_t s_i,
    s_i = x_t' H* x_i                                                                                (SLND eq. 23)

Put into the update, p_t and y_t cancel: u += 2 (1 - eps) (sum_i p_i y_i s_i) / (F''(0) sum_i s_i^2) z_t, the exact
minimiser along z_t of the quadratic upper bound when eps = 1/2, the value taken here.
"""

from cython cimport floating
from cython.parallel cimport prange, threadid
from libc.stdint cimport int64_t

from cmargin._core.losses._losses cimport point, point_loss
from cmargin._core.rows._rows cimport Rows, gather_row, rows_view, sparse_axpy, sparse_dot
from cmargin._core.util._fp_control cimport fp_set, fp_settings, fp_standard
from cmargin._core.util._shapes cimport must_fit, within
from cmargin._core.util._simd cimport row_axpy, row_dot

cdef enum:
    LOSS = 0
    ERRORS = 1
    WEIGHT = 2


cdef inline Py_ssize_t row_of(int64_t visit) noexcept nogil:
    return visit if visit >= 0 else -1 - visit


cdef void similarities(const rows_view *X, const floating *Z, Py_ssize_t width, Py_ssize_t row, const int64_t *subset,
                       Py_ssize_t n_subset, double bias_rate, double low_sign, double tail_inverse,
                       floating *dense, double *s) noexcept nogil:
    # s_i = x_row' H* x_i (+ the intercept's share) over the subset
    cdef Py_ssize_t i
    if tail_inverse > 0:
        gather_row(X, row, dense)
    for i in range(n_subset):
        s[i] = low_sign * row_dot(Z + row * width, Z + row_of(subset[i]) * width, width) + bias_rate
        if tail_inverse > 0:
            s[i] += tail_inverse * sparse_dot(X, row_of(subset[i]), <const floating *> dense)


cdef void theory_class(const rows_view *X, const floating *Z, Py_ssize_t width, const double *row_weight,
                       const int64_t *visits, Py_ssize_t first, Py_ssize_t last, const int64_t *subset,
                       Py_ssize_t n_subset, int loss, double curvature, double bias_rate, double low_sign,
                       double tail_inverse, floating *u, floating *v, double *bias, int64_t *n_steps, double *sums,
                       floating *dense, double *s, double *scores) noexcept nogil:
    cdef Py_ssize_t t, i, row
    cdef double score, y, y_i, own, e, square, weight, change
    cdef const floating *z
    cdef point at
    for i in range(n_subset):
        row = row_of(subset[i])
        scores[i] = low_sign * row_dot(u, Z + row * width, width) + bias[0]
        if tail_inverse > 0:
            scores[i] += tail_inverse * sparse_dot(X, row, <const floating *> v)
    for t in range(first, last):
        row = row_of(visits[t])
        y = 1 if visits[t] >= 0 else -1
        z = Z + row * width
        score = low_sign * row_dot(u, z, width) + bias[0]
        if tail_inverse > 0:
            score += tail_inverse * sparse_dot(X, row, <const floating *> v)
        similarities(X, Z, width, row, subset, n_subset, bias_rate, low_sign, tail_inverse, dense, s)
        # the row itself is in both sums: they then bound the step even where it is orthogonal to the subset
        own = bias_rate + low_sign * row_dot(z, z, width)
        if tail_inverse > 0:
            own += tail_inverse * sparse_dot(X, row, <const floating *> dense)
        weight = row_weight[row] if row_weight != NULL else 1
        e = -weight * y * own * point_loss(loss, y * score, 0, 0).slope
        square = weight * own * own
        for i in range(n_subset):
            y_i = 1 if subset[i] >= 0 else -1
            weight = row_weight[row_of(subset[i])] if row_weight != NULL else 1
            e -= weight * y_i * s[i] * point_loss(loss, y_i * scores[i], 0, 0).slope
            square += weight * s[i] * s[i]
        change = e / (curvature * square) if square > 0 else 0
        row_axpy(change, z, u, width)
        if tail_inverse > 0:
            sparse_axpy(change, X, row, v)
        bias[0] += change * bias_rate
        for i in range(n_subset):
            scores[i] += change * s[i]
        at = point_loss(loss, y * score, 0, 0)
        weight = row_weight[row] if row_weight != NULL else 1
        sums[LOSS] += weight * at.value
        sums[ERRORS] += weight * (y * score <= 0)
        sums[WEIGHT] += weight
        n_steps[0] += 1


def run_theory_steps(
    Rows X,
    const floating[:, ::1] Z,            # IN    (n_rows, width)
    const double[::1] row_weight,        # IN    (n_rows,), or (0,) for ones
    Py_ssize_t class_lo,
    const int64_t[::1] offsets,          # IN    (n_drawn + 1,)
    const int64_t[::1] visits,           # IN    (offsets[-1],)
    Py_ssize_t first,
    Py_ssize_t last,
    const int64_t[::1] subset_offsets,   # IN    (n_classes + 1,)
    const int64_t[::1] subset,           # IN    visits of each class's subset
    int loss,
    double curvature,                    # F''(0)
    double bias_rate,
    double low_sign,
    double tail_inverse,
    floating[:, ::1] U,                  # INOUT (n_classes, width)
    floating[:, ::1] V,                  # INOUT (n_classes, n_features) where tail_inverse > 0
    double[:, ::1] bias,                 # INOUT (n_classes, 2)
    int64_t[::1] n_steps,                # INOUT (n_classes,)
    double[:, ::1] sums,                 # INOUT (n_classes, 3)
    floating[:, ::1] dense,              # WORK  (n_threads, n_features) where tail_inverse > 0
    double[:, :, ::1] work,              # WORK  (n_threads, 2, longest subset)
    int n_threads,
):
    """Take steps ``first .. last - 1`` of the lists of every class from ``class_lo`` on."""
    cdef fp_settings settings
    cdef Py_ssize_t o, c, t
    cdef const double *weight = &row_weight[0] if row_weight.shape[0] else NULL
    cdef bint tail = tail_inverse > 0
    cdef Py_ssize_t n_classes = U.shape[0], d = X.view.n_features, longest = 0
    must_fit(Z.shape[0] == X.view.n_rows and U.shape[1] == Z.shape[1] and row_weight.shape[0] in (0, X.view.n_rows)
             and within(offsets, visits.shape[0]) and class_lo >= 0 and first >= 0
             and class_lo + offsets.shape[0] - 1 <= n_classes and subset_offsets.shape[0] == n_classes + 1
             and within(subset_offsets, subset.shape[0])
             and bias.shape[0] == n_steps.shape[0] == sums.shape[0] == n_classes and bias.shape[1] == 2
             and sums.shape[1] == 3, "run_theory_steps")
    for c in range(n_classes):
        longest = max(longest, subset_offsets[c + 1] - subset_offsets[c])
    must_fit((not tail or (V.shape[0] == n_classes and V.shape[1] == d and dense.shape[0] >= n_threads
                           and dense.shape[1] >= d))
             and work.shape[0] >= n_threads and work.shape[1] == 2 and work.shape[2] >= longest,
             "run_theory_steps, workspace")
    cdef const int64_t *all_visits = &visits[0] if visits.shape[0] else NULL        # a class may have none,
    cdef const int64_t *all_subset = &subset[0] if subset.shape[0] else NULL        # nor a row of the subset
    for o in prange(offsets.shape[0] - 1, nogil=True, num_threads=n_threads, schedule="dynamic"):
        settings = fp_standard()
        c = class_lo + o
        t = threadid()
        theory_class(&X.view, &Z[0, 0], Z.shape[1], weight, all_visits + offsets[o], first,
                     min(last, offsets[o + 1] - offsets[o]), all_subset + subset_offsets[c],
                     subset_offsets[c + 1] - subset_offsets[c], loss, curvature, bias_rate, low_sign, tail_inverse,
                     &U[c, 0], &V[c, 0] if tail else NULL, &bias[c, 0], &n_steps[c], &sums[c, 0],
                     &dense[t, 0] if tail else NULL, &work[t, 0, 0], &work[t, 1, 0])
        fp_set(settings)
