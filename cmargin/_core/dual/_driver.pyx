"""SmSVM's dual as a machine that sweeps over listed rows and evaluates all rows in turn, without the interpreter.

    [START] > SWEEPS > EVALUATE > [BALANCE] > bound > SWEEPS ... > ENDED

A stage is done in parts of some rows, so that a driver can be left at any time and taken up again: where it was left
leaves no trace. What comes next is decided between stages, from counts of rows and never from the clock, but for the
time limit. An evaluation over all rows gives the objective at the best multiple of w, with the best intercept, and the
dual value at a, or with a free intercept at a balanced a near it. The method itself is described where it is put to
use, in `cmargin.solvers.dual.dual_newton`.
"""

from libc.math cimport log
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from cmargin._core.linalg._blas cimport dot
from cmargin._core.newton._bound cimport dual_bound, dual_point, relative_gap
from cmargin._core.newton._state cimport HISTORY_COLUMNS
from cmargin._core.penalties._penalty cimport penalty_of, penalty_t
from cmargin._core.rows._dual_centre cimport centre_at, sum_behind
from cmargin._core.rows._dual_evaluate cimport balance_part, begin_balancing, best_multiple, multiple_of
from cmargin._core.rows._dual_rows cimport add_listed, add_rest, dual_products, gain_of, pointed_to, reads_of, target_of
from cmargin._core.rows._dual_sweeps cimport (
    AN_EVALUATION, SWEEPS_PER_EVALUATION, begin_call, call_part, choose_rows, dual_sweeps, take_sums,
)
from cmargin._core.util._clock cimport seconds
from cmargin._core.util._history cimport history_row
from cmargin._core.util._stop cimport is_done

cdef enum:
    PART = 1000000               # entries of rows between two checks of the clock: a millisecond
    SLICE = 100000000            # entries read by a call of sweeps at most

cdef double READS_PER_EVALUATION = 1     # reads of all rows from one evaluation to the next, unless the gap has FALLEN
cdef double FALLEN = 0.1                 # part of the last gap: sweeps that reach it are followed by an evaluation
cdef double AGAIN = 0.5                  # factor on the gap wanted of sweeps, after an evaluation that did not certify
cdef double STILL_AT_WORK = 0.95         # part of the rows that has not come to rest on a trial: it is hopeless


cdef inline double gap_of(const dual_state *at) noexcept nogil:
    return relative_gap(at.objective, at.best_dual)


cdef inline double entries_of_a_row(const dual_state *at) noexcept nogil:
    return 1 + at.rows.density * at.rows.m


cdef inline bint no_read_left(const dual_state *at) noexcept nogil:
    # before another sweep and the evaluation after it
    return at.limit - reads_of(at.rows) - <double> at.sweeps.n_active / at.rows.n_source - 1 < 0


# ---------------------------------------------------------------- stages

cdef void dual_work(void *of, double until) noexcept nogil:
    cdef dual_state *at = <dual_state *> of
    cdef double begun = seconds(), now
    cdef Py_ssize_t most = max(1, <Py_ssize_t> (PART / entries_of_a_row(at)))
    cdef int kind
    while at.stage not in (WAITING, PAUSED, ENDED) and begun < until:
        if begun > at.stop.deadline and at.leaving == RUNNING:
            dual_leave(at, MAX_TIME)
            continue
        kind = 2 if at.stage == SWEEPS else 0
        next_part(at, most)
        now = seconds()
        at.seconds[kind] += now - begun
        begun = now


cdef void next_part(dual_state *at, Py_ssize_t most) noexcept nogil:
    if at.stage == SWEEPS:
        if not call_part(at.sweeps, most):
            after_sweeps(at)
    elif at.stage == BALANCE:
        if not balance_part(&at.balance, at.rows, most):
            evaluation_done(at, at.balance.a, at.balance.w)
    elif at.stage == START_ADDING:
        add_part(at, most)
    else:
        evaluate_part(at, most)


cdef void dual_begin(dual_state *at, bint from_w, bint from_a) noexcept nogil:
    if from_a:
        begin_evaluation(at, START)
        if at.room != NULL:
            begin_adding(at)
    elif from_w:
        begin_evaluation(at, START)
    else:
        sweep_on(at)


cdef void begin_at_intercept(dual_state *at) noexcept nogil:
    # the best one without columns, for which no row is read
    cdef Py_ssize_t n = at.rows.n, i
    cdef double *u = <double *> malloc(4 * n * sizeof(double))
    if u == NULL:
        give_up_for_memory(at)
        return
    for i in range(n):
        u[i] = target_of(at.rows, i)
    at.sweeps.w[at.rows.m] = multiple_of(at.rows, at.sweeps.w, u, 0, u + n).shift / at.rows.bias
    free(u)


cdef void sweep_on(dual_state *at) noexcept nogil:
    cdef double allowed = at.limit if at.history_rows > 0 else min(at.limit, at.hopeless_from * at.first_evaluation + 1)
    at.stage = SWEEPS
    begin_call(at.sweeps, SWEEPS_PER_EVALUATION - at.since % SWEEPS_PER_EVALUATION, at.stop.tol,
               max(1.0, <double> <Py_ssize_t> (SLICE / entries_of_a_row(at))),
               (allowed - reads_of(at.rows) - 1) * at.rows.n_source)


