"""Functions of compiled modules that have no Python twin, called by their address, as another kernel calls them.

What a ``.pxd`` declares is in its module's ``__pyx_capi__``; a function that is fused over float and double is there
twice. Nothing is checked: arrays must be C-contiguous and of the sizes that are said.
"""

import ctypes

import numpy as np

ARRAY, SIZE, NUMBER, FLAG = ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_double, ctypes.c_int


def c_function(module, name, result, *arguments, dtype=None):
    """The function ``name`` of ``module``, of these ctypes types; ``dtype``: of its arrays, if it is fused."""
    key = name if dtype is None else f"__pyx_fuse_{int(np.dtype(dtype) == np.float64)}{name}"
    capsule, api = module.__pyx_capi__[key], ctypes.pythonapi
    api.PyCapsule_GetName.restype, api.PyCapsule_GetName.argtypes = ctypes.c_char_p, [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    address = api.PyCapsule_GetPointer(capsule, api.PyCapsule_GetName(capsule))
    function = ctypes.CFUNCTYPE(result, *arguments)(address)

    def call(*given):
        return function(*(a.ctypes.data if isinstance(a, np.ndarray) else a for a in given))

    return call
