"""Coordinate descent on a quadratic model with an l1 term: the block is in memory, the data are not asked."""

from cmargin._core._blas cimport axpy
from cmargin._core._shapes cimport must_fit


def descend(const double[:, ::1] H, double[::1] gradient, double[::1] x, const double[::1] l1, int sweeps,
            double tol):
    """Cyclic exact minimisation of g'd + d'Hd/2 + sum l1_j |x_j| over one coordinate at a time.

    Parameters
    ----------
    H : (n, n) array
        Symmetric, both triangles filled. Columns with H_jj <= 0 stay as they are.
    gradient : (n,) array
        Of the quadratic part at ``x``; follows ``x``.
    x : (n,) array
        Changed in place; exact zeros.
    l1 : (n,) array
    sweeps : int
        At most.
    tol : float
        Stop after a sweep whose largest model decrease of one coordinate is below ``tol`` times the first sweep's.

    Returns
    -------
    int
        Sweeps made.
    """
    must_fit(H.shape[0] == H.shape[1] == gradient.shape[0] == l1.shape[0] == x.shape[0], "descend")
    cdef int made
    with nogil:
        made = run_sweeps(H, gradient, x, l1, sweeps, tol)
    return made


cdef int run_sweeps(const double[:, ::1] H, double[::1] gradient, double[::1] x, const double[::1] l1, int sweeps,
                    double tol) noexcept nogil:
    cdef Py_ssize_t n = x.shape[0], j
    cdef double curvature, target, step, decrease, largest, first = 0
    cdef int sweep
    for sweep in range(sweeps):
        largest = 0
        for j in range(n):
            curvature = H[j, j]
            if not curvature > 0:
                continue
            target = curvature * x[j] - gradient[j]
            if target > l1[j]:
                target = (target - l1[j]) / curvature
            elif target < -l1[j]:
                target = (target + l1[j]) / curvature
            else:
                target = 0
            step = target - x[j]
            if step == 0:
                continue
            decrease = curvature * step * step
            largest = decrease if decrease > largest else largest
            x[j] = target
            axpy(n, step, &H[j, 0], &gradient[0])
        if sweep == 0:
            first = largest
        if largest <= tol * first:
            return sweep + 1
    return sweeps
