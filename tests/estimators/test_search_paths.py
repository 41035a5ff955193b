"""Folds of a search as certified paths, on rows that stay in place."""


import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cmargin._estimators.search import held_out, path_fold
from cmargin.smsvm import SmSVMClassifier
from cmargin.smsvm_cv import SmSVMClassifierCV
from cmargin.solvers.path import PathSolver

X, y = load_breast_cancer(return_X_y=True)
X = (X - X.mean(0)) / X.std(0)
L2S = [1e-4, 1e-2, 1.0]
NOISY = np.where(np.random.default_rng(5).random(len(y)) < 0.2, 1 - y, y)

@pytest.fixture(params=[False, True], ids=["in place", "copied"])
def where(request, monkeypatch):
    """Training rows of a fold stay where they are, those held out weighing nothing, or are copied."""
    monkeypatch.setattr(path_fold, "is_small", lambda source: request.param)
    return request.param


@pytest.fixture
def solvers(monkeypatch):
    """The solvers that the search of a test has made."""
    made, init = [], PathSolver.__init__

    def noted(self, *given, **named):
        init(self, *given, **named)
        made.append(self)

    monkeypatch.setattr(PathSolver, "__init__", noted)
    return made


IRIS, KINDS = load_iris(return_X_y=True)
LABELS = np.column_stack([X[:, 0] > 0, X[:, 1] > 0.5, X[:, 2] + X[:, 3] > 1]).astype(int)


@pytest.mark.parametrize("settings", [{}, {"loss": "logistic", "class_weight": "balanced"}, {"loss": "squared_hinge"},
                                      {"penalize_intercept": True}, {"fit_intercept": False}], ids=str)
@pytest.mark.parametrize("rows, labels", [(X, y), (X, LABELS), (IRIS, KINDS), (sparse.csr_matrix(IRIS), KINDS),
                                          (X.astype(np.float32), y)],
                         ids=["two classes", "indicator", "three", "CSR", "float32"])
def test_paths_score_as_fits_one_by_one(where, settings, rows, labels):
    if labels is LABELS:                         # weights of each label's classes are for fits one by one
        settings = {name: value for name, value in settings.items() if name != "class_weight"}
    fine = SmSVMClassifier(tol=1e-6, **settings)
    weights = np.random.default_rng(3).integers(0, 3, len(labels)).astype(float)
    one_by_one = clone(fine).set_params(callback=lambda model: False)
    for grid in ({"l2s": L2S, "l1s": [0.0, 1e-2]}, {"Cs": [1.0, 1e-2]}):
        found, wanted = (SmSVMClassifierCV(cv=3, estimator=one, **grid).fit(rows, labels, weights).scores_
                         for one in (fine, one_by_one))
        assert np.abs(found - wanted).max() <= 1.5 / (len(labels) / 3)           # a row that is all but on the line


def test_a_path_makes_few_of_the_fits_and_certifies_all_penalties(where, solvers):
    l2s, y = np.geomspace(1e-1, 1e-6, 60), NOISY
    search = SmSVMClassifierCV(l2s, cv=4, estimator=SmSVMClassifier(tol=1e-3, loss="logistic")).fit(X, y)
    assert len(solvers) == 4 and sum(one.n_solved for one in solvers) <= 4 * 60 / 2
    assert (search.cv_results_["max_duality_gap"] <= 1e-3).all()
    # one pair proves the gap of the weights that are scored, which is measured here
    train, test = next(StratifiedKFold(4).split(X, y))
    for l2 in l2s[::13]:
        w = solvers[0].certify(l2)[0].w
        z = np.where(y[train] == 1, 1, -1) * (X[train] @ w[:-1] + w[-1])
        best = SmSVMClassifier(l2=l2, tol=1e-7, loss="logistic").fit(X[train], y[train])
        assert np.logaddexp(0, -z).mean() + l2 / 2 * w[:-1] @ w[:-1] <= best.objective_[0] * (1 + 1.1e-3)
        i = list(l2s).index(l2)
        assert search.scores_[0, i, 0] == ((X[test] @ w[:-1] + w[-1] > 0) == y[test]).mean()


def test_rows_of_a_fold_are_not_copied(solvers, monkeypatch):
    # four fifths of X were, for every fold
    monkeypatch.setattr(path_fold, "is_small", lambda source: False)
    SmSVMClassifierCV(L2S, cv=5).fit(X, y)
    assert len(solvers) == 5 and all(np.shares_memory(one.source.X, X) for one in solvers)
    assert all(np.count_nonzero(one.weights) == len(X) - len(test)
               for one, (_, test) in zip(solvers, StratifiedKFold(5).split(X, y), strict=True))


@pytest.mark.parametrize("scoring", [None, "roc_auc"])
def test_rows_held_out_are_multiplied_once_for_every_fit(where, solvers, monkeypatch, scoring):
    # and not once for every penalty
    seen, decisions = [], held_out.decisions
    monkeypatch.setattr(held_out, "decisions", lambda *given: seen.append(len(given[2])) or decisions(*given))
    estimator = SmSVMClassifier(tol=1e-2)
    SmSVMClassifierCV(np.geomspace(1e-1, 1e-6, 100), cv=3, scoring=scoring, estimator=estimator).fit(X, y)
    assert sum(seen) <= sum(one.n_solved for one in solvers) < 3 * 100 / 3
    assert len(seen) <= sum(np.ceil(one.n_solved / held_out.KEPT) for one in solvers)      # reads of them


