"""The minimum of the model with an l1 term on given columns, one component that comes to zero after the other.

Where columns in use are about as many as the curvature has directions, Newton's direction is long where the model is
nearly flat, and takes many components through zero. To stop them all there (`_system`) leaves most of it undone.
Here the model is minimised along the direction, its kinks known. A component that is at 0 there leaves, and the factor
goes on without its column, in m^2 operations for m^3 / 3. It is the feature-sign search of Lee, Battle, Raina and Ng
(2007, Algorithm 1), which looks at kinks alone, on many columns at once and with a factor that is kept.
"""

from libc.math cimport fabs, isfinite, sqrt
from libc.string cimport memcpy, memmove

from cmargin._core.linalg._blas cimport axpy, dot, potrf
from cmargin._core.penalties._by_column cimport clipped
from cmargin._core.util._clock cimport seconds
from cmargin._core.util._sorting cimport sort_with_index

cdef double RIDGE = 1e-7                 # of a diagonal entry: more columns than directions are no trouble
cdef int MOST = 2                        # directions, times the columns
cdef int CLOCK = 16                      # directions from one check of the clock to the next


cdef void solve_rows(Py_ssize_t m, Py_ssize_t ld, const double *R, double *x) noexcept nogil:
    # x <- (R' R)^-1 x, R (m, m) upper
    cdef Py_ssize_t i
    for i in range(m):
        x[i] /= R[i * ld + i]
        axpy(m - i - 1, -x[i], R + i * ld + i + 1, x + i + 1)
    for i in range(m - 1, -1, -1):
        x[i] = (x[i] - dot(m - i - 1, R + i * ld + i + 1, x + i + 1)) / R[i * ld + i]


cdef void rotate(Py_ssize_t n, double *a, double *b) noexcept nogil:
    # rows a and b so that b_0 = 0
    cdef double size = sqrt(a[0] * a[0] + b[0] * b[0]), c, s, old
    cdef Py_ssize_t j
    c, s = (a[0] / size, b[0] / size) if size > 0 else (1.0, 0.0)
    for j in range(n):
        old = a[j]
        a[j] = c * old + s * b[j]
        b[j] = c * b[j] - s * old


cdef void drop_column(Py_ssize_t m, Py_ssize_t ld, double *R, Py_ssize_t k) noexcept nogil:
    # R (m, m) upper becomes (m - 1, m - 1), the factor without row and column k
    cdef Py_ssize_t i, first
    for i in range(m):
        first = max(i, k + 1)
        memmove(R + i * ld + first - 1, R + i * ld + first, (m - first) * sizeof(double))
    for i in range(k, m - 1):
        rotate(m - 1 - i, R + i * ld + i, R + (i + 1) * ld + i)


cdef double to_kink(Py_ssize_t m, const Py_ssize_t *index, const double *x, const double *l1, const double *lower,
                    const double *upper, const double *step, double slope, double curvature, double *kink,
                    Py_ssize_t *order, Py_ssize_t *hit, double *place) noexcept nogil:
    # the minimum along the step, at most 1, which of the m components is at its kink there, or -1, and where that is;
    # a bound ends the step
    cdef Py_ssize_t i, j, found = 0, bounded = -1
    cdef double at = 0, end = 1, room
    hit[0], place[0] = -1, 0
    for i in range(m):
        j = index[i]
        if step[i] == 0:
            continue
        room = (upper[j] if step[i] > 0 else lower[j]) - x[j]
        if fabs(room) < end * fabs(step[i]):
            end, bounded = room / step[i], i
    for i in range(m):
        j = index[i]
        if x[j] * step[i] < 0 and l1[j] > 0 and -x[j] / step[i] < end:
            kink[found], order[found] = -x[j] / step[i], i
            found += 1
    sort_with_index(found, kink, order)
    for i in range(found):
        if slope + curvature * kink[i] >= 0:
            return max(at, -slope / curvature)
        at = kink[i]
        slope += 2 * l1[index[order[i]]] * fabs(step[order[i]])
        if slope + curvature * at >= 0:
            hit[0] = order[i]
            return at
    if curvature > 0 and slope + curvature * end > 0:
        return max(at, min(end, -slope / curvature))
    if bounded >= 0:
        hit[0] = bounded
        place[0] = upper[index[bounded]] if step[bounded] > 0 else lower[index[bounded]]
    return end


