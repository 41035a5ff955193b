"""A pickle knows the version that wrote it, and whoever reads it with another is told; its arrays come out aligned."""

import warnings

from sklearn.exceptions import InconsistentVersionWarning as OfScikitLearn

from cmargin._runtime.aligned import aligned_throughout
from cmargin._version import __version__


class InconsistentVersionWarning(OfScikitLearn):
    """An estimator was pickled by another version of this package; a kind of scikit-learn's of the same name."""

    def __init__(self, estimator_name, version):
        self.estimator_name = estimator_name
        self.original_version = version

    def __str__(self):
        return (f"Trying to unpickle estimator {self.estimator_name} from cmargin {self.original_version} when using "
                f"cmargin {__version__}. This might lead to breaking code or invalid results. Use at your own risk; "
                "to_sklearn() of the version that wrote it makes a model that does not depend on this package.")


class VersionInPickle:
    """Base of estimators: their pickles hold the version, and their arrays are aligned however they were unpacked."""

    def __getstate__(self):
        return dict(super().__getstate__(), _cmargin_version=__version__)

    def __setstate__(self, state):
        state = dict(state)
        version = state.pop("_cmargin_version", "of a version that did not write it down")
        if version != __version__:
            warnings.warn(InconsistentVersionWarning(type(self).__name__, version), stacklevel=2)
        super().__setstate__(aligned_throughout(state))           # unpickled in place, out of a message
