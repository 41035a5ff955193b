"""Find OpenMP by compiling, linking and running a program with it."""

import subprocess
import sys
import tempfile
from pathlib import Path

from setuptools._distutils.ccompiler import new_compiler
from setuptools._distutils.sysconfig import customize_compiler

PROBE = """
#include <omp.h>
#include <stdio.h>
int main(void) {
    int seen = 0;
    #pragma omp parallel num_threads(2)
    {
        #pragma omp critical
        seen += omp_get_num_threads() == 2;
    }
    printf("%d", seen);
    return 0;
}
"""


def spellings():
    """(compiler flags, linker flags) that ask for OpenMP, the likeliest first."""
    if sys.platform == "win32":
        return [(["/openmp"], [])]
    usual = ["-fopenmp"], ["-fopenmp"]
    # Apple's clang reads the pragmas, but takes header and library from elsewhere: CPPFLAGS and LDFLAGS say where
    return [usual, (["-Xpreprocessor", "-fopenmp"], ["-lomp"])] if sys.platform == "darwin" else [usual]


def probe(flags, link_flags):
    """Return "" if a two-thread program builds with these and really runs on two threads, else why not."""
    compiler = new_compiler()
    customize_compiler(compiler)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "probe.c"
        source.write_text(PROBE)
        try:
            objects = compiler.compile([str(source)], output_dir=folder, extra_postargs=flags)
            compiler.link_executable(objects, str(Path(folder) / "probe"), extra_postargs=link_flags)
        except Exception as error:  # distutils raises several unrelated classes
            return f"the OpenMP probe did not build with {' '.join(flags)}: {type(error).__name__}"
        program = next(p for p in Path(folder).rglob("probe*") if p.suffix in ("", ".exe"))
        try:
            answer = subprocess.run([str(program)], capture_output=True, text=True, timeout=60)
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"the OpenMP probe built, but did not run: {type(error).__name__}"
        if answer.stdout != "2":
            return f"the OpenMP probe built, but ran on {answer.stdout or 'no'} threads instead of 2"
    return ""


def openmp_flags(wish):
    """Return (compiler flags, linker flags, reason): no flags mean a serial build, and the reason says why."""
    if wish not in ("auto", "0", "1"):
        raise SystemExit(f"CMARGIN_OPENMP must be auto, 0 or 1; got {wish!r}")
    if wish == "0":
        return [], [], "switched off by CMARGIN_OPENMP=0"
    for flags, link_flags in spellings():
        why_not = probe(flags, link_flags)
        if not why_not:
            return flags, link_flags, "found by compiling, linking and running a probe"
    if wish == "1":
        raise SystemExit(f"CMARGIN_OPENMP=1, but {why_not}")
    print(f"cmargin: building without OpenMP, everything will run on one thread ({why_not})", file=sys.stderr)
    return [], [], why_not
