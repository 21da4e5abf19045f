"""A trained network in a file, whatever its format: its inputs and outputs, and its own runtime."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from run_model_tools.errors import MISMATCH, USAGE, ToolError

Shapes = dict[str, tuple[int, ...]]
"""Of inputs, by their names."""


@dataclass(frozen=True)
class Scale:
    """How the whole numbers of a tensor stand for others: scale * (number - zero_point)."""

    scale: float
    zero_point: int


@dataclass(frozen=True)
class ModelInput:
    """An input that the user sets; an extent of None is left open by the model."""

    name: str
    shape: tuple[int | None, ...] | None
    """None where the model does not even say how many axes there are."""
    dtype: np.dtype
    scale: Scale | None = None
    span: tuple[float, float] | None = None
    """Of floats that are rounded to whole numbers first of all: what these can stand for."""


@dataclass(frozen=True)
class SourceModel(ABC):
    """The facts about a model that end up in an artifact."""

    path: Path
    sha256: str
    inputs: list[ModelInput]
    outputs: list[str]
    data_sha256: list[str]
    """Of the files beside it that hold its weights, if any."""

    file_format: ClassVar[str]
    """What the worker is asked for by: "onnx", "tflite"."""
    reference: ClassVar[str]
    """The program that `run` runs it in, as metadata.json names it."""
    default_layout: ClassVar[str]
    """Of a picture whose shape does not tell."""

    @abstractmethod
    def source(self) -> dict[str, Any]:
        """metadata.json's "source"."""

    @abstractmethod
    def why_not_run(self) -> str | None:
        """Why the reference cannot run it here, or None."""

    @abstractmethod
    def run(self, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
        """The outputs in the reference, on one thread so that sums are added in one order."""

    def run_by(self, inputs: dict[str, np.ndarray]) -> tuple[list[np.ndarray], str]:
        """The outputs in the reference, and which one it was where there are several."""
        return self.run(inputs), self.reference

    def key(self) -> list[Any]:
        """What decides, of the model, what is compiled."""
        return [self.sha256, *self.data_sha256]

    def request(self) -> dict[str, Any]:
        """What the worker is told of it."""
        return {self.file_format: str(self.path.resolve())}

    @property
    def output_shapes(self) -> list[tuple[int | None, ...] | None]:
        """Of each output, as far as the file says."""
        return [None] * len(self.outputs)

    @property
    def output_dtypes(self) -> list[str | None]:
        """Of each output, as far as the file says."""
        return [None] * len(self.outputs)

    @property
    def output_scales(self) -> list[Scale | None]:
        """Of each output, where it holds whole numbers that stand for others."""
        return [None] * len(self.outputs)

    @property
    def properties(self) -> dict[str, str]:
        """What its exporter wrote into the file about it, by names of its own."""
        return {}


def parse_shape(text: str) -> tuple[str, tuple[int, ...]]:
    """"data:1,3,224,224" (or 1x3x224x224) -> ("data", (1, 3, 224, 224)); names may hold colons."""
    match = re.fullmatch(r"(.+):(\d+(?:[,x]\d+)*)", text)
    if match is None or "0" in re.split("[,x]", match[2]):
        raise ToolError(USAGE, f"--shape {text} is not of the form INPUT:D0,D1,... with whole "
                               "numbers above 0.")
    return match[1], tuple(int(d) for d in re.split("[,x]", match[2]))


def resolve_shapes(model: SourceModel,
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
    shapes, missing = {}, {}
    for item in model.inputs:
        wanted: tuple[int, ...] | None = given.get(item.name)
        if item.shape is None:
            if wanted is None:
                raise ToolError(USAGE, f"{model.path} does not say what shape its input "
                                       f"'{item.name}' has: add --shape {item.name}:D0,D1,...")
            shapes[item.name] = wanted
            continue
        known = tuple(d for d in item.shape if d is not None)
        if wanted is None and item.shape and item.shape[0] is None and known == item.shape[1:]:
            wanted = (1, *known)
        elif wanted is None and known == item.shape:
            wanted = known
        if wanted is None:
            missing[item.name] = ",".join("?" if d is None else str(d) for d in item.shape)
            continue
        if len(wanted) != len(item.shape) or any(
                d is not None and d != w for d, w in zip(item.shape, wanted)):
            raise ToolError(MISMATCH, f"--shape {item.name}:{','.join(map(str, wanted))} "
                                      f"contradicts {model.path}, which says {item.shape}.")
        shapes[item.name] = tuple(int(d) for d in wanted)
    if missing:
        what = "shape of its input" if len(missing) == 1 else "shapes of its inputs"
        which = ", ".join(f"'{name}' open ({text})" for name, text in missing.items())
        how = " ".join(f"--shape {name}:{text.replace('?', '1')}"
                       for name, text in missing.items())
        raise ToolError(USAGE, f"{model.path} leaves the {what} {which}: add {how} with the "
                               "extents that you want.")
    return shapes
