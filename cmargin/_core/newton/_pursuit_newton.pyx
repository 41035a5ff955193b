"""Margin pursuit by Newton's method: a driver (``_asking.pxd``) whose loss needs no smoothing and has no certificate.

Q is convex with a continuous second derivative, rho'' = 1 - u^2/2 within sqrt(2) and 0 beyond. One read of the
rows takes the full step and sums value, slope and gradient at its end; the curvature too, unless that of an earlier
point, corrected by the steps since, still serves well for its price. Only where the end is a poor place is the line
searched, on numbers kept per row, and the rows are read once more.

    pursuit_begin > LOOK > arrive > start_step > [PRODUCT ...] > LOOK > [ALONG ... > LOOK] > step_done
                         > [MARGINS] > [PAUSE] > arrive > start_step ...                             ... > arrive > DONE
"""

from libc.math cimport INFINITY, fabs, isfinite, isnan, log, sqrt
from libc.math cimport pow as power
from libc.string cimport memcpy

from cmargin._core.linalg._blas cimport axpy, dot
from cmargin._core.losses._losses cimport MARGIN_PURSUIT, point_loss
from cmargin._core.losses._point cimport loss_of, loss_t
from cmargin._core.newton._column_units cimport (
    block_in_units, diagonal_in_units, sums_in_units, weights_of_rows,
)
from cmargin._core.newton.direction._conjugate_gradients cimport cg_begin, cg_told, conjugate_gradients
from cmargin._core.newton._asking cimport ALONG, DONE, LOOK, MARGINS, PAUSE, PRODUCT
from cmargin._core.newton.direction._lagged cimport kept_add, kept_factor, kept_solve, kept_take
from cmargin._core.newton._line cimport ARMIJO, search_begin, search_told
from cmargin._core.rows._evaluate cimport COMMIT_AND_MOVE, RESTART, SAME_LINE
from cmargin._core.rows._row_blocks cimport CURVATURE, LINE_SLOPE, LINE_VALUE
from cmargin._core.penalties._penalty cimport penalty_of
from cmargin._core.util._clock cimport seconds
from cmargin._core.util._history cimport history_row
from cmargin._core.util._margin_summary cimport N_TRACED

cdef double SLOPE_KEPT = 0.9             # a full step is kept if the slope at its end is at most this part of the first
cdef double SEARCHED = 1e-3              # part of the first slope that a search may leave
cdef double VANISHING = 1e-17            # decrease, beside the value, that no value could show
cdef double ROUNDING = 1e-14             # by so much of itself a value may grow
cdef double NO_CURVATURE = 1e-6          # mean rho'' below which the gradient is a better direction than Newton's
cdef int MANY_PRODUCTS = 200
cdef int PRODUCTS_A_PASS = 10            # reads by conjugate gradients that count as one pass with curvature
# A look with curvature takes about 1 + p/15 times one without, and Newton's step gains two digits or more
# (doc/lab-notebook): curvature is kept as long as the gradient falls at a better rate for the work
cdef double COLUMNS_A_LOOK = 15
cdef double GAIN = log(100)
cdef Py_ssize_t N_RECORDED = 9           # columns of the history before those of the trace


cdef inline double norm(const pursuit_state *at, const double *x) noexcept nogil:
    return sqrt(dot(at.p, x, x))


cdef inline double at_work(const pursuit_state *at) noexcept nogil:
    # a clock that stands still while others are at work
    return seconds() - at.ask.away


cdef inline double force_at_zero(const pursuit_state *at) noexcept nogil:
    # s psi(gamma/s): the gradient at w = 0 is minus that times the mean of s_i y_i x_i
    cdef loss_t loss = loss_of(MARGIN_PURSUIT, at.level, at.scale)
    return -point_loss(&loss, 0).slope


cdef void pursuit_leave(pursuit_state *at, status_id status) noexcept nogil:
    at.status, at.ask.kind = status, DONE


# ---------------------------------------------------------------- the way

