"""Targets of a regression in shards: what every place says of its own, and where the problems of all begin.

A centre (`targets.centre_of`) is a quantile of all targets. Every place tells a few of its own, each with the weight of
the rows that it stands for, and of these it is found: any number near will do, as it only says where a fit begins, and
in which unit it is solved. Where one constant costs nothing the least and the largest target say so, exactly.
"""

from dataclasses import dataclass, field

import numpy as np

from cmargin._estimators.labels import in_range
from cmargin._estimators.targets import (
    Target,
    TargetProblems,
    Targets,
    centre_of,
    check_several,
    columns_of_targets,
    half_distances,
)

TOLD = 64                      # quantiles of a place's targets
FAINT = 1e-9                   # what the least and the largest weigh, beside all, where they are told besides


@dataclass
class Told:
    """Of the targets of one place."""

    points: np.ndarray         # (n_columns, k) targets, ascending, and what they weigh beside the heaviest row
    weights: np.ndarray


def told_of(y, weight):
    """What the targets are, in words, and `Told`; ``weight`` (n,) of the rows or None."""
    columns = columns_of_targets(y)
    weight = np.ones(columns.shape[1]) if weight is None else in_range(weight)
    points, weights = zip(*(_some_of(column, weight) for column in columns), strict=True)
    what = "numbers" if np.ndim(y) == 1 else f"columns of numbers, {len(columns)} of them"
    return what, Told(np.stack(points), np.stack(weights))


def _some_of(column, weight):
    """Targets that stand for all of positive weight, ascending, and weights."""
    order = np.argsort(column, kind="stable")
    column, weight = column[order], weight[order]
    if len(column) <= TOLD:
        return column, weight
    below = np.cumsum(weight)
    if not below[-1] > 0:
        return column[:1], weight[:1]
    at = np.searchsorted(below, (np.arange(TOLD) + 0.5) / TOLD * below[-1])
    counted = column[weight > 0]
    points = np.concatenate([counted[:1], column[np.minimum(at, len(column) - 1)], counted[-1:]])
    each = below[-1] / TOLD
    return points, np.concatenate([[FAINT * each], np.full(TOLD, each), [FAINT * each]])


@dataclass
class AgreedTargets(TargetProblems):
    """As `shards.Agreed`, of targets."""

    losses: list
    flat: bool
    centres: list                                    # of every problem
    dtype: str
    layout: str
    heaviest: float | None
    n_rows: int
    entries: int
    sums: list                                       # of every place's card
    problems: list = field(default_factory=list)     # once all places have said how far their targets are from these
    total_weight: float = 0.0
    first: list = field(default_factory=list)
    factor: float = 1.0

    multilabel = False

    def signed_weight(self, c, weights):
        """The number of the problem: every place knows its targets by that."""
        return c

    def offset_of(self, c):
        """None: places have the targets."""
        return None

    # ------------------------------------------------------------ what every place does

    def labels_here(self, y):
        """`Targets` of a place, whose problems are not known yet; ``y`` None: it has no rows."""
        n_columns = len(self.centres) // len(self.losses)
        return Targets(np.zeros((n_columns, 0)) if y is None else columns_of_targets(y), self.centres, self.flat)

    def sums_of(self, targets, weight):
        """Sums of half the distances to the centres."""
        with np.errstate(over="ignore"):                 # whoever adds them up refuses what is infinite
            return np.array([half_distances(targets.column(c), centre) @ weight
                             for c, centre in enumerate(self.centres)])

    def labels_there(self, targets):
        """With the problems, once these are known."""
        return Targets(targets.columns, self.problems, self.flat)

    # ------------------------------------------------------------ what is made of it

    def learn(self, sums, total):
        """``sums``: of all places; ``total``: what all rows weigh."""
        with np.errstate(over="ignore"):
            spreads = sum(sums) / total
        losses = self.losses * (len(self.centres) // len(self.losses))
        self.problems = [Target(loss, centre, float(spread))
                         for loss, centre, spread in zip(losses, self.centres, spreads, strict=True)]


def agreed_targets(estimator, cards, heaviest, **common):
    """`AgreedTargets` of the cards of places with rows, whose targets are of one kind."""
    several, losses = estimator._several, estimator._losses()
    n_columns = len(cards[0].told.points)
    check_several(several, n_columns)
    free, centres = estimator.fit_intercept and not estimator.penalize_intercept, []
    powers = [int(np.frexp(card.heaviest)[1] - np.frexp(heaviest)[1]) if heaviest and card.heaviest else 0
              for card in cards]
    for k in range(n_columns):
        points = np.concatenate([card.told.points[k] for card in cards])
        weights = np.concatenate([np.ldexp(card.told.weights[k], power)
                                  for card, power in zip(cards, powers, strict=True)])
        centres += [centre_of(points, loss, weights if weights.any() else None) if free else 0.0 for loss in losses]
    return AgreedTargets(losses, cards[0].kind == "numbers" and not several, centres, heaviest=heaviest, **common)