cdef void after_sweeps(dual_state *at) noexcept nogil:
    cdef dual_sweeps *sweeps = at.sweeps
    at.since += sweeps.done
    at.n_iter += sweeps.done
    if is_hopeless(at):
        at.status, at.stage = LEFT, ENDED
        return
    go_on_or_evaluate(at)


cdef bint is_hopeless(const dual_state *at) noexcept nogil:
    # before the first evaluation of a trial, which is a read: hardly a row is at rest,
    # and the gap is larger than the bound
    return at.history_rows == 0 and reads_of(at.rows) > at.hopeless_from * at.first_evaluation \
        and at.sweeps.n_active > STILL_AT_WORK * at.rows.n and at.sweeps.gap * at.stop.tol > at.sweeps.enough


cdef void go_on_or_evaluate(dual_state *at) noexcept nogil:
    cdef bint pays_off = reads_of(at.rows) - at.read >= READS_PER_EVALUATION or at.sweeps.gap < FALLEN * at.gap
    cdef bint tried = at.history_rows == 0 and reads_of(at.rows) + <double> at.sweeps.n_active / at.rows.n_source \
        > at.first_evaluation
    at.wished = at.sweeps.wish == AN_EVALUATION
    # without a row at work nothing is read any more, and no limit comes nearer
    if at.wished or tried or (pays_off and at.since >= SWEEPS_PER_EVALUATION) or no_read_left(at) \
            or at.sweeps.n_active == 0:
        begin_evaluation(at, EVALUATE)
    else:
        sweep_on(at)


cdef void dual_leave(dual_state *at, dual_status status) noexcept nogil:
    # after an evaluation at the point as it is; not at w = 0 before the first sweep has ended, which is no model, and
    # whose objective may be less than that of one
    if at.stage == SWEEPS and at.n_iter + at.sweeps.done == 0:
        at.status, at.stage = status, ENDED
        return
    at.leaving = status
    if at.stage == SWEEPS:
        at.wished = False
        begin_evaluation(at, EVALUATE)


cdef void give_up_for_memory(dual_state *at) noexcept nogil:
    at.out_of_memory, at.stage = True, ENDED


# ---------------------------------------------------------------- an evaluation over all rows

cdef void begin_evaluation(dual_state *at, dual_stage stage) noexcept nogil:
    at.room = <double *> malloc((4 * at.rows.n + 2 * (at.rows.m + 1)) * sizeof(double))
    at.stage, at.at = stage, 0
    if at.room == NULL:
        give_up_for_memory(at)


cdef void evaluate_part(dual_state *at, Py_ssize_t most) noexcept nogil:
    cdef double *u = at.room
    cdef Py_ssize_t hi = min(at.rows.n_source, at.at + most), i, n = at.rows.n, first
    dual_products(at.rows, NULL, at.at, hi, at.sweeps.w, u)
    at.at = hi
    if hi < at.rows.n_source:
        return
    for i in range(at.rows.n_source, n):                 # a second dual variable of a row needs no second read
        first = i - at.rows.n_source
        u[i] = u[first] if (at.rows.signed_weight[i] >= 0) == (at.rows.signed_weight[first] >= 0) else -u[first]
    for i in range(n):
        u[i] = target_of(at.rows, i) - u[i]
    keep_best(at, u)
    if at.stage == START:
        start_adding(at, u)
    elif at.rows.free:
        take_sums(at.sweeps)
        at.stage = BALANCE
        at.balance.a, at.balance.w = u + n, u + 4 * n
        memcpy(at.balance.a, at.sweeps.a, n * sizeof(double))
        sum_behind(&at.sweeps.centre, at.rows.m, at.sweeps.w, at.balance.w)
        begin_balancing(&at.balance, at.rows, at.sweeps.balance)
    else:
        sum_behind(&at.sweeps.centre, at.rows.m, at.sweeps.w, u + 4 * n)
        evaluation_done(at, at.sweeps.a, u + 4 * n)


cdef void keep_best(dual_state *at, const double *u) noexcept nogil:
    # a warm start is kept as it is; w of a regression, whose dual variables are small, too
    cdef double largest = 0 if at.stage == START or at.rows.target != NULL else at.largest
    cdef double *w = at.sweeps.w
    cdef Py_ssize_t m = at.rows.m, j
    cdef best_multiple best = multiple_of(at.rows, w, u, largest, at.room + at.rows.n)
    if not at.l2 * best.objective < at.objective:
        return
    at.objective = at.l2 * best.objective
    for j in range(m):
        at.best_w[j] = best.scale * w[j]
    if at.n_result > m:
        at.best_w[m] = at.rows.bias * w[m] + best.shift
        if at.rows.mean != NULL:                         # of the rows as they are
            at.best_w[m] = at.rows.bias * w[m] - dot(m, w, at.rows.mean) + best.shift
        at.best_w[m] *= best.scale


