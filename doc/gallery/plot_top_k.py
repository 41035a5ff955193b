"""
The right class among the first k
=================================

With many classes the second guess counts, too. ``predict_top_k`` returns the best k classes of every row, in batches
of rows. Here each digit is split into twenty classes by clustering, which makes two hundred classes of a few rows,
many of them alike.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import normalize

from cmargin import SLNDClassifier

X, digit = load_digits(return_X_y=True)
X = normalize(X)
y = np.empty(len(X), dtype=int)
for d in range(10):
    y[digit == d] = 20 * d + KMeans(20, n_init=1, random_state=0).fit_predict(X[digit == d])
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)

model = SLNDClassifier(random_state=0).fit(X_train, y_train)
ks = np.arange(1, 11)
top = [np.mean((model.predict_top_k(X_test, int(k)) == y_test[:, None]).any(axis=1)) for k in ks]

fig, ax = plt.subplots()
ax.plot(ks, top, "o-")
ax.set(xlabel="k", ylabel="share with the right class among the first k", ylim=(None, 1.005), xticks=ks)
ax.grid(color="0.9")

# %%
print(f"{len(model.classes_)} classes, {len(y_train) / len(model.classes_):.1f} training rows each: "
      f"first guess {top[0]:.3f}, first five {top[4]:.3f}")
print(f"the digit itself: {np.mean(model.predict(X_test) // 20 == y_test // 20):.3f}")
