"""What is known of the point where the driver is; see ``_point.pyx``."""

from cmargin._core.newton._bound cimport dual_point, relative_gap
from cmargin._core.newton._one_class cimport is_one_class, one_class_gap, one_class_scale, one_class_slope
from cmargin._core.newton._state cimport FIRST_EVALUATION, FRESH_EVALUATION, newton_state
from cmargin._core.util._clock cimport seconds


cdef inline double slope_of_penalty(const newton_state *at, Py_ssize_t j, double w) noexcept nogil:
    # of its quadratic part, of linearised rows and of a one-class problem's linear term, in column j
    cdef double slope = at.penalty.step.l2_each[j] * w
    slope -= at.linearised.linear[j] if at.linearised.linear != NULL else 0
    return slope + one_class_slope(at, j) if is_one_class(at) else slope


cdef inline double at_work(const newton_state *at) noexcept nogil:
    # a clock that stands still while others are at work
    return seconds() - at.ask.away


cdef inline double gap_between(const newton_state *at, double objective, double dual) noexcept nogil:
    return one_class_gap(&at.one_class, objective, dual) if is_one_class(at) else relative_gap(objective, dual)


cdef inline double objective_size(const newton_state *at) noexcept nogil:
    # what the gap is relative to
    return one_class_scale(&at.one_class, at.bound.best_dual) if is_one_class(at) else at.bound.objective


cdef inline double gap_of(const newton_state *at) noexcept nogil:
    # how far the best point is from the optimum: what `tol` is of
    return at.bound.gradient_norm if at.stop.by_gradient else gap_between(at, at.bound.objective, at.bound.best_dual)


cdef inline bint is_counted(const newton_state *at) noexcept nogil:
    # whether callers are shown the evaluation: in a fit that ends by the gradient, only one that ends a step
    return not at.stop.by_gradient or (at.phase != FIRST_EVALUATION and at.phase != FRESH_EVALUATION)


cdef inline double smoothing_error(const newton_state *at) noexcept nogil:
    # how much the smoothed objective is too large at the present width and point
    return at.point.sums[3] - at.point.sums[2]


# The penalty of the steps at w, that of linearised rows with it; and how much of it the user's penalty has not.
cdef double penalty_of(const newton_state *at, const double *w) noexcept nogil
cdef double penalty_of_path(const newton_state *at) noexcept nogil

# What rounding may do to the objective in a product of the rows with e.
cdef double rounding_of(const newton_state *at, const double *e) noexcept nogil

# What `max_passes` leaves for products with the rows in a step, its evaluation not counted; and whether it leaves no
# step. By the gradient passes are steps.
cdef double reads_for_products(const newton_state *at) noexcept nogil
cdef bint no_read_left(const newton_state *at) noexcept nogil

# Whether the diagonal of the curvature that scales products is known without a read, from where it was summed.
cdef inline bint foresees_diagonal(const newton_state *at) noexcept nogil:
    return at.pcg.products_limit > 0 and at.pcg.mean_then > 0 and at.curvature.mean > 0

# The curvature of a row below which it stays out of the block; 0: every row counts.
cdef double floor_of(const newton_state *at) noexcept nogil

# The sums of an evaluation, per weight, with the bound that its dual variables make;
# the gradient is that of the loss alone.
cdef void take_sums(newton_state *at, const double *sums, const double *gradient, double *block) noexcept nogil

# Numbers of a row of the history: SmSVM's, then, where margins are traced, the seconds of that and its numbers.
cdef Py_ssize_t history_columns(const newton_state *at) noexcept nogil
cdef void record_margins(newton_state *at) noexcept nogil

# After the first evaluation of a fit by the gradient: the norm at w = 0.
cdef void measure_gradient_at_zero(newton_state *at) noexcept nogil

# The evaluation is at w, after a step of that length: its objective, gradient and bound, a row of the history,
# the status.
cdef void after_evaluation(newton_state *at, double step) noexcept nogil

# Whether that is enough, or all that there may be: the status.
cdef void judge(newton_state *at) noexcept nogil

# The columns' sizes by the diagonal of their curvature, one entry every ``stride``, where w = 0.
cdef void measure_columns(newton_state *at, const double *curvature, Py_ssize_t stride) noexcept nogil

# The objective at the best point, from the rows as given, and the columns' sizes.
cdef void take_objective(newton_state *at, double loss, const double *squares) noexcept nogil

# D of a dual point, with |v_j| + noise_j, noise (n,) or NULL; `point.scratch` is written to.
cdef double bound_of(newton_state *at, const dual_point *of, const double *noise) noexcept nogil

# S of the best dual variables, less what rounding of a balance may cost.
cdef double total_held(const newton_state *at) noexcept nogil
