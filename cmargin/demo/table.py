"""The main job on real data that comes with scikit-learn: train, compare on one split, show the table and two plots."""

import os
import sys
import time
from dataclasses import dataclass, field
from importlib.util import find_spec

import numpy as np
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from cmargin import BSNClassifier, SLNDClassifier, SmSVMClassifier, datasets
from cmargin._estimators.posteriors import raw_scores
from cmargin.margins import margin, margin_error, top_k_accuracy

DATA_SETS = ("digits", "breast_cancer")
# Until H is estimated anew SLND and BSN make the same steps for the same loss, hence one loss each
OURS = {
    "SLNDClassifier": lambda: SLNDClassifier(random_state=0),
    "SLNDClassifier, one-vs-rest": lambda: SLNDClassifier(loss="logistic", random_state=0),
    "BSNClassifier, calibrated hinge": lambda: BSNClassifier(loss="calibrated_hinge", random_state=0),
}
CERTIFIED = {"SmSVMClassifier": lambda: SmSVMClassifier(l2=1e-2, random_state=0)}
PEERS = {
    "SGDClassifier, log_loss": lambda: SGDClassifier(loss="log_loss", random_state=0),
    "LinearSVC": lambda: LinearSVC(random_state=0),
    "LogisticRegression": lambda: LogisticRegression(),
}
FITS, ENOUGH_SECONDS = 3, 0.5   # the shortest of so many fits counts, or of as many as begin within these seconds
THETA = np.linspace(0, 1, 501)

NOTES = """\
One third of the rows is for testing; columns are standardised on the others. All classifiers have their default
parameters, but SmSVM l2=0.01 and where a loss is named. Passes: reads of the training rows, the preconditioner's
included, for cmargin; iterations, each of one read or more, for scikit-learn. Gap: the certified distance from the
minimum of the objective, relative to it, of the worst class. LogisticRegression and SLNDClassifier train all classes
jointly, the others each class against the rest. Seconds: {fits}, on one thread."""


@dataclass
class Split:
    """One data set, split and standardised."""

    name: str
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


@dataclass
class Trace:
    """Test accuracy after every pass of one fit; an estimator's callback. ``own_seconds`` is what that took."""

    split: Split
    passes: list = field(default_factory=list)
    accuracy: list = field(default_factory=list)
    own_seconds: float = 0.0

    def __call__(self, model):
        begin = time.perf_counter()
        self.passes.append(model.n_passes_)
        self.accuracy.append(model.score(self.split.X_test, self.split.y_test))
        self.own_seconds += time.perf_counter() - begin


@dataclass
class Result:
    """One classifier on one data set: a row of the table and what its curves are drawn from."""

    data_set: str
    classifier: str
    top_1: float
    top_5: float | None
    passes: float
    gap: float | None
    seconds: float
    trace: tuple | None             # (passes, seconds, accuracy) arrays, one entry a pass
    margin_error: tuple | None      # thresholds, and the margin error of the test rows


def load(name):
    data = datasets.load(name)
    X, X_test, y, y_test = train_test_split(data.X, data.y, test_size=1 / 3, random_state=0, stratify=data.y)
    scaler = StandardScaler().fit(X)
    return Split(name, scaler.transform(X), y, scaler.transform(X_test), y_test)


def shortest(fit, fits):
    """What ``fit`` returns, (seconds, ...), of the quickest of up to ``fits`` calls."""
    done = [fit()]
    while len(done) < fits and sum(seconds for seconds, *_ in done) < ENOUGH_SECONDS:
        done.append(fit())
    return min(done, key=lambda result: result[0])


def top_5(model, split):
    """Share of test rows whose class is among the five first, or None where there are no more than five."""
    if len(model.classes_) <= 5:
        return None
    if hasattr(model, "predict_top_k"):         # corrects for the share of rows visited, as predict does
        return float(np.mean((model.predict_top_k(split.X_test, 5) == split.y_test[:, None]).any(axis=1)))
    codes = np.searchsorted(model.classes_, split.y_test)
    return top_k_accuracy(model.decision_function(split.X_test), codes, 5)


