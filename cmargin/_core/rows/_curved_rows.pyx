"""Curvature of wide rows, summed when a pass has found which rows have any.

A block of curvature of wide rows takes as long to clear and to fold as a few hundred of its rows to add up. So these
are not summed block by block, where few rows of each have curvature: the pass leaves the curvature of every row, and
those that have some are cut into groups of as many, as groups of `GROUP_ROWS` at least. A group has a block of its own,
and blocks are folded in the order of the groups: the same bits for any number of threads.
"""

from cmargin._core.rows._over_blocks cimport over_items
from cmargin._core.rows._pass_state cimport MOST_GROUPS, curved_rows, row_pass
from cmargin._core.rows._row_blocks cimport CURVED, block_question, fold_curvature, pass_job
from cmargin._core.rows._tiles cimport (
    begin_curvature, curvature_block, finish_curvature, open_tile, row_tile, tile_add_curvature,
)

cdef Py_ssize_t GROUP_ROWS = 256             # so many cost ten times what their block does to be cleared and folded
cdef double GROUP_FLOPS = 4e9                # of a group, at most, and of a thread's before Python is heard


cdef void curved_begin(row_pass *rows) noexcept nogil:
    cdef curved_rows *curved = &rows.curved
    cdef double order = rows.job.block.n_active
    cdef Py_ssize_t groups
    curved.n = <Py_ssize_t> rows.job.sums[CURVED]
    groups = min(curved.n // GROUP_ROWS, MOST_GROUPS)
    if groups > 2:                           # as many for each of 2, 4 or 8 threads
        groups = groups // 8 * 8 if groups > 8 else 4 if groups > 4 else 2
    curved.flops = curved.n * order * order
    curved.n_groups = max(max(groups, 1), <Py_ssize_t> (curved.flops / GROUP_FLOPS))
    curved.group = curved.row = 0


cdef inline Py_ssize_t groups_at_once(const row_pass *rows) noexcept nogil:
    cdef const curved_rows *curved = &rows.curved
    cdef Py_ssize_t most = max(1, <Py_ssize_t> (rows.n_threads * GROUP_FLOPS * curved.n_groups / (curved.flops + 1)))
    return min(min(most, MOST_GROUPS), min(rows.n_hessians - 1, curved.n_groups - curved.group))


cdef inline Py_ssize_t end_of_group(const row_pass *rows, Py_ssize_t group, Py_ssize_t row) noexcept nogil:
    # of one that begins at ``row``
    cdef const curved_rows *curved = &rows.curved
    cdef Py_ssize_t left = (group + 1) * curved.n // curved.n_groups - group * curved.n // curved.n_groups
    while left > 0 and row < rows.job.n_rows:
        left -= rows.job.curvature[row] > 0
        row += 1
    return row


cdef bint curved_part(row_pass *rows) noexcept nogil:
    # the first block is the sum of all groups so far; those of a part follow it, but for the very first group
    cdef curved_rows *curved = &rows.curved
    cdef Py_ssize_t n = groups_at_once(rows), k
    cdef block_question asked
    asked.part = curved.group > 0
    asked.bounds = curved.bounds
    curved.bounds[0] = curved.row
    for k in range(n):
        curved.bounds[k + 1] = end_of_group(rows, curved.group + k, curved.bounds[k])
    over_items(rows, add_group, &asked, n)
    asked.n_summed, asked.n_folding = asked.part + n, rows.n_threads
    if asked.n_summed > 1:
        over_items(rows, fold_curvature, &asked, asked.n_folding)
    curved.group += n
    curved.row = curved.bounds[n]
    return curved.group < curved.n_groups


cdef void add_group(pass_job *job, Py_ssize_t group, const block_question *asked, double *scratch) noexcept nogil:
    cdef curvature_block sum_of_outer = job.block
    cdef Py_ssize_t a = job.block.n_active, first = asked.bounds[group], end = asked.bounds[group + 1]
    cdef double *tile_room = begin_curvature(&sum_of_outer, job.hessian + (asked.part + group) * a * a, True, scratch)
    cdef row_tile tile
    while first < end:
        if not job.curvature[first] > 0:
            first += 1
            continue
        tile = open_tile(&job.source, first, min(job.tile_rows, end - first), tile_room)
        tile_add_curvature(&tile, job.curvature + first, &sum_of_outer)
        first += tile.n
    finish_curvature(&sum_of_outer)
