"""The reference has every public name. Sphinx is not needed."""

import inspect
import re
from pathlib import Path

import pytest

import cmargin
from cmargin import baselines, datasets, export, homes, margins, plots

REFERENCE = Path(__file__).resolve().parents[1] / "doc" / "api.rst"


def public_names():
    listed = {name for module in (cmargin, baselines, export, homes, margins) for name in module.__all__}
    made_there = {name for module in (datasets, plots) for name, value in vars(module).items()    # without __all__
                  if inspect.isclass(value) and value.__module__ == module.__name__}
    return (listed | made_there | {"load", "available", "read_npz"}) - {"__version__"}


def test_every_public_name_is_in_the_reference():
    if not REFERENCE.exists():
        pytest.skip("the documentation is not beside the tests")
    text = REFERENCE.read_text()
    assert {name for name in public_names() if not re.search(rf"[\s.]{name}\s", text)} == set()
