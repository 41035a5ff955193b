"""The dual over a few rows by their products with each other.

    max over low <= s <= high of   sum y s - s'Q s / 2 - sum ridge s^2 / 2,   sum s = 0 where the intercept is free,

s = a y the signed dual variables, p the slopes. Two steps take turns:

1. **Pairs** (Platt 1999; the second by the most that the pair gains, Fan, Chen and Lin 2005): the row of the steepest
   way up and another one of those that may go down, by as much each. sum s stays as it is. Without a free intercept
   one row moves alone. A step costs a few m.
2. **The face**: to the minimum over the rows between their bounds, by a Cholesky factor of their products, up to the
   first bound; a row that is met there stays, and the others go on.

Pairs find which rows are between their bounds, faces their values.
"""

from libc.float cimport DBL_EPSILON
from libc.math cimport INFINITY, fabs

from cmargin._core.linalg._blas cimport potrf, potrs
from cmargin._core.util._simd cimport row_axpy

cdef enum:
    MOST_PAIRS = 100             # Steps by pairs for every row of the block, at most.

# Steps by pairs, for every row between its bounds, before a face is solved: a factor costs n^3/3, a step n.
cdef double PAIRS = 3
cdef double SINGULAR = 1e-12     # Part of the largest diagonal entry that is added to all, where rows are copies.


cdef inline double gap_of(const gram_block *at, Py_ssize_t k, double b) noexcept nogil:
    # of a row: what s may still gain along its slope, at least 0. With a ridge the best s is at slope 0
    cdef double v = at.p[k] - b, room = at.high[k] - at.s[k] if v > 0 else at.s[k] - at.low[k]
    v = fabs(v)
    if at.ridge[k] > 0 and v < room * at.ridge[k]:
        return v * v / (2 * at.ridge[k])
    return room * (v - at.ridge[k] * room / 2)


cdef double gap_of_block(const gram_block *at, double b) noexcept nogil:
    cdef double gap = 0
    cdef Py_ssize_t k
    for k in range(at.m):
        gap += gap_of(at, k, b)
    return gap


cdef inline void move(gram_block *at, Py_ssize_t k, double step) noexcept nogil:
    cdef double end = at.high[k] if step > 0 else at.low[k], before = at.s[k]
    at.s[k] += step
    if fabs(end - at.s[k]) <= 4 * DBL_EPSILON * fabs(end) or (at.s[k] > end) == (step > 0):
        at.s[k] = end
    step = at.s[k] - before
    at.balance += step
    row_axpy(-step, at.Q + k * at.m, at.p, at.m)
    at.p[k] -= at.ridge[k] * step


cdef Py_ssize_t steepest(const gram_block *at, double *most, double *least) noexcept nogil:
    # the row of the largest slope that may go up; most, least: that slope, and the smallest of those that may go down
    cdef Py_ssize_t k, best = -1
    cdef double top = -INFINITY, bottom = INFINITY, p
    for k in range(at.m):
        p = at.p[k]
        if at.s[k] < at.high[k] and p > top:
            top, best = p, k
        if at.s[k] > at.low[k] and p < bottom:
            bottom = p
    most[0], least[0] = top, bottom
    return best


cdef bint pair_step(gram_block *at, Py_ssize_t up, double top) noexcept nogil:
    # False: there is nothing to gain
    cdef Py_ssize_t k, down = -1, m = at.m
    cdef const double *q = at.Q + up * m
    cdef double best = 0, fall, curvature, own = q[up] + at.ridge[up], step
    for k in range(m):
        fall = top - at.p[k]
        if fall > 0 and at.s[k] > at.low[k]:
            curvature = own + at.Q[k * m + k] + at.ridge[k] - 2 * q[k]
            curvature = max(curvature, 1e-12 * own)
            if fall * fall > best * curvature:
                best, down = fall * fall / curvature, k
    if down < 0:
        return False
    curvature = max(own + at.Q[down * m + down] + at.ridge[down] - 2 * q[down], 1e-12 * own)
    step = (top - at.p[down]) / curvature if curvature > 0 else INFINITY
    step = min(step, at.high[up] - at.s[up], at.s[down] - at.low[down])
    if not 0 < step < INFINITY:
        return False
    move(at, up, step)
    move(at, down, -step)
    return True


cdef inline double own_step(const gram_block *at, Py_ssize_t k) noexcept nogil:
    # to the best place of a row by itself
    cdef double curvature = at.Q[k * at.m + k] + at.ridge[k], p = at.p[k], room
    room = at.high[k] - at.s[k] if p > 0 else at.low[k] - at.s[k]
    return p / curvature if fabs(p) < curvature * fabs(room) else room


