"""Reference results: ONNX Runtime on a picture prepared by Pillow, OpenCV and NumPy.

artifacts/golden/MODEL/PICTURE.json says what was computed from what, and PICTURE.npy holds the
whole first output, float32, as the network gives it (`output.kind` says what that is).
`rgb_sha256` is of the picture's pixels.
"""

from __future__ import annotations

import hashlib
import io
import json
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from run_model_tools.compiling.artifact import guess_layout
from run_model_tools.errors import FAILED_RUN, MISMATCH, ToolError
from run_model_tools.files import sha256_of
from run_model_tools.onnx_model import OnnxModel, run_onnx
from run_model_tools.pictures.preprocess import Prepared, load_picture, preprocess
from run_model_tools.pictures.preprocessing import Preprocessing
from run_model_tools.source_model import resolve_shapes

SCHEMA_VERSION = 1


def is_distribution(values: np.ndarray) -> bool:
    """Whether the values are probabilities already: none negative, and a sum of 1."""
    return bool(np.all(values >= 0) and abs(float(values.sum(dtype=np.float64)) - 1.0) < 1e-3)


def probabilities(values: np.ndarray) -> np.ndarray:
    """float64 probabilities of one output: softmax, unless it has been applied already."""
    values = values.astype(np.float64).ravel()
    if is_distribution(values):
        return values
    powers = np.exp(values - values.max())
    return powers / powers.sum()


def top(values: np.ndarray, count: int) -> list[int]:
    """Indices of the largest values, largest first; equal ones in the order of their index."""
    return [int(i) for i in np.argsort(-values, kind="stable")[:count]]


@dataclass(frozen=True)
class Input:
    """A picture on its way into a model: the pixels, the model's input, and the tensor."""

    pixels: np.ndarray
    name: str
    layout: str
    prepared: Prepared

    @property
    def inputs(self) -> dict[str, np.ndarray]:
        """As ONNX Runtime takes it."""
        return {self.name: self.prepared.tensor}


def prepare(model: OnnxModel, spec: Preprocessing, picture: Path) -> Input:
    """The model's only input for a picture; ToolError (6) for models that take none."""
    if len(model.inputs) != 1:
        raise ToolError(MISMATCH, f"{model.path} has {len(model.inputs)} inputs, where one picture "
                                  "is expected.")
    item = model.inputs[0]
    shape = resolve_shapes(model, {})[item.name]
    layout = guess_layout(shape) or "NCHW"
    pixels = load_picture(picture)
    return Input(pixels, item.name, layout,
                 preprocess(pixels, spec, shape, str(item.dtype), layout))


def is_there(folder: Path, picture: Path, onnx_sha256: str, spec: Preprocessing) -> bool:
    """Whether the folder has this picture's result, of this ONNX file and preprocessing."""
    try:
        old = json.loads((folder / f"{picture.stem}.json").read_text(encoding="utf-8"))
        return ((folder / f"{picture.stem}.npy").is_file() and old["onnx_sha256"] == onnx_sha256
                and old["preprocessing"] == spec.to_json()
                and old["picture"]["sha256"] == sha256_of(picture))
    except (OSError, ValueError, KeyError, TypeError):
        return False


def make_golden(model: OnnxModel, name: str, spec: Preprocessing, picture: Path,
                labels: list[str]) -> tuple[dict[str, Any], np.ndarray]:
    """(what goes into PICTURE.json, the first output) of one picture."""
    given = prepare(model, spec, picture)
    prepared = given.prepared
    output = run_onnx(model.path, given.inputs)[0]
    if not np.all(np.isfinite(output)):
        raise ToolError(FAILED_RUN, f"{model.path} gave NaN or Inf for {picture}.")
    if output.size != len(labels):
        raise ToolError(MISMATCH, f"{model.path} has {output.size} outputs and there are "
                                  f"{len(labels)} labels.")
    chances = probabilities(output)
    described = {
        "schema_version": SCHEMA_VERSION,
        "model": name,
        "onnx_sha256": model.sha256,
        "picture": {"file": picture.name, "sha256": sha256_of(picture),
                    "size": list(prepared.original_size),
                    "rgb_sha256": hashlib.sha256(given.pixels.tobytes()).hexdigest()},
        "preprocessing": spec.to_json(),
        "input": {"name": given.name, "shape": list(prepared.tensor.shape),
                  "dtype": str(prepared.tensor.dtype), "layout": given.layout,
                  "resized_size": list(prepared.resized_size),
                  "min": float(prepared.tensor.min()), "max": float(prepared.tensor.max()),
                  "sha256": hashlib.sha256(prepared.tensor.tobytes()).hexdigest()},
        "output": {"name": model.outputs[0], "shape": list(output.shape),
                   "kind": "probabilities" if is_distribution(output) else "logits"},
        "top": [{"index": i, "label": labels[i], "probability": round(float(chances[i]), 7)}
                for i in top(chances, 5)],
        "made_with": {package: version(package) for package in
                      ("onnxruntime", "numpy", "pillow", "opencv-python-headless")},
    }
    return described, output.astype(np.float32)


def npy_bytes(array: np.ndarray) -> bytes:
    """The array as a .npy file."""
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def compare(described: dict[str, Any], output: np.ndarray, old: dict[str, Any],
            old_output: np.ndarray, tolerance: float) -> str | None:
    """What differs from the committed result, or None.

    Everything is compared exactly but the probabilities and the output, since ONNX Runtime's
    kernels differ between CPUs; those may differ by `tolerance` of the largest value.
    """
    def exact(value: dict[str, Any]) -> dict[str, Any]:
        kept = {key: item for key, item in value.items() if key != "made_with"}
        kept["top"] = [{k: v for k, v in item.items() if k != "probability"}
                       for item in value.get("top", [])]
        return kept

    new_exact, old_exact = exact(described), exact(old)
    for key in new_exact | old_exact:
        if new_exact.get(key) != old_exact.get(key):
            return f"'{key}' is {old_exact.get(key)} there and {new_exact.get(key)} now"
    if output.shape != old_output.shape or old_output.dtype != np.float32:
        return f"the output is {old_output.dtype} {old_output.shape} there"
    difference = float(np.max(np.abs(output - old_output))) / float(np.max(np.abs(output)))
    if not difference <= tolerance:
        return f"the output differs by {difference:.2g} of its largest value"
    return None
