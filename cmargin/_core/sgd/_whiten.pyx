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
from cmargin._core.util._shapes cimport must_fit
from cmargin._core.util._team cimport share_out

cdef enum:
    BLOCK = 64                  # rows at a time: 64 x 2000 float32 is half of a 1 MB second-level cache


cdef void whiten_block(const rows_view *X, const whitening *by, const int64_t *rows, Py_ssize_t row_lo, Py_ssize_t n,
                       floating *dense, floating *low, floating *out) noexcept nogil:
    cdef Py_ssize_t i, j, d = X.n_features, k = by.k
    cdef bint full = by.tail_root > 0
    cdef const floating *P = <const floating *> by.P
    cdef const floating *factor = <const floating *> by.factor
    cdef const floating *centre = <const floating *> by.centre
    cdef const floating *centre_low = <const floating *> by.centre_low
    cdef floating *products = low if full else out
    rows_times(X, rows, row_lo, n, P, k, out if full else dense, products)
    if centre != NULL:
        for i in range(n):
            for j in range(k):
                products[i * k + j] -= centre_low[j]
            if full:
                for j in range(d):
                    out[i * d + j] -= centre[j]
    for i in range(n):
        for j in range(k):
            products[i * k + j] *= factor[j]
    if full:
        # out = products P' + tail_root out   (n, d) = (n, k) (k, d) + (n, d)
        gemm(NO_TRANS, TRANS, n, d, k, 1, products, k, P, k, by.tail_root, out, d)


cdef struct whiten_work:            # what threads share; void pointers are to floats where ``single``, else to doubles
    const rows_view *X
    whitening by
    const int64_t *rows             # IN    (n,), or NULL for all
    Py_ssize_t row_lo, row_hi
    void *work                      # WORK  (n_threads, work_size)
    void *out                       # OUT   (n, width)
    Py_ssize_t work_size, width
    bint single


cdef void one_block(const whiten_work *at, Py_ssize_t lo, int thread, floating *out) noexcept nogil:
    # the workspace is for the rows, or for their low part where these have room in the output
    cdef floating *work = <floating *> at.work + thread * at.work_size
    whiten_block(at.X, &at.by, at.rows + lo if at.rows != NULL else NULL, lo, min(BLOCK, at.row_hi - lo), work, work,
                 out + lo * at.width)


cdef void do_block(void *of, Py_ssize_t block, int thread) noexcept nogil:
    cdef const whiten_work *at = <whiten_work *> of
    if at.single:
        one_block(at, at.row_lo + block * BLOCK, thread, <float *> at.out)
    else:
        one_block(at, at.row_lo + block * BLOCK, thread, <double *> at.out)


def block_rows():
    """Rows of one block, whole ones of which `whiten_rows` is best given."""
    return BLOCK


def work_size(Rows X, Py_ssize_t k, double tail_root):
    """Numbers of workspace that `whiten_rows` takes for one thread."""
    return BLOCK * (k if tail_root > 0 else 0 if X.sparse else X.view.n_features)


def whiten_rows(
    Rows X not None,
    const int64_t[::1] rows,              # IN    (n,) rows to be whitened, or (0,): all, in their order
    const floating[:, ::1] P,             # IN    (n_features, k)
    const floating[::1] factor,           # IN    (k,)
    const floating[::1] centre,           # IN    (n_features,), or (0,): rows as they are
    const floating[::1] centre_low,       # IN    (k,), P' centre, or (0,)
    double tail_root,
    Py_ssize_t row_lo,
    Py_ssize_t row_hi,
    floating[:, ::1] out,                 # OUT   (n, k), or (n, n_features) where tail_root > 0
    floating[:, ::1] work,                # WORK  (n_threads, `work_size`)
    int n_threads,
):
    """Whiten rows ``row_lo .. row_hi - 1`` of the list into the same rows of ``out``.

    Blocks do not depend on ``n_threads``, each is one thread's: the bits are the same for any number.
    """
    cdef whiten_work at
    cdef Py_ssize_t b, k = P.shape[1], d = X.view.n_features, n_blocks = (row_hi - row_lo + BLOCK - 1) // BLOCK
    cdef Py_ssize_t n = rows.shape[0] if rows.shape[0] else X.view.n_rows
    cdef bint centred = centre.shape[0] > 0
    must_fit(P.shape[0] == d and factor.shape[0] == k and row_lo >= 0 and row_hi <= n, "whiten_rows")
    must_fit(row_hi <= out.shape[0] and out.shape[1] == (d if tail_root > 0 else k), "whiten_rows, output")
    must_fit(work.shape[0] >= n_threads and work.shape[1] >= work_size(X, k, tail_root), "whiten_rows, workspace")
    must_fit(not centred or (centre.shape[0] == d and centre_low.shape[0] == k), "whiten_rows, centre")
    for b in range(rows.shape[0]):
        if not 0 <= rows[b] < X.view.n_rows:
            raise ValueError("whiten_rows: a row is out of range")
    if n_blocks <= 0:
        return
    at.X, at.rows, at.row_lo, at.row_hi = &X.view, &rows[0] if rows.shape[0] else NULL, row_lo, row_hi
    at.by.P, at.by.factor, at.by.k, at.by.tail_root = &P[0, 0], &factor[0], k, tail_root
    at.by.centre, at.by.centre_low = &centre[0] if centred else NULL, &centre_low[0] if centred else NULL
    at.work, at.work_size = &work[0, 0] if work.shape[1] else NULL, work.shape[1]
    at.out, at.width, at.single = &out[0, 0], out.shape[1], floating is float
    with nogil:
        share_out(do_block, &at, n_blocks, n_threads)
