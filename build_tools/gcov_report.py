"""Lines of Cython that ran, of a build for gcov: ``python -m build_tools.gcov_report [--missing]`` (coverage.sh).

A line counts where the C compiler made code of it, in a .pyx or in a .pxd that one includes; it is reached where any
of that code ran, in any thread, of any process that came to its end. Lines without the GIL and in parallel loops are
among them.
"""

import json
import re
import subprocess
import sys
from collections import defaultdict
from itertools import groupby
from pathlib import Path

# what Cython writes above the C code of a line; what it writes besides has the numbers of lines that it is not of
MARK = re.compile(r' */\* "(cmargin/.*\.p(?:yx|xd|xi))":(\d+)$', re.MULTILINE)


def lines_of_code(folder="cmargin"):
    """{file: numbers of the lines that Cython made code of}."""
    found = defaultdict(set)
    for translated in Path(folder).rglob("*.c"):
        for file, line in MARK.findall(translated.read_text()):
            found[file].add(int(line))
    return found


def counts(folder="build"):
    """{file: {line: times it ran}}, over all modules together."""
    found, code = defaultdict(lambda: defaultdict(int)), lines_of_code()
    for notes in Path(folder).rglob("*.gcno"):
        done = subprocess.run(["gcov", "--json-format", "--stdout", str(notes)], capture_output=True, check=True)
        for file in json.loads(done.stdout)["files"] if done.stdout.strip() else ():
            for line in file["lines"]:
                if line["line_number"] in code.get(file["file"], ()):
                    found[file["file"]][line["line_number"]] += line["count"]
    return found


def runs_of(lines):
    """``lines``, ascending, as text: "3, 7-9"."""
    runs = ([line for _, line in run] for _, run in groupby(enumerate(lines), lambda at: at[1] - at[0]))
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def main(arguments):
    found = counts()
    n_lines, n_missed = 0, 0
    for file, lines in sorted(found.items()):
        missed = sorted(line for line, count in lines.items() if not count)
        n_lines, n_missed = n_lines + len(lines), n_missed + len(missed)
        if missed and "--missing" in arguments:
            print(f"{file:60} {1 - len(missed) / len(lines):6.1%}  {runs_of(missed)}")
    if not n_lines:
        raise SystemExit("no counts in build/: see build_tools/coverage.sh")
    print(f"Cython: {n_lines} lines, {n_missed} not reached, {1 - n_missed / n_lines:.1%} reached")


if __name__ == "__main__":
    main(sys.argv[1:])
