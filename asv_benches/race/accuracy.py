"""Seconds until each classifier has a given accuracy on the test rows: the best that SGD reaches, less a little."""

from time import perf_counter

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import normalize

from race.classifiers import Task, contenders, unfit
from race.data import LeftOut
from race.traces import joined, ratio

LESS = (1.0, 0.3)                              # points below SGD's best
MEASURES = ("top-1", "top-5")
STOCHASTIC = ("SLND", "BSN", "SLND one-vs-rest", "softmax SGD", "softmax SGD, centred", "SGD")
TARGETS = [(column, less) for column in range(len(MEASURES)) for less in LESS]
KEYS = [f"{MEASURES[column]} -{less:g}" for column, less in TARGETS]
RATIO = KEYS.index("top-1 -0.3")


def prepare(X):
    """float32 rows of unit length."""
    return normalize(X.astype(np.float32), copy=False)


def make_task(name, split):
    """(Task, seconds of preparing the training rows, which everybody has to wait)."""
    X, y, X_test, y_test = split
    classes, labels = np.unique(y, return_inverse=True)
    if len(classes) < 6:
        raise LeftOut(f"{name} has {len(classes)} classes; a race to top-5 accuracy needs 6 or more")
    if X_test is None:
        X, X_test, labels, labels_test = train_test_split(X, labels, test_size=1 / 3, random_state=3, stratify=labels)
    else:
        labels_test = np.searchsorted(classes, y_test)
    start = perf_counter()
    X = prepare(X)
    seconds = perf_counter() - start
    return Task(X, labels, prepare(X_test), labels_test), seconds


def levels(traces):
    """The accuracies to be reached, after the best of SGD's settings; of anyone's where SGD is not in the race."""
    of = traces.get("SGD") or {key: t for per in traces.values() for key, t in per.items()}
    best = np.max([p.value for t in of.values() for p in t.points], axis=0)
    return [float(best[column]) - less for column, less in TARGETS]


def label(parameters):
    texts = [f"{key}={value}" if isinstance(value, str) else f"{key}={value:g}" for key, value in parameters.items()]
    return ", ".join(texts) or "defaults"


def row_of(name, traces, wanted, before):
    """Seconds to every target, of the quickest setting for it; where none arrived, the time that was not enough."""
    row = {"solver": name}
    row["longest"] = joined(list(traces.values())).longest + before
    how = None
    for number, ((column, _), level) in enumerate(zip(TARGETS, wanted, strict=True)):
        first = {key: t.first(lambda value, c=column, lev=level: value[c] >= lev) for key, t in traces.items()}
        key, point = min(((k, p) for k, p in first.items() if p), key=lambda kp: kp[1].seconds, default=(None, None))
        row[KEYS[number]] = point.seconds + before if point else np.inf
        if number == RATIO and point:
            how = f"{key}, {point.run:g} passes" if name in STOCHASTIC else key
    points = [p.value for t in traces.values() for p in t.points]
    best = np.max(points, axis=0) if points else (np.nan, np.nan)
    ends = sorted({t.end for t in traces.values()})
    return row | {"best top-1": float(best[0]), "best top-5": float(best[1]), "how": how or "; ".join(ends)}


def race(task, before, limit, threads, names, costs, said=print):
    """(rows, levels) on one data set; ``said`` hears of every trace as it ends, for the whole may take long."""
    traces, rows = {}, []
    for name in names:
        reason = unfit(name, task.X)
        if reason:
            said(f"  {name}: {reason}")
            continue
        run, settings = contenders(costs)[name]
        traces[name] = {}
        run(task.small(), settings[0], min(limit, 0.3), threads)
        for parameters in settings:
            t = traces[name][label(parameters)] = run(task, parameters, limit, threads)
            best = np.max([p.value for p in t.points], axis=0) if t.points else (np.nan, np.nan)
            said(f"  {name} {label(parameters)}: best top-1 {best[0]:.2f}, top-5 {best[1]:.2f}, longest run "
                 f"{t.longest:.3g} s, {t.end}")
    wanted = levels(traces)
    rows = [row_of(name, per, wanted, before) for name, per in traces.items()]
    ours = next((row for row in rows if row["solver"] == "SLND"), None)
    for row in rows:
        row["ratio"], row["bound"] = ratio(row, ours, KEYS[RATIO])
    return rows, wanted
