"""Rows with a softmax risk posed on them: what a pass over their blocks needs, and the passes (see the .pyx)."""

from cython cimport floating
from libc.stdint cimport int64_t

from cmargin._core.rows._rows cimport Rows, rows_view


cdef enum task:
    RISK = 0            # scores from V, probabilities, gradient
    RISK_OF_SCORES = 1  # the same from scores that are there already
    CURVATURE = 2       # Hessian times V, at the probabilities that are there
    PRODUCTS = 3        # scores from V, nothing else
    INTERCEPTS = 4      # from scores that are there: probabilities, and the gradient's last row only
    LINE = 5            # risk, slope and curvature at scores + step change
    MOVE = 6            # scores += step change

cdef enum:
    N_SUMS = 8          # numbers of a block, a cache line: risk, entropy; or risk, slope and curvature on a line
    CURVATURE_ROWS = 256    # rows of probabilities multiplied at a time


cdef struct softmax_plan:
    rows_view X
    bint intercept
    bint few                    # classes, of dense rows: their products go without gemm
    Py_ssize_t n_classes
    Py_ssize_t n_columns        # n_features + intercept
    Py_ssize_t tile             # rows
    Py_ssize_t n_blocks
    int n_threads
    const int64_t *labels       # IN    (n_rows,)
    const double *weight        # IN    (n_rows,), mean 1
    const int64_t *bounds       # IN    (n_blocks + 1,) of rows
    double *gradients           # OUT   (n_blocks, n_columns, n_classes)
    double *sums                # OUT   (n_blocks, N_SUMS)
    void *copy                  # WORK  of every thread, of the type of the products: (tile, n_features),
    void *residual              # WORK  (tile + 1, n_classes),
    void *transposed            # WORK  (n_classes, n_features) weights of few classes,
    void *partial               # WORK  (n_columns, n_classes), zeros between passes; features transposed for few
    Py_ssize_t copy_size, residual_size, transposed_size, partial_size  # from one thread's to the next one's


# one ``task`` over blocks first .. last - 1, into their gradients and sums
cdef void softmax_blocks(
    const softmax_plan *plan,
    int what,
    const floating *V,          # IN    (n_columns, n_classes)
    floating *scores,           # INOUT (n_rows, n_classes)
    floating *probs,            # INOUT (n_rows, n_classes)
    Py_ssize_t first,
    Py_ssize_t last,
) noexcept nogil

# risk, its slope and its curvature at scores + step change, into the sums of these blocks
cdef void softmax_line(const softmax_plan *plan, double step, const floating *scores, const floating *change,
                       Py_ssize_t first, Py_ssize_t last) noexcept nogil

# scores += step change, in these blocks
cdef void softmax_move(const softmax_plan *plan, double step, floating *scores, const floating *change,
                       Py_ssize_t first, Py_ssize_t last) noexcept nogil

# one of the sums, over blocks in their order, divided by n_rows
cdef double softmax_mean(const softmax_plan *plan, Py_ssize_t which) noexcept nogil

# mean of diag(p) - p p' by weight, over every ``stride``-th row
cdef void softmax_class_curvature(
    const floating *probs,      # IN    (n, k)
    const double *weight,       # IN    (n,)
    Py_ssize_t n,
    Py_ssize_t k,
    Py_ssize_t stride,
    double *A,                  # OUT   (k, k), upper triangle
    double *room,               # WORK  (CURVATURE_ROWS + 1, k)
) noexcept nogil


cdef class SoftmaxRows:
    cdef softmax_plan plan
    cdef readonly Rows rows
    cdef readonly Py_ssize_t n_blocks, n_columns
    cdef readonly bint here             # the rows are
    cdef readonly bint labelled         # labels and weights are
    cdef readonly object bounds, gradients, sums
    cdef object _labels, _weight, _room
    cdef int use_type(self, dtype) except -1
