"""Hostile input by the hundred thousand into every public entry: an answer without NaN, or words, and nothing else.

A seed is a batch of inputs that share a process. What ends or hangs it is found by the number of the input at work,
which lies in memory that the process shares with its parent; `--only` repeats a batch, `try_input` one input.
"""

import atexit
import gc
import mmap
import os
import signal
import tempfile
import warnings
from importlib import import_module
from shutil import rmtree

import numpy as np
import scipy.sparse as sp

from .findings import Findings
from .fuzz_entries import ENTRIES, OF_FILES, WITH_NAN, checkpoint_rows, entry_of, fitted, good_checkpoint, good_files

BATCH = 500
SECONDS = 10                   # of the processor after which one input counts as hung
_at = mmap.mmap(-1, 8)         # the input at work


def load():
    """What forked processes then have: the library, trained models, and a folder for files that calls may write."""
    for name in ("cmargin.baselines", "cmargin.slnd", "cmargin.smsvm_cv", "cmargin.margins", "cmargin.plots",
                 "cmargin.export", "cmargin._estimators.predict", "cmargin.cli.convert", "cmargin.data.files",
                 "matplotlib.figure"):
        import_module(name)
    folder = tempfile.mkdtemp(prefix="fuzz", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
    atexit.register(rmtree, folder, ignore_errors=True)
    os.chdir(folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        good_files(), good_checkpoint(), checkpoint_rows(), fitted()[0].to_sklearn()
    gc.freeze()                            # or every batch's collections would copy the pages they look at


def describe(seed):
    """What the batch was at when it ended."""
    number = int.from_bytes(_at[:8], "little")
    return [entry_of(number)[0], f"input: {number}"] if number // BATCH == seed else ["not begun"]


def check_seed(seed):
    found = Findings(seed, [])
    for number in range(seed * BATCH, (seed + 1) * BATCH):
        _at[:8] = number.to_bytes(8, "little")
        signal.setitimer(signal.ITIMER_PROF, SECONDS)          # nobody listens: it ends the process
        name, outcome, faults = try_input(number)
        found.count("inputs", f"{name} {outcome}")
        for kind, words in faults:
            found.add(kind, f"{name}, input {number}: {words}")
    signal.setitimer(signal.ITIMER_PROF, 0)
    return found


def try_input(number):
    """(entry, outcome, faults) of one input."""
    name, draw = entry_of(number)
    outcome, faults = judged(name, ENTRIES[name][1](draw))
    return name, outcome, faults


def judged(name, call):
    """("answered" or "refused", faults) of one call."""
    before = [content(part) for part in parts_of((call.args, call.keywords))]
    faults = []
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            answer, outcome = call(), "answered"
        except Exception as error:
            answer, outcome = None, "refused"
            documented = (ValueError, TypeError, *((OSError,) if name in OF_FILES else ()))
            if not isinstance(error, documented):
                faults.append(("exception", f"{type(error).__name__}: {error}"[:300]))
            elif len(str(error).strip()) < 10:
                faults.append(("no words", f"{type(error).__name__}: {str(error)!r}"))
    if name not in WITH_NAN and any(has_nan(part) for part in parts_of(answer)):
        faults.append(("nan", "the answer holds NaN"))
    if before != [content(part) for part in parts_of((call.args, call.keywords))]:
        faults.append(("changed", "an argument is not what it was"))
    return outcome, faults


def parts_of(value):
    """Arrays and numbers in nested tuples, lists and dictionaries."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return [part for one in value for part in parts_of(one)]
    if sp.issparse(value):
        return parts_of([getattr(value, name, None) for name in ("data", "indices", "indptr", "coords")])
    return [value] if isinstance(value, (np.ndarray, np.generic, float)) else []


def content(part):
    return np.asarray(part).tobytes() if np.asarray(part).dtype != object else None


def has_nan(part):
    part = np.asarray(part)
    return part.dtype.kind in "fc" and bool(np.isnan(part).any())
