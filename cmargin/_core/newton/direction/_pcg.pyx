"""Directions by conjugate gradients: Hessian-vector products in place of the curvature block and its factor.

Where the block is dear beside the rows, products may be on trial (`solvers/prices.py`): while a step takes fewer of
them than an evaluation with curvature costs reads, they are what steps are made by; from the first that takes more on
it is the block, of which this driver asks from there on, or which another driver has (``or_leave``). What that step has
of its direction is taken all the same, so that little is lost where it was one too many. All of a trial is limited too.

Wide dense rows have products in between, for every loss: evaluations sum the block of a sample of the rows, likelier
ones those of more curvature and of uncommon columns, and its factor preconditions the products (`take_sample` in
``_row_blocks.pyx``; sub-sampled Newton, Roosta-Khorasani and Mahoney 2019, with exact products to correct it).
"""

from libc.float cimport DBL_MIN
from libc.math cimport isfinite, sqrt
from libc.string cimport memcpy

from cmargin._core.linalg._blas cimport dot, potrf
from cmargin._core.losses._losses cimport point_loss
from cmargin._core.losses._smoothed_hinge cimport hinge_at, primal_curvature
from cmargin._core.newton._column_units cimport diagonal_in_units, sums_in_units
from cmargin._core.newton.direction._conjugate_gradients cimport cg_begin, cg_tell, conjugate_gradients
from cmargin._core.newton._point cimport (
    foresees_diagonal, gap_of, measure_columns, objective_size, reads_for_products,
)
from cmargin._core.newton._state cimport (
    ASK_AFRESH, ASK_EVALUATE, ASK_HESSP, FAILED, FOUND, GIVE_UP, LEFT, action_id, newton_state,
)
from cmargin._core.newton.direction._block cimport choose_columns
from cmargin._core.newton.direction._projected cimport keep_free, project, slope_of_free
from cmargin._core.newton.direction._system cimport all_finite, curvature_is_lost, upper_is_finite
from cmargin._core.penalties._penalties cimport has_kinks
from cmargin._core.penalties._penalty cimport BY_COLUMN
from cmargin._core.rows._evaluate cimport SAMPLED_BLOCK

cdef int MOST_BY_GRADIENT = 200          # products of a step, in a fit that ends by the gradient's norm
cdef double ROUNDING_LEFT = 1e-16        # part of |g|^2 that a residual may have by rounding alone
cdef double FORCING = 0.1                # part of the gradient that the residual of a step may be, far from the optimum
cdef double HINGE_FORCING = 0.3          # the same with the hinge, times the root of the gap, if that is less
cdef double LEAST_FORCING = 1e-3         # the smallest such part
cdef double POOR = 0.3                   # part of the gradient: preconditioned products that leave more are given up
cdef double PART_OF_GAP = 0.01           # part of the open gap that the residual may cost the certificate
cdef double PART_OF_END = 0.6            # part of `tol` that it may cost where that is more: the fit ends all the same
cdef double FEWEST = 0.25                # rows of a sample over rows wanted: the next makes up for no fewer
cdef double SINGLE = 1e-6                # part of a diagonal entry, more than the rounding of single precision


cdef action_id begin_hessp(newton_state *at) noexcept nogil:
    # the diagonal, a scale only, is summed once in a trial; then its columns are taken to change as their mean does
    cdef double change
    cdef Py_ssize_t j
    if not foresees_diagonal(at):
        at.pcg.asked = at.units.last             # in units the diagonal wants that of ones first
        return ASK_HESSP
    change = at.curvature.mean / at.pcg.mean_then
    for j in range(at.p):
        at.pcg.diagonal[j] = (at.pcg.diagonal[j] - at.penalty.step.l2_each[j]) * change + at.penalty.step.l2_each[j]
    at.pcg.mean_then = at.curvature.mean
    return go_on_with(at, begin_pcg(at))


cdef action_id hessp_tell(newton_state *at, const double *product, double share) noexcept nogil:
    # conjugate gradients for H d = -g, scaled by H's diagonal
    cdef conjugate_gradients *cg = &at.pcg.cg
    cdef bint wanted
    cdef Py_ssize_t j
    at.counts.passes += share * at.problem.share
    if at.pcg.products_limit > 0:
        at.pcg.tried += share * at.problem.share
    if at.pcg.asked != NULL and at.pcg.asked == at.units.last:
        memcpy(at.point.scratch, product, at.p * sizeof(double))
        at.pcg.asked = NULL
        return ASK_HESSP
    if at.pcg.asked == NULL:
        take_diagonal(at, product)
        if at.pcg.products_limit > 0 and not all_finite(at.p, at.pcg.diagonal):
            return without_hessp(at)
        wanted = begin_pcg(at)
    else:
        memcpy(cg.product, product, at.p * sizeof(double))
        if at.units.inverse != NULL:
            sums_in_units(&at.units, cg.product)
        for j in range(at.p):
            cg.product[j] = cg.product[j] / at.problem.n + at.penalty.step.l2_each[j] * cg.search[j]
        keep_free(at, cg.product)
        wanted = cg_tell(cg) and reads_for_products(at) >= at.problem.share
    return go_on_with(at, wanted)


