"""`fit` of Dask collections: what partitions must agree on before they are trained on, by tasks on their workers.

The estimator is on the client's side, and so is the driver; workers see a copy of it, to check their rows by.
"""

from sklearn.base import clone
from sklearn.utils.validation import _check_feature_names

from cmargin._core.util._openmp import effective_n_threads
from cmargin._estimators.agreement import (
    DRIVER_DECIDES,
    IN_PARTITIONS,
    balanced,
    checked,
    compared,
    weighed,
)
from cmargin._runtime.checkpoint import NO_KEEPER
from cmargin.data.failure import Failure, first_failure
from cmargin.data.open import open_rows
from cmargin.data.shards.dask.collections import open_partitions
from cmargin.data.shards.dask.tasks import Labelled, Several, says_failure


def train(estimator, X, y, sample_weight, begin):
    """`LinearClassifier._train` on all partitions together."""
    if not estimator._takes_workers:
        raise ValueError(f"{type(estimator).__name__} does not take Dask collections yet, as SmSVMClassifier, "
                         "MarginPursuitClassifier, SLNDClassifier and BSNClassifier do; give X.compute().")
    estimator._check_parameters()
    estimator._refuse_over_places("with Dask collections")
    if estimator.checkpoint is not None:
        raise ValueError("checkpoint= does not go with Dask collections yet; a worker that dies loses nothing there.")
    if y is None:
        raise ValueError(f"This {type(estimator).__name__} estimator requires y to be passed, but the target y is "
                         "None.")
    home = open_partitions(X, y, sample_weight=sample_weight)
    try:
        agree(estimator, home)
        _check_feature_names(estimator, getattr(X, "_meta", None), reset=True)
        estimator.n_features_in_ = home.n_features
        return estimator._train(home, None, begin, NO_KEEPER)
    finally:
        home.let_go()


def agree(estimator, home):
    """Let ``home`` know what its partitions say of labels and weights."""
    parameters = estimator.get_params(deep=False).items()
    there = type(estimator)(**{name: None if name in DRIVER_DECIDES else value for name, value in parameters})
    cluster = home.cluster

    def told(futures):
        every = home.by_place(cluster.told(futures))
        cluster.forget(futures)
        failure = first_failure(every, IN_PARTITIONS[1])
        if failure is not None:
            raise failure.error()
        return every

    def in_groups(name, task, *columns):
        return told(cluster.everywhere(name, Several(task), *home.in_groups(*columns)))

    read = home.is_read
    home.form_groups()
    agreed = compared(there, in_groups("check", card_of, *home.beside(home.weights, there)), IN_PARTITIONS)
    if not read:                                     # rows were nowhere until then
        home.form_groups(anew=True)
    weighed_there = cluster.everywhere("weigh", weigh, *home.beside(home.weights, there, agreed))
    home.agreed = balanced(agreed, in_groups("sums-of-weigh", sums_of, weighed_there))
    home.labelled = cluster.everywhere("label", label, weighed_there, *home.beside(home.agreed)[2:],
                                       list(range(home.n_places)))
    home.n_jobs, home.n_threads = estimator.n_jobs, effective_n_threads(estimator.n_jobs)
    cluster.forget(weighed_there)                    # once the labels are made of them


@says_failure
def card_of(X, y, sample_weight, estimator):
    """A `Card` of rows that are read as they are from now on."""
    _, card = checked(clone(estimator), X, y, sample_weight)
    open_rows(X)
    return card


@says_failure
def weigh(X, y, sample_weight, estimator, agreed):
    """Labels, weights up to a factor, and their sums."""
    (_, labels, weight), sums = weighed(estimator, open_rows(X, y), sample_weight, agreed, False)
    return labels, weight, sums


@says_failure
def sums_of(weighed_there):
    return weighed_there if isinstance(weighed_there, Failure) else weighed_there[2]


def label(weighed_there, agreed, place):
    labels, weight, _ = weighed_there
    return Labelled(labels, weight * agreed.factor, agreed.first[place], place)
