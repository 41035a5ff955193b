"""Accuracy by nested cross-validation and training time: SmSVM and ten other solvers on five data sets."""

import math
import time

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from cmargin import SmSVMClassifier, baselines, nested_cross_validation
from experiments._frame import Claim, Table, groups
from experiments._hinge import FULL, QUICK, problem, standardised

TITLE = "SmSVM and other solvers: accuracy and training time"
SOURCE = "SmSVM, Table 4.4"
SETTING = """\
Algorithm 5: penalties chosen by the inner folds, accuracy from the outer ones, 10 and 6 of them, on covtype 5 and
4, stratified and shuffled with a fixed seed; columns standardised by the training rows of each fold. l2 from 1e-6
to 1e-1 in factors of 10 (covtype: 1e-6, 1e-5, 1e-4, 1e-3), l1 of the "l1-l2" rows 1e-3 and 1e-2; the paper does not
give its grids. Of equal scores the strongest penalty is taken. On covtype the other solvers choose their penalties
on 20,000 of the training rows; SmSVM takes all of them.

Seconds: one training on the outer training rows, standardised before, at the penalties chosen; the shortest of
up to five trainings that begin within half a second; mean over the folds. SmSVM stops at a certified gap of
1e-4, LinearSVC (hinge loss, LIBLINEAR) at its default tolerance or 1,000 iterations, the others where their
defaults say, with the parameters of the paper; their hinge is smoothed to a width of 0.1, and their |w| to one
of 0.001, where the paper takes a subgradient. Mini-batches have 256 rows, or a twentieth of the rows if that is
less, and 50 passes are made; the paper gives neither batches nor epochs.

`covtype`: class 2 against the rest. `tall`, `wide`: two Gaussian clouds around random centroids, as in the paper,
which does not say how it scales its centroids. `colon`: the paper's way, columns correlated above 0.7 dropped, 20
principal components of the rest, both before the folds are made, so that test rows have a say in them; our copy of
the data was standardised within each tissue by its source, so its figures are not comparable to a point."""
L2S = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
L1S = (1e-3, 1e-2)
COVTYPE_L2S, SELECTION_ROWS = (1e-6, 1e-5, 1e-4, 1e-3), 20_000
FITS, ENOUGH_SECONDS = 5, 0.5
# accuracy %, seconds of the paper, in the order of FULL
PAPERS = {
    "SmSVM-l2": ((86.67, 0.0128), (79.03, 0.00212), (76.32, 22.52), (100.0, 0.2272), (100.0, 13.45)),
    "SmSVM-l1-l2": ((86.67, 0.0124), (80.65, 0.00174), (76.32, 35.59), (100.0, 0.1981), (100.0, 7.683)),
    "CG-l2": ((85.51, 0.1005), (74.19, 0.0358), (76.32, 193.35), (100.0, 0.4886), (100.0, 0.074)),
    "CG-l1-l2": ((86.52, 0.0672), (77.42, 0.02972), (76.32, 146.23), (100.0, 0.1779), (100.0, 0.0661)),
    "LinearSVC": ((86.81, 0.0002), (74.19, 0.00008), (76.35, 51.57), (100.0, 0.0071), (100.0, 0.0028)),
    "Nesterov-l2": ((86.67, 0.0693), (77.42, 0.00146), (74.57, 14.85), (100.0, 0.2581), (100.0, 0.0169)),
    "Nesterov-l1-l2": ((86.38, 0.081), (79.03, 0.00194), (74.52, 19.38), (100.0, 0.3622), (100.0, 0.0215)),
    "AdaDelta-l2": ((86.96, 0.017), (79.03, 0.00144), (76.29, 14.97), (100.0, 0.2588), (100.0, 0.0175)),
    "AdaDelta-l1-l2": ((87.39, 0.0202), (80.65, 0.0018), (76.29, 19.05), (100.0, 0.345), (100.0, 0.0219)),
    "Adam-l2": ((85.65, 0.0686), (79.03, 0.00145), (75.76, 14.44), (100.0, 0.2477), (100.0, 0.0182)),
    "Adam-l1-l2": ((86.38, 0.0207), (80.65, 0.00169), (75.86, 18.76), (100.0, 0.3526), (100.0, 0.0217)),
}
OURS = ("SmSVM-l2", "SmSVM-l1-l2")
BATCH, STEPS, PASSES = 256, 20, 50   # rows of a mini-batch at most, steps of a pass at least, passes
SMOOTHING = 0.1      # width of the hinge for the methods that the paper gives a subgradient
# by the first word of the row: class in cmargin.baselines and the paper's parameters
SMOOTHED = {"CG": ("CGDescentClassifier", {"tol": 1e-4}),
            "Nesterov": ("NesterovClassifier", {"step_size": 1e-3, "momentum": 0.9, "batch_size": BATCH,
                                                "random_state": 0}),
            "AdaDelta": ("AdaDeltaClassifier", {"decay": 0.9, "epsilon": 1e-8, "random_state": 0}),
            "Adam": ("AdamClassifier", {"step_size": 1e-3, "beta_1": 0.9, "beta_2": 0.8, "random_state": 0})}


