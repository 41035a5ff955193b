"""Kernels read and write without looking: their wrappers refuse arrays that are too short, whichever it is."""

import operator
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from api import (
    _catoni,
    _class_pass,
    _class_sgd,
    _conjugate_gradients,
    _line_sums,
    _losses,
    _low_rank,
    _margin_summary,
    _projected_sgd,
    _refreshed_sgd,
    _sgdqn,
    _softmax_sgd,
    _theory_sgd,
    _whiten,
)
from api import _line as _line_search
from sklearn.exceptions import ConvergenceWarning

from cmargin import MarginPursuitClassifier, SLNDClassifier, SmSVMClassifier, baselines
from cmargin.data.memory import dual_rows

rng = np.random.default_rng(3)
X = rng.standard_normal((80, 6))
y = np.arange(80) % 3
weight = rng.uniform(0.5, 2, 80)


def slnd(**parameters):
    return SLNDClassifier(loss="logistic", random_state=0, n_jobs=2, max_passes=2, **parameters)


def multinomial(**parameters):
    return SLNDClassifier(loss="multinomial", random_state=0, n_jobs=2, max_passes=2, **parameters)


def projected():
    return MarginPursuitClassifier(solver="sgd", l2=0.1, random_state=0, n_jobs=2, max_passes=1)


# where a wrapper is, its name, a fit that calls it, and on which rows
CALLS = {
    "lists": (_class_sgd, "draw_lists", slnd(step_size=0.5), X),
    "visits": (_class_sgd, "visit_losses", slnd(), X),
    "visits of classes": (_class_pass, "Visits", slnd(), X),
    "pass": (_class_pass, "ClassPass", slnd(), X),
    "weights": (_class_pass, "ClassPass.whitened", slnd(), X),
    "weights, tail": (_class_pass, "ClassPass.whitened", slnd(tail="scale", rank=2), sp.csr_matrix(X)),
    "steps": (_class_sgd, "run_steps", slnd(), X),
    "steps, tail": (_class_sgd, "run_steps", slnd(tail="scale", rank=2), sp.csr_matrix(X)),
    "refreshed": (_refreshed_sgd, "run_refreshed_steps", slnd(hessian_refresh=1), X),
    "theory": (_theory_sgd, "run_theory_steps", slnd(step_size="theory"), X),
    "qn": (_sgdqn, "run_qn_steps", baselines.SGDQNClassifier(random_state=0, n_jobs=2, max_passes=1), X),
    "batches": (_softmax_sgd, "Batches", multinomial(), X),
    "batches, tail": (_softmax_sgd, "Batches", multinomial(tail="scale", rank=2), sp.csr_matrix(X)),
    "batches, weights": (_softmax_sgd, "Batches.weights", multinomial(), X),
    "batches, weights, tail": (_softmax_sgd, "Batches.weights", multinomial(tail="scale", rank=2), sp.csr_matrix(X)),
    "projected": (_projected_sgd, "ProjectedPass", projected(), X),
    "projected, rule": (_projected_sgd, "ProjectedPass.rule", projected(), X),
    "projected, steps": (_projected_sgd, "ProjectedPass.take", projected(), X),
    "pairs": (_low_rank, "low_rank_classes", slnd(rank=6), X),
    "pairs, wide": (_low_rank, "low_rank_classes", slnd(rank=80), np.hstack([X] * 20)),
    "vectors": (_low_rank, "chosen_eigenvectors", slnd(), X),
    "vectors, wide": (_low_rank, "chosen_eigenvectors", slnd(), np.hstack([X] * 20)),
    "gram": (_low_rank, "gram_matrix", slnd(), np.hstack([X] * 20)),
    "whiten": (_whiten, "whiten_rows", slnd(), X),
    "dual squares": (dual_rows, "squares", SmSVMClassifier(linear_solver="dual", l2=1e-4, tol=1e-9), X),
    "line": (_line_sums, "line", baselines.CGDescentClassifier(max_passes=2), X),
    "move": (_line_sums, "move", baselines.CGDescentClassifier(max_passes=2), X),
}


