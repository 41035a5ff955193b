"""Fits over the ranks of mpiexec, each a process; what they assert is in mpi_programs/."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mpi4py")
HERE = Path(__file__).parent
MPIEXEC = shutil.which("mpiexec", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
pytestmark = pytest.mark.skipif(MPIEXEC is None, reason="no mpiexec")
LIMIT = 100                    # seconds; a program takes a few


def started(size, program, *arguments):
    """The process, when all ranks have come to their end, whatever that was."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.run([MPIEXEC, "-n", str(size), sys.executable, str(HERE / "mpi_programs" / program),
                           *map(str, arguments)], capture_output=True, text=True, timeout=LIMIT, env=environment)


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


@pytest.mark.parametrize("size, rank, estimator", [(1, 0, "SmSVM"), (2, 1, "SLND"), (2, 0, "pursuit"), (3, 2, "SmSVM")])
def test_an_interrupt_of_one_rank_ends_all_with_the_best_weights(size, rank, estimator):
    _, seconds = ran(size, "interrupt.py", rank, estimator)[-2].split()
    assert float(seconds) < 20                                     # a guard against hanging, not a figure


@pytest.mark.parametrize("size, rank, writes, estimator", [(2, 0, 2, "SmSVM"), (3, 2, 2, "SLND")])
def test_a_fit_of_which_a_rank_is_killed_goes_on_to_the_same_bits(size, rank, writes, estimator, tmp_path):
    for folder in ("alone", "killed"):
        (tmp_path / folder).mkdir()
    alone = ran(size, "killed.py", tmp_path / "alone", estimator, -1, 0)
    assert started(size, "killed.py", tmp_path / "killed", estimator, rank, writes).returncode != 0
    assert "fit" in os.listdir(tmp_path / "killed")
    again = ran(size, "killed.py", tmp_path / "killed", estimator, -1, 0)
    assert again[-2].split()[:2] == alone[-2].split()[:2] and int(again[-2].split()[3]) < int(alone[-2].split()[3])
    assert (tmp_path / "killed" / "coef.npy").read_bytes() == (tmp_path / "alone" / "coef.npy").read_bytes()
    assert os.listdir(tmp_path / "killed") == ["coef.npy"]


def test_the_comparison_with_two_threads_prints_its_table():
    script = HERE.parent / "asv_benches" / "compare_mpi.py"
    if not script.exists():
        pytest.skip("the benchmarks are not beside the tests")
    environment = {**os.environ, "PATH": os.pathsep.join([str(Path(MPIEXEC).parent), os.environ["PATH"]]),
                   "PYTHONPATH": os.pathsep.join(filter(None, [str(HERE.parent), *sys.path]))}
    done = subprocess.run([sys.executable, str(script), "--quick", "--fits", "2"], capture_output=True, text=True,
                          timeout=LIMIT, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in done.stdout.splitlines() if "|" in line]
    assert [row[0] for row in rows[2:]] == ["0.001", "1e-05"]
    assert all(row[5] == row[6] and float(row[7]) <= 1e-4 and int(row[8]) > 20 for row in rows[2:])
