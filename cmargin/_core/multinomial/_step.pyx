"""One truncated Newton step of the penalised multinomial objective, without the interpreter.

    (Hessian + l2) D = -G      roughly, by preconditioned conjugate gradients; a read of the rows an iteration
    scores' change X D         half a read
    t                          where the objective along D is about its least, on scores: no read
    risk, gradient             at V + t D, from the scores moved by t; half a read

A machine of four phases, each a pass over blocks of rows and a decision. It can be left between groups of blocks and
taken up again; what it computes does not depend on where. V, D and G are (n_columns, n_classes), their rows sum to 0.
"""

import numpy as np

from cython cimport floating
from libc.math cimport INFINITY, fabs, isfinite
from libc.string cimport memcpy, memset

from cmargin._core.linalg._blas cimport dot
from cmargin._core.multinomial._inverse cimport Inverse, chunk_start, chunks_of, drop_mean
from cmargin._core.rows._softmax_rows cimport (
    CURVATURE, LINE as ON_LINE, MOVE, PRODUCTS, RISK_OF_SCORES, SoftmaxRows, softmax_blocks, softmax_line, softmax_mean,
    softmax_move,
)
from cmargin._core.util._arrays import zeros
from cmargin._core.util._clock cimport seconds
from cmargin._core.util._shapes cimport must_fit
from cmargin._core.util._team cimport share_out

cdef enum:
    MOST_TRIALS = 40            # of one line
    SHORT = 65536               # numbers: so few are read holding the interpreter's lock, as giving it away costs more

cdef double SOLVED = 0.1        # of the preconditioned squared residual: then a system is solved, at first
cdef double NEAR = 4.0          # times the gap that is wanted: so near it a product more is cheaper than another step
cdef double SLOPE = 0.1         # of the first slope: then a line is, if the objective has fallen
cdef double HALVED = 0.6        # of a bracket of the line is left: half of it, and rounding
cdef double SINGLE = 1.2e-7     # of the objective: what rounding makes of it
cdef double DOUBLE = 4.5e-16


# ---------------------------------------------------------------- vectors, by chunks of their rows

cdef void fold_chunk(const newton_step *at, Py_ssize_t chunk, bint curved) noexcept nogil:
    # the blocks' gradients; ``curved``: into Q, with the penalty's part and without mean, and <P, Q>. Else into G
    cdef Py_ssize_t k = at.k, lo = chunk_start(at.p, chunk, at.n_chunks), f, j, b, size = at.p * k
    cdef Py_ssize_t hi = chunk_start(at.p, chunk + 1, at.n_chunks)
    cdef double *out = at.Q if curved else at.G
    cdef double n_rows = at.rows.X.n_rows
    memset(out + lo * k, 0, (hi - lo) * k * sizeof(double))
    for b in range(at.rows.n_blocks):
        for j in range(lo * k, hi * k):
            out[j] += at.rows.gradients[b * size + j]
    for j in range(lo * k, hi * k):
        out[j] /= n_rows
    if not curved:
        return
    for f in range(lo, hi):
        drop_mean(out + f * k, k)
        if f < at.m:
            for j in range(f * k, f * k + k):
                out[j] += at.l2 * at.P[j]
    at.parts[chunk * 8] = dot((hi - lo) * k, at.P + lo * k, at.Q + lo * k)


cdef void advance_chunk(const newton_step *at, Py_ssize_t chunk, double t) noexcept nogil:
    # D += t P, R -= t Q, and the squares that the residual leaves of the gap
    cdef Py_ssize_t k = at.k, lo = chunk_start(at.p, chunk, at.n_chunks), f, c, j
    cdef double square = 0, part, mean
    cdef double *last = at.R + at.m * k
    for f in range(lo, chunk_start(at.p, chunk + 1, at.n_chunks)):
        mean = at.mean[f] if at.mean != NULL and f < at.m else 0
        for c in range(k):
            j = f * k + c
            at.D[j] += t * at.P[j]
            if f < at.m:
                at.R[j] -= t * at.Q[j]
                part = at.R[j] - (mean * (last[c] - t * at.Q[at.m * k + c]) if at.mean != NULL else 0)
                square += part * part
    at.parts[chunk * 8] = square


