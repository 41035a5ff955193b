"""Binary problems over rows of which all products with each other, K = X X', are in memory: made once for all of them.

    max over 0 <= a <= upper of   sum a - s'K s / 2 - sum ridge a^2 / 2,   s = a y,  sum s = 0 beside a free intercept

is the dual of `cmargin.solvers.dual.dual_newton`, in its units. A fit goes on from the fit before, in rounds:

(a) All rows: from z = K s objective, intercept, best multiple, bound and gap, as the dual by sweeps has them.
(b) A few rows are listed: those between their bounds, and those that would leave one, the steepest first.
(c) `_gram_block` solves the problem in these rows alone, by their m^2 products, and z follows with a row of K for each
    s that has changed.

No row of X is read: a round costs n for each row that has moved, an evaluation of X n m. Rows of weight 0, held out by
a fold, have scores as all have. What rounding in K and z may be is held against the gap.

Without K, of more rows than it may have, products of the listed rows are summed in single precision when they are
listed, and v = sum s x follows in double. The problem then waits until z = X v is read, for many problems in one
product.
"""

import numpy as np

from libc.float cimport DBL_EPSILON, FLT_EPSILON
from libc.math cimport INFINITY, fabs, isfinite, sqrt
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

from cmargin._core.gram._gram_block cimport gram_block, solve_block
from cmargin._core.linalg._blas cimport NO_TRANS, syrk
from cmargin._core.losses._losses import FACTS
from cmargin._core.newton._bound cimport relative_gap
from cmargin._core.rows._dual_evaluate cimport best_multiple, multiple_of
from cmargin._core.rows._dual_rows cimport dual_rows, loss_at
from cmargin._core.rows._rows cimport Rows, rows_view, value_at
from cmargin._core.util._rounding cimport ROUNDING_OF_SUMS
from cmargin._core.util._shapes cimport must_fit
from cmargin._core.util._simd cimport row_axpy
from cmargin._core.util._team cimport share_out

cdef double LARGEST_SCALE = 2.0      # Weights are scaled by at most this factor, as in `dual_newton`.
# Listed rows are solved to the larger of this part of the tolerance and that part of the gap of all rows: less costs
# more rounds over all rows, more costs steps on rows that move again.
cdef double ENOUGH = 0.3
cdef double DEPTH = 0.05
cdef double FALLEN = 0.7             # A round counts as idle unless it leaves less than this part of the least gap.
cdef enum:
    ROWS_PER_ROW = 2                 # Rows listed at most for every row that has moved: the block costs their square.
    MOST_PRODUCTS = 200              # Products of listed rows for every row of X, without K: more cost what sweeps do.
    MORE_ROWS = 100                  # Rows listed besides.
    HALVINGS = 40                    # Halvings of the interval of a threshold, at most.
    MOST_IDLE = 6                    # Idle rounds in a row after which a problem is given up.


cdef struct shared_work:
    const gram_rows *rows
    gram_problem **problems
    block_room *blocks
    double l2, tol, bend, largest
    int most_rounds
    bint out_of_memory


cdef struct block_room:              # of a thread
    double *numbers
    float *listed                    # (most, m) rows themselves, where there is no K
    Py_ssize_t *places
    Py_ssize_t most                  # rows that it has room for


cdef struct fit_room:                # of one fit
    block_room *block
    const gram_rows *rows
    gram_problem *of
    double *upper                    # (n,) of the dual variables
    double *ridge
    double *u                        # (n,) slacks; how far rows would leave their bounds
    double *scratch                  # (3 n,)
    Py_ssize_t *listed               # (n,)
    Py_ssize_t n_listed
    double size                      # sum a
    double shift                     # the intercept before the best multiple


# ---------------------------------------------------------------- all rows

