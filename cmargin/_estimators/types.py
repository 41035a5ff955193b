"""Types of parameters that many estimators have. Annotations are those of arrays in memory (doc/install.md)."""

import os
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

from cmargin._runtime.checkpoint import Checkpoint

Method = TypeVar("Method", bound=Callable[..., Any])         # what a decorator takes and gives back
ClassWeight = Mapping[Any, float] | list[dict[int, float]] | str | None
RandomState = int | np.random.RandomState | None
Callback = Callable[[Any], object] | None
CheckpointFile = str | os.PathLike[str] | Checkpoint | None
