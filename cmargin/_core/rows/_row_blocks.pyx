"""What one block of rows adds up for an evaluation: a loss and its derivatives row by row, sums of rows, curvature.

(a) One pass reads X once. Tile by tile, while the rows are in cache: the change of every margin along a direction,
    the new slacks u, slopes, gradient, the predicted dual variables, and the curvature rows, whose sum of outer
    products is one ``dsyrk`` per packed tile, or ``ssyrk`` where single precision will do (CSR rows with few active
    entries are added entry by entry). Wide rows with curvature are read once more for it, after the pass
    (`_curved_rows`).
(b) Where the rows lie and in which format is known to `_tiles` only; the sums are float64 whatever the data.
(c) Rows whose curvature h is below a floor are left out of the curvature block but for its diagonal, as a rare column
    may have no other rows. Never of the gradient.
(d) Or the block is that of a sample: likelier in it is a row of more curvature, and each stands for those left out,
    so that on average the block is that of all (`take_sample`).
(e) The curvature of a row at the smoothed hinge comes from its dual variable, which evaluations carry on
    (`dual_curvature` in ``_smoothed_hinge.h``), and from the primal point alone at the first evaluation after a start.
"""

from libc.math cimport fabs
from libc.string cimport memset

from cmargin._core.losses._losses cimport (
    SMOOTHED_HINGE, dual_gain, facts_of, has_dual, has_two_kinks, kinks_of, point, point_loss, vectorised_line,
    vectorised_curvatures, vectorised_rows,
)
from cmargin._core.losses._smoothed_hinge cimport (
    dual_curvature, hinge_line, hinge_at, hinge_point, hinge_rows, hinge_slope, primal_curvature,
)
from cmargin._core.losses._two_kinks cimport two_kinks, two_kinks_curvatures, two_kinks_line, two_kinks_rows
from cmargin._core.rows._slacks cimport hinge_losses, slacks_move, slacks_settle
from cmargin._core.util._random cimport number_of
from cmargin._core.util._simd cimport lane_sum
from cmargin._core.rows._tiles cimport (
    begin_curvature, curvature_block, finish_curvature, open_tile, row_tile, tile_add_curvature, tile_add_rows,
    tile_add_rows_3, tile_add_squares, tile_products, tile_row_squares, tile_weighted_products,
)


cdef double EQUAL = 0.1                 # of a row's mean chance to be in a sample: what it has however short it is
cdef double LEAST = 1e-3                 # of the floor: rows of less curvature are not on the diagonal either
ON_DIAGONAL = LEAST                      # the same for Python


cdef inline point loss_at(const pass_job *job, double u) noexcept nogil:
    # a loss that needs no smoothing and its derivatives in the slack u = 1 - z
    cdef point at = point_loss(&job.loss, 1 - u)
    at.slope = -at.slope
    return at


cdef inline double curvature_at(const pass_job *job, Py_ssize_t i, double width) noexcept nogil:
    # h of row i at the last evaluation
    cdef double u = job.slack[i] - job.pending * job.change[i]
    cdef hinge_point at
    if job.loss.id != SMOOTHED_HINGE:
        return loss_at(job, u).curvature
    at = hinge_at(u, width)
    return primal_curvature(at, width) if job.at.primal else dual_curvature(job.dual_next[i], at)


cdef inline Py_ssize_t block_begin(const pass_job *job, Py_ssize_t block) noexcept nogil:
    return block * job.n_rows // job.n_blocks


cdef inline bint next_tile(const pass_job *job, row_tile *tile, Py_ssize_t end, double *scratch) noexcept nogil:
    # from tile to tile up to the row `end`; before the first, tile.first is its row, n = 0
    cdef Py_ssize_t first = tile.first + tile.n
    if first >= end:
        return False
    tile[0] = open_tile(&job.source, first, min(job.tile_rows, end - first), scratch)
    return True


