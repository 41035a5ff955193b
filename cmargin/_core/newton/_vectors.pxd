"""Where the vectors of SmSVM's driver lie in the memory that its owner gives: NumPy's arrays, or memory of C's own."""

from cmargin._core.newton._driver cimport newton_state


cdef enum:
    W, D, TAKEN, G, L2_EACH, L1_EACH, SCRATCH, ZERO, KEYS, BEST_W, TOLD_V, BEST_V, RMS, SCALE,
    SUMS_POS, SUMS_NEG,
    X, R, PRODUCT_OF, SEARCHED, CURVATURE, WEIGHT, N_BY_PRODUCTS,   # for conjugate gradients,
    ACROSS = N_BY_PRODUCTS, SLOPE, SIGNED, L1_USED, SCALE_OF_X, PLACE, N_BY_COLUMNS   # and then for the model with l1


cdef inline Py_ssize_t n_vectors(const newton_state *at) noexcept nogil:
    if not at.by_products:
        return X
    return N_BY_COLUMNS if at.l1 > 0 else N_BY_PRODUCTS


cdef inline void point_at_vectors(newton_state *at, double *v, Py_ssize_t *places) noexcept nogil:
    # all 0: v (n_vectors, max(1, p)), places (4 p + 1,); at.p, free, l2, l1, by_products are set
    cdef Py_ssize_t room = max(1, at.p), j
    at.w, at.d, at.taken, at.g = v + W * room, v + D * room, v + TAKEN * room, v + G * room
    at.l2_each, at.l1_each = v + L2_EACH * room, v + L1_EACH * room
    at.scratch, at.zero, at.keys = v + SCRATCH * room, v + ZERO * room, v + KEYS * room
    at.best_w, at.told.v, at.best.v = v + BEST_W * room, v + TOLD_V * room, v + BEST_V * room
    at.rms, at.column_scale = v + RMS * room, v + SCALE * room
    at.dual_sums = v + SUMS_POS * room
    if at.by_products:
        at.cg.n, at.cg.x, at.cg.r, at.cg.product = at.p, v + X * room, v + R * room, v + PRODUCT_OF * room
        at.cg.search, at.diagonal = v + SEARCHED * room, v + CURVATURE * room
        at.cg.diagonal, at.column_weight = at.diagonal, v + WEIGHT * room
    if at.by_products and at.l1 > 0:
        at.model.cg, at.model.curvature, at.model.across = at.cg, at.diagonal, v + ACROSS * room
        at.model.slope, at.model.signed, at.model.l1_used = v + SLOPE * room, v + SIGNED * room, v + L1_USED * room
        at.model.scale, at.model.place = v + SCALE_OF_X * room, v + PLACE * room
        at.model.line.steps, at.model.line.index = at.keys, places + at.p
    at.index, at.active = places, places + 3 * at.p
    at.told.n = at.best.n = at.p if at.free < 0 else at.p - 1
    for j in range(at.told.n):
        at.l2_each[j], at.l1_each[j] = at.l2, at.l1
