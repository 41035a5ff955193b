"""Location estimate, Ψ-transform with its inverse, and cubic roots; the single points first, the loops last.

The Ψ-transform is written so that nothing cancels: Ψ(t) is of order t² or t near 0, and the literal
ρ(γ) - H((1+t)/2) would leave none of its digits there, nor any in an inverse.
"""

from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport INFINITY, NAN, cbrt, copysign, exp, fabs, fma, frexp, isfinite, ldexp, log, sqrt

from cmargin._core.util._shapes cimport must_fit

cdef double ROOT2 = 1.41421356237309504880
cdef double B = 0.94280904158206336587           # ψ(√2) = 2√2/3
cdef double EPS = 2.220446049250313e-16
CHUNK = 1 << 22


# ---------------------------------------------------------------- Ψ-transform

cdef inline double above_tangent(double e) noexcept nogil:
    # ρ(√2 - e) - [B(√2 - e) - 1/2] for 0 <= e <= √2: how far ρ lies above its straight end
    return e * e * e * (4 * ROOT2 - e) / 24


cdef inline double single_cube(double z) noexcept nogil:
    # y in [0, 1] with y² (3 - y) / 2 = z², 0 <= z <= 1: a start good to 1e-3, then 1e-6, 1e-13 by Newton
    cdef double y = z * (0.8159 + z * (0.1222 + z * (-0.0049 + z * 0.0658)))
    y -= (y * y * (3 - y) / 2 - z * z) / (1.5 * y * (2 - y))
    y -= (y * y * (3 - y) / 2 - z * z) / (1.5 * y * (2 - y))
    return y


cdef inline double third_sine(double x) noexcept nogil:
    # g = sin(arcsin(x) / 3), the root of g (3 - 4g²) = x, |x| < 0.27: good to 4e-4 by its series, then 4e-9 by Newton
    cdef double g = x / 3 * (1 + 4 * x * x / 27)
    return g - (g * (3 - 4 * g * g) - x) / (3 - 12 * g * g)


cdef psi_point psi_unit(double t, double level) noexcept nogil:
    # Ψ(t) = ρ(γ) - min_u [(1+t)/2 ρ(γ-u) + (1-t)/2 ρ(γ+u)]                      margin pursuit, Lemma 8
    # With S(u) = [ρ(γ+u) + ρ(γ-u)]/2 - ρ(γ) and D(u) = [ρ(γ+u) - ρ(γ-u)]/2 it is max_u t D(u) - S(u), and D(u*) is
    # its slope. For t >= 0 the maximiser u* lies in [0, γ], so that only the double cube (14) and the minus cubic (16,
    # erratum applied) are met; both have three real roots there and the middle one is wanted. Viète's sines give it;
    # Newton on the same cubic takes a third less time, and Ψ is stationary in u, so that an error of 1e-9 there
    # leaves none in Ψ.
    cdef double delta = ROOT2 - level, k2, k, u, e, half_sum, half_difference, reach
    cdef psi_point at
    # u* > δ, where γ + u leaves the cubic part of ψ: condition (18), solved for t. Never for γ <= √2/2, always
    # for γ >= √2
    reach = delta * delta * (2 * ROOT2 - 4 * delta / 3) / (2 * B) if delta > 0 else 0
    if delta <= 0.5 * ROOT2 and t > reach * (1 + t):
        # γ - u = √2 - e with ψ(√2 - e) = B (1-t)/(1+t), that is y² (3 - y) / 2 = 2t/(1+t) for e = √2 y
        e = ROOT2 * single_cube(sqrt(2 * t / (1 + t)))
        at.value = t * B * (e - delta) - (1 + t) / 2 * above_tangent(e)
        if delta > 0:
            at.value += above_tangent(delta)
        at.slope = B * (e - delta) - above_tangent(e) / 2
    elif t > 0:
        # u = γt + 2k g, g (3 - 4g²) = γ³t(1-t²)/k³ with k² = 2 - γ² + γ²t²; the right side stays below 0.267
        k2 = delta * (ROOT2 + level) + level * level * t * t
        k = sqrt(k2)
        u = level * t + 2 * k * third_sine(level * level * level * t * (1 - t) * (1 + t) / (k * k2))
        half_sum = u * u * (6 * delta * (ROOT2 + level) - u * u) / 24
        half_difference = level * u * (6 - level * level - u * u) / 6
        at.value = t * half_difference - half_sum
        at.slope = half_difference
    else:
        at.value = 0
        at.slope = -B * delta if delta < 0 else 0
    return at


