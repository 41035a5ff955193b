"""`Newton`, the driver as a Python object: it owns the memory, begins and leaves, gives results and checkpoints."""

import numpy as np

from libc.math cimport INFINITY, NAN, isfinite
from libc.stdlib cimport free
from libc.string cimport memcmp, memcpy

from cmargin._core.linalg._blas cimport potrf
from cmargin._core.losses._losses cimport facts_of
from cmargin._core.losses._point cimport loss_of
from cmargin._core.newton.direction._chord cimport serves_all_rows
from cmargin._core.newton._asking cimport PAUSE, Driver
from cmargin._core.newton._bound cimport sides
from cmargin._core.penalties._penalties cimport (
    LinearConstraints, has_bound, has_kinks, has_steps_by_columns, take_penalty,
)
from cmargin._core.penalties._penalty cimport BY_COLUMN, penalty_t
from cmargin._core.util._serialise cimport copied, restore, serialised, span
from cmargin._core.util._clock cimport seconds
from cmargin._core.newton._driver cimport go_on, newton_answers_to, newton_begin, newton_leave, newton_settle
from cmargin._core.newton._one_class cimport is_one_class
from cmargin._core.newton._point cimport history_columns, rounding_of, total_held
from cmargin._core.newton._serialise cimport N_SPANS, newton_spans
from cmargin._core.newton._state cimport WAITING, newton_state, status_id
from cmargin._core.newton.direction._block cimport block_work_size
from cmargin._core.newton._vectors cimport BEST_V, BEST_W, D, G, L2_EACH, RMS, SCALE, TAKEN, W, X
from cmargin._core.newton._vectors cimport n_vectors, point_at_vectors
from cmargin._core.util._shapes cimport must_fit
from cmargin._core.util._stop cimport take_rule
from cmargin._core.newton._smoothing cimport begin_rule

# names of `status_id`. "decrement": no certificate exists; "width": a subset is done; "stalled": the width cannot
# shrink further; "rounding": nor can the gap; "left": steps by Hessian-vector products cost more than a factor; the
# last three are margin pursuit's
STATUS = ("waiting", "running", "converged", "decrement", "width", "stalled", "rounding", "stopped", "max_time",
          "max_passes", "left", "diverged", "callback", "interrupted")


cdef bint room_for_block(newton_state *at, Py_ssize_t order) noexcept nogil:
    return order <= at.curvature.work_order or ask_python_for_room(at, order)


cdef bint ask_python_for_room(newton_state *at, Py_ssize_t order) noexcept with gil:
    try:
        (<Newton> at.curvature.owner).make_room(order)
    except MemoryError:
        return False
    return True


cdef double bound_of_nothing(const newton_state *at) noexcept nogil:
    if is_one_class(at):
        return -INFINITY
    return 0 if has_bound(&at.penalty.user) else NAN


cdef double OF_TANGENTS = 1e-4   # width of evaluations in which rows far from the hinge are straight lines


