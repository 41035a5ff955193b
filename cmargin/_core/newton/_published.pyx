"""SmSVM as published: Algorithms 1 to 4, step for step, as a driver of their own.

Newton on the active block, the quadratic model along the line with the l1 breakpoints, Armijo, exact zeros. Kept to
compare with, not to be fast: every trial of the Armijo search is a read of the data.
"""

import numpy as np

from libc.math cimport INFINITY, fabs
from libc.string cimport memcpy, memset

from cmargin._core.linalg._blas cimport NO_TRANS, dot, gemv
from cmargin._core.newton._line cimport ARMIJO, search_begin, search_told
from cmargin._core.newton._asking cimport PAUSE
from cmargin._core.newton._driver cimport (
    FIRST_LOOK, OWN, RUNNING, STALLED, after_look, ask_look, measure_columns, newton_settle,
    newton_state, penalty_of, rounding_of, settled, take_evaluation, take_sums,
)
from cmargin._core.newton.direction._system cimport solve_upper
from cmargin._core.util._shapes cimport must_fit

cdef double SHORTEST = 1e-10             # step below which the width is reduced instead

cdef enum:                               # what was asked for: asked_for
    NOTHING_YET, TRIAL, NO_STEP, ZEROS, NARROWER


cdef inline double sign_of(double x) noexcept nogil:
    return (x > 0) - (x < 0)


cdef void begin_active_set(published_steps *steps) noexcept nogil:
    # w's own components and those with a steep gradient
    cdef newton_state *at = steps.at
    cdef Py_ssize_t j
    for j in range(at.p):
        steps.in_use[j] = at.w[j] != 0 or fabs(at.g[j]) > at.l1_each[j] or at.l1_each[j] == 0
    steps.kept.adjust = True


cdef void whole_block(newton_state *at) noexcept nogil:
    # both triangles of the curvature of the smoothed objective, where its upper triangle was summed
    cdef Py_ssize_t p = at.p, i, j
    for i in range(p):
        at.block[i * p + i] = at.block[i * p + i] / at.n + at.l2_each[i]
        for j in range(i + 1, p):
            at.block[i * p + j] /= at.n
            at.block[j * p + i] = at.block[i * p + j]


cdef bint newton_direction(published_steps *steps, double *slope) noexcept nogil:
    # slope = gradient with the l1 term, a component at 0 on the side it would go to; d on the active set
    cdef newton_state *at = steps.at
    cdef Py_ssize_t p = at.p, m = 0, i, j
    cdef double *part = steps.work               # (m, m)
    cdef double *factor = part + p * p           # (m, m)
    cdef double *own = factor + p * p            # (m,)
    cdef double *d = own + p                     # (m,)
    cdef double ridge
    for j in range(p):
        slope[j] = at.g[j] + at.l1_each[j] * sign_of(at.w[j])
        at.d[j] = 0
        if steps.in_use[j]:
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


cdef bint admit(published_steps *steps, double *slope) noexcept nogil:
    # Algorithm 3: columns with a steep gradient join, once for every width, by a gradient step; False: none does
    cdef newton_state *at = steps.at
    cdef Py_ssize_t j
    cdef bint some = False
    if not steps.kept.adjust:
        return False
    for j in range(at.p):
        if not steps.in_use[j] and fabs(at.g[j]) > at.l1_each[j]:
            some, steps.in_use[j] = True, True
            slope[j] = at.g[j] - at.l1_each[j] * sign_of(at.g[j])
            at.d[j] = -slope[j]
    steps.kept.adjust = not some
    return some


cdef void start_step(published_steps *steps) noexcept nogil:
    cdef newton_state *at = steps.at
    cdef double *slope = at.scratch
    if steps.kept.asked_for == NOTHING_YET:
        begin_active_set(steps)
    whole_block(at)
    at.ask.not_finite = not newton_direction(steps, slope)
    if at.ask.not_finite:
        return
    at.predicted = fabs(dot(at.p, at.d, slope))
    if at.predicted < steps.kept.newton_tol * at.rule.width and not admit(steps, slope):
        reduce_width(steps)
        return
    steps.kept.directions += 1
    memcpy(steps.used, steps.in_use, at.p)
    at.first = dot(at.p, at.d, slope)
    at.line_slope, at.line_curvature = dot(at.p, at.d, at.g), curvature_along(at)
    at.line.n, at.line.w, at.line.d, at.line.weight = at.p, at.w, at.d, at.l1_each
    at.line.steps, at.line.index, at.line.s_max = at.keys, at.index, INFINITY
    at.line.tol, at.line.max_trials = 1e-8, 100
    search_begin(&at.line)                       # Algorithm 4
    while search_told(&at.line, at.line_slope + at.line.s * at.line_curvature, at.line_curvature):
        pass
    at.step, steps.kept.asked_for = at.line.s, TRIAL
    ask_look(at, OWN, at.d, at.step, at.rule.width, True)


cdef double curvature_along(newton_state *at) noexcept nogil:
    gemv(NO_TRANS, at.p, at.p, 1.0, at.block, at.p, at.d, 0.0, at.taken)
    return dot(at.p, at.d, at.taken)


cdef void told_own(published_steps *steps) noexcept nogil:
    cdef newton_state *at = steps.at
    if steps.kept.asked_for == TRIAL:
        tried(steps)
    elif steps.kept.asked_for == NO_STEP:
        reduce_width(steps)
    elif steps.kept.asked_for == ZEROS:
        accept(steps)
    else:
        after_look(at, 0.0)
        next_step(steps)


