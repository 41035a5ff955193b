"""SmSVM with norms of groups of columns: optima of independent solvers, the certificate, every shape, refusals."""

import pickle

import numpy as np
import pytest
from killed_fits import OFTEN, StopAt
from naive_groups import best_dual_value, box_bound, members, penalty, smooth_minimum
from naive_smsvm import with_ones
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import cmargin
from cmargin import SmSVMClassifier, SmSVMRegressor, smsvm_path
from cmargin.data import open_rows
from cmargin.data.loss import Loss
from cmargin.solvers import cost
from cmargin.solvers.newton.continuation import ContinuationNewton
from cmargin.solvers.penalty import ColumnGroups, GroupNorms
from cmargin.solvers.problem import Problem, Settings

LOSSES = {
    "hinge": (lambda z: np.maximum(0, 1 - z), None, np.inf),
    "squared_hinge": (lambda z: np.maximum(0, 1 - z) ** 2, lambda z: -2 * np.maximum(0, 1 - z), 2.0),
    "logistic": (lambda z: np.logaddexp(0, -z), lambda z: -1 / (1 + np.exp(z)), 0.25),
    "huberised_hinge": (lambda z: np.clip(1 - z, 0, 1) ** 2 / 2 + np.maximum(0, -z),
                        lambda z: -np.clip(1 - z, 0, 1), 1.0),
}


