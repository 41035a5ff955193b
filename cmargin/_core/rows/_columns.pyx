"""An intercept is no column of the rows: it goes by the sums over them. One that is not penalised is minimised out as
the others move, d_b = -(g_b + sum across d) / total, so that columns with a mean meet as if they were centred.
"""

from libc.float cimport DBL_EPSILON
from libc.stdint cimport int64_t
from libc.string cimport memset

from cmargin._core.rows._csr cimport csr_axpy, csr_axpy_weighted, csr_dot, csr_moments, index_t, real_t
from cmargin._core.small._soft_threshold cimport l1_minimum_of_one


cdef void begin_at_zero(step_model *at, columns_view *of) noexcept nogil:
    cdef Py_ssize_t i, j
    at.total = at.crossed = at.read = 0
    for i in range(of.X.n_features):
        at.total += of.weight[i]
        of.product[i] = 0
    memset(at.d, 0, at.p * sizeof(double))
    for j in range(at.p):
        at.curvature[j] = -1
    if at.free:
        at.total = at.total if at.total > 0 else 1          # no row has curvature: a plain gradient step
        let_intercept_follow(at)


cdef inline void let_intercept_follow(step_model *at) noexcept nogil:
    at.d[at.intercept] = -(at.g[at.intercept] + at.crossed) / at.total


# ---------------------------------------------------------------- coordinate descent

cdef inline void move_column(step_model *at, columns_view *of, Py_ssize_t j, const real_t *values,
                             const index_t *rows, Py_ssize_t n) noexcept nogil:
    cdef double slope = at.g[j] + at.l2[j] * at.d[j], curvature, x = at.w[j] + at.d[j], to, step
    if at.curvature[j] < 0:
        csr_moments(values, rows, n, of.weight, &at.across[j], &at.curvature[j])
    slope += csr_dot(values, rows, n, of.product)
    curvature = at.curvature[j] + at.l2[j]
    if at.intercept >= 0:
        slope += at.across[j] * at.d[at.intercept]
    if at.free:                                  # what is left of it; what the difference cannot know is its rounding
        curvature += DBL_EPSILON * curvature - at.across[j] * at.across[j] / at.total
    at.worst = max(at.worst, violation(slope, x, at.l1[j]) / at.l1[j])
    if not curvature > 0:
        return
    to = l1_minimum_of_one(curvature, x, slope, at.l1[j])
    step = to - x
    if step == 0:
        return
    at.d[j] = to - at.w[j]
    csr_axpy_weighted(step, values, rows, n, of.weight, of.product)
    at.crossed += step * at.across[j]
    if at.free:
        let_intercept_follow(at)


cdef void move_intercept(step_model *at) noexcept nogil:
    # one that is penalised
    cdef Py_ssize_t j = at.intercept
    cdef double x = at.w[j] + at.d[j], curvature = at.total + at.l2[j]
    cdef double slope = at.g[j] + at.crossed + curvature * at.d[j]
    at.worst = max(at.worst, violation(slope, x, at.l1[j]) / at.l1[j])
    if curvature > 0:
        at.d[j] = l1_minimum_of_one(curvature, x, slope, at.l1[j]) - at.w[j]


# ---------------------------------------------------------------- listed columns, of any type

cdef enum work:
    SWEEP, SLOPES, IMAGE, PRODUCTS


cdef void read_columns(work what, step_model *at, columns_view *of, const real_t *values, const index_t *rows,
                       const Py_ssize_t *listed, Py_ssize_t n_listed, const double *v, double *out) noexcept nogil:
    cdef Py_ssize_t k, j, n
    cdef int64_t lo
    for k in range(n_listed):
        j = listed[k]
        lo, n = of.X.starts[j], of.X.starts[j + 1] - of.X.starts[j]
        at.read += n if what != IMAGE else 0                # with the product that follows it is one
        if what == SWEEP:
            move_column(at, of, j, values + lo, rows + lo, n)
        elif what == SLOPES:
            out[j] = csr_dot(values + lo, rows + lo, n, of.product)
        elif what == PRODUCTS:
            out[j] = csr_dot(values + lo, rows + lo, n, of.other)
        elif v[j] != 0:
            csr_axpy(v[j], values + lo, rows + lo, n, of.other)


