"""The estimators by their names on the command line, and their parameters as text."""

import ast
import inspect
from math import isfinite

from sklearn.base import is_classifier

import cmargin
from cmargin._estimators.validation import InvalidParameterError
from cmargin.cli.options import METHODS

# Parameters that --set does not take: the command sets them, some by options of their own.
RESERVED = ("callback", "verbose", "warm_start", "max_time", "n_jobs", "random_state", "checkpoint")


def make(method, given, *, max_time, seed, threads, checkpoint=None):
    """Return the estimator of ``method`` with the parameters ``given``, pairs of a name and a text."""
    kind = getattr(cmargin, METHODS[method])
    known = [name for name in inspect.signature(kind).parameters if name not in RESERVED]
    parameters = {}
    for name, text in given:
        if name not in known:
            raise InvalidParameterError(f"{kind.__name__} takes no {name!r} by --set; it takes {', '.join(known)}.")
        parameters[name] = _value(text)
    return kind(max_time=max_time, random_state=seed, n_jobs=threads, checkpoint=checkpoint, **parameters)


def _value(text):
    """Return a number, a list, True, False or None where the text is one, and the text otherwise."""
    if text == "inf":
        return float(text)                       # With C=inf there is no penalty.
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
    return value if value is None or isinstance(value, (bool, int, float, list)) else text


def report_passes(estimator, n_problems, bar):
    """Have the estimator report every pass to the progress bar, or every class where it trains several by SmSVM."""
    if _advances_by_classes(estimator, n_problems):      # with a callback they would be trained one after the other
        estimator._on_class = lambda gap: bar.step(f"gap {gap:.1e}" if isfinite(gap) else "")
        return

    def callback(model):
        last = {name: column[-1] for name, column in model.history_.items() if len(column) and isfinite(column[-1])}
        words = [f"{name} {last[name]:.3g}" for name in ("objective", "error", "gap", "gradient_norm") if name in last]
        bar.step(", ".join(words).replace("_", " "))

    estimator.callback = callback


def no_more_reports(estimator):
    """Take back what `report_passes` has set."""
    estimator.callback = None
    vars(estimator).pop("_on_class", None)


def steps_of(estimator, n_problems):
    """Return (the number of steps that a fit takes, what one is called): the number is None where a stopping rule may
    end the fit earlier."""
    if _advances_by_classes(estimator, n_problems):
        return n_problems, "class" if is_classifier(estimator) else "target"
    ends_by_passes = type(estimator).__name__ in ("SLNDClassifier", "BSNClassifier", "PegasosClassifier")
    return estimator.max_passes if ends_by_passes else None, "pass"


def _advances_by_classes(estimator, n_problems):
    return type(estimator).__name__ in ("SmSVMClassifier", "SmSVMRegressor") and n_problems > 1
