"""What all searches for penalties share: what they find, what they warn of, and predictions by what was chosen."""

from contextlib import contextmanager
from copy import copy
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Bunch
from sklearn.utils._metadata_requests import _routing_enabled
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from cmargin._estimators.identity import VersionInPickle
from cmargin._estimators.predict import accuracy_of, lazy_on_workers, scikit_learn_twin
from cmargin._estimators.progress import say, warn_at_caller
from cmargin._estimators.search.scoring import Scoring
from cmargin._estimators.search.table import chosen, means, table_of
from cmargin._estimators.validation import check_rows
from cmargin.data.containers import label_array


def _predicts(search):
    """Whether there is, or will be, a fit of all rows; weights may be set by hand."""
    if "coef_" not in vars(search):
        if isinstance(search.refit, (bool, np.bool_)) and not search.refit:
            raise AttributeError(f"this {type(search).__name__} has refit=False: it has scores, and nothing to predict "
                                 "by")
        if "scores_" in vars(search):
            raise AttributeError(f"this {type(search).__name__} was interrupted before its fit to all rows: it has "
                                 "scores, and nothing to predict by")
    return True


def _has_probabilities(search):
    return _predicts(search) and search._has_probabilities


def with_weights(weights):
    return {} if weights is None else {"sample_weight": weights}


def with_groups(groups):
    return {} if groups is None else {"groups": groups}


def refuse_ranks(search, comm):
    if comm is not None:
        raise ValueError(f"{type(search).__name__} takes no comm= yet: its folds are parts of rows that are all here. "
                         "SmSVMClassifierCV takes one, with an estimator of loss='logistic'; or gather the rows.")


def refuse_over_places(search, **asked):
    """Raise where any of what is ``asked`` for by name does not go over several places."""
    for name, wanted in asked.items():
        if wanted:
            raise ValueError(f"{type(search).__name__} with comm= or Dask collections takes no {name} yet.")


