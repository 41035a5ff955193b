"""``cmargin predict``: labels, probabilities or scores of rows, one line each."""

import numpy as np

from cmargin._runtime.output import check_writable, output_file
from cmargin.cli.data import read
from cmargin.cli.model import load

CALLS = {"labels": "predict", "scores": "decision_function", "probabilities": "predict_proba"}      # by --what


def run(options):
    """Write what ``--what`` asks for; return the exit status."""
    if options.out is not None:
        check_writable(options.out)
    model = load(options.model, options.trust_pickle)
    classifier = model.classifier
    table = read(options.data, options, model)
    if not hasattr(classifier, CALLS[options.what]):
        raise ValueError(f"{type(classifier).__name__} has no probabilities; --what scores gives what it goes by.")
    method = getattr(classifier, CALLS[options.what])
    parts = (method(rows) for _, rows in model.batches(table.X))
    if options.out is not None and options.out.endswith(".npy"):
        with output_file(options.out, "wb") as file:
            np.save(file, np.concatenate(list(parts)))
        return 0
    with output_file(options.out, "w") as file:
        for number, part in enumerate(parts):
            if np.ndim(part) == 2 and not number:
                print(",".join(map(str, classifier.classes_)), file=file)
            file.writelines(f"{_line(row)}\n" for row in part.tolist())
    return 0


def _line(row):
    return ",".join(map(str, row)) if isinstance(row, list) else str(row)
