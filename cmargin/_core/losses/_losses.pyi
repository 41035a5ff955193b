# Written by `python -m build_tools.stubs`.

from typing import Any

import numpy as np

FACTS: dict[str, Any]
LOSS_IDS: dict[str, Any]
CALIBRATED: tuple[str, ...]
AT_ZERO: dict[str, Any]
LARGEST_CURVATURE: dict[str, Any]
STEEPEST: dict[str, Any]
def facts_at(loss: int, a: float = ..., b: float = ...) -> Any: ...
def evaluate(
    loss: int, margins: np.ndarray, value_out: np.ndarray, slope_out: np.ndarray, curvature_out: np.ndarray,
    a: float = ..., b: float = ...,
) -> Any: ...
def mean_losses(
    loss: int, margins: np.ndarray, weight: np.ndarray, a: float, b: np.ndarray, mean_out: np.ndarray,
) -> Any: ...
def posterior(loss: int, scores: np.ndarray, posterior_out: np.ndarray) -> Any: ...
def gains(loss: int, a: np.ndarray, gain_out: np.ndarray, parameter: float = ...) -> Any: ...
