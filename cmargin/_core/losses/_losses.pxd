"""The table of losses: a loss is a file here, and a line in each of these functions.

A loss gives value, slope and curvature at one margin z = y <w, x>, facts (``_point.pxd``), and, where it has a dual,
what a dual variable adds to the bound. Where a caller uses only the slope, the compiler drops the rest. Domain: every
finite z. Arithmetic is double whatever the dtype of the data.
"""

from cmargin._core.losses._calibrated_hinge cimport calibrated_hinge, calibrated_hinge_facts
from cmargin._core.losses._epsilon_insensitive cimport epsilon_insensitive, epsilon_insensitive_facts
from cmargin._core.losses._hinge cimport hinge, hinge_facts, hinge_gain
from cmargin._core.losses._huber cimport huber, huber_facts, huber_gain
from cmargin._core.losses._huberised_hinge cimport (
    MODIFIED_DELTA, MODIFIED_SCALE, huberised_hinge, huberised_hinge_facts, huberised_hinge_gain, modified_huber,
    modified_huber_facts, modified_huber_gain,
)
from cmargin._core.losses._logistic cimport logistic, logistic_facts, logistic_gain
from cmargin._core.losses._margin_pursuit cimport margin_pursuit, margin_pursuit_facts
from cmargin._core.losses._point cimport loss_facts, loss_t, point
from cmargin._core.losses._quantile cimport quantile, quantile_facts
from cmargin._core.losses._smooth_rows cimport (
    huber_curvatures, huber_line, huber_rows, huberised_hinge_line, huberised_hinge_curvatures, huberised_hinge_rows,
    huberised_hinge_gains, logistic_gains, logistic_line, logistic_curvatures, logistic_rows,
    squared_epsilon_insensitive_curvatures, squared_epsilon_insensitive_line, squared_epsilon_insensitive_rows,
    squared_hinge_gains, squared_hinge_line, squared_hinge_curvatures, squared_hinge_rows,
)
from cmargin._core.losses._smoothed_hinge cimport smoothed_hinge, smoothed_hinge_facts
from cmargin._core.losses._squared cimport squared, squared_facts
from cmargin._core.losses._squared_epsilon_insensitive cimport (
    squared_epsilon_insensitive, squared_epsilon_insensitive_facts, squared_epsilon_insensitive_gain,
)
from cmargin._core.losses._squared_hinge cimport squared_hinge, squared_hinge_facts, squared_hinge_gain
from cmargin._core.losses._two_kinks cimport two_kinks, two_kinks_at, two_kinks_gain


cdef enum loss_id:
    LOGISTIC, CALIBRATED_HINGE, SQUARED, HINGE, SMOOTHED_HINGE, MARGIN_PURSUIT, SQUARED_HINGE,
    EPSILON_INSENSITIVE, QUANTILE,
    HUBERISED_HINGE, MODIFIED_HUBER, SQUARED_EPSILON_INSENSITIVE, HUBER,
    N_LOSSES


cdef inline bint has_two_kinks(const loss_t *loss) noexcept nogil:
    return loss.id == EPSILON_INSENSITIVE or loss.id == QUANTILE


cdef inline two_kinks kinks_of(const loss_t *loss) noexcept nogil:
    return quantile(loss.a) if loss.id == QUANTILE else epsilon_insensitive(loss.a)


cdef inline point point_loss(const loss_t *loss, double z) noexcept nogil:
    if loss.id == LOGISTIC:
        return logistic(z)
    if loss.id == CALIBRATED_HINGE:
        return calibrated_hinge(z)
    if loss.id == SQUARED:
        return squared(z)
    if loss.id == HINGE:
        return hinge(z)
    if loss.id == SMOOTHED_HINGE:
        return smoothed_hinge(z, loss.a)
    if loss.id == SQUARED_HINGE:
        return squared_hinge(z)
    if has_two_kinks(loss):
        return two_kinks_at(kinks_of(loss), z)
    if loss.id == HUBERISED_HINGE:
        return huberised_hinge(z, loss.a)
    if loss.id == MODIFIED_HUBER:
        return modified_huber(z)
    if loss.id == SQUARED_EPSILON_INSENSITIVE:
        return squared_epsilon_insensitive(z, loss.a)
    if loss.id == HUBER:
        return huber(z, loss.a)
    return margin_pursuit(z, loss.a, loss.b)


cdef inline loss_facts facts_of(const loss_t *loss) noexcept nogil:
    if loss.id == LOGISTIC:
        return logistic_facts()
    if loss.id == CALIBRATED_HINGE:
        return calibrated_hinge_facts()
    if loss.id == SQUARED:
        return squared_facts()
    if loss.id == HINGE:
        return hinge_facts()
    if loss.id == SMOOTHED_HINGE:
        return smoothed_hinge_facts()
    if loss.id == SQUARED_HINGE:
        return squared_hinge_facts()
    if loss.id == EPSILON_INSENSITIVE:
        return epsilon_insensitive_facts()
    if loss.id == QUANTILE:
        return quantile_facts(loss.a)
    if loss.id == HUBERISED_HINGE:
        return huberised_hinge_facts(loss.a)
    if loss.id == MODIFIED_HUBER:
        return modified_huber_facts()
    if loss.id == SQUARED_EPSILON_INSENSITIVE:
        return squared_epsilon_insensitive_facts(loss.a)
    if loss.id == HUBER:
        return huber_facts(loss.a)
    return margin_pursuit_facts()


