"""Row blocks of an array, or of a stream of row batches, looked at once on the way in.

Every function of this package takes its rows as an array or as an iterator of row batches, and works on blocks of
bounded size: nothing of size rows x classes is ever made, and a float32 or memory-mapped array is never copied whole.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from cmargin._runtime.aligned import aligned, contiguous
from cmargin.data.containers import unmasked

Batches = ArrayLike | Iterable[ArrayLike]     # of rows

BLOCK_ENTRIES = 1 << 18     # 2 MB of float64: stays in cache, and a Python loop over blocks answers Ctrl-C


def as_real(values, name):
    """``values`` as an array of real numbers, or a ValueError naming the dtype."""
    values = np.asarray(unmasked(values, name))
    if values.dtype.kind not in "fiub":
        raise ValueError(f"{name} must be an array of real numbers, got dtype {values.dtype}")
    return values


def is_stream(values):
    """Whether ``values`` is an iterator of row batches; a list is an array, not a stream."""
    return hasattr(values, "__next__")


def row_blocks(values, name, ndims=(1, 2)):
    """Yield ``(first row, block)`` over all rows; blocks are finite float64 arrays.

    Parameters
    ----------
    values : array of shape (n,) or (n, K), or iterator of such arrays
        The batches of an iterator are consecutive rows; they agree in dimension and columns, an empty one is skipped.
    name : str
        What to call ``values`` in an error message.
    ndims : tuple of int
        Dimensions that the caller can use.
    """
    tail = None
    n_rows = 0
    for batch in values if is_stream(values) else [values]:
        batch = as_real(batch, name)
        if batch.ndim not in ndims:
            allowed = " or ".join(str(ndim) for ndim in ndims)
            raise ValueError(f"{name} must have {allowed} dimensions, got shape {batch.shape}")
        if tail is not None and batch.shape[1:] != tail:
            raise ValueError(f"the batches of {name} disagree: shape {batch.shape} after rows of shape {tail}")
        tail = batch.shape[1:]
        if 0 in tail:
            raise ValueError(f"{name} has no columns: got shape {batch.shape}")
        step = max(1, BLOCK_ENTRIES // int(np.prod(tail)))
        for lo in range(0, len(batch), step):
            block = contiguous(batch[lo:lo + step], np.float64)
            if not np.isfinite(block).all():
                raise ValueError(f"{name} contains NaN or infinity")
            yield n_rows + lo, block
        n_rows += len(batch)
    if n_rows == 0:
        raise ValueError(f"{name} is empty: at least one row is needed")


def labelled_blocks(values, y, name):
    """Yield ``(block, labels of its rows)``: `row_blocks` beside the labels as `code_labels` codes them."""
    coded = None
    n_rows = 0
    for start, block in row_blocks(values, name):
        if coded is None:
            coded = code_labels(y, None if block.ndim == 1 else block.shape[1])
        n_rows = start + len(block)
        if n_rows > len(coded):
            raise ValueError(f"{name} has more rows than y has labels, {len(coded)}")
        yield block, coded[start:n_rows]
    if n_rows < len(coded):
        raise ValueError(f"{name} has {n_rows} rows but y has {len(coded)} labels")


def code_labels(y, n_classes):
    """Labels in the one coding that fits the scores.

    ========================  ===========================  =======================================
    scores                    y                            coded
    ========================  ===========================  =======================================
    (n,), ``n_classes=None``  (n,) of -1/+1 or of 0/1      float64 of -1/+1
    (n, K)                    (n,) of 0..K-1               intp
    (n, K)                    (n, K) of 0/1, any number    bool: the indicator matrix of multilabel
    ========================  ===========================  =======================================
    """
    y = np.asarray(unmasked(y, "y"))
    if y.dtype.kind not in "fiub":
        raise ValueError(f"y must hold class indices, -1/+1 or an indicator matrix of 0/1, got dtype {y.dtype}")
    if y.dtype.kind == "f" and not np.array_equal(y, np.trunc(y)):      # a NaN is unequal to itself
        raise ValueError("y must hold whole numbers: found a fraction or NaN")
    if n_classes is None:
        if y.ndim != 1:
            raise ValueError(f"1-D values need 1-D labels, got y of shape {y.shape}")
        if not (np.isin(y, (-1, 1)).all() or np.isin(y, (0, 1)).all()):
            raise ValueError("the labels beside 1-D values must be -1/+1 or 0/1")
        return np.where(y > 0, 1.0, -1.0)
    if y.ndim == 1:
        if len(y) and not (0 <= y.min() and y.max() < n_classes):
            raise ValueError(f"y must hold class indices from 0 to {n_classes - 1}, found {y.min():g} to {y.max():g}")
        return y.astype(np.intp)
    if y.ndim != 2 or y.shape[1] != n_classes:
        raise ValueError(f"an indicator matrix needs {n_classes} columns, one per class, got y of shape {y.shape}")
    if not np.isin(y, (0, 1)).all():
        raise ValueError("an indicator matrix must hold nothing but 0 and 1")
    return y.astype(bool)


def gathered(values, name, ndims=(1,)):
    """All rows at once, finite, float64: without a copy if they come so, 8 bytes a number if not.

    What needs a median needs every margin; a stream may therefore bring single margins only, not rows of them.
    """
    if is_stream(values):
        return np.concatenate([block for _, block in row_blocks(values, name, (1,))])
    for _ in row_blocks(values, name, ndims):
        pass
    return aligned(values, np.float64)
