"""Do the squared hinge and the logistic loss report what is true, and does "auto" end where factors of the system do?

The problems of `problems`, with the loss drawn anew; the hinge is among them for the second question.
"""

import numpy as np

from . import certificates
from .findings import Findings
from .problems import make_problem, pick

FURTHER = 10                   # times the tolerance, or the gap by factors, that a fit may leave
LIMITS = {**certificates.LIMITS, "passes beside those of factors": 10.0}


def make_loss_problem(seed):
    rng = np.random.default_rng([seed, 40])
    problem = make_problem(seed)
    loss = pick(rng, logistic=3, squared_hinge=3, hinge=1, huberised_hinge=2, modified_huber=1)
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
    theirs = other[0]
    far = model.duality_gap_ > FURTHER * np.maximum(settings["tol"], theirs.duality_gap_)
    higher = model.objective_ > theirs.objective_ * (1 + FURTHER * settings["tol"])
    for c in np.flatnonzero(far & higher)[:1]:
        found.add("left short", f"class {c}: objective {model.objective_[c]:.6g}, gap {model.duality_gap_[c]:.3g} "
                                f"by auto; {theirs.objective_[c]:.6g}, {theirs.duality_gap_[c]:.3g} by factors")
    if (far & ~higher).any():                                # as good a point, of which less is known
        found.count("certificates looser than those of factors")
    found.note("passes beside those of factors", float(np.max(model.n_passes_ / (theirs.n_passes_ + 1))))
