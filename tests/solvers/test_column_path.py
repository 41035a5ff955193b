"""Paths of l1 weights by reading columns: the minimum, what is proven of it, and which columns are read."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from api import Rows, _column_path
from scipy.optimize import minimize, minimize_scalar

from cmargin import SmSVMClassifier, smsvm_path
from cmargin.data.loss import Loss
from cmargin.data.open_here import source_of
from cmargin.solvers.column_path import ColumnFits
from cmargin.solvers.penalty import ElasticNet
from cmargin.solvers.problem import Settings

LOSSES = {"logistic": (lambda z: np.logaddexp(0, -z), lambda z: -1 / (1 + np.exp(z))),
          "squared_hinge": (lambda z: np.maximum(0, 1 - z)**2, lambda z: -2 * np.maximum(0, 1 - z))}


def least(X, y, weight, loss, l2, l1, intercept):
    """The minimum, over w = u - v of positive u and v; ``intercept``: "free", "penalised" or None."""
    value, slope = LOSSES[loss]
    Z = np.hstack([X, np.ones((len(X), 1))]) if intercept else X
    p = Z.shape[1]
    counts = np.ones(p)
    counts[-1] = intercept != "free" if intercept else 1
    s = weight / weight.sum()

    def both(uv):
        w = uv[:p] - uv[p:]
        z = y * (Z @ w)
        g = Z.T @ (s * y * slope(z)) + l2 * counts * w
        f = s @ value(z) + l1 * (counts @ (uv[:p] + uv[p:])) + l2 / 2 * (counts @ w**2)
        return f, np.concatenate([g + l1 * counts, l1 * counts - g])

    return minimize(both, np.zeros(2 * p), jac=True, method="L-BFGS-B", bounds=[(0, None)] * (2 * p),
                    options={"maxiter": 20_000, "maxfun": 100_000, "ftol": 1e-15, "gtol": 1e-11}).fun


def drawn(seed):
    """Dense wide rows or CSR rows, some of weight 0, some columns alike or empty."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(5, 60)), int(rng.integers(20, 120))
    m = max(m, n + 1)
    X = rng.standard_normal((n, 3)) @ rng.standard_normal((3, m))
    X += rng.standard_normal((n, m)) * rng.choice([0.1, 1, 3])
    X[:, rng.integers(m)] = X[:, rng.integers(m)]
    X[:, rng.integers(m)] = 0
    if rng.random() < 0.5:
        X = X * (rng.random((n, m)) < 0.2)
    X = X * 10.0**rng.uniform(-1, 1, m)
    y = np.where(X @ rng.standard_normal(m) + X.std() * rng.standard_normal(n) > 0, 1.0, -1.0)
    y[:2] = 1, -1
    weight = np.where(rng.random(n) < 0.2, 0, rng.random(n)) if rng.random() < 0.5 else np.ones(n)
    weight[:2] = 1
    return X, y, weight


def columns_of(X, seed):
    dtype = np.float64
    if seed % 2:
        return Rows(sp.csr_matrix(X.T.astype(dtype))).in_few_bytes()
    return Rows(np.ascontiguousarray(X.T))


