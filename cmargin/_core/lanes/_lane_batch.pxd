"""Many binary problems of the squared hinge side by side; what is behind them stands in ``_lane_batch.pyx``."""

from libc.stdint cimport int32_t, int64_t

from cmargin._core.rows._rows cimport rows_view


cdef extern from "_lanes.h" nogil:
    void lane_products(const int64_t *starts, const int32_t *columns, const float *values, Py_ssize_t n, const float *W,
                       float *out) noexcept
    void lane_line(Py_ssize_t n, const float *T, const float *Q, const float *Y, const float *s,
                   const float *t, const float *b, double *sums) noexcept
    void lane_slopes(Py_ssize_t n, float *T, const float *Q, const float *Y, const float *s,
                     const float *t, const float *b, float *R) noexcept
    void lane_gradient(Py_ssize_t m, const float *t, const float *D, float l2, float share, float *W,
                       float *G) noexcept
    void lane_dots(Py_ssize_t m, const float *A, const float *B, double *sums) noexcept
    void lane_turn(Py_ssize_t m, const float *beta, const float *Z, float *D) noexcept
    void lane_mask(Py_ssize_t m, const float *M, float *A) noexcept
    void lane_keep(Py_ssize_t n, const float *keep, float *A) noexcept
    void lane_scale(Py_ssize_t m, const float *scale, const float *G, float *Z) noexcept
    void proven_line(Py_ssize_t n, const double *T, const float *Y, const double *s, const double *b,
                     double *sums) noexcept
    void proven_slopes(Py_ssize_t n, double *T, const float *Y, const double *s, const double *b, const double *kept,
                       double *sums) noexcept


cdef struct single_rows:             # the rows and their columns in single precision, shared by all batches
    Py_ssize_t n
    Py_ssize_t m
    const int64_t *starts            # by rows
    const int32_t *columns
    const float *values
    const int64_t *column_starts     # by columns
    const int32_t *column_rows
    const float *column_values


cdef enum:                           # the first two stand in ``_lanes.h`` too
    LANES = 16                       # problems that one vector instruction serves, in single precision
    PROVEN = 8                       # problems that are certified side by side, in double


cdef enum batch_stage:
    STEPS, PROOFS, ENDED


cdef struct lane_batch:
    const single_rows *rows
    const rows_view *X               # as it was given: what is certified is evaluated on it
    const double *s                  # (n,) weights of the rows, of mean 1
    const float *s_single
    const int64_t *positive_starts   # (n_labels + 1,) places in
    const int64_t *positives         # the rows that have a label
    const float *inverse             # (m, m) of the curvature that all problems share, or NULL:
    const float *scale               # (m,) that of its diagonal
    const float *start               # (n_labels, m) the first directions, outside of whose entries w stays 0, or NULL
    double l2
    double l2_bias                   # 0 where the intercept is free
    bint intercept
    double tol
    Py_ssize_t most                  # steps of a problem
    # ---- problems of this batch: 0 .. last - 1, of which `next` is the first that has no lane yet
    Py_ssize_t last
    Py_ssize_t next
    Py_ssize_t proving               # the first that has no certificate yet
    bint proven                      # whether they are to have one
    batch_stage stage
    # ---- (m, LANES) and (n, LANES); numbers for every lane
    float *W
    float *D
    float *G
    float *before
    float *Z
    float *M                    # 1 where a weight may be other than 0, else 0; with ``start`` alone
    float *T
    float *Q
    float *Y
    float *R
    Py_ssize_t label[LANES]     # -1: idle
    Py_ssize_t steps[LANES]
    bint fresh[LANES]           # whether no direction was taken yet
    bint given[LANES]           # whether D is where to start, and Q not yet its scores
    float t[LANES]
    float b[LANES]
    float beta[LANES]
    double loss[LANES]          # sum s u+^2 at the end of the line
    double length[LANES]        # <Z, G> of the last step
    # ---- (m, PROVEN) and (n, PROVEN), in double precision
    double *V
    double *P
    # ---- OUT
    float *w_of                      # (n_labels, m)
    double *b_of                     # (n_labels,)
    Py_ssize_t *steps_of
    Py_ssize_t *active_of
    double *objective_of
    double *dual_of


cdef void batch_work(void *of, double until) noexcept nogil
