"""A race on one objective: seconds until each solver is within a relative distance of the best point anyone found.

Every solver trains on the same binary problems (two classes: one problem; more: every class against the rest), with
the intercept as one more column of ones, penalised: the form that all of them can solve. Solvers that keep no trace
are run again and again with a doubled number of iterations, each run timed from the start; the seconds of a target
are those of the first run that met it. So the figure is what a user would have waited who knew when to stop.
"""

import argparse
import csv
import sys
import warnings
from importlib import import_module
from time import perf_counter

import numpy as np

TARGETS = (1e-2, 1e-3, 1e-4)


def objective(w, X, y, l2):
    """(l2/2) |w|^2 + mean hinge; X holds the column of ones."""
    return l2 / 2 * (w @ w) + float(np.maximum(0.0, 1.0 - y * (X @ w)).mean())


def run_cmargin(X, y, l2, effort, n_jobs):
    from cmargin.smsvm import SmSVMClassifier
    model = SmSVMClassifier(l2=l2, tol=0.3 / effort, max_passes=1000, fit_intercept=False, n_jobs=n_jobs,
                            random_state=0)
    model.fit(X, y)
    return model.coef_[0], f"gap {model.duality_gap_[0]:.0e}, {model.n_passes_:.1f} passes"


def run_linear_svc(X, y, l2, effort, n_jobs):
    from sklearn.svm import LinearSVC
    model = LinearSVC(loss="hinge", C=1 / (l2 * len(y)), tol=1e-12, max_iter=effort, fit_intercept=False,
                      random_state=0)
    return model.fit(X, y).coef_[0], f"{effort} passes"


def run_sgd(X, y, l2, effort, n_jobs):
    from sklearn.linear_model import SGDClassifier
    model = SGDClassifier(alpha=l2, tol=None, max_iter=effort, fit_intercept=False, average=effort > 1, random_state=0)
    return model.fit(X, y).coef_[0], f"{effort} passes"


def run_snapml(X, y, l2, effort, n_jobs):
    snapml = import_module("snapml")
    model = snapml.SupportVectorMachine(regularizer=l2 * len(y), max_iter=effort, tol=1e-12, n_jobs=n_jobs,
                                        fit_intercept=False, verbose=False)
    return np.ravel(model.fit(X, y).coef_), f"{effort} passes"


def run_liblinear(X, y, l2, effort, n_jobs):
    liblinear = import_module("liblinear.liblinearutil")
    model = liblinear.train(y, X, f"-s 3 -q -e {1.0 / effort:g} -c {1 / (l2 * len(y)):.17g}")
    w = np.array(model.get_decfun()[0])
    return (w if model.get_labels()[0] > 0 else -w), f"e={1.0 / effort:g}"


def run_skglm(X, y, l2, effort, n_jobs):
    skglm = import_module("skglm")
    model = skglm.LinearSVC(C=1 / (l2 * len(y)), max_iter=effort, tol=1e-12, fit_intercept=False, warm_start=False)
    return np.ravel(model.fit(X, y).coef_), f"{effort} outer steps"


SOLVERS = {"cmargin": (run_cmargin, None), "LinearSVC": (run_linear_svc, None), "SGD": (run_sgd, None),
           "snapml": (run_snapml, "snapml"), "liblinear": (run_liblinear, "liblinear.liblinearutil"),
           "skglm": (run_skglm, "skglm")}


def installed(module):
    """True if the solver's package can be imported; scikit-learn and cmargin always can."""
    if module is None:
        return True
    try:
        import_module(module)
    except Exception:                          # a package that fails to load is as good as absent
        return False
    return True


def trace(run, X, y, l2, time_limit, n_jobs, factor=2):
    """[(seconds, objective, words)] of ever longer runs, until the time limit or until longer runs bring nothing."""
    points, effort, started = [], 1, perf_counter()
    run(X[:200], np.where(np.arange(min(200, len(y))) % 2, 1.0, -1.0), l2, 1, n_jobs)    # imports and compilers first
    while True:
        start = perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            w, words = run(X, y, l2, effort, n_jobs)
        seconds = perf_counter() - start
        points.append((seconds, objective(w, X, y, l2), words))
        settled = len(points) > 6 and points[-1][1] >= points[-4][1] * (1 - 1e-7)
        if settled or perf_counter() - started + factor * seconds > time_limit or effort > 10**7:
            return points
        effort *= factor