@pytest.mark.parametrize("seed", range(40))
def test_every_fit_of_a_path_is_proven_and_is_the_minimum(seed):
    X, y, weight = drawn(seed)
    loss, intercept = list(LOSSES)[seed // 2 % 2], (None, "free", "penalised")[seed % 3]
    l1_part = (1.0, 0.5, 0.05)[seed // 3 % 3]
    path = _column_path.ColumnPath(columns_of(X, seed), weight * y / weight.sum(), Loss(loss), intercept)
    largest = np.abs(X.T @ (weight * y)).max() / weight.sum() * (1 if loss == "logistic" else 2)
    strengths = np.geomspace(largest, 1e-3 * largest, 12)
    for k, strength in enumerate(strengths):
        l1, l2 = l1_part * strength, (1 - l1_part) * strength
        known = 2 * l1_part * strengths[k + 1] - l1 if k + 1 < len(strengths) else l1
        objective, dual, risk, total, noise, _ = path.fit(l2, l1, 1e-7, known, 1e5)
        w = path.weights()
        coef, bias = w[:X.shape[1]], w[X.shape[1]] if intercept else 0.0
        z = y * (X @ coef + bias)
        sizes = w if intercept == "penalised" else coef
        exact = weight @ LOSSES[loss][0](z) / weight.sum() + l1 * np.abs(sizes).sum() + l2 / 2 * sizes @ sizes
        assert objective == pytest.approx(exact, rel=1e-12)
        minimum = least(X, y, weight, loss, l2, l1, intercept)
        assert dual <= minimum * (1 + 1e-12)
        assert dual >= (1 - 1e-7) * objective
        # the columns that were not read are where they are said to be
        at, v = path.slopes()
        a = -LOSSES[loss][1](z) * weight * y / weight.sum()
        all_v = X.T @ a
        assert v[at < X.shape[1]] == pytest.approx(all_v[at[at < X.shape[1]]], abs=1e-12 * np.abs(X).sum())
        others = np.delete(np.abs(all_v), at[at < X.shape[1]])
        assert (others <= max(0, min(known, l1)) * (1 + 1e-12) + noise).all()
        assert total <= risk + a @ (y * z) + 1e-12


def text(n=300, m=900, seed=0):
    rng = np.random.default_rng(seed)
    X = sp.random(n, m, 0.03, format="csr", random_state=seed)
    return X, (X @ (rng.standard_normal(m) * (rng.random(m) < 0.05)) > 0).astype(int)


def genes(n=40, m=400, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 5)) @ rng.standard_normal((5, m)) + rng.standard_normal((n, m))
    return X, (X[:, :4].sum(1) > 0).astype(int)


@pytest.mark.parametrize("kind", [text, genes])
@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "huberised_hinge", "modified_huber"])
@pytest.mark.parametrize("given", [{"l1_ratio": 0.5}, {"l1": 1e-3}, {"pure": True}])
def test_paths_that_read_columns_agree_with_single_fits(kind, loss, given):
    X, y = kind()
    l2s, given = np.geomspace(0.1, 1e-3, 9), dict(given)
    if given.pop("pure", False):
        path = smsvm_path(X, y, l1s=l2s / 10, loss=loss, tol=1e-6)
        assert (path.l2s == 0).all()
    else:
        path = smsvm_path(X, y, l2s=l2s, loss=loss, tol=1e-6, **given)
    assert path.gaps.max() <= 1e-6
    assert path.n_fits == 9 or loss not in LOSSES
    for k in (0, 4, 8):
        model = SmSVMClassifier(l2=path.l2s[k], l1=path.l1s[k], loss=loss, tol=1e-6).fit(X, y)
        assert path.objectives[k, 0] == pytest.approx(model.objective_[0], rel=2e-6)
        own = path.at(path.l2s[k], path.l1s[k])
        assert own.duality_gap_[0] <= 1e-6
        assert own.objective_[0] == pytest.approx(path.objectives[k, 0], rel=1e-12)


@pytest.mark.parametrize("kind", [text, genes])
def test_what_pairs_prove_between_their_penalties_is_true(kind):
    X, y = kind()
    path = smsvm_path(X, y, l2s=np.geomspace(0.1, 1e-3, 40), l1_ratio=0.5, loss="logistic", tol=1e-4)
    for l2 in np.exp(np.random.default_rng(0).uniform(np.log(5e-4), np.log(0.2), 25)):
        model = path.at(l2, l2)
        exact = SmSVMClassifier(l2=l2, l1=l2, loss="logistic", tol=1e-9, max_passes=1e4).fit(X, y)
        assert model.objective_[0] * (1 - model.duality_gap_[0]) <= exact.objective_[0]
        if 1e-3 < l2 < 0.1:
            assert model.duality_gap_[0] < 5e-3


def test_without_l1_a_path_that_knows_few_columns_proves_nothing_false():
    X, y = genes()
    path = smsvm_path(X, y, l2s=np.geomspace(1, 1e-3, 9), l1=0.005, loss="logistic", tol=1e-4)
    for l2 in np.geomspace(1, 1e-3, 23)[1:-1]:
        model, exact = path.at(l2, 0.0), SmSVMClassifier(l2=l2, loss="logistic", tol=1e-6).fit(X, y)
        assert model.objective_[0] * (1 - model.duality_gap_[0]) <= exact.objective_[0]