cdef void evaluate(fit_room *at, double l2) noexcept nogil:
    cdef const gram_rows *rows = at.rows
    cdef gram_problem *of = at.of
    cdef Py_ssize_t n = rows.n, i, k
    cdef double total = 0, square = 0, bends = 0, balance = 0, error, times, loss, scale, y, farthest = 0
    cdef double w[2]
    cdef best_multiple best
    cdef dual_rows seen                          # what `multiple_of` asks for
    memset(&seen, 0, sizeof(dual_rows))
    seen.n = seen.n_source = n
    seen.m, seen.free, seen.smooth = 1, rows.free, at.ridge[n] > 0
    seen.signed_weight, seen.upper, seen.ridge = of.signed_weight, at.upper, at.ridge
    for i in range(n):
        y = 1 if of.signed_weight[i] >= 0 else -1
        at.u[i] = 1 - y * of.z[i]
        total += fabs(of.s[i])
        bends += at.ridge[i] * of.s[i] * of.s[i]
        square += of.s[i] * of.z[i]
        balance += of.s[i]
        farthest = max(farthest, fabs(of.z[i]))
    at.size = total
    square = max(square, 0.0)
    error = of.drift + ROUNDING_OF_SUMS * (sqrt(rows.largest * square) if of.is_read else rows.largest * total)
    w[0], w[1] = sqrt(square), 0
    best = multiple_of(&seen, w, at.u, LARGEST_SCALE, at.scratch)
    square += 2 * error * total
    error += 2 * DBL_EPSILON * (fabs(best.shift) + rows.offset * w[0])     # of an intercept as users get it
    at.shift, of.objective = best.shift, INFINITY
    for k in range(2):                           # the second outweighs what rounding may cost rows at their margins
        scale, loss = best.scale * (1 + 2 * k * error), 0
        for i in range(n):
            y = 1 if of.signed_weight[i] >= 0 else -1
            loss += loss_at(1 - scale * (y * (of.z[i] + best.shift) - error), at.upper[i], at.ridge[i])
        if l2 * (scale * scale * square / 2 + loss) < of.objective:
            of.objective, of.scale, of.b = l2 * (scale * scale * square / 2 + loss), scale, scale * best.shift
    if rows.free:                                # that much of the heavier side may have to go
        total -= fabs(balance) * (1 + farthest + fabs(balance) * rows.largest)
    times = min(1.0, max(total, 0.0) / (square + bends)) if square + bends > 0 else 1.0
    of.dual = max(0.0, l2 * times * (total - times * (square + bends) / 2))


cdef enum:                           # ways: where s may go
    NOWHERE, UP, DOWN, BOTH


cdef inline int way_of(const fit_room *at, Py_ssize_t i) noexcept nogil:
    if not at.upper[i] > 0:
        return NOWHERE
    if 0 < fabs(at.of.s[i]) < at.upper[i]:
        return BOTH
    return UP if (at.of.signed_weight[i] >= 0) == (at.of.s[i] == 0) else DOWN


cdef double threshold_of(const fit_room *at, int side, double low, double high, Py_ssize_t most) noexcept nogil:
    # above which are u of about ``most`` rows of that side, or all that are above ``low``
    cdef double threshold = low
    cdef Py_ssize_t count, i
    cdef int halved
    for halved in range(HALVINGS):
        count = 0
        for i in range(at.rows.n):
            count += at.u[i] > threshold and way_of(at, i) == side
        if count > most:
            low = threshold
        elif halved == 0 or count >= most - most / 8:
            return threshold
        else:
            high = threshold
        threshold = (low + high) / 2
    return low                       # many are level


cdef void list_rows(fit_room *at) noexcept nogil:
    # u: how far a row's slope is beyond where it leaves its bound; of both sides, as a free intercept needs two
    cdef gram_problem *of = at.of
    cdef Py_ssize_t n = at.rows.n, i, moved = 0, n_face = 0
    cdef double p, b = 0, top = -INFINITY, bottom = INFINITY, steepest
    cdef double above[4]
    cdef Py_ssize_t left[4]
    cdef bint cold = at.size == 0
    cdef int side
    for i in range(n):
        p = at.u[i] = (1 if of.signed_weight[i] >= 0 else -1) - at.ridge[i] * of.s[i] - of.z[i]
        side = way_of(at, i)
        if side == UP or side == BOTH:
            top = max(top, p)
        if side == DOWN or side == BOTH:
            bottom = min(bottom, p)
        moved += of.s[i] != 0
        n_face += side == BOTH
    if at.rows.free:
        b = (top + bottom) / 2
    steepest = max(top - b, b - bottom, 0.0)
    for i in range(n):
        side = way_of(at, i)
        at.u[i] = INFINITY if side == BOTH else -INFINITY if side == NOWHERE else \
            at.u[i] - b if side == UP else b - at.u[i]
        if cold:
            at.u[i] -= of.hint[i] if side == UP else -of.hint[i]
    left[UP] = left[DOWN] = ROWS_PER_ROW * moved + MORE_ROWS - n_face
    left[BOTH], left[NOWHERE] = n_face, 0
    for i in range(UP, BOTH):
        # as far inside their bounds as the steepest is beyond: a longer list saves rounds and costs the block
        above[i] = threshold_of(at, <int> i, -steepest - cold, 2 * steepest + 1, left[i])
    above[BOTH] = above[NOWHERE] = 0
    at.n_listed = 0
    for i in range(n):
        side = way_of(at, i)
        if at.u[i] > above[side] and left[side] > 0:
            at.listed[at.n_listed] = i
            at.n_listed += 1
            left[side] -= 1


