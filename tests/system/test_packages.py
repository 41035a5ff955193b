"""What is packaged, and what a wheel meets where it is installed."""

import re
import subprocess
import sys
import tarfile
import tomllib

import numpy as np
import pytest
from api import threads_seen
from installation import ROOT, installed, run
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import HistGradientBoostingClassifier

import cmargin
from cmargin import SLNDClassifier, SmSVMClassifier, _build_config

IN_A_CHECKOUT = pytest.mark.skipif(not (ROOT / "setup.py").exists(), reason="the tests are not in a checkout")
OF_THE_CHECKOUT = {".ci/run", ".gitignore"}
BUILT = {".so", ".pyd", ".pyc", ".o"}
DATA = {".npz", ".npy", ".csv", ".parquet", ".svm", ".jsonl", ".gz", ".bz2"}


@IN_A_CHECKOUT
@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="nothing says which files belong to the project")
def test_an_sdist_has_every_file_and_nothing_that_was_built(tmp_path):
    wanted = set(run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], ROOT).splitlines())
    wanted = {name for name in wanted if (ROOT / name).exists()} - OF_THE_CHECKOUT
    run([sys.executable, "setup.py", "-q", "egg_info", "-e", str(tmp_path), "sdist", "-d", str(tmp_path)], ROOT)
    archive, = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as files:
        sizes = {name.partition("/")[2]: size for name, size in ((f.name, f.size) for f in files if f.isfile())}
    there = set(sizes)
    assert wanted - there == set()
    more = there - wanted
    assert {name for name in more if not name.startswith("cmargin.egg-info/")} <= {"PKG-INFO", "setup.cfg"}
    assert {"tests/conftest.py", "asv_benches/asv.conf.json", "build_tools/openmp.py", "cmargin/py.typed"} <= there
    endings = {"." + name.rpartition(".")[2] for name in there}
    assert endings & BUILT == set() and endings & DATA == set()
    assert max(sizes.values()) < 500_000 and archive.stat().st_size < 5_000_000


@IN_A_CHECKOUT
def test_types_and_headers_are_installed(tmp_path):
    package = installed(tmp_path) / "cmargin"
    for name in ("py.typed", "api.pxd", "include/cmargin.h", "_core/losses/_losses.pyi", "_core/losses/_losses.pxd"):
        assert (package / name).exists(), name


@IN_A_CHECKOUT
def test_version_and_dependencies_are_written_the_same_everywhere():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    recipe = (ROOT / "build_tools" / "conda" / "recipe.yaml").read_text()
    citation = (ROOT / "CITATION.cff").read_text()
    assert project["version"] == cmargin.__version__ == re.search(r'version: "(.*)"', recipe)[1]
    assert re.search(r"^version: (.*)$", citation, re.MULTILINE)[1] == cmargin.__version__
    run_time = recipe.partition("  run:\n    - python\n")[2].partition("\n\n")[0]
    assert [line.strip(" -").replace(" ", "") for line in run_time.splitlines()] == project["dependencies"]


@IN_A_CHECKOUT
def test_release_notes_begin_with_what_is_unreleased_and_then_this_version():
    headings = re.findall(r"(?m)^## (.*)$", (ROOT / "CHANGELOG.md").read_text())
    number, day = re.fullmatch(r"(\S+) \((\S+)\)", headings[1]).groups()
    assert headings[0] == "Unreleased" and number == cmargin.__version__.partition(".dev")[0]
    assert f"date-released: {day}\n" in (ROOT / "CITATION.cff").read_text()


@IN_A_CHECKOUT
def test_the_release_builds_every_wheel_that_is_configured():
    wheels = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["cibuildwheel"]
    asked = {(kind, arch) for kind in ("linux", "macos", "windows") for arch in wheels[kind]["archs"]}
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text()
    assert set(re.findall(r"platform: (\w+), arch: (\w+)", text)) == asked


FITS_BESIDE_SCIKIT_LEARN = """
import sys
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import HistGradientBoostingClassifier
from cmargin import SLNDClassifier, SmSVMClassifier
X, y = load_breast_cancer(return_X_y=True)
for _ in range(2):
    HistGradientBoostingClassifier(max_iter=2).fit(X, y)
    weights = [SLNDClassifier(random_state=3, n_jobs=2).fit(X, y).coef_, SmSVMClassifier(n_jobs=2).fit(X, y).coef_]
sys.stdout.buffer.write(b"".join(w.tobytes() for w in weights))
"""


def test_an_openmp_of_scikit_learns_own_does_no_harm():
    # both wheels bring a copy of the compiler's library: two pools of threads in one process
    X, y = load_breast_cancer(return_X_y=True)
    alone = [SLNDClassifier(random_state=3, n_jobs=1).fit(X, y).coef_, SmSVMClassifier(n_jobs=1).fit(X, y).coef_]
    done = subprocess.run([sys.executable, "-c", FITS_BESIDE_SCIKIT_LEARN], capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr.decode()
    assert np.array_equal(np.frombuffer(done.stdout), np.concatenate([w.ravel() for w in alone]))
    HistGradientBoostingClassifier(max_iter=1).fit(X, y)
    assert threads_seen(2) == (2 if _build_config.OPENMP else 1)
