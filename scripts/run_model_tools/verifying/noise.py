"""The reference's outputs with weights and inputs changed a little, as rounding may do."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from run_model_tools.source_model import SourceModel
from run_model_tools.verifying.comparison import JITTER

SAMPLES = 6

_FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16)
_MOST_BYTES = 1 << 30
"""Of a model in one file; Protocol Buffers end at twice that."""

Reference = Callable[[Path, dict[str, np.ndarray]], list[np.ndarray]]


def noisy_runs(model: SourceModel, inputs: dict[str, np.ndarray]) -> Iterator[list[np.ndarray]]:
    """SAMPLES times the reference's outputs: of ONNX with other weights too, of TensorFlow Lite,
    whose files are not rewritten, with other inputs."""
    if model.file_format == "onnx":
        yield from noisy_outputs(model.path, inputs,
                                 lambda path, values: replace(model, path=path).run(values))
        return
    random = np.random.default_rng(22)
    for _ in range(SAMPLES):
        yield model.run({name: _jittered(value, random) if value.dtype.kind == "f" else value
                         for name, value in inputs.items()})


def noisy_outputs(path: Path, inputs: dict[str, np.ndarray],
                  reference: Reference) -> Iterator[list[np.ndarray]]:
    """SAMPLES times the reference's outputs, with other changes each time.

    Weights are tensors of two axes or more: shorter ones may be scales of a resize or bounds, which
    decide about shapes.
    """
    model = onnx.load(str(path))
    weights = [tensor for tensor in _tensors(model.graph)
               if tensor.data_type in _FLOATS and len(tensor.dims) > 1]
    originals = [numpy_helper.to_array(tensor) for tensor in weights]
    large = sum(array.nbytes for array in originals) > _MOST_BYTES
    random = np.random.default_rng(22)
    with tempfile.TemporaryDirectory(prefix="run_model-") as folder:
        changed = Path(folder, "changed.onnx")
        for _ in range(SAMPLES):
            for tensor, array in zip(weights, originals):
                tensor.CopyFrom(numpy_helper.from_array(_jittered(array, random), tensor.name))
            onnx.save(model, str(changed), save_as_external_data=large)
            yield reference(changed, {
                name: _jittered(value, random) if value.dtype.kind == "f" else value
                for name, value in inputs.items()})
            for file in Path(folder).iterdir():
                file.unlink()


def _tensors(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    yield from graph.initializer
    for node in graph.node:
        if node.op_type == "Constant":
            yield from (a.t for a in node.attribute if a.HasField("t"))


def _jittered(array: np.ndarray, random: np.random.Generator) -> np.ndarray:
    size = max(JITTER, float(np.finfo(array.dtype).eps))
    return (array * (1 + random.uniform(-size, size, array.shape))).astype(array.dtype)
