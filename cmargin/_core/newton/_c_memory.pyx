"""Memory of a driver and of rows that belong to a C program: `Newton` and `RowBlocks` without the interpreter."""

from libc.math cimport INFINITY
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy

from cmargin._core.losses._losses cimport facts_of, has_dual
from cmargin._core.losses._point cimport loss_of, loss_t
from cmargin._core.newton._asking cimport request
from cmargin._core.newton._driver cimport newton_answers_to, newton_begin, newton_leave
from cmargin._core.newton._point cimport gap_of
from cmargin._core.newton._smoothing cimport begin_rule
from cmargin._core.newton._state cimport RUNNING, STOPPED, WAITING, newton_limits, newton_state
from cmargin._core.newton.direction._block cimport block_work_size
from cmargin._core.newton._vectors cimport n_vectors, point_at_vectors
from cmargin._core.penalties._penalties cimport has_kinks
from cmargin._core.penalties._penalty cimport kinks_of, penalty_of, penalty_t
from cmargin._core.rows._row_blocks cimport N_SUMS
from cmargin._core.rows._evaluate cimport (
    hessians_wanted, pass_plan, pass_set_active, pass_start, scratch_wanted, sums_later,
)
from cmargin._core.util._clock cimport seconds


# ---------------------------------------------------------------- a driver

cdef newton_limits limits_of_cost() noexcept nogil:
    # a C program reads no Python: tests/system/test_embedding.py compares these with what Python tells its drivers
    cdef newton_limits limits
    limits.l1_block_columns = 256
    limits.most_products, limits.trial_steps, limits.trial_share = 100, 10, 0.3
    limits.l2_path_step, limits.l2_path_gap = 0.3, 0.1
    limits.l1_path_rows, limits.l1_path_rows_discontinuous = 1, 2
    return limits


def limits_of_c_programs():
    """The numbers of `newton_limits` by which a driver of a C program goes, by their names."""
    return limits_of_cost()


cdef void settle_problem(newton_state *at, const plain_settings *settings) noexcept nogil:
    # the problem and what the user chose, as `Newton` has it
    at.problem.n_features, at.p = settings.n_features, settings.n_features + settings.intercept
    at.problem.n_rows, at.problem.n = settings.n_rows, settings.total_weight
    at.penalty.user = penalty_of(settings.l2, settings.l1)
    at.penalty.user.n = at.p
    at.penalty.user.free = at.p - 1 if settings.intercept and not settings.penalize_intercept else -1
    at.problem.loss = loss_of(settings.loss, 1, 1)
    at.problem.facts = facts_of(&at.problem.loss)
    at.stop.tol, at.stop.max_passes, at.stop.deadline = settings.tol, settings.max_passes, seconds() + settings.max_time
    at.limits = limits_of_cost()
    at.pcg.in_use = settings.by_products
    at.l1_block.wide = has_kinks(&at.penalty.user) and at.p > at.limits.l1_block_columns
    begin_rule(&at.smoothing, settings.smoothing, settings.smoothing, settings.smoothing_decay, settings.tol)


cdef plain_newton *plain_newton_new(const plain_settings *settings) noexcept nogil:
    cdef plain_newton *newton = <plain_newton *> calloc(1, sizeof(plain_newton))
    cdef newton_state *at
    cdef Py_ssize_t p, room
    if newton == NULL:
        return NULL
    at = &newton.at
    settle_problem(at, settings)
    newton.n_rows, p, room = settings.n_rows, at.p, max(1, at.p)
    newton.vectors = <double *> calloc(n_vectors(at) * room, sizeof(double))
    newton.places = <Py_ssize_t *> calloc(4 * p + 1, sizeof(Py_ssize_t))
    if newton.vectors == NULL or newton.places == NULL:
        plain_newton_free(newton)
        return NULL
    point_at_vectors(at, newton.vectors, newton.places)
    at.curvature.owner, at.curvature.make_room = newton, room_for_work
    at.ask.driver, at.ask.n_columns = at, p
    at.bound.objective = at.point.predicted = INFINITY
    at.counts.started, at.status, at.problem.share = seconds(), WAITING, 1
    newton_answers_to(at)
    newton_begin(at)
    if settings.start != NULL:
        memcpy(at.point.w, settings.start, p * sizeof(double))
        memcpy(at.bound.best_w, settings.start, p * sizeof(double))
    return newton


cdef request *plain_newton_question(plain_newton *newton) noexcept nogil:
    return &newton.at.ask


cdef bint room_for_work(newton_state *at, Py_ssize_t order) noexcept nogil:
    if order > at.curvature.work_order or at.curvature.work == NULL:
        free(at.curvature.work)
        at.curvature.work = <double *> malloc((block_work_size(order, &at.penalty.user) + 1) * sizeof(double))
        at.curvature.work_order = order if at.curvature.work != NULL else 0
    return at.curvature.work != NULL


cdef double *plain_newton_block(plain_newton *newton, Py_ssize_t order) noexcept nogil:
    if order > newton.block_order or newton.block == NULL:
        free(newton.block)
        newton.block = <double *> malloc((order * order + 1) * sizeof(double))
        newton.block_order = order if newton.block != NULL else 0
    return newton.block


