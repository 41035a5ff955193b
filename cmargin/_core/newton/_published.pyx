"""SmSVM as published: Algorithms 1 to 4, step for step, as a driver of their own.

Newton on the active block, the quadratic model along the line with the l1 breakpoints, Armijo, exact zeros. Kept to
compare with, not to be fast: every trial of the Armijo search is a read of the data.
"""

import numpy as np

from libc.math cimport INFINITY, fabs
from libc.string cimport memcpy, memset

from cmargin._core.linalg._blas cimport NO_TRANS, dot, gemv
from cmargin._core.newton._line cimport ARMIJO, search_begin, search_tell
from cmargin._core.newton._asking cimport PAUSE
from cmargin._core.newton._driver cimport ask_evaluation, newton_settle, settled
from cmargin._core.newton._point cimport (
    after_evaluation, measure_columns, penalty_of, rounding_of, take_objective, take_sums,
)
from cmargin._core.newton._state cimport FIRST_EVALUATION, OWN, RUNNING, STALLED, newton_state
from cmargin._core.newton.direction._system cimport solve_upper
from cmargin._core.rows._evaluate cimport COMMIT_AND_MOVE, SAME_LINE
from cmargin._core.util._serialise cimport numbers_between, restore, serialised, span

cdef double SHORTEST = 1e-10             # step below which the width is reduced instead

cdef enum:                               # what was asked for: asked_for
    NOTHING_YET, TRIAL, NO_STEP, ZEROS, NARROWER


cdef inline double sign_of(double x) noexcept nogil:
    return (x > 0) - (x < 0)


cdef void begin_active_set(published_steps *steps) noexcept nogil:
    # w's own components and those with a steep gradient
    cdef newton_state *at = steps.at
    cdef Py_ssize_t j
    cdef double l1
    for j in range(at.p):
        l1 = at.penalty.step.l1_each[j]
        steps.in_use[j] = at.point.w[j] != 0 or fabs(at.point.g[j]) > l1 or l1 == 0
    steps.kept.adjust = True


cdef void whole_block(newton_state *at) noexcept nogil:
    # both triangles of the curvature of the smoothed objective, where its upper triangle was summed
    cdef Py_ssize_t p = at.p, i, j
    for i in range(p):
        at.curvature.block[i * p + i] = at.curvature.block[i * p + i] / at.problem.n + at.penalty.step.l2_each[i]
        for j in range(i + 1, p):
            at.curvature.block[i * p + j] /= at.problem.n
            at.curvature.block[j * p + i] = at.curvature.block[i * p + j]


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
        slope[j] = at.point.g[j] + at.penalty.step.l1_each[j] * sign_of(at.point.w[j])
        at.point.d[j] = 0
        if steps.in_use[j]:
            if at.point.w[j] == 0:
                slope[j] -= at.penalty.step.l1_each[j] * sign_of(at.point.g[j])
            at.l1_block.index[m], own[m] = j, slope[j]
            m += 1
    for i in range(m):
        for j in range(m):
            part[i * m + j] = at.curvature.block[at.l1_block.index[i] * p + at.l1_block.index[j]]
    ridge = solve_upper(m, part, 1, own, d, factor)
    for i in range(m):
        at.point.d[at.l1_block.index[i]] = -d[i]
    return ridge == ridge


cdef bint admit(published_steps *steps, double *slope) noexcept nogil:
    # Algorithm 3: columns with a steep gradient join, once for every width, by a gradient step; False: none does
    cdef newton_state *at = steps.at
    cdef Py_ssize_t j
    cdef bint some = False
    if not steps.kept.adjust:
        return False
    for j in range(at.p):
        if not steps.in_use[j] and fabs(at.point.g[j]) > at.penalty.step.l1_each[j]:
            some, steps.in_use[j] = True, True
            slope[j] = at.point.g[j] - at.penalty.step.l1_each[j] * sign_of(at.point.g[j])
            at.point.d[j] = -slope[j]
    steps.kept.adjust = not some
    return some


cdef void start_step(published_steps *steps) noexcept nogil:
    cdef newton_state *at = steps.at
    cdef double *slope = at.point.scratch
    if steps.kept.asked_for == NOTHING_YET:
        begin_active_set(steps)
    whole_block(at)
    at.ask.not_finite = not newton_direction(steps, slope)
    if at.ask.not_finite:
        return
    at.point.predicted = fabs(dot(at.p, at.point.d, slope))
    if at.point.predicted < steps.kept.newton_tol * at.smoothing.width and not admit(steps, slope):
        reduce_width(steps)
        return
    steps.kept.directions += 1
    memcpy(steps.used, steps.in_use, at.p)
    at.point.slope = dot(at.p, at.point.d, slope)
    at.line.slope, at.line.curvature = dot(at.p, at.point.d, at.point.g), curvature_along(at)
    at.line.search.penalty, at.line.search.w, at.line.search.d = &at.penalty.step, at.point.w, at.point.d
    at.line.search.steps, at.line.search.index, at.line.search.s_max = at.l1_block.keys, at.l1_block.index, INFINITY
    at.line.search.tol, at.line.search.max_trials = 1e-8, 100
    search_begin(&at.line.search)                # Algorithm 4
    while search_tell(&at.line.search, at.line.slope + at.line.search.s * at.line.curvature, at.line.curvature):
        pass
    at.point.step, steps.kept.asked_for = at.line.search.s, TRIAL
    ask_evaluation(at, OWN, COMMIT_AND_MOVE, at.point.d, at.point.step, at.smoothing.width, True)


