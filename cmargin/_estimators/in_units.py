"""SLND and its like where columns are of very different size: trained on rows in units, reported in those of X."""

import time
from dataclasses import dataclass, replace

import numpy as np

from cmargin._estimators.progress import said_of_columns
from cmargin._runtime.clock import TimeUp
from cmargin.data.columns import Columns, columns_of, without_digits
from cmargin.data.memory.shared_start import some_places
from cmargin.data.memory.stochastic_rows import SAMPLE_NUMBERS, SAMPLE_ROWS
from cmargin.solvers import cost
from cmargin.solvers.sgd.low_rank import default_samples


@dataclass
class InUnits:
    """What a fit is trained on."""

    source: object                          # DataSource of the rows in units, or as they are
    columns: Columns | None = None
    said: str | None = None                 # a sentence on columns that nothing helps
    interrupted: bool = False               # by a Ctrl-C while rows were read: the run ends as if it had heard it
    occurring: np.ndarray | None = None     # (n_kept,) int64, the columns that `without_empty_columns` left; None: all
    n_features: int = 0                     # columns of X

    def without_empty_columns(self, estimator, n_problems):
        """These, or with CSR rows over the columns alone that occur, where that takes less memory.

        Hashed texts leave most of a million columns empty, whose weights stay 0, and weights are not all that there is
        a number of for each. Of columns as many are left as H needs to be of more columns than rows, as with all of
        them, and `StochasticRows` to read as many rows at a time. So it is the same fit; to the bit for classes
        one-vs-rest in double precision, else but for the rounding of products that BLAS makes in blocks of columns.
        """
        source, e = self.source, estimator
        if not (source.in_memory and source.sparse):
            return self
        behind = e.hessian_samples or default_samples(source.n_rows, source.n_features, e.rank, e.tail)
        occurring = source.occurring(max(min(behind, source.n_rows) + 1, SAMPLE_NUMBERS // SAMPLE_ROWS))
        if (source.n_features - len(occurring)) * n_problems <= source.entries:
            return self
        return replace(self, source=source.of_columns(occurring), occurring=occurring, n_features=source.n_features)

    def start(self, start):
        """A `Start` by weights of the rows as they are, for these."""
        if start is None or self.columns is None:
            return start
        W, bias = self.columns.inner(start.W, start.bias)
        return replace(start, W=W, bias=bias)

    def weights(self, fit):
        """Those of ``fit`` for the rows as they are."""
        W = fit.W
        if self.occurring is not None:
            W = np.zeros((len(W), self.n_features), W.dtype)
            W[:, self.occurring] = fit.W
        return (W, fit.bias) if self.columns is None else self.columns.outer(W, fit.bias)

    def inverse(self, fit):
        """That of ``fit``, which says of what columns it is."""
        known = self.occurring is None or fit.inverse is None
        return fit.inverse if known else replace(fit.inverse, columns=self.occurring)


def in_units(estimator, source, deadline, start):
    """`InUnits`: units that a fit to go on from had, or those that a few rows say.

    Second moments, their eigenvectors and whitened rows are of the dtype of X: in single precision they know nothing of
    other columns beside one a hundred times as large, in double beside one some ten thousand times as large.
    """
    try:
        X = few_rows(source, deadline)
    except TimeUp:
        return InUnits(source)
    except KeyboardInterrupt:
        return InUnits(source, interrupted=True)
    columns = columns_of(X, estimator.fit_intercept, source.dtype, typical=True)
    translates = estimator._in_units and not (source.agreed is not None and source.shares_reads)   # Dask's rows stay
    far = None if columns is None or translates else columns.largest
    said = said_of_columns(estimator, without_digits(X, source.dtype).tolist(), far, source.dtype)
    if start is not None and start.inverse is not None:
        columns = estimator._columns             # those that the inverse is of
    if columns is None or not translates:
        return InUnits(source, None, said)
    columns = replace(columns, centre=columns.centre.astype(source.dtype).astype(float))
    return InUnits(source.in_units(columns), columns, said)


def few_rows(source, deadline):
    """Float64 rows that stand for all."""
    def watch():
        if deadline is not None and time.perf_counter() > deadline:
            raise TimeUp

    if source.agreed is not None:
        return source.some_rows(cost.MOMENT_ROWS)[0]
    if hasattr(source, "between_chunks"):
        source.between_chunks = watch              # while a disk is waited for
    return source.take(some_places(source.n_rows, cost.MOMENT_ROWS), np.float64)
