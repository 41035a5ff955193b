"""Rows on a device: the answers of rows in memory, what crosses, and what is refused."""

import builtins
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import blobs
from ranks_in_threads import on_ranks
from sklearn.exceptions import ConvergenceWarning
from tensors import LIBRARIES, SINGLE, in_memory, strict, strict_on, torch

from cmargin import (
    BSNClassifier,
    MarginPursuitClassifier,
    PegasosClassifier,
    SLNDClassifier,
    SmSVMClassifier,
    SmSVMClassifierCV,
    SmSVMRegressor,
    baselines,
)
from cmargin.data import open_rows
from cmargin.data.device import arrays, rows
from cmargin.data.device.row_pass import DeviceRowPass
from cmargin.data.device.source import DeviceSource
from cmargin.solvers import cost

if strict is None:
    pytest.skip("array-api-strict is not installed", allow_module_level=True)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """So that a few hundred rows are several blocks."""
    for limit in ("CPU_NUMBERS", "BLOCK_NUMBERS"):
        monkeypatch.setattr(rows, limit, 1)


@pytest.fixture(params=LIBRARIES)
def tensor(request):
    return LIBRARIES[request.param]


@pytest.fixture
def data():
    X, y = blobs(n=700, d=6, k=3)
    return X, y, np.random.default_rng(2).choice([0.0, 0.5, 2.0], len(y))


# ---------------------------------------------------------------- fits

@pytest.mark.parametrize("settings", [
    {}, {"l1": 1e-2}, {"loss": "squared_hinge"}, {"loss": "logistic", "fit_intercept": False},
    {"loss": "huberised_hinge", "delta": 0.5}, {"loss": "modified_huber", "l1": 1e-2},
    {"linear_solver": "cg"}, {"penalize_intercept": True, "class_weight": "balanced"},
    {"line_search": "quadratic", "tol": 1e-2, "l2": 1e-2},
], ids=str)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_smsvm_takes_the_steps_of_rows_in_memory(tensor, data, settings, n_classes):
    X, y, weight = data
    y = np.minimum(y, n_classes - 1)
    model = SmSVMClassifier(**{"l2": 1e-3, **settings})
    wanted = model.fit(X, y, weight).objective_.copy()
    gap, n_evaluations = model.duality_gap_.copy(), model.n_iter_
    found = model.fit(tensor(X), y, weight)
    np.testing.assert_allclose(found.objective_, wanted, rtol=1e-7)
    np.testing.assert_allclose(found.duality_gap_, gap, rtol=1e-3, atol=1e-9)
    assert found.n_iter_ == n_evaluations and found.duality_gap_.max() <= model.tol
    assert isinstance(found.coef_, np.ndarray) and found.coef_.dtype == np.float64


@pytest.mark.parametrize("settings", [{}, {"scale": "one-shot"}, {"solver": "gd", "max_passes": 60, "tol": 0.05}],
                         ids=str)
def test_margin_pursuit_takes_the_steps_of_rows_in_memory(tensor, data, settings):
    X, y, weight = data
    model = MarginPursuitClassifier(**{"l2": 1e-2, **settings})
    coef, traced = model.fit(X, y, weight).coef_, model.history_["margin_mean"]
    np.testing.assert_allclose(model.fit(tensor(X), y, weight).coef_, coef, atol=1e-12)
    np.testing.assert_allclose(model.history_["margin_mean"], traced, atol=1e-12)


@pytest.mark.parametrize("settings", [{}, {"tail": "drop", "hessian_refresh": 2}, {"step_size": 2.0}], ids=str)
@pytest.mark.parametrize("kind", [SLNDClassifier, BSNClassifier])
def test_multinomial_passes_are_those_of_rows_in_memory(tensor, data, kind, settings, monkeypatch):
    monkeypatch.setattr(cost, "PATH_FLOPS", (0.0, 0.0))   # so that passes are the end
    X, y, weight = data
    model = kind(random_state=3, max_passes=4, **settings)
    coef, risk, step = model.fit(X, y, weight).coef_, model.history_["objective"], model.step_size_
    proba = model.predict_proba(X)
    found = model.fit(tensor(X), y, weight)
    np.testing.assert_allclose(found.coef_, coef, atol=1e-9)
    np.testing.assert_allclose(found.history_["objective"], risk, atol=1e-12)
    np.testing.assert_allclose(in_memory(found.predict_proba(tensor(X))), proba, atol=1e-9)
    assert found.step_size_ == step


