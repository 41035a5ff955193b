"""Every public entry of the package, and how a call of it is drawn: name -> (share, draw -> a call without arguments).

A call is a `functools.partial`, so that whoever makes it can look at its arguments. It may answer, without NaN, or
refuse; entries whose answers may hold NaN are in `WITH_NAN`, those that may speak of a file in `OF_FILES`.
"""

import copy
import inspect
import os
import warnings
from functools import partial

import joblib
import numpy as np
import scipy.sparse as sp

from . import fuzz_models
from .estimators import ESTIMATORS, SEARCHES, WAYS, make
from .fuzz_input import Draw, array, labels, layout, likely, number, rows, shape, stream

# cubic_roots ends each row of roots with NaN, a class without samples has no accuracy, curves are drawn as given
WITH_NAN = {"cubic_roots", "displays of predictions", "displays of curves"}
OF_FILES = {"load_liblinear", "convert", "files", "read_npz", "fit", "predict", "open_rows", "data sets",
            "load"}
HINTS = ("unit", "unit", "unit", "unit", "normal", "zeros", "one number", "tiny")       # of what should be posteriors
PIECES = (b" ", b"\n", b"nan", b"-1", b"1e999", b"inf", b":", b"\xff\x00", b"9" * 30)              # put into files
CUBES = (1, 1, 1, 2, 0)
_models = {}


def scored(draw, *names, contents=None, streams=True, **settings):
    """A call of a function of `cmargin.margins` that takes scores, and labels where ``names`` say so."""
    from cmargin import margins

    n, k = draw.pick((0, 1, 2, 2, 5, 9)), draw.pick((1, 2, 2, 3, 5))
    form = draw.pick(((n,), (n, k), (n, k))) if draw.below(8) else shape(draw)
    X = array(draw, form) if contents is None else array(draw, form, contents)
    y = [labels(draw, n, k if len(form) == 2 else 2)] if "y" in names else []
    X = stream(draw, X) if streams and draw.once_in(8) and isinstance(X, np.ndarray) else X
    return partial(getattr(margins, names[0]), X, *y,
                   **{key: value for key, value in settings.items() if draw.once_in(2)})


def margin(draw):
    return scored(draw, "margin", "y", loss=likely(draw, (None, "logistic", "calibrated_hinge", "squared", "hinge")))


def margin_error(draw):
    call = scored(draw, "margin_error", contents=HINTS)
    return partial(call, draw.pick((0.5, 0.0, 1.0, array(draw, shape(draw), HINTS), number(draw))))


def top_k_accuracy(draw):
    return partial(scored(draw, "top_k_accuracy", "y"), k=likely(draw, (1, 2, 3)))


def expected_calibration_error(draw):
    return scored(draw, "expected_calibration_error", "y", contents=HINTS, n_bins=likely(draw, (1, 2, 15)))


def ranked(name):
    """A call of a function of `cmargin.margins` of rankings: scores of any kind or labels, an indicator, k."""
    def call(draw):
        from cmargin import margins

        n, k = draw.pick((0, 1, 4, 4, 9)), draw.pick((1, 3, 5))
        scores = draw.pick((rows, rows, lambda draw, n, k: layout(draw, draw.generator().permuted(
            np.tile(np.arange(k), (n, 1)), axis=1)), lambda draw, n, k: stream(draw, array(draw, (n, k)))))
        y = draw.generator().integers(0, 2, (n, k)) if draw.below(3) else labels(draw, n, k)
        if isinstance(y, np.ndarray) and (y.ndim, y.dtype.kind) == (2, "i") and draw.once_in(3):
            y = sp.csc_array(y)
        if name == "label_propensities":
            return partial(margins.label_propensities, y, *(likely(draw, (0.5, 1.5)) for _ in range(draw.below(3))))
        more = [array(draw, (k,), HINTS)] if name.startswith("ps_") else []
        return partial(getattr(margins, name), scores(draw, n, k), y, *more,
                       k=likely(draw, (1, 2, (1,), (1, 3), [1, 2, 3])))
    return call


