"""Newton steps of the penalised multinomial objective, one after another without the interpreter.

Each ends at a point V, and what that is says whether the next one follows: a point without news is noted and left
behind. One that is near enough, no lower for long, or of rounding is the caller's, and so is the last of as many steps,
or of as many products, as the caller wants to hear of. `solvers/multinomial/newton.py` is the caller.
"""

from libc.math cimport INFINITY, isfinite, pow
from libc.string cimport memcpy

from cmargin._core.multinomial._inverse cimport Inverse, Kronecker, kronecker_update_at
from cmargin._core.multinomial._step cimport SOLVED, MultinomialStep, add_penalty
from cmargin._core.util._arrays import copied, zeros
from cmargin._core.util._clock cimport seconds
from cmargin._core.util._shapes cimport must_fit

cdef enum event:
    e_slice_over, e_onward, e_astray, e_near, e_stands

SLICE_OVER, ONWARD, ASTRAY, NEAR, STANDS = e_slice_over, e_onward, e_astray, e_near, e_stands

cdef enum:
    MOST_NOTED = 64
    N_NOTED = 5

cdef double SURE = 0.5          # of tol: the float32 gap has to be below before it is made sure of
cdef double ODD = 2.0           # times the lowest objective, and LITTLE, from which on a point is one of rounding
cdef double LITTLE = 1e-3
cdef double SHORT = 1e-3        # of a Newton step; shorter ones in float32 are its slopes' rounding
cdef double WELL = 1e-10        # of the squared residual, at best
cdef double MOST_TIMES = 4.0    # as many products as at first
cdef double EPS = 2.220446049250313e-16
cdef Py_ssize_t PATIENCE = 10   # steps without a lower objective after which the certificate is evaluated


