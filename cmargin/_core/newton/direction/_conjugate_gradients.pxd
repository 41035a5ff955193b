"""Conjugate gradients, one Hessian-vector product at a time:

    wanted = cg_begin(&cg, rhs, 1)
    while wanted:
        cg.product = H cg.search
        wanted = cg_tell(&cg)
"""


cdef struct conjugate_gradients:
    Py_ssize_t n
    const double *diagonal       # IN    (n,) of H, positive: the scale of the unknowns,
    const double *factor         # or, if not NULL, (n, n) of a matrix that is nearly H, as `potrf` leaves it
    double enough                # |residual|^2 at which to end
    int most                     # products, at most
    double *x                    # OUT   (n,) the solution so far
    double *r                    # (n,) what is left of the right side
    double *search               # (n,) whose product with H is wanted
    double *product              # (n,) IN for `cg_tell`, then scratch
    double rz
    int count                    # products so far


# x = 0, right side factor * rhs; False: nothing is wanted, as in the next
cdef bint cg_begin(conjugate_gradients *cg, const double *rhs, double factor) noexcept nogil
cdef bint cg_tell(conjugate_gradients *cg) noexcept nogil