def test_multinomial_goes_on_from_weights_outside_the_basis(tensor, data):
    X, y, _ = data
    model = SLNDClassifier(tail="drop", rank=2, max_passes=2, random_state=0, warm_start=True)
    twice = model.fit(X, y).set_params(rank=3).fit(X, y).coef_
    model = SLNDClassifier(tail="drop", rank=2, max_passes=2, random_state=0, warm_start=True)
    np.testing.assert_allclose(model.fit(tensor(X), y).set_params(rank=3).fit(tensor(X), y).coef_, twice, atol=1e-9)


@pytest.mark.parametrize("estimator", [SmSVMClassifier(l2=1e-3), MarginPursuitClassifier(l2=1e-3),
                                       SLNDClassifier(random_state=1, step_size=1.0)], ids=str)
@pytest.mark.parametrize("single", [False, True], ids=["device", "no float64"])
def test_single_precision(data, estimator, single):
    X, y, _ = data
    X = X.astype(np.float32)
    T = SINGLE(X) if single else LIBRARIES["strict"](X)
    wanted, passes = estimator.fit(X, y).coef_, estimator.n_iter_
    found = estimator.fit(T, y)
    np.testing.assert_allclose(found.coef_, wanted, rtol=2e-3, atol=2e-4)
    assert found.n_iter_ == passes and found.score(T, y) == found.score(X, y)


def objective(model, X, y):
    """P of a binary `SmSVMClassifier` in float64, at the numbers it returned."""
    margins = np.where(y == 1, 1.0, -1.0) * (X.astype(float) @ model.coef_[0] + model.intercept_[0])
    return model.l2 / 2 * (model.coef_**2).sum() + np.maximum(0, 1 - margins).mean()


@pytest.mark.parametrize("place", [SINGLE, *LIBRARIES.values()])
def test_what_is_certified_is_evaluated_in_double_precision(place):
    X, y = blobs(n=3000, d=8, k=2)
    X = X.astype(np.float32)
    best = SmSVMClassifier(l2=1e-3, tol=1e-8).fit(X, y)
    found = SmSVMClassifier(l2=1e-3, tol=1e-4).fit(place(X), y)
    assert found.objective_[0] == pytest.approx(objective(found, X, y), rel=1e-12)
    assert (found.objective_[0] - best.objective_[0]) / found.objective_[0] <= found.duality_gap_[0] + 1e-7
    assert found.duality_gap_[0] <= 1e-4


@pytest.mark.parametrize("estimator", [SmSVMClassifier(l2=1e-4, random_state=0, class_weight="balanced"),
                                       SmSVMRegressor(l2=1e-4), MarginPursuitClassifier(l2=1e-4)], ids=str)
def test_a_subset_is_chosen_as_in_memory(monkeypatch, estimator):
    monkeypatch.setattr(rows, "CPU_NUMBERS", 40_000)
    X, y = blobs(n=21_000, d=5, k=2, spread=2.0)
    X[::700] *= 40.0
    coef, n_evaluations = estimator.fit(X, y).coef_, estimator.n_iter_
    found = estimator.fit(LIBRARIES["strict"](X), y)
    np.testing.assert_allclose(found.coef_, coef, rtol=1e-8, atol=1e-10)
    assert found.n_iter_ == n_evaluations


def test_an_indicator(tensor, data):
    X, y, _ = data
    Y = (y[:, None] == np.arange(3)).astype(int)
    Y[:, 0] |= X[:, 0] > 1
    for model in (SmSVMClassifier(l2=1e-2, tol=1e-2), MarginPursuitClassifier(solver="gd", l2=1e-1, tol=0.1)):
        wanted = model.fit(X, Y).coef_
        labels = model.predict(X)
        for given in (Y, tensor(Y), sp.csr_matrix(Y)):
            np.testing.assert_allclose(model.fit(tensor(X), given).coef_, wanted, atol=1e-9)
        np.testing.assert_array_equal(model.predict(tensor(X)), labels)


