"""Sorting without the interpreter: values with their places; equal values in the order of their places."""

# values (n,) ascending, index (n,) moved with them; index may be NULL
cdef void sort_with_index(Py_ssize_t n, double *values, Py_ssize_t *index) noexcept nogil

# values (n,) descending
cdef void sort_down(Py_ssize_t n, double *values) noexcept nogil

# values (n,) so rearranged that values[k] is what sorting would put there, for every k in places (n_places,): whole
# numbers from 0 to n - 1, ascending, which may repeat
cdef void sort_places(Py_ssize_t n, double *values, Py_ssize_t n_places, const double *places) noexcept nogil