def dual_of(X, y, s, loss, w, total, l2, l1):
    """What the slopes at ``w`` prove: the heavier class shrinks, and then all of them, as is best."""
    r = -s * y * LOSSES[loss][1](y * (X @ w[:-1] + w[-1]))
    above, below = r[r > 0].sum(), -r[r < 0].sum()
    r[r > 0] *= min(1, below / above)
    r[r < 0] *= min(1, above / below)
    v = X.T @ r

    def missed(t):
        return np.sum(np.maximum(0, np.abs(t * v) - l1)**2) / (2 * l2) - t * total

    return -minimize_scalar(missed, bounds=(0, 1), method="bounded", options={"xatol": 1e-12}).fun


def test_a_free_intercept_that_is_out_of_balance_proves_nothing_false():
    # columns far from 0, few rows of one class, few steps: the dual variables of the other class have to shrink much
    for seed in range(60):
        rng, loss = np.random.default_rng(seed), list(LOSSES)[seed % 2]
        y = np.where(np.arange(40) < 4, 1.0, -1.0)
        X = rng.standard_normal((40, 60)) + rng.choice([0, 2, 5], 60) + np.outer(y > 0, rng.standard_normal(60))
        if seed >= 30:                           # at w = 0 their slopes are next to nothing before, and not after it
            X = np.outer(np.where(y > 0, 1, 1 / 9), np.ones(60)) + 0.01 * rng.standard_normal((40, 60))
        s, most = np.full(40, 1 / 40), seed % 3
        path = _column_path.ColumnPath(columns_of(X, seed), y / 40, Loss(loss), "free")
        for l1 in np.repeat(np.geomspace(2, 0.05, 5), 2) * np.abs(X.T @ (y / 40)).max():
            l2 = 0.1 * l1
            _, told, _, total, *_ = path.fit(l2, l1, 1e-12, l1, most)
            assert told <= dual_of(X, y, s, loss, path.weights(), total, l2, l1) + 1e-6 * abs(told)


def test_few_columns_are_read():
    X, y = text(2000, 5000)
    path = smsvm_path(X, y, l2s=np.geomspace(0.05, 0.005, 60), l1_ratio=0.5, loss="logistic", tol=1e-3)
    assert path.gaps.max() <= 1e-3
    assert path.n_passes < 60


def test_several_classes_and_weights():
    X, _ = text()
    rng = np.random.default_rng(1)
    y, weight = rng.integers(0, 3, X.shape[0]), rng.random(X.shape[0])
    path = smsvm_path(X, y, l2s=[1e-2, 1e-3], l1_ratio=0.3, loss="logistic", tol=1e-5, sample_weight=weight, n_jobs=2)
    model = SmSVMClassifier(l2=1e-3, l1=3e-3 / 7, loss="logistic", tol=1e-5).fit(X, y, sample_weight=weight)
    assert path.objectives.shape == (2, 3) and path.gaps.max() <= 1e-5
    assert path.objectives[1] == pytest.approx(model.objective_, rel=2e-5)


@pytest.mark.parametrize("given", [{"l1s": [0.02, 0.01, 0.003]}, {"l2s": [0.02, 0.01, 0.003], "l1_ratio": 0.5}])
def test_problems_side_by_side_are_the_same_to_the_bit(given):
    X, _ = text()
    y = np.random.default_rng(1).integers(0, 5, X.shape[0])
    one, two = (smsvm_path(X, y, loss="logistic", tol=1e-5, n_jobs=n, **given) for n in (1, 3))
    assert one.n_fits == two.n_fits == 15 and one.n_passes == two.n_passes
    assert np.array_equal(one.coefs, two.coefs) and np.array_equal(one.gaps, two.gaps)


def test_a_single_step_hears_the_clock():
    X, y = genes()
    fits, asked = ColumnFits(source_of(X, y), np.where(y > 0, 1.0, -1.0), Loss("logistic"), True, True), []
    fits.path.fit(0.0, 1e-4, 1e-9, 1e-4, 5, lambda: asked.append(1))
    assert len(asked) > 100


