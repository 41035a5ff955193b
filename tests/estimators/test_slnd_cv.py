"""`SLNDClassifierCV`: the multinomial penalty by cross-validation, folds by weights of 0 along certified paths."""

import time

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import make_scorer, recall_score
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale

from cmargin import BSNClassifier, Checkpoint, SLNDClassifier, SLNDClassifierCV
from cmargin._estimators.search import multinomial
from cmargin.data.memory.source import MemorySource
from cmargin.plots import SearchDisplay

X, y = load_wine(return_X_y=True)
X, names = scale(X), np.array(["barbera", "barolo", "grignolino"])
y = names[y]
X2, y2 = load_breast_cancer(return_X_y=True)
X2 = scale(X2)
L2S = [1e-3, 1e-1, 1e-2]


@pytest.mark.parametrize("rows, labels", [(X, y), (X2, y2)], ids=["three", "two"])
@pytest.mark.parametrize("scoring", [None, "neg_log_loss", "roc_auc_ovr", "accuracy"])
def test_chooses_as_a_grid_search_does(rows, labels, scoring):
    fine, folds = SLNDClassifier(loss="multinomial", tol=1e-8), StratifiedKFold(4)
    if scoring == "roc_auc_ovr" and len(np.unique(labels)) == 2:
        scoring = "roc_auc"
    ours = SLNDClassifierCV(L2S, cv=folds, scoring=scoring, estimator=fine).fit(rows, labels)
    grid = GridSearchCV(fine, {"l2": L2S}, cv=folds, scoring=scoring).fit(rows, labels)
    assert ours.scores_.shape == (4, 3) and ours.n_splits_ == 4 and ours.penalties_.tolist() == L2S
    for k in range(4):
        np.testing.assert_allclose(ours.scores_[k], grid.cv_results_[f"split{k}_test_score"], rtol=5e-4)
    assert ours.best_score_ == pytest.approx(grid.best_score_, rel=5e-4)
    np.testing.assert_array_equal(ours.coef_, SLNDClassifier(loss="multinomial", l2=ours.l2_, tol=1e-8)
                                  .fit(rows, labels).coef_)
    assert (ours.cv_results_["max_duality_gap"] <= 1e-8).all() and ours.best_params_ == {"l2": ours.l2_}


def test_is_logistic_regression_cv():
    Cs, weight = np.logspace(-2, 2, 5), np.random.default_rng(0).uniform(0.5, 2, len(y))
    fine = SLNDClassifier(class_weight={"barolo": 2.0}, tol=1e-8)
    ours = SLNDClassifierCV(Cs=Cs, cv=4, scoring="neg_log_loss", estimator=fine)
    theirs = LogisticRegressionCV(Cs=Cs, cv=4, scoring="neg_log_loss", class_weight={"barolo": 2.0}, tol=1e-8,
                                  max_iter=5000, l1_ratios=(0,), use_legacy_attributes=False)
    ours.fit(X, y, weight), theirs.fit(X, y, weight)
    np.testing.assert_allclose(ours.scores_, np.squeeze(theirs.scores_), rtol=1e-3)
    assert ours.C_ == pytest.approx(float(theirs.C_)) and ours.classes_.tolist() == names.tolist()
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-4)
    np.testing.assert_allclose(np.exp(ours.predict_log_proba(X)), ours.predict_proba(X), rtol=1e-6)
    assert ours.l2_ == pytest.approx(1 / (ours.C_ * (weight * np.where(y == "barolo", 2.0, 1.0)).sum()))


def test_balanced_classes_are_those_of_the_training_rows():
    balanced, folds = SLNDClassifier(class_weight="balanced", tol=1e-8), KFold(3, shuffle=True, random_state=0)
    ours = SLNDClassifierCV([1e-2], cv=folds, scoring="neg_log_loss", estimator=balanced).fit(X, y)
    for score, (train, test) in zip(ours.scores_[:, 0], folds.split(X), strict=True):
        alone = SLNDClassifier(class_weight="balanced", tol=1e-8, l2=1e-2).fit(X[train], y[train])
        own = alone.predict_log_proba(X[test])[np.arange(len(test)), np.searchsorted(names, y[test])].mean()
        assert score == pytest.approx(own, rel=1e-5)


# ---------------------------------------------------------------- what it costs

