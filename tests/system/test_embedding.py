"""The C and Cython interface: clients built against what an installation holds, and the list of stable signatures."""

import ctypes
import importlib.util
import os
import re
import shutil
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from api import FACTS, LOSS_IDS, STATUS, evaluate, exact_step, limits_of_c_programs
from installation import ROOT, installed, run
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale

import cmargin
from cmargin import SmSVMClassifier, api
from cmargin.margins import location_estimate, psi_transform
from cmargin.solvers.newton.continuation import limits

HERE = Path(__file__).parent / "embedding"
X, y = load_breast_cancer(return_X_y=True)
X, y = np.ascontiguousarray(scale(X)), np.where(y == 1, 1.0, -1.0)

# Stable: a line here changes only with CMARGIN_VERSION; new functions come at the end of the table
SIGNATURES = {
    "status_text": "char const *(int)",
    "loss_named": "int (char const *)",
    "loss_facts": "int (int, cmargin_facts *)",
    "loss_at": "cmargin_point (int, double, double, double)",
    "losses": "int (int, Py_ssize_t, double const *, double, double, double *, double *, double *)",
    "dual_gain": "double (int, double)",
    "rows_new": "int (cmargin_matrix const *, cmargin_rows **)",
    "rows_answer": "int (cmargin_rows *, cmargin_request const *, double *)",
    "rows_free": "void (cmargin_rows *)",
    "answer_size": "Py_ssize_t (cmargin_request const *)",
    "message_size": "Py_ssize_t (Py_ssize_t)",
    "request_to_message": "int (cmargin_request const *, void *)",
    "request_from_message": "int (void const *, cmargin_request *)",
    "settings_init": "int (cmargin_settings *)",
    "newton_new": "int (cmargin_settings const *, cmargin_newton **)",
    "newton_ask": "int (cmargin_newton *, cmargin_request *)",
    "newton_tell": "int (cmargin_newton *, double const *, Py_ssize_t)",
    "newton_result": "int (cmargin_newton const *, cmargin_result *, double *)",
    "newton_stop": "int (cmargin_newton *)",
    "newton_free": "void (cmargin_newton *)",
    "line_new": "int (Py_ssize_t, double const *, double const *, double const *, double, double, int, "
                "cmargin_line **)",
    "line_tell": "int (cmargin_line *, double, double)",
    "line_step": "double (cmargin_line const *, Py_ssize_t *)",
    "line_free": "void (cmargin_line *)",
    "location": "int (Py_ssize_t, double const *, double, double, double *)",
    "location_begin": "int (double, double, cmargin_location *)",
    "location_sums": "int (Py_ssize_t, double const *, double, double, double *)",
    "location_tell": "int (cmargin_location *, double const *, double)",
    "psi": "double (double, double, double)",
    "psi_inverse": "double (double, double, double)",
}
FIELDS = {
    "cmargin_point": "value slope curvature",
    "cmargin_facts": "size name at_zero largest_curvature steepest dual_largest calibrated",
    "cmargin_request": "size kind restart primal new_active n_active active n_columns direction step line_width width "
                       "floor with_block x",
    "cmargin_matrix": "size n_rows n_features single values row_stride column_stride starts columns columns_64 code "
                      "intercept loss level scale n_threads",
    "cmargin_settings": "size n_features intercept penalize_intercept n_rows total_weight loss l2 l1 tol max_passes "
                        "max_time smoothing smoothing_decay by_products start",
    "cmargin_result": "size status objective gap passes n_looks",
    "cmargin_location": "at lo hi last_step done",
}


def header():
    """``cmargin.h`` without its comments."""
    return re.sub(r"/\*.*?\*/", "", (Path(cmargin.get_include()) / "cmargin.h").read_text(), flags=re.S)


def capsule_name(capsule):
    name = ctypes.pythonapi.PyCapsule_GetName
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    return name(capsule).decode()


# ---------------------------------------------------------------- what is stable

def test_signatures_are_those_that_were_promised():
    found = {name: capsule_name(capsule).replace(" noexcept", "") for name, capsule in api.__pyx_capi__.items()}
    assert found == SIGNATURES


