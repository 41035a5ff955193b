"""Decide the integer type of the BLAS and LAPACK that SciPy brings."""

import ctypes
from pathlib import Path

import scipy.linalg

HEADER = "# Written by setup.py: the integer type of SciPy's BLAS and LAPACK.\n"


def write_blas_int(path, write):
    """Write the include file with ``blas_int`` and return its width in bits.

    A SciPy that may be built with 64-bit integers (1.18 on) exports its own ``blas_int``; an older one has
    C ``int``. Only the declarations it ships can tell, so they are read.
    """
    declarations = Path(scipy.linalg.__file__).with_name("cython_blas.pxd").read_text()
    if "blas_int" not in declarations:
        write(path, HEADER + "ctypedef int blas_int\n")
        return 8 * ctypes.sizeof(ctypes.c_int)
    write(path, HEADER + "from scipy.linalg.cython_blas cimport blas_int\n")
    return 64 if "int64_t blas_int" in declarations else 8 * ctypes.sizeof(ctypes.c_int)
