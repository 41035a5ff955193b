"""The Newton system of a curvature block, without the interpreter; reasons in ``_system.pyx``.

Blocks are row-major and known by their upper triangle.
"""


# x = H^-1 rhs for k right sides of length n one after the other; scratch (n, n). The ridge that was needed, a multiple
# of every diagonal entry: 0 as a rule; inf: x is rhs over the diagonal; NaN: H is not finite, x is not written
cdef double solve_upper(Py_ssize_t n, const double *upper, Py_ssize_t k, const double *rhs, double *x,
                        double *scratch) noexcept nogil

# the same with a larger ridge than the one of before
cdef double solve_after_ridge(double ridge, Py_ssize_t n, const double *upper, Py_ssize_t k, const double *rhs,
                              double *x, double *scratch) noexcept nogil

# whether the block that left this factor (as `solve_upper` with a ridge of 0 leaves it in its scratch) might as well
# have been summed in single precision
cdef bint allows_rounding(Py_ssize_t n, const double *upper, const double *factor) noexcept nogil

cdef int MODEL_ROUNDS            # of `l1_minimum` in a Newton step, at most
cdef double MODEL_TOL            # they end where one promises this part, squared, of what the best of them did
cdef double SMOOTH_MODEL_TOL     # the same for a loss of continuous curvature: the next step gets the rest
cdef double MODEL_LEFT           # of a fit's tolerance: slopes beside their l1 weight, which cost the bound as much

cdef double FAR                  # an l1 weight, beside the slopes, so small is none
cdef int SWEEPS                  # of descent by columns, or groups of them, between two Newton steps of the model
cdef int HALVINGS                # of such a step

# cyclic exact minimisation over x, IN and OUT with exact zeros, of a quadratic plus sum l1_j |x_j| between the bounds,
# which may be infinite, one coordinate at a time; gradient, of the quadratic at x, follows it. H (n, n) symmetric, both
# triangles; columns with H_jj <= 0 stay. Ends after a sweep whose largest decrease by one coordinate is below tol times
# the first sweep's; sweeps made
cdef int run_sweeps(Py_ssize_t n, const double *H, double *gradient, double *x, const double *l1, const double *lower,
                    const double *upper, int sweeps, double tol) noexcept nogil

# doubles of `work` that `l1_minimum` wants
cdef Py_ssize_t l1_work_size(Py_ssize_t n) noexcept nogil

# d = argmin of g'd + d'Hd/2 + sum l1_j |w_j + d_j|, w + d between the bounds (NULL: there are none), or where it is
# late what is known of it; all (n,), index scratch (3 n,); slopes of ``least`` of their l1 weight may stay. False: H is
# not finite
cdef bint l1_minimum(Py_ssize_t n, const double *upper, const double *g, const double *w, const double *l1,
                     const double *lowest, const double *highest, int rounds, double tol, double least, double deadline,
                     double *d, double *work, Py_ssize_t *index) noexcept nogil

# H (m, m) and gx (m,) of columns once a column of curvature ``own`` > 0 and slope g_free is minimised out, whose
# products with them are ``across`` (m,)
cdef void minimise_out(Py_ssize_t m, double own, double g_free, const double *across, double *H,
                       double *gx) noexcept nogil

cdef bint upper_is_finite(Py_ssize_t n, const double *upper) noexcept nogil
cdef bint all_finite(Py_ssize_t n, const double *x) noexcept nogil

# whether squares of a column are beyond the range of doubles where its gradient is not; H's diagonal: every ``stride``
cdef bint curvature_is_lost(Py_ssize_t n, const double *diagonal, Py_ssize_t stride, const double *g) noexcept nogil
