"""The minimum of a block's model within linear constraints, without the interpreter (see the .pyx)."""

from cmargin._core.penalties._penalty cimport linear_constraints


# doubles of ``work`` that `constrained_minimum` wants, with q constraints
cdef Py_ssize_t constrained_work_size(Py_ssize_t n, Py_ssize_t q) noexcept nogil

# d = argmin of g'd + d'Hd/2 with A (w + d) + b >= 0, all (n,), A of so many columns, H (n, n) by its upper triangle; w
# meets the constraints. The ridge that H needed, as of `solve_upper`; NaN: it is not finite
cdef double constrained_minimum(Py_ssize_t n, const double *upper, const double *g, const double *w,
                                const linear_constraints *of, double *d, double *work) noexcept nogil
