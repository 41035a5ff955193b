"""The hinge's optimum as one row is left out: a path of vertices, each a small system away from the first one.

At the optimum independent rows lie at the kink, the slots: their margins stay 1, and their dual variables make up for
the row whose own falls from its value to 0. Until one is at a limit and its margin moves, or another row comes to the
kink, all is linear (Cauwenberghs and Poggio 2000). With K the matrix of the conditions of the slots, all that is asked
of a direction are products of columns by K^-1, of rows g as (g, 0) and of slots j as (0, e_j):

    phi = Z' K^-1 Z.

Rows that came to the kink, and slots that left it, are the border of K, whose Schur complement is a part of phi; so a
direction costs a system of as many unknowns as the border has, and one sweep over its rows of phi.
"""

import numpy as np

from libc.math cimport INFINITY, fabs
from libc.string cimport memcpy

from cmargin._core.util._simd cimport row_axpy

cdef enum:
    BORDER = 128                    # Rows and slots by which a vertex may differ from the first one.
    VERTICES = 400                  # Vertices of a path, at most.

cdef double NEGLIGIBLE = 1e-12      # Part of the largest possible rate below which a rate is rounding.


cdef struct base_vertex:            # rows near the kink, the n_slots slots first
    const double *phi               # (n, n)
    const double *x                 # (n,) dual variable of a slot, else margin
    const double *lowest            # (n,) limits of x
    const double *highest
    const double *weight            # (n,) highest dual variable
    const double *pinned            # (n,) dual variable of a row at the kink that depends on the slots
    Py_ssize_t n, n_slots
    double steepest                 # largest square of a row


cdef struct path:                   # of one row
    double *x                       # (n,) what may change: the dual variable of a row at the kink, else its margin
    double *lowest
    double *highest
    double *rate
    const double *column            # (n,) of phi
    double t                        # dual variable that is left
    Py_ssize_t place                # of the row itself, or -1
    Py_ssize_t border[BORDER]
    double y[BORDER]
    double system[BORDER * (BORDER + 1)]
    int n_border


cdef bint at_kink(const base_vertex *base, const path *at, Py_ssize_t p) noexcept nogil:
    cdef int e
    for e in range(at.n_border):
        if at.border[e] == p:
            return p >= base.n_slots
    return p < base.n_slots


cdef bint solve(path *at) noexcept nogil:
    # y = system^-1 of its last column, by Gaussian elimination with the largest pivots
    cdef int k = at.n_border, w = k + 1, i, j, c, most
    cdef double *S = at.system
    cdef double f
    for c in range(k):
        most = c
        for i in range(c + 1, k):
            if fabs(S[i * w + c]) > fabs(S[most * w + c]):
                most = i
        if not fabs(S[most * w + c]) > 0:
            return False
        if most != c:
            for j in range(c, w):
                S[c * w + j], S[most * w + j] = S[most * w + j], S[c * w + j]
        for i in range(c + 1, k):
            f = S[i * w + c] / S[c * w + c]
            if f != 0:
                for j in range(c + 1, w):
                    S[i * w + j] -= f * S[c * w + j]
    for i in range(k - 1, -1, -1):
        f = S[i * w + k]
        for j in range(i + 1, k):
            f -= S[i * w + j] * at.y[j]
        at.y[i] = f / S[i * w + i]
    return True


cdef bint find_rates(const base_vertex *base, path *at, double falls) noexcept nogil:
    # the rates as the row's dual variable falls by ``falls``, 1 or -1
    cdef int k = at.n_border, e, f
    cdef Py_ssize_t p, n = base.n
    cdef const double *row
    for e in range(k):
        row = base.phi + at.border[e] * n
        for f in range(k):
            at.system[e * (k + 1) + f] = row[at.border[f]]
        at.system[e * (k + 1) + k] = falls * at.column[at.border[e]]
    if not solve(at):
        return False
    for p in range(n):
        at.rate[p] = -falls * at.column[p]
    for e in range(k):
        row_axpy(at.y[e], base.phi + at.border[e] * n, at.rate, n)
    for p in range(base.n_slots):
        at.rate[p] = -at.rate[p]
    for e in range(k):
        at.rate[at.border[e]] = at.y[e]
    return True


cdef Py_ssize_t next_limit(const base_vertex *base, const path *at, double *step) noexcept nogil:
    # how far the path goes on, and the place that is then at a limit, or -1
    cdef Py_ssize_t p, hit = -1
    cdef double rate, there
    for p in range(base.n):
        rate = at.rate[p]
        there = at.x[p] + step[0] * rate
        if (there > at.highest[p] and rate > 0) or (there < at.lowest[p] and rate < 0):
            if fabs(rate) > NEGLIGIBLE * (1 if at_kink(base, at, p) else base.steepest):
                step[0], hit = max(((at.highest[p] if rate > 0 else at.lowest[p]) - at.x[p]) / rate, 0), p
    return hit


