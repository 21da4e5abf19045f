"""Whether a runtime's output is the network's."""

from __future__ import annotations

from pathlib import Path

import numpy as np

#: Of the reference's largest value, as compile_model allows by default: float32 arithmetic in
#: another order stays far below it, half precision would not in every network.
TOLERANCE = 1e-3


def check_agreement(output: Path, reference: np.ndarray) -> dict[str, object]:
    """{"max_abs", "relative", "top1", "agrees", "reason"}; `output` holds bare float32 values.

    relative: max_abs ÷ the reference's largest absolute value.
    """
    values = np.fromfile(output, dtype=np.float32)
    found: dict[str, object] = {"max_abs": None, "relative": None, "top1": None, "agrees": False}
    if values.size != reference.size:
        return found | {"reason": f"its output has {values.size} values, and ONNX Runtime's "
                                  f"{reference.size}"}
    if not np.isfinite(values).all():
        return found | {"reason": "its output has values that are not finite"}
    difference = float(np.abs(values - reference).max())
    relative = difference / max(float(np.abs(reference).max()), np.finfo(np.float32).tiny)
    top1 = bool(values.argmax() == reference.argmax())
    found |= {"max_abs": difference, "relative": relative, "top1": top1}
    if relative > TOLERANCE:
        return found | {"reason": f"its output differs from ONNX Runtime's by {difference:.2g}, "
                                  f"{relative:.1g} of the largest value"}
    if not top1:
        return found | {"reason": f"its best class is {values.argmax()}, and ONNX Runtime's "
                                  f"{reference.argmax()}"}
    return found | {"agrees": True, "reason": None}
