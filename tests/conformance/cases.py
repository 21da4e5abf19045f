"""ONNX's backend tests as cases: a model, inputs, and the outputs that it has to give."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from run_model_tools.onnx_repair.refusal import NodeRefused
from run_model_tools.onnx_repair.repair import load, repair

DATA = Path(onnx.__file__).parent / "backend" / "test" / "data"
KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator", "light")


@dataclass
class Case:
    """One test; `inputs` by name, in the model's order; those in `frozen` become constants."""

    name: str
    path: Path
    kind: str
    rtol: float
    atol: float
    frozen: set[str] = field(default_factory=set)

    @cached_property
    def model(self) -> onnx.ModelProto:
        return load(self.path)

    @cached_property
    def inputs(self) -> dict[str, np.ndarray]:
        initializers = {t.name for t in self.model.graph.initializer}
        values = [v for v in self.model.graph.input if v.name not in initializers]
        if self.kind == "light":
            return {v.name: _counted(v) for v in values}
        return {v.name: self._as_numbers(v.name, _read(file))
                for v, file in zip(values, self._files("input"))}

    @cached_property
    def outputs(self) -> list[np.ndarray]:
        if self.kind == "light":
            return [_read(self.path.with_name(f"{self.path.stem}_output_0.pb"))]
        return [self._as_numbers(v.name, _read(file))
                for v, file in zip(self.model.graph.output, self._files("output"))]

    def _as_numbers(self, name: str, array: np.ndarray) -> np.ndarray:
        """The files hold the bits of bfloat16: those of float32 without the last 16."""
        if name not in self._bfloat16:
            return array
        return (array.astype(np.uint32) << 16).view(np.float32)

    @cached_property
    def _bfloat16(self) -> set[str]:
        graph = onnx.load(str(self.path), load_external_data=False).graph
        return {v.name for v in (*graph.input, *graph.output)
                if v.type.tensor_type.elem_type == TensorProto.BFLOAT16}

    def _files(self, what: str) -> list[Path]:
        folder = self.path.parent / "test_data_set_0"
        return sorted(folder.glob(f"{what}_*.pb"), key=lambda p: int(p.stem.split("_")[1]))

    @property
    def has_tensors_only(self) -> bool:
        """Numbers in and out: no strings, sequences, optionals or maps."""
        return all(v.type.WhichOneof("value") == "tensor_type"
                   and v.type.tensor_type.elem_type != TensorProto.STRING
                   for v in (*self.model.graph.input, *self.model.graph.output))

    def frozen_arrays(self) -> dict[str, np.ndarray]:
        return {name: self.inputs[name] for name in self.frozen}

    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {name: array.shape for name, array in self.inputs.items()
                if name not in self.frozen}

    def repaired(self) -> onnx.ModelProto:
        """Freezes what the repair asks for, as a user would; raises ToolError."""
        while True:
            try:
                return repair(self.model, self.shapes(), self.frozen_arrays(), self.name,
                              counts=True)
            except NodeRefused as refused:
                more = self._parameters() - self.frozen
                named = {name for name in more if f"--freeze {name}=" in str(refused)}
                scalars = all(array.size <= 1 for array in self.inputs.values())
                if not more or not (refused.kind == "run-time parameter"
                                    or refused.kind == "operator" and scalars):
                    raise
                self.frozen |= named or more

    def _parameters(self) -> set[str]:
        """Inputs that may be parameters: whole numbers and conditions after the first input, and
        scales."""
        scalars = all(array.size <= 1 for array in self.inputs.values())
        return {name for index, (name, array) in enumerate(self.inputs.items())
                if array.dtype.kind in "iub" and (index or len(self.inputs) == 1
                                                  or array.ndim <= 1)
                or array.ndim <= 1 and array.size <= 16 and (index or scalars)}


def all_cases(kinds: tuple[str, ...] = KINDS) -> Iterator[Case]:
    from onnx.backend.test import loader

    for kind in kinds:
        if kind == "light":
            for path in sorted((DATA / "light").glob("*.onnx")):
                yield Case(path.stem, path, kind, 2e-3, 1e-4)
            continue
        for test in loader.load_model_tests(kind=kind):
            yield Case(test.name, Path(test.model_dir, "model.onnx"), kind, test.rtol, test.atol)


def _read(path: Path) -> np.ndarray:
    tensor = TensorProto()
    tensor.ParseFromString(path.read_bytes())
    return numpy_helper.to_array(tensor)


def _counted(value: onnx.ValueInfoProto) -> np.ndarray:
    """The input of a "light" case, which the backend tests make themselves."""
    shape = tuple(d.dim_value for d in value.type.tensor_type.shape.dim)
    size = int(np.prod(shape))
    return (np.arange(size).reshape(shape) / np.float32(size)).astype(np.float32)
