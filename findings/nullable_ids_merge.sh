#!/bin/sh
# scikit-learn 1.9.1: two classes of a nullable integer column become one, in silence
#
# Labels are identifiers above 2^53. As an int64 array they are three classes; as the same numbers in a column of pandas'
# Int64, which misses none, scikit-learn makes float64 of them before it looks for classes, and two of the three are the
# same float64. Nothing is raised or warned of; accuracy drops from 0.99 to 0.90 here.
# Seen: scikit-learn 1.9.1, pandas 3.1.1, numpy 2.4.6:
#   int64: 3 classes, accuracy 0.990
#   Int64: 2 classes, accuracy 0.903
# Ends with 1 where that is no longer so.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check scikit-learn==1.9.1 pandas==3.1.1 numpy==2.4.6
"$folder/venv/bin/python" -W ignore - <<'END'
import warnings

import numpy as np
import pandas
from sklearn.linear_model import LogisticRegression

warnings.simplefilter("error")              # none is to come
X = np.random.default_rng(0).normal(size=(300, 3))
ids = 2**53 + np.array([0, 1, 3])[X.argmax(axis=1)]
found = []
for y in (pandas.Series(ids), pandas.Series(ids, dtype="Int64")):
    model = LogisticRegression().fit(X, y)
    found.append(len(model.classes_))
    print(f"{y.dtype}: {len(model.classes_)} classes, accuracy {model.score(X, ids):.3f}")
raise SystemExit(found != [3, 2])
END