cdef class Newton(Driver):
    """One binary problem on its way, by compiled steps. `cmargin.solvers.newton.continuation` puts it to use.

    ``source`` holds the rows: ``n_rows``, ``n_features``, ``n_columns``, ``total_weight``, ``share``, and `RowBlocks`
    to be read here.
    ``result``: the best objective and bound, counts and history of what was done before; ``started``,
    ``spent_seconds``: its clock and three times.
    ``w``: (n_columns,) to begin with.
    ``width``, ``decay``: smoothing of the first step, and by what a full step multiplies it.
    ``limits``: where another way is taken, the fields of `newton_limits`.
    ``by_cg``: directions by conjugate gradients, no curvature block. With them:
    ``products_limit``, the most products of a step, beyond which a factor is cheaper; 0: no limit;
    ``or_leave``, it ends there, "left", instead of going on with a block;
    ``sampled``, `Sampled` or None, rows whose curvature preconditions products from the first on, or in place of those
    that are no longer worth it.
    ``column_scale``: curvature of every column, (n_columns,), asks for the mean of the rows' measures, once; or None.
    ``curvature``: (n_columns, n_columns) with l2, upper triangle, of a subset of the rows, for the first step; or None.
    ``is_near``: it is of all rows, where a fit with nearly the same penalty has ended.
    ``mean_curvature``: of the rows where it begins, for a first sample; 0: not known.
    """

    def __init__(self, source, problem, settings, result, w, double width, double decay, dict limits, *,
                 bint by_cg=False, int products_limit=0, bint or_leave=False, sampled=None, column_scale=None,
                 curvature=None, bint is_near=False, double mean_curvature=0.0, started=None,
                 spent_seconds=(0.0, 0.0, 0.0)):
        cdef newton_state *at = &self.at
        self.asks_of(source, &at.ask, at)
        newton_answers_to(at)
        at.curvature.owner, at.curvature.make_room = <void *> self, room_for_block
        at.p, at.problem.n_rows, at.problem.n_features = source.n_columns, source.n_rows, source.n_features
        at.problem.n, at.problem.share, at.problem.rounding = source.total_weight, source.share, source.rounding
        take_penalty(&at.penalty.user, problem.penalty)
        at.penalty.user.n, at.penalty.user.free = at.p, -1 if problem.free is None else problem.free
        must_fit(at.penalty.user.free == -1 or at.penalty.user.free == at.p - 1, "free: the last column")
        if at.penalty.user.kind == BY_COLUMN:
            self.take_columns_of(problem.penalty)
        at.problem.loss = loss_of(problem.loss.id, problem.loss.numbers[0], problem.loss.numbers[1])
        at.problem.facts = facts_of(&at.problem.loss)
        at.problem.has_offsets = source.offset is not None
        take_rule(&at.stop, settings)
        at.limits = limits
        at.ask.pauses = settings.pauses
        at.pcg.products_limit, at.pcg.or_leave = products_limit, or_leave
        if sampled is not None:
            at.sampled.rows, at.sampled.seed = sampled.rows, sampled.seed
            at.sampled.products_limit = sampled.products_limit
            source.let_sample()
            at.sampled.in_use, at.sampled.filled = products_limit == 0, 1
            at.pcg.products_limit, at.curvature.mean = products_limit or sampled.products_limit, mean_curvature
        at.pcg.in_use = by_cg
        at.l1_block.wide = has_kinks(&at.penalty.user) and at.p > at.limits.l1_block_columns and not by_cg \
            and at.penalty.user.constraints.n == 0           # whose multipliers say which columns rest
        at.l1_block.rows_serve = at.l1_block.wide and at.penalty.user.l2 > 0 \
            and getattr(source, "has_unknowns", False)
        begin_rule(&at.smoothing, width, settings.smoothing, decay, settings.tol)
        at.bound.objective, at.bound.best_dual, at.point.predicted = result.objective, result.dual, INFINITY
        at.counts.passes, at.counts.n_iter, self.earlier = result.passes, result.n_iter, list(result.history)
        at.counts.started = seconds() if started is None else started
        at.counts.seconds_look, at.counts.seconds_system, at.counts.seconds_search = spent_seconds
        at.status = WAITING
        self.must_have_columns()
        self.take_memory()
        self.start_at(w)
        if column_scale is not None:
            must_fit(len(column_scale) == at.p, "column_scale")
            self.vectors[SCALE, :at.p] = column_scale
            at.curvature.has_scale = True
        if curvature is not None and at.curvature.has_scale and not by_cg:
            self.take_factor(np.ascontiguousarray(curvature))
            at.curvature.has_factor = potrf(at.p, at.curvature.work + 4 * at.p) == 0
            at.curvature.is_near = is_near and at.curvature.has_factor

    def take_one_class(self, double nu, double least, const double[::1] row_sum):
        """Before `begin`: the problem is a one-class one, all rows positive; ``row_sum`` (n_columns,) is that of s x.

        A gap is relative to ``least`` where the objective is smaller.
        """
        cdef newton_state *at = &self.at
        must_fit(row_sum.shape[0] == at.p and at.penalty.user.free == at.p - 1 and not at.problem.facts.smooth,
                 "take_one_class")
        cdef double[::1] held = np.array(row_sum)
        self.row_sum_ = held.base
        at.one_class.nu, at.one_class.least, at.one_class.row_sum = nu, least, &held[0]
        at.bound.best_dual = min(at.bound.best_dual, -INFINITY if at.bound.best_dual >= 0 else INFINITY)

    cdef know_the_origin(self):
        # w = 0 and rho = 0 have the objective 0, which is the minimum where rows surround the origin
        self.vectors[BEST_W, :self.at.p] = 0.0
        self.vectors[BEST_W, self.at.p - 1] = 1.0
        self.at.bound.objective = 0

    cdef int must_have_columns(self) except -1:
        # for the model of a step with l1, where there is no block of it
        cdef bint by_columns = self.at.pcg.in_use and has_steps_by_columns(&self.at.penalty.user)
        must_fit(not by_columns or getattr(self.source, "has_columns", False), "columns")
        return 0

    cdef int take_columns_of(self, penalty) except -1:
        cdef penalty_t *user = &self.at.penalty.user
        cdef double[:, ::1] own
        own = self.own = penalty.in_columns(self.at.p)
        self.penalty = penalty                   # which knows where a fit within bounds or constraints may begin
        must_fit(own.shape[0] == 4 and own.shape[1] == self.at.p and self.at.p > 0, "the penalty")
        user.l2_each, user.l1_each, user.lower, user.upper = &own[0, 0], &own[1, 0], &own[2, 0], &own[3, 0]
        if penalty.constraints is not None:
            self.constraints = LinearConstraints(*penalty.constraints.in_columns(self.at.p))
            user.constraints = (<LinearConstraints> self.constraints).of
        return 0

    cdef take_memory(self):
        cdef Py_ssize_t p = self.at.p, room = max(1, p)
        cdef double[:, ::1] vectors = np.zeros((n_vectors(&self.at), room))
        cdef Py_ssize_t[::1] places = np.zeros(4 * p + 1, np.intp)
        self.vectors, self.places = vectors.base, places.base
        point_at_vectors(&self.at, &vectors[0, 0], &places[0])

    cdef int make_room(self, Py_ssize_t order) except -1:
        cdef double[::1] room
        self.room_ = None
        self.at.curvature.work_order = 0
        room = self.room_ = np.empty(block_work_size(order, &self.at.penalty.user) + 1)
        self.at.curvature.work, self.at.curvature.work_order = &room[0], order
        return 0

    cdef int take_factor(self, const double[:, ::1] upper) except -1:
        cdef newton_state *at = &self.at
        must_fit(upper.shape[0] == upper.shape[1] == at.p, "a factor")
        self.make_room(at.p)
        memcpy(at.curvature.work + 4 * at.p, &upper[0, 0], at.p * at.p * sizeof(double))
        at.curvature.has_factor = True
        return 0

    def __dealloc__(self):
        free(self.at.history.table)

    # ------------------------------------------------------------ what is known

    def count(self, double reads):
        """Reads of the data that were done for this driver, elsewhere."""
        self.at.counts.passes += reads

    def start_at(self, w):
        """Begin, or go on, from ``w`` (n_columns,); it is the best point until an evaluation says better."""
        must_fit(len(w) == self.at.p, "w")
        if self.penalty is not None:
            w = self.penalty.start(w)
        self.vectors[W, :self.at.p] = self.vectors[BEST_W, :self.at.p] = w

    @property
    def rms(self):
        """(n_columns,) root mean squares of the columns, or None: they are not known."""
        return self.vectors[RMS, :self.at.p].copy() if self.at.bound.knows_rms else None

    def take_rms(self, rms):
        """`rms` of another driver of rows of the same weights, before it begins."""
        must_fit(len(rms) == self.at.p, "take_rms")
        self.vectors[RMS, :self.at.p] = rms
        self.at.bound.knows_rms = True

    @property
    def has_scale(self):
        """Whether the curvature of every column is known from a subset of the rows."""
        return self.at.curvature.has_scale

    @property
    def column_scale(self):
        """(n_columns,) that curvature, or None."""
        return self.vectors[SCALE, :self.at.p].copy() if self.at.curvature.has_scale else None

    @property
    def preconditioned(self):
        """Whether steps are by conjugate gradients that the curvature of a sample preconditions, as things are."""
        return self.at.sampled.in_use

    @property
    def l2_each(self):
        """(n_columns,) of the penalty."""
        return self.vectors[L2_EACH, :self.at.p]

    @property
    def point(self):
        """(n_columns,) the point of the last evaluation."""
        return self.vectors[W, :self.at.p].copy()

    @property
    def status(self):
        return STATUS[self.at.status]

    def store(self, result):
        """What is known of the best point, and how it was found, into a `Result`."""
        cdef newton_state *at = &self.at
        result.w = self.vectors[BEST_W, :at.p].copy()
        result.objective, result.dual, result.width = at.bound.objective, at.bound.best_dual, at.smoothing.width
        result.passes, result.n_iter, result.status = at.counts.passes, at.counts.n_iter, STATUS[at.status]
        result.history = self.earlier + self.history()
        if at.bound.has_best:
            result.total, result.v = total_held(at), self.vectors[BEST_V, :at.bound.best.n].copy()
            result.noise = at.problem.rounding * self.vectors[RMS, :at.bound.best.n]

    def history(self, Py_ssize_t first=0):
        """A list of `history_columns` numbers for every evaluation from ``first`` on."""
        cdef Py_ssize_t size = history_columns(&self.at), i, j
        return [[self.at.history.table[i * size + j] for j in range(size)]
                for i in range(first, self.at.history.n_rows)]

    def pass_over(self, double pause):
        """Seconds that do not count: those of a callback, and of what is computed for it."""
        self.at.counts.started += pause
        self.at.stop.deadline += pause

    def hand_over(self):
        """What the next solver may go on with: keywords of its own."""
        cdef newton_state *at = &self.at
        scale = curvature = None
        if at.curvature.has_block and at.curvature.n_active < 0:
            block = np.asarray(<double[:at.p, :at.p]> at.curvature.block)
            scale = self.curvature_of_columns
            if serves_all_rows(at) and not at.sampled.in_use:
                curvature = block / at.problem.n + np.diag(self.l2_each)
        return dict(decay=at.smoothing.decay, started=at.counts.started,
                    column_scale=scale, curvature=curvature,
                    mean_curvature=at.curvature.mean,
                    spent_seconds=(at.counts.seconds_look, at.counts.seconds_system, at.counts.seconds_search))

    def model(self):
        """(p,) the last point, (p,) the gradient there, (p, p) the curvature, with l2, of all columns that is known
        last; None: it is not known."""
        cdef newton_state *at = &self.at
        if at.curvature.n_active >= 0 or at.sampled.in_use:
            return None
        if at.curvature.has_block:
            upper = np.triu(np.asarray(<double[:at.p, :at.p]> at.curvature.block)) / at.problem.n
            curvature = upper + np.triu(upper, 1).T + np.diag(self.l2_each)
        elif at.curvature.has_factor:
            factor = np.triu(np.asarray(<double[:at.p, :at.p]> (at.curvature.work + 4 * at.p)))
            curvature = factor.T @ factor
        else:
            return None
        return self.point, self.vectors[G, :at.p].copy(), curvature

    @property
    def is_at_best(self):
        """Whether the rows are where the best point is."""
        return memcmp(self.at.bound.best_w, self.at.point.w, self.at.p * sizeof(double)) == 0

    def sides_at_end(self):
        """What dual variables of positive rows and of negative ones are multiplied by in the best bound, where that is
        of the last evaluation; else None."""
        cdef newton_state *at = &self.at
        if not at.bound.has_best or at.bound.best.total != at.bound.last.total \
                or memcmp(at.bound.best.v, at.bound.last.v, at.bound.last.n * sizeof(double)) != 0:
            return None
        return sides(at.point.sums[4], at.point.sums[5], at.penalty.user.free >= 0)

    # ------------------------------------------------------------ the way

    def begin(self):
        """The first question."""
        if is_one_class(&self.at) and not isfinite(self.at.bound.objective):
            self.know_the_origin()
        newton_begin(&self.at)
        self.here.under_way = False
        if self.at.ask.evaluation.measure.norm != NULL:
            self.source.measure_rows(self.vectors[TAKEN, :self.at.p])

    def certify(self, status, total=None, v=None, double reads=0.0):
        """Only settle: the objective at the point, and the bound of dual variables found elsewhere in so many reads.

        ``status`` is what the solver that found them ended with; "converged" becomes "running" where it is not so.
        """
        cdef newton_state *at = &self.at
        at.counts.passes += reads
        at.bound.objective, at.bound.best_dual = INFINITY, bound_of_nothing(&self.at)
        if v is not None:
            must_fit(len(v) == at.bound.best.n, "v")
            self.vectors[BEST_V, :at.bound.best.n] = v
            at.bound.best.total, at.bound.has_best = total, True
        at.status, at.bound.only_settles = <status_id> <int> STATUS.index(status), True
        newton_settle(at)

    def resume(self):
        """Go on after `certify`, from the first evaluation."""
        self.at.bound.only_settles = False
        self.begin()

    def end_with(self, status):
        """At a pause: no step more."""
        self.at.status = <status_id> <int> STATUS.index(status)

    def leave(self, status):
        """End here; an evaluation under way is lost."""
        self.here.under_way = False
        newton_leave(&self.at, <status_id> <int> STATUS.index(status))

    def take_mean(self, double mean):
        """The answer to "measure": the mean of sum_j x_ij^2 / column_scale_j."""
        cdef newton_state *at = &self.at
        rms = np.sqrt(mean * np.maximum(self.vectors[SCALE, :at.p], 1e-300))
        rms[at.problem.n_features:] = 1.0
        self.vectors[RMS, :at.p] = rms
        at.bound.knows_rms = True
        at.bound.drift = rounding_of(at, at.point.w)
        go_on(at)

    # ------------------------------------------------------------ rows near the hinge

    @property
    def may_use_working_set(self):
        """Whether "working_set" may be asked."""
        return self.at.working_set.allowed

    @may_use_working_set.setter
    def may_use_working_set(self, bint may):
        self.at.working_set.allowed = may

    @property
    def width(self):
        """Of the smoothing."""
        return self.at.smoothing.width

    @property
    def uses_working_set(self):
        """Whether steps are those of the rows near the hinge."""
        return self.at.working_set.in_use

    @property
    def curvature_of_columns(self):
        """(n_columns,) diagonal of the block and l2 at the last evaluation, which must have a block of all columns."""
        cdef newton_state *at = &self.at
        must_fit(at.curvature.has_block and at.curvature.n_active < 0, "curvature_of_columns")
        return np.diag(np.asarray(<double[:at.p, :at.p]> at.curvature.block)) / at.problem.n + self.l2_each

    def begin_working_set(self):
        """From the next evaluation on; before `begin`, or where "working_set" is asked."""
        cdef newton_state *at = &self.at
        at.working_set.in_use, at.working_set.allowed = True, False
        at.working_set.width_then, at.smoothing.width = at.smoothing.width, OF_TANGENTS
        at.working_set.open_then = INFINITY

    def end_working_set(self, double open_gap):
        """Where "working_set" is asked: all rows again; the objective is believed to be too high by so much at most."""
        self.at.working_set.in_use, self.at.working_set.open_then = False, open_gap

    def propose(self, w):
        """The next step is the one to ``w`` (n_columns,)."""
        must_fit(len(w) == self.at.p, "propose")
        self.vectors[D, :self.at.p] = w - self.vectors[W, :self.at.p]
        self.at.working_set.proposed = True

    def last_dual_sums(self):
        """Of the last evaluation: (2, n_columns) sums of s a y x over positive and negative rows; 2 of s a."""
        cdef newton_state *at = &self.at
        vectors = np.asarray(<double[:2, :at.p]> at.bound.dual_sums).copy() if at.p > 0 else np.zeros((2, 0))
        return vectors, np.array([at.point.sums[4], at.point.sums[5]]) * at.problem.n

    def linearise_others(self, double[:, ::1] vectors, totals, double n, double known=NAN, double wanted=INFINITY):
        """Other rows, to be seen as straight lines from here on: their dual variables do not change.

        ``vectors`` (2, n_columns) are their sums of s a y x, ``totals`` those of s a, of positive and of negative rows;
        ``n`` is the weight of all, ``known`` a bound on their objective, below which it ends, "left"; ``wanted`` a
        bound that is enough.
        """
        cdef newton_state *at = &self.at
        cdef double[:, ::1] room = np.zeros((5, max(1, at.p)))
        must_fit(vectors.shape[0] == 2 and vectors.shape[1] == at.p and at.p > 0, "linearise_others")
        np.asarray(room)[:2], np.asarray(room)[4] = vectors, np.sum(vectors, axis=0) / n
        at.problem.n, at.linearised.sums, at.linearised.sums_of_all = n, &room[0, 0], &room[2, 0]
        at.linearised.linear = &room[4, 0]
        at.linearised.constant[0], at.linearised.constant[1] = totals[0] / n, totals[1] / n
        at.linearised.known, at.linearised.wanted = known, wanted
        self.of_others = room.base

    def dual_point(self):
        """The best bound so far, and what `offer` takes: the total and the vector that it is made of, or None."""
        cdef newton_state *at = &self.at
        v = self.vectors[BEST_V, :at.bound.best.n].copy() if at.bound.has_best else None
        return at.bound.best_dual, at.bound.best.total, v

    def offer(self, bound, total, v, double reads):
        """A dual point found elsewhere in so many reads, kept if it is better; None for all three: there is none."""
        cdef newton_state *at = &self.at
        at.counts.passes += reads
        if v is not None and bound > at.bound.best_dual:
            must_fit(len(v) == at.bound.best.n, "offer")
            self.vectors[BEST_V, :at.bound.best.n] = v
            at.bound.best_dual, at.bound.best.total, at.bound.has_best = bound, total, True

    def go_on(self):
        """After a pause, or the answer to "working_set"."""
        go_on(&self.at)

    # ------------------------------------------------------------ a checkpoint, at a pause

    @property
    def reads(self):
        return self.at.counts.passes

    def kept(self):
        """What it is at a pause, a dictionary; its arrays are those that it goes on with."""
        cdef newton_state *at = &self.at
        cdef span spans[N_SPANS]
        cdef Py_ssize_t order = at.curvature.order
        block = None
        newton_spans(at, spans)
        if at.curvature.has_block and order > 0:
            block = np.asarray(<double[:order, :order]> at.curvature.block)
        factor = None
        if at.curvature.has_factor and not at.curvature.has_block:
            factor = np.asarray(<double[:at.p, :at.p]> (at.curvature.work + 4 * at.p))
        return dict(numbers=serialised(spans, N_SPANS), seconds=seconds() - at.counts.started, vectors=self.vectors,
                    places=self.places,
                    block=block, factor=factor, earlier=self.earlier,
                    history=self.history())

    def take_back(self, dict kept):
        """At the pause where another, of the same problem on the same rows, was `kept`."""
        cdef newton_state *at = &self.at
        cdef span spans[N_SPANS]
        cdef double[:, ::1] block
        at.pcg.in_use = len(kept["vectors"]) > X       # where it began
        self.must_have_columns()
        self.take_memory()
        newton_spans(at, spans)
        restore(spans, N_SPANS, kept["numbers"])
        if at.sampled.rows > 0:
            self.source.let_sample()
            at.sampled.forgotten = at.sampled.measured
        self.vectors[...], self.places[...] = kept["vectors"], kept["places"]
        at.counts.started, self.earlier = seconds() - kept["seconds"], list(kept["earlier"])
        at.curvature.has_factor, at.curvature.block = False, NULL
        if kept["block"] is not None:
            block = self.last_block = kept["block"]
            must_fit(block.shape[0] == block.shape[1] == at.curvature.order, "take_back")
            at.curvature.block = &block[0, 0]
        if kept["factor"] is not None:
            self.take_factor(kept["factor"])
        free(at.history.table)
        at.history.table = NULL
        at.history.n_rows = at.history.room = 0
        at.history.table = copied(np.array(kept["history"], float).reshape(-1))
        at.history.n_rows = at.history.room = len(kept["history"])
        at.ask.kind, self.here.under_way = PAUSE, False
