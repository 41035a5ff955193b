"""Best low-rank inverses of a weighted second moment, one per class: ``prange`` over the classes (SLND section 3.1).

    H = (1/m') sum_i c_i x_i x_i',   H = P D P',   the k largest pairs give H* = P_k D_k^-1 P_k'       (SLND eq. 8)

H is n_features x n_features; where m' < n_features the same pairs come from the m' x m' Gram matrix instead:
if G = (1/m') C^(1/2) X X' C^(1/2) = V D V', then P = (1/m')^(1/2) X' C^(1/2) V D^(-1/2). With a centre, x_i is
x_i - centre throughout; CSR rows are only so far as sums over them are.
"""

from cython cimport floating
from cython.parallel cimport prange, threadid
from libc.math cimport sqrt
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memset

from cmargin._core.linalg._blas cimport NO_TRANS, TRANS, gemm, syrk
from cmargin._core.linalg._eigh cimport EIGH_OK, eigh_iwork_size, eigh_top, eigh_work_size
from cmargin._core.rows._rows cimport Rows, gather_row, rows_view
from cmargin._core.util._fp_control cimport fp_set, fp_settings, fp_standard
from cmargin._core.util._shapes cimport must_fit

include "cmargin/_core/linalg/_blas_int.pxi"

cdef enum:
    BLOCK = 128                 # rows, or columns, gathered at a time


cdef inline void gather_centred(const rows_view *X, Py_ssize_t row, const floating *centre,
                                floating *out) noexcept nogil:
    # out = x_row - centre, or x_row where centre is NULL; (d,)
    cdef Py_ssize_t j
    gather_row(X, row, out)
    if centre != NULL:
        for j in range(X.n_features):
            out[j] -= centre[j]


