"""doc/benchmarks.md from a run of the suite, the machine's limits beside what is a kernel's.

    python -m asv_benches.page --run        runs the suite here, in half an hour or so, and writes the page
    python -m asv_benches.page [RESULTS]    writes it from a file of results, the newest where none is named

Limits are measured when the page is written: on the machine, and at the hour, of the run.
"""

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

from asv_benches import limits
from asv_benches.recorded import commit_of, newest, read
from measure.machine import machine
from measure.report import table

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "doc" / "benchmarks.md"
# each timing benchmark the shortest of three calls, and no call for show
ASV = ["run", "--python=same", "-a", "repeat=3", "-a", "number=1", "-a", "rounds=1", "-a", "warmup_time=0",
       "-a", "sample_time=0"]
INTRODUCTION = """\
# Benchmarks

Made by `python -m asv_benches.page --run` of commit {commit}: {about}. Load average when the limits were measured:
{load:.1f}.

Only kernels have a `limit`: the time that this machine needs at its best, measured in the same hour, for the bytes that
the kernel must read or the BLAS operations that it is made of. `share` is limit over value; the best is 1, or more
where the data of a small kernel lie in a cache. Reads, gaps and accuracies do not depend on the machine.

{count} figures, {failed} failed. `python -m asv_benches.regress OLD NEW` compares two runs: a figure is worse if it is
worse by a share and by an absolute amount.
"""


def run():
    """Run the suite on the package as it is installed or built in place."""
    env = {**os.environ, "ASV_PYTHONPATH": os.environ.get("PYTHONPATH", "") or str(HERE.parent)}
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=HERE, capture_output=True, text=True, check=True).stdout
    subprocess.run([sys.executable, "-m", "asv", "machine", "--yes"], cwd=HERE, env=env, check=True)
    command = [sys.executable, "-m", "asv", *ASV, "--set-commit-hash", commit.strip()]
    subprocess.run(command, cwd=HERE, env=env, check=False)         # it ends with an error where one benchmark failed


def shown(value, unit):
    if value is None:
        return "failed"
    if unit in ("seconds", "s"):
        factor, name = (1, "s") if value >= 1 else (1e3, "ms") if value >= 1e-3 else (1e6, "µs")
        return f"{value * factor:.3g} {name}"
    if unit == "bytes":
        return f"{value / 1e6:.0f} MB"
    return f"{value:.3g}" + ("" if unit == "unit" else f" {unit}")


def line(value):
    least = limits.seconds(value.name, value.parameters) if value.value else None
    beside = ["", ""] if least is None else [f"{shown(least[0], 's')} ({least[1]})", f"{least[0] / value.value:.2f}"]
    kind, what = value.name.split(".")[-1].split("_", 1)
    return [("memory of " if kind == "peakmem" else "") + what.replace("_", " "), ", ".join(value.parameters),
            shown(value.value, value.unit), *beside]


def page(values, commit):
    """The text, of `Value` by (name, parameters)."""
    sections = {}
    for value in values.values():
        sections.setdefault(value.name.rsplit(".", 1)[0], []).append(line(value))
    about = ", ".join(f"{name} {value}" for name, value in machine().items())
    failed = sum(value.value is None for value in values.values())
    parts = [INTRODUCTION.format(about=about, commit=commit[:8], load=os.getloadavg()[0], count=len(values),
                                 failed=failed)]
    for name in sorted(sections):
        columns = ("figure", "of", "value", "limit", "share")
        kept = [k for k in range(5) if k < 3 or any(row[k] for row in sections[name])]
        rows = [[row[k] for k in kept] for row in sections[name]]
        parts.append(table(f"## {re.sub('[.]', ': ', name)}", [columns[k] for k in kept], rows))
    return "\n".join(parts)


def main(argv=None):
    parser = argparse.ArgumentParser(prog="python -m asv_benches.page", description=__doc__.splitlines()[0])
    parser.add_argument("results", nargs="?", help="default: the newest under asv_benches/results")
    parser.add_argument("--run", action="store_true", help="run the suite first")
    parser.add_argument("--out", default=PAGE, type=Path)
    options = parser.parse_args(argv)
    if options.run:
        run()
    results = options.results or newest(HERE / "results")
    options.out.write_text(page(read(results), commit_of(results)), encoding="utf-8")
    print(f"wrote {options.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