def label_thresholds(draw):
    from cmargin import margins

    n, k = draw.pick((0, 1, 4, 9)), draw.pick((1, 3))
    y = draw.generator().integers(0, 2, (n, k)) if draw.below(3) else labels(draw, n, k)
    more = {"cost": draw.pick((None, (1, 2), (0.0, 1.0), number(draw))), "least_f1": likely(draw, (0.1, 0.0, 1))}
    return partial(margins.label_thresholds, array(draw, (n, k)), y,
                   **{key: value for key, value in more.items() if draw.once_in(2)})


def distribution(name):
    def call(draw):
        more = {"quantiles": draw.pick(((), (0.5,), (0, 1.5), [np.nan], array(draw, shape(draw), HINTS), number(draw)))}
        return scored(draw, name, scale=likely(draw, (1.0, 0.1, 1e3)), delta=likely(draw, (0.05, 0.5)),
                      **(more if name == "margin_summary" else {}))
    return call


def weak_separability(draw):
    from cmargin.margins import weak_separability

    m, t = draw.pick((0, 1, 4)), draw.pick((1, 3))
    forms = [draw.pick(((m,), (t, m))) if draw.below(8) else shape(draw) for _ in range(2)]
    return partial(weak_separability, *(array(draw, form) for form in forms))


def broadcasting(name, n_arrays, contents=HINTS):
    """A call of a function of ``n_arrays`` that broadcast."""
    def call(draw):
        from cmargin import margins

        form = shape(draw, CUBES)
        each = [number(draw) if draw.once_in(9) else array(draw, draw.pick((form, (), (1,))), contents)
                for _ in range(n_arrays)]
        return partial(getattr(margins, name), *each)
    return call


def of_numbers(name, required, optional):
    """A call of a function of plain numbers: ``required`` by place or keyword, ``optional`` now and then."""
    def call(draw):
        from cmargin import margins

        arguments = {key: likely(draw, (1, 10, 0.1, 1e4)) for key in required}
        arguments.update({key: likely(draw, (0.05, 1.0, 5)) for key in optional if draw.once_in(3)})
        return partial(getattr(margins, name), **arguments)
    return call


# ------------------------------------------------------------ plots

def display(draw):
    """A display of labels and predictions, drawn and thrown away."""
    from cmargin import plots

    name = draw.pick(("MarginDistributionDisplay", "MarginErrorDisplay", "EntropyAccuracyDisplay"))
    n, k = draw.pick((1, 2, 5)), draw.pick((2, 3))
    y = labels(draw, n, k)
    f = array(draw, draw.pick(((n,), (n, k))), HINTS if name.startswith("Entropy") else ("normal", "ratios", "huge"))
    return partial(drawn, getattr(plots, name).from_predictions, y, f)


def curves(draw):
    from cmargin import plots

    kind = draw.below(3)
    if kind == 0:
        return partial(drawn, plots.SpectrumDisplay.from_eigenvalues, array(draw, shape(draw)),
                       rank=likely(draw, (None, 1, 3)))
    if kind == 1:
        return partial(drawn, plots.PsiTransformDisplay.from_levels, array(draw, shape(draw, CUBES), HINTS),
                       array(draw, (), HINTS), inverse=draw.once_in(2))
    history = {name: array(draw, shape(draw, (1, 1, 1, 2))) for name in ("seconds", "objective", "pass")}
    return partial(drawn, plots.ConvergenceDisplay.from_history, history,
                   x=draw.pick(("seconds", "pass", "no such")), y=draw.pick(("objective", "pass")))


def drawn(make_display, *arguments, **settings):
    """The numbers of a display, from an axes that all share."""
    import matplotlib.figure

    ax = _models.setdefault("axes", matplotlib.figure.Figure().subplots())
    ax.clear()
    display = make_display(*arguments, ax=ax, **settings)
    return {key: value for key, value in vars(display).items() if isinstance(value, np.ndarray)}


# ------------------------------------------------------------ estimators

def fitted():
    """Small models of every estimator, of 3 and 2 classes; by one thread, as processes are forked afterwards."""
    if "all" not in _models:
        rng = np.random.default_rng(0)
        X, out = rng.standard_normal((24, 4)), []
        for name in ESTIMATORS:
            for n_classes in (3, 2):
                way = WAYS.get(name, [{}])[0]
                y = np.arange(24) % n_classes
                one_thread = make(name.removesuffix("CV"), n_jobs=1)
                estimator = make(name, max_passes=3, cv=2, n_jobs=1, estimator=one_thread, **way)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    out.append(estimator.fit(X + 2 * np.eye(4)[y], y))
        _models["all"] = out
    return _models["all"]


