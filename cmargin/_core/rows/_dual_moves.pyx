"""From the end of a sweep of the dual to the best point along its change and the moves before it together.

Where rows depend on each other, sweeps undo and repeat each other's moves, as steps along gradients do and conjugate
gradients do not. The dual is a quadratic, and its largest value over directions d_k, that of

    sum_k c_k g_k - sum_kl c_k c_l K_kl / 2,     K_kl = <D_k, D_l> + sum_i ridge_i d_ki d_li,

needs no row to be read, since D = sum d y x is known of each (sequential subspace optimisation: Narkiss and Zibulevsky
2005). The point is clipped to the box, for which rows that would leave it are read, and taken if the dual is larger.
Beside a centre (``_dual_centre.pyx``) the dual is that of the problem with the centre, in which a change D moves w by
part_j D_j: its slopes are those at w, and <D_k, D_l> is sum_j part_j D_kj D_lj.
"""

from libc.math cimport fabs, sqrt
from libc.string cimport memcpy

from cmargin._core.rows._dual_rows cimport dual_rows, row_of, take_mean
from cmargin._core.rows._tiles cimport add_row
from cmargin._core.util._simd cimport row_axpy, row_dot

cdef extern from "_dual_moves.h" nogil:
    void moves_change(Py_ssize_t n, const double *now, const double *before, const double *part, double *out) noexcept
    void moves_seen(Py_ssize_t n, const double *part, const double *change, double *w) noexcept
    void moves_slope(Py_ssize_t n, const double *target, const double *ridge, const double *a, double *out) noexcept
    double moves_clip(Py_ssize_t n, const double *signed_weight, const double *target, const double *upper,
                      const double *ridge, const double *a, double *before, double *move, double *beyond,
                      double *balance) noexcept

cdef double SHORTEST = 0.05          # lengths of a direction, below which a step along it is not worth a trial
cdef double LONGEST = 1000.0         # lengths that such a step may be long: a longer one would be of rounding errors
cdef double DEPENDENT = 1e-8         # part of a direction's square that is left beside those before it
cdef double ROUNDED = 1e-14          # part of |w|^2: a shorter direction is no longer sum d y x, and would spoil w


cdef bint rests(dual_moves *at) noexcept nogil:
    # bounds that thousands of rows meet spoil every step (100,000 one-hot rows): 1, 2, 4 .. sweeps from the third on
    if at.resting > 0:
        at.resting -= 1
        return True
    return False


cdef void begin_move(dual_moves *at, const dual_rows *rows) noexcept nogil:
    memcpy(at.before, at.a, rows.n * sizeof(double))
    memcpy(at.w_before, at.w, (rows.m + 1) * sizeof(double))


cdef move_gain end_move(dual_moves *at, dual_rows *rows) noexcept nogil:
    cdef small_model model
    cdef move_gain gain
    gain.total, gain.balance, gain.n_read = 0, 0, 0
    measure(at, rows, &model)
    if not best_step(&model):
        keep_sweep(at, rows)
        at.losses = 0
        return gain
    gain = take_step(at, rows, model.step)
    if not gain.total - rise_of_square(at, rows.m + 1) / 2 > 0:
        at.kept, at.losses = 0, min(at.losses + 1, <int> MOST_LOSSES)
        at.resting = (1 << at.losses) >> 3
        gain.total, gain.balance = 0, 0
        return gain
    memcpy(at.a, at.before, rows.n * sizeof(double))
    memcpy(at.w, at.w_before, (rows.m + 1) * sizeof(double))
    at.kept, at.losses = min(at.kept + 1, <int> MOVES), 0
    return gain


cdef inline Py_ssize_t n_blocks(Py_ssize_t n) noexcept nogil:
    return (n + BLOCK - 1) // BLOCK


cdef void clear_model(small_model *model) noexcept nogil:
    cdef int k, p
    model.square = 0
    for k in range(DIRECTIONS):
        model.slope[k] = model.step[k] = 0
        for p in range(DIRECTIONS):
            model.curvature[k][p] = 0