cdef action_id go_on_with(newton_state *at, bint wanted) noexcept nogil:
    cdef conjugate_gradients *cg = &at.pcg.cg
    if wanted:
        at.pcg.asked = cg.search
        return ASK_HESSP
    if at.pcg.products_limit > 0 and (at.pcg.tried > most_of_trial(at)
                                      or (cg.count >= at.pcg.products_limit and leaves_too_much(at))):
        give_hessp_up(at)
    if at.penalty.step.kind == BY_COLUMN:
        project(at, cg.x)
    else:
        memcpy(at.point.d, cg.x, at.p * sizeof(double))
    return FOUND


cdef double most_of_trial(const newton_state *at) noexcept nogil:
    # reads of products; the rest of ``max_passes`` is for steps by a factor
    return min(at.limits.trial_steps * at.pcg.products_limit, at.limits.trial_share * at.stop.max_passes)


cdef bint leaves_too_much(const newton_state *at) noexcept nogil:
    cdef double left = dot(at.p, at.pcg.cg.r, at.pcg.cg.r), enough = at.pcg.cg.enough
    if at.sampled.in_use:                        # a step cut short is still a good one; the next has other curvature
        enough = max(enough, POOR * POOR * dot(at.p, at.point.g, at.point.g))
    return left > enough


cdef void give_hessp_up(newton_state *at) noexcept nogil:
    # after this step: the next kind of products, or a factor; its end is evaluated with curvature, unless another
    # driver does
    if at.sampled.rows > 0 and not at.sampled.in_use:
        at.sampled.in_use, at.pcg.products_limit, at.pcg.tried = True, at.sampled.products_limit, 0
        return
    at.sampled.in_use = at.curvature.has_factor = False
    if at.pcg.or_leave:
        at.status = LEFT
        return
    at.pcg.in_use = False
    at.l1_block.wide = has_kinks(&at.penalty.user) and at.p > at.limits.l1_block_columns
    if at.l1_block.wide:
        choose_columns(at)


cdef bint products_stall(const newton_state *at) noexcept nogil:
    # of bounds: where a projected step is of use for so little of its length, the wrong columns stop
    return at.pcg.in_use and at.pcg.products_limit > 0 and at.penalty.step.kind == BY_COLUMN \
        and at.point.step < at.limits.l2_path_step


cdef action_id without_hessp(newton_state *at) noexcept nogil:
    # the diagonal is not finite, as squares of the columns overflow: steps by a factor know what to do
    give_hessp_up(at)
    at.bound.knows_rms = False
    return GIVE_UP if at.pcg.or_leave else ASK_AFRESH


cdef void take_diagonal(newton_state *at, const double *product) noexcept nogil:
    cdef Py_ssize_t j
    measure_columns(at, product, 1)
    at.pcg.mean_then = at.curvature.mean
    memcpy(at.pcg.diagonal, product, at.p * sizeof(double))
    if at.units.inverse != NULL:
        diagonal_in_units(&at.units, at.point.scratch, at.pcg.diagonal)
    for j in range(at.p):
        at.pcg.diagonal[j] = at.pcg.diagonal[j] / at.problem.n + at.penalty.step.l2_each[j]
    at.point.unreliable = curvature_is_lost(at.p, at.pcg.diagonal, 1, at.point.g)
    for j in range(at.p):
        at.pcg.diagonal[j] = at.pcg.diagonal[j] if at.pcg.diagonal[j] > 0 else 1


cdef bint begin_pcg(newton_state *at) noexcept nogil:
    cdef double cost, squares, forcing = 0, gap = gap_of(at)
    cdef double *slope = at.point.scratch
    slope_of_free(at, slope)
    squares = dot(at.p, slope, slope)
    gap = gap if gap < 1 else 1.0                # it is NaN where no penalty bounds anything
    if at.stop.by_gradient:
        at.pcg.cg.enough, at.pcg.cg.most = min(FORCING * FORCING, gap) * squares, MOST_BY_GRADIENT
        return cg_begin(&at.pcg.cg, slope, -1)
    # a residual r costs the certificate |r|^2 / (2 l2), and one of a free intercept about |r|
    cost = max(PART_OF_GAP * gap, PART_OF_END * at.stop.tol) * objective_size(at)
    at.pcg.cg.enough = 2 * at.penalty.step.l2 * cost
    at.pcg.cg.most = at.pcg.products_limit if at.pcg.products_limit > 0 else at.limits.most_products
    if at.penalty.user.free >= 0:
        at.pcg.cg.enough = min(at.pcg.cg.enough, cost * cost)
    if at.pcg.products_limit > 0 or (at.problem.facts.smooth and not at.penalty.path_begun):
        forcing = FORCING if at.problem.facts.smooth else min(FORCING, max(LEAST_FORCING, HINGE_FORCING * sqrt(gap)))
    if at.pcg.cg.enough >= squares:              # of a warm start no gap is known yet: some step all the same
        at.pcg.cg.enough = squares / 4
    at.pcg.cg.enough = max(at.pcg.cg.enough, max(ROUNDING_LEFT, forcing * forcing) * squares)
    return cg_begin(&at.pcg.cg, slope, -1)


