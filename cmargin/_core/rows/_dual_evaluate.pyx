"""What an evaluation of the dual makes of all slacks: the best intercept, the best multiple of w, a balanced bound.

Intercept and multiple are roots of a sum that rises from breakpoint to breakpoint. Only one place of their order is
wanted, so they are never sorted: a pivot splits those still in question, and one side of it is done with. Where the
rows have ridges, that sum is continuous, and Newton's method finds the root in a few passes over the slacks.
"""

from libc.math cimport INFINITY, fabs

from cmargin._core.linalg._blas cimport dot
from cmargin._core.rows._dual_rows cimport DualBlocks, dual_rows, loss_at, pointed_to, row_of, take_mean
from cmargin._core.rows._tiles cimport add_row
from cmargin._core.util._shapes cimport must_fit

cdef int ROOT_STEPS = 50               # of Newton's method for a root, at most
cdef double ROOT_DIGITS = 1e-12


cdef struct parts_sums:              # weights of the keys below the pivot and beside it
    double below, beside


cdef inline double pivot_of(const double *key, Py_ssize_t lo, Py_ssize_t hi) noexcept nogil:
    cdef double a = key[lo + (hi - lo) // 4], b = key[lo + (hi - lo) // 2], c = key[lo + 3 * (hi - lo) // 4]
    return max(min(a, b), min(max(a, b), c))


cdef parts_sums split(double *key, double *weight, double pivot, Py_ssize_t lo, Py_ssize_t hi, Py_ssize_t *first,
                      Py_ssize_t *last) noexcept nogil:
    # keys below the pivot to lo .. first - 1, its equals to first .. last - 1
    cdef parts_sums sums
    cdef Py_ssize_t i = lo
    sums.below = sums.beside = 0
    first[0], last[0] = lo, hi
    while i < last[0]:
        if key[i] < pivot:
            sums.below += weight[i]
            key[i], key[first[0]] = key[first[0]], key[i]
            weight[i], weight[first[0]] = weight[first[0]], weight[i]
            first[0] += 1
            i += 1
        elif key[i] == pivot:
            sums.beside += weight[i]
            i += 1
        else:
            last[0] -= 1
            key[i], key[last[0]] = key[last[0]], key[i]
            weight[i], weight[last[0]] = weight[last[0]], weight[i]
    return sums


cdef double shift_of(Py_ssize_t n, const double *signed_weight, const double *u, double *key,
                     double *weight) noexcept nogil:
    # a weighted quantile of y u
    cdef Py_ssize_t lo = 0, hi = n, i, first = 0, last = 0
    cdef double wanted = 0, pivot = 0
    cdef parts_sums sums
    for i in range(n):
        key[i] = u[i] if signed_weight[i] >= 0 else -u[i]
        weight[i] = signed_weight[i] if signed_weight[i] >= 0 else -signed_weight[i]
        wanted += max(signed_weight[i], 0.0)
    while lo < hi:
        pivot = pivot_of(key, lo, hi)
        sums = split(key, weight, pivot, lo, hi, &first, &last)
        if first > lo and sums.below >= wanted:
            hi = first
        elif first == last or sums.below + sums.beside >= wanted:            # not a number, or here
            break
        else:
            wanted -= sums.below + sums.beside
            lo = last
    return pivot


cdef double scale_of(Py_ssize_t n, const double *upper, const double *z, double square, double *key,
                     double *weight) noexcept nogil:
    # where the slope, which rises, passes 0
    cdef Py_ssize_t lo = 0, hi = 0, i, first = 0, last = 0
    cdef double slope = 0, reached = 0, pivot       # of the rows not yet at their margin; where the last one got there
    cdef parts_sums sums
    if not square > 0:
        return 1.0
    for i in range(n):
        slope += upper[i] * z[i]
        if z[i] > 0 and upper[i] > 0:
            key[hi] = 1 / z[i]
            weight[hi] = upper[i] * z[i]
            hi += 1
    while lo < hi:
        pivot = pivot_of(key, lo, hi)
        sums = split(key, weight, pivot, lo, hi, &first, &last)
        if square * pivot >= slope - sums.below:
            hi = first
        else:
            slope -= sums.below + sums.beside
            reached = pivot
            lo = max(last, lo + 1)
    return max(slope / square, reached)


cdef double root_of(const dual_rows *rows, const double *start, const double *direction, double square,
                    double t) noexcept nogil:
    # argmin of t^2 square / 2 + sum of the losses at start_i - t direction_i, beginning at t. start NULL: 1 in every
    # row; direction NULL: the signs of the classes
    cdef double low = -INFINITY, high = INFINITY, slope, bend, d, u, a, new
    cdef Py_ssize_t i
    cdef int steps = ROOT_STEPS
    while steps > 0:
        steps -= 1
        slope, bend = t * square, square
        for i in range(rows.n):
            d = direction[i] if direction != NULL else 1 if rows.signed_weight[i] >= 0 else -1
            u = (start[i] if start != NULL else 1) - t * d
            a = pointed_to(u, rows.upper[i], rows.ridge[i])
            slope -= a * d
            if 0 < a < rows.upper[i]:
                bend += d * d / rows.ridge[i]
        if slope < 0:
            low = t
        else:
            high = t
        new = t - slope / bend if bend > 0 else t
        if not fabs(new - t) > ROOT_DIGITS * fabs(t):
            break
        t = new if low < new < high else (low + high) / 2        # an end again: Newton's method goes round in a circle
    return t


cdef double losses_at(const dual_rows *rows, const double *u, double shift) noexcept nogil:
    cdef double loss = 0
    cdef Py_ssize_t i
    for i in range(rows.n):
        loss += loss_at(u[i] - (shift if rows.signed_weight[i] >= 0 else -shift), rows.upper[i], rows.ridge[i])
    return loss


cdef best_multiple multiple_of(const dual_rows *rows, const double *w, const double *u, double largest,
                               double *room) noexcept nogil:
    # where a plane divides the data and l2 is small, upper is so large that what w lacks in length costs more than |w|
    cdef Py_ssize_t n = rows.n, i
    cdef double *z = room + 2 * n
    cdef double square = dot(rows.m + (not rows.free), w, w), loss = 0
    cdef best_multiple best
    best.shift, best.scale = 0, 1
    if rows.free:
        best.shift = root_of(rows, u, NULL, 0, 0) if rows.smooth else shift_of(n, rows.signed_weight, u, room, room + n)
        if rows.target != NULL and losses_at(rows, u, 0) <= losses_at(rows, u, best.shift):
            best.shift = 0                                       # within the kinks of all rows: where it is
    for i in range(n):
        z[i] = 1 - (u[i] - (best.shift if rows.signed_weight[i] >= 0 else -best.shift))
    if largest > 0:
        best.scale = root_of(rows, NULL, z, square, 1) if rows.smooth else \
            scale_of(n, rows.upper, z, square, room, room + n)
        best.scale = min(largest, max(best.scale, 0.0))
    for i in range(n):
        loss += loss_at(1 - best.scale * z[i], rows.upper[i], rows.ridge[i])
    best.objective = best.scale * best.scale * square / 2 + loss
    return best


# ---------------------------------------------------------------- a balanced point near a

cdef inline bint is_heavier(const balancing *by, const dual_rows *rows, Py_ssize_t i) noexcept nogil:
    return (rows.signed_weight[i] >= 0) == by.heavier


cdef inline double given_by(const balancing *by, const dual_rows *rows, Py_ssize_t i) noexcept nogil:
    # what row i can give: its own a, or of the other class what is left to its bound, which is as good on the face
    if by.face and not 0 < by.a[i] < rows.upper[i]:
        return 0
    if is_heavier(by, rows, i):
        return by.a[i]
    return rows.upper[i] - by.a[i] if by.face and rows.upper[i] < INFINITY else 0


cdef void ask_for(balancing *by, const dual_rows *rows, bint face) noexcept nogil:
    cdef Py_ssize_t i
    by.face, by.there, by.taken, by.at = face, 0, 0, 0
    for i in range(rows.n):
        by.there += given_by(by, rows, i)


cdef void begin_balancing(balancing *by, const dual_rows *rows, double balance) noexcept nogil:
    # a, w are copies; on the face slacks are near 0, so the bound loses only the square of what was missing
    by.missing, by.heavier, by.removed = fabs(balance), balance > 0, 0
    ask_for(by, rows, True)


cdef bint balance_part(balancing *by, dual_rows *rows, Py_ssize_t most) noexcept nogil:
    cdef Py_ssize_t i
    cdef double part
    while by.at < rows.n and by.there > 0:
        if most == 0:
            return True
        i = by.at
        by.at += 1
        most -= 1
        part = given_by(by, rows, i) * min(1.0, by.missing / by.there)
        if part > 0:
            by.a[i] = by.a[i] - part if is_heavier(by, rows, i) else min(by.a[i] + part, rows.upper[i])
            by.taken += part
            by.removed += part if by.heavier else -part
            rows.n_read += 1
            add_row(-part if by.heavier else part, &rows.source, row_of(rows, i), by.w)
    by.missing -= by.taken
    if by.face and (not by.there > 0 or by.missing > 1e-15 * by.there):
        ask_for(by, rows, False)
        return True
    take_mean(rows, -by.removed, by.w)
    by.w[rows.m] = 0
    return False


# ---------------------------------------------------------------- the same for those who have arrays

def smooth_minimum(DualBlocks blocks, const double[::1] start, const double[::1] direction, double square, double t):
    """argmin of t^2 square / 2 + sum of the losses at start_i - t direction_i, all rows with ridges; begins at t."""
    must_fit(start.shape[0] == direction.shape[0] == blocks.rows.n, "smooth_minimum")
    return root_of(&blocks.rows, &start[0], &direction[0], square, t)
