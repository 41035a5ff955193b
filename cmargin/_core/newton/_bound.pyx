"""Dual values: how far from the optimum a point can be at most, from sums one evaluation has made anyway.

For any dual variables a, 0 <= a <= 1 (squared hinge: a >= 0), v = (1/N) sum s a y x and S = (1/N) sum s G(a) bound the
objective by D(a) = S - sum phi_j*(v_j), phi_j* the conjugate of the penalty (``penalties/_penalties``) and
G(a) = -F*(-a): a for the hinge, a - a^2/4 for the squared hinge, the entropy of a for the logistic loss
(doc/methods/smsvm.md, "Certificate"). Sums in double have errors; `ROUNDING` times their size is held against D.
"""

import numpy as np

from libc.math cimport INFINITY, NAN, isfinite

from cmargin._core.util._rounding cimport ROUNDING_OF_SUMS
from cmargin._core.util._shapes cimport must_fit

ROUNDING = ROUNDING_OF_SUMS              # the same for Python
cdef double NOTHING = 1e-15              # an objective below counts as 0, beside the 1 that w = 0 has


cdef double relative_gap(double objective, double dual) noexcept nogil:
    # P - D itself where P is nothing
    if objective < NOTHING:
        return objective - min(objective, dual if dual == dual else 0)
    if not isfinite(objective):
        return INFINITY
    return (objective - min(objective, dual)) / objective if dual == dual else NAN


cdef void make_feasible(dual_point *at, const double *gradient, Py_ssize_t ld, double dual_pos, double dual_neg,
                        double gain_pos, double gain_neg, bint free) noexcept nogil:
    cdef double pos, neg
    cdef Py_ssize_t j
    pos, neg = sides(dual_pos, dual_neg, free)
    at.total = pos * gain_pos + neg * gain_neg
    for j in range(at.n):
        at.v[j] = pos * gradient[j] + neg * gradient[ld + j]


# ---------------------------------------------------------------- the same for those who have arrays

def gap(double objective, double dual):
    """(P - D) / P, NaN without a certificate; P - D itself where P is nothing beside the 1 that w = 0 has."""
    return relative_gap(objective, dual)


def feasible(const double[:, ::1] gradient, double dual_pos, double dual_neg, free, gain=None):
    """S and v (p,), without ``free``, of dual variables that are feasible.

    ``gradient``: (2, p), the parts of v over positive and negative rows.
    ``dual_pos``, ``dual_neg``: sums of s a over them; ``gain``: two of s G(a), None: those of s a, as the hinge has it.
    ``free``: column of ones that is not penalised, the last, or None: a must balance the classes, so the heavier side
    is shrunk. The value stays a valid lower bound whatever a was.
    """
    must_fit(gradient.shape[0] == 2 and (free is None or free == gradient.shape[1] - 1), "feasible")
    cdef dual_point at
    cdef double[::1] v = np.empty(gradient.shape[1] if free is None else <Py_ssize_t> free)
    at.n, at.v = v.shape[0], NULL
    if at.n > 0:
        at.v = &v[0]
    gain_pos, gain_neg = (dual_pos, dual_neg) if gain is None else gain
    make_feasible(&at, &gradient[0, 0], gradient.shape[1], dual_pos, dual_neg, gain_pos, gain_neg, free is not None)
    return at.total, np.asarray(v)
