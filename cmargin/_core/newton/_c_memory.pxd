"""SmSVM's driver, and rows in memory, without any Python object: their memory is C's own. See `cmargin.api`."""

from cmargin._core.newton._line cimport line_search
from cmargin._core.newton._driver cimport newton_state
from cmargin._core.rows._evaluate cimport row_pass
from cmargin._core.rows._tiles cimport row_source


cdef struct plain_newton:
    newton_state at
    double *vectors
    Py_ssize_t *places
    unsigned char *flags
    double *block                # of the last look told
    Py_ssize_t block_order       # for which there is memory


cdef struct plain_rows:
    row_pass rows
    double *per_row              # (2, n_rows)
    double *duals                # (2, n_rows), once a loss with a dual was looked at
    double *sums
    double *gradient


# NULL: no memory. ``prepared``: p, free, l2, l1 and what the user chose; everything else is set here
cdef plain_newton *plain_newton_new(const newton_state *prepared) noexcept nogil
cdef bint plain_newton_has_block(plain_newton *newton, Py_ssize_t order) noexcept nogil
cdef void plain_newton_free(plain_newton *newton) noexcept nogil

cdef plain_rows *plain_rows_new(const row_source *source, Py_ssize_t n_rows, Py_ssize_t n_columns, const double *code,
                                int loss, int n_threads) noexcept nogil
cdef void plain_rows_free(plain_rows *plain) noexcept nogil

# n and scratch are set; to be freed with `free`
cdef line_search *plain_line_new(Py_ssize_t n) noexcept nogil
