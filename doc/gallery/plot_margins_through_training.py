"""
Margins through training
========================

:class:`~cmargin.MarginPursuitClassifier` pulls the margins to a level, here 1; the hinge only pushes them beyond it.
The band holds the middle nine tenths of the training margins after each pass, and the line is their median.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from cmargin import MarginPursuitClassifier, PegasosClassifier
from cmargin.margins import margin
from cmargin.plots import MarginDistributionDisplay

X, y = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)
models = {
    "margin pursuit": MarginPursuitClassifier(solver="sgd", l2=1e-3, max_passes=20, random_state=0).fit(X, y),
    "hinge (Pegasos)": PegasosClassifier(l2=1e-3, max_passes=20, random_state=0).fit(X, y),
}

fig, axes = plt.subplots(1, 2, figsize=(8, 3.6), sharey=True)
for ax, (name, model), color in zip(axes, models.items(), ("#0072B2", "#D55E00"), strict=True):
    trace = model.history_
    ax.fill_between(trace["pass"], trace["margin_q05"], trace["margin_q95"], color=color, alpha=0.2)
    ax.plot(trace["pass"], trace["margin_median"], "o-", color=color, markersize=3)
    ax.axhline(0, color="0.4", linewidth=1, linestyle=":")
    ax.set(title=name, xlabel="pass")
axes[0].set_ylabel("training margin")

# %%
# The margins after training, with a vertical line at the location estimate of each. Newton steps go to the optimum of
# the same loss.

models["margin pursuit, Newton"] = MarginPursuitClassifier(l2=1e-3).fit(X, y)
fig, ax = plt.subplots()
for name, model in models.items():
    MarginDistributionDisplay.from_estimator(model, X, y, name=name, ax=ax)
ax.set_xlim(-3, 8)

# %%
for name, model in models.items():
    z = margin(model.decision_function(X), np.where(y == 1, 1, -1), loss=None)
    print(f"{name:>24}: median {np.median(z):5.2f}, standard deviation {z.std():5.2f}, errors {np.mean(z <= 0):.3f}")
