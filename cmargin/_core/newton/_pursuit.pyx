"""Margin pursuit by the Newton driver: a loss without a dual, so that the gradient's norm ends the fit.

Q is convex with a continuous second derivative, rho'' = 1 - u^2/2 within sqrt(2) and 0 beyond: its steps need no
smoothing. They are by the Hessian of an earlier point (``direction/_lagged.pyx``), or by products with the rows.
"""

import numpy as np

from libc.math cimport INFINITY, sqrt

from cmargin._core.losses._losses cimport point_loss
from cmargin._core.newton._driver cimport ask_evaluation
from cmargin._core.newton._memory cimport Newton
from cmargin._core.newton._state cimport FRESH_EVALUATION, HISTORY_COLUMNS, RUNNING, newton_state
from cmargin._core.newton._vectors cimport BEST_W
from cmargin._core.newton.direction._bfgs cimport bfgs_hessian, bfgs_free, bfgs_row_size
from cmargin._core.rows._evaluate cimport COMMIT_AND_MOVE
from cmargin._core.util._margin_summary cimport N_TRACED
from cmargin._core.util._serialise cimport copied
from cmargin._core.util._shapes cimport must_fit

STATUS = {"converged": "tol", "rounding": "stalled"}     # where margin pursuit has names of its own

cdef enum:                       # vectors beside those of `Newton`
    CHANGE, CENTRE, INVERSE, LAST, ASKED, N_OWN


