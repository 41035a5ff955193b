"""SLND and its like where columns are of very different size: trained on rows in units, told of in those of X."""

import time
from dataclasses import dataclass, replace

import numpy as np

from cmargin._estimators.columns_said import said_of_columns
from cmargin._runtime.clock import TimeUp
from cmargin.data.columns import Columns, columns_of, without_digits
from cmargin.data.memory.shared_start import some_places

ROWS = 1000


@dataclass
class InUnits:
    """What a fit is trained on.

    Attributes
    ----------
    home : Home of the rows in units, or as they are
    columns : Columns or None
    said : sentence on columns that nothing helps, or None
    interrupted : bool
        Whether a Ctrl-C came while rows were looked at: the run is to end as if it had heard it.
    """

    home: object
    columns: Columns | None = None
    said: str | None = None
    interrupted: bool = False

    def start(self, start):
        """A `Start` by weights of the rows as they are, for these."""
        if start is None or self.columns is None:
            return start
        W, bias = self.columns.inner(start.W, start.bias)
        return replace(start, W=W, bias=bias)

    def weights(self, fit):
        """Those of ``fit`` for the rows as they are."""
        return (fit.W, fit.bias) if self.columns is None else self.columns.outer(fit.W, fit.bias)


def in_units(estimator, home, deadline, start):
    """`InUnits`: units that a fit to go on from had, or those that a few rows say.

    Second moments, their eigenvectors and whitened rows are of the dtype of X: in single precision they know nothing of
    other columns beside one a hundred times as large, in double beside one some ten thousand times as large.
    """
    try:
        X = few_rows(home, deadline)
    except TimeUp:
        return InUnits(home)
    except KeyboardInterrupt:
        return InUnits(home, interrupted=True)
    columns = columns_of(X, estimator.fit_intercept, home.dtype, typical=True)
    translates = estimator._in_units and not (home.agreed is not None and home.shares_reads)   # Dask's rows stay
    far = None if columns is None or translates else columns.largest
    said = said_of_columns(estimator, without_digits(X, home.dtype).tolist(), far, home.dtype)
    if start is not None and start.inverse is not None:
        columns = estimator._columns             # those that the inverse is of
    if columns is None or not translates:
        return InUnits(home, None, said)
    columns = replace(columns, centre=columns.centre.astype(home.dtype).astype(float))
    return InUnits(home.in_units(columns), columns, said)


def few_rows(home, deadline):
    """Float64 rows that stand for all."""
    def watch():
        if deadline is not None and time.perf_counter() > deadline:
            raise TimeUp

    if home.agreed is not None:
        return home.some_rows(ROWS)[0]
    if hasattr(home, "between_chunks"):
        home.between_chunks = watch              # while a disk is waited for
    return home.take(some_places(home.n_rows, ROWS), np.float64)