cdef void pursuit_answers_to(pursuit_state *at) noexcept nogil:
    at.ask.told_look, at.ask.told_along = told_look, told_along
    at.ask.told_product, at.ask.told_margins = told_product, told_margins
    at.ask.n_active, at.ask.look.line_width, at.ask.look.width = -1, 1, 1


cdef void pursuit_begin(pursuit_state *at) noexcept nogil:
    at.status, at.clock = RUNNING, at_work(at)
    ask_look(at, FIRST_LOOK, at.w, 1, True)


cdef void rescale(pursuit_state *at, double scale) noexcept nogil:
    cdef double before = force_at_zero(at)
    at.scale, at.fall, at.clock = scale, 1, at_work(at)
    at.norm_at_zero *= force_at_zero(at) / before
    ask_look(at, RESCALED, at.zero, 1, True)


# ---------------------------------------------------------------- a look

cdef inline bint has_units(const pursuit_state *at) noexcept nogil:
    return at.units.inverse != NULL


cdef inline const double *in_rows(pursuit_state *at, const double *x) noexcept nogil:
    # a vector of weights as the rows are asked by it
    if x == NULL or not has_units(at):
        return x
    weights_of_rows(&at.units, x, at.asked)
    return at.asked


cdef void ask_look(pursuit_state *at, phase_id phase, const double *direction, double step,
                   bint with_curvature) noexcept nogil:
    at.phase, at.ask.kind = phase, LOOK
    at.ask.look.move = RESTART if phase == FIRST_LOOK else SAME_LINE if direction == NULL else COMMIT_AND_MOVE
    at.ask.look.direction, at.ask.look.step = in_rows(at, direction), step
    at.ask.look.with_hessian = with_curvature and not at.by_products


cdef void told_look(void *driver, const double *sums, const double *gradient, double *block) noexcept nogil:
    cdef pursuit_state *at = <pursuit_state *> driver
    cdef Py_ssize_t j
    at.reads += at.share
    at.value, at.slope, at.curvature = sums[LINE_VALUE] / at.n, sums[LINE_SLOPE] / at.n, sums[CURVATURE] / at.n
    if at.phase == FIRST_LOOK:                   # sum s_i y_i x_i comes with it
        memcpy(at.g, gradient + at.p, at.p * sizeof(double))
        if has_units(at):
            sums_in_units(&at.units, at.g)
        at.norm_at_zero = force_at_zero(at) * norm(at, at.g) / at.n
    memcpy(at.g, gradient, at.p * sizeof(double))
    if has_units(at):
        sums_in_units(&at.units, at.g)
    for j in range(at.p):
        at.g[j] = at.g[j] / -at.n + at.l2_each[j] * at.w[j]
        at.value += at.l2_each[j] * at.w[j] * at.w[j] / 2
    if block != NULL:
        if has_units(at):
            block_in_units(&at.units, block)
        kept_take(&at.kept, block, at.n, at.l2_each)
    if at.phase == FULL_STEP:
        full_step_taken(at)
    elif at.phase == SHORTER_STEP:
        step_done(at)
    else:
        keep(at)
        at.seconds_steps += at_work(at) - at.clock
        arrive(at)


cdef void keep(pursuit_state *at) noexcept nogil:
    cdef double length = norm(at, at.g)
    memcpy(at.kept_w, at.w, at.p * sizeof(double))
    at.objective = at.value
    if at.norm_at_zero > 0:
        at.gradient_norm = length / at.norm_at_zero
    else:
        at.gradient_norm = 0 if length == 0 else INFINITY


cdef inline bint reads_are_spent(const pursuit_state *at) noexcept nogil:
    # products are reads, of which a step may take hundreds
    return at.by_products and at.reads >= PRODUCTS_A_PASS * at.max_passes


