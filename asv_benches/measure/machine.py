"""What a measurement ran on: model of the processor, cores, threads, versions; no names of hosts or folders."""

import os
import platform
from functools import cache

import numpy
import scipy
import sklearn
from threadpoolctl import threadpool_info

import cmargin
from cmargin._core.util._openmp import effective_n_threads


def _processor():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


@cache
def machine():
    """Plain texts and numbers, in the order the page gives them."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    blas = {f"{pool['internal_api']} {pool.get('version') or ''}".strip() for pool in threadpool_info()
            if pool["user_api"] == "blas"}
    return {
        "processor": _processor(), "cores": cores, "threads": effective_n_threads(None),
        "system": platform.system(), "Python": platform.python_version(), "cmargin": cmargin.__version__,
        "numpy": numpy.__version__, "scipy": scipy.__version__, "scikit-learn": sklearn.__version__,
        "BLAS": " and ".join(sorted(blas)),
    }
