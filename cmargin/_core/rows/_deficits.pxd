"""Deficits of rows after products with them (see ``_deficits.h``)."""


cdef extern from "_deficits.h" nogil:
    void deficits_move(Py_ssize_t n, const double *code, double pending, const double *product, double *deficit,
                       double *change) noexcept
    void hinge_losses(Py_ssize_t n, const double *code, const double *product, double *loss, double *weight) noexcept
