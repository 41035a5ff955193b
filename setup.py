"""Build of the compiled core: BLAS integer width and OpenMP are decided here, by looking and by trying.

Environment
    CMARGIN_OPENMP   auto (default): use OpenMP if a probe compiles, links and runs; 0: never; 1: fail without it
    CMARGIN_DEBUG    1: bounds checks on, for hunting a crash
"""

import contextlib
import io
import os
import sys
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent
CORE = ROOT / "cmargin" / "_core"
sys.path.insert(0, str(ROOT))  # isolated builds do not put the project itself on the path

from build_tools.blas_int import write_blas_int  # noqa: E402
from build_tools.openmp import openmp_flags  # noqa: E402


def write_if_changed(path, text):
    """Leave the time stamp alone where nothing changed, so that a rebuild compiles only what it must."""
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def cythonize_strictly(extensions, directives):
    """Cythonize; a performance hint (a kernel that silently takes the GIL, say) is an error here."""
    heard = io.StringIO()
    try:
        with contextlib.redirect_stderr(heard):
            modules = cythonize(extensions, compiler_directives=directives, include_path=[str(ROOT)])
    finally:
        sys.stderr.write(heard.getvalue())
    if "performance hint" in heard.getvalue():
        raise SystemExit("cmargin treats Cython performance hints as errors; see above")
    return modules


class BuildInBothPlaces(build_ext):
    """Leave the compiled modules in the checkout too: ``python -m cmargin`` run there finds the checkout first."""

    def run(self):
        super().run()
        if not self.inplace:
            with contextlib.suppress(OSError):  # a read-only checkout still builds
                self.copy_extensions_to_source()


def main():
    flags, why = openmp_flags(os.environ.get("CMARGIN_OPENMP", "auto"))
    width = write_blas_int(CORE / "_blas_int.pxi", write_if_changed)
    write_if_changed(
        ROOT / "cmargin" / "_build_config.py",
        f'"""Written by setup.py."""\n\nOPENMP = {bool(flags)}\nOPENMP_REASON = {why!r}\nBLAS_INT_BITS = {width}\n',
    )
    debug = os.environ.get("CMARGIN_DEBUG", "0") == "1"
    directives = {
        "language_level": 3,
        "boundscheck": debug,
        "wraparound": False,
        "cdivision": True,
        "initializedcheck": debug,
        "embedsignature": True,
        "freethreading_compatible": True,
    }
    optimise = [] if sys.platform == "win32" else ["-O3", "-fno-math-errno", "-fno-trapping-math"]
    extensions = [
        Extension(
            f"cmargin._core.{path.stem}",
            [str(path.relative_to(ROOT))],
            include_dirs=[str(CORE.relative_to(ROOT))],
            extra_compile_args=optimise + flags,
            extra_link_args=list(flags),
        )
        for path in sorted(CORE.glob("*.pyx"))
    ]
    setup(ext_modules=cythonize_strictly(extensions, directives), cmdclass={"build_ext": BuildInBothPlaces})


main()
