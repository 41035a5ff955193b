"""What must not matter does not: order of rows and columns, a row twice or its weight doubled, which label is positive,
the unit of a column where that is promised, threads, and the process.
"""

import hashlib

import numpy as np
import pytest
import scipy.sparse as sp
from estimators import quick_estimators, quietly
from sklearn.base import clone
from started import python

from cmargin import MarginPursuitClassifier, SLNDClassifier, SmSVMClassifier, nested_cross_validation
from cmargin.baselines import (
    AdamClassifier,
    CatoniHingeClassifier,
    CGDescentClassifier,
    NesterovClassifier,
    ODMClassifier,
)

# those that go to the one optimum there is
CONVEX = [
    SmSVMClassifier(tol=1e-9, l2=1e-2), SmSVMClassifier(tol=1e-9, l2=1e-2, l1=1e-2),
    SmSVMClassifier(loss="squared_hinge", tol=1e-10, l2=1e-2), SmSVMClassifier(loss="logistic", tol=1e-10, l2=1e-2),
    SmSVMClassifier(loss="logistic", linear_solver="cg", newton_tol=1e-3, tol=1e-10, l2=1e-2),
    MarginPursuitClassifier(l2=1e-2, scale=1.0, tol=1e-12),
    SLNDClassifier(loss="multinomial", l2=1e-2, tol=1e-10),
    CGDescentClassifier(loss="logistic", l2=1e-2, tol=1e-9, max_passes=1000),
    ODMClassifier(tol=1e-9, max_passes=2000), NesterovClassifier(l2=0.1, tol=1e-9, max_passes=3000),
    MarginPursuitClassifier(solver="gd", l2=0.2, tol=1e-10, max_passes=1000),
    AdamClassifier(batch_size=None, l2=0.1, step_size=0.02, max_passes=3000),
]
FAR = 1e-4                     # of the largest weight: the optimum of a hinge is flat, at tol=1e-9 within 3e-5


def data(seed, n=90, p=7, n_classes=3):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % n_classes)
    return rng.standard_normal((n_classes, p))[y] + rng.standard_normal((n, p)), y


def begins_anywhere(model):
    """Whether its first weights are random, column by column; a search has no weights of its own."""
    name = type(model).__name__
    return name in ("PegasosClassifier", "SmSVMClassifierCV") or getattr(model, "solver", None) == "sgd"


def weights_of(model, X, y, sample_weight=None):
    fitted = quietly(clone(model), X, y, **({} if sample_weight is None else {"sample_weight": sample_weight}))
    return np.column_stack([fitted.coef_, fitted.intercept_])


def assert_equal(one, other, far=FAR):
    np.testing.assert_allclose(one, other, rtol=0, atol=far * np.abs(other).max())


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("model", CONVEX, ids=str)
def test_the_order_of_rows(model, container):
    X, y = data(3)
    order = np.random.default_rng(0).permutation(len(y))
    assert_equal(weights_of(model, container(X[order]), y[order]), weights_of(model, container(X), y))


@pytest.mark.parametrize("model", [*CONVEX, *(model for model in quick_estimators() if not begins_anywhere(model))],
                         ids=str)
def test_the_order_of_columns(model):
    # the same rows are drawn; sums over columns have other roundings, which a few steps keep small
    X, y = data(5)
    order = np.random.default_rng(0).permutation(X.shape[1])
    W = weights_of(model, X, y)
    assert_equal(weights_of(model, X[:, order], y), np.column_stack([W[:, :-1][:, order], W[:, -1]]))


@pytest.mark.parametrize("model", CONVEX, ids=str)
def test_a_row_twice_is_a_row_of_weight_2(model):
    X, y = data(7)
    twice = np.random.default_rng(0).random(len(y)) < 0.3
    assert_equal(weights_of(model, np.vstack([X, X[twice]]), np.concatenate([y, y[twice]])),
                 weights_of(model, X, y, 1.0 + twice))


@pytest.mark.parametrize("model", [SmSVMClassifier(tol=1e-9, l2=1e-2, class_weight="balanced"),
                                   SLNDClassifier(loss="multinomial", l2=1e-2, tol=1e-10, class_weight="balanced")],
                         ids=str)
def test_a_row_twice_is_a_row_of_weight_2_where_classes_are_balanced(model):
    X, y = data(7)
    twice = (y == 1) & (np.random.default_rng(0).random(len(y)) < 0.7)
    expected = weights_of(model, np.vstack([X, X[twice]]), np.concatenate([y, y[twice]]))
    assert_equal(weights_of(model, X, y, 1.0 + twice), expected)
    assert_equal(weights_of(model, X, y, (1.0 + twice) * 1e-300), expected)


