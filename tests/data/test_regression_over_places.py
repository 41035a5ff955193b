"""SmSVMRegressor over ranks that are threads here, and of Dask collections: the objective of one machine, certified."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from ranks_in_threads import on_ranks
from sklearn.exceptions import ConvergenceWarning

from cmargin import Checkpoint, SmSVMRegressor
from cmargin._estimators.shard_targets import TOLD, told_of

RNG = np.random.default_rng(59)
X = RNG.standard_normal((900, 5))
T = X @ RNG.standard_normal(5) + RNG.standard_t(3, 900) + 40
WEIGHTS = RNG.integers(0, 3, 900).astype(float)
SETTINGS = [{}, {"epsilon": 2.0, "C": 0.1}, {"loss": "quantile", "quantile": [0.1, 0.5, 0.9]}, {"loss": "huber"},
            {"loss": "squared_epsilon_insensitive", "l1": 0.1}, {"loss": "quantile", "linear_solver": "cg"},
            {"lower": 0.0, "l1": 0.01}, {"groups": [0, 0, 1, 1, 1], "l1": 0.1}, {"fit_intercept": False},
            {"penalize_intercept": True}]


def fitted(size, parameters, rows=X, targets=T, weights=None, cuts=None, **more):
    """The models of all ranks, whose rows are sorted by their targets, so that no two ranks have like ones."""
    parts = np.array_split(np.argsort(targets.reshape(len(targets), -1)[:, 0], kind="stable"), size) \
        if cuts is None else np.split(np.arange(len(targets)), cuts)

    def work(comm):
        mine = parts[comm.rank]
        given = None if weights is None else weights[mine]
        return SmSVMRegressor(**parameters, **more).fit(rows[mine], targets[mine], given, comm=comm)

    models, _ = on_ranks(size, work)
    for model in models:
        if isinstance(model, BaseException):
            raise model
    return models


def check(models, one):
    for model in models:
        assert model.coef_.tobytes() == models[0].coef_.tobytes() and model.coef_.shape == one.coef_.shape
        assert np.shape(model.intercept_) == np.shape(one.intercept_)
    assert (models[0].duality_gap_ <= one.tol).all()
    bound = one.objective_ * (1 - one.duality_gap_)                # of one machine, which no objective is below
    assert (models[0].objective_ >= bound * (1 - 1e-9)).all()
    assert (models[0].objective_ * (1 - models[0].duality_gap_) <= one.objective_ * (1 + 1e-9)).all()


@pytest.mark.parametrize("parameters", SETTINGS, ids=str)
@pytest.mark.parametrize("size", [1, 3])
def test_ranks_reach_the_objective_of_one_machine(size, parameters):
    for weights in (None, WEIGHTS):
        one = SmSVMRegressor(**parameters, tol=1e-6).fit(X, T, weights)
        check(fitted(size, parameters, weights=weights, tol=1e-6), one)


def test_several_targets_ranks_without_rows_and_sparse_ones():
    targets = np.column_stack([T, -1000 * T, X[:, 0]])
    rows = sp.csr_matrix(np.where(np.abs(X) > 0.5, X, 0))
    for cuts in ([0, 300], [300, 300], [100, 900]):
        for given in (X, rows):
            check(fitted(3, {}, given, targets, cuts=cuts), SmSVMRegressor().fit(given, targets))


def test_targets_that_a_constant_meets_cost_nothing_wherever_they_are():
    for targets in (np.full(900, 3.25), np.where(np.arange(900) % 2, 4.0, 3.9)):
        model = fitted(3, {"epsilon": 0.1}, targets=targets)[0]
        assert model.objective_[0] <= 1e-12 and model.duality_gap_[0] == 0
        assert np.abs(model.predict(X) - targets).max() <= 0.1 + 1e-9


def test_weights_of_any_size_and_none_on_a_rank_that_has_rows():
    weights = np.where(np.argsort(np.argsort(T)) < 300, 0.0, WEIGHTS + 1) * 1e200
    one = SmSVMRegressor().fit(X, T, weights)
    check(fitted(3, {}, weights=weights), one)
    check(fitted(3, {"C": 1e-200}, weights=weights), SmSVMRegressor(C=1e-200).fit(X, T, weights))


def test_a_fit_over_ranks_goes_on_from_its_checkpoint(tmp_path):
    parameters = {"loss": "quantile", "quantile": [0.2, 0.7], "l2": 1e-6, "tol": 1e-7}
    whole, stopped = fitted(2, parameters)[0], []

    class Stop(Exception):
        pass

    def stop(model):
        stopped.append(1)
        if len(stopped) == 6:
            raise Stop

    def fit(callback):
        return lambda comm: SmSVMRegressor(**parameters, callback=callback if comm.rank == 0 else None,
                                           checkpoint=Checkpoint(tmp_path / "at", passes=1e-3, seconds=0.0)).fit(
            *(part[np.argsort(T)][comm.rank * 450:(comm.rank + 1) * 450] for part in (X, T)), comm=comm)

    broken, _ = on_ranks(2, fit(stop))
    assert isinstance(broken[0], Stop), broken
    models, _ = on_ranks(2, fit(lambda model: False))
    assert models[0].coef_.tobytes() == whole.coef_.tobytes()


def test_time_that_is_over_leaves_the_objective_of_weights_0():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        one = SmSVMRegressor(max_time=1e-9).fit(X, T)
        models = fitted(2, {"max_time": 1e-9})
    assert not models[0].coef_.any()
    assert models[0].objective_[0] == pytest.approx(np.mean(np.maximum(np.abs(T - models[0].intercept_) - 0.1, 0)))
    assert models[0].objective_[0] == pytest.approx(one.objective_[0], rel=1e-3)


@pytest.mark.parametrize("work, text", [
    (lambda comm: SmSVMRegressor().fit(X, T if comm.rank else T[:, None], comm=comm), "disagree on what y is"),
    (lambda comm: SmSVMRegressor().fit(X, np.column_stack([T] * (2 + comm.rank)), comm=comm), "disagree on what y is"),
    (lambda comm: SmSVMRegressor("quantile", quantile=[0.1, 0.9]).fit(X, np.column_stack([T, T]), comm=comm),
     "Several quantiles are for one target"),
    (lambda comm: SmSVMRegressor().fit(X, np.where(comm.rank, np.nan, T), comm=comm), r"NaN.*\(on rank 1\)"),
    (lambda comm: SmSVMRegressor().fit(X, np.full(900, np.inf), comm=comm), "infinity"),
    (lambda comm: SmSVMRegressor().fit(X, T * 1e306, comm=comm), "scale the targets"),
    (lambda comm: SmSVMRegressor().fit(X, np.repeat(["a", "b", "c"], 300), comm=comm), "must hold numbers"),
    (lambda comm: SmSVMRegressor().fit(X, T, np.zeros(900), comm=comm), "leave every sample with weight 0"),
    (lambda comm: SmSVMRegressor(linear_solver="dual").fit(X, T, comm=comm), "needs all rows in one place"),
], ids=["shapes", "columns", "quantiles", "nan", "infinite", "large", "texts", "weights", "dual"])
def test_what_is_wrong_is_said_everywhere(work, text):
    found, _ = on_ranks(2, work)
    for error in found:
        assert isinstance(error, ValueError)
        with pytest.raises(ValueError, match=text):
            raise error


def test_a_few_quantiles_of_a_place_are_told_with_what_they_stand_for():
    y = np.random.default_rng(3).standard_normal(5000)
    what, told = told_of(y, None)
    assert what == "numbers" and told.points.shape == (1, TOLD + 2)
    assert told.points[0, 0] == y.min() and told.points[0, -1] == y.max()
    assert told.weights.sum() == pytest.approx(5000)
    assert np.median(told.points) == pytest.approx(np.median(y), abs=0.05)


def test_partitions_on_workers_reach_the_objective_of_one_machine():
    da, distributed = pytest.importorskip("dask.array"), pytest.importorskip("distributed")
    cuts = (400, 0, 300, 200)
    rows, targets = da.from_array(X, chunks=(cuts, 5)), np.column_stack([T, -T])
    local = distributed.LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None)
    with local as cluster, distributed.Client(cluster):
        for parameters in SETTINGS[:6]:
            model = SmSVMRegressor(**parameters, tol=1e-6).fit(rows, da.from_array(T, chunks=(cuts,)), WEIGHTS)
            check([model], SmSVMRegressor(**parameters, tol=1e-6).fit(X, T, WEIGHTS))
        check([SmSVMRegressor().fit(rows, da.from_array(targets, chunks=(cuts, 2)))], SmSVMRegressor().fit(X, targets))
        many = RNG.standard_normal((40_000, 5))                    # of which a tenth comes here
        t = many[:, 0] + RNG.standard_t(3, 40_000)
        model = SmSVMRegressor().fit(da.from_array(many, chunks=(9000, 5)), da.from_array(t, chunks=9000))
        check([model], SmSVMRegressor().fit(many, t))
        assert model.n_passes_ < 8
