"""The l2 penalty with norms of groups of columns, (l2/2) |w|^2 + sum mu_g |w_g|; the norms alone where l2 = 0.

mu_g is l1 times the group's weight. Its dual term is sum max(0, |v_g| - mu_g)^2 / (2 l2); without l2 it is 0 where all
|v_g| <= mu_g, and infinite elsewhere (Yuan and Lin 2006). A group is at zero as a whole or not at all. Along w + s d
a norm bends, and has a kink only where its whole group vanishes.
"""

from libc.math cimport sqrt

from cmargin._core.penalties._penalty cimport column_groups, penalty_t


cdef inline double norm_of_group(const column_groups *groups, Py_ssize_t g, const double *x) noexcept nogil:
    cdef double squares = 0
    cdef Py_ssize_t i
    for i in range(groups.first[g], groups.first[g + 1]):
        squares += x[groups.member[i]] * x[groups.member[i]]
    return sqrt(squares)


cdef inline double weight_of_group(const penalty_t *penalty, Py_ssize_t g) noexcept nogil:
    # mu_g
    return penalty.l1_each[penalty.groups.member[penalty.groups.first[g]]]


cdef inline double sum_of_norms(const penalty_t *penalty, const double *w) noexcept nogil:
    # sum of weight_g |w_g|: what l1 is the factor of
    cdef double sizes = 0
    cdef Py_ssize_t g
    for g in range(penalty.groups.n):
        sizes += penalty.groups.weight[g] * norm_of_group(&penalty.groups, g, w)
    return sizes


cdef inline double group_norms_value(const penalty_t *penalty, const double *w) noexcept nogil:
    cdef double squares = 0
    cdef Py_ssize_t j
    for j in range(penalty.n):
        squares += penalty.l2_each[j] * w[j] * w[j]
    return squares / 2 + penalty.l1 * sum_of_norms(penalty, w)


# ---------------------------------------------------------------- along a line

cdef struct norm_on_line:        # |w_g + s d_g|
    double size                  # 0: on its kink, up to rounding
    double along                 # <w_g + s d_g, d_g>
    double square                # |d_g|^2


cdef inline norm_on_line norm_at(const column_groups *groups, Py_ssize_t g, const double *w, const double *d,
                                 double s) noexcept nogil:
    cdef norm_on_line at
    cdef double own = 0, x
    cdef Py_ssize_t i, j
    at.size = at.along = at.square = 0
    for i in range(groups.first[g], groups.first[g + 1]):
        j = groups.member[i]
        x = w[j] + s * d[j]
        own += w[j] * w[j]
        at.size += x * x
        at.along += x * d[j]
        at.square += d[j] * d[j]
    at.size = sqrt(at.size)
    if s * at.square != 0 and at.size <= 1e-15 * sqrt(own):
        at.size = 0
    return at


cdef inline double group_norms_slope(const penalty_t *penalty, const double *w, const double *d, double s,
                                     int side) noexcept nogil:
    # derivative of sum mu_g |w_g + s d_g| by s, from the left (side -1) or from the right (side 1)
    cdef norm_on_line at
    cdef double total = 0
    cdef Py_ssize_t g
    for g in range(penalty.groups.n):
        at = norm_at(&penalty.groups, g, w, d, s)
        if at.square > 0:
            total += weight_of_group(penalty, g) * (at.along / at.size if at.size > 0 else side * sqrt(at.square))
    return total


cdef inline double group_norms_bend(const penalty_t *penalty, const double *w, const double *d,
                                    double s) noexcept nogil:
    # second derivative, between kinks
    cdef norm_on_line at
    cdef double total = 0
    cdef Py_ssize_t g
    for g in range(penalty.groups.n):
        at = norm_at(&penalty.groups, g, w, d, s)
        if at.size > 0:
            total += weight_of_group(penalty, g) * max(0.0, at.square - (at.along / at.size) ** 2) / at.size
    return total


