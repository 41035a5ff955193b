"""Margin pursuit's Newton driver with its memory: what Python makes, begins, looks at and leaves."""

import numpy as np

from libc.math cimport INFINITY, sqrt
from libc.stdlib cimport free

from cmargin._core.newton._asking cimport PAUSE, Driver
from cmargin._core.newton.direction._lagged cimport kept_curvature, kept_free, kept_row_size
from cmargin._core.newton._pursuit_newton cimport (
    arrive, n_columns_recorded, pursuit_answers_to, pursuit_begin, pursuit_leave, pursuit_state, rescale, status_id,
)
from cmargin._core.util._margin_summary cimport N_TRACED
from cmargin._core.util._serialise cimport copied, numbers_between, restore, serialised, span
from cmargin._core.util._clock cimport seconds
from cmargin._core.util._shapes cimport must_fit

cdef enum:                       # vectors of a driver
    W, KEPT_W, D, G, CHANGE, L2_EACH, SCRATCH, ZERO, CENTRE, INVERSE, ASKED, LAST,
    X, R, PRODUCT_OF, SEARCH, OWN, N_VECTORS               # from X on for conjugate gradients

# names of `status_id`. "stalled": no decrease that the value could show
STATUS = ("waiting", "running", "tol", "stalled", "diverged", "max_passes", "max_time", "callback", "interrupted")


cdef enum:
    N_SPANS = 3


cdef void spans_of(pursuit_state *at, span *out) noexcept nogil:
    # what a driver is between two steps, beside vectors and what its maker tells it
    out[0] = numbers_between(at, &at.p)
    out[1] = numbers_between(&at.kept.ready, &at.kept.ready + 1)
    out[2] = numbers_between(&at.kept.whole, &at.kept.whole + 1)


