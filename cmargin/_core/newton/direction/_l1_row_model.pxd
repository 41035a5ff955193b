"""The model of a Newton step with an l1 term where more columns are in use than there are rows: unknowns are the rows'.

    m(d) = g'd + d'(X'DX + diag l2) d / 2 + sum l1 |w + d|,     D = diag(s h) / n,  l2 > 0

With z = X d as unknowns of their own, u the multipliers of that, it has the dual

    -psi(u),   psi(u) = u'D^-1 u / 2 + sum |soft(v, l1)|^2 / (2 l2) + u'X w,   v = l2 w - g - X'u,

a convex function with a continuous slope D^-1 u - X d(u), where d(u) = soft(v, l1) / l2 - w is the minimum of
the model in d for those multipliers. Newton's method on psi has the matrix D^-1 + X_J X_J' / l2, J the columns that
d(u) has in use: one of rows, however many columns there are (the semismooth Newton method of Li, Sun and Toh, SIAM J.
Optim. 2018, there for the lasso). X_J X_J' is kept from step to step, and a column that comes into use or goes out of
it adds or takes its part. Between m(d(u)) and its minimum lies at most the gap m + psi, sum D (u / D - z)^2 / 2.

Within bounds d(u) + w is soft(v, l1) / l2 between them, psi has the conjugate of that, and J the columns at no bound.

An intercept that is not penalised has its own condition, sum u + g_b = 0, and is the multiplier of that.
"""

from cmargin._core.penalties._penalty cimport penalty_t
from cmargin._core.rows._pass_state cimport row_unknowns
from cmargin._core.rows._tiles cimport row_source


cdef struct row_model:
    # ---- the problem
    double n                     # sum s
    bint free                    # the intercept, the last column, is not penalised
    double l2                    # the same for all
    double l1
    const penalty_t *penalty     # has the l1 of each column, and BY_COLUMN its bounds
    const double *g              # (p,) gradient at w, that of l2 with it
    const double *w              # (p,)
    # ---- what is wanted
    double tol                   # root of the part of the model's decrease that may be missing of it
    int most                     # Newton steps
    double allowed               # reads: a Newton step begins where one is left
    # ---- the answer
    double *d                    # (p,)
    double reads
    bint given_up                # it is not that near
    bint spent                   # and no more is wrong with it
    # ---- how far it is
    int count                    # Newton steps so far
    Py_ssize_t p
    Py_ssize_t n_soft            # columns that are penalised
    Py_ssize_t n_curved          # rows with curvature
    double total                 # sum D


# the weights of the rows are set; ``source`` of the same rows
cdef void row_model_begin(row_model *at, row_unknowns *of, const row_source *source) noexcept nogil
cdef bint row_model_part(row_model *at, row_unknowns *of, const row_source *source) noexcept nogil   # False: at an end
