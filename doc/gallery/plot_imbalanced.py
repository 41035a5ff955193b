"""
Rare classes and weights
========================

One digit against nine others, with only a tenth of its training rows. ``class_weight`` moves the decision boundary
towards the frequent class. ``sample_weight`` does the same row by row: a row of weight 2 counts like two copies of
it.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from cmargin import SmSVMClassifier

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y == 8, random_state=1, stratify=y == 8)
rare = np.flatnonzero(y_train)
kept = np.delete(np.arange(len(y_train)), np.setdiff1d(rare, rare[::10]))
X_train, y_train = X_train[kept], y_train[kept]
print(f"{y_train.sum()} rows of {len(y_train)} are eights")

weights = [1, 3, 10, 30, 100]
found, false_alarms = [], []
for weight in weights:
    model = SmSVMClassifier(l2=1e-3, class_weight={True: weight, False: 1}).fit(X_train, y_train)
    predicted = model.predict(X_test)
    found.append(predicted[y_test].mean())
    false_alarms.append(predicted[~y_test].mean())

fig, ax = plt.subplots()
ax.plot(weights, found, "o-", color="#0072B2", label="share of the eights that are found")
ax.plot(weights, false_alarms, "s--", color="#D55E00", label="share of the others taken for one")
ax.set(xscale="log", xlabel="weight of the rare class", ylabel="share of test rows", ylim=(0, 1))
ax.grid(color="0.9")
ax.legend(frameon=False, loc="upper left")

# %%
# Two copies of a row, or weight 2: the objective is the same, and its minimum is certified in both cases.

twice = np.r_[np.arange(len(y_train)), np.flatnonzero(y_train)]
by_rows = SmSVMClassifier(l2=1e-3, tol=1e-9).fit(X_train[twice], y_train[twice])
by_weight = SmSVMClassifier(l2=1e-3, tol=1e-9).fit(X_train, y_train, sample_weight=1 + y_train)
print(f"objectives differ by {abs(by_rows.objective_[0] - by_weight.objective_[0]):.1e}")
