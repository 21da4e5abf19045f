"""What the tools read from an ONNX file, and running it in ONNX Runtime."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from google.protobuf.message import DecodeError

from run_model_tools.errors import MALFORMED_FILE, MISMATCH, MISSING_FILE, USAGE, ToolError
from run_model_tools.files import sha256_of


@dataclass(frozen=True)
class OnnxInput:
    """An input that the user sets; an extent of None is left open by the model."""

    name: str
    shape: tuple[int | None, ...]
    dtype: np.dtype


@dataclass(frozen=True)
class OnnxModel:
    """The facts about a model that end up in an artifact."""

    path: Path
    sha256: str
    opset: int
    inputs: list[OnnxInput]
    outputs: list[str]
    data_sha256: list[str]
    """Of the files beside it that hold its weights, if any."""


def read_model(path: Path) -> OnnxModel:
    """Reads an ONNX file; raises ToolError (3, 4) with what is wrong with it."""
    if not path.is_file():
        raise ToolError(MISSING_FILE, f"{path} is not there, or is not a file.")
    try:
        model = onnx.load(str(path), load_external_data=False)
        if not model.graph.node or not model.graph.output:
            raise ToolError(MALFORMED_FILE, f"{path} is not an ONNX model: it has no graph.")
    except DecodeError as error:
        raise ToolError(MALFORMED_FILE, f"{path} is not an ONNX model: {error}.") from None
    except OSError as error:
        raise ToolError(MISSING_FILE, f"{path} cannot be read: {error.strerror}.") from None
    initializers = {tensor.name for tensor in model.graph.initializer}
    inputs = []
    # Models of old IR versions list their weights among the inputs too.
    for value in model.graph.input:
        if value.name in initializers:
            continue
        tensor = value.type.tensor_type
        shape = tuple(d.dim_value if d.HasField("dim_value") and d.dim_value > 0 else None
                      for d in tensor.shape.dim)
        inputs.append(OnnxInput(value.name, shape, np.dtype(
            onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type))))
    opset = next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), 0)
    return OnnxModel(path, sha256_of(path), opset, inputs, [o.name for o in model.graph.output],
                     [sha256_of(file) for file in data_files(path, model)])


def data_files(path: Path, model: onnx.ModelProto | None = None) -> list[Path]:
    """The files that hold weights outside of the model, which must lie in its folder.

    model: what the file `path` holds, where it has been read already.
    """
    if model is None:
        model = onnx.load(str(path), load_external_data=False)
    places = {entry.value for tensor in model.graph.initializer
              if tensor.data_location == onnx.TensorProto.EXTERNAL
              for entry in tensor.external_data if entry.key == "location"}
    files = []
    for place in sorted(places):
        file = (path.parent / place).resolve()
        if not file.is_relative_to(path.parent.resolve()) or not file.is_file():
            raise ToolError(MISSING_FILE, f"{path} keeps weights in '{place}', which is no file in "
                                          "its folder.")
        files.append(file)
    return files


def parse_shape(text: str) -> tuple[str, tuple[int, ...]]:
    """"data:1,3,224,224" (or 1x3x224x224) -> ("data", (1, 3, 224, 224)); names may hold colons."""
    match = re.fullmatch(r"(.+):(\d+(?:[,x]\d+)*)", text)
    if match is None or "0" in re.split("[,x]", match[2]):
        raise ToolError(USAGE, f"--shape {text} is not of the form INPUT:D0,D1,... with whole "
                               "numbers above 0.")
    return match[1], tuple(int(d) for d in re.split("[,x]", match[2]))


def resolve_shapes(model: OnnxModel,
                   given: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """The shape of each input, open extents filled from `given`.

    An open first extent alone is the batch, and taken as 1.  Raises ToolError (2, 6) for what
    stays open or contradicts the model.
    """
    names = [i.name for i in model.inputs]
    for name in given:
        if name not in names:
            raise ToolError(MISMATCH, f"{model.path} has no input '{name}'; it has "
                                      f"{', '.join(names) or 'none'}.")
    shapes = {}
    for item in model.inputs:
        wanted: tuple[int, ...] | None = given.get(item.name)
        known = tuple(d for d in item.shape if d is not None)
        if wanted is None and item.shape and item.shape[0] is None and known == item.shape[1:]:
            wanted = (1, *known)
        elif wanted is None and known == item.shape:
            wanted = known
        if wanted is None:
            text = ",".join("?" if d is None else str(d) for d in item.shape)
            raise ToolError(USAGE, f"{model.path} leaves the shape of its input '{item.name}' open "
                                   f"({text}): add --shape {item.name}:{text.replace('?', '1')} "
                                   "with the extents that you want.")
        if len(wanted) != len(item.shape) or any(
                d is not None and d != w for d, w in zip(item.shape, wanted)):
            raise ToolError(MISMATCH, f"--shape {item.name}:{','.join(map(str, wanted))} "
                                      f"contradicts {model.path}, which says {item.shape}.")
        shapes[item.name] = tuple(int(d) for d in wanted)
    return shapes


def run_onnx(path: Path, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
    """The model's outputs in ONNX Runtime, on one thread so that sums are added in one order."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return session.run(None, inputs)