def rows(seed, n=None, m=None, noise=0.5):
    rng = np.random.default_rng(seed)
    n, m = n or int(rng.integers(15, 150)), m or int(rng.integers(2, 25))
    groups = rng.integers(0, max(2, m // 3), m)
    X = rng.standard_normal((n, m)) * 10.0 ** rng.uniform(-0.5, 0.5, m) + rng.standard_normal((n, 1))
    score = X @ (rng.standard_normal(m) * (rng.random(groups.max() + 1) < 0.4)[groups])
    y = np.where(score - np.median(score) + noise * rng.standard_normal(n) > 0, 1.0, -1.0)
    return X, y, groups, rng


def objective_of(model, X, y, l1=None):
    w = model.coef_[0]
    z = y * (X @ w + model.intercept_[0])
    return LOSSES[model.loss][0](z).mean() + penalty(w, model.groups, model.l2, model.l1 if l1 is None else l1)


@pytest.mark.parametrize("loss", list(LOSSES)[1:])
@pytest.mark.parametrize("seed", range(12))
def test_smooth_losses_come_to_the_minimum_of_proximal_gradients(loss, seed):
    X, y, groups, rng = rows(seed)
    l2, l1, intercept = [0.0, 1e-3, 1e-1][seed % 3], 10.0 ** rng.uniform(-2.5, -0.5), bool(seed % 2)
    model = SmSVMClassifier(l2, l1=l1, loss=loss, groups=groups, tol=1e-8, fit_intercept=intercept).fit(X, y)
    _, least = smooth_minimum(with_ones(X, intercept), y, LOSSES[loss], groups, l2, l1)
    assert model.objective_[0] == pytest.approx(objective_of(model, X, y), rel=1e-12)
    assert model.objective_[0] <= least * (1 + 2e-8)
    assert model.objective_[0] * (1 - model.duality_gap_[0]) <= least * (1 + 1e-12)
    assert model.duality_gap_[0] <= 1e-8


@pytest.mark.parametrize("seed", range(12))
def test_the_hinge_comes_to_the_largest_dual_value(seed):
    X, y, groups, rng = rows(seed, n=60)
    l2, l1 = 10.0 ** rng.uniform(-2, 0), 10.0 ** rng.uniform(-2, -0.5)
    model = SmSVMClassifier(l2, l1=l1, groups=groups, tol=1e-6, fit_intercept=False).fit(X, y)
    bound = box_bound(X * y[:, None], np.ones(60), 0, 1, groups, l2, l1)
    assert model.objective_[0] == pytest.approx(objective_of(model, X, y), rel=1e-12)
    assert bound * (1 - 1e-10) <= model.objective_[0] <= bound * (1 + 2e-6) + 1e-9
    assert model.duality_gap_[0] <= 1e-6


@pytest.mark.parametrize("loss", ["quantile", "epsilon_insensitive"])
@pytest.mark.parametrize("seed", range(6))
def test_regressions_come_to_the_largest_dual_value(seed, loss):
    X, _, groups, rng = rows(seed + 100, n=50)
    score = X @ (rng.standard_normal(X.shape[1]) * (rng.random(groups.max() + 1) < 0.4)[groups])
    t = 30 * (score / (score.std() + 1) + 0.3 * rng.standard_normal(50)) + 5
    l2, l1 = 10.0 ** rng.uniform(-2, 0), 10.0 ** rng.uniform(-1, 0.5)
    model = SmSVMRegressor(loss, epsilon=2.0, quantile=0.3, l2=l2, l1=l1, groups=groups, tol=1e-6, fit_intercept=False)
    r = t - X @ model.fit(X, t).coef_
    if loss == "quantile":
        bound, value = box_bound(X, t, -0.7, 0.3, groups, l2, l1), np.maximum(0.3 * r, -0.7 * r)
    else:                                        # a = p - q of 0 <= p, q <= 1
        bound = box_bound(2 * np.r_[X, -X], 2 * np.r_[t - 2, -t - 2], 0, 1, groups, l2, l1)
        value = np.maximum(0, np.abs(r) - 2)
    assert model.objective_[0] == pytest.approx(value.mean() + penalty(model.coef_, groups, l2, l1), rel=1e-9)
    assert bound * (1 - 1e-10) <= model.objective_[0] <= bound * (1 + 2e-6) + 1e-9
    assert model.duality_gap_[0] <= 1e-6
    assert all((model.coef_[g] != 0).all() or not model.coef_[g].any() for g in members(groups))


@pytest.mark.parametrize("l2", [0.0, 1e-2])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_dual_value_is_that_of_the_formula(loss, l2):
    X, y, groups, _ = rows(3, n=100, m=12)
    of = ColumnGroups(np.unique(groups, return_inverse=True)[1])
    for max_passes in (2.0, 5.0, 50.0):
        newton = ContinuationNewton(open_rows(X).row_pass(y, intercept=True, n_threads=1),
                                    Problem(GroupNorms(l2, 0.02, of), 12, Loss(loss)),
                                    Settings(tol=1e-9, max_passes=max_passes))
        result = newton.run()
        if result.total is None:
            continue
        twin = best_dual_value(result.total, result.v, groups, l2, 0.02)
        assert twin * (1 - 1e-9) - 1e-12 <= result.dual + 1e-9 and result.dual <= twin + 1e-6


@pytest.mark.parametrize("loss", LOSSES)
def test_groups_are_zero_as_a_whole_or_not_at_all(loss):
    X, y, groups, _ = rows(19, n=120, m=24)
    w = SmSVMClassifier(1e-3, l1=0.1, loss=loss, groups=groups).fit(X, y).coef_[0]
    used = [(w[g] != 0).all() for g in members(groups)]
    assert used == [w[g].any() for g in members(groups)] and 0 < sum(used) < len(used)


@pytest.mark.parametrize("loss", LOSSES)
def test_groups_of_one_column_are_the_l1_penalty(loss):
    X, y, _, _ = rows(6, n=100, m=10)
    one, other = (SmSVMClassifier(1e-3, l1=0.03, loss=loss, groups=groups, tol=1e-7).fit(X, y)
                  for groups in (None, np.arange(10)))
    assert one.objective_[0] == pytest.approx(other.objective_[0], rel=2e-7)
    np.testing.assert_allclose(one.coef_, other.coef_, atol=5e-3)
    np.testing.assert_array_equal(one.coef_ != 0, other.coef_ != 0)


def test_lists_of_columns_are_labels():
    X, y, _, _ = rows(7, n=80, m=6)
    labels, texts, lists = [0, 1, 0, 2, 1, 0], list("abacba"), [[0, 2, 5], np.array([4, 1]), (3,)]
    one, *others = (SmSVMClassifier(1e-3, l1=0.05, groups=groups).fit(X, y).coef_ for groups in (labels, texts, lists))
    for other in others:
        np.testing.assert_allclose(one, other, rtol=1e-10)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_penalised_intercept_is_a_group_of_its_own(loss):
    X, y, groups, _ = rows(8, n=100, m=9)
    model = SmSVMClassifier(1e-2, l1=0.05, loss=loss, groups=groups, penalize_intercept=True, tol=1e-7).fit(X, y)
    A = with_ones(X, True)
    with_column = SmSVMClassifier(1e-2, l1=0.05, loss=loss, groups=np.append(groups, 99), fit_intercept=False, tol=1e-7)
    assert model.objective_[0] == pytest.approx(with_column.fit(A, y).objective_[0], rel=2e-7)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("l2", [0.0, 1e-3])
def test_more_columns_than_rows(loss, l2):
    X, y, groups, _ = rows(9, n=60, m=900)
    model = SmSVMClassifier(l2, l1=0.02, loss=loss, groups=groups, max_passes=200).fit(X, y)
    assert model.duality_gap_[0] <= 1e-4
    assert model.objective_[0] == pytest.approx(objective_of(model, X, y), rel=1e-9)
    assert model.history_["active_features"].max() < 450


def test_a_group_is_in_the_block_as_a_whole(monkeypatch):
    # groups of hundreds of columns that are alike: whatever the block has room for, none is cut
    rng = np.random.default_rng(0)
    X, groups = rng.standard_normal((300, 1200)), np.repeat(np.arange(4), 300)
    X[:, 600:] = X[:, :600]
    y = np.where(X[:, :300].sum(1) + rng.standard_normal(300) > 0, 1, -1)
    for loss in LOSSES:
        model = SmSVMClassifier(1e-2, l1=0.005, loss=loss, groups=groups, max_passes=200).fit(X, y)
        assert model.duality_gap_[0] <= 1e-4
        assert all((model.coef_[0][g] != 0).all() or not model.coef_[0][g].any() for g in members(groups))


# ---------------------------------------------------------------- rows of every kind

@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("loss", LOSSES)
def test_rows_as_they_come(loss, dtype, tmp_path):
    X, y, groups, _ = rows(10, n=130, m=15)
    X = (X * (np.abs(X) > 0.5)).astype(dtype)
    np.save(tmp_path / "X.npy", X)
    frozen = X.copy()
    frozen.flags.writeable = False
    kinds = (X, np.asfortranarray(X), frozen, np.load(tmp_path / "X.npy", mmap_mode="r"), sparse.csr_matrix(X))
    models = [SmSVMClassifier(1e-3, l1=0.05, loss=loss, groups=groups).fit(kind, y) for kind in kinds]
    for model in models:
        assert model.duality_gap_[0] <= 1e-4
        assert model.objective_[0] == pytest.approx(models[0].objective_[0], rel=2e-4)
        assert model.objective_[0] == pytest.approx(objective_of(model, X.astype(float), y), rel=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_threads_change_no_bit(loss):
    X, y, groups, _ = rows(11, n=3000, m=40)
    one, two = (SmSVMClassifier(1e-3, l1=0.02, loss=loss, groups=groups, n_jobs=n_jobs).fit(X, y) for n_jobs in (1, 2))
    assert one.coef_.tobytes() == two.coef_.tobytes()


def test_columns_without_an_entry_count_for_the_size_of_their_group(monkeypatch):
    X, y, groups, _ = rows(12, n=200, m=30)
    X[:, ::3] = 0
    X *= np.random.default_rng(0).random(X.shape) < 0.3
    chosen = {"l2": 1e-3, "l1": 0.02, "loss": "logistic", "groups": groups, "tol": 1e-8}
    one = SmSVMClassifier(**chosen).fit(sparse.csr_matrix(X), y)
    monkeypatch.setattr(cost, "FACTOR_UP_TO_COLUMNS", 5)
    monkeypatch.setattr("cmargin._estimators.smsvm_fit.COLUMN_VECTORS", 10**6)
    for penalize_intercept in (False, True):
        chosen["penalize_intercept"] = penalize_intercept
        other = SmSVMClassifier(**chosen).fit(sparse.csr_matrix(X), y)
        one = SmSVMClassifier(**chosen).fit(X, y)
        assert not other.coef_[0, ::3].any()
        assert other.objective_[0] == pytest.approx(one.objective_[0], rel=2e-8)


def test_weights_of_rows_are_repetitions():
    X, y, groups, rng = rows(13, n=60, m=9)
    s = rng.integers(0, 4, 60)
    for loss in LOSSES:
        model = SmSVMClassifier(1e-2, l1=0.05, loss=loss, groups=groups, tol=1e-7)
        one, other = clone(model).fit(X, y, s), clone(model).fit(np.repeat(X, s, axis=0), np.repeat(y, s))
        assert one.objective_[0] == pytest.approx(other.objective_[0], rel=2e-7)


def test_several_classes_and_labels():
    X, _, groups, rng = rows(14, n=150, m=12)
    y = rng.integers(0, 3, 150)
    model = SmSVMClassifier(1e-2, l1=0.01, loss="logistic", groups=groups, tol=1e-6).fit(X, y)
    labels = SmSVMClassifier(1e-2, l1=0.01, loss="logistic", groups=groups, tol=1e-6).fit(X, np.eye(3, dtype=int)[y])
    alone = [clone(model).fit(X, y == c).objective_[0] for c in range(3)]
    np.testing.assert_allclose(model.objective_, alone, rtol=2e-6)
    np.testing.assert_allclose(labels.objective_, alone, rtol=2e-6)


# ---------------------------------------------------------------- an estimator like others

def test_it_is_cloned_searched_stored_and_goes_on(tmp_path):
    X, y, groups, _ = rows(15, n=100, m=9)
    model = SmSVMClassifier(1e-3, l1=0.02, groups=groups.tolist())
    search = GridSearchCV(model, {"l1": [0.0, 0.01, 0.1]}, cv=3).fit(X, y)
    assert search.best_estimator_.groups == groups.tolist()
    model.set_params(warm_start=True).fit(X, y)
    reads = model.n_passes_
    assert model.fit(X, y).n_passes_ < reads
    model.save(tmp_path / "model")
    for other in (cmargin.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other.predict(X), model.predict(X))
        assert other.groups == groups.tolist()
        assert other.fit(X, y).duality_gap_[0] <= 1e-4


def test_a_checkpoint_goes_on_to_the_same_bits(tmp_path):
    X, y, groups, _ = rows(16, n=400, m=30)
    chosen = {"l2": 1e-3, "l1": 0.01, "loss": "logistic", "groups": groups, "tol": 1e-9}
    whole = SmSVMClassifier(**chosen).fit(X, y)
    for stop in (2, 4):
        path = tmp_path / f"at{stop}"
        with pytest.raises(KeyboardInterrupt):
            SmSVMClassifier(**chosen, checkpoint=cmargin.Checkpoint(path, **OFTEN), callback=StopAt(stop)).fit(X, y)
        resumed = SmSVMClassifier(**chosen, checkpoint=cmargin.Checkpoint(path, **OFTEN)).fit(X, y)
        assert resumed.coef_.tobytes() == whole.coef_.tobytes()


def test_without_an_l1_groups_change_nothing():
    X, y, groups, _ = rows(17, n=60, m=6)
    one, other = (SmSVMClassifier(1e-2, groups=given).fit(X, y).coef_ for given in (None, groups))
    assert one.tobytes() == other.tobytes()


# ---------------------------------------------------------------- what is refused

@pytest.mark.parametrize("groups, message", [
    ([0, 1], r"groups has shape \(2,\) but the input data X has 4 features"),
    (np.arange(5), r"groups has shape \(5,\) but the input data X has 4 features"),
    ([0, 1, np.nan, 2.0], "groups contains NaN or infinity"),
    ([0, None, 1, 2], "groups must be labels of columns"),
    ([[0, 1], [1, 2, 3]], "groups must not overlap; column 1 is in more than one"),
    ([[0, 0, 1], [2, 3]], "groups must not overlap; column 0 is in more than one"),
    ([[0, 1], [3]], "groups must have every column; column 2 is in none"),
    ([[0, 1, 2, 3], []], r"lists of columns that are not empty; groups\[1\] is \[\]"),
    ([[0, 1], [2, 4]], r"groups must be integer indices in \[0, 3\]; groups\[1\] is \[2, 4\]"),
    ([[-1, 1], [2, 3]], r"groups must be integer indices in \[0, 3\]"),
    ([[0.5, 1], [2, 3]], r"groups must be integer indices in \[0, 3\]"),
    ([0, [1, 2, 3]], r"groups\[0\] is 0"),
    ([], r"groups has shape \(0,\) but the input data X has 4 features"),
])
@pytest.mark.parametrize("l1", [0.0, 0.1])
def test_groups_that_are_none(groups, message, l1):
    X, y, _, _ = rows(18, n=30, m=4)
    with pytest.raises(ValueError, match=message):
        SmSVMClassifier(1e-2, l1=l1, groups=groups).fit(X, y)


@pytest.mark.parametrize("groups", [3, "ab", {0: 1}, 1.5])
def test_groups_that_are_no_array(groups):
    X, y, _, _ = rows(18, n=30, m=4)
    with pytest.raises(ValueError, match="The 'groups' parameter of SmSVMClassifier must be an array-like or None"):
        SmSVMClassifier(groups=groups).fit(X, y)


@pytest.mark.parametrize("chosen, message", [
    ({"linear_solver": "cg"}, "needs l1=0"), ({"linear_solver": "woodbury"}, "needs l1=0"),
    ({"linear_solver": "dual"}, "needs l1=0"), ({"line_search": "quadratic"}, "needs groups=None"),
])
def test_ways_that_know_no_groups(chosen, message):
    X, y, groups, _ = rows(18, n=30, m=4)
    with pytest.raises(ValueError, match=message):
        SmSVMClassifier(1e-2, l1=0.1, groups=groups, **chosen).fit(X, y)


def test_a_path_and_left_out_rows_know_no_groups():
    X, y, groups, _ = rows(18, n=30, m=4)
    model = SmSVMClassifier(1e-2, l1=0.1, groups=groups)
    with pytest.raises(ValueError, match="A path needs groups=None"):
        model.path(X, y)
    with pytest.raises(ValueError, match="leave_one_out needs l1=0"):
        model.fit(X, y).leave_one_out(X, y)
    with pytest.raises(TypeError, match="groups"):
        smsvm_path(X, y, groups=groups)
