"""Sorting without the interpreter: values with their places; equal values in the order of their places."""

# values (n,) ascending, index (n,) moved with them
cdef void sort_with_index(Py_ssize_t n, double *values, Py_ssize_t *index) noexcept nogil

# values (n,) descending
cdef void sort_down(Py_ssize_t n, double *values) noexcept nogil
