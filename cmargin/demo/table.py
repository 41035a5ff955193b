"""The main job on real data that comes with scikit-learn: train, compare, show a table and three plots."""

import os
import sys
from importlib.util import find_spec

import numpy as np
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from cmargin import BSNClassifier, SLNDClassifier, SmSVMClassifier, datasets
from cmargin._estimators.predict import raw_scores
from cmargin.demo import photographs, places
from cmargin.demo.result import Result, Split, shortest
from cmargin.margins import margin, margin_error, top_k_accuracy

# Until H is estimated anew SLND and BSN make the same steps for the same loss, hence one loss each
OURS = {
    "SLNDClassifier": lambda: SLNDClassifier(random_state=0),
    "SLNDClassifier, one-vs-rest": lambda: SLNDClassifier(loss="logistic", random_state=0),
    "BSNClassifier, calibrated hinge": lambda: BSNClassifier(loss="calibrated_hinge", random_state=0),
    "SmSVMClassifier": lambda: SmSVMClassifier(l2=1e-2, random_state=0),
}
PEERS = {
    "SGDClassifier, log_loss": lambda: SGDClassifier(loss="log_loss", random_state=0),
    "LinearSVC": lambda: LinearSVC(random_state=0),
    "LogisticRegression": lambda: LogisticRegression(),
}
FITS = 3                # the shortest of so many counts
THETA = np.linspace(0, 1, 501)

NOTES = {
    photographs.NAME: """\
photographs: from which of two photographs do 3 x 3 pixels come? All three classifiers minimise the same objective,
l2/2 |w|^2 + mean hinge with l2=1e-4 and no intercept. gap: relative distance from the minimum, proven by a certificate
for SmSVMClassifier, measured against that for the others.""",
    places.NAME: """\
places: from which of 50 places in the photographs do 5 x 5 pixels come? Defaults, but for LogisticRegression's
max_iter=300: its 100 are not enough here. With the same loss SLND and BSN make the same steps until H is estimated
anew, which a set of this size does not come to.""",
    "digits": """\
digits: ten classes. Parameters are defaults, except l2=0.01 for SmSVM and the losses that are named. Sets as small and
easy as this one need nothing better than LogisticRegression.""",
}
LAST_NOTE = """\
reads: of the training rows, for cmargin, per class where classes are trained apart, those for the preconditioner and
for the choice of parameters included; for scikit-learn, iterations, each of at least one read.
seconds: {fits}, on one thread.
One third of the rows is for testing. Columns are standardised by the training rows."""


def load(name):
    data = datasets.load(name)
    X, X_test, y, y_test = train_test_split(data.X, data.y, test_size=1 / 3, random_state=0, stratify=data.y)
    scaler = StandardScaler().fit(X)
    return Split(name, scaler.transform(X), y, scaler.transform(X_test), y_test)


def top_5(model, split):
    """Share of test rows whose class is among the five first."""
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


def run_one(name, make, split, fits):
    """`Result` of one classifier."""
    model = make()
    seconds = shortest(lambda: model.fit(split.X, split.y), fits)
    passes, gap = getattr(model, "n_passes_", float(np.max(model.n_iter_))), None
    if hasattr(model, "duality_gap_"):
        gap = float(np.max(model.duality_gap_))
    one_vs_rest = hasattr(model, "scores") or getattr(model, "loss", None) == "log_loss"
    return Result(split.name, name, model.score(split.X_test, split.y_test), top_5(model, split), passes, gap, seconds,
                  margin_error=margin_error_curve(model, split) if one_vs_rest else None)


def print_table(results, fits, file):
    header = ("data set", "classifier", "top-1 %", "top-5 %", "reads", "gap", "seconds")
    cells = [(r.data_set, r.classifier, f"{100 * r.top_1:.1f}", "" if r.top_5 is None else f"{100 * r.top_5:.1f}",
              f"{r.passes:.0f}" if float(r.passes).is_integer() else f"{r.passes:.1f}",
              "" if r.gap is None else f"{r.gap:.0e}", f"{r.seconds:.3f}") for r in results]
    widths = [max(map(len, column)) for column in zip(header, *cells, strict=True)]
    for row in (header, *cells):
        text = [cell.ljust(width) if number < 2 else cell.rjust(width)
                for number, (cell, width) in enumerate(zip(row, widths, strict=True))]
        print("  ".join(text).rstrip(), file=file)
    fits = "one fit" if fits == 1 else f"the shortest of up to {fits} fits"
    for name in dict.fromkeys(result.data_set for result in results):
        print("\n" + NOTES[name], file=file)
    print("\n" + LAST_NOTE.format(fits=fits), file=file)


def run(out=".", *, fits=FITS, stride=2, file=None):
    """Run the demo: print the table to ``file`` (standard output by default), save the plots into folder ``out``.

    Returns
    -------
    list of Result
    """
    file = sys.stdout if file is None else file
    os.makedirs(out, exist_ok=True)
    with threadpool_limits(1):      # data this small gain nothing from threads, and a busy machine would lose by them
        if find_spec("PIL") is not None:
            results = [*photographs.run(photographs.load(stride), fits), *places.run(places.load(), fits)]
        else:
            split = load("digits")
            results = [run_one(label, make, split, fits) for label, make in (OURS | PEERS).items()]
    print_table(results, fits, file)
    if find_spec("matplotlib") is None:
        print("No plots: install matplotlib (python -m pip install matplotlib) and run this again; with it comes what "
              "reads photographs, on which more is gained.", file=file)
        return results
    from cmargin.demo.plots import save_plots

    for path in save_plots(results, out):
        print(f"saved {path}", file=file)
    return results
