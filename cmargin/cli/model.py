"""A model file: the classifier with its scaler, the names of its columns, and facts about its training."""

import pickle
import warnings
from dataclasses import dataclass, field

import numpy as np
from sklearn.base import is_regressor

from cmargin import __version__
from cmargin._estimators.identity import InconsistentVersionWarning
from cmargin._estimators.saved import Saving, is_one, read, write
from cmargin.cli.columns import ColumnEncoder
from cmargin.cli.errors import print_error
from cmargin.data.arrays import dense
from cmargin.export.saved import COMMAND, Restoring, try_out

KIND = "cmargin model"         # of pickles
BATCH = 1 << 22                # Scores that are held in memory together.


@dataclass
class Model:
    """A trained classifier, or regression, and how rows get to it."""

    classifier: object                             # an estimator of this package, `SmSVMRegressor` included
    scaler: object = None                          # a transformer of scikit-learn
    columns: list | None = None                    # Names of the features, in order, where the data had some.
    label: object = None                           # Name or number of the column of the labels in a table.
    facts: dict = field(default_factory=dict)      # Method, rows, seconds, and so on; numbers and texts.
    encoder: object = None                         # `cmargin.cli.columns.ColumnEncoder`, of columns that are no numbers
    labels: object = None                          # (n_labels,) names, where a row may have several labels,
    positives: object = None                       # and how many rows had each in training

    @property
    def n_features(self):
        return self.classifier.n_features_in_

    @property
    def regresses(self):
        """Whether it predicts numbers."""
        return is_regressor(self.classifier)

    @property
    def n_outputs(self):
        """Scores, or predicted numbers, of a row."""
        return np.size(self.classifier.intercept_) if self.regresses else len(self.classifier.classes_)

    @property
    def n_columns(self):
        """Columns of a table that features are made of."""
        return self.n_features if self.columns is None else len(self.columns)

    def batches(self, X):
        """Yield (slice, scaled rows of X) of batches whose scores, one for each class, are at most `BATCH` numbers."""
        size = max(1, BATCH // self.n_outputs)
        for lo in range(0, X.shape[0], size):
            part = slice(lo, lo + size)
            yield part, self._scaled(X[part])

    def _scaled(self, X):
        if self.scaler is None:
            return X
        return self.scaler.transform(dense(X) if getattr(self.scaler, "with_mean", False) else X)

    def save(self, path):
        """Write the model file, which replaces an old one when it is complete."""
        saving = Saving()
        content = {**vars(self), "encoder": None if self.encoder is None else vars(self.encoder)}
        if self.labels is None:                        # as versions before this one read it
            del content["labels"], content["positives"]
        write(path, COMMAND, saving.told(content), saving)


def load(path, trust_pickle=False):
    """Return the `Model` of a file; ValueError where it is none, and a line on standard error for another version.

    Versions before this one wrote pickles, which run what is in them: they are opened where they are trusted.
    """
    if not is_one(path):
        if not trust_pickle:
            raise ValueError(f"{path} is no model of `cmargin fit`, or a pickle of an older one, which can run "
                             "anything; --trust-pickle opens it.")
        return _unpickled(path)
    kind, version, content, arrays = read(path)
    _tell_version(path, version)
    found = Restoring(path, arrays).value(content)
    if kind != COMMAND or not isinstance(found, dict) or "classifier" not in found:
        raise ValueError(f"{path} is no model of `cmargin fit`, but of the kind {kind!r}.")
    encoder = found.pop("encoder", None)
    try:
        model = Model(**found, encoder=None if encoder is None else ColumnEncoder(**encoder))
    except TypeError as error:
        raise ValueError(f"{path} is no model of `cmargin fit`: {error}.") from None
    try_out(path, model.classifier, model.scaler)
    return model


def _unpickled(path):
    with open(path, "rb") as file, warnings.catch_warnings():
        warnings.simplefilter("ignore", InconsistentVersionWarning)              # a line of ours names the file
        try:
            found = pickle.load(file)
        except Exception as error:               # Unpickling something else can raise any error.
            raise ValueError(f"{path} is no model of `cmargin fit`: {type(error).__name__}.") from None
    if not isinstance(found, dict) or found.get("kind") != KIND:
        raise ValueError(f"{path} is no model of `cmargin fit`.")
    _tell_version(path, found["version"])
    return Model(**found["model"])


def _tell_version(path, version):
    if version != __version__:
        print_error(f"warning: {path} was made by cmargin {version}; this is {__version__}.")
