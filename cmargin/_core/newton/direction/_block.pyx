"""The curvature block of a Newton step: which columns it has, and the direction that it gives."""

from libc.float cimport DBL_MIN
from libc.math cimport INFINITY, fabs, isfinite
from libc.string cimport memcpy, memset

from cmargin._core.linalg._blas cimport dot
from cmargin._core.newton._point cimport objective_size, rounding_of
from cmargin._core.newton.direction._constrained_model cimport constrained_minimum, constrained_work_size
from cmargin._core.newton.direction._group_model cimport group_minimum, group_work_size
from cmargin._core.newton.direction._system cimport (
    MODEL_LEFT, MODEL_ROUNDS, MODEL_TOL, SMOOTH_MODEL_TOL, allows_rounding, curvature_is_lost, l1_minimum,
    l1_work_size, solve_after_ridge, solve_upper,
)
from cmargin._core.penalties._penalties cimport (
    has_kinks, is_grouped, is_sharp, is_used, leader, penalty_slope, rests, steepness,
)
from cmargin._core.penalties._penalty cimport BY_COLUMN
from cmargin._core.util._sorting cimport sort_places

cdef double NEAR = 0.8                   # part of the l1 weight: columns of a larger gradient may soon be in use
cdef double HIDDEN = 1e-4                # of the objective, or of itself if more: what rounding may change by a step
cdef double BEYOND_BELIEF = 1e3          # times the objective: a model that falls further is one of rounding; slopes
# count as this small a part of the steepest at least, or columns of none would go as far
cdef double NOTHING = 1e-12              # of the objective: a fall that may be rounding alone
WORKING_SET = 400


cdef Py_ssize_t block_work_size(Py_ssize_t order, const penalty_t *penalty) noexcept nogil:
    if penalty.constraints.n > 0:
        return 4 * order + constrained_work_size(order, penalty.constraints.n)
    if is_grouped(penalty):
        return 4 * order + group_work_size(order)
    return 6 * order + (l1_work_size(order) if has_kinks(penalty) else order * order)


cdef bint may_be_used(const newton_state *at, Py_ssize_t j) noexcept nogil:
    return not rests(&at.penalty.step, j, at.point.w, at.point.g, NEAR)