cdef class PursuitSteps(Driver):
    """One binary problem on its way. `cmargin.solvers.newton.pursuit_newton` puts it to use.

    Parameters
    ----------
    source : what holds the rows, as `Driver` has it; told by ``source.pursue`` which level and scale they are
    summed at settings : Settings of `cmargin.solvers.first_order.margin_pursuit`
    w : (n_columns,) array
        To begin with.
    by_products : bool
        Directions by conjugate gradients; no curvature block.
    tol : float
        The gradient norm, relative to w = 0, at which to end.
    fall : float
        By what the gradient is expected to fall in the first step; infinite: a step that needs no curvature.
    reads, spent_seconds : float
        Reads and seconds in steps of what was done before.
    records : bool
        Whether passes go into the history.
    levels : (n_levels,) array or None
        Of the quantiles of margins traced after every pass; None: no trace.
    started : float
        When the clock of the history began.
    units : Columns or None
        What the steps are taken in; None: columns as they are.
    """

    cdef pursuit_state at
    cdef object vectors, levels, traced

    def __init__(self, source, settings, w, *, bint by_products, double tol, bint records, bint pauses, levels,
                 double started, double fall=1.0, double reads=0.0, double spent_seconds=0.0, units=None):
        cdef pursuit_state *at = &self.at
        self.asks_of(source, &at.ask, at)
        pursuit_answers_to(at)
        at.p, at.n, at.share = source.n_columns, source.total_weight, source.share
        at.level, at.scale = settings.level, settings.scale
        at.tol, at.max_passes, at.by_products, at.fall = tol, settings.max_passes, by_products, fall
        at.one_shot, at.ask.pauses, at.records, at.started = settings.one_shot, pauses, records, started
        at.reads, at.seconds_steps = reads, spent_seconds
        at.deadline = INFINITY if settings.deadline is None else settings.deadline
        at.objective = at.gradient_norm = INFINITY
        at.kept.n = at.p
        self.point_at_vectors(levels)
        must_fit(len(w) == at.p, "w")
        self.vectors[L2_EACH] = settings.l2
        if settings.fit_intercept:
            self.vectors[L2_EACH, at.p - 1] = 0  # the column of ones
        if units is not None:
            self.use_units(units, settings.fit_intercept)
        self.vectors[W] = self.vectors[KEPT_W] = self.in_units(w)

    cdef int use_units(self, units, bint intercept) except -1:
        cdef pursuit_state *at = &self.at
        cdef double[:, ::1] vectors = self.vectors
        cdef Py_ssize_t m = at.p - intercept
        must_fit(len(units.centre) == m and (intercept or not units.centre.any()), "units")
        self.vectors[CENTRE, :m], self.vectors[INVERSE, m:] = units.centre, 1
        self.vectors[INVERSE, :m] = 1 / np.hypot(units.unit, sqrt(self.vectors[L2_EACH, 0]))     # curvature has both
        self.vectors[LAST, at.p - 1] = 1
        self.vectors[L2_EACH] *= self.vectors[INVERSE] ** 2
        at.asked, at.last = &vectors[ASKED, 0], &vectors[LAST, 0]
        at.units.n, at.units.centre, at.units.inverse = at.p, &vectors[CENTRE, 0], &vectors[INVERSE, 0]
        return 0

    cdef object in_units(self, w):
        """Weights of columns in units, from weights of the rows' columns."""
        if self.at.units.inverse == NULL:
            return w
        inner = w / self.vectors[INVERSE]
        inner[self.at.p - 1] += self.vectors[CENTRE] @ w
        return inner

    cdef object in_rows(self, w):
        """The way back."""
        if self.at.units.inverse == NULL:
            return w.copy()
        outer = w * self.vectors[INVERSE]
        outer[self.at.p - 1] -= self.vectors[CENTRE] @ outer
        return outer

    cdef point_at_vectors(self, levels):
        cdef pursuit_state *at = &self.at
        cdef Py_ssize_t p = at.p
        cdef double[:, ::1] vectors
        cdef double[::1] quantiles, traced
        cdef double *v
        must_fit(p > 0, "PursuitSteps")
        vectors = self.vectors = np.zeros((N_VECTORS if at.by_products else X, p))
        v = &vectors[0, 0]
        at.w, at.kept_w, at.d, at.g = v + W * p, v + KEPT_W * p, v + D * p, v + G * p
        at.change, at.l2_each, at.scratch, at.zero = v + CHANGE * p, v + L2_EACH * p, v + SCRATCH * p, v + ZERO * p
        if at.by_products:
            at.cg.n, at.cg.x, at.cg.r, at.cg.product = p, v + X * p, v + R * p, v + PRODUCT_OF * p
            at.cg.search, at.diagonal = v + SEARCH * p, v + OWN * p
            at.cg.diagonal = at.diagonal
        if levels is not None:
            quantiles = self.levels = np.array(levels, float)
            traced = self.traced = np.zeros(N_TRACED + len(levels))
            at.ask.n_levels, at.ask.traced = quantiles.shape[0], &traced[0]
            if quantiles.shape[0] > 0:
                at.ask.levels = &quantiles[0]

    def __dealloc__(self):
        free(self.at.history)
        kept_free(&self.at.kept)

    # ------------------------------------------------------------ what is known

    @property
    def status(self):
        return STATUS[self.at.status]

    @property
    def passes(self):
        return self.at.passes

    @property
    def scale(self):
        return self.at.scale

    def store(self, result):
        """What is known of the point kept, and how it was found, into a `Result`."""
        cdef pursuit_state *at = &self.at
        result.w = self.in_rows(self.vectors[KEPT_W])
        result.objective, result.gradient_norm, result.scale = at.objective, at.gradient_norm, at.scale
        result.passes, result.reads, result.status = at.passes, at.reads, STATUS[at.status]
        result.seconds = at.seconds_steps, at.seconds_trace
        result.history += self.history_from(len(result.history))

    def history_from(self, Py_ssize_t first):
        """A list of numbers for every pass from ``first`` on, in the order of `n_columns_recorded`."""
        cdef Py_ssize_t size = n_columns_recorded(&self.at), n = self.at.history_rows, i, j
        return [[self.at.history[i * size + j] for j in range(size)] for i in range(first, n)]

    # ------------------------------------------------------------ the way

    def begin(self):
        """The first question."""
        self.here.under_way = False
        pursuit_begin(&self.at)

    def go_on(self):
        """After a pause."""
        arrive(&self.at)

    def rescale(self, double scale):
        """At the pause after the first pass, instead of `go_on`: with another scale from here on."""
        rescale(&self.at, scale)

    def pass_over(self, double pause):
        """Seconds that do not count: those of a callback, and of what is made for it to look at."""
        self.at.started += pause
        self.at.deadline += pause

    # ------------------------------------------------------------ a checkpoint, at a pause

    @property
    def reads(self):
        return self.at.reads

    def kept(self):
        """What it is at a pause, a dictionary; its arrays are those that it goes on with, or copies."""
        cdef pursuit_state *at = &self.at
        cdef kept_curvature *kept = &at.kept
        cdef span spans[N_SPANS]
        cdef Py_ssize_t n = kept.n
        curvature = None
        spans_of(at, spans)
        if kept.matrix != NULL:
            curvature = (np.asarray(<double[:n, :n]> kept.matrix), np.asarray(<double[:n]> kept.own))
        pairs = np.empty((0, kept_row_size(n)))
        if kept.n_pairs > 0:
            pairs = np.asarray(<double[:kept.n_pairs, :kept_row_size(n)]> kept.pairs)
        return dict(numbers=serialised(spans, N_SPANS), seconds=seconds() - at.started, vectors=self.vectors,
                    curvature=curvature, pairs=pairs, history=self.history_from(0))

    def take_back(self, dict kept):
        """At the pause where another, of the same problem on the same rows, was `kept`."""
        cdef pursuit_state *at = &self.at
        cdef span spans[N_SPANS]
        spans_of(at, spans)
        restore(spans, N_SPANS, kept["numbers"])
        self.vectors[...] = kept["vectors"]
        at.started = seconds() - kept["seconds"]
        free(at.history)
        at.history = NULL
        at.history_rows = at.history_room = 0
        at.history = copied(np.array(kept["history"], float).reshape(-1))
        at.history_rows = at.history_room = len(kept["history"])
        self.take_back_curvature(kept["curvature"], kept["pairs"])
        at.ask.kind, self.here.under_way = PAUSE, False

    cdef int take_back_curvature(self, curvature, pairs) except -1:
        cdef kept_curvature *kept = &self.at.kept
        kept_free(kept)
        kept.matrix = kept.own = kept.pairs = NULL
        kept.pairs, kept.n_pairs, kept.room = copied(pairs.reshape(-1)), len(pairs), len(pairs)
        if curvature is not None:
            kept.matrix, kept.own = copied(curvature[0].reshape(-1)), copied(curvature[1])
        return 0

    def leave(self, status):
        """End here; a look under way is lost."""
        self.here.under_way = False
        pursuit_leave(&self.at, <status_id> <int> STATUS.index(status))
