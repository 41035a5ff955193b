"""The mean of walkers' weights, and what makes a task on a worker the same steps whenever it is done."""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import blobs

from cmargin._estimators.labels import Labels
from cmargin.data import open_rows
from cmargin.solvers.sgd.low_rank import LowRankInverse
from cmargin.solvers.sgd.softmax_weights import SoftmaxWeights
from cmargin.solvers.sgd.work import ClassListWork, SoftmaxWork, Steps

X, Y = blobs(n=300, d=6, k=3)


def shard(X, y, number=0):
    return SimpleNamespace(source=open_rows(X), labels=Labels(np.arange(3), y), weights=np.ones(len(y)), number=number,
                           n_threads=1, file=SimpleNamespace(kept={}, found={}), break_off=None)


def inverse_of(sparse):
    """H* of rank 2 with a scaled tail."""
    P = np.linalg.qr(np.random.default_rng(0).standard_normal((6, 2)))[0]
    found = LowRankInverse(P[None], np.array([[3.0, 2.0]]), np.array([0.5]), np.zeros(1), np.ones(1), sparse,
                           X.mean(axis=0))
    found.mean_square = np.array([5.0])
    return found


def started(sparse=False):
    return SoftmaxWeights.start(inverse_of(sparse), np.zeros((3, 6)), np.zeros(3), True, 4)


@pytest.mark.parametrize("sparse", [False, True])
def test_a_walker_without_rows_does_not_count_in_the_mean(sparse):
    # the sum of the weights was divided by the number of ranks with rows, which whoever took the mean had to know
    rng, every = np.random.default_rng(1), []
    for n_done in (12, 9, 0):
        weights = started(sparse)
        for array in weights._moved():
            array[...] = rng.standard_normal(array.shape)
        weights.n_done = n_done
        every.append(weights)
    before = [array.copy() for array in every[0]._moved()]
    found = SoftmaxWork.mean_of(every, [1.0, 1.0, 0.0])
    assert found.n_done == 12
    for mine, *theirs in zip(found._moved(), *(weights._moved() for weights in every[:2]), strict=True):
        np.testing.assert_allclose(mine, (theirs[0] + theirs[1]) / 2)
    for array, kept in zip(every[0]._moved(), before, strict=True):
        np.testing.assert_array_equal(array, kept)


@pytest.mark.parametrize("sparse", [False, True])
def test_a_multinomial_task_takes_the_same_steps_again(sparse):
    rows, found = sp.csr_matrix(X) if sparse else X, []
    for number in (1, 1, 2):
        work = SoftmaxWork(shard(rows, Y), 7, len(Y), 3)
        work.share_out((10, False), 1.0)
        work.open(inverse_of(sparse), work.whiten((inverse_of(sparse), None)))
        work.weights = started(sparse)
        work.draw(number)
        met = sum(work.walk(Steps(number, part, 4, 0.1, 1.0)) for part in range(4))
        assert met[3] == len(Y) and work.weights.n_done == 10
        found.append(work.weights.U.tobytes())
    assert found[0] == found[1] != found[2]


def test_a_rank_goes_on_with_its_streams_from_a_checkpoint():
    for kind, about, share, part in ((SoftmaxWork, (len(Y), 3), (10, False), 1.0),
                                     (ClassListWork, ("logistic",), np.array([20, 20, 20]), np.ones(3))):
        drawn, place = [], shard(X, Y)
        first = kind(place, 7, *about)
        first.share_out(share, part)
        first.open(inverse_of(False), first.whiten((inverse_of(False), None)))
        first.draw()
        first.keep("state")
        place.file.found = {name: {what: array.copy() for what, array in kept.items()}
                            for name, kept in place.file.kept.items()}
        again = kind(place, 7, *about)
        again.share_out(share, part)
        again.open(inverse_of(False), again.whiten((inverse_of(False), None)))
        again.restore("state")
        for work in (first, again):
            work.draw()
            drawn.append(work.drawn.tolist())
        assert drawn[0] == drawn[1]


def test_a_class_whose_weights_count_for_nothing_is_not_visited():
    work = ClassListWork(shard(X, Y), 7, "logistic")
    work.share_out(np.array([10, 0, 10]), np.array([0.5, 0.0, 1.0]))
    counts = np.bincount(Y)
    assert work.lists.n_positives.tolist() == [counts[0], 0, counts[2]]
    assert work.lists.lengths.tolist() == [counts[0] + 10, 0, counts[2] + 10]
