"""
Choosing l2
===========

:class:`~cmargin.SmSVMClassifierCV` follows every path of penalties with warm starts and chooses the best pair.
Each thin line is a fold.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

from cmargin import SmSVMClassifierCV

X, y = load_breast_cancer(return_X_y=True)
l2s = np.logspace(-6, 1, 15)
search = SmSVMClassifierCV(l2s=l2s, cv=5, standardize=True).fit((X - X.mean(axis=0)) / X.std(axis=0), y)

fig, ax = plt.subplots()
scores = search.scores_[:, :, 0]
ax.plot(l2s, scores.T, color="0.75", linewidth=1)
ax.plot(l2s, scores.mean(axis=0), "o-", color="#0072B2", label="mean of five folds")
ax.axvline(search.l2_, linestyle="--", color="#D55E00", label=f"chosen: {search.l2_:.1e}")
ax.set(xscale="log", xlabel="l2", ylabel="accuracy on the fold", ylim=(0.9, 1))
ax.grid(color="0.9")
ax.legend(frameon=False, loc="lower left")

# %%
print(f"{scores.size} fits of folds and one of all rows, {search.n_passes_:.0f} reads of the data")
