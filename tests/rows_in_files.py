"""The same rows in every kind of file, for the tests that hold of all of them."""

import time

import numpy as np
import scipy.sparse as sp

from cmargin.homes.files import open_files
from cmargin.homes.files.arrays_in_files import ArrayInFile

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
