"""cmargin from C and Cython: the functions of ``cmargin.h``, over ``_core``. Python sees the capsule `C_API` alone."""

from cpython.pycapsule cimport PyCapsule_New
from libc.math cimport INFINITY, NAN, fabs, isfinite
from libc.stdint cimport int32_t as int32, int64_t as int64
from libc.stdlib cimport free
from libc.string cimport memcpy, memset, strcmp

from cmargin._api_table cimport cmargin_table
from cmargin._core.losses._losses cimport HINGE, N_LOSSES, has_dual, in_newton_steps, point_loss
from cmargin._core.losses._losses cimport dual_gain as gain_of_dual, facts_of as facts_of_loss
from cmargin._core.losses._point cimport loss_facts as core_facts, loss_of, loss_t, point
from cmargin._core.newton._asking cimport LINE, OBJECTIVE, EVALUATE, HESSP, request as driver_request
from cmargin._core.newton._line cimport line_search, search_begin, search_tell
from cmargin._core.newton._c_memory cimport (
    plain_line_new, plain_newton, plain_newton_block, plain_newton_free, plain_newton_new, plain_newton_question,
    plain_newton_result, plain_newton_stop, plain_result, plain_rows, plain_rows_free, plain_rows_new,
    plain_settings,
)
from cmargin._core.rows._row_blocks cimport HINGE as LOSS_SUM, N_SUMS
from cmargin._core.rows._evaluate cimport (
    COMMIT_AND_MOVE, NO_BLOCK, RESTART, SAME_LINE, evaluation_request, pass_line, pass_begin_evaluation, pass_objective,
    pass_evaluate_part, pass_hessp, pass_set_active, pass_start,
)
from cmargin._core.rows._pass_state cimport row_pass
from cmargin._core.rows._rows cimport FLOAT32, FLOAT64, structure_is_sound
from cmargin._core.rows._tiles cimport row_source
from cmargin._core.util._catoni cimport (
    influence, influence_sums, location_advance, location_root, location_search, location_start, psi_unit,
    psi_unit_inverse,
)


cdef const char **TEXTS = ["done", "an argument cannot be: a size, a length or a number", "no memory",
                           "the sums are not finite", "an answer to no question"]


cdef const char *status_text(int status) noexcept nogil:
    if CMARGIN_NOT_ASKED <= status <= CMARGIN_OK:
        return TEXTS[-status]
    return "no status of cmargin"


# ---------------------------------------------------------------- losses

cdef core_facts facts_of(int id) noexcept nogil:
    cdef loss_t loss = loss_of(id, 1, 1)
    return facts_of_loss(&loss)


cdef int loss_named(const char *name) noexcept nogil:
    cdef int loss
    for loss in range(N_LOSSES):
        if strcmp(name, facts_of(loss).name) == 0:
            return loss
    return CMARGIN_BAD_ARGUMENT


cdef inline bint is_loss(int loss) noexcept nogil:
    return 0 <= loss < N_LOSSES


cdef int loss_facts(int loss, cmargin_facts *facts) noexcept nogil:
    if not is_loss(loss) or facts.size < sizeof(cmargin_facts):
        return CMARGIN_BAD_ARGUMENT
    known = facts_of(loss)
    facts.name, facts.at_zero, facts.largest_curvature = known.name, known.at_zero, known.largest_curvature
    facts.steepest, facts.dual_largest, facts.calibrated = known.steepest, known.dual_largest, known.calibrated
    return CMARGIN_OK


cdef cmargin_point loss_at(int loss, double z, double a, double b) noexcept nogil:
    cdef cmargin_point out
    cdef loss_t of
    cdef point at
    out.value = out.slope = out.curvature = NAN
    if is_loss(loss):
        of = loss_of(loss, a, b)
        at = point_loss(&of, z)
        out.value, out.slope, out.curvature = at.value, at.slope, at.curvature
    return out


