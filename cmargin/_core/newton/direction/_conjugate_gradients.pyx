"""H x = b with H known by products alone, preconditioned (Nocedal and Wright, algorithm 5.3)."""

import numpy as np

from libc.float cimport DBL_EPSILON
from libc.string cimport memcpy

from cmargin._core.linalg._blas cimport axpy, dot, potrs
from cmargin._core.util._shapes cimport must_fit


cdef inline bint another(const conjugate_gradients *cg) noexcept nogil:
    return dot(cg.n, cg.r, cg.r) > cg.enough and cg.count < cg.most


cdef void precondition(const conjugate_gradients *cg, double *x) noexcept nogil:
    cdef Py_ssize_t j
    if cg.factor != NULL:
        potrs(cg.n, 1, cg.factor, x)
        return
    for j in range(cg.n):
        x[j] /= cg.diagonal[j]


cdef double length_of(const conjugate_gradients *cg) noexcept nogil:
    # squared, of the direction, by H's diagonal; 0 where that is not known
    cdef double total = 0
    cdef Py_ssize_t j
    if cg.factor == NULL:
        for j in range(cg.n):
            total += cg.diagonal[j] * cg.search[j] * cg.search[j]
    return total


cdef bint cg_begin(conjugate_gradients *cg, const double *rhs, double factor) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(cg.n):
        cg.x[j], cg.r[j] = 0, factor * rhs[j]
        cg.search[j] = cg.r[j]
    precondition(cg, cg.search)
    cg.rz, cg.count = dot(cg.n, cg.r, cg.search), 0
    return another(cg)


cdef bint cg_tell(conjugate_gradients *cg) noexcept nogil:
    cdef double curvature = dot(cg.n, cg.search, cg.product), before = cg.rz
    cdef double *z = cg.product
    cdef Py_ssize_t j
    cg.count += 1
    if not curvature > DBL_EPSILON * length_of(cg):
        # H is not positive there, or it is by rounding: what is known so far, or the preconditioned gradient
        if cg.count == 1:
            memcpy(cg.x, cg.search, cg.n * sizeof(double))
        return False
    axpy(cg.n, cg.rz / curvature, cg.search, cg.x)
    axpy(cg.n, -cg.rz / curvature, cg.product, cg.r)
    memcpy(z, cg.r, cg.n * sizeof(double))
    precondition(cg, z)
    cg.rz = dot(cg.n, cg.r, z)
    for j in range(cg.n):
        cg.search[j] = z[j] + (cg.rz / before) * cg.search[j]
    return another(cg)


def conjugate_gradients_of(product, rhs, diagonal, double enough, int most, factor=None):
    """Solve H x = rhs, ``product(v)`` being H v, until |residual|^2 <= ``enough``; ``diagonal`` (n,) of H, positive.

    ``factor`` (n, n) with U' U nearly H, upper, takes the place of the diagonal. Returns x and the number of products.
    """
    cdef conjugate_gradients cg
    cdef const double[::1] b = np.ascontiguousarray(rhs, float), own = np.ascontiguousarray(diagonal, float)
    cdef Py_ssize_t n = b.shape[0]
    must_fit(own.shape[0] == n, "conjugate_gradients_of")
    cdef const double[:, ::1] upper
    vectors = np.zeros((4, max(1, n)))
    cdef double[:, ::1] v = vectors
    cg.n, cg.diagonal, cg.factor, cg.enough, cg.most = n, NULL, NULL, enough, most
    if n > 0:
        cg.diagonal = &own[0]
    if factor is not None:
        upper = np.ascontiguousarray(factor, float)                # row by row, as `potrf` has it
        must_fit(upper.shape[0] == n and upper.shape[1] == n, "conjugate_gradients_of")
        cg.factor = &upper[0, 0] if n > 0 else NULL
    cg.x, cg.r, cg.search, cg.product = &v[0, 0], &v[1, 0], &v[2, 0], &v[3, 0]
    wanted = cg_begin(&cg, &b[0] if n > 0 else NULL, 1)
    while wanted:
        vectors[3, :n] = product(vectors[2, :n])
        wanted = cg_tell(&cg)
    return vectors[0, :n], cg.count
