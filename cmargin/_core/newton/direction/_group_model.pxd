"""The model of a Newton step with norms of groups, without the interpreter; reasons in ``_group_model.pyx``."""


# doubles of `work` that `group_minimum` wants
cdef Py_ssize_t group_work_size(Py_ssize_t n) noexcept nogil

# d = argmin of g'd + d'Hd/2 + sum over groups of mu |w + d|, or where it is late what is known of it. H (n, n) by its
# upper triangle. group (n,) the number of every column's group, below 0 for one column that has none at most; sorted.
# mu (n,) that of the column's group. Slopes of ``least`` of mu may stay, and ``tol`` of the worst at w; index scratch
# (3 n,). False: H is not finite
cdef bint group_minimum(Py_ssize_t n, const double *upper, const double *g, const double *w, double *group,
                        const double *mu, int rounds, double tol, double least, double deadline, double *d,
                        double *work, Py_ssize_t *index) noexcept nogil