cdef void arrive(pursuit_state *at) noexcept nogil:
    if at.gradient_norm <= at.tol:
        pursuit_leave(at, TOL)
    elif isnan(at.gradient_norm):
        pursuit_leave(at, DIVERGED)
    elif at.passes >= at.max_passes or reads_are_spent(at):
        pursuit_leave(at, MAX_PASSES)
    elif seconds() > at.deadline:
        pursuit_leave(at, MAX_TIME)
    else:
        start_step(at)


# ---------------------------------------------------------------- the direction

cdef inline bint keeps_curvature(const pursuit_state *at) noexcept nogil:
    # whether the next step is better taken with the curvature at hand
    return at.fall > 1 and log(at.fall) * (1 + at.p / COLUMNS_A_LOOK) > GAIN


cdef void gradient_direction(pursuit_state *at) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(at.p):
        at.d[j] = -at.g[j]


cdef void start_step(pursuit_state *at) noexcept nogil:
    at.clock = at_work(at)
    if not at.curvature > NO_CURVATURE:          # every row on a straight end of rho
        gradient_direction(at)
    elif at.by_products and has_units(at):
        ask_product(at, OF_ONES, at.last)
        return
    elif at.by_products:
        ask_product(at, DIAGONAL, NULL)
        return
    else:
        if not at.kept.ready:
            at.steps_kept = 0
            if not kept_factor(&at.kept):
                at.ask.out_of_memory = at.kept.out_of_memory
                pursuit_leave(at, DIVERGED)
                return
        kept_solve(&at.kept, at.g, -1, at.d, at.scratch)
    direction_found(at)


cdef void ask_product(pursuit_state *at, phase_id phase, const double *x) noexcept nogil:
    at.phase, at.ask.kind, at.ask.x = phase, PRODUCT, x if phase == OF_ONES else in_rows(at, x)


cdef void told_product(void *driver, const double *product, double share) noexcept nogil:
    cdef pursuit_state *at = <pursuit_state *> driver
    cdef conjugate_gradients *cg = &at.cg
    cdef double enough
    cdef bint wanted
    cdef Py_ssize_t j
    at.reads += share * at.share
    if at.phase == OF_ONES:
        memcpy(at.scratch, product, at.p * sizeof(double))
        ask_product(at, DIAGONAL, NULL)
        return
    if at.phase == DIAGONAL:
        memcpy(at.diagonal, product, at.p * sizeof(double))
        if has_units(at):
            diagonal_in_units(&at.units, at.scratch, at.diagonal)
        for j in range(at.p):
            at.diagonal[j] = at.diagonal[j] / at.n + at.l2_each[j]
            at.diagonal[j] = at.diagonal[j] if at.diagonal[j] > 0 else 1
        enough = min(0.1, sqrt(at.gradient_norm)) * norm(at, at.g)
        cg.enough, cg.most = enough * enough, MANY_PRODUCTS
        wanted = cg_begin(cg, at.g, -1)
    else:
        memcpy(cg.product, product, at.p * sizeof(double))
        if has_units(at):
            sums_in_units(&at.units, cg.product)
        for j in range(at.p):
            cg.product[j] = cg.product[j] / at.n + at.l2_each[j] * cg.search[j]
        wanted = cg_told(cg) and not reads_are_spent(at)
    if wanted:
        ask_product(at, PRODUCTS, cg.search)
    else:
        memcpy(at.d, cg.x, at.p * sizeof(double))
        direction_found(at)


# ---------------------------------------------------------------- a step along it

cdef void move(pursuit_state *at, double step) noexcept nogil:
    # w from the point kept
    at.step = step
    memcpy(at.w, at.kept_w, at.p * sizeof(double))
    axpy(at.p, step, at.d, at.w)


cdef void direction_found(pursuit_state *at) noexcept nogil:
    cdef Py_ssize_t j
    at.first = dot(at.p, at.g, at.d)
    if not at.first < 0:
        gradient_direction(at)
        at.first = -dot(at.p, at.g, at.g)
    if not -at.first > VANISHING * fabs(at.value):
        pursuit_leave(at, STALLED)
        return
    at.before, at.line_slope, at.line_curvature = at.value, 0, 0
    memcpy(at.change, at.g, at.p * sizeof(double))
    for j in range(at.p):
        at.line_slope += at.l2_each[j] * at.w[j] * at.d[j]
        at.line_curvature += at.l2_each[j] * at.d[j] * at.d[j]
    move(at, 1)
    ask_look(at, FULL_STEP, at.d, 1, not keeps_curvature(at))


