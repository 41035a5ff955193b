"""A penalty with numbers of each column's own: l2_j w^2 / 2 + l1_j |w| for lower_j <= w <= upper_j, infinite elsewhere.

Its conjugate is v m - phi_j(m) at the column's own minimum, m = clip(soft(v, l1_j) / l2_j, lower_j, upper_j). A bound
is a kink with an infinite slope beyond it: where weights are at a bound or, with l1_j > 0, at 0, they may rest.
"""

from libc.math cimport INFINITY, fabs, isfinite

from cmargin._core.penalties._elastic_net cimport soft_threshold
from cmargin._core.penalties._penalty cimport penalty_t


# ---------------------------------------------------------------- one column

cdef inline double clipped(double x, double lower, double upper) noexcept nogil:
    return lower if x < lower else (upper if x > upper else x)


cdef inline bint is_at_kink(double x, double l1, double lower, double upper) noexcept nogil:
    return x == lower or x == upper or (x == 0 and l1 > 0)


cdef inline double slope_beside(double x, int side, double l1) noexcept nogil:
    # of l1 |x| where x goes to that side, -1 or 1
    return l1 if x > 0 or (x == 0 and side > 0) else -l1


cdef inline int side_left(double slope, double x, double l1, double lower, double upper, double near) noexcept nogil:
    # the side to which a column at a kink goes, if everything but l1 |x| has that slope, or with the slope off by
    # ``near`` would; 0: it rests
    if x < upper and slope + slope_beside(x, 1, l1) < near:
        return 1
    if x > lower and slope + slope_beside(x, -1, l1) > -near:
        return -1
    return 0


cdef inline int sign_of(double slope, double x, double l1, double lower, double upper) noexcept nogil:
    # that of x, or where x is 0 the side to which it goes if all but l1 |x| has that slope; 0: it rests at a kink
    cdef int side = 1
    if is_at_kink(x, l1, lower, upper):
        side = side_left(slope, x, l1, lower, upper, 0)
    return 0 if side == 0 else (1 if x > 0 or (x == 0 and side > 0) else -1)


cdef inline double stopped(double new, double x, double sign, double l1, double lower, double upper) noexcept nogil:
    # where a column that goes from x to ``new`` comes to its first kink
    if sign == 0:
        return x
    return clipped(0 if sign * new <= 0 and l1 > 0 else new, lower, upper)


cdef inline double landed(const penalty_t *penalty, Py_ssize_t j, double at, double step) noexcept nogil:
    # where a column is after a step: at its bound, if that is beyond it or next to it up to rounding
    cdef double upper = penalty.upper[j], lower = penalty.lower[j]
    if at >= upper or upper - at < 4e-16 * (fabs(step) + fabs(upper)):
        return upper
    if at <= lower or at - lower < 4e-16 * (fabs(step) + fabs(lower)):
        return lower
    return at


# ---------------------------------------------------------------- along a line

cdef inline double longest_step(const penalty_t *penalty, const double *w, const double *d) noexcept nogil:
    # the largest s for which w + s d is within the bounds, 1 at least: that a full step is
    cdef double most = INFINITY
    cdef Py_ssize_t j
    for j in range(penalty.n):
        if d[j] > 0 and (penalty.upper[j] - w[j]) < most * d[j]:
            most = (penalty.upper[j] - w[j]) / d[j]
        elif d[j] < 0 and (penalty.lower[j] - w[j]) > most * d[j]:
            most = (penalty.lower[j] - w[j]) / d[j]
    return max(1.0, most)


# ---------------------------------------------------------------- the dual value

cdef inline double own_minimum(const penalty_t *penalty, Py_ssize_t j, double v) noexcept nogil:
    # argmin of phi_j(w) - v w
    cdef double soft = soft_threshold(v, penalty.l1_each[j]), lower = penalty.lower[j], upper = penalty.upper[j]
    if penalty.l2_each[j] > 0:
        return clipped(soft / penalty.l2_each[j], lower, upper)
    return upper if soft > 0 else (lower if soft < 0 else clipped(0, lower, upper))


cdef inline double conjugate_of_one(const penalty_t *penalty, Py_ssize_t j, double v) noexcept nogil:
    cdef double m = own_minimum(penalty, j, v)
    return v * m - penalty.l2_each[j] * m * m / 2 - penalty.l1_each[j] * fabs(m)


cdef inline double largest_multiple(const penalty_t *penalty, Py_ssize_t n, const double *v,
                                    const double *noise) noexcept nogil:
    # the largest t <= 1 for which no conjugate at t (|v_j| + noise_j) is infinite
    cdef double most = 1, error
    cdef Py_ssize_t j
    for j in range(n):
        if penalty.l2_each[j] > 0:
            continue
        error = noise[j] if noise != NULL else 0
        if penalty.upper[j] == INFINITY and v[j] + error > penalty.l1_each[j]:
            most = min(most, penalty.l1_each[j] / (v[j] + error))
        if penalty.lower[j] == -INFINITY and error - v[j] > penalty.l1_each[j]:
            most = min(most, penalty.l1_each[j] / (error - v[j]))
    return most


cdef inline double by_column_bound(const penalty_t *penalty, double total, Py_ssize_t n, const double *v,
                                   const double *noise) noexcept nogil:
    # max over t of t S - sum phi_j*(t v_j), a concave function, 0 <= t <= 1: its slope S - sum v_j m_j is piecewise
    # linear, and leaps where l2_j = 0; Newton's method finds its root, by bisection where it leaves the bracket or
    # makes little of it. t = 0 is what bounds say without any row. The larger of phi_j*(t (v_j +- noise_j)) counts,
    # whose slope is not the one that is searched
    cdef double low = 0, high = largest_multiple(penalty, n, v, noise), t = high, slope, fall, at_zero = 0, bound, m
    cdef double room = INFINITY, most = high
    cdef Py_ssize_t j
    for j in range(n):
        at_zero -= conjugate_of_one(penalty, j, 0)
    if not isfinite(total):
        return at_zero
    while True:
        slope, fall = total, 0
        for j in range(n):
            m = own_minimum(penalty, j, t * v[j])
            if m == 0:
                continue
            slope -= v[j] * m
            if penalty.lower[j] < m < penalty.upper[j]:
                fall += v[j] * v[j] / penalty.l2_each[j]
        if slope >= 0:
            low = t
        else:
            high = t
        if not high - low > 1e-15 * most or fabs(slope) <= 1e-14 * fabs(total):
            break
        t = t + slope / fall if fall > 0 and high - low <= room / 2 else -1
        room = high - low
        if not low < t < high:
            t = (low + high) / 2
    bound = t * total
    for j in range(n):
        m = noise[j] if noise != NULL else 0
        bound -= max(conjugate_of_one(penalty, j, t * (v[j] + m)), conjugate_of_one(penalty, j, t * (v[j] - m)))
    return bound if bound > at_zero else at_zero
