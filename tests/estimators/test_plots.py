"""Every display drawn, and what the artists hold compared with the numbers they should show."""

import numpy as np
import pytest
from conftest import blobs

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("agg")

from matplotlib import pyplot as plt  # noqa: E402
from matplotlib.colors import to_hex  # noqa: E402
from sklearn.exceptions import NotFittedError  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402
from sklearn.model_selection import GridSearchCV  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402
from sklearn.svm import SVC  # noqa: E402

from cmargin import MarginPursuitClassifier, SLNDClassifier, SmSVMClassifierCV, margins, slnd_path, smsvm_path  # noqa: E402
from cmargin.plots import (  # noqa: E402
    OKABE_ITO,
    ConvergenceDisplay,
    EntropyAccuracyDisplay,
    MarginDistributionDisplay,
    MarginErrorDisplay,
    PathDisplay,
    PsiTransformDisplay,
    SearchDisplay,
    SpectrumDisplay,
)


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def many():
    X, y = blobs(n=500, k=4, spread=1.5)
    return SLNDClassifier(loss="logistic", random_state=5, n_jobs=1, max_passes=6).fit(X, y), X, y


@pytest.fixture(scope="module")
def two():
    X, y = blobs(n=400, k=2, spread=2.0)
    y = np.array(["no", "yes"])[y]
    return SLNDClassifier(loss="logistic", random_state=5, n_jobs=1, max_passes=3).fit(X, y), X, y


def labelled_with_units(display):
    display.figure_.canvas.draw()
    assert display.ax_.get_xlabel() and display.ax_.get_ylabel() and display.ax_.figure is display.figure_
    return True


def test_margin_histogram_is_a_density_over_all_margins(two):
    model, X, y = two
    display = MarginDistributionDisplay.from_estimator(model, X, y)
    expected = np.where(y == "yes", 1, -1) * model.scores(X)
    np.testing.assert_allclose(display.margins, expected)
    x, density = display.line_.get_data()
    np.testing.assert_allclose(np.trapezoid(density, x), 1.0, rtol=1e-9)
    assert x[0] == expected.min() and x[-1] == expected.max()
    assert display.location_line_.get_xdata()[0] == pytest.approx(margins.location_estimate(expected))
    assert labelled_with_units(display) and display.ax_.get_legend().get_texts()[0].get_text() == "SLNDClassifier"


def test_cumulative_margins_cross_zero_at_the_training_error(many):
    model, X, y = many
    display = MarginDistributionDisplay.from_estimator(model, X, y, kind="cumulative", name="all")
    x, share = display.line_.get_data()
    assert np.all(np.diff(x) >= 0) and share[0] == 0 and share[-1] == 1
    expected = margins.margin(model.scores(X), y, loss=None)
    assert share[np.searchsorted(x, 0, side="right") - 1] == pytest.approx(np.mean(expected <= 0))
    with pytest.raises(ValueError, match="kind must be one of 'histogram', 'cumulative', got 'violin'"):
        display.plot(kind="violin")


def test_margin_error_curve_is_the_function(many):
    model, X, y = many
    display = MarginErrorDisplay.from_estimator(model, X, y)
    theta, error = display.line_.get_data()
    mu = margins.margin(model.scores(X), y, loss="logistic")
    np.testing.assert_allclose(error, [np.mean(mu <= t) for t in theta])
    assert error[-1] == 1 and labelled_with_units(display)
    with pytest.raises(ValueError, match="has no calibrated loss"):
        MarginErrorDisplay.from_estimator(MarginPursuitClassifier().fit(X, y), X, y)


@pytest.mark.parametrize("k", [2, 3, 6])
def test_margins_of_the_multinomial_loss_are_its_own_posteriors(k):
    X, y = blobs(n=400, k=k, spread=1.5)
    labels = np.array(list("fedcba"))[y]
    model = SLNDClassifier(loss="multinomial", random_state=5, max_passes=3).fit(X, labels)
    theta, error = MarginErrorDisplay.from_estimator(model, X, labels).line_.get_data()
    f = model.posterior(X) if k > 2 else np.column_stack([1 - model.posterior(X), model.posterior(X)])
    mu = np.where(model.predict(X) == labels, f.max(axis=1), 1 - f.max(axis=1))
    np.testing.assert_allclose(error, [np.mean(mu <= t) for t in theta], atol=2.5 / len(y))
    assert 0.01 < error[200] < 1 and error[-1] == 1