def test_the_same_bits_again(tensor, data):
    X, y, weight = data
    for model in (SmSVMClassifier(l2=1e-2, tol=1e-2), SLNDClassifier(random_state=0, max_passes=2)):
        first = model.fit(tensor(X), y, weight).coef_.tobytes()
        assert model.fit(tensor(X), y, weight).coef_.tobytes() == first


def test_numpy_s_own_functions_whose_dtypes_are_cupy_s(data):
    X, y, _ = data
    signed_weight = np.where(y == 1, 1.0, -1.0)
    for dtype in (np.float32, np.float64):
        there = DeviceSource(rows.DeviceRows(X.astype(dtype))).row_pass(signed_weight, intercept=True, n_threads=1)
        here = open_rows(X.astype(dtype)).row_pass(signed_weight, intercept=True, n_threads=1)
        asked = {"step": 0.5, "line_width": 1.0, "width": 0.5}
        for floor, active in ((0.0, None), (0.3, None), (0.3, np.array([1, 2, 6]))):
            for source in (there, here):
                source.set_active(active)
            n_evaluations = [source.evaluate(np.linspace(-1, 1, 7), curvature_floor=floor, **asked)
                             for source in (there, here)]
            for found, wanted in zip(*n_evaluations, strict=True):
                found, wanted = (np.triu(np.atleast_2d(part)) for part in (found, wanted))
                np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
        assert there.rows.dtype == dtype


def test_parts_of_the_rows_one_after_the_other(tensor, data):
    X, y, weight = data
    here, there = (SLNDClassifier(loss="multinomial", random_state=0, max_passes=2) for _ in range(2))
    for part in (slice(0, 400), slice(400, 700)):
        here.partial_fit(X[part], y[part], [0, 1, 2], weight[part])
        there.partial_fit(tensor(X[part]), tensor(y[part]), [0, 1, 2], tensor(weight[part]))
    np.testing.assert_allclose(there.coef_, here.coef_, atol=1e-9)


def test_layouts(data):
    if torch is None:
        pytest.skip("torch is not installed")
    X, y, _ = data
    coef = SmSVMClassifier(l2=1e-2).fit(X, y).coef_
    wide = torch.zeros(2 * len(X), 3 * X.shape[1], dtype=torch.float64)
    wide[::2, ::3] = torch.asarray(X)
    for T in (torch.asarray(np.asfortranarray(X)), wide[::2, ::3]):
        np.testing.assert_allclose(SmSVMClassifier(l2=1e-2).fit(T, y).coef_, coef, atol=1e-10)


# ---------------------------------------------------------------- what crosses

def test_only_sums_come_back(monkeypatch, tensor, data):
    X, y, weight = data
    crossed, bring = [], arrays.to_host

    def counted(a):
        if arrays.on_device(a):
            crossed.append(int(np.prod(a.shape)))
        return bring(a)

    for module in ("arrays", "rows", "row_pass", "gathered", "score_blocks"):
        monkeypatch.setattr(f"cmargin.data.device.{module}.to_host", counted)
    m, p, largest = X.shape[1], X.shape[1] + 1, []
    for model in (SmSVMClassifier(l2=1e-3), MarginPursuitClassifier(l2=1e-3, trace=False)):
        crossed.clear()
        n_evaluations = model.fit(tensor(X), y, weight).n_iter_
        assert n_evaluations < len(crossed)
        largest.append(sorted(crossed))
    assert largest[0][-1] == 5 + 4 * p + m * m                       # sums of rows, four or three ways, and the block
    sample = np.count_nonzero(weight) * m                            # that margin pursuit looks at, at most 1,000 rows
    assert largest[1][-2:] == [3 + 3 * p + m * m, sample]
    crossed.clear()
    SmSVMClassifier(l2=1e-3).fit(tensor(X), tensor(y), tensor(weight))
    assert sorted(crossed)[-3:] == [5 + 4 * p + m * m, len(X), len(X)]              # labels and weights, once


