"""What makes a fit this fit: by that a checkpoint is taken up; and which version of this package wrote a pickle."""

import os
import platform
import sys
import warnings
import zlib
from types import FunctionType
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import InconsistentVersionWarning as OfScikitLearn
from sklearn.utils.validation import check_is_fitted

from cmargin._estimators.saved import Saving, write
from cmargin._estimators.validation import InvalidParameterError
from cmargin._runtime.aligned import aligned_throughout
from cmargin._runtime.checkpoint import Checkpoint, Checkpointer
from cmargin._version import __version__
from cmargin.data.arrays import parts_of
from cmargin.data.shards.rank_files import RankCheckpointer

WITHOUT_EFFECT = ("callback", "checkpoint", "max_time", "n_jobs", "verbose")     # on the bits of the result
MOST_NUMBERS = 1 << 24           # of X that are summed: evenly spaced rows where there are more,
MOST_FILE_ROWS = 256             # and no more than so many of files, each of which may be a read of its own
NUMBERS_AT_ONCE = 1 << 20


def check_checkpoint(estimator, value):
    """Raise unless ``value`` is None, a path or a `Checkpoint`."""
    if value == "" or not (value is None or isinstance(value, (str, os.PathLike, Checkpoint))):
        raise InvalidParameterError(f"The 'checkpoint' parameter of {type(estimator).__name__} must be a path, a "
                                    f"cmargin.Checkpoint or None. Got {value!r} instead.")


def checkpointer_of(estimator, source, sample_weight, groups=None):
    """The `Checkpointer` of a fit of ``estimator`` to the rows of ``source``."""
    if estimator.checkpoint is None:
        return Checkpointer()
    if not source.checkpoints:
        raise ValueError("checkpoint= is for rows in memory, in files and over ranks; these live on a device.")
    return Checkpointer(wanted(estimator), identity(estimator, source, sample_weight, groups),
                  getattr(estimator, "max_time", None))


def checkpointer_of_ranks(estimator, source, cards):
    """The same for the rows of all ranks; ``cards``: what `of_rows` says of each rank's."""
    if estimator.checkpoint is None:
        return Checkpointer()
    of_ranks = {f"{name} of rank {rank}": value for rank, card in enumerate(cards) for name, value in card.items()}
    everything = {**of_call(estimator, source), "the number of ranks": str(len(cards)), **of_ranks}
    return RankCheckpointer(source, wanted(estimator), everything, estimator.max_time)


def wanted(estimator):
    given = estimator.checkpoint
    return given if isinstance(given, Checkpoint) else Checkpoint(given)


def identity(estimator, source, sample_weight, groups):
    """What must be the same, by names for the user: numbers and words as they are, arrays by a sum."""
    return {**of_call(estimator, source), **of_rows(source, sample_weight),
            "the sum over groups": "none" if groups is None else sum_of(groups)}


def of_call(estimator, source):
    start = (estimator.coef_, estimator.intercept_) if getattr(estimator, "_goes_on", False) else ()
    return {
        "the version of cmargin": __version__,
        "the machine": f"{platform.machine()}, {sys.byteorder}-endian",
        "the estimator": type(estimator).__name__,
        **parameters(estimator),
        "the shape of X": f"({source.n_rows}, {source.n_features})",
        "the dtype of X": str(source.dtype),
        "how X is stored": "CSR" if source.sparse else "dense",
        "the sum over the weights to start from": sum_of(*start),
    }


def of_rows(source, sample_weight):
    return {
        "the sum over X": sum_of_rows(source),
        "the sum over y": sum_of(source.y),
        "the sum over sample_weight": "none" if sample_weight is None else sum_of(np.asarray(sample_weight, float)),
    }


def parameters(estimator):
    return {name: in_words(value) for name, value in estimator.get_params(deep=False).items()
            if name not in WITHOUT_EFFECT}