# ---------------------------------------------------------------- a few rows

cdef bint has_room(block_room *block, Py_ssize_t m, Py_ssize_t width) noexcept nogil:
    # kept from block to block: fresh pages take as long as a block
    if m <= block.most:
        return True
    free(block.numbers)
    free(block.places)
    block.most = m + m / 4
    block.numbers = <double *> malloc((2 * block.most + 8 + width / 2 + 1) * block.most * sizeof(double))
    block.places = <Py_ssize_t *> malloc(block.most * sizeof(Py_ssize_t))
    if block.numbers == NULL or block.places == NULL:
        block.most = 0
    block.listed = <float *> block.numbers + 2 * (2 * block.most + 8) * block.most
    return block.most > 0


cdef void take_products(const fit_room *at, double *Q, float *single) noexcept nogil:
    # Q (m, m) of the listed rows with each other; single (m, m) scratch
    cdef const gram_rows *rows = at.rows
    cdef const rows_view *X = rows.X
    cdef Py_ssize_t m = at.n_listed, k, j, width, first
    cdef const double *row
    cdef float *listed = at.block.listed
    if rows.K != NULL:
        for k in range(m):
            row = rows.K + at.listed[k] * rows.n
            for j in range(m):
                Q[k * m + j] = row[at.listed[j]]
        return
    width = X.n_features
    for k in range(m):
        first = at.listed[k] * X.row_stride
        for j in range(width):
            listed[k * width + j] = <float> (value_at(X, first + j * X.column_stride) - rows.mean[j])
    # single = R R'   (m, m) = (m, width) (width, m)
    syrk(NO_TRANS, m, width, 1, <const float *> listed, width, 0, single, m)
    for k in range(m):
        for j in range(k, m):
            Q[k * m + j] = Q[j * m + k] = single[k * m + j] + rows.constant


cdef bint solve_listed(fit_room *at, double enough) noexcept nogil:
    # False: there is no memory
    cdef gram_problem *of = at.of
    cdef const rows_view *X = at.rows.X
    cdef Py_ssize_t m = at.n_listed, k, i, j, n = at.rows.n, width = 0 if at.rows.K != NULL else X.n_features
    cdef double *room
    cdef double *Q
    cdef double *low
    cdef double *high
    cdef double *ridge
    cdef double *before
    cdef double step, y
    cdef gram_block block
    if not has_room(at.block, m, width):
        return False
    room = Q = at.block.numbers
    low = room + 2 * m * m
    high, ridge, before = low + m, low + 2 * m, low + 3 * m
    block.m, block.free, block.Q, block.factor, block.balance = m, at.rows.free, Q, room + m * m, 0
    block.rounding = 0 if at.rows.K != NULL else 8 * FLT_EPSILON
    for i in range(n):
        block.balance += of.s[i]
    block.low, block.high, block.ridge = low, high, ridge
    block.s, block.p, block.ahead, block.level = before + m, before + 2 * m, before + 3 * m, before + 4 * m
    block.face = at.block.places
    take_products(at, Q, <float *> block.factor)
    for k in range(m):
        i = at.listed[k]
        y = 1 if of.signed_weight[i] >= 0 else -1
        low[k], high[k] = (0 if y > 0 else -at.upper[i]), (at.upper[i] if y > 0 else 0)
        ridge[k] = at.ridge[i]
        block.s[k] = before[k] = of.s[i]
        block.p[k] = y - of.z[i] - at.ridge[i] * of.s[i]
    solve_block(&block, enough)
    of.is_read = False
    for k in range(m):
        i, step = at.listed[k], block.s[k] - before[k]
        if step != 0:
            of.s[i] = block.s[k]
            at.size += fabs(step)
            if at.rows.K != NULL:
                row_axpy(step, at.rows.K + i * n, of.z, n)
            else:
                for j in range(width):
                    of.v[j] += step * (value_at(X, i * X.row_stride + j * X.column_stride) - at.rows.mean[j])
    of.drift += ROUNDING_OF_SUMS * at.rows.largest * at.size
    return True


