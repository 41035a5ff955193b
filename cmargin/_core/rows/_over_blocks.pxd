"""Blocks of rows, shared out to threads.

Who takes which block makes no difference: each sums into a place of its own. `helpers`, where there are any, are a
team that sleeps between two windows of a file (`_team`); else OpenMP's.
"""

from cython.parallel cimport prange, threadid

from cmargin._core.rows._row_blocks cimport block_kernel, block_question
from cmargin._core.rows._looks cimport row_pass
from cmargin._core.small._team cimport team_run


cdef struct block_work:
    row_pass *rows
    block_kernel kernel
    const block_question *asked


cdef inline void do_block(void *of, Py_ssize_t block, int thread) noexcept nogil:
    cdef block_work *by = <block_work *> of
    by.kernel(&by.rows.job, block, by.asked, by.rows.scratch + thread * by.rows.scratch_size)


cdef inline void over_items(row_pass *rows, block_kernel kernel, const block_question *asked, Py_ssize_t n_blocks) \
        noexcept nogil:
    cdef Py_ssize_t block, size = rows.scratch_size
    cdef int n_threads = <int> min(rows.n_threads, n_blocks)
    cdef block_work work
    if n_threads == 1:
        for block in range(n_blocks):
            kernel(&rows.job, block, asked, rows.scratch)
    elif rows.helpers != NULL:
        work.rows, work.kernel, work.asked = rows, kernel, asked
        team_run(rows.helpers, do_block, &work, n_blocks, n_threads)
    else:
        for block in prange(n_blocks, schedule="dynamic", chunksize=1, num_threads=n_threads):
            kernel(&rows.job, block, asked, rows.scratch + threadid() * size)


cdef inline void over_blocks(row_pass *rows, block_kernel kernel, const block_question *asked) noexcept nogil:
    over_items(rows, kernel, asked, rows.job.n_blocks)
