"""Compiled modules of earlier builds of a checkout, found again by the contents of all that they are made of.

`pip install` builds in an environment that it makes anew, where every declaration of NumPy and Cython is younger than
what was compiled: by the clock, all is to be compiled again. Contents say that nothing has changed.
"""

import contextlib
import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

AT_MOST = 4              # builds of a module that are kept: of two interpreters, before and after a change


def of_contents(paths):
    """A digest of what the files have in them; of one that is not there, of its absence."""
    digest = hashlib.sha256()
    for path in paths:
        content = path.read_bytes() if path.is_file() else b"absent"
        digest.update(hashlib.sha256(content).digest())
    return digest.hexdigest()


def with_included(headers, folder):
    """The headers and those below ``folder`` that they include, which Cython does not look into."""
    known, found = {path.name: path for path in Path(folder).rglob("*.h")}, [*map(Path, headers)]
    for header in found:                         # which grows meanwhile
        for name in re.findall(r'#include "([^"]+)"', header.read_text() if header.is_file() else ""):
            if name in known and name not in {path.name for path in found}:
                found.append(known[name])
    return [*map(str, found)]


def declarations():
    """The files of NumPy, SciPy and Cython that our modules are translated and compiled with."""
    import numpy
    import scipy.linalg

    headers = Path(numpy.get_include())
    scipy_linalg = Path(scipy.linalg.__file__).parent
    return [*sorted(headers.rglob("*.h")), *sorted(Path(numpy.__file__).parent.glob("*.pxd")),
            *sorted(scipy_linalg.glob("cython_*.pxd"))]


def compiler_says(command):
    """What the compiler calls itself, and where it is: two versions of one are two compilers."""
    program = shutil.which(command[0]) or command[0]
    about = [program]
    with contextlib.suppress(OSError):
        about.append(str(os.stat(os.path.realpath(program)).st_size))
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        told = subprocess.run([*command, "--version"], capture_output=True, text=True, timeout=60)
        about.append(told.stdout + told.stderr)
    return about


class KeptModules:
    """The modules kept in ``folder``; ``alike`` is whatever else they depend on, of every module the same."""

    def __init__(self, folder, alike):
        self.folder = Path(folder)
        self.suffix = sysconfig.get_config_var("EXT_SUFFIX")
        self.alike = repr([sys.version, sysconfig.get_platform(), self.suffix, alike])

    def path(self, extension):
        """Where the module is kept that ``extension``, as setup.py has it before Cython saw it, compiles to."""
        by_hand = [Path(source) for source in extension.sources if not source.endswith(".c")]     # Cython makes those
        own = repr([extension.name, extension.sources, extension.include_dirs, extension.extra_compile_args,
                    extension.extra_link_args, of_contents(by_hand)])
        key = hashlib.sha256((self.alike + own).encode()).hexdigest()[:32]
        return self.folder / f"{extension.name}-{key}{self.suffix}"

    def keep(self, built, path):
        """Keep the module that was ``built`` under the ``path`` it is found by; older ones of its name may go."""
        with contextlib.suppress(OSError):       # a read-only checkout still builds
            self.folder.mkdir(parents=True, exist_ok=True)
            put(built, path)
            name = path.name.split("-")[0]
            others = sorted(self.folder.glob(f"{name}-*"), key=lambda other: other.stat().st_mtime)
            for other in others[:-AT_MOST]:
                other.unlink()


def put(module, place):
    """Copy a module so that nobody, a process that has the older one open included, finds half of it."""
    place.parent.mkdir(parents=True, exist_ok=True)
    half = place.with_name(f".{place.name}.{os.getpid()}")
    try:
        shutil.copyfile(module, half)
        shutil.copymode(module, half)
        os.replace(half, place)
    finally:
        half.unlink(missing_ok=True)
