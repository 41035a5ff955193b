"""
A path in l1
============

From a strong l1 penalty to a weak one, each fit starts where the last one ended. Weights leave zero one after the
other, and some return. Zeros are exact, and every point of the path is certified.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from cmargin import SmSVMClassifier

data = load_breast_cancer()
X = StandardScaler().fit_transform(data.data)
l1s = np.logspace(-0.3, -3, 40)

model, path, reads, gaps = SmSVMClassifier(l2=1e-3, warm_start=True), [], [], []
for l1 in l1s:
    model.set_params(l1=l1).fit(X, data.target)
    path.append(model.coef_[0].copy())
    reads.append(model.n_passes_)
    gaps.append(model.duality_gap_[0])
path = np.array(path)

fig, (top, bottom) = plt.subplots(2, 1, figsize=(6.4, 5.4), sharex=True, height_ratios=(3, 1))
top.plot(l1s, path, color="0.7", linewidth=1)
for j in np.argsort(-(path != 0).sum(axis=0), kind="stable")[:4]:
    top.plot(l1s, path[:, j], linewidth=2, label=data.feature_names[j])
top.legend(frameon=False, fontsize="small")
top.set_ylabel("weight")
bottom.step(l1s, (path != 0).sum(axis=1), where="mid", color="black")
bottom.set(xscale="log", xlabel="l1", ylabel="weights not 0")
bottom.invert_xaxis()

# %%
print(f"{len(l1s)} fits, {np.sum(reads):.0f} reads of the data in all, largest certified gap {max(gaps):.1e}")