METHODS = ("predict", "predict", "decision_function", "decision_function", "predict_proba", "predict_log_proba",
           "posterior", "scores", "predict_top_k", "score")


def predict(draw):
    model = draw.pick(fitted())
    method = draw.pick([name for name in METHODS if hasattr(model, name)])
    n = draw.pick((0, 1, 2, 2, 5, 5))
    X = rows(draw, n, 4 if draw.below(9) else draw.pick((0, 1, 3, 5)))
    if draw.once_in(8):
        X = draw.pick((array(draw, shape(draw)), array(draw, shape(draw)), "no such", number(draw)))
    more = ([labels(draw, n)] if method == "score" else [likely(draw, (1, 2, 3))] if method == "predict_top_k" else [])
    return partial(getattr(model, method), X, *more)


def settings_of(draw, name):
    """A way of an estimator with up to two of its parameters as nobody would set them; never without an end."""
    estimator = make(name, **draw.pick(WAYS.get(name, [{}])))
    known = estimator.get_params(deep=False)
    few = {"max_passes": draw.pick((1, 2, 2, 20)), "max_time": 1.0, "cv": 2, "l2s": (1e-2, 1.0)}
    estimator.set_params(**{key: value for key, value in few.items() if key in known})
    for _ in range(draw.below(3) if draw.once_in(2) else 0):
        key = draw.pick(sorted(set(known) - {"max_time", "max_passes"} if draw.below(8) else known))
        estimator.set_params(**{key: number(draw)})
    return estimator


def fit(draw):
    name = draw.pick([name for name in ESTIMATORS if name not in SEARCHES])
    estimator = settings_of(draw, name)
    n, p, k = draw.pick((0, 1, 2, 6, 9, 9, 14)), draw.pick((0, 1, 2, 3, 3, 8, 20)), draw.pick((1, 2, 2, 3, 4))
    good = draw.once_in(2)
    rng = draw.generator()
    y = np.arange(n) % k if good else labels(draw, n, k)
    X = rng.standard_normal((n, p)) if good else rows(draw, n, p)
    weights = None if draw.below(3) else array(draw, (n,), ("unit", "whole", "normal", "ratios", "one number"))
    method = "partial_fit" if hasattr(estimator, "partial_fit") and draw.once_in(4) else "fit"
    if draw.once_in(3):
        train(estimator, next(model for model in fitted() if type(model).__name__ == name))
    return partial(fit_and_answer, estimator, method, X, y, weights)


def search(draw):
    estimator = settings_of(draw, draw.pick(SEARCHES))
    n = draw.pick((0, 3, 6, 9))
    X, y = rows(draw, n, 3), labels(draw, n, 2)
    if draw.once_in(2):
        return partial(fit_and_answer, estimator, "fit", X, y, None)
    from cmargin import nested_cross_validation

    return partial(nested_cross_validation, X, y, likely(draw, ((1e-2,), (1.0, 1e-2), array(draw, (2,), HINTS))),
                   outer=likely(draw, (2, 3)), inner=likely(draw, (2, 3)), standardize=likely(draw, (True, False)))


def train(estimator, model):
    """Give the estimator what another of its class has learned."""
    vars(estimator).update(copy.deepcopy(learned(model)))


def learned(model):
    return {name: value for name, value in vars(model).items() if name not in model.get_params(deep=False)}


def fit_and_answer(estimator, method, X, y, weights):
    """Fit, and where that is taken, every kind of answer for the same rows, which then must be taken too; where it is
    refused, what the estimator had learned, or nothing, must be as it was."""
    before = joblib.hash(learned(estimator))
    try:
        getattr(estimator, method)(X, y, **({} if weights is None else {"sample_weight": weights}))
    except (ValueError, TypeError):
        if joblib.hash(learned(estimator)) != before:
            raise AssertionError("a refused fit changed the estimator") from None
        raise
    numbers = [np.asarray(estimator.coef_), np.asarray(estimator.intercept_)]
    if not all(np.isfinite(part).all() for part in numbers):
        raise AssertionError("coef_ or intercept_ is not finite")
    try:
        return [getattr(estimator, name)(X) for name in ("decision_function", "predict", "predict_proba")
                if hasattr(estimator, name)]
    except (ValueError, TypeError) as error:
        raise AssertionError(f"rows that fit has taken are refused: {error}") from error