def test_labels_and_weights_may_be_tensors(tensor, data):
    X, y, weight = data
    model = SmSVMClassifier(l2=1e-2, tol=1e-2)
    coef = model.fit(tensor(X), y, weight).coef_
    found = model.fit(tensor(X), tensor(y), tensor(weight))
    np.testing.assert_array_equal(found.coef_, coef)
    assert found.score(tensor(X), tensor(y), tensor(weight)) == found.score(X, y, weight)
    np.testing.assert_array_equal(found.classes_, [0, 1, 2])
    np.testing.assert_array_equal(model.fit(tensor(X), y.astype(str)).classes_, ["0", "1", "2"])


@pytest.mark.parametrize("model", [SmSVMClassifier(), SLNDClassifier(random_state=0),
                                   SLNDClassifier(loss="calibrated_hinge", random_state=0),
                                   SLNDClassifier(l2=1e-3), SmSVMClassifier(loss="logistic")], ids=str)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_scores_are_tensors_and_labels_are_not(tensor, data, model, n_classes):
    X, y, _ = data
    y = np.minimum(y, n_classes - 1)
    T, model = tensor(X.astype(np.float32)), model.fit(X.astype(np.float32), y)
    for method in ("decision_function", "scores", "posterior", "predict_proba", "predict_log_proba"):
        if hasattr(model, method):
            found = getattr(model, method)(T)
            assert type(found) is type(T) and found.device == T.device and found.dtype == T.dtype
            np.testing.assert_allclose(in_memory(found), getattr(model, method)(X), rtol=1e-4, atol=1e-4)
    if hasattr(model, "predict_log_proba"):                          # shares of 0 have logarithms of -inf, these do not
        far = (1e4 * X).astype(np.float32)
        np.testing.assert_allclose(in_memory(model.predict_log_proba(tensor(far))), model.predict_log_proba(far),
                                   rtol=1e-4, atol=1e-4)
    assert isinstance(model.predict(T), np.ndarray) and (model.predict(T) == model.predict(X)).all()
    if hasattr(model, "predict_top_k"):
        assert (model.predict_top_k(T, 2) == model.predict_top_k(X, 2)).all()


def test_scores_out_of_range_are_numbers(tensor, data):
    X, y, _ = data
    model = SmSVMClassifier(l2=1e-2).fit(X, y)
    far = X.copy()
    far[3] *= 1e308 / np.abs(far[3]).max()
    model.coef_ = model.coef_ * 1e3
    found = in_memory(model.decision_function(tensor(far)))
    np.testing.assert_allclose(found, model.decision_function(far), rtol=1e-12)
    assert np.isfinite(found).all()


# ---------------------------------------------------------------- a fit that is stopped

def test_an_interrupt_leaves_the_best_point(monkeypatch, data):
    X, y, _ = data
    evaluate, n = DeviceRowPass.evaluate_block, [0]

    def interrupted(self, *given):
        n[0] += 1
        if n[0] == 8:                        # in the middle of an evaluation
            raise KeyboardInterrupt
        return evaluate(self, *given)

    monkeypatch.setattr(DeviceRowPass, "evaluate_block", interrupted)
    model = SmSVMClassifier(l2=1e-3)
    with pytest.raises(KeyboardInterrupt):
        model.fit(LIBRARIES["strict"](X), np.minimum(y, 1))
    assert np.isfinite(model.coef_).all() and model.coef_.any() and model.n_iter_ > 0


def test_an_evaluation_that_was_left_has_moved_no_row(monkeypatch, data):
    X, y, _ = data
    signed_weight = np.where(y == 1, 1.0, -1.0)
    source, e = open_rows(LIBRARIES["strict"](X)).row_pass(signed_weight, intercept=True,
                                                           n_threads=1), np.linspace(-1, 1, 7)
    source.evaluate(e, 0.5, 1.0, 1.0, 0.0)
    before, square = source.margins(), np.asarray(source.line(0.3, 1.0))
    seen, wide = [], rows.DeviceRows.wide

    def broken(self, *given):
        seen.append(given)
        if len(seen) == 2:
            raise KeyboardInterrupt
        return wide(self, *given)

    with monkeypatch.context() as patch:
        patch.setattr(rows.DeviceRows, "wide", broken)
        with pytest.raises(KeyboardInterrupt):
            source.evaluate(2 * e, 1.0, 1.0, 1.0, 0.0)
    np.testing.assert_array_equal(source.margins(), before)
    np.testing.assert_array_equal(source.line(0.3, 1.0), square)


