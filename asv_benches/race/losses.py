"""Who minimises which loss: the packages for squared hinge and logistic loss beside those of hinge.py.

    l1 |w|_1 + (l2/2) |w|^2 + (1/N) sum_i max(0, 1 - y_i <w, x_i>)^2
    l1 |w|_1 + (l2/2) |w|^2 + (1/N) sum_i ln(1 + exp(-y_i <w, x_i>))

C = 1/((l1 + l2) N) as for the hinge: scikit-learn, LIBLINEAR and snapml minimise C N times this.
"""

from functools import partial

import sklearn

from cmargin._runtime.blas_threads import single_threaded_blas
from race import hinge
from race.hinge import liblinear, linear_svc, linear_svc_by_tolerance
from race.peer import ELASTIC_NET, LASSO, RIDGE, Peer, Run
from race.sparse_logistic import adelie, celer, skglm_prox_newton

CERTIFIED = 1e-4


def certified(problem, effort, threads, most):
    """One fit that stops by itself, at a certified gap of 1e-4: what nobody has to know beforehand."""
    return hinge.cmargin(problem, effort * 0.3 / CERTIFIED, threads, most)


def logistic_regression(problem, effort, threads, most, **parameters):
    """So many iterations of one of scikit-learn's solvers."""
    from sklearn.linear_model import LogisticRegression
    if problem.penalty != RIDGE:
        parameters = parameters | {"l1_ratio": problem.l1_ratio}
        if tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 8):    # l1_ratio alone has no effect
            parameters["penalty"] = {LASSO: "l1", ELASTIC_NET: "elasticnet"}[problem.penalty]
    model = LogisticRegression(C=problem.C, tol=1e-12, max_iter=int(effort), fit_intercept=False,
                               random_state=problem.seed, **parameters)
    model.fit(problem.X, problem.y)
    iterations = int(model.n_iter_[0])
    dual = ", dual" if parameters.get("dual") else ""
    return Run(model.coef_[0], f"{iterations} iterations{dual}", float(iterations))


def without(solver):
    """What scikit-learn lacks for one of LogisticRegression's solvers, in words."""
    from sklearn.linear_model import LogisticRegression
    allowed, = (of.options for of in LogisticRegression._parameter_constraints["solver"] if hasattr(of, "options"))
    return "" if solver in allowed else f"scikit-learn {sklearn.__version__} does not have it"


def on_one_thread(problem, effort, threads, most, **parameters):
    """On few rows BLAS's threads cost more than they help, beside other work above all."""
    with single_threaded_blas():
        run = logistic_regression(problem, effort, threads, most, **parameters)
    return run._replace(how=f"{run.how}, one thread")


def _by_blas(solver):
    return Peer(tuple((partial(run, solver=solver), 2.0) for run in (logistic_regression, on_one_thread)),
                last_is_one_thread=True)


def _scikit_learn(*settings, **more):
    return Peer(tuple((partial(logistic_regression, **parameters), 2.0) for parameters in settings), **more)


def _liblinear(*kinds, **more):
    return Peer(tuple((partial(liblinear, kind=kind), 2.0) for kind in kinds), "liblinear.liblinearutil", **more)


EVERY = (RIDGE, LASSO, ELASTIC_NET)
WITH_L1 = (LASSO, ELASTIC_NET)
_OURS = {"cmargin": hinge.PEERS["cmargin"], "cmargin-certified": Peer(((certified, 3.0),), penalties=EVERY)}
PEERS = {
    "hinge": _OURS | hinge.PEERS,
    "squared_hinge": {
        **_OURS,
        "LinearSVC-primal": Peer(((partial(linear_svc, dual=False), 2.0),)),
        "LinearSVC-dual": Peer(((linear_svc, 2.0), (linear_svc_by_tolerance, 3.0))),
        "snapml": hinge.PEERS["snapml"],
        "liblinear": _liblinear(2, 1),
        "ReHLine": hinge.PEERS["ReHLine"],
    },
    "logistic": {
        **_OURS,
        "lbfgs": _by_blas("lbfgs"),
        "newton-cholesky": _by_blas("newton-cholesky"),
        "newton-cd": _scikit_learn({"solver": "newton-cd"}, penalties=WITH_L1, lacks=partial(without, "newton-cd")),
        "sklearn-liblinear": _scikit_learn({"solver": "liblinear"}, {"solver": "liblinear", "dual": True}),
        "sklearn-liblinear-l1": _scikit_learn({"solver": "liblinear"}, penalties=(LASSO,)),
        "saga": _scikit_learn({"solver": "saga"}, penalties=EVERY),
        "snapml": hinge.PEERS["snapml"]._replace(penalties=(RIDGE, LASSO)),
        "liblinear": _liblinear(0, 7),
        "liblinear-l1": _liblinear(6, penalties=(LASSO,)),
        "celer": Peer(((celer, 3.0), (partial(celer, solver="celer"), 3.0)), "celer", penalties=(LASSO,)),
        "skglm": Peer(((skglm_prox_newton, 3.0),), "skglm", penalties=WITH_L1),
        "adelie": Peer(((adelie, 3.0),), "adelie", penalties=EVERY),
    },
}
OURS = tuple(_OURS)
