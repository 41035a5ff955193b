"""The Markdown page of an experiment."""

import math

from cmargin import datasets

VERDICT = {True: "Held here.", False: "Did not hold here.", None: "Not measured here.", "asked": "A question."}


def number(value):
    """A cell as text: counts whole, other numbers to four digits."""
    if value is None:
        return ""
    if isinstance(value, bool | str):
        return str(value)
    if isinstance(value, int):
        return str(value)
    if not math.isfinite(value):
        return "never" if value == math.inf else "–"
    if value == 0 or 0.001 <= abs(value) < 10_000:
        return f"{value:.4g}"
    return f"{value:.2e}"


def markdown(table):
    lines = [f"| {' | '.join(table.header)} |", f"|{' --- |' * len(table.header)}"]
    lines += [f"| {' | '.join(number(value) for value in row)} |" for row in table.rows]
    return ([table.caption + ":", ""] if table.caption else []) + lines + [""]


def machines(cells):
    """One line for each machine that cells were measured on."""
    different = []
    for kept in cells:
        if kept["machine"] not in different:
            different.append(kept["machine"])
    for described in different:
        on = "" if len(different) == 1 else \
            f"{sum(kept['machine'] == described for kept in cells)} of the measurements: "
        hardware = f"{described['processor']}, {described['cores']} cores, {described['threads']} threads"
        rest = ", ".join(f"{name} {value}" for name, value in described.items()
                         if name not in ("processor", "cores", "threads", "system"))
        yield f"- {on}{hardware}; {described['system']}; {rest}."


def _notes(rows):
    """Stand-ins among the data, each named."""
    names = dict.fromkeys(row["data"] for row in rows if "data" in row)
    for name in names:
        note = datasets.load(name).note if name in datasets.GENERATED else ""
        if note:
            yield f"`{name}`: {note}."


def page(module, name, outcome, picture, quick):
    """The whole page as text."""
    lines = [f"# {module.TITLE}", "", f"{module.SOURCE}. Made by `python -m cmargin experiments {name}"
             f"{' --quick' if quick else ''}`.", ""]
    if quick:
        lines += ["**A quick run, on small bundled or generated data and with fewer measurements than the setting "
                  "says: it shows that the experiment runs, not what it would find.**", ""]
    lines += ["## Setting", "", module.SETTING.strip(), ""]
    lines += [line for note in _notes(outcome.rows) for line in (note, "")]
    own = module.notes(outcome.rows) if hasattr(module, "notes") else []
    lines += [line for note in own for line in (note, "")]
    lines += [line for sentence in outcome.missing for line in (f"Left out: {sentence}", "")]
    lines += ["## The paper's figures", "", module.PAPER.strip(), "", "## Ours", ""]
    for table in module.tables(outcome.rows):
        lines += markdown(table)
    if picture:
        lines += [f"![{module.TITLE}]({picture})", ""]
    lines += ["## Did the paper's claims hold?", ""]
    for claim in module.claims(outcome.rows):
        lines += [f"- **{VERDICT[claim.held]}** The paper: {claim.text} Here: {claim.found}"]
    lines += ["", "## Machine", "", *machines(outcome.cells)]
    seconds = sum(kept["seconds"] for kept in outcome.cells)
    lines += [f"- {len(outcome.cells)} measurements, {seconds:.0f} s in all."]
    lines += [f"- Warning in {count} of them: {text}." for text, count in outcome.warnings.items()]
    return "\n".join(lines) + "\n"
