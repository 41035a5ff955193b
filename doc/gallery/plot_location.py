"""
A location that outliers do not move
====================================

A single row can move the mean of the margins anywhere. Catoni's estimate, the level at which margin pursuit's loss is
least, lies between median and mean, and one margin moves it by a bounded amount. Here are the test margins of a
classifier, one of which is moved further and further out.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from cmargin import SmSVMClassifier
from cmargin.margins import confidence_radius, location_estimate, margin

X, y = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)
model = SmSVMClassifier(l2=1e-2).fit(X[::2], y[::2])
z = margin(model.decision_function(X[1::2]), np.where(y[1::2] == 1, 1, -1), loss=None)

far = np.linspace(0, 400, 81)
rows = []
for d in far:
    moved = z.copy()
    moved[0] = z[0] + d
    rows.append([moved.mean(), location_estimate(moved, scale=1.0), location_estimate(moved, scale=z.std()),
                 np.median(moved)])

fig, ax = plt.subplots()
names = ("mean", "location estimate, s = 1", "location estimate, s = standard deviation", "median")
for column, name, style in zip(np.array(rows).T, names, ("-", "--", "-.", ":"), strict=True):
    ax.plot(far, column, style, label=name, linewidth=2)
ax.set(xlabel="how far one margin is moved", ylabel="location of the margins")
ax.legend(frameon=False)

# %%
radius = confidence_radius(len(z), z.var())
print(f"{location_estimate(z):.3f}, but for a chance of 5 % within {radius:.3f} of the expected margin")