def open_rows(draw):
    from cmargin.data import open_rows

    n = draw.pick((0, 1, 4))
    X = rows(draw, n, draw.pick((0, 1, 3))) if draw.below(6) else array(draw, shape(draw))
    return partial(opened, open_rows, X, *([labels(draw, n)] if draw.once_in(2) else []))


def opened(open_rows, *arguments):
    """Sizes of a data source; what the numbers are, nobody has looked at."""
    source = open_rows(*arguments)
    return source.n_rows, source.n_features


# ------------------------------------------------------------ files

def harmed(draw, content):
    """``content`` with bytes changed, cut out or put in."""
    content = bytearray(content)
    for _ in range(draw.below(4)):
        place, kind = draw.below(len(content) + 1), draw.below(4)
        if kind == 0:
            del content[place:]
        elif kind == 1:
            del content[place:place + draw.below(20)]
        elif kind == 2:
            content[place:place] = draw.pick(PIECES)
        elif place < len(content):
            content[place] = draw.below(256)
    return bytes(content)


def good_files():
    """Content of good files by name, made once."""
    if "files" not in _models:
        from cmargin.export import save_liblinear

        contents = {}
        rng = np.random.default_rng(0)
        np.save("x.npy", rng.standard_normal((6, 3)))
        sp.save_npz("x.npz", sp.random(6, 3, 0.5, "csr", rng=rng), compressed=False)
        np.savez("set.npz", X=rng.standard_normal((6, 3)), y=np.arange(6) % 2)
        save_liblinear(next(model for model in fitted() if type(model).__name__ == "SmSVMClassifier"), "x.model")
        for name in ("x.npy", "x.npz", "set.npz", "x.model"):
            with open(name, "rb") as file:
                contents[name] = file.read()
        contents["x.svm"] = b"1 1:0.5 3:-2\n-1 2:1e-3\n# none\n1 qid:3 1:7\n0\n"
        _models["files"] = contents
    return _models["files"]


def load_liblinear(draw):
    from cmargin.export import load_liblinear

    content = harmed(draw, good_files()["x.model"])
    return partial(from_file, "harmed.model", content, lambda path: load_liblinear(path).coef_)


def load(draw):
    return fuzz_models.load(draw, fitted(), np.random.default_rng(0).standard_normal((3, 4)))


def from_file(path, content, read):
    with open(path, "wb") as file:
        file.write(content)
    return read(path)


def save_liblinear(draw):
    from cmargin.export import save_liblinear

    return partial(save_liblinear, draw.pick(fitted()), "saved.model")


def to_sklearn(draw):
    model = draw.pick([model for model in fitted() if hasattr(model, "to_sklearn")])
    X = array(draw, (3, 4), ("normal",))
    return partial(lambda X: model.to_sklearn().decision_function(X), X)


def convert(draw):
    from cmargin.cli.convert import convert

    more = {"dtype": draw.pick((np.float32, np.float64)), "n_features": draw.pick((None, 3, 1, 2**40)),
            "zero_based": draw.once_in(2)}
    return partial(from_file, "harmed.svm", harmed(draw, good_files()["x.svm"]),
                   lambda path: convert(path, "converted", **more))


def files(draw):
    """Rows in files of which some bytes are others, trained on."""
    from cmargin import SmSVMClassifier

    name = draw.pick(("x.npy", "x.npz"))
    content = harmed(draw, good_files()[name])
    return partial(from_file, f"rows{name[1:]}", content, lambda path: SmSVMClassifier(max_passes=2).fit(
        path, np.arange(6) % 2).coef_)


def read_npz(draw):
    from cmargin.datasets import read_npz

    content = harmed(draw, good_files()["set.npz"])
    return partial(from_file, "harmed_set.npz", content, lambda path: bool(read_npz(path)))


