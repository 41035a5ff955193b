"""Where the vectors of the driver lie in the memory that its owner gives: NumPy's arrays, or memory of C's own."""

from cmargin._core.newton._state cimport newton_state
from cmargin._core.newton.direction._conjugate_gradients cimport conjugate_gradients
from cmargin._core.newton.direction._l1_model cimport step_model
from cmargin._core.penalties._penalties cimport has_steps_by_columns
from cmargin._core.penalties._penalty cimport lay_out


cdef enum:
    W, D, TAKEN, G, L2_EACH, L1_EACH, SCRATCH, ZERO, KEYS, BEST_W, LAST_V, BEST_V, RMS, SCALE,
    SUMS_POS, SUMS_NEG,
    X, R, CG_PRODUCT, SEARCHED, CURVATURE, WEIGHT, N_BY_PRODUCTS,   # for conjugate gradients,
    ACROSS = N_BY_PRODUCTS, SLOPE, SIGNED, L1_USED, SCALE_OF_X, PLACE, N_BY_COLUMNS   # and then for the model with l1


cdef inline Py_ssize_t n_vectors(const newton_state *at) noexcept nogil:
    if not at.pcg.in_use:
        return X
    return N_BY_COLUMNS if has_steps_by_columns(&at.penalty.user) else N_BY_PRODUCTS


cdef inline void point_at_cg_vectors(newton_state *at, double *v, Py_ssize_t *places) noexcept nogil:
    # those of conjugate gradients, and of the model with l1
    cdef Py_ssize_t room = max(1, at.p)
    cdef conjugate_gradients *cg = &at.pcg.cg
    cdef step_model *model = &at.l1_columns.model
    cg.n, cg.x, cg.r, cg.product = at.p, v + X * room, v + R * room, v + CG_PRODUCT * room
    cg.search, at.pcg.diagonal = v + SEARCHED * room, v + CURVATURE * room
    cg.diagonal, at.sampled.column_weight = at.pcg.diagonal, v + WEIGHT * room
    if has_steps_by_columns(&at.penalty.user):
        model.cg, model.curvature, model.across = cg[0], at.pcg.diagonal, v + ACROSS * room
        model.slope, model.signed, model.l1_used = v + SLOPE * room, v + SIGNED * room, v + L1_USED * room
        model.scale, model.place = v + SCALE_OF_X * room, v + PLACE * room
        model.line.steps, model.line.index = at.l1_block.keys, places + at.p


cdef inline void point_at_vectors(newton_state *at, double *v, Py_ssize_t *places) noexcept nogil:
    # all 0: v (n_vectors, max(1, p)), places (4 p + 1,); p, the user's penalty and by_products are set
    cdef Py_ssize_t room = max(1, at.p)
    at.point.w, at.point.d, at.point.taken = v + W * room, v + D * room, v + TAKEN * room
    at.point.g, at.point.scratch, at.point.zero = v + G * room, v + SCRATCH * room, v + ZERO * room
    at.penalty.step = at.penalty.user
    lay_out(&at.penalty.step, v + L2_EACH * room, v + L1_EACH * room)
    at.bound.best_w, at.bound.last.v, at.bound.best.v = v + BEST_W * room, v + LAST_V * room, v + BEST_V * room
    at.bound.rms, at.bound.dual_sums = v + RMS * room, v + SUMS_POS * room
    at.l1_block.index, at.l1_block.keys = places, v + KEYS * room
    at.curvature.active, at.curvature.column_scale = places + 3 * at.p, v + SCALE * room
    if at.pcg.in_use:
        point_at_cg_vectors(at, v, places)
    at.bound.last.n = at.bound.best.n = at.p if at.penalty.user.free < 0 else at.p - 1
