"""What every call of `fit` has: one that ends before it trained anything leaves its estimator as it was."""

from functools import wraps
from typing import cast

import numpy as np

from cmargin._core.util._fp_control import StandardArithmetic
from cmargin._estimators.types import Method

NONE_YET = np.empty(0)


def keeps_last_fit(method: Method) -> Method:
    """Decorator of `fit` and `partial_fit`: where the call raises before there are new weights, undo what it set.

    A refusal comes after scikit-learn has set ``n_features_in_`` and ``feature_names_in_``, and often after the labels
    are known: the last model would be left with another's columns or classes, an estimator never fitted would look as
    if it were. Everything in ``__dict__`` is put back, parameters included.

    There are new weights where ``coef_`` is another object than before. Such a call, stopped by an interrupt or by an
    error in a callback, keeps what it stored; so whatever belongs to ``coef_`` is stored along with it, by one
    ``vars(self).update``, which no interrupt cuts in two.

        @keeps_last_fit
        def fit(self, X, y, sample_weight=None):

    is all that an estimator needs; weights of which `sparsify` made a matrix are an array again. Within it the
    processor computes by its standard settings, whatever another library has made of them.
    """
    @wraps(method)
    def call(self, *args, **kwargs):
        before = dict(vars(self))
        if not isinstance(before.get("coef_", NONE_YET), np.ndarray):
            self.densify()
        started = vars(self).get("coef_")
        try:
            with StandardArithmetic():
                return method(self, *args, **kwargs)
        except BaseException:
            if vars(self).get("coef_") is started:
                for name in vars(self).keys() - before.keys():
                    delattr(self, name)
                vars(self).update(before)
            raise

    return cast(Method, call)
