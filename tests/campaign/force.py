"""Constants of the library that the campaign makes small, so that small problems go the ways of large ones.

The one place that knows where they live; a constant that has moved is an error, not a path left untested.
"""

from contextlib import ExitStack, contextmanager
from importlib import import_module
from unittest.mock import patch

HOMES = {
    # rows from which a subset is solved first, and how thick it must be
    "smallest": [("cmargin.solvers.cost", "SUBSET_FROM_ROWS")],
    "rows_per_column": [("cmargin.solvers.cost", "SUBSET_ROWS_PER_COLUMN")],
    # entries from which a pass over the rows uses threads
    "small": [("cmargin.data.memory.row_pass", "SMALL"), ("cmargin._estimators.smsvm_fit", "SMALL")],
}


@contextmanager
def forced(**values):
    """Context in which the named constants have other values."""
    with ExitStack() as stack:
        for name, value in values.items():
            for module, attribute in HOMES[name]:
                stack.enter_context(patch.object(import_module(module), attribute, value))
        yield
