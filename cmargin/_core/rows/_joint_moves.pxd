"""What the joint hinge's dual makes of its last sweeps' changes; what is behind it stands in ``_joint_moves.pyx``."""

from cmargin._core.rows._dual_moves cimport MOVES
from cmargin._core.rows._joint_rows cimport joint_rows


cdef struct joint_moves:
    double *a                        # (n, k) dual variables
    double *W                        # (m + 1, width) of them
    double *before                   # (n, k), (m + 1, width) as they were when the sweep began
    double *W_before
    double *last[MOVES]              # (n, k), (m + 1, width) what whole sweeps before have changed, newest first
    double *W_last[MOVES]
    int *touched                     # (n,) the sweep that a row was last changed in
    int now, begun                   # this sweep, and the first one whose change is behind a move that is kept
    int kept                         # how many moves are
    int losses                       # steps one after the other that were not taken,
    int resting                      # and sweeps for which none is tried


# around a sweep: a and W end where they are best, and what has changed is the newest move
cdef void begin_move(joint_moves *at, const joint_rows *rows) noexcept nogil
cdef void end_move(joint_moves *at, joint_rows *rows, double *trial) noexcept nogil

# where a row changes in a sweep
cdef void touch(joint_moves *at, const joint_rows *rows, Py_ssize_t i) noexcept nogil