def test_no_rows_are_copied_for_a_fold(monkeypatch):
    # a search of accuracy or of log-loss reads the rows where they lie; held-out scores come with the fits
    taken = []
    monkeypatch.setattr(MemorySource, "keep", lambda self, rows: taken.append(rows))
    SLNDClassifierCV(L2S, scoring="neg_log_loss", refit=False).fit(X, y, np.arange(len(y)) % 3 + 1.0)
    assert not taken


def test_a_path_of_a_fold_takes_fewer_reads_than_fits_apart():
    rows, labels = load_digits(return_X_y=True)
    rows, l2s = scale(rows), np.geomspace(1e-1, 1e-6, 8)
    search = SLNDClassifierCV(l2s, cv=3, refit=False).fit(rows, labels)
    apart = sum(SLNDClassifier(l2=l2).fit(rows[train], labels[train]).n_passes_
                for train, _ in StratifiedKFold(3).split(rows, labels) for l2 in l2s)
    assert search.n_passes_ < 0.75 * apart


def test_penalties_that_others_prove_are_scored_without_a_fit(capsys):
    dense = SLNDClassifierCV(np.geomspace(1e-1, 1e-3, 200), cv=3, verbose=1, refit=False,
                             estimator=SLNDClassifier(tol=1e-3)).fit(X, y)
    said = capsys.readouterr().out
    assert said.count("no fit") > 400 and (dense.cv_results_["max_duality_gap"] <= 1e-3).all()
    assert np.abs(np.diff(dense.scores_, axis=1)).max() < 0.1 and np.isfinite(dense.scores_).all()


def test_bits_do_not_depend_on_threads():
    one, two = (SLNDClassifierCV(L2S, scoring="neg_log_loss", n_jobs=n).fit(X2, y2) for n in (1, 2))
    np.testing.assert_array_equal(one.scores_, two.scores_)
    np.testing.assert_array_equal(one.coef_, two.coef_)


# ---------------------------------------------------------------- what is given, what is found

@pytest.mark.parametrize("layout", [np.asfortranarray, np.float32, sparse.csr_array], ids=["F", "float32", "csr"])
@pytest.mark.parametrize("scoring", ["neg_log_loss", "f1_macro"])
def test_rows_of_every_kind(layout, scoring):
    expected = SLNDClassifierCV(L2S, scoring=scoring).fit(X, y).scores_
    np.testing.assert_allclose(SLNDClassifierCV(L2S, scoring=scoring).fit(layout(X), y).scores_, expected, rtol=2e-3)


def test_weights_of_0_leave_rows_out_of_fits_and_scores():
    weight = np.ones(len(y))
    weight[::7] = 0
    folds = [(train, test) for train, test in StratifiedKFold(3).split(X, y)]
    there, place = np.flatnonzero(weight), np.cumsum(weight > 0) - 1
    without = [(place[train[weight[train] > 0]], place[test[weight[test] > 0]]) for train, test in folds]
    ours = SLNDClassifierCV(L2S, cv=folds, estimator=SLNDClassifier(tol=1e-8), scoring="neg_log_loss").fit(X, y, weight)
    apart = SLNDClassifierCV(L2S, cv=without, estimator=SLNDClassifier(tol=1e-8), scoring="neg_log_loss")
    np.testing.assert_allclose(ours.scores_, apart.fit(X[there], y[there]).scores_, rtol=1e-5)


def test_rows_that_a_fold_has_twice_weigh_twice():
    rng = np.random.default_rng(2)
    train, test = rng.integers(0, len(y), 2 * len(y)), np.arange(0, len(y), 2)
    fine = SLNDClassifier(tol=1e-8)
    search = SLNDClassifierCV([1e-2], cv=[(train, test)], estimator=fine, scoring="neg_log_loss", refit=False).fit(X, y)
    alone = SLNDClassifier(tol=1e-8, l2=1e-2).fit(X[train], y[train])
    own = alone.predict_log_proba(X[test])[np.arange(len(test)), np.searchsorted(names, y[test])].mean()
    assert search.best_score_ == pytest.approx(own, rel=1e-5)


