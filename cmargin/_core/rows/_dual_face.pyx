"""A Newton step on the face of the dual: the rows that sweeps are at work on and that have somewhere to go.

Conjugate gradients in their dual variables, scaled by |x_i|^2 and their ridge. The step along a direction p is known
before the rows are read, since <p, K p> = |sum p y x|^2 + sum ridge p^2: one read of the face an iteration, in which a
row is read for its product with the direction and added to the next one while it is in cache. An iterate that meets a
bound stops there, the rows that met it leave, and the gradients begin again (Polyak 1969).
"""

import numpy as np

from libc.math cimport INFINITY
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from cmargin._core.linalg._blas cimport dot
from cmargin._core.rows._dual_rows cimport (
    AHEAD, DualBlocks, add_listed, add_rest, dual_products, gap_at, mean_product, reads_of, take_mean,
)
from cmargin._core.rows._tiles cimport add_row, fetch_row, row_product
from cmargin._core.util._shapes cimport must_fit

cdef int ITERATIONS = 100            # of one Newton step,
cdef int RESTARTS = 20               # and bounds met in it


cdef bint face_begin(face_step *at, dual_rows *rows, double *a, double *w, const Py_ssize_t *active, Py_ssize_t n,
                     double target, double limit) noexcept nogil:
    # active: ascending
    cdef Py_ssize_t n_columns = rows.m + 1
    cdef double *room = <double *> malloc((6 * n + 2 * n_columns) * sizeof(double) + n * (sizeof(Py_ssize_t) + 1))
    at.memory = room
    if room == NULL:
        return False
    at.rows, at.all_a, at.w, at.target, at.limit = rows, a, w, target, limit - <double> n / max(1, rows.n) - 1
    at.a, at.upper, at.square, at.r, at.z, at.p = room, room + n, room + 2 * n, room + 3 * n, room + 4 * n, room + 5 * n
    at.total, at.direction = room + 6 * n, room + 6 * n + n_columns
    at.face = <Py_ssize_t *> (at.direction + n_columns)
    at.hit = <unsigned char *> (at.face + n)
    memcpy(at.face, active, n * sizeof(Py_ssize_t))
    at.n, at.at, at.stage, at.gap, at.left, at.restarts = n, 0, DEFICITS, INFINITY, ITERATIONS, 0
    at.step = at.rz = 0
    return True


cdef void face_end(face_step *at) noexcept nogil:
    if at.stage != DEFICITS:
        put_back(at)
    free(at.memory)
    at.memory, at.stage = NULL, NOTHING


cdef void put_back(face_step *at) noexcept nogil:
    cdef Py_ssize_t k
    for k in range(at.n):
        at.all_a[at.face[k]] = at.a[k]


cdef bint face_part(face_step *at, Py_ssize_t most) noexcept nogil:
    # so many rows more
    cdef Py_ssize_t hi = min(at.n, at.at + most), k, i
    if at.stage == NOTHING:
        return False
    if at.stage == DEFICITS:
        dual_products(at.rows, at.face, at.at, hi, at.w, at.r)
        for k in range(at.at, hi):
            i = at.face[k]
            at.r[k] = 1 - at.r[k] - at.rows.ridge[i] * at.all_a[i]
        at.at = hi
        if hi == at.n:
            keep_the_free(at)
            at.step = 0
            begin_read(at, GRADIENT)
        return True
    read_part(at, hi)
    if at.at < at.n:
        return True
    end_read(at)
    return next_iteration(at)


cdef void keep_the_free(face_step *at) noexcept nogil:
    # of the rows at work those that are not at a bound which their slope holds them to
    cdef Py_ssize_t n = 0, k, i
    cdef double a, upper
    for k in range(at.n):
        i = at.face[k]
        a, upper = at.all_a[i], at.rows.upper[i]
        if (a > 0 or at.r[k] > 0) and (a < upper or at.r[k] < 0):
            at.face[n], at.r[n], at.a[n], at.upper[n], at.square[n] = i, at.r[k], a, upper, at.rows.square[i]
            n += 1
    at.n = n


# ---------------------------------------------------------------- a read of the face

cdef void begin_read(face_step *at, face_stage stage) noexcept nogil:
    at.stage, at.at, at.seen, at.signed_sum = stage, 0, 0, 0
    memset(at.total, 0, (at.rows.m + 1) * sizeof(double))


cdef void read_part(face_step *at, Py_ssize_t hi) noexcept nogil:
    # slopes after the step, the same scaled, their sum of rows, and the gap
    cdef dual_rows *rows = at.rows
    cdef double constant = rows.bias * at.direction[rows.m] - mean_product(rows, at.direction) if at.step != 0 else 0
    cdef double sign, r, z, ridge
    cdef Py_ssize_t k, i
    for k in range(at.at, hi):
        i = at.face[k]
        if k + AHEAD < at.n:
            fetch_row(&rows.source, at.face[k + AHEAD])
        sign = 1 if rows.signed_weight[i] >= 0 else -1
        r, ridge = at.r[k], rows.ridge[i]
        if at.step != 0:
            r -= at.step * sign * (constant + row_product(&rows.source, i, at.direction))
            r -= at.step * ridge * at.p[k]
        z = r / at.square[k]
        at.r[k], at.z[k] = r, z
        at.seen += gap_at(r + ridge * at.a[k], at.a[k], at.upper[k], ridge)
        at.signed_sum += sign * z
        add_row(sign * z, &rows.source, i, at.total)
    rows.n_read += hi - at.at
    at.at = hi


