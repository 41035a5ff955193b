"""A model file: a pickle of the classifier with its scaler, the names of its columns, and what it was trained on."""

import pickle
import warnings
from dataclasses import dataclass, field

from cmargin import __version__
from cmargin._estimators.versions import InconsistentVersionWarning
from cmargin.command.guard import say
from cmargin.command.whole import whole_file
from cmargin.data.arrays import dense

KIND = "cmargin model"


@dataclass
class Model:
    """A trained classifier and how rows get to it.

    Attributes
    ----------
    classifier : estimator of this package
    scaler : transformer of scikit-learn, or None
    columns : list of str or None
        Names of the features, in order, where the data had some.
    label : str, int or None
        Column of the labels in a table.
    facts : dict
        Method, rows, seconds, and so on; numbers and texts.
    """

    classifier: object
    scaler: object = None
    columns: list | None = None
    label: object = None
    facts: dict = field(default_factory=dict)

    def scaled(self, X):
        """Rows as the classifier was trained on them; few at a time, as sparse ones may become dense."""
        if self.scaler is None:
            return X
        return self.scaler.transform(dense(X) if getattr(self.scaler, "with_mean", False) else X)

    @property
    def n_features(self):
        return self.classifier.n_features_in_

    def save(self, path):
        """Write to ``path``, which has the whole model or what it had before."""
        with whole_file(path, "wb") as file:
            pickle.dump({"kind": KIND, "version": __version__, "model": vars(self)}, file, pickle.HIGHEST_PROTOCOL)


def load(path):
    with open(path, "rb") as file, warnings.catch_warnings():
        warnings.simplefilter("ignore", InconsistentVersionWarning)              # said below, of the file
        try:
            found = pickle.load(file)
        except Exception as error:               # whatever unpickling something else may come to
            raise ValueError(f"{path} is no model of `cmargin fit`: {type(error).__name__}.") from None
    if not isinstance(found, dict) or found.get("kind") != KIND:
        raise ValueError(f"{path} is no model of `cmargin fit`.")
    if found["version"] != __version__:
        say(f"warning: {path} was made by cmargin {found['version']}; this is {__version__}.")
    return Model(**found["model"])