def test_entropy_against_accuracy_has_one_point_a_class(many, two):
    model, X, y = many
    display = EntropyAccuracyDisplay.from_estimator(model, X, y)
    points = np.asarray(display.points_.get_offsets())
    f = model.posterior(X)
    np.testing.assert_allclose(points[:, 0], margins.binary_entropy(f))
    np.testing.assert_allclose(points[:, 1], [np.mean(f[y == c].argmax(axis=1) == c) for c in range(4)])
    assert labelled_with_units(display)
    model, X, y = two
    f = model.posterior(X)
    points = np.asarray(EntropyAccuracyDisplay.from_estimator(model, X, y).points_.get_offsets())
    assert points[:, 1] == pytest.approx([np.mean(f[y == "no"] <= 0.5), np.mean(f[y == "yes"] > 0.5)])


@pytest.mark.parametrize("display, attribute", [
    (SpectrumDisplay, "eigenvalues_"), (PsiTransformDisplay, "scale_"), (ConvergenceDisplay, "history_")])
@pytest.mark.parametrize("outer", [lambda model: model, make_pipeline])
def test_a_fitted_estimator_without_what_is_drawn_is_not_called_unfitted(display, attribute, outer):
    X, y = blobs(n=90, k=3)
    others = LogisticRegression() if attribute == "history_" else SLNDClassifier(l2=0.1), SVC()
    for model in map(outer, others):
        with pytest.raises(NotFittedError):
            display.from_estimator(model)
        with pytest.raises(ValueError, match=f"has no {attribute} here; an estimator is needed that has, such as"):
            display.from_estimator(model.fit(X, y))


def test_a_class_without_samples_is_left_out():
    display = EntropyAccuracyDisplay.from_predictions([0, 1], [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1]])
    assert np.array_equal(display.accuracy, [1, 1, np.nan], equal_nan=True)
    display.figure_.canvas.draw()


@pytest.mark.parametrize("display", [EntropyAccuracyDisplay, MarginDistributionDisplay, MarginErrorDisplay])
def test_labels_come_first_and_the_other_order_is_refused(display):
    # It was drawn in silence: posteriors above 0 were taken for positive labels, labels for posteriors of 0 and 1.
    y, f = np.array([0, 1, 1, 0, 1]), np.array([0.2, 0.9, 0.6, 0.4, 0.3])
    assert display.from_predictions(y, f).ax_ is not None
    with pytest.raises(ValueError, match="y_true comes first"):
        display.from_predictions(f, y)
    several = np.column_stack([1 - f, f])
    with pytest.raises(ValueError, match="y_true comes first"):
        display.from_predictions(several, y)
    with pytest.raises(ValueError, match="y_true comes first"):
        display.from_predictions(np.rint(several), y)


def test_what_is_no_posterior_and_no_index_is_refused():
    for y, f, words in (([0, 1], [0.5, 1.5], "between 0 and 1"), ([0, 1], [-1, 1], "y_true comes first"),
                        ([0, 1, 1], [0.5, 0.5], "3 labels for 2 rows"), ([0, 2], [[0.5, 0.5]] * 2, r"indices 0 \.\. 1"),
                        ([-1, 1], [[0.5, 0.5]] * 2, "indices"), (["a", "b"], [0.5, 0.5], "one number per sample"),
                        ([0, 1], [np.nan, 0.5], "between 0 and 1")):
        with pytest.raises(ValueError, match=words):
            EntropyAccuracyDisplay.from_predictions(y, f)


@pytest.mark.parametrize("wrap", [
    lambda model: make_pipeline(StandardScaler(), model), lambda model: make_pipeline(make_pipeline(model)),
    lambda model: GridSearchCV(make_pipeline(StandardScaler(), model), {"slndclassifier__rank": [2]}, cv=2),
], ids=["pipeline", "nested pipeline", "search"])
def test_displays_of_a_pipeline_are_those_of_its_classifier(wrap):
    # A fitted pipeline was said not to be fitted; and it has neither scores, posteriors nor history of its own.
    X, y = blobs(n=300, k=3)
    outer = wrap(SLNDClassifier(loss="logistic", random_state=5, rank=2, max_passes=2))
    for display in (MarginDistributionDisplay, ConvergenceDisplay):
        with pytest.raises(NotFittedError):
            display.from_estimator(outer, *([X, y] if display is MarginDistributionDisplay else []))
    outer.fit(X, y)
    inner = outer
    while not hasattr(inner, "scores"):
        inner = inner.best_estimator_ if hasattr(inner, "best_estimator_") else inner[-1]
    first = getattr(outer, "best_estimator_", outer)[0]
    rows = first.transform(X) if isinstance(first, StandardScaler) else X
    for display in (MarginDistributionDisplay, MarginErrorDisplay, EntropyAccuracyDisplay):
        found, expected = display.from_estimator(outer, X, y), display.from_estimator(inner, rows, y)
        for column in vars(expected):
            if isinstance(getattr(expected, column), np.ndarray):
                np.testing.assert_array_equal(getattr(found, column), getattr(expected, column))
        assert found.name == "SLNDClassifier"
    assert ConvergenceDisplay.from_estimator(outer).history is inner.history_
    assert np.array_equal(SpectrumDisplay.from_estimator(outer).eigenvalues, inner.eigenvalues_)


