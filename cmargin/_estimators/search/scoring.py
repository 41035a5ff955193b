"""How a search scores the rows that a fold holds out: accuracy, or any scorer of scikit-learn's."""

from inspect import signature

import numpy as np
from sklearn.metrics import check_scoring

from cmargin._estimators.labels import in_range
from cmargin._estimators.predict import accuracy_of
from cmargin.data.containers import positives_of


class Scoring:
    """What ``scoring`` of a search says: None, a name or a callable of (estimator, X, y)."""

    def __init__(self, search):
        self.name = "accuracy" if search.scoring is None else search.scoring if isinstance(search.scoring, str) else \
            getattr(search.scoring, "__name__", "score")
        self.scorer = None if search.scoring is None else check_scoring(search._estimator, search.scoring)

    @property
    def takes_weights(self):
        """Whether the scorer has a use for sample weights; a metric without them scores rows alike."""
        if self.scorer is None:
            return True
        if hasattr(self.scorer, "_accept_sample_weight"):
            return self.scorer._accept_sample_weight()
        return "sample_weight" in signature(self.scorer).parameters

    @property
    def by_scores(self):
        """Whether it follows from the rows' scores and labels: a callable may ask for the rows, or for weights."""
        return self.scorer is None or hasattr(self.scorer, "_score_func")

    def __call__(self, model, X, y, **params):
        """The score of ``model``, higher is better; ``params``: of the scorer, ``sample_weight`` among them.

        NaN where the weights leave no row.
        """
        if (weights := params.get("sample_weight")) is not None:
            if not np.any(weights):
                return np.nan
            params = {**params, "sample_weight": in_range(np.asarray(weights, float))}       # their sum is finite
        if self.scorer is None:
            return accuracy_of(model, X, y, params.get("sample_weight"))
        if np.ndim(y) == 2:
            y = positives_of(y).toarray()                                        # of -1 and 1 too
        return float(self.scorer(model, X, y, **params))

    def share(self, right, sample_weight=None):
        """The mean over rows of ``right``: of whether their labels are, the accuracy. NaN without a row that counts."""
        if not len(right) or (sample_weight is not None and not np.any(sample_weight)):
            return np.nan
        return float(np.average(right, weights=None if sample_weight is None else in_range(sample_weight)))
