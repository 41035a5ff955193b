"""What every penalty is: its kind, and its numbers for the columns of one problem."""


cdef enum penalty_kind:          # which line of ``_penalties``
    RIDGE, ELASTIC_NET, GROUP_NORMS,
    BY_COLUMN                    # l2, l1 and bounds of each column's own


cdef struct column_groups:       # every penalised column is in one; none is empty
    Py_ssize_t n                 # groups
    const Py_ssize_t *of         # (columns,) the group of a column
    const Py_ssize_t *member     # (columns,) the columns, group by group
    const Py_ssize_t *first      # (n + 1,) where a group begins among them
    const double *weight         # (n,) of its norm, beside l1


cdef struct linear_constraints:  # A w + b >= 0, of penalised columns; n = 0: there are none
    Py_ssize_t n
    Py_ssize_t n_columns
    const double *A              # (n, n_columns) rows of length 1, 0 in a free column
    const double *b              # (n,)
    const double *gram           # (n, n) A A'
    double *work                 # WORK  (n + 6) n
    double *moved                # WORK  (n_columns,)
    Py_ssize_t *index            # WORK  (n,)


cdef struct penalty_t:           # sum over all columns but a free one of (l2/2) w_j^2, and what its kind adds
    penalty_kind kind
    Py_ssize_t n                 # columns
    Py_ssize_t free              # the one that is not penalised, the last, or -1
    double l2                    # BY_COLUMN: the least of any column,
    double l1                    # and the largest; > 0, 0 for RIDGE
    # ---- pointers from here on; of a penalty that is not asked column by column they are NULL
    double *l2_each              # (n,), 0 for a free column
    double *l1_each              # (n,); of GROUP_NORMS, what the norm of the column's group weighs
    column_groups groups         # of GROUP_NORMS
    const double *lower          # (n,) bounds, infinite where there are none; of BY_COLUMN, of others NULL
    const double *upper          # (n,)
    linear_constraints constraints       # of BY_COLUMN with one l2 for all; bounds are among them


cdef inline penalty_t penalty_of(double l2, double l1) noexcept nogil:
    cdef penalty_t penalty
    penalty.kind = ELASTIC_NET if l1 > 0 else RIDGE
    penalty.n, penalty.free, penalty.l2, penalty.l1 = 0, -1, l2, l1
    penalty.l2_each = penalty.l1_each = NULL
    penalty.groups.n = penalty.constraints.n = 0
    penalty.lower = penalty.upper = NULL
    return penalty


cdef inline penalty_t kinks_of(Py_ssize_t n, const double *l1_each) noexcept nogil:
    # sum l1_each_j |w_j| alone, for a search along a line
    cdef penalty_t penalty = penalty_of(0, 1)
    penalty.n, penalty.l1_each = n, <double *> l1_each
    return penalty


cdef inline void lay_out(penalty_t *penalty, double *l2_each, double *l1_each) noexcept nogil:
    # the numbers of every column, into memory that is the penalty's from now on; n, free, l2 and l1 are set, and of
    # BY_COLUMN the numbers of every column, elsewhere
    cdef Py_ssize_t j
    if penalty.kind == BY_COLUMN:
        for j in range(penalty.n):
            l2_each[j], l1_each[j] = penalty.l2_each[j], penalty.l1_each[j]
    penalty.l2_each, penalty.l1_each = l2_each, l1_each
    if penalty.kind == BY_COLUMN:
        return
    for j in range(penalty.n):
        l2_each[j], l1_each[j] = (penalty.l2, penalty.l1) if j != penalty.free else (0.0, 0.0)
        if penalty.kind == GROUP_NORMS and j != penalty.free:
            l1_each[j] *= penalty.groups.weight[penalty.groups.of[j]]
