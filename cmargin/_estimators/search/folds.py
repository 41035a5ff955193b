"""The folds of a search: their rows, the classes that they lack, and how far each has come."""

from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
from sklearn.model_selection import check_cv

from cmargin._estimators.labels import warn_of_folds
from cmargin._estimators.progress import warn_at_caller
from cmargin.data.containers import positives_of

NEVER = -1e30                    # score of a class that is never predicted; it has a place in float32


def splits(cv, X, y, routed):
    """Pairs of training and test rows, as arrays of their numbers; ``routed``: keyword arguments of ``cv.split``.

    scikit-learn's splitters refuse bytes: they are shown numbers instead. All folds are held at once, five of them as
    much as a tenth of 54 columns where numbers of rows take eight bytes: they take four.
    """
    shown = np.unique(y, return_inverse=True)[1] if y.dtype.kind == "S" else y
    folds = check_cv(cv, shown, classifier=True).split(X, shown, **routed)
    found = [(numbers_of_rows(train, X.shape[0]), numbers_of_rows(test, X.shape[0])) for train, test in folds]
    without = [number for number, (train, _) in enumerate(found, 1) if not len(train)]
    if without or not found:
        raise ValueError(f"cv makes {f'fold {without[0]} without training rows' if without else 'no folds'}.")
    return found


def numbers_of_rows(rows, n):
    """The rows, of ``n``, that a splitter names by their numbers, those from the end negative, or by a mask."""
    rows = np.asarray(rows)
    rows = np.flatnonzero(rows) if rows.dtype == bool else rows
    if rows.ndim != 1 or (len(rows) and not (rows.dtype.kind in "iu" and -n <= rows.min() and rows.max() < n)):
        raise ValueError(f"cv must name the rows of folds by whole numbers below the {n} rows that there are, or by "
                         f"masks; got {rows!r}.")
    few = n - 1 <= np.iinfo(np.int32).max
    rows = rows.astype(np.int32 if few else np.int64)
    return np.where(rows < 0, rows + n, rows).astype(rows.dtype, copy=False) if rows.min(initial=0) < 0 else rows


def warn_of_lacking(classes, y, codes, folds, of_all=False):
    """One warning of classes, or labels of an indicator, that the training rows of some fold say nothing of.

    ``codes``: (n,) the places of the labels ``y`` among ``classes``; None where y is an indicator. ``of_all``: whether
    to name labels that are constant in all rows too, as no fit of all rows will.
    """
    if codes is None:
        warn_of_folds(positives_of(y), folds, of_all)
        return
    lacking = {number: lacks for number, (train, _) in enumerate(folds, 1)
               if len(lacks := np.setdiff1d(np.arange(len(classes)), codes[train]))}
    if lacking:
        names = classes[np.unique(np.concatenate(list(lacking.values())))].tolist()
        several, named = len(names) > 1, ", ".join(map(repr, names[:5])) + ", ..." * (len(names) > 5)
        warn_at_caller(f"{'Classes' if several else 'Class'} {named} {'are' if several else 'is'} absent from the "
                       f"training rows of some folds, numbers {', '.join(map(str, lacking))} of {len(folds)}, and "
                       "never predicted there.")


def of_all_classes(numbers, there, n_classes, others):
    """(k, n_classes) scores, weights or intercepts of all classes from (k, n_problems), those of the classes ``there``.

    Two classes have one problem, the second against the first. ``others``: what stands for a class that is not there;
    its score is below all, so that a scorer finds every class that it asks for and that one is never predicted.
    """
    if len(there) == n_classes:
        return numbers
    if len(there) == 2:
        numbers = np.concatenate([-numbers, numbers], axis=1)
    every = np.full((len(numbers), n_classes), others)
    every[:, there] = numbers
    return every


def constant(n_classes, only, n_rows):
    """(n_problems,) intercepts of a fold whose training rows, ``n_rows`` of them, are all of class number ``only``.

    The log-odds of that class are Laplace's: n + 1 in n + 2.
    """
    odds = np.log(n_rows + 1.0)
    if n_classes == 2:
        return np.array([odds if only == 1 else -odds])
    return np.where(np.arange(n_classes) == only, odds, NEVER)


@dataclass
class Fold:
    """How far a fold has come: tables over the grid, reads, steps done, and what the last one left for the next."""

    scores: np.ndarray               # NaN where nothing was scored
    gaps: np.ndarray                 # largest relative duality gap of the problems
    fit_seconds: np.ndarray
    score_seconds: np.ndarray
    passes: float = 0.0
    n_done: int = 0                  # of fits that are made one by one
    last: dict = field(default_factory=dict)

    @staticmethod
    def begun(shape):
        return Fold(*(np.full(shape, np.nan) for _ in range(4)))


class FoldsAtWork:
    """Base of what makes the fits of a search: ``folds``, a `Fold` each, and the ``checkpointer`` that has them."""

    @property
    def scores(self):
        """(n_folds, ...) over the grid."""
        return np.stack([fold.scores for fold in self.folds])

    @property
    def n_passes(self):
        """Reads of the data so far."""
        return sum(fold.passes for fold in self.folds)

    @contextmanager
    def kept(self):
        """Scores go into the checkpoint at an interrupt, and at the end: the fit to all rows may have one, too."""
        try:
            yield
        except KeyboardInterrupt:
            self._write()
            raise
        self._write()

    def _write(self):
        if self.checkpointer.active:
            self.checkpointer.write(self.n_passes, self.folds)
