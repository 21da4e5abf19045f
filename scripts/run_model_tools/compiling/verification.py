"""Compares a compiled model, run by TVM's own executor, with ONNX Runtime on the same input."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from run_model_tools import tvm_process
from run_model_tools.errors import FAILED_RUN, ToolError
from run_model_tools.onnx_model import OnnxModel, run_onnx
from run_model_tools.pictures.preprocess import normalise
from run_model_tools.pictures.preprocessing import Preprocessing


def random_inputs(model: OnnxModel, shapes: dict[str, tuple[int, ...]],
                  preprocessing: Preprocessing | None) -> dict[str, np.ndarray] | None:
    """The same random inputs every time, or None where an input is not made of floats.

    A network that takes pictures gets noise of the range that pictures have.  Whole numbers are
    indices as often as not, and random ones may lie outside of what they index.
    """
    random = np.random.default_rng(20)
    inputs = {}
    for item in model.inputs:
        if item.dtype.kind != "f":
            return None
        shape = shapes[item.name]
        if preprocessing is not None and len(shape) == 4:
            noise = random.integers(0, 256, (int(np.prod(shape)) // 3 + 1, 1, 3), np.uint8)
            values = normalise(noise, preprocessing, np.float32).ravel()[:int(np.prod(shape))]
            inputs[item.name] = values.reshape(shape).astype(item.dtype)
        else:
            inputs[item.name] = random.standard_normal(shape).astype(item.dtype)
    return inputs


def verify(model: OnnxModel, directory: Path, shapes: dict[str, tuple[int, ...]],
           preprocessing: Preprocessing | None, tolerance: float,
           tvm_python: str | None) -> dict[str, Any]:
    """Runs both and gives a report; raises ToolError (8) where they differ.

    The difference is the largest absolute one, divided by the largest absolute value of that
    output in ONNX Runtime; `tolerance` is what is allowed of it.
    """
    inputs = random_inputs(model, shapes, preprocessing)
    if inputs is None:
        return {"done": False, "reason": "an input is not floating-point"}
    expected = run_onnx(model.path, inputs)
    with tempfile.TemporaryDirectory(prefix="run_model-") as folder:
        given, got = Path(folder, "inputs.npz"), Path(folder, "outputs.npz")
        np.savez(given, **inputs)
        tvm_process.call("run", tvm_python, directory=str(directory), inputs=str(given),
                         outputs=str(got))
        with np.load(got) as outputs:
            results = [outputs[f"arr_{i}"] for i in range(len(outputs.files))]
    if len(results) != len(expected):
        raise ToolError(FAILED_RUN, f"the compiled model has {len(results)} outputs and the ONNX "
                                    f"model {len(expected)}.")
    worst = 0.0
    for name, want, have in zip(model.outputs, expected, results):
        want, have = want.astype(np.float64), have.astype(np.float64)
        if want.shape != have.shape:
            raise ToolError(FAILED_RUN, f"output '{name}' has the shape {have.shape} when compiled "
                                        f"and {want.shape} in ONNX Runtime.")
        scale = max(float(np.max(np.abs(want), initial=0.0)), 1e-30)
        difference = float(np.max(np.abs(want - have), initial=0.0)) / scale
        # Written so that NaN fails as well.
        if not difference <= tolerance:
            raise ToolError(FAILED_RUN, (
                f"output '{name}' of the compiled model differs from ONNX Runtime by "
                f"{difference:.2g} of its largest value, and {tolerance:g} is allowed: the "
                "artifact was not written; --tolerance allows more, --no-verify compares nothing."))
        worst = max(worst, difference)
    return {"done": True, "reference": "onnxruntime", "relative_difference": worst,
            "tolerance": tolerance}
