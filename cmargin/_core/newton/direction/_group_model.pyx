"""The minimum of a quadratic and norms of groups of columns, on a block in memory.

    m(d) = g'd + d'Hd/2 + sum over groups of mu_g |w_g + d_g|

Descent over the groups finds which are at zero: a group is where |c_g| <= mu_g, c_g the slope of the rest there, and
else takes a step by a bound of its curvature. On the others m is smooth, with mu_g / |x_g| (I - u u') beside H, u the
direction of x_g, and Newton steps find the values; a group that such a step would turn round is set to zero. A column
of no group, an intercept, is minimised out first, as with an l1 term (``_system.pyx``).
"""

from libc.math cimport INFINITY, fabs, isfinite, sqrt

from cmargin._core.linalg._blas cimport NO_TRANS, axpy, dot, gemv
from cmargin._core.newton.direction._system cimport FAR, HALVINGS, SWEEPS, all_finite, minimise_out, solve_upper
from cmargin._core.util._clock cimport seconds
from cmargin._core.util._sorting cimport sort_with_index


cdef struct group_model:
    Py_ssize_t m                 # columns, those of a group side by side
    double *H                    # (m, m) both triangles
    double *part                 # (m, m) scratch, as the next
    double *factor               # (m, m)
    double *x                    # (m,)
    double *gx                   # (m,) gradient of the quadratic at x
    double *mu                   # (m,)
    double *bound                # (m,) of the curvature of the column's group
    double *slope                # (m,) of m at x, of columns in use; scratch of a sweep
    double *step                 # (m,) the next three scratch
    double *move                 # (m,)
    double *product              # (m,)
    Py_ssize_t *group            # (m,)
    Py_ssize_t *used             # (m,) columns of groups that are not at zero, so many:
    Py_ssize_t n_used


cdef inline Py_ssize_t end_of_group(const group_model *at, Py_ssize_t a) noexcept nogil:
    # of the group that begins at column a
    cdef Py_ssize_t b = a + 1
    while b < at.m and at.group[b] == at.group[a]:
        b += 1
    return b


cdef inline double norm_between(const double *x, Py_ssize_t a, Py_ssize_t b) noexcept nogil:
    return sqrt(dot(b - a, x + a, x + a))


cdef void bound_curvature(group_model *at) noexcept nogil:
    # by the largest sum of sizes in a row of the group's entries, which no eigenvalue is beyond
    cdef Py_ssize_t a = 0, b, i, j
    cdef double largest, total
    while a < at.m:
        b, largest = end_of_group(at, a), 0
        for i in range(a, b):
            total = 0
            for j in range(a, b):
                total += fabs(at.H[i * at.m + j])
            largest = total if not total <= largest else largest
        for i in range(a, b):
            at.bound[i] = largest
        a = b


cdef void move_group(group_model *at, Py_ssize_t a, Py_ssize_t b) noexcept nogil:
    # x_g to its minimum where that is 0, else by a step that lowers m
    cdef double norm, keep, own, target
    cdef Py_ssize_t i
    for i in range(a, b):
        at.slope[i] = at.gx[i] - dot(b - a, at.H + i * at.m + a, at.x + a)
    keep = 0
    if norm_between(at.slope, a, b) > at.mu[a]:
        for i in range(a, b):
            at.slope[i] = at.x[i] - at.gx[i] / at.bound[a]
        norm = norm_between(at.slope, a, b)
        keep = max(0.0, 1 - at.mu[a] / (at.bound[a] * norm)) if norm > 0 else 0
    for i in range(a, b):
        target = keep * at.slope[i] if keep > 0 else 0
        own = target - at.x[i]
        at.step[i], at.x[i] = own, target
    for i in range(a, b):
        if at.step[i] != 0:
            axpy(at.m, at.step[i], at.H + i * at.m, at.gx)


cdef double sweep_and_look(group_model *at, int sweeps) noexcept nogil:
    # sweeps, then slopes of what is in use, and the worst violation of a group's condition over mu_g
    cdef Py_ssize_t a = 0, b, i
    cdef double worst = 0, norm
    cdef int _sweep
    for _sweep in range(sweeps):
        a = 0
        while a < at.m:
            b = end_of_group(at, a)
            if at.bound[a] > 0:
                move_group(at, a, b)
            a = b
    at.n_used = a = 0
    while a < at.m:
        b = end_of_group(at, a)
        norm = norm_between(at.x, a, b)
        for i in range(a, b):
            at.slope[i] = at.gx[i]
            if norm > 0:
                at.slope[i] += at.mu[a] * at.x[i] / norm
                at.used[at.n_used] = i
                at.n_used += 1
        worst = max(worst, norm_between(at.slope, a, b) / at.mu[a] - (norm == 0))
        a = b
    return worst


cdef double newton_system(group_model *at) noexcept nogil:
    # step = minus the curvature of m over the columns in use to their slopes; the ridge that it took
    cdef Py_ssize_t k = at.n_used, lo, hi, i, j
    cdef double norm, share
    for i in range(k):
        for j in range(i, k):
            at.part[i * k + j] = at.H[at.used[i] * at.m + at.used[j]]
        at.move[i] = at.slope[at.used[i]]
    lo = 0
    while lo < k:
        hi = lo + 1
        while hi < k and at.group[at.used[hi]] == at.group[at.used[lo]]:
            hi += 1
        norm = norm_between(at.x, at.used[lo], at.used[lo] + hi - lo)
        share = at.mu[at.used[lo]] / norm
        for i in range(lo, hi):
            at.part[i * k + i] += share
            for j in range(i, hi):
                at.part[i * k + j] -= share * (at.x[at.used[i]] / norm) * (at.x[at.used[j]] / norm)
        lo = hi
    share = solve_upper(k, at.part, 1, at.move, at.product, at.factor)
    for i in range(at.m):
        at.step[i] = 0
    for i in range(k):
        at.step[at.used[i]] = -at.product[i]
    return share


