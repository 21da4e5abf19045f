"""Reference results: ONNX Runtime or LiteRT on a picture prepared by Pillow, OpenCV and NumPy.

artifacts/golden/MODEL/PICTURE.json says what was computed from what (`rgb_sha256` is of the
picture's pixels).  Of a classifier (schema version 1), PICTURE.npy holds the whole first output,
float32, as the network gives it (`output.kind` says what that is).  Of a network with tasks
(version 2), the JSON has the `tasks` and their `results`, as run_model --json says them, and
PICTURE.N.npy the numbers or colours of each pixel where result N is a map (float32 [height, width],
NaN where nothing was seen) or an image (uint8 [height, width, 3], or 4 where the last channel says
what was seen).
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
from run_model_tools.errors import FAILED_RUN, MISMATCH, MISSING_FILE, ToolError
from run_model_tools.files import sha256_of
from run_model_tools.onnx_model import OnnxModel, run_onnx
from run_model_tools.pictures.preprocess import Prepared, load_picture, preprocess
from run_model_tools.pictures.preprocessing import Preprocessing
from run_model_tools.source_model import SourceModel, resolve_shapes
from run_model_tools.tflite.model import REQUIREMENTS
from run_model_tools.zoo.placement import placement_of
from run_model_tools.zoo.reference_results import Reference

SCHEMA_VERSION = 1
TASKS_SCHEMA_VERSION = 2
# How far boxes and points (pixels), scores, masks (share of the pixels), maps (share of their
# range) and images (levels of 255) may be from those of another CPU, whose kernels LiteRT chooses
# otherwise.
_NUMBERS_APART, _PIXELS_APART = 0.05, 0.002
_MAP_APART, _LEVELS_APART = 1e-3, 1


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


def prepare(model: SourceModel, spec: Preprocessing, picture: Path) -> Input:
    """The model's only input for a picture; ToolError (6) for models that take none."""
    if len(model.inputs) != 1:
        raise ToolError(MISMATCH, f"{model.path} has {len(model.inputs)} inputs, where one picture "
                                  "is expected.")
    item = model.inputs[0]
    shape = resolve_shapes(model, {})[item.name]
    layout = guess_layout(shape) or model.default_layout
    pixels = load_picture(picture)
    return Input(pixels, item.name, layout,
                 preprocess(pixels, spec, shape, str(item.dtype), layout))


def is_there(folder: Path, picture: Path, model: SourceModel, spec: Preprocessing,
             tasks: list[dict[str, Any]] | None = None) -> bool:
    """Whether the folder has this picture's result, of this network, preprocessing and tasks."""
    try:
        old = json.loads((folder / f"{picture.stem}.json").read_text(encoding="utf-8"))
        return (all((folder / name).is_file() for name in array_names(picture.stem, tasks))
                and old[f"{model.file_format}_sha256"] == model.sha256
                and old.get("tasks") == tasks and old["preprocessing"] == spec.to_json()
                and old["picture"]["sha256"] == sha256_of(picture))
    except (OSError, ValueError, KeyError, TypeError):
        return False


def array_names(stem: str, tasks: list[dict[str, Any]] | None) -> list[str]:
    """The .npy files beside PICTURE.json."""
    if tasks is None:
        return [f"{stem}.npy"]
    return [f"{stem}.{index}.npy" for index, task in enumerate(tasks)
            if task["kind"] in ("map", "image")]


def make_golden(model: OnnxModel, name: str, spec: Preprocessing, picture: Path,
                labels: list[str]) -> tuple[dict[str, Any], np.ndarray]:
    """(what goes into PICTURE.json, the first output) of one picture."""
    given = prepare(model, spec, picture)
    output = run_onnx(model.path, given.inputs)[0]
    _check_finite(model, [output], picture)
    if output.size != len(labels):
        raise ToolError(MISMATCH, f"{model.path} has {output.size} outputs and there are "
                                  f"{len(labels)} labels.")
    chances = probabilities(output)
    described = {
        **_describe_input(SCHEMA_VERSION, model, name, spec, picture, given),
        "output": {"name": model.outputs[0], "shape": list(output.shape),
                   "kind": "probabilities" if is_distribution(output) else "logits"},
        "top": [{"index": i, "label": labels[i], "probability": round(float(chances[i]), 7)}
                for i in top(chances, 5)],
        "made_with": _versions("onnxruntime"),
    }
    return described, output.astype(np.float32)


