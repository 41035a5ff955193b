"""The fits of one fold: along the paths of the grid, each from the last one's weights, on a copy of the fold's rows."""

from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

from cmargin._estimators.search.folds import NEVER, constant, of_all_classes
from cmargin._estimators.search.held_out import rows_of
from cmargin.data.open_here import source_of

WARM = ("coef_", "intercept_", "classes_", "n_features_in_", "_multilabel")        # what the next fit of a path needs


def reads_of(model):
    """Reads of the data by all problems of a fit."""
    return float(np.sum(getattr(model, "n_passes_per_class_", model.n_passes_)))


@dataclass(frozen=True)
class Posed:
    """What all folds share. ``codes``: places of the labels y among ``classes``, None for an indicator."""

    estimator: Any
    X: Any
    y: Any
    classes: np.ndarray
    codes: Any
    weights: Any
    standardize: bool
    scoring: Any
    score_params: dict               # of the scorer, whose entries with a number for every row are cut to a fold's


class CopiedFold:
    """Training and test rows of a fold, copied, and what is fitted to them and scored on them."""

    def __init__(self, posed, train, test):
        self.posed, self.train, self.test = posed, train, test
        self.X_train, self.X_test = posed.X[train], posed.X[test]
        if posed.standardize:
            scaler = StandardScaler(with_mean=not source_of(self.X_train).sparse).fit(self.X_train)
            self.X_train, self.X_test = scaler.transform(self.X_train), scaler.transform(self.X_test)
        there = None if posed.codes is None else np.unique(posed.codes[train])
        self.only = there[0] if there is not None and len(there) == 1 else None
        self.lacks = there is not None and len(there) < len(posed.classes)

    def model(self, step, last, max_time, said):
        """The estimator with the penalties of ``step``, fitted from ``last``; sentences on how far it got go to
        ``said``."""
        posed = self.posed
        model = clone(posed.estimator).set_params(**step.parameters, max_time=max_time)
        model._names_constants, model._warn_of = False, said.append
        if self.only is not None:
            intercept = constant(len(posed.classes), self.only, len(self.train))
            vars(model).update(classes_=posed.classes, coef_=np.zeros((len(intercept), posed.X.shape[1])),
                               intercept_=intercept, n_passes_=0.0, duality_gap_=np.zeros(1),
                               n_features_in_=posed.X.shape[1], _multilabel=False)
            return model
        if not step.begins:
            vars(model).update(last, warm_start=True)
        return model.fit(self.X_train, posed.y[self.train], rows_of(posed.weights, self.train))

    def score(self, model):
        posed = self.posed
        if self.lacks and self.only is None:
            there, n_classes = np.searchsorted(posed.classes, model.classes_), len(posed.classes)
            coef = np.ascontiguousarray(of_all_classes(model.coef_.T, there, n_classes, 0.0).T)
            vars(model).update(classes_=posed.classes, coef_=coef,
                               intercept_=of_all_classes(model.intercept_[None], there, n_classes, NEVER)[0])
        n = posed.y.shape[0]
        params = {name: rows_of(value, self.test) if np.shape(value)[:1] == (n,) else value
                  for name, value in posed.score_params.items()}
        return posed.scoring(model, self.X_test, posed.y[self.test], **params)

    def advance(self, step, fold, max_time, late, said):
        """Make one step of the ``fold``; whether time has not ended it before it was done. Returns a line about it."""
        begin, own = perf_counter(), []
        model = self.model(step, fold.last, max_time, own)
        fold.passes += reads_of(model)
        if any(own) and late():
            return None
        fitted, last = perf_counter(), {name: vars(model)[name] for name in WARM}
        score = self.score(model)
        ended = perf_counter()
        for table, value in ((fold.scores, score), (fold.gaps, np.max(model.duality_gap_)),
                             (fold.fit_seconds, fitted - begin), (fold.score_seconds, ended - fitted)):
            step.put(table, value)
        fold.n_done, fold.last = fold.n_done + 1, last
        said += filter(None, own)
        return (f"{step.name}: {self.posed.scoring.name} {score:.4f}, {model.n_passes_:.4g} reads, "
                f"{ended - begin:.2f} s")
