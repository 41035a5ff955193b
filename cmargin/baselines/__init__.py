"""Methods to compare with, under the conventions of the package's own estimators (doc/methods/baselines.md)."""

from cmargin.baselines.gradient_methods import (
    AdaDeltaClassifier,
    AdamClassifier,
    CGDescentClassifier,
    NesterovClassifier,
)
from cmargin.baselines.margin_distribution import CatoniHingeClassifier, ODMClassifier, ProjectionProfileClassifier
from cmargin.baselines.stochastic import BalancedSGDClassifier, PreconditionedSGDClassifier, SGDQNClassifier
from cmargin.pursuit import PegasosClassifier

__all__ = [
    "AdaDeltaClassifier",
    "AdamClassifier",
    "BalancedSGDClassifier",
    "CGDescentClassifier",
    "CatoniHingeClassifier",
    "NesterovClassifier",
    "ODMClassifier",
    "PegasosClassifier",
    "PreconditionedSGDClassifier",
    "ProjectionProfileClassifier",
    "SGDQNClassifier",
]