def margin_error_curve(model, split):
    """Thresholds and margin error of the test rows, of a one-vs-rest calibrated loss (BSN eq. 7), else None."""
    loss = getattr(model, "loss_", {"log_loss": "logistic"}.get(model.loss, model.loss))
    if loss == "multinomial":
        return None
    codes = np.searchsorted(model.classes_, split.y_test)
    return THETA, margin_error(margin(raw_scores(model, split.X_test), codes, loss=loss), THETA)


def run_ours(name, make, split, max_passes, fits):
    model = make().set_params(max_passes=max_passes)

    def fit():
        trace = Trace(split)
        model.set_params(callback=trace)
        begin = time.perf_counter()
        model.fit(split.X, split.y)
        return time.perf_counter() - begin - trace.own_seconds, trace, model.history_["seconds"]

    seconds, trace, curve_seconds = shortest(fit, fits)
    curve = np.array(trace.passes), curve_seconds, np.array(trace.accuracy)
    return Result(split.name, name, trace.accuracy[-1], top_5(model, split), model.n_passes_, None, seconds, curve,
                  margin_error_curve(model, split))


def run_peer(name, make, split, fits):
    model = make()

    def fit():
        begin = time.perf_counter()
        model.fit(split.X, split.y)
        return (time.perf_counter() - begin,)

    (seconds,) = shortest(fit, fits)
    one_vs_rest = margin_error_curve(model, split) if getattr(model, "loss", None) == "log_loss" else None
    passes, gap = float(np.max(model.n_iter_)), None
    if hasattr(model, "duality_gap_"):
        passes, gap = model.n_passes_ / len(model.coef_), float(np.max(model.duality_gap_))
    return Result(split.name, name, model.score(split.X_test, split.y_test), top_5(model, split), passes, gap, seconds,
                  None, one_vs_rest)


def print_table(results, fits, file):
    header = ("data set", "classifier", "top-1 %", "top-5 %", "passes", "gap", "seconds")
    cells = [(r.data_set, r.classifier, f"{100 * r.top_1:.1f}", "" if r.top_5 is None else f"{100 * r.top_5:.1f}",
              f"{r.passes:.0f}" if r.classifier in PEERS else f"{r.passes:.1f}",
              "" if r.gap is None else f"{r.gap:.0e}", f"{r.seconds:.3f}") for r in results]
    widths = [max(map(len, column)) for column in zip(header, *cells, strict=True)]
    for row in (header, *cells):
        text = [cell.ljust(width) if number < 2 else cell.rjust(width)
                for number, (cell, width) in enumerate(zip(row, widths, strict=True))]
        print("  ".join(text).rstrip(), file=file)
    fits = "one fit" if fits == 1 else f"the shortest of up to {fits} fits"
    print("\n" + NOTES.format(fits=fits), file=file)


def run(out=".", *, max_passes=10, fits=FITS, file=None):
    """Run the demo: print the table to ``file`` (standard output by default), save the plots into folder ``out``.

    Returns
    -------
    list of Result
    """
    file = sys.stdout if file is None else file
    os.makedirs(out, exist_ok=True)
    results = []
    with threadpool_limits(1):      # data this small gain nothing from threads, and a busy machine would lose by them
        for name in DATA_SETS:
            split = load(name)
            results += [run_ours(label, make, split, max_passes, fits) for label, make in OURS.items()]
            results += [run_peer(label, make, split, fits) for label, make in (CERTIFIED | PEERS).items()]
    print_table(results, fits, file)
    if find_spec("matplotlib") is None:
        print("No plots: install matplotlib (python -m pip install matplotlib) and run this again.", file=file)
        return results
    from cmargin.demo.plots import save_plots

    for path in save_plots(results, out):
        print(f"saved {path}", file=file)
    return results
