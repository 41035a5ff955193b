"""The Newton system of a curvature block: by a Cholesky factor, and with an l1 term by coordinate descent and Newton.

No data are read here: the block is in memory, so that the model is solved, not just improved, before the next
evaluation.
"""

from libc.float cimport DBL_EPSILON, DBL_MIN
from libc.math cimport INFINITY, NAN, fabs, isfinite
from libc.string cimport memcpy

from cmargin._core.linalg._blas cimport NO_TRANS, axpy, dot, gemv, potrf, potrs
from cmargin._core.newton.direction._l1_pivots cimport minimise_on
from cmargin._core.penalties._by_column cimport clipped, sign_of, stopped
from cmargin._core.penalties._elastic_net cimport l1_minimum_of_one
from cmargin._core.util._clock cimport seconds

MODEL_ROUNDS = 20
MODEL_TOL = 1e-3
SMOOTH_MODEL_TOL = 0.1
MODEL_LEFT = 0.25
FAR = 1e100                              # an l1 weight so small is none
cdef double FIRST_RIDGE = 1e-13
cdef double RIDGE_STEP = 100
cdef double SURE = 2e-6                  # part of a diagonal entry, a column: 34 times the rounding of single precision
cdef double SINGLE_LEAST = 1e-25         # mean curvature of a column whose sums neither vanish
cdef double SINGLE_MOST = 1e25           # nor overflow
SWEEPS = 8                               # of coordinate descent between two Newton steps of the model
cdef double SWEPT = 1e-6
HALVINGS = 12


cdef bint upper_is_finite(Py_ssize_t n, const double *upper) noexcept nogil:
    cdef Py_ssize_t i, j
    for i in range(n):
        for j in range(i, n):
            if not isfinite(upper[i * n + j]):
                return False
    return True


cdef bint all_finite(Py_ssize_t n, const double *x) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        if not isfinite(x[i]):
            return False
    return True


cdef void divide_by_diagonal(Py_ssize_t n, const double *upper, double largest, Py_ssize_t k, const double *rhs,
                             double *x) noexcept nogil:
    cdef Py_ssize_t i, c
    cdef double own
    for i in range(n):
        own = upper[i * n + i] if upper[i * n + i] > 0 else largest
        for c in range(k):
            x[c * n + i] = rhs[c * n + i] / own


cdef bint solve_in_place(Py_ssize_t n, double *upper, Py_ssize_t k, const double *rhs, double *x) noexcept nogil:
    # upper becomes its factor; False: it has none
    if potrf(n, upper) != 0:
        return False
    memcpy(x, rhs, k * n * sizeof(double))
    potrs(n, k, upper, x)
    return all_finite(k * n, x)


cdef double solve_upper(Py_ssize_t n, const double *upper, Py_ssize_t k, const double *rhs, double *x,
                        double *scratch) noexcept nogil:
    return solve_from_ridge(0, n, upper, k, rhs, x, scratch)


cdef double solve_after_ridge(double ridge, Py_ssize_t n, const double *upper, Py_ssize_t k, const double *rhs,
                              double *x, double *scratch) noexcept nogil:
    return solve_from_ridge(max(FIRST_RIDGE, RIDGE_STEP * ridge), n, upper, k, rhs, x, scratch)


cdef double solve_from_ridge(double ridge, Py_ssize_t n, const double *upper, Py_ssize_t k, const double *rhs,
                             double *x, double *scratch) noexcept nogil:
    # a ridge, a multiple of every diagonal entry as columns may be of very different scale, only where the factor
    # fails; where rounding has left a matrix that even its own diagonal cannot mend, no more than that diagonal
    cdef double largest = 0
    cdef Py_ssize_t i
    if n == 0:
        return 0
    for i in range(n):
        largest = max(largest, upper[i * n + i])
    largest = largest if largest > 0 else 1
    while True:
        memcpy(scratch, upper, n * n * sizeof(double))
        if ridge > 0:
            for i in range(n):
                scratch[i * n + i] += ridge * (upper[i * n + i] if upper[i * n + i] > 0 else largest)
        if solve_in_place(n, scratch, k, rhs, x):
            return ridge
        if ridge == 0:
            if not upper_is_finite(n, upper):
                return NAN
            ridge = FIRST_RIDGE
        elif ridge > 1:
            divide_by_diagonal(n, upper, largest, k, rhs, x)
            return INFINITY
        else:
            ridge *= RIDGE_STEP