cdef void choose_columns(newton_state *at) noexcept nogil:
    # the block at the next evaluation: columns in use and those about to be, the gradient near the l1 weight; of too
    # many the steepest first: the others come later
    cdef double *key = at.point.scratch          # (p,) of columns that lead their group
    cdef Py_ssize_t j, lead, found = 0, used = 0, room
    cdef bint in_use
    for j in range(at.p):
        lead = leader(&at.penalty.step, j)
        if lead == j:
            in_use, key[j] = is_used(&at.penalty.step, j, at.point.w), INFINITY
            if in_use or not is_sharp(&at.penalty.step, j):
                key[j] = -INFINITY
            elif may_be_used(at, j):
                key[j] = -steepness(&at.penalty.step, j, at.point.g)
        else:
            in_use = key[lead] == -INFINITY
        used += in_use
        if not key[lead] == INFINITY:
            at.curvature.active[found], at.l1_block.keys[found] = j, key[lead]
            found += 1
    # groups bring their neighbours: with a quarter of the room they took no more steps, and half of the time
    room = max(WORKING_SET // 4 if is_grouped(&at.penalty.step) else WORKING_SET, 2 * used)
    at.curvature.n_active = found if found <= room else keep_steepest(at, found, room)


cdef Py_ssize_t keep_steepest(newton_state *at, Py_ssize_t found, Py_ssize_t room) noexcept nogil:
    # of the columns found those of the ``room`` smallest keys, of equal ones the first, or with groups all: how many
    cdef double *key = at.l1_block.keys
    cdef double *sorted_key = at.point.scratch
    cdef double last = room - 1
    cdef Py_ssize_t i, equal = room, kept = 0
    memcpy(sorted_key, key, found * sizeof(double))
    sort_places(found, sorted_key, 1, &last)
    last = sorted_key[room - 1]
    for i in range(found):
        equal -= key[i] < last
    for i in range(found):
        if key[i] < last or (key[i] == last and (equal > 0 or is_grouped(&at.penalty.step))):
            equal -= key[i] == last
            at.curvature.active[kept] = at.curvature.active[i]
            kept += 1
    return kept


cdef bint columns_wait(const newton_state *at) noexcept nogil:
    cdef Py_ssize_t j, i = 0
    if at.l1_block.in_rows:                      # such a step has all columns
        return False
    for j in range(at.p):
        if i < at.curvature.n_active and at.curvature.active[i] == j:
            i += 1
        elif leader(&at.penalty.step, j) == j and not rests(&at.penalty.step, j, at.point.w, at.point.g, 1):
            return True
    return False


cdef bint goes_too_far(const newton_state *at, const double *d) noexcept nogil:
    # Whether rounding may change the objective at the end of d by too much. Rows on the hinge's straight line have a
    # slope and no curvature: where the other rows do not span the columns and there is no penalty, d has no end there.
    return not at.problem.facts.smooth and at.bound.knows_rms \
        and rounding_of(at, d) > HIDDEN * max(objective_size(at), HIDDEN)


cdef double model_tol(const newton_state *at) noexcept nogil:
    return SMOOTH_MODEL_TOL if at.problem.facts.smooth and not at.problem.facts.discontinuous else MODEL_TOL


cdef bint is_too_straight(const newton_state *at) noexcept nogil:
    # Whether the model of a step cannot be believed where rows have a slope and no curvature: it falls without end in a
    # column that is to move, or by far more than there is, as no objective is below 0, or by nothing, as its minimum
    # may be lost in the rounding of a curvature that is nearly 0.
    cdef Py_ssize_t i, j
    cdef double slope
    cdef bint straight = at.problem.facts.discontinuous and at.problem.facts.dual_largest < 1e300
    if not at.problem.facts.smooth or at.stop.by_gradient or not isfinite(at.point.value) \
            or not (straight or (is_grouped(&at.penalty.step) and not at.problem.facts.discontinuous)):
        return False
    for i in range(at.curvature.order):
        j = i if at.curvature.n_active < 0 else at.curvature.active[i]
        if not at.curvature.block[i * (at.curvature.order + 1)] > DBL_MIN \
                and not rests(&at.penalty.step, j, at.point.w, at.point.g, 1):
            return True
    slope = dot(at.p, at.point.g, at.point.d) + penalty_slope(&at.penalty.step, at.point.w, at.point.d, 0, 1)
    return not -slope <= BEYOND_BELIEF * at.point.value or (straight and -slope < NOTHING * at.point.value)


cdef void bend_block(newton_state *at, const double *g) noexcept nogil:
    # With m g_j^2 / (2 F) added to the diagonal, or a little more, the model of m columns falls by F at most, the value
    # of the objective, whatever its curvature: (sum g_j d_j)^2 <= m sum g_j^2 d_j^2. That vanishes with the slope.
    cdef Py_ssize_t order = at.curvature.order, i
    cdef double steepest = 0, scale
    for i in range(order):
        steepest = max(steepest, fabs(g[i]))
    for i in range(order):
        scale = max(fabs(g[i]), steepest / BEYOND_BELIEF)
        at.curvature.block[i * (order + 1)] += order * scale * (scale / (2 * max(at.point.value, DBL_MIN)))


cdef bint solve_block(newton_state *at) noexcept nogil:
    # d = the Newton direction, for l1 the minimum of the model with its l1 term; False: the block is not finite
    cdef Py_ssize_t order = at.curvature.order, i, j
    cdef double *g = at.curvature.work           # (order,) of the block's columns, as the next three of `solve_model`
    cdef bint done
    for i in range(order):
        for j in range(i, order):
            at.curvature.block[i * order + j] /= at.problem.n
        j = i if at.curvature.n_active < 0 else at.curvature.active[i]
        at.curvature.block[i * order + i] += at.penalty.step.l2_each[j]
        g[i] = at.point.g[j]
    at.point.unreliable = curvature_is_lost(order, at.curvature.block, order + 1, g)
    done = solve_model(at, g)
    if done and is_too_straight(at):
        bend_block(at, g)
        done = solve_model(at, g)
        at.point.unreliable = at.cholesky.single_ok = at.curvature.has_factor = False
    return done


cdef bint solve_model(newton_state *at, const double *g) noexcept nogil:
    cdef Py_ssize_t order = at.curvature.order, i, j
    cdef double *d = at.curvature.work + order
    cdef double *w = d + order
    cdef double *l1 = w + order
    cdef double *lower = NULL                    # (order,) behind the work, where there are bounds
    cdef double *upper = NULL
    cdef double ridge
    cdef bint done
    for i in range(order):
        j = i if at.curvature.n_active < 0 else at.curvature.active[i]
        w[i], l1[i] = at.point.w[j], at.penalty.step.l1_each[j]
    if at.penalty.step.constraints.n > 0:        # whose block has all columns
        ridge = constrained_minimum(order, at.curvature.block, g, w, &at.penalty.step.constraints, at.point.d,
                                    l1 + order)
        return ridge == ridge
    if at.penalty.step.kind == BY_COLUMN:
        lower = l1 + order + l1_work_size(order)
        upper = lower + order
        for i in range(order):
            j = i if at.curvature.n_active < 0 else at.curvature.active[i]
            lower[i], upper[i] = at.penalty.step.lower[j], at.penalty.step.upper[j]
    if is_grouped(&at.penalty.step):
        for i in range(order):
            j = i if at.curvature.n_active < 0 else at.curvature.active[i]
            at.l1_block.keys[i] = at.penalty.step.groups.of[j] if j != at.penalty.step.free else -1
        done = group_minimum(order, at.curvature.block, g, w, at.l1_block.keys, l1, MODEL_ROUNDS, model_tol(at),
                             MODEL_LEFT * at.stop.tol, at.stop.deadline, d, l1 + order, at.l1_block.index)
    elif has_kinks(&at.penalty.step):
        done = l1_minimum(order, at.curvature.block, g, w, l1, lower, upper, MODEL_ROUNDS, model_tol(at),
                          MODEL_LEFT * at.stop.tol, at.stop.deadline, d, l1 + order, at.l1_block.index)
    else:
        ridge = solve_upper(order, at.curvature.block, 1, g, d, l1 + order)
        while ridge <= 1 and goes_too_far(at, d):
            ridge = solve_after_ridge(ridge, order, at.curvature.block, 1, g, d, l1 + order)
        done = ridge == ridge
        at.cholesky.single_ok = ridge == 0 and allows_rounding(order, at.curvature.block, l1 + order)
        at.curvature.has_factor = ridge == 0 and at.problem.facts.smooth
        for i in range(order):
            d[i] = -d[i]
    memset(at.point.d, 0, at.p * sizeof(double))
    for i in range(order):
        at.point.d[i if at.curvature.n_active < 0 else at.curvature.active[i]] = d[i]
    return done