cdef int losses(int loss, Py_ssize_t n, const double *z, double a, double b, double *value, double *slope,
                double *curvature) noexcept nogil:
    cdef Py_ssize_t i
    cdef loss_t of = loss_of(loss, a, b)
    cdef point at
    if not is_loss(loss) or n < 0:
        return CMARGIN_BAD_ARGUMENT
    for i in range(n):
        at = point_loss(&of, z[i])
        value[i], slope[i], curvature[i] = at.value, at.slope, at.curvature
    return CMARGIN_OK


cdef double dual_gain(int loss, double a) noexcept nogil:
    cdef loss_t of = loss_of(loss, 1, 1)
    return gain_of_dual(&of, a) if is_loss(loss) and has_dual(&of) else NAN


# ---------------------------------------------------------------- rows in memory

cdef bint fits_together(const cmargin_matrix *matrix) noexcept nogil:
    cdef Py_ssize_t i
    if matrix.size < sizeof(cmargin_matrix) or matrix.n_rows < 0 or matrix.n_features < 0 or matrix.n_threads < 1:
        return False
    for i in range(matrix.n_rows):
        if not isfinite(matrix.code[i]):
            return False
    return is_loss(matrix.loss) and (matrix.starts == NULL or (matrix.columns == NULL) != (matrix.columns_64 == NULL))


cdef int rows_new(const cmargin_matrix *matrix, cmargin_rows **out) noexcept nogil:
    cdef row_source source
    cdef plain_rows *plain
    out[0] = NULL
    if not fits_together(matrix):
        return CMARGIN_BAD_ARGUMENT
    source.X.n_rows, source.X.n_features, source.X.values = matrix.n_rows, matrix.n_features, matrix.values
    source.X.row_stride, source.X.column_stride = matrix.row_stride, matrix.column_stride
    source.X.starts, source.X.columns = <const int64 *> matrix.starts, <const int32 *> matrix.columns
    source.X.columns_64 = <const int64 *> matrix.columns_64
    source.X.columns_16, source.X.ones = NULL, False
    if source.X.starts != NULL and not structure_is_sound(&source.X):
        return CMARGIN_BAD_ARGUMENT
    source.X.storage = FLOAT32 if matrix.single != 0 else FLOAT64
    source.intercept, source.rows = matrix.intercept != 0, NULL
    plain = plain_rows_new(&source, matrix.n_rows, matrix.n_features + source.intercept, matrix.code,
                           loss_of(in_newton_steps(matrix.loss), matrix.level, matrix.scale), matrix.n_threads)
    if plain == NULL:
        return CMARGIN_NO_MEMORY
    out[0] = <cmargin_rows *> plain
    return CMARGIN_OK


cdef void rows_free(cmargin_rows *rows) noexcept nogil:
    plain_rows_free(<plain_rows *> rows)


cdef inline Py_ssize_t order_of(const cmargin_request *asked) noexcept nogil:
    # of the block in the answer
    if not asked.with_block:
        return 0
    return asked.n_columns if asked.n_active < 0 else asked.n_active


cdef Py_ssize_t answer_size(const cmargin_request *request) noexcept nogil:
    cdef Py_ssize_t p = request.n_columns
    if request.kind == CMARGIN_LOOK:
        return N_SUMS + 3 * p + order_of(request) * order_of(request)
    if request.kind == CMARGIN_ALONG:
        return 3
    return 1 + p if request.kind in (CMARGIN_PRODUCT, CMARGIN_EVALUATE) else 0


cdef bint is_sound(const row_pass *rows, const cmargin_request *asked) noexcept nogil:
    cdef Py_ssize_t j
    if asked.size < sizeof(cmargin_request) or asked.n_columns != rows.job.n_columns \
            or asked.n_active > asked.n_columns or not CMARGIN_LOOK <= asked.kind <= CMARGIN_EVALUATE:
        return False
    if asked.kind == CMARGIN_LOOK:
        if asked.direction == NULL and (asked.restart or not rows.begun):
            return False
        if not asked.new_active:
            return (asked.n_columns if asked.n_active < 0 else asked.n_active) == rows.job.block.n_active
        if asked.n_active > 0 and asked.active == NULL:
            return False
        for j in range(asked.n_active):
            if not (asked.active[j - 1] if j > 0 else -1) < asked.active[j] < asked.n_columns:
                return False
    elif asked.kind == CMARGIN_EVALUATE:
        return asked.x != NULL
    return rows.begun or asked.kind == CMARGIN_LOOK