cdef bint single_step(gram_block *at) noexcept nogil:
    # of the row that gains most by itself
    cdef Py_ssize_t k, best = -1
    cdef double most = 0, step, gain
    for k in range(at.m):
        step = own_step(at, k)
        gain = step * (at.p[k] - (at.Q[k * at.m + k] + at.ridge[k]) * step / 2)
        if gain > most:
            most, best = gain, k
    if best < 0:
        return False
    move(at, best, own_step(at, best))
    return True


# ---------------------------------------------------------------- the face

cdef Py_ssize_t rows_of_face(gram_block *at) noexcept nogil:
    cdef Py_ssize_t k, n = 0
    for k in range(at.m):
        if at.low[k] < at.s[k] < at.high[k]:
            at.face[n] = k
            n += 1
    return n


cdef inline double curvature_along(const gram_block *at, Py_ssize_t k, Py_ssize_t n) noexcept nogil:
    # what the slope of the face's row k loses along ``ahead``
    cdef const double *row = at.Q + at.face[k] * at.m
    cdef double curvature = at.ridge[at.face[k]] * at.ahead[k]
    cdef Py_ssize_t j
    for j in range(n):
        curvature += row[at.face[j]] * at.ahead[j]
    return curvature


cdef bint face_step(gram_block *at) noexcept nogil:
    # True: a row has met its bound, and there is another face
    cdef Py_ssize_t n = rows_of_face(at), k, j, first = -1
    cdef double largest = 0, multiplier = 0, part, of_ones = 0, of_slopes = 0, step = 1, room, gain = 0, curvature = 0
    cdef double *row
    if n < 1 + at.free:
        return False
    for k in range(n):
        largest = max(largest, at.Q[at.face[k] * at.m + at.face[k]])
    for k in range(n):
        row = at.factor + k * n
        for j in range(k, n):
            row[j] = at.Q[at.face[k] * at.m + at.face[j]]
        row[k] += at.ridge[at.face[k]] + max(SINGULAR, at.rounding) * largest
        at.ahead[k], at.level[k] = at.p[at.face[k]], 1
    if potrf(n, at.factor) != 0:
        return False
    potrs(n, 1, at.factor, at.ahead)
    if at.free:
        potrs(n, 1, at.factor, at.level)
        for k in range(n):
            of_ones += at.level[k]
            of_slopes += at.ahead[k]
        multiplier = of_slopes / of_ones
        of_slopes = at.balance
        for k in range(n):
            at.ahead[k] -= multiplier * at.level[k]
            of_slopes += at.ahead[k]
        for k in range(n):                       # what rounding leaves of sum s is no more than its own
            at.ahead[k] -= of_slopes / n
    for k in range(n):                           # of a factor that is all but singular rounding may go anywhere
        gain += at.ahead[k] * (at.p[at.face[k]] - multiplier)
        curvature += at.ahead[k] * curvature_along(at, k, n)
    if not (gain > 0 and curvature < INFINITY):
        return False
    step = gain / curvature if curvature > 2 * gain else 1
    for k in range(n):
        j, part = at.face[k], at.ahead[k]
        room = at.high[j] - at.s[j] if part > 0 else at.s[j] - at.low[j]
        if fabs(part) * step > room:
            step, first = room / fabs(part), k
    for k in range(n):
        j = at.face[k]
        move(at, j, step * at.ahead[k])
        if k == first:
            at.s[j] = at.high[j] if at.ahead[k] > 0 else at.low[j]
    return first >= 0


cdef inline bint is_enough(const gram_block *at, double top, double bottom, double enough) noexcept nogil:
    return (at.free and not bottom < top) or gap_of_block(at, (top + bottom) / 2 if at.free else 0) <= enough


cdef Py_ssize_t solve_block(gram_block *at, double enough) noexcept nogil:
    # first one face between steps by pairs, which cost less than the many that end at a bound; then ever more of them
    cdef Py_ssize_t done = 0, since = 0, up, n_face = 0, n_faces, most_faces = 1
    cdef double top, bottom
    while True:
        up = steepest(at, &top, &bottom)
        n_face = max(<Py_ssize_t> 10, rows_of_face(at)) if since == 0 else n_face
        if since >= PAIRS * n_face:
            if is_enough(at, top, bottom, enough) or done > MOST_PAIRS * at.m:
                return done
            n_faces = 0
            while n_faces < most_faces and face_step(at):
                n_faces += 1
            since, most_faces = 0, min(2 * most_faces, at.m)
            steepest(at, &top, &bottom)
            if is_enough(at, top, bottom, enough):
                return done
            continue
        if not (pair_step(at, up, top) if at.free and up >= 0 else not at.free and single_step(at)):
            return done
        done += 1
        since += 1
