"""What a model file is: arrays and JSON in an archive of NumPy's, from which nothing is run when it is opened.

    cmargin        the JSON, as bytes: {"form": 1, "kind": ..., "version": ..., "content": ...}
    0, 1, ...      the arrays that it names

In the JSON a number, text, truth value or null stands for itself, and everything else is an object of one name, which
says what it is: a list, a tuple, a dict (of pairs, as its keys may be numbers), an array, the texts of an array of
objects, a CSR or CSC matrix, a dtype, an estimator. Parameters of an estimator are left out where they are its class's
defaults.
"""

import json
import os
import warnings
import zipfile

import numpy as np

from cmargin._runtime.output import output_file
from cmargin._version import __version__
from cmargin.data.files.npz import arrays_of_npz

FORM, HEAD = 1, "cmargin"
WITHOUT_USE = ("callback", "checkpoint")     # parameters that are of one process
PLAIN = (type(None), bool, int, float, str)


class NotSaved(ValueError):
    """A value that is neither numbers, texts nor arrays of these."""


class Saving:
    """Turns values into JSON, whose arrays it collects in ``arrays``."""

    def __init__(self):
        self.arrays = {}

    def told(self, value):
        """The JSON of a value; `NotSaved` where it has none."""
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, PLAIN):
            return value
        if isinstance(value, (list, tuple)):
            return {type(value).__name__: [self.told(item) for item in value]}
        if isinstance(value, dict):
            return {"dict": [[self.told(key), self.told(item)] for key, item in value.items()]}
        if hasattr(value, "tocsr"):
            kind = "csc" if value.format == "csc" else "csr"
            value = value.asformat(kind)
            parts = (value.data, value.indices, value.indptr)
            return {kind: [*(self.array(part) for part in parts), [int(length) for length in value.shape]]}
        if isinstance(value, np.ndarray):
            return {"array": self.array(value)} if value.dtype.kind != "O" else {"texts": _texts(value)}
        if isinstance(value, np.dtype):
            return {"dtype": value.str}
        if hasattr(value, "get_params"):
            return {"estimator": self.estimator(value)}
        raise NotSaved(f"a {type(value).__name__}")

    def estimator(self, model):
        """Its class, its parameters, and what a fit has left of it; that which only a further fit needs is left out."""
        parameters, fitted, usual = {}, {}, type(model)().get_params(deep=False)
        given = model.get_params(deep=False)
        for name, value in given.items():
            if value is usual[name] or name in WITHOUT_USE:
                continue
            try:
                parameters[name] = self.told(value)
            except NotSaved as what:
                if name != "random_state":
                    warnings.warn(f"{type(model).__name__}: the parameter {name!r} is {what}, which a file without "
                                  "code cannot hold; the loaded model has the default.", stacklevel=4)
        for name, value in vars(model).items():
            if name not in given:
                try:
                    fitted[name] = self.told(value)
                except NotSaved:
                    continue
        return {"class": type(model).__name__, "parameters": parameters, "fitted": fitted}

    def array(self, array):
        name = str(len(self.arrays))
        self.arrays[name] = np.ascontiguousarray(array) if array.ndim else array
        return name


def write(path, kind, content, saving):
    """The file, complete or not at all."""
    head = {"form": FORM, "kind": kind, "version": __version__, "content": content}
    said = np.frombuffer(json.dumps(head).encode(), np.uint8)
    with output_file(os.fspath(path), "wb") as file:
        np.savez(file, **{HEAD: said, **saving.arrays})


def is_one(path):
    """Whether the file is an archive, as all model files are and no pickle is."""
    with open(path, "rb") as file:
        return file.read(4) == b"PK\3\4"


def read(path):
    """(kind, version, content, arrays) of a model file; ValueError, in a sentence, for any other."""
    try:
        arrays_of_npz(path)                      # of the lengths that their headers say, and not compressed
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}             # which checks their sums
        head = json.loads(arrays.pop(HEAD).tobytes())
        if head["form"] > FORM:
            raise ValueError(f"it is of form {head['form']}, of a later cmargin ({head['version']}); this is "
                             f"{__version__}")
        return str(head["kind"]), str(head["version"]), head["content"], arrays
    except (FileNotFoundError, PermissionError):
        raise
    except KeyError as error:
        raise ValueError(f"{path} is no model file of cmargin: it lacks {error}.") from None
    except (ValueError, OSError, EOFError, TypeError, RecursionError, MemoryError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} is no model file of cmargin, or damaged: {error}.") from None


def _texts(value):
    """Shape and texts: an array of NumPy's own texts would drop a NUL at an end."""
    texts = value.ravel().tolist()
    if not all(isinstance(text, str) for text in texts):
        raise NotSaved("an array of objects")
    return [list(value.shape), texts]
