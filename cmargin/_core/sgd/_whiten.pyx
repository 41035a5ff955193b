"""Whitened rows z = H*^(1/2) x, block by block (doc/methods/slnd.md, "Whitened coordinates"); with a centre, of
x - centre.

    tail dropped                z = (P' x) o factor                               k numbers
    tail scaled, dense rows     z = tail_root x + P ((P' x) o factor)             n_features numbers
    tail scaled, CSR rows       the low part as above; x itself carries the rest  k numbers
"""

from cython cimport floating
from libc.stdint cimport int64_t

from cmargin._core.linalg._blas cimport NO_TRANS, TRANS, gemm
from cmargin._core.rows._rows cimport Rows, rows_times, rows_view
from cmargin._core.util._team cimport share_out

cdef enum:
    BLOCK = 64                  # rows at a time: 64 x 2000 float32 is half of a 1 MB second-level cache


cdef void whiten_block(const rows_view *X, const int64_t *rows, Py_ssize_t row_lo, Py_ssize_t n, const floating *P,
                       Py_ssize_t k, const floating *factor, const floating *centre, const floating *centre_low,
                       double tail_root, floating *dense, floating *low, floating *out) noexcept nogil:
    cdef Py_ssize_t i, j, d = X.n_features
    cdef floating *products = low if tail_root > 0 else out
    rows_times(X, rows, row_lo, n, P, k, out if tail_root > 0 else dense, products)
    if centre != NULL:
        for i in range(n):
            for j in range(k):
                products[i * k + j] -= centre_low[j]
            if tail_root > 0:
                for j in range(d):
                    out[i * d + j] -= centre[j]
    for i in range(n):
        for j in range(k):
            products[i * k + j] *= factor[j]
    if tail_root > 0:
        # out = products P' + tail_root out   (n, d) = (n, k) (k, d) + (n, d)
        gemm(NO_TRANS, TRANS, n, d, k, 1, products, k, P, k, tail_root, out, d)


cdef struct whiten_work:            # what threads share; all pointers are to floats where ``single``, else to doubles
    const rows_view *X
    const int64_t *rows             # NULL: all
    const void *P
    const void *factor
    const void *centre              # NULL: none
    const void *centre_low
    void *dense
    void *low
    void *out
    Py_ssize_t dense_size, low_size, out_size, k, row_lo, row_hi
    double tail_root
    bint single


cdef void one_block(const whiten_work *by, Py_ssize_t lo, int thread, const floating *P) noexcept nogil:
    whiten_block(by.X, by.rows + lo if by.rows != NULL else NULL, lo, min(BLOCK, by.row_hi - lo), P, by.k,
                 <const floating *> by.factor, <const floating *> by.centre, <const floating *> by.centre_low,
                 by.tail_root, <floating *> by.dense + thread * by.dense_size if by.dense != NULL else NULL,
                 <floating *> by.low + thread * by.low_size if by.low != NULL else NULL,
                 <floating *> by.out + lo * by.out_size)


cdef void do_block(void *of, Py_ssize_t block, int thread) noexcept nogil:
    cdef const whiten_work *by = <whiten_work *> of
    if by.single:
        one_block(by, by.row_lo + block * BLOCK, thread, <const float *> by.P)
    else:
        one_block(by, by.row_lo + block * BLOCK, thread, <const double *> by.P)


def block_rows():
    """Rows of one block: the workspace of `whiten_rows` is that many rows a thread."""
    return BLOCK


def whiten_rows(
    Rows X,
    const int64_t[::1] rows,              # IN    (n,) rows to be whitened, or (0,): all, in their order
    const floating[:, ::1] P,             # IN    (n_features, k)
    const floating[::1] factor,           # IN    (k,)
    const floating[::1] centre,           # IN    (n_features,), or (0,): rows as they are
    const floating[::1] centre_low,       # IN    (k,), P' centre, or (0,)
    double tail_root,
    Py_ssize_t row_lo,
    Py_ssize_t row_hi,
    floating[:, ::1] out,                 # OUT   (n, k), or (n, n_features) where tail_root > 0
    floating[:, ::1] dense,               # WORK  (n_threads, BLOCK n_features or 0)
    floating[:, ::1] low,                 # WORK  (n_threads, BLOCK k)
    int n_threads,
):
    """Whiten rows ``row_lo .. row_hi - 1`` of the list into the same rows of ``out``.

    Blocks do not depend on ``n_threads``, each is one thread's: the bits are the same for any number.
    """
    cdef whiten_work work
    cdef Py_ssize_t b, k = P.shape[1], n_blocks = (row_hi - row_lo + BLOCK - 1) // BLOCK
    cdef Py_ssize_t n = rows.shape[0] if rows.shape[0] else X.view.n_rows
    cdef bint centred = centre.shape[0] > 0, copies = X.view.starts == NULL and not tail_root > 0
    if P.shape[0] != X.view.n_features or factor.shape[0] != k or row_lo < 0 or row_hi > n:
        raise ValueError("whiten_rows: shapes do not fit")
    if row_hi > out.shape[0] or out.shape[1] != (X.view.n_features if tail_root > 0 else k):
        raise ValueError("whiten_rows: the output does not fit")
    if (min(dense.shape[0], low.shape[0]) < n_threads or (tail_root > 0 and low.shape[1] < BLOCK * k)
            or (copies and dense.shape[1] < BLOCK * X.view.n_features)):
        raise ValueError("whiten_rows: the workspace does not fit")
    if centred and (centre.shape[0] != X.view.n_features or centre_low.shape[0] != k):
        raise ValueError("whiten_rows: the centre does not fit")
    for b in range(rows.shape[0]):
        if not 0 <= rows[b] < X.view.n_rows:
            raise ValueError("whiten_rows: a row is out of range")
    if n_blocks <= 0:
        return
    work.X, work.rows, work.P, work.factor = &X.view, &rows[0] if rows.shape[0] else NULL, &P[0, 0], &factor[0]
    work.centre, work.centre_low = &centre[0] if centred else NULL, &centre_low[0] if centred else NULL
    work.dense, work.dense_size = &dense[0, 0] if dense.shape[1] else NULL, dense.shape[1]
    work.low, work.low_size = &low[0, 0] if low.shape[1] else NULL, low.shape[1]
    work.out, work.out_size, work.single, work.tail_root = &out[0, 0], out.shape[1], floating is float, tail_root
    work.k, work.row_lo, work.row_hi = k, row_lo, row_hi
    with nogil:
        share_out(do_block, &work, n_blocks, n_threads)
