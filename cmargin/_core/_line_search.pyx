"""Minimum of a convex function along a line with the breakpoints of an l1 term inside.

Along w + s d the penalty |w + s d|_1 has kinks where a component vanishes. The index of the breakpoint on which the
minimum falls is returned, because w_j + s d_j need not evaluate to zero there (SmSVM, section 2.2).
"""

import numpy as np

from libc.math cimport fabs

from cmargin._core._shapes cimport must_fit


cdef double l1_slope(const double[::1] w, const double[::1] d, const double[::1] weight, double s, int side) noexcept:
    # derivative of sum weight_j |w_j + s d_j| from the left (side -1) or from the right (side +1)
    cdef Py_ssize_t j
    cdef double total = 0, at
    for j in range(w.shape[0]):
        if d[j] == 0:
            continue
        at = w[j] + s * d[j]
        if s * d[j] != 0 and fabs(at) <= 4e-16 * fabs(w[j]):   # on its own breakpoint, up to rounding
            at = 0
        if at == 0:
            total += side * weight[j] * fabs(d[j])
        else:
            total += weight[j] * (d[j] if at > 0 else -d[j])
    return total


def breakpoints(const double[::1] w, const double[::1] d, double s_max):
    """Steps in (0, s_max) at which a component of w + s d vanishes, ascending, and their indices."""
    cdef Py_ssize_t j
    must_fit(w.shape[0] == d.shape[0], "breakpoints")
    steps, index = [], []
    for j in range(w.shape[0]):
        if w[j] * d[j] < 0 and -w[j] / d[j] < s_max:
            steps.append(-w[j] / d[j])
            index.append(j)
    order = np.argsort(steps, kind="stable")
    return np.array(steps)[order], np.array(index, np.intp)[order]


def quadratic_step(const double[::1] w, const double[::1] d, double b, double a, const double[::1] weight,
                   double s_max=np.inf):
    """argmin over 0 <= s <= s_max of a s^2 + b s + sum weight_j |w_j + s d_j| (SmSVM, Algorithm 4).

    Line 13 of the paper leaves the l1 weight out of the slope; it is in here. Breakpoints are sorted and the slope,
    which only grows, is bisected over them.

    Returns
    -------
    s : float
    hit : int
        Index of the component that vanishes at ``s``, or -1.
    """
    def along(s):
        return b + 2 * a * s, 2 * a

    return exact_step(along, w, d, weight, s_max)


def exact_step(along, const double[::1] w, const double[::1] d, const double[::1] weight, double s_max,
               double tol=1e-8, int max_trials=100):
    """argmin over 0 <= s <= s_max of a smooth convex function plus sum weight_j |w_j + s d_j|.

    Parameters
    ----------
    along : callable, s -> (slope, curvature)
        Of the smooth part; no read of the data.
    w, d, weight : (n,) arrays
    s_max : float
        May be infinite.
    tol : float
        Stop when the slope is below ``tol`` times its value at 0.

    Returns
    -------
    s : float
    hit : int
        Index of the component that vanishes at ``s``, or -1.
    """
    must_fit(w.shape[0] == d.shape[0] == weight.shape[0], "exact_step")
    cdef double lo = 0, hi, s, slope, curvature, first, left, right, step
    cdef Py_ssize_t a, b, middle
    slope, curvature = along(0.0)
    first = slope + l1_slope(w, d, weight, 0, 1)
    if not first < 0:
        return 0.0, -1
    hi = min(1.0, s_max)
    for _ in range(60):                            # bracket: the slope only grows
        slope, curvature = along(hi)
        if slope + l1_slope(w, d, weight, hi, -1) >= 0:
            break
        if hi >= s_max:
            return s_max, -1
        lo = hi
        hi = min(2 * hi, s_max)
    else:
        return lo, -1                              # falls for ever: the caller sees no decrease below rounding
    steps, index = breakpoints(w, d, hi * (1 + 1e-15))
    a, b = 0, len(steps)                           # first breakpoint whose right slope is not negative
    while a < b:
        middle = (a + b) // 2
        slope, curvature = along(steps[middle])
        right = slope + l1_slope(w, d, weight, steps[middle], 1)
        if right < 0:
            lo = max(lo, steps[middle])
            a = middle + 1
            continue
        left = slope + l1_slope(w, d, weight, steps[middle], -1)
        if left <= 0:
            return steps[middle], index[middle]
        hi = min(hi, steps[middle])
        b = middle
    s = (lo + hi) / 2
    right = l1_slope(w, d, weight, s, 1)           # constant between two breakpoints
    for _ in range(max_trials):                    # Newton, bisection where it leaves the bracket
        slope, curvature = along(s)
        slope += right
        if fabs(slope) <= tol * fabs(first) or hi - lo <= 1e-14 * hi:
            break
        if slope < 0:
            lo = s
        else:
            hi = s
        step = s - slope / curvature if curvature > 0 else lo - 1
        s = step if lo < step < hi else (lo + hi) / 2
    return s, -1
