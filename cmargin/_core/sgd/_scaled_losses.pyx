"""Log-losses of given scores times one factor t, and how their sum bends in t.

    L_i(t) = ln sum_c exp(t h_ic) - t h_iy,     L_i'(t) = <p, h_i> - h_iy,     L_i''(t) = sum_c p_c (h_ic - <p, h_i>)^2

with p the softmax of t h_i. The factor is what a model's scores are steep by; which class is on top does not depend on
it.
"""

import numpy as np

from cython cimport floating
from libc.math cimport INFINITY, isfinite
from libc.stdint cimport int64_t

from cmargin._core.losses._softmax cimport softmax_rows, spread_rows
from cmargin._core.util._shapes cimport must_fit

cdef enum:
    GROUP = 16                  # rows whose softmax is taken at a time


cdef void group_sums(
    const floating *h,          # IN    (n, k), scores
    Py_ssize_t n,
    Py_ssize_t k,
    const int64_t *truth,       # IN    (n,)
    const double *weight,       # IN    (n,), or NULL for ones
    const double *share,        # IN    (k,)
    double factor,
    floating *work,             # WORK  (2 GROUP + 1, k)
    double *loss_out,           # OUT   (n,)
    double *sums,               # INOUT (3,), slope, curvature and slope by share are added
) noexcept nogil:
    cdef Py_ssize_t j, c
    cdef double[GROUP] ones
    cdef double[3 * GROUP] of_rows, spread
    cdef double s, by_share
    cdef floating *p = work + GROUP * k
    for j in range(n * k):
        work[j] = <floating> factor * h[j]
    for j in range(n):
        ones[j] = 1
    softmax_rows(work, n, k, ones, p, <floating *> NULL, of_rows, GROUP)
    spread_rows(p, h, n, k, work + 2 * GROUP * k, spread, GROUP)
    for j in range(n):
        s, by_share = weight[j] if weight != NULL else 1, 0
        loss_out[j] = s * (of_rows[j] - work[j * k + truth[j]] + of_rows[GROUP + j])
        if not isfinite(loss_out[j]):
            loss_out[j] = INFINITY
        for c in range(k):
            by_share += share[c] * h[j * k + c]
        sums[0] += s * (spread[j] - h[j * k + truth[j]])
        sums[1] += s * spread[GROUP + j]
        sums[2] += s * (spread[j] - by_share)


def scaled_losses(
    const floating[:, ::1] scores,       # IN    (n, n_classes)
    const int64_t[::1] truth,            # IN    (n,), class of each
    const double[::1] weight,            # IN    (n,), or (0,) for ones
    const double[::1] share,             # IN    (n_classes,), sum 1
    double factor,                       # t
    double[::1] loss_out,                # OUT   (n,), weighted loss of every row at t, or inf
):
    """Sums over the rows, by weight, of the losses' first and second derivative in t; and of the first where the class
    of every row is drawn by ``share``.
    """
    cdef Py_ssize_t i, g, first, n = scores.shape[0], k = scores.shape[1]
    cdef double[3] sums
    must_fit(truth.shape[0] == n and weight.shape[0] in (0, n) and share.shape[0] == k and loss_out.shape[0] == n,
             "scaled_losses")
    for i in range(n):
        must_fit(0 <= truth[i] < k, "scaled_losses")
    cdef floating[:, ::1] work = np.empty((2 * GROUP + 1, k), np.asarray(scores[:0]).dtype)
    sums[0] = sums[1] = sums[2] = 0
    with nogil:
        for g in range((n + GROUP - 1) // GROUP):
            first = g * GROUP
            group_sums(&scores[first, 0], min(GROUP, n - first), k, &truth[first],
                       &weight[first] if weight.shape[0] else NULL, &share[0], factor, &work[0, 0], &loss_out[first],
                       sums)
    return sums[0], sums[1], sums[2]
