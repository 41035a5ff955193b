"""Where Newton steps on a smooth loss become short, the minimum is approached along a path of l2 penalties.

The squared hinge's curvature is that of the rows within the margin alone. With a small penalty, and hardly more such
rows than columns, it is nearly singular: directions are so long that other rows enter long before their end, and a
thousandth of a step after the other changes a few of them. With a larger penalty most of them are where they will be,
and from one penalty to a third of it Newton's steps are full. Objective, certificate and history stay those of the
user's l2; only the steps are of the path's.
"""

from cmargin._core.newton._certificate cimport dual_bound, relative_gap
from cmargin._core.newton._newton cimport RUNNING, penalty_of

# chosen on 40 problems; those and their passes are in doc/decisions.md
cdef double SHORT = 0.3                  # a step that begins the path,
cdef double LATE = 0.1                   # unless the gap is already smaller
cdef double BEGIN = 0.1                  # the first l2, in mean curvatures of a column
cdef double DECAY = 3                    # from one l2 to the next,
cdef double ENOUGH = 0.1                 # once the gap at the one is as small


cdef double penalty_of_path(const newton_state *at) noexcept nogil:
    cdef double squares = 0
    cdef Py_ssize_t j
    if at.path_l2 <= at.l2:
        return 0
    for j in range(at.p):
        if j != at.free:
            squares += at.w[j] * at.w[j]
    return (at.path_l2 - at.l2) / 2 * squares


cdef void move_to(newton_state *at, double l2) noexcept nogil:
    # value and gradient at w follow
    cdef double change = l2 - max(at.path_l2, at.l2)
    cdef Py_ssize_t j
    at.value -= penalty_of(at, at.w)
    for j in range(at.p):
        if j != at.free:
            at.g[j] += change * at.w[j]
            at.l2_each[j] = l2
    at.value += penalty_of(at, at.w)
    at.path_l2 = l2


cdef double first_l2(const newton_state *at) noexcept nogil:
    cdef double total = 0
    cdef Py_ssize_t j
    for j in range(at.order):
        total += at.block[j * at.order + j]
    return BEGIN * total / at.n / max(1, at.order)


cdef bint follow_path(newton_state *at) noexcept nogil:
    cdef double l2, bound
    if at.status != RUNNING or not at.l2 > 0 or at.path_l2 == at.l2:
        return False
    if at.path_l2 == 0:
        if at.step >= SHORT or not at.has_block or relative_gap(at.objective, at.best_dual) < LATE:
            return False
        l2 = first_l2(at)
        if not l2 > at.l2:
            return False
    else:
        bound = dual_bound(&at.told, at.path_l2, at.l1, NULL, at.scratch)
        if at.predicted > 0 and relative_gap(at.value, bound) > ENOUGH:
            return False
        l2 = max(at.l2, at.path_l2 / DECAY)
    move_to(at, l2)
    return True


cdef void leave_path(newton_state *at) noexcept nogil:
    if at.path_l2 > at.l2:
        move_to(at, at.l2)
