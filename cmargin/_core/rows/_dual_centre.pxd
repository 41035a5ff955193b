"""Common columns held near a centre while the dual is swept; what is behind it stands in ``_dual_centre.pyx``."""

from cmargin._core.rows._dual_rows cimport dual_rows
from cmargin._core.util._serialise cimport span


cdef struct dual_centre:
    double *centre                   # (m + 1,) v
    double *move                     # (m + 1,) of the centre, the last
    Py_ssize_t *held                 # (m + 1,) the columns whose part is not 1 come first
    double *part                     # (m + 1,) 1 / (1 + rho): what of a change of sum a y x is seen in w
    double *square                   # (n,) sum_j part_j x_j^2 + part bias^2 + ridge
    const double *column             # (m + 2,) sums of C x^2, and of C; NULL: there is no centre
    # ---- what a checkpoint holds, beside the arrays
    double strength                  # t
    double weight                    # rho over `column`, of `part` and `square`
    Py_ssize_t n_held
    double of_sum                    # |sum a y x|^2 at the end of the last sweep


# the arrays belong to the caller; no column is held yet
cdef void begin_centre(dual_centre *at, const dual_rows *rows) noexcept nogil

# out = sum a y x, of which w is the point; they may be the same
cdef void sum_behind(const dual_centre *at, Py_ssize_t m, const double *w, double *out) noexcept nogil

# after a sweep that saw so large a gap of the rows, total = sum of gains, unbalanced = bias sum a y: w and the centre
# move on. Returns what the columns add to the gap
cdef double move_centre(dual_centre *at, dual_rows *rows, double seen, double total, double unbalanced,
                        double *w) noexcept nogil

# where w is sum a y x
cdef void centre_at(dual_centre *at, Py_ssize_t m, const double *w) noexcept nogil

cdef span numbers_of_centre(dual_centre *at) noexcept nogil
