"""Blocks of rows, shared out to threads.

Who takes which block makes no difference: each sums into a place of its own.
"""

from cmargin._core.rows._pass_state cimport row_pass
from cmargin._core.rows._row_blocks cimport block_kernel, block_question
from cmargin._core.util._team cimport share_out


cdef struct block_work:
    row_pass *rows
    block_kernel kernel
    const block_question *asked


cdef inline void do_block(void *of, Py_ssize_t block, int thread) noexcept nogil:
    cdef block_work *by = <block_work *> of
    by.kernel(&by.rows.job, block, by.asked, by.rows.scratch + thread * by.rows.scratch_size)


cdef inline void over_items(row_pass *rows, block_kernel kernel, const block_question *asked, Py_ssize_t n_blocks) \
        noexcept nogil:
    cdef block_work work
    work.rows, work.kernel, work.asked = rows, kernel, asked
    share_out(do_block, &work, n_blocks, rows.n_threads)


cdef inline void over_blocks(row_pass *rows, block_kernel kernel, const block_question *asked) noexcept nogil:
    over_items(rows, kernel, asked, rows.job.n_blocks)
