"""The dual over a few rows whose products with each other lie side by side; see ``_gram_block.pyx``."""


cdef struct gram_block:
    Py_ssize_t m                     # rows; all arrays are theirs, matrices row by row
    bint free                        # sum s = 0 is kept: the intercept is not penalised
    double balance                   # sum s of all rows, listed here or not
    const double *Q                  # (m, m) products of the rows
    double rounding                  # in Q, as a part of the largest of them
    const double *low                # (m,) bounds of s, one of them 0
    const double *high
    const double *ridge              # (m,)
    double *s                        # (m,) a y
    double *p                        # (m,) slopes in s, y - sum_k s_k Q_k - ridge s
    double *factor                   # (m, m), (m,), (m,) scratch
    double *ahead
    double *level
    Py_ssize_t *face                 # (m,) scratch


# towards the maximum, until the duality gap over these rows is ``enough`` or no step gains; steps of pairs taken
cdef Py_ssize_t solve_block(gram_block *at, double enough) noexcept nogil