# ---------------------------------------------------------------- one fit

cdef void begin_anew(gram_problem *of, const gram_rows *rows) noexcept nogil:
    memset(of.s, 0, rows.n * sizeof(double))
    memset(of.z, 0, rows.n * sizeof(double))
    if rows.K == NULL:
        memset(of.v, 0, rows.X.n_features * sizeof(double))
    of.drift, of.l2, of.is_read = 0, 0, False


cdef void rescale(fit_room *at, double l2) noexcept nogil:
    # the best multiple within the new bounds of the last fit's dual variables
    cdef gram_problem *of = at.of
    cdef Py_ssize_t i
    cdef double total = 0, bend = 0, times = 1, most = of.l2 / l2
    if of.l2 == 0 or of.l2 == l2:
        return
    of.is_read = False
    for i in range(at.rows.n):
        total += fabs(of.s[i])
        bend += of.s[i] * of.z[i] + at.ridge[i] * of.s[i] * of.s[i]
    times = min(most, max(total / bend, min(1.0, most))) if bend > 0 else min(1.0, most)
    for i in range(at.rows.n):
        of.z[i] *= times
        of.s[i] *= times
        if fabs(of.s[i]) >= at.upper[i] * (1 - 4 * DBL_EPSILON):
            of.s[i] = at.upper[i] if of.signed_weight[i] >= 0 else -at.upper[i]
    of.drift *= times


cdef void fit_problem(void *of, Py_ssize_t item, int thread) noexcept nogil:
    cdef shared_work *work = <shared_work *> of
    cdef gram_problem *problem = work.problems[item]
    cdef Py_ssize_t n = work.rows.n, i
    cdef double cost, gap
    cdef int rounds = 0
    cdef fit_room at
    cdef double *room = <double *> malloc((6 * n + 1) * sizeof(double))
    at.listed = <Py_ssize_t *> malloc((n + 1) * sizeof(Py_ssize_t))
    if room == NULL or at.listed == NULL:
        work.out_of_memory = True
    else:
        at.rows, at.of, at.block = work.rows, problem, work.blocks + thread
        at.upper, at.ridge, at.u, at.scratch = room, room + n, room + 2 * n + 1, room + 3 * n + 1
        for i in range(n):
            cost = fabs(problem.signed_weight[i]) * problem.cost / work.l2
            at.upper[i] = cost * work.largest if cost > 0 else 0
            at.ridge[i] = work.bend / cost if cost > 0 else 0
        at.ridge[n] = work.bend
        rescale(&at, work.l2)
        problem.proven = problem.waits = False
        if work.rows.K != NULL or problem.l2 != work.l2:
            problem.idle, problem.best = 0, INFINITY
        while True:
            evaluate(&at, work.l2)
            rounds += 1
            gap = relative_gap(problem.objective, problem.dual)
            if gap <= work.tol:
                problem.proven = True
                break
            problem.idle = 0 if gap < FALLEN * problem.best else problem.idle + 1
            problem.best = gap if problem.idle == 0 else problem.best
            if rounds >= work.most_rounds or problem.idle > MOST_IDLE:
                break
            list_rows(&at)
            if at.n_listed == 0 or (work.rows.K == NULL and at.n_listed * at.n_listed > MOST_PRODUCTS * n):
                break
            if not solve_listed(&at, max(ENOUGH * work.tol * problem.dual,
                                         DEPTH * (problem.objective - problem.dual)) / work.l2):
                work.out_of_memory = True
                break
            if work.rows.K == NULL:
                problem.waits = True
                break
        problem.rounds += rounds
        problem.l2 = work.l2
        if not isfinite(problem.objective):      # z has overflown, of which no other penalty should make anything
            begin_anew(problem, work.rows)
    free(room)
    free(at.listed)


