"""`SmSVMClassifier(prune=, coef_dtype=)`: zeros within a certificate, stored as a matrix, and whoever reads them."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import cmargin
from cmargin import SmSVMClassifier, SmSVMClassifierCV
from cmargin._estimators.kept_weights import KeptWeights
from cmargin._estimators.pruned import BatchPruning
from cmargin._estimators.smsvm_fit import SmSVMFit
from cmargin.export import load_liblinear, save_liblinear
from cmargin.margins import label_thresholds
from cmargin.solvers.pruning import pruned

LOSSES = {"hinge": lambda z: np.maximum(0, 1 - z), "squared_hinge": lambda z: np.maximum(0, 1 - z)**2,
          "logistic": lambda z: np.logaddexp(0, -z),
          "huberised_hinge": lambda z: np.where(z > 0, np.maximum(0, 1 - z)**2 / 2, 0.5 - z),
          "modified_huber": lambda z: np.where(z > -1, np.maximum(0, 1 - z)**2, -4 * z)}


def drawn(seed, n=300, m=40, n_labels=50, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = sp.random(n, m, 0.2, "csr", dtype, rng)
    scores = X @ (rng.normal(size=(m, n_labels)) * rng.uniform(0, 1, (m, 1))**4) + 0.3 * rng.normal(size=(n, n_labels))
    shares = rng.uniform(0.02, 0.4, n_labels)
    return X, sp.csc_matrix((scores > np.quantile(scores, 1 - shares, axis=0).diagonal()).astype(np.int8))


def objective(model, X, y, c=0, weight=None):
    w, b = model.coef_.toarray()[c].astype(float), model.intercept_[c]
    weight = np.ones(X.shape[0]) if weight is None else weight
    l2 = 1 / (model.C * weight.sum())
    value = weight @ LOSSES[model.loss](y * (X @ w + b)) / weight.sum() + model.l1 * np.abs(w).sum()
    return value + l2 / 2 * (w @ w + model.penalize_intercept * b * b)


# ---------------------------------------------------------------- certificates

@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "CSR"])
def test_a_pruned_problem_reports_the_objective_and_gap_of_what_is_left(loss, sparse):
    for seed in range(6):
        X, Y = drawn(seed, n_labels=1)
        X, y = (X if sparse else X.toarray()), Y.toarray().ravel()
        weight = np.random.default_rng(seed).uniform(0, 2, len(y)) if seed % 2 else None
        more = {"l1": 1e-3 * (seed % 3 == 1), "penalize_intercept": seed % 3 == 2, "loss": loss, "C": 1.0}
        model = SmSVMClassifier(prune=0.05, **more).fit(X, y, weight)
        best = SmSVMClassifier(tol=1e-8, **more).fit(X, y, weight)
        assert model.coef_.format == "csc" and model.coef_.nnz < np.count_nonzero(best.coef_)
        reached = objective(model, X, 2.0 * y - 1, weight=weight)
        np.testing.assert_allclose(model.objective_[0], reached, rtol=1e-9)
        bound = reached * (1 - model.duality_gap_[0])
        assert model.duality_gap_[0] <= 0.05 and bound <= best.objective_[0] * (1 + 1e-9)


@pytest.mark.parametrize("intercept", ["free", "penalised", "none"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_labels_side_by_side_report_the_objective_and_gap_of_what_is_left(intercept, dtype):
    for seed, prune in ((0, 0.05), (1, 0.01), (2, 1e-3)):
        X, Y = drawn(seed, dtype=dtype)
        weight = np.random.default_rng(seed).uniform(0, 2, X.shape[0]) if seed % 2 else None
        parameters = {"fit_intercept": intercept != "none", "penalize_intercept": intercept == "penalised",
                      "loss": "squared_hinge", "C": 1.0, "tol": 1e-3}
        model = SmSVMClassifier(prune=prune, **parameters).fit(X, Y, weight)
        assert set(model.history_["smoothing"]) == {0.0}                 # all of them went side by side
        assert (model.duality_gap_ <= prune).all()
        zeros = 1 - model.coef_.nnz / np.prod(model.coef_.shape)
        assert zeros > {0.05: 0.4, 0.01: 0.2, 1e-3: 0.05}[prune]
        for c in (0, 17, 49):
            y = 2.0 * Y[:, [c]].toarray().ravel() - 1
            np.testing.assert_allclose(model.objective_[c], objective(model, X.astype(float), y, c, weight), rtol=1e-9)
            best = SmSVMClassifier(**{**parameters, "tol": 1e-9}).fit(X, Y[:, [c]], weight).objective_[0]
            assert model.objective_[c] * (1 - model.duality_gap_[c]) <= best * (1 + 1e-9)


def test_the_bound_of_pruned_labels_holds_by_an_independent_solver():
    X, Y = drawn(7, n_labels=20)
    model, l2 = SmSVMClassifier(loss="squared_hinge", C=1.0, prune=0.03).fit(X, Y), 1 / X.shape[0]

    def value(v, y):
        slack = np.maximum(0, 1 - y * (X @ v[:-1] + v[-1]))
        return l2 / 2 * v[:-1] @ v[:-1] + (slack**2).mean(), \
            np.append(l2 * v[:-1] - X.T @ (2 * slack * y) / len(y), -(2 * slack * y).mean())

    for c in range(0, 20, 4):
        least = minimize(value, np.zeros(X.shape[1] + 1), 2.0 * Y[:, [c]].toarray().ravel() - 1, "L-BFGS-B", jac=True,
                         options={"maxiter": 5000, "ftol": 1e-15, "gtol": 1e-12}).fun
        assert model.objective_[c] * (1 - model.duality_gap_[c]) <= least * (1 + 1e-12)


def test_weights_that_are_left_are_trained_again():
    X, Y = drawn(4)
    once = SmSVMClassifier(loss="squared_hinge", C=1.0, tol=1e-3, prune=0.05, callback=lambda e: False).fit(X, Y)
    again = SmSVMClassifier(loss="squared_hinge", C=1.0, tol=1e-3, prune=0.05).fit(X, Y)
    assert again.coef_.nnz < 0.97 * once.coef_.nnz
    assert (again.duality_gap_ <= 0.05).all() and (once.duality_gap_ <= 0.05).all()


def test_nearly_as_many_weights_go_as_in_that_order_may():
    rng = np.random.default_rng(0)
    for _ in range(20):
        m = int(rng.integers(1, 60))
        A, W = rng.normal(size=(m + 3, m)), rng.normal(size=(m, 3)) * rng.uniform(0, 1, (m, 3))**3
        H, at = A.T @ A, W.copy()

        def value(V, H=H, at=at):
            return 1 + np.einsum("jl,jk,kl->l", V - at, H, V - at) / 2

        bend, allowed = np.repeat(np.diag(H)[:, None], 3, axis=1), 1 + rng.uniform(0, 1, 3) * (value(0 * W) - 1)
        found = pruned(W, bend, value, allowed)
        assert (value(found) <= allowed * (1 + 1e-12)).all()
        order = np.argsort(bend * W**2, axis=0)
        for c in range(3):
            fits = []
            for count in range(m + 1):
                V = W.copy()
                V[order[:count, c], c] = 0
                fits.append(value(V)[c] <= allowed[c])
            first_not = fits.index(False) if False in fits else m + 1
            assert np.count_nonzero(found[:, c] == 0) >= 0.8 * (first_not - 1) - 1


def test_zeros_go_before_weights_that_cost_nothing():
    W, at_most = np.array([[3.0], [0.0], [0.0], [1.0]]), np.array([1.5])
    found = pruned(W, np.array([[0.0], [1.0], [1.0], [1.0]]), lambda V: 1 + np.abs(V - W).sum(axis=0), at_most)
    np.testing.assert_array_equal(found, W)                  # the curvature is that of a hinge without rows at its kink


def test_equal_bits_for_any_number_of_threads():
    X, Y = drawn(5, n=120, n_labels=150)
    model = SmSVMClassifier(loss="squared_hinge", C=1.0, prune=0.05)
    one, three = (clone(model).set_params(n_jobs=n_jobs).fit(X, Y) for n_jobs in (1, 3))
    assert (one.coef_ != three.coef_).nnz == 0
    np.testing.assert_array_equal(one.duality_gap_, three.duality_gap_)


def test_what_side_by_side_does_not_prove_is_pruned_alone():
    X, Y = drawn(2, n_labels=20)
    far = sp.csr_matrix(X.multiply(np.where(np.arange(40) % 2, 1e4, 1.0)))
    model = SmSVMClassifier(loss="squared_hinge", C=1e3, max_passes=2000, prune=0.05).fit(far, Y)
    assert (model.duality_gap_ <= 0.05).all() and model.coef_.nnz < 0.9 * np.prod(model.coef_.shape)


@pytest.mark.filterwarnings("ignore:Label")
def test_labels_of_one_sign_have_no_weights():
    X, Y = drawn(6)
    Y = Y.tolil()
    Y[:, 3], Y[:, 8] = 0, 1
    model = SmSVMClassifier(loss="squared_hinge", C=1.0, prune=0.05).fit(X, Y.tocsr())
    assert model.coef_[[3, 8]].nnz == 0 and (model.duality_gap_ <= 0.05).all()


# ---------------------------------------------------------------- single precision

@pytest.mark.parametrize("n_labels", [1, 3, 20])
def test_weights_in_single_precision_report_what_they_reach(n_labels):
    X, Y = drawn(3, n_labels=n_labels)
    double = SmSVMClassifier(loss="squared_hinge", C=1.0).fit(X, Y)
    model = clone(double).set_params(coef_dtype="float32").fit(X, Y)
    assert model.coef_.dtype == np.float32 and type(model.coef_) is np.ndarray and double.coef_.dtype == np.float64
    np.testing.assert_array_equal(model.coef_, double.coef_.astype(np.float32))
    model.coef_ = sp.csc_matrix(model.coef_)
    for c in range(n_labels):
        y = 2.0 * Y[:, [c]].toarray().ravel() - 1
        np.testing.assert_allclose(model.objective_[c], objective(model, X, y, c), rtol=1e-12)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "CSR"])
@pytest.mark.parametrize("more", [{}, {"prune": 0.1}, {"max_passes": 3.0}])
def test_rows_in_single_precision_are_summed_in_double(sparse, more):
    X, Y = drawn(3, n_labels=1, dtype=np.float32)
    X.data = 3000 + 1000 * X.data
    y = 2.0 * Y.toarray().ravel() - 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = SmSVMClassifier(C=1.0, coef_dtype="float32", **more).fit(X if sparse else X.toarray(), y)
    model.coef_ = sp.csc_matrix(model.coef_)
    np.testing.assert_allclose(model.objective_[0], objective(model, X.astype(float), y), rtol=1e-12)


def test_bounds_hold_in_single_precision_or_are_refused():
    X, Y = drawn(3, n_labels=1)
    bounds = np.float32([-0.1, 0.1])
    model = SmSVMClassifier(C=1.0, coef_dtype="float32", lower=bounds[0], upper=bounds[1]).fit(X, Y)
    assert (bounds[0] <= model.coef_).all() and (model.coef_ <= bounds[1]).all() and (model.coef_ == bounds[1]).any()
    with pytest.raises(ValueError, match="needs bounds that are numbers in single precision; got upper"):
        SmSVMClassifier(coef_dtype="float32", lower=0.0, upper=0.1).fit(X, Y)


def test_rounding_to_single_precision_is_told():
    X, Y = drawn(3, n_labels=1)
    with pytest.warns(ConvergenceWarning, match="coef_dtype='float32'"):
        model = SmSVMClassifier(C=1.0, tol=1e-9, coef_dtype="float32").fit(X, Y)
    assert 1e-9 < model.duality_gap_[0] < 1e-6


# ---------------------------------------------------------------- what reads them

@pytest.fixture(scope="module")
def fitted():
    X, Y = drawn(9)
    return X, Y, SmSVMClassifier(loss="squared_hinge", C=1.0, prune=0.05, coef_dtype="float32").fit(X, Y)


@pytest.mark.parametrize("small", [0, 250_000])              # from which size on zeros are left out of products
def test_predictions_are_those_of_the_same_array(fitted, small, monkeypatch):
    monkeypatch.setattr("cmargin._estimators.scores.SMALL", small)
    X, _, model = fitted
    array = pickle.loads(pickle.dumps(model)).densify()
    assert type(array.coef_) is np.ndarray
    for rows in (X, X[:3], X.toarray(), np.asfortranarray(X.toarray()), X.astype(np.float32), X.tocsc()):
        tol = {"rtol": 1e-5, "atol": 1e-5} if rows.dtype == np.float32 else {"rtol": 1e-12, "atol": 1e-12}
        np.testing.assert_allclose(model.decision_function(rows), array.decision_function(rows), **tol)
        np.testing.assert_array_equal(model.predict(rows), array.predict(rows))
        np.testing.assert_array_equal(model.predict_top_k(rows, 5), array.predict_top_k(rows, 5))
    thresholds = label_thresholds(model.decision_function(X), fitted[1])
    assert thresholds.shape == (50,)


def test_files_and_copies_keep_the_matrix(fitted, tmp_path):
    X, _, model = fitted
    model.save(tmp_path / "model.cmargin")
    for copy in (cmargin.load(tmp_path / "model.cmargin"), pickle.loads(pickle.dumps(model))):
        assert copy.coef_.format == "csc" and copy.coef_.dtype == np.float32 and (copy.coef_ != model.coef_).nnz == 0
        np.testing.assert_array_equal(copy.decision_function(X), model.decision_function(X))
        assert copy.prune == 0.05
    matrix = model.coef_
    assert model.sparsify().coef_ is matrix


def test_others_take_the_weights(fitted, tmp_path):
    X, _, model = fitted
    np.testing.assert_array_equal(model.to_sklearn().predict(X), model.predict(X))
    y = np.arange(300) % 3
    exclusive = SmSVMClassifier(loss="logistic", C=1.0, prune=0.05).fit(X, y)
    save_liblinear(exclusive, tmp_path / "model")
    np.testing.assert_array_equal(load_liblinear(tmp_path / "model").predict(X), exclusive.predict(X))
    np.testing.assert_allclose(exclusive.to_sklearn().predict_proba(X), exclusive.predict_proba(X))
    array = clone(exclusive).fit(X, y).densify()
    np.testing.assert_allclose(array.predict_proba(X), exclusive.predict_proba(X))


def test_training_goes_on_from_them(fitted):
    X, Y, model = fitted
    model = pickle.loads(pickle.dumps(model)).set_params(warm_start=True).fit(X, Y)
    assert model.coef_.format == "csc" and (model.duality_gap_ <= 0.05).all()
    assert clone(model).get_params()["prune"] == 0.05
    assert type(model.set_params(prune=False, warm_start=False).fit(X, Y).coef_) is np.ndarray


def test_labels_of_different_weights_are_pruned_apart():
    X, Y = drawn(1, n_labels=4)
    model = SmSVMClassifier(loss="squared_hinge", C=1.0, prune=0.05, class_weight={1: 3.0}).fit(X, Y)
    assert model.coef_.format == "csc" and model.coef_.shape == (4, 40) and (model.duality_gap_ <= 0.05).all()
    np.testing.assert_array_equal(model.predict(X), model.to_sklearn().predict(X))


@pytest.mark.parametrize("prune", [False, 0.05])
def test_columns_that_no_row_has_have_no_weights(prune):
    X, Y = drawn(8, n_labels=20)
    wide = sp.csr_matrix((X.data, 200 * X.indices + 7, X.indptr), shape=(300, 8200))
    model = SmSVMClassifier(loss="squared_hinge", C=1.0, prune=prune).fit(wide, Y)
    narrow = SmSVMClassifier(loss="squared_hinge", C=1.0, prune=prune).fit(X, Y)
    assert model.coef_.shape == (20, 8200)
    kept, coef = model.coef_[:, 7:8000:200], narrow.coef_
    if prune:
        assert model.coef_.nnz == kept.nnz
        kept, coef = kept.toarray(), coef.toarray()
    np.testing.assert_allclose(kept, coef, atol=1e-4)


def test_a_callback_sees_a_matrix_of_its_own():
    X, Y = drawn(0, n_labels=3)
    seen = []
    model = SmSVMClassifier(C=1.0, prune=0.05, callback=lambda e: seen.append((e.coef_, e.coef_.copy()))).fit(X, Y)
    assert all((kept != then).nnz == 0 for kept, then in seen) and model.coef_.format == "csc"
    dense = []
    SmSVMClassifier(C=1.0, coef_dtype="float32", callback=lambda e: dense.append((e.coef_, e.coef_.copy()))).fit(X, Y)
    assert all(np.array_equal(kept, then) for kept, then in dense)


def test_time_that_is_over_leaves_a_usable_model():
    X, Y = drawn(1)
    with pytest.warns(UserWarning, match="max_time"):
        model = SmSVMClassifier(loss="squared_hinge", C=1.0, prune=0.05, max_time=1e-9).fit(X, Y)
    assert model.predict(X).shape == Y.shape


@pytest.mark.parametrize("how", ["time", "interrupt"])
def test_weights_stay_where_training_them_again_is_stopped(monkeypatch, how):
    X, Y = drawn(1)
    seen, after = [], BatchPruning.after

    def stopping(self, batch):
        following = after(self, batch)
        seen.append(batch.lo)
        if how == "interrupt":
            raise KeyboardInterrupt
        fit_of[0].clock.deadline = 0.0
        return following

    fit_of, made = [], SmSVMFit.__init__
    monkeypatch.setattr(SmSVMFit, "__init__", lambda fit, *args, **more: fit_of.append(fit) or made(fit, *args, **more))
    monkeypatch.setattr(BatchPruning, "after", stopping)
    model = SmSVMClassifier(loss="squared_hinge", C=1.0, prune=0.05, max_time=1000.0, n_jobs=1)
    with pytest.raises(KeyboardInterrupt) if how == "interrupt" else pytest.warns(UserWarning, match="max_time"):
        model.fit(X, Y)
    assert len(seen) == 1 and (model.duality_gap_ <= 0.05).sum() > 1
    for c in np.flatnonzero(model.duality_gap_ <= 0.05):
        y = 2.0 * Y[:, [c]].toarray().ravel() - 1
        np.testing.assert_allclose(model.objective_[c], objective(model, X, y, c), rtol=1e-6)


def test_a_checkpoint_ends_in_the_same_weights(tmp_path):
    X, Y = drawn(0, n_labels=3)
    model = SmSVMClassifier(C=1.0, prune=0.05).fit(X, Y)
    kept = SmSVMClassifier(C=1.0, prune=0.05, checkpoint=tmp_path / "kept").fit(X, Y)
    assert (kept.coef_ != model.coef_).nnz == 0


# ---------------------------------------------------------------- what is refused

@pytest.mark.parametrize("name, value, said", [
    ("prune", "yes", "The 'prune' parameter of SmSVMClassifier must be a float in the range"),
    ("prune", 1.0, "'prune'"), ("prune", -0.1, "'prune'"), ("prune", 0.0, "'prune'"), ("prune", None, "'prune'"),
    ("coef_dtype", "float16", "The 'coef_dtype' parameter of SmSVMClassifier must be a str among"),
])
def test_parameters_are_checked(name, value, said):
    X, Y = drawn(0, n_labels=1)
    with pytest.raises(ValueError, match=said):
        SmSVMClassifier(**{name: value}).fit(X, Y)


@pytest.mark.parametrize("parameters", [{"prune": True}, {"prune": 0.1}, {"coef_dtype": "float32"}])
def test_where_weights_are_stored_otherwise_it_is_said(parameters, tmp_path):
    X, Y = drawn(0, n_labels=1)
    X, y = X.toarray(), Y.toarray().ravel()
    np.save(tmp_path / "X.npy", X)
    model = SmSVMClassifier(C=1.0, **parameters)
    with pytest.raises(ValueError, match="offset= needs prune=False"):
        model.fit(X, y, offset=np.zeros(300))
    with pytest.raises(ValueError, match="A path needs prune=False"):
        model.path(X, y)
    with pytest.raises(ValueError, match="A search needs prune=False"):
        SmSVMClassifierCV(estimator=model, Cs=[1.0]).fit(X, y)
    with pytest.raises(ValueError, match="leave_one_out needs prune=False"):
        clone(model).fit(X, y).leave_one_out(X, y)
    with pytest.raises(ValueError, match="multi_class='crammer_singer' needs"):
        clone(model).set_params(multi_class="crammer_singer").fit(X, y)
    with pytest.raises(ValueError, match="Training with comm= needs prune=False"):
        model._refuse_over_places("with comm=")


@pytest.mark.parametrize("more", [{"lower": 0.0}, {"l1": np.full(40, 1e-3)}, {"constraints": (np.ones((1, 40)), 0.0)}])
def test_bounds_and_penalties_by_column_are_not_pruned(more):
    X, Y = drawn(0, n_labels=1)
    with pytest.raises(ValueError, match="prune= takes one l2 and one l1 for all columns"):
        SmSVMClassifier(prune=True, **more).fit(X, Y)


# ---------------------------------------------------------------- how they are kept

def test_rows_kept_as_a_matrix_are_those_of_the_array():
    rng = np.random.default_rng(1)
    for _ in range(20):
        k, m = rng.integers(1, 12, 2)
        W, columns = rng.normal(size=(k, m)) * (rng.uniform(size=(k, m)) < 0.5), np.sort(rng.permutation(3 * m)[:m])
        every = np.zeros((k, 3 * m))
        every[:, columns] = W
        for sparse in (False, True):
            kept = KeptWeights(k, 3 * m, columns, np.float64, sparse)
            for c in rng.permutation(k)[:k // 2]:
                kept.keep(c, W[c], float(c))
            coef, intercept = kept.joined({c: (W[c], float(c)) for c in range(k) if c not in kept.kept})
            np.testing.assert_array_equal(coef.toarray() if sparse else coef, every)
            np.testing.assert_array_equal(intercept, np.arange(k))
            assert all(np.array_equal(kept.of(c)[0], W[c]) for c in kept.kept)
            if sparse:
                assert coef.has_sorted_indices and coef.nnz == np.count_nonzero(W)
