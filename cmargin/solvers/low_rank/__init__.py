"""The name of `cmargin.solvers.sgd` in pickles of fitted models that were made before version 0.1."""

import sys

from cmargin.solvers.sgd import low_rank, sgdqn

sys.modules[f"{__name__}.low_rank"] = low_rank
sys.modules[f"{__name__}.sgdqn"] = sgdqn
