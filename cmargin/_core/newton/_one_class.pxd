"""The one-class problem as one of the hinge: all rows are positive, rho = 1 - b, and nu (b - 1) joins the objective.

    (l2/2) |w|^2 - nu rho + (1/N) sum s max(0, rho - <w, x>),        dual: -|v|^2 / (2 l2),  v = (1/N) sum s a x,

0 <= a <= 1 and sum s a = nu N (Schoelkopf et al. 2001). The minimum is never positive, and 0 where such an average of
the rows is the origin. So a gap is relative to the bound -D, which is no less than the minimum's size, and to
``least`` where that is smaller.
"""

from libc.math cimport fabs, isfinite, INFINITY

from cmargin._core.newton._bound cimport dual_point
from cmargin._core.newton._state cimport newton_state, one_class_problem
from cmargin._core.penalties._penalty cimport penalty_t
from cmargin._core.penalties._ridge cimport ridge_conjugate


cdef inline bint is_one_class(const newton_state *at) noexcept nogil:
    return at.one_class.nu > 0


cdef inline double one_class_term(const newton_state *at, const double *w) noexcept nogil:
    # nu (b - 1), 0 in other problems
    return at.one_class.nu * (w[at.p - 1] - 1) if is_one_class(at) else 0


cdef inline double one_class_slope(const newton_state *at, Py_ssize_t j) noexcept nogil:
    return at.one_class.nu if j == at.p - 1 else 0


cdef inline void make_one_class_feasible(const one_class_problem *of, dual_point *to, const double *vector, double n,
                                         double held) noexcept nogil:
    # v times n of dual variables that add up to nu n, from sum s a x and ``held`` = sum s a of any in [0, 1]: they are
    # shrunk, or moved towards 1, where all rows' sum of s x enters
    cdef double wanted = of.nu * n, own = 1, rows = 0
    cdef Py_ssize_t j
    if held > wanted:
        own = wanted / held
    elif n > held:
        rows = (wanted - held) / (n - held)
        own = 1 - rows
    for j in range(to.n):
        to.v[j] = own * vector[j] + rows * of.row_sum[j]
    to.total = 0


cdef inline double one_class_bound(const one_class_problem *of, const dual_point *of_rows, const penalty_t *penalty,
                                   const double *noise, double *scratch) noexcept nogil:
    # D, for |v_j| + noise_j, noise (n,) or NULL; scratch (n,)
    cdef double value
    cdef Py_ssize_t j
    for j in range(of_rows.n):
        scratch[j] = fabs(of_rows.v[j]) + (noise[j] if noise != NULL else 0)
    value = of_rows.total - ridge_conjugate(penalty.l2, 1, of_rows.n, scratch)
    return value if isfinite(value) else -INFINITY


cdef inline double one_class_scale(const one_class_problem *of, double dual) noexcept nogil:
    # what a gap is relative to
    return max(-dual, of.least)


cdef inline double one_class_gap(const one_class_problem *of, double objective, double dual) noexcept nogil:
    if not isfinite(objective) or not isfinite(dual):
        return INFINITY
    return (objective - min(objective, dual)) / one_class_scale(of, dual)
