"""Stochastic passes with the step of SLND theorem 2, its sums over a fixed subset of each class and the row visited.

    eta_t = 2 (1 - eps) e_t / (F''(0) Pi_t),  e_t = sum_i p_i y_i y_t pi_i,  Pi_t = sum_i pi_i^2,  pi_i = p_t s_i,
    s_i = x_t' H* x_i                                                                                (SLND eq. 23)

Put into the update, p_t and y_t cancel: u += 2 (1 - eps) (sum_i p_i y_i s_i) / (F''(0) sum_i s_i^2) z_t, the exact
minimiser along z_t of the quadratic upper bound when eps = 1/2, the value taken here.
"""

from cython cimport floating
from libc.stdint cimport int64_t

from cmargin._core.losses._losses cimport point, point_loss
from cmargin._core.rows._rows cimport gather_row, sparse_axpy, sparse_dot
from cmargin._core.sgd._class_pass cimport ClassPass, Visits, class_pass, class_state, row_of, take_steps
from cmargin._core.util._shapes cimport must_fit, within
from cmargin._core.util._simd cimport row_axpy, row_dot


cdef struct theory_pass:            # void pointers as those of `class_pass`
    double curvature                # F''(0)
    const void *Z                   # IN    (n_rows, width) whitened rows
    const int64_t *subset_offsets   # IN    (n_classes + 1,)
    const int64_t *subset           # IN    visits that the sums of each class run over
    void *dense                     # WORK  (n_threads, n_features) a row, where CSR rows carry the tail
    double *work                    # WORK  (n_threads, 2, work_size) s_i and scores of the subset
    Py_ssize_t work_size


cdef double score_of(const class_pass *by, const class_state *now, const floating *Z, Py_ssize_t row) noexcept nogil:
    cdef double score = by.low_sign * row_dot(<floating *> now.u, Z + row * by.width, by.width) + now.bias
    if now.tail_inverse > 0:
        score += now.tail_inverse * sparse_dot(by.X, row, <const floating *> now.v)
    return score


cdef double similarity(const class_pass *by, const class_state *now, const floating *Z, Py_ssize_t row, Py_ssize_t i,
                       const floating *dense) noexcept nogil:
    # x_row' H* x_i and the intercept's share; ``dense`` is x_row where CSR rows carry the tail
    cdef double s = by.low_sign * row_dot(Z + row * by.width, Z + i * by.width, by.width) + now.bias_rate
    if now.tail_inverse > 0:
        s += now.tail_inverse * sparse_dot(by.X, i, dense)
    return s


cdef void theory_class(const class_pass *by, class_state *now, int thread, floating *u) noexcept nogil:
    cdef const theory_pass *own = <const theory_pass *> by.own
    cdef const int64_t *subset = own.subset + own.subset_offsets[now.c]
    cdef Py_ssize_t t, i, row, n_subset = own.subset_offsets[now.c + 1] - own.subset_offsets[now.c]
    cdef double *s = own.work + 2 * thread * own.work_size
    cdef double *scores = s + own.work_size
    cdef double score, y, y_i, own_s, e, square, weight, change
    cdef const floating *Z = <const floating *> own.Z
    cdef floating *dense = <floating *> own.dense + thread * by.X.n_features
    cdef point at
    for i in range(n_subset):
        scores[i] = score_of(by, now, Z, row_of(subset[i]))
    for t in range(now.n_visits):
        row, y = row_of(now.visits[t]), 1 if now.visits[t] >= 0 else -1
        score = score_of(by, now, Z, row)
        if now.tail_inverse > 0:
            gather_row(by.X, row, dense)
        for i in range(n_subset):
            s[i] = similarity(by, now, Z, row, row_of(subset[i]), <const floating *> dense)
        # the row itself is in both sums: they then bound the step even where it is orthogonal to the subset
        own_s = similarity(by, now, Z, row, row, <const floating *> dense)
        at = point_loss(&by.loss, y * score)
        weight = by.row_weight[row] if by.row_weight != NULL else 1
        e = -weight * y * own_s * at.slope
        square = weight * own_s * own_s
        now.loss += weight * at.value
        now.errors += weight * (y * score <= 0)
        now.weight += weight
        for i in range(n_subset):
            y_i = 1 if subset[i] >= 0 else -1
            weight = by.row_weight[row_of(subset[i])] if by.row_weight != NULL else 1
            e -= weight * y_i * s[i] * point_loss(&by.loss, y_i * scores[i]).slope
            square += weight * s[i] * s[i]
        change = e / (own.curvature * square) if square > 0 else 0
        row_axpy(change, Z + row * by.width, u, by.width)
        if now.tail_inverse > 0:
            sparse_axpy(change, by.X, row, <floating *> now.v)
        now.bias += change * now.bias_rate
        now.n_steps += 1
        for i in range(n_subset):
            scores[i] += change * s[i]


def run_theory_steps(
    ClassPass by not None,               # with the weights of `ClassPass.whitened`, no mean of them
    Visits visits not None,
    Py_ssize_t first,
    Py_ssize_t last,
    double curvature,                    # F''(0)
    const floating[:, ::1] Z,            # IN    (n_rows, width)
    const int64_t[::1] subset_offsets,   # IN    (n_classes + 1,)
    const int64_t[::1] subset,           # IN    visits of each class's subset
    floating[:, ::1] dense,              # WORK  (n_threads, n_features) where CSR rows carry the tail
    double[:, :, ::1] work,              # WORK  (n_threads, 2, longest subset)
    int n_threads,
):
    """Take steps ``first .. last - 1`` of the visits of every class."""
    cdef theory_pass own
    cdef class_pass at = by.part(visits, first, last, &own)
    cdef Py_ssize_t c, longest = 0
    must_fit(at.bias != NULL and at.item_size == sizeof(floating) and Z.shape[0] == at.X.n_rows
             and Z.shape[1] == at.width and subset_offsets.shape[0] == at.n_classes + 1
             and within(subset_offsets, subset.shape[0]), "run_theory_steps")
    for c in range(at.n_classes):
        longest = max(longest, subset_offsets[c + 1] - subset_offsets[c])
    must_fit((at.V == NULL or (dense.shape[0] >= n_threads and dense.shape[1] == at.X.n_features))
             and work.shape[0] >= n_threads and work.shape[1] == 2 and work.shape[2] >= longest,
             "run_theory_steps, workspace")
    own.curvature, own.Z, own.subset_offsets = curvature, &Z[0, 0], &subset_offsets[0]
    own.subset = &subset[0] if subset.shape[0] else NULL                            # a class may have no row of it
    own.dense = &dense[0, 0] if at.V != NULL else NULL
    own.work, own.work_size = &work[0, 0, 0], work.shape[2]
    with nogil:
        take_steps(&at, theory_class[float], theory_class[double], n_threads)