cdef bint allows_rounding(Py_ssize_t n, const double *upper, const double *factor) noexcept nogil:
    # a matrix whose entries differ by the rounding of single precision, H_ij by a little of sqrt(H_ii H_jj), has nearly
    # the same solutions: what is left of every diagonal entry once the columns before it are eliminated is far above
    # what n such errors add up to, and no entry is beyond the range
    cdef Py_ssize_t i
    cdef double own, left
    for i in range(n):
        own, left = upper[i * n + i], factor[i * n + i]
        if not left * left >= SURE * n * own or not SINGLE_LEAST <= own <= SINGLE_MOST:
            return False
    return True


cdef bint curvature_is_lost(Py_ssize_t n, const double *diagonal, Py_ssize_t stride, const double *g) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        if not isfinite(diagonal[i * stride]) or (diagonal[i * stride] < DBL_MIN and g[i] != 0):
            return True
    return False


# ---------------------------------------------------------------- the model with an l1 term and bounds

cdef int run_sweeps(Py_ssize_t n, const double *H, double *gradient, double *x, const double *l1, const double *lower,
                    const double *upper, int sweeps, double tol) noexcept nogil:
    cdef Py_ssize_t j
    cdef double curvature, target, step, decrease, largest, first = 0
    cdef int sweep
    for sweep in range(sweeps):
        largest = 0
        for j in range(n):
            curvature = H[j * n + j]
            if not curvature > 0:
                continue
            target = clipped(l1_minimum_of_one(curvature, x[j], gradient[j], l1[j]), lower[j], upper[j])
            step = target - x[j]
            if step == 0:
                continue
            decrease = curvature * step * step
            largest = decrease if decrease > largest else largest
            x[j] = target
            axpy(n, step, H + j * n, gradient)
        if sweep == 0:
            first = largest
        if largest <= tol * first:
            return sweep + 1
    return sweeps


cdef double projected_step(Py_ssize_t n, const double *H, const double *g, const double *x, const double *l1,
                           const double *lower, const double *upper, const double *sign, double *step, double *move,
                           double *product) noexcept nogil:
    # step becomes the projected step with the smallest model value among its halvings: components that come to a kink
    # stop; the part of it that was taken. move becomes the place that it leads to
    cdef double t = 1, new, value, best_value = 0, best_t = 0
    cdef Py_ssize_t j
    cdef int _trial
    for _trial in range(HALVINGS):
        value = 0
        for j in range(n):
            new = stopped(x[j] + t * step[j], x[j], sign[j], l1[j], lower[j], upper[j])
            move[j] = new - x[j]
            value += g[j] * move[j] + l1[j] * (fabs(new) - fabs(x[j]))
        gemv(NO_TRANS, n, n, 1.0, H, n, move, 0.0, product)
        value += dot(n, move, product) / 2
        if value < best_value:
            best_t, best_value = t, value
        elif best_value < 0:
            break
        t /= 2
    for j in range(n):
        move[j] = stopped(x[j] + best_t * step[j], x[j], sign[j], l1[j], lower[j], upper[j]) if best_t > 0 else x[j]
        step[j] = move[j] - x[j]
    return best_t


cdef void choose_signs(Py_ssize_t n, const double *gx, const double *x, const double *l1, const double *lower,
                       const double *upper, double *sign, double *slope) noexcept nogil:
    # of the columns that are at no kink or would leave it, and the slope there; 0 of the others
    cdef Py_ssize_t j
    for j in range(n):
        sign[j] = sign_of(gx[j], x[j], l1[j], lower[j], upper[j])
        slope[j] = gx[j] + l1[j] * sign[j] if sign[j] != 0 else 0


