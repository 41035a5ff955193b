"""Fits over ranks that are threads here: equal to one machine's, the same everywhere, errors everywhere, counts.

The same under mpiexec: test_mpi.py.
"""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import blobs, named
from ranks_in_threads import on_ranks
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from cmargin import MarginPursuitClassifier, SLNDClassifier, SmSVMClassifier, baselines
from cmargin.data.shards.mpi import RankShard, RankSource
from cmargin.data.source import SINGLE_BLOCK
from cmargin.solvers.sgd.shard_shares import unevenness

X, Y = blobs(n=600, d=6, k=3)


def parts_of(n, size, how):
    if how == "even":
        return np.array_split(np.arange(n), size)
    cuts = {2: [0], 3: [n // 10, n // 10]}[size]                      # the last but one has no rows
    return np.split(np.arange(n), cuts)


def fitted(make, size, X, y, weight=None, how="even", order=None):
    """The model of every rank, and one machine's."""
    order = np.arange(len(y)) if order is None else order
    X, y, weight = X[order], y[order], None if weight is None else weight[order]
    parts = parts_of(len(y), size, how)

    def work(comm):
        mine = parts[comm.rank]
        return make().fit(X[mine], y[mine], None if weight is None else weight[mine], comm=comm)

    models, comms = on_ranks(size, work)
    raised = [one for one in models if isinstance(one, BaseException)]
    if raised:
        raise raised[0]
    return models, make().fit(X, y, weight), comms


def same_everywhere(models):
    return len({(one.coef_.tobytes(), one.intercept_.tobytes(), one.objective_.tobytes()) for one in models}) == 1


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("settings", [{}, {"loss": "logistic"}, {"loss": "squared_hinge", "C": 1.0}, {"l1": 1e-2},
                                      {"linear_solver": "cg"}, {"line_search": "quadratic", "l2": 1e-2, "tol": 1e-2},
                                      {"fit_intercept": False, "class_weight": "balanced"}], ids=named)
def test_the_weights_are_one_machines(size, settings, dtype):
    models, one, _ = fitted(lambda: SmSVMClassifier(**settings), size, X.astype(dtype), Y)
    assert same_everywhere(models) and (one.duality_gap_ <= one.tol).all() and (models[0].duality_gap_ <= one.tol).all()
    tolerance = 1e-2 if settings.get("linear_solver") == "cg" else 1e-5 if dtype == np.float32 else 1e-7
    np.testing.assert_allclose(models[0].coef_, one.coef_, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(models[-1].objective_, one.objective_, rtol=2 * one.tol)
    np.testing.assert_array_equal(models[-1].predict(X), one.predict(X)) if tolerance < 1e-2 else None


@pytest.mark.parametrize("how", ["even", "uneven"])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
@pytest.mark.parametrize("labels", ["by class", "strings", "two", "indicator"])
def test_ranks_that_miss_a_class_or_have_no_rows(how, sparse, labels):
    y, order = Y, np.argsort(Y, kind="stable") if labels == "by class" else None
    if labels == "strings":
        y = np.array(["ash", "birch", "elm"])[Y]
    elif labels == "two":
        y = np.where(Y == 0, -1.0, 1.0)
    elif labels == "indicator":
        y = np.stack([Y == 0, Y > 0, Y == 2], axis=1).astype(int)
    weight = np.random.default_rng(5).choice([0.0, 0.5, 3.0], len(Y))
    rows = sp.csr_matrix(np.where(np.abs(X) > 0.4, X, 0)) if sparse else X
    for size in (2, 3):
        models, one, _ = fitted(SmSVMClassifier, size, rows, y, weight, how, order)
        assert same_everywhere(models)
        np.testing.assert_array_equal(models[-1].classes_, one.classes_)
        np.testing.assert_allclose(models[-1].coef_, one.coef_, atol=1e-7)
        np.testing.assert_array_equal(models[-1].predict(rows), one.predict(rows))


@pytest.mark.parametrize("settings", [{"l2": 1e-3}, {"scale": "one-shot", "l2": 1e-2}, {"callback": lambda model: None},
                                      {"solver": "gd", "l2": 0.1, "fit_intercept": False}], ids=named)
@pytest.mark.parametrize("labels", ["three", "indicator"])
def test_margin_pursuit_and_its_trace(settings, labels):
    y = Y if labels == "three" else np.stack([Y == 0, Y > 0, Y == 2], axis=1).astype(int)
    weight = np.random.default_rng(5).choice([0.0, 0.5, 3.0], len(Y))
    for size, how in ((1, "even"), (2, "even"), (3, "uneven")):
        models, one, _ = fitted(lambda: MarginPursuitClassifier(**settings), size, X, y, weight, how)
        assert same_everywhere(models) and models[-1].n_passes_ == one.n_passes_
        np.testing.assert_allclose(models[-1].coef_, one.coef_, atol=1e-9)
        for name in ("objective", "margin_median", "margin_location", "margin_q05", "scale"):
            np.testing.assert_allclose(models[-1].history_[name], one.history_[name], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("settings, sparse, how, size", [
    ({}, False, "even", 2), ({}, True, "uneven", 3), ({}, False, "by class", 2), ({"average": False}, True, "even", 2),
    ({"step_size": 1.0, "rank": 3, "tail": "drop"}, True, "by class", 2), ({"hessian_refresh": 2}, False, "uneven", 3),
    ({"hessian_samples": 5000, "class_weight": "balanced"}, False, "even", 1)], ids=named)
def test_slnd_is_as_good_over_ranks(settings, sparse, how, size, digits):
    rows, test, y, y_test = digits
    rows, test = (sp.csr_matrix(part) if sparse else part.astype("f") for part in (rows, test))
    order = np.argsort(y, kind="stable") if how == "by class" else None
    weight = np.random.default_rng(5).choice([0.0, 1.0, 1.0, 2.0], len(y))

    def make():
        return SLNDClassifier(max_passes=5, random_state=3, **settings)

    models, one, comms = fitted(make, size, rows, y, weight, "even" if how == "by class" else how, order)
    assert len({(model.coef_.tobytes(), model.intercept_.tobytes(), model.n_passes_) for model in models}) == 1
    assert models[-1].score(test, y_test) > one.score(test, y_test) - 0.02
    np.testing.assert_allclose(models[-1].class_prior_, one.class_prior_)
    np.testing.assert_allclose(models[-1].predict_proba(test).sum(axis=1), 1, rtol=1e-5)
    again, _, _ = fitted(make, size, rows, y, weight, "even" if how == "by class" else how, order)
    assert again[0].coef_.tobytes() == models[0].coef_.tobytes()
    assert [name for name, _ in comms[0].calls].count("Reduce") >= 10          # averages


def test_slnd_goes_on_over_ranks_and_ends_with_rank_0(digits):
    rows, test, y, y_test = digits
    seen = []

    def work(comm):
        model = SLNDClassifier(step_size=1.0, max_passes=2, random_state=1, warm_start=True)
        model.fit(rows[comm.rank::2], y[comm.rank::2], comm=comm)
        first = model.coef_.copy()
        model.set_params(callback=lambda model: seen.append(comm.rank) or True)
        model.fit(rows[comm.rank::2], y[comm.rank::2], comm=comm)
        return model, np.abs(model.coef_ - first).max()

    (models, moved) = zip(*on_ranks(2, work)[0], strict=True)
    assert models[0].coef_.tobytes() == models[1].coef_.tobytes() and seen == [0] and models[1].n_iter_ == 1
    assert moved[0] > 0 and models[1].score(test, y_test) > 0.9
    two = on_ranks(2, lambda comm: SLNDClassifier(loss="multinomial", random_state=0).fit(
        rows[comm.rank::2], y[comm.rank::2] > 4, comm=comm))[0]
    assert two[1].coef_.shape == (1, 64) and two[1].score(test, y_test > 4) > 0.85


@pytest.fixture(scope="module")
def many():
    """Enough rows to begin with a tenth of them, a few far longer than the others."""
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((24_000, 5)).astype("f")
    rows[:, 4] = np.where(rng.random(len(rows)) < 0.01, 10.0, 0.0)
    return rows, np.where(rows @ [1, -1, 0.5, 0, 0.2] + rng.standard_normal(len(rows)) > 0, "a", "b")


def test_the_same_rows_are_chosen_however_they_are_split(many):
    for size, how in ((1, "even"), (2, "even"), (3, "uneven")):
        models, one, _ = fitted(lambda: SmSVMClassifier(l2=1e-5, random_state=4), size, *many, how=how)
        assert same_everywhere(models) and models[0].n_passes_ == pytest.approx(one.n_passes_)
        np.testing.assert_allclose(models[0].coef_, one.coef_, rtol=1e-4, atol=1e-6)
        assert one.n_passes_ < one.n_iter_                              # there was a subset


# ---------------------------------------------------------------- counts

@pytest.mark.parametrize("settings, asked", [({"l1": 1e-2}, ()), ({"l2": 1e-5}, ("objective",)),
                                             ({"linear_solver": "cg"}, ("hessp",))], ids=named)
def test_messages_and_bytes_are_those_of_the_model(settings, asked, many, monkeypatch):
    rows = many if "objective" in asked else (X, Y)
    calls, real, p = [], RankSource.ask, rows[0].shape[1] + 1

    def ask(self, kind, key, parts, n_columns):
        before = self.ranks.messages, self.ranks.bytes
        received = real(self, kind, key, parts, n_columns)
        calls.append((kind, parts, self.ranks.messages - before[0], self.ranks.bytes - before[1]))
        return received

    monkeypatch.setattr(RankSource, "ask", ask)
    _, _, comms = fitted(lambda: SmSVMClassifier(**settings), 2, *rows)
    request = 8 * (8 + p) + 1
    assert {kind for kind, *_ in calls} >= {"evaluate", "line", *asked}
    for kind, parts, messages, n_bytes in calls:
        active = parts.get("active")
        block = p if active is None else len(active)
        triangle = block * (block + 1) // 2 if parts.get("with_hessian") in (True, SINGLE_BLOCK) else 0
        sums = {"evaluate": 16 + 3 * p + triangle, "line": 3}.get(kind, p + 1)
        assert (messages, n_bytes) == (2, request + 8 * (2 + sums))
    assert [name for name, _ in comms[0].calls].count("Reduce") == len(calls)


# ---------------------------------------------------------------- what is wrong is said everywhere

def refused(size, work):
    """The error of every rank."""
    found, _ = on_ranks(size, work)
    assert all(isinstance(one, Exception) for one in found), found
    assert len({str(one) for one in found}) == 1 and len({type(one) for one in found}) == 1
    return found[0]


def on_rank_1(change):
    """A fit of which rank 1 has ``change(X, y, parameters, weight)`` instead."""
    def work(comm):
        mine = np.array_split(np.arange(len(Y)), comm.Get_size())[comm.rank]
        given = X[mine], Y[mine], {}, None
        rows, y, parameters, weight = change(*given) if comm.rank == 1 else given
        return SmSVMClassifier(**parameters).fit(rows, y, weight, comm=comm)

    return work


def put(rows, value):
    rows = rows.copy()
    rows[3, 2] = value
    return rows


@pytest.mark.parametrize("change, text", [
    (lambda X, y, p, w: (X[:, :5], y, p, w), "disagree on the number of columns of X: 6 on rank 0, 5 on rank 1"),
    (lambda X, y, p, w: (X.astype("f"), y, p, w), "disagree on the dtype of X: 'float64' on rank 0, 'float32' on rank"),
    (lambda X, y, p, w: (sp.csr_matrix(X), y, p, w), "disagree on how X is stored: 'dense' on rank 0, 'CSR' on rank 1"),
    (lambda X, y, p, w: (X, y, {"l2": 1e-3}, w), "disagree on the parameter l2: None on rank 0, 0.001 on rank 1"),
    (lambda X, y, p, w: (X, y, {"l2": -1.0}, w), r"'l2' parameter .* Got -1.0 instead. \(on rank 1\)"),
    (lambda X, y, p, w: (put(X, np.nan), y, p, w), r"Input X contains NaN[\s\S]*\(on rank 1\)"),
    (lambda X, y, p, w: (X, y.astype(str), p, w), "disagree on what y is: 'numbers' on rank 0, 'strings' on rank 1"),
    (lambda X, y, p, w: (X, y + 0.5, p, w), r"Unknown label type: continuous.*\(on rank 1\)"),
    (lambda X, y, p, w: (X, y[1:], p, w), r"inconsistent numbers of samples.*\(on rank 1\)"),
    (lambda X, y, p, w: (X, y, p, np.ones(len(y))), "disagree on sample_weight: 'none' on rank 0, 'one' on rank 1"),
    (lambda X, y, p, w: (X, y, p, -np.ones(len(y))), r"Negative values in data.*\(on rank 1\)"),
    (lambda X, y, p, w: (X[0], y, p, w), r"Expected 2D array[\s\S]*\(on rank 1\)"),
    (lambda X, y, p, w: (X, np.stack([y > 0, y < 1], 1), p, w), "disagree on what y is: 'numbers' .* 'an indicator'"),
], ids=["columns", "dtype", "layout", "parameters", "parameter", "nan", "strings", "targets", "length", "one weight",
        "weights", "1D", "indicator"])
@pytest.mark.parametrize("size", [2, 3])
def test_an_error_on_one_rank_is_one_sentence_on_all(change, text, size):
    error = refused(size, on_rank_1(change))
    assert isinstance(error, ValueError)
    with pytest.raises(ValueError, match=text):
        raise error


@pytest.mark.parametrize("work, text", [
    (lambda comm: SmSVMClassifier().fit(X, np.zeros(len(X)), comm=comm), "contains only one class: .*0.0.?$"),
    (lambda comm: SmSVMClassifier().fit(X, Y, np.zeros(len(X)), comm=comm), "leave every sample with weight 0.$"),
    (lambda comm: SmSVMClassifier().fit(X[:0], Y[:0], comm=comm), "0 sample.* in all ranks"),
    (lambda comm: SmSVMClassifier(linear_solver="dual").fit(X, Y, comm=comm), "needs all rows in one place"),
    (lambda comm: SmSVMClassifier(linear_solver="woodbury").fit(X, Y, comm=comm), "needs all rows in one place"),
    (lambda comm: SmSVMClassifier(linear_solver="cg", l1=1.0).fit(X, Y, comm=comm), "needs l1=0"),
    (lambda comm: SmSVMClassifier(tol=-1).fit(X, Y, comm=comm), "'tol' parameter .* Got -1 instead.$"),
    (lambda comm: MarginPursuitClassifier(solver="sgd").fit(X, Y, comm=comm), "solver='sgd' takes one row at a time"),
    (lambda comm: SLNDClassifier(l1=1.0).fit(X, Y, comm=comm), "l1 > 0 does not go with comm= yet"),
    (lambda comm: SLNDClassifier(rank=7).fit(X, Y, comm=comm), "n_features=6.. Got 7 instead.$"),
    (lambda comm: SLNDClassifier().fit(X, Y, (Y == 1).astype(float), comm=comm), "of only one class"),
    (lambda comm: SLNDClassifier().fit(np.where(np.arange(6) == 2, 1e200, X), Y, comm=comm), "holds NaN or infinity"),
    (lambda comm: baselines.BalancedSGDClassifier().fit(X, Y, comm=comm), "BalancedSGD.* does not take comm= yet.$"),
    (lambda comm: baselines.ODMClassifier().fit(X, Y, comm=comm), "ODMClassifier does not take comm= yet.$"),
], ids=["one class", "no weight", "no rows", "dual", "woodbury", "cg", "tol", "sgd",
        "l2", "rank", "one class of weight", "second moment", "balanced", "estimator"])
def test_what_is_wrong_everywhere_is_said_once(work, text):
    with pytest.raises(ValueError, match=text):
        raise refused(2, work)


def test_a_communicator_without_the_methods():
    with pytest.raises(TypeError, match="object has no Get_rank"):
        SmSVMClassifier().fit(X, Y, comm=object())


@pytest.mark.parametrize("rank", [0, 1, 2])
@pytest.mark.parametrize("where", ["evaluate", "line", "sides"])
def test_an_error_while_rows_are_read(rank, where, monkeypatch):
    # "sides" is asked when a pass is opened, by a call; the others are answered in sums
    real = RankShard.__init__

    def broken(self, ranks, *others):
        real(self, ranks, *others)
        if ranks.rank == rank:
            opened = self.open_pass

            class Broken:
                def __init__(self, rows):
                    vars(self).update(rows=rows)

                def __getattr__(self, name):
                    if name == where:
                        raise MemoryError("no room here")
                    return getattr(self.rows, name)

            def open_pass(key, *arguments):
                opened(key, *arguments)
                self.passes[key] = Broken(self.passes[key])
                return self.about(key)

            self.open_pass = open_pass

    monkeypatch.setattr(RankShard, "__init__", broken)
    error = refused(3, lambda comm: SmSVMClassifier().fit(X[comm.rank::3], Y[comm.rank::3], comm=comm))
    assert isinstance(error, MemoryError) and str(error) == f"no room here (on rank {rank})"


# ---------------------------------------------------------------- rank 0 decides

def test_a_callback_is_asked_on_rank_0_and_stops_all(capsys):
    asked = []

    def work(comm):
        def callback(model):
            asked.append(comm.rank)
            return len(asked) == 5

        model = SmSVMClassifier(tol=1e-9, callback=callback, verbose=comm.rank == 0)
        return model.fit(X[comm.rank::2], Y[comm.rank::2], comm=comm)

    models, _ = on_ranks(2, work)
    assert same_everywhere(models) and asked == [0] * 5
    assert models[1].score(X, Y) > 0.7 and len(models[1].history_["passes"]) == 5
    assert capsys.readouterr().out.count("SmSVMClassifier class") == 5


def test_the_time_of_rank_0_ends_all():
    def work(comm):
        model = SmSVMClassifier(max_time=1e-9 if comm.rank == 0 else None)
        with warnings.catch_warnings(record=True) as received:
            warnings.simplefilter("always")
            model.fit(X[comm.rank::2], Y[comm.rank::2], comm=comm)
        return model, [str(one.message) for one in received if one.category is ConvergenceWarning]

    models, received = zip(*on_ranks(2, work)[0], strict=True)
    assert same_everywhere(models) and models[1].n_iter_ == 0 and models[1].score(X, Y) > 0.7
    assert len(received[0]) + len(received[1]) == 1                             # filters are of all threads


def test_an_error_in_a_callback_is_raised_everywhere_and_leaves_what_was_stored():
    models = [None, None]

    def callback(model):
        raise ZeroDivisionError("mine")

    def work(comm):
        models[comm.rank] = SmSVMClassifier(callback=callback)
        return models[comm.rank].fit(X[comm.rank::2], Y[comm.rank::2], comm=comm)

    errors, _ = on_ranks(2, work)
    assert [str(one) for one in errors] == ["mine"] * 2 and isinstance(errors[1], ZeroDivisionError)
    assert same_everywhere(models)


def test_a_warm_start_goes_on_from_rank_0():
    def work(comm):
        model = SmSVMClassifier(warm_start=True).fit(X[comm.rank::2], Y[comm.rank::2], comm=comm)
        first = model.n_passes_
        return model.fit(X[comm.rank::2], Y[comm.rank::2], comm=comm), first

    (models, first) = zip(*on_ranks(2, work)[0], strict=True)
    assert same_everywhere(models) and models[0].n_passes_ < first[0]


def test_how_unevenly_classes_lie():
    many = 10**12                                                    # so that chance moves nothing
    for counts, wanted in (([[5, 10], [10, 20], [0, 0]], 0), ([[10, 0], [0, 10]], 1), ([[7, 3], [3, 7]], 0.4),
                           ([[10, 30, 5], [0, 30, 5]], (10 / 2 + 60 / 4 + 10 / 14) / 80)):
        counts = many * np.array(counts)
        others = counts.sum(axis=1, keepdims=True) - counts
        assert unevenness(counts, others) == pytest.approx(wanted, abs=1e-5)
    assert unevenness(np.array([[3], [0]]), np.array([[0], [0]])) == 0
    few = np.random.default_rng(1).multinomial(20, [0.25] * 4, size=200).T
    assert abs(unevenness(few, np.full(few.shape, 1000))) < 0.02


@pytest.mark.parametrize("chosen", [{}, {"loss": "logistic"}])
def test_a_new_inverse_on_the_way_one_against_rest(chosen):
    # loss="auto" of two classes went by: ranks kept the old inverse, and the accuracy fell to chance
    X, y = blobs(n=200, d=5, k=2)
    model = SLNDClassifier(hessian_refresh=2, random_state=1, **chosen)
    found, _ = on_ranks(2, lambda comm: clone(model).fit(X[comm.rank::2], y[comm.rank::2], comm=comm))
    assert found[0].score(X, y) > clone(model).fit(X, y).score(X, y) - 0.02
