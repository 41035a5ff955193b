"""SmSVM's driver, and rows in memory, without any Python object: their memory is C's own. See `cmargin.api`.

`cmargin.api` reaches the driver through the functions below and through its `request`, and names no field of its state.
"""

from cmargin._core.losses._point cimport loss_t
from cmargin._core.newton._asking cimport request
from cmargin._core.newton._line cimport line_search
from cmargin._core.newton._state cimport newton_state
from cmargin._core.rows._pass_state cimport row_pass
from cmargin._core.rows._tiles cimport row_source


cdef struct plain_settings:      # what a C program chooses: `cmargin_settings` has the same names
    Py_ssize_t n_rows
    Py_ssize_t n_features
    double total_weight
    int loss                     # a `loss_id`
    bint intercept
    bint penalize_intercept
    bint by_products
    double l2
    double l1
    double tol
    double max_passes
    double max_time
    double smoothing
    double smoothing_decay
    const double *start          # (n_features + intercept,) or NULL


cdef struct plain_result:
    int status                   # a `status_id`
    double passes
    Py_ssize_t n_iter
    double objective
    double gap
    const double *w              # (n_columns,) the best point


cdef struct plain_newton:
    newton_state at
    Py_ssize_t n_rows
    double *vectors
    Py_ssize_t *places
    double *block                # of the last evaluation
    Py_ssize_t block_order       # for which there is memory


cdef struct plain_rows:
    row_pass rows
    double *per_row              # (2, n_rows)
    double *duals                # (2, n_rows), once a loss with a dual was evaluated
    double *sums
    double *gradient


# A driver that has asked its first question. NULL: no memory.
cdef plain_newton *plain_newton_new(const plain_settings *settings) noexcept nogil

# The request that waits for a result, and who receives it.
cdef request *plain_newton_question(plain_newton *newton) noexcept nogil

# (order, order) for the curvature block of an answer, which stays until the next. NULL: no memory.
cdef double *plain_newton_block(plain_newton *newton, Py_ssize_t order) noexcept nogil

cdef plain_result plain_newton_result(const plain_newton *newton) noexcept nogil

# The best point so far is the result; nothing happens to a driver that has ended.
cdef void plain_newton_stop(plain_newton *newton) noexcept nogil
cdef void plain_newton_free(plain_newton *newton) noexcept nogil

cdef plain_rows *plain_rows_new(const row_source *source, Py_ssize_t n_rows, Py_ssize_t n_columns,
                                const double *signed_weight, loss_t loss, int n_threads) noexcept nogil
cdef void plain_rows_free(plain_rows *plain) noexcept nogil

# n and scratch are set; to be freed with `free`
cdef line_search *plain_line_new(Py_ssize_t n, const double *weight) noexcept nogil
