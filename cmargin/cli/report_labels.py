"""The numbers that ``cmargin evaluate`` reports where a row may have several labels: how well they are ranked."""

import numpy as np
import scipy.sparse as sp

from cmargin.margins import ndcg_at_k, precision_at_k, ps_ndcg_at_k, ps_precision_at_k
from cmargin.margins.rankings import FEWEST_ROWS, propensities_of

USUAL = (1, 3, 5)              # k's that are reported


def places(n_labels, top=None):
    """The k's to report: 1, 3 and 5 as far as there are so many labels, or as far as ``top``, and that."""
    most = min(n_labels, USUAL[-1]) if top is None else top
    return sorted({k for k in USUAL if k <= most} | ({top} if top else set()))


def check_top(top, n_labels, name):
    """Raise ValueError where more labels are asked for than ``name`` has."""
    if top is not None and top > n_labels:
        raise ValueError(f"--top {top}: {name} has {n_labels} labels.")


def report(model, table, name, top=None):
    """Return (facts, no curves) of rows of a `Table` with an indicator, whose columns are the labels of the model.

    Columns behind these are of labels that the model does not know, and none of its own finds them.
    """
    if np.ndim(table.y) != 2:
        raise ValueError(f"{name} has one label a row, and the model has several; write it as svmlight text, or "
                         "as an indicator.")
    top = model.facts.get("top") if top is None else top
    n_known, y = len(model.labels), table.y
    check_top(top, n_known, "the model")
    ks = places(n_known, top)
    ranked, counts = _predicted(model, table.X, y[:, :n_known].astype(bool), max(ks))
    facts = {"data": {"file": name, "rows": y.shape[0], "labels a row": float(y.sum() / y.shape[0]),
                      "labels not known": int(y[:, n_known:].sum())}}
    facts["precision"] = _by_k(ks, precision_at_k(ranked, y, ks))
    facts["ndcg"] = _by_k(ks, ndcg_at_k(ranked, y, ks))
    if model.facts["rows"] >= FEWEST_ROWS and y.nnz:
        counts_there = np.append(model.positives, np.zeros(y.shape[1] - n_known, int))
        propensity = propensities_of(counts_there, model.facts["rows"])
        facts["propensity-scored precision"] = _by_k(ks, ps_precision_at_k(ranked, y, propensity, ks))
        facts["propensity-scored ndcg"] = _by_k(ks, ps_ndcg_at_k(ranked, y, propensity, ks))
    there, found, right = counts
    facts["f1, all labels together"] = _f1(there.sum(), found.sum(), right.sum())
    facts["f1, mean of the labels"] = float(np.mean([_f1(*one) for one in zip(*counts, strict=True)]))
    facts["labels"] = [{"label": str(label), "rows": int(rows), "recall": float(hits / rows) if rows else None,
                        "precision": float(hits / of) if of else None}
                       for label, rows, of, hits in zip(model.labels.tolist(), *counts, strict=True)]
    return facts, {}


def _predicted(model, X, truth, top):
    """The ``top`` best labels of every row; how many rows have each label, are predicted to, and both."""
    classifier, ranked, counts = model.classifier, [], np.zeros((3, len(model.labels)), np.int64)
    for part, rows in model.batches(X):
        ranked.append(classifier.predict_top_k(rows, top))
        predicted = sp.csr_matrix(classifier.predict(rows).astype(bool))
        for row, flags in enumerate((truth[part], predicted, truth[part].multiply(predicted))):
            counts[row] += np.bincount(flags.tocsr().indices, minlength=counts.shape[1])
    return np.concatenate(ranked), counts


def _by_k(ks, values):
    return dict(zip(map(str, ks), map(float, values), strict=True))


def _f1(there, found, right):
    return float(2 * right / (there + found)) if there + found else 0.0
