"""Newton's method, for the smoothed hinge while the smoothing width goes to zero (SmSVM), with a certificate.

Losses that are smooth themselves, squared hinge and logistic, take the same steps; widths mean nothing there. That of
margin pursuit has no dual: there is no certificate then, the gradient's norm ends the fit (`stop_rule.by_gradient`).

The rows are read once per Newton step. The step is taken at full length, the rows are summed at its end, and only if
the function along the line says that the end is a poor place (it is known exactly there: value and slope are among the
sums) is the line searched, on numbers kept per row, and the rows are read once more. A first step of a smooth loss may
be searched always (`leaves_zero`), between an evaluation without curvature and one with it.

The certificate comes from the same read: dual variables a + h du predicted *before* the step for *after* it.

Each function ends with a request, in `ask`, and the one that receives the result goes on:

    newton_begin > EVALUATE > [MEASURE] > next_step > direction > EVALUATE > [[LINE ...] > EVALUATE] > accept
                 > [MARGINS] > next_step > WORKING_SET > [step_proposed > EVALUATE > accept]
                 > next_step > ... > newton_settle > [OBJECTIVE] > DONE
"""

from libc.math cimport fabs, isfinite
from libc.string cimport memcpy, memset

from cmargin._core.linalg._blas cimport dot
from cmargin._core.newton._asking cimport (
    LINE, DONE, OBJECTIVE, EVALUATE, MARGINS, MEASURE, MODEL, WORKING_SET, PAUSE, HESSP, ROW_MODEL,
)
from cmargin._core.newton._bound cimport dual_point
from cmargin._core.newton._column_units cimport in_rows
from cmargin._core.newton._line cimport search_tell
from cmargin._core.newton._penalty_path cimport begin_l1_path, follow_path, leave_path
from cmargin._core.newton._point cimport (
    after_evaluation, at_work, bound_of, floor_of, gap_of, is_counted, judge, measure_columns, measure_gradient_at_zero,
    objective_size, reads_for_products, record_margins, rounding_of, smoothing_error, take_objective, take_sums,
    total_held,
)
from cmargin._core.newton._smoothing cimport back_up, next_width, width_after
from cmargin._core.newton._state cimport (
    ASK_AFRESH, ASK_EVALUATE, ASK_HESSP, ASK_MODEL, ASK_ROW_MODEL, CONVERGED, DIVERGED, FIRST_EVALUATION, FOUND,
    FRESH_EVALUATION, FULL_STEP, GIVE_UP, FAILED, HISTORY_COLUMNS, LEFT, MEASURING, ROUNDED, RUNNING, SEARCH, SETTLING,
    SHORTER_STEP, WIDTH, action_id,
)
from cmargin._core.newton._step_end cimport begin_line, is_certified, is_good_enough, is_poor, rule_of
from cmargin._core.newton._working_set cimport is_too_short, wants_working_set, width_after_working_set
from cmargin._core.newton.direction._block cimport columns_wait, solve_block
from cmargin._core.newton.direction._chord cimport chord_direction, leaves_zero, may_be_the_last
from cmargin._core.newton.direction._l1_columns cimport begin_columns, columns_tell
from cmargin._core.newton.direction._l1_rows cimport begin_rows, choose_unknowns, rows_tell
from cmargin._core.newton.direction._lagged cimport (
    begin_lagged, is_straight, keeps_curvature, lagged_step_done, lagged_take, steepest_descent,
)
from cmargin._core.newton.direction._pcg cimport (
    ask_for_sample, begin_hessp, begin_preconditioned, count_sample, foresee_curvature, give_hessp_up, hessp_tell,
    products_stall,
)
from cmargin._core.penalties._penalties cimport has_steps_by_columns, penalty_slope, place_after, vanishes_with
from cmargin._core.rows._evaluate cimport (
    BLOCK, COMMIT_AND_MOVE, NO_BLOCK, RESTART, SINGLE_BLOCK, SAME_LINE, SAMPLED_BLOCK, TANGENTS, evaluation_request,
)
from cmargin._core.util._clock cimport seconds
from cmargin._core.util._rounding cimport ROUNDING_OF_SUMS
from cmargin._core.util._stop cimport is_done

