"""SmSVMClassifier(multi_class="crammer_singer"): optimum, certificate, what it takes and what it refuses."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import LinearConstraint, minimize
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from cmargin import SmSVMClassifier, SmSVMClassifierCV, smsvm_path
from cmargin._estimators.joint_fit import refuse_rows
from tests.twins import naive_joint


def problem(seed, n=30, m=3, k=4, spread=1.0):
    rng = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(k), rng.integers(0, k, n - k)])
    X = rng.standard_normal((n, m)) + spread * rng.standard_normal((k, m))[labels]
    return X, labels


def joint(**parameters):
    return SmSVMClassifier(multi_class="crammer_singer", **parameters)


def value_of(model, X, y, l2, weight=None):
    weight = np.ones(len(y)) if weight is None else weight * len(y) / weight.sum()
    return naive_joint.objective(model.coef_, model.intercept_, X, np.searchsorted(model.classes_, y), weight, l2,
                                 model.penalize_intercept)


def least_value(X, labels, weight, l2, k, intercept):
    """By sequential quadratic programming over W, b and what every row lacks."""
    n, m = X.shape
    size, rows = k * m + k * intercept, []
    for i in range(n):
        for c in range(k):
            row = np.zeros(size + n)
            row[size + i] = 1.0
            for sign, of in ((1.0, labels[i]), (-1.0, c)):
                row[of * m:of * m + m] += sign * X[i]
                if intercept:
                    row[k * m + of] += sign
            rows.append(row)
    least = np.array([float(c != labels[i]) for i in range(n) for c in range(k)])
    start = np.concatenate([np.zeros(size), np.ones(n)])
    penalty = np.concatenate([np.full(k * m, l2), np.zeros(size - k * m + n)])
    linear = np.concatenate([np.zeros(size), weight / n])
    found = minimize(lambda v: penalty @ v**2 / 2 + linear @ v, start, jac=lambda v: penalty * v + linear,
                     constraints=LinearConstraint(np.array(rows), least, np.inf), method="SLSQP",
                     options=dict(maxiter=500, ftol=1e-13))
    W = found.x[:k * m].reshape(k, m)
    b = found.x[k * m:size] if intercept else np.zeros(k)
    return naive_joint.objective(W, b, X, labels, weight, l2)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("seed", range(15))
def test_certificate_against_quadratic_programming(seed, intercept):
    rng = np.random.default_rng(100 + seed)
    n, m, k, l2 = rng.integers(8, 22), rng.integers(1, 4), rng.integers(3, 5), 10.0 ** rng.uniform(-3, 0)
    X, y = problem(seed, n, m, k)
    weight = rng.choice([0.5, 1.0, 3.0], n) if seed % 2 else np.ones(n)
    model = joint(l2=l2, fit_intercept=intercept, tol=1e-5, max_passes=3000).fit(X, y, weight)
    objective, gap = model.objective_[0], model.duality_gap_[0]
    assert gap <= 1e-5
    assert value_of(model, X, y, l2, weight) == pytest.approx(objective, rel=1e-12)
    least = least_value(X, y, weight * n / weight.sum(), l2, k, intercept)
    assert objective * (1 - gap) <= least * (1 + 1e-10)
    assert objective <= least * (1 + 1.1e-5)


@pytest.mark.parametrize("seed", range(60))
def test_certificate_against_liblinear(seed):
    rng = np.random.default_rng(seed)
    n, m, k, C = rng.integers(10, 80), rng.integers(1, 12), rng.integers(3, 9), 10.0 ** rng.uniform(-3, 1)
    X, y = problem(seed, n, m, k, spread=rng.uniform(0, 2))
    intercept = bool(seed % 3)
    peer = LinearSVC(C=C, multi_class="crammer_singer", fit_intercept=intercept, tol=1e-8, max_iter=100_000)
    peer.fit(X, y)
    tol = 1e-3 if seed % 2 else 1e-6
    model = joint(C=C, fit_intercept=intercept, penalize_intercept=intercept, tol=tol).fit(X, y)
    theirs = naive_joint.objective(peer.coef_, np.broadcast_to(peer.intercept_, k), X, y, np.ones(n), 1 / (C * n), True)
    objective, gap = model.objective_[0], model.duality_gap_[0]
    assert gap <= tol
    assert objective * (1 - gap) <= theirs * (1 + 1e-12)
    assert objective <= theirs * (1 + tol)


def test_the_twin_reaches_the_same_optimum():
    X, y = problem(3)
    l2 = 0.05
    C = np.full(len(y), 1 / (l2 * len(y)))
    bound = naive_joint.dual_value(naive_joint.sweeps(X, y, C, 4, 3000), X, y, C, l2)
    model = joint(l2=l2, fit_intercept=False, tol=1e-8).fit(X, y)
    assert model.objective_[0] == pytest.approx(bound, rel=1e-7)


@pytest.mark.parametrize("penalised", [True, False])
def test_two_classes_are_the_binary_hinge_of_half_the_penalty(penalised):
    X, y = problem(5, k=2)
    joined = joint(l2=0.1, penalize_intercept=penalised, tol=1e-7).fit(X, y)
    binary = SmSVMClassifier(l2=0.05, penalize_intercept=penalised, tol=1e-7).fit(X, y)
    assert joined.coef_.shape == (1, 3) and joined.intercept_.shape == (1,)
    np.testing.assert_array_equal(joined.coef_, binary.coef_)
    W = np.concatenate([-joined.coef_, joined.coef_]) / 2
    b = np.concatenate([-joined.intercept_, joined.intercept_]) / 2
    assert naive_joint.objective(W, b, X, y, np.ones(30), 0.1, penalised) == pytest.approx(joined.objective_[0])
    peer = LinearSVC(C=1 / (0.1 * 30), multi_class="crammer_singer", tol=1e-8, max_iter=100_000).fit(X, y)
    if penalised:
        np.testing.assert_allclose(joined.coef_, peer.coef_, atol=1e-3)


@pytest.mark.parametrize("k", [3, 5, 13, 33, 200])
@pytest.mark.parametrize("stored", ["C", "F", "float32", "csr", "csr 64", "csr float32", "zeros", "read-only"])
def test_every_way_to_store_rows(stored, k):
    X, y = problem(k, n=max(60, 2 * k), m=12, k=k)
    if stored in ("csr", "csr 64", "csr float32", "zeros"):
        X[np.random.default_rng(0).random(X.shape) < 0.7] = 0.0
    X = X.astype(np.float32).astype(float)
    given = np.asfortranarray(X) if stored == "F" else X.astype(np.float32) if stored == "float32" else X.copy()
    if stored.startswith("csr"):
        given = sp.csr_matrix(X.astype(np.float32) if "float32" in stored else X)
        if stored == "csr 64":
            given.indices, given.indptr = given.indices.astype(np.int64), given.indptr.astype(np.int64)
    if stored == "read-only":
        given.flags.writeable = False
    model = joint(l2=0.02, tol=1e-5, max_passes=2000).fit(given, y)
    assert model.coef_.shape == (k, 12) and model.intercept_.shape == (k,)
    assert model.duality_gap_[0] <= 1e-5
    assert value_of(model, X, y, 0.02) == pytest.approx(model.objective_[0], rel=1e-10)
    plain = joint(l2=0.02, tol=1e-5).fit(sp.csr_matrix(X), y)
    assert plain.objective_[0] == pytest.approx(model.objective_[0], rel=1e-5)
    np.testing.assert_array_equal(model.predict(given), model.classes_[model.decision_function(given).argmax(axis=1)])


def test_one_column_and_rows_of_zeros():
    X, y = problem(8, m=1)
    X[:5] = 0.0
    model = joint(C=1.0).fit(X, y)
    assert model.duality_gap_[0] <= 1e-4
    nothing = joint(C=1.0).fit(np.zeros_like(X), y)
    assert nothing.duality_gap_[0] <= 1e-4 and not nothing.coef_.any()


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("unit", [1e-150, 1e-30, 1e-8, 1.0, 1e100, 1e145])
def test_short_rows_beside_others_and_beside_the_penalty(unit, intercept):
    X, y = problem(12, n=60)
    X[5], X[6] = 0.0, 1e-10 * X[6]
    y[:40] = 1                                               # a class of most rows: intercepts of their own
    for times in (0.01, 1.0, 100.0):
        of_unit = joint(l2=times, fit_intercept=intercept, tol=1e-5).fit(X, y)
        model = joint(l2=times * unit**2, fit_intercept=intercept, tol=1e-5).fit(X * unit, y)
        assert model.duality_gap_[0] <= 1e-5
        assert model.objective_[0] == pytest.approx(of_unit.objective_[0], rel=2e-5)
        assert joint(l2=times, fit_intercept=intercept).fit(X * min(unit, 1.0), y).duality_gap_[0] <= 1e-4


def test_a_bound_whose_classes_balance_but_for_rounding():
    X, y = problem(15, n=20, m=6)                            # r has one sign in all classes
    weight = np.random.default_rng(15).exponential(size=20)**3
    assert joint(l2=1e198, class_weight="balanced", tol=1e-2).fit(X * 1e100, y, weight).duality_gap_[0] <= 1e-2


def test_columns_far_from_0():
    X, y = problem(9, n=200)
    model = joint(C=1.0, max_passes=20_000).fit(X + 30.0, y)
    near = joint(C=1.0).fit(X, y)
    assert model.objective_[0] == pytest.approx(near.objective_[0], rel=2e-4)


def test_weights_are_rows_said_again():
    X, y = problem(10)
    times = np.random.default_rng(0).integers(0, 4, len(y))
    times[:4] = 1
    again = joint(C=0.3, tol=1e-6).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    weighted = joint(C=0.3, tol=1e-6).fit(X, y, times.astype(float))
    assert weighted.objective_[0] == pytest.approx(again.objective_[0], rel=2e-6)
    by_class = joint(C=0.3, tol=1e-6, class_weight={0: 2.0}).fit(X, y)
    by_row = joint(C=0.3, tol=1e-6).fit(X, y, np.where(y == 0, 2.0, 1.0))
    np.testing.assert_array_equal(by_class.coef_, by_row.coef_)
    assert joint(class_weight="balanced").fit(X, y).duality_gap_[0] <= 1e-4


def test_the_same_bits_for_any_number_of_threads_and_again():
    X, y = load_digits(return_X_y=True)
    one, two, again = (joint(C=0.01, n_jobs=n_jobs, random_state=3).fit(X, y) for n_jobs in (1, 2, 1))
    np.testing.assert_array_equal(one.coef_, two.coef_)
    np.testing.assert_array_equal(one.coef_, again.coef_)
    other = joint(C=0.01, random_state=4).fit(X, y)
    assert other.objective_[0] == pytest.approx(one.objective_[0], rel=2e-4)


def test_labels_are_texts():
    X, y = problem(11)
    names = np.array(["d", "b", "a", "c"])
    model, of_numbers = joint(C=1.0).fit(X, names[y]), joint(C=1.0).fit(X, y)
    assert model.classes_.tolist() == ["a", "b", "c", "d"]
    assert (model.predict(X) == names[of_numbers.predict(X)]).mean() > 0.9


# ---------------------------------------------------------------- how a fit ends

def test_history_callback_and_limits():
    X, y = load_digits(return_X_y=True)
    X = X / 16
    seen = []
    model = joint(C=1.0, callback=lambda fit: seen.append((fit.objective_[0], fit.duality_gap_[0]))).fit(X, y)
    assert len(seen) == len(model.history_["gap"]) - 1 > 2           # the last one has ended the fit
    assert (model.history_["class"] == -1).all() and np.all(np.diff(model.history_["objective"]) <= 0)
    assert model.n_iter_ > 0 and model.n_passes_ == model.history_["passes"][-1]
    stopped = joint(C=1.0, callback=lambda fit: True).fit(X, y)
    assert len(stopped.history_["gap"]) == 1 and stopped.coef_.any()
    with pytest.warns(ConvergenceWarning, match="max_passes=3 with a relative duality gap"):
        short = joint(C=1.0, max_passes=3).fit(X, y)
    assert short.duality_gap_[0] > 1e-4 and short.coef_.any()
    assert value_of(short, X, y, 1 / len(y)) == pytest.approx(short.objective_[0])
    with pytest.warns(ConvergenceWarning, match="max_time"):
        late = joint(C=1e6, max_time=0.02).fit(X, y)
    assert late.coef_.shape == (10, 64) and np.isfinite(late.objective_[0])


def test_an_interrupt_leaves_the_best_point():
    X, y = load_digits(return_X_y=True)

    def interrupt(fit):
        raise KeyboardInterrupt

    model = joint(C=1.0, callback=interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert model.coef_.any() and model.duality_gap_[0] < 1
    assert value_of(model, X, y, 1 / len(y)) == pytest.approx(model.objective_[0])


def test_a_printed_line_an_evaluation(capsys):
    X, y = problem(12)
    model = joint(C=1.0, verbose=1).fit(X, y)
    assert capsys.readouterr().out.count("gap") == len(model.history_["gap"])


# ---------------------------------------------------------------- what is refused

@pytest.mark.parametrize("parameters, what", [
    (dict(multi_class="multinomial"), "multi_class"), (dict(loss="squared_hinge"), "loss='hinge'"),
    (dict(l1=0.1), "l1=0"), (dict(linear_solver="cg"), "linear_solver='auto' or 'dual'"),
    (dict(line_search="quadratic"), "line_search='exact'"),
    (dict(class_weight_on="positives"), "class_weight_on='rows'"),
    (dict(checkpoint="x.npz"), "checkpoint=None"), (dict(warm_start=True), "warm_start=False"),
    (dict(lower=0.0), "lower=None"), (dict(groups=[0, 0, 1]), "groups=None"), (dict(l2=np.ones(3)), "one l2"),
    (dict(l2=0.0), "l2 above 0"), (dict(C=np.inf), "l2 above 0"),
])
def test_parameters_that_it_has_no_use_for(parameters, what):
    X, y = problem(13)
    with pytest.raises(ValueError, match=what):
        clone(joint()).set_params(**parameters).fit(X, y)


class Elsewhere:
    """Rows that stay in files or on a device."""

    in_memory = False

    def refuse(self, what):
        raise ValueError(f"{what} needs the rows in memory")


def test_rows_and_labels_that_it_does_not_take():
    X, y = problem(14)
    indicator = (y[:, None] == np.arange(4)).astype(int)
    with pytest.raises(ValueError, match="exclude each other"):
        joint().fit(X, indicator)
    with pytest.raises(ValueError, match="exclude each other"):
        joint().fit(X, indicator, np.ones(indicator.shape))
    with pytest.raises(ValueError, match="no offset"):
        joint().fit(X, y, offset=np.zeros(len(y)))
    with pytest.raises(ValueError, match="none of"):
        joint().fit(X, y, (y > 0).astype(float))
    with pytest.raises(ValueError, match=r"crammer_singer.*rows in memory"):
        refuse_rows(Elsewhere())
    with pytest.raises(ValueError, match="so large"):
        joint().fit(X * 1e200, y)


def test_what_goes_by_binary_problems_refuses_it():
    X, y = problem(15)
    model = joint(C=1.0).fit(X, y)
    with pytest.raises(ValueError, match="multi_class='ovr'"):
        model.path(X, y)
    with pytest.raises(ValueError, match="multi_class='ovr'"):
        model.leave_one_out(X, y)
    with pytest.raises(ValueError, match="GridSearchCV"):
        SmSVMClassifierCV(estimator=joint()).fit(X, y)
    assert smsvm_path(X, y) is not None


def test_exports_predict_the_same(tmp_path):
    import cmargin

    X, y = problem(16)
    model = joint(C=1.0).fit(X, y)
    np.testing.assert_array_equal(model.to_sklearn().predict(X), model.predict(X))
    model.save(tmp_path / "model")
    again = cmargin.load(tmp_path / "model")
    assert again.multi_class == "crammer_singer"
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
