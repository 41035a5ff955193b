"""Steps to the optimum of the rows near the hinge beside straight lines for all others, and the way back."""

from libc.string cimport memcpy

from cmargin._core.linalg._blas cimport dot
from cmargin._core.newton._asking cimport NEAREST
from cmargin._core.newton._driver cimport (
    FRESH_LOOK, FULL_STEP, RUNNING, ask_first_look, ask_look, gap_of, newton_state, next_step,
)

cdef double LEAST_NEAR = 0.05
cdef double AFTER_NEAR = 30              # times what is left of the objective: the width after such steps


cdef void step_proposed(newton_state *at) noexcept nogil:
    at.proposed = False
    at.first = dot(at.p, at.g, at.d)
    at.predicted, at.step, at.turns, at.leaves = -at.first, 1, False, False
    at.to.width, at.to.decay = at.rule.width, at.rule.decay
    if at.predicted > 0:
        ask_look(at, FULL_STEP, at.d, 1.0, at.rule.width, False)
    else:
        leave_near(at)


cdef void told_near(newton_state *at) noexcept nogil:
    if at.status == RUNNING:
        at.ask.kind = NEAREST
    else:
        next_step(at)


cdef void leave_near(newton_state *at) noexcept nogil:
    cdef double drift = at.drift
    at.near = at.proposed = False                # a bound that came with a step may have ended the fit before it
    at.rule.width = min(at.width_then, max(at.rule.width, AFTER_NEAR * min(gap_of(at) * at.objective, at.open_then)))
    memcpy(at.w, at.best_w, at.p * sizeof(double))
    at.heavy_in_block = False                    # they were told apart before there was one
    ask_first_look(at, FRESH_LOOK, True)
    at.drift = drift
