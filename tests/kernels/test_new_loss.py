"""A loss is added where doc/architecture.md says that one is, and nowhere else, and is solved with its certificate."""

import sys

from installation import ROOT, installed, run

LOSS = '''
from cmargin._core.losses._point cimport loss_facts, point


cdef inline point smooth_hinge(double z) noexcept nogil:
    # F(z) = 0 from z = 1 on, (1 - z)^2 / 2 down to z = 0, 1/2 - z below
    cdef double u = 0 if z >= 1 else 1 if z <= 0 else 1 - z
    cdef point at
    at.value = u * u / 2 + (-z if z < 0 else 0)
    at.slope = -u
    at.curvature = 1 if 0 <= z <= 1 else 0
    return at


cdef inline double smooth_hinge_gain(double a) noexcept nogil:
    return a - a * a / 2


cdef inline loss_facts smooth_hinge_facts() noexcept nogil:
    return loss_facts("smooth_hinge", 0.5, 1, 1, 1, 1, False, True, True, 0)
'''
TABLE = {
    "from cmargin._core.losses._smoothed_hinge":
        "from cmargin._core.losses._smooth_hinge cimport smooth_hinge, smooth_hinge_facts, smooth_hinge_gain\n{}",
    "    N_LOSSES\n": "    SMOOTH_HINGE,\n{}",
    "    return margin_pursuit(z, loss.a, loss.b)\n":
        "    if loss.id == SMOOTH_HINGE:\n        return smooth_hinge(z)\n{}",
    "    return margin_pursuit_facts()\n": "    if loss.id == SMOOTH_HINGE:\n        return smooth_hinge_facts()\n{}",
    "    return hinge_gain(a)\n": "    if loss.id == SMOOTH_HINGE:\n        return smooth_hinge_gain(a)\n{}",
}
BUILD = """
from Cython.Build import cythonize
from setuptools import Extension, setup

folders = ["cmargin/_core/" + name for name in ("linalg", "losses", "newton", "rows", "util")]
setup(script_args=["-q", "build_ext", "--inplace"], ext_modules=cythonize(
    [Extension("cmargin._core." + name, ["cmargin/_core/" + name.replace(".", "/") + ".pyx"], include_dirs=folders,
               extra_compile_args=["-O0"])
     for name in ("losses._losses", "rows._row_blocks", "rows._evaluate", "rows._row_pass",
                  "newton._memory", "newton.direction._chord", "newton.direction._pcg")],
    compiler_directives={"language_level": 3, "cdivision": True, "wraparound": False, "boundscheck": False},
    shared_utility_qualified_name="cmargin._core._cyutility"))
"""
FIT = """
import numpy as np
from scipy.optimize import minimize
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale
from cmargin import SmSVMClassifier

X, y = load_breast_cancer(return_X_y=True)
X, sign = scale(X), 2.0 * y - 1
A = np.hstack([X, np.ones((len(X), 1))])

def objective(w):
    z = sign * (A @ w)
    u = np.clip(1 - z, 0, 1)
    free = np.append(w[:-1], 0)
    return (u**2 / 2 + np.maximum(-z, 0)).mean() + 0.005 * free @ free, A.T @ (-sign * u) / len(y) + 0.01 * free

best = minimize(objective, np.zeros(31), jac=True, method="L-BFGS-B", options=dict(maxiter=9999, ftol=1e-15, gtol=1e-9))
model = SmSVMClassifier(loss="smooth_hinge", l2=0.01, tol=1e-8).fit(X, y)
value = objective(np.append(model.coef_[0], model.intercept_[0]))[0]
print(model.duality_gap_[0], model.objective_[0] / value - 1, value / best.fun - 1)
"""


def insert(path, before, text):
    whole = path.read_text()
    assert whole.count(before) == 1, before
    path.write_text(whole.replace(before, text.format(before)))


def test_a_loss_is_its_file_its_lines_of_the_table_and_an_option(tmp_path):
    row = next(line for line in (ROOT / "doc" / "architecture.md").read_text().splitlines()
               if line.startswith("| another margin loss"))
    touched = ("_core/losses/_smooth_hinge.pxd", "_core/losses/_losses.pxd", "smsvm.py")
    assert "its file in `_core/losses/`" in row and "`_losses.pxd`" in row and "an estimator's options" in row
    package = installed(tmp_path) / "cmargin"
    (package / touched[0]).write_text(LOSS)
    for before, text in TABLE.items():
        insert(package / touched[1], before, text)
    insert(package / touched[2], "LOSSES = (", '{}"smooth_hinge", ')
    run([sys.executable, "-c", BUILD], tmp_path, PYTHONPATH=str(tmp_path))
    gap, received, suboptimality = map(float, run([sys.executable, "-c", FIT], tmp_path,
                                                  PYTHONPATH=str(tmp_path)).split())
    assert gap <= 1e-8 and abs(received) <= 1e-12 and -1e-12 <= suboptimality <= 1e-8
