"""SmSVM's Algorithms 1 to 4 as a driver of their own: the requests of ``_asking.pxd``, the state of ``_driver.pxd``.

What is known of a point, the bound, the history and the end are those of SmSVM's driver; the steps are not.
"""

from cmargin._core.newton._state cimport newton_state
from cmargin._core.newton._memory cimport Newton


cdef struct published_kept:      # what a checkpoint holds of it
    double newton_tol            # times the width: a Newton decrement below which the width is reduced
    double narrowest             # the last width but one
    bint adjust                  # columns may still be admitted at this width
    Py_ssize_t directions        # Newton directions so far
    int asked_for                # what a question of its own was for


cdef struct published_steps:
    newton_state *at
    published_kept kept
    unsigned char *in_use        # (p,) active set
    unsigned char *gone          # (p,) components that a step takes to 0
    unsigned char *used          # (p,) active set of the last direction
    double *zeroed               # (p,) where a step leads, components that changed sign set to 0
    double *work                 # (2 p^2 + 2 p,)


cdef class PublishedNewton(Newton):
    cdef published_steps steps
    cdef object flags, zeroed, work
