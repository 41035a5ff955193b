import numpy as np

from libc.float cimport DBL_EPSILON
from libc.math cimport INFINITY, fabs
from libc.string cimport memset

from cmargin._core.linalg._blas cimport dot
from cmargin._core.newton._conjugate_gradients cimport cg_begin, cg_told
from cmargin._core.rows._columns cimport add_to_step, begin_at_zero, slopes_of, sweep_columns, times_curvature
from cmargin._core.rows._rows cimport Rows
from cmargin._core.small._shapes cimport must_fit

cdef double LEFT = 0.01                  # of |residual|^2 that conjugate gradients may leave: signs change after them
cdef int MOST = 100                      # products in turn; fewer once such a step was no good: what many of them
cdef int FEWEST = 4                      # find are long moves where the model is flat, that end at zeros of others
cdef int FEWER = 4
cdef int HALVINGS = 4
cdef double FACTORS = 1.0                # reads, times m^3 over the entries: all factors of a model, m columns in use


cdef void model_begin(model_solver *at, columns_view *of) noexcept nogil:
    begin_at_zero(&at.model, of)
    at.stage, at.given_up, at.n_used = SWEEP_ALL, False, 0
    at.in_turn = MOST


cdef bint model_part(model_solver *at, columns_view *of) noexcept nogil:
    cdef double entries = max(1, of.X.starts[of.X.n_rows])
    at.model.read += 1                           # columns may be empty, or none listed: no part is for nothing
    if at.stage == SWEEP_ALL:
        sweep_columns(&at.model, of, at.all, at.n_all)
        at.reads = at.model.read / entries
        if at.model.worst <= at.enough:
            return False
        list_used(at)
        if at.n_used > 0 and begin_solving(at, of):
            at.stage = SOLVE
    elif at.stage == SOLVE:
        times_curvature(&at.model, of, at.used, at.n_used, at.cg.search, at.cg.product)
        if at.model.intercept >= 0 and not intercept_is_used(at):
            at.cg.product[at.model.intercept] = 0            # it stays at 0
        if not cg_told(&at.cg):
            at.stage = PROJECT
    else:
        take_projected(at, of)
        at.stage = SWEEP_ALL
    at.reads = at.model.read / entries
    at.given_up = at.reads > min(at.most, at.worth + FACTORS * (<double> at.n_used)**3 / entries)
    return not at.given_up


cdef void list_used(model_solver *at) noexcept nogil:
    cdef Py_ssize_t i, j
    at.n_used = 0
    for i in range(at.n_all):
        j = at.all[i]
        if at.model.w[j] + at.model.d[j] != 0:
            at.used[at.n_used] = j
            at.n_used += 1


cdef inline bint intercept_is_used(const model_solver *at) noexcept nogil:
    cdef Py_ssize_t b = at.model.intercept
    return b >= 0 and not at.model.free and at.model.w[b] + at.model.d[b] != 0


cdef inline double slope_in_use(const model_solver *at, Py_ssize_t j) noexcept nogil:
    return at.slope[j] + (at.model.l1[j] if at.model.w[j] + at.model.d[j] > 0 else -at.model.l1[j])


cdef bint begin_solving(model_solver *at, columns_view *of) noexcept nogil:
    # H x = -slope on the columns in use; elsewhere 0 = 0
    cdef const step_model *model = &at.model
    cdef double *rhs = at.cg.product
    cdef Py_ssize_t k, j
    slopes_of(&at.model, of, at.used, at.n_used, at.slope)
    memset(rhs, 0, model.p * sizeof(double))
    for j in range(model.p):
        at.scale[j] = 1
    for k in range(at.n_used):
        j = at.used[k]
        rhs[j], at.scale[j] = -slope_in_use(at, j), model.curvature[j] + model.l2[j]
        if model.free:
            at.scale[j] -= model.across[j] * model.across[j] / model.total
        at.scale[j] = max(at.scale[j], DBL_EPSILON * (model.curvature[j] + model.l2[j]))
        at.scale[j] = at.scale[j] if at.scale[j] > 0 else 1
    if intercept_is_used(at):
        j = model.intercept
        rhs[j], at.scale[j] = -slope_in_use(at, j), model.total + model.l2[j]
    at.cg.n, at.cg.diagonal, at.cg.most = model.p, at.scale, at.in_turn
    at.cg.enough = max(0.25 * (at.enough * at.l1) * (at.enough * at.l1), LEFT * dot(model.p, rhs, rhs))
    if not cg_begin(&at.cg, rhs, 1):
        return False
    memset(at.cg.product, 0, model.p * sizeof(double))
    return True


