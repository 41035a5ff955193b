"""What all passes over one-vs-rest classes share: the arguments of a pass, and the state of a class (see the .pyx)."""

from libc.stdint cimport int64_t

from cmargin._core.losses._point cimport loss_t
from cmargin._core.rows._rows cimport Rows, rows_view


cdef struct class_state:            # of one class, while a thread takes its steps
    Py_ssize_t c                    # the class
    const int64_t *visits           # IN    (n_visits,) row i for a positive, -1-i for a negative
    Py_ssize_t n_visits
    double step                     # eta, where the kind of step has one
    double bias_rate                # beta of the intercept, 0 without one
    double tail_inverse             # 1 / d_{k+1} where CSR rows carry the tail, else 0
    void *u                         # INOUT (width,) whitened weights
    void *u_mean                    # INOUT (width,) their running mean, where ``average``
    void *v                         # INOUT (n_features,) sum of changes times rows, or NULL
    void *v_lag                     # INOUT (n_features,) what the running mean of v lacks, or NULL
    double bias, bias_mean          # INOUT intercept and its running mean
    int64_t n_steps                 # INOUT steps so far, also those of earlier passes
    double loss, errors, weight     # INOUT weighted sums over the visits


cdef struct class_pass:             # what all classes and threads share
    const rows_view *X
    Py_ssize_t n_classes
    const double *row_weight        # IN    (n_rows,), or NULL for ones
    loss_t loss
    double *sums                    # INOUT (n_classes, 3) loss, errors and weight of the visits: added to
    Py_ssize_t item_size            # bytes of a number of the weights: they are floats or doubles, as the rows
    bint average                    # whether a running mean is kept
    Py_ssize_t width                # numbers of one class's u
    void *U                         # INOUT (n_classes, width)
    void *U_mean                    # INOUT (n_classes, width) where ``average``
    void *V                         # INOUT (n_classes, n_features), or NULL
    void *V_lag                     # INOUT (n_classes, n_features), or NULL
    double *bias                    # INOUT (n_classes, 2) intercept and its running mean, or NULL
    int64_t *n_steps                # INOUT (n_classes,)
    const double *bias_rate         # IN    (n_classes or 1,)
    const double *tail_inverse      # IN    (n_classes or 1,)
    Py_ssize_t rate_stride          # entries of bias_rate from one class to the next: 0 where one is for all
    Py_ssize_t inverse_stride       # likewise of tail_inverse, and of what else belongs to an inverse
    double low_sign                 # +1, or -1 where CSR rows carry the tail
    # the part of the pass at work
    const int64_t *offsets          # IN    (n_lists + 1,), list o is that of class class_lo + o
    const int64_t *visits           # IN    (offsets[n_lists],)
    Py_ssize_t n_lists, class_lo
    Py_ssize_t first, last          # of each list, visits first .. last - 1
    const void *own                 # arguments of the kind of step, see below


# Steps of one class, u being its (width,) weights; a kind of step is one fused function, given in both its types
ctypedef void (*single_steps)(const class_pass *by, class_state *now, int thread, float *u) noexcept nogil
ctypedef void (*double_steps)(const class_pass *by, class_state *now, int thread, double *u) noexcept nogil


cdef class Visits:
    cdef const int64_t[::1] offsets, visits
    cdef Py_ssize_t class_lo


cdef class ClassPass:
    cdef class_pass at
    cdef object kept                # arrays that ``at`` points into

    # a copy of ``at`` for the visits first .. last - 1 of each list
    cdef class_pass part(self, Visits visits, Py_ssize_t first, Py_ssize_t last, const void *own) except *


# the steps of all lists of a part, shared out by class
cdef void take_steps(class_pass *by, single_steps of_single, double_steps of_double, int n_threads) noexcept nogil


cdef inline Py_ssize_t row_of(int64_t visit) noexcept nogil:
    return visit if visit >= 0 else -1 - visit