cdef void full_step_taken(pursuit_state *at) noexcept nogil:
    cdef double last = at.slope + at.line_slope + at.line_curvature
    if at.value <= at.before + ARMIJO * at.first + ROUNDING * fabs(at.before) \
            and fabs(last) <= SLOPE_KEPT * -at.first:
        step_done(at)
        return
    at.penalty = penalty_of(0, 0)
    at.line.penalty, at.line.s_max, at.line.tol, at.line.max_trials = &at.penalty, INFINITY, SEARCHED, 100
    search_begin(&at.line)
    at.ask.kind, at.ask.step = ALONG, at.line.s


cdef void told_along(void *driver, double slope, double curvature) noexcept nogil:
    cdef pursuit_state *at = <pursuit_state *> driver
    if search_told(&at.line, slope / at.n + at.line_slope + at.line.s * at.line_curvature,
                   curvature / at.n + at.line_curvature):
        at.ask.step = at.line.s
        return
    move(at, at.line.s)
    ask_look(at, SHORTER_STEP, NULL, at.step, True)


cdef void step_done(pursuit_state *at) noexcept nogil:
    at.passes += 1
    weigh(at)
    at.ask.out_of_memory = at.kept.out_of_memory
    at.seconds_steps += at_work(at) - at.clock
    if not isfinite(at.value) or at.ask.out_of_memory:
        pursuit_leave(at, DIVERGED)
        return
    keep(at)
    if at.records and at.ask.traced != NULL:
        at.clock, at.ask.kind, at.ask.scale = at_work(at), MARGINS, at.scale
    else:
        record(at)


cdef void weigh(pursuit_state *at) noexcept nogil:
    # mean fall of the gradient since the curvature was summed, and a pair to correct it by
    cdef double fall = norm(at, at.change) / max(norm(at, at.g), 1e-300)
    cdef Py_ssize_t j
    if not at.kept.ready:
        at.fall = fall
        return
    for j in range(at.p):
        at.scratch[j], at.change[j] = at.step * at.d[j], at.g[j] - at.change[j]
    kept_add(&at.kept, at.scratch, at.change)
    at.fall = power(fall * power(at.fall, at.steps_kept), 1.0 / (at.steps_kept + 1))
    at.steps_kept += 1


# ---------------------------------------------------------------- after a pass

cdef void told_margins(void *driver) noexcept nogil:
    cdef pursuit_state *at = <pursuit_state *> driver
    at.seconds_trace += at_work(at) - at.clock
    record(at)


cdef Py_ssize_t n_columns_recorded(const pursuit_state *at) noexcept nogil:
    return N_RECORDED + (N_TRACED + at.ask.n_levels if at.ask.traced != NULL else 0)


cdef void record(pursuit_state *at) noexcept nogil:
    cdef Py_ssize_t size = n_columns_recorded(at)
    cdef double *row
    if at.records:
        row = history_row(&at.history, &at.history_rows, &at.history_room, size)
        if row == NULL:
            at.ask.out_of_memory = True
            return
        row[0], row[1], row[2] = at.passes, at.reads, seconds() - at.started
        row[3], row[4], row[5] = at.seconds_steps, at.seconds_trace, at.value
        row[6], row[7], row[8] = at.gradient_norm, at.step, at.scale
        if size > N_RECORDED:
            memcpy(row + N_RECORDED, at.ask.traced, (size - N_RECORDED) * sizeof(double))
    if at.ask.pauses or (at.one_shot and at.passes == 1):
        at.ask.kind = PAUSE
    else:
        arrive(at)
