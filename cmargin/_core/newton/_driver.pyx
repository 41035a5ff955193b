"""Newton's method on the smoothed hinge while the smoothing width goes to zero (SmSVM), with a certificate.

Losses that are smooth themselves, squared hinge and logistic, take the same steps; widths mean nothing there.

The rows are read once per Newton step. The step is taken at full length, the rows are summed at its end, and only if
the function along the line says that the end is a poor place (it is known exactly there: value and slope are among the
sums) is the line searched, on numbers kept per row, and the rows are read once more. A first step of a smooth loss may
be searched always (`leaves_zero`), between a look without curvature and one with it.

The certificate comes from the same read: dual variables a + h du predicted *before* the step for *after* it.

Each function ends with a question, in `ask`, and the one that is told the answer goes on:

    newton_begin > LOOK > [GATHER] > next_step > direction > LOOK > [[ALONG ...] > LOOK] > accept > next_step ...
                                     next_step > NEAREST > [step_proposed > LOOK > accept] > next_step ...
                                                                     ... > newton_settle > [EVALUATE] > DONE
"""

from libc.math cimport INFINITY, fabs, isfinite, sqrt
from libc.string cimport memcpy, memset

from cmargin._core.linalg._blas cimport dot
from cmargin._core.newton._bound cimport dual_bound, make_feasible
from cmargin._core.newton.direction._chord cimport chord_direction, leaves_zero, may_be_the_last
from cmargin._core.util._clock cimport seconds
from cmargin._core.newton._asking cimport ALONG, DONE, EVALUATE, GATHER, LOOK, NEAREST, PAUSE
from cmargin._core.newton._linearised_rows cimport (
    LEAST_NEAR, leave_near, says_enough, says_nothing, step_proposed, told_near, told_with_others, wants_near,
)
from cmargin._core.newton._penalty_path cimport begin_l1_path, follow_path, leave_path, penalty_of_path
from cmargin._core.newton._line cimport l1_slope, search_told
from cmargin._core.newton.direction._block cimport add_rows_left_out, choose_columns, columns_wait, solve_block
from cmargin._core.newton.direction._l1_columns cimport start_model, told_model
from cmargin._core.newton.direction._pcg cimport (
    ask_for_sample, count_sample, foresee_curvature, start_preconditioned, start_products, told_product,
)
from cmargin._core.newton._step_end cimport begin_line, is_certified, is_good_enough, is_poor
from cmargin._core.rows._evaluate cimport BLOCK, NO_BLOCK, ROUGH_BLOCK, SAMPLED_BLOCK, TANGENTS
from cmargin._core.util._history cimport history_row
from cmargin._core.util._rounding cimport ROUNDING_OF_SUMS
from cmargin._core.newton._smoothing cimport NARROWEST, back_up, width_after

cdef double SKIP = 1e-6                  # rows of less than this part of the mean curvature are on its diagonal at most
cdef Py_ssize_t SKIP_FROM = 4096         # rows; fewer are all summed
cdef double VANISHING = 1e-16            # decrease, beside the value, that no sum in double could show
cdef double DRIFT = 1e-10                # of the objective: rounding of steps added up that calls for an evaluation
cdef double ENOUGH_OF_A_SUBSET = 3e-4  # gap of a subset, with a smooth loss: below, its own noise is fitted
cdef int RESUMED = 3                     # times that a fit goes on whose certificate, evaluated anew, falls short


# ---------------------------------------------------------------- what is known of a point

cdef double penalty_of(const newton_state *at, const double *w) noexcept nogil:
    cdef double squares = 0, sizes = 0
    cdef Py_ssize_t j
    for j in range(at.p):
        squares += at.l2_each[j] * w[j] * w[j]
        sizes += at.l1_each[j] * fabs(w[j])
    if at.pull != NULL:                          # other rows are straight lines
        return squares / 2 + sizes + at.of_others[0] + at.of_others[1] - dot(at.p, at.pull, w)
    return squares / 2 + sizes


cdef double rounding_of(const newton_state *at, const double *e) noexcept nogil:
    # what rounding may do to the objective in a product of the rows with e
    cdef double total = 0
    cdef Py_ssize_t j
    if not at.knows_rms:
        return INFINITY
    for j in range(at.p):
        total += fabs(e[j]) * at.rms[j]
    return at.steepest * at.rounding * total


cdef inline double smoothing_error(const newton_state *at) noexcept nogil:
    # how much the smoothed objective is too large at the present width and point
    return at.sums[3] - at.sums[2]


