"""What a subset of the rows holds, of rows in Fortran's order a copy of a tenth, goes before all rows are read."""

import weakref

import numpy as np

from cmargin.data.memory.row_pass import MemoryRowPass
from cmargin.smsvm import SmSVMClassifier


def test_a_subset_is_let_go_before_a_working_set_is_gathered(monkeypatch):
    made, there, subset = [], [], MemoryRowPass.subset

    def noted(self, rows, weights):
        there.append(sum(one() is not None for one in made))
        part = subset(self, rows, weights)
        made.append(weakref.ref(part))
        return part

    monkeypatch.setattr(MemoryRowPass, "subset", noted)
    rng = np.random.default_rng(3600)
    X = np.asfortranarray(rng.standard_normal((40_000, 20)))
    y = X @ rng.standard_normal(20) + 4 * rng.standard_normal(len(X)) > 0
    SmSVMClassifier(l2=1e-4, tol=1e-3, n_jobs=1).fit(X, y)
    assert len(made) > 2 and there[-1] == 0
