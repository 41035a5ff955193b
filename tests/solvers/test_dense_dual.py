"""The dual of SmSVM on dense rows: any layout, hard columns, and what "auto" does when it gives up."""

import warnings
from time import perf_counter

import numpy as np
import pytest
from campaign.certificates import check_certificate
from campaign.findings import Findings
from campaign.oracle import Binary, bounds
from conftest import FORMATS, as_format
from plans import begins_with_dual
from sklearn.exceptions import ConvergenceWarning

from cmargin.data import open_rows
from cmargin.data.loss import Loss
from cmargin.smsvm import SmSVMClassifier
from cmargin.solvers import cost, prices
from cmargin.solvers.dual import dual_newton

INTERCEPTS = {"none": {"fit_intercept": False}, "penalised": {"penalize_intercept": True}, "free": {}}
HARD_ROWS = ["two rows", "constant", "zeros", "repeated", "opposite", "far from 0"]


def fit(X, y, weights=None, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        return SmSVMClassifier(**{"linear_solver": "dual", "max_passes": 5000, **parameters}).fit(X, y, weights)


def noisy(n=120, m=23, seed=0, dtype=float):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, m)).astype(dtype)
    return X, np.where(X @ rng.standard_normal(m) + 2 * rng.standard_normal(n) > 0, 1, -1)


def hard_rows(kind):
    X, y = noisy(60, 9, 3)
    if kind == "two rows":
        X, y = X[:2], np.array([1, -1])
    elif kind == "constant":
        X[:, 2], X[:, 5] = 1.0, -3.0
    elif kind == "zeros":
        X[::3] = 0
    elif kind == "repeated":
        X[30:] = X[:30]
    elif kind == "opposite":
        X[30:], y[30:] = X[:30], -y[:30]
    elif kind == "far from 0":
        X += 5
    return X, y


def is_certified(X, y, weights, l2, intercept, model):
    """Objective and gap as they are reported, against the interior point method in extended precision."""
    binary, found = Binary(X, y, weights, l2, 0.0, intercept), Findings(0, [])
    assert bounds(binary).certainty < 1e-7
    reported = model.coef_[0], model.intercept_[0], model.objective_[0], model.duality_gap_[0]
    check_certificate(binary, *reported, "", found)
    assert not found.faults, found.faults
    assert model.duality_gap_[0] <= 1e-4


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("l2", [1.0, 1e-2, 1e-4])
@pytest.mark.parametrize("m", [1, 23, 150])
def test_certificate_holds(l2, m, intercept, dtype):
    X, y = noisy(m=m, dtype=dtype)
    weights = np.random.default_rng(1).integers(0, 3, len(y)).astype(float)
    is_certified(X, y, weights, l2, intercept, fit(X, y, weights, l2=l2, **INTERCEPTS[intercept]))


def test_every_layout_gives_the_same_bits(dtype, tmp_path):
    X, y = noisy(m=37, dtype=dtype)
    plain = fit(X, y, l2=1e-2)
    for name in FORMATS:
        model = fit(as_format(X, name, tmp_path), y, l2=1e-2)
        if name.startswith("csr"):
            np.testing.assert_allclose(model.objective_, plain.objective_, rtol=1e-4)
        else:
            np.testing.assert_array_equal(model.coef_, plain.coef_)
    rows_apart = np.full((3 * len(X), X.shape[1]), np.nan, dtype)[::-3]
    rows_apart[:] = X
    np.testing.assert_array_equal(fit(rows_apart, y, l2=1e-2).coef_, plain.coef_)


def test_rows_are_copied_only_where_their_columns_lie_apart():
    X = np.zeros((50, 8))
    for array, copied in ((X, False), (X[::2], False), (X[:, ::2], True), (X[:, :1], False), (X.copy("F"), True)):
        source = open_rows(array)
        assert (source.dual_rows(False, False, None, 1.0, Loss("hinge")).rows is not source.rows) == copied


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("kind", HARD_ROWS)
def test_hard_rows(kind, intercept):
    X, y = hard_rows(kind)
    is_certified(X, y, np.ones(len(y)), 1e-2, intercept, fit(X, y, l2=1e-2, **INTERCEPTS[intercept]))


# ------------------------------------------------------------ giving up


@pytest.fixture
def statuses(monkeypatch):
    seen, attend = [], dual_newton.DualNewton.attend

    def noted(self):
        attend(self)
        if self.asks is None:
            seen.append((self.status, self.result.n_iter))

    monkeypatch.setattr(dual_newton.DualNewton, "attend", noted)
    return seen


def classes(n, m, noise, seed=2):
    rng = np.random.default_rng(seed)
    centres, label = rng.standard_normal((10, m)), rng.integers(0, 10, n)
    return centres[label] + noise * rng.standard_normal((n, m)), np.where(label == 3, 1, -1)


def test_auto_goes_by_the_dual_where_few_rows_stay_at_work(statuses):
    X, y = classes(1500, 250, 2)
    model = fit(X, y, l2=1e-4, linear_solver="auto")
    assert statuses == [("converged", statuses[0][1])] and model.duality_gap_[0] <= 1e-4
    newton = fit(X, y, l2=1e-4, linear_solver="cholesky")
    assert model.objective_[0] == pytest.approx(newton.objective_[0], rel=2e-4)


