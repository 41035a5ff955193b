"""``cmargin fit``: train a classifier on the rows of a file and store it as a model file."""

import warnings
from time import perf_counter

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import Normalizer, StandardScaler
from sklearn.utils import assert_all_finite

from cmargin._runtime.output import check_writable
from cmargin.cli import estimators
from cmargin.cli.data import read_labelled
from cmargin.cli.model import Model
from cmargin.cli.progress import progress
from cmargin.data import open_rows


def run(options):
    """Train, store the model, print a summary; return the exit status, 130 where the fit was interrupted."""
    check_writable(options.model)
    table = read_labelled(options.data, options)
    estimator = estimators.make(options.method, options.set, max_time=options.max_time, seed=options.seed,
                                threads=options.threads, checkpoint=options.checkpoint)
    scaler, X = _scaled(table.X, options.scale)
    one_label = np.ndim(table.y) == 1
    n_classes = len(np.unique(table.y)) if one_label else np.shape(table.y)[1]
    if one_label and n_classes > max(20, X.shape[0] / 2):
        warnings.warn(f"{X.shape[0]:,} rows are of {n_classes:,} classes; --label names the column of labels.",
                      stacklevel=2)
    bar = progress(estimators.most_passes(estimator), "pass", options.quiet)
    estimators.report_passes(estimator, 1 if n_classes == 2 else n_classes, bar)
    begun, interrupted = perf_counter(), False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("once", ConvergenceWarning)
            estimator.fit(X, table.y)
    except KeyboardInterrupt:
        if not hasattr(estimator, "coef_"):
            raise
        interrupted = True
    finally:
        bar.end()
    facts = _facts(estimator, options.method, X, scaler, perf_counter() - begun, interrupted)
    estimator.set_params(callback=None, checkpoint=None)
    Model(estimator, scaler, table.columns, table.label, facts, table.encoder).save(options.model)
    if interrupted or not options.quiet:
        _print_summary(facts, options.model, estimator.score(X, table.y))
    return 130 if interrupted else 0


def _facts(estimator, method, X, scaler, seconds, interrupted):
    """Return what the model file tells about the fit."""
    facts = {"method": method, "class": type(estimator).__name__, "rows": int(X.shape[0]),
             "features": int(X.shape[1]), "classes": len(estimator.classes_), "seconds": round(seconds, 3),
             "passes": float(estimator.n_passes_), "interrupted": interrupted,
             "scaled": "no" if scaler is None else type(scaler).__name__}
    gap = np.max(getattr(estimator, "duality_gap_", np.nan))
    if np.isfinite(gap):                         # It is unknown with l2=0, or where the fit has not evaluated it.
        facts["largest duality gap"] = float(gap)
    return facts


def _print_summary(facts, path, accuracy):
    gap = facts.get("largest duality gap")
    print(f"{facts['class']} on {facts['rows']:,} rows x {facts['features']:,}, {facts['classes']} classes: "
          f"{facts['passes']:.3g} reads of the data, {facts['seconds']:.2f} s, "
          f"{'' if gap is None else f'certified to {gap:.1e}, '}accuracy on these rows {100 * accuracy:.2f} %.")
    print(f"{'Interrupted: the best weights so far are' if facts['interrupted'] else 'The model is'} in {path}.")


def _scaled(X, how):
    """Return (fitted scaler or None, scaled rows)."""
    rows = open_rows(X)
    if how == "auto":
        how = "columns" if rows.in_memory and not rows.sparse else "none"
    if how == "none":
        return None, X
    if not rows.in_memory:
        raise ValueError(f"--scale {how} needs rows that fit into memory; use --scale none.")
    scaler = StandardScaler(with_mean=not rows.sparse) if how == "columns" else Normalizer()
    assert_all_finite(X, input_name="X")
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = scaler.fit_transform(X)
    if not np.isfinite(scaled.data if rows.sparse else scaled).all():
        raise ValueError(f"X has numbers too large to be scaled by {how}; divide them, or use --scale none.")
    return scaler, scaled
