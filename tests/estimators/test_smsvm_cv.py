import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import DataConversionWarning
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cmargin.smsvm import SmSVMClassifier
from cmargin.smsvm_cv import SmSVMClassifierCV, nested_cross_validation

X, y = load_breast_cancer(return_X_y=True)
X = (X - X.mean(0)) / X.std(0)
L2S = [1e-4, 1e-2, 1.0]


def test_chooses_as_a_grid_search_does():
    fine = SmSVMClassifier(tol=1e-6, max_passes=1000)
    folds = StratifiedKFold(4)
    ours = SmSVMClassifierCV(L2S, [0.0, 1e-2], folds, fine).fit(X, y)
    grid = GridSearchCV(fine, {"l2": L2S, "l1": [0.0, 1e-2]}, cv=folds).fit(X, y)
    assert ours.scores_.shape == (4, 3, 2)
    assert ours.scores_.mean(0).max() == pytest.approx(grid.best_score_, abs=1e-9)
    np.testing.assert_array_equal(ours.coef_, SmSVMClassifier(l2=ours.l2_, l1=ours.l1_, tol=1e-6, max_passes=1000)
                                  .fit(X, y).coef_)


def test_groups_reach_the_splitter():
    groups = np.arange(len(y)) % 7
    by_group = SmSVMClassifierCV([1e-2], cv=GroupKFold(3)).fit(X, y, groups=groups)
    given = SmSVMClassifierCV([1e-2], cv=list(GroupKFold(3).split(X, y, groups))).fit(X, y)
    np.testing.assert_array_equal(by_group.scores_, given.scores_)
    with pytest.raises(ValueError, match="'groups' parameter should not be None"):
        SmSVMClassifierCV([1e-2], cv=GroupKFold(3)).fit(X, y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        SmSVMClassifierCV([1e-2], cv=GroupKFold(3)).fit(X, y, groups=groups[1:])


def test_warm_starts_save_passes():
    l2s = np.geomspace(1e-4, 1e-1, 7)
    path = SmSVMClassifierCV(l2s, cv=3).fit(X, y)
    trains = [train for train, _ in StratifiedKFold(3).split(X, y)]
    cold = sum(SmSVMClassifier(l2=l2).fit(X[train], y[train]).n_passes_ for train in trains for l2 in l2s)
    assert path.n_passes_ - path.best_estimator_.n_passes_ < cold


def test_nested_scores_are_those_of_a_nested_search():
    ours = nested_cross_validation(X, y, L2S, outer=5, inner=3, estimator=SmSVMClassifier(tol=1e-6, max_passes=1000))
    scaled = make_pipeline(StandardScaler(), SmSVMClassifier(tol=1e-6, max_passes=1000))
    grid = GridSearchCV(scaled, {"smsvmclassifier__l2": L2S}, cv=3)
    assert ours.mean == pytest.approx(cross_val_score(grid, X, y, cv=5).mean(), abs=0.01)
    assert ours.test_scores.shape == ours.l2.shape == (5,) and set(ours.l2) <= set(L2S) and ours.n_passes > 0


def test_no_fit_of_a_nested_search_is_thrown_away(monkeypatch):
    # an outer fold's search fitted all its rows, unscaled, and nobody looked at that
    seen, fit = [], SmSVMClassifier.fit
    monkeypatch.setattr(SmSVMClassifier, "fit", lambda self, *given: seen.append(self.l2) or fit(self, *given))
    ours = nested_cross_validation(X, y, L2S, outer=3, inner=2)
    assert len(seen) == 3 * (2 * len(L2S) + 1) and ours.n_passes > 0


def test_it_has_what_the_chosen_estimator_has():
    search = SmSVMClassifierCV([1e-3, 1e-2], cv=3, estimator=SmSVMClassifier(loss="logistic")).fit(X, y)
    best = search.best_estimator_
    np.testing.assert_array_equal(search.predict_proba(X), best.predict_proba(X))
    np.testing.assert_array_equal(search.predict_log_proba(X), best.predict_log_proba(X))
    assert search.objective_[0] == best.objective_[0] and np.isfinite(search.objective_).all()
    assert not hasattr(SmSVMClassifierCV(), "predict_proba")


def test_the_scaler_sees_training_rows_only():
    wild = X.copy()
    wild[0] = 1e6                                  # one row that would ruin every column's scale
    folds = [(np.arange(1, 569), np.array([0])), (np.arange(1, 569), np.arange(300, 400))]
    ours = nested_cross_validation(wild, y, [1e-3], outer=folds, inner=3)
    assert ours.test_scores[1] > 0.95


def test_sparse_rows_and_three_classes():
    X, y = load_iris(return_X_y=True)
    model = SmSVMClassifierCV([1e-3], [0.0], 3).fit(sparse.csr_matrix(X), y)
    assert model.score(sparse.csr_matrix(X), y) > 0.9
    assert nested_cross_validation(sparse.csr_matrix(X), y, [1e-3], outer=3, inner=2).mean > 0.9


@pytest.mark.parametrize("name, grid", [("l2s", []), ("l2s", [-1.0]), ("l1s", [[0.1]])])
def test_bad_grids(name, grid):
    with pytest.raises(ValueError, match=f"The '{name}' parameter of SmSVMClassifierCV must be"):
        SmSVMClassifierCV(**{name: grid}).fit(X, y)


# ---------------------------------------------------------------- indicators, and folds that lack something

LABELS = np.column_stack([X[:, 0] > 0, X[:, 1] > 0.5, X[:, 2] + X[:, 3] > 1]).astype(int)


@pytest.mark.parametrize("cv", [3, KFold(4, shuffle=True, random_state=0)], ids=str)
@pytest.mark.parametrize("settings", [{}, {"loss": "logistic", "class_weight": "balanced"}], ids=str)
def test_an_indicator_is_searched_as_a_grid_search_does(cv, settings):
    # "Use '.toarray()' to convert to a dense numpy array", of a dense one, and then it was refused
    fine = SmSVMClassifier(tol=1e-6, **settings)
    ours = SmSVMClassifierCV(L2S, cv=cv, estimator=fine).fit(X, LABELS)
    grid = GridSearchCV(fine, {"l2": L2S}, cv=cv).fit(X, LABELS)
    assert ours.scores_.mean(0).max() == pytest.approx(grid.best_score_, abs=1e-9)
    assert ours.coef_.shape == (3, 30) and ours.predict(X).shape == LABELS.shape
    assert ours.score(X, LABELS) == (ours.predict(X) == LABELS).all(axis=1).mean() > 0.8
    for other in (sparse.csr_matrix(LABELS), sparse.csc_array(LABELS), 2 * LABELS - 1):
        again = SmSVMClassifierCV(L2S, cv=cv, estimator=fine).fit(X, other)
        np.testing.assert_array_equal(again.coef_, ours.coef_)
        assert again.score(X, other) == ours.score(X, LABELS)
    np.testing.assert_array_equal(ours.to_sklearn().predict(X), ours.predict(X))


def test_what_the_splitter_says_of_an_indicator_is_passed_on():
    with pytest.raises(ValueError, match=r"Supported target types are: .* Got 'multilabel-indicator' instead"):
        SmSVMClassifierCV(L2S, cv=StratifiedKFold(3)).fit(X, LABELS)


def test_a_label_that_a_fold_lacks_is_constant_there_with_one_warning():
    rare = LABELS.copy()
    rare[:, 1] = 0
    rare[:20, 1] = 1                                          # all of them in the first fold
    with pytest.warns(UserWarning) as said:
        search = SmSVMClassifierCV(L2S, cv=3).fit(X, rare)
    assert len(said) == 1 and said[0].filename == __file__
    assert str(said[0].message) == ("Label 1 is absent from, or present in, all training examples of some folds, "
                                    "numbers 1 of 3: there is nothing to learn.")
    assert np.isfinite(search.scores_).all()
    rare[:20, 1] = 0
    with pytest.warns(UserWarning, match="Label 1 is absent from all training examples") as said:
        SmSVMClassifierCV(L2S, cv=3).fit(X, rare)
    assert len(said) == 1


def test_a_fold_whose_training_rows_are_of_one_class_is_named():
    # "This solver needs samples of at least 2 classes in the data", which has them
    order = np.argsort(y, kind="stable")
    with pytest.raises(ValueError, match=r"The training rows of fold 2 of 2 are of only one class: \[0\].*Stratified"):
        SmSVMClassifierCV(L2S, cv=KFold(2)).fit(X[order][:400], y[order][:400])
    names = np.array(["no", "yes"])[y[order]].astype("S")
    with pytest.raises(ValueError, match=r"of fold 1 of 2 are of only one class: \[b'yes'\]"):
        SmSVMClassifierCV(L2S, cv=KFold(2)).fit(X[order][100:350], names[100:350])
    with pytest.raises(ValueError, match="of fold 2 of 2 are of only one class"):
        nested_cross_validation(X[order][:400], y[order][:400], L2S, outer=KFold(2), inner=3)


def test_nested_scores_of_an_indicator():
    for labels in (LABELS, sparse.csr_array(LABELS)):
        found = nested_cross_validation(X, labels, L2S[:2], outer=3, inner=2)
        assert 0.8 < found.mean <= 1


def test_a_column_of_labels_is_still_one_of_labels():
    with pytest.warns(DataConversionWarning):
        search = SmSVMClassifierCV(L2S, cv=3).fit(X, y[:, None])
    assert search.coef_.shape == (1, 30)
