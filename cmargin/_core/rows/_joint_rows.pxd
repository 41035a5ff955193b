"""The joint hinge's dual: one simplex of dual variables a row; see ``_joint_rows.pyx``."""

from libc.stdint cimport int32_t, int64_t

from cmargin._core.rows._rows cimport FLOAT32, rows_view


cdef extern from "_joint_rows.h" nogil:
    enum:
        LANES_OF_CLASSES

    void row_scores_dense_d(const double *x, const int32_t *columns, Py_ssize_t n, const double *W, Py_ssize_t width,
                            double *z) noexcept
    void row_scores_dense_f(const float *x, const int32_t *columns, Py_ssize_t n, const double *W, Py_ssize_t width,
                            double *z) noexcept
    void row_scores_csr_d(const double *x, const int32_t *columns, Py_ssize_t n, const double *W, Py_ssize_t width,
                          double *z) noexcept
    void row_scores_csr_f(const float *x, const int32_t *columns, Py_ssize_t n, const double *W, Py_ssize_t width,
                          double *z) noexcept
    void row_scores_csr_d_64(const double *x, const int64_t *columns, Py_ssize_t n, const double *W, Py_ssize_t width,
                             double *z) noexcept
    void row_scores_csr_f_64(const float *x, const int64_t *columns, Py_ssize_t n, const double *W, Py_ssize_t width,
                             double *z) noexcept
    void add_row_dense_d(const double *x, const int32_t *columns, Py_ssize_t n, const double *change,
                         const int *moved, Py_ssize_t n_moved, Py_ssize_t width, double *W) noexcept
    void add_row_dense_f(const float *x, const int32_t *columns, Py_ssize_t n, const double *change,
                         const int *moved, Py_ssize_t n_moved, Py_ssize_t width, double *W) noexcept
    void add_row_csr_d(const double *x, const int32_t *columns, Py_ssize_t n, const double *change,
                       const int *moved, Py_ssize_t n_moved, Py_ssize_t width, double *W) noexcept
    void add_row_csr_f(const float *x, const int32_t *columns, Py_ssize_t n, const double *change,
                       const int *moved, Py_ssize_t n_moved, Py_ssize_t width, double *W) noexcept
    void add_row_csr_d_64(const double *x, const int64_t *columns, Py_ssize_t n, const double *change,
                          const int *moved, Py_ssize_t n_moved, Py_ssize_t width, double *W) noexcept
    void add_row_csr_f_64(const float *x, const int64_t *columns, Py_ssize_t n, const double *change,
                          const int *moved, Py_ssize_t n_moved, Py_ssize_t width, double *W) noexcept


cdef struct joint_rows:
    rows_view X
    Py_ssize_t n, m, k, width    # rows, features, classes, and these with zeros behind
    double bias                  # of the column of constants, 0 without
    const int32_t *labels        # IN    (n,)
    const double *upper          # IN    (n,) C_i, what the dual variables of a row add up to
    const double *square         # IN    (n,) |x_i|^2 + bias^2, positive
    const double *mean           # IN    (m,) that every row is seen from, or NULL
    const double *x_dot_mean     # IN    (n,) <x_i, mean>
    double mean_square
    double *held                 # (width,) sum of the changes of W that the mean is still to be taken off for,
    double *constant             # (width,) <mean, W> with these in it
    double *z                    # WORK  (width,) scores of a row, and what its own class lacks 1 of
    double *change               # WORK  (width,) zeros behind the classes
    int *moved                   # WORK  (k,) the classes whose dual variables change
    double n_read                # rows read so far


# z = W'(x_i, bias) + 1 but in the row's own class;  (k,)
cdef void scores_of(joint_rows *rows, Py_ssize_t i, const double *W) noexcept nogil

# around whatever reads or changes W by rows: what belongs to it; and its changes, seen from the mean
cdef void open_weights(joint_rows *rows, const double *W) noexcept nogil
cdef void settle_weights(joint_rows *rows, double *W) noexcept nogil

# W += (x_i, bias) change', of the ``n_moved`` classes in `moved`
cdef void add_change(joint_rows *rows, Py_ssize_t i, Py_ssize_t n_moved, double *W) noexcept nogil

# theta with sum_c max(0, t_c - theta) = mass > 0 over classes of the simplex
cdef double threshold(const double *t, Py_ssize_t k, double mass) noexcept nogil

# the changes of a row's dual variables ``a`` to ``t``'s nearest in its simplex, with the signs that W has of them
cdef Py_ssize_t to_simplex(joint_rows *rows, Py_ssize_t i, const double *t, double *a) noexcept nogil
