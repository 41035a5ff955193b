"""SmSVM as published: Algorithms 1 to 4, step for step, as a strategy of the Newton driver.

Newton on the active block, the quadratic model along the line with the l1 breakpoints, Armijo, exact zeros. Kept to
compare with, not to be fast: every trial of the Armijo search is a read of the data.
"""

from libc.math cimport INFINITY, fabs
from libc.string cimport memcpy, memset

from cmargin._core.linalg._blas cimport NO_TRANS, dot, gemv
from cmargin._core.newton._line cimport ARMIJO, search_begin, search_told
from cmargin._core.newton._driver cimport (
    OWN, STALLED, after_look, ask_look, next_step, newton_state, penalty_of, rounding_of,
)
from cmargin._core.newton.direction._system cimport solve_upper

cdef double SHORTEST = 1e-10             # step below which the width is reduced instead

cdef enum:                               # what was asked for: asked_for
    NOTHING_YET, TRIAL, NO_STEP, ZEROS, NARROWER


cdef inline double sign_of(double x) noexcept nogil:
    return (x > 0) - (x < 0)


cdef void begin(newton_state *at) noexcept nogil:
    # w's own components and those with a steep gradient
    cdef Py_ssize_t j
    for j in range(at.p):
        at.in_use[j] = at.w[j] != 0 or fabs(at.g[j]) > at.l1_each[j] or at.l1_each[j] == 0
    at.adjust = True


cdef void whole_block(newton_state *at) noexcept nogil:
    # both triangles of the curvature of the smoothed objective, where its upper triangle was summed
    cdef Py_ssize_t p = at.p, i, j
    for i in range(p):
        at.block[i * p + i] = at.block[i * p + i] / at.n + at.l2_each[i]
        for j in range(i + 1, p):
            at.block[i * p + j] /= at.n
            at.block[j * p + i] = at.block[i * p + j]


cdef bint newton_direction(newton_state *at, double *slope) noexcept nogil:
    # slope = gradient with the l1 term, a component at 0 on the side it would go to; d on the active set
    cdef Py_ssize_t p = at.p, m = 0, i, j
    cdef double *part = at.work                  # (m, m)
    cdef double *factor = part + p * p           # (m, m)
    cdef double *own = factor + p * p            # (m,)
    cdef double *d = own + p                     # (m,)
    cdef double ridge
    for j in range(p):
        slope[j] = at.g[j] + at.l1_each[j] * sign_of(at.w[j])
        at.d[j] = 0
        if at.in_use[j]:
            if at.w[j] == 0:
                slope[j] -= at.l1_each[j] * sign_of(at.g[j])
            at.index[m], own[m] = j, slope[j]
            m += 1
    for i in range(m):
        for j in range(m):
            part[i * m + j] = at.block[at.index[i] * p + at.index[j]]
    ridge = solve_upper(m, part, 1, own, d, factor)
    for i in range(m):
        at.d[at.index[i]] = -d[i]
    return ridge == ridge


cdef bint admit(newton_state *at, double *slope) noexcept nogil:
    # Algorithm 3: columns with a steep gradient join, once for every width, by a gradient step; False: none does
    cdef Py_ssize_t j
    cdef bint some = False
    if not at.adjust:
        return False
    for j in range(at.p):
        if not at.in_use[j] and fabs(at.g[j]) > at.l1_each[j]:
            some, at.in_use[j] = True, True
            slope[j] = at.g[j] - at.l1_each[j] * sign_of(at.g[j])
            at.d[j] = -slope[j]
    at.adjust = not some
    return some


cdef void published_start(newton_state *at) noexcept nogil:
    cdef double *slope = at.scratch
    if at.asked_for == NOTHING_YET:
        begin(at)
    whole_block(at)
    at.ask.not_finite = not newton_direction(at, slope)
    if at.ask.not_finite:
        return
    at.predicted = fabs(dot(at.p, at.d, slope))
    if at.predicted < at.newton_tol * at.rule.width and not admit(at, slope):
        reduce_width(at)
        return
    at.directions += 1
    memcpy(at.used, at.in_use, at.p)
    at.first = dot(at.p, at.d, slope)
    at.line_slope, at.line_curvature = dot(at.p, at.d, at.g), curvature_along(at)
    at.line.n, at.line.w, at.line.d, at.line.weight = at.p, at.w, at.d, at.l1_each
    at.line.steps, at.line.index, at.line.s_max = at.keys, at.index, INFINITY
    at.line.tol, at.line.max_trials = 1e-8, 100
    search_begin(&at.line)                       # Algorithm 4
    while search_told(&at.line, at.line_slope + at.line.s * at.line_curvature, at.line_curvature):
        pass
    at.step, at.asked_for = at.line.s, TRIAL
    ask_look(at, OWN, at.d, at.step, at.rule.width, True)


cdef double curvature_along(newton_state *at) noexcept nogil:
    gemv(NO_TRANS, at.p, at.p, 1.0, at.block, at.p, at.d, 0.0, at.taken)
    return dot(at.p, at.d, at.taken)


cdef void published_told(newton_state *at) noexcept nogil:
    if at.asked_for == TRIAL:
        tried(at)
    elif at.asked_for == NO_STEP:
        reduce_width(at)
    elif at.asked_for == ZEROS:
        accept(at)
    else:
        after_look(at, 0.0)
        next_step(at)


cdef void tried(newton_state *at) noexcept nogil:
    # Armijo: the step is halved until the smoothed objective falls enough
    cdef Py_ssize_t j
    for j in range(at.p):
        at.scratch[j] = at.w[j] + at.step * at.d[j]
    if at.step <= SHORTEST:
        at.asked_for = NO_STEP
        ask_look(at, OWN, NULL, 0.0, at.rule.width, True)
    elif at.sums[3] + penalty_of(at, at.scratch) > at.value + ARMIJO * at.step * at.first:
        at.step, at.line.hit = at.step / 2, -1
        ask_look(at, OWN, NULL, at.step, at.rule.width, True)
    else:
        zero_what_changed_sign(at)


cdef void zero_what_changed_sign(newton_state *at) noexcept nogil:
    # such components stop at 0 and leave the active set; the margins must follow them
    cdef Py_ssize_t j
    cdef bint moved = False
    memset(at.taken, 0, at.p * sizeof(double))
    for j in range(at.p):
        at.gone[j] = at.w[j] != 0 and (at.scratch[j] == 0 or sign_of(at.scratch[j]) == -sign_of(at.w[j]))
        if j == at.line.hit:
            at.gone[j] = True
        if at.gone[j]:
            at.in_use[j], at.taken[j] = False, -at.scratch[j]
            moved = moved or at.scratch[j] != 0
            at.scratch[j] = 0
    memcpy(at.zeroed, at.scratch, at.p * sizeof(double))
    if moved:
        at.asked_for = ZEROS
        ask_look(at, OWN, at.taken, 1.0, at.rule.width, True)
    else:
        accept(at)


cdef void accept(newton_state *at) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(at.p):
        at.taken[j] = at.zeroed[j] - at.w[j]
        at.w[j] = at.zeroed[j]
    at.drift += rounding_of(at, at.taken)
    after_look(at, at.step)
    next_step(at)


cdef void reduce_width(newton_state *at) noexcept nogil:
    # alpha <- beta alpha, until the next value is the last the paper allows
    at.rule.width *= at.rule.decay
    at.adjust = True
    if at.rule.width <= at.rule.decay * at.narrowest:
        at.status = STALLED
        next_step(at)
        return
    at.asked_for = NARROWER
    ask_look(at, OWN, at.zero, 1.0, at.rule.width, True)
