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

from cmargin._core.rows._dual_rows cimport dual_rows, gain_of, row_of, take_mean, target_of
from cmargin._core.rows._tiles cimport add_row

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


cdef void add_products(small_model *model, const double *d, double slope, double weight) noexcept nogil:
    cdef int k, p
    for k in range(DIRECTIONS):
        model.slope[k] += slope * d[k]
        for p in range(k + 1):
            model.curvature[k][p] += weight * d[k] * d[p]


cdef void measure(const dual_moves *at, const dual_rows *rows, small_model *model) noexcept nogil:
    cdef Py_ssize_t i, j, n = rows.n, n_columns = rows.m + 1
    cdef double d[DIRECTIONS]
    cdef int k, p
    for k in range(DIRECTIONS):
        model.slope[k] = model.step[k] = d[k] = 0
        for p in range(DIRECTIONS):
            model.curvature[k][p] = 0
    model.square = 0
    for j in range(n_columns):
        d[0] = (at.w[j] - at.w_before[j]) / at.part[j]
        for k in range(at.kept):
            d[k + 1] = at.w_last[k * n_columns + j]
        add_products(model, d, -at.w[j], at.part[j])
        model.square += at.w[j] * at.w[j]
    for i in range(n):
        d[0] = at.a[i] - at.before[i]
        for k in range(at.kept):
            d[k + 1] = at.last[k * n + i]
        add_products(model, d, target_of(rows, i) - rows.ridge[i] * at.a[i], rows.ridge[i])


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


cdef inline double next_move(double *last, Py_ssize_t stride, const double *step, double change) noexcept nogil:
    # of a number: what the sweep and the step change it by; those before become older
    cdef double moved = (1 + step[0]) * change
    cdef int k
    for k in range(MOVES - 1, -1, -1):
        if step[k + 1] != 0:
            moved += step[k + 1] * last[k * stride]
        if k > 0:
            last[k * stride] = last[(k - 1) * stride]
    last[0] = moved
    return moved


cdef move_gain take_step(dual_moves *at, dual_rows *rows, const double *step) noexcept nogil:
    # before, w_before: the point that it leads to
    cdef Py_ssize_t n = rows.n, n_columns = rows.m + 1, i, j
    cdef double trial, new, sign, clipped = 0
    cdef move_gain gain
    gain.total, gain.balance, gain.n_read = 0, 0, 0
    for j in range(n_columns):
        next_move(at.w_last + j, n_columns, step, (at.w[j] - at.w_before[j]) / at.part[j])
    for i in range(n):
        trial = at.before[i] + next_move(at.last + i, n, step, at.a[i] - at.before[i])
        new = min(max(trial, 0.0), rows.upper[i])
        if new != trial:
            sign = 1 if rows.signed_weight[i] >= 0 else -1
            gain.n_read += 1
            clipped += sign * (new - trial)
            at.last[i] = new - at.before[i]
            add_row(sign * (new - trial), &rows.source, row_of(rows, i), at.w_last)
        if new != at.a[i]:
            gain.total += gain_of(rows, i, new) - gain_of(rows, i, at.a[i])
            gain.balance += new - at.a[i] if rows.signed_weight[i] >= 0 else at.a[i] - new
        at.before[i] = new
    rows.n_read += gain.n_read
    take_mean(rows, clipped, at.w_last)
    at.w_last[rows.m] += rows.bias * clipped
    for j in range(n_columns):
        at.w_before[j] += at.part[j] * at.w_last[j]
    return gain


cdef double rise_of_square(const dual_moves *at, Py_ssize_t n_columns) noexcept nogil:
    cdef double square = 0
    cdef Py_ssize_t j
    for j in range(n_columns):
        square += (at.w_before[j] - at.w[j]) * (at.w_before[j] + at.w[j]) / at.part[j]
    return square


cdef void keep_sweep(dual_moves *at, const dual_rows *rows) noexcept nogil:
    # its change is the move
    cdef double step[DIRECTIONS]
    cdef Py_ssize_t i, j
    cdef int k
    for k in range(DIRECTIONS):
        step[k] = 0
    for j in range(rows.m + 1):
        next_move(at.w_last + j, rows.m + 1, step, (at.w[j] - at.w_before[j]) / at.part[j])
    for i in range(rows.n):
        next_move(at.last + i, rows.n, step, at.a[i] - at.before[i])
    at.kept = min(at.kept + 1, <int> MOVES)