cdef class MultinomialNewton:
    """The point that steps have reached, and what is known of those before."""

    cdef readonly MultinomialStep step
    cdef Kronecker kronecker            # None where another inverse is in use
    cdef public double tol              # relative duality gap to be reached
    cdef double value, gap, lowest
    cdef Py_ssize_t idle, may_spend, n_before, most
    cdef Py_ssize_t stride              # every so many rows tell a Kronecker inverse the curvature of the classes
    cdef Py_ssize_t late                # steps, from which on systems are solved better
    cdef readonly object V, low_V       # (n_columns, n_classes) the point, and the lowest one so far
    cdef readonly double low            # the objective there
    cdef readonly Py_ssize_t n_noted, n_taken, products     # points passed, steps, and products, since `begin`
    # (MOST_NOTED, 5) of every point passed since `begin`: objective, absolute gap, reads and products since then, time
    cdef readonly object noted
    cdef object objective_gradient
    cdef double *at_V
    cdef double *at_low
    cdef double *ahead                  # gradient of the objective at the point
    cdef double *notes

    def __init__(self, MultinomialStep step not None, double tol, Py_ssize_t stride, Py_ssize_t late):
        cdef double[:, ::1] V, low_V, ahead, notes
        shape = step.direction.shape
        V, low_V, ahead = self.V, self.low_V, self.objective_gradient = [zeros(shape) for _ in range(3)]
        notes = self.noted = zeros((MOST_NOTED, N_NOTED))
        self.at_V, self.at_low, self.ahead, self.notes = &V[0, 0], &low_V[0, 0], &ahead[0, 0], &notes[0, 0]
        self.step, self.tol, self.stride, self.late = step, tol, max(1, stride), late
        self.low, self.lowest, self.idle, self.most = INFINITY, INFINITY, 0, step.at.most
        step.at.t = 1                   # as if a whole step had led to the start

    @property
    def standing(self):
        """What later points are measured by, for a checkpoint."""
        return self.low, copied(self.low_V), self.lowest, self.idle

    @standing.setter
    def standing(self, known):
        self.low, low_V, self.lowest, self.idle = known
        self.low_V[:] = low_V

    def judged(self, const double[:, ::1] V, double value, double gap):
        """What a point is whose objective and gap are known."""
        self.place(V)
        self.value, self.gap = value, gap
        return self.judge()

    def may_be(self, double value):
        """Whether it is finite, and no objective of rounding's making beside the lowest."""
        return isfinite(value) and self.plausible(value)

    def begin(self, Inverse inverse, mean, const double[:, ::1] V, G, double value, scores, probs, change,
              Py_ssize_t may_spend, Py_ssize_t n_before=0):
        """Steps from V, where ``value`` is the objective and G its gradient; the rest is `MultinomialStep.begin`'s.

        ``may_spend``: products from which on the caller wants to renew ``inverse``. Until then an inverse that is a
        Kronecker product gets the curvature of the classes anew at every point. ``n_before``: steps up to V.
        """
        self.place(V)
        self.kronecker = inverse if isinstance(inverse, Kronecker) else None
        self.n_noted = self.n_taken = self.products = 0
        self.value, self.may_spend, self.n_before = value, may_spend, n_before
        self.solve_better()
        self.step.begin(inverse, mean, self.V, G, value, self.enough(), scores, probs, change)

    def go(self, double lasting, Py_ssize_t most):
        """Go on for ``lasting`` seconds, a group of blocks at least, or until ``most`` steps are taken since `begin`.

        Returns SLICE_OVER, or what the point is at which a step has ended.
        """
        cdef double until
        cdef event found = e_slice_over
        if self.step.taken():
            raise ValueError("MultinomialNewton.go: no step is under way; begin one")
        most = min(most, MOST_NOTED)
        with nogil:
            until = seconds() + lasting
            while True:
                self.step.next_blocks()
                if self.step.taken():
                    found = self.arrive()
                    if found != e_onward or self.n_taken >= most or self.products >= self.may_spend:
                        break
                    self.pass_on()
                    found = e_slice_over
                if seconds() > until:
                    break
        return found

    def told(self, sums, gradient):
        """Go on by what rows elsewhere have answered, as `MultinomialStep.told`; returns what `go` does.

        A point at which a step has ended is always the caller's.
        """
        return self.arrive() if self.step.told(sums, gradient) else e_slice_over

    # ---- without the interpreter

    cdef int place(self, const double[:, ::1] V) except -1:
        must_fit(V.shape[0] == self.step.at.p and V.shape[1] == self.step.at.k, "MultinomialNewton")
        memcpy(self.at_V, &V[0, 0], self.size() * sizeof(double))
        return 0

    cdef Py_ssize_t size(self) noexcept nogil:
        return self.step.at.p * self.step.at.k

    cdef double enough(self) noexcept nogil:
        return SURE * self.tol * self.value

    cdef event arrive(self) noexcept nogil:
        # V += t D, and what that is
        cdef Py_ssize_t j
        cdef double penalty
        for j in range(self.size()):
            self.at_V[j] += self.step.at.t * self.step.at.D[j]
        self.n_taken += 1
        self.products += self.step.at.count
        penalty, self.gap = add_penalty(self.at_V, self.step.at.G, self.step.at.l2, self.step.at.p, self.step.at.k,
                                        self.step.at.m, self.step.at.mean, self.ahead)
        self.value = self.step.at.risk + penalty
        return self.judge()

    cdef void solve_better(self) noexcept nogil:
        # many steps with systems solved roughly are those of a poor preconditioner: from `late` steps on, half as many
        # more make the next ones ten times better, with twice as many products
        cdef double late = max(0, self.n_before + self.n_taken - self.late) / (self.late / 2.0)
        self.step.at.solved = max(SOLVED * pow(0.1, late), WELL)
        self.step.at.most = <Py_ssize_t> (self.most * min(pow(2.0, late), MOST_TIMES))

    cdef bint plausible(self, double value) noexcept nogil:
        return value <= ODD * self.low + LITTLE

    cdef event judge(self) noexcept nogil:
        if not self.plausible(self.value):
            return e_astray
        if self.value < self.low:
            self.low = self.value
            memcpy(self.at_low, self.at_V, self.size() * sizeof(double))
        if self.gap <= SURE * self.tol * self.value:
            return e_near
        # the gap, |dP/dW|^2 over l2, is one of rounding where l2 is tiny: then P stands
        if self.value < self.lowest * (1 - EPS) and (self.step.at.double_products or self.step.at.t > SHORT):
            self.lowest, self.idle = self.value, 0
        else:
            self.idle += 1
        if self.idle < PATIENCE:
            return e_onward
        self.idle = 0
        return e_stands

    cdef void pass_on(self) noexcept nogil:
        # note the point and begin the next step
        cdef double *note = self.notes + self.n_noted * N_NOTED
        note[0], note[1], note[4] = self.value, self.gap, seconds()
        note[2], note[3] = self.products + self.n_taken, self.products
        self.n_noted += 1
        memcpy(self.step.at.G, self.ahead, self.size() * sizeof(double))
        self.step.at.value, self.step.at.enough = self.value, self.enough()
        self.solve_better()
        if self.kronecker is not None:
            if self.step.at.double_products:
                kronecker_update_at(&self.kronecker.at, <double *> self.step.at.probs, self.step.at.rows.weight,
                                    self.step.at.rows.X.n_rows, self.stride)
            else:
                kronecker_update_at(&self.kronecker.at, <float *> self.step.at.probs, self.step.at.rows.weight,
                                    self.step.at.rows.X.n_rows, self.stride)
        self.step.begin_system()
