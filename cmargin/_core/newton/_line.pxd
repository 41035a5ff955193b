"""Minimum of a convex function along a line with the kinks of a penalty inside, asked one trial at a time.

Whoever searches begins, then hands in slope and curvature of the smooth part at ``s`` until no other trial is wanted:

    search_begin(&line)
    while search_tell(&line, slope at line.s, curvature at line.s):
        pass
"""

from cmargin._core.penalties._penalty cimport penalty_t


cdef double ARMIJO                # part of the first slope that a step must gain, for every unit of its length


cdef enum search_phase:
    AT_START, BRACKET, BREAKPOINTS, NEWTON


cdef struct line_search:
    const penalty_t *penalty     # IN    whose kinks are on the line, of n columns; its quadratic part is not counted
    const double *w              # IN    (n,) where the line begins
    const double *d              # IN    (n,) its direction
    double s_max                 # the step is at most this; may be infinite
    double tol                   # slope at the end, beside that at 0
    int max_trials
    double *steps                # scratch (n,)
    Py_ssize_t *index            # scratch (n,)
    double s                     # the next trial, and in the end the answer
    Py_ssize_t hit               # component that vanishes at s, or -1
    search_phase phase
    int trials
    double lo, hi, first, right
    Py_ssize_t a, b


cdef void search_begin(line_search *line) noexcept nogil

# True: another trial is wanted, at the new s
cdef bint search_tell(line_search *line, double slope, double curvature) noexcept nogil
