"""Common columns held near a centre while the dual is swept: the proximal method of multipliers, column by column.

A column that most rows have ties all dual variables together, and its entries are most of |x_i|^2, by which a step of a
sweep is divided: sweeps are as slow as |x_i|^2 is large beside what rows have in rare columns. So the sweeps are of
another problem, which has the same minimum where its centre v is there,

    min P(w) / l2 + sum_j rho_j (w_j - v_j)^2 / 2,      w_j = (g_j + rho_j v_j) / (1 + rho_j),    g = sum_i a_i y_i x_i,

in which a step of a_i is divided by sum_j x_ij^2 / (1 + rho_j). After every sweep v is moved to w (Rockafellar 1976,
with a sweep in place of a minimum). With rho_j about t sum_i a_i x_ij^2 rare columns stay as they are, and common ones
count for little in a row, while all rows together still say where they are. The duality gap is a sum over rows and
columns,

    P(w) - D(a) = l2 (sum_i [loss_i - a_i u_i] + |w - g|^2 / 2),

of which the first asks for a larger t, the second for a smaller one, and so does a centre that goes on the same way
sweep after sweep: rows are at rest beside it, and it is v that is behind. Where no column is common a centre has no
use: it is left out while even the largest t would leave more than half of sum C |x|^2. Columns so rare that rho_j is
next to 0 are not held, and cost nothing then. A free intercept keeps its multiplier; its constant is made as small
beside the rows as they have become.
"""

from libc.math cimport pow, sqrt
from libc.string cimport memcpy

from cmargin._core.linalg._blas cimport dot
from cmargin._core.rows._dual_rows cimport dual_rows, row_of
from cmargin._core.rows._tiles cimport open_tile, row_tile, tile_row_squares
from cmargin._core.util._serialise cimport numbers_between, span

cdef double STRENGTH = 0.2           # The first and largest t: more holds w back, less leaves the sweeps slow.
cdef double LEAST = 0.01             # The smallest t, and the smallest rho by which a column is held.
# Factor by which `weight` has to change before it is taken into account, which costs a read of the rows. Eight sweeps
# that all ask for more, or for less, change t by this factor. Sweeps ask for neither where the two parts of the gap are
# within its square of each other, which is what such a change makes of them: t would go up and down for ever.
cdef double HELD = 2.0
# Cosine between two moves of the centre above which t falls: the centre follows w too slowly.
cdef double SAME_WAY = 0.98
cdef double LARGEST = 1e4            # The largest rho: digits of g are lost beside a larger one.


cdef void begin_centre(dual_centre *at, const dual_rows *rows) noexcept nogil:
    cdef Py_ssize_t j
    at.strength, at.weight, at.of_sum, at.n_held = STRENGTH, 0, 0, 0
    for j in range(rows.m + 1):
        at.part[j] = 1


cdef void hold_columns(dual_centre *at, dual_rows *rows, double weight, const double *w) noexcept nogil:
    # w: sum a y x, which columns that were not held have for their centre
    cdef row_tile tile
    cdef Py_ssize_t m = rows.m, i, j
    cdef double seen = 0, whole = 0, most = weight * STRENGTH / at.strength, rho
    for j in range(m):
        whole += at.column[j]
        seen += at.column[j] / (1 + min(most * at.column[j], LARGEST))
    if not seen < whole / 2:                                 # no use, even with the largest t
        weight = 0
        if at.weight == 0:
            return
    at.weight, at.n_held = weight, 0
    for j in range(m + 1):
        if at.part[j] == 1:
            at.centre[j], at.move[j] = w[j], 0
        rho = min(weight * at.column[j], LARGEST)
        at.part[j] = 1 / (1 + rho) if rho > LEAST else 1
        if at.part[j] < 1 and (j < m or not rows.free):
            at.held[at.n_held] = j
            at.n_held += 1
    if weight == 0:
        return
    tile = open_tile(&rows.source, 0, rows.n_source, NULL)
    tile_row_squares(&tile, at.part, at.square)
    rows.n_read += rows.n_source
    seen = whole = 0
    if rows.free:
        for i in range(rows.n_source):
            seen += at.square[i]
            whole += rows.square[i] - rows.bias * rows.bias - rows.ridge[i]
        at.part[m] = min(1.0, seen / whole) if seen > 0 and whole > 0 else 1
    for i in range(rows.n - 1, -1, -1):                      # the second dual variable of a row before the first
        at.square[i] = max(at.square[row_of(rows, i)] + at.part[m] * rows.bias * rows.bias + rows.ridge[i], 1e-300)


cdef void sum_behind(const dual_centre *at, Py_ssize_t m, const double *w, double *out) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(m + 1):
        out[j] = w[j] if at.column == NULL else w[j] + (1 / at.part[j] - 1) * (w[j] - at.centre[j])


cdef double move_centre(dual_centre *at, dual_rows *rows, double seen, double total, double unbalanced,
                        double *w) noexcept nogil:
    cdef Py_ssize_t n_columns = rows.m + (not rows.free), j, k
    cdef double apart = 0, along = 0, now = 0, before = 0, rho, move, weight, asks
    for k in range(at.n_held):
        j = at.held[k]
        rho, move = 1 / at.part[j] - 1, w[j] - at.centre[j]
        along += rho * move * at.move[j]
        now += rho * move * move
        before += rho * at.move[j] * at.move[j]
        apart += rho * move * rho * move / 2
        at.centre[j], at.move[j] = w[j], move
        w[j] += rho * move
    at.of_sum = dot(n_columns, w, w)
    if rows.free:
        apart += at.part[rows.m] * unbalanced * unbalanced
    if at.weight > 0:
        asks = 0.125 if seen > HELD * HELD * apart else -0.125 if apart > HELD * HELD * seen else 0
        if along > SAME_WAY * sqrt(now * before):
            asks = -0.75
        at.strength = min(max(at.strength * pow(HELD, asks), LEAST), STRENGTH)
    weight = at.strength * max(total, 0.0) / at.column[rows.m + 1]
    if weight > HELD * at.weight or weight < at.weight / HELD:
        hold_columns(at, rows, weight, w)
    for k in range(at.n_held):
        j = at.held[k]
        w[j] = at.centre[j] + at.part[j] * (w[j] - at.centre[j])
    if rows.free and (at.weight > 0 or seen <= unbalanced * unbalanced):
        w[rows.m] += at.part[rows.m] * unbalanced
    return apart


cdef void centre_at(dual_centre *at, Py_ssize_t m, const double *w) noexcept nogil:
    if at.column != NULL:
        memcpy(at.centre, w, (m + 1) * sizeof(double))


cdef span numbers_of_centre(dual_centre *at) noexcept nogil:
    return numbers_between(&at.strength, &at.of_sum + 1)
