"""How the model is minimised in the unknowns of the rows: Newton steps on its dual, searched along their line."""

from libc.float cimport DBL_EPSILON
from libc.math cimport fabs, sqrt
from libc.string cimport memset

from cmargin._core.linalg._blas cimport TRANS, dot, potrf, potrs, syrk
from cmargin._core.penalties._by_column cimport own_minimum
from cmargin._core.penalties._elastic_net cimport soft_threshold
from cmargin._core.penalties._penalty cimport BY_COLUMN
from cmargin._core.rows._pass_state cimport PANEL, TILE
from cmargin._core.rows._rows cimport value_at
from cmargin._core.rows._tiles cimport open_tile, row_tile, tile_add_rows, tile_products


# ---------------------------------------------------------------- products with the rows

cdef void multiply(const row_source *source, double *scratch, const double *x, double *out) noexcept nogil:
    # out = X x
    cdef Py_ssize_t first = 0
    cdef row_tile tile
    while first < source.X.n_rows:
        tile = open_tile(source, first, min(<Py_ssize_t> TILE, source.X.n_rows - first), scratch)
        tile_products(&tile, x, out + first)
        first += TILE


cdef void add_combination(const row_source *source, double *scratch, const double *c, double *total) noexcept nogil:
    # total += X' c
    cdef Py_ssize_t first = 0
    cdef row_tile tile
    while first < source.X.n_rows:
        tile = open_tile(source, first, min(<Py_ssize_t> TILE, source.X.n_rows - first), scratch)
        tile_add_rows(&tile, c + first, total)
        first += TILE


# ---------------------------------------------------------------- columns in use

cdef inline double minimum_of(const row_model *at, Py_ssize_t j, double v) noexcept nogil:
    # of the penalty of column j less v x
    if at.penalty.kind == BY_COLUMN:
        return own_minimum(at.penalty, j, v)
    return soft_threshold(v, at.l1) / at.l2


cdef inline bint is_loose(const row_model *at, Py_ssize_t j, double v) noexcept nogil:
    # whether that moves with v: it is neither at 0, under an l1 weight, nor at a bound
    if at.penalty.kind == BY_COLUMN:
        return fabs(v) > at.penalty.l1_each[j] \
            and at.penalty.lower[j] < own_minimum(at.penalty, j, v) < at.penalty.upper[j]
    return fabs(v) > at.l1


cdef void add_columns(row_unknowns *of, const row_source *source, Py_ssize_t n_moved, double sign) noexcept nogil:
    # gram += sign times the sum of x_j x_j' over the columns `moved`
    cdef Py_ssize_t n = source.X.n_rows, m = source.X.n_features, first = 0, k, i, a, j, row
    while first < n_moved:
        k = min(<Py_ssize_t> PANEL, n_moved - first)
        for i in range(n):
            row = i * source.X.row_stride
            for a in range(k):
                j = of.moved[first + a]
                of.panel[a * n + i] = value_at(&source.X, row + j * source.X.column_stride) if j < m else 1.0
        syrk(TRANS, n, k, sign, of.panel, n, 1.0, of.gram, n)
        first += PANEL


cdef Py_ssize_t list_moved(const row_model *at, row_unknowns *of, bint into) noexcept nogil:
    # columns that come into use, or those that go out of it
    cdef Py_ssize_t j, found = 0
    cdef bint wanted, used
    for j in range(at.n_soft):
        wanted, used = is_loose(at, j, of.slope[j]), of.used[j]
        if wanted == into and used != into:
            of.moved[found], of.used[j] = j, into
            found += 1
    return found


cdef void follow_columns(row_model *at, row_unknowns *of, const row_source *source) noexcept nogil:
    # `gram` of the columns that are in use now; anew where less of it stays than goes
    cdef Py_ssize_t n = source.X.n_rows, j, wanted = 0, goes = 0
    for j in range(at.n_soft):
        wanted += is_loose(at, j, of.slope[j])
        goes += <bint> (of.used[j] != 0 and not is_loose(at, j, of.slope[j]))
    if goes >= of.n_used - goes:
        memset(of.gram, 0, n * n * sizeof(double))
        memset(of.used, 0, at.n_soft)
    else:
        add_columns(of, source, list_moved(at, of, False), -1.0)
    add_columns(of, source, list_moved(at, of, True), 1.0)
    of.n_used = wanted


# ---------------------------------------------------------------- where it is

cdef void row_model_begin(row_model *at, row_unknowns *of, const row_source *source) noexcept nogil:
    cdef Py_ssize_t n = source.X.n_rows, i, j
    at.p = source.X.n_features + source.intercept
    at.n_soft = at.p - at.free
    at.count = at.n_curved = of.n_used = 0
    at.reads = at.total = 0
    at.given_up = at.spent = False
    for i in range(n):
        of.multiplier[i] = 0
        at.total += of.weight[i]
        if of.weight[i] > 0:
            of.curved[at.n_curved] = i
            at.n_curved += 1
    for j in range(at.p):
        of.slope[j] = at.l2 * at.w[j] - at.g[j]
    if at.free and at.total > 0 and at.g[at.p - 1] != 0:
        for i in range(n):
            of.step[i] = -at.g[at.p - 1] * of.weight[i] / at.total
        add_changes(at, of, source)
        take_step(at, of, source, 1)


cdef void add_changes(row_model *at, row_unknowns *of, const row_source *source) noexcept nogil:
    # change = X' step
    memset(of.change, 0, at.p * sizeof(double))
    add_combination(source, of.tile, of.step, of.change)
    at.reads += 1


