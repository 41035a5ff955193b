"""The same rows in every kind of file, for the tests that hold of all of them."""

import os
import signal
import threading
import time

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from cmargin.data.files import open_files
from cmargin.data.files.arrays_in_files import ArrayInFile

IN_FILES = ["npy C", "npy F", "npz", "memmap", "memmap F", "shards", "csr npz", "csr folder", "csr shards"]


def write_csr(folder, X):
    """The arrays of a CSR matrix as a folder of .npy files."""
    folder.mkdir()
    X = sp.csr_matrix(X)
    for name in ("data", "indices", "indptr"):
        np.save(folder / f"{name}.npy", getattr(X, name))
    np.save(folder / "shape.npy", np.array(X.shape))
    return folder


def paths_of(X, kind, folder):
    """What `open_files` is given: ``X`` in files of this kind under ``folder``."""
    halves = [X[:len(X) // 3], X[len(X) // 3:]]
    if kind.startswith("npy"):
        np.save(folder / "X.npy", np.asarray(X, order=kind[-1]))
        return folder / "X.npy"
    if kind == "npz":
        np.savez(folder / "X.npz", X)
        return str(folder / "X.npz")
    if kind.startswith("memmap"):
        np.save(folder / "X.npy", np.asarray(np.vstack([X[:5], X, X[:2]]), order="F" if "F" in kind else "C"))
        return np.load(folder / "X.npy", mmap_mode="r")[5:-2]
    if kind == "shards":
        np.save(folder / "a.npy", halves[0])
        np.savez(folder / "b.npz", np.asfortranarray(halves[1]))
        return [folder / "a.npy", str(folder / "b.npz")]
    if kind == "csr npz":
        sp.save_npz(folder / "X.npz", sp.csr_matrix(X), compressed=False)
        return folder / "X.npz"
    if kind == "csr folder":
        return write_csr(folder / "X", X)
    return [write_csr(folder / f"X{k}", half) for k, half in enumerate(halves)]


def files_of(X, kind, folder):
    """``X`` as `RowFiles`."""
    return open_files(paths_of(X, kind, folder), in_memory=False)


class Slow:
    """A disk that answers after some seconds, from so many reads on; ``listens``: sooner where nobody waits."""

    def __init__(self, monkeypatch, seconds, after=0, listens=False):
        self.reads, part = 0, ArrayInFile.part

        def slow(array, first, n, given_up):
            self.reads += 1
            if self.reads > after:
                (given_up.wait if listens else time.sleep)(seconds)
            return part(array, first, n, given_up)

        monkeypatch.setattr(ArrayInFile, "part", slow)


def readers(patience, before=()):
    """Threads that read files after so many seconds: one whose read is over ends when it is given a processor."""
    found = [thread for thread in threading.enumerate() if thread.name == "cmargin-reads" and thread not in before]
    for thread in found:
        thread.join(patience)
    return [thread for thread in found if thread.is_alive()]


def in_memory_and_there(model, digits, kind, in_order, folder):
    """Two copies of ``model``, fitted to weighted digits, by class if ``in_order``, in memory and in files."""
    X, _, y, _ = digits
    order = np.argsort(y, kind="stable") if in_order else np.arange(len(y))
    weight = np.where(np.arange(len(y)) % 7, 1.5, 0.0)
    return [clone(model).fit(rows, y[order], weight) for rows in (X[order], files_of(X[order], kind, folder))]


def bits_of_fits(model, X, y, kinds, folder):
    """What comes out over files of these kinds, with one thread and with two: a set."""
    found = set()
    for kind in kinds:
        (folder / kind).mkdir()
        files = files_of(X, kind, folder / kind)
        for n_jobs in (1, 2):
            fitted = clone(model).set_params(n_jobs=n_jobs).fit(files, y)
            found.add(fitted.coef_.tobytes() + fitted.intercept_.tobytes())
    return found


def stopped_by_ctrl_c(fitted, files, y):
    """Press Ctrl-C after half a second of a fit; the seconds until it is heard."""
    pressed = []

    def press():
        pressed.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    threading.Timer(0.5, press).start()
    with pytest.raises(KeyboardInterrupt):
        fitted.fit(files, y)
    return time.perf_counter() - pressed[0]