def called(module, name):
    """A function of a module, or a method of a class there."""
    return operator.attrgetter(name)(module)


def arguments_of(module, name, model, rows, monkeypatch):
    """The first call of a wrapper in a fit, its arrays copied."""
    kept, real = [], called(module, name)
    name, _, method = name.partition(".")

    def recorder(*given):
        if not kept:
            kept.extend(g.copy() if isinstance(g, np.ndarray) else g for g in given)
        return real(*given)

    monkeypatch.setattr(module, name, type(name, (getattr(module, name),), {method: recorder}) if method else recorder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(rows, y, weight)
    monkeypatch.undo()
    return kept


@pytest.mark.parametrize("call", CALLS)
def test_a_wrapper_refuses_every_array_that_is_too_short(call, monkeypatch):
    module, name, model, rows = CALLS[call]
    given = arguments_of(module, name, model, rows, monkeypatch)
    arrays = [i for i, g in enumerate(given) if isinstance(g, np.ndarray) and g.size]
    assert len(arrays) > 1
    kept = []
    for i in arrays:
        for axis in range(given[i].ndim):
            cut = [g.copy() if isinstance(g, np.ndarray) else g for g in given]
            cut[i] = np.ascontiguousarray(np.take(given[i], np.arange(given[i].shape[axis] - 1), axis=axis))
            try:
                called(module, name)(*cut)
            except ValueError as error:
                assert "fit" in str(error)
            else:
                kept.append((axis, given[i].shape))
    # left are the ends of the lists and the sums (fewer classes are served), workspace of a thread with nothing to do,
    # and padding
    for axis, shape in kept:
        assert ((shape == (4,) and name in ("draw_lists", "Visits", "ProjectedPass"))
                or (shape == (3, 3) and name == "ClassPass") or (axis == 0 and shape[0] == 2)
                or (axis, len(shape)) == (2, 3))


VECTORS = {
    "evaluate": (_losses.evaluate, (0,), 4, ()), "posterior": (_losses.posterior, (0,), 2, ()),
    "gains": (_losses.gains, (0,), 2, ()),
    "psi_transform": (_catoni.psi_transform, (), 4, ()), "psi_inverse": (_catoni.psi_inverse, (), 4, ()),
    "conjugate_gradients_of": (_conjugate_gradients.conjugate_gradients_of, (lambda v: v,), 2, (1e-9, 9)),
}


@pytest.mark.parametrize("name", VECTORS)
def test_vectors_of_different_lengths_are_refused(name):
    function, before, n, after = VECTORS[name]
    for short in range(n):
        vectors = [np.full(5 - (i == short), 0.3) for i in range(n)]
        with pytest.raises(ValueError, match="shapes do not fit"):
            function(*before, *vectors, *after)


def test_matrices_that_do_not_fit_their_vectors_are_refused():
    with pytest.raises(ValueError, match="exact_step: shapes do not fit"):
        _line_search.exact_step(lambda s: (-1.0, 1.0), np.zeros(4), np.zeros(4), np.zeros(3), 1.0)
    with pytest.raises(ValueError, match="cubic_roots: shapes do not fit"):
        _catoni.cubic_roots(*np.ones((4, 5)), np.empty((5, 2)), np.empty(5, np.intc))


def test_a_summary_refuses_what_it_would_read_or_write_outside():
    for n, n_levels, room in ((0, 2, 2), (5, 2, 1), (5, 2, 3), (5, 0, 1)):
        with pytest.raises(ValueError, match="summarise: shapes do not fit"):
            _margin_summary.summarise(np.ones(n), np.full(n_levels, 0.5), 1.0, 0.0, np.empty(room))
    for level in (-1e-9, 1 + 1e-9, 1e300, np.nan):
        with pytest.raises(ValueError, match="is not between 0 and 1"):
            _margin_summary.summarise(np.ones(5), np.array([0.5, level]), 1.0, 0.0, np.empty(2))
