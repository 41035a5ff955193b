"""Thresholds of labels, against every threshold there is, and in use."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import f1_score
from sklearn.model_selection import TunedThresholdClassifierCV, cross_val_predict
from sklearn.multiclass import OneVsRestClassifier

from cmargin import SmSVMClassifier
from cmargin.margins import label_thresholds


def f1_of(score, truth, threshold):
    predicted = score > threshold
    return 2 * (predicted & (truth == 1)).sum() / max(1, predicted.sum() + truth.sum())


def cost_of(score, truth, threshold, wrong, missed):
    return wrong * ((score > threshold) & (truth == 0)).sum() + missed * ((score <= threshold) & (truth == 1)).sum()


def every_threshold(score):
    """One between every two scores, with 0 and both ends."""
    s = np.unique(score)
    return np.concatenate([[0.0, s[0] - 1, s[-1] + 1], (s[1:] + s[:-1]) / 2, s])


@pytest.mark.parametrize("seed", range(8))
def test_no_threshold_is_better(seed):
    rng = np.random.default_rng(seed)
    n, n_labels = rng.integers(1, 30), 6
    scores = rng.standard_normal((n, n_labels)) + rng.choice([-2, 0, 2])
    if seed % 2:
        scores = np.round(scores)                        # ties
    y = (rng.random((n, n_labels)) < rng.choice([0.0, 0.1, 0.5, 1.0], n_labels)).astype(int)
    dtype = np.float32 if seed % 3 == 0 else np.float64
    found = label_thresholds(scores.astype(dtype), [y, sp.csr_matrix(y), sp.lil_array(y)][seed % 3], least_f1=0.0)
    costs = label_thresholds(scores, y, cost=(1.0, 3.0))
    for label, (score, truth) in enumerate(zip(scores.T, y.T, strict=True)):
        score = score.astype(dtype).astype(float)
        best = max(f1_of(score, truth, t) for t in every_threshold(score))
        assert f1_of(score, truth, found[label]) == pytest.approx(best, abs=1e-12)
        nearest = min(abs(t) for t in every_threshold(score) if f1_of(score, truth, t) > best - 1e-12)
        spacing = np.diff(np.unique(np.append(score, 0.0)), prepend=0, append=0).max()
        assert abs(found[label]) <= nearest + abs(spacing) / 2 + 1e-12
        score = scores[:, label]
        least = min(cost_of(score, truth, t, 1, 3) for t in every_threshold(score))
        assert cost_of(score, truth, costs[label], 1, 3) == pytest.approx(least)


def test_cases_by_hand():
    scores = np.array([[3.0, -1, 2, -3], [1, -2, 1, -1], [-1, -4, -1, -2], [-5, -8, 3, -4]])
    y = np.array([[1, 1, 0, 1], [1, 1, 0, 1], [0, 0, 0, 1], [0, 0, 0, 1]])
    # 0 is one of the best; between -4 and -2; no positive, so that all are alike; every row
    np.testing.assert_array_equal(label_thresholds(scores, y, least_f1=0.0),
                                  [0.0, -3.0, 0.0, np.nextafter(-4.0, -np.inf)])
    assert label_thresholds(scores, y)[2] == 3.0         # its highest score: nothing that was held out is predicted
    assert label_thresholds(scores, y, cost=(1, 0))[2] == 3.0
    assert label_thresholds(scores, y, cost=(1e308, 1e-308))[0] == 0.0
    lone = np.array([[9.0], [8.0], [7.0], [-1.0]] + [[0.5]] * 60)
    there = np.zeros((64, 1), int)
    there[-1] = 1                                        # F1 at best 2 / (63 + 1)
    assert label_thresholds(lone, there)[0] == 9.0
    assert label_thresholds(lone, there, least_f1=0.0)[0] == 0.0


def test_adjacent_doubles_are_told_apart():
    low = 1.0
    high = np.nextafter(low, 2.0)
    threshold = label_thresholds(np.array([[low], [high]]), np.array([[0], [1]]))[0]
    assert low <= threshold < high


def test_in_use_beside_scikit_learn():
    # TunedThresholdClassifierCV is of binary problems; one for each label is five fits more for each
    rng = np.random.default_rng(0)
    X = rng.standard_normal((900, 8))
    y = (X @ rng.standard_normal((8, 6)) + 2 * rng.logistic(size=(900, 6)) > 4).astype(int)      # rare, and hard
    model = SmSVMClassifier(C=1.0, loss="squared_hinge")
    scores = cross_val_predict(model, X[:600], y[:600], method="decision_function", cv=5)
    thresholds = label_thresholds(scores, y[:600])
    model.fit(X[:600], y[:600])
    predicted = model.decision_function(X[600:]) > thresholds
    tuned = OneVsRestClassifier(TunedThresholdClassifierCV(model, scoring="f1", thresholds=15)).fit(X[:600], y[:600])
    ours, theirs, plain = (f1_score(y[600:], one, average="macro", zero_division=0) for one in
                           (predicted, tuned.predict(X[600:]), model.predict(X[600:])))
    assert ours > plain + 0.02 and ours > theirs - 0.03
    model.intercept_ -= thresholds
    np.testing.assert_array_equal(model.predict(X[600:]), predicted)


@pytest.mark.parametrize("change, message", [
    (dict(scores=np.zeros((3, 4))), r"agree in shape, got \(3, 4\) and \(3, 2\)"),
    (dict(scores=np.full((3, 2), np.nan)), "NaN"), (dict(scores=np.zeros(3)), "scores must have 2 dimensions"),
    (dict(y=[0, 1, 2]), "y must be an indicator"), (dict(y=np.full((3, 2), 2)), "must hold 0 and 1"),
    (dict(least_f1=1.5), "least_f1 must be at most 1"), (dict(least_f1=-1), "least_f1 must be a finite number"),
    (dict(cost=1.0), "cost must be two numbers"), (dict(cost=(0, 0)), "at least 0, one of them above"),
    (dict(cost=(-1, 1)), "at least 0"), (dict(cost=(np.nan, 1)), "at least 0"), (dict(cost=(1, np.inf)), "finite")])
def test_what_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        label_thresholds(**{"scores": np.zeros((3, 2)), "y": np.eye(3, 2), **change})
