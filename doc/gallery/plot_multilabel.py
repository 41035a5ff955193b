"""
Labels that do not exclude each other
=====================================

With an indicator matrix as y, every column is a problem of its own. Here they are three questions about a digit: is
it even, is it above 4, does it have a closed loop? The weights of each can be shown as a picture.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from cmargin import SmSVMClassifier

X, y = load_digits(return_X_y=True)
questions = {"even": y % 2 == 0, "above 4": y > 4, "has a loop": np.isin(y, (0, 6, 8, 9))}
Y = np.column_stack(list(questions.values())).astype(int)
X_train, X_test, Y_train, Y_test = train_test_split(X / 16, Y, random_state=0)
model = SmSVMClassifier(l2=1e-3).fit(X_train, Y_train)

fig, axes = plt.subplots(1, 3, figsize=(8, 3))
right = (model.predict(X_test) == Y_test).mean(axis=0)
for ax, name, w, share in zip(axes, questions, model.coef_, right, strict=True):
    ax.imshow(w.reshape(8, 8), cmap="RdBu", vmin=-abs(w).max(), vmax=abs(w).max())
    ax.set(title=f"{name}: {share:.3f} right", xticks=[], yticks=[])

# %%
# Ink on blue pixels speaks for the label, on red ones against it. All labels of a row are right less often than each
# one:

print(f"all three: {(model.predict(X_test) == Y_test).all(axis=1).mean():.3f}")