cdef void weighted_second_moment(const rows_view *X, const int64_t *rows, Py_ssize_t m, const double *curvature,
                                 const floating *centre, floating *block, floating *H) noexcept nogil:
    # upper triangle of H (d, d) = (1/m) sum_i c_i x_i x_i'; block (BLOCK, d) is workspace
    cdef Py_ssize_t d = X.n_features, b, lo, n, i, j
    cdef double root
    memset(H, 0, d * d * sizeof(floating))
    for b in range((m + BLOCK - 1) // BLOCK):
        lo = b * BLOCK
        n = min(BLOCK, m - lo)
        for i in range(n):
            gather_centred(X, rows[lo + i], centre, block + i * d)
            root = sqrt(curvature[lo + i] / m)
            for j in range(d):
                block[i * d + j] *= <floating> root
        # H += block' block   (d, d) = (d, n) (n, d)
        syrk(TRANS, d, n, 1, block, d, 1, H, d)


cdef void combine_rows(const rows_view *X, const int64_t *rows, Py_ssize_t m, const floating *coefficients,
                       Py_ssize_t k, const floating *centre, floating *block, floating *P) noexcept nogil:
    # P (d, k) = sum_i x_i coefficients_i', coefficients (m, k); block (BLOCK, d) is workspace for dense rows
    cdef Py_ssize_t d = X.n_features, b, lo, n, i, a, j
    cdef int64_t entry, column
    cdef double total
    memset(P, 0, d * k * sizeof(floating))
    for b in range((m + BLOCK - 1) // BLOCK):
        lo = b * BLOCK
        n = min(BLOCK, m - lo)
        if X.starts == NULL:
            for i in range(n):
                gather_centred(X, rows[lo + i], centre, block + i * d)
            # P += block' coefficients   (d, k) = (d, n) (n, k)
            gemm(TRANS, NO_TRANS, d, k, n, 1, block, d, coefficients + lo * k, k, 1, P, k)
            continue
        for i in range(n):
            for entry in range(X.starts[rows[lo + i]], X.starts[rows[lo + i] + 1]):
                column = X.columns[entry] if X.columns != NULL else X.columns_64[entry]
                for a in range(k):
                    P[column * k + a] += (<const floating *> X.values)[entry] * coefficients[(lo + i) * k + a]
    if X.starts == NULL or centre == NULL:
        return
    for a in range(k):                                      # P -= centre (sum_i coefficients_i)'
        total = 0
        for i in range(m):
            total += coefficients[i * k + a]
        for j in range(d):
            P[j * k + a] -= <floating> (centre[j] * total)


cdef void eigenvectors(const rows_view *X, const int64_t *rows, Py_ssize_t m, const double *curvature, bint of_gram,
                       const floating *centre, Py_ssize_t k, const floating *vectors, const double *values,
                       floating *A, floating *block, floating *P) noexcept nogil:
    # P (d, k) from the leading eigenvectors (n_values, order) of H, or of the Gram matrix: then with A (m, k) and block
    # as workspace. Where an eigenvalue is zero, so is the column of P.
    cdef Py_ssize_t d = X.n_features, i, j, a
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
    combine_rows(X, rows, m, A, k, centre, block, P)


cdef int leading_pairs(const rows_view *X, const int64_t *rows, Py_ssize_t m, const double *curvature,
                       const floating *gram, const floating *centre, Py_ssize_t k, Py_ssize_t n_values, double floor,
                       floating *A, floating *vectors, floating *values, floating *block, floating *work,
                       blas_int *iwork, double *values_out, double *trace_out, floating *P) noexcept nogil:
    # One class. Pairs whose eigenvalue does not exceed floor * the largest count as zero: column of P zero. No P where
    # k is 0: `eigenvectors` may make it of what is left in ``vectors``.
    cdef Py_ssize_t d = X.n_features, order = m if gram != NULL else d, i, j, a
    cdef int status
    if gram != NULL:
        for i in range(m):
            for j in range(i, m):
                A[i * m + j] = <floating> (gram[i * m + j] * sqrt(curvature[i] * curvature[j]) / m)
    else:
        weighted_second_moment(X, rows, m, curvature, centre, block, A)
    trace_out[0] = 0
    for i in range(order):
        trace_out[0] += A[i * order + i]
    status = eigh_top(A, order, n_values, values, vectors, work, iwork)
    if status != EIGH_OK:
        return status
    for a in range(n_values):
        values_out[a] = values[a] if values[a] > floor * values[0] and values[a] > 0 else 0
    if k > 0:
        eigenvectors(X, rows, m, curvature, gram != NULL, centre, k, vectors, values_out, A, block, P)
    return status


def gram_matrix(Rows X, const int64_t[::1] rows, const floating[::1] centre, floating[:, ::1] block,
                floating[:, ::1] gram_out):
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
            syrk(NO_TRANS, m, n, 1, &block[0, 0], block.shape[1], 1, &gram_out[0, 0], m)


def block_size():
    """Rows, or columns, of the gathered blocks: the workspace of the functions here."""
    return BLOCK


def work_sizes(Py_ssize_t order):
    """Entries of floating and of integer workspace that syevr of that order takes."""
    return eigh_work_size(order), eigh_iwork_size(order)


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
    int32_t[::1] status_out,              # OUT   (n_classes,), 0 or what eigh_top said
    floating[:, ::1] A,                   # WORK  (n_threads, max(order^2, m k))
    floating[:, :, ::1] vectors,          # WORK  (n_threads, n_values, order): of one class the eigenvectors are left
    floating[:, ::1] values,              # WORK  (n_threads, order)
    floating[:, ::1] block,               # WORK  (n_threads, BLOCK n_features)
    floating[:, ::1] work,                # WORK  (n_threads, work_sizes)
    blas_int[:, ::1] iwork,               # WORK  (n_threads, work_sizes)
    int n_threads,
):
    """Leading eigenpairs of every class's second moment; call with BLAS held to one thread."""
    cdef fp_settings settings
    cdef Py_ssize_t c, t, m = rows.shape[0], k = P_out.shape[2], n_values = values_out.shape[1]
    cdef Py_ssize_t n_classes = curvature.shape[0], order = m if gram.shape[0] else X.view.n_features
    cdef const floating *gram_or_null = &gram[0, 0] if gram.shape[0] else NULL
    must_fit(centre.shape[0] in (0, X.view.n_features), "low_rank_classes")
    must_fit(m > 0 and curvature.shape[1] == m and gram.shape[0] == gram.shape[1] and gram.shape[0] in (0, m)
             and values_out.shape[0] == trace_out.shape[0] == P_out.shape[0] == status_out.shape[0] == n_classes
             and P_out.shape[1] == X.view.n_features and k <= n_values <= order, "low_rank_classes")
    must_fit(min(A.shape[0], vectors.shape[0], values.shape[0]) >= n_threads
             and min(block.shape[0], work.shape[0], iwork.shape[0]) >= n_threads
             and A.shape[1] >= max(order * order, m * k) and vectors.shape[1] >= n_values and vectors.shape[2] >= order
             and values.shape[1] >= order and work.shape[1] >= eigh_work_size(order)
             and iwork.shape[1] >= eigh_iwork_size(order)
             and (block.shape[1] >= BLOCK * X.view.n_features or (X.sparse and gram.shape[0] > 0)),
             "low_rank_classes, workspace")
    cdef const floating *centre_or_null = &centre[0] if centre.shape[0] else NULL
    for c in prange(curvature.shape[0], nogil=True, num_threads=n_threads, schedule="dynamic"):
        settings = fp_standard()
        t = threadid()
        status_out[c] = leading_pairs(&X.view, &rows[0], m, &curvature[c, 0], gram_or_null, centre_or_null, k,
                                      n_values, floor, &A[t, 0], &vectors[t, 0, 0], &values[t, 0],
                                      &block[t, 0] if block.shape[1] else NULL,
                                      &work[t, 0], &iwork[t, 0], &values_out[c, 0], &trace_out[c], &P_out[c, 0, 0])
        fp_set(settings)


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
    cdef const floating *centre_or_null = &centre[0] if centre.shape[0] else NULL
    with nogil:
        eigenvectors(&X.view, &rows[0], m, &curvature[0], of_gram, centre_or_null, k, &vectors[0, 0], &values[0],
                     &A[0], &block[0] if block.shape[0] else NULL, &P_out[0, 0])


def blas_int_size():
    """Bytes of the integers that ``low_rank_classes`` takes as ``iwork``."""
    return sizeof(blas_int)
