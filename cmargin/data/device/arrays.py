"""Arrays of other libraries: which they are, where they live, and the way to this machine's memory and back.

Everything in this package is written in the functions of the array API standard; array-api-compat makes torch and CuPy
speak it. No array is written to in place, so that libraries whose arrays cannot be are served too.
"""

import sys

import numpy as np

HALF = ("float16", "bfloat16")
CPU = 1                        # of DLPack's kinds of devices


def is_of(x, module, name):
    """Whether ``x`` is an instance of a class of a module that is only looked for where it has been loaded."""
    kind = getattr(sys.modules.get(module), name, None)
    return kind is not None and isinstance(x, kind)


def on_device(x):
    """Whether ``x`` is an array of a library whose products are to be made by it: neither NumPy's nor lazy ones."""
    if isinstance(x, (np.ndarray, np.generic)):
        return False
    if is_of(x, "torch", "Tensor") or is_of(x, "cupy", "ndarray"):
        return True
    return hasattr(x, "__array_namespace__") and not type(x).__module__.startswith(("dask.", "numpy", "sparse."))


def brought(x, what):
    """An object that has `__dlpack__` and nothing else as a NumPy array; any other as it is."""
    if isinstance(x, np.ndarray) or not hasattr(x, "__dlpack__") or on_device(x) or hasattr(x, "__array__"):
        return x
    try:
        return np.from_dlpack(x)
    except (TypeError, ValueError, RuntimeError, BufferError) as error:
        raise TypeError(f"{what} is a {type(x).__name__} that NumPy cannot read where it is ({error}); give it as an "
                        "array that array-api-compat knows, a torch tensor or CuPy array say.") from None


def namespace_of(x):
    """The functions for ``x``; NumPy's for NumPy arrays."""
    if isinstance(x, np.ndarray):
        return np
    try:
        from array_api_compat import array_namespace

        return array_namespace(x)
    except ImportError:
        if hasattr(x, "__array_namespace__"):
            return x.__array_namespace__()
    raise ImportError(f"Rows in a {type(x).__name__} are read by array-api-compat: pip install 'cmargin[device]'.")


def device_of(x):
    return x.device() if callable(x.device) else x.device


def is_on_cpu(x):
    try:
        return x.__dlpack_device__()[0] == CPU
    except Exception:          # whatever a library without that says
        return False


def to_host(x):
    """A NumPy array of the same numbers; a NumPy array is returned as it is."""
    if not on_device(x):
        return np.asarray(x)
    if is_of(x, "torch", "Tensor"):
        x = x.detach().cpu()
        return (x.float() if str(x.dtype).endswith("bfloat16") else x).numpy()        # NumPy has no such dtype
    if is_of(x, "cupy", "ndarray"):
        return x.get()
    try:
        return np.from_dlpack(x)
    except (TypeError, ValueError, RuntimeError, BufferError):
        return np.asarray(x)


def beside(X, a, name):
    """``a``, which goes with ``X``, labels or weights, as what lies in memory: brought here once where it is a tensor.

    ValueError where the two are on two devices.
    """
    a = brought(a, name)
    if not on_device(a):
        return a
    refuse_tensors(a, name)
    here = device_of(X) if on_device(X) else None
    if here is None and not is_on_cpu(a):
        raise ValueError(f"X is in memory and {name} on {device_of(a)}; they must be on one device, or {name} in "
                         "memory.")
    if here is not None and (device_of(a) != here):
        raise ValueError(f"X is on {here} and {name} on {device_of(a)}; they must be on one device, or {name} a NumPy "
                         "array.")
    return np.array(to_host(a))


def refuse_tensors(x, name):
    """ValueError for those that are not plain arrays of numbers."""
    if getattr(x, "requires_grad", False) is True:
        raise ValueError(f"{name} requires grad, and no gradient goes through cmargin; give {name}.detach().")
    if is_of(x, "torch", "Tensor") and not str(x.layout).endswith("strided"):
        raise ValueError(f"{name} is a sparse tensor ({x.layout}); give a scipy.sparse CSR matrix or "
                         f"{name}.to_dense().")


class Device:
    """Where an array lives: its library's functions, and in which precision sums can be kept there."""

    def __init__(self, x):
        self.xp, self.device, self.dtype = namespace_of(x), device_of(x), x.dtype
        self.on_cpu = is_on_cpu(x)
        self.exact = self._has_float64()         # whether sums can be kept in float64
        self.wide = self.xp.float64 if self.exact else self.xp.float32

    def _has_float64(self):
        """JAX warns where a dtype is wanted that it is not set to have, so that the library is asked first."""
        try:
            known = self.xp.__array_namespace_info__().dtypes(device=self.device, kind="real floating")
        except Exception:      # of a library, or an older version, that cannot tell
            known = {"float64": None}
        if "float64" not in known:
            return False
        try:
            return self.xp.zeros(1, dtype=self.xp.float64, device=self.device).dtype == self.xp.float64
        except Exception:      # each library says so in its own way
            return False

    def put(self, a, dtype=None):
        """An array from memory, on the device; floats in ``dtype``, `wide` if None."""
        a = np.asarray(a)
        if a.dtype.kind == "f":
            dtype = self.wide if dtype is None else dtype
            a = a.astype(np.float32 if dtype == self.xp.float32 else np.float64)
        elif not a.flags.writeable:
            a = a.copy()
        return self.xp.asarray(a, device=self.device)

    def widened(self, x):
        return self._of(x, self.wide)

    def narrowed(self, x):
        """In the precision of the rows."""
        return self._of(x, self.dtype)

    def _of(self, x, dtype):
        """The test costs a tenth of a conversion that changes nothing."""
        return x if x.dtype == dtype else self.xp.astype(x, dtype)
