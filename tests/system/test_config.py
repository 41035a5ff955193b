import io
import os
import platform
import shutil
import subprocess
import sys
import sysconfig

import pytest
from api import effective_n_threads, threads_seen
from installation import ROOT, run
from started import python
from threadpoolctl import threadpool_info

import cmargin
from cmargin import _build_config
from cmargin._runtime.blas_threads import single_threaded_blas


def test_a_build_that_claims_openmp_really_uses_two_threads():
    assert threads_seen(2) == (2 if _build_config.OPENMP else 1)


def test_n_jobs_becomes_a_number_of_threads():
    everything = effective_n_threads(-1)
    assert everything >= 1 and effective_n_threads(None) >= 1
    assert effective_n_threads(3) == (3 if _build_config.OPENMP else 1)
    assert effective_n_threads(-1000) == 1
    if _build_config.OPENMP:
        assert effective_n_threads(-2) == max(1, everything - 1)
    with pytest.raises(ValueError, match="n_jobs == 0 has no meaning"):
        effective_n_threads(0)


def test_the_environment_limits_the_default():
    code = "from cmargin._core.util._openmp import effective_n_threads; print(effective_n_threads(None))"
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    assert subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True).stdout == "1\n"


def test_show_config_says_what_matters():
    out = io.StringIO()
    cmargin.show_config(out)
    text = out.getvalue()
    assert ("OpenMP" in text) and ("BLAS integers" in text) and (_build_config.OPENMP_REASON in text)
    assert ("off: everything runs on one thread" in text) != _build_config.OPENMP


@pytest.mark.parametrize(("lanes", "trails"), [(8, True), (8, False), (4, True)])
def test_show_config_tells_of_a_library_that_takes_the_processor_for_an_older_one(monkeypatch, lanes, trails):
    monkeypatch.setattr("cmargin._runtime.show_config.lanes_here", lambda: lanes)
    monkeypatch.setattr("cmargin._runtime.show_config.blas_trails", lambda: trails)
    out = io.StringIO()
    cmargin.show_config(out)
    assert ("OPENBLAS_CORETYPE" in out.getvalue()) == (lanes == 8 and trails)


def test_import_loads_no_compiled_module_and_leaves_subnormals_alone():
    code = (
        "import sys, cmargin; assert not any('cmargin._core' in m for m in sys.modules), 'import is not light'; "
        "from cmargin import SLNDClassifier; import numpy as np; assert np.finfo(float).smallest_subnormal > 0; "
        "assert np.array([5e-324])[0] / 1 > 0"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = cmargin.nothing
    assert set(cmargin.__all__) <= set(dir(cmargin))


def modules_after(code):
    done = subprocess.run([sys.executable, "-c", f"import sys; before = set(sys.modules)\n{code}\n"
                           "print(*set(sys.modules) - before)"], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_the_package_itself_costs_a_handful_of_modules():
    # numpy alone is a hundred
    assert len(modules_after("import cmargin")) <= 10


def test_kernels_solvers_and_the_c_interface_do_without_scikit_learn():
    found = modules_after(
        "import importlib, pkgutil, cmargin.api, cmargin.data, cmargin._core, cmargin.solvers\n"
        "for package in (cmargin._core, cmargin.solvers):\n"
        "    for module in pkgutil.walk_packages(package.__path__, package.__name__ + '.'):\n"
        "        importlib.import_module(module.name)")
    assert {"cmargin.api", "cmargin._core.newton._driver", "cmargin.solvers.dual.dual_newton"} <= found
    assert not [name for name in found if name.split(".")[0] == "sklearn"]


@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this Python has the lock")
def test_no_module_brings_the_interpreters_lock_back():
    code = ("import sys, importlib, pkgutil, cmargin.api, cmargin._core\n"
            "for module in pkgutil.walk_packages(cmargin._core.__path__, 'cmargin._core.'):\n"
            "    importlib.import_module(module.name)\n"
            "assert not sys._is_gil_enabled()")
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def blas_threads():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_blas_is_held_to_one_thread_by_count_and_given_back():
    # Two fits at once: the first to leave must not give BLAS its threads back under the other one's feet.
    before = blas_threads()
    first, second = single_threaded_blas(), single_threaded_blas()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert all(n == 1 for n in blas_threads())
    second.__exit__(None, None, None)
    assert blas_threads() == before


def test_what_a_build_finds_is_packaged(tmp_path):
    # a first build found it after the files of the package had been gathered
    if not (ROOT / "setup.py").exists():
        pytest.skip("the tests are not in a checkout")
    fresh = tmp_path / "fresh"
    leave = shutil.ignore_patterns("*.so", "*.c", "__pycache__", "_build_config.py", "_blas_int.pxi")
    for name in ("cmargin", "build_tools"):
        shutil.copytree(ROOT / name, fresh / name, ignore=leave)
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy2(ROOT / name, fresh)
    run([sys.executable, "setup.py", "-q", "build_py", "-d", str(tmp_path / "out")], fresh)
    assert (tmp_path / "out" / "cmargin" / "_build_config.py").exists()
    assert (tmp_path / "out" / "cmargin" / "_core" / "linalg" / "_blas_int.pxi").exists()


CONTROL = """
import ctypes, sys, threading
import numpy as np
libm, room = ctypes.CDLL("libm.so.6"), (ctypes.c_uint * 16)()

def control(seen):
    libm.fegetenv(room)
    seen.append(room[7] & 0xffc0)              # MXCSR without its sticky flags: flush to zero, masks, rounding

def everywhere():
    seen = []
    control(seen)
    thread = threading.Thread(target=control, args=(seen,))
    thread.start()
    thread.join()
    return seen

before = everywhere()
import cmargin
from cmargin import baselines
assert everywhere() == before, "import"
from estimators import quick_estimators
rng = np.random.default_rng(0)
X, y = rng.standard_normal((3000, 12)), np.arange(3000) % 3
for model in quick_estimators():
    model.fit(X, y).predict(X)
    assert everywhere() == before, type(model).__name__
assert np.float64(2.0**-1022) / 4 > 0
print(f"{before[0]:#x}")
"""


@pytest.mark.skipif(sys.platform != "linux" or platform.machine() != "x86_64", reason="MXCSR is of x86-64")
def test_no_fit_changes_how_numbers_are_rounded_or_flushed():
    assert python("-W", "ignore", "-c", CONTROL, limit=300).strip() == "0x1f80"


def test_a_quota_of_processor_time_limits_the_default():
    # a container may run on all processors and have the time of one: two threads then wait for each other
    code = ("from cmargin._core.util._openmp import effective_n_threads; "
            "print(effective_n_threads(None), effective_n_threads(-1), effective_n_threads(3))")
    environment = {**os.environ, "LOKY_MAX_CPU_COUNT": "1"}         # which joblib counts as it does a cgroup's quota
    received = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True).stdout
    assert received == f"1 1 {3 if _build_config.OPENMP else 1}\n"
