"""`open_rows(X, signed_weights, comm=comm)`: the rows of all ranks as one data source, for a solver of one's own."""

import numpy as np
import pytest
import scipy.sparse as sp
from ranks_in_threads import on_ranks

from cmargin.data import open_rows
from cmargin.data.loss import Loss

rng = np.random.default_rng(0)
X = rng.standard_normal((60, 5))
SIGNED_WEIGHTS = np.sign(rng.standard_normal((60, 2)))
EDGES = [0, 25, 25, 60]                  # the second of three ranks has no rows


def driven(work, rows=X, signed_weights=SIGNED_WEIGHTS):
    """What ``work(source)`` brings on rank 0 of three."""
    def one(comm):
        part = slice(*EDGES[comm.rank:comm.rank + 2])
        source = open_rows(rows[part], signed_weights[part], comm=comm)
        if comm.rank:
            return source.serve()
        try:
            return work(source)
        finally:
            source.end()

    (found, *others), _ = on_ranks(3, one)
    assert others == [None, None]
    if isinstance(found, BaseException):
        raise found
    return found


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_sums_of_every_problem_are_those_of_the_rows_together(form):
    w, together = rng.standard_normal(6), open_rows(form(X))

    def work(source):
        assert (source.n_rows, source.n_features, source.sparse) == (60, 5, form is not np.asarray)
        return [source.row_pass(c, intercept=True, n_threads=1).objective(w, True) for c in range(2)]

    for c, (loss, squares) in enumerate(driven(work, form(X))):
        alone = together.row_pass(SIGNED_WEIGHTS[:, c].copy(), intercept=True, n_threads=1).objective(w, True)
        assert loss == pytest.approx(alone[0])
        np.testing.assert_allclose(squares, alone[1])


def test_views_of_all_problems():
    W, bias = rng.standard_normal((2, 5)), np.array([0.1, -0.2])
    margins = driven(lambda source: np.vstack([m for _, m in source.score_blocks(None, None, 1).margins(W, bias)]))
    np.testing.assert_allclose(margins, SIGNED_WEIGHTS.T * (W @ X.T + bias[:, None]))
    start = driven(lambda source: source.shared_start([0, 1], [60.0, 60.0], True, 1e-3, Loss("hinge")).W)
    assert start.shape == (2, 6) and (np.sign(X @ start[0, :5] + start[0, 5]) == SIGNED_WEIGHTS[:, 0]).mean() > 0.5


@pytest.mark.parametrize("broken, message", [
    (lambda comm: (X[:, :5 - comm.rank], SIGNED_WEIGHTS),
     "disagree on the number of columns of X: 5 on rank 0, 4 on rank 1"),
    (lambda comm: (X.astype([np.float64, np.float32][comm.rank]), SIGNED_WEIGHTS), "disagree on the dtype of X"),
    (lambda comm: (X, SIGNED_WEIGHTS[:, :2 - comm.rank]),
     "disagree on the number of columns of y: 2 on rank 0, 1 on rank 1"),
    (lambda comm: (sp.csr_matrix(X) if comm.rank else X, SIGNED_WEIGHTS), "disagree on how X is stored"),
    (lambda comm: (X, SIGNED_WEIGHTS[comm.rank:]), r"inconsistent numbers of samples: \[60, 59\] \(on rank 1\)"),
    (lambda comm: (X[0] if comm.rank else X, SIGNED_WEIGHTS), "Expected 2D array"),
], ids=["columns", "dtype", "problems", "layout", "labels", "dimensions"])
def test_what_does_not_fit_is_one_sentence_on_every_rank(broken, message):
    found, _ = on_ranks(2, lambda comm: open_rows(*broken(comm), comm=comm))
    for error in found:
        assert isinstance(error, ValueError)
        with pytest.raises(ValueError, match=message):
            raise error


def test_a_communicator_is_one():
    with pytest.raises(TypeError, match="comm must be a communicator"):
        open_rows(X, SIGNED_WEIGHTS, comm=object())