cdef class GramRows:
    """``K`` (n, n): X X', C order. ``balanced``: sum s is to be 0, for an intercept that is not penalised; ``offset``:
    the length of the mean from which rows are seen."""

    cdef gram_rows rows
    cdef tuple keep

    def __init__(self, const double[:, ::1] K, bint balanced, double offset):
        must_fit(K.shape[0] == K.shape[1] and K.shape[0] > 0, "GramRows")
        self.keep = (K,)
        self.rows.n, self.rows.K, self.rows.free = K.shape[0], &K[0, 0], balanced
        self.rows.offset, self.rows.largest = offset, float(np.max(np.diagonal(K)))


def rows_without_products(Rows X, const double[::1] mean, double largest, bint balanced, bint constant):
    """`GramRows` of dense rows ``X``, whose products are summed where they are listed, seen from ``mean``, 1 added if
    there is a ``constant``; none is larger than ``largest``."""
    cdef GramRows of = GramRows.__new__(GramRows)
    must_fit(not X.sparse and X.view.n_rows > 0 and mean.shape[0] == X.view.n_features > 0, "rows_without_products")
    of.keep = X, mean
    of.rows.n, of.rows.K, of.rows.X, of.rows.mean = X.view.n_rows, NULL, &X.view, &mean[0]
    of.rows.constant, of.rows.free, of.rows.largest = constant, balanced, largest
    of.rows.offset = float(np.linalg.norm(mean))
    return of


cdef class GramProblem:
    """One problem on its way; ``signed_weight`` (n,), ``hint`` (n,): see `gram_problem`."""

    cdef gram_problem at
    cdef const double[::1] signed_weight
    cdef double[::1] hint
    cdef readonly object s, z, v     # (n,) signed dual variables, and K s; (n_features,) sums of s x, without K

    def __init__(self, const double[::1] signed_weight, double[::1] hint, Py_ssize_t n_features=0):
        cdef Py_ssize_t n = signed_weight.shape[0]
        cdef double[::1] s = np.zeros(n), z = np.zeros(n), v = np.zeros(n_features)
        self.signed_weight, self.hint, self.s, self.z, self.v = signed_weight, hint, s.base, z.base, v.base
        self.at.signed_weight, self.at.hint, self.at.s, self.at.z = &signed_weight[0], &hint[0], &s[0], &z[0]
        self.at.v = &v[0] if n_features > 0 else NULL
        self.at.cost = 1 / float(np.sum(np.abs(signed_weight)))

    def take(self, const double[::1] z):
        """K s, summed anew."""
        must_fit(z.shape[0] == self.signed_weight.shape[0], "take")
        self.z[:] = z
        self.at.is_read = True
        if self.at.v == NULL:
            self.at.drift = 0

    @property
    def objective(self):
        return self.at.objective

    @property
    def dual(self):
        return self.at.dual

    @property
    def scale(self):
        """The weights are ``scale`` sum s x."""
        return self.at.scale

    @property
    def b(self):
        """A free intercept, of rows as K sees them."""
        return self.at.b

    @property
    def proven(self):
        return bool(self.at.proven)

    @property
    def waits(self):
        """For K s to be read, as s has changed."""
        return bool(self.at.waits)

    @property
    def rounds(self):
        return self.at.rounds


def solve_problems(GramRows rows, list problems, loss, double l2, double tol, int most_rounds, int n_threads):
    """Bring every `GramProblem` to ``tol`` at ``l2``, from where it is."""
    cdef shared_work work
    cdef Py_ssize_t k, n = len(problems)
    cdef GramProblem problem
    facts = FACTS[loss]
    work.rows, work.l2, work.tol = &rows.rows, l2, tol
    work.bend, work.largest = facts["dual_bend"], facts["dual_largest"]
    work.most_rounds, work.out_of_memory = most_rounds, False
    work.problems = <gram_problem **> malloc(max(<Py_ssize_t> 1, n) * sizeof(gram_problem *))
    work.blocks = <block_room *> calloc(n_threads, sizeof(block_room))
    if work.problems == NULL or work.blocks == NULL:
        raise MemoryError
    for k, problem in enumerate(problems):
        must_fit(problem.signed_weight.shape[0] == rows.rows.n
                 and (rows.rows.K != NULL or problem.v.shape[0] == rows.rows.X.n_features), "solve_problems")
        work.problems[k] = &problem.at
    with nogil:
        share_out(fit_problem, &work, n, n_threads)
    for k in range(n_threads):
        free(work.blocks[k].numbers)
        free(work.blocks[k].places)
    free(work.blocks)
    free(work.problems)
    if work.out_of_memory:
        raise MemoryError