cdef inline double dual_gain(const loss_t *loss, double a) noexcept nogil:
    # -F*(-a) = min over z of F(z) + a z, what a dual variable a = -F'(z) adds to the bound; concave, 0 at a = 0
    if loss.id == SQUARED_HINGE:
        return squared_hinge_gain(a)
    if loss.id == LOGISTIC:
        return logistic_gain(a)
    if has_two_kinks(loss):
        return two_kinks_gain(kinks_of(loss), a)
    if loss.id == HUBERISED_HINGE:
        return huberised_hinge_gain(a, loss.a)
    if loss.id == MODIFIED_HUBER:
        return modified_huber_gain(a)
    if loss.id == SQUARED_EPSILON_INSENSITIVE:
        return squared_epsilon_insensitive_gain(a, loss.a)
    if loss.id == HUBER:
        return huber_gain(a, loss.a)
    return hinge_gain(a)


cdef inline bint has_dual(const loss_t *loss) noexcept nogil:
    return facts_of(loss).dual_largest > 0


cdef inline int in_newton_steps(int loss) noexcept nogil:
    # the loss that Newton's method takes in place of one with a kink
    return SMOOTHED_HINGE if loss == HINGE else loss


cdef inline bint vectorised_rows(const loss_t *loss, double step, double floor, Py_ssize_t n,
                                 const double *signed_weight, const double *slack, const double *change,
                                 double *dual_next, double *parts, Py_ssize_t ld, double *r,
                                 double *curvature) noexcept nogil:
    # what an evaluation asks of n rows, where that is written for the processor's vectors; False: it is not,
    # of this loss
    if loss.id == LOGISTIC:
        logistic_rows(step, floor, n, signed_weight, slack, change, dual_next, parts, ld, r, curvature)
    elif loss.id == SQUARED_HINGE:
        squared_hinge_rows(step, floor, n, signed_weight, slack, change, dual_next, parts, ld, r, curvature)
    elif loss.id == HUBERISED_HINGE:
        huberised_hinge_rows(loss.a, 1, step, floor, n, signed_weight, slack, change, dual_next, parts, ld, r,
                             curvature)
    elif loss.id == MODIFIED_HUBER:
        huberised_hinge_rows(MODIFIED_DELTA, MODIFIED_SCALE, step, floor, n, signed_weight, slack, change, dual_next,
                             parts, ld, r, curvature)
    elif loss.id == SQUARED_EPSILON_INSENSITIVE:
        squared_epsilon_insensitive_rows(loss.a, step, floor, n, signed_weight, slack, change, dual_next, parts, ld, r,
                                         curvature)
    elif loss.id == HUBER:
        huber_rows(loss.a, step, floor, n, signed_weight, slack, change, dual_next, parts, ld, r, curvature)
    else:
        return False
    return True


cdef inline bint vectorised_curvatures(const loss_t *loss, double step, double floor, Py_ssize_t n,
                                       const double *signed_weight, const double *slack, const double *change,
                                       double *curvature) noexcept nogil:
    # the same of a product: curvature alone
    if loss.id == LOGISTIC:
        logistic_curvatures(step, floor, n, signed_weight, slack, change, curvature)
    elif loss.id == SQUARED_HINGE:
        squared_hinge_curvatures(step, floor, n, signed_weight, slack, change, curvature)
    elif loss.id == HUBERISED_HINGE:
        huberised_hinge_curvatures(loss.a, 1, step, floor, n, signed_weight, slack, change, curvature)
    elif loss.id == MODIFIED_HUBER:
        huberised_hinge_curvatures(MODIFIED_DELTA, MODIFIED_SCALE, step, floor, n, signed_weight, slack, change,
                                   curvature)
    elif loss.id == SQUARED_EPSILON_INSENSITIVE:
        squared_epsilon_insensitive_curvatures(loss.a, step, floor, n, signed_weight, slack, change, curvature)
    elif loss.id == HUBER:
        huber_curvatures(loss.a, step, floor, n, signed_weight, slack, change, curvature)
    else:
        return False
    return True


cdef inline bint vectorised_line(const loss_t *loss, double step, Py_ssize_t n, const double *signed_weight,
                                 const double *slack, const double *change, double *out) noexcept nogil:
    # the same of a trial step: value, slope, curvature
    if loss.id == LOGISTIC:
        logistic_line(n, signed_weight, slack, change, step, out)
    elif loss.id == SQUARED_HINGE:
        squared_hinge_line(n, signed_weight, slack, change, step, out)
    elif loss.id == HUBERISED_HINGE:
        huberised_hinge_line(loss.a, 1, n, signed_weight, slack, change, step, out)
    elif loss.id == MODIFIED_HUBER:
        huberised_hinge_line(MODIFIED_DELTA, MODIFIED_SCALE, n, signed_weight, slack, change, step, out)
    elif loss.id == SQUARED_EPSILON_INSENSITIVE:
        squared_epsilon_insensitive_line(loss.a, n, signed_weight, slack, change, step, out)
    elif loss.id == HUBER:
        huber_line(loss.a, n, signed_weight, slack, change, step, out)
    else:
        return False
    return True


cdef inline bint vectorised_gains(const loss_t *loss, double part, Py_ssize_t n, const double *signed_weight,
                                  const double *first_a, const double *second_a, double *out) noexcept nogil:
    # sum s G(a) of dual variables, part of the first ones and the rest of the second; of losses of a margin alone
    if loss.id == LOGISTIC:
        out[0] = logistic_gains(n, signed_weight, first_a, second_a, part)
    elif loss.id == SQUARED_HINGE:
        out[0] = squared_hinge_gains(n, signed_weight, first_a, second_a, part)
    elif loss.id == HUBERISED_HINGE:
        out[0] = huberised_hinge_gains(loss.a, 1, n, signed_weight, first_a, second_a, part)
    elif loss.id == MODIFIED_HUBER:
        out[0] = huberised_hinge_gains(MODIFIED_DELTA, MODIFIED_SCALE, n, signed_weight, first_a, second_a, part)
    else:
        return False
    return True
