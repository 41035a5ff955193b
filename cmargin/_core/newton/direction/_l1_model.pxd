"""The model of a Newton step with an l1 term, minimised by reading columns of CSR rows in memory.

    m(d) = g'd + d'(H + diag l2) d / 2 + sum l1 |w + d|,     H = (1/n) sum s h x x'

H is never formed: a slope of the model is a product of a column with the numbers h <x, d> of the rows. Coordinate
descent finds which columns are in use and their signs (Yuan, Ho and Lin, JMLR 2012, "An Improved GLMNET for
L1-regularized Logistic Regression"); on those the model is a quadratic, of which conjugate gradients find the minimum,
where sweeps would take hundreds. Where a component would change its sign it stops at 0, and the next sweep decides.
Where columns in use depend on each other that quadratic may have no minimum: then the l1 term's kinks end the search.

An intercept is no column of the rows: it goes by the sums over them. One that is not penalised is minimised out as
the others move, d_b = -(g_b + sum across d) / total, so that columns with a mean meet as if they were centred.
"""

from cmargin._core.newton.direction._conjugate_gradients cimport conjugate_gradients
from cmargin._core.newton._line cimport line_search
from cmargin._core.penalties._penalty cimport penalty_t
from cmargin._core.rows._pass_state cimport columns_view


cdef enum model_stage:
    SWEEP, SOLVE, TAKE


cdef struct step_model:
    # ---- the problem
    Py_ssize_t p
    double n                     # sum s
    Py_ssize_t intercept         # its column, the last, or -1
    bint free                    # it is not penalised
    double l1
    const double *g              # (p,) gradient at w, that of l2 with it
    const double *w              # (p,)
    const double *l2_each        # (p,)
    const double *l1_each        # (p,)
    # ---- what is wanted
    Py_ssize_t *listed           # columns that may come into use, so many
    Py_ssize_t n_listed
    double enough                # violation of an optimality condition, over the l1 weight, that may stay
    double block_reads           # reads of all entries that a block without factors costs,
    Py_ssize_t block_columns     # the columns that it has at least,
    double most                  # and that may be made at all
    # ---- the answer
    double *d                    # (p,)
    double reads
    bint given_up                # more of them were wanted
    # ---- memory, and what is known
    double *curvature            # (p,) sum weight x_j^2 of columns that were swept; else -1
    double *across               # (p,) and their sum weight x_j
    double total                 # sum weight
    double crossed               # sum across d over the columns
    double read                  # entries that were read
    # ---- the system of what is in use: columns, and behind them an intercept that is penalised
    Py_ssize_t *used             # (p,) their columns,
    Py_ssize_t n_used            # so many,
    Py_ssize_t n_unknowns        # and with the intercept; of each of them:
    double *slope                # of m without its l1 term, at d
    double *signed               # of the l1 term there
    double *l1_used
    double *scale                # diagonal for `cg`
    double *place                # where a search along the line begins
    conjugate_gradients cg
    penalty_t of_used             # kinks of what is in use
    line_search line
    double least                 # |residual|^2 met so far
    bint flat                    # in this fit there was a system without a solution
    int kinks                    # met on the way to x
    double change                # of the model by x, without its l1 term
    int most_products            # one after the other, at most
    model_stage stage


# the weights of the rows are set
cdef void model_begin(step_model *at, columns_view *of) noexcept nogil
cdef bint model_part(step_model *at, columns_view *of) noexcept nogil        # some reads of columns; False: at an end


cdef inline double entries_of(const columns_view *of, Py_ssize_t j) noexcept nogil:
    # of column j
    return of.source.X.n_features if of.source.X.starts == NULL else of.source.X.starts[j + 1] - of.source.X.starts[j]
