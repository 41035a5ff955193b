import numpy as np
import pytest
from naive import posterior
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, top_k_accuracy_score

from cmargin import margins as cm

LOSSES = ["logistic", "calibrated_hinge", "squared"]


def draw(n=211, n_classes=6, seed=17):
    rng = np.random.default_rng(seed)
    return 2 * rng.standard_normal((n, n_classes)), rng.integers(n_classes, size=n)


def batches(array, *cuts):
    """The array as a stream of row batches, one of them empty."""
    return iter(np.split(array, [*cuts, cuts[-1]]))


def one_hot(y, n_classes):
    return np.eye(n_classes, dtype=int)[y]


# ---------------------------------------------------------------- margin

@pytest.mark.parametrize("loss", LOSSES)
def test_margin_is_the_posterior_of_the_signed_best_score(loss):
    scores, y = draw()
    expected = []
    for row, label in zip(scores, y, strict=True):
        best = max(range(len(row)), key=lambda c: row[c])
        expected.append(posterior(loss, (1 if best == label else -1) * row[best]))
    got = cm.margin(scores, y, loss=loss)
    np.testing.assert_allclose(got, expected, atol=1e-15)
    assert got.dtype == np.float64 and got.min() >= 0 and got.max() <= 1


def test_margin_hand_values():
    scores = [[1.0, 2.0], [3.0, -1.0], [-4.0, -5.0], [0.0, 0.0]]
    y = [1, 1, 0, 0]                    # right, wrong, right though no class is claimed, a tie that goes to class 0
    np.testing.assert_allclose(cm.margin(scores, y, loss=None), [2, -3, -4, 0])
    np.testing.assert_allclose(cm.margin(scores, y, loss="calibrated_hinge"), [3 / 4, 1 / 5, 1 / 6, 1 / 2])
    np.testing.assert_allclose(cm.margin(scores, y), 1 / (1 + np.exp([-2.0, 3.0, 4.0, 0.0])), atol=1e-15)
    np.testing.assert_allclose(cm.margin([0.5, -0.5, 3.0], [1, 1, -1], loss="squared"), [0.75, 0.25, 0])


