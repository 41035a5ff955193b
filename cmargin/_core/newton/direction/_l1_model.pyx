"""How the model is minimised: sweeps, conjugate gradients on the columns in use, a step stopped at zeros, in turn."""

import numpy as np

from libc.float cimport DBL_EPSILON
from libc.math cimport INFINITY, fabs
from libc.string cimport memcpy, memset

from cmargin._core.linalg._blas cimport dot
from cmargin._core.newton.direction._conjugate_gradients cimport cg_begin, cg_tell
from cmargin._core.newton._line cimport search_begin, search_tell
from cmargin._core.penalties._elastic_net cimport l1_minimum_of_one, l1_violation
from cmargin._core.penalties._penalties cimport penalty_slope
from cmargin._core.penalties._penalty cimport kinks_of
from cmargin._core.rows._rows cimport Rows, rows_view
from cmargin._core.rows._tiles cimport add_row, add_weighted_row, row_moments, row_product, source_of
from cmargin._core.util._shapes cimport must_fit

cdef double LEFT = 0.01                  # part of |residual|^2 that conjugate gradients may leave
cdef int MOST = 100                      # products of one run of conjugate gradients
# After a run whose step was not taken in full, the next has its products over this number, and this many at least:
# long runs find long moves where the model is flat, that end at zeros of others.
cdef int FEWER = 4
cdef int HALVINGS = 4                    # of a step that does not lower the model
cdef double GROWTH = 900                 # |residual|^2 over the least so far that shows a system without a solution
cdef double KEPT = 0.5                   # part of a step before which a kink ends it, if the system has no solution
cdef double SEARCHED = 1e-8              # part of the slope that the search for such a kink may leave
cdef int KINKS = 4                       # steps ended by kinks after which a sweep is due
cdef double HELD = INFINITY              # scale of an unknown that stays where it is
cdef double FACTORS = 0.1                # reads, times m^3 over the entries: all factors of a model of a block of m


cdef void model_begin(step_model *at, columns_view *of) noexcept nogil:
    cdef Py_ssize_t i, j
    at.stage, at.given_up, at.n_used, at.most_products = SWEEP, False, 0, MOST
    at.total = at.crossed = at.read = 0
    for i in range(of.source.X.n_features):
        at.total += of.weight[i]
        of.product[i] = 0
    memset(at.d, 0, at.p * sizeof(double))
    for j in range(at.p):
        at.curvature[j] = -1
    if at.free:
        at.total = at.total if at.total > 0 else 1          # no row has curvature: a plain gradient step
        let_intercept_follow(at)


cdef bint model_part(step_model *at, columns_view *of) noexcept nogil:
    cdef double entries = all_entries(of)
    cdef bint agree = False
    at.read += 1                                 # columns may be empty, or none listed: no part is for nothing
    if at.stage == SWEEP:
        agree = sweep(at, of) <= at.enough
        list_used(at)
        if not agree and at.n_used > 0 and begin_solving(at, of):
            at.stage = SOLVE
    elif at.stage == SOLVE:
        times_curvature(at, of, at.cg.search, at.cg.product)
        if not solve_on(at):
            at.stage = TAKE
    else:
        take_solution(at, of)
        at.stage = SWEEP
    at.reads = at.read / entries
    at.given_up = not agree and at.reads > min(
        at.most, at.block_reads + FACTORS * (<double> max(at.n_used, at.block_columns))**3 / entries)
    return not (agree or at.given_up)


# ---------------------------------------------------------------- coordinate descent

cdef inline void let_intercept_follow(step_model *at) noexcept nogil:
    at.d[at.intercept] = -(at.g[at.intercept] + at.crossed) / at.total


cdef inline double own_curvature(const step_model *at, Py_ssize_t j) noexcept nogil:
    # of column j, what a free intercept leaves of it: what the difference cannot know is its rounding
    cdef double own = at.curvature[j] + at.l2_each[j]
    return own + DBL_EPSILON * own - at.across[j] * at.across[j] / at.total if at.free else own


cdef inline double slope_at(const step_model *at, const columns_view *of, Py_ssize_t j) noexcept nogil:
    cdef double slope = at.g[j] + at.l2_each[j] * at.d[j] + row_product(&of.source, j, of.product)
    return slope + (at.across[j] * at.d[at.intercept] if at.intercept >= 0 else 0)


cdef inline double slope_at_intercept(const step_model *at) noexcept nogil:
    return at.g[at.intercept] + at.crossed + (at.total + at.l2_each[at.intercept]) * at.d[at.intercept]


cdef inline double all_entries(const columns_view *of) noexcept nogil:
    cdef const rows_view *X = &of.source.X
    return max(1, X.n_rows * X.n_features if X.starts == NULL else X.starts[X.n_rows])


