"""Programs that tests start, each an interpreter of its own."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BENCHES = ROOT / "asv_benches"
# scikit-learn loads pandas where there is one, to be ready for frames: a third of what such a program takes to begin
LIGHT = Path(__file__).resolve().parent / "light"


def surroundings(*folders, **variables):
    """The environment of a program that imports what this one does, from ``folders`` first, but for pandas."""
    paths = [str(LIGHT), *map(str, folders), *filter(None, sys.path)]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), **variables}


def run(command, limit=120, **options):
    """What the command prints; it must come to its end within ``limit`` seconds, without an error."""
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=limit, **options)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout


def python(*arguments, limit=120, folders=(), cwd=None, **variables):
    """What an interpreter prints, given these arguments and, in its environment, ``folders`` and ``variables``."""
    return run([sys.executable, *arguments], limit, env=surroundings(*folders, **variables), cwd=cwd)


def rows_of(printed):
    """The cells of every line that is of a table."""
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in printed.splitlines() if "|" in line]
