"""Best low-rank inverses of a weighted second moment, one per class: ``prange`` over the classes (SLND section 3.1);
of one class threads share out the sum.

    H = (1/m') sum_i c_i x_i x_i',   H = P D P',   the k largest pairs give H* = P_k D_k^-1 P_k'       (SLND eq. 8)

H is n_features x n_features; where m' < n_features the same pairs come from the m' x m' Gram matrix instead:
if G = (1/m') C^(1/2) X X' C^(1/2) = V D V', then P = (1/m')^(1/2) X' C^(1/2) V D^(-1/2). With a centre, x_i is
x_i - centre throughout; CSR rows are only so far as sums over them are.
"""

import numpy as np

from cython cimport floating
from cython.parallel cimport prange, threadid
from libc.math cimport sqrt
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memset

from cmargin._core.linalg._blas cimport NO_TRANS, TRANS, gemm
from cmargin._core.linalg._eigh cimport EIGH_OK, eigh_iwork_size, eigh_top, eigh_work_size
from cmargin._core.linalg._tiled_syrk cimport tiled_syrk
from cmargin._core.rows._rows cimport Rows, column_of, gather_row, rows_view
from cmargin._core.util._fp_control cimport fp_set, fp_settings, fp_standard
from cmargin._core.util._shapes cimport must_fit

include "cmargin/_core/linalg/_blas_int.pxi"

cdef enum:
    BLOCK = 128                 # rows, or columns, gathered at a time


cdef struct subset:             # rows that a second moment is over; void pointers are to numbers of their type
    const rows_view *X
    const int64_t *rows         # IN    (m,)
    Py_ssize_t m
    const void *centre          # IN    (d,), or NULL: rows as they are


cdef inline void gather_centred(const subset *of, Py_ssize_t i, floating *out) noexcept nogil:
    # out = row i of the subset less the centre, (d,)
    cdef Py_ssize_t j
    gather_row(of.X, of.rows[i], out)
    if of.centre != NULL:
        for j in range(of.X.n_features):
            out[j] -= (<const floating *> of.centre)[j]