cdef int rows_answer(cmargin_rows *rows, const cmargin_request *request, double *answer) noexcept nogil:
    cdef row_pass *here = &(<plain_rows *> rows).rows
    cdef double share
    if not is_sound(here, request):
        return CMARGIN_BAD_ARGUMENT
    if request.kind == CMARGIN_LOOK:
        return answer_evaluation(here, request, answer)
    if request.kind == CMARGIN_ALONG:
        pass_line(here, request.step, request.width)
        memcpy(answer, here.job.sums, 3 * sizeof(double))
        return CMARGIN_OK
    if request.kind == CMARGIN_PRODUCT:
        share = pass_hessp(here, request.x, request.width, request.floor)
        if share < 0:
            return CMARGIN_NO_MEMORY
        answer[0] = share * here.job.n_rows
    else:
        if not pass_objective(here, request.x, True):
            return CMARGIN_NO_MEMORY
        answer[0] = here.job.sums[LOSS_SUM]
    memcpy(answer + 1, here.job.gradient, request.n_columns * sizeof(double))
    return CMARGIN_OK


cdef int answer_evaluation(row_pass *rows, const cmargin_request *asked, double *answer) noexcept nogil:
    cdef evaluation_request evaluation
    cdef Py_ssize_t p = asked.n_columns, order = order_of(asked)
    if asked.restart:
        pass_start(rows, asked.primal)
    if asked.new_active:
        pass_set_active(rows, asked.n_active if asked.n_active >= 0 else p,
                        asked.active if asked.n_active >= 0 else NULL)
    evaluation.move = SAME_LINE if asked.direction == NULL else COMMIT_AND_MOVE if rows.begun else RESTART
    evaluation.direction, evaluation.step, evaluation.with_hessian = asked.direction, asked.step, asked.with_block
    evaluation.line_width, evaluation.width, evaluation.floor = asked.line_width, asked.width, asked.floor
    evaluation.measure.norm = evaluation.measure.leverage = NULL
    if not pass_begin_evaluation(rows, &evaluation):
        return CMARGIN_NO_MEMORY
    while pass_evaluate_part(rows):
        pass
    memcpy(answer, rows.job.sums, N_SUMS * sizeof(double))
    memcpy(answer + N_SUMS, rows.job.gradient, 3 * p * sizeof(double))
    if order > 0:
        memcpy(answer + N_SUMS + 3 * p, rows.job.hessian, order * order * sizeof(double))
    return CMARGIN_OK


# ---------------------------------------------------------------- requests as messages

cdef Py_ssize_t message_size(Py_ssize_t n_columns) noexcept nogil:
    return sizeof(cmargin_request) + n_columns * (sizeof(double) + sizeof(Py_ssize_t))


cdef int request_to_message(const cmargin_request *request, void *message) noexcept nogil:
    # the struct, x or direction, active columns
    cdef char *place = <char *> message
    cdef Py_ssize_t p = request.n_columns
    cdef const double *vector = request.direction if request.kind == CMARGIN_LOOK else request.x
    if request.size < sizeof(cmargin_request):
        return CMARGIN_BAD_ARGUMENT
    memset(message, 0, message_size(p))
    memcpy(place, request, sizeof(cmargin_request))
    place += sizeof(cmargin_request)
    if vector != NULL:
        memcpy(place, vector, p * sizeof(double))
    place += p * sizeof(double)
    if request.n_active > 0 and request.new_active:
        memcpy(place, request.active, request.n_active * sizeof(Py_ssize_t))
    return CMARGIN_OK


