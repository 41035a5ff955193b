"""What a gradient method does to the weights V = (W, b) of all problems once it knows the gradient.

Steps of a few hundred numbers each: in NumPy each is a dozen operations, between which other threads of Python come in.
"""

import numpy as np

from cython cimport floating
from libc.math cimport hypot, sqrt

from cmargin._core.util._shapes cimport must_fit


def mean_gradient(const double[:, :] sums, const double[::1] slope, double n, const double[:, ::1] V, double l2,
                  double l1, double width, bint intercept, double[:, ::1] out):
    """Gradient of the mean loss plus the penalty at V, (n_problems, n_features + 1), the intercept's last.

    ``sums`` (n_problems, n_features), of any strides, and ``slope`` (n_problems,) are sums of the gradients over ``n``
    rows, of W and of b; ``l2``, ``l1`` and ``width`` those of `solvers.first_order.penalty.Penalty`.
    """
    cdef Py_ssize_t c, j, k = V.shape[0], d = V.shape[1] - 1
    must_fit(sums.shape[1] == d and sums.shape[0] == k == slope.shape[0] and out.shape[0] == k
             and out.shape[1] == d + 1, "mean_gradient")
    for c in range(k):
        for j in range(d):
            out[c, j] = sums[c, j] / n + l2 * V[c, j]
            if l1 != 0:
                out[c, j] += l1 * V[c, j] / hypot(V[c, j], width)
        out[c, d] = slope[c] / n if intercept else 0


def penalties(const double[:, :] W, double l2, double l1, double width):
    """(l2/2) |w|^2 + l1 sum_j (sqrt(w_j^2 + width^2) - width) of every line of W (n_problems, n_features)."""
    cdef Py_ssize_t c, j
    cdef double square, size
    values = np.empty(W.shape[0])
    cdef double[::1] out = values
    for c in range(W.shape[0]):
        square = size = 0
        for j in range(W.shape[1]):
            square += W[c, j] * W[c, j]
            if l1 != 0:
                size += hypot(W[c, j], width) - width
        out[c] = l2 / 2 * square + l1 * size
    return values


def take_lower(const floating[:, :] W, const double[:] bias, const double[::1] objective, floating[:, :] best_W,
               double[::1] best_bias, double[::1] best):
    """Of the problems whose objective is below their ``best`` the weights, the intercept and the objective."""
    cdef Py_ssize_t c, j
    must_fit(W.shape[0] == bias.shape[0] == objective.shape[0] == best_W.shape[0] == best_bias.shape[0]
             == best.shape[0] and W.shape[1] == best_W.shape[1], "take_lower")
    for c in range(W.shape[0]):
        if objective[c] < best[c]:
            best_bias[c], best[c] = bias[c], objective[c]
            for j in range(W.shape[1]):
                best_W[c, j] = W[c, j]


def norms(const double[:, ::1] G, double[::1] out):
    """Euclidean norms of the lines of G (n_problems, n_features + 1)."""
    cdef Py_ssize_t c, j
    cdef double squares
    must_fit(out.shape[0] == G.shape[0], "norms")
    for c in range(G.shape[0]):
        squares = 0
        for j in range(G.shape[1]):
            squares += G[c, j] * G[c, j]
        out[c] = sqrt(squares)


def descent(double[:, ::1] V, const double[:, ::1] G, double step, const unsigned char[::1] still):
    """V - step G; problems that are ``still`` keep their weights."""
    cdef Py_ssize_t c, j
    check(V, G, V, V, still)
    for c in range(V.shape[0]):
        if not still[c]:
            for j in range(V.shape[1]):
                V[c, j] -= step * G[c, j]


def adam(double[:, ::1] V, const double[:, ::1] G, double[:, ::1] first, double[:, ::1] second, double beta_1,
         double beta_2, double epsilon, double t, double step, const unsigned char[::1] still):
    """Step ``t`` of Adam; problems that are ``still`` keep their weights, not their means."""
    cdef Py_ssize_t c, j
    cdef double of_first = 1 - beta_1**t, of_second = 1 - beta_2**t
    check(V, G, first, second, still)
    for c in range(V.shape[0]):
        for j in range(V.shape[1]):
            first[c, j] = beta_1 * first[c, j] + (1 - beta_1) * G[c, j]
            second[c, j] = beta_2 * second[c, j] + (1 - beta_2) * G[c, j] * G[c, j]
            if not still[c]:
                V[c, j] -= step * (first[c, j] / of_first) / (sqrt(second[c, j] / of_second) + epsilon)


def adadelta(double[:, ::1] V, const double[:, ::1] G, double[:, ::1] squares, double[:, ::1] moves, double rho,
             double epsilon, double step, const unsigned char[::1] still):
    """A step of AdaDelta; ``still`` as in `adam`."""
    cdef Py_ssize_t c, j
    cdef double move
    check(V, G, squares, moves, still)
    for c in range(V.shape[0]):
        for j in range(V.shape[1]):
            squares[c, j] = rho * squares[c, j] + (1 - rho) * G[c, j] * G[c, j]
            move = -sqrt(moves[c, j] + epsilon) / sqrt(squares[c, j] + epsilon) * G[c, j]
            moves[c, j] = rho * moves[c, j] + (1 - rho) * move * move
            if not still[c]:
                V[c, j] += step * move


def nesterov(double[:, ::1] V, const double[:, ::1] G, double[:, ::1] w, double[::1] t, double momentum, double step,
             const unsigned char[::1] still):
    """A step of Nesterov's; ``momentum`` below 0: from t (n_problems,), begun anew where the step went uphill."""
    cdef Py_ssize_t c, j
    cdef double uphill, moved, later, rho = momentum
    check(V, G, w, w, still)
    must_fit(t.shape[0] == V.shape[0], "nesterov")
    for c in range(V.shape[0]):
        if momentum < 0:
            uphill = 0
            for j in range(V.shape[1]):
                uphill += G[c, j] * (V[c, j] - step * G[c, j] - w[c, j])
            if uphill > 0:
                t[c] = 1
            later = (1 + sqrt(1 + 4 * t[c] * t[c])) / 2
            rho = (t[c] - 1) / later
            t[c] = later
        for j in range(V.shape[1]):
            moved = V[c, j] - step * G[c, j]
            if not still[c]:
                V[c, j] = moved + rho * (moved - w[c, j])
            w[c, j] = moved


cdef check(const double[:, ::1] V, const double[:, ::1] G, const double[:, ::1] a, const double[:, ::1] b,
           const unsigned char[::1] still):
    must_fit(G.shape[0] == a.shape[0] == b.shape[0] == still.shape[0] == V.shape[0]
             and G.shape[1] == a.shape[1] == b.shape[1] == V.shape[1], "a gradient rule")