cdef inline Py_ssize_t group_kinks(const penalty_t *penalty, const double *w, const double *d, double most,
                                   double *steps, Py_ssize_t *index) noexcept nogil:
    # steps in (0, most) at which a whole group of w + s d vanishes, and its first column; how many
    cdef norm_on_line at
    cdef double step
    cdef Py_ssize_t g, found = 0
    for g in range(penalty.groups.n):
        at = norm_at(&penalty.groups, g, w, d, 0)
        if not (at.along < 0 and at.size > 0):
            continue
        step = -at.along / at.square
        if step < most and norm_at(&penalty.groups, g, w, d, step).size == 0:
            steps[found], index[found] = step, penalty.groups.member[penalty.groups.first[g]]
            found += 1
    return found


# ---------------------------------------------------------------- at zero

cdef inline bint group_is_used(const penalty_t *penalty, Py_ssize_t j, const double *w) noexcept nogil:
    # whether the group of column j is not at zero
    cdef const column_groups *groups = &penalty.groups
    cdef Py_ssize_t g = groups.of[j], i
    for i in range(groups.first[g], groups.first[g + 1]):
        if w[groups.member[i]] != 0:
            return True
    return False


cdef inline double group_steepness(const penalty_t *penalty, Py_ssize_t j, const double *gradient) noexcept nogil:
    # the l1 up to which the gradient takes the group of column j from zero
    cdef Py_ssize_t g = penalty.groups.of[j]
    return norm_of_group(&penalty.groups, g, gradient) / penalty.groups.weight[g]


# ---------------------------------------------------------------- the dual term

cdef inline double group_size(const column_groups *groups, Py_ssize_t g, const double *size) noexcept nogil:
    # |v_g|, as `add_up_groups` leaves it
    return size[groups.member[groups.first[g]]]


cdef inline void add_up_groups(const column_groups *groups, double *size) noexcept nogil:
    # size (n,) of columns becomes that of their groups, each at the group's first column
    cdef Py_ssize_t g
    for g in range(groups.n):
        size[groups.member[groups.first[g]]] = norm_of_group(groups, g, size)


cdef inline double group_norms_multiple(const penalty_t *penalty, double total, double *size) noexcept nogil:
    # argmax over 0 <= t <= 1 of t S - sum max(0, t |v_g| - mu_g)^2 / (2 l2), by Newton's method from 1 down: the
    # derivative S - sum_{t |v_g| > mu_g} (t |v_g|^2 - mu_g |v_g|) / l2 falls and is concave. size becomes groups'
    cdef double t = 1, less, squares, sizes, mu, v, l2 = penalty.l2
    cdef Py_ssize_t g
    add_up_groups(&penalty.groups, size)
    if l2 == 0:
        for g in range(penalty.groups.n):
            v, mu = group_size(&penalty.groups, g, size), penalty.l1 * penalty.groups.weight[g]
            if v * t > mu:
                t = mu / v
        return t
    while True:                                  # with fewer groups every time
        squares = sizes = 0
        for g in range(penalty.groups.n):
            v, mu = group_size(&penalty.groups, g, size), penalty.l1 * penalty.groups.weight[g]
            if t * v > mu:
                squares += v * v
                sizes += mu * v
        less = (l2 * total + sizes) / squares if squares > 0 else 1
        if not less < t:
            return t
        t = less


cdef inline double group_norms_conjugate(const penalty_t *penalty, double t, const double *size) noexcept nogil:
    # sum max(0, t |v_g| - mu_g)^2 / (2 l2) at the multiple and of the sizes that `group_norms_multiple` leaves
    cdef double squares = 0, over
    cdef Py_ssize_t g
    if penalty.l2 == 0:
        return 0
    for g in range(penalty.groups.n):
        over = t * group_size(&penalty.groups, g, size) - penalty.l1 * penalty.groups.weight[g]
        squares += over * over if over > 0 else 0
    return squares / (2 * penalty.l2)
