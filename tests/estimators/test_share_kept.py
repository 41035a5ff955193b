"""`SmSVMClassifier(prune=True)`: of the weights of all problems together a share stays, trained again."""

import contextlib
import gc
import weakref

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from test_pruned_weights import LOSSES, drawn, objective

from cmargin import SmSVMClassifier
from cmargin._estimators import together
from cmargin._estimators.pruned import Alone
from cmargin._estimators.share_kept import STAYING, ShareKept
from cmargin._estimators.smsvm_fit import SmSVMFit
from cmargin.margins import precision_at_k
from cmargin.solvers.pruning import Costliest

SHARE = min(STAYING)


def check(model, X, Y, columns, weight=None):
    """Objectives are those of the weights, and bounds lie below the minimum."""
    best = clone(model).set_params(prune=False, tol=1e-8)
    for c in columns:
        y = 2.0 * Y[:, [c]].toarray().ravel() - 1
        reached = objective(model, sp.csr_matrix(X, dtype=float), y, c, weight)
        np.testing.assert_allclose(model.objective_[c], reached, rtol=1e-9)
        least = best.fit(X, Y[:, [c]].toarray().ravel(), weight).objective_[0]
        assert model.objective_[c] * (1 - model.duality_gap_[c]) <= least * (1 + 1e-9) <= reached * (1 + 2e-8)


@pytest.mark.parametrize("intercept", ["free", "penalised", "none"])
@pytest.mark.parametrize("kind", ["CSR", "CSR float32", "dense"])
def test_a_share_of_all_weights_stays_with_its_objective_and_a_bound(intercept, kind):
    X, Y = drawn(3, dtype=np.float32 if "32" in kind else np.float64)
    X, weight = X.toarray() if kind == "dense" else X, np.random.default_rng(0).uniform(0, 2, X.shape[0])
    model = SmSVMClassifier(loss="squared_hinge", C=1.0, tol=1e-3, prune=True, fit_intercept=intercept != "none",
                            penalize_intercept=intercept == "penalised").fit(X, Y, weight)
    assert model.coef_.format == "csc" and model.coef_.nnz == int(SHARE * 50 * 40)
    check(model, X, Y, (0, 17, 49), weight)


@pytest.mark.parametrize("loss", LOSSES)
def test_every_loss_keeps_a_share(loss):
    X, Y = drawn(4, n_labels=4)
    model = SmSVMClassifier(loss=loss, C=1.0, prune=True, coef_dtype="float32").fit(X, Y)
    assert model.coef_.dtype == np.float32 and model.coef_.nnz == int(SHARE * 160)
    check(model, X, Y, range(4))
    one = SmSVMClassifier(loss=loss, C=1.0, prune=True, l1=1e-3).fit(X.toarray(), Y[:, [0]].toarray().ravel())
    assert 1 <= one.coef_.nnz <= 6
    check(one, X.toarray(), Y, [0])


@pytest.mark.parametrize("sparse", [True, False])
def test_weights_that_stay_are_trained_again(sparse):
    X, Y = drawn(5)
    X = X if sparse else X.toarray()
    model = SmSVMClassifier(loss="squared_hinge", C=1.0, tol=1e-3, prune=True).fit(X, Y)
    for c in range(0, 50, 7):
        columns = model.coef_[[c]].indices
        alone = SmSVMClassifier(loss="squared_hinge", l2=1 / X.shape[0], tol=1e-6).fit(X[:, columns],
                                                                                      Y[:, [c]].toarray().ravel())
        assert model.objective_[c] <= alone.objective_[0] * 1.12           # a gap of 0.1 was asked of it


def test_rankings_stay():
    X, Y = drawn(11, n=2000, m=60, n_labels=80)
    train, test = slice(0, 1500), slice(1500, 2000)
    found = {}
    for prune in (False, True):
        model = SmSVMClassifier(loss="squared_hinge", C=1.0, tol=1e-3, prune=prune).fit(X[train], Y.tocsr()[train])
        found[prune] = precision_at_k(model.decision_function(X[test]), Y.tocsr()[test], 1)
    assert found[True] > found[False] - 0.05


