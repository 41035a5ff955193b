"""What is known of the point where SmSVM's driver is; see ``_point.pyx``."""

from cmargin._core.newton._bound cimport relative_gap
from cmargin._core.newton._state cimport newton_state


cdef inline double slope_of_penalty(const newton_state *at, Py_ssize_t j, double w) noexcept nogil:
    # of its quadratic part and of linearised rows, in column j
    return at.penalty.step.l2_each[j] * w - (at.linearised.linear[j] if at.linearised.linear != NULL else 0)


cdef inline double gap_of(const newton_state *at) noexcept nogil:
    return relative_gap(at.bound.objective, at.bound.best_dual)


cdef inline double smoothing_error(const newton_state *at) noexcept nogil:
    # how much the smoothed objective is too large at the present width and point
    return at.point.sums[3] - at.point.sums[2]


# The penalty of the steps at w, that of linearised rows with it; and how much of it the user's penalty has not.
cdef double penalty_of(const newton_state *at, const double *w) noexcept nogil
cdef double penalty_of_path(const newton_state *at) noexcept nogil

# What rounding may do to the objective in a product of the rows with e.
cdef double rounding_of(const newton_state *at, const double *e) noexcept nogil

# Whether none is left for another look and, where columns' sizes are not known, for the evaluation at the end.
cdef bint no_read_left(const newton_state *at) noexcept nogil

# The curvature of a row below which it stays out of the block; 0: every row counts.
cdef double floor_of(const newton_state *at) noexcept nogil

# The sums of a look, per weight, with the bound that its dual variables make; the gradient is that of the loss alone.
cdef void take_sums(newton_state *at, const double *sums, const double *gradient, double *block) noexcept nogil

# The look is at w, after a step of that length: its objective, gradient and bound, a row of the history, the status.
cdef void after_look(newton_state *at, double step) noexcept nogil

# Whether that is enough, or all that there may be: the status.
cdef void judge(newton_state *at) noexcept nogil

# The columns' sizes by the diagonal of their curvature, one entry every ``stride``, where w = 0.
cdef void measure_columns(newton_state *at, const double *curvature, Py_ssize_t stride) noexcept nogil

# The objective at the best point, from the rows as given, and the columns' sizes.
cdef void take_evaluation(newton_state *at, double loss, const double *squares) noexcept nogil
