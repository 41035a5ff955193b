"""Rows of one binary problem as its dual variables see them; what is behind it stands in ``_dual_rows.pyx``."""

from cmargin._core.rows._tiles cimport row_source


cdef enum:
    AHEAD = 4                        # rows asked for before they are needed,
    FAR_AHEAD = 8                    # and before that what is kept of a row, and where it begins


cdef struct dual_rows:               # nothing is copied
    row_source source
    Py_ssize_t n                     # dual variables: one a row of the source, or two, the second n_source places on
    Py_ssize_t n_source
    Py_ssize_t m                     # features; vectors of columns have m + 1 numbers
    const double *signed_weight      # (n,) sample weight with the sign of the class; 0 counts as positive
    const double *upper              # (n,) largest dual variables; may be infinite where ridge > 0
    const double *ridge              # (n,) bend of the gain, target a - ridge a^2 / 2; 0: the hinge
    const double *target             # (n,) slacks at w = 0; NULL: 1
    const double *square             # (n,) |x - mean|^2 + bias^2 + ridge, positive
    double bias                      # of the column of constants, 0 without an intercept
    bint free                        # whether the weight of that column is not penalised
    bint smooth                      # whether there are ridges
    double density                   # part of the entries that is stored
    const double *mean               # (m,) where rows are seen from; NULL: from 0
    const double *x_dot_mean         # (n,) <x, mean>, zeros without
    double mean_square
    double sum                       # what sum a y is to be where the bias is free: above 0 of one class,
    double beyond                    # whose gaps are relative to this less the dual value,
    double least                     # and at least to this
    Py_ssize_t n_read                # rows read so far


cdef inline double target_of(const dual_rows *rows, Py_ssize_t i) noexcept nogil:
    return 1 if rows.target == NULL else rows.target[i]


# the row of the source that a dual variable stands for
cdef inline Py_ssize_t row_of(const dual_rows *rows, Py_ssize_t i) noexcept nogil:
    return i if i < rows.n_source else i - rows.n_source


# what a dual variable adds to the bound, before |w|^2 / 2 is taken off
cdef inline double gain_of(const dual_rows *rows, Py_ssize_t i, double a) noexcept nogil:
    return a * (target_of(rows, i) - rows.ridge[i] * a / 2)


# the dual variable that a slack u points to, argmax over 0 <= a <= upper of a u - ridge a^2 / 2
cdef inline double pointed_to(double u, double upper, double ridge) noexcept nogil:
    if not u > 0:
        return 0
    return min(u / ridge, upper) if ridge > 0 else upper


# max over 0 <= a <= upper of a u - ridge a^2 / 2: the loss at a row of slack u
cdef inline double loss_at(double u, double upper, double ridge) noexcept nogil:
    cdef double a = pointed_to(u, upper, ridge)
    return a * (u - ridge * a / 2)


# the row's part of the duality gap, at least 0
cdef inline double gap_at(double u, double a, double upper, double ridge) noexcept nogil:
    return loss_at(u, upper, ridge) - a * (u - ridge * a / 2)


cdef class DualBlocks:
    cdef dual_rows rows
    cdef tuple keep
    cdef int must_list(self, const Py_ssize_t[::1] listed, const double[::1] v) except -1


# rows of a list, or all for NULL, of which lo .. hi - 1 are read

# out_k = y_i <(x_i - mean, bias), v>, i = list[k]
cdef void dual_products(dual_rows *rows, const Py_ssize_t *listed, Py_ssize_t lo, Py_ssize_t hi, const double *v,
                        double *out) noexcept nogil

# v += sum_k c_k y_i (x_i, 0); returns sum_k c_k y_i, which `add_rest` wants when all are added
cdef double add_listed(dual_rows *rows, const Py_ssize_t *listed, Py_ssize_t lo, Py_ssize_t hi, const double *c,
                       double *v) noexcept nogil
cdef void add_rest(const dual_rows *rows, double total, double *v) noexcept nogil

# <v, mean>, and v -= times mean
cdef double mean_product(const dual_rows *rows, const double *v) noexcept nogil
cdef void take_mean(const dual_rows *rows, double times, double *v) noexcept nogil

# rows read so far, in reads of all rows
cdef inline double reads_of(const dual_rows *rows) noexcept nogil:
    return <double> rows.n_read / max(1, rows.n_source)
