"""What users read of parameters: their types, and docstrings that say "As in" another class, written out."""

import ast
import inspect
import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from cmargin._runtime.checkpoint import Checkpoint

Method = TypeVar("Method", bound=Callable[..., Any])         # what a decorator takes and gives back
ByColumn = float | Sequence[float] | np.ndarray              # a number, or one for every column of X
ClassWeight = Mapping[Any, float | Sequence[float] | np.ndarray] | list[dict[int, float]] | np.ndarray | str | None
RandomState = int | np.random.RandomState | None
Callback = Callable[[Any], object] | None
CheckpointFile = str | os.PathLike[str] | Checkpoint | None


EXAMPLE = """Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from {module} import {name}
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> {name}({parameters}).fit(scale(X), y).score(scale(X), y) > 0.95
    True"""


def example(name, parameters="", module="cmargin.baselines"):
    """A section of a docstring that lies four columns in."""
    return EXAMPLE.format(name=name, parameters=parameters, module=module)


def described_by(other):
    """Decorator of a class in whose docstring an entry of names, its text "As in `Other`.", stands for theirs.

    Entries are those of the docstring of ``other``; a default is the class's own. Where docstrings are stripped there
    is nothing to write out.
    """
    def describe(kind):
        if kind.__doc__ and other.__doc__:
            known = {name: entry for section in ("Parameters", "Attributes")
                     for name, entry in entries(other.__doc__, section).items()}
            defaults = {name: parameter.default for name, parameter in inspect.signature(kind).parameters.items()}
            kind.__doc__ = re.sub(r"^(\w+(?:, \w+)*)\n    As in `\w+`\.$",
                                  lambda found: written_out(found[1].split(", "), known, defaults),
                                  inspect.cleandoc(kind.__doc__), flags=re.MULTILINE)
        return kind

    return describe


def written_out(names, known, defaults):
    found = []
    for name in names:
        head, *text = known[name]
        if name in defaults and "default=" in head:
            head = head[:head.index("default=")] + "default=" + shown(defaults[name], head)
        found.append("\n".join([head, *text]))
    return "\n".join(found)


def shown(default, head):
    """A default as it is written; where it is that of ``head``, as there."""
    written = head[head.index("default=") + len("default="):]
    if ast.literal_eval(written) == default:
        return written
    return f'"{default}"' if isinstance(default, str) else repr(default)


def entries(docstring, section):
    """name: lines of its entry, for every name of one section; a line may begin an entry of several names."""
    text = inspect.cleandoc(docstring)
    found = re.search(rf"^{section}\n-+\n(.*?)(?=\n\n\w[^\n]*\n-+\n|\Z)", text, re.MULTILINE | re.DOTALL)
    of_names, names = {}, []
    for line in found[1].splitlines() if found else ():
        if line and not line.startswith(" "):
            names = line.split(" : ")[0].split(", ")
            of_names.update({name: [] for name in names})
        for name in names:
            of_names[name].append(line if line.startswith(" ") or not line else
                                  name + (" : " + line.split(" : ", 1)[1] if " : " in line else ""))
    return of_names
