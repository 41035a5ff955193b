"""Directions by conjugate gradients: products with the rows in place of their curvature and its factor.

Where the block is dear beside the rows, products may be on trial (`homes/prices.py`): while a step takes fewer of them
than a look with curvature costs reads, they are what steps are made by; from the first that takes more on it is the
block, of which this driver asks from there on, or which another driver has (``or_leave``). What that step has of its
direction is taken all the same, so that little is lost where it was one too many. All of a trial is limited too.
"""

from libc.string cimport memcpy

from cmargin._core.linalg._blas cimport dot
from cmargin._core.newton._certificate cimport relative_gap
from cmargin._core.newton._conjugate_gradients cimport cg_begin, cg_told, conjugate_gradients
from cmargin._core.newton._driver cimport PRODUCT
from cmargin._core.newton._newton cimport (
    DIAGONAL, FRESH_LOOK, FULL_BLOCK, LEFT, PRODUCTS, ask_first_look, direction_found, floor_of, measure_columns,
    newton_settle,
)
from cmargin._core.newton._newton_block cimport choose_columns
from cmargin._core.newton._newton_system cimport all_finite, curvature_is_lost

cdef int MOST_PRODUCTS = 100
cdef int TRIED = 10                      # steps of as many products as are worth it: what all of a trial may read,
cdef double SHARE = 0.3                  # and this part of ``max_passes``: the rest is for steps by a factor
cdef double ROUNDING_LEFT = 1e-16        # of |g|^2
cdef double FORCING = 0.1                # of the gradient: what products may leave of it, far from the optimum
cdef double PART_OF_GAP = 0.01           # of the gap still open: what the residual may cost the certificate,
cdef double PART_OF_END = 0.6            # or of `tol` where that is more, which ends the fit all the same


cdef void start_products(newton_state *at) noexcept nogil:
    # the diagonal, a scale only, is summed once in a trial; then its columns are taken to change as their mean does
    cdef double change
    cdef Py_ssize_t j
    if at.worth_products == 0 or not (at.curvature_then > 0 and at.mean_curvature > 0):
        ask_product(at, NULL)
        return
    change = at.mean_curvature / at.curvature_then
    for j in range(at.p):
        at.diagonal[j] = (at.diagonal[j] - at.l2_each[j]) * change + at.l2_each[j]
    at.curvature_then = at.mean_curvature
    go_on_with(at, begin_products(at))


cdef void ask_product(newton_state *at, const double *x) noexcept nogil:
    at.phase = DIAGONAL if x == NULL else PRODUCTS
    at.ask.kind, at.ask.x = PRODUCT, x
    at.ask.look.width, at.ask.look.floor = at.rule.width, floor_of(at)


cdef void told_product(void *driver, const double *product, double share) noexcept nogil:
    cdef newton_state *at = <newton_state *> driver
    # conjugate gradients for H d = -g, scaled by H's diagonal
    cdef conjugate_gradients *cg = &at.cg
    cdef bint wanted
    cdef Py_ssize_t j
    at.passes += share * at.share
    if at.worth_products > 0:
        at.spent += share * at.share
        at.tried += share * at.share
    if at.phase == DIAGONAL:
        take_diagonal(at, product)
        if at.worth_products > 0 and not all_finite(at.p, at.diagonal):
            start_without_them(at)
            return
        wanted = begin_products(at)
    else:
        for j in range(at.p):
            cg.product[j] = product[j] / at.n + at.l2_each[j] * cg.search[j]
        wanted = cg_told(cg)
    go_on_with(at, wanted)


cdef void go_on_with(newton_state *at, bint wanted) noexcept nogil:
    cdef conjugate_gradients *cg = &at.cg
    if wanted:
        ask_product(at, cg.search)
        return
    if at.worth_products > 0 and (at.tried > min(TRIED * at.worth_products, SHARE * at.max_passes) or
                                  (cg.count >= at.worth_products and dot(cg.n, cg.r, cg.r) > cg.enough)):
        give_products_up(at)
    memcpy(at.d, cg.x, at.p * sizeof(double))
    direction_found(at)


cdef void give_products_up(newton_state *at) noexcept nogil:
    # after this step; its end is looked at with curvature, unless another driver does
    if at.or_leave:
        at.status = LEFT
        return
    at.by_products = False
    at.wide_l1 = at.l1 > 0 and at.p > FULL_BLOCK
    if at.wide_l1:
        choose_columns(at)


cdef void start_without_them(newton_state *at) noexcept nogil:
    # squares of the columns overflow, say: those who have a factor know what to do, or to say
    give_products_up(at)
    at.knows_rms = False
    if at.or_leave:
        newton_settle(at)
    else:
        ask_first_look(at, FRESH_LOOK, True)


cdef void take_diagonal(newton_state *at, const double *product) noexcept nogil:
    cdef Py_ssize_t j
    measure_columns(at, product, 1)
    at.curvature_then = at.mean_curvature
    for j in range(at.p):
        at.diagonal[j] = product[j] / at.n + at.l2_each[j]
    at.blind = curvature_is_lost(at.p, at.diagonal, 1, at.g)
    for j in range(at.p):
        at.diagonal[j] = at.diagonal[j] if at.diagonal[j] > 0 else 1


cdef bint begin_products(newton_state *at) noexcept nogil:
    cdef double cost, squares, forcing = 0, gap = relative_gap(at.objective, at.best_dual)
    # a residual r costs the certificate |r|^2 / (2 l2), and one of a free intercept about |r|
    cost = max(PART_OF_GAP * (gap if gap < 1 else 1.0), PART_OF_END * at.tol) * at.objective
    at.cg.enough = 2 * max(at.path_l2, at.l2) * cost
    at.cg.most = at.worth_products if at.worth_products > 0 else MOST_PRODUCTS
    if at.free >= 0:
        at.cg.enough = min(at.cg.enough, cost * cost)
    if at.smooth and (at.worth_products > 0 or not at.jumping):
        forcing = FORCING
    squares = dot(at.p, at.g, at.g)
    if at.cg.enough >= squares:                  # of a warm start no gap is known yet: some step all the same
        at.cg.enough = squares / 4
    at.cg.enough = max(at.cg.enough, max(ROUNDING_LEFT, forcing * forcing) * squares)
    return cg_begin(&at.cg, at.g, -1)
