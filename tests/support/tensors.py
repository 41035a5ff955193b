"""Tensors of the libraries that are there: array-api-strict's on its devices, torch's on the processor, and torch's and
CuPy's on a GPU where there is one."""

import numpy as np

try:
    import array_api_strict as strict
except ImportError:
    strict = None
try:
    import torch
except ImportError:
    torch = None
try:
    import cupy
except ImportError:
    cupy = None


def strict_on(device):
    return lambda X: strict.asarray(np.array(X), device=strict.Device(device))


LIBRARIES = {}
if strict is not None:
    LIBRARIES["strict"] = strict_on("device1")
if torch is not None:
    LIBRARIES["torch"] = lambda X: torch.asarray(np.array(X))
    if torch.cuda.is_available():
        LIBRARIES["torch, CUDA"] = lambda X: torch.asarray(np.array(X), device="cuda")
if cupy is not None and cupy.is_available():
    LIBRARIES["cupy"] = lambda X: cupy.asarray(np.array(X))
SINGLE = strict_on("no_float64")             # a device without double precision


def in_memory(a):
    """What a tensor holds, by no way of ours."""
    if torch is not None and isinstance(a, torch.Tensor):
        return a.cpu().numpy()
    return a.get() if cupy is not None and isinstance(a, cupy.ndarray) else np.array(a._array)
