"""The packages that solve one hinge problem, with their parameters in terms of its objective.

    (l2/2) |w|^2 + l1 |w|_1 + (1/N) sum_i max(0, 1 - y_i <w, x_i>)

Some take other losses as well: ``problem.loss`` says which, losses.py who.

All get X in float64, C order or CSR, without any intercept of their own: where one is wanted it is a column of X.
Whatever a package converts X to is part of its time, as it is for its users. ``effort`` is a number of passes, or
goes as one over a tolerance; ``most`` is how many passes there is time for at all.
"""

from functools import partial
from importlib import import_module
from time import perf_counter

import numpy as np
import scipy.sparse as sp

from cmargin._core.util._fp_control import StandardArithmetic
from race.peer import ELASTIC_NET, LASSO, RIDGE, Peer, Run
from race.rehline import rehline


def cmargin(problem, effort, threads, most):
    """Tolerances 0.3, 0.1, 0.033, ..."""
    from cmargin.smsvm import SmSVMClassifier
    tol = 0.3 / effort
    model = SmSVMClassifier(l2=problem.l2, l1=problem.l1, loss=problem.loss, tol=tol, max_passes=1000,
                            fit_intercept=False, n_jobs=threads, random_state=problem.seed)
    model.fit(problem.X, problem.y)
    return Run(model.coef_[0], f"tol={tol:.0e}", model.n_passes_, float(model.duality_gap_[0]))


def linear_svc(problem, effort, threads, most, tol=1e-9, dual=True):
    """So many passes. With tol=1e-12 it never looked again at rows it had set aside, and ended far from the optimum."""
    from sklearn.svm import LinearSVC
    model = LinearSVC(loss=problem.loss, C=problem.C, tol=tol, max_iter=int(effort), fit_intercept=False, dual=dual,
                      random_state=problem.seed)
    model.fit(problem.X, problem.y)
    return Run(model.coef_[0], f"{model.n_iter_} passes", float(model.n_iter_))


def linear_svc_by_tolerance(problem, effort, threads, most):
    """Which rows it sets aside depends on the tolerance, so that a loose one is often quicker than few passes."""
    run = linear_svc(problem, most, threads, most, 1 / effort)
    return run._replace(how=f"tol={1 / effort:.0e}")


def sgd(problem, effort, threads, most, average=False):
    """Hinge alone. SGD's penalty is alpha ((1 - r) |w|^2/2 + r |w|_1): alpha = l1 + l2, r = l1 / alpha."""
    from sklearn.linear_model import SGDClassifier
    alpha = problem.l1 + problem.l2
    model = SGDClassifier(penalty="elasticnet" if problem.l1 else "l2", alpha=alpha, l1_ratio=problem.l1 / alpha,
                          tol=None, max_iter=int(effort), fit_intercept=False, average=average,
                          random_state=problem.seed)
    model.fit(problem.X, problem.y)
    return Run(model.coef_[0], f"{int(effort)} passes{', averaged' if average else ''}", float(effort))


def snapml(problem, effort, threads, most):
    """snapml's regularizer is 1/C. It computes in float32, whatever it is given."""
    with StandardArithmetic():           # which its import changes, for this thread and all that it starts
        package = import_module("snapml")
        make = partial(package.LogisticRegression, penalty=problem.penalty, dual=problem.penalty == RIDGE)
        if problem.loss != "logistic":
            make = partial(package.SupportVectorMachine, loss=problem.loss)
        model = make(regularizer=1 / problem.C, max_iter=int(effort), tol=1e-12, n_jobs=threads, fit_intercept=False,
                     verbose=False, random_state=problem.seed)
        model.fit(problem.X, problem.y)
    return Run(np.ravel(model.coef_).astype(float), f"{int(effort)} passes, n_jobs={threads}", float(effort))


def snapml_on_one_thread(problem, effort, threads, most):
    """Several threads share the rows out and average; on few rows one gets there sooner."""
    return snapml(problem, effort, 1, most)


def liblinear(problem, effort, threads, most, kind=3):
    """LIBLINEAR's own package, -s ``kind``, -e 1, 0.5, ...; its dual hinge (3) stops at 300 passes whatever -e says.

    It turns a dense array into its nodes by a Python loop over the rows, CSR by a compiled one: 2.9 s and 0.14 s for a
    tenth of covtype. So X goes through CSR, in the time counted. The multicore edition goes by the same name.
    """
    package = import_module("liblinear.liblinearutil")
    options = f"-s {kind} -q -e {1 / effort:.17g} -c {problem.C:.17g}"
    try:
        parameter = package.parameter(f"{options} -m {threads}")
    except ValueError:                         # "Wrong options": the edition for one thread
        parameter = package.parameter(options)
    start = perf_counter()
    nodes = package.problem(problem.y, sp.csr_matrix(problem.X))
    converting = perf_counter() - start
    model = package.train(nodes, parameter)
    w = np.ctypeslib.as_array(model.w, (problem.X.shape[1],)).copy()
    return Run(w if model.get_labels()[0] > 0 else -w,
               f"-s {kind} -e {1 / effort:.1g}, converting: {converting:.2g} s")


def skglm(problem, effort, threads, most):
    """skglm's dual coordinate descent on all rows at once (p0), so many epochs."""
    package = import_module("skglm")
    model = package.LinearSVC(C=problem.C, p0=len(problem.y), max_iter=1, max_epochs=int(effort), tol=1e-12,
                              fit_intercept=False)
    model.fit(problem.X, problem.y)
    return Run(np.ravel(model.coef_), f"{int(effort)} passes", float(effort))


def skglm_working_sets(problem, effort, threads, most):
    """As it comes: sets of rows that begin with ten and double. On a soft margin, where most duals move, far slower."""
    package = import_module("skglm")
    model = package.LinearSVC(C=problem.C, max_iter=int(effort), tol=1e-9, fit_intercept=False)
    model.fit(problem.X, problem.y)
    return Run(np.ravel(model.coef_), f"{int(effort)} working sets")


PEERS = {"cmargin": Peer(((cmargin, 3.0),), penalties=(RIDGE, LASSO, ELASTIC_NET)),
         "LinearSVC": Peer(((linear_svc, 2.0), (linear_svc_by_tolerance, 3.0))),
         "SGD": Peer(((sgd, 2.0), (partial(sgd, average=True), 2.0)), penalties=(RIDGE, LASSO, ELASTIC_NET)),
         "snapml": Peer(((snapml, 2.0), (snapml_on_one_thread, 2.0)), "snapml", last_is_one_thread=True),
         "liblinear": Peer(((liblinear, 2.0),), "liblinear.liblinearutil"),
         "skglm": Peer(((skglm, 2.0), (skglm_working_sets, 2.0)), "skglm"),
         "ReHLine": Peer(((rehline, 3.0),), "rehline", penalties=(RIDGE, ELASTIC_NET))}


def squared_hinge_l1(problem):
    """LinearSVC on another objective, l1 |w|_1 + (1/N) sum of squared hinges, to its own tolerance: C = 1/(l1 N)."""
    from sklearn.svm import LinearSVC
    model = LinearSVC(penalty="l1", loss="squared_hinge", dual=False, C=1 / (problem.l1 * len(problem.y)),
                      fit_intercept=False, random_state=0)
    model.fit(problem.X, problem.y)
    return Run(model.coef_[0], f"tol={model.tol:g}", float(model.n_iter_))