cdef bint change_side(const base_vertex *base, path *at, Py_ssize_t p) noexcept nogil:
    # a row at the kink whose dual variable is at a limit leaves it, one whose margin is 1 comes to it
    cdef bint leaves = at_kink(base, at, p)
    cdef int e
    if leaves:
        if at.rate[p] < 0:
            at.lowest[p], at.highest[p] = 1, INFINITY
        else:
            at.lowest[p], at.highest[p] = -INFINITY, 1
        at.x[p] = 1
    else:
        if at.lowest[p] == at.highest[p]:
            at.x[p] = base.pinned[p]
        else:
            at.x[p] = base.weight[p] if at.highest[p] == 1 else 0
        at.lowest[p], at.highest[p] = 0, base.weight[p]
    if leaves == (p < base.n_slots):
        if at.n_border == BORDER:
            return False
        at.border[at.n_border] = p
        at.n_border += 1
        return True
    for e in range(at.n_border):
        if at.border[e] == p:
            at.n_border -= 1
            at.border[e] = at.border[at.n_border]
            break
    return True


cdef void start(const base_vertex *base, path *at) noexcept nogil:
    memcpy(at.x, base.x, base.n * sizeof(double))
    memcpy(at.lowest, base.lowest, base.n * sizeof(double))
    memcpy(at.highest, base.highest, base.n * sizeof(double))
    at.n_border = 0
    if at.place >= 0:                # the row itself has no limits
        at.lowest[at.place], at.highest[at.place] = -INFINITY, INFINITY
        if at.place < base.n_slots:
            at.border[0], at.n_border, at.x[at.place] = at.place, 1, 1


cdef bint follow_to(const base_vertex *base, path *at, double end) noexcept nogil:
    cdef Py_ssize_t hit
    cdef int _
    cdef double step, falls = 1 if at.t > end else -1
    for _ in range(VERTICES):
        if not find_rates(base, at, falls):
            return False
        step = fabs(at.t - end)
        hit = next_limit(base, at, &step)
        row_axpy(step, at.rate, at.x, base.n)
        at.t -= falls * step
        if hit < 0:
            return True
        if not change_side(base, at, hit):
            return False
    return False


cdef void finish(const base_vertex *base, const path *at, double *a, double *moved) noexcept nogil:
    # dual variables of all rows, and how far the margins of slots are from 1
    cdef Py_ssize_t p
    for p in range(base.n_slots):
        moved[p] = 0
    for p in range(base.n):
        if p == at.place:
            a[p] = 0
        elif at_kink(base, at, p):
            a[p] = min(max(at.x[p], 0), base.weight[p])
        elif at.lowest[p] == at.highest[p]:
            a[p] = base.pinned[p]
        else:
            a[p] = base.weight[p] if at.highest[p] == 1 else 0
        if p < base.n_slots and not at_kink(base, at, p):
            moved[p] = at.x[p] - 1


def follow(const double[:, ::1] phi, const double[::1] x, const double[::1] lowest, const double[::1] highest,
           const double[::1] weight, const double[::1] pinned, Py_ssize_t n_slots, double steepest,
           const double[:, ::1] columns, const Py_ssize_t[::1] places, const double[::1] begin,
           const double[:, ::1] ends, double[:, :, ::1] a, double[:, :, ::1] moved, unsigned char[:, ::1] reached):
    """Dual variables of all rows near the kink, and margins of slots less 1, where that of a row is each of its ends.

    phi (n, n) and the arrays (n,) are `base_vertex`. Of the k rows that are left out: ``columns`` (k, n) of phi,
    ``places`` among the n or -1, ``begin`` (k,) and ``ends`` (k, n_ends) of their dual variable. Written:
    ``a`` (n_ends, k, n), ``moved`` (n_ends, k, n_slots), and whether an end was ``reached``.
    """
    cdef Py_ssize_t n = phi.shape[0], i, e
    cdef double[:, ::1] scratch = np.empty((4, n))
    cdef base_vertex base
    cdef path at
    cdef bint well
    base.phi, base.x, base.lowest, base.highest = &phi[0, 0], &x[0], &lowest[0], &highest[0]
    base.weight, base.pinned, base.n, base.n_slots, base.steepest = &weight[0], &pinned[0], n, n_slots, steepest
    at.x, at.lowest, at.highest, at.rate = &scratch[0, 0], &scratch[1, 0], &scratch[2, 0], &scratch[3, 0]
    with nogil:
        for i in range(columns.shape[0]):
            at.column, at.place, at.t, well = &columns[i, 0], places[i], begin[i], True
            start(&base, &at)
            for e in range(ends.shape[1]):
                well = well and follow_to(&base, &at, ends[i, e])
                reached[e, i] = well
                finish(&base, &at, &a[e, i, 0], &moved[e, i, 0])
