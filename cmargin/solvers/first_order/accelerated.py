"""Gradient methods with a memory: Nesterov's acceleration, AdaDelta, Adam; on all rows a step, or on mini-batches.

All one-vs-rest problems go through a pass together. A rule moves V = (W, b), one line a problem, by the gradient
there. Mini-batch j of B is made of the rows j, j + B, j + 2 B, ...: fixed for the whole fit, spread over the data, so
that sorted labels do no harm, and read without an index. Their order is drawn anew for every pass.
"""


import numpy as np

from cmargin._core.losses._losses import LARGEST_CURVATURE
from cmargin._core.sgd import _gradient_rules
from cmargin._runtime.blas_threads import single_threaded_blas
from cmargin.solvers.first_order.margin_pursuit import GradientDescent, loss_of
from cmargin.solvers.first_order.penalty import L1_WIDTH
from cmargin.solvers.per_class import constant_score

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
        self.w, self.momentum = V.copy(), -1.0 if momentum is None else float(momentum)
        self.t = np.ones(len(V))

    def move(self, V, G, step, still):
        _gradient_rules.nesterov(V, G, self.w, self.t, self.momentum, step, still)


class AdaDelta:
    """v <- v - sqrt(E[D^2] + eps) / sqrt(E[g^2] + eps) g, the means decaying by rho       (Zeiler 2012, Algorithm 1)"""

    def __init__(self, V, decay, epsilon):
        self.squares, self.moves = np.zeros_like(V), np.zeros_like(V)
        self.decay, self.epsilon = decay, epsilon

    def move(self, V, G, step, still):
        _gradient_rules.adadelta(V, G, self.squares, self.moves, self.decay, self.epsilon, step, still)


class Adam:
    """v <- v - eta m^ / (sqrt(s^) + eps), means of g and g^2 corrected for their start  (Kingma and Ba, Algorithm 1)"""

    def __init__(self, V, beta_1, beta_2, epsilon):
        self.first, self.second = np.zeros_like(V), np.zeros_like(V)
        self.beta_1, self.beta_2, self.epsilon, self.t = beta_1, beta_2, epsilon, 0

    def move(self, V, G, step, still):
        self.t += 1
        _gradient_rules.adam(V, G, self.first, self.second, self.beta_1, self.beta_2, self.epsilon, self.t, step, still)


class RuledDescent(GradientDescent):
    """Passes of the rule that ``make_rule(V)`` makes.

    ``settings.level`` is the width of the smoothed hinge; ``step_size`` None: one over the largest curvature.
    ``batch_size``: rows of a step; None: all, and the gradient of a step then is the one that ends the pass before.
    ``entropy`` seeds the order of the batches.
    """

    def __init__(self, blocks, settings, start, trace, make_rule, batch_size=None, entropy=0):
        super().__init__(blocks, settings, start, trace)
        self.rule, self.entropy = make_rule(self.V), entropy
        self.n_batches = 1 if batch_size is None else -(-blocks.n_rows // batch_size)

    def longest_step(self):
        s = self.settings
        top = SAFETY * largest_curvature(s.loss, s.level) * self.blocks.largest_curvature(s.fit_intercept)
        top += s.penalty.largest_curvature
        self.fit.reads += 8
        return 1 / top if top > 0 else 1.0

    def one_pass(self):
        if self.n_batches == 1:
            super().one_pass()
        else:
            self.batches((self.fit.gradient_norm <= self.settings.tol).astype(np.uint8))

    def move(self, still):
        self.rule.move(self.V, self.G, self.step, still)

    @single_threaded_blas()
    def batches(self, still):
        s, n = self.settings, self.blocks.n_rows
        loss, G_here = loss_of(s, self.scale), np.empty_like(self.V)
        order = np.random.default_rng(np.random.SeedSequence([self.entropy, self.fit.passes])).permutation
        for j in order(self.n_batches):
            rows = slice(int(j), n, self.n_batches)
            size = len(range(n)[rows])
            _, G, g = self.blocks.sums_of(rows, self.W, self.bias, loss)
            _gradient_rules.mean_gradient(G, g, size, self.V, s.l2, s.l1, L1_WIDTH, s.fit_intercept, G_here)
            self.rule.move(self.V, G_here, self.step, still)
            self.clock.watch()
        self.fit.reads += 1

    def evaluate(self):
        if self.n_batches > 1:
            self.gradients()
        return super().evaluate()
