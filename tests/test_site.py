"""The reference has every public name, and a class says what its parameters are. Sphinx is not needed."""

import inspect
import re
from pathlib import Path

import pytest

import cmargin
from cmargin import baselines, datasets, export, homes, margins, plots

REFERENCE = Path(__file__).resolve().parents[1] / "doc" / "api.rst"
CLASSES = dict.fromkeys(getattr(module, name) for module in (cmargin, baselines) for name in module.__all__
                        if inspect.isclass(getattr(module, name)))


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


@pytest.mark.parametrize("estimator", CLASSES, ids=lambda estimator: estimator.__name__)
def test_every_parameter_is_described(estimator):
    described = re.search(r"Parameters\n\s+-+\n(.*?)(\n\s+Attributes\n|$)", estimator.__doc__, re.DOTALL).group(1)
    heads = re.findall(r"^    (\w[\w, ]*?)(?: :|$)", described, re.MULTILINE)
    assert set(inspect.signature(estimator).parameters) <= {name for head in heads for name in head.split(", ")}
