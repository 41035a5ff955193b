"""What this build and this process run on: the first thing to look at, or to send, when something is slow."""

import platform
import sys
from pathlib import Path
from typing import TextIO

import numpy
import scipy
import sklearn
from threadpoolctl import threadpool_info

from cmargin import _build_config
from cmargin._core.linalg._blas import lanes_here
from cmargin._core.linalg._blas_libraries import blas_trails
from cmargin._core.util._openmp import effective_n_threads, threads_seen
from cmargin._version import __version__


def show_config(file: TextIO | None = None) -> None:
    """Print versions, OpenMP, BLAS and threads to ``file`` (standard output by default)."""
    file = sys.stdout if file is None else file
    threads = effective_n_threads(None)
    if _build_config.OPENMP:
        openmp = f"on, {threads} threads by default, {threads_seen(threads)} seen"
    else:
        openmp = "off: everything runs on one thread"
    rows = [
        ("cmargin", __version__),
        ("Python", f"{platform.python_version()} on {platform.system()} {platform.machine()}"),
        ("numpy", numpy.__version__),
        ("scipy", scipy.__version__),
        ("scikit-learn", sklearn.__version__),
        ("OpenMP", f"{openmp} ({_build_config.OPENMP_REASON})"),
        ("BLAS integers", f"{_build_config.BLAS_INT_BITS} bits"),
    ]
    for pool in threadpool_info():
        # two copies of one OpenMP are told apart by their files
        name = Path(pool["filepath"]).name if pool["user_api"] == "openmp" else pool["internal_api"]
        name = f"{name} {pool.get('version') or ''}".strip()
        kernels = f", kernels for {pool['architecture']}" if pool.get("architecture") else ""
        rows.append((f"loaded {pool['user_api']}", f"{name}, {pool['num_threads']} threads{kernels}"))
    if lanes_here() == 8 and blas_trails():
        rows.append(("hint", "this processor has AVX-512, which those kernels leave alone; OpenBLAS uses it where "
                             "Python is started with OPENBLAS_CORETYPE=SkylakeX in the environment"))
    width = max(len(name) for name, _ in rows)
    for name, text in rows:
        print(f"{name:<{width}}  {text}", file=file)