@pytest.mark.parametrize("shape", [(1500, 250), (500, 700), (22_000, 140)])
def test_auto_gives_up_early_where_many_do_and_begins_anew(shape, statuses, monkeypatch):
    X, y = noisy(*shape)
    y = np.where(np.random.default_rng(1).random(len(y)) < 0.3, -y, y)
    assert begins_with_dual(X, 1e-5)
    if X.shape[0] < X.shape[1]:                                       # the dual would arrive
        monkeypatch.setattr(cost, "SMOOTH_DUAL_SHARE", 0.05)
    model = fit(X, y, l2=1e-5, linear_solver="auto", random_state=0)
    (status, sweeps), = statuses
    assert status == "left" and 0 < sweeps < 60
    monkeypatch.setattr(cost, "DUAL_FROM_NEWTON_READS", (np.inf, np.inf))
    direct = fit(X, y, l2=1e-5, linear_solver="auto", random_state=0)
    assert len(statuses) == 1
    np.testing.assert_array_equal(model.coef_, direct.coef_)          # nothing of the sweeps is left but their reads,
    assert model.objective_[0] == direct.objective_[0] and model.duality_gap_[0] == direct.duality_gap_[0] <= 1e-4
    assert model.n_passes_ > direct.n_passes_ + 4                     # which count
    assert model.n_iter_ == direct.n_iter_ + sweeps
    assert (np.diff(model.history_["passes"]) > 0).all() and (np.diff(model.history_["seconds"]) >= 0).all()


def test_many_rows_begin_with_the_dual_only_where_they_are_light():
    # from 160 rows a column on Newton's evaluations are nearly all at a subset
    X = np.random.default_rng(5).standard_normal((20_900, 130))        # mean C |x|^2: 6.2, 62
    assert begins_with_dual(X, 1e-3)
    assert not begins_with_dual(np.float32(X), 1e-3)     # nor so dear
    assert begins_with_dual(np.float32(X), 1e-2)
    assert not begins_with_dual(X, 1e-4)
    assert begins_with_dual(X[:20_700], 1e-4)
    assert not begins_with_dual(np.float32(1e20) * np.float32(X), 1e-3)


@pytest.mark.parametrize("shape", [(1500, 250), (500, 700)])
def test_newton_goes_on_from_a_point_that_pays_off(shape, statuses, monkeypatch):
    X, y = classes(*shape, 8)
    monkeypatch.setattr(cost, "DUAL_TRIAL_SHARE", np.inf)
    for share in ("DUAL_SHARE", "SMOOTH_DUAL_SHARE"):                 # of as many unknowns as rows the latter
        monkeypatch.setattr(cost, share, 20 / prices.reads_of_newton(open_rows(X).describe()))
    model = fit(X, y, l2=1e-2, tol=1e-7, linear_solver="auto")
    assert statuses[0][0] == "left" and model.duality_gap_[0] <= 1e-7
    assert (np.diff(model.history_["passes"]) > 0).all() and model.history_["passes"][-1] <= model.n_passes_
    with pytest.warns(ConvergenceWarning, match="max_passes"):
        short = SmSVMClassifier(l2=1e-2, tol=1e-12, max_passes=15).fit(X, y)
    assert short.n_passes_ < 15 + 3 and np.isfinite(short.objective_[0])


def test_a_gap_that_stays_large_ends_the_trial(statuses):
    X, y = noisy(2000, 200)
    model = fit(X, y, l2=1e-6, linear_solver="auto")
    assert statuses[0][0] == "left" and statuses[0][1] < 40 and model.duality_gap_[0] <= 1e-4


def test_time_limit_callback_and_interrupt():
    X, y = classes(1500, 250, 8)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        late = SmSVMClassifier(linear_solver="dual", l2=1e-9, tol=1e-12, max_time=1e-6).fit(X, y)
    assert np.isfinite(late.coef_).all()
    seen = []
    SmSVMClassifier(linear_solver="dual", l2=1e-8, tol=1e-14, callback=lambda e: seen.append(e.duality_gap_[0]) or True
                    ).fit(X, y)
    assert len(seen) == 1 and 0 < seen[0] <= 1


def test_an_interrupt_between_slices_leaves_the_best_point(monkeypatch):
    X, y = classes(400, 130, 8)
    advance, times = dual_newton.DualNewton.advance, []

    def interrupted(self, until):
        times.append(1)
        if self.source.reads > 15:
            raise KeyboardInterrupt
        advance(self, perf_counter() + 1e-5)

    monkeypatch.setattr(dual_newton.DualNewton, "advance", interrupted)
    model = SmSVMClassifier(linear_solver="dual", l2=1e-4, tol=1e-12)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert len(times) > 2 and 0 < model.objective_[0] < 0.5 and model.duality_gap_[0] < 1
    u = 1 - y * model.decision_function(X)
    value = 1e-4 / 2 * (model.coef_**2).sum() + np.maximum(u, 0).mean()
    assert value == pytest.approx(model.objective_[0], rel=1e-12)
