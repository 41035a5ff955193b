"""Whitened rows z = H*^(1/2) x of a low-rank inverse H*."""

from cython cimport floating
from libc.stdint cimport int64_t

from cmargin._core.rows._rows cimport rows_view


cdef struct whitening:          # void pointers are to numbers of the type of the rows
    const void *P               # IN    (d, k) eigenvectors
    const void *factor          # IN    (k,)
    const void *centre          # IN    (d,), or NULL
    const void *centre_low      # IN    (k,), P' centre, not needed without a centre
    Py_ssize_t k
    double tail_root            # > 0: full-width rows (dense only); 0: the k low-rank numbers


cdef void whiten_block(
    const rows_view *X,
    const whitening *by,
    const int64_t *rows,        # IN    (n,), or NULL for row_lo, row_lo + 1, ...
    Py_ssize_t row_lo,
    Py_ssize_t n,
    floating *dense,            # WORK  (n, d), not needed for CSR; may be `out` when tail_root > 0
    floating *low,              # WORK  (n, k), not needed when tail_root is 0
    floating *out,              # OUT   (n, d) if tail_root > 0 else (n, k)
) noexcept nogil