cdef double curvature_along(newton_state *at) noexcept nogil:
    gemv(NO_TRANS, at.p, at.p, 1.0, at.curvature.block, at.p, at.point.d, 0.0, at.point.taken)
    return dot(at.p, at.point.d, at.point.taken)


cdef void on_own_step(published_steps *steps) noexcept nogil:
    cdef newton_state *at = steps.at
    if steps.kept.asked_for == TRIAL:
        tried(steps)
    elif steps.kept.asked_for == NO_STEP:
        reduce_width(steps)
    elif steps.kept.asked_for == ZEROS:
        accept(steps)
    else:
        after_evaluation(at, 0.0)
        next_step(steps)


cdef void tried(published_steps *steps) noexcept nogil:
    # Armijo: the step is halved until the smoothed objective falls enough
    cdef newton_state *at = steps.at
    cdef Py_ssize_t j
    for j in range(at.p):
        at.point.scratch[j] = at.point.w[j] + at.point.step * at.point.d[j]
    if at.point.step <= SHORTEST:
        steps.kept.asked_for = NO_STEP
        ask_evaluation(at, OWN, SAME_LINE, NULL, 0.0, at.smoothing.width, True)
    elif at.point.sums[3] + penalty_of(at, at.point.scratch) > at.point.value + ARMIJO * at.point.step * at.point.slope:
        at.point.step, at.line.search.hit = at.point.step / 2, -1
        ask_evaluation(at, OWN, SAME_LINE, NULL, at.point.step, at.smoothing.width, True)
    else:
        zero_what_changed_sign(steps)


cdef void zero_what_changed_sign(published_steps *steps) noexcept nogil:
    # such components stop at 0 and leave the active set; the margins must follow them
    cdef newton_state *at = steps.at
    cdef Py_ssize_t j
    cdef bint moved = False
    memset(at.point.taken, 0, at.p * sizeof(double))
    for j in range(at.p):
        steps.gone[j] = at.point.w[j] != 0 \
            and (at.point.scratch[j] == 0 or sign_of(at.point.scratch[j]) == -sign_of(at.point.w[j]))
        if j == at.line.search.hit:
            steps.gone[j] = True
        if steps.gone[j]:
            steps.in_use[j], at.point.taken[j] = False, -at.point.scratch[j]
            moved = moved or at.point.scratch[j] != 0
            at.point.scratch[j] = 0
    memcpy(steps.zeroed, at.point.scratch, at.p * sizeof(double))
    if moved:
        steps.kept.asked_for = ZEROS
        ask_evaluation(at, OWN, COMMIT_AND_MOVE, at.point.taken, 1.0, at.smoothing.width, True)
    else:
        accept(steps)


cdef void accept(published_steps *steps) noexcept nogil:
    cdef newton_state *at = steps.at
    cdef Py_ssize_t j
    for j in range(at.p):
        at.point.taken[j] = steps.zeroed[j] - at.point.w[j]
        at.point.w[j] = steps.zeroed[j]
    at.bound.drift += rounding_of(at, at.point.taken)
    after_evaluation(at, at.point.step)
    next_step(steps)


cdef void reduce_width(published_steps *steps) noexcept nogil:
    # alpha <- beta alpha, until the next value is the last the paper allows
    cdef newton_state *at = steps.at
    at.smoothing.width *= at.smoothing.decay
    steps.kept.adjust = True
    if at.smoothing.width <= at.smoothing.decay * steps.kept.narrowest:
        at.status = STALLED
        next_step(steps)
        return
    steps.kept.asked_for = NARROWER
    ask_evaluation(at, OWN, COMMIT_AND_MOVE, at.point.zero, 1.0, at.smoothing.width, True)


# ---------------------------------------------------------------- what it receives

cdef void go_on(published_steps *steps) noexcept nogil:
    if steps.at.status != RUNNING:
        newton_settle(steps.at)
    else:
        start_step(steps)


cdef void next_step(published_steps *steps) noexcept nogil:
    steps.at.ask.kind = PAUSE
    if not steps.at.ask.pauses:
        go_on(steps)


cdef void on_evaluation(void *driver, const double *sums, const double *gradient, double *block) noexcept nogil:
    cdef published_steps *steps = <published_steps *> driver
    cdef newton_state *at = steps.at
    take_sums(at, sums, gradient, block)
    if at.phase == OWN:
        on_own_step(steps)
        return
    after_evaluation(at, 1.0)
    if at.phase == FIRST_EVALUATION:
        at.bound.drift = rounding_of(at, at.point.w)
        if at.curvature.has_block:
            measure_columns(at, at.curvature.block, at.p + 1)
    next_step(steps)


cdef void on_objective(void *driver, double loss, const double *squares) noexcept nogil:
    cdef published_steps *steps = <published_steps *> driver
    take_objective(steps.at, loss, squares)
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
        self.at.pcg.in_use = self.at.l1_block.wide = False       # the whole block is wanted at every evaluation
        self.at.cholesky.every_row = self.at.ask.primal = True
        self.at.ask.driver = &self.steps
        self.at.ask.on_evaluation, self.at.ask.on_objective = on_evaluation, on_objective

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
        cdef span own = numbers_between(&self.steps.kept, &self.steps.kept + 1)
        return dict(super().kept(), published=serialised(&own, 1), flags=self.flags, zeroed=self.zeroed)

    def take_back(self, dict kept):
        cdef span own = numbers_between(&self.steps.kept, &self.steps.kept + 1)
        super().take_back(kept)
        restore(&own, 1, kept["published"])
        self.flags[...], self.zeroed[...] = kept["flags"], kept["zeroed"]
