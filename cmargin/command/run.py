"""The three commands."""

import os
import warnings
from time import perf_counter

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import Normalizer, StandardScaler
from sklearn.utils import assert_all_finite

from cmargin.command import data, methods, model, page, report
from cmargin.command.progress import progress
from cmargin.command.whole import whole_file, writable
from cmargin.data import open_rows

BATCH = 1 << 22                # scores held together


def fit(options):
    writable(options.model)
    table = data.with_labels(options.data, options)
    estimator = methods.make(options.method, options.set, max_time=options.max_time, seed=options.seed,
                             threads=options.threads, checkpoint=options.checkpoint)
    scaler, X = _scaled(table.X, options.scale)
    n_classes = len(np.unique(table.y)) if np.ndim(table.y) == 1 else np.shape(table.y)[1]
    if n_classes > max(20, X.shape[0] / 2) and np.ndim(table.y) == 1:
        warnings.warn(f"{X.shape[0]:,} rows are of {n_classes:,} classes; --label names the column of labels.",
                      stacklevel=2)
    bar = progress(methods.passes_of(estimator), "pass", options.quiet)
    methods.watched(estimator, 1 if n_classes == 2 else n_classes, bar)
    begun, interrupted = perf_counter(), False
    try:
        _fit_telling_once(estimator, X, table.y)
    except KeyboardInterrupt:
        if not hasattr(estimator, "coef_"):
            raise
        interrupted = True
    finally:
        bar.end()
    seconds = perf_counter() - begun
    estimator.set_params(callback=None, checkpoint=None)
    facts = {"method": options.method, "class": type(estimator).__name__, "rows": int(X.shape[0]),
             "features": int(X.shape[1]), "classes": len(estimator.classes_), "seconds": round(seconds, 3),
             "passes": float(estimator.n_passes_), "interrupted": interrupted,
             "scaled": "no" if scaler is None else type(scaler).__name__}
    gap = np.max(getattr(estimator, "duality_gap_", np.nan))
    if np.isfinite(gap):                         # none is known with l2=0, or where no look was taken
        facts["largest duality gap"] = float(gap)
    model.Model(estimator, scaler, table.columns, table.label, facts).save(options.model)
    if interrupted or not options.quiet:
        _tell(facts, options.model, estimator.score(X, table.y))
    return 130 if interrupted else 0


def _fit_telling_once(estimator, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("once", ConvergenceWarning)
        estimator.fit(X, y)


def _tell(facts, path, accuracy):
    gap = facts.get("largest duality gap")
    print(f"{facts['class']} on {facts['rows']:,} rows x {facts['features']:,}, {facts['classes']} classes: "
          f"{facts['passes']:.3g} reads of the data, {facts['seconds']:.2f} s, "
          f"{'' if gap is None else f'certified to {gap:.1e}, '}accuracy on these rows {100 * accuracy:.2f} %.")
    print(f"{'Interrupted: the best weights so far are' if facts['interrupted'] else 'The model is'} in {path}.")


def _scaled(X, how):
    """(scaler or None, rows)"""
    home = open_rows(X)
    if how == "auto":
        how = "columns" if home.in_memory and not home.sparse else "none"
    if how == "none":
        return None, X
    if not home.in_memory:
        raise ValueError(f"--scale {how} needs rows that fit into memory; use --scale none.")
    scaler = StandardScaler(with_mean=not home.sparse) if how == "columns" else Normalizer()
    assert_all_finite(X, input_name="X")
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = scaler.fit_transform(X)
    if not np.isfinite(scaled.data if home.sparse else scaled).all():
        raise ValueError(f"X has numbers too large to be scaled by {how}; divide them, or use --scale none.")
    return scaler, scaled


def _opened(options):
    if options.out is not None:
        writable(options.out)
    return model.load(options.model)


def predict(options):
    found = _opened(options)
    classifier = found.classifier
    table = data.read(options.data, options, found)
    if options.what == "probabilities" and not hasattr(classifier, "predict_proba"):
        raise ValueError(f"{type(classifier).__name__} has no probabilities; --what scores gives what it goes by.")
    work = {"labels": classifier.predict, "scores": classifier.decision_function,
            "probabilities": getattr(classifier, "predict_proba", None)}[options.what]
    size = max(1, BATCH // len(classifier.classes_))
    n_rows = table.X.shape[0]
    parts = (work(found.scaled(table.X[lo:lo + size])) for lo in range(0, n_rows, size))
    if options.out is not None and options.out.endswith(".npy"):
        with whole_file(options.out, "wb") as file:
            np.save(file, np.concatenate(list(parts)))
        return 0
    with whole_file(options.out, "w") as file:
        for number, part in enumerate(parts):
            if np.ndim(part) == 2 and not number:
                print(",".join(map(str, classifier.classes_)), file=file)
            file.writelines(f"{_line(row)}\n" for row in part.tolist())
    return 0


def _line(row):
    return ",".join(map(str, row)) if isinstance(row, list) else str(row)


def evaluate(options):
    found = _opened(options)
    table = data.with_labels(options.data, options, found)
    told, curves = report.report(found, table, os.path.basename(options.data))
    told = {"model": {"file": os.path.basename(options.model), **found.facts}, **told}
    text = {"text": report.as_text, "json": report.as_json}.get(options.format)
    said = page.as_html(told, curves) if text is None else text(told)
    with whole_file(options.out, "w") as file:
        print(said, file=file)
    return 0
