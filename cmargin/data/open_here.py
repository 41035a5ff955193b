"""Rows that this process has or can read, opened: in memory, in files, on a device."""

import numpy as np
import scipy.sparse as sp

from cmargin.data.containers import rows_array, weight_array
from cmargin.data.device.arrays import beside, brought, on_device
from cmargin.data.device.rows import DeviceRows
from cmargin.data.device.source import DeviceHome
from cmargin.data.files import sources
from cmargin.data.files.source import FileHome
from cmargin.data.files.sources import RowFiles
from cmargin.data.label_arrays import label_array
from cmargin.data.memory.source import MemoryHome
from cmargin.data.row_index import refuse_other_order


def opened(X, y):
    """Rows that are tensors, paths, or memory maps too large for memory, opened, and their labels; or as given."""
    if isinstance(X, DeviceRows):
        return X, label_array(beside(X.X, y, "y"))
    X, y = brought(X, "X"), labels_beside(X, y)
    if on_device(X):
        return DeviceRows(X), y
    X = sources.opened(X)
    return X if isinstance(X, RowFiles) else rows_array(X), y


def labels_beside(X, y):
    """Labels as `fit` takes them, of files or on the device of X, as an array or sparse matrix."""
    refuse_other_order(X, y, "y")
    return label_array(sources.labels_beside(X, beside(X, y, "y")))


def weights_beside(X, sample_weight):
    """Sample weights as `fit` takes them, which may be on the device of X, as an array."""
    refuse_other_order(X, sample_weight, "sample_weight")
    return weight_array(beside(X, sample_weight, "sample_weight"))


def open_here(X, y=None):
    """What `cmargin.data.open_rows` gives, but for ranks and Dask collections."""
    X, y = opened(X, y)
    if isinstance(X, np.ndarray):
        if X.ndim != 2:
            raise ValueError(f"Expected 2D array, got {X.ndim}D array instead.")
        X = np.asarray(X)
    elif not sp.issparse(X) and not isinstance(X, (RowFiles, DeviceRows)):
        raise TypeError(f"Rows can be a NumPy array or a CSR matrix, not {type(X).__name__}.")
    kind = FileHome if isinstance(X, RowFiles) else DeviceHome if isinstance(X, DeviceRows) else MemoryHome
    home = kind(X, y)
    if y is not None and (getattr(y, "ndim", None) not in (1, 2)):
        raise TypeError(f"Labels can be a NumPy array or a sparse matrix of one or two dimensions, not {y!r:.80}.")
    if y is not None and y.shape[0] != home.n_rows:
        raise ValueError(f"Found input variables with inconsistent numbers of samples: [{home.n_rows}, {y.shape[0]}]")
    return home