cdef bint no_read_left(const newton_state *at) noexcept nogil:
    # none for another look and, where the columns' sizes are not known, for the evaluation at the end
    return at.spent + (1 if at.knows_rms else 2) * at.share > at.max_passes


# ---------------------------------------------------------------- a look

cdef double floor_of(const newton_state *at) noexcept nogil:
    # rows far from the hinge are skipped, but never so many that little of the curvature known last is left
    # where products read them all the same
    return 0 if at.every_row or at.preconditioned or at.n_rows < SKIP_FROM else SKIP * at.mean_curvature


cdef void ask_look(newton_state *at, phase_id phase, const double *direction, double step, double width,
                   bint with_hessian) noexcept nogil:
    at.phase, at.clock = phase, seconds()
    at.ask.kind, at.ask.restart, at.ask.norm_weight = LOOK, False, NULL
    at.ask.look.direction, at.ask.look.step = direction, step
    at.ask.look.line_width, at.ask.look.width = at.rule.width, width
    if at.near:
        at.ask.look.with_hessian = TANGENTS
    elif not with_hessian or seconds() > at.deadline:          # no step follows, and a block may take seconds
        at.ask.look.with_hessian = NO_BLOCK
    else:
        at.ask.look.with_hessian = SAMPLED_BLOCK if at.preconditioned else ROUGH_BLOCK if at.rough else BLOCK
    at.ask.look.floor = floor_of(at) if at.thin else -floor_of(at)
    if at.preconditioned:
        ask_for_sample(at)
    at.ask.new_active, at.ask.n_active = at.n_active >= 0, at.n_active
    at.ask.active = at.active


cdef void ask_first_look(newton_state *at, phase_id phase, bint with_hessian) noexcept nogil:
    # the rows' numbers afresh
    at.drift, at.rough, at.thin = 0, False, True
    ask_look(at, phase, at.w, 1.0, at.rule.width, with_hessian)
    at.ask.restart = True


cdef void take_sums(newton_state *at, const double *sums, const double *gradient, double *block) noexcept nogil:
    cdef double n = at.n
    cdef Py_ssize_t i, j
    at.passes += at.share
    at.spent += at.share
    for i in range(10):
        at.sums[i] = sums[i] / n if i < 6 else sums[i]
    at.mean_curvature = sums[7] / n
    if at.ask.look.with_hessian == SAMPLED_BLOCK:
        count_sample(at)
    for j in range(at.p):
        at.g[j] = gradient[j] / -n
    memcpy(at.dual_sums, gradient + at.p, 2 * at.p * sizeof(double))
    if at.pull != NULL:
        told_with_others(at, gradient + at.p)
    elif at.smooth:
        make_feasible(&at.told, gradient + at.p, at.p, at.sums[4], at.sums[5], sums[8] / n, sums[9] / n, at.free >= 0)
    else:
        make_feasible(&at.told, gradient + at.p, at.p, at.sums[4], at.sums[5], at.sums[4], at.sums[5], at.free >= 0)
    for j in range(at.told.n):
        at.told.v[j] /= n
    at.dual = dual_bound(&at.told, at.l2, at.l1, NULL, at.scratch)
    at.block, at.has_block = block, block != NULL
    at.order = at.p if at.n_active < 0 else at.n_active
    if at.has_block and at.ask.look.floor < 0:
        add_rows_left_out(at)
    at.seconds_look += seconds() - at.clock


cdef void told_look(void *driver, const double *sums, const double *gradient, double *block) noexcept nogil:
    cdef newton_state *at = <newton_state *> driver
    take_sums(at, sums, gradient, block)
    if at.phase == FIRST_LOOK:
        first_look_done(at)
    elif at.phase == FRESH_LOOK:
        after_look(at, 1.0)
        next_step(at)
    elif at.phase == FULL_STEP:
        full_step_taken(at)
    else:
        accept(at)


cdef void after_look(newton_state *at, double step) noexcept nogil:
    cdef double penalty = penalty_of(at, at.w), objective = at.sums[2] + penalty - penalty_of_path(at)
    cdef Py_ssize_t j
    for j in range(at.p):
        at.g[j] += slope_of_penalty(at, j, at.w[j])
    at.value = at.sums[3] + penalty
    if objective < at.objective:
        at.objective = objective
        memcpy(at.best_w, at.w, at.p * sizeof(double))
    if at.dual > at.best_dual:
        at.best_dual, at.best.total, at.has_best = at.dual, at.told.total, True
        memcpy(at.best.v, at.told.v, at.told.n * sizeof(double))
    elif at.dual != at.dual:
        at.best_dual = at.dual
    at.n_iter += 1
    record(at, objective, step)
    judge(at)


