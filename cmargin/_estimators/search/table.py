"""What a search has found: the table of scikit-learn's searches, and the penalties that are chosen by it."""

import warnings

import numpy as np
from scipy.stats import rankdata


def means(scores):
    """Mean and standard deviation over the folds of (n_folds, ...) scores, of those that are there; NaN for none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)                  # of places that no fold has scored
        return np.nanmean(scores, axis=0), np.nanstd(scores, axis=0)


def chosen(grid, scores, one_standard_error):
    """The place (i, k) of the best mean score; of equal ones that of the strongest penalties.

    Where time ended the search only the penalties that most folds have scored are compared. ``one_standard_error``: the
    strongest penalties whose mean is no worse than the best by more than the standard error of the best.
    """
    n_scored = np.isfinite(scores).sum(axis=0)
    if not n_scored.any():
        return grid.strongest(np.ndindex(grid.shape))
    mean = np.where(n_scored == n_scored.max(), means(scores)[0], -np.inf)
    best = mean.max()
    less = 1e-12 * max(1.0, abs(best))
    if one_standard_error:
        at_best = scores[(slice(None), *np.unravel_index(mean.argmax(), mean.shape))]
        at_best = at_best[np.isfinite(at_best)]
        if len(at_best) > 1:
            less = max(less, at_best.std(ddof=1) / np.sqrt(len(at_best)))
    return grid.strongest(np.argwhere(mean >= best - less))


def table_of(grid, folds):
    """``cv_results_``: a candidate a place of the grid, l1 running fastest."""
    params = [grid.named(*place) for place in np.ndindex(grid.shape)]
    table = {}
    for name, of_fold in (("fit_time", "fit_seconds"), ("score_time", "score_seconds")):
        mean, std = means(np.stack([getattr(fold, of_fold) for fold in folds]))
        table |= {f"mean_{name}": mean.ravel(), f"std_{name}": std.ravel()}
    for name in params[0]:
        table[f"param_{name}"] = np.ma.array([one[name] for one in params], mask=np.zeros(len(params), bool))
    table["params"] = params
    scores = np.stack([fold.scores for fold in folds])
    table |= {f"split{number}_test_score": score.ravel() for number, score in enumerate(scores)}
    mean, std = (values.ravel() for values in means(scores))
    n_scored = np.isfinite(scores).sum(axis=0).ravel()
    last = np.where((n_scored == n_scored.max()) & ~np.isnan(mean), mean, -np.inf)
    gaps = np.stack([fold.gaps for fold in folds]).max(axis=0)
    return table | {"mean_test_score": mean, "std_test_score": std,
                    "rank_test_score": rankdata(-last, method="min").astype(np.int32), "max_duality_gap": gaps.ravel()}
