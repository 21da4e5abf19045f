"""The values among which an index of the largest one was chosen.

Two of them may be so close that rounding decides which one is larger.  An index is then right if
the value at it is as large, within what values may differ by, as the one that the reference chose:
by the tolerance, or by what rounding makes of them in a deep network.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np

from run_model_tools.onnx_model import OnnxModel
from run_model_tools.source_model import SourceModel
from run_model_tools.verifying.comparison import JITTER_FACTOR, noise_of, slice_scale
from run_model_tools.verifying.noise import maker_behind, noisy_runs

_KEEPS_ORDER = {"Identity", "Cast", "Squeeze", "Unsqueeze", "Reshape", "Flatten"}


@dataclass(frozen=True)
class Choice:
    """`values` along `axis`: what an output of indices was chosen among.

    noisy: gives them with weights and inputs changed as roundings change them, some times; it is
    asked only where the tolerance is not enough.
    """

    values: np.ndarray
    axis: int
    noisy: Callable[[], Iterable[np.ndarray]] = tuple

    def equally_good(self, want: np.ndarray, have: np.ndarray, tolerance: float) -> np.ndarray:
        """Where the values at `have` and `want` are equal, within what each of them may differ by.
        """
        values = np.moveaxis(self.values.astype(np.float64), self.axis, -1)
        places = values.shape[:-1]
        if want.size != np.prod(places, dtype=int):
            return np.zeros(want.shape, bool)
        count = values.shape[-1]
        there = (have >= 0) & (have < count) & (want >= 0) & (want < count)
        finite = np.nan_to_num(self.values.astype(np.float64))

        def at(array: np.ndarray, index: np.ndarray) -> np.ndarray:
            inside = np.where(there, index, 0).astype(np.int64).reshape(*places, 1)
            return np.take_along_axis(array, inside, -1).reshape(want.shape)

        def near(differences: np.ndarray) -> np.ndarray:
            allowed = np.moveaxis(differences, self.axis, -1)
            return there & (np.abs(at(values, have) - at(values, want))
                            <= at(allowed, have) + at(allowed, want))

        good = near(tolerance * slice_scale(finite))
        if tolerance > 0 and not (good | (want == have)).all():
            good |= near(JITTER_FACTOR * noise_of(finite, self.noisy()))
        return good


def choice_behind(model: SourceModel, inputs: dict[str, np.ndarray], index: int) -> Choice | None:
    """What output `index` was chosen among in the reference; None where it is no index of a largest
    or smallest value."""
    if not isinstance(model, OnnxModel):
        return None
    maker = maker_behind(model.outline.node, model.outputs[index], _KEEPS_ORDER)
    if maker is None or maker.op_type not in ("ArgMax", "ArgMin"):
        return None
    axis = next((a.i for a in maker.attribute if a.name == "axis"), 0)
    chosen_among = replace(model, cut=(maker.input[0],))
    return Choice(chosen_among.run(inputs)[0], axis,
                  lambda: [outputs[0] for outputs in noisy_runs(chosen_among, inputs)])