cdef double DRIFT = 1e-10               # part of the objective: with more rounding of steps it is evaluated anew
cdef int RESUMED = 3                     # times that a fit goes on whose certificate, evaluated anew, falls short


cdef inline bint tells_block(const newton_state *at) noexcept nogil:
    # whether evaluations are asked for one
    return not at.pcg.in_use or at.sampled.in_use


# ---------------------------------------------------------------- an evaluation

cdef void compose_request(newton_state *at, move_kind move, const double *direction, double step, double width,
                          bint with_hessian) noexcept nogil:
    # everything that an evaluation is asked for, in this order: where rows move, smoothing, curvature, sample, columns
    cdef evaluation_request *evaluation = &at.ask.evaluation
    at.ask.kind = EVALUATE
    evaluation.move, evaluation.direction, evaluation.step = move, in_rows(&at.units, direction), step
    evaluation.line_width, evaluation.width = at.smoothing.width, width
    evaluation.with_hessian = BLOCK
    if at.working_set.in_use:
        evaluation.with_hessian = TANGENTS
    elif not with_hessian or at.l1_block.in_rows or seconds() > at.stop.deadline:      # a block may take seconds
        evaluation.with_hessian = NO_BLOCK
    elif at.sampled.in_use:
        evaluation.with_hessian = SAMPLED_BLOCK
    elif at.cholesky.single_ok:
        evaluation.with_hessian = SINGLE_BLOCK
    evaluation.floor = floor_of(at)
    evaluation.measure.norm = measure_at_first(at) if at.phase == FIRST_EVALUATION else NULL
    if at.sampled.in_use:
        ask_for_sample(at)
    at.ask.new_active = at.curvature.n_active >= 0 or at.phase == FIRST_EVALUATION
    at.ask.n_active = at.curvature.n_active
    at.ask.active = at.curvature.active if at.curvature.n_active >= 0 else NULL


cdef const double *measure_at_first(newton_state *at) noexcept nogil:
    # where the curvature of columns is known from a subset, rows are measured by it: for the columns' sizes, and to
    # choose the working set
    cdef Py_ssize_t j
    if not at.curvature.has_scale or at.l1_block.wide or at.sampled.in_use \
            or (at.curvature.is_near and at.bound.knows_rms):
        return NULL
    for j in range(at.p):
        at.point.taken[j] = 1 / max(at.curvature.column_scale[j], 1e-300)
    return at.point.taken


cdef void ask_evaluation(newton_state *at, phase_id phase, move_kind move, const double *direction, double step,
                         double width, bint with_hessian) noexcept nogil:
    at.phase, at.counts.clock = phase, at_work(at)
    compose_request(at, move, direction, step, width, with_hessian)


cdef void ask_first_evaluation(newton_state *at, phase_id phase, bint with_hessian) noexcept nogil:
    # the rows' numbers afresh
    at.bound.drift, at.cholesky.single_ok = 0, False
    ask_evaluation(at, phase, RESTART, at.point.w, 1.0, at.smoothing.width, with_hessian)


cdef void on_evaluation(void *driver, const double *sums, const double *gradient, double *block) noexcept nogil:
    cdef newton_state *at = <newton_state *> driver
    take_sums(at, sums, gradient, block)
    if at.ask.evaluation.with_hessian == SAMPLED_BLOCK:
        count_sample(at)
    if at.lagged.in_use and at.curvature.has_block:
        lagged_take(at)
    if at.phase == FIRST_EVALUATION:
        first_evaluation_done(at)
    elif at.phase == FRESH_EVALUATION:
        after_evaluation(at, 1.0)
        next_step(at)
    elif at.phase == FULL_STEP:
        full_step_taken(at)
    else:
        accept(at)


# ---------------------------------------------------------------- the beginning

