"""What is known of the point where the driver is: value, gradient, bound, history, from the sums of one evaluation.

Nothing here asks a question; the driver does, and every direction may use it.
"""

from libc.math cimport INFINITY, fabs, isfinite, isnan, sqrt
from libc.string cimport memcpy

from cmargin._core.linalg._blas cimport dot
from cmargin._core.losses._losses cimport point_loss
from cmargin._core.newton._bound cimport dual_bound, dual_point, make_feasible
from cmargin._core.newton._column_units cimport block_in_units, sums_in_units
from cmargin._core.newton._linearised_rows cimport says_enough, says_nothing, feasible_with_others
from cmargin._core.newton._one_class cimport is_one_class, make_one_class_feasible, one_class_bound, one_class_term
from cmargin._core.newton._smoothing cimport NARROWEST
from cmargin._core.newton._state cimport (
    CONVERGED, DECREMENT, DIVERGED, HISTORY_COLUMNS, LEFT, MAX_PASSES, MAX_TIME, STALLED, WIDTH,
)
from cmargin._core.penalties._penalties cimport has_steps_by_columns, penalty_value, size_beside_l1
from cmargin._core.penalties._penalty cimport penalty_t
from cmargin._core.util._clock cimport seconds
from cmargin._core.util._history cimport history_row
from cmargin._core.util._margin_summary cimport N_TRACED
from cmargin._core.util._stop cimport is_done

cdef double SKIP = 1e-6                  # rows of less than this part of the mean curvature are on its diagonal at most
cdef Py_ssize_t SKIP_FROM = 4096         # rows; fewer are all summed
cdef int PRODUCTS_A_PASS = 10            # reads by conjugate gradients that count as one pass with curvature
cdef double ENOUGH_OF_A_SUBSET = 3e-4    # gap of a subset, with a smooth loss: below, its own noise is fitted


cdef double penalty_of(const newton_state *at, const double *w) noexcept nogil:
    cdef double value = penalty_value(&at.penalty.step, w) + one_class_term(at, w)
    if at.linearised.linear != NULL:             # other rows are straight lines
        return value + at.linearised.constant[0] + at.linearised.constant[1] - dot(at.p, at.linearised.linear, w)
    return value


cdef double penalty_of_path(const newton_state *at) noexcept nogil:
    cdef const penalty_t *step = &at.penalty.step
    cdef const penalty_t *user = &at.penalty.user
    cdef double squares = 0
    cdef Py_ssize_t j
    if step.l2 <= user.l2 and step.l1 <= user.l1:
        return 0
    for j in range(at.p):
        if j != user.free:
            squares += at.point.w[j] * at.point.w[j]
    return (step.l2 - user.l2) / 2 * squares + (step.l1 - user.l1) * size_beside_l1(step, at.point.w)


cdef double rounding_of(const newton_state *at, const double *e) noexcept nogil:
    # what rounding may do to the objective in a product of the rows with e
    cdef double total = 0
    cdef Py_ssize_t j
    if not at.bound.knows_rms:
        return INFINITY
    for j in range(at.p):
        total += fabs(e[j]) * at.bound.rms[j]
    return at.problem.facts.steepest * at.problem.rounding * total


cdef double reads_for_products(const newton_state *at) noexcept nogil:
    # those that an evaluation and, where the columns' sizes are not known, the objective at the end do not take
    cdef double counted
    if at.stop.by_gradient:
        return PRODUCTS_A_PASS * at.stop.max_passes - at.counts.passes
    counted = at.counts.passes - at.counts.of_columns
    return at.stop.max_passes - counted - (1 if at.bound.knows_rms else 2) * at.problem.share


cdef bint no_read_left(const newton_state *at) noexcept nogil:
    cdef double fewest = 0                       # products of a step
    if at.stop.by_gradient:
        return at.counts.n_iter >= at.stop.max_passes or (at.pcg.in_use and reads_for_products(at) <= 0)
    if at.pcg.in_use and not has_steps_by_columns(&at.penalty.user):
        fewest = 1 if at.sampled.in_use or foresees_diagonal(at) else 2
    return reads_for_products(at) < fewest * at.problem.share


cdef double floor_of(const newton_state *at) noexcept nogil:
    # rows far from the hinge are skipped, but never so many that little of the curvature known last is left
    # where products read them all the same
    if at.cholesky.every_row or at.sampled.in_use or at.problem.n_rows < SKIP_FROM:
        return 0
    return SKIP * at.curvature.mean


# ---------------------------------------------------------------- what an evaluation says

