"""Do the squared hinge and the logistic loss report what is true, and does "auto" end where factors of the system do?

The problems of `problems`, with the loss drawn anew; the hinge is among them for the second question.
"""

import numpy as np

from . import certificates
from .findings import Findings
from .problems import make_problem, pick

FURTHER = 10                   # times as far from the tolerance, or the factors' gap, as a fit may end
LIMITS = {**certificates.LIMITS, "passes beside those of factors": 10.0}


def make_loss_problem(seed):
    rng = np.random.default_rng([seed, 40])
    problem = make_problem(seed)
    loss = pick(rng, logistic=3, squared_hinge=3, hinge=1)
    for settings in (problem.settings, problem.before or {}):
        settings["loss"] = loss
        if loss != "hinge":
            settings.pop("line_search", None)
        if settings.get("linear_solver") == "dual" and loss == "logistic":
            settings["linear_solver"] = "auto"
    problem.tags.append(loss)
    return problem


def describe(seed):
    return make_loss_problem(seed).tags


def check_seed(seed):
    problem = make_loss_problem(seed)
    found, model = certificates.check_problem(seed, problem)
    if model is not None and problem.settings["linear_solver"] == "auto":
        check_choice(problem, model, found)
    return found


def check_choice(problem, model, found):
    """The fit of "auto" beside that by factors."""
    from cmargin import SmSVMClassifier

    settings = {**problem.settings, "linear_solver": "cholesky"}
    problem.settings, before = settings, problem.settings
    other = certificates.run_fit(SmSVMClassifier, problem, 1, Findings(found.seed, []))
    problem.settings = before
    if other is None or settings.get("max_passes", certificates.ENOUGH) < certificates.ENOUGH:
        return
    ours, theirs = model.duality_gap_, other[0].duality_gap_
    far = ours > FURTHER * np.maximum(settings["tol"], theirs)
    if far.any():
        c = int(np.flatnonzero(far)[0])
        found.add("left short", f"class {c}: gap {ours[c]:.3g} by auto, {theirs[c]:.3g} by factors")
    found.note("passes beside those of factors", float(np.max(model.n_passes_ / (other[0].n_passes_ + 1))))
