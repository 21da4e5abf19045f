"""Whether a runtime's output is the network's."""

from __future__ import annotations

from pathlib import Path

import numpy as np


def check_agreement(output: Path, reference: np.ndarray, tolerance: float) -> dict[str, object]:
    """{"max_abs", "relative", "top1", "agrees", "reason"}; `output` holds bare float32 values.

    relative: max_abs ÷ the reference's largest absolute value, of which `tolerance` is allowed.
    top1: whether the best class is the same, None where the output is no row of scores.
    """
    values = np.fromfile(output, dtype=np.float32)
    found: dict[str, object] = {"max_abs": None, "relative": None, "top1": None, "agrees": False}
    if values.size != reference.size:
        return found | {"reason": f"its output has {values.size} values, and ONNX Runtime's "
                                  f"{reference.size}"}
    if not np.isfinite(values).all():
        return found | {"reason": "its output has values that are not finite"}
    difference = min(float(np.abs(order - reference).max())
                     for order in _orders(values, reference.shape))
    relative = difference / max(float(np.abs(reference).max()), np.finfo(np.float32).tiny)
    found |= {"max_abs": difference, "relative": relative}
    if relative > tolerance:
        return found | {"reason": f"its output differs from ONNX Runtime's by {difference:.2g}, "
                                  f"{relative:.1g} of the largest value"}
    if max(reference.shape, default=0) == reference.size:
        top1 = bool(values.argmax() == reference.argmax())
        found |= {"top1": top1}
        if not top1:
            return found | {"reason": f"its best class is {values.argmax()}, and ONNX Runtime's "
                                      f"{reference.argmax()}"}
    return found | {"agrees": True, "reason": None}


def _orders(values: np.ndarray, shape: tuple[int, ...]) -> list[np.ndarray]:
    """The values in the reference's order, and as if they had come with their channels last: a
    layout is a runtime's own affair."""
    found = [values.reshape(shape)]
    if len(shape) > 2:
        found.append(np.moveaxis(values.reshape(shape[0], *shape[2:], shape[1]), -1, 1))
    return found
