"""A team of threads that sleep between two pieces of work, as a thing that Python lets go."""

import numpy as np

from cmargin._core.small._team cimport team_free, team_new, team_run


cdef class Team:
    """Threads for a read in many short pieces; ``n_threads`` with the one that asks."""

    def __cinit__(self, int n_threads):
        if n_threads > 1:
            self.here = team_new(n_threads - 1)

    def __dealloc__(self):
        team_free(self.here)

    def run(self, Py_ssize_t n, int n_threads):
        """(n,) of which thread did an item: for tests, on a team that is there."""
        cdef Py_ssize_t[::1] who = np.full(n, -1, np.intp)
        if self.here != NULL and n > 0:
            with nogil:
                team_run(self.here, note, &who[0], n, n_threads)
        return who.base


cdef void note(void *of, Py_ssize_t item, int thread) noexcept nogil:
    (<Py_ssize_t *> of)[item] += 1 + thread              # -1 before: once each, or it shows