@pytest.mark.parametrize("estimator", [SmSVMClassifier(l2=1e-6, tol=1e-9), MarginPursuitClassifier(l2=1e-6, tol=1e-12),
                                       SLNDClassifier(random_state=0, max_passes=10_000)], ids=str)
def test_max_time_and_callback(data, estimator):
    X, y, _ = data
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        estimator.set_params(max_time=1e-6).fit(LIBRARIES["strict"](X), y)
    assert np.isfinite(estimator.coef_).all()
    seen = []
    estimator.set_params(max_time=None, callback=lambda model: seen.append(model.score(X, y)) or len(seen) > 1)
    estimator.fit(LIBRARIES["strict"](X), y)
    assert len(seen) == 2


# ---------------------------------------------------------------- what is refused

def refused(text, X, y=None, weight=None, model=None, error=ValueError):
    y = np.arange(len(X)) % 2 if y is None else y
    with pytest.raises(error, match=text):
        (SmSVMClassifier() if model is None else model).fit(X, y, weight)


def test_two_devices(data):
    X, y, weight = data
    T, other = strict_on("device1")(X), strict_on("device2")
    refused(r"X is on .*device1.* and y on .*device2.*must be on one device", T, other(y))
    refused(r"X is on .* and sample_weight on .*; they must be on one device", T, y, other(weight))
    if torch is not None:
        refused("X is on cpu and y on meta", torch.asarray(X), torch.asarray(y).to("meta"))
        refused("X is in memory and y on meta", X, torch.asarray(y).to("meta"))
        assert SmSVMClassifier().fit(X, torch.asarray(y)).score(X, y) > 0.5


@pytest.mark.parametrize("broken, text", [(np.nan, "Input X contains NaN"), (-np.inf, "Input X contains infinity")])
def test_numbers_that_are_none(tensor, data, broken, text):
    X, y, _ = data
    model = SmSVMClassifier().fit(X, y)
    X[-1, 2] = broken
    refused(text, tensor(X), y)
    with pytest.raises(ValueError, match=text):
        model.predict(tensor(X))


def test_shapes(tensor, data):
    X, y, _ = data
    refused("Expected 2D array, got 1D array instead", tensor(X[:, 0]), y)
    refused("Expected 2D array, got 3D array instead", tensor(X[:, :, None]), y)
    refused(r"Found array with 0 sample\(s\)", tensor(X[:0]), y[:0])
    refused(r"Found array with 0 feature\(s\)", tensor(X[:, :0]), y)
    refused("inconsistent numbers of samples", tensor(X), y[:-1])
    refused("only one class", tensor(X), np.zeros(len(X)))
    model = SmSVMClassifier().fit(tensor(X), y)
    with pytest.raises(ValueError, match="X has 5 features, but SmSVMClassifier is expecting 6 features"):
        model.predict(tensor(X[:, :5]))
    with pytest.raises(ValueError, match="Expected 2D array"):
        open_rows(tensor(y))
    with pytest.raises(TypeError, match=r"must be float32 or float64, got .*int64"):
        open_rows(tensor(X.astype(np.int64)))


