"""An evaluation of the dual over all rows; what is behind it stands in ``_dual_evaluate.pyx``."""

from cmargin._core.rows._dual_rows cimport dual_rows


# argmin over t of sum |code_i| max(0, u_i - y_i t);  key, weight (n,) scratch
cdef double shift_of(Py_ssize_t n, const double *signed_weight, const double *u, double *key,
                     double *weight) noexcept nogil

# argmin over t >= 0 of t^2 square / 2 + sum upper max(0, 1 - t z)
cdef double scale_of(Py_ssize_t n, const double *upper, const double *z, double square, double *key,
                     double *weight) noexcept nogil

# the best multiple of w, at most `largest`, or w as it is for 0, with the best intercept where that is free
cdef struct best_multiple:
    double shift                     # of the intercept
    double scale
    double objective                 # over l2

cdef best_multiple multiple_of(const dual_rows *rows, const double *w, const double *u, double largest,
                               double *room) noexcept nogil          # room (3 n,)


# ---- dual variables with sum a y = 0: those on the face give way, of both classes, then others of the heavier one

cdef struct balancing:
    double *a                        # (n,) a copy that is changed, and
    double *w                        # (m + 1,) its sum a y x
    double missing
    double there                     # of those that give way together,
    double taken                     # and what they gave
    double removed                   # sum of y times that
    bint heavier                     # the positive class is
    bint face                        # those on the face are asked, not all
    Py_ssize_t at                    # the next row

cdef void begin_balancing(balancing *by, const dual_rows *rows, double balance) noexcept nogil
cdef bint balance_part(balancing *by, dual_rows *rows, Py_ssize_t most) noexcept nogil      # False: done
