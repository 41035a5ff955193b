"""Scores of the rows that a fold holds out, and a model that predicts by them: no row is read again for a scorer."""

from copy import copy
from functools import lru_cache

import numpy as np
from sklearn.base import clone

from cmargin._estimators.scores import of_scores, predicted
from cmargin._estimators.search.folds import NEVER, constant, of_all_classes

KEPT = 4                         # fits of a problem multiplied with the rows held out at a time; twice as many are kept
ENTRIES_GATHERED = 1 << 20       # of X that are copied at a time, on their way through one product


def decisions(X, rows, W, intercept, n_threads):
    """(len(rows), n_problems) scores of some rows of X, float64; a few rows are gathered at a time.

    ``W``: (n_problems, n_columns), with the intercepts last where there are any.
    """
    m, out = X.shape[1], np.empty((len(rows), len(W)))
    coef, bias = np.ascontiguousarray(W[:, :m]), W[:, m] if intercept else np.zeros(len(W))
    at_once = max(1, ENTRIES_GATHERED // max(1, m))
    for lo in range(0, len(rows), at_once):
        out[lo:lo + at_once] = predicted(X[rows[lo:lo + at_once]], coef, bias, n_threads=n_threads)
    return out


class KnownScores:
    """Mixed in before a linear classifier: predicts rows whose scores are known, named by their numbers, (n, 1)."""

    known = np.empty((0, 1))

    def _check_rows(self, X):
        return X

    def _predicted(self, X, what, intercept=None, n_top=1):
        return of_scores(self.known[X[:, 0]], what, n_top)


@lru_cache
def with_known_scores(kind):
    return type(kind.__name__, (KnownScores, kind), {})


def predicts(estimator, classes, scores, multilabel):
    """A copy of ``estimator`` that predicts the rows of (n, n_problems) ``scores``, and the numbers to name them by."""
    model = copy(estimator)
    model.__class__ = with_known_scores(type(estimator))
    vars(model).update(classes_=classes, coef_=np.zeros((scores.shape[1], 1)), intercept_=np.zeros(scores.shape[1]),
                       n_features_in_=1, known=scores, _multilabel=multilabel)
    return model, np.arange(len(scores))[:, None]


class HeldOut:
    """Scores of the rows that a fold holds out: one product for every fit, and sums of those for what lies between."""

    def __init__(self, fold):
        self.fold, self.whole, self.posed, self.products = fold, fold.whole, fold.posed, {}
        self.coming, self.turning = [], None     # pairs in the order in which they are wanted; see `right_between`
        posed, test = self.posed, fold.test
        self.multilabel = posed.codes is None
        self.y, self.codes = posed.y[test], None if self.multilabel else posed.codes[test]
        self.params = {name: rows_of(value, test) if np.shape(value)[:1] == (posed.y.shape[0],) else value
                       for name, value in posed.score_params.items()}

    def score(self, step, found):
        """Of `Certified` problems; None: of a fold whose training rows are of one class."""
        posed, fold, n_classes = self.posed, self.fold, len(self.posed.classes)
        if not posed.scoring.by_scores:
            X_test = fold.held_out[0][fold.held_out[1]] if posed.standardize else posed.X[fold.test]
            return posed.scoring(self.model(step, found), X_test, self.y, **self.params)
        if found is not None and len(found) == 1 and posed.scoring.scorer is None and not self.multilabel \
                and found[0].scores is None and n_classes == 2:
            return posed.scoring.share(self.right_between(found), **self.params)
        if found is None:
            bias = constant(n_classes, fold.only, len(fold.train))
            scores = np.broadcast_to(bias, (len(fold.test), len(bias)))
        else:
            scores = of_all_classes(self.decisions(found), fold.problem.there, n_classes, NEVER)
        if posed.scoring.scorer is None:
            return posed.scoring.share(self.right(scores), **self.params)
        model, rows = predicts(posed.estimator, posed.classes, scores, self.multilabel)
        return posed.scoring(model, rows, self.y, **self.params)

    def right(self, scores):
        """(n_test,) whether the labels predicted are the rows' own."""
        if self.multilabel:
            return ((scores > 0) == (self.whole.positives[self.fold.test].toarray() > 0)).all(axis=1)
        return self.codes == (scores[:, 0] > 0 if scores.shape[1] == 1 else scores.argmax(axis=1))

    def right_between(self, found):
        """`right` of a `Certified` problem alone, in a list.

        Between two fits the label of a row that both predict alike stays; so few rows are summed.
        """
        self.make_products(found)
        (part, pair), (rest, other) = found[0].primal_parts[0], found[0].primal_parts[-1]
        if pair is other:
            return self.codes == (self.products[id(pair)] > 0)
        if self.turning is None or self.turning[0] is not pair or self.turning[1] is not other:
            first, second = self.products[id(pair)], self.products[id(other)]
            positive = first > 0
            rows = np.flatnonzero(positive != (second > 0))
            self.turning = pair, other, self.codes == positive, rows, first[rows], second[rows]
        _, _, right, rows, first, second = self.turning
        right[rows] = self.codes[rows] == (part * first + rest * second > 0)
        return right

    def model(self, step, found):
        """The estimator with the weights of a step, for a callable that asks for rows or for weights."""
        posed, whole, m = self.posed, self.whole, self.posed.X.shape[1]
        if found is None:
            bias = constant(len(posed.classes), self.fold.only, len(self.fold.train))
            coef = np.zeros((len(bias), m))
        else:
            W, there, n_classes = np.stack([one.w for one in found]), self.fold.problem.there, len(posed.classes)
            n = whole.source.n_features
            coef, bias = np.zeros((len(W), m)), W[:, n] if posed.estimator.fit_intercept else np.zeros(len(W))
            coef[:, slice(None) if whole.columns is None else whole.columns] = W[:, :n]
            coef = of_all_classes(coef.T, there, n_classes, 0.0).T
            bias = of_all_classes(bias[None], there, n_classes, NEVER)[0]
        model = clone(posed.estimator).set_params(**step.parameters)
        vars(model).update(classes_=posed.classes, coef_=np.ascontiguousarray(coef), intercept_=bias, n_features_in_=m,
                           _multilabel=self.multilabel)
        return model

    def decisions(self, found):
        """(n_test, n_problems): of each problem the parts of its pairs, unless the scores of all rows are known."""
        if found[0].scores is not None:
            return np.stack([one.scores[self.fold.test] for one in found], axis=1)
        self.make_products(found)
        scores = np.empty((len(self.fold.test), len(found)))
        for c, one in enumerate(found):
            scores[:, c] = sum(part * self.products[id(pair)] for part, pair in one.primal_parts)
        return scores

    def foresee(self, steps):
        """Steps to come, of each the `Certified` problems, or None where there are none yet."""
        self.coming = list({id(pair): pair for found in steps for pair in pairs_of(found)}.values())

    def make_products(self, found):
        """Of the pairs that `Certified` problems are made of, and of some that are to come."""
        wanted = {id(pair): pair for pair in pairs_of(found)}
        fresh = {key: pair for key, pair in wanted.items() if key not in self.products}
        if fresh:
            while self.coming and (len(fresh) < KEPT or id(self.coming[0]) in wanted):
                pair = self.coming.pop(0)
                if id(pair) not in self.products:
                    fresh[id(pair)] = pair
            W = np.stack([pair.w for pair in fresh.values()])
            products = decisions(*self.fold.held_out, W, self.posed.estimator.fit_intercept, self.fold.n_threads)
            self.products |= dict(zip(fresh, np.ascontiguousarray(products.T), strict=True))
        self.keep_last(wanted, 2 * KEPT * len(found))

    def keep_last(self, wanted, n):
        """A few steps between two fits may have one of them alone, and those after them both again."""
        self.products |= {key: self.products.pop(key) for key in wanted}         # the last ones at the end
        self.products = dict(list(self.products.items())[-n:])


def pairs_of(found):
    """Those that the weights of `Certified` problems, or None, are made of."""
    return [pair for one in found or () if one is not None for _, pair in one.primal_parts]


def rows_of(array, index):
    return None if array is None else array[index]
