"""Nested cross-validation, Algorithm 5 of the SmSVM paper: penalties chosen inside, accuracy measured outside."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import Bunch
from sklearn.utils.validation import indexable

from cmargin._estimators.progress import warn_of
from cmargin._estimators.search.fits import CopiedFold, Posed
from cmargin._estimators.search.folds import Fold, splits, warn_of_lacking
from cmargin._estimators.search.grid import Grid
from cmargin._estimators.search.scoring import Scoring
from cmargin._estimators.validation import sliceable
from cmargin.data.containers import label_array
from cmargin.smsvm import SmSVMClassifier
from cmargin.smsvm_cv import SmSVMClassifierCV


@dataclass
class NestedScores:
    """What `nested_cross_validation` found: ``mean`` is the paper's answer."""

    test_scores: np.ndarray        # (n_outer,) accuracy of each outer fold
    l2: np.ndarray                 # (n_outer,) chosen penalties
    l1: np.ndarray
    n_passes: float                # reads of the data, all folds together

    @property
    def mean(self) -> float:
        return float(self.test_scores.mean())


def nested_cross_validation(X: Any, y: Any, l2s: Sequence[float], l1s: Sequence[float] = (0.0,), *, outer: Any = 10,
                            inner: Any = 6, estimator: SmSVMClassifier | None = None,
                            standardize: bool = True) -> NestedScores:
    """Algorithm 5: penalties chosen inside, accuracy measured outside, columns scaled by training rows only.

    Parameters
    ----------
    X : (n, m) array or CSR matrix
    y : (n,) labels, or (n, n_labels) indicator
    l2s, l1s : sequences of float
        Penalties to choose from, as in `SmSVMClassifierCV`.
    outer, inner : int or splitter
        10 and 6 in the paper, 5 and 4 for its largest set.
    estimator : SmSVMClassifier, optional
        Supplies every other parameter.
    standardize : bool
        Scale columns by the mean and the standard deviation of the training rows.

    Returns
    -------
    NestedScores
    """
    X, y = indexable(sliceable(X), label_array(y))
    search = SmSVMClassifierCV(l2s, l1s, inner, SmSVMClassifier() if estimator is None else estimator, standardize)
    X, y, _, classes, codes = search._checked(X, y, None)
    nothing = Bunch(splitter=Bunch(split={}), scorer=Bunch(score={}))
    folds, passes = splits(outer, X, y, {}), 0.0
    scores, chosen, said = [], [], list[str]()
    warn_of_lacking(classes, y, codes, folds, of_all=True)
    for train, test in folds:
        run = search._run(X[train], y[train], None, classes, None if codes is None else codes[train], nothing,
                          warns=False)
        i, k = search._place(run)
        grid = Grid("l2", run.grid.values[[i]], run.grid.l1s[[k]])
        posed = Posed(search._estimator, X, y, classes, codes, None, standardize, Scoring(search), {})
        fold, limit = Fold.begun((1, 1)), search._estimator.max_time
        CopiedFold(posed, train, test).advance(next(grid.steps()), fold, limit, lambda: False, said)
        scores.append(fold.scores[0, 0])
        chosen.append((grid.values[0], grid.l1s[0]))
        passes, said = passes + run.n_passes + fold.passes, said + run.said
    if said:
        warn_of(f"{len(said)} fits of folds stopped short of the tolerance; the first: {said[0]}")
    l2, l1 = np.array(chosen).T
    return NestedScores(np.array(scores), l2, l1, passes)
