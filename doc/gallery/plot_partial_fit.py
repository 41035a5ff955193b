"""
Rows that arrive in parts
=========================

``partial_fit`` makes one pass over a batch of rows. The first batch determines the preconditioner and the step, and
later ones continue. The solid line is the accuracy on test rows, the dashed line that of a fit to all rows at once.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import normalize

from cmargin import SLNDClassifier

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(normalize(X), y, random_state=2)

model, seen, right = SLNDClassifier(random_state=2), [], []
for rows in np.array_split(np.arange(len(X_train)), 12):
    model.partial_fit(X_train[rows], y_train[rows], classes=np.arange(10))
    seen.append(rows[-1] + 1)
    right.append(model.score(X_test, y_test))
whole = SLNDClassifier(random_state=2).fit(X_train, y_train).score(X_test, y_test)

fig, ax = plt.subplots()
ax.plot(seen, right, "o-", label="partial_fit")
ax.axhline(whole, linestyle="--", color="0.4", label="fit, all rows")
ax.set(xlabel="rows seen, each once", ylabel="test accuracy")
ax.grid(color="0.9")
ax.legend(frameon=False)

# %%
print(f"after the last part {right[-1]:.3f}, fit to all rows {whole:.3f}")