def test_the_header_has_the_same_functions_in_the_same_order_and_no_struct_has_moved():
    text = header()
    table = text[text.index("typedef struct {\n    int version;"):text.index("} cmargin_table;")]
    assert re.findall(r"\(\*(\w+)\)\(", table) == list(SIGNATURES)
    plain = {" ".join(s.replace("ptrdiff_t", "Py_ssize_t").split()) for s in re.findall(r"\w[^;]*;", table)}
    for name, signature in SIGNATURES.items():
        result, arguments = re.fullmatch(r"(.*?) ?\((.*)\)", signature).groups()
        result = re.sub(r"(\w+) const \*", r"const \1 *", result)
        kinds = [re.sub(r"(\w+) const \*", r"const \1 *", kind) for kind in arguments.split(", ")]
        pattern = re.escape(f"{result} (*{name})(").replace(r"\*\ \(", r"\*\(")
        pattern += ", ".join(re.escape(kind) + r" ?\w*" for kind in kinds) + r"\);"
        assert [line for line in plain if re.fullmatch(pattern, line)], name
    for name, fields in FIELDS.items():
        body = re.search(r"typedef struct \{([^{}]*)\} " + name + ";", text).group(1)
        assert re.findall(r"(\w+)[,;]", body) == fields.split(), name
    assert re.search(r"#define CMARGIN_VERSION (\d+)", text).group(1) == "1"


def test_numbers_of_the_header_are_those_of_the_drivers():
    names = re.search(r"enum \{\s*(CMARGIN_WAITING.*?)\}", header(), re.S).group(1)
    renamed = {"ROUNDED": "rounding"}
    found = [renamed.get(name, name.lower()) for name in re.findall(r"CMARGIN_(\w+)", names)]
    # the others only drivers have whose products are on trial, or that are margin pursuit's
    assert (*found, "left", "diverged", "callback", "interrupted") == STATUS


def test_drivers_of_c_programs_go_another_way_where_those_of_python_do():
    # the numbers of solvers/cost.py stand once more in C, where nothing else would keep the two the same
    assert limits_of_c_programs() == limits()


def test_the_pxd_stands_alone():
    text = (Path(api.__file__).parent / "api.pxd").read_text()
    assert "cimport" not in re.sub(r'""".*?"""', "", text, flags=re.S) and "cdef class" not in text


# ---------------------------------------------------------------- clients of an installation

@pytest.fixture(scope="module")
def installation(tmp_path_factory):
    return installed(tmp_path_factory.mktemp("installed"))


def test_an_installation_has_what_a_compiler_wants(installation):
    out = run([sys.executable, "-c", "import cmargin; print(cmargin.get_include())"], installation,
              PYTHONPATH=str(installation))
    include = Path(out.strip())
    assert include == installation / "cmargin" / "include" and (include / "cmargin.h").exists()
    assert (installation / "cmargin" / "api.pxd").exists()
    assert (installation / "cmargin" / "_core" / "losses" / "_losses.pxd").exists()


SETUP = """
from Cython.Build import cythonize
from setuptools import Extension, setup
import cmargin

client = Extension("client", ["client.pyx"], include_dirs=[cmargin.get_include()], extra_compile_args=["-O1"])
setup(ext_modules=cythonize([client], language_level=3), script_args=["-q", "build_ext", "--inplace"])
"""


@pytest.fixture(scope="module")
def client(installation, tmp_path_factory):
    folder = tmp_path_factory.mktemp("client")
    shutil.copy2(HERE / "client.pyx", folder)
    run([sys.executable, "-c", SETUP], folder, PYTHONPATH=str(installation))
    spec = importlib.util.spec_from_file_location("client", next(folder.glob("client.*" + sysconfig.get_config_var(
        "EXT_SUFFIX").lstrip("."))))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("l1", [0.0, 1e-3])
@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_a_client_with_rows_of_its_own_comes_to_the_same_answer(client, loss, l1):
    weights = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    for code, weight in ((y, None), (y * weights, weights)):
        status, objective, gap, w = client.train(X, code, loss, 1e-3, l1)
        model = SmSVMClassifier(loss=loss, l2=1e-3, l1=l1, subset_growth=None).fit(X, y, weight)
        assert STATUS[status] == "converged" and gap <= 1e-4
        np.testing.assert_allclose(w, [*model.coef_[0], model.intercept_[0]], rtol=1e-6, atol=1e-8)
        assert objective == pytest.approx(model.objective_[0], rel=1e-9)


def test_directions_by_products_and_an_early_end(client):
    status, objective, _, w = client.train(X, y, "logistic", 1e-2, by_products=True)
    model = SmSVMClassifier(loss="logistic", l2=1e-2, linear_solver="cg", subset_growth=None).fit(X, y)
    assert STATUS[status] == "converged" and objective == pytest.approx(model.objective_[0], rel=1e-9)
    np.testing.assert_allclose(w[:-1], model.coef_[0], rtol=1e-5, atol=1e-7)
    ends = [client.train(X, y, "logistic", 1e-2, most=most) for most in range(1, 15)]       # questions answered
    stopped = [found for status, found, _, _ in ends if STATUS[status] == "stopped"]
    assert len(stopped) > 5 and objective < min(stopped) < np.log(2) and max(stopped) < 1.001 * np.log(2)
    assert all(np.isfinite(w).all() for *_, w in ends)


