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