cdef double stop_at_zero(model_solver *at, Py_ssize_t j, double t, double *change) noexcept nogil:
    # the part t of what component j is to move, or as far as 0; change += what that is to the model's other terms
    cdef double x = at.model.w[j] + at.model.d[j], move = t * at.cg.x[j]
    if (x + move) * x <= 0:
        move = -x
    change[0] += at.slope[j] * move + at.model.l1[j] * (fabs(x + move) - fabs(x))
    return move


cdef void take_projected(model_solver *at, columns_view *of) noexcept nogil:
    # the step, its components stopped at 0, or a half, a quarter ... of it: where the model falls
    cdef double *move = at.cg.search
    cdef double change, t = 1
    cdef Py_ssize_t b = at.model.intercept, k
    cdef int _trial
    memset(move, 0, at.model.p * sizeof(double))
    for _trial in range(HALVINGS):
        change = 0
        for k in range(at.n_used):
            move[at.used[k]] = stop_at_zero(at, at.used[k], t, &change)
        if intercept_is_used(at):
            move[b] = stop_at_zero(at, b, t, &change)
        change += times_curvature(&at.model, of, at.used, at.n_used, move, at.cg.product) / 2
        if change < 0:
            add_to_step(&at.model, of, at.used, at.n_used, move)
            break
        t /= 2
    at.in_turn = min(MOST, 2 * at.in_turn) if t == 1 else max(FEWEST, at.cg.count // FEWER)


# ---------------------------------------------------------------- the same for those who have arrays

def model_minimum(Rows columns, const double[::1] weight, const double[::1] g, const double[::1] w,
                  const double[::1] l2, const double[::1] l1, intercept, double enough, double most=INFINITY):
    """argmin over d of g'd + d'(H + diag l2) d / 2 + sum l1 |w + d|, H = sum weight x x', and the reads it took.

    Parameters
    ----------
    columns : Rows
        X', CSR.
    weight : (n_rows,) array
    g, w, l2, l1 : (p,) arrays
        The last entry of each is that of the intercept, if there is one.
    intercept : None, "penalised" or "free"
    enough : float
        Violation of the optimality conditions, over the l1 weight, that may stay.
    most : float
        Reads of all columns.
    """
    cdef model_solver at
    cdef columns_view of
    cdef Py_ssize_t p = w.shape[0], n = weight.shape[0]
    cdef double[:, ::1] of_columns = np.zeros((9, p + 1)), of_rows = np.zeros((2, n + 1))
    cdef Py_ssize_t[:, ::1] listed = np.tile(np.arange(p + 1), (2, 1))
    must_fit(g.shape[0] == l2.shape[0] == l1.shape[0] == p == columns.view.n_rows + (intercept is not None), "model")
    must_fit(columns.sparse and columns.view.n_features == n and n > 0 and columns.view.n_rows > 0, "model")
    of.X, of.single = columns.view, columns.dtype == np.float32
    of.weight, of.product, of.other = <double *> &weight[0], &of_rows[0, 0], &of_rows[1, 0]
    at.model.p, at.model.free = p, intercept == "free"
    at.model.intercept = -1 if intercept is None else p - 1
    at.model.g, at.model.w, at.model.l2, at.model.l1 = &g[0], &w[0], &l2[0], &l1[0]
    at.model.d, at.model.curvature, at.model.across = &of_columns[0, 0], &of_columns[1, 0], &of_columns[2, 0]
    at.cg.x, at.cg.r, at.cg.search = &of_columns[3, 0], &of_columns[4, 0], &of_columns[5, 0]
    at.cg.product, at.slope, at.scale = &of_columns[6, 0], &of_columns[7, 0], &of_columns[8, 0]
    at.all, at.n_all, at.used = &listed[0, 0], columns.view.n_rows, &listed[1, 0]
    at.enough, at.l1, at.worth, at.most = enough, l1[0], INFINITY, most
    model_begin(&at, &of)
    while model_part(&at, &of):
        pass
    return np.asarray(of_columns)[0, :p].copy(), at.reads
