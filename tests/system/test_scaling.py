"""The cost model of doc/scaling.md: its bytes are those of fits over ranks, its terms grow as they are said to."""

import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import blobs
from ranks_in_threads import on_ranks
from started import rows_of

from cmargin import MarginPursuitClassifier, SLNDClassifier, SmSVMClassifier
from cmargin.data.shards import mpi
from cmargin.data.source import SINGLE_BLOCK

pytest.importorskip("measure", reason="the benchmarks are not beside the tests")

from measure import scaling
from measure.scaling import Fit, Machine

MPIEXEC = shutil.which("mpiexec", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
MACHINE = Machine(row=1e-8, column=1e-9, square=1e-10, line=1e-9, softmax=1e-10, question=1e-5, answer=1e-5,
                  latency=1e-6, byte=1e-10)
FIT = Fit(curved=5.0, reads=6.0, line=1.0, evaluations=12, blocks=11, lines=7, products=2, calls=20)
X, Y = blobs(n=400, d=6, k=2)


@pytest.mark.parametrize("make", [SmSVMClassifier, lambda: SmSVMClassifier(l2=1e-5, loss="logistic"),
                                  lambda: SmSVMClassifier(linear_solver="cg"),
                                  lambda: MarginPursuitClassifier(l2=1e-2, trace=False)])
def test_bytes_are_those_that_a_fit_sends(make, monkeypatch):
    counts, sent, real = dict.fromkeys(("evaluations", "blocks", "lines", "products"), 0), [], mpi.RankSource.ask

    def ask(self, kind, key, asked, n_columns):
        before = self.ranks.bytes
        counts[{"evaluate": "evaluations", "line": "lines"}.get(kind, "products")] += 1
        counts["blocks"] += asked.get("with_hessian") in (True, SINGLE_BLOCK)
        received = real(self, kind, key, asked, n_columns)
        sent.append(self.ranks.bytes - before)
        return received

    monkeypatch.setattr(mpi.RankSource, "ask", ask)
    models, _ = on_ranks(2, lambda comm: make().fit(X[comm.rank::2], Y[comm.rank::2], comm=comm))
    assert hasattr(models[0], "coef_") and len(sent) > 4
    assert scaling.fit_bytes(Fit(curved=0, reads=0, line=0, **counts), X.shape[1]) == sum(sent)


def test_bytes_of_a_mean_of_slnd():
    rows, y = blobs(n=400, d=6, k=4)
    _, comms = on_ranks(2, lambda comm: SLNDClassifier(max_passes=1, random_state=0).fit(
        rows[comm.rank::2], y[comm.rank::2], comm=comm))
    assert {n_bytes for name, n_bytes in comms[0].calls if name == "Reduce"} == {scaling.average_bytes(4, 6)}


def test_terms_by_the_number_of_ranks():
    one, two, many = (scaling.sums_fit(MACHINE, FIT, 10**8, 54, n_ranks) for n_ranks in (1, 2, 1024))
    assert one.latency == one.bytes == 0 and one.rows == 2 * two.rows == 1024 * many.rows
    assert many.latency == pytest.approx(10 * two.latency) and many.bytes == pytest.approx(10 * two.bytes)
    assert many.alone - one.alone == pytest.approx(1023 * 20 * 1e-5)             # answers to calls, one after another
    three = scaling.sums_fit(MACHINE, FIT, 10**8, 54, 2, n_problems=3)
    assert three.total == pytest.approx(3 * two.total)
    wide = [scaling.sums_fit(MACHINE, FIT, 10**8, m, 1024) for m in (1000, 2000)]
    assert wide[1].bytes / wide[0].bytes == pytest.approx(4, rel=0.02)


def test_terms_of_slnd():
    some, all_ = (scaling.slnd_pass(MACHINE, 10**8, 100, 50, 16, averages) for averages in (10, 1000))
    assert some.rows == all_.rows == pytest.approx(10**8 / 16 * 100 * 50 * 1e-10)
    assert all_.bytes == pytest.approx(100 * some.bytes) and all_.alone == pytest.approx(100 * some.alone)
    apart = [scaling.one_vs_rest_pass(MACHINE, 10**8, 100, 50, n_ranks) for n_ranks in (1, 50, 100, 200)]
    assert apart[0].bytes == 0 and apart[0].rows == pytest.approx(50 * apart[1].rows)
    assert apart[2].rows == apart[3].rows == pytest.approx(apart[0].rows / 100)  # no more classes to divide


def test_where_it_ends():
    def totals(*seconds):
        return [scaling.Terms(value, 0, 0, 0) for value in seconds]

    assert scaling.speed_up_ends(totals(8, 4, 3.5, 3.4), (1, 2, 4, 8)) == 2
    assert scaling.speed_up_ends(totals(8, 4, 2, 1), (1, 2, 4, 8)) is None
    assert scaling.in_network(MACHINE, 5e-6, 1e9) == replace(MACHINE, latency=5e-6, byte=1e-9)


@pytest.mark.skipif(MPIEXEC is None, reason="no mpiexec")
def test_the_script_measures_and_draws(bench_script, monkeypatch, tmp_path):
    pytest.importorskip("mpi4py")
    pytest.importorskip("matplotlib")
    monkeypatch.setenv("PATH", str(Path(MPIEXEC).parent), prepend=os.pathsep)
    figure = tmp_path / "a.png"
    cells = rows_of(bench_script("compare_scaling", "--quick", "--ranks", 2, "--figure", figure))
    beside = [row for row in cells if len(row) == 9 and row[0] in ("SmSVM", "margin pursuit", "SLND, a pass")]
    assert len(beside) == 3 and all(float(row[5]) > 0 and float(row[6]) > 0 for row in beside)
    assert figure.stat().st_size > 20_000
