import time
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning
from sklearn.metrics import check_scoring, get_scorer, make_scorer
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cmargin._estimators.search import run
from cmargin.nested_cv import nested_cross_validation
from cmargin.smsvm import SmSVMClassifier
from cmargin.smsvm_cv import SmSVMClassifierCV

X, y = load_breast_cancer(return_X_y=True)
X = (X - X.mean(0)) / X.std(0)
L2S = [1e-4, 1e-2, 1.0]
NOISY = np.where(np.random.default_rng(5).random(len(y)) < 0.2, 1 - y, y)


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
    path = SmSVMClassifierCV(l2s, cv=3).fit(X, NOISY)
    trains = [train for train, _ in StratifiedKFold(3).split(X, NOISY)]
    cold = sum(SmSVMClassifier(l2=l2).fit(X[train], NOISY[train]).n_passes_ for train in trains for l2 in l2s)
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


def test_a_fold_whose_training_rows_are_of_one_class_predicts_that_with_one_warning():
    # the search was refused; before that, by "This solver needs samples of at least 2 classes in the data"
    order = np.argsort(y, kind="stable")
    labels = y[order][:400]
    with pytest.warns(UserWarning, match="Class 1 is absent from the training rows of some folds, numbers 2 of 2, and "
                                         "never predicted there") as said:
        search = SmSVMClassifierCV(L2S, cv=KFold(2)).fit(X[order][:400], labels)
    assert len(said) == 1 and said[0].filename == __file__
    assert (search.scores_[1] == (labels[200:] == 0).mean()).all()
    names = np.array(["no", "yes"])[y[order]].astype("S")
    with pytest.warns(UserWarning, match=r"Class b'no' is absent .* numbers 1 of 2"):
        search = SmSVMClassifierCV(L2S, cv=KFold(2)).fit(X[order][100:350], names[100:350])
    assert (search.scores_[0] == (names[100:225] == b"yes").mean()).all()
    with pytest.warns(UserWarning, match="numbers 2 of 2") as said:
        found = nested_cross_validation(X[order][:400], labels, L2S, outer=KFold(2), inner=3)
    assert len(said) == 1 and found.test_scores[1] == (labels[200:] == 0).mean()


@pytest.mark.parametrize("scoring", [None, "neg_log_loss", "roc_auc_ovr", "balanced_accuracy"])
def test_a_class_that_training_rows_lack_is_never_predicted_and_every_scorer_works(scoring):
    # sklearn's scorers of probabilities raise where a class is missing among the columns
    A, b = load_iris(return_X_y=True)
    folds = [(np.flatnonzero(b != 1)[::2], np.arange(0, 150, 3)), (np.arange(0, 150, 2), np.arange(1, 150, 2))]
    with pytest.warns(UserWarning, match="Class 1 is absent from the training rows of some folds, numbers 1 of 2"):
        search = SmSVMClassifierCV([1e-3], cv=folds, scoring=scoring, estimator=SmSVMClassifier(loss="logistic"))
        search.fit(A, b)
    assert np.isfinite(search.scores_).all()
    two = SmSVMClassifier(loss="logistic", l2=1e-3).fit(A[folds[0][0]], b[folds[0][0]])
    if scoring is None:
        assert search.scores_[0, 0, 0] == two.score(A[::3], b[::3])


def test_nested_scores_of_an_indicator():
    for labels in (LABELS, sparse.csr_array(LABELS)):
        found = nested_cross_validation(X, labels, L2S[:2], outer=3, inner=2)
        assert 0.8 < found.mean <= 1


def test_a_column_of_labels_is_still_one_of_labels():
    with pytest.warns(DataConversionWarning):
        search = SmSVMClassifierCV(L2S, cv=3).fit(X, y[:, None])
    assert search.coef_.shape == (1, 30)


# ---------------------------------------------------------------- as scikit-learn's searches

