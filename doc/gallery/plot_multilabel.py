"""
Labels that do not exclude each other
=====================================

An indicator matrix as y makes one problem of every column. Here three questions about a digit: is it even, above 4,
does it have a closed loop? Each gets a plane of its own, and the weights are pictures.
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
# Blue ink speaks for the label, red ink against it. All of a row's labels are right less often than each:

print(f"all three: {(model.predict(X_test) == Y_test).all(axis=1).mean():.3f}")
