"""Outputs that a softmax made, whose logarithms are compared too.

A softmax makes 0 and 1 of scores that are far apart, whatever they are exactly, so that a network
may be wrong in every layer and still give the same probabilities.  Their logarithms are the scores,
but for a number that all have in common, down to where float32 ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from run_model_tools.onnx_model import OnnxModel
from run_model_tools.source_model import SourceModel
from run_model_tools.tflite.model import TfliteModel
from run_model_tools.verifying.comparison import Difference, compare
from run_model_tools.verifying.noise import maker_behind

LEAST = 1e-30
"""Smaller probabilities count as this: runtimes make zeros of them at one place or another."""

_MOVES = {"Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Slice", "Split"}


def made_by_softmax(model: SourceModel) -> list[bool]:
    """Of each output."""
    if isinstance(model, TfliteModel):
        return model.probabilities
    assert isinstance(model, OnnxModel)
    makers = [maker_behind(model.outline.node, name, _MOVES) for name in model.outputs]
    return [maker is not None and maker.op_type == "Softmax" for maker in makers]


def compare_logarithms(name: str, want: np.ndarray, have: np.ndarray, tolerance: float,
                       noisy: Callable[[], Iterable[np.ndarray]]) -> Difference:
    """comparison.compare() of the logarithms of an output, which half precision is too coarse for.
    """
    if want.dtype == np.float16:
        return Difference()
    return compare(f"log({name})", _logarithms(want), _logarithms(have), tolerance,
                   lambda: [_logarithms(sample) for sample in noisy()])


def _logarithms(probabilities: np.ndarray) -> np.ndarray:
    return np.log(np.maximum(probabilities.astype(np.float64), LEAST))
