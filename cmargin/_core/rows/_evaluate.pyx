"""Evaluations over rows in memory, of one binary problem, as compiled code asks for them: planned, run, folded.

(a) What a block of rows sums is in `_row_blocks`.
(b) Rows are cut into a number of blocks that depends on the shape alone. Each block sums for itself and the blocks
    are folded in order: the same bits for any number of threads.
(c) A long evaluation is cut into slices, by the shape too, between which Python is heard.
"""

from libc.string cimport memcpy

from cmargin._core.linalg._packed_syrk cimport packed_syrk_lanes, packed_syrk_single_from, packed_syrk_widest
from cmargin._core.losses._losses cimport has_dual
from cmargin._core.rows._curved_rows cimport curved_begin, curved_part
from cmargin._core.rows._over_blocks cimport over_blocks
from cmargin._core.rows._pass_state cimport MOST_GROUPS, row_pass
from cmargin._core.rows._row_blocks cimport (
    CURVED, N_PARTS, N_SUMS, line_block, block_question, combine_block, objective_block, fold, fold_curvature,
    linearised_block, pass_job, hessp_block, run_block, weigh_by_curvature,
)
from cmargin._core.rows._tiles cimport curvature_block, curvature_scratch
from cmargin._core.util._random cimport mixed

from cmargin._core.linalg._blas_libraries import blas_trails

cdef Py_ssize_t MAX_BLOCKS = 32
cdef Py_ssize_t TILE_DOUBLES = 16384         # 128 KB: a tile and its packed rows stay in a second-level cache
cdef bint BLAS_TRAILS = blas_trails()        # its registers are shorter than AVX-512's
cdef double ENTRIES_OF_A_BLOCK = 2           # of CSR rows, at least, for each number of its curvature
cdef Py_ssize_t LATER_FROM = 128             # columns from which curvature is summed after the pass: `_curved_rows`
cdef Py_ssize_t LATER_ROOM = 256             # rows of a dsyrk then,
cdef Py_ssize_t FEWEST_GROUPS = 8            # and groups that there is room for on several threads,
cdef Py_ssize_t ROOM_DOUBLES = 1 << 23       # 64 MB, or a quarter of the data
cdef double SLICE_FLOPS = 4e9                # of an evaluation until Python is heard again: about 0.1 s


cdef void pass_start(row_pass *rows, bint primal) noexcept nogil:
    cdef double *slack = rows.job.slack - rows.first
    cdef double *change = rows.job.change - rows.first
    cdef Py_ssize_t i
    cdef const double *offset = rows.job.offset - rows.first if rows.job.offset != NULL else NULL
    for i in range(rows.n_all):
        slack[i], change[i] = offset[i] if offset != NULL else 1, 0
    rows.job.pending = 0
    rows.begun, rows.fresh, rows.forgets = False, True, primal