cdef void evaluate_hinge_rows(pass_job *job, Py_ssize_t first, Py_ssize_t n, double *parts, double *r,
                              double *curvature, double *sums) noexcept nogil:
    # parts (N_PARTS, tile_rows), r and curvature (n,) are overwritten
    cdef Py_ssize_t ld = job.tile_rows
    cdef two_kinks of
    if has_two_kinks(&job.loss):
        of = kinks_of(&job.loss)
        two_kinks_rows(&job.at, &of, n, job.signed_weight + first, job.slack + first, job.change + first,
                       job.dual + first, job.dual_next + first, parts, ld, r, curvature)
    else:
        hinge_rows(&job.at, n, job.signed_weight + first, job.slack + first, job.change + first, job.dual + first,
                   job.dual_next + first, parts, ld, r, curvature)
    sums[LINE_VALUE] += lane_sum(parts, n)
    sums[LINE_SLOPE] += lane_sum(parts + ld, n)
    sums[HINGE] += lane_sum(parts + 2 * ld, n)
    sums[VALUE] += lane_sum(parts + 3 * ld, n)
    sums[DUAL_POS] += lane_sum(parts + 4 * ld, n)
    sums[DUAL_NEG] -= lane_sum(parts + 5 * ld, n)
    sums[CURVATURE] += lane_sum(parts + 6 * ld, n)
    if job.offset != NULL:
        add_gain_of_offsets(job, first, n, 0, parts, sums)


cdef void evaluate_smooth_rows(pass_job *job, Py_ssize_t first, Py_ssize_t n, double *parts, double *r,
                               double *curvature, double *sums) noexcept nogil:
    # the same for a loss that is smooth itself: one value serves the line, the next step and the objective
    cdef Py_ssize_t ld = job.tile_rows
    if not vectorised_rows(&job.loss, job.at.step, job.at.floor, n, job.signed_weight + first, job.slack + first,
                           job.change + first, job.dual_next + first, parts, ld, r, curvature):
        smooth_rows(job, first, n, parts, r, curvature)
    sums[LINE_VALUE] += lane_sum(parts, n)
    sums[LINE_SLOPE] += lane_sum(parts + ld, n)
    sums[CURVATURE] += lane_sum(parts + 6 * ld, n)
    if has_dual(&job.loss):
        sums[GAIN_POS] += lane_sum(parts + 2 * ld, n)
        sums[GAIN_NEG] += lane_sum(parts + 3 * ld, n)
        sums[DUAL_POS] += lane_sum(parts + 4 * ld, n)
        sums[DUAL_NEG] -= lane_sum(parts + 5 * ld, n)
        sums[HINGE] = sums[VALUE] = sums[LINE_VALUE]
        if job.offset != NULL:
            add_gain_of_offsets(job, first, n, 1, parts, sums)


cdef void add_gain_of_offsets(const pass_job *job, Py_ssize_t first, Py_ssize_t n, double known, const double *parts,
                              double *sums) noexcept nogil:
    # a row's dual variable a adds G(a) + (t - 1) a to the bound at offset t; ``known``: 1 where G(a) is among the sums,
    # and 0 of the hinge, whose G(a) = a is not: t a is, and of losses with two kinks, t a - e |a|
    cdef Py_ssize_t ld = job.tile_rows, i
    cdef double c, gain, e = kinks_of(&job.loss).e if has_two_kinks(&job.loss) else 0
    for i in range(n):
        c = parts[4 * ld + i] + parts[5 * ld + i]            # s y a, of either side
        gain = (job.offset[first + i] - known) * (c if job.signed_weight[first + i] >= 0 else -c) - e * fabs(c)
        sums[GAIN_POS if c >= 0 else GAIN_NEG] += gain


cdef void smooth_rows(pass_job *job, Py_ssize_t first, Py_ssize_t n, double *parts, double *r,
                      double *curvature) noexcept nogil:
    # as ``_smooth_rows.h`` has them, of any loss
    cdef Py_ssize_t ld = job.tile_rows, i
    cdef double s, v, u, a, largest = facts_of(&job.loss).dual_largest, smallest = facts_of(&job.loss).dual_smallest
    cdef bint positive
    cdef point at
    for i in range(n):
        s = fabs(job.signed_weight[first + i])
        v = job.change[first + i]
        u = job.slack[first + i]
        at = loss_at(job, u - job.at.step * v)
        parts[i] = s * at.value
        parts[ld + i] = -s * at.slope * v
        parts[6 * ld + i] = s * at.curvature
        r[i] = job.signed_weight[first + i] * at.slope
        curvature[i] = s * at.curvature if at.curvature > job.at.floor else 0
        if largest == 0:
            continue                             # there is no dual
        at = loss_at(job, u)                     # a after the step, as the model before it predicts it
        a = min(max(at.slope - at.curvature * v, smallest), largest)
        job.dual_next[first + i] = a
        positive = (job.signed_weight[first + i] >= 0) == (a >= 0)       # of s y a, whatever the sign of a
        parts[4 * ld + i] = fabs(a) * s if positive else 0
        parts[5 * ld + i] = 0 if positive else -fabs(a) * s
        a = s * dual_gain(&job.loss, a)
        parts[2 * ld + i] = a if positive else 0
        parts[3 * ld + i] = 0 if positive else a