cdef Py_ssize_t leave(Py_ssize_t m, Py_ssize_t ld, double *R, Py_ssize_t *index, double *g,
                      Py_ssize_t i) noexcept nogil:
    drop_column(m, ld, R, i)
    memmove(index + i, index + i + 1, (m - 1 - i) * sizeof(Py_ssize_t))
    memmove(g + i, g + i + 1, (m - 1 - i) * sizeof(double))
    return m - 1


cdef inline bint leaves_wrongly(double x, double sign, double step, double l1, double lower,
                                double upper) noexcept nogil:
    # whether a component at a kink would leave it on the side where it is not wanted
    if x == lower or x == upper:
        return step < 0 if x == lower else step > 0
    return x == 0 and l1 > 0 and sign * step < 0


cdef Py_ssize_t wrong_way(Py_ssize_t m, const Py_ssize_t *index, const double *x, const double *l1,
                          const double *lower, const double *upper, const double *sign,
                          const double *step) noexcept nogil:
    # one that would, or -1
    cdef Py_ssize_t i, j
    for i in range(m):
        j = index[i]
        if leaves_wrongly(x[j], sign[j], step[i], l1[j], lower[j], upper[j]):
            return i
    return -1


cdef void move_columns(Py_ssize_t m, Py_ssize_t ld, double *R, Py_ssize_t n, const double *H, double *x,
                       const double *l1, const double *lower, const double *upper, const double *unit, double *sign,
                       Py_ssize_t *index, double enough, double deadline, double *g, double *step, double *along,
                       double *kink, Py_ssize_t *order) noexcept nogil:
    # R (m, m) the factor, g (m,) the gradient of the quadratic part, of the columns `index`
    cdef Py_ssize_t i, j, hit
    cdef double slope, curvature, worst, t, place
    cdef int count
    for count in range(MOST * m):
        if count % CLOCK == CLOCK - 1 and seconds() > deadline:
            return
        worst = slope = curvature = 0
        for i in range(m):
            j = index[i]
            step[i] = along[i] = -g[i] - l1[j] * sign[j]
            worst = max(worst, fabs(step[i]) - enough * unit[j])
        if not worst > 0:
            return
        solve_rows(m, ld, R, step)
        hit = wrong_way(m, index, x, l1, lower, upper, sign, step)
        if hit >= 0:
            sign[index[hit]] = 0
            m = leave(m, ld, R, index, g, hit)
            continue
        for i in range(m):                       # H step, by the system that the step solves
            slope -= along[i] * step[i]
            along[i] -= RIDGE * H[index[i] * n + index[i]] * step[i]
            curvature += along[i] * step[i]
        t = to_kink(m, index, x, l1, lower, upper, step, slope, curvature, kink, order, &hit, &place)
        for i in range(m):
            j = index[i]
            x[j] = clipped(x[j] + t * step[i], lower[j], upper[j])
            g[i] += t * along[i]
            if x[j] != 0 and l1[j] > 0:
                sign[j] = 1 if x[j] > 0 else -1
        if hit >= 0:
            x[index[hit]], sign[index[hit]] = place, 0
            m = leave(m, ld, R, index, g, hit)


cdef bint factor_of(Py_ssize_t n, const double *H, Py_ssize_t m, const Py_ssize_t *index, double *R) noexcept nogil:
    cdef Py_ssize_t i, j
    for i in range(m):
        for j in range(i, m):
            R[i * m + j] = H[index[i] * n + index[j]]
        R[i * m + i] *= 1 + RIDGE
    return potrf(m, R) == 0


cdef bint minimise_on(Py_ssize_t n, const double *H, double *gx, double *x, const double *l1, const double *lower,
                      const double *upper, const double *unit, double *sign, Py_ssize_t m, Py_ssize_t *index,
                      double enough, double deadline, double *factor, double *work,
                      Py_ssize_t *order) noexcept nogil:
    cdef double *before = work                   # (n,)
    cdef double *g = before + n                  # (m,) as the others
    cdef double *step = g + m
    cdef double *along = step + m
    cdef double *kink = along + m
    cdef Py_ssize_t j
    if not factor_of(n, H, m, index, factor):
        return False
    for j in range(m):
        g[j] = gx[index[j]]
    memcpy(before, x, n * sizeof(double))
    move_columns(m, m, factor, n, H, x, l1, lower, upper, unit, sign, index, enough, deadline, g, step, along, kink,
                 order)
    for j in range(n):
        if not isfinite(x[j]):
            memcpy(x, before, n * sizeof(double))
            return False
    for j in range(n):
        if x[j] != before[j]:
            axpy(n, x[j] - before[j], H + j * n, gx)
    return True
