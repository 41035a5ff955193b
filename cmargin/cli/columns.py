"""Which columns of a table are features, and what makes numbers of those that hold texts or have gaps."""

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder

from cmargin.cli.labels import MISSING

NO_LABEL = object()              # given as the label's column where labels are in a file of their own
SHOWN = 40                       # characters of a cell in a message


@dataclass
class ColumnEncoder:
    """Makes features of named columns: gaps among numbers filled, texts one-hot; a text not met in training is 0."""

    numbers: list                                  # names of the columns of numbers
    texts: list = field(default_factory=list)      # and of those of texts, whose features come behind
    imputer: SimpleImputer | None = None
    one_hot: OneHotEncoder | None = None

    @classmethod
    def fitted(cls, path, columns, encode, impute):
        """An encoder for ``columns``, {name: array}, whose arrays are of numbers or texts."""
        texts = [name for name, column in columns.items() if not is_numeric(column)]
        if texts and encode is None:
            raise ValueError(_of_texts(path, texts[0], columns[texts[0]]))
        numbers = [name for name in columns if name not in texts]
        made = cls(numbers, texts)
        if impute is not None and numbers:
            X = _finite_or_missing(path, _matrix(columns, numbers), numbers)
            made.imputer = SimpleImputer(strategy=impute, keep_empty_features=True).fit(X)
        if texts:
            made.one_hot = OneHotEncoder(handle_unknown="ignore", sparse_output=False).fit(_texts(columns, texts))
        return made

    def features(self, path, columns):
        """The features (n, m) of ``columns``; ValueError for a column that held numbers, and now has a text."""
        for name in self.numbers:
            if not is_numeric(columns[name]):
                raise ValueError(f"{path}, column {name!r} holds {_first_text(columns[name])!r}; in training it held "
                                 "numbers.")
        X = _matrix(columns, self.numbers)
        if self.imputer is not None:
            X = self.imputer.transform(_finite_or_missing(path, X, self.numbers))
        refuse_gaps(path, X, self.numbers)
        return X if self.one_hot is None else np.hstack([X, self.one_hot.transform(_texts(columns, self.texts))])


def features_of(path, columns, options, known):
    """Return (X, `ColumnEncoder` or None) of ``columns``, {name: array of numbers or texts}.

    ``known`` is the `Model` that is to predict the rows, whose encoder is used, or None.
    """
    encoder = None if known is None else known.encoder
    if encoder is None and known is None and (options.encode or options.impute):
        encoder = ColumnEncoder.fitted(path, columns, options.encode, options.impute)
    if encoder is not None:
        return encoder.features(path, columns), encoder
    for name, column in columns.items():
        if not is_numeric(column):
            raise ValueError(_of_texts(path, name, column))
    X = _matrix(columns, list(columns))
    refuse_gaps(path, X, list(columns))
    return X, None


def chosen(path, names, features, options, known):
    """The positions among ``features`` that ``--keep`` and ``--drop`` leave, by names or numbers from 0."""
    if known is not None:
        return features                          # its columns were chosen when it was trained
    keep, drop = (_positions(path, names, option, text) for option, text in
                  (("--keep", options.keep), ("--drop", options.drop)))
    return [j for j in features if (keep is None or j in keep) and j not in (drop or ())]


def place_and_features(path, names, n_columns, label, known):
    """Return (position of the labels or None, positions of the features in the order of the model)."""
    twice = [name for name, times in Counter(names or ()).items() if times > 1]
    if twice:
        raise ValueError(f"{path} has more than one column {', '.join(map(repr, twice))}: columns are known by their "
                         "names.")
    if known is not None and known.columns and names:
        absent = [name for name in known.columns if name not in names]
        if absent:
            raise ValueError(f"{path} has no column {absent[0]!r}, which the model was trained on.")
        place = _label_column(path, names, n_columns, known.label if label is None else label, known)
        return place, [names.index(name) for name in known.columns]
    if not n_columns:
        raise ValueError(f"{path} has no columns.")
    place = _label_column(path, names, n_columns, label, known)
    return place, [j for j in range(n_columns) if j != place]


def is_numeric(column):
    return column.dtype.kind in "fiub"


def numbers_of(texts):
    """The texts as floats, those that stand for a missing number as NaN; the texts themselves where one is neither."""
    with suppress(ValueError):
        return np.array(texts, float)            # as of most columns, and quick
    stripped = np.char.strip(np.asarray(texts, str))
    absent = np.isin(np.char.lower(stripped), MISSING)
    try:
        return np.where(absent, "nan", stripped).astype(float)
    except ValueError:
        return stripped


def refuse_gaps(path, X, names, places=None):
    """Raise ValueError where a number is not finite, of columns with ``names``, or at ``places`` in the file."""
    gaps = ~np.isfinite(X)
    if gaps.any():
        i, k = np.argwhere(gaps)[0]
        where = repr(names[k]) if names else places[k] + 1
        share = 100 * gaps[:, k].mean()
        raise ValueError(f"{path}, row {i + 1}, column {where}: empty, NaN or infinite ({gaps.sum()} such cells, "
                         f"{share:.2g} % of this column); fill them (--impute mean), leave the column out (--drop), "
                         "or leave such rows out.")


def _finite_or_missing(path, X, names):
    """X, whose gaps can be filled; ValueError for an infinite number, which is none."""
    infinite = np.argwhere(np.isinf(X))
    if len(infinite):
        i, k = infinite[0]
        raise ValueError(f"{path}, row {i + 1}, column {names[k]!r}: infinite ({len(infinite)} such cells in all), "
                         "which --impute does not fill; leave the column out (--drop), or leave such rows out.")
    return X


def _positions(path, names, option, text):
    if text is None:
        return None
    found = set()
    for name in (part.strip() for part in text.split(",")):
        if name in names:
            found.add(names.index(name))
        elif name.isdecimal() and int(name) < len(names):
            found.add(int(name))
        else:
            raise ValueError(f"{path} has no column {name!r}, which {option} names.")
    return found


def _label_column(path, names, n_columns, label, known):
    if label is NO_LABEL:
        return None
    if label is None and known is not None:
        if n_columns == known.n_columns:                         # these are rows without labels
            return None
        label = known.label
    if label is None:
        return n_columns - 1
    if names and str(label) in names:
        return names.index(str(label))
    if str(label).lstrip("-").isdecimal() and -n_columns <= int(label) < n_columns:
        return int(label) % n_columns
    if known is not None and names and label == known.label:
        return None
    raise ValueError(f"{path} has no column {label!r}; it has {', '.join(names) if names else f'{n_columns} columns'}.")


def _matrix(columns, names):
    arrays = [columns[name] for name in names]
    single = arrays and all(array.dtype in (np.float16, np.float32) for array in arrays)
    n = len(next(iter(columns.values()))) if columns else 0
    X = np.empty((n, len(names)), np.float32 if single else float)
    for k, array in enumerate(arrays):
        X[:, k] = array
    return X


def _texts(columns, names):
    return np.column_stack([np.asarray(columns[name], str).astype(object) for name in names])


def _first_text(column):
    """The first cell that is no number, cut short."""
    for cell in column.tolist():
        if numbers_of([str(cell)]).dtype.kind == "U":
            return str(cell)[:SHOWN]
    return str(column[0])[:SHOWN]


def _of_texts(path, name, column):
    return (f"{path}, column {name!r} holds texts, {_first_text(column)!r} among them, not numbers; --encode onehot "
            "makes features of them, --drop leaves the column out, --label names the column of labels.")
