"""``l1_ratio``: how one strength is shared out between l1 and l2, as scikit-learn's users know it."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import scale

from cmargin import SmSVMClassifier, SmSVMClassifierCV, SmSVMRegressor, smsvm_path
from cmargin._estimators.validation import InvalidParameterError

X, y = load_breast_cancer(return_X_y=True)
X, y = scale(X)[:200], y[:200]


def same_fit(one, other):
    assert np.array_equal(one.coef_, other.coef_) and np.array_equal(one.intercept_, other.intercept_)
    assert np.array_equal(one.objective_, other.objective_)


def logistic_elastic_net(model, C, ratio, weight):
    """What LogisticRegression says that it minimises."""
    w, scores = model.coef_[0], np.where(y == model.classes_[1], 1, -1) * model.decision_function(X)
    return C * np.average(np.logaddexp(0, -scores), weights=weight) * (len(y) if weight is None else weight.sum()) \
        + (1 - ratio) / 2 * w @ w + ratio * np.abs(w).sum()


@pytest.mark.parametrize("C, ratio", [(0.1, 0.3), (1.0, 0.7), (0.05, 1.0), (0.2, 0.0)])
@pytest.mark.parametrize("weighted", [False, True])
def test_with_C_it_is_logistic_regression_s(C, ratio, weighted):
    weight = np.random.default_rng(3).uniform(0.2, 3, len(y)) if weighted else None
    ours = SmSVMClassifier(C=C, l1_ratio=ratio, loss="logistic", tol=1e-8).fit(X, y, weight)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        theirs = LogisticRegression(C=C, l1_ratio=ratio, solver="saga", penalty="elasticnet", tol=1e-6, max_iter=3000,
                                    random_state=0).fit(X, y, weight)
    values = [logistic_elastic_net(model, C, ratio, weight) for model in (ours, theirs)]
    assert values[0] == pytest.approx(values[1], rel=1e-5) and values[0] <= values[1] * (1 + 1e-8)


def test_it_is_the_fit_of_the_penalties_that_it_says():
    total, ratio = 200.0, 0.4
    same_fit(SmSVMClassifier(C=2.0, l1_ratio=ratio).fit(X, y),
             SmSVMClassifier(l2=(1 - ratio) * (1 / (2 * total)), l1=ratio * (1 / (2 * total))).fit(X, y))
    same_fit(SmSVMClassifier(l1_ratio=ratio).fit(X, y), SmSVMClassifier(l2=0.6 * 1e-4, l1=ratio * 1e-4).fit(X, y))
    same_fit(SmSVMClassifier(l2=1e-3, l1_ratio=0.75).fit(X, y), SmSVMClassifier(l2=1e-3, l1=3e-3).fit(X, y))
    same_fit(SmSVMClassifier(C=2.0, l1_ratio=0.0).fit(X, y), SmSVMClassifier(C=2.0).fit(X, y))
    same_fit(SmSVMClassifier(l2=0.0, l1_ratio=0).fit(X, y), SmSVMClassifier(l2=0.0).fit(X, y))


def test_by_column_with_bounds_and_of_groups():
    l2 = np.linspace(1e-4, 1e-2, X.shape[1])
    same_fit(SmSVMClassifier(l2=l2, l1_ratio=0.5, lower=0).fit(X, y), SmSVMClassifier(l2=l2, l1=l2, lower=0).fit(X, y))
    same_fit(SmSVMClassifier(l2=1e-3, l1_ratio=0.5, groups=np.arange(30) // 3).fit(X, y),
             SmSVMClassifier(l2=1e-3, l1=1e-3, groups=np.arange(30) // 3).fit(X, y))


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "huber", "squared_epsilon_insensitive"])
def test_of_a_regression(loss):
    A, t = load_diabetes(return_X_y=True)
    given = {"loss": loss, "epsilon": 5.0, "delta": 30.0}
    with_ratio = SmSVMRegressor(C=1.0, l1_ratio=0.25, **given).fit(A, t)
    same_fit(with_ratio, SmSVMRegressor(l2=0.75 / 442, l1=0.25 / 442, **given).fit(A, t))
    assert with_ratio.duality_gap_[0] <= 1e-4


def test_a_path_says_the_same():
    Cs = [2.0, 0.5, 0.1]
    path = smsvm_path(X, y, Cs=sorted(Cs), l1_ratio=0.4, loss="logistic", tol=1e-6)
    of_estimator = SmSVMClassifier(loss="logistic", tol=1e-6, l1_ratio=0.4).path(X, y, Cs=sorted(Cs))
    assert np.array_equal(path.l2s, of_estimator.l2s) and np.array_equal(path.l1s, of_estimator.l1s)
    for l2, l1, C, objective in zip(path.l2s, path.l1s, sorted(Cs), path.objectives, strict=True):
        one = SmSVMClassifier(C=C, l1_ratio=0.4, loss="logistic", tol=1e-6).fit(X, y)
        assert l1 + l2 == pytest.approx(1 / (C * 200)) and l1 / (l1 + l2) == pytest.approx(0.4)
        assert objective == pytest.approx(one.objective_, rel=3e-6)
    model = of_estimator.at(path.l2s[1])
    assert model.l1_ratio is None and (model.l2, model.l1) == (path.l2s[1], path.l1s[1])
    same_fit(model.fit(X, y), SmSVMClassifier(l2=path.l2s[1], l1=path.l1s[1], loss="logistic", tol=1e-6).fit(X, y))


@pytest.mark.parametrize("given, said", [
    ({"l1_ratio": 1.5}, r"'l1_ratio' parameter of \w+ must be a float in the range \[0.0, 1.0\] or None"),
    ({"l1_ratio": -0.1}, "'l1_ratio'"), ({"l1_ratio": "half"}, "'l1_ratio'"), ({"l1_ratio": np.nan}, "'l1_ratio'"),
    ({"l1_ratio": True}, "'l1_ratio'"), ({"l1_ratio": [0.5]}, "'l1_ratio'"),
    ({"l1_ratio": 0.5, "l1": 1e-3}, "Give l1 or l1_ratio, not both"),
    ({"l1_ratio": 0.0, "l1": 1e-3}, "Give l1 or l1_ratio, not both"),
    ({"l1_ratio": 0.5, "l1": [1e-3] * 30}, "Give l1 or l1_ratio, not both"),
    ({"l1_ratio": 1.0, "l2": 1e-3}, "l1_ratio=1 that there is none; got l2=0.001"),
    ({"l1_ratio": 0.5, "l2": 0.0}, "goes with an l2 above 0"), ({"l1_ratio": 0.5, "l2": 1.0, "C": 1.0}, "l2 or C"),
])
@pytest.mark.parametrize("estimator", [SmSVMClassifier, SmSVMRegressor])
def test_contradictions_are_refused(estimator, given, said):
    with pytest.raises(InvalidParameterError, match=said):
        estimator(**given).fit(X, y)


def test_those_who_choose_an_l1_or_have_none_refuse_it():
    with pytest.raises(ValueError, match="l1_ratio of its estimator must be None"):
        SmSVMClassifierCV(estimator=SmSVMClassifier(l1_ratio=0.5)).fit(X, y)
    with pytest.raises(InvalidParameterError, match="needs l1_ratio=None or 0"):
        SmSVMClassifier(l1_ratio=0.5, multi_class="crammer_singer").fit(X, y)
    with pytest.raises(ValueError, match="leave_one_out needs l1=0"):
        SmSVMClassifier(C=1.0, l1_ratio=0.5).fit(X, y).leave_one_out(X, y)
    with pytest.raises(ValueError, match=r"l1_ratio must be in the range \[0, 1\)"):
        SmSVMClassifier(l1_ratio=1.0).path(X, y)
    with pytest.raises(ValueError, match="l1=0"):
        SmSVMClassifier(C=1.0, l1_ratio=0.5, linear_solver="cg").fit(X, y)


def test_without_a_penalty_it_shares_out_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        same_fit(SmSVMClassifier(C=np.inf, l1_ratio=0.5, loss="squared_hinge").fit(X, y),
                 SmSVMClassifier(C=np.inf, loss="squared_hinge").fit(X, y))
