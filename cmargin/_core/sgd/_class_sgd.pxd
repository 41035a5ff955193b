"""The stochastic step of one class (SLND eq. 11), shared by the plain and the refreshed pass."""

from cython cimport floating
from libc.stdint cimport int64_t

from cmargin._core.rows._rows cimport rows_view


cdef struct step_rule:          # what one class keeps through a pass
    int loss
    double step                 # eta
    double bias_rate            # beta of the intercept, 0 without one
    double low_sign             # +1, or -1 where CSR rows carry the tail
    double tail_inverse         # 1 / d_{k+1} where CSR rows carry the tail, else 0


cdef struct class_state:        # what one class changes
    double bias
    double bias_mean
    int64_t n_steps


cdef struct pass_sums:
    double loss
    double errors
    double weight


cdef void class_steps(
    const step_rule *rule,
    const floating *Z,          # IN    whitened rows (., width): row i, or position t where by_position
    Py_ssize_t width,
    bint by_position,
    const rows_view *X,         # IN    read where rule.tail_inverse > 0
    const double *row_weight,   # IN    (n_rows,) or NULL for ones
    const double *base,         # IN    (n_visits,) scores to add, or NULL
    const int64_t *visits,      # IN    (n_visits,) row, or -1-row for a negative
    Py_ssize_t n_visits,
    floating *u,                # INOUT (width,)
    floating *u_mean,           # INOUT (width,) running mean, or NULL
    floating *v,                # INOUT (n_features,) sum of changes times rows, or NULL
    floating *v_lag,            # INOUT (n_features,) what the mean of v lacks (tail_mean), or NULL
    class_state *state,         # INOUT
    pass_sums *sums,            # INOUT added to
) noexcept nogil
