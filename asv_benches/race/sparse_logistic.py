"""Packages that minimise the logistic loss with an l1 penalty, alone or beside l2.

    l1 |w|_1 + (l2/2) |w|^2 + (1/N) sum_i ln(1 + exp(-y_i <w, x_i>)),     r = l1 / (l1 + l2)
"""

from importlib import import_module

import numpy as np
import scipy.sparse as sp

from race.peer import Run

MOST = 10**5                   # iterations: a tolerance ends them
TIGHTER = 1e-3                 # adelie's own tolerances below that of its outer loop, which they limit


def celer(problem, effort, threads, most, solver="celer-pn"):
    """l1 alone, by working sets of columns; ``tol`` is for its duality gap over N ln 2, and the gap is not kept.

    Tolerances 3e-3, 1e-3, ...: one Newton step does for all above, as if it stood still.
    """
    package, tol = import_module("celer"), 3e-3 / effort
    model = package.LogisticRegression(C=problem.C, solver=solver, tol=tol, max_iter=MOST)
    model.fit(problem.X, problem.y)
    return Run(np.ravel(model.coef_), f"{solver}, tol={tol:.0e}")


def skglm_prox_newton(problem, effort, threads, most):
    """skglm's working sets of columns; ``tol`` is for the largest violation of optimality in a column."""
    package, tol = import_module("skglm"), 0.1 / effort
    model = package.SparseLogisticRegression(alpha=problem.l1 + problem.l2, l1_ratio=problem.l1_ratio, tol=tol,
                                             max_iter=MOST, fit_intercept=False)
    model.fit(problem.X, problem.y)
    return Run(np.ravel(model.coef_), f"tol={tol:.0e}", float(model.n_iter_))


def adelie(problem, effort, threads, most):
    """adelie's blocks of one column each, in Fortran order or CSC, at one strength: from zero and not along a path."""
    package, tol = import_module("adelie"), 0.1 / effort
    made = package.matrix.sparse if sp.issparse(problem.X) else package.matrix.dense
    rows = sp.csc_matrix(problem.X) if sp.issparse(problem.X) else np.asfortranarray(problem.X)
    state = package.grpnet(made(rows, n_threads=threads), package.glm.binomial((problem.y > 0).astype(float)),
                           alpha=problem.l1_ratio, lmda_path=np.array([problem.l1 + problem.l2]), intercept=False,
                           irls_tol=tol, tol=TIGHTER * tol, n_threads=threads, early_exit=False, progress_bar=False)
    return Run(state.betas.toarray()[-1], f"tol={tol:.0e}")
