"""Who minimises which loss: the packages for squared hinge and logistic loss beside those of hinge.py.

    (l2/2) |w|^2 + (1/N) sum_i max(0, 1 - y_i <w, x_i>)^2        (l2/2) |w|^2 + (1/N) sum_i ln(1 + exp(-y_i <w, x_i>))

C = 1/(l2 N) as for the hinge: scikit-learn, LIBLINEAR and snapml minimise C N times this.
"""

from functools import partial

from cmargin._runtime.blas_threads import single_threaded_blas
from race import hinge
from race.hinge import Peer, Run, liblinear, linear_svc, linear_svc_by_tolerance

CERTIFIED = 1e-4


def certified(problem, effort, threads, most):
    """One fit that stops by itself, at a certified gap of 1e-4: what nobody has to know beforehand."""
    return hinge.cmargin(problem, effort * 0.3 / CERTIFIED, threads, most)


def logistic_regression(problem, effort, threads, most, **parameters):
    """So many iterations of one of scikit-learn's solvers."""
    from sklearn.linear_model import LogisticRegression
    model = LogisticRegression(C=problem.C, tol=1e-12, max_iter=int(effort), fit_intercept=False,
                               random_state=problem.seed, **parameters)
    model.fit(problem.X, problem.y)
    iterations = int(model.n_iter_[0])
    dual = ", dual" if parameters.get("dual") else ""
    return Run(model.coef_[0], f"{iterations} iterations{dual}", float(iterations))


def on_one_thread(problem, effort, threads, most, **parameters):
    """On few rows BLAS's threads cost more than they help, beside other work above all."""
    with single_threaded_blas():
        run = logistic_regression(problem, effort, threads, most, **parameters)
    return run._replace(how=f"{run.how}, one thread")


def _by_blas(solver):
    return Peer(tuple((partial(run, solver=solver), 2.0) for run in (logistic_regression, on_one_thread)),
                last_is_one_thread=True)


def _scikit_learn(*settings):
    return Peer(tuple((partial(logistic_regression, **parameters), 2.0) for parameters in settings))


def _liblinear(*kinds):
    return Peer(tuple((partial(liblinear, kind=kind), 2.0) for kind in kinds), "liblinear.liblinearutil")


_OURS = {"cmargin": hinge.PEERS["cmargin"], "cmargin-certified": Peer(((certified, 3.0),))}
PEERS = {
    "hinge": _OURS | hinge.PEERS,
    "squared_hinge": {
        **_OURS,
        "LinearSVC-primal": Peer(((partial(linear_svc, dual=False), 2.0),)),
        "LinearSVC-dual": Peer(((linear_svc, 2.0), (linear_svc_by_tolerance, 3.0))),
        "snapml": hinge.PEERS["snapml"],
        "liblinear": _liblinear(2, 1),
    },
    "logistic": {
        **_OURS,
        "lbfgs": _by_blas("lbfgs"),
        "newton-cholesky": _by_blas("newton-cholesky"),
        "sklearn-liblinear": _scikit_learn({"solver": "liblinear"}, {"solver": "liblinear", "dual": True}),
        "saga": _scikit_learn({"solver": "saga"}),
        "snapml": hinge.PEERS["snapml"],
        "liblinear": _liblinear(0, 7),
    },
}
OURS = tuple(_OURS)
