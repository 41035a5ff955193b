"""The stochastic step of one class (SLND eq. 11), shared by the plain and the refreshed pass."""

from cython cimport floating
from libc.stdint cimport int64_t

from cmargin._core.sgd._class_pass cimport class_pass, class_state


cdef void class_steps(
    const class_pass *by,
    class_state *state,         # INOUT
    const floating *Z,          # IN    whitened rows (., width): row i, or, with a ``base``, those of the visits
    const double *base,         # IN    (n_visits,) scores to add, or NULL
    const int64_t *visits,      # IN    (n_visits,) some of the state's
    Py_ssize_t n_visits,
) noexcept nogil