cdef bint left_out(const pass_job *job, Py_ssize_t first, Py_ssize_t n, const double *h, const double *curvature,
                   double *out) noexcept nogil:
    # out (n,) = s h of the rows whose diagonal alone counts, from the curvature of those in the block; whether one does
    cdef double least = LEAST * job.at.floor
    cdef Py_ssize_t i
    cdef bint any_is = False
    for i in range(n):
        if curvature[i] > 0 or not h[i] > least * fabs(job.signed_weight[first + i]):
            out[i] = 0
        else:
            out[i], any_is = h[i], True
    return any_is


cdef void take_sample(const pass_job *job, Py_ssize_t first, Py_ssize_t n, double *curvature) noexcept nogil:
    # a row is there with a chance that grows with its curvature and its length, and then weighs the more the smaller
    # that was; all rows have ``sum s h / stands_for`` chances, about
    cdef double chance
    cdef Py_ssize_t i
    for i in range(n):
        chance = curvature[i] / job.stands_for
        if job.leverage != NULL:
            chance *= EQUAL + (1 - EQUAL) * job.leverage[first + i]
        if 0 < chance < 1:
            curvature[i] = curvature[i] / chance if number_of(job.seed, first + i) < chance else 0


cdef void run_block(pass_job *job, Py_ssize_t block, const block_question *asked, double *scratch) noexcept nogil:
    cdef Py_ssize_t p = job.n_columns, a = job.block.n_active, tile_rows = job.tile_rows, first, i
    cdef bint has_block = job.hessian != NULL, later = job.curvature != NULL
    cdef Py_ssize_t lo = block_begin(job, block), hi = block_begin(job, block + 1)
    cdef Py_ssize_t n_tiles = (hi - lo + tile_rows - 1) // tile_rows
    cdef Py_ssize_t end = min(hi, lo + (asked.part + 1) * n_tiles // asked.n_parts * tile_rows)
    cdef double *curvature = scratch                      # (tile_rows,)
    cdef double *r = curvature + tile_rows                # (tile_rows,)
    cdef double *parts = r + tile_rows                    # (N_PARTS, tile_rows)
    cdef double *tile_room = parts + N_PARTS * tile_rows
    cdef curvature_block sum_of_outer = job.block
    cdef row_tile tile
    cdef double *sums = job.sums + block * N_SUMS
    cdef double *gradient = job.gradient + block * 3 * p
    cdef double *diagonal = job.diagonal + block * p
    tile.first, tile.n = lo + asked.part * n_tiles // asked.n_parts * tile_rows, 0
    if asked.part == 0:
        memset(sums, 0, N_SUMS * sizeof(double))
        memset(gradient, 0, 3 * p * sizeof(double))
        memset(diagonal, 0, p * sizeof(double))
    if has_block and not later:
        tile_room = begin_curvature(&sum_of_outer, job.hessian + block * a * a, asked.part == 0, tile_room)
    while next_tile(job, &tile, end, tile_room):
        first = tile.first
        if later:
            curvature = job.curvature + first
        if job.norms != NULL:
            tile_row_squares(&tile, job.norm_weight, job.norms + first)
        if job.column_weight != NULL:
            tile_row_squares(&tile, job.column_weight, job.leverage + first)
        if job.direction != NULL:
            tile_products(&tile, job.direction, r)
            slacks_move(tile.n, job.signed_weight + first, job.pending, r, job.slack + first, job.change + first)
        if job.loss.id == SMOOTHED_HINGE or has_two_kinks(&job.loss):
            evaluate_hinge_rows(job, first, tile.n, parts, r, curvature, sums)
        else:
            if job.totals and has_dual(&job.loss):                       # no model before it predicts dual variables
                slacks_settle(tile.n, job.at.step, job.slack + first, job.change + first)
            evaluate_smooth_rows(job, first, tile.n, parts, r, curvature, sums)
        if has_dual(&job.loss):
            tile_add_rows_3(&tile, r, parts + 4 * tile_rows, parts + 5 * tile_rows, gradient)
        else:
            tile_add_rows(&tile, r, gradient)
            if job.totals:
                tile_add_rows(&tile, job.signed_weight + first, gradient + p)
        if has_block:
            if job.stands_for > 0:
                take_sample(job, first, tile.n, curvature)
            if later:
                for i in range(tile.n):
                    sums[CURVED] += curvature[i] > 0
            else:
                sums[CURVED] += tile_add_curvature(&tile, curvature, &sum_of_outer)
            if job.at.floor > 0 and left_out(job, first, tile.n, parts + 6 * tile_rows, curvature, r):
                tile_add_squares(&tile, r, diagonal)
    if has_block and not later:
        finish_curvature(&sum_of_outer)


cdef void line_block(pass_job *job, Py_ssize_t block, const block_question *asked, double *scratch) noexcept nogil:
    cdef Py_ssize_t lo = block_begin(job, block), hi = block_begin(job, block + 1), i
    cdef double *out = job.sums + block * N_SUMS
    cdef double s, v
    cdef two_kinks of
    cdef point at
    if job.loss.id == SMOOTHED_HINGE:
        hinge_line(hi - lo, job.signed_weight + lo, job.slack + lo, job.change + lo, asked.step, asked.width, out)
        return
    if has_two_kinks(&job.loss):
        of = kinks_of(&job.loss)
        two_kinks_line(&of, hi - lo, job.signed_weight + lo, job.slack + lo, job.change + lo, asked.step, asked.width,
                       out)
        return
    if vectorised_line(&job.loss, asked.step, hi - lo, job.signed_weight + lo, job.slack + lo, job.change + lo, out):
        return
    out[0] = out[1] = out[2] = 0
    for i in range(lo, hi):
        s = fabs(job.signed_weight[i])
        v = job.change[i]
        at = loss_at(job, job.slack[i] - asked.step * v)
        out[0] += s * at.value
        out[1] -= s * at.slope * v
        out[2] += s * at.curvature * v * v


cdef void weigh_by_curvature(const pass_job *job, Py_ssize_t first, Py_ssize_t n, const block_question *asked,
                             double *weight) noexcept nogil:
    cdef double h
    cdef Py_ssize_t i
    cdef two_kinks of
    if has_two_kinks(&job.loss):
        of = kinks_of(&job.loss)
        two_kinks_curvatures(&of, asked.width, job.pending, asked.floor, n, job.signed_weight + first,
                             job.slack + first, job.change + first,
                             NULL if job.at.primal else job.dual_next + first, weight)
        return
    if vectorised_curvatures(&job.loss, job.pending, asked.floor, n, job.signed_weight + first, job.slack + first,
                             job.change + first, weight):
        return
    for i in range(n):
        h = curvature_at(job, first + i, asked.width)
        weight[i] = h * fabs(job.signed_weight[first + i]) if h > asked.floor else 0


cdef void hessp_block(pass_job *job, Py_ssize_t block, const block_question *asked, double *scratch) noexcept nogil:
    # slack and change stay as they are
    cdef Py_ssize_t end = block_begin(job, block + 1), i
    cdef double *weight = scratch                         # (tile_rows,)
    cdef double *product = weight + job.tile_rows         # (tile_rows,)
    cdef double *out = job.gradient + block * job.n_columns
    cdef double *sums = job.sums + block * N_SUMS
    cdef row_tile tile
    tile.first, tile.n = block_begin(job, block), 0
    memset(out, 0, job.n_columns * sizeof(double))
    sums[CURVED] = 0
    while next_tile(job, &tile, end, product + job.tile_rows):
        weigh_by_curvature(job, tile.first, tile.n, asked, weight)
        for i in range(tile.n):
            sums[CURVED] += weight[i] > 0
        if asked.x == NULL:
            tile_add_squares(&tile, weight, out)
        else:
            tile_weighted_products(&tile, asked.x, product, weight)
            tile_add_rows(&tile, weight, out)


cdef void objective_block(pass_job *job, Py_ssize_t block, const block_question *asked, double *scratch) noexcept nogil:
    cdef Py_ssize_t end = block_begin(job, block + 1), i
    cdef double *loss = scratch                           # (tile_rows,)
    cdef double *weight = loss + job.tile_rows            # (tile_rows,)
    cdef double *product = weight + job.tile_rows         # (tile_rows,)
    cdef double *out = job.gradient + block * job.n_columns
    cdef double *sums = job.sums + block * N_SUMS
    cdef row_tile tile
    cdef const double *signed_weight
    cdef const double *offset
    cdef double u, t
    tile.first, tile.n = block_begin(job, block), 0
    memset(out, 0, job.n_columns * sizeof(double))
    sums[HINGE] = 0
    while next_tile(job, &tile, end, product + job.tile_rows):
        signed_weight = job.signed_weight + tile.first
        offset = job.offset + tile.first if job.offset != NULL else NULL
        tile_products(&tile, asked.x, product)
        if job.loss.id == SMOOTHED_HINGE:
            hinge_losses(tile.n, signed_weight, offset, product, loss, weight)
        else:
            for i in range(tile.n):
                weight[i] = fabs(signed_weight[i])
                t = offset[i] if offset != NULL else 1
                u = t - product[i] if signed_weight[i] >= 0 else t + product[i]
                # no weight, no loss, even where a margin overflowed
                loss[i] = 0 if weight[i] == 0 else weight[i] * loss_at(job, u).value
        sums[HINGE] += lane_sum(loss, tile.n)
        if asked.squares:
            tile_add_squares(&tile, weight, out)


cdef void combine_block(pass_job *job, Py_ssize_t block, const block_question *asked, double *scratch) noexcept nogil:
    cdef Py_ssize_t end = block_begin(job, block + 1)
    cdef double *out = job.gradient + block * job.n_columns
    cdef row_tile tile
    tile.first, tile.n = block_begin(job, block), 0
    memset(out, 0, job.n_columns * sizeof(double))
    while next_tile(job, &tile, end, scratch):
        tile_add_rows(&tile, asked.x + tile.first, out)


cdef void linearised_block(pass_job *job, Py_ssize_t block, const block_question *asked,
                           double *scratch) noexcept nogil:
    cdef Py_ssize_t end = block_begin(job, block + 1), i
    cdef double *sums = job.sums + block * N_SUMS
    cdef double *out = job.gradient + block * 2 * job.n_columns
    cdef double *positive = scratch                       # (tile_rows,)
    cdef double *negative = positive + job.tile_rows      # (tile_rows,)
    cdef double c
    cdef row_tile tile
    tile.first, tile.n = block_begin(job, block), 0
    sums[DUAL_POS] = sums[DUAL_NEG] = 0
    memset(out, 0, 2 * job.n_columns * sizeof(double))
    while next_tile(job, &tile, end, negative + job.tile_rows):
        for i in range(tile.n):
            c = job.signed_weight[tile.first + i] * hinge_slope(hinge_at(asked.x[tile.first + i], asked.width))
            positive[i], negative[i] = max(c, 0.0), min(c, 0.0)
        sums[DUAL_POS] += lane_sum(positive, tile.n)
        sums[DUAL_NEG] -= lane_sum(negative, tile.n)
        tile_add_rows(&tile, positive, out)
        tile_add_rows(&tile, negative, out + job.n_columns)


cdef void fold(double *blocks, Py_ssize_t n_blocks, Py_ssize_t size) noexcept nogil:
    # the first block becomes the sum of all, in block order
    cdef Py_ssize_t b, i
    for b in range(1, n_blocks):
        for i in range(size):
            blocks[i] += blocks[b * size + i]


cdef void fold_curvature(pass_job *job, Py_ssize_t part, const block_question *asked, double *scratch) noexcept nogil:
    # of the curvature, upper triangle: rows part, part + n_folding, ... of all blocks
    cdef Py_ssize_t a = job.block.n_active, i, j, b
    cdef double *total
    cdef const double *more
    i = part
    while i < a:
        total = job.hessian + i * a
        for b in range(1, asked.n_summed):
            more = total + b * a * a
            for j in range(i, a):
                total[j] += more[j]
        i += asked.n_folding
