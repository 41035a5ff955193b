"""Memory that malloc keeps for nobody goes back to the system before a large array is made."""

import ctypes
import mmap
import sys

import numpy as np
import pytest

from cmargin._runtime.workspace import give_back
from cmargin.data import open_rows
from cmargin.data.memory import stochastic_rows
from cmargin.solvers.sgd.low_rank import build_inverse


def resident():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * mmap.PAGESIZE


@pytest.mark.skipif(sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="glibc's only")
def test_what_lies_between_arrays_in_use_is_given_back():
    kept = [np.ones(2000) for _ in range(20_000)][::2]            # 160 MB between them were let go of
    before = resident()
    give_back()
    assert before - resident() > 80e6 and all(vector.sum() == 2000 for vector in kept)


def test_before_many_rows_are_whitened(monkeypatch):
    calls = []
    monkeypatch.setattr(stochastic_rows, "give_back", lambda: calls.append(True))
    X = np.random.default_rng(0).standard_normal((500, 8)).astype(np.float32)
    rows = open_rows(X).stochastic_rows(1)
    inverse, _ = build_inverse(rows, np.arange(500), np.ones((1, 500)), 3, "scale")
    few = rows.whiten(inverse)
    monkeypatch.setattr(stochastic_rows, "LARGE", few.nbytes - 1)
    assert not calls and np.array_equal(rows.whiten(inverse), few) and len(calls) == 1
    rows.whiten(inverse, None, few)
    assert len(calls) == 1