cdef void end_read(face_step *at) noexcept nogil:
    cdef double before = at.rz
    cdef Py_ssize_t k
    take_mean(at.rows, at.signed_sum, at.total)
    at.total[at.rows.m] = at.rows.bias * at.signed_sum
    at.gap, at.rz = at.seen, inner(at.n, at.r, at.z)
    if at.stage == GRADIENT:
        begin_directions(at)
    elif at.met:
        let_go(at)
    else:
        for k in range(at.n):
            at.p[k] = at.z[k] + at.rz / before * at.p[k]
        for k in range(at.rows.m + 1):
            at.direction[k] = at.total[k] + at.rz / before * at.direction[k]


cdef void begin_directions(face_step *at) noexcept nogil:
    memcpy(at.p, at.z, at.n * sizeof(double))
    memcpy(at.direction, at.total, (at.rows.m + 1) * sizeof(double))


cdef void let_go(face_step *at) noexcept nogil:
    # rows at a bound leave, and the directions begin anew
    cdef Py_ssize_t n = 0, k
    put_back(at)
    for k in range(at.n):                                    # p is not wanted any more
        at.p[k] = -at.z[k] if at.hit[k] else 0
    add_rest(at.rows, add_listed(at.rows, at.face, 0, at.n, at.p, at.total), at.total)
    for k in range(at.n):
        if not at.hit[k]:
            at.face[n], at.r[n], at.z[n], at.a[n] = at.face[k], at.r[k], at.z[k], at.a[k]
            at.upper[n], at.square[n] = at.upper[k], at.square[k]
            n += 1
    at.n = n
    begin_directions(at)
    at.rz = dot(n, at.r, at.z)
    at.restarts += 1


# ---------------------------------------------------------------- an iteration

cdef double inner(Py_ssize_t n, const double *x, const double *y) noexcept nogil:
    cdef Py_ssize_t k
    cdef double sum_of = 0
    for k in range(n):
        sum_of += x[k] * y[k]
    return sum_of


cdef inline double way_left(const face_step *at, Py_ssize_t k) noexcept nogil:
    # steps until row k meets a bound
    return ((at.upper[k] if at.p[k] > 0 else 0.0) - at.a[k]) / at.p[k]


cdef bint next_iteration(face_step *at) noexcept nogil:
    # takes the step; False: there is none
    cdef Py_ssize_t n_columns = at.rows.m + 1, k
    cdef double bound = INFINITY, curvature
    if at.left == 0 or at.restarts > RESTARTS or not (at.gap > at.target and at.rz > 0) \
            or at.limit < reads_of(at.rows):
        return False
    curvature = inner(n_columns, at.direction, at.direction)         # 0 along opposite rows: on to the next bound
    for k in range(at.n):
        curvature += at.rows.ridge[at.face[k]] * at.p[k] * at.p[k]
    at.step = at.rz / curvature if curvature > 0 else INFINITY
    for k in range(at.n):
        if at.p[k] != 0:
            bound = min(bound, way_left(at, k))
    at.met = not bound > at.step
    at.step = min(at.step, bound)
    for k in range(at.n):
        at.hit[k] = at.met and at.p[k] != 0 and not way_left(at, k) > at.step
        at.a[k] += at.step * at.p[k]
        if at.hit[k]:
            at.a[k] = at.upper[k] if at.p[k] > 0 else 0.0
    for k in range(n_columns):
        at.w[k] += at.step * at.direction[k]
    at.left -= 1
    begin_read(at, ITERATION)
    return True


# ---------------------------------------------------------------- the same for those who have arrays

def newton_step(DualBlocks blocks, double[::1] a, double[::1] w, const Py_ssize_t[::1] active, double target,
                int iterations=ITERATIONS, most=None):
    """One from ``a``, ``w``, in parts of ``most`` rows: iterations, gap, the rows it ended with and their slacks.

    ``active``: rows at work, ascending.
    """
    cdef face_step at
    cdef Py_ssize_t part = blocks.rows.n if most is None else most, i
    must_fit(a.shape[0] == blocks.rows.n and w.shape[0] == blocks.rows.m + 1 and active.shape[0] > 0, "newton_step")
    blocks.must_list(active, w)
    for i in range(active.shape[0] - 1):
        must_fit(active[i] < active[i + 1], "newton_step")
    if not face_begin(&at, &blocks.rows, &a[0], &w[0], &active[0], active.shape[0], target, INFINITY):
        raise MemoryError
    at.left = iterations
    with nogil:
        while face_part(&at, part):
            pass
    face, slacks = np.empty(at.n, np.intp), np.empty(at.n)
    for i in range(at.n):
        face[i], slacks[i] = at.face[i], at.r[i]
    face_end(&at)
    return iterations - at.left, at.gap, face, slacks
