"""``cmargin fit``: train a classifier, or a regression, on the rows of a file and store it as a model file."""

import warnings
from dataclasses import replace
from time import perf_counter

import numpy as np
from sklearn.base import is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import Normalizer, StandardScaler
from sklearn.utils import assert_all_finite

from cmargin._estimators.validation import InvalidParameterError
from cmargin._runtime.output import check_writable
from cmargin.cli import estimators, report_targets
from cmargin.cli.data import read_labelled
from cmargin.cli.model import Model
from cmargin.cli.progress import progress, reading
from cmargin.cli.report_labels import check_top, places
from cmargin.cli.targets import are_targets, in_words, names_of
from cmargin.data import open_rows
from cmargin.margins import precision_at_k


def run(options):
    """Train, store the model, print a summary; return the exit status, 130 where the fit was interrupted."""
    check_writable(options.model)
    with reading(options.data, options.quiet):
        table = read_labelled(options.data, options)
    estimator = estimators.make(options.method, options.set, max_time=options.max_time, seed=options.seed,
                                threads=options.threads, checkpoint=options.checkpoint)
    scaler, X = _scaled(table.X, options.scale)
    n_problems = _n_targets(options, estimator, table) if are_targets(options) else _n_problems(options, table)
    bar = progress(*estimators.steps_of(estimator, n_problems), options.quiet)
    estimators.report_passes(estimator, n_problems, bar)
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
    if options.top is not None:
        facts["top"] = options.top
    estimators.no_more_reports(estimator)
    estimator.set_params(checkpoint=None)
    counts = None if table.names is None else table.y.getnnz(axis=0)
    Model(estimator, scaler, table.columns, table.label, facts, table.encoder, table.names, counts).save(options.model)
    if interrupted or not options.quiet:
        _print_summary(facts, options.model, _on_these_rows(estimator, X, table, options.top))
    return 130 if interrupted else 0


def _n_problems(options, table):
    """Return the number of binary problems; refuse a --top beyond the classes, and warn of labels that may be none."""
    one_label, n_rows = np.ndim(table.y) == 1, table.X.shape[0]
    n_classes = len(np.unique(table.y)) if one_label else np.shape(table.y)[1]
    check_top(options.top, n_classes, options.data)
    if one_label and n_classes > max(20, n_rows / 2):
        numbers = "" if np.asarray(table.y).dtype.kind == "U" else "; --method smsvm-regressor fits numbers"
        warnings.warn(f"{n_rows:,} rows are of {n_classes:,} classes; --label names the column of labels{numbers}.",
                      stacklevel=3)
    return 1 if n_classes == 2 and one_label else n_classes


def _n_targets(options, estimator, table):
    """Return the number of targets, or of quantiles; refuse --top."""
    if options.top is not None:
        raise InvalidParameterError(f"--top is for classes; --method {options.method} predicts numbers.")
    estimator._check_parameters()
    return table.y.reshape(len(table.y), -1).shape[1] * len(estimator._losses())


def _predicts(estimator):
    what, names = names_of(estimator)
    return in_words(len(names), what)


def _facts(estimator, method, X, scaler, seconds, interrupted):
    """Return what the model file tells about the fit."""
    several = {"classes": len(estimator.classes_)} if is_classifier(estimator) else {"predicts": _predicts(estimator)}
    facts = {"method": method, "class": type(estimator).__name__, "rows": int(X.shape[0]),
             "features": int(X.shape[1]), **several, "seconds": round(seconds, 3),
             "passes": float(estimator.n_passes_), "interrupted": interrupted,
             "scaled": "no" if scaler is None else type(scaler).__name__}
    gap = np.max(getattr(estimator, "duality_gap_", np.nan))
    if np.isfinite(gap):                         # It is unknown with l2=0, or where the fit has not evaluated it.
        facts["largest duality gap"] = float(gap)
    return facts


def _on_these_rows(estimator, X, table, top):
    """Return in words how right the estimator is on its own rows, of several labels by its ``top`` best ones."""
    if not is_classifier(estimator):
        return _errors_on_these_rows(estimator, X, table)
    if table.names is None:
        words = f"accuracy on these rows {100 * estimator.score(X, table.y):.2f} %"
        if top is not None and np.ndim(table.y) == 1:
            hits = (estimator.predict_top_k(X, top) == np.asarray(table.y)[:, None]).any(axis=1)
            words += f", right class among the best {top} {100 * hits.mean():.2f} %"
        return words
    ks = places(len(table.names), top)
    found = precision_at_k(estimator.predict_top_k(X, max(ks)), table.y, ks)
    return "on these rows " + ", ".join(f"P@{k} {100 * value:.2f} %" for k, value in zip(ks, found, strict=True))


def _errors_on_these_rows(estimator, X, table):
    """Return R2 and the mean absolute error in words, of several quantiles the pinball loss of each."""
    found = report_targets.report(Model(estimator), replace(table, X=X), "")[0]["targets"]
    if "pinball loss" in found[0]:
        return "on these rows pinball loss " + ", ".join(f"{one['pinball loss']:.4g}" for one in found)
    r2 = [one["R2"] for one in found if one["R2"] is not None]
    error = np.mean([one["mean absolute error"] for one in found])
    return f"on these rows {f'R2 {np.mean(r2):.4f}, ' if r2 else ''}mean absolute error {error:.4g}"


def _print_summary(facts, path, how_right):
    gap, several = facts.get("largest duality gap"), "labels" if how_right.startswith("on these") else "classes"
    what = f"{facts['classes']} {several}" if "classes" in facts else facts["predicts"]
    print(f"{facts['class']} on {facts['rows']:,} rows x {facts['features']:,}, {what}: "
          f"{facts['passes']:.3g} reads of the data, {facts['seconds']:.2f} s, "
          f"{'' if gap is None else f'certified to {gap:.1e}, '}{how_right}.")
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
    # in place: the rows were read for this fit, and nothing else looks at them
    scaler = StandardScaler(with_mean=not rows.sparse, copy=False) if how == "columns" else Normalizer(copy=False)
    assert_all_finite(X, input_name="X")
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = scaler.fit_transform(X)
    if not np.isfinite(scaled.data if rows.sparse else scaled).all():
        raise ValueError(f"X has numbers too large to be scaled by {how}; divide them, or use --scale none.")
    return scaler.set_params(copy=True), scaled