def test_the_table_is_that_of_a_grid_search():
    fine, folds = SmSVMClassifier(tol=1e-6), StratifiedKFold(3)
    ours = SmSVMClassifierCV(L2S, [0.0, 1e-2], folds, fine).fit(X, y)
    grid = GridSearchCV(fine, {"l2": L2S, "l1": [0.0, 1e-2]}, cv=folds).fit(X, y)
    order = [grid.cv_results_["params"].index(one) for one in ours.cv_results_["params"]]
    for name in ("mean_test_score", "std_test_score", "split0_test_score", "split2_test_score", "rank_test_score",
                 "param_l2", "param_l1"):
        found, wanted = ours.cv_results_[name], grid.cv_results_[name][order]
        assert type(found) is type(wanted), name
        np.testing.assert_allclose(found.astype(float), wanted.astype(float), atol=1e-9, err_msg=name)
    assert set(ours.cv_results_) - set(grid.cv_results_) == {"max_duality_gap"}
    assert set(grid.cv_results_) <= set(ours.cv_results_) and (ours.cv_results_["max_duality_gap"] <= 1e-6).all()
    assert ours.best_score_ == pytest.approx(grid.best_score_) and ours.best_params_ == {"l2": ours.l2_, "l1": ours.l1_}
    assert ours.cv_results_["params"][ours.best_index_] == ours.best_params_ and ours.n_splits_ == 3


WEIGHTS = np.random.default_rng(0).integers(0, 4, len(y)).astype(float)


def no_weights(true, predicted):
    return float((true == predicted).mean())


@pytest.mark.parametrize("scoring", ["roc_auc", "neg_log_loss", "f1", make_scorer(no_weights),
                                     lambda model, A, b: -abs(model.coef_).sum() + model.score(A, b)],
                         ids=["roc_auc", "neg_log_loss", "f1", "without weights", "callable"])
def test_scores_are_those_of_the_scorer_with_weights_where_it_takes_them(scoring):
    fine, folds = SmSVMClassifier(loss="logistic", tol=1e-6), StratifiedKFold(3)
    ours = SmSVMClassifierCV([1e-3, 1e-1], cv=folds, estimator=fine, scoring=scoring).fit(X, y, WEIGHTS)
    scorer = check_scoring(fine, scoring)
    for fold, (train, test) in enumerate(folds.split(X, y)):
        for i, l2 in enumerate([1e-3, 1e-1]):
            model = clone(fine).set_params(l2=l2).fit(X[train], y[train], WEIGHTS[train])
            takes = isinstance(scoring, str)
            score = scorer(model, X[test], y[test], **({"sample_weight": WEIGHTS[test]} if takes else {}))
            assert ours.scores_[fold, i, 0] == pytest.approx(score, rel=1e-3, abs=1e-3)
    assert ours.score(X, y) == scorer(ours.best_estimator_, X, y)
    assert ours.best_score_ == ours.scores_.mean(axis=0).max()


@pytest.mark.parametrize("bad", ["no such score", ["accuracy", "f1"], 3])
def test_a_scoring_that_is_none_is_refused(bad):
    with pytest.raises(ValueError, match="scoring"):
        SmSVMClassifierCV(L2S, scoring=bad).fit(X, y)


def test_values_of_c_are_those_of_a_grid_search():
    fine = SmSVMClassifier(tol=1e-6, loss="logistic")
    ours = SmSVMClassifierCV(Cs=[10.0, 0.01, np.inf, 0.1], cv=3, estimator=fine, scoring="neg_log_loss")
    ours.set_params(estimator__max_passes=30)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)           # without a penalty there is no certificate
        ours.fit(X, y, WEIGHTS)
    assert ours.C_ == ours.best_params_["C"] and ours.l2_ == pytest.approx(1 / (ours.C_ * WEIGHTS.sum()))
    assert SmSVMClassifierCV(L2S, cv=3).fit(X, y, WEIGHTS).C_ == pytest.approx(1 / (L2S[1] * WEIGHTS.sum()))
    assert ours.best_estimator_.C == ours.C_ and list(ours.cv_results_["param_C"]) == [10.0, 0.01, np.inf, 0.1]
    plain = SmSVMClassifierCV(Cs=[10.0, 0.01, 0.1], cv=3, estimator=fine).fit(X, y)
    again = GridSearchCV(fine, {"C": [10.0, 0.01, 0.1]}, cv=3).fit(X, y)
    np.testing.assert_allclose(plain.cv_results_["mean_test_score"], again.cv_results_["mean_test_score"], atol=1e-9)
    with pytest.raises(ValueError, match="Give l2s or Cs, not both"):
        SmSVMClassifierCV(L2S, Cs=[1.0]).fit(X, y)
    with pytest.raises(ValueError, match="The 'Cs' parameter"):
        SmSVMClassifierCV(Cs=[0.0]).fit(X, y)