cdef void search_chunk(const newton_step *at, Py_ssize_t chunk, double beta) noexcept nogil:
    # P = Z + beta P
    cdef Py_ssize_t j
    for j in range(chunk_start(at.p, chunk, at.n_chunks) * at.k, chunk_start(at.p, chunk + 1, at.n_chunks) * at.k):
        at.P[j] = at.Z[j] + beta * at.P[j]


cdef double sum_of_parts(const newton_step *at) noexcept nogil:
    cdef Py_ssize_t chunk
    cdef double total = 0
    for chunk in range(at.n_chunks):
        total += at.parts[chunk * 8]
    return total


cdef struct chunks_work:            # what threads share of a fold, an advance or a search, as each needs it
    const newton_step *at
    bint curved
    double by


cdef void do_fold(void *of, Py_ssize_t chunk, int thread) noexcept nogil:
    fold_chunk((<chunks_work *> of).at, chunk, (<chunks_work *> of).curved)


cdef void do_advance(void *of, Py_ssize_t chunk, int thread) noexcept nogil:
    advance_chunk((<chunks_work *> of).at, chunk, (<chunks_work *> of).by)


cdef void do_search(void *of, Py_ssize_t chunk, int thread) noexcept nogil:
    search_chunk((<chunks_work *> of).at, chunk, (<chunks_work *> of).by)


cdef double fold(newton_step *at, bint curved) noexcept nogil:
    cdef chunks_work work
    work.at, work.curved = at, curved
    share_out(do_fold, &work, at.n_chunks, at.rows.n_threads)
    return sum_of_parts(at)


cdef double advance(newton_step *at, double t) noexcept nogil:
    cdef Py_ssize_t j
    cdef chunks_work work
    work.at, work.by = at, t
    share_out(do_advance, &work, at.n_chunks, at.rows.n_threads)
    for j in range(at.m * at.k, at.p * at.k):
        at.R[j] -= t * at.Q[j]
    return sum_of_parts(at) / (2 * at.l2)


cdef void search(newton_step *at, double beta) noexcept nogil:
    cdef chunks_work work
    work.at, work.by = at, beta
    share_out(do_search, &work, at.n_chunks, at.rows.n_threads)


# ---------------------------------------------------------------- what follows a pass

cdef void next_pass(newton_step *at, phase which, const double *V) noexcept nogil:
    cdef Py_ssize_t j, size = at.p * at.k
    at.at, at.block = which, 0
    if V == NULL:
        return
    if at.double_products:
        memcpy(at.searched, V, size * sizeof(double))
    else:
        for j in range(size):
            (<float *> at.searched)[j] = <float> V[j]


cdef void begin_line(newton_step *at) noexcept nogil:
    cdef Py_ssize_t size = at.m * at.k
    at.square, at.product = dot(size, at.D, at.D), dot(size, at.D, at.V)
    at.before = 0.5 * at.l2 * dot(size, at.V, at.V)
    at.slope = dot(at.p * at.k, at.D, at.G)
    at.low, at.low_value, at.low_slope = 0, at.value, at.slope
    at.high, at.t, at.trials, at.width = INFINITY, 1, 0, INFINITY
    next_pass(at, LINE, NULL)


cdef void on_trial(newton_step *at) noexcept nogil:
    # the least value of a convex function by its slope, in brackets
    cdef double slope = softmax_mean(at.rows, 1) + at.l2 * (at.product + at.t * at.square)
    cdef double curvature = softmax_mean(at.rows, 2) + at.l2 * at.square
    cdef double value = softmax_mean(at.rows, 0) + at.before + at.l2 * at.t * (at.product + 0.5 * at.t * at.square)
    cdef double rounding = at.value * (DOUBLE if at.double_products else SINGLE)
    cdef double ahead
    # where the slope is positive, the least value is lower by slope (t - low) at most: no more than has been won
    cdef bint halves, fallen = slope <= 0 or slope * (at.t - at.low) <= at.value - value + rounding
    at.trials += 1
    if fallen and fabs(slope) <= SLOPE * fabs(at.slope):
        next_pass(at, GRADIENT, NULL)
        return
    if slope <= 0:
        at.low, at.low_value, at.low_slope = at.t, value, slope
    else:
        at.high, at.high_value, at.high_slope = at.t, value, slope
    if at.trials == MOST_TRIALS:            # up to there it has fallen all the way
        at.t = at.low
        next_pass(at, GRADIENT, NULL)
        return
    # Newton's step, as long as the bracket is about halved: far out on an exponential it wins one of its powers a time
    halves = at.high - at.low <= HALVED * at.width
    ahead = at.t - slope / curvature if curvature > 0 else INFINITY
    if not isfinite(at.high):
        at.t = ahead if at.low < ahead and isfinite(ahead) else 2 * max(at.low, 1.0)
    elif at.low < ahead < at.high and halves:
        at.t = ahead
    else:
        at.t = between(at, halves)
    at.width = at.high - at.low
    next_pass(at, LINE, NULL)