cdef void weighted_second_moment(const subset *of, const double *curvature, floating *block, floating *H,
                                 int n_threads) noexcept nogil:
    # upper triangle of H (d, d) = (1/m) sum_i c_i x_i x_i'; block (BLOCK, d) is workspace
    cdef Py_ssize_t d = of.X.n_features, b, lo, n, i, j
    cdef double root
    memset(H, 0, d * d * sizeof(floating))
    for b in range((of.m + BLOCK - 1) // BLOCK):
        lo = b * BLOCK
        n = min(BLOCK, of.m - lo)
        for i in range(n):
            gather_centred(of, lo + i, block + i * d)
            root = sqrt(curvature[lo + i] / of.m)
            for j in range(d):
                block[i * d + j] *= <floating> root
        # H += block' block   (d, d) = (d, n) (n, d)
        tiled_syrk(TRANS, d, n, block, d, H, d, n_threads)


cdef void combine_rows(const subset *of, const floating *coefficients, Py_ssize_t k, floating *block,
                       floating *P) noexcept nogil:
    # P (d, k) = sum_i x_i coefficients_i', coefficients (m, k); block (BLOCK, d) is workspace for dense rows
    cdef const rows_view *X = of.X
    cdef const floating *centre = <const floating *> of.centre
    cdef Py_ssize_t d = X.n_features, b, lo, n, i, a, j
    cdef int64_t entry, column
    cdef double total
    memset(P, 0, d * k * sizeof(floating))
    for b in range((of.m + BLOCK - 1) // BLOCK):
        lo = b * BLOCK
        n = min(BLOCK, of.m - lo)
        if X.starts == NULL:
            for i in range(n):
                gather_centred(of, lo + i, block + i * d)
            # P += block' coefficients   (d, k) = (d, n) (n, k)
            gemm(TRANS, NO_TRANS, d, k, n, 1, block, d, coefficients + lo * k, k, 1, P, k)
            continue
        for i in range(lo, lo + n):
            for entry in range(X.starts[of.rows[i]], X.starts[of.rows[i] + 1]):
                column = column_of(X, entry)
                for a in range(k):
                    P[column * k + a] += (<const floating *> X.values)[entry] * coefficients[i * k + a]
    if X.starts == NULL or centre == NULL:
        return
    for a in range(k):                                      # P -= centre (sum_i coefficients_i)'
        total = 0
        for i in range(of.m):
            total += coefficients[i * k + a]
        for j in range(d):
            P[j * k + a] -= <floating> (centre[j] * total)


cdef void eigenvectors(const subset *of, const double *curvature, bint of_gram, Py_ssize_t k, const floating *vectors,
                       const double *values, floating *A, floating *block, floating *P) noexcept nogil:
    # P (d, k) from the leading eigenvectors (n_values, order) of H, or of the Gram matrix: then with A (m, k) and block
    # as workspace. Where an eigenvalue is zero, so is the column of P.
    cdef Py_ssize_t d = of.X.n_features, m = of.m, i, j, a
    cdef double root
    if not of_gram:
        for j in range(d):
            for a in range(k):
                P[j * k + a] = vectors[a * d + j] if values[a] > 0 else 0
        return
    for i in range(m):
        for a in range(k):
            root = sqrt(curvature[i] / (m * values[a])) if values[a] > 0 else 0
            A[i * k + a] = <floating> (vectors[a * m + i] * root)
    combine_rows(of, A, k, block, P)


cdef struct pairs_work:         # what threads share
    subset of
    Py_ssize_t order            # of the matrix whose pairs are sought: m with a Gram matrix, else d
    Py_ssize_t k, n_values
    double floor                # eigenvalues up to floor * the largest count as zero
    const double *curvature     # IN    (n_classes, m)
    const void *gram            # IN    (m, m) upper triangle, or NULL
    double *values_out          # OUT   (n_classes, n_values)
    double *trace_out           # OUT   (n_classes,)
    void *P_out                 # OUT   (n_classes, d, k)
    int32_t *status_out         # OUT   (n_classes,)
    void *vectors               # WORK  (n_threads, n_values, order)
    void *work                  # WORK  (n_threads, work_size): eigenvalues, matrix, that of eigh_top, block of rows
    blas_int *iwork             # WORK  (n_threads, iwork_size)
    Py_ssize_t work_size, iwork_size
    int n_threads               # of one class's sums


cdef void leading_pairs(const pairs_work *by, Py_ssize_t c, int thread, floating *P_out) noexcept nogil:
    # One class. Pairs whose eigenvalue does not exceed floor * the largest count as zero: column of P zero. No P where
    # k is 0: `eigenvectors` may make it of what is left in ``vectors``.
    cdef Py_ssize_t order = by.order, m = by.of.m, i, j, a
    cdef const double *curvature = by.curvature + c * m
    cdef const floating *gram = <const floating *> by.gram
    cdef double *values_out = by.values_out + c * by.n_values
    cdef floating *values = <floating *> by.work + thread * by.work_size
    cdef floating *A = values + order
    cdef floating *work = A + max(order * order, m * by.k)
    cdef floating *block = work + eigh_work_size(order)
    cdef floating *vectors = <floating *> by.vectors + thread * by.n_values * order
    cdef int status
    if gram != NULL:
        for i in range(m):
            for j in range(i, m):
                A[i * m + j] = <floating> (gram[i * m + j] * sqrt(curvature[i] * curvature[j]) / m)
    else:
        weighted_second_moment(&by.of, curvature, block, A, by.n_threads)
    by.trace_out[c] = 0
    for i in range(order):
        by.trace_out[c] += A[i * order + i]
    status = eigh_top(A, order, by.n_values, values, vectors, work, by.iwork + thread * by.iwork_size)
    by.status_out[c] = status
    if status != EIGH_OK:
        return
    for a in range(by.n_values):
        values_out[a] = values[a] if values[a] > by.floor * values[0] and values[a] > 0 else 0
    if by.k > 0:
        eigenvectors(&by.of, curvature, gram != NULL, by.k, <const floating *> vectors, values_out, A, block,
                     P_out + c * by.of.X.n_features * by.k)


def gram_matrix(Rows X, const int64_t[::1] rows, const floating[::1] centre, floating[:, ::1] block,
                floating[:, ::1] gram_out, int n_threads):
    """Upper triangle of the Gram matrix (m, m) of dense rows less ``centre`` (n_features,) or (0,).

    Summed over blocks of columns; ``block`` (m, BLOCK) is workspace.
    """
    cdef Py_ssize_t m = rows.shape[0], b, lo, n, i, j
    cdef const floating *values = <const floating *> X.view.values
    cdef bint centred = centre.shape[0] > 0
    if X.sparse or centre.shape[0] not in (0, X.view.n_features):
        raise ValueError("gram_matrix takes dense rows, and a centre that fits them")
    must_fit(m > 0 and block.shape[0] == gram_out.shape[0] == gram_out.shape[1] == m and block.shape[1] >= BLOCK,
             "gram_matrix")
    with nogil:
        memset(&gram_out[0, 0], 0, m * m * sizeof(floating))
        for b in range((X.view.n_features + BLOCK - 1) // BLOCK):
            lo = b * BLOCK
            n = min(BLOCK, X.view.n_features - lo)
            for i in range(m):
                for j in range(n):
                    block[i, j] = values[rows[i] * X.view.row_stride + (lo + j) * X.view.column_stride]
                    if centred:
                        block[i, j] -= centre[lo + j]
            # gram += block block'   (m, m) = (m, n) (n, m)
            tiled_syrk(NO_TRANS, m, n, &block[0, 0], block.shape[1], &gram_out[0, 0], m, n_threads)


def block_size():
    """Rows, or columns, of the gathered blocks: the workspace of `gram_matrix` and `chosen_eigenvectors`."""
    return BLOCK


def work_size(Rows X, Py_ssize_t m, Py_ssize_t k, bint of_gram):
    """Numbers of workspace that `low_rank_classes` takes for one thread, ``m`` rows and ``k`` eigenvectors."""
    cdef Py_ssize_t order = m if of_gram else X.view.n_features
    cdef Py_ssize_t block = 0 if X.sparse and of_gram else BLOCK * X.view.n_features
    return order + max(order * order, m * k) + eigh_work_size(order) + block


def low_rank_classes(
    Rows X,
    const int64_t[::1] rows,              # IN    (m,), the subset
    const double[:, ::1] curvature,       # IN    (n_classes, m), c_i >= 0
    const floating[:, ::1] gram,          # IN    (m, m) upper triangle, or (0, 0): n_features x n_features is smaller
    const floating[::1] centre,           # IN    (n_features,), or (0,): rows as they are
    double floor,                         # eigenvalues up to floor * the largest count as zero
    double[:, ::1] values_out,            # OUT   (n_classes, n_values), descending
    double[::1] trace_out,                # OUT   (n_classes,)
    floating[:, :, ::1] P_out,            # OUT   (n_classes, n_features, k), 0 <= k <= n_values
    floating[:, :, ::1] vectors,          # WORK  (n_threads, n_values, order): of one class the eigenvectors are left
    floating[:, ::1] work,                # WORK  (n_threads, `work_size`)
    int n_threads,                        # that classes are shared out to
    int n_threads_each,                   # and one class's sums
):
    """Leading eigenpairs of every class's second moment; call with BLAS held to one thread.

    Returns what `eigh_top` said of each, (n_classes,) int32, 0 being well.
    """
    cdef fp_settings settings
    cdef pairs_work by
    cdef bint of_gram = gram.shape[0] > 0
    cdef Py_ssize_t c, m = rows.shape[0], d = X.view.n_features, k = P_out.shape[2], n_values = values_out.shape[1]
    cdef Py_ssize_t n_classes = curvature.shape[0], order = m if of_gram else d
    must_fit(m > 0 and curvature.shape[1] == m and gram.shape[0] == gram.shape[1] and gram.shape[0] in (0, m)
             and centre.shape[0] in (0, d) and values_out.shape[0] == trace_out.shape[0] == P_out.shape[0] == n_classes
             and P_out.shape[1] == d and k <= n_values <= order, "low_rank_classes")
    must_fit(min(vectors.shape[0], work.shape[0]) >= n_threads and vectors.shape[1] == n_values
             and vectors.shape[2] == order and work.shape[1] >= work_size(X, m, k, of_gram),
             "low_rank_classes, workspace")
    status = np.zeros(n_classes, np.int32)
    cdef int32_t[::1] status_out = status
    cdef blas_int[:, ::1] iwork = np.empty((n_threads, eigh_iwork_size(order)), f"i{sizeof(blas_int)}")
    if n_classes == 0:
        return status
    by.of.X, by.of.rows, by.of.m, by.of.centre = &X.view, &rows[0], m, &centre[0] if centre.shape[0] else NULL
    by.n_threads = n_threads_each if n_threads == 1 else 1
    by.order, by.k, by.n_values, by.floor, by.curvature = order, k, n_values, floor, &curvature[0, 0]
    by.gram, by.values_out, by.trace_out = &gram[0, 0] if of_gram else NULL, &values_out[0, 0], &trace_out[0]
    by.P_out, by.status_out = &P_out[0, 0, 0] if k else NULL, &status_out[0]
    by.vectors, by.work, by.work_size = &vectors[0, 0, 0], &work[0, 0], work.shape[1]
    by.iwork, by.iwork_size = &iwork[0, 0], iwork.shape[1]
    for c in prange(n_classes, nogil=True, num_threads=n_threads, schedule="dynamic"):
        settings = fp_standard()
        leading_pairs(&by, c, threadid(), <floating *> by.P_out)
        fp_set(settings)
    return status


def chosen_eigenvectors(
    Rows X,
    const int64_t[::1] rows,              # IN    (m,), the subset
    const double[::1] curvature,          # IN    (m,)
    const floating[::1] centre,           # IN    (n_features,), or (0,)
    const floating[:, ::1] vectors,       # IN    (n_values, order), what ``low_rank_classes`` left of one class
    const double[::1] values,             # IN    (n_values,)
    floating[:, ::1] P_out,               # OUT   (n_features, k), k <= n_values
    floating[::1] A,                      # WORK  (m k,)
    floating[::1] block,                  # WORK  (BLOCK n_features,); (0,) for CSR rows of more columns than rows here
):
    """Eigenvectors of one class's second moment once it is known how many; call with BLAS held to one thread."""
    cdef Py_ssize_t m = rows.shape[0], k = P_out.shape[1], order = vectors.shape[1]
    cdef bint of_gram = order < X.view.n_features
    must_fit(m > 0 and curvature.shape[0] == m and centre.shape[0] in (0, X.view.n_features)
             and order == min(m, X.view.n_features) and 0 < k <= vectors.shape[0] == values.shape[0]
             and P_out.shape[0] == X.view.n_features and A.shape[0] == m * k
             and (block.shape[0] >= BLOCK * X.view.n_features or (X.sparse and of_gram)), "chosen_eigenvectors")
    cdef subset of
    of.X, of.rows, of.m, of.centre = &X.view, &rows[0], m, &centre[0] if centre.shape[0] else NULL
    with nogil:
        eigenvectors(&of, &curvature[0], of_gram, k, &vectors[0, 0], &values[0], &A[0],
                     &block[0] if block.shape[0] else NULL, &P_out[0, 0])
