"""How good rankings of labels are: precision at k, nDCG at k, and both weighed by how often labels go missing."""

from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from cmargin._core.rows._structure import check_structure
from cmargin.data.arrays import is_sparse, plain, top_of
from cmargin.data.containers import label_array, positives_of
from cmargin.margins._batches import as_real, is_stream, row_blocks
from cmargin.margins._checks import nonnegative_number, positive_array

NO_LABEL = -1           # in a ranking, behind its last label
FEWEST_ROWS = 3         # from which ln N is above 1


def precision_at_k(scores: Any, y: Any, k: int | Sequence[int] = (1, 3, 5)) -> Any:
    """Mean over the rows of the share of the k first labels that the row has: P@k.

    Parameters
    ----------
    scores : (n, n_labels) array of floats or sparse matrix, or an iterator of row batches of it; or ranked labels
        Of a sparse matrix the entries that are stored are ranked, and what is left out is not predicted. Whole numbers
        (n, at least k) are labels ranked already, best first, as `predict_top_k` gives them; -1 where a row has no
        more. Of equal scores the first label comes first.
    y : (n, n_labels) indicator
        0 and 1, or -1 and 1; dense, or sparse of any format.
    k : int in [1, n_labels], or sequence of these, default=(1, 3, 5)

    Returns
    -------
    precision : float, or array of one for each k
        A row of fewer than k labels cannot have a share of 1, and one without labels has 0.
    """
    ks, hits, _ = ranked_hits(scores, y, k)
    return of_ks(k, hits.cumsum(axis=1).mean(axis=0)[ks - 1] / ks)


def ndcg_at_k(scores: Any, y: Any, k: int | Sequence[int] = (1, 3, 5)) -> Any:
    """Mean over the rows of the normalised discounted cumulative gain of the k first labels: nDCG@k.

    ``sum_{r <= k} y_r / log2(r + 1)``, r the rank, over what the best ranking of the row has. A row without labels has
    0, as in scikit-learn's `ndcg_score`, which this is where no scores of a row are equal.

    Parameters
    ----------
    scores, y, k : as in `precision_at_k`

    Returns
    -------
    ndcg : float, or array of one for each k
    """
    ks, hits, positives = ranked_hits(scores, y, k)
    discount = 1 / np.log2(np.arange(hits.shape[1]) + 2.0)
    n_labels = np.minimum(np.diff(positives.indptr)[:, None], np.arange(hits.shape[1]) + 1)
    best = np.concatenate([[0.0], discount.cumsum()])[n_labels]
    shares = np.divide((hits * discount).cumsum(axis=1), best, out=np.zeros(hits.shape), where=best > 0)
    return of_ks(k, shares.mean(axis=0)[ks - 1])


def label_propensities(y: Any, a: float = 0.55, b: float = 1.5) -> np.ndarray:
    """Probability p_l that a label is noted where it applies, by how often it is noted (Jain et al. 2016).

    ``p_l = 1 / (1 + C (N_l + b)^-a)`` with ``C = (ln N - 1) (b + 1)^a`` for a label that N_l of N rows have: the rarer,
    the more often it is forgotten.

    Parameters
    ----------
    y : (N, n_labels) indicator of the training rows, dense or sparse
    a, b : float, default=0.55 and 1.5
        Fitted by the paper where they could be: 0.5 and 0.4 on Wikipedia, 0.6 and 2.6 on Amazon's products. The
        defaults are those of the repository for all other sets.

    Returns
    -------
    propensity : (n_labels,) array, at most 1

    References
    ----------
    H. Jain, Y. Prabhu, M. Varma, "Extreme multi-label loss functions for recommendation, tagging, ranking & other
    missing label applications", 2016.
    """
    a, b = nonnegative_number(a, "a"), nonnegative_number(b, "b")
    positives = indicator(y)
    n = positives.shape[0]
    if n < FEWEST_ROWS:
        raise ValueError(f"propensities need at least {FEWEST_ROWS} rows, for ln N to be above 1; y has {n}")
    return propensities_of(positives.getnnz(axis=0), n, a, b)