@pytest.mark.parametrize("model", [*CONVEX, CatoniHingeClassifier(tol=1e-8, max_passes=500)], ids=str)
def test_which_label_is_positive(model):
    X, y = data(9, n_classes=2)
    assert_equal(weights_of(model, X, 1 - y), -weights_of(model, X, y))


@pytest.mark.parametrize("model", CONVEX, ids=str)
def test_names_of_classes(model):
    """Only their order counts; the bits are the same."""
    X, y = data(11)
    np.testing.assert_array_equal(weights_of(model, X, np.array(["a", "b", "c"])[y]), weights_of(model, X, y))


def kinds_of_strings():
    """Bytes, and StringDType where NumPy has it."""
    return ["S1", *([np.dtypes.StringDType()] if hasattr(np.dtypes, "StringDType") else [])]


@pytest.mark.parametrize("kind", kinds_of_strings(), ids=str)
@pytest.mark.parametrize("model", quick_estimators(), ids=str)
def test_labels_of_every_kind_of_string(model, kind):
    """scikit-learn refuses both, in splits and in accuracies too."""
    X, y = data(11)
    names = np.array(["a", "b", "c"])
    bits = weights_of(model, X, names[y])
    np.testing.assert_array_equal(weights_of(model, X, names[y].astype(kind)), bits)
    received = [quietly(clone(model), X, labels).score(X, labels, np.arange(len(y)) + 1.0)
                for labels in (names[y], names[y].astype(kind))]
    assert received[0] == pytest.approx(received[1], abs=1e-12) and received[0] > 1 / 3


@pytest.mark.parametrize("kind", kinds_of_strings(), ids=str)
def test_all_classes_and_nested_folds_of_every_kind_of_string(kind):
    X, y = data(11)
    names = np.array(["a", "b", "c"])
    model = SLNDClassifier(random_state=0).partial_fit(X, names[y].astype(kind), classes=names.astype(kind))
    assert model.score(X, names[y].astype(kind)) > 0.5
    scores = [nested_cross_validation(X, labels, [1e-2, 1.0], outer=3, inner=2).test_scores
              for labels in (names[y], names[y].astype(kind))]
    np.testing.assert_array_equal(*scores)


@pytest.mark.skipif(not hasattr(np.dtypes, "StringDType"), reason="no StringDType")
def test_a_missing_string_is_no_class():
    X, y = data(11)
    labels = np.array(["a", np.nan, "c"], np.dtypes.StringDType(na_object=np.nan))[y]
    with pytest.raises(ValueError, match="contains NaN"):
        SmSVMClassifier().fit(X, labels)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
@pytest.mark.parametrize("l1", [0.0, 1e-2])
def test_the_unit_of_the_columns(loss, l1):
    """X times a and the weights by a: l2 / a² ‖w‖², l1 / a ‖w‖₁ make one objective of both."""
    X, y = data(13, n_classes=2)
    a = 2.0**9
    W = weights_of(SmSVMClassifier(loss=loss, l2=1e-2, l1=l1, tol=1e-9), X, y)
    scaled = weights_of(SmSVMClassifier(loss=loss, l2=1e-2 * a**2, l1=l1 * a, tol=1e-9), a * X, y)
    assert_equal(np.column_stack([a * scaled[:, :-1], scaled[:, -1]]), W)


FITS = """
import hashlib, warnings
warnings.simplefilter("ignore")
from test_invariances import data
from estimators import quick_estimators, quietly
X, y = data(17, 300, 20, 4)
for model in quick_estimators():
    model.fit(X, y)
    print(type(model).__name__, hashlib.sha256(model.coef_.tobytes() + model.intercept_.tobytes()).hexdigest())
"""


def test_every_process_comes_to_the_same_bits():
    """With one thread, with two, and with three; whatever the hash of a string is."""
    answers = set()
    for n_threads, seed in ((1, 0), (2, 1), (3, 12345)):
        answers.add(python("-c", FITS, limit=300, OMP_NUM_THREADS=str(n_threads), PYTHONHASHSEED=str(seed)))
    answer = answers.pop()
    assert not answers and len(answer.splitlines()) == len(quick_estimators())
    assert hashlib.sha256().hexdigest() not in answer