cdef double sweep(step_model *at, columns_view *of) noexcept nogil:
    # the listed columns to their own minimum, one after the other, and then an intercept that is penalised; the largest
    # violation met, over the l1 weight
    cdef double worst = 0
    cdef Py_ssize_t k
    for k in range(at.n_listed):
        worst = max(worst, move_column(at, of, at.listed[k]))
    if at.intercept >= 0 and not at.free:
        worst = max(worst, move_intercept(at))
    return worst


cdef double move_column(step_model *at, columns_view *of, Py_ssize_t j) noexcept nogil:
    cdef double x = at.w[j] + at.d[j], slope, own, to, found
    if at.curvature[j] < 0:
        row_moments(&of.source, j, of.weight, &at.across[j], &at.curvature[j])
    slope, own = slope_at(at, of, j), own_curvature(at, j)
    at.read += entries_of(of, j)
    found = l1_violation(slope, x, at.l1_each[j]) / at.l1_each[j]
    if own > 0:
        to = l1_minimum_of_one(own, x, slope, at.l1_each[j])
    else:                                        # no row of it has curvature: two straight lines
        to = 0 if fabs(slope) <= at.l1_each[j] else x
    if to != x:
        at.d[j] = to - at.w[j]
        add_weighted_row(to - x, &of.source, j, of.weight, of.product)
        at.crossed += (to - x) * at.across[j]
        if at.free:
            let_intercept_follow(at)
    return found


cdef double move_intercept(step_model *at) noexcept nogil:
    cdef Py_ssize_t b = at.intercept
    cdef double x = at.w[b] + at.d[b], slope = slope_at_intercept(at), own = at.total + at.l2_each[b]
    if own > 0:
        at.d[b] = l1_minimum_of_one(own, x, slope, at.l1_each[b]) - at.w[b]
    return l1_violation(slope, x, at.l1_each[b]) / at.l1_each[b]


# ---------------------------------------------------------------- what is in use

cdef void list_used(step_model *at) noexcept nogil:
    # columns, and behind them an intercept that is penalised
    cdef Py_ssize_t k, j, b = at.intercept
    at.n_used = 0
    for k in range(at.n_listed):
        j = at.listed[k]
        if at.w[j] + at.d[j] != 0:
            at.used[at.n_used] = j
            at.n_used += 1
    at.n_unknowns = at.n_used
    if b >= 0 and not at.free and at.w[b] + at.d[b] != 0:
        at.used[at.n_used] = b
        at.n_unknowns += 1


cdef inline double crossed_by(const step_model *at, const double *v) noexcept nogil:
    cdef double crossed = 0
    cdef Py_ssize_t k
    for k in range(at.n_used):
        crossed += at.across[at.used[k]] * v[k]
    return crossed


cdef double times_curvature(step_model *at, columns_view *of, const double *v, double *out) noexcept nogil:
    # out = (H + diag l2) v of the unknowns; a free intercept follows. v'out; and of.other = weight <x, v>
    cdef Py_ssize_t i, j, k
    cdef double crossed = crossed_by(at, v), of_intercept = 0, total = 0
    memset(of.other, 0, of.source.X.n_features * sizeof(double))
    for k in range(at.n_used):
        if v[k] != 0:
            add_row(v[k], &of.source, at.used[k], of.other)
    for i in range(of.source.X.n_features):
        of.other[i] *= of.weight[i]
    if at.free:
        of_intercept = -crossed / at.total
    elif at.n_unknowns > at.n_used:
        k = at.n_used
        of_intercept = v[k]
        out[k] = crossed + (at.total + at.l2_each[at.intercept]) * v[k]
        total = out[k] * v[k]
    for k in range(at.n_used):
        j = at.used[k]
        out[k] = row_product(&of.source, j, of.other) + at.l2_each[j] * v[k] + at.across[j] * of_intercept
        at.read += entries_of(of, j)
        total += out[k] * v[k]
    return total


cdef bint begin_solving(step_model *at, columns_view *of) noexcept nogil:
    # H x = -slope of the model, as long as no sign changes. The right side lies where the first product will
    cdef double *rhs = at.cg.product
    cdef double x
    cdef Py_ssize_t k, j
    for k in range(at.n_unknowns):
        j = at.used[k]
        if k < at.n_used:
            at.slope[k], at.scale[k] = slope_at(at, of, j), own_curvature(at, j)
            at.read += entries_of(of, j)
        else:
            at.slope[k], at.scale[k] = slope_at_intercept(at), at.total + at.l2_each[j]
        at.scale[k] = at.scale[k] if at.scale[k] > 0 else 1
        x = at.w[j] + at.d[j]
        at.l1_used[k], at.signed[k] = at.l1_each[j], at.l1_each[j] if x > 0 else -at.l1_each[j]
        rhs[k] = -(at.slope[k] + at.signed[k])
    at.cg.n, at.cg.diagonal, at.cg.most = at.n_unknowns, at.scale, at.most_products
    at.least = dot(at.n_unknowns, rhs, rhs)
    at.change, at.kinks = 0, 0
    at.cg.enough = max(0.25 * (at.enough * at.l1) * (at.enough * at.l1), LEFT * at.least)
    return cg_begin(&at.cg, rhs, 1)