cdef double psi_unit_inverse(double value, double level) noexcept nogil:
    # Newton on ln Ψ against ln t, a line of slope between 1 and 2 or nearly so; bisected where it leaves the bracket
    cdef double top = psi_unit(1, level).value, lo, hi = 1, t, moved
    cdef psi_point at
    cdef int _i
    if not value > 0:
        return 0
    if value >= top:
        return 1
    lo = value / top                     # Ψ is convex and Ψ(0) = 0
    t = sqrt(lo)
    for _i in range(200):
        at = psi_unit(t, level)
        if at.value == value:
            return t
        if at.value < value:
            lo = t
        else:
            hi = t
        moved = t * exp(log(value / at.value) * at.value / (t * at.slope))
        if fabs(moved - t) <= EPS * t:
            return moved if moved < 1 else 1
        if not lo < moved < hi:          # false for a NaN too, where Ψ(t) underflowed
            moved = sqrt(lo) * sqrt(hi)
            if not lo < moved < hi:
                return hi
        t = moved
    return t


# ---------------------------------------------------------------- location

cdef influence influence_sums(const double *q, Py_ssize_t n, double at, double scale) noexcept nogil:
    # Eight running sums, so that the order of additions is fixed and the compiler may still use vectors; and no branch,
    # which random margins would mispredict (3 times slower). Points beyond √2 s are counted, not summed: k B is exact
    # to one rounding where a sum of a million B is not.
    cdef double inside[8]
    cdef double slope[8]
    cdef double beyond[8]
    cdef double u, v, square, inner, inverse = 1 / scale
    cdef influence sums
    cdef Py_ssize_t i, j
    for j in range(8):
        inside[j] = slope[j] = beyond[j] = 0
    for i in range(0, n - n % 8, 8):
        for j in range(8):
            u = (at - q[i + j]) * inverse
            v = u if u < ROOT2 else ROOT2        # keeps what is multiplied by 0 below finite
            v = v if v > -ROOT2 else -ROOT2
            square = v * v
            inner = 1.0 if square < 2 else 0.0
            inside[j] += inner * (v - v * square / 6)
            slope[j] += inner * (1 - square / 2)
            beyond[j] += (1 - inner) * copysign(1.0, v)
    for i in range(n - n % 8, n):
        u = (at - q[i]) * inverse
        if u * u < 2:
            inside[0] += u - u * u * u / 6
            slope[0] += 1 - u * u / 2
        else:
            beyond[0] += copysign(1.0, u)
    sums.inside = sums.beyond = sums.slope = 0
    for j in range(8):
        sums.inside += inside[j]
        sums.beyond += beyond[j]
        sums.slope += slope[j]
    return sums


cdef location_search location_start(double median, double scale) noexcept nogil:
    # at median + √2 s half of the points or more push by +B, and the others by -B at most; so the root is not beyond
    cdef location_search search
    search.at = median
    search.lo = median - ROOT2 * scale
    search.hi = median + ROOT2 * scale
    search.last_step = INFINITY
    search.done = False
    return search


cdef void location_advance(location_search *search, influence sums, double scale) noexcept nogil:
    cdef double total = sums.inside + B * sums.beyond, step, moved
    if total == 0:
        search.done = True
        return
    if total > 0:
        search.hi = search.at
    else:
        search.lo = search.at
    step = -scale * total / sums.slope if sums.slope > 0 else INFINITY
    moved = search.at + step
    if fabs(step) <= 1e-13 * scale:
        search.done = True               # the step taken leaves an error of its square
    elif not isfinite(step) or not search.lo <= moved <= search.hi or fabs(step) > 0.5 * search.last_step:
        moved = search.lo + (search.hi - search.lo) / 2
        step = moved - search.at
        search.done = not search.lo < moved < search.hi
    search.last_step = fabs(step)
    search.at = moved


cdef double location_root(const double *q, Py_ssize_t n, double median, double scale) noexcept nogil:
    cdef location_search search = location_start(median, scale)
    while not search.done:
        location_advance(&search, influence_sums(q, n, search.at, scale), scale)
    return search.at


# ---------------------------------------------------------------- cubic equations