def _paper_table():
    head = "| method | " + " | ".join(f"{name}: %, s" for name in FULL) + " |"
    body = [f"| {name} | " + " | ".join(f"{accuracy:.2f}, {seconds:g}" for accuracy, seconds in row) + " |"
            for name, row in PAPERS.items()]
    return "\n".join(["Accuracy in % and training seconds, Julia 1.7.3:", "", head, "|" + " --- |" * 6, *body])


PAPER = _paper_table()


def make(method, passes=PASSES):
    """The estimator of a row, its penalties not set yet; so many passes of methods that draw, which know no end."""
    first = method.partition("-")[0]
    if first == "SmSVM":
        return SmSVMClassifier(random_state=0)
    if first == "LinearSVC":
        return LinearSVC(loss="hinge", random_state=0)
    attribute, own = SMOOTHED[first]
    if "random_state" in own:
        own = {**own, "max_passes": passes}
    return getattr(baselines, attribute)(loss="smoothed_hinge", smoothing=SMOOTHING, **own)


def cells(quick):
    out = []
    for name in QUICK if quick else FULL:
        outer, inner = (2, 2) if quick else (5, 4) if name == "covtype" else (10, 6)
        out += [{"data": name, "method": method, "fold": fold, "outer": outer, "inner": inner,
                 "l2s": L2S[3:5] if quick else COVTYPE_L2S if name == "covtype" else L2S,
                 "l1s": (L1S[:1] if quick else L1S) if method.endswith("l1-l2") else (0.0,),
                 **({"fits": 1, "passes": 5} if quick else {})}
                for method in PAPERS for fold in range(outer)]
    return out


def folds(n):
    return StratifiedKFold(n, shuffle=True, random_state=0)


def measure(data, method, fold, outer, inner, l2s, l1s, fits=FITS, passes=PASSES):
    X, y = problem(data)
    train, test = list(folds(outer).split(X, y))[fold]
    model = make(method, passes)
    begin = time.perf_counter()
    if method in OURS:
        found = nested_cross_validation(X, y, l2s, l1s, outer=[(train, test)], inner=folds(inner), estimator=model)
        accuracy, chosen = float(found.test_scores[0]), {"l2": float(found.l2[0]), "l1": float(found.l1[0])}
        selection = time.perf_counter() - begin
        X_train, _ = standardised(X[train], X[test])
        seconds, fitted = _shortest(model.set_params(**chosen), X_train, y[train], fits)
    else:
        chosen = _select(model, X, y, train, inner, l2s, l1s)
        selection = time.perf_counter() - begin
        X_train, X_test = standardised(X[train], X[test])
        model.set_params(**_parameters(model, chosen, len(train)))
        seconds, fitted = _shortest(model, X_train, y[train], fits)
        accuracy = float(fitted.score(X_test, y[test]))
    gap = float(fitted.duality_gap_[0]) if hasattr(fitted, "duality_gap_") else None
    return [{"accuracy": accuracy, "fit_seconds": seconds, "selection_seconds": selection, **chosen, "gap": gap,
             "passes": float(getattr(fitted, "n_passes_", np.max(fitted.n_iter_)))}]


