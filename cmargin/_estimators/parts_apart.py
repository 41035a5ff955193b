"""`partial_fit` of an indicator whose labels have weights of their own: one label after the other, one model."""

import numpy as np

from cmargin._estimators.apart import ProblemWeights

BY_LABEL = ("coef_", "intercept_", "class_prior_", "sampled_prior_")
SHARED = ("loss_", "preconditioner_", "rank_", "step_size_", "_asked_step", "_recipe", "_passes_total", "n_iter_",
          "n_features_in_")


def fit_part(estimator, home, labels, sample_weight, begin):
    """One pass of every label over the rows, by its own weights; a label whose weights are all 0 keeps its model."""
    classes, _, Y = labels
    weights = ProblemWeights(estimator, home, *labels, sample_weight, may_be_0=True)
    parts = [_model_of(estimator, c) for c in range(len(classes))]
    try:
        for c, part in enumerate(parts):
            part._fit_part(home, (np.arange(1), None, Y[:, [c]]), weights.of(c), begin)
    except KeyboardInterrupt:
        _join(estimator, parts, classes)
        raise
    _join(estimator, parts, classes)
    if estimator.callback is not None:
        estimator.callback(estimator)
    return estimator


def _model_of(estimator, c):
    """An estimator of label c alone, which goes on from what there is of it."""
    part = type(estimator)(**{**estimator.get_params(deep=False), "class_weight": None, "callback": None})
    known = vars(estimator)
    if "coef_" not in known or c >= len(estimator.coef_):
        return part
    counts = known.get("_counts")
    part._nothing_yet = estimator._nothing_yet or (counts is not None and counts[0, c] == 0)
    vars(part).update({name: known[name] for name in SHARED if name in known}, classes_=np.arange(1), _multilabel=True,
                      **{name: known[name][c:c + 1] for name in BY_LABEL if name in known})
    inverse = known.get("preconditioner_")
    if inverse is not None and (inverse.n_groups > 1 or getattr(inverse, "gain", None) is not None):
        part.preconditioner_ = None              # one for each label
    if counts is not None:
        part._counts = counts[:, c:c + 1]
    if known.get("_streams") is not None:
        part._streams = known["_streams"][c:c + 1]
    return part


def _join(estimator, parts, classes):
    """Give ``estimator`` the models of its labels; preconditioner, step and history are those of one of them."""
    found = [vars(part) for part in parts]
    if not all("coef_" in one for one in found):         # ended before every label had one
        return
    nothing = np.array([part._nothing_yet for part in parts])
    missing = {"class_prior_": np.zeros(1), "sampled_prior_": np.full(1, 0.5)}
    of_all = {name: np.concatenate([one.get(name, missing.get(name)) for one in found]) for name in BY_LABEL}
    trained = [one for one in found if "history_" in one] or found[:1]       # in this call
    of_all.update({name: trained[0][name] for name in (*SHARED, "history_") if name in trained[0]})
    for name, of in (("n_iter_", max), ("_passes_total", max), ("n_passes_", sum)):
        if all(name in one for one in trained):
            of_all[name] = of(one[name] for one in trained)
    counts = [one.get("_counts") for one in found]
    if any(one is not None for one in counts):
        of_all["_counts"] = np.concatenate([np.zeros((3, 1)) if one is None else one for one in counts], axis=1)
    streams = [one.get("_streams") for one in found]
    of_all["_streams"] = None if any(one is None for one in streams) else np.concatenate(streams)
    vars(estimator).update(of_all, classes_=classes, _multilabel=True, _signs=None, _nothing_yet=bool(nothing.all()))
