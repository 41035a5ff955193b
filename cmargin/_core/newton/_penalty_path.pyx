"""Paths of penalties: steps towards the minimum with a larger penalty first, then with less and less of it.

**l2, where Newton steps on the squared hinge become short.** Its curvature is that of the rows within the
margin alone. With a small penalty, and hardly more such rows than columns, it is nearly singular: directions are so
long that other rows enter long before their end, and a thousandth of a step after the other changes a few of them. With
a larger penalty most of them are where they will be, and from one penalty to a third of it Newton's steps are full.

**l1, from w = 0 on.** With the user's weight the first steps take in every column that is steep at w = 0, more than
there are rows, and each of those that come to nothing must find back to zero. With a large weight few columns are in
use; with less of it others follow, and the curvature block and its model stay small. Where one step is enough for an
l1 the next is farther: with much l2 beside it three or four weights lead from the first to the user's.

Objective, certificate and history stay those of the user's penalty; only the steps are of the path's.
"""

from cmargin._core.losses._point cimport pulls_either_way
from cmargin._core.newton._bound cimport dual_bound, relative_gap
from cmargin._core.newton._point cimport gap_of, penalty_of
from cmargin._core.newton._state cimport RUNNING
from cmargin._core.penalties._penalties cimport has_kinks, has_paths, steepness
from cmargin._core.penalties._penalty cimport lay_out, penalty_t

# chosen on 40 problems; those and their passes are in doc/lab-notebook
cdef double BEGIN = 0.1                  # the first l2 over the mean curvature of a column
cdef double DECAY = 3                    # an l2 over the next
# chosen on 24 problems, there too
cdef double L1_BEGIN = 0.5               # the first l1 over the largest slope at w = 0; 1 would hold every column there
cdef double L1_DECAY = 1.5               # an l1 over the next, unless the way is easy
cdef double L1_ENOUGH = 0.5              # gap at one l1 from which on the next is taken


cdef void move_to(newton_state *at, double l2, double l1) noexcept nogil:
    # value and gradient at w follow
    cdef penalty_t *step = &at.penalty.step
    cdef double change = l2 - step.l2
    cdef Py_ssize_t j
    at.point.value -= penalty_of(at, at.point.w)
    for j in range(at.p):
        if j != step.free:
            at.point.g[j] += change * at.point.w[j]
    step.l2, step.l1 = l2, l1
    lay_out(step, step.l2_each, step.l1_each)
    at.point.value += penalty_of(at, at.point.w)
    at.penalty.path_begun = at.penalty.path_begun or l2 > at.penalty.user.l2


cdef double first_l2(const newton_state *at) noexcept nogil:
    cdef double total = 0
    cdef Py_ssize_t j
    if not at.curvature.has_block:               # products know the diagonal only
        for j in range(at.p):
            total += at.pcg.diagonal[j] - at.penalty.step.l2_each[j]
        return BEGIN * total / max(1, at.p)
    for j in range(at.curvature.order):
        total += at.curvature.block[j * at.curvature.order + j]
    return BEGIN * total / at.problem.n / max(1, at.curvature.order)


cdef void begin_l1_path(newton_state *at) noexcept nogil:
    cdef double largest = 0
    cdef Py_ssize_t j
    if not at.problem.facts.smooth or not has_kinks(&at.penalty.user) or not has_paths(&at.penalty.user) \
            or at.status != RUNNING:
        return
    # steps by columns make their way without where curvature is everywhere. Where rows beyond the margin have none, and
    # more and more are, those with the user's weight took a hundred steps, and what followed by a block took seconds
    if at.pcg.in_use and not at.problem.facts.discontinuous:
        return
    if at.p * (at.limits.l1_path_rows_discontinuous if at.problem.facts.discontinuous else at.limits.l1_path_rows) \
            < at.problem.n_rows:
        return
    for j in range(at.p):
        if at.point.w[j] != 0:                   # a start of the user's, as good as any on the path
            return
        if j != at.penalty.user.free:
            largest = max(largest, steepness(&at.penalty.step, j, at.point.g))
    if L1_BEGIN * largest > at.penalty.user.l1:
        at.penalty.l1_decay = L1_DECAY
        move_to(at, at.penalty.user.l2, L1_BEGIN * largest)


cdef double gap_on_path(newton_state *at) noexcept nogil:
    cdef double bound = dual_bound(&at.bound.last, &at.penalty.step, NULL, at.point.scratch)
    if not (at.point.predicted > 0 or at.point.columns_wait):
        return 0
    return relative_gap(at.point.value, bound)


cdef bint is_settled(newton_state *at, double enough) noexcept nogil:
    return gap_on_path(at) <= enough


cdef bint wants_l2_path(const newton_state *at) noexcept nogil:
    # not where rows without curvature pull all the same, either way, as by the Huber loss: steps of the user's l2 are
    # full there, and a path took 7 to 19 reads where they took 5 to 9
    return at.problem.facts.discontinuous and not pulls_either_way(&at.problem.facts)


cdef bint knows_diagonal(const newton_state *at) noexcept nogil:
    return at.pcg.in_use and not has_kinks(&at.penalty.user) and at.pcg.mean_then > 0


cdef bint follow_path(newton_state *at) noexcept nogil:
    cdef const penalty_t *step = &at.penalty.step
    cdef const penalty_t *user = &at.penalty.user
    cdef double l2, gap
    if at.status != RUNNING or not has_paths(user):
        return False
    if step.l1 > user.l1:
        gap = gap_on_path(at)
        if not gap <= L1_ENOUGH:
            return False
        # a full step that all but ends at its l1 says that the next may be twice as far
        if gap <= at.limits.l2_path_gap and at.point.step >= 1:
            at.penalty.l1_decay *= at.penalty.l1_decay
        else:
            at.penalty.l1_decay = L1_DECAY
        move_to(at, user.l2, max(user.l1, step.l1 / at.penalty.l1_decay))
        return True
    # the logistic loss has curvature everywhere: its steps are longer without a path
    if not wants_l2_path(at) or not user.l2 > 0 or (at.penalty.path_begun and step.l2 == user.l2):
        return False
    if not at.penalty.path_begun:
        if at.point.step >= at.limits.l2_path_step or gap_of(at) < at.limits.l2_path_gap:
            return False
        if not at.curvature.has_block and not knows_diagonal(at):
            return False
        l2 = first_l2(at)
        if not l2 > user.l2:
            return False
    elif is_settled(at, at.limits.l2_path_gap):
        l2 = max(user.l2, step.l2 / DECAY)
    else:
        return False
    move_to(at, l2, user.l1)
    return True


cdef void leave_path(newton_state *at) noexcept nogil:
    cdef const penalty_t *user = &at.penalty.user
    if at.penalty.step.l2 > user.l2 or at.penalty.step.l1 > user.l1:
        move_to(at, user.l2, user.l1)