def test_dtypes(tensor, data):
    X, y, _ = data
    whole = np.rint(3 * X).astype(np.int32)
    found = SmSVMClassifier().fit(tensor(whole), y)
    np.testing.assert_allclose(found.coef_, SmSVMClassifier().fit(whole, y).coef_, atol=1e-9)
    assert in_memory(found.decision_function(tensor(whole))).dtype == np.float64
    refused(r"must be real numbers.*complex", tensor(X * 1j), y)
    if torch is not None:
        for kind in (torch.float16, torch.bfloat16):                         # exact in single precision
            T = torch.asarray(X).to(kind)
            found = SLNDClassifier(random_state=0).fit(T, y)
            wanted = SLNDClassifier(random_state=0).fit(T.to(torch.float32), y)
            np.testing.assert_array_equal(found.coef_, wanted.coef_)
            assert found.decision_function(T).dtype == torch.float32


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support")
def test_tensors_that_are_more_than_numbers(data):
    if torch is None:
        pytest.skip("torch is not installed")
    X, y, weight = data
    grown = torch.asarray(X).requires_grad_()
    refused(r"X requires grad.*X\.detach\(\)", grown, y)
    refused("sample_weight requires grad", torch.asarray(X), y, torch.asarray(weight).requires_grad_())
    with pytest.raises(ValueError, match="X requires grad"):
        SmSVMClassifier().fit(X, y).predict(grown)
    refused("X is a sparse tensor", torch.asarray(X).to_sparse_csr(), y)


def test_ranks(data):
    X, y, _ = data
    with pytest.raises(ValueError, match="Rows in files or on a device do not take comm= yet"):
        raise on_ranks(1, lambda comm: SmSVMClassifier().fit(LIBRARIES["strict"](X), y, comm=comm))[0][0]


@pytest.mark.parametrize("model, text", [
    (SmSVMClassifier(linear_solver="dual"), "linear_solver='dual' needs the rows in memory"),
    (SmSVMClassifier(linear_solver="woodbury"), "linear_solver='woodbury' needs the rows in memory"),
    (SmSVMRegressor(linear_solver="dual"), "linear_solver='dual' needs the rows in memory"),
    (MarginPursuitClassifier(solver="sgd"), "which reads one row at a time, needs the rows in memory"),
    (PegasosClassifier(), "which reads one row at a time, needs the rows in memory"),
    (SLNDClassifier(loss="logistic"), "SLNDClassifier with loss='logistic', which reads one row at a time"),
    (SLNDClassifier(l2=1e-3, loss="multinomial"), "The multinomial optimum needs the rows in memory"),
    (baselines.PreconditionedSGDClassifier(), "needs the rows in memory, and these live on a device"),
    (baselines.ODMClassifier(), "needs the rows in memory, and these live on a device"),
    (SmSVMClassifierCV(l2s=(1e-2,), cv=2, standardize=True), "standardize=True needs the rows in memory"),
], ids=str)
def test_what_is_not_done_there_says_so(data, model, text):
    X, y, _ = data
    refused(text, LIBRARIES["strict"](X), y if "SLND" in str(model) else y > 0, model=model)


class Capsule:
    """What can share its memory and nothing else."""

    def __init__(self, a, error=None):
        self.a, self.error = a, error

    def __dlpack__(self, **how):
        if self.error is not None:
            raise self.error
        return self.a.__dlpack__(**how)

    def __dlpack_device__(self):
        return self.a.__dlpack_device__()


def test_memory_that_is_shared(data):
    X, y, _ = data
    wanted = SmSVMClassifier().fit(X, y)
    found = SmSVMClassifier().fit(Capsule(X), Capsule(y))
    np.testing.assert_array_equal(found.coef_, wanted.coef_)
    assert not isinstance(open_rows(Capsule(X)), DeviceSource)
    with pytest.raises(TypeError, match=r"X is a Capsule that NumPy cannot read where it is.*array-api-compat"):
        SmSVMClassifier().fit(Capsule(X, BufferError("on a device")), y)


def test_without_array_api_compat(monkeypatch, data):
    X, y, _ = data
    known = builtins.__import__

    def without(name, *given, **also):
        if name == "array_api_compat":
            raise ImportError(name)
        return known(name, *given, **also)

    monkeypatch.setattr(builtins, "__import__", without)
    assert SmSVMClassifier().fit(LIBRARIES["strict"](X), y).score(X, y) > 0.5            # has functions of its own
    if torch is not None:
        refused(r"read by array-api-compat: pip install 'cmargin\[device\]'", torch.asarray(X), y, error=ImportError)