def propensities_of(n_noted, n, a=0.55, b=1.5):
    """`label_propensities` of labels that ``n_noted`` (n_labels,) of n rows have."""
    n_noted = np.maximum(n_noted + b, np.finfo(float).tiny)                  # b = 0: of a label that no row has
    with np.errstate(over="ignore"):
        return 1 / (1 + (np.log(n) - 1) * np.power((b + 1) / n_noted, a))


def ps_precision_at_k(scores: Any, y: Any, propensity: ArrayLike, k: int | Sequence[int] = (1, 3, 5), *,
                      normalized: bool = True) -> Any:
    """Propensity-scored precision, PSP@k: a label of the row that is among its k first counts 1/p_l (Jain et al.).

    Parameters
    ----------
    scores, y, k : as in `precision_at_k`
    propensity : (n_labels,) array, positive
        p_l, as `label_propensities` of the training rows gives them.
    normalized : bool, default=True
        Divide by what the best ranking of every row has, as the tables of the extreme classification repository do:
        the mean over the rows of the one over that of the other. False: the mean itself, which may be above 1.

    Returns
    -------
    precision : float, or array of one for each k
    """
    ks, found, best = propensity_scored(scores, y, propensity, k)
    return of_ks(k, _over_best(found, best, normalized)[ks - 1] / (1 if normalized else ks))


def ps_ndcg_at_k(scores: Any, y: Any, propensity: ArrayLike, k: int | Sequence[int] = (1, 3, 5), *,
                 normalized: bool = True) -> Any:
    """Propensity-scored nDCG, PSnDCG@k: ``sum_{r <= k} y_r / (p_r log2(r + 1)) / sum_{r <= k} 1 / log2(r + 1)``.

    Parameters
    ----------
    scores, y, propensity, k, normalized : as in `ps_precision_at_k`
        The divisor is the same for all rows, and is of no consequence where ``normalized``.

    Returns
    -------
    ndcg : float, or array of one for each k
    """
    ks, found, best = propensity_scored(scores, y, propensity, k)
    discount = 1 / np.log2(np.arange(found.shape[1]) + 2.0)
    means = _over_best(found * discount, best * discount, normalized)
    return of_ks(k, (means if normalized else means / discount.cumsum())[ks - 1])


def _over_best(found, best, normalized):
    """(most,) means of the gains up to every rank, over those of the best rankings."""
    found, best = (gains.cumsum(axis=1).mean(axis=0) for gains in (found, best))
    if not normalized:
        return found
    if not best[0] > 0:
        raise ValueError("no row of y has a label, so that the best ranking, by which this is divided, gains nothing")
    return found / best


# ---------------------------------------------------------------- what a ranking finds

def ranked_hits(scores, y, k):
    """(n_ks,) the k's; (n, the largest) flags of the ranked labels that a row has; the CSR indicator of its labels."""
    positives = indicator(y)
    ks = places_asked_for(k, positives.shape[1])
    return ks, hits_of(rankings(scores, positives.shape, ks.max()), positives), positives


def propensity_scored(scores, y, propensity, k):
    """(n_ks,) the k's; (n, the largest) gains 1/p of the ranked labels that a row has; the same of its best ranking."""
    positives = indicator(y)
    gain = 1 / positive_array(propensity, "propensity")
    if gain.shape != positives.shape[1:]:
        raise ValueError(f"propensity must have shape ({positives.shape[1]},), one for each label, got {gain.shape}")
    with np.errstate(over="ignore"):
        total = gain.sum() * positives.shape[0]
    if not np.isfinite(total):
        raise ValueError("propensity is so small that sums of its inverse overflow")
    ks = places_asked_for(k, positives.shape[1])
    ranked = rankings(scores, positives.shape, ks.max())
    best = of_stored(sp.csr_matrix((gain[positives.indices], positives.indices, positives.indptr), positives.shape),
                     ks.max())
    return ks, *(hits_of(labels, positives) * gain[labels] for labels in (ranked, best))


def indicator(y):
    """CSR indicator of the labels of every row."""
    y = label_array(y)
    if np.ndim(y) != 2 or 0 in y.shape:
        raise ValueError(f"y must be an indicator of shape (n, n_labels), 0 and 1, got shape {np.shape(y)}")
    positives = positives_of(y).tocsr()
    positives.sort_indices()
    return positives


