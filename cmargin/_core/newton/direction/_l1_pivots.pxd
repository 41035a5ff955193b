"""The model with an l1 term on given columns, component after component; reasons in ``_l1_pivots.pyx``."""


# x goes to where the slope in none of the m columns `index`, of signs as given, is more than `enough` of its unit, the
# l1 weight where there is one; components that come to 0 or to a bound stay there. gx, the gradient of the quadratic
# part, follows. False: H, (n, n) both triangles, has no factor, and x is as it was. factor (m, m), work (n + 4 m,),
# order (m,): scratch
cdef bint minimise_on(Py_ssize_t n, const double *H, double *gx, double *x, const double *l1, const double *lower,
                      const double *upper, const double *unit, double *sign, Py_ssize_t m, Py_ssize_t *index,
                      double enough, double deadline, double *factor, double *work, Py_ssize_t *order) noexcept nogil
