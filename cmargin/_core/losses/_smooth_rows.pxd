"""Losses that are smooth themselves, for one margin and for many rows; formulas stand in ``_smooth_rows.h``."""

from cmargin._core.losses._point cimport point


cdef extern from "_smooth_rows.h" nogil:
    ctypedef struct smooth_point:
        double value
        double slope
        double curvature
    smooth_point logistic_at(double z) noexcept
    double logistic_gain_at(double a) noexcept
    smooth_point squared_hinge_at(double z) noexcept
    double squared_hinge_gain_at(double a) noexcept
    smooth_point huberised_hinge_at(double z, double delta, double scale) noexcept
    double huberised_hinge_gain_at(double a, double delta, double scale) noexcept
    void logistic_rows(double step, double floor, Py_ssize_t n, const double *signed_weight, const double *slack,
                       const double *change, double *dual_next, double *parts, Py_ssize_t ld, double *r,
                       double *curvature) noexcept
    void squared_hinge_rows(double step, double floor, Py_ssize_t n, const double *signed_weight, const double *slack,
                            const double *change, double *dual_next, double *parts, Py_ssize_t ld, double *r,
                            double *curvature) noexcept
    void huberised_hinge_rows(double delta, double scale, double step, double floor, Py_ssize_t n,
                              const double *signed_weight, const double *slack, const double *change,
                              double *dual_next, double *parts, Py_ssize_t ld, double *r, double *curvature) noexcept
    void logistic_curvatures(double step, double floor, Py_ssize_t n, const double *signed_weight, const double *slack,
                             const double *change, double *curvature) noexcept
    void squared_hinge_curvatures(double step, double floor, Py_ssize_t n, const double *signed_weight,
                                  const double *slack, const double *change, double *curvature) noexcept
    void huberised_hinge_curvatures(double delta, double scale, double step, double floor, Py_ssize_t n,
                                    const double *signed_weight, const double *slack, const double *change,
                                    double *curvature) noexcept
    void logistic_line(Py_ssize_t n, const double *signed_weight, const double *slack, const double *change,
                       double step, double *out) noexcept
    void squared_hinge_line(Py_ssize_t n, const double *signed_weight, const double *slack, const double *change,
                            double step, double *out) noexcept
    void huberised_hinge_line(double delta, double scale, Py_ssize_t n, const double *signed_weight,
                              const double *slack, const double *change, double step, double *out) noexcept
    double logistic_gains(Py_ssize_t n, const double *signed_weight, const double *first_a, const double *second_a,
                          double part) noexcept
    double squared_hinge_gains(Py_ssize_t n, const double *signed_weight, const double *first_a,
                               const double *second_a, double part) noexcept
    double huberised_hinge_gains(double delta, double scale, Py_ssize_t n, const double *signed_weight,
                                 const double *first_a, const double *second_a, double part) noexcept
    smooth_point squared_epsilon_insensitive_at(double z, double length) noexcept
    double squared_epsilon_insensitive_gain_at(double a, double length) noexcept
    smooth_point huber_at(double z, double length) noexcept
    double huber_gain_at(double a, double length) noexcept
    void squared_epsilon_insensitive_rows(double length, double step, double floor, Py_ssize_t n,
                                          const double *signed_weight, const double *slack, const double *change,
                                          double *dual_next, double *parts, Py_ssize_t ld, double *r,
                                          double *curvature) noexcept
    void squared_epsilon_insensitive_curvatures(double length, double step, double floor, Py_ssize_t n,
                                                const double *signed_weight, const double *slack, const double *change,
                                                double *curvature) noexcept
    void squared_epsilon_insensitive_line(double length, Py_ssize_t n, const double *signed_weight,
                                          const double *slack, const double *change, double step, double *out) noexcept
    void huber_rows(double length, double step, double floor, Py_ssize_t n, const double *signed_weight,
                    const double *slack, const double *change, double *dual_next, double *parts, Py_ssize_t ld,
                    double *r, double *curvature) noexcept
    void huber_curvatures(double length, double step, double floor, Py_ssize_t n, const double *signed_weight,
                          const double *slack, const double *change, double *curvature) noexcept
    void huber_line(double length, Py_ssize_t n, const double *signed_weight, const double *slack,
                    const double *change, double step, double *out) noexcept


cdef inline point as_point(smooth_point there) noexcept nogil:
    cdef point at
    at.value, at.slope, at.curvature = there.value, there.slope, there.curvature
    return at