cdef int request_from_message(const void *message, cmargin_request *request) noexcept nogil:
    cdef const char *place = <const char *> message
    if request.size < sizeof(cmargin_request):
        return CMARGIN_BAD_ARGUMENT
    memcpy(request, message, sizeof(cmargin_request))
    place += sizeof(cmargin_request)
    if request.direction != NULL:
        request.direction = <const double *> place
    if request.x != NULL:
        request.x = <const double *> place
    place += request.n_columns * sizeof(double)
    request.active = <const Py_ssize_t *> place
    return CMARGIN_OK


# ---------------------------------------------------------------- SmSVM's Newton driver

cdef int settings_init(cmargin_settings *settings) noexcept nogil:
    cdef size_t size = settings.size
    if size < sizeof(cmargin_settings):
        return CMARGIN_BAD_ARGUMENT
    memset(settings, 0, sizeof(cmargin_settings))
    settings.size, settings.loss, settings.intercept = size, HINGE, 1
    settings.l2, settings.tol, settings.max_passes, settings.max_time = 1e-4, 1e-4, 100, INFINITY
    settings.smoothing, settings.smoothing_decay = 1, 0.5
    return CMARGIN_OK


cdef bint can_be(const cmargin_settings *s) noexcept nogil:
    cdef Py_ssize_t j
    if s.size < sizeof(cmargin_settings) or s.n_features < 0 or s.n_rows < 1 or not 0 < s.total_weight < INFINITY \
            or not is_loss(s.loss) or not facts_of(s.loss).dual_largest > 0 or (s.by_products and s.l1 > 0) \
            or facts_of(s.loss).dual_smallest < 0:           # of a residual: there are no targets here
        return False
    if not (0 <= s.l2 < INFINITY and 0 <= s.l1 < INFINITY and s.tol > 0 and s.max_passes > 0 and s.max_time > 0
            and 0 < s.smoothing < INFINITY and 0 < s.smoothing_decay < 1):
        return False
    if s.start != NULL:
        for j in range(s.n_features + (s.intercept != 0)):
            if not isfinite(s.start[j]):
                return False
    return True


cdef int newton_new(const cmargin_settings *settings, cmargin_newton **out) noexcept nogil:
    cdef plain_settings chosen
    out[0] = NULL
    if not can_be(settings):
        return CMARGIN_BAD_ARGUMENT
    chosen.n_rows, chosen.n_features, chosen.total_weight = settings.n_rows, settings.n_features, settings.total_weight
    chosen.loss, chosen.by_products = settings.loss, settings.by_products != 0
    chosen.intercept, chosen.penalize_intercept = settings.intercept != 0, settings.penalize_intercept != 0
    chosen.l2, chosen.l1, chosen.tol = settings.l2, settings.l1, settings.tol
    chosen.max_passes, chosen.max_time = settings.max_passes, settings.max_time
    chosen.smoothing, chosen.smoothing_decay = settings.smoothing, settings.smoothing_decay
    chosen.start = settings.start
    out[0] = <cmargin_newton *> plain_newton_new(&chosen)
    return CMARGIN_OK if out[0] != NULL else CMARGIN_NO_MEMORY


cdef inline int trouble(const driver_request *ask) noexcept nogil:
    if ask.out_of_memory:
        return CMARGIN_NO_MEMORY
    return CMARGIN_NOT_FINITE if ask.not_finite else CMARGIN_OK