cdef bint solve_on(step_model *at) noexcept nogil:
    # Where columns are dependent, as those of tables are, and their signs disagree, the system has no solution:
    # conjugate gradients run away along what has no curvature. From then on kinks are looked for
    cdef double curvature, slope = 0, own = 0, left = 0, end
    cdef Py_ssize_t k
    for k in range(at.n_unknowns):
        if at.scale[k] == HELD:
            at.cg.product[k] = 0
            continue
        slope -= at.cg.search[k] * (at.cg.r[k] + at.signed[k])
        own += at.cg.search[k] * at.cg.search[k] * at.scale[k]
    curvature = dot(at.n_unknowns, at.cg.search, at.cg.product)
    end = at.cg.rz / max(curvature, DBL_EPSILON * own)           # less is rounding
    if not at.flat:
        for k in range(at.n_unknowns):
            left += (at.cg.r[k] - end * at.cg.product[k])**2
        at.flat = not (curvature > 0 and left <= GROWTH * at.least)
        at.least = min(left, at.least)
    if at.flat and find_kink(at, slope, curvature, end):
        return go_on_from_kink(at, slope, curvature)
    if not curvature > DBL_EPSILON * own:
        return False
    at.change += end * (slope + end * curvature / 2)
    return cg_tell(&at.cg)


cdef bint find_kink(step_model *at, double slope, double curvature, double end) noexcept nogil:
    # whether the model, its kinks counted, is least well before the end of this step of conjugate gradients
    cdef line_search *line = &at.line
    cdef Py_ssize_t k
    for k in range(at.n_unknowns):
        at.place[k] = at.w[at.used[k]] + at.d[at.used[k]] + at.cg.x[k]
    at.of_used = kinks_of(at.n_unknowns, at.l1_used)
    line.penalty, line.w, line.d = &at.of_used, at.place, at.cg.search
    line.s_max, line.tol, line.max_trials = end, SEARCHED, 100
    if slope + KEPT * end * curvature + penalty_slope(line.penalty, line.w, line.d, KEPT * end, -1) <= 0:
        return False
    search_begin(line)
    while search_tell(line, slope + line.s * curvature, curvature):
        pass
    return True


cdef bint go_on_from_kink(step_model *at, double slope, double curvature) noexcept nogil:
    # conjugate gradients begin anew there, with the signs that it has, and hold at 0 what came to it
    cdef double s = at.line.s, x
    cdef Py_ssize_t k
    at.change += s * (slope + s * curvature / 2)
    at.kinks += 1
    at.cg.count += 1
    for k in range(at.n_unknowns):
        at.cg.x[k] += s * at.cg.search[k]
        at.cg.r[k] -= s * at.cg.product[k]
        x = at.place[k] + s * at.cg.search[k]
        if at.scale[k] == HELD or k == at.line.hit or x == 0:
            at.cg.x[k] = -(at.w[at.used[k]] + at.d[at.used[k]])
            at.cg.r[k], at.scale[k] = 0, HELD
        elif (x > 0) != (at.signed[k] > 0):
            at.cg.r[k] += 2 * at.signed[k]
            at.signed[k] = -at.signed[k]
        at.cg.search[k] = at.cg.r[k] / at.scale[k]
    at.cg.rz = dot(at.n_unknowns, at.cg.r, at.cg.search)
    return at.kinks < KINKS and at.cg.count < at.cg.most and dot(at.n_unknowns, at.cg.r, at.cg.r) > at.cg.enough


cdef inline double l1_change(const step_model *at, Py_ssize_t k, double move) noexcept nogil:
    cdef double x = at.w[at.used[k]] + at.d[at.used[k]]
    return at.l1_used[k] * (fabs(x + move) - fabs(x))


cdef double change_foreseen(const step_model *at) noexcept nogil:
    # of the model by x, as the products on the way to it have it
    cdef double change = at.change
    cdef Py_ssize_t k
    for k in range(at.n_unknowns):
        change += l1_change(at, k, at.cg.x[k])
    return change


cdef double change_by(step_model *at, columns_view *of, const double *move) noexcept nogil:
    cdef double curved = times_curvature(at, of, move, at.cg.product)
    cdef double change = curved / 2 if not curved < 0 else 0     # by rounding
    cdef Py_ssize_t k
    for k in range(at.n_unknowns):
        change += at.slope[k] * move[k] + l1_change(at, k, move[k])
    return change