def test_a_scorer_gets_the_weights_it_takes():
    weight = np.random.default_rng(1).uniform(0, 2, len(y))
    def accuracy(model, rows, labels):           # by its name nothing is known of it
        return 2 + model.score(rows, labels)

    assert SLNDClassifierCV(L2S, scoring=accuracy).fit(X, y, weight).scores_.min() > 2
    own = make_scorer(recall_score, average="macro")
    for scoring in (own, lambda model, rows, labels: model.score(rows, labels)):
        search = SLNDClassifierCV(L2S, scoring=scoring).fit(X, y, weight)
        assert np.isfinite(search.scores_).all() and search.best_score_ > 0.9
    assert search.score(X, y) == search.best_estimator_.score(X, y)


def test_a_class_that_a_fold_lacks_is_never_predicted_there():
    labels = y.copy()
    labels[[3, 4]] = "merlot"
    folds = [(np.arange(5, len(y)), np.arange(5)), *StratifiedKFold(2).split(X, y)]
    with pytest.warns(UserWarning, match="'merlot' is absent from the training rows of some folds"):
        search = SLNDClassifierCV(L2S, cv=folds).fit(X, labels)
    assert (search.scores_[0] <= 0.6).all() and len(search.classes_) == 4
    with pytest.warns(UserWarning, match="absent"):
        losses = SLNDClassifierCV(L2S, cv=folds, scoring="neg_log_loss").fit(X, labels).scores_[0]
    assert (losses <= 0.4 * np.log(np.finfo(float).eps)).all() and np.isfinite(losses).all()


def test_a_fold_of_one_class_predicts_that():
    order = np.argsort(y, kind="stable")
    with pytest.warns(UserWarning, match="absent"):
        search = SLNDClassifierCV(L2S, cv=[(order[:30], order[30:]), (order[::2], order[1::2])]).fit(X, y)
    np.testing.assert_allclose(search.scores_[0], np.mean(y[order[30:]] == names[0]))


def test_groups_reach_the_splitter():
    groups = np.arange(len(y)) % 7
    by_group = SLNDClassifierCV([1e-2], cv=GroupKFold(3)).fit(X, y, groups=groups)
    given = SLNDClassifierCV([1e-2], cv=list(GroupKFold(3).split(X, y, groups))).fit(X, y)
    np.testing.assert_array_equal(by_group.scores_, given.scores_)


def test_one_standard_error_chooses_a_stronger_penalty():
    l2s = np.geomspace(1, 1e-5, 11)
    best, simple = (SLNDClassifierCV(l2s, scoring="neg_log_loss", one_standard_error=flag).fit(X, y)
                    for flag in (False, True))
    at_best = best.scores_[:, best.best_index_]
    assert simple.l2_ > best.l2_
    assert simple.best_score_ >= best.best_score_ - at_best.std(ddof=1) / np.sqrt(5)


def test_a_number_of_penalties_begins_where_weights_are_the_means_difference():
    search = SLNDClassifierCV(7, refit=False).fit(X, y)
    assert search.penalties_.max() == pytest.approx(X.var(axis=0).sum() / 2)
    assert search.penalties_.min() == pytest.approx(1e-6 * search.penalties_.max())
    assert SLNDClassifierCV(refit=False).fit(X, y).penalties_.tolist() == [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1]


def test_a_penalty_given_twice_is_solved_once():
    twice = SLNDClassifierCV([1e-2, 1.0, 1e-2], cv=3).fit(X, y)
    once = SLNDClassifierCV([1.0, 1e-2], cv=3).fit(X, y)
    np.testing.assert_array_equal(twice.scores_, once.scores_[:, [1, 0, 1]])
    assert twice.n_passes_ == once.n_passes_


def test_without_a_refit_there_are_scores_and_no_predictions():
    search = SLNDClassifierCV(L2S, refit=False).fit(X, y)
    assert search.scores_.shape == (5, 3) and search.l2_ in L2S
    assert not hasattr(search, "predict") and not hasattr(search, "coef_")


def test_it_stands_in_a_pipeline_and_a_display():
    search = make_pipeline(StandardScaler(), SLNDClassifierCV(L2S, cv=3)).fit(X, y)
    assert search.score(X, y) > 0.98 and search[-1].to_sklearn().score(X, y) > 0.98
    display = SearchDisplay.from_estimator(search)
    assert display.parameter == "l2" and display.chosen == search[-1].l2_


# ---------------------------------------------------------------- how it ends

