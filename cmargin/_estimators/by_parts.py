"""Training by batches of rows that come one after the other, with classes that may join."""

import re
import time
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import _check_sample_weight

from cmargin._estimators.apart import check_list, is_indicator, weights_differ
from cmargin._estimators.apart import fit_part as fit_part_apart
from cmargin._estimators.base import LinearClassifier, keeps_last_fit
from cmargin._estimators.labels import encode_labels
from cmargin._estimators.predict import PosteriorPredictions
from cmargin._estimators.progress import warn_of
from cmargin._estimators.validation import check_data
from cmargin.data.containers import label_array
from cmargin.data.open_here import source_of


class TrainedByParts(PosteriorPredictions, LinearClassifier):
    """Base of classifiers with `partial_fit`.

    A subclass has ``_go_on`` and ``_train_on``, and leaves ``_counts`` in training: the weight of all rows, of the
    positives and of the visits of every problem, over all calls.
    """

    _counts: np.ndarray | None = None        # none where weights were set by hand
    _nothing_yet = False                     # whether all batches so far weighed nothing

    @keeps_last_fit
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """One pass over a batch of rows, going on from the weights there are.

        The first call fixes the preconditioner and the step; later the step falls as one over the square root of the
        number of calls. A batch whose weights are all 0 changes nothing.

        Parameters
        ----------
        X, y, sample_weight : as in `fit`
        classes : array of all labels, needed at the first call unless y is an indicator
            Later on, where new classes are to join: those there were, and the new ones (of an indicator the numbers of
            its columns, more than before). A class that joins is predicted once a batch had rows of it.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            As `fit`; for ``class_weight="balanced"``; and for labels that are not among the classes.
        """
        begin = time.perf_counter()
        self._check_parameters()
        if isinstance(self.class_weight, str):
            raise ValueError(
                f"class_weight '{self.class_weight}' is not supported for partial_fit. In order to use 'balanced' "
                "weights, use compute_class_weight('balanced', classes=classes, y=y). In place of y you can use a "
                "large enough sample of the full training set target to properly estimate the class frequency "
                "distributions. Pass the resulting weights as the class_weight parameter.")
        classes, known = label_array(classes, "classes"), hasattr(self, "n_features_in_")
        X, y, sample_weight = check_data(self, X, y, sample_weight, reset=not known)
        check_list(self, is_indicator(y))
        labels, source = self._labels_of_part(y, classes), source_of(X, y)
        if source.shares_reads:
            source.refuse("partial_fit")
        if is_indicator(y) and weights_differ(self, source, sample_weight):
            return fit_part_apart(self, source, labels, sample_weight, begin)
        return self._fit_part(source, labels, sample_weight, begin)

    def _fit_part(self, source, labels, sample_weight, begin):
        """One pass over the rows of ``source``, by one weight a row."""
        first = self._nothing_yet or not hasattr(self, "coef_")
        if self._weighs_nothing(source, labels, sample_weight):
            return self._without_rows(source, labels, first)
        start = None if first else self._go_on(source, labels, decay="call", joining=True)
        warn_of(self._leave(*self._train_on(source, labels, sample_weight, begin, start, 1, in_parts=True)))
        return self

    def _labels_of_part(self, y, classes):
        """Labels as of `encode_labels`, among the classes there were and those that join."""
        known = getattr(self, "classes_", None)
        if known is None and classes is None and (np.ndim(y) < 2 or y.shape[1] == 1):
            raise ValueError("classes must be passed on the first call to partial_fit.")
        if classes is not None:
            given = np.unique(classes)
            if known is not None and not np.isin(known, given).all():
                raise ValueError(f"`classes={classes!r}` is not the same as on last call to partial_fit, was: "
                                 f"{known!r}; new classes join where they are given along with all of these.")
            known = given
        try:
            labels = encode_labels(y, classes=np.empty(0) if known is None else known)
        except ValueError as error:
            if "previously unseen labels" not in str(error):
                raise
            said = re.sub(r"np\.\w+\(([^()]*)\)", r"\1", str(error))          # NumPy's names of types
            raise ValueError(f"{said}; new classes join where partial_fit is given classes=, all of them.") from None
        if labels[1] is None and known is not None and hasattr(self, "coef_") and self._multilabel and \
                not np.array_equal(labels[0], known):
            raise ValueError(f"y has {len(labels[0])} label columns where {len(known)} are known; labels join where "
                             "partial_fit is given classes=np.arange(n_labels).")
        return labels

    def _weighs_nothing(self, source, labels, sample_weight):
        """Whether no row of a batch counts."""
        classes, codes, _ = labels
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, source.y, dtype=np.float64, ensure_non_negative=True,
                                                 allow_all_zero_weights=True)
        counts = np.ones(source.n_rows, bool) if sample_weight is None else sample_weight > 0
        if self.class_weight is not None and codes is not None:
            counts = counts & (self._class_weights(classes, codes) != 0)[codes]
        return not counts.any()

    def _without_rows(self, source, labels, first):
        """What a batch of weight 0 leaves: the classes, with weights of 0 where there were none before."""
        classes, codes, Y = labels
        if first:
            zero = np.zeros((Y.shape[1], source.n_features), source.dtype)
            vars(self).update(coef_=zero, intercept_=zero[:, 0].copy(), classes_=classes, _multilabel=codes is None,
                              loss_=self._loss_for(classes, codes), n_iter_=0, n_passes_=0.0, _nothing_yet=True)
        elif len(classes) > len(self.classes_):
            start = self._go_on(source, labels, joining=True)
            about = {}
            if self._counts is not None:
                counts, loss = self._counts_so_far(classes), self._loss_for(classes, codes)
                about = {"_counts": counts, **priors(counts, codes is None, loss, None)}
            vars(self).update(about, coef_=start.W, intercept_=start.bias.astype(start.W.dtype), classes_=classes,
                              loss_=self._loss_for(classes, codes), preconditioner_=start.inverse, _streams=None)
        return self

    def _places(self, classes):
        """Of the classes there were among all."""
        return np.searchsorted(classes, self.classes_)

    def _counts_so_far(self, classes):
        """(3, n_problems) of all calls before; nothing of the classes that join."""
        if len(classes) == len(self.classes_):
            return self._counts
        return counts_with_more(self._counts, self._places(classes), len(classes))

    def _weights_so_far(self, classes, n_rows):
        """Weights and intercepts of all classes; those that join count as half a row, as in a first call."""
        as_softmax = self._loss_for(classes, None if self._multilabel else classes) == "multinomial"
        n_so_far = n_rows if self._counts is None else n_rows + self._counts[0].max()
        score = np.log(0.5 / n_so_far) if as_softmax and self.fit_intercept else 0.0
        return weights_with_more(self._last_coef, self._last_intercept, self._places(classes), len(classes), as_softmax,
                                 score)


