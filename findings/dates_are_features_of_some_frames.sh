#!/bin/sh
# scikit-learn 1.9.1: a column of dates is refused in a pandas frame and trained on in a polars frame
#
# The same two columns, a date and a number. The frame of pandas is refused; that of polars becomes an array of floats,
# microseconds since 1970, about 1.8e15, beside which the other column has no weight.
# Seen: scikit-learn 1.9.1, pandas 3.1.1, polars 2.1.0, numpy 2.4.6:
#   pandas, a date and a number: DTypePromotionError
#   polars, a date and a number: fits; accuracy 0.533 where the number alone has 1.000
# Ends with 1 where that is no longer so.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check scikit-learn==1.9.1 pandas==3.1.1 polars==2.1.0 numpy==2.4.6
"$folder/venv/bin/python" -W ignore - <<'END'
import numpy as np
import pandas
import polars
from sklearn.linear_model import LogisticRegression

x = np.random.default_rng(0).normal(size=300)
y = x > 0
days = (np.datetime64("2026-01-01") + np.arange(300)).astype("datetime64[us]")
alone = LogisticRegression().fit(x[:, None], y).score(x[:, None], y)
frames = {"pandas, a date and a number": pandas.DataFrame({"day": days, "x": x}),
          "polars, a date and a number": polars.DataFrame({"day": days, "x": x})}
found = []
for name, frame in frames.items():
    try:
        accuracy = LogisticRegression().fit(frame, y).score(frame, y)
    except TypeError as error:
        found.append(type(error).__name__)
        print(f"{name}: {found[-1]}")
    else:
        found.append("fits")
        print(f"{name}: fits; accuracy {accuracy:.3f} where the number alone has {alone:.3f}")
raise SystemExit(found != ["DTypePromotionError", "fits"])
END