cdef void add_products(small_model *model, int kept, Py_ssize_t n, const double **d, double sign, const double *slope,
                       const double *weight, double *room) noexcept nogil:
    cdef const double *weighted
    cdef int k, p
    cdef Py_ssize_t j
    for k in range(kept + 1):
        model.slope[k] += sign * row_dot(slope, d[k], n)
        if room == NULL:
            continue
        weighted = d[k]
        if weight != NULL:
            for j in range(n):
                room[j] = weight[j] * d[k][j]
            weighted = room
        for p in range(k + 1):
            model.curvature[k][p] += row_dot(weighted, d[p], n)


cdef inline double *move_before(const dual_moves *at, double *of, Py_ssize_t n, int k) noexcept nogil:
    # what the sweep k + 1 places before this one has changed of n numbers
    return of + (at.newest + k) % MOVES * n


cdef void measure(const dual_moves *at, const dual_rows *rows, small_model *model) noexcept nogil:
    cdef Py_ssize_t block, lo, n, n_columns = rows.m + 1
    cdef double[BLOCK] change, slope, room
    cdef const double *d[DIRECTIONS]
    cdef int k
    clear_model(model)
    d[0] = change
    for block in range(n_blocks(n_columns)):
        lo = block * BLOCK
        n = min(<Py_ssize_t> BLOCK, n_columns - lo)
        moves_change(n, at.w + lo, at.w_before + lo, NULL if at.part == NULL else at.part + lo, change)
        for k in range(at.kept):
            d[k + 1] = move_before(at, at.w_last, n_columns, k) + lo
        add_products(model, at.kept, n, d, -1, at.w + lo, NULL if at.part == NULL else at.part + lo, room)
        model.square += row_dot(at.w + lo, at.w + lo, n)
    for block in range(n_blocks(rows.n)):
        lo = block * BLOCK
        n = min(<Py_ssize_t> BLOCK, rows.n - lo)
        moves_change(n, at.a + lo, at.before + lo, NULL, change)
        moves_slope(n, NULL if rows.target == NULL else rows.target + lo, rows.ridge + lo, at.a + lo, slope)
        for k in range(at.kept):
            d[k + 1] = move_before(at, at.last, rows.n, k) + lo
        add_products(model, at.kept, n, d, 1, slope, rows.ridge + lo, room if rows.smooth else NULL)


cdef bint best_step(small_model *model) noexcept nogil:
    # by a Cholesky factor, without directions that depend on others; False: no step worth a trial
    cdef double factor[DIRECTIONS][DIRECTIONS]
    cdef double part[DIRECTIONS]
    cdef double square, longest = 0
    cdef int k, j, p
    for k in range(DIRECTIONS):
        square, part[k] = model.curvature[k][k], model.slope[k]
        for j in range(k):
            factor[k][j] = model.curvature[k][j]
            for p in range(j):
                factor[k][j] -= factor[k][p] * factor[j][p]
            factor[k][j] = factor[k][j] / factor[j][j] if factor[j][j] > 0 else 0
            square -= factor[k][j] * factor[k][j]
            part[k] -= factor[k][j] * part[j]
        factor[k][k] = sqrt(square) if square > DEPENDENT * model.curvature[k][k] \
            and model.curvature[k][k] > ROUNDED * model.square else 0
        part[k] = part[k] / factor[k][k] if factor[k][k] > 0 else 0
    for k in range(DIRECTIONS - 1, -1, -1):
        model.step[k] = part[k]
        for j in range(k + 1, DIRECTIONS):
            model.step[k] -= factor[j][k] * model.step[j]
        model.step[k] = model.step[k] / factor[k][k] if factor[k][k] > 0 else 0
        longest = max(longest, fabs(model.step[k]))
    return SHORTEST <= longest <= LONGEST


