"""The l2 and the l1 penalty together, (l2/2) |w|^2 + l1 |w|_1; l1 alone where l2 = 0.

Its dual term is |soft(v, l1)|^2 / (2 l2), soft(v, l1)_j = sign(v_j) max(0, |v_j| - l1); without l2 it is 0 where all
|v_j| <= l1, and infinite elsewhere. Along w + s d it has a kink where a component vanishes (SmSVM, section 2.2).
"""

from libc.math cimport fabs

from cmargin._core.penalties._penalty cimport penalty_t
from cmargin._core.util._sorting cimport sort_down


cdef inline double elastic_net_value(const penalty_t *penalty, const double *w) noexcept nogil:
    cdef double squares = 0, sizes = 0
    cdef Py_ssize_t j
    for j in range(penalty.n):
        squares += penalty.l2_each[j] * w[j] * w[j]
        sizes += penalty.l1_each[j] * fabs(w[j])
    return squares / 2 + sizes


cdef inline double elastic_net_of_one(double l2, double l1, double x) noexcept nogil:
    return l1 * fabs(x) + l2 / 2 * x * x


cdef inline double l1_slope(const penalty_t *penalty, const double *w, const double *d, double s,
                            int side) noexcept nogil:
    # derivative of sum l1_j |w_j + s d_j| by s, from the left (side -1) or from the right (side 1)
    cdef Py_ssize_t j
    cdef double total = 0, at
    for j in range(penalty.n):
        if d[j] == 0:
            continue
        at = w[j] + s * d[j]
        if s * d[j] != 0 and fabs(at) <= 4e-16 * fabs(w[j]):   # on its own kink, up to rounding
            at = 0
        if at == 0:
            total += side * penalty.l1_each[j] * fabs(d[j])
        else:
            total += penalty.l1_each[j] * (d[j] if at > 0 else -d[j])
    return total


cdef inline Py_ssize_t l1_kinks(const penalty_t *penalty, const double *w, const double *d, double most, double *steps,
                                Py_ssize_t *index) noexcept nogil:
    # steps in (0, most) at which a component of w + s d vanishes, and which one; how many
    cdef Py_ssize_t j, found = 0
    for j in range(penalty.n):
        if w[j] * d[j] < 0 and -w[j] / d[j] < most:
            steps[found], index[found] = -w[j] / d[j], j
            found += 1
    return found


cdef inline double soft_threshold(double v, double l1) noexcept nogil:
    # soft(v, l1)
    return v - l1 if v > l1 else (v + l1 if v < -l1 else 0.0)


cdef inline double l1_minimum_of_one(double curvature, double x, double slope, double l1) noexcept nogil:
    # argmin over t of slope (t - x) + curvature (t - x)^2 / 2 + l1 |t|; curvature > 0
    return soft_threshold(curvature * x - slope, l1) / curvature


cdef inline double l1_violation(double slope, double x, double l1) noexcept nogil:
    # by how much a column at x violates its optimality condition, if everything but l1 |x| has that slope
    if x != 0:
        return fabs(slope + (l1 if x > 0 else -l1))
    return max(0.0, fabs(slope) - l1)


cdef inline double elastic_net_multiple(double l2, double l1, double total, Py_ssize_t n, double *size) noexcept nogil:
    # argmax over 0 <= t <= 1 of t S - sum max(0, t |v_j| - l1)^2 / (2 l2). The derivative
    # S - sum_{t |v_j| > l1} (t v_j^2 - l1 |v_j|) / l2 falls with t: its root with the k largest |v_j|, which belongs to
    # these k columns as long as the k-th is over l1. size (n,) is sorted
    cdef double squares = 0, sizes = 0, root = 1, largest = 0
    cdef Py_ssize_t j
    if l2 == 0:
        for j in range(n):
            largest = max(largest, size[j])
        return min(1.0, l1 / largest) if largest > 0 else 1.0
    sort_down(n, size)
    for j in range(n):
        if not size[j] > 0:
            break
        sizes += size[j]
        squares += size[j] * size[j]
        if not (l2 * total + l1 * sizes) / squares * size[j] > l1:
            break
        root = (l2 * total + l1 * sizes) / squares
    return min(1.0, root)


cdef inline double elastic_net_conjugate(double l2, double l1, double t, Py_ssize_t n,
                                         const double *size) noexcept nogil:
    # sum max(0, t |v_j| - l1)^2 / (2 l2); without l2 it is 0 at the multiple that `elastic_net_multiple` returns
    cdef double squares = 0, over
    cdef Py_ssize_t j
    if l2 == 0:
        return 0
    for j in range(n):
        over = t * size[j] - l1
        squares += over * over if over > 0 else 0
    return squares / (2 * l2)