def test_what_cannot_be_is_refused(client):
    bad, nan = -1, -3
    assert client.refusals() == {
        "no size": bad, "no rows": bad, "no dual": bad, "negative l2": bad, "made nothing": True, "sound": 0,
        "too short": bad, "nan": nan, "kind": True, "no loss": bad}


@pytest.mark.parametrize("l1", [0.0, 1e-3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_in_memory_of_every_format(client, dtype, l1):
    A = np.where(np.abs(X) > 0.5, X, 0).astype(dtype)
    wide = np.full((2 * len(A), 3 * A.shape[1]), np.nan, dtype)
    wide[::2, ::3] = A
    narrow = sp.csr_array(A)
    narrow.indptr = narrow.indptr.astype(np.int64)
    broad = narrow.copy()
    broad.indptr, broad.indices = narrow.indptr, narrow.indices.astype(np.int64)
    model = SmSVMClassifier(l2=1e-3, l1=l1, subset_growth=None).fit(A, y)
    expected = [*model.coef_[0], model.intercept_[0]]
    for rows in (A, np.asfortranarray(A), wide[::2, ::3], narrow, broad):
        bits = {client.train_in_memory(rows, y, "hinge", 1e-3, l1, n_threads).tobytes() for n_threads in (1, 2, 3)}
        assert len(bits) == 1
        np.testing.assert_allclose(np.frombuffer(bits.pop()), expected, rtol=1e-6, atol=1e-8)


def test_more_columns_than_a_block_holds(client):
    rng = np.random.default_rng(4)
    A = rng.standard_normal((150, 300))
    code = np.where(A[:, 0] - A[:, 1] + rng.standard_normal(150) > 0, 1.0, -1.0)
    model = SmSVMClassifier(loss="logistic", l2=1e-3, l1=0.05, subset_growth=None, linear_solver="cholesky")
    model.fit(A, code)
    w = client.train_in_memory(A, code, "logistic", 1e-3, 0.05)
    own = client.train(A, code, "logistic", 1e-3, 0.05)[3]
    for found in (w, own):
        np.testing.assert_allclose(found, [*model.coef_[0], model.intercept_[0]], rtol=1e-6, atol=1e-8)


def test_handles_are_independent_of_each_other(client):
    losses = ["hinge", "squared_hinge", "logistic"] * 4
    alone = {loss: client.train_in_memory(X, y, loss, 1e-3).tobytes() for loss in set(losses)}
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda loss: client.train_in_memory(X, y, loss, 1e-3, 0, 2).tobytes(), losses))
    assert together == [alone[loss] for loss in losses]


def test_rows_and_questions_that_cannot_be_are_refused(client):
    bad = -1
    assert client.questions_to_rows(X, y) == {
        "nothing": bad, "line before an evaluation": bad, "hessp before an evaluation": bad, "no direction": bad,
        "no weights": bad, "other columns": bad, "not ascending": bad, "no columns": bad,
        "sound": 0}
    assert client.train_in_memory(X, y, "no such loss", 1e-3) == bad
    assert client.train_in_memory(X, y, "hinge", 1e-3, 0, 0) == bad
    assert client.train_in_memory(X, np.full(len(y), np.inf), "hinge", 1e-3) == bad
    broken = sp.csr_array(X)
    broken.indptr = broken.indptr.astype(np.int64)
    broken.indices[7] = X.shape[1]
    assert client.train_in_memory(broken, y, "hinge", 1e-3) == bad
    broken.indices[7], broken.indptr[3] = 0, broken.indptr[4] + 1
    assert client.train_in_memory(broken, y, "hinge", 1e-3) == bad
    holed = X.copy()
    holed[3, 4] = np.nan
    assert client.train_in_memory(holed, y, "hinge", 1e-3) == -3


def test_losses_line_location_and_psi_are_the_librarys(client):
    z, out = np.linspace(-4, 4, 201), np.empty((3, 201))
    for loss in FACTS:
        status, found = client.losses_of(loss, z, 0.5, 2.0)
        evaluate(LOSS_IDS[loss], z, *out, 0.5, 2.0)
        assert status == 0 and found.tobytes() == out.tobytes()
    assert client.losses_of("no such loss", z, 1, 1)[0] == -1
    w, d, weight = np.array([1.0, -2.0, 0.5]), np.array([-1.0, 1.0, -1.0]), np.array([0.1, 3.0, 0.2])
    assert client.least_on_a_line(w, d, weight, 1.0) == exact_step(lambda s: (s - 1, 1.0), w, d, weight, np.inf, 1e-10)
    q = np.random.default_rng(1).standard_t(2, 1001)
    one, halves = client.locations(q, float(np.median(q)), 0.7)
    assert one == pytest.approx(location_estimate(q, 0.7), rel=1e-13) and halves == pytest.approx(one, rel=1e-12)
    value, back = client.psi_there_and_back(0.3, 1.5, 2.0)
    assert value == psi_transform(0.3, 1.5, 2.0) and back == pytest.approx(0.3, rel=1e-14)