cdef void newton_answers_to(newton_state *at) noexcept nogil:
    at.ask.on_evaluation, at.ask.on_line = on_evaluation, on_line
    at.ask.on_hessp, at.ask.on_model, at.ask.on_objective = on_hessp, on_model, on_objective
    at.ask.on_margins = on_margins
    at.problem.rounding = ROUNDING_OF_SUMS       # unless the rows' data source says otherwise


cdef void newton_begin(newton_state *at) noexcept nogil:
    at.status, at.curvature.n_active, at.penalty.path_begun = RUNNING, -1, False
    if at.sampled.in_use and not at.bound.knows_rms:
        at.phase, at.ask.kind, at.ask.x = MEASURING, OBJECTIVE, at.point.w
    else:
        evaluate_first(at)


cdef void evaluate_first(newton_state *at) noexcept nogil:
    if at.sampled.in_use:
        foresee_curvature(at)
    ask_first_evaluation(at, FIRST_EVALUATION, tells_block(at) and not (at.l1_block.wide or at.curvature.has_factor)
                         and (at.curvature.mean > 0 or not at.sampled.in_use))


cdef void first_evaluation_done(newton_state *at) noexcept nogil:
    if at.stop.by_gradient:
        measure_gradient_at_zero(at)
    after_evaluation(at, 1.0)
    if at.ask.evaluation.measure.norm != NULL:
        at.ask.kind = MEASURE
        return
    at.bound.drift = rounding_of(at, at.point.w)
    if at.curvature.has_block and at.curvature.n_active < 0 and not at.sampled.in_use:
        measure_columns(at, at.curvature.block, at.p + 1)
    columns_measured(at)


cdef void columns_measured(newton_state *at) noexcept nogil:
    begin_l1_path(at)
    if at.l1_block.wide and at.status == RUNNING and not at.pcg.in_use:
        choose_unknowns(at)
        if at.l1_block.in_rows:
            next_step(at)
        else:
            ask_evaluation(at, FRESH_EVALUATION, COMMIT_AND_MOVE, at.point.zero, 1.0, at.smoothing.width, True)
    elif at.working_set.in_use:
        after_working_set(at)
    else:
        next_step(at)


cdef void go_on(newton_state *at) noexcept nogil:
    # after MEASURE, WORKING_SET or PAUSE
    if at.ask.kind == MEASURE:
        columns_measured(at)
    elif at.ask.kind == WORKING_SET:
        judge(at)
        if at.status == RUNNING and not at.working_set.in_use and at.ask.evaluation.with_hessian == TANGENTS:
            leave_working_set(at)
        else:
            next_step(at)
    elif at.status != RUNNING:
        newton_settle(at)
    elif at.working_set.proposed:
        step_proposed(at)
    else:
        start_step(at)


cdef void next_step(newton_state *at) noexcept nogil:
    at.ask.kind = PAUSE
    if not at.ask.pauses or not is_counted(at):
        go_on(at)


cdef void newton_leave(newton_state *at, status_id status) noexcept nogil:
    # in the middle of an evaluation, say: what is known of the best point stands, unless nothing is
    at.status = status
    leave_path(at)
    if isfinite(at.bound.objective):
        at.ask.kind = DONE
    else:
        newton_settle(at)


# ---------------------------------------------------------------- the direction

cdef action_id begin_direction(newton_state *at) noexcept nogil:
    if at.stop.by_gradient and is_straight(at):
        steepest_descent(at)
        return FOUND
    if at.lagged.in_use:
        return begin_lagged(at)
    if at.sampled.in_use:
        return begin_preconditioned(at)
    if at.l1_block.in_rows:
        return begin_rows(at)
    if at.curvature.n_active == 0:               # the penalty holds every column at 0
        memset(at.point.d, 0, at.p * sizeof(double))
        return FOUND
    if not at.curvature.has_block and at.curvature.has_factor:
        chord_direction(at)
        return FOUND
    if not at.curvature.has_block:
        return begin_columns(at) if has_steps_by_columns(&at.penalty.user) else begin_hessp(at)
    if not at.curvature.make_room(at, at.curvature.order):
        at.ask.out_of_memory = True
        return FAILED
    at.ask.not_finite = not solve_block(at)
    return FAILED if at.ask.not_finite or at.ask.out_of_memory else FOUND