cdef void record(newton_state *at, double objective, double step) noexcept nogil:
    # columns as in `HISTORY` of `continuation_newton`
    cdef Py_ssize_t j, used = 0
    cdef double *row = history_row(&at.history, &at.history_rows, &at.history_room, HISTORY_COLUMNS)
    if row == NULL:
        at.ask.out_of_memory = True
        return
    for j in range(at.p):
        used += at.w[j] != 0
    row[0], row[1] = at.passes, seconds() - at.started
    row[2], row[3], row[4] = at.seconds_look, at.seconds_system, at.seconds_search
    row[5], row[6], row[7], row[8] = objective, gap_of(at), step, at.rule.width
    row[9], row[10] = used, at.sums[6]


cdef void judge(newton_state *at) noexcept nogil:
    cdef double gap = gap_of(at)
    if gap <= at.tol or (at.pull != NULL and says_enough(at)):
        at.status = CONVERGED
    elif at.pull != NULL and says_nothing(at):
        at.status = LEFT
    elif at.dual != at.dual and not at.blind and at.predicted <= 0.1 * at.tol * at.objective \
            and smoothing_error(at) <= at.tol * at.objective:
        at.status = DECREMENT                    # no certificate without a penalty: the Newton decrement says so
    elif at.rule.width <= at.width_end or (at.smooth and at.width_end > 0 and gap < ENOUGH_OF_A_SUBSET):
        at.status = WIDTH
    elif at.rule.width <= NARROWEST:
        at.status = STALLED
    elif seconds() > at.deadline:
        at.status = MAX_TIME
    elif no_read_left(at):
        at.status = MAX_PASSES


# ---------------------------------------------------------------- the beginning

cdef void newton_answers_to(newton_state *at) noexcept nogil:
    at.ask.told_look, at.ask.told_along = told_look, told_along
    at.ask.told_product, at.ask.told_model, at.ask.told_evaluation = told_product, told_model, told_evaluation
    at.rounding = ROUNDING_OF_SUMS               # unless the rows' home says otherwise


cdef void newton_begin(newton_state *at) noexcept nogil:
    at.status, at.n_active, at.path_l2, at.path_l1 = RUNNING, -1, 0, 0
    if at.preconditioned and not at.knows_rms:
        at.phase, at.ask.kind, at.ask.x = MEASURING, EVALUATE, at.w
    else:
        look_first(at)


cdef void look_first(newton_state *at) noexcept nogil:
    cdef Py_ssize_t j
    if at.preconditioned:
        foresee_curvature(at)
    ask_first_look(at, FIRST_LOOK, tells_block(at) and not (at.wide_l1 or at.has_factor)
                   and (at.mean_curvature > 0 or not at.preconditioned))
    at.ask.new_active, at.ask.active = True, NULL
    if at.has_scale and not (at.wide_l1 or at.preconditioned):
        for j in range(at.p):
            at.taken[j] = 1 / max(at.column_scale[j], 1e-300)
        at.ask.norm_weight = at.taken


cdef void first_look_done(newton_state *at) noexcept nogil:
    after_look(at, 1.0)
    if at.ask.norm_weight != NULL:
        at.ask.kind = GATHER
        return
    at.drift = rounding_of(at, at.w)
    if at.has_block and at.n_active < 0 and not at.preconditioned:
        measure_columns(at, at.block, at.p + 1)
    columns_measured(at)


cdef void measure_columns(newton_state *at, const double *curvature, Py_ssize_t stride) noexcept nogil:
    # at w = 0 every row has the same curvature, and that of the columns says how large they are
    cdef Py_ssize_t j
    for j in range(at.p):
        if at.w[j] != 0:
            return
    for j in range(at.p):
        at.rms[j] = sqrt(curvature[j * stride] / max(at.sums[7], 1e-300))
    at.knows_rms, at.drift = True, 0


cdef void columns_measured(newton_state *at) noexcept nogil:
    begin_l1_path(at)
    if at.wide_l1 and at.status == RUNNING and not at.by_products:
        choose_columns(at)
        ask_look(at, FRESH_LOOK, at.zero, 1.0, at.rule.width, True)
    elif at.near:
        told_near(at)
    else:
        next_step(at)