def test_time_ends_the_search_with_what_was_scored(monkeypatch):
    advance, seen = multinomial.FoldPath.advance, []

    def slow(self):
        for _ in advance(self):
            seen.append(self.number)
            if len(seen) == 7:
                self.path.optima.run.clock.deadline = 0.0            # of this fold: its next fit is none
            yield

    monkeypatch.setattr(multinomial.FoldPath, "advance", slow)
    search = SLNDClassifierCV(np.geomspace(1, 1e-6, 8), cv=5, max_time=1000.0)
    with pytest.warns(ConvergenceWarning, match="stopped at max_time=1000 s with .* fits of folds not made"):
        search.fit(X, y)
    assert seen[:5] == [0, 1, 2, 3, 4]                               # penalty by penalty, so that folds are comparable
    assert np.isfinite(search.scores_[:, 0]).all() and np.isnan(search.scores_[:, -1]).all()
    assert search.l2_ in search.penalties_[:2] and hasattr(search, "coef_")


def test_max_time_is_kept():
    rng = np.random.default_rng(0)
    rows, labels = rng.standard_normal((20_000, 30)), rng.integers(0, 10, 20_000)
    begin = time.perf_counter()
    with pytest.warns(ConvergenceWarning, match="max_time"):
        SLNDClassifierCV(Cs=np.logspace(-4, 8, 500), max_time=1.0, refit=False,
                         estimator=SLNDClassifier(tol=1e-9)).fit(rows, labels)
    assert time.perf_counter() - begin < 5


def test_fits_that_fall_short_are_named_once():
    with pytest.warns(ConvergenceWarning, match="fits of folds stopped short of the tolerance") as said:
        SLNDClassifierCV([1e-3], cv=3, estimator=SLNDClassifier(tol=1e-300)).fit(X, y)
    assert len(said) == 1


@pytest.mark.parametrize("given, said", [
    ({"l2s": [0.0, 1.0]}, r"in the range \(0.0, inf\)"), ({"l2s": []}, "sequence of floats"), ({"l2s": 0}, "'l2s'"),
    ({"l2s": [1.0], "Cs": [1.0]}, "not both"), ({"Cs": [np.inf]}, "'Cs' parameter"), ({"max_time": 0}, "'max_time'"),
    ({"estimator": SLNDClassifier(loss="logistic")}, "needs loss='multinomial'"), ({"refit": 3}, "'refit'"),
    ({"estimator": SLNDClassifier(tol=-1.0)}, "'tol'"), ({"estimator": LogisticRegressionCV()}, "'estimator'"),
    ({"estimator": SLNDClassifier(checkpoint="there")}, "no checkpoint"), ({"scoring": "unheard_of"}, "unheard_of"),
])
def test_refuses(given, said):
    search = SLNDClassifierCV(**given)
    with pytest.raises(ValueError, match=said):
        search.fit(X, y)
    assert not hasattr(search, "scores_") and not hasattr(search, "n_features_in_")


def test_refuses_an_indicator_and_one_class():
    with pytest.raises(ValueError, match="exclude each other"):
        SLNDClassifierCV(L2S).fit(X, np.eye(3, dtype=int)[np.arange(len(y)) % 3])
    with pytest.raises(ValueError, match="one class"):
        SLNDClassifierCV(L2S).fit(X, np.zeros(len(y)))


def test_the_estimator_stays_what_it_is():
    search = SLNDClassifierCV(L2S, estimator=BSNClassifier(fit_intercept=False)).fit(X, y)
    assert isinstance(search.best_estimator_, BSNClassifier) and not search.intercept_.any()
    assert not hasattr(search.estimator, "coef_") and search.estimator.l2 == 0.0


def test_a_search_goes_on_from_its_checkpoint(tmp_path):
    calls = []

    def failing(model, rows, labels):
        calls.append(1)
        if len(calls) == 8:
            raise RuntimeError("the power went")
        return model.score(rows, labels)

    search = SLNDClassifierCV(L2S, cv=3, scoring=failing, checkpoint=Checkpoint(tmp_path / "search", passes=1))
    with pytest.raises(RuntimeError, match="the power went"):
        search.fit(X, y)
    search.fit(X, y)
    assert len(calls) == 8 + 2                                       # the third fold's second penalty, and its third
    np.testing.assert_allclose(search.scores_, SLNDClassifierCV(L2S, cv=3).fit(X, y).scores_, atol=0.02)
    assert not (tmp_path / "search").exists()