def race(X, y, l2, time_limit, n_jobs, names=None):
    """Run every installed solver on one binary problem; a list of rows, one a solver."""
    traces = {name: trace(run, X, y, l2, time_limit, n_jobs) for name, (run, module) in SOLVERS.items()
              if (names is None or name in names) and installed(module)}
    best = min(value for points in traces.values() for _, value, _ in points)
    rows = []
    for name, points in traces.items():
        row = {"solver": name, "best": min(value for _, value, _ in points) / best - 1, "how": points[-1][2]}
        for target in TARGETS:
            met = [(seconds, words) for seconds, value, words in points if value <= best * (1 + target)]
            row[f"{target:g}"] = min(met)[0] if met else np.inf
            if met and target == TARGETS[-1]:
                row["how"] = min(met)[1]
        rows.append(row)
    ours = next((row for row in rows if row["solver"] == "cmargin"), None)
    for row in rows:
        row["ratio"] = row["0.0001"] / ours["0.0001"] if ours else np.nan
    return rows


def problems(X, y):
    """(name, X with a column of ones, y in -1, +1) for every binary problem."""
    X = np.ascontiguousarray(np.column_stack([X, np.ones(len(X))]), dtype=float)
    classes = np.unique(y)
    for c in classes[1:] if len(classes) == 2 else classes:
        yield str(c), X, np.where(y == c, 1.0, -1.0)


def load(name, folder):
    """(X, y), columns standardised: a bundled set, one of the paper's synthetic sets, or NAME.npz in the folder."""
    rng = np.random.default_rng(0)
    if name in ("tall", "wide"):
        n, m = (10_000, 50) if name == "tall" else (100, 2500)
        X = rng.standard_normal((n, m))
        return X, np.where(X @ rng.standard_normal(m) + rng.standard_normal(n) > 0, 1, -1)
    if name in ("breast_cancer", "digits", "iris", "wine"):
        import sklearn.datasets
        X, y = getattr(sklearn.datasets, f"load_{name}")(return_X_y=True)
    else:
        if folder is None:
            raise SystemExit(f"race: {name!r} is not bundled; set CMARGIN_DATA to the folder that holds {name}.npz")
        with np.load(f"{folder}/{name}.npz") as stored:
            suffix = "_train" if "y_train" in stored else ""
            if "X" + suffix not in stored:
                raise SystemExit(f"race: {name} is sparse; the race is for dense data")
            X, y = stored["X" + suffix].astype(float), stored["y" + suffix]
    scale = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(scale > 0, scale, 1.0), y


def main(argv=None):
    """``python -m cmargin race``: table on standard output, CSV where asked."""
    import os
    parser = argparse.ArgumentParser(prog="cmargin race", description="seconds to suboptimality, one objective")
    parser.add_argument("--data", nargs="+", default=["breast_cancer", "digits", "tall", "wide"],
                        help="bundled sets, tall, wide, or NAME.npz in $CMARGIN_DATA; NAME:CLASS for one class of it")
    parser.add_argument("--l2", nargs="+", type=float, default=[1e-3])
    parser.add_argument("--time-limit", type=float, default=10.0, help="seconds per solver and problem, all its runs")
    parser.add_argument("--solvers", nargs="+", choices=list(SOLVERS), help="default: all that are installed")
    parser.add_argument("--n-jobs", type=int, default=2)
    parser.add_argument("--csv", help="write the table here too")
    options = parser.parse_args(argv)
    head = ["data", "class", "l2", "solver", *(f"{t:g}" for t in TARGETS), "ratio", "best", "how"]
    print("seconds to relative suboptimality; ratio: to cmargin at the last target; best: each solver's own best point")
    print(f"{'data':<14}{'class':>6}{'l2':>8}  {'solver':<10}" + "".join(f"{t:>10g}" for t in TARGETS)
          + f"{'ratio':>9}{'best':>9}  how")
    table = []
    for name in options.data:
        name, _, only = name.partition(":")
        X, y = load(name, os.environ.get("CMARGIN_DATA"))
        for c, A, code in problems(X, y):
            if only and c != only:
                continue
            for l2 in options.l2:
                for row in race(A, code, l2, options.time_limit, options.n_jobs, options.solvers):
                    row |= {"data": name, "class": c, "l2": l2}
                    table.append(row)
                    print(f"{name:<14}{c:>6}{l2:>8g}  {row['solver']:<10}"
                          + "".join(f"{row[f'{t:g}']:>10.4f}" for t in TARGETS)
                          + f"{row['ratio']:>9.1f}{row['best']:>9.0e}  {row['how']}", flush=True)
    if options.csv:
        with open(options.csv, "w", newline="") as file:
            writer = csv.DictWriter(file, head)
            writer.writeheader()
            writer.writerows(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