cdef void pass_plan(row_pass *rows) noexcept nogil:
    # a twentieth of the data at most goes into the blocks' curvature where they sum it, and few rows need no blocks; as
    # many for each of 2, 4 or 8 threads. Of CSR rows fewer entries are summed sooner than their block is cleared and
    # folded (doc/lab-notebook, "One-hot rows")
    cdef pass_job *job = &rows.job
    cdef Py_ssize_t n = job.n_rows, room = max(1, job.n_columns)
    cdef Py_ssize_t blocks = n // (20 * room)
    cdef double entries                      # of a row
    rows.sums_later = blocks < MAX_BLOCKS and room >= LATER_FROM and job.source.X.starts == NULL
    if job.source.X.starts != NULL and job.source.X.n_rows > 0:
        entries = <double> job.source.X.starts[job.source.X.n_rows] / job.source.X.n_rows
        blocks = min(blocks, <Py_ssize_t> (entries * n / (ENTRIES_OF_A_BLOCK * room * room)))
    blocks = max(1, min(MAX_BLOCKS if rows.sums_later else min(MAX_BLOCKS, max(2, blocks)), n // 256))
    job.n_blocks = blocks // 8 * 8 if blocks > 8 else 4 if blocks > 4 else blocks // 2 * 2 if blocks > 2 else blocks
    job.tile_rows = max(1, min(min(512, max(16, TILE_DOUBLES // room // 4 * 4)), n))       # rows are summed by fours
    job.block.lanes = packed_syrk_lanes()
    job.curvature = NULL
    rows.hessian_order = -1
    rows.most_rows = rows.n_all = n
    rows.first, rows.windowed = 0, False


cdef void pass_set_active(row_pass *rows, Py_ssize_t n_active, const Py_ssize_t *active) noexcept nogil:
    cdef pass_job *job = &rows.job
    cdef Py_ssize_t j
    if active == NULL:
        job.block.active, job.block.n_active = NULL, job.n_columns
    else:
        memcpy(rows.active, active, n_active * sizeof(Py_ssize_t))
        job.block.active, job.block.n_active = rows.active, n_active
    if rows.position == NULL:
        return
    for j in range(job.n_columns):
        rows.position[j] = j if active == NULL else -1
    if active != NULL:
        for j in range(n_active):
            rows.position[active[j]] = j
    job.block.position = rows.position


cdef bint sums_later(const row_pass *rows, Py_ssize_t order) noexcept nogil:
    return rows.sums_later and order >= LATER_FROM


cdef Py_ssize_t packed_room(const row_pass *rows, Py_ssize_t order) noexcept nogil:
    # rows that wait for a dsyrk
    cdef Py_ssize_t room = max(64, 2 * TILE_DOUBLES // max(1, rows.job.n_columns))
    return max(1, min(LATER_ROOM if sums_later(rows, order) else min(512, room), rows.most_rows))


cdef Py_ssize_t scratch_wanted(const row_pass *rows, Py_ssize_t order) noexcept nogil:
    cdef const pass_job *job = &rows.job
    cdef bint copies = job.source.X.starts == NULL and job.source.X.column_stride != 1
    cdef Py_ssize_t tile = job.tile_rows * job.source.X.n_features if copies else 0
    cdef curvature_block block = job.block
    block.n_active, block.room = order, packed_room(rows, order)
    return (2 + N_PARTS) * job.tile_rows + curvature_scratch(&block) + tile


cdef Py_ssize_t hessians_wanted(const row_pass *rows, Py_ssize_t order) noexcept nogil:
    # of groups: their sum, and one for each thread; a few more, as threads wait for each other when these are full, and
    # fewer where they are large
    cdef Py_ssize_t at_most = max(2, max(ROOM_DOUBLES // max(1, order * order), rows.most_rows // max(1, 4 * order)))
    if not sums_later(rows, order):
        return rows.job.n_blocks
    return 1 + (1 if rows.n_threads == 1 else min(min(max(rows.n_threads, FEWEST_GROUPS), MOST_GROUPS), at_most))


cdef bint has_room(row_pass *rows, Py_ssize_t order) noexcept nogil:
    # workspace for a curvature block of that order; only what is not there yet is asked for
    cdef bint has_block = order == 0 or (
        order == rows.hessian_order and rows.n_hessians >= hessians_wanted(rows, order)
        and (rows.curved.memory != NULL or not sums_later(rows, order) or rows.most_rows == 0))
    if scratch_wanted(rows, order) <= rows.scratch_size and has_block \
            and (rows.job.dual != NULL or not has_dual(&rows.job.loss) or rows.n_all == 0):
        return True
    return rows.make_room(rows, order)


cdef bint pass_begin_evaluation(row_pass *rows, const evaluation_request *request) noexcept nogil:
    cdef pass_job *job = &rows.job
    cdef Py_ssize_t order = job.block.n_active if has_block(request.with_hessian) else 0
    cdef bint single = request.with_hessian == SINGLE_BLOCK or request.with_hessian == SAMPLED_BLOCK
    job.block.single = single and job.source.X.starts == NULL and \
        order >= packed_syrk_single_from(job.block.lanes, rows.n_all)
    job.block.room = packed_room(rows, order)
    job.block.widest = packed_syrk_widest(job.block.lanes, BLAS_TRAILS, job.block.single)
    if not has_room(rows, order):
        return False
    rows.summed = order > 0
    job.hessian = rows.all_hessian if rows.summed else NULL
    job.curvature = rows.curved.memory if rows.summed and sums_later(rows, order) else NULL
    job.direction = request.direction if request.move != SAME_LINE else NULL
    job.at.step, job.at.line_width, job.at.width = request.step, request.line_width, request.width
    job.at.floor = request.floor
    job.stands_for, job.column_weight = 0, NULL
    if request.with_hessian == SAMPLED_BLOCK:
        job.seed, job.stands_for = mixed(request.seed), request.stands_for
        if job.leverage != NULL:
            job.column_weight = request.measure.leverage
    if request.move == COMMIT_AND_MOVE:
        job.dual, job.dual_next = job.dual_next, job.dual        # the last evaluation was the step taken
        rows.fresh = False
    job.totals = not rows.begun
    rows.begun = True
    job.at.tangents = request.with_hessian == TANGENTS
    job.at.primal = rows.forgets or rows.fresh or job.at.tangents
    pass_begin_window(rows)
    return True


cdef void pass_begin_window(row_pass *rows) noexcept nogil:
    cdef Py_ssize_t order = rows.job.block.n_active if rows.summed and rows.job.curvature == NULL else 0
    rows.part, rows.n_parts = 0, slices(&rows.job, order)


cdef Py_ssize_t slices(const pass_job *job, Py_ssize_t order) noexcept nogil:
    # parts of an evaluation; from the shape alone, as the order of addition depends on it
    cdef double work = <double> job.n_rows * (8.0 * job.n_columns + <double> order * order)
    cdef Py_ssize_t tiles = max(1, job.n_rows // (job.n_blocks * job.tile_rows))
    return min(1 + <Py_ssize_t> (work / SLICE_FLOPS), tiles)


cdef bint pass_evaluate_part(row_pass *rows) noexcept nogil:
    cdef pass_job *job = &rows.job
    cdef bint later = job.curvature != NULL
    if rows.part < rows.n_parts:
        pass_read_part(rows)
        if rows.part < rows.n_parts or later:
            return True
    elif later and curved_part(rows):
        return True
    if rows.summed:
        pass_add_diagonal(job)
    if not rows.windowed:
        pass_end_evaluation(rows)
    return False


cdef void pass_read_part(row_pass *rows) noexcept nogil:
    # with the last one, sums are folded
    cdef pass_job *job = &rows.job
    cdef Py_ssize_t n_blocks = job.n_blocks, order = job.block.n_active
    cdef block_question asked
    asked.part, asked.n_parts = rows.part, rows.n_parts
    if not rows.summed:
        job.block.n_active = 0
    over_blocks(rows, run_block, &asked)
    job.block.n_active = order
    rows.part += 1
    if rows.part < rows.n_parts:
        return
    fold(job.sums, n_blocks, N_SUMS)
    fold(job.gradient, n_blocks, 3 * job.n_columns)
    fold(job.diagonal, n_blocks, job.n_columns)
    if job.curvature != NULL:
        curved_begin(rows)
    elif rows.summed:
        asked.n_summed = asked.n_folding = n_blocks
        over_blocks(rows, fold_curvature, &asked)


cdef void pass_add_diagonal(pass_job *job) noexcept nogil:
    cdef Py_ssize_t a = job.block.n_active, i
    for i in range(a):
        job.hessian[i * (a + 1)] += job.diagonal[i if job.block.active == NULL else job.block.active[i]]


cdef void pass_end_evaluation(row_pass *rows) noexcept nogil:
    rows.job.pending = rows.job.at.step
    rows.job.norms = NULL
    rows.windowed = False


cdef void pass_line(row_pass *rows, double step, double width) noexcept nogil:
    cdef block_question asked
    asked.step, asked.width = step, width
    over_blocks(rows, line_block, &asked)
    fold(rows.job.sums, rows.job.n_blocks, N_SUMS)


cdef void pass_margins(const row_pass *rows, double *out) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(rows.job.n_rows):
        out[i] = (rows.job.offset[i] if rows.job.offset != NULL else 1) \
            - (rows.job.slack[i] - rows.job.pending * rows.job.change[i])


cdef double pass_hessp(row_pass *rows, const double *x, double width, double floor) noexcept nogil:
    cdef pass_job *job = &rows.job
    cdef block_question asked
    cdef Py_ssize_t block
    cdef double read = 0
    if not has_room(rows, 0):
        return -1
    asked.x, asked.width, asked.floor = x, width, floor
    over_blocks(rows, hessp_block, &asked)
    fold(job.gradient, job.n_blocks, job.n_columns)
    if job.source.X.starts == NULL:
        return 1
    for block in range(job.n_blocks):
        read += job.sums[block * N_SUMS + CURVED]
    return read / max(1, job.n_rows)


cdef void pass_weigh(row_pass *rows, double n, double width, double floor, double *weight) noexcept nogil:
    cdef block_question asked
    cdef Py_ssize_t i
    asked.width, asked.floor = width, floor
    weigh_by_curvature(&rows.job, 0, rows.job.n_rows, &asked, weight)
    for i in range(rows.job.n_rows):
        weight[i] /= n


cdef bint pass_objective(row_pass *rows, const double *w, bint squares) noexcept nogil:
    cdef block_question asked
    if not has_room(rows, 0):
        return False
    asked.x, asked.squares = w, squares
    over_blocks(rows, objective_block, &asked)
    fold(rows.job.sums, rows.job.n_blocks, N_SUMS)
    fold(rows.job.gradient, rows.job.n_blocks, rows.job.n_columns)
    return True


cdef bint pass_combine(row_pass *rows, const double *c) noexcept nogil:
    cdef block_question asked
    if not has_room(rows, 0):
        return False
    asked.x = c
    over_blocks(rows, combine_block, &asked)
    fold(rows.job.gradient, rows.job.n_blocks, rows.job.n_columns)
    return True


cdef bint pass_linearised(row_pass *rows, const double *slacks, double width) noexcept nogil:
    cdef block_question asked
    if not has_room(rows, 0):
        return False
    asked.x, asked.width = slacks, width
    over_blocks(rows, linearised_block, &asked)
    fold(rows.job.sums, rows.job.n_blocks, N_SUMS)
    fold(rows.job.gradient, rows.job.n_blocks, 2 * rows.job.n_columns)
    return True