cdef class PursuitSteps(Newton):
    """One binary problem on its way. `cmargin.solvers.newton.pursuit_newton` puts it to use.

    As `Newton`, whose ``source`` is told by ``source.pursue`` at which level and scale rows are summed.
    ``settings.tol`` is of the gradient's norm, relative to w = 0; ``max_passes`` are steps.
    ``levels``: (n_levels,) of the quantiles of margins traced after every pass; None: no trace.
    ``fall``: by what the gradient is expected to fall in the first step; infinite: a step that needs no curvature.
    ``units``: `Columns` that the steps are taken in; None: columns as they are.
    """

    cdef object own, levels, traced

    def __init__(self, source, problem, settings, result, w, dict limits, *, bint by_cg, levels,
                 double fall=1.0, units=None, started=None, spent_seconds=(0.0, 0.0, 0.0)):
        cdef newton_state *at = &self.at
        cdef double[:, ::1] own
        super().__init__(source, problem, settings, result, w, 1.0, 1.0, limits, by_cg=by_cg,
                         started=started, spent_seconds=spent_seconds)
        must_fit(at.p > 0, "PursuitSteps")
        at.stop.by_gradient = at.cholesky.every_row = True
        at.bound.gradient_norm = INFINITY
        own = self.own = np.zeros((CENTRE if units is None else N_OWN, at.p))
        at.lagged.in_use, at.lagged.fall, at.lagged.kept.n = not by_cg, fall, at.p
        at.lagged.change = &own[CHANGE, 0]
        self.trace_at(levels)
        if units is not None:
            self.use_units(units)
            self.start_at(self.in_units(w))

    cdef int trace_at(self, levels) except -1:
        cdef double[::1] quantiles, traced
        if levels is None:
            return 0
        quantiles = self.levels = np.array(levels, float)
        traced = self.traced = np.zeros(N_TRACED + len(levels))
        self.at.ask.n_levels, self.at.ask.traced = quantiles.shape[0], &traced[0]
        if quantiles.shape[0] > 0:
            self.at.ask.levels = &quantiles[0]
        return 0

    cdef int use_units(self, units) except -1:
        cdef newton_state *at = &self.at
        cdef double[:, ::1] own = self.own
        cdef bint intercept = at.penalty.user.free >= 0
        cdef Py_ssize_t m = at.p - intercept
        must_fit(len(units.centre) == m and (intercept or not units.centre.any()), "units")
        self.own[CENTRE, :m], self.own[INVERSE, m:] = units.centre, 1
        self.own[INVERSE, :m] = 1 / np.hypot(units.unit, sqrt(at.penalty.user.l2))       # curvature has both
        self.own[LAST, at.p - 1] = 1
        self.l2_each[...] *= self.own[INVERSE] ** 2
        at.units.n, at.units.centre, at.units.inverse = at.p, &own[CENTRE, 0], &own[INVERSE, 0]
        at.units.last, at.units.asked = &own[LAST, 0], &own[ASKED, 0]
        return 0

    cdef object in_units(self, w):
        """Weights of columns in units, from weights of the rows' columns."""
        inner = w / self.own[INVERSE]
        inner[self.at.p - 1] += self.own[CENTRE] @ w
        return inner

    cdef object in_rows(self, w):
        """The way back."""
        if self.at.units.inverse == NULL:
            return w
        outer = w * self.own[INVERSE]
        outer[self.at.p - 1] -= self.own[CENTRE] @ outer
        return outer

    def __dealloc__(self):
        bfgs_free(&self.at.lagged.kept)

    # ------------------------------------------------------------ what is known

    @property
    def status(self):
        status = super().status
        return STATUS.get(status, status)

    @property
    def passes(self):
        return self.at.counts.n_iter

    @property
    def scale(self):
        return self.at.problem.loss.b

    def store(self, result):
        """What is known of the point kept, and how it was found, into a `Result`."""
        cdef newton_state *at = &self.at
        result.w = self.in_rows(self.vectors[BEST_W, :at.p].copy())
        result.objective, result.gradient_norm, result.scale = at.bound.objective, at.bound.gradient_norm, self.scale
        result.passes, result.reads, result.status = at.counts.n_iter, at.counts.passes, self.status
        result.seconds = at.counts.seconds_look + at.counts.seconds_system + at.counts.seconds_search, \
            at.counts.seconds_trace
        for row in self.history(len(result.history)):        # as `cmargin.solvers.history.PURSUIT`, without the class
            reads, seconds, evaluation, system, search, objective, norm, step, scale = row[:9]
            trace = row[HISTORY_COLUMNS:] or [0.0]           # its seconds, and what was told
            result.history.append([len(result.history) + 1, reads, seconds, evaluation + system + search, trace[0],
                                   objective, norm, step, scale, *trace[1:]])

    # ------------------------------------------------------------ the way

    def rescale(self, double scale):
        """At the pause after the first pass, instead of `go_on`: with another scale from here on."""
        cdef newton_state *at = &self.at
        cdef double before = point_loss(&at.problem.loss, 0).slope
        at.problem.loss.b, at.lagged.fall, at.status = scale, 1, RUNNING
        at.bound.norm_at_zero *= point_loss(&at.problem.loss, 0).slope / before
        ask_evaluation(at, FRESH_EVALUATION, COMMIT_AND_MOVE, at.point.zero, 1.0, 1.0, not at.pcg.in_use)

    # ------------------------------------------------------------ a checkpoint, at a pause

    def kept(self):
        cdef bfgs_hessian *kept = &self.at.lagged.kept
        cdef Py_ssize_t n = kept.n
        curvature, pairs = None, np.empty((0, bfgs_row_size(n)))
        if kept.matrix != NULL:
            curvature = np.asarray(<double[:n, :n]> kept.matrix), np.asarray(<double[:n]> kept.own)
        if kept.n_pairs > 0:
            pairs = np.asarray(<double[:kept.n_pairs, :bfgs_row_size(n)]> kept.pairs)
        return dict(super().kept(), scale=self.scale, curvature=curvature, pairs=pairs)

    def take_back(self, dict kept):
        cdef bfgs_hessian *own = &self.at.lagged.kept
        super().take_back(kept)
        self.at.problem.loss.b = kept["scale"]
        bfgs_free(own)
        own.matrix = own.own = own.pairs = NULL
        own.pairs, own.room = copied(kept["pairs"].reshape(-1)), own.n_pairs
        if kept["curvature"] is not None:
            own.matrix, own.own = copied(kept["curvature"][0].reshape(-1)), copied(kept["curvature"][1])
