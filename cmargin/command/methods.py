"""The methods by the names they have on the command line, and how their parameters are given there."""

import ast
import inspect

import cmargin
from cmargin._estimators.validation import InvalidParameterError

CLASSES = {"slnd": "SLNDClassifier", "bsn": "BSNClassifier", "smsvm": "SmSVMClassifier",
           "pursuit": "MarginPursuitClassifier", "pegasos": "PegasosClassifier"}
OURS = ("callback", "verbose", "warm_start", "max_time", "n_jobs", "random_state", "checkpoint")     # not by --set


def make(method, given, *, max_time, seed, threads, checkpoint=None):
    """An estimator of ``method`` with the parameters ``given``, pairs of a name and a text."""
    kind = getattr(cmargin, CLASSES[method])
    known = [name for name in inspect.signature(kind).parameters if name not in OURS]
    parameters = {}
    for name, text in given:
        if name not in known:
            raise InvalidParameterError(f"{kind.__name__} takes no {name!r} by --set; it takes {', '.join(known)}.")
        parameters[name] = _value(text)
    return kind(max_time=max_time, random_state=seed, n_jobs=threads, checkpoint=checkpoint, **parameters)


def _value(text):
    """A number, True, False or None, else the text itself."""
    if text == "inf":
        return float(text)                       # C=inf is no penalty
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
    return value if value is None or isinstance(value, (bool, int, float)) else text


def watched(estimator, n_problems, bar):
    """Let ``bar`` hear of every pass, where that does not change how the work is done."""
    if type(estimator).__name__ == "SmSVMClassifier" and n_problems > 1:
        return                               # its classes would be trained one after the other

    def callback(model):
        last = {name: column[-1] for name, column in model.history_.items() if len(column)}
        words = [f"{name} {last[name]:.3g}" for name in ("objective", "error", "gap", "gradient_norm") if name in last]
        bar.step(", ".join(words).replace("_", " "))

    estimator.callback = callback


def passes_of(estimator):
    """Steps of a bar at most, where that is known beforehand."""
    ends_by_passes = type(estimator).__name__ in ("SLNDClassifier", "BSNClassifier", "PegasosClassifier")
    return estimator.max_passes if ends_by_passes else None
