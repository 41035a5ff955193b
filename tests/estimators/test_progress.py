"""verbose: a bool or a number, and one line of progress for every pass, fold and penalty."""

import broken_rows
import numpy as np
import pytest
from estimators import quick_estimators
from sklearn.base import clone

from cmargin import MarginPursuitClassifier, SmSVMClassifier, SmSVMClassifierCV
from cmargin._estimators.progress import say
from cmargin._estimators.validation import check_verbose

X, Y = broken_rows.sound_rows()
EVERY = pytest.mark.parametrize("estimator", quick_estimators(), ids=lambda e: type(e).__name__)


@EVERY
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_true_prints_a_line_a_pass_and_changes_nothing(estimator, capsys):
    # SLND, margin pursuit and Pegasos refused verbose=True; the search printed nothing.
    silent = clone(estimator).fit(X, Y)
    assert capsys.readouterr().out == ""
    loud = clone(estimator).set_params(verbose=True).fit(X, Y)
    lines = capsys.readouterr().out.splitlines()
    assert all(line.startswith(type(estimator).__name__ + " ") for line in lines)
    if hasattr(estimator, "cv"):
        assert len(lines) == 2 + 1                              # two folds, one penalty; the choice
    elif isinstance(estimator, SmSVMClassifier):
        assert len(lines) == len(loud.history_["passes"])       # evaluations, class after class
    else:
        assert len(lines) == loud.n_iter_ == len(np.unique(loud.history_.get("pass", [])))
    assert np.array_equal(silent.coef_, loud.coef_)
    clone(estimator).set_params(verbose=np.bool_(False)).fit(X, Y)
    assert capsys.readouterr().out == ""


@EVERY
@pytest.mark.parametrize("value", [-1, 1.5, "yes", None])
def test_other_values_are_refused(estimator, value):
    with pytest.raises(ValueError, match=r"The 'verbose' parameter of \w+ must be an int in the range \[0, inf\) or"):
        clone(estimator).set_params(verbose=value).fit(X, Y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_line_of_one_class_after_the_other_names_the_class(capsys):
    MarginPursuitClassifier(max_passes=2, verbose=1).fit(X, np.array(["a", "b", "c"])[np.arange(len(X)) % 3])
    lines = capsys.readouterr().out.splitlines()
    assert {line.split(":")[0][-1] for line in lines} == {"a", "b", "c"}


def test_a_line_of_the_search_names_fold_and_penalties(capsys):
    model = SmSVMClassifierCV(l2s=(1e-3, 1e-1), l1s=(0.0, 1e-2), cv=3, estimator=SmSVMClassifier(), verbose=2)
    model.fit(X, Y)
    lines = capsys.readouterr().out.splitlines()
    fits = [line.split(": ")[0] for line in lines[:-1]]
    assert len(set(fits)) == 3 * 4 and "SmSVMClassifierCV fold 3, l2=0.1, l1=0.01" in fits
    for line in lines[:-1]:
        fold, i, k = int(line.split()[2][:-1]) - 1, int("l2=0.1" in line), int("l1=0.01" in line)
        assert f"accuracy {model.scores_[fold, i, k]:.4f}, " in line
    assert f"chose l2={model.l2_:g}, l1={model.l1_:g}: accuracy" in lines[-1]


def test_say_is_silent_unless_asked(capsys):
    class Estimator:
        verbose = False

    say(Estimator(), "pass 1")
    check_verbose(Estimator())
    Estimator.verbose = 3
    say(Estimator(), "pass 2")
    assert capsys.readouterr().out == "Estimator pass 2\n"


@EVERY
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::sklearn.exceptions.ConvergenceWarning")
def test_no_line_names_a_type_of_numpy_or_a_number_that_is_none(estimator, capsys):
    # "class np.int64(0): ..." of SmSVM, "gradient norm nan" of steps of single rows
    labels = np.arange(len(Y)) % 3
    clone(estimator).set_params(verbose=2).fit(X, labels)
    if hasattr(estimator, "path") and not hasattr(estimator, "cv") and isinstance(estimator, SmSVMClassifier):
        clone(estimator).set_params(verbose=2).path(X, labels, l2s=[0.1, 0.01])
    said = capsys.readouterr().out
    assert said and "np." not in said and " nan" not in said


def test_refusals_do_not_name_types_of_numpy():
    from cmargin import SLNDClassifier
    from cmargin.margins import precision_at_k, top_k_accuracy

    labels = np.arange(len(Y)) % 3
    model = SLNDClassifier(random_state=0, max_passes=1).fit(X, labels)
    for call, words in ((lambda: model.predict_top_k(X, np.int64(9)), r"Got 9 instead"),
                        (lambda: SmSVMClassifier(tol=np.float64(-1)).fit(X, Y), r"Got -1.0 instead"),
                        (lambda: top_k_accuracy(np.eye(3), [0, 1, 2], np.int64(9)), "got 9$"),
                        (lambda: precision_at_k(np.eye(3), np.eye(3), np.int64(9)), "got 9$"),
                        (lambda: model.partial_fit(X, labels + 1), r"unseen labels: \[3\]")):
        with pytest.raises(ValueError, match=words):
            call()
