"""A margin distribution in a handful of numbers, without the interpreter.

The trace of margin pursuit asks for them for every class after every pass. In NumPy that was some thirty calls for two
thousand margins, most of the time outside of any arithmetic and one thread at a time (doc/lab-notebook).
"""

import numpy as np

from libc.float cimport DBL_MIN
from libc.math cimport floor, frexp, ldexp, sqrt
from libc.string cimport memcpy

from cmargin._core.util import _catoni
from cmargin._core.util._catoni cimport CHUNK, location_root
from cmargin._core.util._shapes cimport must_fit
from cmargin._core.util._sorting cimport sort_places, sort_with_index

cdef double SMALL = 2.0**-200, LARGE = 2.0**200
cdef Py_ssize_t BLOCK = 4096             # margins of one running sum: a sum of all of them would lose digits


cdef struct margin_range:
    double least
    double most
    Py_ssize_t n_nonpositive


cdef struct power_sums:                  # Σ (q_i - centre)^k
    double first
    double second
    double third


cdef struct location_problem:            # in units of ``unit``
    const double *q                      # (n,)
    double median
    double scale
    double unit


cpdef double power_of_two(double size) noexcept nogil:
    """What to divide numbers of at most ``size`` by, exactly, so that their cubes stay in the range of doubles."""
    cdef int power
    if size == 0 or SMALL < size < LARGE:
        return 1
    frexp(size, &power)
    return ldexp(1, power - 1)


cdef const double *in_units(const double *q, Py_ssize_t n, double unit, double *work) noexcept nogil:
    cdef Py_ssize_t i
    if unit == 1:
        return q
    for i in range(n):
        work[i] = q[i] / unit            # 1 / unit may be infinite
    return work


cdef margin_range range_of(const double *q, Py_ssize_t n) noexcept nogil:
    cdef margin_range found
    cdef Py_ssize_t i
    found.least = found.most = q[0]
    found.n_nonpositive = 0
    for i in range(n):
        found.least = q[i] if q[i] < found.least else found.least
        found.most = q[i] if q[i] > found.most else found.most
        found.n_nonpositive += q[i] <= 0
    return found


cdef power_sums sums_of_block(const double *q, Py_ssize_t n, double centre) noexcept nogil:
    # eight running sums each, as in `influence_sums`: a fixed order of additions that still fits vectors
    cdef double first[8]
    cdef double second[8]
    cdef double third[8]
    cdef double off
    cdef power_sums sums
    cdef Py_ssize_t i, j
    for j in range(8):
        first[j] = second[j] = third[j] = 0
    for i in range(0, n - n % 8, 8):
        for j in range(8):
            off = q[i + j] - centre
            first[j] += off
            second[j] += off * off
            third[j] += off * off * off
    for i in range(n - n % 8, n):
        off = q[i] - centre
        first[0] += off
        second[0] += off * off
        third[0] += off * off * off
    sums.first = sums.second = sums.third = 0
    for j in range(8):
        sums.first += first[j]
        sums.second += second[j]
        sums.third += third[j]
    return sums


cdef power_sums sums_about(const double *q, Py_ssize_t n, double centre) noexcept nogil:
    cdef power_sums sums, part
    cdef Py_ssize_t lo = 0
    sums.first = sums.second = sums.third = 0
    while lo < n:
        part = sums_of_block(q + lo, min(BLOCK, n - lo), centre)
        sums.first += part.first
        sums.second += part.second
        sums.third += part.third
        lo += BLOCK
    return sums


cdef void moments(const double *q, Py_ssize_t n, double median, margin_numbers *found) noexcept nogil:
    # Summed from the median on, the mean of margins far from 0 is right to the last digit, and that of equal margins is
    # what they are: no rounding of it looks like a spread
    cdef power_sums sums
    found.mean = median + sums_about(q, n, median).first / n
    sums = sums_about(q, n, found.mean)
    found.variance = sums.second / n
    found.skewness = sums.third / n / (found.variance * sqrt(found.variance)) if found.variance > 0 else 0


cdef void sort_sample(const margin_sample *at) noexcept nogil:
    # work: the margins, with those in their places that the quantiles and the median are made of
    cdef Py_ssize_t last = at.n - 1, i
    cdef double *places = at.places
    memcpy(at.work, at.q, at.n * sizeof(double))
    for i in range(at.n_levels):
        places[2 * i] = floor(last * at.levels[i])
        places[2 * i + 1] = min(places[2 * i] + 1, <double> last)
    places[2 * at.n_levels], places[2 * at.n_levels + 1] = last // 2, at.n // 2
    sort_with_index(2 * at.n_levels + 2, places, NULL)
    sort_places(at.n, at.work, 2 * at.n_levels + 2, places)


cdef double quantile(const double *ordered, Py_ssize_t n, double level, double unit) noexcept nogil:
    # the "linear" one of numpy.quantile, which starts from the nearer neighbour
    cdef double place = (n - 1) * level, share = place - floor(place), low, high
    cdef Py_ssize_t k = <Py_ssize_t> place
    low, high = ordered[k] / unit, ordered[min(k + 1, n - 1)] / unit
    if share < 0.5:
        return (low + (high - low) * share) * unit
    return (high - (high - low) * (1 - share)) * unit


