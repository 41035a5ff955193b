"""
Stopping and continuing a fit
=============================

A fit that is stopped by ``max_time``, a callback or Ctrl-C keeps the best weights so far, and ``warm_start``
continues from them. Here a callback stops the fit when the certified gap is below one per cent, and a second fit
continues to 1e-6. Its first evaluation has no proof yet, because weights are kept between fits, but not the dual
variables of a proof.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from cmargin import SmSVMClassifier

X, y = load_digits(return_X_y=True)
X, y = X / 16, y % 2                                        # even or odd


def good_enough(model):
    return model.duality_gap_[0] < 1e-2


model = SmSVMClassifier(l2=1e-4, tol=1e-6, warm_start=True, callback=good_enough).fit(X, y)
first = model.history_, model.n_passes_, model.duality_gap_[0], model.score(X, y)
model.set_params(callback=None).fit(X, y)

fig, ax = plt.subplots()
for history, begin, name in ((first[0], 0, "until the callback"), (model.history_, first[1], "going on")):
    gap = np.where(history["gap"] < np.inf, history["gap"], np.nan)
    ax.plot(begin + history["passes"], np.fmin.accumulate(gap), "o-", label=name)
ax.set(yscale="log", xlabel="reads of the data", ylabel="certified relative gap")
ax.grid(color="0.9")
ax.legend(frameon=False)

# %%
print(f"stopped at a gap of {first[2]:.1e} after {first[1]:.1f} reads, {first[3]:.4f} right")
print(f"ended at a gap of {model.duality_gap_[0]:.1e} after {model.n_passes_:.1f} more, {model.score(X, y):.4f} right")

# %%
# ``max_time`` stops a fit after some seconds, and a warning says how far off the weights may be. Classes that were
# not reached in time use a ridge regression:

X, y = load_digits(return_X_y=True)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    short = SmSVMClassifier(C=1.0, max_time=1e-3).fit(X / 16, y)
print(caught[0].category.__name__ if caught else "in time", f"{short.score(X / 16, y):.3f} right")
