"""
What a surrogate risk says about errors
=======================================

The excess of margin pursuit's loss bounds the excess of errors: if the loss is within Ψ(a) of its minimum, the error
rate is at most that of the best classifier plus a. Ψ depends on level and scale, and has a closed form.
"""

import matplotlib.pyplot as plt
import numpy as np

from cmargin.margins import psi_inverse, psi_transform
from cmargin.plots import PsiTransformDisplay

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 4))
PsiTransformDisplay.from_levels(margin=[0.5, 1.0, 2.0], scale=1.0, ax=left)
PsiTransformDisplay.from_levels(margin=[0.5, 1.0, 2.0], scale=1.0, ax=right, inverse=True)

# %%
# The other way round: how small must the excess loss be for at most one more error in a hundred?

for level in (0.5, 1.0, 2.0):
    excess = psi_transform(0.01, margin=level, scale=1.0)
    assert np.isclose(psi_inverse(excess, margin=level, scale=1.0), 0.01)
    print(f"γ = {level}: {excess:.2e}")