def places_asked_for(k, n_labels):
    """(n_ks,) array of k."""
    ks = [k] if isinstance(k, Integral) or not isinstance(k, Iterable) else list(k)
    if not ks or not all(isinstance(one, Integral) and not isinstance(one, bool) and 1 <= one <= n_labels
                         for one in ks):
        raise ValueError(f"k must be whole numbers from 1 to {n_labels}, the number of labels, got {plain(k)!r}")
    return np.array(ks, np.int64)


def of_ks(k, values):
    return values if isinstance(k, Iterable) else float(values[0])


def hits_of(ranked, positives):
    """Flags of the shape of ``ranked``: whether the row has the label. ``positives``: CSR, its indices sorted."""
    n, n_labels = positives.shape
    has = np.repeat(np.arange(n, dtype=np.int64) * n_labels, np.diff(positives.indptr)) + positives.indices
    asked = np.arange(n, dtype=np.int64)[:, None] * n_labels + ranked
    place = np.searchsorted(has, asked)
    return (ranked != NO_LABEL) & (np.append(has, -1)[place] == asked)


def rankings(scores, shape, most):
    """(n, most) labels of every row, best first, `NO_LABEL` behind the last."""
    found = [_of_batch(batch, shape[1], most) for batch in (scores if is_stream(scores) else [scores])]
    ranked = np.concatenate(found) if found else np.empty((0, most), np.int64)
    if len(ranked) != shape[0]:
        raise ValueError(f"scores has {len(ranked)} rows but y has {shape[0]}")
    return ranked


def _of_batch(scores, n_labels, most):
    if not is_sparse(scores):
        scores = as_real(scores, "scores")
    if scores.ndim != 2:
        raise ValueError(f"scores must have 2 dimensions, got shape {scores.shape}")
    if not is_sparse(scores) and scores.dtype.kind in "iu":
        return _checked(scores, n_labels, most)
    if scores.shape[1] != n_labels:
        raise ValueError(f"scores must have {n_labels} columns, one for each label, got shape {scores.shape}")
    if is_sparse(scores):
        check_structure(scores, "scores")
        scores = sp.csr_matrix(scores, dtype=np.float64)
        if not scores.has_canonical_format:
            scores = scores.copy()
            scores.sum_duplicates()
        if not np.isfinite(scores.data).all():
            raise ValueError("scores contains NaN or infinity")
        return of_stored(scores, most)
    if not len(scores):
        return np.empty((0, most), np.int64)
    return np.concatenate([top_of(block, most) for _, block in row_blocks(scores, "scores")])


def _checked(ranked, n_labels, most):
    """Labels that are ranked already."""
    if ranked.shape[1] < most:
        raise ValueError(f"scores are whole numbers, and so labels ranked already, {ranked.shape[1]} a row, where k is "
                         f"{most}; scores themselves are floats")
    ranked = ranked[:, :most].astype(np.int64)
    if ranked.size and not NO_LABEL <= ranked.min() <= ranked.max() < n_labels:
        raise ValueError(f"ranked labels must lie between 0 and {n_labels - 1}, or be -1 for none, found "
                         f"{ranked.min()} to {ranked.max()}")
    ordered = np.sort(ranked, axis=1)
    twice = np.flatnonzero(((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] != NO_LABEL)).any(axis=1))
    if len(twice):
        raise ValueError(f"ranked labels name a label twice, first in row {twice[0]}")
    return ranked


def of_stored(scores, most):
    """The labels of the largest entries of a CSR matrix, of equal ones the first."""
    n = scores.shape[0]
    row = np.repeat(np.arange(n), np.diff(scores.indptr))
    order = np.lexsort((scores.indices, -scores.data, row))
    rank = np.arange(len(row)) - scores.indptr[row]              # the order keeps rows together
    taken = rank < most
    ranked = np.full((n, most), NO_LABEL, np.int64)
    ranked[row[taken], rank[taken]] = scores.indices[order][taken]
    return ranked