cdef double between(const newton_step *at, bint halves) noexcept nogil:
    # where the tangents at the bracket's ends meet, the kink of two straight lines; or the middle
    cdef double fall = at.high_value - at.low_value - at.high_slope * (at.high - at.low)
    cdef double t = at.low + fall / (at.low_slope - at.high_slope)
    return t if halves and at.low < t < at.high else 0.5 * (at.low + at.high)


# ---------------------------------------------------------------- the penalty of a point

cdef (double, double) add_penalty(const double *V, const double *gradient, double l2, Py_ssize_t p, Py_ssize_t k,
                                  Py_ssize_t m, const double *mean, double *G) noexcept nogil:
    # G = gradient + l2 W, its mean taken off; l2 / 2 |W|^2 and |gradient of W|^2 / (2 l2)
    cdef Py_ssize_t f, c
    cdef double w, g, squares = 0, slopes = 0
    cdef const double *last = G + (p - 1) * k
    memcpy(G, gradient, p * k * sizeof(double))
    for f in range(p - 1, -1, -1):                  # intercepts first
        if f < m:
            for c in range(k):
                w = V[f * k + c]
                squares += w * w
                G[f * k + c] += l2 * w
        drop_mean(G + f * k, k)
        if f < m:
            for c in range(k):
                g = G[f * k + c]
                if mean != NULL:
                    g -= mean[f] * last[c]
                slopes += g * g
    return 0.5 * l2 * squares, slopes / (2 * l2)


# ---------------------------------------------------------------- Python wrapper

def penalised(const double[:, ::1] V, const double[:, ::1] gradient, double l2, Py_ssize_t n_features,
              const double[::1] mean):
    """What the penalty l2 / 2 |W|^2 makes of a risk's gradient at V, both (n_columns, n_classes).

    Returns the penalty; the gradient of the objective, its mean over the classes taken off; and the gap P - D once the
    intercepts are the best: to first order that takes their slope times ``mean``, (n_features,) of the rows, off. None:
    as they are.
    """
    cdef Py_ssize_t p = V.shape[0], k = V.shape[1]
    must_fit(0 < n_features <= p and k > 0 and gradient.shape[0] == p and gradient.shape[1] == k, "penalised: gradient")
    must_fit(mean is None or mean.shape[0] == n_features < p, "penalised: mean")
    out = np.empty((p, k))
    cdef double[:, ::1] G = out
    cdef double penalty, gap
    cdef const double *off = &mean[0] if mean is not None else NULL
    if p * k > SHORT:
        with nogil:
            penalty, gap = add_penalty(&V[0, 0], &gradient[0, 0], l2, p, k, n_features, off, &G[0, 0])
    else:
        penalty, gap = add_penalty(&V[0, 0], &gradient[0, 0], l2, p, k, n_features, off, &G[0, 0])
    return penalty, out, gap


