"""Build of the compiled core: BLAS integer width and OpenMP are decided here, by looking and by trying.

Environment
    CMARGIN_OPENMP   auto (default): use OpenMP if a probe compiles, links and runs; 0: never; 1: fail without it
    CMARGIN_DEBUG    1: bounds checks on, for hunting a crash
    CMARGIN_COVERAGE 1: gcov counts the lines of the compiled modules (build_tools/coverage.sh)
    CMARGIN_SANITIZE what gcc and clang take after -fsanitize=, as "address,undefined" (doc/reliability.md)

Modules are translated and compiled side by side, on as many processors as this process may use; an sdist translates
nothing. What was compiled before, from the same contents, is taken from build/modules (`build_tools.kept_modules`).
"""

import contextlib
import functools
import multiprocessing
import os
import sys
import tempfile
from pathlib import Path

import Cython
from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
CORE = ROOT / "cmargin" / "_core"
sys.path.insert(0, str(ROOT))  # isolated builds do not put the project itself on the path

from build_tools.blas_int import write_blas_int  # noqa: E402
from build_tools.kept_modules import KeptModules, compiler_says, declarations, of_contents, put, with_included  # noqa: E402
from build_tools.openmp import openmp_flags  # noqa: E402


def write_if_changed(path, text):
    """Leave the time stamp alone where nothing changed, so that a rebuild compiles only what it must."""
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def processors():
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextlib.contextmanager
def heard():
    """What this process and its children write to standard error, read back as text; shown afterwards."""
    sys.stderr.flush()
    kept = os.dup(2)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)
        words = []
        try:
            yield words
        finally:
            sys.stderr.flush()
            os.dup2(kept, 2)
            os.close(kept)
            file.seek(0)
            words.append(file.read().decode(errors="replace"))
            sys.stderr.write(words[0])


@contextlib.contextmanager
def noted(switches):
    """Whether the checkout was built with other switches than these; the clock, which decides else, knows of none."""
    note, text = ROOT / "build" / "switches.txt", repr(switches)
    before = note.read_text() if note.exists() else None

    def write(text):
        with contextlib.suppress(OSError):  # a read-only checkout still builds
            note.parent.mkdir(exist_ok=True)
            note.write_text(text)

    write("unfinished")
    yield before != text if before is not None else DEBUG or COVERAGE or bool(KINDS)
    write(text)


def cythonize_strictly(extensions, directives, force):
    """Cythonize; a performance hint (a kernel that silently takes the GIL, say) is an error here."""
    # children that begin by importing this file again, as they do without fork, would build it again
    n_processes = processors() if multiprocessing.get_start_method() == "fork" else 0
    with heard() as words:
        modules = cythonize(extensions, compiler_directives=directives, include_path=[str(ROOT)],
                            nthreads=n_processes, force=force or None, emit_linenums=COVERAGE,
                            shared_utility_qualified_name=SHARED)
    if "performance hint" in words[0] and not DEBUG:     # where checks are asked for, hints are against them
        raise SystemExit("cmargin treats Cython performance hints as errors; see above")
    return modules


