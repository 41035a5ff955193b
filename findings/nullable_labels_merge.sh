#!/bin/sh
# scikit-learn 1.9.1 with pandas 3.1.1: labels of pandas' nullable type Int64, none of them missing, become float64 on
# their way into a classifier. Whole numbers above 2^53 that are neighbours are then one class, without a warning, and
# classes_ are floats. With the NumPy type int64 the same labels are three classes.
#
# Output seen:
#     int64: [9007199254740992, 9007199254740993, 9007199254740994]
#     Int64: [9007199254740992.0, 9007199254740994.0]
#
# Ends with 0 where this is still so, and with another status where it has changed.
set -e
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install -q scikit-learn==1.9.1 pandas==3.1.1 numpy==2.4.6 >&2
cat > "$folder/check.py" <<'PYTHON'
import numpy as np
import pandas
from sklearn.linear_model import LogisticRegression

X = np.eye(3)[[0, 1, 2] * 5]
labels = [2**53, 2**53 + 1, 2**53 + 2] * 5
for dtype in ("int64", "Int64"):
    model = LogisticRegression().fit(X, pandas.Series(labels, dtype=dtype))
    print(f"{dtype}: {model.classes_.tolist()}")
PYTHON
"$folder/venv/bin/python" "$folder/check.py" | tee "$folder/seen"
sed -n 's/^#     //p' "$0" | diff - "$folder/seen"
