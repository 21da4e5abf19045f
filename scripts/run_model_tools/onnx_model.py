"""What the tools read from an ONNX file, and running it in ONNX Runtime."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import onnx
from google.protobuf.message import DecodeError

from run_model_tools.errors import MALFORMED_FILE, MISSING_FILE, ToolError
from run_model_tools.files import sha256_of
from run_model_tools.source_model import ModelInput, SourceModel


@dataclass(frozen=True)
class OnnxModel(SourceModel):
    """The facts about an ONNX file that end up in an artifact."""

    opset: int

    file_format: ClassVar[str] = "onnx"
    reference: ClassVar[str] = "onnxruntime"
    default_layout: ClassVar[str] = "NCHW"

    def source(self) -> dict[str, Any]:
        return {"onnx_sha256": self.sha256, "onnx_opset": self.opset}

    def why_not_run(self) -> str | None:
        return None

    def run(self, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
        return run_onnx(self.path, inputs)


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
        inputs.append(ModelInput(value.name, shape, np.dtype(
            onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type))))
    opset = next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), 0)
    return OnnxModel(path, sha256_of(path), inputs, [o.name for o in model.graph.output],
                     [sha256_of(file) for file in data_files(path, model)], opset=opset)


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


def run_onnx(path: Path, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
    """The model's outputs in ONNX Runtime, on one thread so that sums are added in one order."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return session.run(None, inputs)