cdef double change_stopped(step_model *at, columns_view *of, double t, double *move) noexcept nogil:
    # by the part t of x, components that would change sign stopped at 0
    cdef double x, step
    cdef Py_ssize_t k
    for k in range(at.n_unknowns):
        x, step = at.w[at.used[k]] + at.d[at.used[k]], t * at.cg.x[k]
        move[k] = step if (x + step) * x > 0 else -x
    return change_by(at, of, move)


cdef void take_solution(step_model *at, columns_view *of) noexcept nogil:
    # x, its components stopped at 0, or a half, a quarter ... of it: where the model falls. Or x as it is, if that is
    # lower, or if it knows its kinks
    cdef double *move = at.cg.search
    cdef double change = 0, by_x, t = 1
    cdef int _trial
    for _trial in range(HALVINGS if at.kinks == 0 else 0):
        change = change_stopped(at, of, t, move)
        if change < 0:
            break
        t /= 2
    if change_foreseen(at) < min(change, 0):
        memcpy(move, at.cg.x, at.n_unknowns * sizeof(double))
        by_x = change_by(at, of, move)
        if by_x < min(change, 0):
            change, t = by_x, 1
        elif change < 0:
            change = change_stopped(at, of, t, move)
    if change < 0:
        add_to_step(at, of, move)
    at.most_products = min(MOST, 2 * at.most_products) if change < 0 and t == 1 else max(FEWER, at.cg.count // FEWER)


cdef void add_to_step(step_model *at, columns_view *of, const double *move) noexcept nogil:
    # of.other = weight <x, move>
    cdef Py_ssize_t i, k
    for i in range(of.source.X.n_features):
        of.product[i] += of.other[i]
    at.crossed += crossed_by(at, move)
    for k in range(at.n_unknowns):
        at.d[at.used[k]] += move[k]
    if at.free:
        let_intercept_follow(at)


# ---------------------------------------------------------------- the same for those who have arrays

def model_minimum(Rows columns, const double[::1] weight, const double[::1] g, const double[::1] w,
                  const double[::1] l2, const double[::1] l1, intercept, double enough, double most=INFINITY):
    """argmin over d of g'd + d'(H + diag l2) d / 2 + sum l1 |w + d|, H = sum weight x x', and the reads it took.

    ``columns``: X', a column a row. ``g``, ``w``, ``l2``, ``l1`` (p,) end with the intercept's, "penalised" or "free",
    if any.
    ``enough``: violation of the optimality conditions, over the l1 weight, that may stay; ``most``: reads of columns.
    """
    cdef step_model at
    cdef columns_view of
    cdef Py_ssize_t p = w.shape[0], n = weight.shape[0]
    cdef double[:, ::1] of_columns = np.zeros((13, p + 1)), of_rows = np.zeros((2, n + 1))
    cdef Py_ssize_t[:, ::1] places = np.tile(np.arange(p + 1), (3, 1))
    must_fit(g.shape[0] == l2.shape[0] == l1.shape[0] == p == columns.view.n_rows + (intercept is not None), "model")
    must_fit(columns.view.n_features == n and n > 0 and columns.view.n_rows > 0, "model")
    of.source = source_of(columns)
    of.weight, of.product, of.other = <double *> &weight[0], &of_rows[0, 0], &of_rows[1, 0]
    at.p, at.free, at.intercept, at.l1 = p, intercept == "free", -1 if intercept is None else p - 1, l1[0]
    at.g, at.w, at.l2_each, at.l1_each = &g[0], &w[0], &l2[0], &l1[0]
    at.d, at.curvature, at.across = &of_columns[0, 0], &of_columns[1, 0], &of_columns[2, 0]
    at.slope, at.scale, at.cg.product = &of_columns[3, 0], &of_columns[4, 0], &of_columns[5, 0]
    at.cg.x, at.cg.r, at.cg.search = &of_columns[6, 0], &of_columns[7, 0], &of_columns[8, 0]
    at.cg.factor = NULL
    at.signed, at.l1_used, at.place = &of_columns[9, 0], &of_columns[10, 0], &of_columns[11, 0]
    at.line.steps, at.line.index, at.flat = &of_columns[12, 0], &places[2, 0], False
    at.listed, at.n_listed, at.used = &places[0, 0], columns.view.n_rows, &places[1, 0]
    at.enough, at.block_reads, at.block_columns, at.most = enough, INFINITY, 0, most
    model_begin(&at, &of)
    while model_part(&at, &of):
        pass
    return np.asarray(of_columns)[0, :p].copy(), at.reads