cdef double *next_move(const dual_moves *at, double *of, Py_ssize_t n, Py_ssize_t lo, Py_ssize_t hi, const double *step,
                       const double *change) noexcept nogil:
    # of numbers lo .. hi - 1 of n: what the sweep, `change`, and the step change them by, in place of the oldest move
    cdef double[BLOCK] moved
    cdef double *out = move_before(at, of, n, MOVES - 1) + lo
    cdef Py_ssize_t j
    cdef int k
    for j in range(hi - lo):
        moved[j] = (1 + step[0]) * change[j]
    for k in range(at.kept):
        row_axpy(step[k + 1], <const double *> move_before(at, of, n, k) + lo, moved, hi - lo)
    memcpy(out, moved, (hi - lo) * sizeof(double))
    return out


cdef move_gain take_step(dual_moves *at, dual_rows *rows, const double *step) noexcept nogil:
    # before, w_before: the point that it leads to
    cdef Py_ssize_t n_columns = rows.m + 1, block, lo, n, i
    cdef double[BLOCK] change, beyond
    cdef double *move
    cdef double *w_move
    cdef double sign, clipped = 0
    cdef move_gain gain
    gain.total, gain.balance, gain.n_read = 0, 0, 0
    next_moves_of_columns(at, n_columns, step)
    w_move = move_before(at, at.w_last, n_columns, MOVES - 1)
    for block in range(n_blocks(rows.n)):
        lo = block * BLOCK
        n = min(<Py_ssize_t> BLOCK, rows.n - lo)
        moves_change(n, at.a + lo, at.before + lo, NULL, change)
        move = next_move(at, at.last, rows.n, lo, lo + n, step, change)
        gain.total += moves_clip(n, rows.signed_weight + lo, NULL if rows.target == NULL else rows.target + lo,
                                 rows.upper + lo, rows.ridge + lo, at.a + lo, at.before + lo, move, beyond,
                                 &gain.balance)
        for i in range(n):
            if beyond[i] != 0:
                sign = -beyond[i] if rows.signed_weight[lo + i] >= 0 else beyond[i]
                gain.n_read += 1
                clipped += sign
                add_row(sign, &rows.source, row_of(rows, lo + i), w_move)
    rows.n_read += gain.n_read
    take_mean(rows, clipped, w_move)
    w_move[rows.m] += rows.bias * clipped
    moves_seen(n_columns, at.part, w_move, at.w_before)
    at.newest = (at.newest + MOVES - 1) % MOVES
    return gain


cdef void next_moves_of_columns(const dual_moves *at, Py_ssize_t n_columns, const double *step) noexcept nogil:
    cdef double[BLOCK] change
    cdef Py_ssize_t block, lo, n
    for block in range(n_blocks(n_columns)):
        lo = block * BLOCK
        n = min(<Py_ssize_t> BLOCK, n_columns - lo)
        moves_change(n, at.w + lo, at.w_before + lo, NULL if at.part == NULL else at.part + lo, change)
        next_move(at, at.w_last, n_columns, lo, lo + n, step, change)


cdef double rise_of_square(const dual_moves *at, Py_ssize_t n_columns) noexcept nogil:
    # <w_before - w, w_before + w>, weighted by 1 / part
    cdef double[BLOCK] change
    cdef double square = 0
    cdef Py_ssize_t block, lo, n
    for block in range(n_blocks(n_columns)):
        lo = block * BLOCK
        n = min(<Py_ssize_t> BLOCK, n_columns - lo)
        moves_change(n, at.w_before + lo, at.w + lo, NULL if at.part == NULL else at.part + lo, change)
        square += row_dot(change, <const double *> at.w_before + lo, n) + row_dot(change, <const double *> at.w + lo, n)
    return square


cdef void keep_sweep(dual_moves *at, const dual_rows *rows) noexcept nogil:
    # its change is the move
    cdef Py_ssize_t n_columns = rows.m + 1
    moves_change(n_columns, at.w, at.w_before, at.part, move_before(at, at.w_last, n_columns, MOVES - 1))
    moves_change(rows.n, at.a, at.before, NULL, move_before(at, at.last, rows.n, MOVES - 1))
    at.newest = (at.newest + MOVES - 1) % MOVES
    at.kept = min(at.kept + 1, <int> MOVES)