def test_equal_bits_for_any_number_of_threads():
    X, Y = drawn(6, n=120, n_labels=150)
    for rows in (X, X[:, :20].toarray()):
        model = SmSVMClassifier(loss="squared_hinge", C=1.0, prune=True)
        one, three = (clone(model).set_params(n_jobs=n_jobs).fit(rows, Y) for n_jobs in (1, 3))
        assert (one.coef_ != three.coef_).nnz == 0
        assert 0 <= one.coef_.nnz - int(SHARE * 150 * rows.shape[1]) < 15      # a weight of labels that have none
        np.testing.assert_array_equal(one.intercept_, three.intercept_)
        np.testing.assert_array_equal(one.duality_gap_, three.duality_gap_)


def test_the_costliest_are_found_in_any_order():
    rng = np.random.default_rng(0)
    for _ in range(30):
        k, m = int(rng.integers(1, 30)), int(rng.integers(1, 30))
        W = rng.integers(-3, 4, (k, m)) * rng.choice([1.0, 0.5], (k, m))                  # many that cost the same
        bend, n = rng.integers(1, 4, (k, m)).astype(float), int(rng.integers(1, k * m + 1))
        cost = np.where(W == 0, -1, bend * W**2 / 2)
        order = np.argsort(-cost.ravel(), kind="stable")[:n]
        expected = np.zeros(k * m)
        expected[order] = W.ravel()[order]
        for _ in range(3):
            found = Costliest((k, m), n)
            for part in np.array_split(rng.permutation(k), int(rng.integers(1, k + 1))):
                found.add(part, W[part], bend[part])
            np.testing.assert_array_equal(found.chosen().toarray(), expected.reshape(k, m))


def test_nothing_heard_is_nothing_chosen():
    found = Costliest((3, 5), 4)
    assert found.chosen().nnz == 0
    found.add(np.array([1]), np.zeros((1, 5)), np.ones((1, 5)))
    assert found.chosen().shape == (3, 5) and found.chosen().nnz == 0


@pytest.mark.filterwarnings("ignore:Label")
def test_labels_of_one_sign_have_no_weights():
    X, Y = drawn(6)
    Y = Y.tolil()
    Y[:, 3], Y[:, 8] = 0, 1
    for rows in (X, X.toarray()):
        model = SmSVMClassifier(loss="squared_hinge", C=1.0, prune=True).fit(rows, Y.tocsr())
        assert model.coef_[[3, 8]].nnz == 0 and model.coef_.nnz == int(SHARE * 2000)
        assert (model.decision_function(rows)[:, 8] > 0).all() and (model.decision_function(rows)[:, 3] < 0).all()


def test_labels_that_side_by_side_does_not_prove_have_their_share_too():
    X, Y = drawn(2, n_labels=20)
    far = sp.csr_matrix(X.multiply(np.where(np.arange(40) % 2, 1e4, 1.0)))
    model = SmSVMClassifier(loss="squared_hinge", C=1e3, max_passes=2000, prune=True).fit(far, Y)
    assert model.coef_.nnz == int(SHARE * 800)
    for c in range(20):
        y = 2.0 * Y[:, [c]].toarray().ravel() - 1
        np.testing.assert_allclose(model.objective_[c], objective(model, far, y, c), rtol=1e-9)


def test_columns_that_no_row_has_have_no_weights():
    X, Y = drawn(8, n_labels=20)
    wide = sp.csr_matrix((X.data, 200 * X.indices + 7, X.indptr), shape=(300, 8200))
    model = SmSVMClassifier(loss="squared_hinge", C=1.0, prune=True).fit(wide, Y)
    narrow = SmSVMClassifier(loss="squared_hinge", C=1.0, prune=True).fit(X, Y)
    assert model.coef_.shape == (20, 8200) and model.coef_.nnz == narrow.coef_.nnz
    np.testing.assert_allclose(model.coef_[:, 7:8000:200].toarray(), narrow.coef_.toarray(), atol=1e-4)


@pytest.mark.parametrize("sparse", [True, False])
def test_no_rows_outlive_the_fit(sparse):
    X, Y = drawn(2)
    X = sp.csr_array(X) if sparse else X.toarray()
    held = weakref.ref(X)
    gc.disable()
    try:
        model = SmSVMClassifier(loss="squared_hinge", C=1.0, prune=True).fit(X, Y)
        del X
        assert held() is None and model.coef_.nnz
    finally:
        gc.enable()


# ---------------------------------------------------------------- fits that end early

