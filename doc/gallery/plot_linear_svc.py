"""
The optimum of LinearSVC, in one line
=====================================

``SmSVMClassifier(C=1, loss="squared_hinge", penalize_intercept=True)`` has the same objective as ``LinearSVC(C=1)``.
The scores of both for the same rows lie on the diagonal.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from cmargin import SmSVMClassifier

X, y = load_wine(return_X_y=True)
X = StandardScaler().fit_transform(X)
theirs = LinearSVC(C=1, tol=1e-8, max_iter=100_000, random_state=0).fit(X, y)
ours = SmSVMClassifier(C=1, loss="squared_hinge", penalize_intercept=True, tol=1e-8).fit(X, y)

fig, ax = plt.subplots(figsize=(5, 4.4))
scores = theirs.decision_function(X).T, ours.decision_function(X).T
for label, a, b in zip(load_wine().target_names, *scores, strict=True):
    ax.plot(a, b, ".", label=label, alpha=0.7)
ax.axline((0, 0), slope=1, color="0.6", linewidth=1, zorder=0)
ax.set(xlabel="score of LinearSVC", ylabel="score of SmSVMClassifier")
ax.legend(frameon=False)

# %%
print(f"weights differ by {np.abs(theirs.coef_ - ours.coef_).max():.1e} at most, "
      f"certified gap {ours.duality_gap_.max():.1e}")