cdef void take_sums(newton_state *at, const double *sums, const double *gradient, double *block) noexcept nogil:
    cdef double n = at.problem.n
    cdef Py_ssize_t i, j
    at.counts.passes += at.problem.share
    for i in range(10):
        at.point.sums[i] = sums[i] / n if i < 6 else sums[i]
    at.curvature.mean = sums[7] / n
    memcpy(at.point.g, gradient, at.p * sizeof(double))
    if at.units.inverse != NULL:
        sums_in_units(&at.units, at.point.g)
        if block != NULL:
            block_in_units(&at.units, block)
    for j in range(at.p):
        at.point.g[j] = at.point.g[j] / -n
    memcpy(at.bound.dual_sums, gradient + at.p, 2 * at.p * sizeof(double))
    if at.stop.by_gradient:
        at.point.sums[2] = at.point.sums[3] = at.point.sums[0]     # nothing is smoothed
    else:
        take_dual(at, sums, gradient)
    at.curvature.block, at.curvature.has_block = block, block != NULL
    at.curvature.order = at.p if at.curvature.n_active < 0 else at.curvature.n_active
    at.counts.seconds_look += at_work(at) - at.counts.clock


cdef void take_dual(newton_state *at, const double *sums, const double *gradient) noexcept nogil:
    cdef double n = at.problem.n
    cdef Py_ssize_t j
    if is_one_class(at):
        make_one_class_feasible(&at.one_class, &at.bound.last, gradient + at.p, n, at.point.sums[4] * n)
    elif at.linearised.linear != NULL:
        feasible_with_others(at, gradient + at.p)
    elif at.problem.facts.smooth or at.problem.has_offsets:
        make_feasible(&at.bound.last, gradient + at.p, at.p, at.point.sums[4], at.point.sums[5], sums[8] / n,
                      sums[9] / n, at.penalty.user.free >= 0)
    else:
        make_feasible(&at.bound.last, gradient + at.p, at.p, at.point.sums[4], at.point.sums[5], at.point.sums[4],
                      at.point.sums[5], at.penalty.user.free >= 0)
    for j in range(at.bound.last.n):
        at.bound.last.v[j] /= n
    at.bound.dual = bound_of(at, &at.bound.last, NULL)


cdef double bound_of(newton_state *at, const dual_point *of, const double *noise) noexcept nogil:
    if is_one_class(at):
        return one_class_bound(&at.one_class, of, &at.penalty.user, noise, at.point.scratch)
    return dual_bound(of, &at.penalty.user, noise, at.point.scratch)


cdef void after_evaluation(newton_state *at, double step) noexcept nogil:
    cdef double penalty = penalty_of(at, at.point.w), objective = at.point.sums[2] + penalty - penalty_of_path(at)
    cdef Py_ssize_t j
    for j in range(at.p):
        at.point.g[j] += slope_of_penalty(at, j, at.point.w[j])
    at.point.value = at.point.sums[3] + penalty
    at.counts.n_iter += is_counted(at)
    if at.stop.by_gradient:
        if not keep_point(at):
            at.status = DIVERGED
            return
    elif objective < at.bound.objective:
        at.bound.objective = objective
        memcpy(at.bound.best_w, at.point.w, at.p * sizeof(double))
    if at.bound.dual > at.bound.best_dual:
        at.bound.best_dual, at.bound.best.total, at.bound.has_best = at.bound.dual, at.bound.last.total, True
        memcpy(at.bound.best.v, at.bound.last.v, at.bound.last.n * sizeof(double))
    elif at.bound.dual != at.bound.dual:
        at.bound.best_dual = at.bound.dual
    if is_counted(at):
        record(at, objective, step)
    judge(at)


cdef void measure_gradient_at_zero(newton_state *at) noexcept nogil:
    # a loss without a dual: the second row of the sums is sum s y x, and the gradient at w = 0 is F'(0) times its mean
    if at.units.inverse != NULL:
        sums_in_units(&at.units, at.bound.dual_sums)
    at.bound.norm_at_zero = -point_loss(&at.problem.loss, 0).slope \
        * sqrt(dot(at.p, at.bound.dual_sums, at.bound.dual_sums)) / at.problem.n


cdef bint keep_point(newton_state *at) noexcept nogil:
    # the last one: no step raises the objective but by rounding. False: it is of no use
    cdef double norm = sqrt(dot(at.p, at.point.g, at.point.g))
    if at.bound.norm_at_zero > 0:
        norm /= at.bound.norm_at_zero
    elif norm > 0:
        norm = INFINITY
    if not isfinite(at.point.value) or isnan(norm):
        return False
    at.bound.objective, at.bound.gradient_norm = at.point.value, norm
    memcpy(at.bound.best_w, at.point.w, at.p * sizeof(double))
    return True


