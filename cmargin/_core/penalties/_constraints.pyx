"""A few linear constraints A w + b >= 0 beside an l2 penalty: their multipliers, and the dual value with them.

With phi(w) = (l2/2) |w|^2 where the constraints are met, infinite elsewhere, phi*(v) is the least over mu >= 0 of

    |v + A'mu|^2 / (2 l2) + mu'b,

so that any mu makes a bound, and the best one, a quadratic program in as many unknowns as there are constraints, the
best bound. That program is solved by its active set (Goldfarb and Idnani 1983), which also proves that no w meets the
constraints, where that is so: some y >= 0 with y'A = 0 and y'b < 0.
"""

from libc.math cimport INFINITY, fabs, isfinite, sqrt

from cmargin._core.linalg._blas cimport NO_TRANS, TRANS, dot, gemv, potrf, potrs

cdef double OF_SIZE = 1e-14              # of the sizes that a sum is made of: what may be its rounding
cdef double PART = 1e-9                  # of a row in another: less may be none


# ---------------------------------------------------------------- multipliers

cdef struct program:             # argmax of r'mu - mu'M mu / 2 over mu >= 0
    Py_ssize_t q
    const double *M              # (q, q)
    const double *r              # (q,)
    const double *size           # (q,) that the rounding of r is relative to
    double tol                   # of the sizes of sums: slopes that count as 0
    double *mu                   # (q,) OUT
    Py_ssize_t *index            # (q,) OUT  first those above 0, in the order in which they came
    double *factor               # OUT  of their rows and columns of M
    double *z                    # WORK  (q,)


cdef double slope_of(const program *at, Py_ssize_t k) noexcept nogil:
    # by multiplier k; 0 where that may be rounding, also of rows that have nothing to do with each other
    cdef double slope = at.r[k], sizes = at.size[k], length = sqrt(at.M[k * at.q + k])
    cdef Py_ssize_t i
    for i in range(at.q):
        if at.mu[i] > 0:
            slope -= at.M[k * at.q + i] * at.mu[i]
            sizes += length * sqrt(at.M[i * at.q + i]) * at.mu[i]
    return slope if fabs(slope) > at.tol * sizes else 0


cdef Py_ssize_t steepest(const program *at, const double *barred) noexcept nogil:
    # the multiplier that is worth most above 0, beside its curvature; -1: none is worth more than rounding
    cdef double worth, most = 0
    cdef Py_ssize_t found = -1, k
    for k in range(at.q):
        if barred[k] > 0 or at.mu[k] > 0 or not at.M[k * at.q + k] > 0:
            continue
        worth = slope_of(at, k) / sqrt(at.M[k * at.q + k])
        if worth > most:
            found, most = k, worth
    return found


cdef bint has_factor(const program *at, Py_ssize_t m) noexcept nogil:
    # whether the rows and columns of the first m of ``index`` have one, which is left in ``factor``
    cdef Py_ssize_t i, j
    for i in range(m):
        for j in range(i, m):
            at.factor[i * m + j] = at.M[at.index[i] * at.q + at.index[j]]
    return potrf(m, at.factor) == 0


cdef bint depends(const program *at, Py_ssize_t m) noexcept nogil:
    # whether the row behind the first m is z, its parts in these, but for the rounding of what is left without them
    cdef Py_ssize_t i, k = at.index[m]
    cdef double own = sqrt(at.M[k * at.q + k]), left = own * own, reach = own
    cdef bint known = has_factor(at, m)
    for i in range(m):
        at.z[i] = at.M[at.index[i] * at.q + k] if known else 0
    if not known:
        return True
    potrs(m, 1, at.factor, at.z)
    for i in range(m):
        left -= at.z[i] * at.M[at.index[i] * at.q + k]
        reach += fabs(at.z[i]) * sqrt(at.M[at.index[i] * at.q + at.index[i]])
    return not left > OF_SIZE * reach * reach


