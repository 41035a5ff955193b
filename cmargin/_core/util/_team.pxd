"""Work shared out to threads that sleep when there is none, see ``_team.h``."""

ctypedef void (*team_work)(void *of, Py_ssize_t item, int thread) noexcept nogil

# work(of, item, thread) of item = 0 .. n - 1 by thread = 0 .. n_threads - 1 at most, 0 being who calls. Who does an
# item must make no difference. Work that an item's own work shares out is done by the thread that does the item.
cdef void share_out(team_work work, void *of, Py_ssize_t n, int n_threads) noexcept nogil
