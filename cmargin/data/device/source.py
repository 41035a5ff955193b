"""The data source of rows that live on a device: products are made there, sums and a few rows come to memory."""

import numpy as np

from cmargin.data.device.row_pass import DeviceRowPass
from cmargin.data.device.rows import DeviceRows
from cmargin.data.device.score_blocks import DeviceScoreBlocks
from cmargin.data.device.shared_start import DeviceStart
from cmargin.data.device.stochastic_rows import DeviceStochasticRows
from cmargin.data.remote import RowsElsewhere

STATE = 57                   # bytes that a problem keeps of a row


def refuse_device(what):
    raise ValueError(f"{what} needs the rows in memory, and these live on a device: SmSVMClassifier, its "
                     "path and search, SmSVMRegressor, SmSVMOneClass, MarginPursuitClassifier (solver='newton' or "
                     "'gd') and the multinomial SLNDClassifier and BSNClassifier (l2=0) train there; give the others "
                     "the rows as a NumPy array.")


class DeviceSource(RowsElsewhere):
    """`DataSource` over a tensor, `DeviceRows` of float32 or float64."""

    agreed, in_memory, shares_reads, checkpoints, sparse, row_is_contiguous = None, False, False, False, False, False
    storage = "device"

    def __init__(self, rows, y=None):
        if rows.ndim != 2:
            raise ValueError(f"Expected 2D array, got {rows.ndim}D array instead.")
        if rows.dtype is None:
            raise TypeError(f"Rows on a device must be float32 or float64, got {rows.X.dtype}.")
        self.rows, self.y, self.dtype = rows, y, rows.dtype
        self.n_rows, self.n_features = rows.shape
        self.entries = self.n_rows * self.n_features
        self.between_chunks = lambda: None                   # nothing here takes long

    # ------------------------------------------------------------ rows

    def take(self, rows, dtype):
        if isinstance(rows, slice):
            rows = np.arange(*rows.indices(self.n_rows))
        return np.ascontiguousarray(self.rows.take(rows).in_memory(), dtype=dtype)

    def keep(self, rows):
        return DeviceSource(self.rows.take(rows), None if self.y is None else self.y[rows])

    def over_columns(self, scale):
        self.refuse("Scaling of columns")

    def in_units(self, columns):
        at = self.rows.at
        centre, inverse = at.put(columns.centre, at.dtype), at.put(1 / columns.unit, at.dtype)
        return DeviceSource(DeviceRows((self.rows.X - centre) * inverse), self.y)

    def largest(self):
        xp = self.rows.xp
        return max((float(xp.max(xp.abs(self.rows.X[block, :]))) for block in self.rows.blocks), default=0.0)

    def let_go(self):
        """Nothing: what is on the device is let go with the fit."""

    def problems_at_once(self, wanted, bytes_each=0):
        """So many that what is kept of the rows takes no more than the rows themselves."""
        row_bytes = self.dtype.itemsize * self.n_features
        return max(1, min(wanted, row_bytes // STATE))

    # ------------------------------------------------------------ views

    def row_pass(self, signed_weight, *, intercept, n_threads, offset=None):
        put = self.rows.at.put
        more = () if offset is None else (put(np.asarray(offset, float)), np.asarray(offset, float))
        return DeviceRowPass(self.rows, put(np.asarray(signed_weight, float)), intercept, self, *more)

    def score_blocks(self, Y, weight, n_threads):
        return DeviceScoreBlocks(self, Y, weight, n_threads)

    def shared_start(self, labels, weights, intercept, l2, loss):
        return DeviceStart(self, labels, weights, intercept, l2, loss)

    def stochastic_rows(self, n_threads):
        return DeviceStochasticRows(self, n_threads)

    def refuse(self, what):
        refuse_device(what)