def priors(counts, multilabel, loss, signs):
    """The attributes that say the shares of the positives, of ``counts`` as of `ClassLists.shares`.

    ``signs``: of the labels of an indicator, as of `signs_of`, or None.
    """
    total, positive, visited = counts
    met = (positive > 0) & (visited > 0)
    if multilabel:                               # one met alone is predicted by its prior, until others come
        met &= positive < visited
    share = np.divide(positive, total, out=np.zeros(len(total)), where=total > 0)
    unmet = 0.5 if signs is None else np.where(signs, share, 0.5)       # the intercept of a constant label says it all
    # of the multinomial loss every row is visited, for all classes
    sampled = share if loss == "multinomial" else np.where(met, positive / np.where(met, visited, 1), unmet)
    return {"class_prior_": share, "sampled_prior_": sampled}


def weights_with_more(coef, intercept, places, n_classes, as_softmax, score):
    """Weights (n_classes, n_features) and intercepts (n_classes,) of all classes or labels.

    ``coef`` and ``intercept`` are those of the classes there were, whose ``places`` among all are (n_before,); one
    problem of two classes has the scores of the second. ``as_softmax``: whether the difference of two classes' scores
    is to stay as it is, not the score of each. Classes that join have weights 0 and the intercept ``score``.
    """
    if len(coef) < len(places):
        share = 0.5 if as_softmax else 1.0
        coef, intercept = share * np.concatenate([-coef, coef]), share * np.concatenate([-intercept, intercept])
    W, bias = np.zeros((n_classes, coef.shape[1]), coef.dtype), np.full(n_classes, float(score))
    W[places], bias[places] = coef, intercept
    return W, bias


def counts_with_more(counts, places, n_classes):
    """The (3, n_problems) weights of all rows, of positives and of visits, with those of classes that join."""
    if counts.shape[1] < len(places):            # of two classes the first is the second, with its signs turned round
        (total,), (positive,), (visited,) = counts
        negative, share = total - positive, positive / visited if 0 < positive < visited else 0.5
        counts = np.array([[total, total], [negative, positive], [negative / (1 - share), visited]])
    every = np.zeros((3, n_classes))
    every[0], every[:, places] = counts[0].max(), counts
    return every
