"""Fits over the ranks of mpiexec, each a process; what they assert is in mpi_programs/."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from started import rows_of, surroundings

pytest.importorskip("mpi4py")
HERE = Path(__file__).parent
MPIEXEC = shutil.which("mpiexec", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
pytestmark = pytest.mark.skipif(MPIEXEC is None, reason="no mpiexec")
LIMIT = 100                    # seconds; a program takes a few


def started(size, program, *arguments):
    """The process, when all ranks have come to their end, whatever that was."""
    return subprocess.run([MPIEXEC, "-n", str(size), sys.executable, str(HERE / "mpi_programs" / program),
                           *map(str, arguments)], capture_output=True, text=True, timeout=LIMIT,
                          env=surroundings(OMP_NUM_THREADS="1"))


def ran(size, program, *arguments):
    """What the ranks print; each must come to its end."""
    process = started(size, program, *arguments)
    assert process.returncode == 0, process.stdout[-2000:] + process.stderr[-4000:]
    lines = process.stdout.splitlines()                            # rank 0's: those of two may get mixed up
    assert lines[-1] == f"done {list(range(size))}"
    return lines


@pytest.mark.parametrize("size", [1, 3])
def test_fits_are_one_machines_and_the_same_everywhere(size):
    assert sum(line.startswith("equal") for line in ran(size, "fits.py")) == 10


@pytest.mark.parametrize("size", [3])
def test_an_error_on_one_rank_ends_all(size):
    said = [line for line in ran(size, "refusals.py") if line.startswith("everywhere")]
    assert len(said) == 6 and not any("nothing was raised" in line for line in said)


@pytest.mark.parametrize("size", [1, 3])
def test_an_interrupt_of_one_rank_ends_all_with_the_best_weights(size):
    lines = [line.split() for line in ran(size, "interrupt.py") if line.startswith("interrupted")]
    assert [name for _, name, _ in lines] == ["SmSVM", "SLND", "pursuit"]
    assert all(float(seconds) < 20 for _, _, seconds in lines)     # a guard against hanging, not a figure


@pytest.mark.parametrize("size, rank, writes, estimator", [(2, 0, 2, "SmSVM"), (3, 2, 2, "SLND")])
def test_a_fit_of_which_a_rank_is_killed_goes_on_to_the_same_bits(size, rank, writes, estimator, tmp_path):
    alone, killed = tmp_path / "alone", tmp_path / "killed"
    alone.mkdir()
    killed.mkdir()
    first = started(size, "killed.py", tmp_path, estimator, rank, writes)
    assert first.returncode != 0 and first.stdout.startswith("passes") and "fit" in os.listdir(killed)
    (*passes, _, written), (*same_passes, _, fewer) = (line.split() for line in (
        first.stdout.splitlines()[0], ran(size, "killed.py", tmp_path, estimator)[0]))
    assert passes == same_passes and int(fewer) < int(written)
    assert (killed / "coef.npy").read_bytes() == (alone / "coef.npy").read_bytes()
    assert os.listdir(killed) == ["coef.npy"]


def test_the_comparison_with_two_threads_prints_its_table(bench_script, monkeypatch):
    monkeypatch.setenv("PATH", str(Path(MPIEXEC).parent), prepend=os.pathsep)
    rows = rows_of(bench_script("compare_mpi", "--quick", "--fits", 2))
    assert [row[0] for row in rows[2:]] == ["0.001", "1e-05"]
    assert all(row[5] == row[6] and float(row[7]) <= 1e-4 and int(row[8]) > 20 for row in rows[2:])