def _parameters(model, chosen, n_rows):
    """Parameters of an estimator for penalties on the mean loss and so many rows; LIBLINEAR's C is 1 / (l2 n)."""
    if isinstance(model, LinearSVC):
        return {"C": 1 / (chosen["l2"] * n_rows)}
    known = model.get_params()
    own = {name: value for name, value in chosen.items() if name in known}
    if known.get("batch_size") is not None:
        own["batch_size"] = max(1, min(BATCH, n_rows // STEPS))
    return own


def _select(model, X, y, train, inner, l2s, l1s):
    """Penalties of the best mean accuracy over the inner folds; of equal ones the strongest."""
    if len(train) > 10 * SELECTION_ROWS:
        train, _ = train_test_split(train, train_size=SELECTION_ROWS, stratify=y[train], random_state=0)
    n_inner = len(train) * (inner - 1) // inner
    pairs = [{"l2": l2, "l1": l1} for l1 in sorted(l1s, reverse=True) for l2 in sorted(l2s, reverse=True)]
    grid = [{f"model__{name}": [value] for name, value in _parameters(model, pair, n_inner).items()} for pair in pairs]
    pipeline = Pipeline([("scale", StandardScaler()), ("model", clone(model))])
    search = GridSearchCV(pipeline, grid, cv=folds(inner), refit=False).fit(X[train], y[train])
    return pairs[search.best_index_]


def _shortest(model, X, y, fits):
    """(seconds, fitted model) of the quickest of up to ``fits`` trainings."""
    spent = []
    while len(spent) < fits and sum(spent) < ENOUGH_SECONDS:
        begin = time.perf_counter()
        model.fit(X, y)
        spent.append(time.perf_counter() - begin)
    return min(spent), model


# ---------------------------------------------------------------- what came out

def summary(rows):
    """{data: {method: (accuracy %, seconds)}}, means over the folds."""
    return {name: {method: (100 * float(np.mean([r["accuracy"] for r in folds])),
                            float(np.mean([r["fit_seconds"] for r in folds])))
                   for method, folds in groups(part, "method").items()}
            for name, part in groups(rows, "data").items()}


def papers(name, method):
    """(accuracy %, seconds) of the paper, NaN for a set it does not have."""
    return PAPERS[method][FULL.index(name)] if name in FULL else (math.nan, math.nan)


def tables(rows):
    out = []
    for name, part in groups(rows, "data").items():
        body = []
        for method, of in groups(part, "method").items():
            accuracy, seconds = summary(of)[name][method]
            theirs = papers(name, method)
            gaps = [r["gap"] for r in of if r["gap"] is not None]
            spread = 100 * np.std([r["accuracy"] for r in of])
            body.append([method, f"{accuracy:.2f}", f"{spread:.2f}",
                         f"{theirs[0]:.2f}" if math.isfinite(theirs[0]) else None, seconds, theirs[1],
                         float(np.mean([r["passes"] for r in of])), f"{np.median([r['l2'] for r in of]):.0e}",
                         max(gaps) if gaps else None])
        out.append(Table(f"`{name}`; passes or iterations, the median of the l2 chosen, the largest certified gap",
                         ("method", "accuracy %", "deviation over folds", "the paper's %", "seconds",
                          "the paper's seconds", "passes", "l2", "gap"), body))
    return out


def claims(rows):
    found = summary(rows)
    return [_accuracy(found, rows), *_times(found), _wins(found), _small(found), _cg(found)]


def _accuracy(found, rows):
    off = {name: max((abs(methods[m][0] - papers(name, m)[0]), m) for m in OURS if m in methods)
           for name, methods in found.items() if name in FULL}
    of = groups(rows, "data", "method")

    def error(name, method):
        scores = [r["accuracy"] for r in of[name, method]]
        return 100 * np.std(scores) / np.sqrt(len(scores))

    return Claim("the accuracies of its table for SmSVM.",
                 all(value <= 1 for name, (value, _) in off.items() if name != "colon") if off else None,
                 "ours differ from them, in points, by at most "
                 + ", ".join(f"{value:.2f} on {name} (standard error over our folds {error(name, m):.2f})"
                             for name, (value, m) in off.items())
                 + "; counted as the same up to 1, colon, which is prepared otherwise, apart."
                 if off else "none of its data sets was run.")


def _ratios(found, other):
    """{data: seconds of SmSVM-l2 / seconds of ``other(data)``}."""
    return {name: methods["SmSVM-l2"][1] / other(name) for name, methods in found.items()
            if math.isfinite(other(name))}


def _times(found):
    to_paper = _ratios(found, lambda name: papers(name, "SmSVM-l2")[1])
    to_svc = _ratios(found, lambda name: found[name].get("LinearSVC", (0, math.nan))[1])
    words = {key: ", ".join(f"{value:.3g} on {name}" for name, value in ratios.items())
             for key, ratios in (("paper", to_paper), ("svc", to_svc))}
    big = {name: value for name, value in to_svc.items() if name == "covtype"}
    return [
        Claim("the training times of its table for SmSVM-l2 (other machine, other language).",
              all(value < 1 for value in to_paper.values()) if to_paper else None,
              f"our seconds over the paper's: {words['paper']} (counted as held where all are below 1)."
              if to_paper else "none of its data sets was run."),
        Claim("on the largest set SmSVM trains in less time than LIBLINEAR.",
              all(value < 1 for value in big.values()) if big else None,
              f"our seconds over LinearSVC's in the same run: {words['svc']}."),
        Claim("on the other sets LIBLINEAR trains in less time than SmSVM, 26 to 4,800 times less.",
              all(value > 1 for name, value in to_svc.items() if name != "covtype"),
              f"our seconds over LinearSVC's in the same run: {words['svc']} (above 1 LIBLINEAR is the quicker one)."),
    ]


def _wins(found):
    ahead = {name: max(methods[m][0] for m in OURS if m in methods)
             - max((value[0] for m, value in methods.items() if m not in OURS), default=math.nan)
             for name, methods in found.items()}
    known = {name: value for name, value in ahead.items() if math.isfinite(value)}
    return Claim("SmSVM outperforms or ties the others in accuracy most of the time.",
                 sum(value >= -1e-9 for value in known.values()) > len(known) / 2 if known else None,
                 "the better SmSVM against the best other row, in points: "
                 + ", ".join(f"{value:+.2f} on {name}" for name, value in known.items()) + ".")


def _small(found):
    stochastic = {m for m in PAPERS if m.split("-")[0] in ("Nesterov", "AdaDelta", "Adam")}
    covtype = found.get("covtype", {})
    times = {m: seconds for m, (_, seconds) in covtype.items()}
    if not stochastic & set(times):
        return Claim("on covtype the stochastic methods are the quickest.", None,
                     "they or covtype were not run.")
    quickest = min(times, key=times.get)
    return Claim("on covtype the stochastic methods are the quickest.", quickest in stochastic,
                 f"{quickest} was the quickest, {times[quickest]:.3g} s.")


def _cg(found):
    rows = {name: methods for name, methods in found.items() if "CG-l2" in methods}
    worse = {name: methods["CG-l2"][1] / float(np.median([s for m, (_, s) in methods.items() if m[:2] != "CG"]))
             for name, methods in rows.items()}
    return Claim("conjugate gradients are slower than the other methods.",
                 all(value > 1 for value in worse.values()) if worse else None,
                 "CG-l2 took " + ", ".join(f"{value:.3g} times on {name}" for name, value in worse.items())
                 + " the median of the methods that are not CG." if worse else "CG is not in this version.")


def draw(rows):
    from experiments._figures import curve, legend, panels

    found = summary(rows)
    figure, axes = panels(found)
    first = list(dict.fromkeys(method.partition("-")[0] for method in PAPERS))      # one colour each
    for name, methods in found.items():
        for method, (accuracy, seconds) in methods.items():
            word, _, penalties = method.partition("-")
            style = {"linestyle": "none", "markersize": 8, "marker": "^" if penalties == "l1-l2" else "o"}
            curve(axes[name], [seconds], [accuracy], method, first.index(word), **style)
            theirs = papers(name, method)
            if math.isfinite(theirs[0]):
                curve(axes[name], [theirs[1]], [theirs[0]], None, first.index(word), markerfacecolor="none", **style)
        axes[name].set(xscale="log", xlabel="seconds (hollow: the paper's)", ylabel="accuracy (%)")
    return legend(figure, axes)
