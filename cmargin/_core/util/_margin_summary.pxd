"""A margin distribution in a handful of numbers, without the interpreter; ``_margin_summary.pyx`` says why."""


cdef enum:
    N_TRACED = 6                         # beside the quantiles


cdef struct margin_sample:
    Py_ssize_t n
    const double *q                      # IN    (n,), finite
    Py_ssize_t n_levels
    const double *levels                 # IN    (n_levels,), between 0 and 1
    double *quantiles                    # OUT   (n_levels,)
    double *places                       # WORK  (2 n_levels + 2,)
    double *work                         # WORK  (n,)


cdef struct margin_numbers:              # as `margin_summary` names them
    Py_ssize_t n_samples
    double mean
    double median
    double location
    double scale
    double variance
    double skewness
    double share_nonpositive


# What a trace keeps of q (n,), n >= 1: mean, median, location at ``scale`` > 0, variance, skewness, quantiles, share
# of q <= 0 in out (N_TRACED + n_levels,); work (n + 2 n_levels + 2,)
cdef void trace_margins(Py_ssize_t n, const double *q, double scale, Py_ssize_t n_levels, const double *levels,
                        double *out, double *work) noexcept nogil
