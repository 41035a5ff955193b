"""Which loss ``loss="auto"`` of `SLNDClassifier` and its like stands for."""

from cmargin._estimators.progress import say

# Multinomial for so many classes at any cost, beyond that within limits (doc/lab-notebook, "Thousands of classes")
CLASSES_AT_ANY_COST = 2000
MOST_PRODUCTS = 1e12    # multiply-adds of one product of all rows with all classes: a pass of 40 s on a core
MOST_WEIGHTS = 2e8      # numbers of the weights, of which four arrays are in memory


def automatic_loss(estimator, classes, codes, home, before):
    """"multinomial" or "logistic"; a line where ``verbose`` asks for it if only the cost speaks against the former.

    Parameters
    ----------
    estimator : SLNDClassifier
    classes : array
    codes : array or None
        None: labels do not exclude each other.
    home : Home or None
        None, where weights were set by hand or a batch has no rows that count: then the cost is none.
    before : str or None
        Loss of the fit to go on from, which the number of rows does not change.
    """
    penalised = estimator._penalised and estimator.l2 > 0
    n, fewest = len(classes), 2 if penalised else 3          # to an optimum, two are as many
    if codes is None or n < fewest or estimator.step_size == "theory":
        return "logistic"
    if home is None:
        return "multinomial"
    cheap = n * home.entries <= MOST_PRODUCTS and n * home.n_features <= MOST_WEIGHTS
    if n <= CLASSES_AT_ANY_COST or penalised or (cheap if before is None else before == "multinomial"):
        return "multinomial"
    say(estimator, f"loss='logistic', one-vs-rest: a softmax of {n} classes costs {n * home.entries:.2g} multiply-adds "
                   "for all rows; loss='multinomial' pays them")
    return "logistic"
