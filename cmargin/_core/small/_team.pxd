"""Threads that sleep between two pieces of work, see ``_team.h``: for short ones that others come between."""

cdef extern from "_team.h":
    ctypedef void (*team_work)(void *of, Py_ssize_t item, int thread) noexcept nogil
    ctypedef struct team:
        pass
    team *team_new(int n_helpers) noexcept nogil                     # NULL: there is none, and callers do without
    void team_free(team *t) noexcept nogil
    void team_run(team *t, team_work work, void *of, Py_ssize_t n, int n_threads) noexcept nogil


cdef class Team:
    cdef team *here                      # NULL: there is none
