"""Hold BLAS to one thread while our own threads, or a promise of equal bits, need it.

What a library counts is either one number for the process or one number a thread; which, is looked at once. Holds
share the process's number: the first one in sets it, the last one out puts back what was there. A thread's own number
is set by the first hold of that thread and put back by its last. Every hold looks whether the count is 1, so it does
not take the word of a setter, nor of the holds before it.

threadpoolctl finds the libraries. From version 3.8 on it lets one thread alone, the first that did so, change the
count of an OpenBLAS that has its own threads; so that count is changed by OpenBLAS's own function here. It is also read
by OpenBLAS's own, called without letting other threads of Python run: a hold is a few microseconds, and a fit that lets
others in 140 times for them waits for each (doc/lab-notebook).
"""

import ctypes
import os
import threading
import warnings
from contextlib import ContextDecorator
from itertools import product

from cmargin._core.linalg._blas_libraries import blas_libraries

_lock = threading.RLock()           # re-entrant: a child made by fork while this thread holds it still owns it
_libraries = None
_users = 0
_local = threading.local()


class _Library:
    """One BLAS library that is loaded: its count of threads, and how to set it."""

    def __init__(self, name, get, setters):
        self.name, self.get, self.setters = name, get, setters
        self.shared = None          # whether one count serves the whole process; known once it has been changed
        self.before = None          # the process's count to put back, None where it was not changed
        self.deaf = False           # no setter has an effect

    def set(self, n):
        """Whether the count is ``n`` now."""
        for setter in self.setters:
            setter(n)
            if self.get() == n:
                return True
        return False

    def hold(self, own):
        """Bring the count to 1; ``own``: {library: count to put back} of the calling thread."""
        n = self.get()
        if n is None or n == 1 or self.deaf:
            return
        if not self.set(1):
            self.deaf = True
            text = (f"{self.name} keeps {n} threads whatever it is told: fits that run at once may be slow, and differ "
                    "in the last digits. Start Python with the number of its threads set to 1 in the environment.")
            if debugging():
                raise RuntimeError(text)
            warnings.warn(text, RuntimeWarning, stacklevel=5)
            return
        if self.shared is None:
            self.shared = _in_a_new_thread(self.get) == 1
        if not self.shared:
            own.setdefault(self, n)
        elif self.before is None:
            self.before = n

    def give_back(self):
        if self.before is not None:
            self.set(self.before)
            self.before = None


class _Own:
    """What the holds of one thread share."""

    def __init__(self):
        self.depth, self.before, self.checks = 0, {}, False


def debugging():
    """Whether the environment asks, by CMARGIN_DEBUG=1, for a check of the count at the end of every hold too.

    A thread asks when its outermost hold begins.
    """
    return os.environ.get("CMARGIN_DEBUG", "0") == "1"


def _in_a_new_thread(function):
    found = []
    thread = threading.Thread(target=lambda: found.append(function()), daemon=True)
    thread.start()
    thread.join()
    return found[0]


def _openblas(library, name, result, *arguments):
    """OpenBLAS's function ``name`` in a loaded library, whatever was put before and behind the name; None without."""
    for prefix, suffix in product(("", "scipy_"), ("", "64_", "_64")):
        function = getattr(library, f"{prefix}openblas_{name}{suffix}", None)
        if function is not None:
            address = ctypes.cast(function, ctypes.c_void_p).value
            return ctypes.PYFUNCTYPE(result, *arguments)(address)        # keeps the interpreter's lock
    return None


def _library(controller):
    """What threadpoolctl found as a `_Library`."""
    get, setters, dynlib = controller.get_num_threads, [controller.set_num_threads], controller.dynlib
    if controller.internal_api == "openblas" and controller.threading_layer != "openmp":
        get = _openblas(dynlib, "get_num_threads", ctypes.c_int) or get
        setters.insert(0, _openblas(dynlib, "set_num_threads", None, ctypes.c_int))
    elif controller.internal_api == "mkl":          # of the process: threadpoolctl's is of the calling thread alone
        setters.insert(0, getattr(dynlib, "MKL_Set_Num_Threads", None))
    name = os.path.basename(controller.filepath or controller.internal_api)
    return _Library(name, get, [setter for setter in setters if setter is not None])


def _find():
    """The BLAS libraries of NumPy and SciPy and any other."""
    global _libraries
    if _libraries is None:
        _libraries = [_library(controller) for controller in blas_libraries()]
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_after_fork)
    return _libraries


def _after_fork():
    """In a child there are no other threads: their holds are over."""
    global _users
    _users = min(1, _own().depth)
    if _users == 0:
        _give_back()
    _lock.release()


def _give_back():
    for library in _libraries:
        library.give_back()


def _own():
    if not hasattr(_local, "own"):
        _local.own = _Own()
    return _local.own


class _Hold(ContextDecorator):
    """The context of `single_threaded_blas`; it has no state of its own, a thread's is in `_Own`."""

    def __enter__(self):
        global _users
        own = _own()
        if own.depth and all(library.get() in (1, None) for library in _libraries):      # inside a hold that holds
            own.depth += 1
            return
        inside = False
        try:
            with _lock:
                libraries = _find()
                if not own.depth:
                    _users, own.checks = _users + 1, debugging()
                own.depth += 1
                inside = True
                for library in libraries:
                    library.hold(own.before)
        except BaseException:
            if inside:
                _leave(own)
            raise

    def __exit__(self, kind, *_):
        own = _own()
        counts = blas_threads() if own.checks and kind is None else {}
        _leave(own)
        if set(counts.values()) - {1, None}:
            raise RuntimeError(f"BLAS was to run on one thread; something else set it to {counts} meanwhile.")


def _leave(own):
    global _users
    if own.depth > 1:
        own.depth -= 1
        return
    with _lock:
        _users -= 1
        own.depth -= 1
        for library, n in own.before.items():
            library.set(n)
        own.before.clear()
        if _users == 0:
            _give_back()


_HOLD = _Hold()


def single_threaded_blas():
    """Context, or decorator, in which every BLAS call of this thread, and of those that a kernel starts, runs on one.

    Raises
    ------
    RuntimeError
        Only with CMARGIN_DEBUG=1 in the environment: where the count could not be set, or was not 1 at the end.
    """
    return _HOLD


def blas_threads():
    """{file name of a BLAS library: its count of threads, as the calling thread sees it}."""
    return {library.name: library.get() for library in _find()}
