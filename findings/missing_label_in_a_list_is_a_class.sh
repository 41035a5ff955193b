#!/bin/sh
# scikit-learn 1.9.1: a missing label in a list of texts becomes a class, the text 'nan'
#
# Labels are a list of texts, one of which is missing (NaN), as pandas' Series.tolist() gives it. NumPy makes the text
# 'nan' of it, and scikit-learn trains a class of that name. The same labels as an array of objects are refused.
# Seen: scikit-learn 1.9.1, numpy 2.4.6:
#   list: classes ['a', 'b', 'nan']
#   array of objects: ValueError: Input contains NaN
# Ends with 1 where that is no longer so.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check scikit-learn==1.9.1 numpy==2.4.6
"$folder/venv/bin/python" -W ignore - <<'END'
import numpy as np
from sklearn.linear_model import LogisticRegression

X = np.random.default_rng(0).normal(size=(300, 3))
y = ["a" if row[0] > 0 else "b" for row in X]
y[5] = np.nan
classes = LogisticRegression().fit(X, y).classes_.tolist()
print(f"list: classes {classes}")
refused = ""
try:
    LogisticRegression().fit(X, np.array(y, dtype=object))
except ValueError as error:
    refused = str(error)
    print(f"array of objects: ValueError: {refused}")
raise SystemExit(not (classes == ["a", "b", "nan"] and "NaN" in refused))
END