def test_psi_transform_of_a_pipeline():
    X, y = blobs(n=200, k=2)
    outer = make_pipeline(StandardScaler(), MarginPursuitClassifier(scale=2.0)).fit(X, y)
    assert PsiTransformDisplay.from_estimator(outer).levels == [(1.0, 2.0)]


def test_convergence_of_any_two_columns(many):
    model, _, _ = many
    display = ConvergenceDisplay.from_estimator(model, x="pass", y="objective")
    np.testing.assert_array_equal(display.line_.get_xdata(), model.history_["pass"])
    np.testing.assert_array_equal(display.line_.get_ydata(), model.history_["objective"])
    assert display.ax_.get_yscale() == "linear" and display.ax_.get_xlabel() == "passes over the data"
    steep = ConvergenceDisplay.from_history({"seconds": [0, 1, 2], "gap": [1, 1e-2, 1e-4]}, y="gap")
    assert steep.ax_.get_yscale() == "log" and steep.ax_.get_xlabel() == "time (s)"
    loose = ConvergenceDisplay.from_history({"seconds": [0, 1, 2], "gap": [3, 1, 2]}, y="gap", best=True)
    assert loose.line_.get_ydata().tolist() == [3, 1, 1]
    with pytest.raises(ValueError, match="history has no column 'loss'; it has pass, class, passes, seconds"):
        display.plot(y="loss")


def test_problems_trained_one_after_the_other_are_not_joined():
    history = {"class": [0, 0, 1, 1], "pass": [1, 2, 1, 2], "objective": [4.0, 3.0, 2.0, 1.0]}
    line = ConvergenceDisplay.from_history(history, x="pass").line_
    assert np.isnan(line.get_ydata()).tolist() == [False, False, True, False, False]
    one = ConvergenceDisplay.from_history(history, x="pass", problem=1).line_
    assert one.get_ydata().tolist() == [2, 1] and one.get_xdata().tolist() == [1, 2]
    with pytest.raises(ValueError, match=r"no problem 7; it has \[0, 1\]"):
        ConvergenceDisplay.from_history(history, problem=7, x="pass")


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("solver", ["newton", "gd", "sgd"])
def test_displays_of_margin_pursuit(two, solver):
    _, X, y = two
    model = MarginPursuitClassifier(solver=solver, l2=0.01, max_passes=5, tol=1e-2, scale=0.7, random_state=3).fit(X, y)
    trace = ConvergenceDisplay.from_estimator(model, x="pass", y="margin_location")
    np.testing.assert_array_equal(trace.line_.get_ydata(), model.history_["margin_location"])
    assert trace.ax_.get_ylabel() == "location estimate of the margins (score units)"
    assert len(MarginDistributionDisplay.from_estimator(model, X, y).margins) == len(y)
    assert PsiTransformDisplay.from_estimator(model).levels == [(1.0, 0.7)]


def test_spectrum_with_its_rank(many):
    model, _, _ = many
    display = SpectrumDisplay.from_estimator(model)
    np.testing.assert_array_equal(display.line_.get_ydata(), model.eigenvalues_)
    assert display.rank_line_.get_xdata()[0] == model.rank_ + 0.5 and display.ax_.get_yscale() == "log"
    assert SpectrumDisplay.from_eigenvalues([3.0, 1.0]).rank_line_ is None


@pytest.mark.parametrize("inverse", [False, True])
def test_psi_transform_curves(inverse):
    display = PsiTransformDisplay.from_levels([0.5, 1.0, 2.0], 1.5, inverse=inverse)
    assert len(display.lines_) == 3 and labelled_with_units(display)
    for line, level in zip(display.lines_, (0.5, 1.0, 2.0), strict=True):
        x, y = line.get_data()
        a, psi = (y, x) if inverse else (x, y)
        np.testing.assert_allclose(margins.psi_transform(a, level, 1.5), psi, atol=1e-12)
        assert (x[0], y[0]) == (0, 0) and np.all(np.diff(y) >= 0)