cdef int newton_ask(cmargin_newton *newton, cmargin_request *request) noexcept nogil:
    cdef driver_request *ask = plain_newton_question(<plain_newton *> newton)
    cdef size_t size = request.size
    if size < sizeof(cmargin_request):
        return CMARGIN_BAD_ARGUMENT
    if trouble(ask) != CMARGIN_OK:
        return trouble(ask)
    memset(request, 0, sizeof(cmargin_request))
    request.size, request.n_columns, request.n_active = size, ask.n_columns, ask.n_active
    # public names of kinds are older: CMARGIN_LOOK, CMARGIN_ALONG, CMARGIN_PRODUCT; CMARGIN_EVALUATE is the objective
    if ask.kind == EVALUATE:
        request.kind, request.restart, request.primal = CMARGIN_LOOK, ask.evaluation.move == RESTART, ask.primal
        request.new_active, request.active = ask.new_active, ask.active
        request.direction = NULL if ask.evaluation.move == SAME_LINE else ask.evaluation.direction
        request.step = ask.evaluation.step
        request.with_block = ask.evaluation.with_hessian != NO_BLOCK
        request.line_width, request.floor = ask.evaluation.line_width, ask.evaluation.floor
    elif ask.kind == LINE:
        request.kind, request.step = CMARGIN_ALONG, ask.step
    elif ask.kind == HESSP:
        request.kind, request.x, request.floor = CMARGIN_PRODUCT, ask.x, ask.evaluation.floor
    elif ask.kind == OBJECTIVE:
        request.kind, request.x = CMARGIN_EVALUATE, ask.x
    request.width = ask.evaluation.width
    return CMARGIN_OK


cdef int newton_tell(cmargin_newton *newton, const double *answer, Py_ssize_t size) noexcept nogil:
    cdef plain_newton *driver = <plain_newton *> newton
    cdef driver_request *ask = plain_newton_question(driver)
    cdef cmargin_request asked
    cdef double *block
    cdef Py_ssize_t order, i
    cdef int status
    asked.size = sizeof(cmargin_request)
    status = newton_ask(newton, &asked)
    if status != CMARGIN_OK:
        return status
    if asked.kind == CMARGIN_DONE:
        return CMARGIN_NOT_ASKED
    if size != answer_size(&asked):
        return CMARGIN_BAD_ARGUMENT
    for i in range(size):
        if answer[i] != answer[i]:
            return CMARGIN_NOT_FINITE
    if asked.kind == CMARGIN_LOOK:
        order = order_of(&asked)
        block = plain_newton_block(driver, order)
        if block == NULL:
            return CMARGIN_NO_MEMORY
        memcpy(block, answer + size - order * order, order * order * sizeof(double))
        ask.on_evaluation(ask.driver, answer, answer + N_SUMS, block if order > 0 else NULL)
    elif asked.kind == CMARGIN_ALONG:
        ask.on_line(ask.driver, answer[1], answer[2])
    elif asked.kind == CMARGIN_PRODUCT:
        ask.on_hessp(ask.driver, answer + 1, answer[0] / driver.n_rows)
    else:
        ask.on_objective(ask.driver, answer[0], answer + 1)
    return trouble(ask)


cdef int newton_result(const cmargin_newton *newton, cmargin_result *result, double *w) noexcept nogil:
    cdef plain_result found = plain_newton_result(<const plain_newton *> newton)
    if result.size < sizeof(cmargin_result):
        return CMARGIN_BAD_ARGUMENT
    result.status, result.passes, result.n_looks = found.status, found.passes, found.n_iter
    result.objective, result.gap = found.objective, found.gap
    if w != NULL:
        memcpy(w, found.w, plain_newton_question(<plain_newton *> newton).n_columns * sizeof(double))
    return CMARGIN_OK


cdef int newton_stop(cmargin_newton *newton) noexcept nogil:
    plain_newton_stop(<plain_newton *> newton)
    return CMARGIN_OK


cdef void newton_free(cmargin_newton *newton) noexcept nogil:
    plain_newton_free(<plain_newton *> newton)


# ---------------------------------------------------------------- line search

cdef int line_new(Py_ssize_t n, const double *w, const double *d, const double *weight, double s_max, double tol,
                  int max_trials, cmargin_line **out) noexcept nogil:
    cdef line_search *line
    out[0] = NULL
    if n < 0 or not s_max > 0 or not tol > 0 or max_trials < 1:
        return CMARGIN_BAD_ARGUMENT
    line = plain_line_new(n, weight)
    if line == NULL:
        return CMARGIN_NO_MEMORY
    line.w, line.d, line.s_max, line.tol, line.max_trials = w, d, s_max, tol, max_trials
    search_begin(line)
    out[0] = <cmargin_line *> line
    return CMARGIN_OK