cdef margin_numbers measured(const margin_sample *at, double scale, double reach,
                             location_problem *left) noexcept nogil:
    # all numbers but the location: that is its start, the median, and what is left to solve lies in work, or is q
    cdef margin_numbers found
    cdef margin_range span = range_of(at.q, at.n)
    cdef double size = max(span.most, -span.least), unit = power_of_two(size), low, high
    cdef Py_ssize_t i
    sort_sample(at)
    low, high = at.work[(at.n - 1) // 2], at.work[at.n // 2]
    for i in range(at.n_levels):
        at.quantiles[i] = quantile(at.work, at.n, at.levels[i], unit)
    found.median = quantile(at.work, at.n, 0.5, unit)
    moments(in_units(at.q, at.n, unit, at.work), at.n, low / unit, &found)
    left.unit = unit if scale == 0 else power_of_two(max(size, scale))
    left.scale = reach * sqrt(found.variance) if scale == 0 else scale / left.unit
    left.median = (low / left.unit + high / left.unit) / 2
    left.q = in_units(at.q, at.n, left.unit, at.work)
    found.location, found.scale = left.median * left.unit, left.scale * unit if scale == 0 else scale
    found.mean, found.variance = found.mean * unit, found.variance * unit * unit
    found.n_samples, found.share_nonpositive = at.n, span.n_nonpositive / <double> at.n
    return found


cdef double location_of(const location_problem *left, Py_ssize_t n) noexcept nogil:
    # below the smallest scale no two margins feel each other, and 1 / scale is beyond the range of doubles
    if left.scale < DBL_MIN:
        return left.median * left.unit
    return location_root(left.q, n, left.median, left.scale) * left.unit


cdef void trace_margins(Py_ssize_t n, const double *q, double scale, Py_ssize_t n_levels, const double *levels,
                        double *out, double *work) noexcept nogil:
    cdef margin_sample at
    cdef location_problem left
    cdef margin_numbers found
    at.n, at.q, at.n_levels, at.levels = n, q, n_levels, levels
    at.quantiles, at.work, at.places = out + N_TRACED - 1, work, work + n
    found = measured(&at, scale, 0, &left)
    out[0], out[1], out[2], out[3] = found.mean, found.median, location_of(&left, n), found.variance
    out[4], out[N_TRACED - 1 + n_levels] = found.skewness, found.share_nonpositive


def summarise(const double[::1] q, const double[::1] levels, double scale, double reach, double[::1] quantiles_out):
    """What `margin_summary` says of margins q (n,), n >= 1, without the interpreter up to `CHUNK` of them: a dict.

    Quantiles at ``levels`` go to ``quantiles_out``, both (n_levels,). ``scale`` is that of the location; 0: ``reach``
    standard deviations. The variance is infinite beyond the range of doubles; of margins that are not finite the
    numbers mean nothing.
    """
    cdef margin_sample at
    cdef margin_numbers found
    cdef location_problem left
    cdef Py_ssize_t n = q.shape[0], n_levels = levels.shape[0]
    must_fit(n > 0 and quantiles_out.shape[0] == n_levels, "summarise")
    check_levels(levels)
    cdef double[::1] work = np.empty(n), places = np.empty(2 * n_levels + 2)
    at.n, at.q, at.n_levels, at.places, at.work = n, &q[0], n_levels, &places[0], &work[0]
    if n_levels > 0:
        at.levels, at.quantiles = &levels[0], &quantiles_out[0]
    with nogil:
        found = measured(&at, scale, reach, &left)
        if n <= CHUNK:
            found.location = location_of(&left, n)
    if n > CHUNK and left.scale >= DBL_MIN:          # the same, hearing Ctrl-C
        found.location = _catoni.location(q if left.unit == 1 else work, left.median, left.scale) * left.unit
    return found


cdef check_levels(const double[::1] levels):
    cdef Py_ssize_t i
    for i in range(levels.shape[0]):
        if not 0 <= levels[i] <= 1:
            raise ValueError(f"summarise: level {levels[i]} is not between 0 and 1")


def summarise_problems(const double[:, ::1] q, const double[::1] levels, const double[::1] scale, double[:, ::1] out):
    """`summarise` of the margins q (n_problems, n), without the interpreter in between up to `CHUNK` margins each.

    ``scale`` (n_problems,) is positive; ``out`` (n_problems, 6 + n_levels) gets mean, median, location, variance,
    skewness, quantiles, share of margins <= 0.
    """
    cdef Py_ssize_t n = q.shape[1], n_levels = levels.shape[0], c
    must_fit(0 < n and scale.shape[0] == out.shape[0] == q.shape[0] and out.shape[1] == N_TRACED + n_levels,
             "summarise_problems")
    check_levels(levels)
    cdef double[::1] work = np.empty(n + 2 * n_levels + 2 if n <= CHUNK else 0)
    if n <= CHUNK:
        with nogil:
            for c in range(q.shape[0]):
                trace_margins(n, &q[c, 0], scale[c], n_levels, &levels[0] if n_levels > 0 else NULL, &out[c, 0],
                              &work[0])
        return
    for c in range(q.shape[0]):                      # the same, hearing Ctrl-C
        found = summarise(q[c], levels, scale[c], 0, out[c, N_TRACED - 1:N_TRACED - 1 + n_levels])
        out[c, 0], out[c, 1], out[c, 2] = found["mean"], found["median"], found["location"]
        out[c, 3], out[c, 4] = found["variance"], found["skewness"]
        out[c, N_TRACED - 1 + n_levels] = found["share_nonpositive"]
