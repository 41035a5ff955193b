"""Every method keeps its history in one way."""

import numpy as np
import pytest
from conftest import blobs
from estimators import quick_estimators

from cmargin import BSNClassifier, MarginPursuitClassifier, SLNDClassifier, SmSVMClassifier
from cmargin.solvers.history import SHARED

WAYS = [*quick_estimators(), SLNDClassifier(loss="logistic", max_passes=3), SLNDClassifier(l2=1e-2, tol=1e-2),
        BSNClassifier(hessian_refresh=1, max_passes=3), SmSVMClassifier(linear_solver="dual", tol=1e-2),
        SmSVMClassifier(line_search="quadratic", tol=1e-2), MarginPursuitClassifier(trace=False, tol=1e-2)]


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("estimator", WAYS, ids=str)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_history_says_whose_reads_seconds_and_objective(estimator, n_classes):
    X, y = blobs(n=150, d=5, k=n_classes)
    model = estimator.fit(X, y)
    history = model.history_
    assert set(SHARED) <= set(history) and {len(column) for column in history.values()} == {len(history["class"])}
    assert len(history["class"]) > 0 and set(history["class"]) <= {-1, 0, 1, 2}
    for c in np.unique(history["class"]):
        own = {name: history[name][history["class"] == c] for name in SHARED}
        assert own["passes"][0] > 0 and (np.diff(own["passes"]) >= 0).all() and (np.diff(own["seconds"]) >= 0).all()
    if hasattr(model, "n_passes_"):
        assert history["passes"].max() <= model.n_passes_ * len(np.unique(history["class"])) * (1 + 1e-9)
