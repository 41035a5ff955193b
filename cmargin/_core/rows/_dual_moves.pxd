"""What the dual makes of its last sweeps' changes; what is behind it stands in ``_dual_moves.pyx``."""

from cmargin._core.rows._dual_rows cimport dual_rows


cdef enum:
    MOVES = 3                        # sweeps before the last whose moves are kept
    DIRECTIONS = MOVES + 1
    MOST_LOSSES = 7                  # that count: at most 16 sweeps are made without a step
    BLOCK = 512                      # numbers of rows or of columns of which a change is held at a time


cdef struct dual_moves:
    double *a                        # (n,) dual variables
    double *w                        # (m + 1,) sum a y (x - mean)
    const double *part               # (m + 1,) what of a change of sum a y x is seen in w; NULL: all
    double *before                   # (n,), (m + 1,) as they were when the sweep began
    double *w_before
    double *last                     # (MOVES, n), (MOVES, m + 1) what sweeps before have changed of a, and of
    double *w_last                   # sum a y x, in a circle that begins at `newest`
    int kept                         # how many of them are there
    int losses                       # steps one after the other that were not taken,
    int resting                      # and sweeps for which none is tried
    int newest                       # place of the last move that is kept


cdef struct small_model:             # of the dual over the directions
    double curvature[DIRECTIONS][DIRECTIONS]
    double slope[DIRECTIONS]
    double step[DIRECTIONS]
    double square                    # |w|^2


cdef struct move_gain:               # what a step adds
    double total                     # to the sum of what a adds to the bound,
    double balance                   # to sum a y
    Py_ssize_t n_read                # rows read for it


# whether the last steps led nowhere, so that this sweep is made without one
cdef bint rests(dual_moves *at) noexcept nogil

# around a sweep: a and w end where they are best, and what has changed is the newest move
cdef void begin_move(dual_moves *at, const dual_rows *rows) noexcept nogil
cdef move_gain end_move(dual_moves *at, dual_rows *rows) noexcept nogil

cdef void clear_model(small_model *model) noexcept nogil

# n numbers' part of the model: slopes sign <slope, d_k>, and curvatures <d_k, weight o d_p>. weight NULL: ones;
# room (n,), NULL: no curvature
cdef void add_products(small_model *model, int kept, Py_ssize_t n, const double **d, double sign, const double *slope,
                       const double *weight, double *room) noexcept nogil

# the largest value of the model; False: no step worth a trial
cdef bint best_step(small_model *model) noexcept nogil