@pytest.mark.parametrize("how", ["float32", "fortran", "read-only"])
def test_layouts(how):
    X, y = genes()
    X = X.astype(np.float32) if how == "float32" else np.asfortranarray(X) if how == "fortran" else X
    X.flags.writeable = how != "read-only"
    path = smsvm_path(X, y, l1s=[0.3, 0.1, 0.03], loss="logistic", tol=1e-5)
    whole = smsvm_path(X.astype(float), y, l1s=[0.3, 0.1, 0.03], loss="logistic", tol=1e-5)
    assert path.gaps.max() <= 1e-5
    assert path.objectives == pytest.approx(whole.objectives, rel=3e-5)


def test_squares_that_overflow_are_refused():
    X, y = genes()
    with pytest.raises(ValueError, match="overflow"):
        smsvm_path(1e160 * X, y, l1s=[1e159], loss="logistic", tol=1e-3)


def test_where_no_step_leads_on_the_path_goes_on_by_other_fits(monkeypatch):
    X, y = genes()
    whole = smsvm_path(X, y, l1s=[0.2, 0.1, 0.05], loss="logistic", tol=1e-5)
    fit = ColumnFits.fit

    def stuck(self, penalty, settings, following):
        result, pair = fit(self, penalty, replace(settings, tol=0.5), following)
        result.status = "stuck"
        return result, pair

    monkeypatch.setattr(ColumnFits, "fit", stuck)
    path = smsvm_path(X, y, l1s=[0.2, 0.1, 0.05], loss="logistic", tol=1e-5)
    assert path.gaps.max() <= 1e-5 and path.n_fits == 4
    assert path.objectives == pytest.approx(whole.objectives, rel=2e-5)


def test_where_columns_are_all_but_parallel_the_path_goes_on_by_other_fits():
    rng = np.random.default_rng(0)
    X = np.abs(rng.standard_normal((120, 300))) + 1000
    y = (X[:, :3].sum(1) > np.median(X[:, :3].sum(1))).astype(int)
    path = smsvm_path(X, y, l1s=[0.3, 0.1, 0.03], loss="squared_hinge", tol=1e-4, penalize_intercept=True)
    assert path.gaps.max() <= 1e-4 and path.n_passes < 5000


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_max_passes_and_max_time_keep_what_is_known():
    X, y = text()
    path = smsvm_path(X, y, l1s=[0.01, 0.001], loss="logistic", tol=1e-6, max_passes=1)
    assert path.gaps.max() > 1e-6 and path.n_fits == 2
    settings = Settings(tol=1e-6, clock=SimpleNamespace(late=False))
    fits = ColumnFits(source_of(X, y), np.where(y > 0, 1.0, -1.0), Loss("logistic"), True, True)
    assert fits.fit(ElasticNet(0, 0.01), settings, None)[0].status == "certified"
    settings.clock.late = True
    assert fits.fit(ElasticNet(0, 0.001), settings, None)[0].status == "max_time"


@pytest.mark.parametrize("given, message", [
    ({"l1s": [0.1], "l2s": [0.1]}, "give neither"), ({"l1s": [0.1], "l1_ratio": 0.5}, "give neither"),
    ({"l1s": [0.0]}, "l1s must be positive"), ({"l1s": [np.inf]}, "l1s must be positive"),
    ({"l1s": [np.nan]}, "l1s must be positive"), ({"l1s": []}, "at least one"),
    ({"l1s": [0.1], "l1": 0.2}, "give neither"), ({"l1s": [0.1], "between": True}, "between=True needs l2s"),
])
def test_l1s_that_are_none(given, message):
    X, y = genes()
    with pytest.raises(ValueError, match=message):
        smsvm_path(X, y, loss="logistic", **given)


def test_a_path_of_l1_alone_is_asked_for_an_l1():
    X, y = genes()
    path = smsvm_path(X, y, l1s=[0.2, 0.1], loss="logistic")
    assert "l1=0.2 ... 0.1" in repr(path)
    assert path.at(0, 0.1).duality_gap_[0] <= 1e-4
    assert path.at(0, 0.15).duality_gap_[0] < 0.5
    with pytest.raises(ValueError, match="asked for an l1"):
        path.at(0)


def test_a_loss_that_is_not_smooth_is_refused():
    X, y, _ = drawn(0)
    with pytest.raises(ValueError, match="smooth loss"):
        _column_path.ColumnPath(Rows(np.ascontiguousarray(X.T)), y / len(y), Loss("hinge"), None)