def test_all_label_codings_agree():
    scores, y = draw()
    np.testing.assert_array_equal(cm.margin(scores, one_hot(y, 6)), cm.margin(scores, y))
    binary, signs = scores[:, 0], np.where(y > 2, 1, -1)
    for same in (signs, signs.astype(float), signs > 0, (signs + 1) // 2):
        np.testing.assert_array_equal(cm.margin(binary, same), cm.margin(binary, signs))
    # two columns h and -h say what the one score h says
    np.testing.assert_array_equal(cm.margin(np.c_[-binary, binary], signs > 0), cm.margin(binary, signs))


def test_multilabel_margin_asks_whether_the_best_class_is_a_label():
    scores = np.array([[1.0, 3.0, 2.0], [1.0, 3.0, 2.0]])
    np.testing.assert_array_equal(cm.margin(scores, [[1, 1, 0], [1, 0, 1]], loss=None), [3, -3])


@pytest.mark.parametrize("layout", ["C", "F", "read-only", "memory-mapped", "strided"])
def test_layout_and_dtype_do_not_matter(layout, tmp_path):
    scores, y = draw()
    scores = scores.astype(np.float32)
    expected = cm.margin(scores.astype(float), y)
    if layout == "F":
        scores = np.asfortranarray(scores)
    elif layout == "read-only":
        scores.flags.writeable = y.flags.writeable = False
    elif layout == "memory-mapped":
        np.save(tmp_path / "scores.npy", scores)
        scores = np.load(tmp_path / "scores.npy", mmap_mode="r")
    elif layout == "strided":
        scores = np.repeat(scores, 2, axis=1)[:, ::2]
    np.testing.assert_array_equal(cm.margin(scores, y), expected)
    assert cm.top_k_accuracy(scores, y, 2) == top_k_accuracy_score(y, scores, k=2)


# ---------------------------------------------------------------- margin error

def test_margin_error_counts_the_margins_at_or_below():
    mu = [0.1, 0.5, 0.5, 0.9]
    assert cm.margin_error(mu, 0.5) == 0.75 and isinstance(cm.margin_error(mu, 0.5), float)
    np.testing.assert_array_equal(cm.margin_error(mu, [[1.0, 0.0], [0.5, 0.49]]), [[1, 0], [0.75, 0.25]])


def test_margin_error_curve_is_the_naive_one():
    mu = np.random.default_rng(3).random(500).round(2)      # thresholds hit margins exactly
    theta = np.linspace(0, 1, 101)[::-1].round(2)
    np.testing.assert_array_equal(cm.margin_error(mu, theta), [(mu <= t).mean() for t in theta])


@pytest.mark.parametrize("theta", [-0.1, 1.1, np.nan, [0.5, 2.0], []])
def test_margin_error_refuses_a_threshold_that_is_no_posterior(theta):
    with pytest.raises(ValueError, match="between 0 and 1"):
        cm.margin_error([0.5], theta)


# ---------------------------------------------------------------- binary entropy

def test_binary_entropy_per_class():
    f = np.array([[0.0, 0.5, 0.25], [1.0, 0.5, 0.75]])
    quarter = -(0.25 * np.log(0.25) + 0.75 * np.log(0.75))
    np.testing.assert_allclose(cm.binary_entropy(f), [0, np.log(2), quarter], rtol=1e-15)
    assert cm.binary_entropy(f[:, 1]) == pytest.approx(np.log(2)) and isinstance(cm.binary_entropy(f[:, 1]), float)


def test_binary_entropy_is_the_log_loss_of_a_sample_that_obeys_it():
    # labels drawn from the posteriors: the mean log loss tends to the entropy
    rng = np.random.default_rng(23)
    f = rng.random(200_000)
    assert cm.binary_entropy(f) == pytest.approx(log_loss(rng.random(len(f)) < f, f), abs=5e-3)


# ---------------------------------------------------------------- top-k accuracy

@pytest.mark.parametrize("levels", [None, 3, 1])
@pytest.mark.parametrize("k", range(1, 6))
def test_top_k_accuracy_is_scikit_learns_also_with_ties(levels, k):
    scores, y = draw()
    if levels is not None:
        scores = np.random.default_rng(5).integers(levels, size=scores.shape).astype(float)
    assert cm.top_k_accuracy(scores, y, k) == top_k_accuracy_score(y, scores, k=k)


def test_top_k_accuracy_of_two_classes_and_of_all():
    scores, y = draw(n_classes=2)
    h = scores[:, 1] - scores[:, 0]
    assert cm.top_k_accuracy(h, y, 1) == top_k_accuracy_score(y, h, k=1) == np.mean((h > 0) == y)
    assert cm.top_k_accuracy(h, 2 * y - 1, 1) == cm.top_k_accuracy(scores, y, 1)
    assert cm.top_k_accuracy(h, y, 2) == cm.top_k_accuracy(scores, y, 2) == 1


def test_top_k_accuracy_of_several_labels():
    scores = np.array([[3.0, 2.0, 1.0], [3.0, 2.0, 1.0], [3.0, 2.0, 1.0], [1.0, 1.0, 0.0]])
    labels = np.array([[0, 1, 1], [0, 0, 1], [0, 0, 0], [1, 1, 0]])     # best label second, third, none, first by tie
    assert [cm.top_k_accuracy(scores, labels, k) for k in (1, 2, 3)] == [0.25, 0.5, 0.75]
    scores, y = draw()
    for k in (1, 2, 4):
        assert cm.top_k_accuracy(scores, one_hot(y, 6), k) == cm.top_k_accuracy(scores, y, k)


@pytest.mark.parametrize("k", [0, 7, -1, 2.5, "2"])
def test_top_k_accuracy_refuses_a_k_out_of_range(k):
    with pytest.raises(ValueError, match="whole number from 1 to 6"):
        cm.top_k_accuracy(*draw(), k)


# ---------------------------------------------------------------- weak separability

def test_weak_separability_hand_values():
    assert cm.weak_separability([1.0, 0.5], [3.0, -1.0]) == pytest.approx(2.5 / 4)
    np.testing.assert_allclose(cm.weak_separability([1.0, 0.5], [[3.0, -1.0], [-1.0, 0.0]]), [0.625, -1])
    np.testing.assert_allclose(cm.weak_separability([[1.0, 0], [0, 1.0]], [[3.0, -1.0], [1.0, 1.0]]), [0.75, 0.5])


def test_weak_separability_has_no_value_where_s_vanishes():
    with pytest.raises(ValueError, match="zero throughout"):
        cm.weak_separability(np.ones(3), np.zeros(3))
    with pytest.raises(ValueError, match="agree in shape"):
        cm.weak_separability(np.ones(3), np.ones(4))
    with pytest.raises(ValueError, match="agree in shape"):
        cm.weak_separability(np.ones((2, 3)), np.ones((3, 3)))
    with pytest.raises(ValueError, match="not be empty"):
        cm.weak_separability([], [])
    with pytest.raises(ValueError, match="p contains NaN"):
        cm.weak_separability([np.nan], [1.0])


# ---------------------------------------------------------------- calibration error

def naive_calibration_error(promise, truth, n_bins):
    total = 0.0
    for b in range(n_bins):
        here = (promise * n_bins >= b) & ((promise * n_bins < b + 1) | (b == n_bins - 1))
        if here.any():
            total += here.mean() * abs(truth[here].mean() - promise[here].mean())
    return total


@pytest.mark.parametrize("n_bins", [1, 4, 15])
def test_calibration_error_is_the_naive_one(n_bins):
    rng = np.random.default_rng(31)
    f, y = rng.random((400, 3)), rng.integers(3, size=400)
    f[:5] = [[0, 1, 0.25], [1, 0, 0.5], [0.25, 0.25, 0.25], [0, 0, 0], [1, 1, 1]]       # on the edges of bins
    one = cm.expected_calibration_error(f[:, 0], y == 0, n_bins=n_bins)
    assert one == pytest.approx(naive_calibration_error(f[:, 0], y == 0, n_bins), abs=1e-14)
    top = cm.expected_calibration_error(f, y, n_bins=n_bins)
    assert top == pytest.approx(naive_calibration_error(f.max(axis=1), f.argmax(axis=1) == y, n_bins), abs=1e-14)
    each = cm.expected_calibration_error(f, one_hot(y, 3), n_bins=n_bins)
    expected = [naive_calibration_error(f[:, c], y == c, n_bins) for c in range(3)]
    np.testing.assert_allclose(each, expected, atol=1e-14)


def test_calibration_error_extremes():
    assert cm.expected_calibration_error([0.0, 1.0], [0, 1]) == 0
    assert cm.expected_calibration_error([0.0, 1.0], [1, 0]) == 1
    rng = np.random.default_rng(37)
    f = rng.random(200_000)
    assert cm.expected_calibration_error(f, rng.random(len(f)) < f) < 5e-3
    with pytest.raises(ValueError, match="n_bins"):
        cm.expected_calibration_error([0.5], [1], n_bins=0)


# ---------------------------------------------------------------- streams and bad input

def test_streams_of_row_batches_give_what_the_array_gives():
    scores, y = draw(n=900)
    f = 1 / (1 + np.exp(-scores))
    mu = cm.margin(scores, y)
    np.testing.assert_array_equal(cm.margin(batches(scores, 1, 500), y), mu)
    theta = np.linspace(0, 1, 11)
    np.testing.assert_array_equal(cm.margin_error(batches(mu, 7, 8), theta), cm.margin_error(mu, theta))
    assert cm.top_k_accuracy(batches(scores, 333), y, 3) == cm.top_k_accuracy(scores, y, 3)
    np.testing.assert_allclose(cm.binary_entropy(batches(f, 10, 20)), cm.binary_entropy(f), rtol=1e-13)
    for labels in (y, one_hot(y, 6)):
        whole = cm.expected_calibration_error(f, labels)
        np.testing.assert_allclose(cm.expected_calibration_error(batches(f, 450), labels), whole, rtol=1e-12)


def test_blocks_of_a_large_array_change_nothing(monkeypatch):
    scores, y = draw(n=900)
    f = 1 / (1 + np.exp(-scores))
    whole = [cm.margin(scores, y), cm.top_k_accuracy(scores, y, 2), cm.binary_entropy(f),
             cm.expected_calibration_error(f, y)]
    monkeypatch.setattr("cmargin.margins._batches.BLOCK_ENTRIES", 64)
    small = [cm.margin(scores, y), cm.top_k_accuracy(scores, y, 2), cm.binary_entropy(f),
             cm.expected_calibration_error(f, y)]
    for a, b in zip(whole, small, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


TWO_ARGUMENT = [cm.margin, lambda s, y: cm.top_k_accuracy(s, y, 1), cm.expected_calibration_error]


@pytest.mark.parametrize("function", TWO_ARGUMENT)
@pytest.mark.parametrize("scores, y, message", [
    (np.zeros((0, 3)), [], "is empty"),
    (iter([]), [], "is empty"),
    (np.zeros((3, 0)), [0, 0, 0], "no columns"),
    ([[0.5, np.nan]], [0], "contains NaN or infinity"),
    ([[0.5, np.inf]], [0], "contains NaN or infinity"),
    (np.full((4, 2), 0.5), [0, 1, 0], "more rows than y has labels, 3"),
    (np.full((2, 2), 0.5), [0, 1, 0], "has 2 rows but y has 3 labels"),
    (np.full((2, 2), 0.5), [0, 2], "class indices from 0 to 1, found 0 to 2"),
    (np.full((2, 2), 0.5), [-1, 1], "class indices from 0 to 1, found -1 to 1"),
    (np.full((2, 2), 0.5), [0.5, 1], "whole numbers"),
    (np.full((2, 2), 0.5), [np.nan, 1], "whole numbers"),
    (np.full((2, 2), 0.5), ["a", "b"], "class indices"),
    (np.full((2, 2), 0.5), np.zeros((2, 3)), "2 columns, one per class"),
    (np.full((2, 2), 0.5), np.full((2, 2), 3), "nothing but 0 and 1"),
    ([0.5, 0.5], [0, 2], "-1/\\+1 or 0/1"),
    ([0.5, 0.5], [[0], [1]], "1-D labels"),
    (np.zeros((2, 2, 2)), [0, 1], "1 or 2 dimensions"),
    (0.5, [1], "1 or 2 dimensions"),
    (np.array([["a", "b"]]), [0], "real numbers"),
    (np.array([[1j, 0]]), [0], "real numbers"),
])
def test_bad_input_is_refused_in_one_sentence(function, scores, y, message):
    with pytest.raises(ValueError, match=message) as refusal:
        function(scores, y)
    assert "\n" not in str(refusal.value)


def test_a_stream_that_changes_shape_is_refused():
    with pytest.raises(ValueError, match="disagree"):
        cm.margin(iter([np.zeros((2, 3)), np.zeros((2, 4))]), np.zeros(4, int))


@pytest.mark.parametrize("f", [[-0.01], [1.01], [[0.5, 2.0]]])
def test_posteriors_outside_the_unit_interval_are_refused(f):
    with pytest.raises(ValueError, match="posteriors must lie between 0 and 1"):
        cm.binary_entropy(f)
    with pytest.raises(ValueError, match="posteriors must lie between 0 and 1"):
        cm.expected_calibration_error(f, [1])


@pytest.mark.parametrize("loss", ["hinge", "margin_pursuit", "log", 3])
def test_a_loss_without_posterior_has_no_margin(loss):
    with pytest.raises(ValueError, match="logistic, calibrated_hinge, squared or None"):
        cm.margin([1.0], [1], loss=loss)


def test_on_digits_the_figures_hang_together():
    X, y = load_digits(return_X_y=True)
    X = X / 16
    classifier = LogisticRegression(max_iter=200).fit(X[::2], y[::2])
    scores, labels = classifier.decision_function(X[1::2]), y[1::2]
    accuracy = classifier.score(X[1::2], labels)
    assert 0.9 < accuracy < 1
    assert cm.top_k_accuracy(scores, labels, 1) == pytest.approx(accuracy, abs=1e-15)
    # these scores sum to 0 in each row, so that the best is positive and a margin below 1/2 is an error
    error = cm.margin_error(cm.margin(scores, labels), [0.0, 0.5, 1.0])
    np.testing.assert_allclose(error, [0, 1 - accuracy, 1], atol=1e-15)
    summary = cm.margin_summary(cm.margin(scores, labels, loss=None))
    assert summary["share_nonpositive"] == pytest.approx(1 - accuracy, abs=1e-15)
    assert summary["skewness"] < 0 and summary["mean"] < summary["location"] < summary["median"]
    proba = classifier.predict_proba(X[1::2])
    assert cm.expected_calibration_error(proba, labels) < 0.1 < cm.expected_calibration_error(proba**4, labels)
    assert cm.binary_entropy(proba).shape == (10,) and np.all(cm.binary_entropy(proba) < np.log(2) / 2)


def test_every_public_name_is_there():
    assert sorted(cm.__all__) == cm.__all__ and all(callable(getattr(cm, name)) for name in cm.__all__)