cdef int quadratic_roots(double a, double b, double c, double slack, double *roots_out) noexcept nogil:
    # a u² + b u + c, any of them 0; roots nearer each other than √slack, relatively, real or not, are one double root
    cdef double half = -b / 2, first, second, discriminant, w
    if a == 0:
        if b == 0:
            return 0
        roots_out[0] = -c / b
        return 1
    # half² - a c with the rounding of both products given back
    first = half * half
    second = a * c
    discriminant = (first - second) + (fma(half, half, -first) - fma(a, c, -second))
    if fabs(discriminant) <= slack * (first + fabs(second)):
        discriminant = 0
    if discriminant < 0:
        return 0
    w = half + copysign(sqrt(discriminant), half)
    roots_out[0] = w / a
    roots_out[1] = c / w if w != 0 else 0
    return 2


cdef double one_root(double a, double b, double c, double d, double *b1_out, double *c2_out) noexcept nogil:
    # A real root x of a cubic with a, d != 0, and a u² + b1 u + c2 that is left when it is divided out. Newton from
    # outside all roots, where it comes in monotonically; division from the end that loses less (Kahan 1986, "To solve
    # a real cubic equation"). Closed forms lose digits where the roots differ in size; this does not.
    cdef double x = -(b / a) / 3, moved = x, side = 0, ax, b1 = 0, c2 = 0, slope, value, size, reach
    cdef int i
    for i in range(200):
        ax = a * x
        b1 = ax + b
        c2 = b1 * x + c
        slope = (ax + b1) * x + c2
        value = c2 * x + d
        if i == 0:                       # x is the point of inflection: leap from it beyond the outermost root
            size = fabs(ax * x * x) + fabs(b * x * x) + fabs(c * x) + fabs(d)
            if fabs(value) <= 4 * EPS * size:
                break
            side = copysign(1.0, value / a)
            reach = cbrt(fabs(value / a))
            if slope / a < 0:
                reach = 1.3247179572447460 * max(reach, sqrt(-slope / a))
            moved = x - side * reach
            if moved == x:
                break
        else:
            if slope == 0:
                break
            moved = x - value / slope
            if not side * (moved - x) > 0:
                break
        x = moved
    if fabs(a) * x * x > fabs(d / x):
        c2 = -d / x
        b1 = (c2 - c) / x
    b1_out[0] = b1
    c2_out[0] = c2
    return x


cdef double polished(double a, double b, double c, double d, double x) noexcept nogil:
    # one Newton step on the whole cubic, taken if the residual shrinks
    cdef double value = ((a * x + b) * x + c) * x + d, slope = (3 * a * x + 2 * b) * x + c, moved
    if value == 0 or slope == 0:
        return x
    moved = x - value / slope
    return moved if fabs(((a * moved + b) * moved + c) * moved + d) < fabs(value) else x


cdef int cubic_roots_point(double a, double b, double c, double d, double *roots_out) noexcept nogil:
    # Unknown and equation are scaled by powers of 2, exactly, so that a and d are of one size and the largest
    # coefficient is near 1: no product below overflows, and none underflows that matters.
    cdef int ea, eb, ec, ed, shift = 0, top, n_roots, i, j
    cdef double ma = frexp(a, &ea), mb = frexp(b, &eb), mc = frexp(c, &ec), md = frexp(d, &ed), b1, c2, held
    if a == 0 and b == 0 and c == 0 and d == 0:
        return -1
    if a != 0 and d != 0:
        shift = (ed - ea) // 3
    elif b != 0 and d != 0:
        shift = (ed - eb) // 2
    elif a != 0 and c != 0:
        shift = (ec - ea) // 2
    top = -100000
    if a != 0:
        top = max(top, ea + 3 * shift)
    if b != 0:
        top = max(top, eb + 2 * shift)
    if c != 0:
        top = max(top, ec + shift)
    if d != 0:
        top = max(top, ed)
    cdef double A = ldexp(ma, ea + 3 * shift - top), E = ldexp(mb, eb + 2 * shift - top)
    cdef double F = ldexp(mc, ec + shift - top), G = ldexp(md, ed - top)
    if a == 0:
        n_roots = quadratic_roots(E, F, G, 0, roots_out)
    elif d == 0:
        roots_out[0] = 0
        n_roots = 1 + quadratic_roots(A, E, F, 0, roots_out + 1)
    elif fabs(A) < 1e-140 * fabs(E):
        # one root is so far out that the others do not feel it, nor it them
        roots_out[0] = ldexp(-mb / ma, eb - ea - shift)
        n_roots = 1 + quadratic_roots(E, F, G, 0, roots_out + 1)
    else:
        roots_out[0] = one_root(A, E, F, G, &b1, &c2)
        n_roots = 1 + quadratic_roots(A, b1, c2, 16 * EPS, roots_out + 1)
        for j in range(n_roots):
            roots_out[j] = polished(A, E, F, G, roots_out[j])
    i = 0
    for j in range(n_roots):             # a root beyond the range of doubles is none
        held = ldexp(roots_out[j], shift) + 0.0       # and no -0
        if isfinite(held):
            roots_out[i] = held
            i += 1
    n_roots = i
    for i in range(1, n_roots):
        held = roots_out[i]
        j = i
        while j > 0 and roots_out[j - 1] > held:
            roots_out[j] = roots_out[j - 1]
            j -= 1
        roots_out[j] = held
    return n_roots


