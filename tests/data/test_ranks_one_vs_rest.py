"""SLND, one-vs-rest, over ranks that are threads: as good as one machine, the same weights everywhere."""

import numpy as np
import pytest
import scipy.sparse as sp
from api import mean_stride
from conftest import blobs
from ranks_in_threads import on_ranks
from sklearn.exceptions import ConvergenceWarning

from cmargin import BSNClassifier, Checkpoint, SLNDClassifier
from cmargin.solvers import cost
from cmargin.solvers.sgd import low_rank_newton
from cmargin.solvers.sgd.class_weights import ClassWeights
from cmargin.solvers.sgd.shard_shares import ShardCounts, ShardShares, divided, shared_out
from cmargin.solvers.sgd.work import ClassListWork


def split(n, size, how, y):
    order = np.argsort(y, kind="stable") if how == "by class" else np.random.default_rng(1).permutation(n)
    if how == "uneven":
        return np.split(order, [n // 6, n // 6][:size - 1])          # a rank of three has no rows
    return np.array_split(order, size)


def fitted(make, size, X, y, weight=None, how="even"):
    """The models of all ranks."""
    parts = split(X.shape[0], size, how, y if y.ndim == 1 else y[:, 0])

    def work(comm):
        mine = parts[comm.rank]
        return make().fit(X[mine], y[mine], None if weight is None else weight[mine], comm=comm)

    found = on_ranks(size, work)[0]
    for one in found:
        if isinstance(one, BaseException):
            raise one
    assert len({(one.coef_.tobytes(), one.intercept_.tobytes(), one.n_passes_) for one in found}) == 1
    return found


@pytest.mark.parametrize("settings, sparse, how, size, below", [
    ({}, False, "even", 2, 0.03), ({}, True, "uneven", 3, 0.03), ({}, False, "by class", 2, 0.02),
    ({"step_size": 0.2}, True, "by class", 3, 0.02),
    ({"average": False, "step_size": 0.2}, True, "even", 2, 0.03), ({"loss": "squared"}, False, "even", 3, 0.03),
    ({"loss": "calibrated_hinge", "rank": 5, "tail": "drop"}, True, "even", 2, 0.03),
    ({"class_weight": "balanced", "negatives_per_positive": None}, False, "uneven", 2, 0.03),
    ({"hessian_refresh": 2, "step_size": 0.2}, False, "even", 2, 0.03),
    ({"hessian_refresh": 1, "step_size": 0.2}, True, "by class", 2, 0.03),
    ({"negatives_per_positive": 1, "fit_intercept": False}, False, "even", 2, 0.05)], ids=str)
def test_as_good_as_one_machine(settings, sparse, how, size, below, digits):
    rows, test, y, y_test = digits
    rows, test = (sp.csr_matrix(part) if sparse else part.astype("f") for part in (rows, test))
    weight = np.random.default_rng(5).choice([0.0, 1.0, 1.0, 2.0], len(y))

    def make():
        return SLNDClassifier(**{"loss": "logistic", "max_passes": 5, "random_state": 3, **settings})

    models, one = fitted(make, size, rows, y, weight, how), make().fit(rows, y, weight)
    found = models[-1]
    assert found.score(test, y_test) > one.score(test, y_test) - below
    np.testing.assert_allclose(found.class_prior_, one.class_prior_)
    np.testing.assert_allclose(found.sampled_prior_, one.sampled_prior_, rtol=0.05)
    np.testing.assert_allclose(found.predict_proba(test).sum(axis=1), 1, rtol=1e-5)
    assert found.history_.keys() == one.history_.keys() and found.loss_ == one.loss_
    np.testing.assert_array_equal(found.history_["visits"], one.history_["visits"])
    again = fitted(make, size, rows, y, weight, how)
    assert again[0].coef_.tobytes() == found.coef_.tobytes()


def test_one_rank_takes_one_machines_steps_where_all_rows_are_visited():
    # the same rows in a random order each, and one list: the means of one rank are its weights
    X, y = blobs(n=500, d=6, k=3)
    models = fitted(lambda: BSNClassifier(loss="logistic", step_size=0.3, max_passes=15, random_state=1,
                                          negatives_per_positive=None), 1, X, y)
    one = BSNClassifier(loss="logistic", step_size=0.3, max_passes=15, random_state=1, negatives_per_positive=None
                        ).fit(X, y)
    np.testing.assert_allclose(models[0].history_["objective"][-1], one.history_["objective"][-1], rtol=0.02)
    np.testing.assert_allclose(models[0].coef_, one.coef_, atol=0.1 * np.abs(one.coef_).max())


def test_two_classes_and_an_indicator():
    X, y = blobs(n=1200, d=8, k=3)
    two = fitted(lambda: SLNDClassifier(random_state=2, max_passes=3), 2, X, y > 0)[0]
    one = SLNDClassifier(random_state=2, max_passes=3).fit(X, y > 0)
    assert two.loss_ == "logistic" and two.coef_.shape == (1, 8)
    assert two.score(X, y > 0) > one.score(X, y > 0) - 0.02
    Y = np.column_stack([y == 0, y > 0, X[:, 0] > 0]).astype(int)
    three = fitted(lambda: SLNDClassifier(random_state=2, max_passes=3), 3, X, Y)[0]
    wanted = SLNDClassifier(random_state=2, max_passes=3).fit(X, Y)
    assert (three.predict(X) == Y).mean() > (wanted.predict(X) == Y).mean() - 0.02
    alone = fitted(lambda: SLNDClassifier(random_state=2, max_passes=3), 2, X, Y[:, 2:])[0]
    assert alone.coef_.shape == (1, 8) and (alone.predict(X) == Y[:, 2]).mean() > 0.9


def counts_of(positives, others):
    counts = ShardCounts.__new__(ShardCounts)
    counts.positives, counts.others = np.array(positives), np.array(others)
    return counts


def test_lists_are_shared_out_or_divided():
    counts = counts_of([[1, 2, 0], [0, 1, 0], [3, 0, 9]], [[10, 0, 3], [30, 7, 3], [0, 0, 3]])
    shares = ShardShares(counts, np.ones(3), 60, 2.0)
    assert shares.n_negatives.tolist() == [8, 6, 9]
    positives, found = shared_out(shares)
    np.testing.assert_array_equal(found, [[2, 0, 3], [6, 6, 3], [0, 0, 3]])
    assert positives is counts.positives
    positives, found = divided(shares)                                   # lists of 12, 9, 18
    np.testing.assert_array_equal(positives, [[0, 0, 9], [4, 0, 0], [0, 3, 0]])
    np.testing.assert_array_equal(found, [[0, 0, 9], [8, 0, 0], [0, 6, 0]])


@pytest.mark.parametrize("how, k, share, uneven", [
    ("even", 5, None, False), ("by class", 5, None, True), ("by class", 2, None, True), ("by class", 2, 0.97, True),
    ("by class", 2, 0.01, True), ("even", 2, 0.01, False), ("even", 2, None, False), ("uneven", 5, None, False)])
def test_whether_classes_lie_unevenly(how, k, share, uneven):
    rng = np.random.default_rng(1)
    y = rng.integers(k, size=3000) if share is None else (rng.random(3000) < share).astype(int)
    parts = split(len(y), 2, how, y)
    positives = np.array([np.bincount(y[part], minlength=k)[-k if k > 2 else 1:] for part in parts])
    assert counts_of(positives, np.array([[len(part)] for part in parts]) - positives).uneven() == uneven


def test_rows_too_large_to_be_shared_stay_where_they_are(monkeypatch):
    X, y = blobs(n=900, d=7, k=3)
    monkeypatch.setattr(cost, "SHARED_BYTES", 0)
    found = fitted(lambda: SLNDClassifier(loss="logistic", max_passes=3, random_state=1), 2, X, y, None, "by class")[0]
    one = SLNDClassifier(loss="logistic", max_passes=3, random_state=1).fit(X, y)
    assert found.score(X, y) > one.score(X, y) - 0.1


@pytest.mark.parametrize("tail", [False, True], ids=["dense", "tail of CSR"])
def test_the_mean_of_weights_is_that_of_the_means_they_stand_for(tail):
    rng, every = np.random.default_rng(1), []
    parts, steps = np.array([[0.25, 1.0], [0.75, 0.0]]), np.array([[40, 80], [120, 8]])
    for part, n_steps in zip(parts, steps, strict=True):
        local = ClassListWork.__new__(ClassListWork)
        V = rng.standard_normal((2, 5)) if tail else np.zeros((0, 0))
        U, U_mean = rng.standard_normal((2, 2, 3))
        local.weights = ClassWeights(U, U_mean, V, 100 * V, np.ones((2, 2)), n_steps.copy())
        local.part = part
        every.append(local)

    def mean_v(w):
        samples = w.n_steps // mean_stride
        return w.V - (2 / (samples * (samples + 1)))[:, None] * w.V_lag

    wanted_U = sum(part[:, None] * local.weights.U_mean for part, local in zip(parts, every, strict=True))
    if tail:
        wanted_V = sum(part[:, None] * mean_v(local.weights) for part, local in zip(parts, every, strict=True))
    total = sum(local.packed() for local in every)
    for local in every:
        local.take(total)
        np.testing.assert_allclose(local.weights.U_mean, wanted_U)
        np.testing.assert_array_equal(local.weights.n_steps, [100, 80])
        if tail:
            np.testing.assert_allclose(mean_v(local.weights), wanted_V)


def test_a_checkpoint_is_gone_on_with_to_the_same_bits(tmp_path):
    X, y = blobs(n=900, d=7, k=3)
    settings = {"loss": "logistic", "max_passes": 5, "random_state": 4}
    alone = fitted(lambda: SLNDClassifier(**settings), 2, X, y)[0]
    path, calls = tmp_path / "fit", []

    def stop(model):
        calls.append(1)
        if len(calls) == 3:
            raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError):
        fitted(lambda: SLNDClassifier(**settings, callback=stop,
                                      checkpoint=Checkpoint(path, seconds=None, passes=1e-9)), 2, X, y)
    assert path.exists()
    again = fitted(lambda: SLNDClassifier(**settings, checkpoint=path), 2, X, y)[0]
    np.testing.assert_array_equal(again.coef_, alone.coef_)
    assert again.n_iter_ == 5 and not path.exists()


def test_a_warm_start_and_a_time_limit():
    X, y = blobs(n=900, d=7, k=3)
    parts = split(len(y), 2, "even", y)

    def work(comm):
        model = SLNDClassifier(loss="logistic", max_passes=2, random_state=1, warm_start=True)
        model.fit(X[parts[comm.rank]], y[parts[comm.rank]], comm=comm)
        first = model.coef_.copy()
        model.fit(X[parts[comm.rank]], y[parts[comm.rank]], comm=comm)
        return model, first

    (model, first), (other, _) = on_ranks(2, work)[0]
    assert model.coef_.tobytes() == other.coef_.tobytes() and np.abs(model.coef_ - first).max() > 0
    assert model._passes_total == 4
    with pytest.warns(ConvergenceWarning, match="max_time"):
        fitted(lambda: SLNDClassifier(loss="logistic", max_passes=100_000, max_time=1.0), 2, X, y)


@pytest.mark.parametrize("settings, text", [
    ({"step_size": "theory"}, "step_size='theory' does not go with comm= yet"),
    ({"rank": 8}, "n_features=7.. Got 8 instead")], ids=str)
def test_what_is_refused(settings, text):
    X, y = blobs(n=300, d=7, k=3)
    with pytest.raises(ValueError, match=text):
        fitted(lambda: SLNDClassifier(**{"loss": "logistic", **settings}), 2, X, y)


def test_classes_that_steps_are_tried_on_bring_as_many_positives_as_one_machine_has(monkeypatch):
    n, n_classes = 3000, 60
    X, y = np.random.default_rng(0).standard_normal((n, 6)), np.arange(n) % n_classes
    monkeypatch.setattr(cost, "TRIAL_ROWS", 300)
    tried, split = [], low_rank_newton.split

    def counted(lists, rng, among=None):
        tried.append((lists.n_positives, among))
        return split(lists, rng, among)

    monkeypatch.setattr(low_rank_newton, "split", counted)
    fitted(lambda: SLNDClassifier(loss="logistic", max_passes=1, hessian_samples=300, random_state=0), 2, X, y)
    (n_positives, among), = tried
    assert len(among) == cost.TRIAL_CLASSES and (n_positives[among] == n // n_classes).all()
    others = np.delete(n_positives, among)
    assert 300 <= n_positives.sum() <= 302 + cost.TRIAL_CLASSES * n // n_classes and others.mean() < 8