cdef int line_tell(cmargin_line *line, double slope, double curvature) noexcept nogil:
    if slope != slope or curvature != curvature:
        return CMARGIN_NOT_FINITE
    return search_tell(<line_search *> line, slope, curvature)


cdef double line_step(const cmargin_line *line, Py_ssize_t *hit) noexcept nogil:
    cdef const line_search *at = <const line_search *> line
    if hit != NULL:
        hit[0] = at.hit
    return at.s


cdef void line_free(cmargin_line *line) noexcept nogil:
    free(line)


# ---------------------------------------------------------------- location and Psi-transform

cdef inline bint is_in_range(double median, double scale) noexcept nogil:
    return 1e-100 <= scale <= 1e100 and fabs(median) <= 1e100


cdef int location(Py_ssize_t n, const double *q, double median, double scale, double *at) noexcept nogil:
    if n < 1 or not is_in_range(median, scale):
        return CMARGIN_BAD_ARGUMENT
    at[0] = location_root(q, n, median, scale)
    return CMARGIN_OK


cdef int location_begin(double median, double scale, cmargin_location *search) noexcept nogil:
    cdef location_search *core = <location_search *> search
    if not is_in_range(median, scale):
        return CMARGIN_BAD_ARGUMENT
    core[0] = location_start(median, scale)
    return CMARGIN_OK


cdef int location_sums(Py_ssize_t n, const double *q, double at, double scale, double *sums) noexcept nogil:
    cdef influence found
    if n < 0 or not is_in_range(at, scale):
        return CMARGIN_BAD_ARGUMENT
    found = influence_sums(q, n, at, scale)
    sums[0], sums[1], sums[2] = found.inside, found.beyond, found.slope
    return CMARGIN_OK


cdef int location_tell(cmargin_location *search, const double *sums, double scale) noexcept nogil:
    cdef influence found
    found.inside, found.beyond, found.slope = sums[0], sums[1], sums[2]
    if not isfinite(sums[0] + sums[1] + sums[2]):
        return CMARGIN_NOT_FINITE
    if search.done:
        return CMARGIN_NOT_ASKED
    location_advance(<location_search *> search, found, scale)
    return CMARGIN_OK


cdef double psi(double t, double level, double scale) noexcept nogil:
    if not (0 <= t <= 1 and level > 0 and scale > 0):
        return NAN
    return scale * scale * psi_unit(t, level / scale).value


cdef double psi_inverse(double value, double level, double scale) noexcept nogil:
    cdef double unit = value / scale / scale
    if not (level > 0 and scale > 0 and 0 <= unit <= psi_unit(1, level / scale).value * (1 + 2e-15)):
        return NAN
    return psi_unit_inverse(unit, level / scale)


# ---------------------------------------------------------------- the table, for C

cdef cmargin_table TABLE
TABLE.version, TABLE.size = CMARGIN_VERSION, sizeof(cmargin_table)
TABLE.status_text, TABLE.loss_named, TABLE.loss_at = status_text, loss_named, loss_at
TABLE.loss_facts, TABLE.losses, TABLE.dual_gain = loss_facts, losses, dual_gain
TABLE.rows_new, TABLE.rows_answer, TABLE.rows_free = rows_new, rows_answer, rows_free
TABLE.answer_size, TABLE.message_size = answer_size, message_size
TABLE.request_to_message, TABLE.request_from_message = request_to_message, request_from_message
TABLE.settings_init, TABLE.newton_new, TABLE.newton_ask = settings_init, newton_new, newton_ask
TABLE.newton_tell, TABLE.newton_result = newton_tell, newton_result
TABLE.newton_stop, TABLE.newton_free = newton_stop, newton_free
TABLE.line_new, TABLE.line_tell, TABLE.line_step, TABLE.line_free = line_new, line_tell, line_step, line_free
TABLE.location, TABLE.location_begin = location, location_begin
TABLE.location_sums, TABLE.location_tell = location_sums, location_tell
TABLE.psi, TABLE.psi_inverse = psi, psi_inverse

C_API = PyCapsule_New(&TABLE, "cmargin.api.C_API", NULL)