cdef double decrease_left(Py_ssize_t n, const double *H, Py_ssize_t m, const Py_ssize_t *index, const double *factor,
                          const double *slope, double *own, double *known) noexcept nogil:
    # what a Newton step would gain, by the factor of the last one's m columns, and by their own curvature of the others
    cdef double left = 0
    cdef Py_ssize_t i, j
    for j in range(n):
        known[j] = 0
    for i in range(m):
        own[i], known[index[i]] = slope[index[i]], 1
    potrs(m, 1, factor, own)
    for i in range(m):
        left += slope[index[i]] * own[i]
    for j in range(n):
        if known[j] == 0 and slope[j] != 0:
            left += slope[j] * slope[j] / H[j * n + j] if H[j * n + j] > 0 else INFINITY
    return left


cdef void gather_upper(Py_ssize_t n, const double *H, Py_ssize_t m, const Py_ssize_t *index,
                       double *to) noexcept nogil:
    cdef Py_ssize_t i, j
    for i in range(m):
        for j in range(i, m):
            to[i * m + j] = H[index[i] * n + index[j]]


cdef double solve_columns(Py_ssize_t n, const double *H, Py_ssize_t m, const Py_ssize_t *index, const double *slope,
                          double *own, double *part, double *factor) noexcept nogil:
    # own = H^-1 slope of m columns, as `solve_upper` answers; slope (m,). `part`, as large as the factor, is touched
    # where that fails only
    gather_upper(n, H, m, index, factor)
    if solve_in_place(m, factor, 1, slope, own):
        return 0
    gather_upper(n, H, m, index, part)
    return solve_upper(m, part, 1, slope, own, factor)


cdef double worst_slope(Py_ssize_t n, const double *slope, const double *unit) noexcept nogil:
    # over the unit of slopes
    cdef double worst = 0
    cdef Py_ssize_t j
    for j in range(n):
        if unit[j] > 0:
            worst = max(worst, fabs(slope[j]) / unit[j])
    return worst


cdef void choose_units(Py_ssize_t n, const double *gx, const double *l1, const double *lower, const double *upper,
                       double *unit) noexcept nogil:
    # what slopes are measured by: the l1 weight; where there is none but a bound, the steepest slope at the beginning
    cdef double steepest = 0
    cdef Py_ssize_t j
    for j in range(n):
        steepest = max(steepest, fabs(gx[j]))
    for j in range(n):
        unit[j] = steepest if l1[j] == 0 and (lower[j] > -INFINITY or upper[j] < INFINITY) else l1[j]


cdef bint held_minimum(Py_ssize_t n, const double *H, double *gx, double *x, const double *l1, const double *lower,
                       const double *upper, int rounds, double tol, double least, double deadline, double *work,
                       Py_ssize_t *index, Py_ssize_t *order) noexcept nogil:
    # x from w to the minimum, gx the gradient of the quadratic part, which follows: coordinate descent finds the
    # signs, Newton the values, of which those of thousands of columns take seconds; from a step on that zeros cut
    # short the values by pivots. work (2 n + 8) n
    cdef double *part = work                     # (m, m) H of the columns that are at no kink
    cdef double *factor = part + n * n           # (m, m)
    cdef double *sign = factor + n * n           # (n,)
    cdef double *slope = sign + n                # (n,)
    cdef double *steep = slope + n               # (m,)
    cdef double *own = steep + n                 # (m,)
    cdef double *step = own + n                  # (n,)
    cdef double *move = step + n                 # (n,)
    cdef double *product = move + n              # (n,)
    cdef double *unit = product + n              # (n,)
    cdef double ridge = INFINITY, predicted, best = 0, enough
    cdef Py_ssize_t m = 0, i, j
    cdef bint by_pivots = False
    cdef int _round
    choose_units(n, gx, l1, lower, upper, unit)
    choose_signs(n, gx, x, l1, lower, upper, sign, slope)
    enough = max(least, tol * min(worst_slope(n, slope, unit), FAR))
    for _round in range(rounds):
        run_sweeps(n, H, gx, x, l1, lower, upper, SWEEPS, SWEPT)
        if seconds() > deadline:
            break
        choose_signs(n, gx, x, l1, lower, upper, sign, slope)
        if by_pivots and worst_slope(n, slope, unit) <= enough:
            break
        if isfinite(ridge) and decrease_left(n, H, m, index, factor, slope, own, move) <= tol * tol * best:
            break
        m, predicted = 0, 0
        for j in range(n):
            step[j] = 0
            if sign[j] != 0:
                index[m], steep[m] = j, slope[j]
                m += 1
        if by_pivots and minimise_on(n, H, gx, x, l1, lower, upper, unit, sign, m, index, enough / 2, deadline, factor,
                                     slope, order):
            continue
        ridge = solve_columns(n, H, m, index, steep, own, part, factor)
        if ridge != ridge:
            return False
        for i in range(m):
            step[index[i]] = -own[i]
            predicted += steep[i] * own[i]
        best = max(predicted, best)
        if not predicted > tol * tol * best:
            break
        if projected_step(n, H, gx, x, l1, lower, upper, sign, step, move, product) < 1:
            by_pivots, ridge = True, INFINITY
        gemv(NO_TRANS, n, n, 1.0, H, n, step, 1.0, gx)
        axpy(n, 1.0, step, x)
        for j in range(n):                       # exactly, where a sum is rounded
            x[j] = move[j] if move[j] == lower[j] or move[j] == upper[j] else x[j]
    return True