cdef class MultinomialStep:
    """Newton steps over one set of rows, l2 > 0, of ``most`` products with the Hessian each.

    ``per_call``: blocks of rows between two checks of the clock. ``direction`` and ``gradient`` (n_columns, n_classes)
    are D and the risk's gradient ahead, of the last step.
    """

    def __init__(self, SoftmaxRows rows, double l2, Py_ssize_t most, Py_ssize_t per_call):
        cdef newton_step *at = &self.at
        cdef Py_ssize_t size
        cdef double[:, ::1] room, direction, gradient, parts
        at.rows, at.k, at.p, at.m = &rows.plan, rows.plan.n_classes, rows.plan.n_columns, rows.plan.X.n_features
        at.l2, at.most, at.solved, at.n_chunks = l2, most, SOLVED, chunks_of(at.p, at.k)
        at.per_call = max(1, per_call)
        self.rows, size, at.at = rows, at.p * at.k, DONE
        direction = self.direction = zeros((at.p, at.k))
        gradient = self.gradient = zeros((at.p, at.k))
        room, parts = zeros((4, size)), zeros((at.n_chunks, 8))
        at.D, at.G, at.parts = &direction[0, 0], &gradient[0, 0], &parts[0, 0]
        at.R, at.Z, at.P, at.Q = &room[0, 0], &room[1, 0], &room[2, 0], &room[3, 0]
        self.room = [room, parts]

    def begin(self, Inverse inverse, const double[::1] mean, const double[:, ::1] V, const double[:, ::1] G,
              double value, double enough, floating[:, ::1] scores, floating[:, ::1] probs, floating[:, ::1] change,
              const double[:, ::1] along=None):
        """A step from V, where ``value`` is the objective, G its gradient, and ``probs`` are at hand.

        ``enough``: the gap that the residual of conjugate gradients need not fall below, and is brought down to where
        it is near. ``mean``: of the rows, for that gap; None without intercept. ``along``: a direction in which the
        objective falls, to go in place of Newton's; the inverse may be None then.
        """
        cdef newton_step *at = &self.at
        cdef floating[:, ::1] searched
        must_fit(along is not None or inverse is not None, "MultinomialStep: no inverse, no direction")
        must_fit(along is None or (along.shape[0] == at.p and along.shape[1] == at.k), "MultinomialStep: direction")
        for kept in map(np.asarray, (scores, probs, change)):
            self.rows.check_kept(kept, self.rows.here)
        must_fit(V.shape[0] == G.shape[0] == at.p and V.shape[1] == G.shape[1] == at.k, "MultinomialStep")
        must_fit(inverse is None or (inverse.n_columns == at.p and inverse.n_classes == at.k),
                 "MultinomialStep: inverse")
        must_fit(mean is None or mean.shape[0] == at.m, "MultinomialStep: mean")
        dtype = np.dtype(np.float32 if floating is float else np.float64)
        self.rows.use_type(dtype)
        searched = np.empty((at.p, at.k), dtype)
        self.inverse, self.kept = inverse, (scores, probs, change, V, mean, searched)
        at.double_products = floating is double
        if self.rows.here:
            at.scores, at.probs, at.change = &scores[0, 0], &probs[0, 0], &change[0, 0]
        at.searched, at.V, at.mean = &searched[0, 0], &V[0, 0], &mean[0] if mean is not None else NULL
        at.value, at.enough = value, enough
        memcpy(at.G, &G[0, 0], at.p * at.k * sizeof(double))
        if along is not None:
            memcpy(at.D, &along[0, 0], at.p * at.k * sizeof(double))
            at.count = 0
            next_pass(at, CHANGE, at.D)
            return
        with nogil:
            self.begin_system()

    def go(self, double lasting):
        """Go on for ``lasting`` seconds, a group of blocks at least; whether the step is done."""
        cdef double until
        must_fit(self.rows.here, "MultinomialStep.go: the rows are elsewhere")
        with nogil:
            until = seconds() + lasting
            while not self.taken():
                self.next_blocks()
                if seconds() > until:
                    break
        return self.taken()

    @property
    def asks(self):
        """The task of `SoftmaxRows` that the step waits for where the rows are elsewhere; None: it is done.

        Products with the Hessian (CURVATURE) or scores (PRODUCTS) of `searched`; sums on the LINE at `step`; or those
        after a MOVE of the scores by `step`.
        """
        return None if self.taken() else (CURVATURE, PRODUCTS, ON_LINE, MOVE)[<int> self.at.at]

    @property
    def searched(self):
        """(n_columns, n_classes) of the type of the products: what the rows are multiplied with."""
        return np.asarray(self.kept[5])

    def told(self, const double[::1] sums, const double[:, ::1] gradient):
        """Go on by what the rows elsewhere have answered; whether the step is done.

        ``sums`` over all rows: risk, slope and curvature of LINE, the risk after MOVE, else none. ``gradient``
        (n_columns, n_classes): the sum of CURVATURE and after MOVE, else empty.
        """
        cdef newton_step *at = &self.at
        must_fit(not self.rows.here and at.at != DONE, "MultinomialStep.told: nothing was asked")
        must_fit(sums.shape[0] == (3 if at.at == LINE else 1 if at.at == GRADIENT else 0), "MultinomialStep.told: sums")
        self.rows.sums[:] = 0
        self.rows.sums[0, :sums.shape[0]] = sums
        if at.at == SYSTEM or at.at == GRADIENT:
            must_fit(gradient.shape[0] == at.p and gradient.shape[1] == at.k, "MultinomialStep.told: gradient")
            self.rows.gradients[:] = 0
            self.rows.gradients[0] = np.asarray(gradient).ravel()
        with nogil:
            self.end_pass()
        return self.taken()

    @property
    def step(self):
        """How far along `direction`."""
        return self.at.t

    @property
    def risk(self):
        """At the step's end."""
        return self.at.risk

    @property
    def products(self):
        """With the Hessian, of the last step."""
        return self.at.count

    cdef bint taken(self) noexcept nogil:
        return self.at.at == DONE

    cdef void begin_system(self) noexcept nogil:
        cdef newton_step *at = &self.at
        cdef Py_ssize_t j, size = at.p * at.k
        for j in range(size):
            at.R[j], at.D[j] = -at.G[j], 0
        self.inverse.apply(at.R, at.Z)
        memcpy(at.P, at.Z, size * sizeof(double))
        at.norm = at.first = dot(size, at.R, at.Z)
        at.count = 0
        next_pass(at, SYSTEM, at.P)

    cdef void on_hessp(self) noexcept nogil:
        cdef newton_step *at = &self.at
        cdef Py_ssize_t size = at.p * at.k
        cdef double curvature = fold(at, True), before = at.norm, gap
        at.count += 1
        if not curvature > 0:                # rounding: what is known so far, or the preconditioned gradient
            next_pass(at, CHANGE, at.D if at.count > 1 else at.Z)
            if at.count == 1:
                memcpy(at.D, at.Z, size * sizeof(double))
            return
        gap = advance(at, at.norm / curvature)
        self.inverse.apply(at.R, at.Z)
        at.norm = dot(size, at.R, at.Z)
        if gap <= at.enough or (at.norm <= at.solved * at.first and gap > NEAR * at.enough) or at.count >= at.most:
            next_pass(at, CHANGE, at.D)
            return
        search(at, at.norm / before)
        next_pass(at, SYSTEM, at.P)

    cdef void next_blocks(self) noexcept nogil:
        cdef newton_step *at = &self.at
        cdef Py_ssize_t lo = at.block, hi = min(at.block + at.per_call, at.rows.n_blocks)
        at.block = hi
        if at.double_products:
            group_pass[double](at, <double *> at.searched, <double *> at.scores, <double *> at.probs,
                               <double *> at.change, lo, hi)
        else:
            group_pass[float](at, <float *> at.searched, <float *> at.scores, <float *> at.probs,
                              <float *> at.change, lo, hi)
        if hi == at.rows.n_blocks:
            self.end_pass()

    cdef void end_pass(self) noexcept nogil:
        cdef newton_step *at = &self.at
        if at.at == SYSTEM:
            self.on_hessp()
        elif at.at == CHANGE:
            begin_line(at)
        elif at.at == LINE:
            on_trial(at)
        else:
            fold(at, False)
            at.risk, at.at = softmax_mean(at.rows, 0), DONE


cdef void group_pass(newton_step *at, const floating *searched, floating *scores, floating *probs, floating *change,
                     Py_ssize_t lo, Py_ssize_t hi) noexcept nogil:
    if at.at == SYSTEM:
        softmax_blocks(at.rows, CURVATURE, searched, scores, probs, lo, hi)
    elif at.at == CHANGE:
        softmax_blocks(at.rows, PRODUCTS, searched, change, probs, lo, hi)
    elif at.at == LINE:
        softmax_line(at.rows, at.t, scores, change, lo, hi)
    else:
        softmax_move(at.rows, at.t, scores, change, lo, hi)
        softmax_blocks(at.rows, RISK_OF_SCORES, searched, scores, probs, lo, hi)
