"""Rows that this process has or can read, opened: in memory, in files, on a device."""

import numpy as np
import scipy.sparse as sp

from cmargin.data.containers import arrays_of
from cmargin.data.device.rows import DeviceRows, of_tensors
from cmargin.data.device.source import DeviceSource
from cmargin.data.files.source import FileSource
from cmargin.data.files.sources import RowFiles, of_files
from cmargin.data.memory.source import MemorySource


def opened(X, y=None, sample_weight=None):
    """What can be checked: rows as an array, a frame, a sparse matrix, `RowFiles` or `DeviceRows`; labels and weights
    as arrays in memory. Tensors are looked for first, then files, then containers of other libraries."""
    if not (plain(X) and plain(y) and plain(sample_weight)):
        X, y, sample_weight = of_tensors(X, y, sample_weight)
        X, y = of_files(X, y)
    return arrays_of(X, y, sample_weight)


def plain(a):
    """Whether it is neither a tensor nor in files: a memory map may be too large to be read whole."""
    return a is None or type(a) is np.ndarray or sp.issparse(a)


def open_here(X, y=None):
    """What `cmargin.data.open_rows` gives, but for ranks and Dask collections."""
    X, y, _ = opened(X, y)
    return source_of(X, y)


def source_of(X, y=None):
    """The data source of rows and labels that `opened` has made, or checks have left."""
    if isinstance(X, np.ndarray):
        if X.ndim != 2:
            raise ValueError(f"Expected 2D array, got {X.ndim}D array instead.")
        X = np.asarray(X)
    elif not sp.issparse(X) and not isinstance(X, (RowFiles, DeviceRows)):
        raise TypeError(f"Rows can be a NumPy array or a CSR matrix, not {type(X).__name__}.")
    kind = FileSource if isinstance(X, RowFiles) else DeviceSource if isinstance(X, DeviceRows) else MemorySource
    source = kind(X, y)
    if y is not None and (getattr(y, "ndim", None) not in (1, 2)):
        raise TypeError(f"Labels can be a NumPy array or a sparse matrix of one or two dimensions, not {y!r:.80}.")
    if y is not None and y.shape[0] != source.n_rows:
        raise ValueError(f"Found input variables with inconsistent numbers of samples: [{source.n_rows}, {y.shape[0]}]")
    return source