# ---------------------------------------------------------------- a C program

def c_program(folder, installation, compiler, *flags):
    """doc/embedding/ranks.c as a program of its own, with the interpreter inside."""
    at, version = sysconfig.get_config_var, sysconfig.get_config_var("LDVERSION")
    places = [at("LIBDIR"), at("LIBPL")]
    library = [flag for place in places for flag in (f"-L{place}", f"-Wl,-rpath,{place}")] + [f"-lpython{version}"]
    run([*compiler, "-std=c99", "-Wall", "-Wextra", "-Werror", *flags, f"-I{installation}/cmargin/include",
         f"-I{sysconfig.get_path('include')}", str(ROOT / "doc" / "embedding" / "ranks.c"), "-o", "ranks", *library,
         *at("LIBS").split(), *at("SYSLIBS").split()], folder)
    return str(folder / "ranks")


def has_libpython():
    names = [sysconfig.get_config_var(name) for name in ("LDLIBRARY", "LIBRARY")]
    places = [sysconfig.get_config_var(place) for place in ("LIBDIR", "LIBPL")]
    return any((Path(place) / name).exists() for place in places if place for name in names if name)


@pytest.fixture(scope="module")
def rows_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("rows") / "rows.bin"
    path.write_bytes(np.array(X.shape, np.int64).tobytes() + y.tobytes() + X.tobytes())
    return path


def is_the_estimators(text, loss, exact):
    head, *w = text.split("\n", 1)[0].split(), *map(float, text.split()[4:])
    model = SmSVMClassifier(loss=loss, l2=1e-3, subset_growth=None).fit(X, y)
    assert STATUS[int(head[0])] == "converged" and float(head[3]) <= 1e-4
    rtol = 0 if exact else 1e-8
    np.testing.assert_allclose(w, [*model.coef_[0], model.intercept_[0]], rtol=rtol, atol=rtol)
    np.testing.assert_allclose(float(head[2]), model.objective_[0], rtol=rtol and 1e-12)


@pytest.mark.skipif(not has_libpython(), reason="no libpython to link with")
def test_the_c_program_of_the_documentation_trains_the_same_classifier(installation, rows_file, tmp_path):
    program = c_program(tmp_path, installation, sysconfig.get_config_var("CC").split(), f"-I{HERE}")
    for loss in ("hinge", "squared_hinge", "logistic"):
        out = run([program, str(rows_file), loss, "1e-3"], tmp_path, PYTHONPATH=os.pathsep.join([str(installation),
                                                                                                 *sys.path]))
        is_the_estimators(out, loss, exact=True)


@pytest.mark.skipif(not has_libpython(), reason="no libpython to link with")
def test_the_short_program_is_built_by_the_line_below_it(installation, tmp_path):
    text = (ROOT / "doc" / "embedding.md").read_text()
    code, line, said = re.search(r"```c\n(.*?)```\n\n```\n(cc .*?)\n\./program\n```\n\nprints `(.*?)`", text,
                                 re.S).groups()
    (tmp_path / "program.c").write_text(code)
    config = Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}-config"
    if not config.exists():
        pytest.skip("no python3-config of this interpreter")
    for name, there in (("python", sys.executable), ("python3-config", config)):
        (tmp_path / name).write_text(f'#!/bin/sh\nexec "{there}" "$@"\n')
        (tmp_path / name).chmod(0o755)
    at = {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}", "LD_LIBRARY_PATH": sysconfig.get_config_var("LIBDIR"),
          "PYTHONPATH": os.pathsep.join([str(installation), *sys.path])}
    run(["sh", "-c", line], tmp_path, **at)
    assert run([str(tmp_path / "program")], tmp_path, **at).strip() == said


@pytest.mark.skipif(not (has_libpython() and shutil.which("mpicc") and shutil.which("mpiexec")), reason="no MPI here")
@pytest.mark.parametrize("n_ranks", [1, 2, 3])
def test_and_so_it_does_over_ranks(installation, rows_file, tmp_path, n_ranks):
    program = c_program(tmp_path, installation, ["mpicc"])
    out = run(["mpiexec", "-n", str(n_ranks), program, str(rows_file), "hinge", "1e-3"], tmp_path,
              PYTHONPATH=os.pathsep.join([str(installation), *sys.path]))
    is_the_estimators(out, "hinge", exact=n_ranks == 1)