cdef double change_of_model(group_model *at, double t) noexcept nogil:
    # move = t step, groups that it would turn round going to zero; by how much it changes m
    cdef Py_ssize_t a = 0, b, i
    cdef double value = 0, along, square
    while a < at.m:
        b, along, square = end_of_group(at, a), 0, 0
        for i in range(a, b):
            at.move[i] = at.x[i] + t * at.step[i]
            along += at.move[i] * at.x[i]
            square += at.x[i] * at.x[i]
        if square > 0:
            for i in range(a, b):
                at.move[i] = at.move[i] if along > 0 else 0
            value += at.mu[a] * (norm_between(at.move, a, b) - sqrt(square))
        for i in range(a, b):
            at.move[i] -= at.x[i]
        a = b
    gemv(NO_TRANS, at.m, at.m, 1.0, at.H, at.m, at.move, 0.0, at.product)
    return value + dot(at.m, at.gx, at.move) + dot(at.m, at.move, at.product) / 2


cdef double first_turn(const group_model *at) noexcept nogil:
    # the part of the step that turns the first group round
    cdef Py_ssize_t a = 0, b
    cdef double along, first = INFINITY
    while a < at.m:
        b = end_of_group(at, a)
        along = dot(b - a, at.x + a, at.step + a)
        if along < 0:
            first = min(first, dot(b - a, at.x + a, at.x + a) / -along)
        a = b
    return first


cdef double best_part(group_model *at, double t) noexcept nogil:
    # of the step's parts t, t/2, ... the first whose half does not lower m more; 0: none lowers it
    cdef double change, best = 0, found = 0
    cdef int _trial
    for _trial in range(HALVINGS):
        change = change_of_model(at, t)
        if change < best:
            best, found = change, t
        elif best < 0:
            break
        t /= 2
    return found


cdef bint newton_step(group_model *at) noexcept nogil:
    # False: the curvature is not finite
    cdef double t
    if at.n_used == 0:
        return True
    if not newton_system(at) >= 0:
        return False
    t = best_part(at, 1)
    if t == 0:
        # Where columns depend on each other the step is long, and m falls along it until a group is at zero.
        t = best_part(at, min(1.0, first_turn(at)))
    if t > 0:
        change_of_model(at, t)
        axpy(at.m, 1.0, at.product, at.gx)
        axpy(at.m, 1.0, at.move, at.x)           # a group that goes to zero is there to the bit: x + (0 - x)
    return True


cdef Py_ssize_t group_work_size(Py_ssize_t n) noexcept nogil:
    return (3 * n + 10) * n


cdef void lay_out_model(group_model *at, Py_ssize_t n, double *work, Py_ssize_t *index) noexcept nogil:
    at.H, at.part, at.factor = work, work + n * n, work + 2 * n * n
    at.x = at.factor + n * n
    at.gx, at.mu, at.bound, at.slope = at.x + n, at.x + 2 * n, at.x + 3 * n, at.x + 4 * n
    at.step, at.move, at.product = at.x + 5 * n, at.x + 6 * n, at.x + 7 * n
    at.group, at.used = index + n, index + 2 * n


cdef bint group_minimum(Py_ssize_t n, const double *upper, const double *g, const double *w, double *group,
                        const double *mu, int rounds, double tol, double least, double deadline, double *d,
                        double *work, Py_ssize_t *index) noexcept nogil:
    cdef group_model at
    cdef double *across                          # (m,) H of the column without a group
    cdef Py_ssize_t *column                      # (m,) of the block
    cdef Py_ssize_t free, i, j
    cdef double own = 0, enough, worst
    cdef int _round
    lay_out_model(&at, n, work, index)
    across = at.product + n
    for i in range(n):
        index[i] = i
    sort_with_index(n, group, index)
    free = index[0] if n > 0 and group[0] < 0 else -1
    column = index + (free >= 0)
    at.m = n - (free >= 0)
    for i in range(at.m):
        at.x[i], at.gx[i], at.mu[i] = w[column[i]], g[column[i]], mu[column[i]]
        at.group[i] = <Py_ssize_t> group[i + (free >= 0)]
        for j in range(at.m):
            at.H[i * at.m + j] = upper[min(column[i], column[j]) * n + max(column[i], column[j])]
    if free >= 0:
        own = upper[free * n + free]
        own = own if own > 0 else 1              # no row has curvature: a plain gradient step
        for i in range(at.m):
            across[i] = upper[min(free, column[i]) * n + max(free, column[i])]
        minimise_out(at.m, own, g[free], across, at.H, at.gx)
    bound_curvature(&at)
    if not (isfinite(own) and all_finite(at.m, at.bound)):
        return False
    enough = max(least, tol * min(sweep_and_look(&at, 0), FAR))
    for _round in range(rounds):
        worst = sweep_and_look(&at, SWEEPS)
        if worst <= enough or seconds() > deadline:
            break
        if not newton_step(&at):
            return False
    for i in range(at.m):
        d[column[i]] = at.x[i] - w[column[i]]
    if free >= 0:
        d[free] = -(g[free] + sum_of(at.m, across, column, d)) / own
    return all_finite(n, d)


cdef double sum_of(Py_ssize_t m, const double *across, const Py_ssize_t *column, const double *d) noexcept nogil:
    cdef double total = 0
    cdef Py_ssize_t i
    for i in range(m):
        total += across[i] * d[column[i]]
    return total
