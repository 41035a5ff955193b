"""Columns of CSR rows in memory, read one after the other; what a model of a step with l1 asks of them.

Of a column j, x_j its entries: products with numbers per row, and its own curvature. The model is described in
``_step_model.pxd``.
"""

from libc.math cimport fabs

from cmargin._core.rows._rows cimport rows_view


cdef struct columns_view:        # of one problem's rows
    rows_view X                  # the columns, each as a row; CSR
    bint single
    double *weight               # (n_rows,) s h / n
    double *product              # (n_rows,) weight <x, d>, the intercept left out
    double *other                # (n_rows,) scratch


cdef struct step_model:
    Py_ssize_t p                 # IN    as all of these:
    double n                     # sum s, for the weights of the rows
    Py_ssize_t intercept         # its column, the last, or -1
    bint free                    # it is not penalised
    const double *g              # IN    (p,) gradient at w, that of l2 with it
    const double *w              # IN    (p,)
    const double *l2             # IN    (p,)
    const double *l1             # IN    (p,)
    double *d                    # OUT   (p,)
    double *curvature            # (p,) sum weight x_j^2 of columns swept since the beginning; else -1
    double *across               # (p,) and their sum weight x_j
    double total                 # sum weight
    double crossed               # sum across d over the columns
    double worst                 # largest violation of the optimality conditions that a sweep met, over the l1 weight
    double read                  # entries that were read


cdef inline double violation(double slope, double x, double l1) noexcept nogil:
    # of the optimality condition of a column whose smooth part has that slope at x
    if x != 0:
        return fabs(slope + (l1 if x > 0 else -l1))
    return max(0.0, fabs(slope) - l1)


# the weights of the rows are set: d = 0, nothing summed
cdef void begin_at_zero(step_model *at, columns_view *of) noexcept nogil

# the listed columns to their own minimum, one after the other, and then an intercept that is penalised
cdef void sweep_columns(step_model *at, columns_view *of, const Py_ssize_t *listed, Py_ssize_t n) noexcept nogil

# slope[j] of the smooth part at d, of listed columns that were swept before and of the intercept
cdef void slopes_of(step_model *at, columns_view *of, const Py_ssize_t *listed, Py_ssize_t n,
                    double *slope) noexcept nogil

# out[j] = (H + l2) v, v 0 but in listed columns and at a penalised intercept; a free one follows. Returns v'(H + l2) v
cdef double times_curvature(step_model *at, columns_view *of, const Py_ssize_t *listed, Py_ssize_t n, const double *v,
                            double *out) noexcept nogil

# d += v, of which the last call was
cdef void add_to_step(step_model *at, columns_view *of, const Py_ssize_t *listed, Py_ssize_t n,
                      const double *v) noexcept nogil