cdef Py_ssize_t to_the_best(const program *at, Py_ssize_t m) noexcept nogil:
    # the first m multipliers towards their best values, until the first of them is 0: its place, or -1
    cdef double t = 1, own
    cdef Py_ssize_t i, blocking = -1
    for i in range(m):
        at.z[i] = at.r[at.index[i]]
    potrs(m, 1, at.factor, at.z)
    for i in range(m):
        own = at.mu[at.index[i]]
        if not at.z[i] > 0 and (blocking < 0 or own < t * (own - at.z[i])):
            blocking, t = i, own / (own - at.z[i]) if own > 0 else 0
    for i in range(m):
        own = at.mu[at.index[i]]
        at.mu[at.index[i]] = at.z[i] if blocking < 0 else own + t * (at.z[i] - own)
    return blocking


cdef Py_ssize_t in_place_of(const program *at, Py_ssize_t m) noexcept nogil:
    # A row that depends on m others: where its multiplier is worth more, it grows, else it falls, and theirs change so
    # that nothing moves, until one of them all is 0: its place. -1: it may grow for ever
    cdef Py_ssize_t i, k = at.index[m], blocking = -1
    cdef double sign = 1, t = 0, own
    if not slope_of(at, k) > 0:
        sign, t, blocking = -1, at.mu[k], m
    for i in range(m):
        own = at.mu[at.index[i]]
        if sign * at.z[i] > PART * sqrt(at.M[k * at.q + k] / at.M[at.index[i] * at.q + at.index[i]]) \
                and (blocking < 0 or own < t * sign * at.z[i]):
            blocking, t = i, own / (sign * at.z[i])
    for i in range(m):
        at.mu[at.index[i]] -= sign * t * at.z[i]
    at.mu[k] += sign * t
    return blocking


cdef Py_ssize_t settle(const program *at, Py_ssize_t m) noexcept nogil:
    # the best of the first m multipliers, as far as they stay above 0: those that do not leave. How many stay; below 0,
    # -1 - their number: the one behind them may grow for ever
    cdef Py_ssize_t i, kept, blocking
    while m > 0:
        if not depends(at, m - 1) and has_factor(at, m):
            blocking = to_the_best(at, m)
            if blocking < 0:
                return m
        else:
            blocking = in_place_of(at, m - 1)
            if blocking < 0:
                at.mu[at.index[m - 1]] = 0
                return -m
        at.mu[at.index[blocking]] = 0
        kept = 0
        for i in range(m):
            if at.mu[at.index[i]] > 0:
                at.index[kept] = at.index[i]
                kept += 1
            else:
                at.mu[at.index[i]] = 0
        m = kept
    return 0


cdef Py_ssize_t multipliers(Py_ssize_t q, const double *M, const double *r, const double *size, double tol,
                            double *mu, double *work, Py_ssize_t *index, bint *contradicts) noexcept nogil:
    cdef program at
    cdef double *barred = work + q * q + q       # 1 for those that came and left at once, until another has come
    cdef Py_ssize_t m = 0, k, best
    cdef Py_ssize_t _round
    at.q, at.M, at.r, at.size, at.tol, at.mu, at.index = q, M, r, size, tol, mu, index
    at.factor, at.z = work, work + q * q
    for k in range(q):
        mu[k] = barred[k] = 0
    for _round in range(8 * q):
        best = steepest(&at, barred)
        if best < 0:
            break
        index[m] = best
        m = settle(&at, m + 1)
        if m < 0 and contradicts != NULL:
            contradicts[0] = True
            for k in range(q):
                mu[k] = 0
            for k in range(-1 - m):
                mu[index[k]] = max(-at.z[k], 0.0)
            mu[best] = 1
            return -1 - m
        if m < 0:                                # by rounding alone
            m = settle(&at, -1 - m)
        if mu[best] > 0:
            for k in range(q):
                barred[k] = 0
        else:
            barred[best] = 1
    return m


# ---------------------------------------------------------------- at a point, along a line

cdef void shortfalls(const linear_constraints *of, const double *w, const double *d, double *r,
                     double *size) noexcept nogil:
    cdef Py_ssize_t k, j, p = of.n_columns
    cdef const double *row
    for k in range(of.n):
        r[k], size[k], row = -of.b[k], fabs(of.b[k]), of.A + k * p
        for j in range(p):
            if d == NULL:
                r[k] -= row[j] * w[j]
            else:
                r[k] -= row[j] * (w[j] + d[j])
                size[k] += fabs(row[j] * d[j])
            size[k] += fabs(row[j] * w[j])


