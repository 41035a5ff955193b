"""Gradient methods with a memory: Nesterov's acceleration, AdaDelta, Adam; on all rows a step, or on mini-batches.

All one-vs-rest problems go through a pass together. A rule moves V = (W, b), one line a problem, by the gradient
there. Mini-batch j of B is made of the rows j, j + B, j + 2 B, ...: fixed for the whole fit, spread over the data, so
that sorted labels do no harm, and read without an index. Their order is drawn anew for every pass.
"""


import numpy as np

from cmargin._core.losses._losses import LARGEST_CURVATURE
from cmargin._runtime.blas_threads import single_threaded_blas
from cmargin.solvers.first_order.margin_pursuit import GradientDescent, loss_of
from cmargin.solvers.low_rank.low_rank_newton import constant_score

SAFETY = 1.1                 # the largest eigenvalue is found from below


def largest_curvature(loss, width):
    """Bound of F'' over all margins."""
    return 1 / (2 * width) if loss == "smoothed_hinge" else LARGEST_CURVATURE[loss]


def best_constant(loss, blocks):
    """(n_problems,) intercept that is best for w = 0, by weight; no further out than a share of 1e-9 calls for."""
    weight = np.ones(blocks.n_rows) if blocks.weight is None else blocks.weight
    share = blocks.Y.T @ weight / weight.sum()
    if loss == "smoothed_hinge":
        return np.sign(2 * share - 1)
    return np.clip(constant_score(loss, share), *constant_score("logistic", np.array([0.0, 1.0])))


class Nesterov:
    """w_{k+1} = v_k - eta g(v_k),  v_{k+1} = w_{k+1} + rho_k (w_{k+1} - w_k)                 (Nesterov 1983)

    ``momentum`` None: rho_k = (t_k - 1) / t_{k+1}, t_{k+1} = (1 + sqrt(1 + 4 t_k^2)) / 2, t begun anew for a problem
    where <g(v_k), w_{k+1} - w_k> > 0 (O'Donoghue and Candès 2015); else the number for every step.
    """

    def __init__(self, V, momentum=None):
        self.w, self.momentum = V.copy(), momentum
        self.t = np.ones(len(V))

    def move(self, V, G, step):
        w = V - step * G
        moved = w - self.w
        if self.momentum is None:
            self.t[np.einsum("cj,cj->c", G, moved) > 0] = 1
            t = (1 + np.sqrt(1 + 4 * self.t**2)) / 2
            rho = ((self.t - 1) / t)[:, None]
            self.t = t
        else:
            rho = self.momentum
        V[:] = w + rho * moved
        self.w = w


class AdaDelta:
    """v <- v - sqrt(E[D^2] + eps) / sqrt(E[g^2] + eps) g, the means decaying by rho       (Zeiler 2012, Algorithm 1)"""

    def __init__(self, V, decay, epsilon):
        self.squares, self.moves = np.zeros_like(V), np.zeros_like(V)
        self.decay, self.epsilon = decay, epsilon

    def move(self, V, G, step):
        rho = self.decay
        self.squares = rho * self.squares + (1 - rho) * G**2
        D = -np.sqrt(self.moves + self.epsilon) / np.sqrt(self.squares + self.epsilon) * G
        self.moves = rho * self.moves + (1 - rho) * D**2
        V += step * D


class Adam:
    """v <- v - eta m^ / (sqrt(s^) + eps), means of g and g^2 corrected for their start  (Kingma and Ba, Algorithm 1)"""

    def __init__(self, V, beta_1, beta_2, epsilon):
        self.first, self.second = np.zeros_like(V), np.zeros_like(V)
        self.beta_1, self.beta_2, self.epsilon, self.t = beta_1, beta_2, epsilon, 0

    def move(self, V, G, step):
        self.t += 1
        self.first = self.beta_1 * self.first + (1 - self.beta_1) * G
        self.second = self.beta_2 * self.second + (1 - self.beta_2) * G**2
        mean, square = self.first / (1 - self.beta_1**self.t), self.second / (1 - self.beta_2**self.t)
        V -= step * mean / (np.sqrt(square) + self.epsilon)


class RuledDescent(GradientDescent):
    """Passes of one rule.

    Parameters
    ----------
    blocks, settings, start, trace : as in `GradientDescent`
        ``settings.level`` is the width of the smoothed hinge; ``step_size`` None: one over the largest curvature.
    make_rule : callable
        V -> rule.
    batch_size : int or None
        Rows of a step; None: all, and the gradient of a step then is the one that ends the pass before.
    entropy : int
        Seeds the order of the batches.
    """

    def __init__(self, blocks, settings, start, trace, make_rule, batch_size=None, entropy=0):
        super().__init__(blocks, settings, start, trace)
        self.V = np.column_stack([self.W, self.bias])
        self.W, self.bias = self.V[:, :-1], self.V[:, -1]            # views: a rule moves both
        self.rule, self.entropy = make_rule(self.V), entropy
        self.n_batches = 1 if batch_size is None else -(-blocks.n_rows // batch_size)

    def longest_step(self):
        s = self.settings
        top = SAFETY * largest_curvature(s.loss, s.level) * self.blocks.largest_curvature(s.fit_intercept)
        top += s.penalty.largest_curvature
        self.fit.reads += 8
        return 1 / top if top > 0 else 1.0

    def one_pass(self):
        still = self.fit.gradient_norm <= self.settings.tol
        if self.n_batches == 1:
            self.take_step(np.column_stack([self.G, self.g]), still)
            self.gradients()
        else:
            self.batches(still)

    def take_step(self, G, still):
        held = self.V[still]
        self.rule.move(self.V, G, self.step)
        self.V[still] = held                     # a problem that has converged stays where it is

    @single_threaded_blas()
    def batches(self, still):
        s, n = self.settings, self.blocks.n_rows
        loss = loss_of(s, self.scale)
        order = np.random.default_rng(np.random.SeedSequence([self.entropy, self.fit.passes])).permutation
        for j in order(self.n_batches):
            rows = slice(int(j), n, self.n_batches)
            size = len(range(n)[rows])
            _, G, g = self.blocks.sums_of(rows, self.W, self.bias, loss)
            self.take_step(np.column_stack([G / size + s.penalty.gradient(self.W), g / size * s.fit_intercept]), still)
            self.clock.watch()
        self.fit.reads += 1

    def look(self):
        if self.n_batches > 1:
            self.gradients()
        return super().look()
