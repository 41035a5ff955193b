"""``cmargin predict``: labels, probabilities or scores of rows, or a regression's numbers, one line each."""

from functools import partial

import numpy as np

from cmargin._estimators.validation import InvalidParameterError
from cmargin._runtime.output import check_writable, output_file
from cmargin.cli.data import read
from cmargin.cli.model import load
from cmargin.cli.report_labels import check_top
from cmargin.cli.targets import names_of

CALLS = {"labels": "predict", "scores": "decision_function", "probabilities": "predict_proba"}      # by --what


def run(options):
    """Write what ``--what`` asks for; return the exit status."""
    if options.out is not None:
        check_writable(options.out)
    model = load(options.model, options.trust_pickle)
    classifier = model.classifier
    table = read(options.data, options, model)
    if model.regresses:
        _refuse_for_numbers(options, model)
    if options.top is not None:
        _check_top(options, model)
    if not hasattr(classifier, CALLS[options.what]):
        raise ValueError(f"{type(classifier).__name__} has no probabilities; --what scores gives what it goes by.")
    method = getattr(classifier, CALLS[options.what]) if options.top is None else \
        partial(_best, classifier.predict_top_k, options.top, model.labels)
    parts = (method(rows) for _, rows in model.batches(table.X))
    if options.out is not None and options.out.endswith(".npy"):
        with output_file(options.out, "wb") as file:
            np.save(file, np.concatenate(list(parts)))
        return 0
    with output_file(options.out, "w") as file:
        names = names_of(classifier)[1] if model.regresses else \
            classifier.classes_ if model.labels is None else model.labels
        for number, part in enumerate(parts):
            if model.labels is not None and options.what == "labels" and options.top is None:
                part = _named(part, names)
            elif np.ndim(part) == 2 and not number and options.top is None:
                print(",".join(map(str, names)), file=file)
            file.writelines(f"{_line(row)}\n" for row in (part if isinstance(part, list) else part.tolist()))
    return 0


def _refuse_for_numbers(options, model):
    """Raise for what only classes have."""
    asked = "--top" if options.top is not None else f"--what {options.what}" if options.what != "labels" else None
    if asked is not None:
        raise InvalidParameterError(f"{asked} is for classes; {options.model} is of a regression.")


def _check_top(options, model):
    if options.what != "labels":
        raise InvalidParameterError("--top goes with --what labels.")
    check_top(options.top, len(model.classifier.classes_), options.model)


def _best(method, top, names, rows):
    """Return (n, top) classes, or names of labels, of the largest scores."""
    found = method(rows, top)
    return found if names is None else names[found]


def _named(indicator, names):
    """Return a list of the names of the labels of every row."""
    return [names[row].tolist() for row in indicator.astype(bool)]


def _line(row):
    return ",".join(map(str, row)) if isinstance(row, list) else str(row)
