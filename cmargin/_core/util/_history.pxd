"""Numbers that compiled code notes down, row after row, in memory of its own, to be freed."""

from libc.stdlib cimport realloc


cdef inline double *history_row(double **history, Py_ssize_t *n_rows, Py_ssize_t *room,
                                Py_ssize_t n_columns) noexcept nogil:
    # the next row, to be written to; NULL: no memory
    cdef double *larger
    if n_rows[0] == room[0]:
        larger = <double *> realloc(history[0], (2 * room[0] + 32) * n_columns * sizeof(double))
        if larger == NULL:
            return NULL
        history[0], room[0] = larger, 2 * room[0] + 32
    n_rows[0] += 1
    return history[0] + (n_rows[0] - 1) * n_columns