cdef void read_listed(work what, step_model *at, columns_view *of, const Py_ssize_t *listed, Py_ssize_t n,
                      const double *v, double *out) noexcept nogil:
    if of.single and of.X.columns != NULL:
        read_columns(what, at, of, <const float *> of.X.values, of.X.columns, listed, n, v, out)
    elif of.single:
        read_columns(what, at, of, <const float *> of.X.values, of.X.columns_64, listed, n, v, out)
    elif of.X.columns != NULL:
        read_columns(what, at, of, <const double *> of.X.values, of.X.columns, listed, n, v, out)
    else:
        read_columns(what, at, of, <const double *> of.X.values, of.X.columns_64, listed, n, v, out)


cdef void sweep_columns(step_model *at, columns_view *of, const Py_ssize_t *listed, Py_ssize_t n) noexcept nogil:
    at.worst = 0
    read_listed(SWEEP, at, of, listed, n, NULL, NULL)
    if at.intercept >= 0 and not at.free:
        move_intercept(at)


cdef void slopes_of(step_model *at, columns_view *of, const Py_ssize_t *listed, Py_ssize_t n,
                    double *slope) noexcept nogil:
    cdef Py_ssize_t k, j, b = at.intercept
    read_listed(SLOPES, at, of, listed, n, NULL, slope)
    for k in range(n):
        j = listed[k]
        slope[j] += at.g[j] + at.l2[j] * at.d[j] + (at.across[j] * at.d[b] if b >= 0 else 0)
    if b >= 0:
        slope[b] = at.g[b] + at.crossed + (at.total + at.l2[b]) * at.d[b]


cdef inline double crossed_by(const step_model *at, const Py_ssize_t *listed, Py_ssize_t n,
                              const double *v) noexcept nogil:
    cdef double crossed = 0
    cdef Py_ssize_t k
    for k in range(n):
        crossed += at.across[listed[k]] * v[listed[k]]
    return crossed


cdef double times_curvature(step_model *at, columns_view *of, const Py_ssize_t *listed, Py_ssize_t n, const double *v,
                            double *out) noexcept nogil:
    cdef Py_ssize_t b = at.intercept, i, j, k
    cdef double crossed = crossed_by(at, listed, n, v), of_intercept = 0, total = 0
    memset(of.other, 0, of.X.n_features * sizeof(double))
    read_listed(IMAGE, at, of, listed, n, v, NULL)
    for i in range(of.X.n_features):
        of.other[i] *= of.weight[i]
    read_listed(PRODUCTS, at, of, listed, n, NULL, out)
    if b >= 0:
        of_intercept = -crossed / at.total if at.free else v[b]
    for k in range(n):
        j = listed[k]
        out[j] += at.l2[j] * v[j] + at.across[j] * of_intercept
        total += out[j] * v[j]
    if b >= 0:
        out[b] = 0 if at.free else crossed + (at.total + at.l2[b]) * v[b]
        total += out[b] * v[b]
    return total


cdef void add_to_step(step_model *at, columns_view *of, const Py_ssize_t *listed, Py_ssize_t n,
                      const double *v) noexcept nogil:
    cdef Py_ssize_t i, k
    for i in range(of.X.n_features):
        of.product[i] += of.other[i]
    at.crossed += crossed_by(at, listed, n, v)
    for k in range(n):
        at.d[listed[k]] += v[listed[k]]
    if at.free:
        let_intercept_follow(at)
    elif at.intercept >= 0:
        at.d[at.intercept] += v[at.intercept]
