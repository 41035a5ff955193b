"""
Which classes is a model unsure of?
===================================

Each point is a digit: the mean entropy of its posteriors, and the share of its test rows that are recognised. More
training moves classes to the left, where the model is sure of them. The question is whether they move up as well.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import normalize

from cmargin import BSNClassifier
from cmargin.plots import EntropyAccuracyDisplay

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(normalize(X), y, random_state=3)

fig, ax = plt.subplots()
for passes in (1, 30):
    model = BSNClassifier(loss="logistic", max_passes=passes, random_state=3).fit(X_train, y_train)
    display = EntropyAccuracyDisplay.from_estimator(
        model, X_test, y_test, name=f"{passes} {'pass' if passes == 1 else 'passes'}", ax=ax)
for digit, place in enumerate(zip(display.entropy, display.accuracy, strict=True)):
    ax.annotate(str(digit), place, textcoords="offset points", xytext=(5, 4))

# %%
# The digits that are missed most after the last pass:

for digit in display.accuracy.argsort()[:3]:
    print(f"{digit}: {display.accuracy[digit]:.3f} of its rows right, entropy {display.entropy[digit]:.3f} nats")
