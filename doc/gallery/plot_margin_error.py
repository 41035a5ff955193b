"""
Margin-error curves
===================

Accuracy is one point of a curve: the share of test rows whose margin, a posterior, is at most θ. Two models with the
same number of errors can differ in how sure they are of them. Here the model is trained on the digits for one pass
and for more.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import normalize

from cmargin import SLNDClassifier
from cmargin.plots import MarginErrorDisplay

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(normalize(X), y, random_state=3)

fig, ax = plt.subplots()
for passes in (1, 3, 30):
    model = SLNDClassifier(loss="logistic", max_passes=passes, random_state=3).fit(X_train, y_train)
    error = 1 - model.score(X_test, y_test)
    MarginErrorDisplay.from_estimator(model, X_test, y_test, ax=ax,
                                      name=f"{passes} {'pass' if passes == 1 else 'passes'}: error {error:.3f}")

# %%
# The dotted line is at 1/2. Left of it are the errors, and the rows for which no class has a posterior above 1/2. The
# sooner a curve rises from the axis, the more errors the model is sure of.