@pytest.mark.parametrize("labels", [y, LABELS, np.arange(len(y)) % 3], ids=["two", "indicator", "three"])
def test_a_number_of_penalties_begins_where_weights_are_the_direction_between_means(labels):
    search = SmSVMClassifierCV(7, cv=3).fit(X, labels)
    assert search.scores_.shape == (3, 7, 1)
    l2s = search.penalties_
    assert l2s[0] == pytest.approx(1e-6 * l2s[-1]) and (np.diff(np.log(l2s)) > 0).all()
    if labels is y:
        w = SmSVMClassifier(l2=l2s[-1], tol=1e-6).fit(X, y).coef_[0]
        means = X[y == 1].mean(axis=0) - X[y == 0].mean(axis=0)
        assert w @ means / np.linalg.norm(w) / np.linalg.norm(means) > 0.98


def test_penalties_in_any_order_given_twice_or_zero():
    # a penalty given twice was fitted twice
    seen = []
    note = SmSVMClassifier(callback=lambda model: seen.append((model.l2, model.n_iter_)) and False)
    wild = SmSVMClassifierCV([1e-2, 1.0, 1e-2, 1e-4], cv=3, estimator=note).fit(X, y)
    assert len({l2 for l2, _ in seen}) == 3 and sum(n == 0 for _, n in seen) <= 3 * 3 + 1
    plain = SmSVMClassifierCV(L2S, cv=3).fit(X, y)
    np.testing.assert_array_equal(wild.scores_[:, [3, 0, 1]], plain.scores_)
    np.testing.assert_array_equal(wild.scores_[:, 2], wild.scores_[:, 0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)           # without a penalty there is no certificate
        none = SmSVMClassifierCV([0.0, 1e-2], cv=2, estimator=SmSVMClassifier(max_passes=20)).fit(X, y)
    assert np.isfinite(none.scores_).all()
    for bad in ([np.nan], [np.inf], [-1e-3], 0, "1e-3", [[1.0]]):
        with pytest.raises(ValueError, match="The 'l2s' parameter of SmSVMClassifierCV must be"):
            SmSVMClassifierCV(bad).fit(X, y)


def test_one_standard_error_chooses_the_strongest_penalty_that_is_as_good():
    l2s = np.geomspace(1e-6, 10, 9)
    best = SmSVMClassifierCV(l2s, cv=5, scoring="roc_auc").fit(X, y)
    strong = clone(best).set_params(one_standard_error=True).fit(X, y)
    mean = best.scores_.mean(axis=0)[:, 0]
    at = int(mean.argmax())
    error = best.scores_[:, at, 0].std(ddof=1) / np.sqrt(5)
    assert strong.l2_ == l2s[mean >= mean[at] - error].max() > best.l2_
    assert strong.best_score_ == mean[list(l2s).index(strong.l2_)]


def test_without_a_refit_there_are_scores_and_no_predictions():
    search = SmSVMClassifierCV(L2S, cv=3, refit=False)
    assert not hasattr(search.fit(X, y), "predict") and not hasattr(search, "coef_")
    whole = clone(search).set_params(refit=True).fit(X, y)
    np.testing.assert_array_equal(search.scores_, whole.scores_)
    assert search.l2_ == whole.l2_ and search.n_passes_ < whole.n_passes_
    whole.set_params(refit=False).fit(X, y)                           # nothing of the fit before is left
    assert not hasattr(whole, "best_estimator_") and not hasattr(whole, "decision_function")


class Counted(SmSVMClassifier):
    """Counts the fits of all its copies."""

    n_fits = 0

    def fit(self, *data):
        Counted.n_fits += 1
        return super().fit(*data)


def test_max_time_keeps_what_was_scored_and_fits_the_best_so_far(tmp_path, monkeypatch):
    # there was no limit of the search
    Counted.n_fits = 0
    monkeypatch.setattr(run, "perf_counter", lambda: time.perf_counter() + 2000 * (Counted.n_fits >= 5))
    search = SmSVMClassifierCV([1e-4, 1e-2, 1.0], cv=3, estimator=Counted(), max_time=1000,
                               checkpoint=tmp_path / "search")
    with pytest.warns(ConvergenceWarning, match="max_time=1000 s with 4 of 9 fits of folds not made") as said:
        search.fit(X, y)
    assert len(said) == 1 and Counted.n_fits == 5 + 1
    # one fit of every fold before the second of any: the strongest penalty is scored in all of them
    assert np.isfinite(search.scores_).sum(axis=(0, 2)).tolist() == [0, 2, 3]
    assert search.l2_ == 1.0 and search.coef_.shape == (1, 30)
    assert search.cv_results_["rank_test_score"].tolist() == [2, 2, 1]
    # the next call goes on from the checkpoint
    whole = clone(search).set_params(max_time=None).fit(X, y)
    assert Counted.n_fits == 6 + 4 + 1 and np.isfinite(whole.scores_).all()
    np.testing.assert_array_equal(whole.scores_, SmSVMClassifierCV([1e-4, 1e-2, 1.0], cv=3).fit(X, y).scores_)


def test_no_time_at_all_is_one_fit_of_the_strongest_penalties():
    with pytest.warns(ConvergenceWarning, match="9 of 9 fits of folds not made"):
        search = SmSVMClassifierCV([1e-4, 1.0, 1e-2], cv=3, max_time=1e-9).fit(X, y)
    assert search.l2_ == 1.0 and np.isnan(search.best_score_) and search.score(X, y) > 0.8


def test_fits_that_stop_short_are_one_warning():
    # each of them was one
    with pytest.warns(ConvergenceWarning) as said:
        SmSVMClassifierCV([1e-6, 1e-5], cv=3, estimator=SmSVMClassifier(max_passes=2, tol=1e-9)).fit(X, y)
    assert len(said) == 1 and "6 of 6 fits of folds stopped short of the tolerance" in str(said[0].message)


def test_a_fold_whose_rows_all_weigh_nothing_has_no_score():
    weights = np.ones(len(y))
    folds = list(StratifiedKFold(3).split(X, y))
    weights[folds[1][1]] = 0
    with pytest.warns(UserWarning, match="Scores are NaN in folds 2 of 3") as said:
        search = SmSVMClassifierCV(L2S, cv=folds).fit(X, y, weights)
    assert len(said) == 1 and search.best_score_ == np.nanmean(search.scores_, axis=0).max()


def test_metadata_routing():
    groups = np.arange(len(y)) % 7
    plain = SmSVMClassifierCV([1e-2], cv=GroupKFold(3), scoring="f1").fit(X, y, WEIGHTS, groups)
    with config_context(enable_metadata_routing=True):
        weighted = get_scorer("f1").set_score_request(sample_weight=True)
        search = SmSVMClassifierCV([1e-2], cv=GroupKFold(3), scoring=weighted)
        np.testing.assert_array_equal(clone(search).fit(X, y, WEIGHTS, groups).scores_, plain.scores_)
        search.set_fit_request(sample_weight=True, groups=True)
        piped = make_pipeline(search).fit(X, y, sample_weight=WEIGHTS, groups=groups)
        np.testing.assert_array_equal(piped[-1].scores_, plain.scores_)
        alike = SmSVMClassifierCV([1e-2], cv=GroupKFold(3), scoring=get_scorer("f1").set_score_request(
            sample_weight=False)).fit(X, y, WEIGHTS, groups)
        assert not np.array_equal(alike.scores_, plain.scores_)


def test_folds_may_be_masks_or_draw_rows_twice():
    masks = [(np.arange(len(y)) % 3 != k, np.arange(len(y)) % 3 == k) for k in range(3)]
    numbers = [(np.flatnonzero(a), np.flatnonzero(b)) for a, b in masks]
    np.testing.assert_array_equal(SmSVMClassifierCV(L2S, cv=masks).fit(X, y).scores_,
                                  SmSVMClassifierCV(L2S, cv=numbers).fit(X, y).scores_)
    drawn = np.random.default_rng(1).integers(0, len(y), len(y))
    fine = SmSVMClassifier(tol=1e-7)
    search = SmSVMClassifierCV([1e-2], cv=[(drawn, np.arange(len(y)))], estimator=fine).fit(X, y)
    assert search.scores_[0, 0, 0] == SmSVMClassifier(l2=1e-2, tol=1e-7).fit(X[drawn], y[drawn]).score(X, y)
