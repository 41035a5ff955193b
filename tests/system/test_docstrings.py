"""Docstrings of public classes: every parameter with its default, every attribute of a fit, an example that runs."""

import ast
import doctest
import inspect
import warnings

import numpy as np
import pytest
from conftest import blobs

import cmargin
from cmargin import SmSVMClassifier, baselines
from cmargin._estimators.docs import described_by, entries

ESTIMATORS = list(dict.fromkeys(getattr(module, name) for module in (cmargin, baselines) for name in module.__all__
                                if name.endswith(("Classifier", "ClassifierCV"))))
each = pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: estimator.__name__)
classes = pytest.mark.parametrize("kind", [*ESTIMATORS, cmargin.Checkpoint], ids=lambda kind: kind.__name__)
X, Y = blobs(n=120, d=5, k=3)


@classes
def test_every_parameter_has_a_type_and_its_default(kind):
    described, parameters = entries(kind.__doc__, "Parameters"), inspect.signature(kind).parameters
    assert set(described) == set(parameters)
    for name, (head, *_) in described.items():
        if parameters[name].default is not inspect.Parameter.empty:
            what, default = head.split(" : ", 1)[1].rsplit(", default=", 1)
            assert what and ast.literal_eval(default) == parameters[name].default, head


@classes
@pytest.mark.parametrize("section", ["Parameters", "Attributes"])
def test_every_entry_says_what_it_is(kind, section):
    # fit_intercept, random_state, coef_ and others had a type and no more
    assert {name for name, (_, *text) in entries(kind.__doc__, section).items() if not "".join(text).strip()} == set()


@each
def test_every_attribute_of_a_fit_is_described_and_there(estimator):
    described = entries(estimator.__doc__, "Attributes")
    assert all(" : " in head for head, *_ in described.values())
    few = {"max_passes": 3, "random_state": 0, "l2s": (1e-2,)}
    few = {name: value for name, value in few.items() if name in inspect.signature(estimator).parameters}
    left = set()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for more in ({}, {"l2": 0.1}):              # some are of the penalised optimum alone
            if more.keys() <= inspect.signature(estimator).parameters.keys():
                model = estimator(**few, **more)
                model.fit(X, Y)
                model.feature_names_in_ = np.array(list("abcde"))
                left |= {name for name in vars(model) if name.endswith("_") and not name.startswith("_")}
    assert left == set(described)


def test_help_of_the_svm_is_read_in_one_sitting():
    # With what scikit-learn's base classes add, help() had 436 lines. Thresholds of "auto" belong to the user guide.
    found = [SmSVMClassifier.__doc__, *(method.__doc__ for name, method in inspect.getmembers(SmSVMClassifier, callable)
                                        if not name.startswith("_") and "sklearn" not in method.__module__)]
    assert sum(len(text.splitlines()) for text in found if "Configure whether metadata" not in text) <= 240


@classes
def test_the_example_runs(kind):
    assert "Examples\n" in kind.__doc__
    (test,) = doctest.DocTestFinder(recurse=False).find(kind, kind.__name__, globs={})
    assert len(test.examples) > 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")              # an example is what one begins with
        assert doctest.DocTestRunner().run(test).failed == 0


def test_entries_of_another_class_are_written_out_with_defaults_of_its_own():
    class One:
        """One.

        Parameters
        ----------
        a : int, default=1
            What it is.

            More.
        b, c : {"x", "y"}, default="x"
            Two.

        Attributes
        ----------
        d_ : float
        """

        def __init__(self, a=1, b="x", c="x"):
            pass

    @described_by(One)
    class Other:
        """Other.

        Parameters
        ----------
        a, b, c
            As in `One`.

        Attributes
        ----------
        d_
            As in `One`.
        """

        def __init__(self, a=3, b="y", c="x"):
            pass

    assert entries(Other.__doc__, "Parameters") == {
        "a": ["a : int, default=3", "    What it is.", "", "    More."],
        "b": ['b : {"x", "y"}, default="y"', "    Two."], "c": ['c : {"x", "y"}, default="x"', "    Two."]}
    assert entries(Other.__doc__, "Attributes") == {"d_": ["d_ : float"]}
