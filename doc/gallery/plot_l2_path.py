"""
A path of penalties
===================

A hundred penalties for a handful of fits: two fits prove all weights between them, and a fit is made only where they do
not prove enough. Points are the fits; the line is the gap that is proven at every penalty.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_classification
from sklearn.preprocessing import StandardScaler

from cmargin import smsvm_path
from cmargin.plots import PathDisplay

X, y = make_classification(5000, 20, n_informative=8, flip_y=0.1, random_state=3)
X = StandardScaler().fit_transform(X)
path = smsvm_path(X, y, loss="logistic", tol=1e-3)

fig, (top, bottom) = plt.subplots(2, 1, figsize=(6.4, 5.4), sharex=True, height_ratios=(3, 2), layout="constrained")
PathDisplay.from_path(path, ax=top)
top.set_xlabel("")
PathDisplay.from_path(path, ax=bottom, y="gap")
bottom.axhline(path.tol, color="0.4", linestyle=":")
bottom.set_yscale("log")

# %%
model = path.at(3e-3)                     # any penalty of the range, with its certificate
print(path)
print(f"at l2=3e-3: accuracy {model.score(X, y):.3f}, certified gap {model.duality_gap_[0]:.1e}")
