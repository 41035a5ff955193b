"""Work shared out to threads that sleep when there is none: one team for each thread that asks."""

import numpy as np

from cmargin._core.util._openmp cimport omp_in_parallel
from cmargin._core.util._team cimport team_work

cdef extern from "_team.h":
    void team_share_out(team_work work, void *of, Py_ssize_t n, int n_threads) noexcept nogil


cdef void share_out(team_work work, void *of, Py_ssize_t n, int n_threads) noexcept nogil:
    # a class of a parallel loop over classes is one thread's
    team_share_out(work, of, n, 1 if n_threads == 1 or omp_in_parallel() else n_threads)


cdef void note(void *of, Py_ssize_t item, int thread) noexcept nogil:
    (<Py_ssize_t *> of)[item] += 1 + thread              # -1 before: once each, or it shows


def who_did(Py_ssize_t n, int n_threads):
    """(n,) of which thread did an item, for tests."""
    cdef Py_ssize_t[::1] who = np.full(n, -1, np.intp)
    if n > 0:
        with nogil:
            share_out(note, &who[0], n, n_threads)
    return who.base