def test_displays_share_an_axes_in_different_colours_and_styles():
    rng = np.random.default_rng(3)
    ax = plt.subplots()[1]
    drawn = [MarginDistributionDisplay(margins=rng.normal(i, 1, 50), name=str(i)).plot(ax, kind="cumulative")
             for i in range(3)]
    assert [to_hex(d.line_.get_color()).upper() for d in drawn] == list(OKABE_ITO[:3])
    assert len({d.line_.get_linestyle() for d in drawn}) == 3 and all(d.ax_ is ax for d in drawn)
    assert len(ax.get_legend().get_texts()) == 3
    assert drawn[0].plot(ax, color="black", linestyle=":").line_.get_color() == "black"


def test_labels_unknown_to_the_estimator_are_named(many):
    model, X, y = many
    with pytest.raises(ValueError, match=r"not been trained on: \[9\]"):
        MarginDistributionDisplay.from_estimator(model, X, np.where(y == 0, 9, y))


def test_path_display_draws_what_the_path_has():
    X, y = blobs(n=200, d=5, k=2)
    path = smsvm_path(X, y, l2s=np.geomspace(1, 1e-3, 20), loss="logistic", tol=1e-2)
    display = PathDisplay.from_path(path)
    assert len(display.lines_) == 5 and display.fits_ is None and display.ax_.xaxis_inverted()
    assert {tuple(line.get_ydata()) for line in display.lines_} == {tuple(w) for w in path.coefs[:, 0].T}
    for y_axis, values in (("gap", path.gaps), ("objective", path.objectives), ("n_nonzero", path.n_nonzero)):
        display = PathDisplay.from_path(path, y=y_axis, name="a path")
        assert (display.lines_[0].get_ydata() == values[:, 0]).all()
        assert len(display.fits_.get_offsets()) == path.fitted_.sum() == path.n_fits
    with pytest.raises(ValueError, match="y must be one of"):
        PathDisplay.from_path(path, y="score")


def test_a_multinomial_path_has_one_gap_for_all_classes():
    # gaps and objectives were an IndexError
    path = slnd_path(*blobs(n=200, d=5, k=3), l2s=np.geomspace(1, 1e-3, 20), tol=1e-2)
    assert len(PathDisplay.from_path(path, problem=2).lines_) == 5
    for y_axis, values in (("gap", path.gaps), ("objective", path.objectives)):
        display = PathDisplay.from_path(path, y=y_axis)
        assert (display.lines_[0].get_ydata() == values).all()
        assert len(display.fits_.get_offsets()) == path.fitted_.sum() == path.n_fits
    with pytest.raises(ValueError, match="SLNDPath has no n_nonzero"):
        PathDisplay.from_path(path, y="n_nonzero")


def test_a_search_is_its_mean_score_with_a_standard_error_and_what_was_chosen(two):
    _, X, y = two
    search = SmSVMClassifierCV([1e-1, 1e-4, 1e-2], [0.0, 1e-2], cv=4, scoring="roc_auc")
    display = SearchDisplay.from_estimator(make_pipeline(StandardScaler(), search).fit(X, y), folds=True)
    assert labelled_with_units(display)
    k = [0.0, 1e-2].index(search.l1_)
    scores = search.scores_[:, [1, 2, 0], k]
    np.testing.assert_array_equal(display.line_.get_xdata(), [1e-4, 1e-2, 1e-1])
    np.testing.assert_allclose(display.line_.get_ydata(), scores.mean(axis=0))
    low = display.band_.get_paths()[0].vertices[:, 1].min()
    assert low == pytest.approx((scores.mean(axis=0) - scores.std(axis=0, ddof=1) / 2).min())
    assert len(display.fold_lines_) == 4 and display.chosen_line_.get_xdata()[0] == search.l2_
    assert display.ax_.get_xscale() == "log" and "roc_auc" in display.ax_.get_ylabel()
    along = SearchDisplay.from_estimator(search, parameter="l1")
    assert along.ax_.get_xscale() == "symlog" and list(along.line_.get_xdata()) == [0.0, 1e-2]
    with pytest.raises(ValueError, match="parameter must be 'l2' or 'l1' for this search, got 'C'"):
        SearchDisplay.from_estimator(search, parameter="C")
    with pytest.raises(ValueError, match="has no scores of a search"):
        SearchDisplay.from_estimator(search.best_estimator_)
    with pytest.raises(ValueError, match="a column for every penalty"):
        SearchDisplay.from_scores([1.0, 2.0], np.zeros((3, 3)))


def test_a_search_that_time_ended_is_drawn_as_far_as_it_got():
    scores = np.array([[np.nan, 0.8, 0.9], [np.nan, np.nan, 0.7]])
    display = SearchDisplay.from_scores([1e-3, 1e-2, 1e-1], scores, chosen=0.1, parameter="C")
    np.testing.assert_allclose(display.line_.get_ydata(), [np.nan, 0.8, 0.8])
    assert display.ax_.get_xlabel() == "C (1 / penalty)"
