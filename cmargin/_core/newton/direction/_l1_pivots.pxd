"""The model with an l1 term on given columns, component after component; reasons in ``_l1_pivots.pyx``."""


# x goes to where the slope in none of the m columns `index`, of signs as given, is more than `enough` of the l1 weight;
# components that come to 0 stay there. gx, the gradient of the quadratic part, follows. False: H, (n, n) both
# triangles, has no factor, and x is as it was. factor (m, m), work (n + 4 m,), order (m,): scratch
cdef bint minimise_on(Py_ssize_t n, const double *H, double *gx, double *x, const double *l1, double *sign,
                      Py_ssize_t m, Py_ssize_t *index, double enough, double deadline, double *factor, double *work,
                      Py_ssize_t *order) noexcept nogil
