"""asv's files of results, read: one value for every benchmark and choice of parameters."""

import json
from dataclasses import dataclass
from itertools import product
from pathlib import Path


@dataclass(frozen=True)
class Value:
    """One figure.

    Attributes
    ----------
    name : str
        file.Class.method
    parameters : tuple of str
        As asv writes them, without quotation marks.
    unit : str
    value : float or None
        None: it failed.
    """

    name: str
    parameters: tuple
    unit: str
    value: float | None


def read(path):
    """`Value` of (name, parameters), from a file of results; benchmarks.json must lie in the folder above its own."""
    path = Path(path)
    found = json.loads(path.read_text())
    known = json.loads((path.parent.parent / "benchmarks.json").read_text())
    values = {}
    for name, row in found["results"].items():
        about = known.get(name)
        if about is None:                        # a benchmark of another version
            continue
        row = dict(zip(found["result_columns"], row, strict=False))
        parameters = list(product(*row["params"])) or [()]
        for place, value in zip(parameters, row["result"] or [None] * len(parameters), strict=True):
            place = tuple(text.strip("'") for text in place)
            failed = value is None or value != value
            values[name, place] = Value(name, place, about["unit"], None if failed else float(value))
    return values


def commit_of(path):
    """The commit that a file of results was made of."""
    return json.loads(Path(path).read_text())["commit_hash"]


def newest(folder):
    """The last file of results under asv's folder of them."""
    files = [path for path in Path(folder).glob("*/*.json") if path.name != "machine.json"]
    if not files:
        raise FileNotFoundError(f"no results of asv in {folder}")
    return max(files, key=lambda path: path.stat().st_mtime)