class PenaltySearch(ClassifierMixin, VersionInPickle, BaseEstimator):
    """A search has ``_estimator``, ``_has_probabilities``, and the parameters ``cv``, ``scoring``, ``refit``,
    ``one_standard_error``, ``max_time`` and ``verbose``.

    A run of one has ``grid``, ``rows`` (of the folds), ``folds``, ``scores``, ``steps``, ``posed.scoring``, ``n_left``,
    ``n_passes``, ``said`` and ``of_best``, as `cmargin._estimators.search.run.SearchRun`.
    """

    def _routed(self, X, weights, groups):
        """Keyword arguments of the splitter's ``split`` and of the scorer, ``routed.splitter.split`` and
        ``routed.scorer.score``: as scikit-learn's metadata routing has it where that is switched on."""
        scoring = Scoring(self)
        if _routing_enabled():
            routed = process_routing(self, "fit", **with_weights(weights), **with_groups(groups))
            if self.scoring is not None:
                return routed
            return Bunch(splitter=routed.splitter, scorer=Bunch(score=with_weights(weights)))
        return Bunch(splitter=Bunch(split=with_groups(groups)),
                     scorer=Bunch(score=with_weights(weights if scoring.takes_weights else None)))

    @contextmanager
    def _keeps_scores(self, run):
        """A Ctrl-C meanwhile leaves what ``run`` has scored, and of a fit before nothing."""
        try:
            yield
        except KeyboardInterrupt:
            if np.isfinite(run.scores).any():
                place = tuple(map(int, chosen(run.grid, run.scores, self.one_standard_error)))
                found = PenaltySearch._found(self, run, place)
                for name in [name for name in vars(self) if name.endswith("_") and not name.endswith("_in_")
                             and not name.startswith("_")]:
                    delattr(self, name)
                self.__dict__.update(found)
            raise

    def _place(self, run):
        """The place of the grid that is chosen."""
        scores = run.scores
        place = tuple(map(int, chosen(run.grid, scores, self.one_standard_error)))
        named = ", ".join(f"{name}={value:g}" for name, value in run.grid.named(*place).items())
        say(self, f"chose {named}: {run.posed.scoring.name} {means(scores)[0][place]:.4f}"
                  f"{'; fits all rows with that' if self.refit else ''}")
        return place

    def _found(self, run, place):
        """Attributes that need no fit of all rows."""
        grid, table = run.grid, table_of(run.grid, run.folds)
        index = int(np.ravel_multi_index(place, grid.shape))
        return {
            "penalties_": grid.values, "scores_": run.scores, "cv_results_": table,
            "best_index_": index,
            "best_score_": float(table["mean_test_score"][index]), "best_params_": table["params"][index],
            "n_splits_": len(run.folds), "scorer_": run.posed.scoring.scorer,
            "n_passes_": run.n_passes,
        }

    def _warn_of(self, run):
        """One warning of all that fell short: time, fits, scores."""
        n_fits, said = len(run.steps) * len(run.folds), []
        if run.n_left:
            said.append(f"{type(self).__name__} stopped at max_time={self.max_time:g} s with {run.n_left} of {n_fits} "
                        "fits of folds not made: their scores are NaN, and the penalties are the best of those scored. "
                        "Try a larger max_time, or fewer penalties.")
        if run.said:
            said.append(f"{len(run.said)} of {n_fits} fits of folds stopped short of the tolerance; the first: "
                        f"{run.said[0]}")
        said += [] if run.of_best is None else [run.of_best]
        kind = ConvergenceWarning if said else UserWarning
        without = [number for number, fold in enumerate(run.folds, 1)
                   if (np.isnan(fold.scores) & ~np.isnan(fold.fit_seconds)).any()]
        if without:
            said.append(f"Scores are NaN in folds {', '.join(map(str, without))} of {len(run.folds)}, and do not count "
                        "in the means.")
        if said:
            warn_at_caller(" ".join(said), kind)

    # ---------------------------------------------------------------- prediction

    @property
    def _best(self):
        """``best_estimator_``, with the weights that are there: they may have been set by hand."""
        best = copy(vars(self).get("best_estimator_", self._estimator))
        by_hand = {name: vars(self)[name] for name in ("classes_", "coef_", "intercept_") if name in vars(self)}
        vars(best).update(by_hand)
        return best

    @available_if(_predicts)
    @lazy_on_workers
    def decision_function(self, X: Any) -> np.ndarray:
        """Scores of the chosen estimator."""
        check_is_fitted(self)
        return self._best.decision_function(check_rows(self, X))

    @available_if(_has_probabilities)
    @lazy_on_workers
    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities by the chosen estimator, where that has them."""
        check_is_fitted(self)
        return self._best.predict_proba(check_rows(self, X))

    @available_if(_has_probabilities)
    @lazy_on_workers
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithm of `predict_proba` by the chosen estimator, from its scores."""
        check_is_fitted(self)
        return self._best.predict_log_proba(check_rows(self, X))

    @available_if(_predicts)
    @lazy_on_workers
    def predict(self, X: Any) -> np.ndarray:
        """Labels by the chosen estimator."""
        check_is_fitted(self)
        return self._best.predict(check_rows(self, X))

    @available_if(_predicts)
    @lazy_on_workers
    def predict_top_k(self, X: Any, k: int) -> np.ndarray:
        """The ``k`` most likely classes of every row by the chosen estimator, most likely first."""
        check_is_fitted(self)
        return self._best.predict_top_k(check_rows(self, X), k)

    @available_if(_predicts)
    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """What ``scoring`` says of the chosen estimator on ``X`` and ``y``; accuracy where it is None."""
        scoring = Scoring(self)
        if scoring.scorer is None:
            return accuracy_of(self, X, y, sample_weight)
        check_is_fitted(self)
        params = with_weights(sample_weight if scoring.takes_weights else None)
        return scoring(self._best, check_rows(self, X), label_array(y), **params)

    @available_if(_predicts)
    def to_sklearn(self) -> Any:
        """The chosen estimator's `to_sklearn`."""
        check_is_fitted(self)
        return scikit_learn_twin(self._best, self)

    def get_metadata_routing(self) -> MetadataRouter:
        """Where scikit-learn's metadata routing sends what `fit` and `score` are given."""
        router = MetadataRouter(owner=self).add_self_request(self).add(
            splitter=self.cv, method_mapping=MethodMapping().add(caller="fit", callee="split"))
        if self.scoring is None:
            return router
        return router.add(scorer=Scoring(self).scorer,
                          method_mapping=MethodMapping().add(caller="fit", callee="score"))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