# ---------------------------------------------------------------- array by array, for Python callers

def psi_transform(const double[::1] a, const double[::1] level, const double[::1] scale, double[::1] psi_out):
    """Ψ_{s,γ}(a) = s² Ψ_{1,γ/s}(a); ``a`` (n,), ``level`` and ``scale`` (n,) or (1,), positive.

    Returns the index of the first ``a`` outside [0, 1] and of the first result that is not finite, n if there is none:
    looked at here because a pass of NumPy over the arrays for each costs as much as the transform.
    """
    cdef Py_ssize_t i, n = a.shape[0], outside = n, lost = n
    must_fit(psi_out.shape[0] == n and level.shape[0] in (1, n) and scale.shape[0] in (1, n), "psi_transform")
    cdef Py_ssize_t level_step = level.shape[0] > 1, scale_step = scale.shape[0] > 1
    cdef double s
    with nogil:
        for i in range(n):
            s = scale[i * scale_step]
            psi_out[i] = s * s * psi_unit(a[i], level[i * level_step] / s).value
            if not 0 <= a[i] <= 1 and outside == n:
                outside = i
            if not isfinite(psi_out[i]) and lost == n:
                lost = i
    return outside, lost


def psi_inverse(const double[::1] value, const double[::1] level, const double[::1] scale, double[::1] a_out):
    """a in [0, 1] with Ψ_{s,γ}(a) = value; shapes as in `psi_transform`.

    Returns the index of the first value outside [0, Ψ_{s,γ}(1)], but for rounding, and n, as `psi_transform` does.
    """
    cdef Py_ssize_t i, n = value.shape[0], outside = n
    must_fit(a_out.shape[0] == n and level.shape[0] in (1, n) and scale.shape[0] in (1, n), "psi_inverse")
    cdef Py_ssize_t level_step = level.shape[0] > 1, scale_step = scale.shape[0] > 1
    cdef double s, unit, top
    with nogil:
        for i in range(n):
            s = scale[i * scale_step]
            unit = value[i] / s / s
            top = psi_unit(1, level[i * level_step] / s).value
            a_out[i] = psi_unit_inverse(unit, level[i * level_step] / s)
            if not 0 <= unit <= top * (1 + 8 * EPS) and outside == n:
                outside = i
    return outside, n


def location(const double[::1] q, double median, double scale):
    """Root of Σ ψ((γ - q_i) / s) = 0 nearest its median; ``q`` (n,), finite, n >= 1; NaN beyond the range of doubles.

    Chunks are folded in order, so that the answer depends on nothing but the arguments.
    """
    cdef location_search search = location_start(median, scale)
    cdef influence sums, part
    cdef Py_ssize_t lo, n = q.shape[0]
    while not search.done:
        sums.inside = sums.beyond = sums.slope = 0
        for lo in range(0, n, CHUNK):
            with nogil:
                part = influence_sums(&q[lo], min(CHUNK, n - lo), search.at, scale)
                sums.inside += part.inside
                sums.beyond += part.beyond
                sums.slope += part.slope
            PyErr_CheckSignals()
        location_advance(&search, sums, scale)
    return search.at


def cubic_roots(const double[::1] a, const double[::1] b, const double[::1] c, const double[::1] d,
                double[:, ::1] roots_out, int[::1] count_out):
    """Real roots, ascending, of n cubics; ``roots_out`` (n, 3), NaN after the first ``count_out[i]`` of a row.

    ``count_out[i]`` is -1 where every coefficient is 0.
    """
    cdef Py_ssize_t i, j
    must_fit(a.shape[0] == b.shape[0] == c.shape[0] == d.shape[0] == roots_out.shape[0] == count_out.shape[0]
             and roots_out.shape[1] == 3, "cubic_roots")
    with nogil:
        for i in range(a.shape[0]):
            count_out[i] = cubic_roots_point(a[i], b[i], c[i], d[i], &roots_out[i, 0])
            for j in range(max(count_out[i], 0), 3):
                roots_out[i, j] = NAN
