"""What the tools read from an ONNX file, and running it in ONNX Runtime."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import onnx
from google.protobuf import json_format, text_format
from google.protobuf.message import DecodeError
from onnx import numpy_helper

from run_model_tools.environment import PACKAGE
from run_model_tools.errors import MALFORMED_FILE, MISMATCH, MISSING_FILE, ToolError
from run_model_tools.files import sha256_of, sources_hash
from run_model_tools.foreign_formats import instead_of_network
from run_model_tools.frozen_inputs import as_declared
from run_model_tools.onnx_repair import bfloat16, onnxruntime_process
from run_model_tools.onnx_repair.numeric_outputs import numeric_outputs
from run_model_tools.onnx_repair.outputs import resolve, with_outputs
from run_model_tools.onnx_repair.reference import (
    NoReference,
    reference_outputs,
    repaired_outputs,
)
from run_model_tools.onnx_repair.repair import load
from run_model_tools.onnx_repair.stored_tensors import files_beside
from run_model_tools.source_model import ModelInput, SourceModel

_LARGE = 1 << 16
"""Bytes: a constant that is no shape, scale or bound."""


@dataclass(frozen=True)
class OnnxModel(SourceModel):
    """The facts about an ONNX file that end up in an artifact."""

    opset: int
    frozen: dict[str, np.ndarray] = field(default_factory=dict)
    """Constants in the place of inputs, which are not among `inputs`."""
    cut: tuple[str, ...] = ()
    """Tensors of the graph that are the outputs, instead of its own."""
    shapes: tuple[tuple[int | None, ...] | None, ...] = ()
    """Of the outputs, as far as the file says."""
    dtypes: tuple[str | None, ...] = ()
    """Of the outputs, as far as the file says."""
    notes: tuple[str, ...] = ()
    """About outputs of the file that are no tensors of numbers, and types that become others."""
    metadata: dict[str, str] = field(default_factory=dict)
    """The file's metadata_props."""

    file_format: ClassVar[str] = "onnx"
    reference: ClassVar[str] = "onnxruntime"
    default_layout: ClassVar[str] = "NCHW"

    @cached_property
    def outline(self) -> onnx.GraphProto:
        """The graph without the numbers of large constants, which may take gigabytes."""
        graph = onnx.load(str(self.path), load_external_data=False).graph
        for tensor in graph.initializer:
            if tensor.ByteSize() > _LARGE:
                for numbers in ("raw_data", "float_data", "int32_data", "int64_data"):
                    tensor.ClearField(numbers)
        return graph

    def source(self) -> dict[str, Any]:
        return {"onnx_sha256": self.sha256, "onnx_opset": self.opset,
                **({"notes": list(self.notes)} if self.notes else {})}

    @property
    def output_shapes(self) -> list[tuple[int | None, ...] | None]:
        return list(self.shapes) or super().output_shapes

    @property
    def output_dtypes(self) -> list[str | None]:
        return list(self.dtypes) or super().output_dtypes

    @property
    def properties(self) -> dict[str, str]:
        return self.metadata

    def why_not_run(self) -> str | None:
        return None

    def request(self) -> dict[str, Any]:
        return {**super().request(), "frozen": self.frozen, "outputs": self.cut}

    def key(self) -> list[Any]:
        return [*super().key(), sources_hash(PACKAGE / "onnx_repair"), [
            [name, str(array.dtype), array.shape, hashlib.sha256(array.tobytes()).hexdigest()]
            for name, array in sorted(self.frozen.items())], list(self.cut)]

    def spelled_out(self, folder: Path) -> OnnxModel:
        """The same as a file of its own in which constants are constants and outputs the only ones,
        for what reads files."""
        if not self.frozen and not self.cut:
            return self
        model = load(self.path, self.cut)
        left = [value for value in model.graph.input if value.name not in self.frozen]
        model.graph.initializer.extend(
            numpy_helper.from_array(array, name) for name, array in self.frozen.items()
            if any(value.name == name for value in model.graph.input))
        del model.graph.input[:]
        model.graph.input.extend(left)
        path = folder / self.path.name
        onnx.save(model, str(path), save_as_external_data=True, location=f"{path.name}.data")
        return replace(self, path=path, frozen={}, cut=())

    def run(self, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
        return self.run_by(inputs)[0]

    def run_by(self, inputs: dict[str, np.ndarray]) -> tuple[list[np.ndarray], str]:
        try:
            return reference_outputs(self.path, {**inputs, **self.frozen}, self.cut)
        except NoReference as error:
            try:
                return repaired_outputs(self.path, inputs, self.frozen, self.cut)
            except (NoReference, ToolError):
                raise error from None


def read_model(path: Path, frozen: dict[str, np.ndarray] | None = None,
               outputs: Iterable[str] = ()) -> OnnxModel:
    """Reads an ONNX file; raises ToolError (3, 4, 6) with what is wrong with it.

    outputs: as --outputs names them, the tensors where the network ends for us.
    """
    frozen = frozen or {}
    if path.is_dir():
        raise ToolError(MALFORMED_FILE, f"{path} is no network: {instead_of_network(path)}")
    if not path.is_file():
        raise ToolError(MISSING_FILE, f"{path} is not there, or is not a file.")
    try:
        model = onnx.load(str(path), load_external_data=False)
    except (DecodeError, json_format.ParseError, text_format.ParseError, onnx.parser.ParseError,
            UnicodeDecodeError):
        model = onnx.ModelProto()
    except OSError as error:
        raise ToolError(MISSING_FILE, f"{path} cannot be read: {error.strerror}.") from None
    if not model.graph.output:
        raise ToolError(MALFORMED_FILE,
                        f"{path} is not an ONNX model: {instead_of_network(path)}")
    files = files_beside(path, model)
    cut, notes = resolve(str(path), model, outputs), list[str]()
    if not cut:
        cut, notes = numeric_outputs(model)
    rounding = bfloat16.note(model)
    if rounding:
        notes.append(rounding)
    if cut:
        with_outputs(model, cut)
    initializers = {tensor.name for tensor in model.graph.initializer}
    initializers.update(tensor.values.name for tensor in model.graph.sparse_initializer)
    # Models of old IR versions list their weights among the inputs too.
    inputs = [_read_input(path, value) for value in model.graph.input
              if value.name not in initializers and value.name not in frozen]
    for name in frozen:
        if name not in {value.name for value in model.graph.input}:
            raise ToolError(MISMATCH, (
                f"--freeze names '{name}', and the inputs of {path} are "
                f"{', '.join(value.name for value in model.graph.input) or 'none'}."))
    frozen = {value.name: as_declared(path, value, frozen[value.name])
              for value in model.graph.input if value.name in frozen}
    opset = next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), 0)
    return OnnxModel(path, sha256_of(path), inputs, [o.name for o in model.graph.output],
                     [sha256_of(file) for file in files], opset=opset, frozen=frozen,
                     cut=tuple(cut), shapes=tuple(_shape(o) for o in model.graph.output),
                     dtypes=tuple(_dtype(o) for o in model.graph.output), notes=tuple(notes),
                     metadata={item.key: item.value for item in model.metadata_props})