class BuildInBothPlaces(build_ext):
    """Leave the compiled modules in the checkout too: ``python -m cmargin`` run there finds the checkout first."""

    def finalize_options(self):
        super().finalize_options()
        if self.parallel is None:
            self.parallel = processors()

    def run(self):
        flags, link_flags = configure()
        for extension in self.extensions:
            extension.extra_compile_args = OPTIMISE + COUNT + SANITIZE + flags
            extension.extra_link_args = COUNT + SANITIZE + link_flags
        with noted([DIRECTIVES, COVERAGE, OPTIMISE, COUNT, SANITIZE, flags, link_flags]) as others:
            self.anew, self.in_place, self.force = bool(self.force), bool(self.inplace), self.force or others
            super().run()
        if not self.inplace:
            with contextlib.suppress(OSError):  # a read-only checkout still builds
                self.copy_extensions_to_source()

    def build_extensions(self):
        """Compile what no earlier build has compiled; here, because the compiler and its flags are known only now."""
        asked, known = self.extensions, KeptModules(ROOT / "build" / "modules", self.alike())
        places = {extension.name: known.path(extension) for extension in asked}
        # counts, and what sanitizers want to know, lie beside the objects
        found = set() if self.anew or COVERAGE or KINDS else {name for name in places if places[name].is_file()}
        for name in found:
            put(places[name], self.built(name))
        # by the clock a module may look done that another compiler made: a checkout's own builds go by it alone
        self.force = self.force or not self.in_place
        before = {name: self.built(name).stat().st_mtime_ns for name in places if self.built(name).exists()}
        self.extensions = self.translated([extension for extension in asked if extension.name not in found])
        super().build_extensions()
        for name in places.keys() - found:
            if self.built(name).stat().st_mtime_ns != before.get(name):
                known.keep(self.built(name), places[name])
        self.extensions = asked

    def alike(self):
        """What all modules depend on beside their own source: declarations, the compiler and what it is told."""
        own = [path for kind in ("pxd", "pxi", "h") for path in sorted((ROOT / "cmargin").rglob(f"*.{kind}"))]
        told = [getattr(self.compiler, name, None) for name in ("compiler_so", "linker_so", "compile_options")]
        return [Cython.__version__, DIRECTIVES, COVERAGE, told, compiler_says((told[0] or ["cl"])[:1]),
                [os.environ.get(name) for name in ("CL", "_CL_", "CPATH", "C_INCLUDE_PATH", "LIBRARY_PATH")],
                of_contents([*own, *declarations()])]

    def built(self, name):
        """Where the module is built."""
        return Path(self.get_ext_fullpath(name))

    def translated(self, extensions):
        """As Cython leaves them."""
        extensions = cythonize_strictly(extensions, DIRECTIVES, self.force) if extensions else []
        for extension in extensions:
            extension._needs_stub = False              # as setuptools had it for those that cythonize replaced
            headers = [path for path in extension.depends if path.endswith(".h")]
            extension.depends = [*extension.depends, *with_included(headers, ROOT / "cmargin")]
        return extensions


class ConfiguredBuildPy(build_py):
    """What was found on this machine is written before the files of the package are gathered: it is one of them."""

    def run(self):
        configure()
        super().run()


@functools.cache
def configure():
    """Look at this machine, write down what was found, and return the flags for OpenMP, to compile and to link."""
    flags, link_flags, why = openmp_flags(os.environ.get("CMARGIN_OPENMP", "auto"))
    width = write_blas_int(CORE / "linalg" / "_blas_int.pxi", write_if_changed)
    write_if_changed(
        ROOT / "cmargin" / "_build_config.py",
        f'"""Written by setup.py."""\n\nOPENMP = {bool(flags)}\nOPENMP_REASON = {why!r}\nBLAS_INT_BITS = {width}\n',
    )
    return flags, link_flags


DEBUG, COVERAGE = (os.environ.get(name, "0") == "1" for name in ("CMARGIN_DEBUG", "CMARGIN_COVERAGE"))
DIRECTIVES = {
    "language_level": 3,
    "boundscheck": DEBUG,
    "wraparound": False,
    "cdivision": True,
    "initializedcheck": DEBUG,
    "embedsignature": True,
    "freethreading_compatible": True,
}
KINDS = os.environ.get("CMARGIN_SANITIZE", "")
if sys.platform == "win32":
    OPTIMISE = ["/std:c11"]      # our headers say restrict
else:  # symbols for a debugger make the modules four times as large, and take a third of the time
    OPTIMISE = ["-O1" if COVERAGE or KINDS else "-O3", "-g" if DEBUG else "-g0"]
    OPTIMISE += ["-fno-math-errno", "-fno-trapping-math"]
COUNT = ["--coverage"] if COVERAGE else []
# with frames for the stacks of its reports; what is undefined ends the process, as what is out of bounds does
SANITIZE = [f"-fsanitize={KINDS}", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer", "-g1"] if KINDS else []
HEADERS = ["cmargin/include", *sorted({str(path.parent.relative_to(ROOT)) for path in CORE.glob("**/*.h")})]
EXTENSIONS = [
    Extension(".".join(path.with_suffix("").parts), [str(path)], include_dirs=HEADERS)
    for path in sorted(path.relative_to(ROOT) for path in [*CORE.glob("**/*.pyx"), ROOT / "cmargin" / "api.pyx"])
]
# what Cython puts into every module that looks at arrays is one module of its own: half of the C code
SHARED = "cmargin._core._cyutility"
EXTENSIONS.append(Extension(SHARED, ["cmargin/_core/_cyutility.c"]))

if __name__ == "__main__":
    setup(ext_modules=EXTENSIONS, cmdclass={"build_ext": BuildInBothPlaces, "build_py": ConfiguredBuildPy})
