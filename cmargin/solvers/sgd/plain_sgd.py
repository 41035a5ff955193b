"""SGD as SLND with another H*: the identity, or a preconditioner of the rows that is made once (SLND, BSN section 5).

    w <- w + eta s_i y_i p_i x_i,   p_i = -F'(y_i h(x_i))

on the same balanced lists, with the same step rule, mean and history, so that what differs between the methods is the
preconditioner alone. Preconditioning the rows and training on them by SGD is, in the coordinates of the rows as they
were, a step along H* x_i (doc/methods/slnd.md, "Whitened coordinates").
"""

from dataclasses import replace

import numpy as np

from cmargin.solvers import cost
from cmargin.solvers.sgd.low_rank import LowRankInverse
from cmargin.solvers.sgd.low_rank_newton import Run


def identity(source, subset, weight=None):
    """H* = I: a scaled tail over an empty leading part; the mean square from the rows of ``subset``."""
    d = source.n_features
    inverse = LowRankInverse(np.zeros((1, d, 1), source.dtype), np.zeros((1, 1)), np.ones(1), np.ones(1), np.ones(1),
                             source.sparse)
    inverse.mean_square = source.mean_square(inverse, subset, weight)
    return inverse


class PlainRun(Run):
    """SGD: rows are read as they are, dense ones in C order without a copy."""

    def _invert(self, scores_from):
        source, m = self.source, min(cost.MOMENT_ROWS, self.source.n_rows)
        subset = np.sort(self.rng.choice(source.n_rows, m, replace=False)).astype(np.int64)
        self.fit.reads += m / source.n_rows
        weight = None if self.row_weight is None else self.row_weight[subset]
        if weight is not None and not weight.sum() > 0:
            weight = None
        return identity(source, subset, weight), np.zeros(0)

    def _whiten(self):
        return self.source.as_they_are()


class DiagonalRun(PlainRun):
    """SGD on columns over their root mean square: H* = diag(1 / mean x_j^2)."""

    def prepare(self):
        self.column_scale = self.clock.timed("hessian", self.source.column_scale, self.row_weight)
        self.clock.timed("whiten", self._scale_rows)
        self.fit.reads += 2
        if self.start.W is not None:
            self.start = replace(self.start, W=(self.start.W * self.column_scale).astype(self.source.dtype))
        super().prepare()

    def _scale_rows(self):
        self.source = self.runner.source = self.source.over_columns(self.column_scale)
        self.source.between_chunks = self.clock.watch

    def _share_again(self):
        super()._share_again()
        self._scale_rows()

    def _linear(self):
        W, bias = super()._linear()
        return (W / self.column_scale).astype(W.dtype), bias


class WhitenRun(Run):
    """SGD on rows whitened by every direction with an eigenvalue of at least 1e-4 of the largest."""

    def __init__(self, source, lists, row_weight, settings, entropy, start):
        d = source.n_features
        samples = settings.hessian_samples or min(source.n_rows, max(1000, 20 * d))
        settings = replace(settings, rank=d, tail="drop", curvature="covariance", hessian_samples=samples)
        super().__init__(source, lists, row_weight, settings, entropy, start)

    def _invert(self, scores_from):
        inverse, spectrum = super()._invert(None)
        d = inverse.eigenvalues[0]
        kept = max(1, int(np.sum(d >= cost.DROPPED_FLOOR * d[0])))
        inverse = replace(inverse, eigenvectors=np.ascontiguousarray(inverse.eigenvectors[:, :, :kept]),
                          eigenvalues=inverse.eigenvalues[:, :kept])
        inverse.mean_square = np.array([float(np.sum(d[:kept] > 0))])      # of z'z over the rows behind H: 1 for each
        return inverse, spectrum