cdef void start_step(newton_state *at) noexcept nogil:
    at.counts.clock = at_work(at)
    act(at, begin_direction(at))


cdef void act(newton_state *at, action_id action) noexcept nogil:
    # what a direction has answered
    if action == FOUND:
        direction_found(at)
    elif action == ASK_HESSP:
        at.ask.kind, at.ask.x = HESSP, in_rows(&at.units, at.pcg.asked)
        at.ask.evaluation.width, at.ask.evaluation.floor = at.smoothing.width, floor_of(at)
    elif action == ASK_MODEL or action == ASK_ROW_MODEL:
        at.ask.kind = MODEL if action == ASK_MODEL else ROW_MODEL
        at.ask.model, at.ask.row_model = &at.l1_columns.model, &at.l1_block.model
        at.ask.evaluation.width, at.ask.evaluation.floor = at.smoothing.width, floor_of(at)
    elif action == ASK_EVALUATE:
        ask_evaluation(at, FRESH_EVALUATION, COMMIT_AND_MOVE, at.point.zero, 1.0, at.smoothing.width, True)
    elif action == ASK_AFRESH:
        ask_first_evaluation(at, FRESH_EVALUATION, True)
    elif action == GIVE_UP:
        newton_settle(at)
    elif at.ask.not_finite and at.linearised.linear != NULL:
        # The curvature is that of few rows; whoever asked goes on without them.
        at.ask.not_finite = False
        newton_leave(at, LEFT)
    elif at.ask.not_finite and at.stop.by_gradient:
        at.ask.not_finite = False
        newton_leave(at, DIVERGED)
    else:
        at.ask.kind = DONE


cdef void on_hessp(void *driver, const double *product, double share) noexcept nogil:
    cdef newton_state *at = <newton_state *> driver
    act(at, hessp_tell(at, product, share))


cdef void on_model(void *driver) noexcept nogil:
    cdef newton_state *at = <newton_state *> driver
    act(at, rows_tell(at) if at.ask.kind == ROW_MODEL else columns_tell(at))


# ---------------------------------------------------------------- a step along it

cdef next_width width_of_step(const newton_state *at, double step) noexcept nogil:
    cdef next_width same
    if not at.problem.facts.smooth and not at.working_set.in_use:
        return width_after(&at.smoothing, step, smoothing_error(at), objective_size(at), gap_of(at))
    same.width, same.decay = at.smoothing.width, at.smoothing.decay
    return same


cdef void direction_found(newton_state *at) noexcept nogil:
    cdef double least
    at.counts.seconds_system += at_work(at) - at.counts.clock
    at.point.slope = dot(at.p, at.point.g, at.point.d)
    at.point.slope += penalty_slope(&at.penalty.step, at.point.w, at.point.d, 0, 1)
    if at.stop.by_gradient and not at.point.slope < 0:
        steepest_descent(at)
        at.point.slope = dot(at.p, at.point.g, at.point.d)
    at.point.columns_wait = at.curvature.n_active >= 0 and at.point.predicted > 0 and columns_wait(at)
    at.point.predicted, at.point.step = -at.point.slope, 1
    least = rule_of(at).vanishing * max(fabs(at.point.value), 1e-300)
    if not at.point.predicted > least or not isfinite(at.point.predicted):
        at.point.predicted = 0                   # nothing left to gain at this width
        memset(at.point.d, 0, at.p * sizeof(double))
        if at.stop.by_gradient:
            newton_leave(at, ROUNDED)
            return
    if at.curvature.n_active >= 0:
        choose_unknowns(at)
    at.smoothing.next = width_of_step(at, 1.0)
    at.line.leaves_zero = not at.stop.by_gradient and leaves_zero(at)
    if at.lagged.in_use:
        memcpy(at.lagged.change, at.point.g, at.p * sizeof(double))
    ask_evaluation(at, FULL_STEP, COMMIT_AND_MOVE, at.point.d, 1.0, at.smoothing.next.width,
                   tells_block(at) and not (may_be_the_last(at) or at.line.leaves_zero or keeps_curvature(at)))