def make_task_golden(model: SourceModel, name: str, spec: Preprocessing,
                     tasks: list[dict[str, Any]], picture: Path,
                     ) -> tuple[dict[str, Any], list[np.ndarray]]:
    """(what goes into PICTURE.json of a network with tasks, into array_names())."""
    given = prepare(model, spec, picture)
    reason = model.why_not_run()
    if reason is not None:
        raise ToolError(MISSING_FILE, f"{model.path} has no reference: {reason}.")
    outputs = model.run(given.inputs)
    _check_finite(model, outputs, picture)
    extents = dict(zip(given.layout, given.prepared.tensor.shape))
    placement = placement_of(spec, given.prepared.original_size, (extents["W"], extents["H"]))
    results = Reference(model.outputs, outputs, placement).results(tasks)
    made_with = _versions("onnxruntime" if model.file_format == "onnx" else None)
    arrays = [result.pop("array") for result in results if "array" in result]
    return {**_describe_input(TASKS_SCHEMA_VERSION, model, name, spec, picture, given),
            "tasks": tasks, "results": results, "made_with": made_with}, arrays


def _check_finite(model: SourceModel, outputs: list[np.ndarray], picture: Path) -> None:
    if not all(np.all(np.isfinite(output)) for output in outputs):
        raise ToolError(FAILED_RUN, f"{model.path} gave NaN or Inf for {picture}.")


def _describe_input(schema: int, model: SourceModel, name: str, spec: Preprocessing,
                    picture: Path, given: Input) -> dict[str, Any]:
    tensor = given.prepared.tensor
    return {
        "schema_version": schema,
        "model": name,
        f"{model.file_format}_sha256": model.sha256,
        "picture": {"file": picture.name, "sha256": sha256_of(picture),
                    "size": list(given.prepared.original_size),
                    "rgb_sha256": hashlib.sha256(given.pixels.tobytes()).hexdigest()},
        "preprocessing": spec.to_json(),
        "input": {"name": given.name, "shape": list(tensor.shape), "dtype": str(tensor.dtype),
                  "layout": given.layout, "resized_size": list(given.prepared.resized_size),
                  "min": float(tensor.min()), "max": float(tensor.max()),
                  "sha256": hashlib.sha256(tensor.tobytes()).hexdigest()},
    }


def _versions(runtime: str | None) -> dict[str, str]:
    packages = [runtime] if runtime else []
    found = {name: version(name)
             for name in (*packages, "numpy", "pillow", "opencv-python-headless")}
    if runtime is None:
        pinned = REQUIREMENTS.read_text(encoding="utf-8").strip().splitlines()[-1]
        name, _, release = pinned.partition("==")
        found = {name: release, **found}
    return found


def compare_tasks(described: dict[str, Any], old: dict[str, Any]) -> str | None:
    """What differs from the committed results of a network with tasks, or None."""
    for key in described | old:
        if key not in ("made_with", "results") and described.get(key) != old.get(key):
            return f"'{key}' is {old.get(key)} there and {described.get(key)} now"
    return _first_difference(described["results"], old.get("results"), "results")


def _first_difference(new: Any, old: Any, at: str) -> str | None:
    if isinstance(new, dict) and isinstance(old, dict) and new.keys() == old.keys():
        if "rle" in new and "pixels" in new:
            height, width = new["rle"]["size"]
            if abs(new["pixels"] - old["pixels"]) > _PIXELS_APART * height * width:
                return f"{at} has {old['pixels']} pixels there and {new['pixels']} now"
            return None
        pairs = [(f"{at}.{key}", new[key], old[key]) for key in new]
    elif isinstance(new, list) and isinstance(old, list) and len(new) == len(old):
        pairs = [(f"{at}[{i}]", *pair) for i, pair in enumerate(zip(new, old))]
    elif isinstance(new, float) and isinstance(old, (int, float)):
        return None if abs(new - old) <= _NUMBERS_APART else f"{at} is {old} there and {new} now"
    else:
        return None if new == old else f"{at} is {old} there and {new} now"
    for place, a, b in pairs:
        found = _first_difference(a, b, place)
        if found:
            return found
    return None


def compare_pixels(new: np.ndarray, old: np.ndarray) -> str | None:
    """What differs from a committed map or image, or None."""
    if new.shape != old.shape or new.dtype != old.dtype:
        return f"it is {old.dtype} {old.shape} there and {new.dtype} {new.shape} now"
    if new.dtype == np.uint8:
        levels = int(np.abs(new.astype(int) - old).max(initial=0))
        return f"a byte differs by {levels}" if levels > _LEVELS_APART else None
    if (np.isnan(new) != np.isnan(old)).any():
        return "other pixels were seen"
    apart = float(np.nanmax(np.abs(new - old))) / max(float(np.nanmax(new) - np.nanmin(new)), 1e-12)
    return f"a number differs by {apart:.2g} of their range" if apart > _MAP_APART else None


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