cdef Py_ssize_t l1_work_size(Py_ssize_t n) noexcept nogil:
    return (3 * n + 14) * n


cdef void minimise_out(Py_ssize_t m, double own, double g_free, const double *across, double *H,
                       double *gx) noexcept nogil:
    # H and gx of m columns once a column of curvature ``own`` > 0 follows them: what is left of each, and its rounding
    cdef Py_ssize_t i, j
    for i in range(m):
        gx[i] -= across[i] * g_free / own
        # what the difference cannot know, being the rounding of what it was taken from
        H[i * m + i] += DBL_EPSILON * H[i * m + i]
        for j in range(m):
            H[i * m + j] -= across[i] * across[j] / own


cdef bint l1_minimum(Py_ssize_t n, const double *upper, const double *g, const double *w, const double *l1,
                     const double *lowest, const double *highest, int rounds, double tol, double least, double deadline,
                     double *d, double *work, Py_ssize_t *index) noexcept nogil:
    # A column without l1 or bounds (an intercept) is minimised out first, d_f = -(g_f + sum_j H_fj d_j) / H_ff, so that
    # columns which all lean on it, as those with a large mean do, meet in coordinate descent as if they were centred
    cdef double *H = work                        # (m, m) of the other columns, both triangles
    cdef double *rest = H + n * n                # for `held_minimum`
    cdef double *x = rest + (2 * n + 8) * n      # (m,)
    cdef double *gx = x + n                      # (m,)
    cdef double *weight = gx + n                 # (m,)
    cdef double *across = weight + n             # (m,) H_fj
    cdef double *least_x = across + n            # (m,)
    cdef double *most_x = least_x + n            # (m,)
    cdef Py_ssize_t *column = index + n          # (m,)
    cdef Py_ssize_t *order = column + n          # (m,)
    cdef Py_ssize_t m = 0, free = -1, i, j, a, b
    cdef double own = 0, follow, low, high
    for j in range(n):
        low = lowest[j] if lowest != NULL else -INFINITY
        high = highest[j] if highest != NULL else INFINITY
        if l1[j] == 0 and free < 0 and low == -INFINITY and high == INFINITY:
            free = j
        else:
            column[m], x[m], gx[m], weight[m], least_x[m], most_x[m] = j, w[j], g[j], l1[j], low, high
            m += 1
    for a in range(m):
        for b in range(a, m):
            H[a * m + b] = H[b * m + a] = upper[column[a] * n + column[b]]
    if free >= 0:
        own = upper[free * n + free]
        own = own if own > 0 else 1              # no row has curvature: a plain gradient step
        for a in range(m):
            i, j = min(free, column[a]), max(free, column[a])
            across[a] = upper[i * n + j]
        minimise_out(m, own, g[free], across, H, gx)
    if not isfinite(own) or not held_minimum(m, H, gx, x, weight, least_x, most_x, rounds, tol, least, deadline, rest,
                                             index, order):
        return False
    for a in range(m):
        d[column[a]] = x[a] - w[column[a]]
    if free >= 0:
        follow = g[free]
        for a in range(m):
            follow += across[a] * d[column[a]]
        d[free] = -follow / own
    return True
