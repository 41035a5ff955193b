"""Linear classifiers that care about the margin, trained by second-order methods on a compiled core.

Importing the package starts nothing and sets nothing; a public name is loaded when it is first asked for.
"""

from importlib import import_module as _import_module

from cmargin._version import __version__

TYPE_CHECKING = False       # as of typing, whose import is not needed for it
if TYPE_CHECKING:           # what a type checker cannot follow through `__getattr__`
    from cmargin import baselines, data, datasets, export, margins, plots
    from cmargin._runtime.checkpoint import Checkpoint
    from cmargin._runtime.include import get_include
    from cmargin._runtime.show_config import show_config
    from cmargin.export.saved import load
    from cmargin.nested_cv import nested_cross_validation
    from cmargin.one_class import SmSVMOneClass
    from cmargin.paths import SmSVMPath, smsvm_path
    from cmargin.pursuit import MarginPursuitClassifier, PegasosClassifier
    from cmargin.slnd import BSNClassifier, SLNDClassifier
    from cmargin.slnd_cv import SLNDClassifierCV
    from cmargin.slnd_paths import SLNDPath, slnd_path
    from cmargin.smsvm import SmSVMClassifier
    from cmargin.smsvm_cv import SmSVMClassifierCV
    from cmargin.smsvm_regressor import SmSVMRegressor

_HOMES = {
    "Checkpoint": "cmargin._runtime.checkpoint",
    "SLNDClassifier": "cmargin.slnd",
    "BSNClassifier": "cmargin.slnd",
    "SLNDClassifierCV": "cmargin.slnd_cv",
    "SLNDPath": "cmargin.slnd_paths",
    "slnd_path": "cmargin.slnd_paths",
    "SmSVMClassifier": "cmargin.smsvm",
    "SmSVMClassifierCV": "cmargin.smsvm_cv",
    "SmSVMRegressor": "cmargin.smsvm_regressor",
    "nested_cross_validation": "cmargin.nested_cv",
    "SmSVMPath": "cmargin.paths",
    "smsvm_path": "cmargin.paths",
    "MarginPursuitClassifier": "cmargin.pursuit",
    "PegasosClassifier": "cmargin.pursuit",
    "load": "cmargin.export.saved",
    "get_include": "cmargin._runtime.include",
    "show_config": "cmargin._runtime.show_config",
    "SmSVMOneClass": "cmargin.one_class",
}

__all__ = [
    "BSNClassifier",
    "Checkpoint",
    "MarginPursuitClassifier",
    "PegasosClassifier",
    "SLNDClassifier",
    "SLNDClassifierCV",
    "SLNDPath",
    "SmSVMClassifier",
    "SmSVMClassifierCV",
    "SmSVMOneClass",
    "SmSVMPath",
    "SmSVMRegressor",
    "__version__",
    "baselines",
    "data",
    "datasets",
    "export",
    "get_include",
    "load",
    "margins",
    "nested_cross_validation",
    "plots",
    "show_config",
    "slnd_path",
    "smsvm_path",
]


if not TYPE_CHECKING:       # which would take any name for one of these
    def __getattr__(name):
        if name in _HOMES:
            return getattr(_import_module(_HOMES[name]), name)
        if name in ("api", "baselines", "data", "datasets", "export", "homes", "margins", "plots"):
            return _import_module(f"cmargin.{name}")
        raise AttributeError(f"module 'cmargin' has no attribute {name!r}")


def __dir__():
    return sorted([*globals(), *__all__])
