"""Rows so large that a Newton step moves them across the hinge and far beyond: few, and treated exactly.

A quadratic model is true for a row as long as its margin moves by no more than the smoothing width. Rows with a rare
indicator, standardised, have a norm hundreds of times the others': they alone spoil the step of all, and a line
search only shrinks it for everyone. They stay out of the curvature block, and the model becomes

    g'd + d'Hd/2 + their true smoothed hinge at w + d,       g, H of the other rows,

convex, minimised by Newton's method that reads those rows and no other. They are in memory where the driver is.
"""

from libc.math cimport fabs
from libc.string cimport memset

from cmargin._core.linalg._blas cimport NO_TRANS, axpy, dot, gemv
from cmargin._core.newton._line cimport ARMIJO, l1_slope, line_search, search_begin, search_told
from cmargin._core.newton.direction._system cimport (
    MODEL_LEFT, MODEL_ROUNDS, MODEL_TOL, l1_minimum, l1_work_size, solve_upper,
)
from cmargin._core.rows._evaluate cimport (
    BLOCK, COMMIT_AND_MOVE, RESTART, SAME_LINE, look_request, move_kind, pass_along, pass_begin_look, pass_look_part,
    pass_start, row_pass,
)

cdef int STEPS = 8
cdef double DECREASE = 0.02              # of the best predicted one, below which the model counts as minimised
cdef double SEARCHED = 1e-2              # part of the first slope that a search may leave


cdef Py_ssize_t heavy_work_size(Py_ssize_t p, bint l1) noexcept nogil:
    return 2 * p * p + 7 * p + (l1_work_size(p) if l1 else p * p)


cdef struct heavy_model:
    double value                 # of the heavy rows' loss
    double most                  # largest decrease a step of the model promised
    double *own                  # (p, p) their curvature, both triangles
    double *H                    # (p, p) of all rows
    double *gradient             # (p,) of the heavy rows
    double *g                    # (p,) of the others and the penalty, at w
    double *slope                # (p,) of the model at w + d
    double *w                    # (p,) w + d
    double *e                    # (p,) step of the model
    double *product              # (p,)
    double *rest_d               # (p,) curvature of the others times d
    double *work


cdef heavy_model model_in(double *work, Py_ssize_t p) noexcept nogil:
    cdef heavy_model model
    model.own, model.H = work, work + p * p
    work += 2 * p * p
    model.gradient, model.g, model.slope, model.w = work, work + p, work + 2 * p, work + 3 * p
    model.e, model.product, model.rest_d = work + 4 * p, work + 5 * p, work + 6 * p
    model.work, model.most = work + 7 * p, 0
    return model


cdef bint look_at(newton_state *at, heavy_model *model, move_kind move, const double *direction,
                  double step) noexcept nogil:
    # value, gradient and curvature of the heavy rows after a step; False: no memory
    cdef row_pass *rows = at.high_leverage.rows
    cdef look_request request
    cdef Py_ssize_t p = at.p, i, j
    request.move, request.direction, request.step, request.with_hessian = move, direction, step, BLOCK
    request.line_width = request.width = at.smoothing.width
    request.floor, request.with_diagonal = 0, True
    at.ask.out_of_memory = not pass_begin_look(rows, &request)
    if at.ask.out_of_memory:
        return False
    while pass_look_part(rows):
        pass
    at.counts.passes += <double> rows.job.n_rows / at.problem.n_rows * at.problem.share
    model.value = rows.job.sums[0] / at.problem.n
    for i in range(p):
        model.gradient[i] = rows.job.gradient[i] / -at.problem.n
        for j in range(i, p):
            model.own[i * p + j] = model.own[j * p + i] = rows.job.hessian[i * p + j] / at.problem.n
    return True