cdef void go_on(newton_state *at) noexcept nogil:
    # after GATHER, NEAREST or PAUSE
    if at.ask.kind == GATHER:
        columns_measured(at)
    elif at.ask.kind == NEAREST:
        judge(at)
        if at.status == RUNNING and not at.near and at.ask.look.with_hessian == TANGENTS:
            leave_near(at)
        else:
            next_step(at)
    elif at.status != RUNNING:
        newton_settle(at)
    elif at.proposed:
        step_proposed(at)
    else:
        start_step(at)


cdef void next_step(newton_state *at) noexcept nogil:
    at.ask.kind = PAUSE
    if not at.ask.pauses:
        go_on(at)


cdef void newton_leave(newton_state *at, status_id status) noexcept nogil:
    # in the middle of a look, say: what is known of the best point stands, unless nothing is
    at.status = status
    leave_path(at)
    if isfinite(at.objective):
        at.ask.kind = DONE
    else:
        newton_settle(at)


# ---------------------------------------------------------------- the direction

cdef void start_step(newton_state *at) noexcept nogil:
    at.clock = seconds()
    if at.preconditioned:
        start_preconditioned(at)
        return
    if at.n_active == 0:                         # l1 holds every column at 0
        memset(at.d, 0, at.p * sizeof(double))
    elif not at.has_block and at.has_factor:
        chord_direction(at)
    elif not at.has_block and at.l1 > 0:
        start_model(at)
        return
    elif not at.has_block:
        start_products(at)
        return
    elif not at.make_room(at, at.order):
        at.ask.out_of_memory = True
    else:
        at.ask.not_finite = not solve_block(at)
    if at.ask.not_finite and at.pull != NULL:    # curvature of few rows; whoever asked goes on without them
        at.ask.not_finite = False
        newton_leave(at, LEFT)
        return
    if at.ask.out_of_memory or at.ask.not_finite:
        at.ask.kind = DONE
        return
    direction_found(at)


# ---------------------------------------------------------------- a step along it

cdef next_width width_of_step(const newton_state *at, double step) noexcept nogil:
    cdef next_width same
    if not at.smooth and not at.near:
        return width_after(&at.rule, step, smoothing_error(at), at.objective, gap_of(at))
    same.width, same.decay = at.rule.width, at.rule.decay
    return same


cdef void direction_found(newton_state *at) noexcept nogil:
    at.seconds_system += seconds() - at.clock
    at.first = dot(at.p, at.g, at.d) + l1_slope(n_kinks(at), at.w, at.d, at.l1_each, 0, 1)
    at.turns = at.n_active >= 0 and at.predicted > 0 and columns_wait(at)
    at.predicted, at.step = -at.first, 1
    if not at.predicted > VANISHING * max(fabs(at.value), 1e-300) or not isfinite(at.predicted):
        at.predicted = 0                         # nothing left to gain at this width
        memset(at.d, 0, at.p * sizeof(double))
    if at.n_active >= 0:
        choose_columns(at)
    at.to = width_of_step(at, 1.0)
    at.leaves = leaves_zero(at)
    ask_look(at, FULL_STEP, at.d, 1.0, at.to.width, tells_block(at) and not (may_be_the_last(at) or at.leaves))


cdef void full_step_taken(newton_state *at) noexcept nogil:
    cdef Py_ssize_t j
    memcpy(at.taken, at.d, at.p * sizeof(double))
    for j in range(at.p):
        at.scratch[j] = at.w[j] + at.d[j]
    if at.predicted == 0 or no_read_left(at) or (at.leaves and is_certified(at)):
        accept(at)
        return
    if not is_poor(at):
        accept_with_curvature(at)
        return
    at.clock = seconds()
    begin_line(at)
    at.phase, at.ask.kind, at.ask.step = SEARCH, ALONG, at.line.s
    at.ask.look.width = at.rule.width


