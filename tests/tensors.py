"""Tensors of the libraries that are there: array-api-strict's on its devices, and torch's on the processor."""

import numpy as np

try:
    import array_api_strict as strict
except ImportError:
    strict = None
try:
    import torch
except ImportError:
    torch = None


def strict_on(device):
    return lambda X: strict.asarray(np.array(X), device=strict.Device(device))


LIBRARIES = {}
if strict is not None:
    LIBRARIES["strict"] = strict_on("device1")
if torch is not None:
    LIBRARIES["torch"] = lambda X: torch.asarray(np.array(X))
SINGLE = strict_on("no_float64")             # a device without double precision


def in_memory(a):
    """What a tensor holds, by no way of ours."""
    return a.numpy() if torch is not None and isinstance(a, torch.Tensor) else np.array(a._array)
