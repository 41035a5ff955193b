"""``cmargin evaluate``: a report on a model and labelled rows, or rows with targets."""

import os

from cmargin._estimators.validation import InvalidParameterError
from cmargin._runtime.output import check_writable, output_file
from cmargin.cli import report, report_labels, report_targets
from cmargin.cli.data import read_labelled
from cmargin.cli.model import load
from cmargin.cli.report_html import as_html
from cmargin.cli.report_text import as_json, as_text


def run(options):
    """Write the report in the format that is asked for; return the exit status."""
    if options.out is not None:
        check_writable(options.out)
    model = load(options.model, options.trust_pickle)
    table = read_labelled(options.data, options, model)
    name = os.path.basename(options.data)
    if model.regresses:
        if options.top is not None:
            raise InvalidParameterError("--top is for classes; this model is of a regression.")
        facts, curves = report_targets.report(model, table, name)
    elif model.labels is not None:
        facts, curves = report_labels.report(model, table, name, options.top)
    elif options.top is None:
        facts, curves = report.report(model, table, name)
    else:
        raise InvalidParameterError("evaluate takes --top where rows have several labels; this model has one a row.")
    facts = {"model": {"file": os.path.basename(options.model), **model.facts}, **facts}
    if options.format == "html":
        text = as_html(facts, curves)
    else:
        text = as_json(facts) if options.format == "json" else as_text(facts)
    with output_file(options.out, "w") as file:
        print(text, file=file)
    return 0