cdef void told_along(void *driver, double slope, double curvature) noexcept nogil:
    cdef newton_state *at = <newton_state *> driver
    cdef Py_ssize_t j
    if search_told(&at.line, slope / at.n + at.line_slope + at.line.s * at.line_curvature,
                   curvature / at.n + at.line_curvature):
        at.ask.step = at.line.s
        return
    at.seconds_search += seconds() - at.clock
    at.step = at.line.s
    if (not at.leaves and at.line.hit < 0 and is_good_enough(at, at.step)) or (at.near and at.step < LEAST_NEAR):
        at.step = 1
    if at.step == 1:
        accept_with_curvature(at)
        return
    for j in range(at.p):
        at.taken[j] = at.step * at.d[j]
    if at.line.hit >= 0:
        at.taken[at.line.hit] = -at.w[at.line.hit]
    at.to = width_of_step(at, at.step)
    ask_look(at, SHORTER_STEP, NULL, at.step, at.to.width, tells_block(at))


cdef void accept_with_curvature(newton_state *at) noexcept nogil:
    # the end of d, where a first step has been looked at without
    if at.leaves and tells_block(at):
        ask_look(at, SHORTER_STEP, NULL, 1.0, at.to.width, True)
    else:
        accept(at)


cdef void accept(newton_state *at) noexcept nogil:
    cdef double drift
    cdef Py_ssize_t j
    if at.predicted > 0:
        for j in range(at.p):
            at.w[j] += at.taken[j]
        at.drift += rounding_of(at, at.taken)
    at.rule.width, at.rule.decay = at.to.width, at.to.decay
    after_look(at, at.step)
    if at.near:
        told_near(at)
        return
    if not at.smooth:
        if back_up(&at.rule, gap_of(at)) and at.status == RUNNING:
            if at.width_end > 0 and at.pull == NULL:         # a subset need not be certified: all rows go on from here
                at.status, at.rule.width = WIDTH, at.to.width
                next_step(at)
                return
            drift = at.drift
            ask_first_look(at, FRESH_LOOK, tells_block(at))     # the sums just told are of the narrower width
            at.drift = drift                     # of the best point, which may be an earlier one
            return
    elif not follow_path(at) and at.predicted == 0 and not at.turns and at.status == RUNNING:
        at.status = ROUNDED
    if wants_near(at, smoothing_error(at)):
        at.ask.kind = NEAREST
    else:
        next_step(at)


# ---------------------------------------------------------------- the end

cdef void newton_settle(newton_state *at) noexcept nogil:
    # The objective and the bound to report: of the rows as given, at the numbers returned
    leave_path(at)
    at.ask.kind = DONE
    if at.width_end > 0:                         # a subset's are not reported
        return
    if at.knows_rms and at.drift + rounding_of(at, at.best_w) <= DRIFT * at.objective:
        settled(at)
        return
    at.phase, at.ask.kind, at.ask.x = SETTLING, EVALUATE, at.best_w


cdef void take_evaluation(newton_state *at, double loss, const double *squares) noexcept nogil:
    cdef Py_ssize_t j
    at.passes += at.share
    at.objective = loss / at.n + penalty_of(at, at.best_w)
    if not isfinite(at.objective):
        at.objective = INFINITY
    for j in range(at.p):
        at.rms[j] = sqrt(squares[j] / at.n)
    at.knows_rms = True


cdef void told_evaluation(void *driver, double loss, const double *squares) noexcept nogil:
    cdef newton_state *at = <newton_state *> driver
    take_evaluation(at, loss, squares)
    if at.phase == MEASURING:
        at.spent += at.share
        look_first(at)
    else:
        settled(at)


cdef void settled(newton_state *at) noexcept nogil:
    cdef dual_point best = at.best
    cdef Py_ssize_t j
    if at.has_best:
        if at.free >= 0:                         # sum a y is 0 to rounding only, and costs the intercept times that
            best.total -= at.rounding * fabs(at.best_w[at.free]) * best.total
        for j in range(at.p):
            at.taken[j] = at.rounding * at.rms[j]
        at.best_dual = dual_bound(&best, at.l2, at.l1, at.taken, at.scratch)
    if at.history_rows > 0:
        at.history[(at.history_rows - 1) * HISTORY_COLUMNS] = at.passes
        at.history[(at.history_rows - 1) * HISTORY_COLUMNS + 6] = gap_of(at)
    at.ask.kind = DONE
    if at.status == CONVERGED and not gap_of(at) <= at.tol:
        at.status = RUNNING                      # it called itself converged and is not, so evaluated: it goes on
        memcpy(at.w, at.best_w, at.p * sizeof(double))
    if at.status == RUNNING and not at.only_settles:
        if at.resumed == RESUMED:
            at.status = ROUNDED
            return
        at.resumed += 1
        if at.near:
            leave_near(at)
        else:
            ask_first_look(at, FRESH_LOOK, tells_block(at))