cdef void full_step_taken(newton_state *at) noexcept nogil:
    cdef bint spent = reads_for_products(at) < 0 and not at.stop.by_gradient     # whose steps may each be searched
    cdef Py_ssize_t j
    memcpy(at.point.taken, at.point.d, at.p * sizeof(double))
    for j in range(at.p):
        at.point.scratch[j] = place_after(&at.penalty.step, j, at.point.w[j], at.point.d[j])
    if at.point.predicted == 0 or spent or (at.line.leaves_zero and is_certified(at)):
        accept(at)
        return
    if not is_poor(at):
        accept_with_curvature(at)
        return
    at.counts.clock = at_work(at)
    begin_line(at)
    at.phase, at.ask.kind, at.ask.step = SEARCH, LINE, at.line.search.s
    at.ask.evaluation.width = at.smoothing.width


cdef void on_line(void *driver, double slope, double curvature) noexcept nogil:
    cdef newton_state *at = <newton_state *> driver
    cdef Py_ssize_t j
    if search_tell(&at.line.search, slope / at.problem.n + at.line.slope + at.line.search.s * at.line.curvature,
                   curvature / at.problem.n + at.line.curvature):
        at.ask.step = at.line.search.s
        return
    at.counts.seconds_search += at_work(at) - at.counts.clock
    at.point.step = at.line.search.s
    if (not at.line.leaves_zero and at.line.search.hit < 0 and is_good_enough(at, at.point.step)) or is_too_short(at):
        at.point.step = 1
    if at.point.step == 1:
        accept_with_curvature(at)
        return
    for j in range(at.p):
        at.point.taken[j] = at.point.step * at.point.d[j]
        if at.line.search.hit >= 0 and vanishes_with(&at.penalty.step, j, at.line.search.hit):
            at.point.taken[j] = -at.point.w[j]
    if products_stall(at):
        give_hessp_up(at)
    at.smoothing.next = width_of_step(at, at.point.step)
    ask_evaluation(at, SHORTER_STEP, SAME_LINE, NULL, at.point.step, at.smoothing.next.width, tells_block(at))


cdef void accept_with_curvature(newton_state *at) noexcept nogil:
    # a first step of a smooth loss was evaluated without curvature (`leaves_zero`): once more at its end, with it
    if at.line.leaves_zero and tells_block(at):
        ask_evaluation(at, SHORTER_STEP, SAME_LINE, NULL, 1.0, at.smoothing.next.width, True)
    else:
        accept(at)


cdef void accept(newton_state *at) noexcept nogil:
    cdef double drift
    cdef Py_ssize_t j
    if at.point.predicted > 0:
        for j in range(at.p):
            at.point.w[j] = place_after(&at.penalty.step, j, at.point.w[j], at.point.taken[j])
        at.bound.drift += rounding_of(at, at.point.taken)
    at.smoothing.width, at.smoothing.decay = at.smoothing.next.width, at.smoothing.next.decay
    after_evaluation(at, at.point.step)
    if at.lagged.in_use:
        lagged_step_done(at)
    if at.working_set.in_use:
        after_working_set(at)
        return
    if not at.problem.facts.smooth:
        if back_up(&at.smoothing, gap_of(at)) and at.status == RUNNING:
            if at.stop.width_end > 0 and at.linearised.linear == NULL:
                # A subset need not be certified: all rows go on from here.
                at.status, at.smoothing.width = WIDTH, at.smoothing.next.width
                next_step(at)
                return
            drift = at.bound.drift
            # the sums just received are of the narrower width
            ask_first_evaluation(at, FRESH_EVALUATION, tells_block(at))
            at.bound.drift = drift               # of the best point, which may be an earlier one
            return
    elif not follow_path(at) and at.point.predicted == 0 and not at.point.columns_wait and at.status == RUNNING:
        at.status = ROUNDED
    if wants_working_set(at, smoothing_error(at)):
        at.ask.kind = WORKING_SET
    elif at.ask.traced != NULL and at.status != DIVERGED:
        at.counts.clock, at.ask.kind, at.ask.scale = at_work(at), MARGINS, at.problem.loss.b
    else:
        next_step(at)


