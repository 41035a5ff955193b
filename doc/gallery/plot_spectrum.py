"""
The spectrum behind the preconditioner
======================================

SLND and BSN invert the leading directions of the second moment of the rows. Where the eigenvalues fall steeply, a few
directions slow down plain gradient steps, and inverting these few is most of the gain. The dashed line is the rank
that was chosen.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.preprocessing import StandardScaler, normalize

from cmargin import BSNClassifier
from cmargin.baselines import BalancedSGDClassifier
from cmargin.plots import ConvergenceDisplay, SpectrumDisplay

X, y = load_digits(return_X_y=True)
digits = normalize(X), y
X, y = load_breast_cancer(return_X_y=True)
cells = StandardScaler().fit_transform(X), y

fig, ax = plt.subplots()
for name, (X, y) in {"digits, rows of length 1": digits, "cells, standardised columns": cells}.items():
    model = BSNClassifier(loss="logistic", random_state=0).fit(X, y)
    SpectrumDisplay.from_estimator(model, name=name, ax=ax)

# %%
# The effect: the risk in each pass with and without the inverse, on the same lists of rows and with the same rule for
# the step.

fig, ax = plt.subplots()
for estimator in (BalancedSGDClassifier(random_state=0), BSNClassifier(loss="logistic", random_state=0)):
    ConvergenceDisplay.from_estimator(estimator.fit(*digits), x="pass", ax=ax)
ax.set(ylabel="risk during the pass")
