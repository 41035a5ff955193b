"""
Choosing l2
===========

:class:`~cmargin.SmSVMClassifierCV` follows every path of penalties with warm starts and chooses the best pair.
Each thin line is a fold; the band is one standard error of the mean on either side.
"""

import numpy as np
from sklearn.datasets import load_breast_cancer

from cmargin import SmSVMClassifierCV
from cmargin.plots import SearchDisplay

X, y = load_breast_cancer(return_X_y=True)
l2s = np.logspace(-6, 1, 15)
search = SmSVMClassifierCV(l2s=l2s, cv=5, standardize=True).fit((X - X.mean(axis=0)) / X.std(axis=0), y)

display = SearchDisplay.from_estimator(search, folds=True)
display.ax_.set_ylim(0.9, 1)

# %%
print(f"{search.scores_.size} fits of folds and one of all rows, {search.n_passes_:.0f} reads of the data")

# %%
# The strongest penalty within one standard error of the best is about as good, and simpler:
simpler = SmSVMClassifierCV(l2s=l2s, cv=5, standardize=True, one_standard_error=True).fit(
    (X - X.mean(axis=0)) / X.std(axis=0), y)
print(f"l2 = {search.l2_:.2g} is best, l2 = {simpler.l2_:.2g} about as good")
