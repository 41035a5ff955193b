"""`fit` of Dask collections: what partitions must agree on before they are trained on, by tasks on their workers.

The estimator is on the client's side, and so is the driver; workers see a copy of it, to check their rows by.
"""

from sklearn.base import clone
from sklearn.utils.validation import _check_feature_names

from cmargin._estimators.agreement import (
    DRIVER_DECIDES,
    IN_PARTITIONS,
    balanced,
    checked,
    compared,
    first_failure,
    weighed,
)
from cmargin.homes.dask.collections import beside, open_partitions
from cmargin.homes.dask.tasks import Labelled, says_failure
from cmargin.homes.open import open_rows


def train(estimator, X, y, sample_weight, begin):
    """`LinearClassifier._train` on all partitions together."""
    if not estimator._takes_workers:
        raise ValueError(f"{type(estimator).__name__} does not take Dask collections yet, as SmSVMClassifier and "
                         "MarginPursuitClassifier do; give X.compute().")
    estimator._check_parameters()
    estimator._refuse_over_places("with Dask collections")
    home = open_partitions(X, y)
    try:
        agree(estimator, home, sample_weight)
        _check_feature_names(estimator, getattr(X, "_meta", None), reset=True)
        estimator.n_features_in_ = home.n_features
        return estimator._train(home, None, begin)
    finally:
        home.let_go()


def agree(estimator, home, sample_weight):
    """Let ``home`` know what its partitions say of labels and weights."""
    there = clone(estimator)
    there.set_params(**{name: None for name in DRIVER_DECIDES if name in there.get_params()})
    places = range(len(home.X))
    weights = [None for _ in places] if sample_weight is None else beside(home, sample_weight, "sample_weight")

    def ask(name, task, *more):
        columns = (home.X, home.labels, weights, *([one for _ in places] for one in (there, *more)))
        told = home.cluster.told(home.cluster.everywhere(name, task, *columns))
        failure = first_failure(told, IN_PARTITIONS[1])
        if failure is not None:
            raise failure.error()
        return told

    agreed = compared(there, ask("check", card_of), IN_PARTITIONS)
    home.agreed, home.n_jobs = balanced(agreed, ask("weigh", sums_of_weights, agreed)), estimator.n_jobs
    home.labelled = home.cluster.everywhere(
        "labels", labelled, home.X, home.labels, weights, *([one for _ in places] for one in (there, agreed)), places)


@says_failure
def card_of(X, y, sample_weight, estimator):
    """A `Card` of rows that are read as they are from now on."""
    _, card = checked(clone(estimator), X, y, sample_weight)
    open_rows(X)
    return card


def weighed_there(X, y, sample_weight, estimator, agreed):
    return weighed(estimator, open_rows(X, y), sample_weight, agreed, False)


@says_failure
def sums_of_weights(*given):
    return weighed_there(*given)[1]


def labelled(X, y, sample_weight, estimator, agreed, place):
    (_, labels, weight), _ = weighed_there(X, y, sample_weight, estimator, agreed)
    return Labelled(labels, weight * agreed.factor, agreed.first[place], place)
