"""Dual values: how far from the optimum a point can be at most, from sums one look at the rows has made anyway.

For any dual variables a, 0 <= a <= 1 (squared hinge: a >= 0), v = (1/N) sum s a y x and S = (1/N) sum s G(a) bound the
objective by

    D(a) = S - |soft(v, l1)|^2 / (2 l2),

G(a) = -F*(-a): a for the hinge, a - a^2/4 for the squared hinge, the entropy of a for the logistic loss. G is concave
and G(0) = 0, so that G(ta) >= t G(a) for 0 <= t <= 1: a part t of the dual variables is worth t S at least
(doc/methods/smsvm.md, "Certificate"). Sums in double have errors; `ROUNDING` times their size is held against D.
"""

import numpy as np

from libc.math cimport INFINITY, NAN, fabs, isfinite

from cmargin._core.util._rounding cimport ROUNDING_OF_SUMS
from cmargin._core.util._shapes cimport must_fit
from cmargin._core.util._sorting cimport sort_down

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
                        double worth_pos, double worth_neg, bint free) noexcept nogil:
    cdef double pos = 1, neg = 1
    cdef Py_ssize_t j
    if free:                     # the heavier side is shrunk: sum s a y = 0
        if dual_pos > dual_neg:
            pos = dual_neg / dual_pos
        elif dual_neg > 0:
            neg = dual_pos / dual_neg
    at.total = pos * worth_pos + neg * worth_neg
    for j in range(at.n):
        at.v[j] = pos * gradient[j] + neg * gradient[ld + j]


cdef double best_multiple_of(double total, Py_ssize_t n, double *size, double l2, double l1) noexcept nogil:
    # argmax over 0 <= t <= 1 of t S - sum max(0, t |v_j| - l1)^2 / (2 l2). The derivative
    # S - sum_{t |v_j| > l1} (t v_j^2 - l1 |v_j|) / l2 falls with t: its root with the k largest |v_j|, which belongs to
    # these k columns as long as the k-th is over l1. size (n,) is sorted where l1 > 0
    cdef double squares = 0, sizes = 0, root = 1
    cdef Py_ssize_t j
    if l1 == 0:
        for j in range(n):
            squares += size[j] * size[j]
        return min(1.0, l2 * total / squares) if squares > 0 else 1.0
    sort_down(n, size)
    for j in range(n):
        if not size[j] > 0:
            break
        sizes += size[j]
        squares += size[j] * size[j]
        if not (l2 * total + l1 * sizes) / squares * size[j] > l1:
            break
        root = (l2 * total + l1 * sizes) / squares
    return min(1.0, root)


cdef double dual_bound(const dual_point *at, double l2, double l1, const double *noise, double *scratch) noexcept nogil:
    cdef double largest = 0, t, over, squares = 0
    cdef Py_ssize_t j
    if l1 == 0 and l2 == 0:
        return NAN
    for j in range(at.n):
        scratch[j] = fabs(at.v[j]) + (noise[j] if noise != NULL else 0)
        if not scratch[j] <= largest:          # NaN too
            largest = scratch[j]
    if not (isfinite(at.total) and largest < INFINITY and at.total > 0):
        return 0
    if l2 == 0:
        return at.total * min(1.0, l1 / largest) if largest > 0 else at.total
    t = best_multiple_of(at.total, at.n, scratch, l2, l1)
    for j in range(at.n):
        over = t * scratch[j] - l1
        squares += over * over if over > 0 else 0
    over = t * at.total - squares / (2 * l2)
    return over if over > 0 else 0


# ---------------------------------------------------------------- the same for those who have arrays

def gap(double objective, double dual):
    """(P - D) / P, NaN without a certificate; P - D itself where P is nothing beside the 1 that w = 0 has."""
    return relative_gap(objective, dual)


def feasible(const double[:, ::1] gradient, double dual_pos, double dual_neg, free, worth=None):
    """S and v of dual variables that are feasible.

    Parameters
    ----------
    gradient : (2, p) array
        The parts of v over positive and negative rows.
    dual_pos, dual_neg : float
        Sums of s a over them.
    worth : pair of float or None
        Sums of s G(a) over them; None: those of s a, as the hinge has it.
    free : int or None
        Column of ones that is not penalised: a must balance the classes, so the heavier side is shrunk. The value
        stays a valid lower bound whatever a was.

    Returns
    -------
    float, (p,) array, that of ``free`` left out (it is the last)
    """
    must_fit(gradient.shape[0] == 2 and (free is None or free == gradient.shape[1] - 1), "feasible")
    cdef dual_point at
    cdef double[::1] v = np.empty(gradient.shape[1] if free is None else <Py_ssize_t> free)
    at.n, at.v = v.shape[0], NULL
    if at.n > 0:
        at.v = &v[0]
    worth_pos, worth_neg = (dual_pos, dual_neg) if worth is None else worth
    make_feasible(&at, &gradient[0, 0], gradient.shape[1], dual_pos, dual_neg, worth_pos, worth_neg, free is not None)
    return at.total, np.asarray(v)


def bound(double total, const double[::1] v, double l2, double l1, noise=0.0):
    """The best of D(t a), 0 <= t <= 1: a lower bound of the objective; 0, the bound of a = 0, at worst.

    Parameters
    ----------
    total : float, S
    v : (p,) array
    l2, l1 : float
    noise : (p,) array or 0
        What rounding may have taken from |v|.

    Returns
    -------
    float, NaN where there is no bound (l1 = l2 = 0)
    """
    cdef dual_point at
    cdef Py_ssize_t n = v.shape[0]
    cdef double[::1] scratch = np.empty(n + 1)
    cdef double[::1] errors = np.zeros(n + 1)
    np.asarray(errors)[:n] = noise
    at.total, at.n, at.v = total, n, NULL
    if n > 0:
        at.v = <double *> &v[0]
    return dual_bound(&at, l2, l1, &errors[0], &scratch[0])


def best_multiple(double total, size, double l2, double l1):
    """argmax over 0 <= t <= 1 of t S - sum max(0, t |v_j| - l1)^2 / (2 l2), ``size`` (p,) the |v_j|."""
    cdef double[::1] held = np.append(np.asarray(size, float), 0.0)
    return best_multiple_of(total, held.shape[0] - 1, &held[0], l2, l1)


def dual_value(gradient, dual_pos, dual_neg, l2, l1, free):
    """`bound` of what `feasible` makes of the sums."""
    return bound(*feasible(np.ascontiguousarray(gradient), dual_pos, dual_neg, free), l2, l1)
