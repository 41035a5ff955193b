"""The best point along the last moves, as in ``_dual_moves``, of dual variables in simplices.

A row that a step leads out of its simplex goes to the point of it that is nearest, for which it is read.
"""

from libc.math cimport fabs
from libc.string cimport memcpy, memset

from cmargin._core.linalg._blas cimport dot
from cmargin._core.rows._dual_moves cimport (
    BLOCK, DIRECTIONS, MOST_LOSSES, add_products, best_step, clear_model, small_model,
)
from cmargin._core.rows._joint_rows cimport add_change, open_weights, settle_weights, to_simplex

# of C_i: what rounding may take a row's dual variables off their sum, a direction in which the dual rises for ever
cdef double ROUNDED = 1e-14


cdef inline Py_ssize_t n_weights(const joint_rows *rows) noexcept nogil:
    return (rows.m + 1) * rows.width


cdef void begin_move(joint_moves *at, const joint_rows *rows) noexcept nogil:
    memcpy(at.before, at.a, rows.n * rows.k * sizeof(double))
    memcpy(at.W_before, at.W, n_weights(rows) * sizeof(double))


cdef void touch(joint_moves *at, const joint_rows *rows, Py_ssize_t i) noexcept nogil:
    cdef int p
    if at.touched[i] < at.begun:                     # what older moves had of it is no part of those that are kept
        for p in range(MOVES):
            memset(at.last[p] + i * rows.k, 0, rows.k * sizeof(double))
    at.touched[i] = at.now


cdef void end_move(joint_moves *at, joint_rows *rows, double *trial) noexcept nogil:
    # trial: WORK (k,)
    cdef small_model model
    cdef double gain
    cdef int p
    cdef bint stretched
    measure(at, rows, &model)
    stretched = best_step(&model)
    if not stretched:                                # the change of the sweep is the move
        for p in range(DIRECTIONS):
            model.step[p] = 0
    gain = take_step(at, rows, model.step, trial)
    if stretched and not gain > 0:
        at.kept, at.losses, at.begun = 0, min(at.losses + 1, <int> MOST_LOSSES), at.now + 1
        at.resting = (1 << at.losses) >> 3
        return
    if stretched:
        memcpy(at.a, at.before, rows.n * rows.k * sizeof(double))
        memcpy(at.W, at.W_before, n_weights(rows) * sizeof(double))
    at.kept, at.losses = min(at.kept + 1, <int> MOVES), 0


cdef void measure(const joint_moves *at, const joint_rows *rows, small_model *model) noexcept nogil:
    cdef Py_ssize_t size = n_weights(rows), block, lo, n, i, j
    cdef double[BLOCK] change
    cdef const double *d[DIRECTIONS]
    cdef int k
    clear_model(model)
    d[0] = change
    for block in range((size + BLOCK - 1) // BLOCK):
        lo = block * BLOCK
        n = min(<Py_ssize_t> BLOCK, size - lo)
        for j in range(n):
            change[j] = at.W[lo + j] - at.W_before[lo + j]
        for k in range(at.kept):
            d[k + 1] = at.W_last[k] + lo
        add_products(model, at.kept, n, d, -1, at.W + lo, NULL, change)
    model.square = dot(size, at.W, at.W)
    for i in range(rows.n):                          # what is taken from the own class is gained
        if at.touched[i] >= at.begun:
            j = i * rows.k + rows.labels[i]
            model.slope[0] -= at.a[j] - at.before[j]
            for k in range(at.kept):
                model.slope[k + 1] -= at.last[k][j]


cdef double take_step(joint_moves *at, joint_rows *rows, const double *step, double *trial) noexcept nogil:
    # before, W_before: the point that it leads to; the move there is the newest one. What it adds to the dual value
    cdef Py_ssize_t size = n_weights(rows), i, j, c, n_moved
    cdef double *last = at.last[MOVES - 1]
    cdef double *W_last = at.W_last[MOVES - 1]
    cdef double gain = 0, mass
    cdef bint leaves
    cdef int p
    open_weights(rows, at.W)
    for j in range(size):
        W_last[j] = move_at(at.W_last, at.kept, j, step, at.W[j] - at.W_before[j])
    for i in range(rows.n):
        if at.touched[i] < at.begun:
            continue
        leaves, mass = False, 0
        for c in range(rows.k):
            j = i * rows.k + c
            last[j] = move_at(at.last, at.kept, j, step, at.a[j] - at.before[j])
            trial[c] = at.before[j] + last[j]
            mass += trial[c]
            leaves |= trial[c] < 0
        j = i * rows.k
        if leaves or fabs(mass - rows.upper[i]) > ROUNDED * rows.upper[i]:
            memcpy(rows.z, trial, rows.k * sizeof(double))
            n_moved = to_simplex(rows, i, rows.z, trial)
            for c in range(rows.k):
                last[j + c] = trial[c] - at.before[j + c]
            rows.n_read += 1
            add_change(rows, i, n_moved, W_last)
        gain += at.a[j + rows.labels[i]] - trial[rows.labels[i]]
        memcpy(at.before + j, trial, rows.k * sizeof(double))
    settle_weights(rows, W_last)
    for j in range(size):
        at.W_before[j] += W_last[j]
        gain -= (at.W_before[j] - at.W[j]) * (at.W_before[j] + at.W[j]) / 2
    for p in range(MOVES - 1, 0, -1):
        at.last[p], at.W_last[p] = at.last[p - 1], at.W_last[p - 1]
    at.last[0], at.W_last[0] = last, W_last
    return gain


cdef inline double move_at(double **last, int kept, Py_ssize_t j, const double *step, double change) noexcept nogil:
    # what the sweep and the step change number j by
    cdef double moved = (1 + step[0]) * change
    cdef int p
    for p in range(kept):
        moved += step[p + 1] * last[p][j]
    return moved