def in_words(value):
    """All of it: other values have other words, where the repr of a long array or of a table's column has not."""
    if isinstance(value, BaseEstimator):
        return f"{type(value).__name__} {parameters(value)}"
    if isinstance(value, np.random.RandomState):
        keys, *rest = value.get_state()[1:]
        return f"a RandomState ({sum_of(keys)}, {[in_words(number) for number in rest]})"
    if isinstance(value, FunctionType):                  # whose repr has its address
        return f"{value.__module__}.{value.__qualname__} ({zlib.crc32(value.__code__.co_code):08x})"
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, dict):
        return repr({in_words(key): in_words(item) for key, item in value.items()})
    if isinstance(value, (list, tuple)):
        return ("[{}]" if isinstance(value, list) else "({})").format(", ".join(map(in_words, value)))
    if hasattr(value, "tocsr") or hasattr(value, "__array__"):
        value = value.tocsr() if hasattr(value, "tocsr") else np.asarray(value)
        held = in_words(value.tolist()) if value.dtype.kind == "O" else sum_of(value)
        return f"{type(value).__name__} of {value.dtype} {value.shape} ({held})"
    return repr(value)


def sum_of(*arrays):
    """CRC-32 of the arrays, in hexadecimal digits."""
    found = 0
    for array in arrays:
        found = with_array(array, found)
    return f"{found:08x}"


def with_array(array, found):
    for part in parts_of(array):
        words = part.dtype.kind in "OUST"
        found = zlib.crc32("\0".join(map(str, part.ravel())).encode() if words else np.ascontiguousarray(part), found)
    return found


def sum_of_rows(source):
    """Of all rows or, of many, of rows evenly spaced among them."""
    each, n = max(1, source.entries // max(1, source.n_rows)), source.n_rows
    wanted = n if source.entries <= MOST_NUMBERS else max(1, MOST_NUMBERS // each)
    wanted = wanted if source.in_memory else min(wanted, MOST_FILE_ROWS)
    rows, found = np.linspace(0, n - 1, min(n, wanted)).astype(np.int64), 0
    at_once = max(1, NUMBERS_AT_ONCE // each)
    for lo in range(0, len(rows), at_once):
        found = with_array(source.take(rows[lo:lo + at_once], source.dtype), found)
    return f"{found:08x}"


class InconsistentVersionWarning(OfScikitLearn):
    """An estimator was pickled by another version of this package; a kind of scikit-learn's of the same name."""

    def __init__(self, estimator_name, version):
        self.estimator_name = estimator_name
        self.original_version = version

    def __str__(self):
        return (f"Trying to unpickle estimator {self.estimator_name} from cmargin {self.original_version} when using "
                f"cmargin {__version__}. This might lead to breaking code or invalid results. Use at your own risk; "
                "to_sklearn() of the version that wrote it makes a model that does not depend on this package.")


class VersionInPickle:
    """Base of estimators: files without code; pickles hold the version, and arrays are aligned however they come."""

    def save(self, path: Any) -> None:
        """Write the fitted model into a file of arrays and JSON, which `cmargin.load` opens without running anything.

        It predicts the same, to the bit, and `warm_start` goes on from it; what only `partial_fit` of SLND and BSN
        needs, the low-rank inverse, is left out, and so are ``callback``, ``checkpoint`` and a generator as
        ``random_state``. A warning names any other parameter that is neither numbers, texts nor arrays: the loaded
        model has its default. NotFittedError where there are no weights yet.

        Parameters
        ----------
        path : str or path-like
            It is replaced when the new file is complete.
        """
        check_is_fitted(self)
        saving = Saving()
        write(path, "estimator", saving.told(self), saving)

    def __getstate__(self):
        return dict(super().__getstate__(), _cmargin_version=__version__)

    def __setstate__(self, state):
        state = dict(state)
        version = state.pop("_cmargin_version", "of a version that did not write it down")
        if version != __version__:
            warnings.warn(InconsistentVersionWarning(type(self).__name__, version), stacklevel=2)
        super().__setstate__(aligned_throughout(state))           # unpickled in place, out of a message
