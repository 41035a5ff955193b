"""Rows chosen by a random number of their own, the hash of a seed and their place; long rows more often than short.

Whether a row is chosen depends on nothing but that number, the row and its probability, so that the choice is the same
wherever rows lie and however they are split, and needs no stream of random numbers to be shared.

A long row pulls harder: chosen as often as a short one, it would be missing from most samples and weigh ten rows in the
others. With p_i ~ LEAST + (1 - LEAST) min(r_i, LONGEST) for a row of r_i times the mean square, what a sample sums of
squares scatters less. No row has more than ``LEAST + (1 - LEAST) LONGEST`` times the probability, so only rows whose
number is below that are read.
"""

import numpy as np

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport uint64_t

from cmargin._core.rows._rows cimport Rows
from cmargin._core.rows._tiles cimport fetch_row, open_tile, row_source, row_tile, source_of, tile_row_squares
from cmargin._core.util._random cimport mixed, number_of
from cmargin._core.util._shapes cimport must_fit
from cmargin._core.util._team cimport share_out

cdef double LEAST = 0.1, LONGEST = 3.0
CHANCE = LEAST, LONGEST                  # the same for Python
cdef Py_ssize_t SLICE = 1 << 16          # rows between two moments at which Python is heard
cdef Py_ssize_t AHEAD = 8                # of those read, that are asked for before they are
cdef Py_ssize_t PIECE = 256              # of those read, that a thread takes at a time


cdef double chance_of(const row_source *source, Py_ssize_t i, const double *weight, double *scratch) noexcept nogil:
    # over that of a row of mean square 1, which is not quite 1
    cdef row_tile tile = open_tile(source, i, 1, scratch)
    cdef double r
    tile_row_squares(&tile, weight, &r)
    return LEAST + (1 - LEAST) * (r if r < LONGEST else LONGEST)         # NaN is long too


cdef struct chances_work:
    const row_source *source
    const Py_ssize_t *rows
    const double *weight
    double *scratch
    double *chance
    Py_ssize_t n, scratch_size


cdef void do_chances(void *of, Py_ssize_t piece, int thread) noexcept nogil:
    cdef const chances_work *by = <chances_work *> of
    cdef Py_ssize_t k
    for k in range(piece * PIECE, min(by.n, (piece + 1) * PIECE)):
        if k + AHEAD < by.n:
            fetch_row(by.source, by.rows[k + AHEAD])
        by.chance[k] = chance_of(by.source, by.rows[k], by.weight, by.scratch + thread * by.scratch_size)


cdef void chances_of(const row_source *source, const Py_ssize_t *rows, Py_ssize_t n, const double *weight,
                     double[:, ::1] scratch, double *chance) noexcept nogil:
    # chance (n,) = `chance_of` those rows, on as many threads as there are rows of scratch
    cdef chances_work work
    work.source, work.rows, work.weight, work.chance, work.n = source, rows, weight, chance, n
    work.scratch, work.scratch_size = &scratch[0, 0], scratch.shape[1]
    share_out(do_chances, &work, (n + PIECE - 1) // PIECE, <int> scratch.shape[0])


def chosen(Rows X, const double[::1] signed_weight, double positives, double negatives, uint64_t seed,
           Py_ssize_t first=0, const double[::1] weight=None, int n_threads=1):
    """Rows that are chosen, one of ``signed_weight`` > 0 with probability ``positives``, one < 0 with ``negatives``.

    Rows of weight 0 are never chosen. ``first`` is the place of the first row in the whole data. ``weight``
    (n_features,) makes r_i = sum_j weight_j x_ij^2, and the probabilities those of a row of r_i = 1; without it X may
    be None. The choice does not depend on ``n_threads``. Returns the rows, (n_chosen,) intp, ascending; the probability
    of each, at most 1; and how many rows had to be read for it.
    """
    cdef Py_ssize_t n = signed_weight.shape[0], found = 0, n_read = 0, lo, i, k, n_drawn
    cdef row_source source
    cdef const double *by_column = NULL
    cdef double[:, ::1] scratch = np.empty((n_threads, 1 if X is None else max(1, X.view.n_features)))
    cdef uint64_t start = mixed(seed)
    cdef double u, most, limit
    cdef Py_ssize_t[::1] rows = np.empty(n, np.intp), drawn = np.empty(min(n, SLICE), np.intp)
    cdef double[::1] chance = np.empty(n), number = np.empty(min(n, SLICE)), of_row = np.empty(min(n, SLICE))
    must_fit(X is not None or weight is None, "chosen")
    if X is not None:
        must_fit(n == X.view.n_rows and (weight is None or weight.shape[0] == X.view.n_features), "chosen")
        source = source_of(X)
    if weight is not None and weight.shape[0] > 0:
        by_column = &weight[0]
    most = LEAST + (1 - LEAST) * LONGEST if by_column != NULL else 1
    for lo in range(0, n, SLICE):
        PyErr_CheckSignals()
        with nogil:
            n_drawn = 0
            for i in range(lo, min(lo + SLICE, n)):
                limit = positives if signed_weight[i] > 0 else (negatives if signed_weight[i] < 0 else 0)
                u = number_of(start, first + i)
                if u < limit * most:
                    drawn[n_drawn], number[n_drawn] = i, u
                    n_drawn += 1
            if by_column != NULL and n_drawn > 0:
                n_read += n_drawn
                chances_of(&source, &drawn[0], n_drawn, by_column, scratch, &of_row[0])
            for k in range(n_drawn):
                i = drawn[k]
                limit = positives if signed_weight[i] > 0 else negatives
                if by_column != NULL:
                    limit *= of_row[k]
                if number[k] < limit:
                    rows[found], chance[found] = i, min(limit, 1.0)
                    found += 1
    return np.array(rows[:found]), np.array(chance[:found]), n_read


def numbers(uint64_t seed, Py_ssize_t n):
    """(n,) of the rows' own random numbers in [0, 1): for rows that are chosen elsewhere by the same rule."""
    cdef uint64_t start = mixed(seed)
    cdef double[::1] out = np.empty(n)
    cdef Py_ssize_t i
    with nogil:
        for i in range(n):
            out[i] = number_of(start, i)
    return np.asarray(out)


def sides_of(const double[::1] signed_weight):
    """How many numbers are positive and negative, and the sums of both: two pairs."""
    cdef Py_ssize_t i, positives = 0, negatives = 0
    cdef double above = 0, below = 0
    with nogil:
        for i in range(signed_weight.shape[0]):
            if signed_weight[i] > 0:
                positives += 1
                above += signed_weight[i]
            elif signed_weight[i] < 0:
                negatives += 1
                below -= signed_weight[i]
    return (positives, negatives), (above, below)