def data_sets(draw):
    from cmargin import datasets

    name = draw.pick(("two_centroids", "tall", "wide", "load"))
    function = getattr(datasets, name)
    known = list(inspect.signature(function).parameters)
    return partial(lambda **given: bool(function(**given)), **{
        key: likely(draw, (0, 1, 2, 5)) for key in known if draw.once_in(2)})


def checkpoint(draw):
    from cmargin import Checkpoint

    return partial(lambda *given: bool(Checkpoint(*given)), likely(draw, ("x", "y.checkpoint")),
                   *(likely(draw, (None, 0.0, 30.0)) for _ in range(draw.below(3))))


def damaged_checkpoint(draw):
    """A fit whose checkpoint is not what a fit has written."""
    from cmargin import SmSVMClassifier

    content = harmed(draw, good_checkpoint())
    X, y = checkpoint_rows()
    return partial(from_file, "harmed.checkpoint", content, lambda path: SmSVMClassifier(
        checkpoint=path, max_passes=9, tol=1e-12).fit(X, y).coef_)


def checkpoint_rows():
    rng = np.random.default_rng(1)
    return rng.standard_normal((20, 3)), np.arange(20) % 2


def good_checkpoint():
    """Bytes that a fit has written on its way."""
    if "checkpoint" not in _models:
        from cmargin import Checkpoint, SmSVMClassifier

        def keep(*_):
            if os.path.exists("good.checkpoint"):
                with open("good.checkpoint", "rb") as file:
                    _models["checkpoint"] = file.read()

        SmSVMClassifier(checkpoint=Checkpoint("good.checkpoint", seconds=0.0), max_passes=9, tol=1e-12,
                        n_jobs=1, callback=keep).fit(*checkpoint_rows())
    return _models["checkpoint"]


ENTRIES = {
    "margin": (40, margin),
    "margin_error": (40, margin_error),
    "margin_summary": (40, distribution("margin_summary")),
    "location_estimate": (40, distribution("location_estimate")),
    "binary_entropy": (30, lambda draw: scored(draw, "binary_entropy", contents=HINTS)),
    "top_k_accuracy": (40, top_k_accuracy),
    "expected_calibration_error": (40, expected_calibration_error),
    **{name: (20, ranked(name)) for name in ("precision_at_k", "ndcg_at_k", "label_propensities", "ps_precision_at_k",
                                             "ps_ndcg_at_k")},
    "label_thresholds": (20, label_thresholds),
    "weak_separability": (30, weak_separability),
    "psi_transform": (40, broadcasting("psi_transform", 3)),
    "psi_inverse": (40, broadcasting("psi_inverse", 3)),
    "cubic_roots": (40, broadcasting("cubic_roots", 4, ("normal", "normal", "ratios", "zeros", "one number", "huge"))),
    "confidence_scale": (10, of_numbers("confidence_scale", ("n_samples", "variance"), ("delta",))),
    "confidence_radius": (10, of_numbers("confidence_radius", ("n_samples", "variance"), ("delta",))),
    "excess_risk_bound": (20, of_numbers("excess_risk_bound",
                                         ("n_samples", "n_features", "strong_convexity", "input_variance"),
                                         ("margin", "scale", "n_iter", "step_size", "initial_distance", "delta",
                                          "subgaussian", "diameter"))),
    "displays of predictions": (1, display),
    "displays of curves": (1, curves),
    "predict": (300, predict),
    "fit": (120, fit),
    "search": (1, search),
    "open_rows": (40, open_rows),
    "load_liblinear": (10, load_liblinear),
    "save_liblinear": (2, save_liblinear),
    "to_sklearn": (2, to_sklearn),
    "convert": (5, convert),
    "files": (5, files),
    "read_npz": (2, read_npz),
    "data sets": (2, data_sets),
    "Checkpoint": (10, checkpoint),
    "damaged checkpoint": (4, damaged_checkpoint),
    "load": (4, load),
}


def entry_of(number):
    """Name of the entry that the input of that number is for."""
    names, shares = list(ENTRIES), [share for share, _ in ENTRIES.values()]
    draw = Draw.of_seed(number)
    place = draw.below(sum(shares))
    for name, share in zip(names, shares, strict=True):
        place -= share
        if place < 0:
            return name, draw
    raise AssertionError("shares add up")