@pytest.mark.parametrize("how", ["time", "interrupt"])
@pytest.mark.parametrize("what", ["hear_together", "_hear"])
def test_what_is_known_stays_where_it_is_stopped(monkeypatch, how, what):
    X, Y = drawn(1, n_labels=150)
    before, fit_of, made = getattr(ShareKept, what), [], SmSVMFit.__init__

    def stopping(self, *args):
        before(self, *args)
        if how == "interrupt":
            raise KeyboardInterrupt
        fit_of[0].clock.deadline = 0.0

    monkeypatch.setattr(SmSVMFit, "__init__", lambda fit, *args, **more: fit_of.append(fit) or made(fit, *args, **more))
    monkeypatch.setattr(ShareKept, what, stopping)
    model = SmSVMClassifier(loss="squared_hinge", C=1.0, prune=True, max_time=1000.0, n_jobs=1)
    with pytest.raises(KeyboardInterrupt) if how == "interrupt" else pytest.warns(UserWarning, match="max_time"):
        model.fit(X, Y)
    known = np.flatnonzero(np.diff(model.coef_.tocsr().indptr))
    assert len(known) > 60 and model.coef_.shape == (150, 40)
    for c in known[::9]:
        y = 2.0 * Y[:, [c]].toarray().ravel() - 1
        reached = objective(model, X, y, c)
        assert reached * (1 - 1e-12) <= model.objective_[c] <= reached * (1 + 2e-5)


@pytest.mark.parametrize("how", ["time", "interrupt"])
def test_dense_rows_too(monkeypatch, how):
    X, Y = drawn(1, n_labels=6)
    fit_of, made, before, seen = [], SmSVMFit.__init__, Alone.bend, []

    def stopping(self, W):
        seen.append(self.c)
        if len(seen) == 9:
            if how == "interrupt":
                raise KeyboardInterrupt
            fit_of[0].clock.deadline = 0.0
        return before(self, W)

    monkeypatch.setattr(SmSVMFit, "__init__", lambda fit, *args, **more: fit_of.append(fit) or made(fit, *args, **more))
    monkeypatch.setattr(Alone, "bend", stopping)
    model = SmSVMClassifier(loss="squared_hinge", C=1.0, prune=True, max_time=1000.0, n_jobs=1)
    with pytest.raises(KeyboardInterrupt) if how == "interrupt" else pytest.warns(UserWarning, match="max_time"):
        model.fit(X.toarray(), Y)
    for c in range(6):
        np.testing.assert_allclose(model.objective_[c], objective(model, X, 2.0 * Y[:, [c]].toarray().ravel() - 1, c),
                                   rtol=1e-9)


def test_a_checkpoint_ends_in_the_same_weights(tmp_path):
    X, Y = drawn(0, n_labels=3)
    model = SmSVMClassifier(C=1.0, prune=True).fit(X, Y)
    kept = SmSVMClassifier(C=1.0, prune=True, checkpoint=tmp_path / "kept").fit(X, Y)
    assert (kept.coef_ != model.coef_).nnz == 0


@pytest.mark.parametrize("prune", [True, 0.05])
@pytest.mark.parametrize("how", ["time", "interrupt"])
def test_rounded_weights_of_a_stopped_fit_have_their_objectives(monkeypatch, how, prune):
    """All problems come to their end side by side, by the Gram matrix of the rows, before any is rounded."""
    rng = np.random.default_rng(5)
    y = np.arange(240) % 12
    X = rng.standard_normal((12, 60))[y] + 1.5 * rng.standard_normal((240, 60))
    fit_of, made, once = [], SmSVMFit.__init__, together.solve_once

    def stopping(*args):
        once(*args)
        if how == "interrupt":
            raise KeyboardInterrupt
        fit_of[0].clock.deadline = 0.0

    monkeypatch.setattr(SmSVMFit, "__init__", lambda fit, *args, **more: fit_of.append(fit) or made(fit, *args, **more))
    monkeypatch.setattr(together, "solve_once", stopping)
    model = SmSVMClassifier(C=1.0, prune=prune, coef_dtype="float32", max_time=1000.0, n_jobs=1)
    silent = how == "time" and prune is not True         # nothing is missing
    with contextlib.nullcontext() if silent else pytest.raises(KeyboardInterrupt) if how == "interrupt" else \
            pytest.warns(UserWarning, match="max_time"):
        model.fit(X, y)
    for c in range(12):
        reached = objective(model, sp.csr_matrix(X), np.where(y == c, 1.0, -1.0), c)
        np.testing.assert_allclose(model.objective_[c], reached, rtol=1e-9)
