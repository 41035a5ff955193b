"""The losses of ``_losses.pxd``, array by array, for Python callers: tests, posteriors, diagnostics."""

from libc.math cimport NAN, isfinite, log

from cmargin._core.losses._losses cimport CALIBRATED_HINGE, LOGISTIC, SQUARED, dual_gain, point, point_loss
from cmargin._core.small._shapes cimport must_fit

LOSS_IDS = {
    "logistic": 0,
    "calibrated_hinge": 1,
    "squared": 2,
    "hinge": 3,
    "smoothed_hinge": 4,
    "margin_pursuit": 5,
    "squared_hinge": 6,
}
# F(0), its size where it is negative; F''(0), the largest F'' there is; and the root mean square slope, at most, where
# the mean loss is 1
AT_ZERO = {"logistic": log(2), "calibrated_hinge": log(2), "squared": 0.25, "hinge": 1.0, "squared_hinge": 1.0}
LARGEST_CURVATURE = {"logistic": 0.25, "calibrated_hinge": 0.25, "squared": 0.5, "squared_hinge": 2.0}
STEEPEST = {"hinge": 1.0, "logistic": 1.0, "squared_hinge": 2.0}


def evaluate(int loss, const double[::1] margins, double[::1] value_out, double[::1] slope_out,
             double[::1] curvature_out, double a=1.0, double b=1.0):
    """Value, slope and curvature of a loss at every margin; all arrays (n,). ``a``, ``b``: see `point_loss`."""
    cdef Py_ssize_t i
    cdef point at
    if loss < 0 or loss > 6:
        raise ValueError(f"unknown loss id {loss}")
    must_fit(margins.shape[0] == value_out.shape[0] == slope_out.shape[0] == curvature_out.shape[0], "evaluate")
    with nogil:
        for i in range(margins.shape[0]):
            at = point_loss(loss, margins[i], a, b)
            value_out[i] = at.value
            slope_out[i] = at.slope
            curvature_out[i] = at.curvature


def mean_losses(int loss, const double[:, ::1] margins, const double[::1] weight, double a, const double[::1] b,
                double[::1] mean_out):
    """Mean loss of the margins (n_problems, n) of every problem; NaN where a margin is not finite.

    ``weight``: (n,) or (0,) for ones; ``a``, ``b`` (n_problems,): see `point_loss`.
    """
    cdef Py_ssize_t c, i, n = margins.shape[1]
    cdef double total, weights
    if loss < 0 or loss > 6:
        raise ValueError(f"unknown loss id {loss}")
    must_fit(n > 0 and weight.shape[0] in (0, n) and b.shape[0] == mean_out.shape[0] == margins.shape[0],
             "mean_losses")
    with nogil:
        for c in range(margins.shape[0]):
            total = weights = 0
            for i in range(n):
                if not isfinite(margins[c, i]):
                    total = NAN
                total += (weight[i] if weight.shape[0] > 0 else 1) * point_loss(loss, margins[c, i], a, b[c]).value
                weights += weight[i] if weight.shape[0] > 0 else 1
            mean_out[c] = total / weights


def posterior(int loss, const double[::1] scores, double[::1] posterior_out):
    """f(score) = 1 + F'(score), clipped to [0, 1], of a calibrated loss (BSN eq. 3-4); both arrays (n,)."""
    cdef Py_ssize_t i
    cdef double f
    if loss != LOGISTIC and loss != CALIBRATED_HINGE and loss != SQUARED:
        raise ValueError("only a calibrated loss has a posterior: logistic, calibrated_hinge or squared")
    must_fit(scores.shape[0] == posterior_out.shape[0], "posterior")
    with nogil:
        for i in range(scores.shape[0]):
            f = 1 + point_loss(loss, scores[i], NAN, NAN).slope
            posterior_out[i] = f if 0 <= f <= 1 else (NAN if f != f else (1.0 if f > 1 else 0.0))


def gains(int loss, const double[::1] a, double[::1] gain_out):
    """-F*(-a), what a dual variable is worth in the bound (see `dual_gain`); both arrays (n,)."""
    cdef Py_ssize_t i
    with nogil:
        for i in range(a.shape[0]):
            gain_out[i] = dual_gain(loss, a[i])
