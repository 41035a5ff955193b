import importlib
import os
import re
import signal
import sys

# Two processes with threads of their own share what are often two processors: whoever waits there is to sleep. Read as
# the libraries are loaded, by programs that tests start too
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")            # as a power of two of ticks; the least there is

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import normalize
from started import BENCHES, surroundings

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:        # as shells leave it in the background:
    signal.signal(signal.SIGINT, signal.default_int_handler)    # tests of Ctrl-C waited for ever

FORMATS = ["C", "F", "strided", "read-only", "memmap", "csr", "csr64"]


def as_format(X, name, folder=None):
    """The same numbers in another data source: order, stride, read-only memory map, CSR with 32- or 64-bit indices."""
    if name == "C":
        return np.ascontiguousarray(X)
    if name == "F":
        return np.asfortranarray(X)
    if name == "strided":
        wide = np.full((2 * X.shape[0], 3 * X.shape[1]), np.nan, X.dtype)
        wide[::2, ::3] = X
        return wide[::2, ::3]
    if name == "read-only":
        X = np.ascontiguousarray(X)
        X.flags.writeable = False
        return X
    if name == "memmap":
        path = os.path.join(folder, "X.bin")
        np.ascontiguousarray(X).tofile(path)
        return np.memmap(path, X.dtype, "r", shape=X.shape)
    X = sp.csr_matrix(X)
    if name == "csr64":
        X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


@pytest.fixture(params=FORMATS)
def any_format(request, tmp_path):
    return lambda X: as_format(X, request.param, tmp_path)


@pytest.fixture(params=[np.float32, np.float64], ids=["float32", "float64"])
def dtype(request):
    return request.param


def named(value):
    """The id of a parameter, the same in every process: without the addresses of functions."""
    return re.sub(" at 0x[0-9a-f]+", "", str(value))


def blobs(n=240, d=12, k=4, seed=7, spread=1.0):
    """Gaussian classes of uneven size around random centres, columns of uneven scale."""
    rng = np.random.default_rng(seed)
    y = rng.choice(k, n, p=np.arange(1, k + 1) / (k * (k + 1) / 2))
    y[:k] = np.arange(k)
    X = rng.standard_normal((k, d))[y] + spread * rng.standard_normal((n, d))
    return X * np.linspace(2, 0.3, d), y


@pytest.fixture(scope="session")
def digits():
    """Training rows, test rows and labels of scikit-learn's digits, rows of length 1."""
    X, y = load_digits(return_X_y=True)
    return train_test_split(normalize(X), y, random_state=3, stratify=y)


@pytest.fixture
def shared_data():
    """Loader of the benchmark sets in CMARGIN_DATA; skips where there are none."""
    folder = os.environ.get("CMARGIN_DATA")
    if not folder or not os.path.isfile(os.path.join(folder, "load.py")):
        pytest.skip("CMARGIN_DATA does not name a folder with data sets")
    sys.path.insert(0, folder)
    try:
        from load import load
    finally:
        sys.path.remove(folder)
    return load


def late(number, frame):
    raise TimeoutError("the script hangs")


@pytest.fixture
def bench_script(monkeypatch, capsys):
    """Does what a script of asv_benches does, in this process: a start of an interpreter less. What it prints."""
    if not BENCHES.is_dir():
        pytest.skip("the benchmarks are not beside the tests")
    monkeypatch.syspath_prepend(str(BENCHES))
    monkeypatch.setenv("PYTHONPATH", surroundings()["PYTHONPATH"])  # of what it starts in turn

    def script(name, *argv):
        monkeypatch.setattr(sys, "argv", [name, *map(str, argv)])
        importlib.import_module(name).main()
        return capsys.readouterr().out

    before = signal.signal(signal.SIGALRM, late) if hasattr(signal, "SIGALRM") else None
    if before is not None:
        signal.alarm(300)                                           # seconds; a guard, not a figure
    yield script
    if before is not None:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
