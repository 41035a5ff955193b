"""Rows drawn by weight, and the steps of Pegasos where weights or the scale of the columns are far from 1."""

import warnings

import numpy as np
import pytest
from api import alias_table
from conftest import blobs
from naive import catoni_rho
from naive_pursuit import projected_steps, random_rows, table_shares
from sklearn.datasets import load_breast_cancer, make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import scale

from cmargin import MarginPursuitClassifier, PegasosClassifier
from cmargin.solvers.first_order.margin_pursuit import weighted_draws
from cmargin.solvers.per_class import class_streams

X_bc, y_bc = load_breast_cancer(return_X_y=True)
X_bc = scale(X_bc)
sign_bc = np.where(y_bc == 1, 1.0, -1.0)


@pytest.mark.parametrize("weight", [np.ones(7), np.array([7.0]), np.array([1e-4, 1e3, 1.0, 5e-324, 40.0]),
                                    np.random.default_rng(3).pareto(0.5, 1000)], ids=["equal", "one", "wide", "heavy"])
def test_the_table_of_weighted_draws_gives_every_row_its_share(weight):
    share = weight / weight.sum()
    cut, other = weighted_draws(share * len(weight))
    np.testing.assert_allclose(table_shares(cut, other), share, rtol=1e-9, atol=1e-15)
    assert np.all((cut >= 0) & (cut <= 1))


def test_a_table_of_weighted_draws_is_not_read_past_its_end():
    with pytest.raises(ValueError, match="for the same rows"):
        alias_table(np.ones(5), np.zeros(4, np.int64), np.zeros(5, np.int64))


@pytest.mark.parametrize("seed", range(3))
def test_pegasos_is_near_the_minimum_where_weights_differ_ten_million_times(seed):
    # Half the steps went to rows that count for nothing, and steps of 1 / (l2 t) threw the weights from one end of the
    # ball to the other: objective 11 to 74 after 100 passes, where 5e-5 is the minimum (all of it the intercept's)
    X, y = make_blobs(centers=2, random_state=0, cluster_std=20)
    model = PegasosClassifier(class_weight={0: 1000, 1: 1e-4}, random_state=seed).fit(X[::2], y[::2])
    assert 4e-5 < model.objective_[0] < 2e-4
    assert np.mean(model.predict(X[1::2]) == 0) > 0.9


def test_pegasos_takes_the_published_steps_where_they_are_asked_for():
    X, y = blobs(n=90, d=7, k=2)
    model = PegasosClassifier(l2=0.04, step_size=25.0, max_passes=1, random_state=5).fit(X, y)
    entropy = int(np.random.RandomState(5).randint(1 << 31))
    rows = random_rows(class_streams([entropy, 0], 1)[0], 90, 90)
    w = np.random.default_rng(np.random.SeedSequence([entropy, 1, 0])).standard_normal(7)
    w, b = projected_steps(X, np.where(y == 1, 1, -1), rows, w / np.linalg.norm(w), 0.0, lambda z: -float(z < 1), 0.04,
                           25.0, 5.0, 1.0)
    np.testing.assert_allclose([*model.coef_[0], model.intercept_[0]], [*w, b], rtol=1e-9, atol=1e-12)


def test_weighted_draws_come_to_the_minimum_of_the_weighted_rows():
    weight = np.random.default_rng(4).uniform(0.1, 5, len(y_bc))
    common = {"l2": 0.1, "fit_intercept": False, "random_state": 5}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        best = MarginPursuitClassifier(**common).fit(X_bc, y_bc, weight)
        loose = MarginPursuitClassifier(solver="sgd", max_passes=60, **common).fit(X_bc, y_bc, weight)
        other = MarginPursuitClassifier(solver="sgd", max_passes=60, **common).fit(X_bc, y_bc)
    assert best.objective_[0] * (1 - 1e-9) <= loose.objective_[0] <= best.objective_[0] * 1.01
    z = sign_bc * (X_bc @ other.coef_[0])
    assert loose.objective_[0] < 0.05 * other.coef_[0] @ other.coef_[0] + np.average(catoni_rho(1 - z), weights=weight)