cdef plain_result plain_newton_result(const plain_newton *newton) noexcept nogil:
    cdef plain_result found
    found.status, found.passes, found.n_iter = newton.at.status, newton.at.counts.passes, newton.at.counts.n_iter
    found.objective, found.gap, found.w = newton.at.bound.objective, gap_of(&newton.at), newton.at.bound.best_w
    return found


cdef void plain_newton_stop(plain_newton *newton) noexcept nogil:
    if newton.at.status == RUNNING:
        newton_leave(&newton.at, STOPPED)


cdef void plain_newton_free(plain_newton *newton) noexcept nogil:
    if newton == NULL:
        return
    free(newton.vectors)
    free(newton.places)
    free(newton.block)
    free(newton.at.curvature.work)
    free(newton.at.history.table)
    free(newton)


# ---------------------------------------------------------------- rows

cdef plain_rows *plain_rows_new(const row_source *source, Py_ssize_t n_rows, Py_ssize_t n_columns,
                                const double *signed_weight, loss_t loss, int n_threads) noexcept nogil:
    cdef plain_rows *plain = <plain_rows *> calloc(1, sizeof(plain_rows))
    cdef row_pass *rows
    cdef Py_ssize_t room = max(1, n_columns)
    if plain == NULL:
        return NULL
    rows = &plain.rows
    rows.job.source, rows.job.signed_weight, rows.job.loss = source[0], signed_weight, loss
    rows.job.n_rows, rows.job.n_columns, rows.n_threads = n_rows, n_columns, n_threads
    rows.owner, rows.make_room = plain, room_for_pass
    pass_plan(rows)
    plain.per_row = <double *> malloc((2 * n_rows + 1) * sizeof(double))
    plain.sums = <double *> calloc(rows.job.n_blocks * N_SUMS, sizeof(double))
    plain.gradient = <double *> calloc(rows.job.n_blocks * (3 + 1) * room, sizeof(double))  # and the diagonal
    rows.active = <Py_ssize_t *> malloc(room * sizeof(Py_ssize_t))
    rows.position = <Py_ssize_t *> malloc(room * sizeof(Py_ssize_t)) if source.X.starts != NULL else NULL
    if plain.per_row == NULL or plain.sums == NULL or plain.gradient == NULL or rows.active == NULL \
            or (rows.position == NULL and source.X.starts != NULL):
        plain_rows_free(plain)
        return NULL
    rows.job.slack, rows.job.change = plain.per_row, plain.per_row + n_rows
    rows.job.sums, rows.job.gradient = plain.sums, plain.gradient
    rows.job.diagonal = plain.gradient + rows.job.n_blocks * 3 * room
    pass_set_active(rows, n_columns, NULL)
    pass_start(rows, False)
    return plain


cdef bint room_for_pass(row_pass *rows, Py_ssize_t order) noexcept nogil:
    cdef plain_rows *plain = <plain_rows *> rows.owner
    cdef Py_ssize_t size = scratch_wanted(rows, order), n = rows.job.n_rows, n_hessians = hessians_wanted(rows, order)
    cdef bint later = sums_later(rows, order)
    if plain.duals == NULL and has_dual(&rows.job.loss) and n > 0:
        plain.duals = <double *> malloc(2 * n * sizeof(double))
        if plain.duals == NULL:
            return False
        rows.job.dual, rows.job.dual_next = plain.duals, plain.duals + n
    if size > rows.scratch_size:
        free(rows.scratch)
        rows.scratch = <double *> malloc(size * rows.n_threads * sizeof(double))
        rows.scratch_size = size if rows.scratch != NULL else 0
    if order > 0 and (order != rows.hessian_order or rows.n_hessians < n_hessians):
        free(rows.all_hessian)
        # below the diagonal it stays 0: nobody writes there
        rows.all_hessian = <double *> calloc(n_hessians * order * order, sizeof(double))
        rows.hessian_order, rows.n_hessians = order if rows.all_hessian != NULL else -1, n_hessians
    if later and rows.curved.memory == NULL:
        rows.curved.memory = <double *> malloc(max(1, n) * sizeof(double))
    return rows.scratch != NULL and (order == 0 or rows.all_hessian != NULL) and \
        (not later or rows.curved.memory != NULL)


cdef void plain_rows_free(plain_rows *plain) noexcept nogil:
    if plain == NULL:
        return
    free(plain.per_row)
    free(plain.duals)
    free(plain.sums)
    free(plain.gradient)
    free(plain.rows.active)
    free(plain.rows.position)
    free(plain.rows.scratch)
    free(plain.rows.all_hessian)
    free(plain.rows.curved.memory)
    free(plain)


# ---------------------------------------------------------------- a line search

cdef line_search *plain_line_new(Py_ssize_t n, const double *weight) noexcept nogil:
    # its penalty and its scratch lie behind it
    cdef line_search *line = <line_search *> malloc(sizeof(line_search) + sizeof(penalty_t)
                                                    + n * (sizeof(double) + sizeof(Py_ssize_t)))
    cdef penalty_t *penalty = <penalty_t *> (line + 1)
    if line != NULL:
        penalty[0] = kinks_of(n, weight)
        line.penalty, line.steps = penalty, <double *> (penalty + 1)
        line.index = <Py_ssize_t *> (line.steps + n)
    return line
