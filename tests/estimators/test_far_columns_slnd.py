"""SLND and BSN on columns of very different units, raw as tables have them."""

import numpy as np
import pytest
import scipy.sparse as sp
from ranks_in_threads import on_ranks
from rows_in_files import files_of
from sklearn.exceptions import ConvergenceWarning
from tensors import LIBRARIES
from test_far_columns import FAR, THREE, TWO, Z, quietly, table

from cmargin import BSNClassifier, SLNDClassifier, baselines


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("container", [np.asarray, np.asfortranarray, sp.csr_matrix])
@pytest.mark.parametrize("name", FAR)
def test_slnd_sees_the_other_columns(name, container, dtype):
    # Its second moment, in the dtype of the rows and one-vs-rest about 0, held nothing but the large column: 0.53 of
    # the rows right in single precision, by seconds in double too, and CSR rows 0.17
    X = container(table(name, dtype))
    for make in (SLNDClassifier, BSNClassifier):
        assert quietly(make(random_state=0, n_jobs=1), X, TWO).score(X, TWO) > 0.98
        alike = container(Z.astype(dtype))                       # the same rows where no column is large
        assert quietly(make(random_state=0, n_jobs=1), X, THREE).score(X, THREE) > \
            quietly(make(random_state=0, n_jobs=1), alike, THREE).score(alike, THREE) - 0.01 > 0.9
    one_vs_rest = quietly(SLNDClassifier(loss="logistic", random_state=0, n_jobs=1), X, THREE)
    assert one_vs_rest.score(X, THREE) > 0.9                     # 0.98 as other rows of this kind
    if dtype == np.float64:                                      # weights are those of the rows as they were given
        np.testing.assert_allclose(one_vs_rest.scores(X), X @ one_vs_rest.coef_.T + one_vs_rest.intercept_, atol=1e-9)


@pytest.mark.parametrize("labels", [TWO, THREE], ids=["two", "three"])
def test_slnd_elsewhere_sees_them_too(labels, tmp_path):
    X, parts = table("seconds"), (slice(0, 700), slice(700, 1500))
    make = lambda: SLNDClassifier(random_state=0, n_jobs=1)  # noqa: E731
    assert make().fit(files_of(X, "npy C", tmp_path), labels).score(X, labels) > 0.95
    for model in on_ranks(2, lambda comm: make().fit(X[parts[comm.rank]], labels[parts[comm.rank]], comm=comm))[0]:
        assert model.score(X, labels) > 0.95
    for to in LIBRARIES.values() if len(set(labels)) > 2 else ():
        assert make().fit(to(X), to(labels)).score(X, labels) > 0.95


@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix])
def test_going_on_is_in_the_same_units(container):
    """By further batches, of which the last knows nothing of the first's units, and from the last fit's weights."""
    X = table("seconds")
    model = SLNDClassifier(random_state=0, n_jobs=1)
    for k in range(5):
        model.partial_fit(container(X[k::5]), THREE[k::5], classes=[0, 1, 2])
    assert model.score(container(X), THREE) > 0.95
    model = SLNDClassifier(random_state=0, warm_start=True, max_passes=2, n_jobs=1).fit(container(X), THREE)
    before = model.score(container(X), THREE)
    assert model.fit(container(X), THREE).score(container(X), THREE) >= before - 0.01 > 0.9
    assert model.set_params(l2=1e-4).fit(container(X), THREE).score(container(X), THREE) > 0.9
    assert model.set_params(l2=0.0).fit(container(X), THREE).score(container(X), THREE) > 0.9


def test_published_stochastic_steps_are_not_silent():
    with pytest.warns(ConvergenceWarning, match="column 2 is so large beside others"):
        baselines.BalancedSGDClassifier(random_state=0).fit(table("years", np.float32), TWO)
    with pytest.warns(ConvergenceWarning, match="column 2 has.*float32"):
        X = np.column_stack([Z[:, :2], 1.7e9 + 100 * Z[:, 2]]).astype(np.float32)
        SLNDClassifier(random_state=0).fit(X, TWO)