cdef void take_step(row_model *at, row_unknowns *of, const row_source *source, double length) noexcept nogil:
    cdef Py_ssize_t i, j
    for i in range(source.X.n_rows):
        of.multiplier[i] += length * of.step[i]
    for j in range(at.p):
        of.slope[j] -= length * of.change[j]


cdef double step_of_model(row_model *at, row_unknowns *of, const row_source *source) noexcept nogil:
    # d of the multipliers, and X d but for a free intercept; the linear part and the penalty's of the model there
    cdef Py_ssize_t j, used = 0
    cdef double x, value = 0
    for j in range(at.n_soft):
        x = minimum_of(at, j, of.slope[j])
        used += x != 0
        at.d[j] = x - at.w[j]
        value += (at.g[j] + at.l2 * at.d[j] / 2) * at.d[j] \
            + at.penalty.l1_each[j] * (fabs(x) - fabs(at.w[j]))
    if at.free:
        at.d[at.p - 1] = 0
    multiply(source, of.tile, at.d, of.product)
    at.reads += <double> used / max(1, at.n_soft)
    return value


cdef bint is_near(row_model *at, row_unknowns *of, double value) noexcept nogil:
    # residual = u / D - z, an intercept that is free moved to where it is least; whether that is little
    cdef Py_ssize_t k, i
    cdef double follow = 0, gap = 0, size = 0, r
    for k in range(at.n_curved):
        i = of.curved[k]
        of.residual[k] = of.multiplier[i] / of.weight[i] - of.product[i]
        follow += of.weight[i] * of.residual[k]
    if at.free:
        follow = follow / at.total if at.total > 0 else -at.g[at.p - 1]
        at.d[at.p - 1] = follow
        value += at.g[at.p - 1] * follow
    for k in range(at.n_curved):
        i = of.curved[k]
        r = of.residual[k] = of.residual[k] - follow if at.free else of.residual[k]
        gap += of.weight[i] * r * r / 2
        value += of.weight[i] * (of.multiplier[i] / of.weight[i] - r)**2 / 2
        size += of.multiplier[i] * of.multiplier[i] / of.weight[i]
    return gap <= at.tol * at.tol * max(0.0, -value) or gap <= DBL_EPSILON * size


# ---------------------------------------------------------------- a Newton step on the dual

cdef bint solve(row_model *at, row_unknowns *of, Py_ssize_t n) noexcept nogil:
    # step = -(D^-1 + X_J X_J' / l2)^-1 residual, scaled by root D on both sides; with a free intercept sum step = 0
    cdef Py_ssize_t m = at.n_curved, a, b, i
    cdef double *rhs = of.solution
    cdef double *ones = rhs + m
    cdef double root, sum_of_rhs = 0, sum_of_ones = 0
    for a in range(m):
        i = of.curved[a]
        root = sqrt(of.weight[i])
        for b in range(a, m):
            of.factor[a * m + b] = root * sqrt(of.weight[of.curved[b]]) * of.gram[i * n + of.curved[b]] / at.l2
        of.factor[a * m + a] += 1
        rhs[a], ones[a] = -root * of.residual[a], root
    if potrf(m, of.factor) != 0:
        return False
    potrs(m, 2 if at.free else 1, of.factor, rhs)
    memset(of.step, 0, n * sizeof(double))
    for a in range(m):
        root = sqrt(of.weight[of.curved[a]])
        of.step[of.curved[a]] = root * rhs[a]
        sum_of_rhs += root * rhs[a]
        sum_of_ones += root * ones[a]
    if at.free:
        for a in range(m):
            of.step[of.curved[a]] -= sqrt(of.weight[of.curved[a]]) * ones[a] * sum_of_rhs / sum_of_ones
    return True


cdef double slope_at(const row_model *at, const row_unknowns *of, double linear, double curvature, double t,
                     double *bend) noexcept nogil:
    # of psi along the step, at t; ``bend`` is its derivative there
    cdef double slope = linear + t * curvature, v
    cdef Py_ssize_t j
    bend[0] = curvature
    for j in range(at.n_soft):
        v = of.slope[j] - t * of.change[j]
        slope -= minimum_of(at, j, v) * of.change[j]
        if is_loose(at, j, v):
            bend[0] += of.change[j] * of.change[j] / at.l2
    return slope


cdef double length_of_step(const row_model *at, const row_unknowns *of) noexcept nogil:
    # where psi is least along the step, at most 1: without a read
    cdef double linear = dot(at.n_soft, of.change, at.w), curvature = 0, low = 0, high = 1, t = 1
    cdef double first, slope, bend
    cdef Py_ssize_t k, i
    for k in range(at.n_curved):
        i = of.curved[k]
        linear += of.multiplier[i] * of.step[i] / of.weight[i]
        curvature += of.step[i] * of.step[i] / of.weight[i]
    first = slope_at(at, of, linear, curvature, 0, &bend)
    slope = slope_at(at, of, linear, curvature, 1, &bend)
    if slope <= 0:
        return 1
    while fabs(slope) > at.tol * fabs(first):
        if slope > 0:
            high = t
        else:
            low = t
        t -= slope / bend
        if not low < t < high:
            t = (low + high) / 2
        if not low < t < high:
            break
        slope = slope_at(at, of, linear, curvature, t, &bend)
    return t


cdef bint row_model_part(row_model *at, row_unknowns *of, const row_source *source) noexcept nogil:
    cdef double value = step_of_model(at, of, source)
    if is_near(at, of, value):
        return False
    at.spent = at.reads + 1 > at.allowed
    at.given_up = at.spent or at.count == at.most
    if not at.given_up:
        follow_columns(at, of, source)
        at.given_up = not solve(at, of, source.X.n_rows)
    if at.given_up:
        return False
    add_changes(at, of, source)
    take_step(at, of, source, length_of_step(at, of))
    at.count += 1
    return True
