"""The picture of the README: seconds against accuracy, how far probabilities can be believed, seconds to one optimum.

    python asv_benches/front_picture.py --data FOLDER [--probe banking77_embedded] [--race covtype] [--out FILE]

FOLDER holds the sets, NAME.npz. On the left a linear probe on embeddings: SLND's defaults after every pass, multinomial
LogisticRegression (lbfgs, to its end) at four C, SGDClassifier after 1 to 50 epochs; all on one thread, in seconds of
processor time, and the rows have length 1. In the middle how often the most likely class was right, by the probability
it was given, in ten bins of as many rows. On the right the most frequent class of the other set against the rest,
columns standardised: the relative distance from the optimum of l2/2 |w|^2 + mean hinge, l2 = 1e-5. The figures are
printed too.
"""

import argparse
import warnings
from time import process_time

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler, normalize
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from cmargin import SLNDClassifier, SmSVMClassifier
from cmargin.margins import expected_calibration_error
from race.data import read

COSTS, EPOCHS, L2, BINS = (1.0, 10.0, 100.0, 1000.0), (1, 2, 5, 10, 20, 50), 1e-5, 10
SVC_ITERATIONS = (3, 10, 30, 100, 300)
STYLE = {"SLND": ("tab:blue", "o"), "LogisticRegression": ("tab:orange", "s"), "SGDClassifier": ("tab:green", "^"),
         "SmSVM": ("tab:blue", "o"), "LinearSVC": ("tab:orange", "s")}


def timed(model, X, y):
    begin = process_time()
    model.fit(X, y)
    return process_time() - begin


def probe(name, folder):
    """{name: [(seconds, accuracy)]} and {name: probabilities} of the most accurate of each, and the test labels."""
    X, y, X_test, y_test = read(name, folder)
    if X_test is None:
        X, X_test, y, y_test = train_test_split(X, y, test_size=0.25, random_state=0, stratify=y)
    X, X_test = normalize(X.astype(np.float32)), normalize(X_test.astype(np.float32))
    curve, begin = [], process_time()

    def look(model):
        nonlocal begin
        at = process_time()
        curve.append((at - begin, model.score(X_test, y_test)))
        begin += process_time() - at             # the look itself does not count

    ours = SLNDClassifier(random_state=0, n_jobs=1, callback=look).fit(X, y)
    curve.append((process_time() - begin, ours.score(X_test, y_test)))
    found, probabilities, best = {"SLND": curve}, {"SLND": ours.predict_proba(X_test)}, 0.0
    for cost in COSTS:
        model = LogisticRegression(C=cost, max_iter=10_000)
        found.setdefault("LogisticRegression", []).append((timed(model, X, y), model.score(X_test, y_test)))
        if found["LogisticRegression"][-1][1] > best:
            best, probabilities["LogisticRegression"] = found["LogisticRegression"][-1][1], model.predict_proba(X_test)
    for epochs in EPOCHS:
        model = SGDClassifier(loss="log_loss", alpha=1e-6, max_iter=epochs, tol=None, random_state=0, n_jobs=1)
        found.setdefault("SGDClassifier", []).append((timed(model, X, y), model.score(X_test, y_test)))
    return found, probabilities, np.searchsorted(ours.classes_, y_test)


def distances(name, folder):
    """{name: [(seconds, relative distance from the optimum)]}."""
    X, y, *_ = read(name, folder)
    classes, counts = np.unique(y, return_counts=True)
    y = np.where(y == classes[np.argmax(counts)], 1, -1)
    X = StandardScaler().fit_transform(X.astype(float))

    def objective(model):
        w, b = model.coef_.ravel(), model.intercept_[0]
        return L2 / 2 * (w @ w + b * b) + np.maximum(0, 1 - y * (X @ w + b)).mean()

    curve, begin = [], process_time()
    SmSVMClassifier(l2=L2, penalize_intercept=True, n_jobs=1, tol=1e-5, callback=lambda model: curve.append(
        (process_time() - begin, float(model.objective_[0])))).fit(X, y)
    found = {"SmSVM": curve, "LinearSVC": []}
    for iterations in SVC_ITERATIONS:
        model = LinearSVC(C=1 / (L2 * len(y)), loss="hinge", dual=True, tol=1e-12, max_iter=iterations, random_state=0)
        found["LinearSVC"].append((timed(model, X, y), objective(model)))
    optimum = min(value for _, value in curve)               # certified to 1e-5; on a subset of rows there is no value
    return {who: [(seconds, value / optimum - 1) for seconds, value in points if np.isfinite(value)]
            for who, points in found.items()}


def reliability(probabilities, truth):
    """(mean probability of the most likely class, share of rows where it was right) in bins of as many rows."""
    sure, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == truth
    bins = np.array_split(np.argsort(sure), BINS)
    return [sure[b].mean() for b in bins], [right[b].mean() for b in bins]


def draw(found, probabilities, truth, race, names, out):
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(13, 3.9), layout="constrained")
    for who, points in found.items():
        color, marker = STYLE[who]
        left.plot(*np.array(points).T, marker=marker, color=color, label=who)
    best = max(accuracy for points in found.values() for _, accuracy in points)
    left.set(xscale="log", xlabel="seconds of one processor (fewer is better)", ylabel="accuracy on test rows",
             title=f"A linear probe: {names[0]}", ylim=(best - 0.12, best + 0.01))
    left.legend(loc="lower right")
    for who, p in probabilities.items():
        color, marker = STYLE[who]
        middle.plot(*reliability(p, truth), marker=marker, color=color, label=who)
    middle.plot([0, 1], [0, 1], color="0.6", lw=1)
    middle.set(xlabel="probability of the predicted class", ylabel="share that was right", xlim=(0.2, 1.01),
               ylim=(0.2, 1.01), title="Probabilities as they come (the line is perfect)")
    middle.legend(loc="lower right")
    for who, points in race.items():
        color, marker = STYLE[who]
        points = np.array([(seconds, max(distance, 1e-6)) for seconds, distance in points])
        right.plot(*points.T, marker=marker, color=color, label=who)
    right.set(xscale="log", yscale="log", xlabel="seconds of one processor", ylabel="relative distance from optimum",
              title=f"One SVM objective: {names[1]}", ylim=(None, 10))
    right.legend()
    figure.savefig(out, dpi=110)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data")
    parser.add_argument("--probe", default="banking77_embedded")
    parser.add_argument("--race", default="covtype")
    parser.add_argument("--out", default="doc/_static/front.png")
    options = parser.parse_args()
    warnings.simplefilter("ignore")                          # most of these runs are stopped on purpose
    with threadpool_limits(1):
        found, probabilities, truth = probe(options.probe, options.data)
        race = distances(options.race, options.data)
    for who, points in [*found.items(), *race.items()]:
        print(who, ", ".join(f"{seconds:.2f} s {value:.4g}" for seconds, value in points))
    for who, p in probabilities.items():
        print(f"{who}: log-loss {log_loss(truth, p, labels=np.arange(p.shape[1])):.3f}, expected calibration error "
              f"{expected_calibration_error(p, truth):.3f}")
    draw(found, probabilities, truth, race, (options.probe, options.race), options.out)


if __name__ == "__main__":
    main()