cdef void tried(published_steps *steps) noexcept nogil:
    # Armijo: the step is halved until the smoothed objective falls enough
    cdef newton_state *at = steps.at
    cdef Py_ssize_t j
    for j in range(at.p):
        at.scratch[j] = at.w[j] + at.step * at.d[j]
    if at.step <= SHORTEST:
        steps.kept.asked_for = NO_STEP
        ask_look(at, OWN, NULL, 0.0, at.rule.width, True)
    elif at.sums[3] + penalty_of(at, at.scratch) > at.value + ARMIJO * at.step * at.first:
        at.step, at.line.hit = at.step / 2, -1
        ask_look(at, OWN, NULL, at.step, at.rule.width, True)
    else:
        zero_what_changed_sign(steps)


cdef void zero_what_changed_sign(published_steps *steps) noexcept nogil:
    # such components stop at 0 and leave the active set; the margins must follow them
    cdef newton_state *at = steps.at
    cdef Py_ssize_t j
    cdef bint moved = False
    memset(at.taken, 0, at.p * sizeof(double))
    for j in range(at.p):
        steps.gone[j] = at.w[j] != 0 and (at.scratch[j] == 0 or sign_of(at.scratch[j]) == -sign_of(at.w[j]))
        if j == at.line.hit:
            steps.gone[j] = True
        if steps.gone[j]:
            steps.in_use[j], at.taken[j] = False, -at.scratch[j]
            moved = moved or at.scratch[j] != 0
            at.scratch[j] = 0
    memcpy(steps.zeroed, at.scratch, at.p * sizeof(double))
    if moved:
        steps.kept.asked_for = ZEROS
        ask_look(at, OWN, at.taken, 1.0, at.rule.width, True)
    else:
        accept(steps)


cdef void accept(published_steps *steps) noexcept nogil:
    cdef newton_state *at = steps.at
    cdef Py_ssize_t j
    for j in range(at.p):
        at.taken[j] = steps.zeroed[j] - at.w[j]
        at.w[j] = steps.zeroed[j]
    at.drift += rounding_of(at, at.taken)
    after_look(at, at.step)
    next_step(steps)


cdef void reduce_width(published_steps *steps) noexcept nogil:
    # alpha <- beta alpha, until the next value is the last the paper allows
    cdef newton_state *at = steps.at
    at.rule.width *= at.rule.decay
    steps.kept.adjust = True
    if at.rule.width <= at.rule.decay * steps.kept.narrowest:
        at.status = STALLED
        next_step(steps)
        return
    steps.kept.asked_for = NARROWER
    ask_look(at, OWN, at.zero, 1.0, at.rule.width, True)


# ---------------------------------------------------------------- what it is told

cdef void go_on(published_steps *steps) noexcept nogil:
    if steps.at.status != RUNNING:
        newton_settle(steps.at)
    else:
        start_step(steps)


cdef void next_step(published_steps *steps) noexcept nogil:
    steps.at.ask.kind = PAUSE
    if not steps.at.ask.pauses:
        go_on(steps)


cdef void told_look(void *driver, const double *sums, const double *gradient, double *block) noexcept nogil:
    cdef published_steps *steps = <published_steps *> driver
    cdef newton_state *at = steps.at
    take_sums(at, sums, gradient, block)
    if at.phase == OWN:
        told_own(steps)
        return
    after_look(at, 1.0)
    if at.phase == FIRST_LOOK:
        at.drift = rounding_of(at, at.w)
        if at.has_block:
            measure_columns(at, at.block, at.p + 1)
    next_step(steps)


cdef void told_evaluation(void *driver, double loss, const double *squares) noexcept nogil:
    cdef published_steps *steps = <published_steps *> driver
    take_evaluation(steps.at, loss, squares)
    settled(steps.at)


cdef class PublishedNewton(Newton):
    """`Newton` whose steps are those of Algorithms 1 to 4; the same parameters."""

    def __init__(self, *args, **kwargs):
        cdef double[::1] zeroed, work
        cdef unsigned char[:, ::1] flags
        cdef Py_ssize_t p
        super().__init__(*args, **kwargs)
        p = self.at.p
        flags = np.zeros((3, max(1, p)), np.uint8)
        zeroed, work = np.zeros(max(1, p)), np.empty(2 * p * (p + 1) + 1)
        self.flags, self.zeroed, self.work = flags.base, zeroed.base, work.base
        self.steps.in_use, self.steps.gone, self.steps.used = &flags[0, 0], &flags[1, 0], &flags[2, 0]
        self.steps.zeroed, self.steps.work, self.steps.at = &zeroed[0], &work[0], &self.at
        self.at.by_products = self.at.wide_l1 = False        # the whole block is wanted at every look
        self.at.every_row = self.at.ask.primal = True
        self.at.ask.driver, self.at.ask.told_look, self.at.ask.told_evaluation = &self.steps, told_look, told_evaluation

    def take_published_steps(self, double newton_tol, double narrowest):
        """Before it begins: when the width is reduced, and down to which one."""
        self.steps.kept.newton_tol, self.steps.kept.narrowest = newton_tol, narrowest

    @property
    def active_set(self):
        """How many directions were found, and the columns of the last."""
        return self.steps.kept.directions, self.flags[2, :self.at.p].astype(bool)

    def go_on(self):
        """After a pause."""
        go_on(&self.steps)

    def kept(self):
        numbers = (<char *> &self.steps.kept)[:sizeof(published_kept)]
        return dict(super().kept(), published=numbers, flags=self.flags, zeroed=self.zeroed)

    def take_back(self, dict kept):
        cdef bytes numbers = kept["published"]
        must_fit(len(numbers) == sizeof(published_kept), "take_back")
        super().take_back(kept)
        memcpy(&self.steps.kept, <const char *> numbers, sizeof(published_kept))
        self.flags[...], self.zeroed[...] = kept["flags"], kept["zeroed"]
