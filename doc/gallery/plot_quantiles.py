"""
Three quantiles in one fit, each with a proof
=============================================

``SmSVMRegressor("quantile", quantile=[...])`` fits linear models of several quantiles. Where the spread of the targets
grows with x, the lines are not parallel; shares of the rows below them are those that were asked for. The band of
``loss="epsilon_insensitive"`` has one width everywhere.
"""

import matplotlib.pyplot as plt
import numpy as np

from cmargin import SmSVMRegressor

rng = np.random.default_rng(7)
x = rng.uniform(0, 4, 600)
y = 1 + x + (0.3 + 0.5 * x) * rng.standard_normal(600)
X, levels = x[:, None], [0.1, 0.5, 0.9]
quantiles = SmSVMRegressor("quantile", quantile=levels).fit(X, y)
band = SmSVMRegressor(epsilon=1.0).fit(X, y)

fig, axes = plt.subplots(1, 2, figsize=(9, 4), sharey=True)
ends = np.array([[0.0], [4.0]])
for ax in axes:
    ax.plot(x, y, ".", color="0.7", markersize=4)
    ax.set_xlabel("x")
for level, line in zip(levels, quantiles.predict(ends).T, strict=True):
    axes[0].plot(ends, line, label=f"quantile {level:g}")
middle = band.predict(ends)
axes[1].plot(ends, middle, label="epsilon-insensitive")
axes[1].fill_between(ends[:, 0], middle - 1, middle + 1, alpha=0.2, label="costs nothing")
axes[0].set_ylabel("y")
for ax in axes:
    ax.legend(frameon=False)

# %%
shares = np.mean(y[:, None] <= quantiles.predict(X), axis=0)
print(f"rows below the lines {np.round(shares, 3)}, certified gap {quantiles.duality_gap_.max():.1e} at most")