cdef void on_margins(void *driver) noexcept nogil:
    cdef newton_state *at = <newton_state *> driver
    record_margins(at)
    next_step(at)


# ---------------------------------------------------------------- steps to the optimum of the rows near the hinge

cdef void step_proposed(newton_state *at) noexcept nogil:
    at.working_set.proposed = False
    at.point.slope = dot(at.p, at.point.g, at.point.d)
    at.point.predicted, at.point.step, at.point.columns_wait, at.line.leaves_zero = -at.point.slope, 1, False, False
    at.smoothing.next.width, at.smoothing.next.decay = at.smoothing.width, at.smoothing.decay
    if at.point.predicted > 0:
        ask_evaluation(at, FULL_STEP, COMMIT_AND_MOVE, at.point.d, 1.0, at.smoothing.width, False)
    else:
        leave_working_set(at)


cdef void after_working_set(newton_state *at) noexcept nogil:
    # its end was evaluated
    if at.status == RUNNING:
        at.ask.kind = WORKING_SET
    else:
        next_step(at)


cdef void leave_working_set(newton_state *at) noexcept nogil:
    # from the best point on, steps of all rows
    cdef double drift = at.bound.drift
    # A bound that came with a proposed step may have ended the fit before it.
    at.working_set.in_use = at.working_set.proposed = False
    at.smoothing.width = width_after_working_set(at)
    memcpy(at.point.w, at.bound.best_w, at.p * sizeof(double))
    ask_first_evaluation(at, FRESH_EVALUATION, True)
    at.bound.drift = drift


# ---------------------------------------------------------------- the end

cdef void newton_settle(newton_state *at) noexcept nogil:
    # The objective and the bound to report: of the rows as given, at the numbers returned
    leave_path(at)
    at.ask.kind = DONE
    if at.stop.width_end > 0 or at.stop.by_gradient:     # a subset's are not reported; nor is there a bound
        return
    if at.bound.knows_rms and at.bound.drift + rounding_of(at, at.bound.best_w) <= DRIFT * objective_size(at):
        settled(at)
        return
    at.phase, at.ask.kind, at.ask.x = SETTLING, OBJECTIVE, at.bound.best_w


cdef void on_objective(void *driver, double loss, const double *squares) noexcept nogil:
    cdef newton_state *at = <newton_state *> driver
    take_objective(at, loss, squares)
    if at.phase == MEASURING:
        evaluate_first(at)
    else:
        settled(at)


cdef void settled(newton_state *at) noexcept nogil:
    cdef dual_point best = at.bound.best
    cdef Py_ssize_t j
    if at.bound.has_best:
        best.total = total_held(at)
        for j in range(at.p):
            at.point.taken[j] = at.problem.rounding * at.bound.rms[j]
        at.bound.best_dual = bound_of(at, &best, at.point.taken)
    if at.history.n_rows > 0:
        at.history.table[(at.history.n_rows - 1) * HISTORY_COLUMNS] = at.counts.passes
        at.history.table[(at.history.n_rows - 1) * HISTORY_COLUMNS + 6] = gap_of(at)
    at.ask.kind = DONE
    if at.status == CONVERGED and not is_done(&at.stop, gap_of(at)):
        at.status = RUNNING                      # it called itself converged and is not, so evaluated: it goes on
        memcpy(at.point.w, at.bound.best_w, at.p * sizeof(double))
    if at.status == RUNNING and not at.bound.only_settles:
        if at.bound.resumed == RESUMED:
            at.status = ROUNDED
            return
        at.bound.resumed += 1
        if at.working_set.in_use:
            leave_working_set(at)
        else:
            ask_first_evaluation(at, FRESH_EVALUATION, tells_block(at))