def _shape(value: onnx.ValueInfoProto) -> tuple[int | None, ...] | None:
    """A tensor's shape as the file states it; None where it does not."""
    tensor = value.type.tensor_type
    return None if not tensor.HasField("shape") else tuple(
        d.dim_value if d.HasField("dim_value") and d.dim_value >= 0 else None
        for d in tensor.shape.dim)


def _dtype(value: onnx.ValueInfoProto) -> str | None:
    """A tensor's type as the file states it; None where it does not, or NumPy has no such type."""
    try:
        return np.dtype(onnx.helper.tensor_dtype_to_np_dtype(
            value.type.tensor_type.elem_type)).name
    except KeyError:
        return None


def _read_input(path: Path, value: onnx.ValueInfoProto) -> ModelInput:
    if value.type.WhichOneof("value") != "tensor_type":
        kind = (value.type.WhichOneof("value") or "thing_type").replace("_type", "")
        raise ToolError(MALFORMED_FILE, (
            f"{path} cannot be compiled: its input '{value.name}' is no tensor but a {kind}; "
            "export the network with tensors as inputs."))
    try:
        dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type))
    except KeyError:
        raise ToolError(MALFORMED_FILE, f"{path} does not say of what type its input "
                                        f"'{value.name}' is.") from None
    return ModelInput(value.name, _shape(value), dtype)


def run_onnx(path: Path, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
    """The model's outputs in ONNX Runtime and nowhere else."""
    return onnxruntime_process.run(str(path), inputs)
