"""A search by leaving one row out: a fit of all rows for every penalty, and from it all left-out predictions."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from cmargin._estimators.leave_one_out import check_loss, leave_one_out
from cmargin._estimators.progress import warn_at_caller
from cmargin._estimators.search.fits import CopiedFold
from cmargin._estimators.search.run import SearchRun
from cmargin._estimators.search.scoring import Scoring
from cmargin._estimators.validation import InvalidParameterError


def is_left_out(cv):
    """Whether every row is left out by itself, instead of folds of rows."""
    return isinstance(cv, str)       # "loo", the only text that is allowed


def check_left_out(search, grid):
    """Refuse what bounds of left-out scores do not tell."""
    name = type(search).__name__
    check_loss(search._estimator)
    if np.any(grid.l1s):
        raise InvalidParameterError(f"The 'l1s' parameter of {name} must be (0.0,) where cv='loo'. Got {search.l1s!r} "
                                    "instead.")
    if not np.all(grid.strengths > 0):
        what = "l2s" if grid.name == "l2" else "Cs"
        raise InvalidParameterError(f"The '{what}' parameter of {name} must be a sequence of floats in the range "
                                    f"(0.0, inf) where cv='loo'. Got {getattr(search, what)!r} instead.")
    for parameter, why in (("standardize", "no row is left out of the scales of columns"),
                           ("one_standard_error", "there is one score for all rows, which has no error between folds")):
        if getattr(search, parameter):
            raise InvalidParameterError(f"The '{parameter}' parameter of {name} must be False where cv='loo': {why}.")
    scorer = Scoring(search).scorer
    if scorer is not None and not (hasattr(scorer, "_score_func") and
                                   getattr(scorer, "_response_method", None) == "predict"):
        raise InvalidParameterError(f"The 'scoring' parameter of {name} must be None or a scorer of predictions, such "
                                    f"as 'accuracy' or 'f1', where cv='loo', as left-out predictions are exact, and "
                                    f"left-out scores are known by bounds. Got {search.scoring!r} instead.")


def warn_of_lone_rows(classes, codes):
    """One warning of classes of one row, which nothing is known of when it is left out."""
    alone = [] if codes is None else classes[np.bincount(codes, minlength=len(classes)) == 1].tolist()
    if alone:
        named = ", ".join(map(repr, alone[:5])) + ", ..." * (len(alone) > 5)
        several = len(alone) > 1
        warn_at_caller(f"Class{'es' * several} {named} {'have' if several else 'has'} one row, of which another class "
                       "is predicted when it is left out.")


class Predicted(ClassifierMixin, BaseEstimator):
    """Has predicted the rows that a scorer is going to ask for."""

    def __init__(self, classes, predictions):
        self.classes_, self.predictions = classes, predictions

    def predict(self, _: Any) -> np.ndarray:
        return self.predictions


class LeftOutRows(CopiedFold):
    """All rows, each of which is held out by itself; of which no copy is made."""

    def __init__(self, posed, *_):
        self.posed, self.train, self.test = posed, slice(None), slice(None)
        self.X_train = self.X_test = posed.X
        self.only, self.lacks = None, False

    def score(self, model):
        posed = self.posed
        found = leave_one_out(model, posed.X, posed.y, posed.weights)
        if posed.scoring.scorer is None:
            return posed.scoring.share(found.right, **posed.score_params)
        return posed.scoring(Predicted(model.classes_, found.predictions), posed.X, posed.y, **posed.score_params)


class LeftOutRun(SearchRun):
    """A `SearchRun` whose one fold is of all rows."""

    copied = LeftOutRows

    def __init__(self, search, posed, grid, checkpointer, deadline):
        every = np.arange(posed.y.shape[0])
        super().__init__(search, posed, grid, [(every, every)], checkpointer, deadline)

    def takes_paths(self):
        return False