cdef void evaluation_done(dual_state *at, const double *a, const double *w) noexcept nogil:
    cdef Py_ssize_t n_columns = at.rows.m + 1, j
    cdef dual_point point
    cdef penalty_t ridge = penalty_of(at.l2, 0)
    cdef double *scratch = at.room + 4 * at.rows.n + n_columns
    cdef double bound
    point.total, point.n, point.v = at.l2 * gain_of_all(at.rows, a), n_columns, at.room + 4 * at.rows.n
    for j in range(n_columns):
        point.v[j] = at.l2 * w[j]
    bound = dual_bound(&point, &ridge, NULL, scratch)
    if bound > at.best_dual:
        at.best_dual, at.best_total = bound, point.total
        memcpy(at.best_v, point.v, n_columns * sizeof(double))
    choose_rows(at.sweeps, at.room)
    free(at.room)
    at.room = NULL
    note(at)
    judge(at)
    at.sweeps.part *= AGAIN if at.wished else 1.0
    at.since, at.read, at.gap = 0, reads_of(at.rows), at.sweeps.gap
    if at.pauses:
        at.stage = PAUSED
    else:
        dual_resume(at)


cdef double gain_of_all(const dual_rows *rows, const double *a) noexcept nogil:
    # in pieces, so that rounding grows with neither their number nor their length alone
    cdef double total = 0, piece
    cdef Py_ssize_t lo, i
    for lo in range(0, rows.n, 256):
        piece = 0
        for i in range(lo, min(rows.n, lo + 256)):
            piece += gain_of(rows, i, a[i])
        total += piece
    return total


cdef void note(dual_state *at) noexcept nogil:
    # columns as in `HISTORY` of `continuation_newton`
    cdef double *row = history_row(&at.history, &at.history_rows, &at.history_room, HISTORY_COLUMNS)
    cdef Py_ssize_t j, used = 0
    if row == NULL:
        at.out_of_memory = True
        return
    for j in range(at.n_result):
        used += at.best_w[j] != 0
    row[0], row[1] = reads_of(at.rows), seconds() - at.started
    row[2], row[3], row[4] = at.seconds[0], at.seconds[1], at.seconds[2]
    row[5], row[6], row[7], row[8] = at.objective, gap_of(at), 1, 0
    row[9], row[10] = used, at.sweeps.on_face


cdef void judge(dual_state *at) noexcept nogil:
    cdef double gap = gap_of(at), spent = reads_of(at.rows)
    if is_done(&at.stop, gap):
        at.status = CONVERGED
    elif at.leaving != RUNNING:
        at.status = at.leaving
    elif spent > at.trial * at.limit and spent * log(at.stop.tol) < at.limit * log(min(1.0, gap)):
        at.status = LEFT                 # the tolerance costs too many reads at the rate at which the gap came from 1
    elif no_read_left(at):
        at.status = LEFT if at.gives_up else MAX_PASSES


cdef void dual_resume(dual_state *at) noexcept nogil:
    if at.status == RUNNING and not at.out_of_memory:
        sweep_on(at)
    else:
        at.stage = ENDED


# ---------------------------------------------------------------- from a primal point

cdef void start_adding(dual_state *at, double *u) noexcept nogil:
    # what its slacks point to, times the best common factor
    cdef Py_ssize_t i
    for i in range(at.rows.n):
        at.sweeps.a[i] = pointed_to(u[i], at.rows.upper[i], at.rows.ridge[i])
    begin_adding(at)


cdef void begin_adding(dual_state *at) noexcept nogil:
    # w of the dual variables that are there
    at.room[at.rows.n] = at.sweeps.w[at.rows.m]          # to go on from, where it is free
    memset(at.sweeps.w, 0, (at.rows.m + 1) * sizeof(double))
    at.stage, at.at, at.held = START_ADDING, 0, 0


cdef void add_part(dual_state *at, Py_ssize_t most) noexcept nogil:
    cdef Py_ssize_t hi = min(at.rows.n, at.at + most), i, n_columns = at.rows.m + 1
    cdef double *w = at.sweeps.w
    cdef double square, a, total = 0, shrink = 1
    at.held += add_listed(at.rows, NULL, at.at, hi, at.sweeps.a, w)
    at.at = hi
    if hi < at.rows.n:
        return
    add_rest(at.rows, at.held, w)
    square = dot(n_columns, w, w)
    for i in range(at.rows.n):
        a = at.sweeps.a[i]
        total += a * target_of(at.rows, i)
        square += at.rows.ridge[i] * a * a
    if square > 0:
        shrink = min(1.0, max(0.0, total / square))
    for i in range(at.rows.n):
        at.sweeps.a[i] *= shrink
    for i in range(n_columns):
        w[i] *= shrink
    if at.rows.free:
        w[at.rows.m] += at.room[at.rows.n]
    centre_at(&at.sweeps.centre, at.rows.m, w)
    free(at.room)
    at.room, at.read = NULL, reads_of(at.rows)
    if at.leaving == RUNNING:
        sweep_on(at)
    else:
        at.wished = False
        begin_evaluation(at, EVALUATE)
