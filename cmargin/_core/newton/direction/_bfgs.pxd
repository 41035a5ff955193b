"""Curvature of one point, in use for some steps more; see ``_bfgs.pyx``."""


cdef struct bfgs_hessian:
    Py_ssize_t n
    Py_ssize_t n_pairs           # steps since
    Py_ssize_t room
    bint ready                   # to be solved with
    bint out_of_memory
    bint whole                   # matrix is a factor
    # ---- pointers from here on
    double *matrix               # (n, n) upper triangle of H, then its factor, or its eigenvectors as rows
    double *own                  # (n,) diagonal of H, or the inverse of its eigenvalues
    double *pairs                # (room, 2 n + 2): step, change of the gradient along it, product of both, work


# numbers of a pair
cdef inline Py_ssize_t bfgs_row_size(Py_ssize_t n) noexcept nogil:
    return 2 * n + 2


# H = upper / total + diag(ridge); nothing is factored yet, no pairs
cdef void bfgs_take(bfgs_hessian *kept, const double *upper, double total, const double *ridge) noexcept nogil

# ready for `bfgs_solve`; False: H is not finite, or there is no memory
cdef bint bfgs_factor(bfgs_hessian *kept) noexcept nogil

# a step and the change of the gradient along it
cdef void bfgs_add(bfgs_hessian *kept, const double *step, const double *change) noexcept nogil

# x = factor * H^-1 rhs; x and rhs (n,) apart, scratch (n,)
cdef void bfgs_solve(bfgs_hessian *kept, const double *rhs, double factor, double *x, double *scratch) noexcept nogil

cdef void bfgs_free(bfgs_hessian *kept) noexcept nogil
