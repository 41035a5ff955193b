"""
A bound on what a group has to do with the scores
=================================================

Whether diabetes has progressed by more than the median after a year, from nine measurements. The tenth column, sex, is
left out. It has next to nothing to do with what is to be foretold, but the others tell it, and the fit's predictions
differ between the two groups. Two linear constraints of the weights bound the covariance of the scores with the column
that was left out (Zafar and others 2017), and every fit is certified within them.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import scale

from cmargin import SmSVMClassifier

X, target = load_diabetes(return_X_y=True)
group, y = X[:, 1] > 0, target > np.median(target)
X = scale(np.delete(X, 1, axis=1))
print(f"above the median: {y[~group].mean():.3f} of one group, {y[group].mean():.3f} of the other")

covariance = (group - group.mean()) @ X / len(X)                # times the weights: of the scores with the group
free = SmSVMClassifier(l2=1e-3, loss="logistic").fit(X, y)
print(f"without constraints the covariance is {covariance @ free.coef_[0]:.3f}")

bounds = np.linspace(0, 0.2, 21)
shares, scores, gaps = [], [], []
for bound in bounds:
    constraints = np.array([covariance, -covariance]), bound
    model = SmSVMClassifier(l2=1e-3, loss="logistic", constraints=constraints).fit(X, y)
    predicted = model.predict(X)
    shares.append([predicted[~group].mean(), predicted[group].mean()])
    scores.append((predicted == y).mean())
    gaps.append(model.duality_gap_[0])
print(f"the largest relative duality gap is {max(gaps):.1e}")

fig, ax = plt.subplots()
for each, color, style, name in zip(np.array(shares).T, ("#0072B2", "#D55E00"), ("o-", "s--"), ("one", "other"),
                                    strict=True):
    ax.plot(bounds, each, style, color=color, markersize=4, label=f"predicted to be above, of the {name} group")
ax.plot(bounds, scores, ":", color="0.3", label="predicted rightly, of all")
ax.set(xlabel="bound on the covariance of scores and group", ylabel="share of the rows", ylim=(0, 1))
ax.grid(color="0.9")
ax.legend(frameon=False, loc="lower right")

# %%
# A contradiction is refused, with the rows of A that make it and the factors that prove it.

try:
    SmSVMClassifier(constraints=(np.array([covariance, -covariance]), [-0.1, 0.05])).fit(X, y)
except ValueError as error:
    print(error)
