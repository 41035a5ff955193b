"""
How far from the optimum? A certificate knows
=============================================

:class:`~cmargin.SmSVMClassifier` reads its data a few times and proves, after every evaluation, how far its objective
can be from the minimum. ``LinearSVC`` minimises the same objective without such a proof. Here it is run with more and
more iterations, and its distance from the certified minimum is measured afterwards.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from cmargin import SmSVMClassifier

X, y = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)
C, n = 1.0, len(X)

model = SmSVMClassifier(C=C, penalize_intercept=True, tol=1e-9).fit(X, y)
best = model.objective_[0] * (1 - model.duality_gap_[0])       # the dual value: no objective lies below it

# %%
# The objective of LinearSVC, with hinge loss, is ours times C n. One of its iterations reads every row about once.

code = np.where(y == 1, 1, -1)
reads, distance = np.array([1, 3, 10, 30, 100, 300, 1000, 3000, 10000]), []
for i, iterations in enumerate(reads):
    svc = LinearSVC(C=C, loss="hinge", dual=True, tol=1e-8, max_iter=iterations, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        svc.fit(X, y)
    reads[i] = svc.n_iter_                                  # fewer than allowed once its own rule is met
    w, b = svc.coef_[0], svc.intercept_[0]
    objective = (w @ w + b * b) / (2 * C * n) + np.maximum(0, 1 - code * (X @ w + b)).mean()
    distance.append((objective - best) / objective)

fig, ax = plt.subplots()
shown = model.history_["gap"] < np.inf
ax.plot(model.history_["passes"][shown], np.fmin.accumulate(model.history_["gap"][shown]), "o-", color="#0072B2")
ax.plot(reads, distance, "s--", color="#D55E00")
ax.text(25, 1e-6, "SmSVMClassifier:\ngap, proven on the way", color="#0072B2")
ax.text(25, 2e-4, "LinearSVC:\ndistance, known afterwards", color="#D55E00")
ax.set(xscale="log", yscale="log", xlabel="reads of the data", ylabel="relative distance from the minimum")
ax.grid(color="0.9")

# %%
print(f"certified: {model.duality_gap_[0]:.1e} after {model.n_passes_:.0f} reads of the data")
print(f"LinearSVC: {distance[-1]:.1e} after {reads[-1]} iterations")