cdef double longest_feasible(const linear_constraints *of, const double *w, const double *d) noexcept nogil:
    # rows have length 1: what rounding is relative to is the length of w and d, of which a column's own may be nothing
    cdef Py_ssize_t k, p = of.n_columns
    cdef double most = INFINITY, down, room, length = sqrt(dot(p, w, w)) + sqrt(dot(p, d, d))
    for k in range(of.n):
        down = -dot(p, of.A + k * p, d)
        room = of.b[k] + dot(p, of.A + k * p, w) + OF_SIZE * (fabs(of.b[k]) + length)
        if down > 0 and room < most * down:
            most = max(room, 0.0) / down
    return most


# ---------------------------------------------------------------- the dual value

cdef struct dual_line:           # of the dual value at t times the dual variables
    const penalty_t *penalty
    double total, square         # S and |v|^2
    double *Av                   # (q,)
    double *r                    # WORK (q,), as the next
    double *size
    double *mu                   # OUT  (q,) the best multipliers at t


cdef double slope_at(const dual_line *at, double t) noexcept nogil:
    # d/dt of t S - phi*(t v)
    cdef const linear_constraints *of = &at.penalty.constraints
    cdef Py_ssize_t k
    for k in range(of.n):
        at.r[k] = -(t * at.Av[k] + at.penalty.l2 * of.b[k])
        at.size[k] = fabs(t * at.Av[k]) + fabs(at.penalty.l2 * of.b[k])
    multipliers(of.n, of.gram, at.r, at.size, OF_SIZE, at.mu, of.work, of.index, NULL)
    return at.total - (t * at.square + dot(of.n, at.mu, at.Av)) / at.penalty.l2


cdef double best_multiple(const dual_line *at) noexcept nogil:
    # argmax over 0 <= t <= 1: the slope falls, from piece to piece along straight lines
    cdef double low = 0, high = 1, t = 1, slope, at_low, at_high
    cdef int trial
    slope = at_high = slope_at(at, 1)
    if slope >= 0:
        return 1
    at_low = slope_at(at, 0)
    for trial in range(60):
        if not at_low > 0:
            return low
        t = (low + high) / 2 if trial % 3 == 2 else low + (high - low) * (at_low / (at_low - at_high))
        slope = slope_at(at, t)
        if fabs(slope) <= OF_SIZE * fabs(at.total) or not low < t < high:
            return t
        if slope > 0:
            low, at_low = t, slope
        else:
            high, at_high = t, slope
    return low


cdef double constrained_bound(const penalty_t *penalty, double total, Py_ssize_t n, const double *v,
                              const double *noise) noexcept nogil:
    cdef const linear_constraints *of = &penalty.constraints
    cdef Py_ssize_t j, k, q = of.n
    cdef dual_line at
    cdef double t, size, bound
    at.penalty, at.total, at.square = penalty, total, dot(n, v, v)
    at.Av = of.work + (q + 2) * q
    at.r, at.size, at.mu = at.Av + q, at.Av + 2 * q, at.Av + 3 * q
    # Av = A v   (q,) = (q, n) (n,)
    gemv(NO_TRANS, q, n, 1.0, of.A, of.n_columns, v, 0.0, at.Av)
    if not isfinite(total) or not isfinite(at.square):
        return 0
    t = best_multiple(&at)
    slope_at(&at, t)
    bound = t * total
    for k in range(q):
        bound -= at.mu[k] * of.b[k] + OF_SIZE * fabs(at.mu[k] * of.b[k])
    # moved = A' mu   (n,) = (n, q) (q,)
    gemv(TRANS, q, n, 1.0, of.A, of.n_columns, at.mu, 0.0, of.moved)
    for j in range(n):
        size = fabs(t * v[j] + of.moved[j])
        if noise != NULL:
            size += t * noise[j]
        bound -= size * size / (2 * penalty.l2)
    return max(bound, 0.0)