cdef double searched(newton_state *at, const heavy_model *model, double slope, double curvature) noexcept nogil:
    # the minimum of the model along e, at most e; slope, curvature: the other rows' and the penalty's
    cdef line_search line
    line.n, line.w, line.d, line.weight = at.p if at.penalty.l1 > 0 else 0, model.w, model.e, at.penalty.l1_each
    line.s_max, line.tol, line.max_trials = 1, SEARCHED, 100
    line.steps, line.index = at.l1_block.keys, at.l1_block.index
    search_begin(&line)
    while True:
        pass_along(at.high_leverage.rows, line.s, at.smoothing.width)
        if not search_told(&line, at.high_leverage.rows.job.sums[1] / at.problem.n + slope + line.s * curvature,
                           at.high_leverage.rows.job.sums[2] / at.problem.n + curvature):
            return line.s


cdef bint find_step(newton_state *at, heavy_model *model) noexcept nogil:
    # e = Newton's step of the model from w + d; False: its curvature is not finite
    cdef Py_ssize_t p = at.p, i
    cdef double ridge
    gemv(NO_TRANS, p, p, 1.0, at.curvature.block, p, at.point.d, 0.0, model.rest_d)
    for i in range(p):
        model.slope[i] = model.g[i] + model.rest_d[i] + model.gradient[i]
        model.w[i] = at.point.w[i] + at.point.d[i]
    for i in range(p * p):
        model.H[i] = at.curvature.block[i] + model.own[i]
    if at.penalty.l1 > 0:
        return l1_minimum(p, model.H, model.slope, model.w, at.penalty.l1_each, MODEL_ROUNDS, MODEL_TOL,
                          MODEL_LEFT * at.stop.tol,
                          at.stop.deadline, model.e, model.work, at.l1_block.index)
    ridge = solve_upper(p, model.H, 1, model.slope, model.e, model.work)
    for i in range(p):
        model.e[i] = -model.e[i]
    return ridge == ridge


cdef bint take_step(newton_state *at, heavy_model *model) noexcept nogil:
    # d += e, or the part of e that is minimal; False: it promises too little, or there is no memory
    cdef Py_ssize_t p = at.p, n_l1 = at.p if at.penalty.l1 > 0 else 0, i
    cdef double first = dot(p, model.slope, model.e) + l1_slope(n_l1, model.w, model.e, at.penalty.l1_each, 0, 1)
    cdef double before = model.value, step = 1, slope, curvature, change
    model.most = max(model.most, -first)
    if not -first > DECREASE * model.most or not look_at(at, model, COMMIT_AND_MOVE, model.e, 1.0):
        return False
    gemv(NO_TRANS, p, p, 1.0, at.curvature.block, p, model.e, 0.0, model.product)
    slope = dot(p, model.g, model.e) + dot(p, model.rest_d, model.e)
    curvature = dot(p, model.e, model.product)
    change = model.value - before + slope + curvature / 2
    for i in range(n_l1):
        change += at.penalty.l1_each[i] * (fabs(model.w[i] + model.e[i]) - fabs(model.w[i]))
    if change > ARMIJO * first:
        step = searched(at, model, slope, curvature)
        if not look_at(at, model, SAME_LINE, NULL, step):
            return False
    axpy(p, step, model.e, at.point.d)
    return True


cdef bint heavy_direction(newton_state *at) noexcept nogil:
    cdef heavy_model model = model_in(at.high_leverage.work, at.p)
    cdef Py_ssize_t p = at.p, i, j
    cdef double *rest = at.curvature.block       # (p, p) curvature of the others, both triangles from here on
    cdef int _step
    memset(at.point.d, 0, p * sizeof(double))
    pass_start(at.high_leverage.rows, False)
    if not look_at(at, &model, RESTART, at.point.w, 1.0):
        return True
    for i in range(p):
        model.g[i] = at.point.g[i] - model.gradient[i]
        for j in range(i, p):
            if at.high_leverage.in_block:
                rest[i * p + j] -= model.own[i * p + j]
            rest[j * p + i] = rest[i * p + j]
    at.high_leverage.in_block = False
    for _step in range(STEPS):
        if not find_step(at, &model):
            return False
        if not take_step(at, &model):
            break
    return True
