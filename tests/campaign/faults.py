"""What is not ours to prevent, made to happen: no memory, LAPACK that fails, callbacks that raise, Ctrl-C, a full disk.

A fit under a fault ends as documented, the model that was there is whole, and the next fit has the bits of one that
nothing has happened to. Allocations fail by a library that is preloaded (failing_malloc.c), LAPACK by other functions
in place of those that SciPy hands to compiled code.
"""

import ctypes
import os
import resource
import signal
import subprocess
import tempfile
import warnings
from importlib import import_module
from pathlib import Path

import numpy as np

from .estimators import ESTIMATORS, SEARCHES, WAYS, make
from .findings import Findings

KINDS = ("malloc", "numpy's malloc", "lapack", "callback", "interrupt", "interrupt", "disk")
PLACES = {"malloc": b"cmargin/_core", "numpy's malloc": b"_multiarray_umath"}
CASES = [(name, way) for name in ESTIMATORS if name not in SEARCHES for way in WAYS.get(name, [{}])]
ROUTINES = {"spotrf": 4, "dpotrf": 4, "ssyevr": 20, "dsyevr": 20}      # name -> place of info among the arguments
_lapack = {"kept": [], "calls": 0, "failing": 0}


class Raised(Exception):
    """What a callback raises."""


def describe(seed):
    rng = np.random.default_rng([seed, 4711])
    name, way = CASES[rng.integers(len(CASES))]
    return [KINDS[seed % len(KINDS)], name, *(f"{key}={value}" for key, value in way.items())]