# ---------------------------------------------------------------- a sample of the rows

cdef void foresee_curvature(newton_state *at) noexcept nogil:
    # at w = 0; elsewhere they are known from another driver, or from the first evaluation
    cdef Py_ssize_t j
    for j in range(at.p):
        if at.point.w[j] != 0:
            return
    if at.problem.facts.smooth:
        at.curvature.mean = point_loss(&at.problem.loss, 0).curvature
    else:
        at.curvature.mean = primal_curvature(hinge_at(1, at.smoothing.width), at.smoothing.width)


cdef void ask_for_sample(newton_state *at) noexcept nogil:
    # with the evaluation that is asked for, if it has a block
    at.ask.evaluation.seed, at.ask.evaluation.measure.leverage = at.sampled.seed, NULL
    at.ask.evaluation.stands_for = at.curvature.mean * at.problem.n / at.sampled.rows * at.sampled.filled
    if at.ask.evaluation.with_hessian == SAMPLED_BLOCK and not at.sampled.measured and knows_columns(at):
        weigh_columns(at)
        at.sampled.measured = at.sampled.forgotten = True
    if at.ask.evaluation.with_hessian == SAMPLED_BLOCK and at.sampled.forgotten:
        at.ask.evaluation.measure.leverage, at.sampled.forgotten = at.sampled.column_weight, False


cdef bint knows_columns(const newton_state *at) noexcept nogil:
    return at.bound.knows_rms or (at.pcg.mean_then > 0 and at.curvature.mean > 0)


cdef double mean_square(const newton_state *at, Py_ssize_t j) noexcept nogil:
    # of a column, or where products say no more, of its rows as they are curved; 0: beyond the range
    cdef double square = at.bound.rms[j] * at.bound.rms[j]
    if not at.bound.knows_rms:
        square = (at.pcg.diagonal[j] - at.penalty.step.l2_each[j]) / at.pcg.mean_then
    return square if square >= DBL_MIN and isfinite(square) else 0


cdef void weigh_columns(newton_state *at) noexcept nogil:
    # all count for as much in a row's length, whose mean square is then 1
    cdef Py_ssize_t j, there = 0
    for j in range(at.problem.n_features):
        there += mean_square(at, j) > 0
    for j in range(at.problem.n_features):
        at.sampled.column_weight[j] = 1 / mean_square(at, j) / there if mean_square(at, j) > 0 else 0


cdef void count_sample(newton_state *at) noexcept nogil:
    if at.ask.evaluation.stands_for > 0:
        at.sampled.filled = min(max(at.sampled.filled * at.point.sums[6] / at.sampled.rows, FEWEST), 1 / FEWEST)


cdef action_id begin_preconditioned(newton_state *at) noexcept nogil:
    if not at.curvature.make_room(at, at.p):
        at.ask.out_of_memory = True
        return FAILED
    if at.curvature.has_block and not factor_sample(at):
        give_hessp_up(at)
        return ASK_EVALUATE
    if not at.curvature.has_factor:              # nobody knew how much curvature there is
        return ASK_EVALUATE
    at.pcg.cg.factor = at.curvature.work + 4 * at.p
    return go_on_with(at, begin_pcg(at))


cdef bint factor_sample(newton_state *at) noexcept nogil:
    # of the block and the penalty; False: there is none, as rounding has it
    cdef double *factor = at.curvature.work + 4 * at.p
    cdef Py_ssize_t i, j
    at.point.unreliable = curvature_is_lost(at.p, at.curvature.block, at.p + 1, at.point.g)
    for i in range(at.p):
        for j in range(i, at.p):
            factor[i * at.p + j] = at.curvature.block[i * at.p + j] / at.problem.n
        factor[i * at.p + i] = (1 + SINGLE) * factor[i * at.p + i] + at.penalty.step.l2_each[i]
    at.curvature.has_factor = upper_is_finite(at.p, factor) and potrf(at.p, factor) == 0
    return at.curvature.has_factor
