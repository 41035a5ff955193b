"""The model of a Newton step with an l1 term, minimised by reading columns of CSR rows in memory.

    m(d) = g'd + d'(H + diag l2) d / 2 + sum l1 |w + d|,     H = (1/n) sum s h x x'

H is never formed: a slope of the model is a product of a column with the numbers h <x, d> of the rows. Coordinate
descent finds which columns are in use and their signs (Yuan, Ho and Lin, JMLR 2012, "An Improved GLMNET for
L1-regularized Logistic Regression"); on those the model is a quadratic, of which conjugate gradients find the minimum,
where sweeps would take hundreds. Where a component would change its sign it stops at 0, and the next sweep decides.
"""

from cmargin._core.newton._conjugate_gradients cimport conjugate_gradients
from cmargin._core.rows._columns cimport columns_view, step_model


cdef enum model_stage:
    SWEEP_ALL, SOLVE, PROJECT


cdef struct model_solver:
    step_model model             # its IN fields are set, and its memory
    Py_ssize_t *all              # IN    columns that may come into use, so many
    Py_ssize_t n_all
    double enough                # IN    violation, over the l1 weight, that may stay
    double l1                    # IN
    double worth                 # IN    reads of all entries that a block without factors costs,
    double most                  # IN    and that may be made at all
    double reads                 # OUT   and that were
    bint given_up                # OUT   more were wanted
    Py_ssize_t *used             # (p,) columns in use, so many
    Py_ssize_t n_used
    double *slope                # (p,)
    double *scale                # (p,) diagonal for `cg`
    conjugate_gradients cg
    int in_turn                  # products in turn, at most
    model_stage stage


cdef void model_begin(model_solver *at, columns_view *of) noexcept nogil
cdef bint model_part(model_solver *at, columns_view *of) noexcept nogil      # some reads of columns; False: at an end