def prepare():
    """Build what is preloaded; the environment of workers that have it. Without a compiler allocations do not fail."""
    library = Path(tempfile.gettempdir()) / f"failing_malloc_{os.getuid()}.so"
    source = Path(__file__).with_name("failing_malloc.c")
    try:
        subprocess.run([os.environ.get("CC", "cc"), "-O2", "-shared", "-fPIC", source, "-o", library, "-ldl"],
                       check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return {}
    return {"LD_PRELOAD": str(library)}


def load():
    replace_lapack()
    for name in ("cmargin.baselines", "cmargin.slnd", "cmargin.smsvm_cv"):
        import_module(name)


def replace_lapack():
    """Put functions that can fail into the capsules from which compiled modules take theirs when they are loaded."""
    from scipy.linalg import cython_lapack

    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype, api.PyCapsule_GetName.argtypes = ctypes.c_char_p, [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    api.PyCapsule_SetPointer.argtypes = [ctypes.py_object, ctypes.c_void_p]
    for name, info in ROUTINES.items():
        capsule = cython_lapack.__pyx_capi__[name]
        kind = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (info + 1))
        original = kind(api.PyCapsule_GetPointer(capsule, api.PyCapsule_GetName(capsule)))
        ours = kind(can_fail(original, info))
        _lapack["kept"].append((original, ours))
        api.PyCapsule_SetPointer(capsule, ctypes.cast(ours, ctypes.c_void_p))


def can_fail(original, info):
    def call(*arguments):
        _lapack["calls"] += 1
        if _lapack["calls"] == _lapack["failing"]:
            ctypes.c_int.from_address(arguments[info]).value = 1
        else:
            original(*arguments)
    return call


# ------------------------------------------------------------ the check

def data(seed, n=40, p=6, n_classes=3):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    return rng.standard_normal((n_classes, p))[y] + rng.standard_normal((n, p)), y


def check_seed(seed):
    tags = describe(seed)
    found, kind = Findings(seed, tags), tags[0]
    rng = np.random.default_rng([seed, 4712])
    name, way = CASES[np.random.default_rng([seed, 4711]).integers(len(CASES))]
    model = make(name, **way, max_passes=6, n_jobs=1)
    X, y = data(seed) if rng.random() < 0.7 else data(seed, 200, 12, 4)
    warnings.simplefilter("ignore")
    expected = fitted_numbers(make(name, **way, max_passes=6, n_jobs=1).fit(X, y))
    before = None
    if rng.random() < 0.5:
        before = fitted_numbers(model.fit(*data(seed + 1)))
    inject = {"lapack": lapack, "callback": callback, "interrupt": interrupt, "disk": disk}.get(kind, malloc)
    met = inject(model, X, y, rng, found)
    found.count("fits", f"{kind}: {met}")
    check_left(model, X, before, met, found)
    try:
        model.set_params(callback=None, checkpoint=None).fit(X, y)
    except Exception as error:
        found.add("not recovered", f"the next fit raises {type(error).__name__}: {error}"[:200])
        return found
    if not same(fitted_numbers(model), expected):
        found.add("bits", "the next fit has other bits than one that nothing happened to")
    return found


def fitted_numbers(model):
    return [model.coef_.copy(), np.copy(model.intercept_)]


def same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def check_left(model, X, before, met, found):
    """After an error the model that was there, or a whole new one; where there was none, none or a whole one."""
    if not hasattr(model, "coef_"):
        if before is not None:
            found.add("lost", "the model that was there is gone")
        return
    if not all(np.isfinite(part).all() for part in fitted_numbers(model)):
        found.add("nan", f"coef_ or intercept_ is not finite after: {met}")
    try:
        model.predict(X if model.n_features_in_ == X.shape[1] else data(0, p=model.n_features_in_)[0])
    except Exception as error:
        found.add("half fitted", f"predict raises {type(error).__name__}: {error}"[:200])


def attempt(model, X, y, allowed, found):
    """Fit; what was met, in a word. Other errors than ``allowed`` are faults."""
    try:
        model.fit(X, y)
    except allowed as error:
        if not isinstance(error, (KeyboardInterrupt, MemoryError, Raised)) and len(str(error)) < 10:
            found.add("no words", repr(error))
        return type(error).__name__
    except BaseException as error:
        found.add("exception", f"{type(error).__name__}: {error}"[:200])
        return "another error"
    return "survived"


def malloc(model, X, y, rng, found):
    """One of the allocations of a fit fails."""
    library = ctypes.CDLL(None)
    if not hasattr(library, "fail_malloc"):
        return "not preloaded"
    place = PLACES[found.tags[0]]
    library.fail_malloc(place, 0)
    make(found.tags[1], **{**model.get_params(deep=False)}).fit(X, y)
    asked = library.asked_malloc()
    library.fail_malloc(place, int(rng.integers(1, asked + 1)) if asked else 0)
    # NumPy's assignment through a mask, where it gets no memory, raises "error return without exception set"
    met = attempt(model, X, y, MemoryError if place == PLACES["malloc"] else (MemoryError, SystemError), found)
    library.fail_malloc(None, 0)
    return met if asked else "nothing asked for"


def lapack(model, X, y, rng, found):
    """One call of LAPACK says that it has failed, and has computed nothing."""
    _lapack.update(calls=0, failing=0)
    make(found.tags[1], **model.get_params(deep=False)).fit(X, y)
    calls = _lapack["calls"]
    _lapack.update(calls=0, failing=int(rng.integers(1, calls + 1)) if calls else 0)
    met = attempt(model, X, y, ValueError, found)
    _lapack["failing"] = 0
    return met if calls else "nothing called"


def callback(model, X, y, rng, found):
    """A callback that raises after some passes; only then may the model that was there be another."""
    left = [int(rng.integers(1, 8))]

    def stop(_):
        left[0] -= 1
        if left[0] == 0:
            raise Raised
        return False

    return attempt(model.set_params(callback=stop), X, y, Raised, found)


def ring(_, frame):
    """Ctrl-C, but never inside a `can_fail`: what is raised there ctypes swallows, and LAPACK has computed nothing."""
    while frame is not None:
        if frame.f_code.co_qualname == "can_fail.<locals>.call":
            signal.setitimer(signal.ITIMER_REAL, 1e-4)
            return
        frame = frame.f_back
    signal.raise_signal(signal.SIGINT)


def interrupt(model, X, y, rng, found):
    """Ctrl-C at any time between the first line of a fit and a little after its last."""
    clone = make(found.tags[1], **model.get_params(deep=False))
    begin = os.times().elapsed
    clone.fit(X, y)
    seconds = max(os.times().elapsed - begin, 0.002)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGALRM, ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, float(rng.uniform(1e-5, 1.2 * seconds)))
        met = attempt(model, X, y, KeyboardInterrupt, found)
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        met = "after the fit"
    return met


def disk(model, X, y, rng, found):
    """Files can hold so many bytes and no more, as on a disk that is full: a warning, and the same weights."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    from cmargin import Checkpoint

    with tempfile.TemporaryDirectory() as folder:
        model.set_params(checkpoint=Checkpoint(os.path.join(folder, "fit"), seconds=0.0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(rng.integers(0, 20_000)), resource.RLIM_INFINITY))
        with warnings.catch_warnings(record=True) as received:
            warnings.simplefilter("always")
            met = attempt(model, X, y, (), found)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        left = os.listdir(folder)
    full = sum("checkpoint" in str(warning.message).lower() for warning in received)
    if full > 1:
        found.add("words", f"{full} warnings of one full disk")
    if left:
        found.add("files", f"left on the disk: {left}")
    return met if full == 0 else "a warning"