# ---------------------------------------------------------------- the history

cdef Py_ssize_t history_columns(const newton_state *at) noexcept nogil:
    return HISTORY_COLUMNS + (1 + N_TRACED + at.ask.n_levels if at.ask.traced != NULL else 0)


cdef void record(newton_state *at, double objective, double step) noexcept nogil:
    # columns as in `HISTORY` of `continuation_newton`
    cdef Py_ssize_t j, used = 0
    cdef double *row = history_row(&at.history.table, &at.history.n_rows, &at.history.room, history_columns(at))
    if row == NULL:
        at.ask.out_of_memory = True
        return
    for j in range(at.p):
        used += at.point.w[j] != 0
    row[0], row[1] = at.counts.passes, seconds() - at.counts.started
    row[2], row[3], row[4] = at.counts.seconds_look, at.counts.seconds_system, at.counts.seconds_search
    row[5], row[6], row[7], row[8] = objective, gap_of(at), step, at.smoothing.width
    row[9], row[10] = used, at.point.sums[6]
    if at.stop.by_gradient:
        row[8] = at.problem.loss.b               # no width, but the scale of margin pursuit


cdef void record_margins(newton_state *at) noexcept nogil:
    # into the row that the evaluation has begun
    cdef Py_ssize_t size = history_columns(at)
    cdef double *row = at.history.table + (at.history.n_rows - 1) * size
    at.counts.seconds_trace += at_work(at) - at.counts.clock
    row[1], row[HISTORY_COLUMNS] = seconds() - at.counts.started, at.counts.seconds_trace
    memcpy(row + HISTORY_COLUMNS + 1, at.ask.traced, (size - HISTORY_COLUMNS - 1) * sizeof(double))


cdef void judge(newton_state *at) noexcept nogil:
    cdef double gap = gap_of(at)
    if is_done(&at.stop, gap) or (at.linearised.linear != NULL and says_enough(at)):
        at.status = CONVERGED
    elif at.linearised.linear != NULL and says_nothing(at):
        at.status = LEFT
    elif at.bound.dual != at.bound.dual and not at.point.unreliable \
            and at.point.predicted <= 0.1 * at.stop.tol * at.bound.objective \
            and smoothing_error(at) <= at.stop.tol * at.bound.objective:
        at.status = DECREMENT                    # no certificate without a penalty: the Newton decrement says so
    elif at.smoothing.width <= at.stop.width_end \
            or (at.problem.facts.smooth and at.stop.width_end > 0 and gap < ENOUGH_OF_A_SUBSET):
        at.status = WIDTH
    elif at.smoothing.width <= NARROWEST:
        at.status = STALLED
    elif seconds() > at.stop.deadline:
        at.status = MAX_TIME
    elif no_read_left(at):
        at.status = MAX_PASSES


# ---------------------------------------------------------------- columns

cdef void measure_columns(newton_state *at, const double *curvature, Py_ssize_t stride) noexcept nogil:
    # at w = 0 every row without an offset has the same curvature, and that of the columns says how large they are
    cdef Py_ssize_t j
    if at.problem.has_offsets or not at.point.sums[7] > 0:      # a narrow Huberised hinge has none there
        return
    for j in range(at.p):
        if at.point.w[j] != 0:
            return
    for j in range(at.p):
        at.bound.rms[j] = sqrt(curvature[j * stride] / max(at.point.sums[7], 1e-300))
    at.bound.knows_rms, at.bound.drift = True, 0


cdef void take_objective(newton_state *at, double loss, const double *squares) noexcept nogil:
    cdef Py_ssize_t j
    at.counts.passes += at.problem.share
    at.bound.objective = loss / at.problem.n + penalty_of(at, at.bound.best_w)
    if not isfinite(at.bound.objective):
        at.bound.objective = INFINITY
    for j in range(at.p):
        at.bound.rms[j] = sqrt(squares[j] / at.problem.n)
    at.bound.knows_rms = True


cdef double total_held(const newton_state *at) noexcept nogil:
    # with a free intercept the sum of a y is 0 to rounding only, and costs the intercept times that
    cdef double total = at.bound.best.total
    if is_one_class(at):
        return total - at.problem.rounding * fabs(1 - at.bound.best_w[at.penalty.user.free]) * at.one_class.nu
    if at.penalty.user.free >= 0:
        total -= at.problem.rounding * fabs(at.bound.best_w[at.penalty.user.free]) * total
    return total
