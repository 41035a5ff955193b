"""Slacks of rows after products with them (see ``_slacks.h``)."""


cdef extern from "_slacks.h" nogil:
    void slacks_move(Py_ssize_t n, const double *signed_weight, double pending, const double *product, double *slack,
                     double *change) noexcept
    void slacks_settle(Py_ssize_t n, double step, double *slack, double *change) noexcept
    void hinge_losses(Py_ssize_t n, const double *signed_weight, const double *offset, const double *product,
                      double *loss, double *weight) noexcept