def test_threads_change_no_bit_of_a_search(where):
    many = np.tile(X, (20, 1)), np.tile(y, 20)
    one, three = (SmSVMClassifierCV(L2S, [0.0, 1e-3], cv=3, n_jobs=n).fit(*many) for n in (1, 3))
    assert one.scores_.tobytes() == three.scores_.tobytes() and one.coef_.tobytes() == three.coef_.tobytes()
    np.testing.assert_array_equal(one.cv_results_["max_duality_gap"], three.cv_results_["max_duality_gap"])


@pytest.mark.parametrize("rows", [X, sparse.csr_matrix(np.abs(X) * (X > 0))], ids=["dense", "CSR"])
def test_columns_are_standardised_by_the_rows_of_each_fold(rows):
    size = np.logspace(0, 3, 30)
    spread = (rows @ sparse.diags(size)).tocsr() if sparse.issparse(rows) else rows * size + 5
    fine = SmSVMClassifier(tol=1e-6)
    search = SmSVMClassifierCV(L2S, cv=3, estimator=fine, standardize=True, refit=False).fit(spread, y)
    scaled = make_pipeline(StandardScaler(with_mean=not sparse.issparse(rows)), fine)
    grid = GridSearchCV(scaled, {"smsvmclassifier__l2": L2S}, cv=3).fit(spread, y)
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], grid.cv_results_["mean_test_score"], atol=1e-9)


def test_time_that_ends_a_path_keeps_what_it_has_proven(monkeypatch, tmp_path):
    solve_all, begun = PathSolver.solve_all, []

    def ends_early(self, l2s, l1s):
        begun.append(self)
        if len(begun) != 2:
            return solve_all(self, l2s, l1s)
        self.solve(max(l2s))
        self.stopped = "max_time"

    monkeypatch.setattr(PathSolver, "solve_all", ends_early)
    search = SmSVMClassifierCV([1e-6, 1e-2, 1.0], cv=3, max_time=1000, checkpoint=tmp_path / "search")
    with pytest.warns(ConvergenceWarning, match="with 2 of 9 fits of folds not made: their scores are NaN") as said:
        search.fit(X, y)
    assert len(said) == 1 and np.isnan(search.scores_[1, :, 0]).tolist() == [True, True, False]
    assert np.isfinite(search.scores_[[0, 2]]).all() and search.l2_ == 1.0     # which alone all three folds have scored
    whole = clone(search).set_params(max_time=None).fit(X, y)                  # goes on with the second fold
    assert len(begun) == 4
    np.testing.assert_array_equal(whole.scores_, SmSVMClassifierCV([1e-6, 1e-2, 1.0], cv=3).fit(X, y).scores_)


def test_a_path_that_time_has_ended_is_not_taken_for_the_next(monkeypatch):
    # the second l1's path was counted in place of the first's, whose scores a later call would not have made
    solve_all, begun = PathSolver.solve_all, []

    def first_ends_early(self, l2s, l1s):
        begun.append(self)
        if len(begun) == 1:
            self.stopped = "max_time"
        else:
            solve_all(self, l2s, l1s)

    monkeypatch.setattr(PathSolver, "solve_all", first_ends_early)
    with pytest.warns(ConvergenceWarning, match="with 3 of 12 fits of folds not made"):
        search = SmSVMClassifierCV(L2S, [0.0, 1e-3], cv=2, max_time=1000).fit(X, y)
    assert np.isnan(search.scores_[0, :, 0]).all() and np.isfinite(search.scores_[0, :, 1]).all()
    assert search.l1_ == 1e-3                                          # which both folds have scored


def test_an_interrupt_within_a_path_changes_nothing(monkeypatch):
    search = SmSVMClassifierCV(L2S, cv=3).fit(X, y)
    before = dict(vars(search))
    fit_at, calls = PathSolver.fit_at, []

    def interrupted(self, asked):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return fit_at(self, asked)

    monkeypatch.setattr(PathSolver, "fit_at", interrupted)
    with pytest.raises(KeyboardInterrupt):
        search.fit(X[:, :5], LABELS)
    assert before.keys() == vars(search).keys() and all(vars(search)[name] is value for name, value in before.items())


@pytest.mark.parametrize("bad, match", [({"tol": -1.0}, "The 'tol' parameter of SmSVMClassifier"),
                                        ({"loss": "none"}, "The 'loss' parameter"), ({"n_jobs": 1.5}, "'n_jobs'"),
                                        ({"class_weight": [{0: 1.0}]}, "class_weight is of the labels")], ids=str)
def test_parameters_of_the_estimator_are_checked_before_any_path(bad, match):
    with pytest.raises(ValueError, match=match):
        SmSVMClassifierCV(L2S, cv=3, estimator=SmSVMClassifier(**bad)).fit(X, y)
    with pytest.raises(ValueError, match="needs l1=0"):
        SmSVMClassifierCV(L2S, [1e-3], cv=3, estimator=SmSVMClassifier(linear_solver="dual")).fit(X, y)
