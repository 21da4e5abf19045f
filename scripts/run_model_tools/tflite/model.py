"""A network in TensorFlow Lite's format, and its outputs in LiteRT."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from run_model_tools.environment import BUILD_DIR, DATA_ROOT, PACKAGE
from run_model_tools.errors import MALFORMED_FILE, MISSING_FILE, ToolError
from run_model_tools.files import sha256_of
from run_model_tools.setup.pip_site import pip_site
from run_model_tools.source_model import ModelInput, Scale, SourceModel
from run_model_tools.tflite.as_compiled import TRANSPOSED, as_compiled
from run_model_tools.tflite.file import (
    Malformed,
    TfliteFile,
    TfliteGraph,
    TfliteOperator,
    TfliteTensor,
)
from run_model_tools.tflite.states import read_network

REQUIREMENTS = DATA_ROOT / "scripts" / "requirements-litert.txt"
FOLDER = BUILD_DIR / "litert" / "site"
_PROPERTIES, _MOST_PROPERTIES = "metadata.json", 1 << 20


@dataclass(frozen=True)
class TfliteModel(SourceModel):
    """The facts about a .tflite file that end up in an artifact."""

    version: int
    scales: list[Scale | None]
    """Of the outputs."""
    custom_operators: list[str]
    shapes: list[tuple[int | None, ...]]
    """Of the outputs."""
    steps: list[float | None]
    """Of the outputs that are floats, how far apart they are, where they were rounded last."""
    were_bytes: list[bool]
    """Of the outputs that are floats, whether they were bytes then, and not 16 bits."""
    probabilities: list[bool]
    """Of the outputs, whether a softmax made them."""
    rounds: bool
    """Whether numbers are rounded between layers."""
    float_weights: dict[tuple[int, int], np.ndarray]
    """By the numbers of their graphs and tensors, weights of bytes beside floats as what they
    stand for."""
    notes: tuple[str, ...]
    data: bytes | None
    """The file as it is read, where that is another one than the one on disk."""

    file_format: ClassVar[str] = "tflite"
    reference: ClassVar[str] = "litert"
    default_layout: ClassVar[str] = "NHWC"

    def source(self) -> dict[str, Any]:
        return {"tflite_sha256": self.sha256, "tflite_version": self.version,
                **({"notes": list(self.notes)} if self.notes else {})}

    @property
    def output_scales(self) -> list[Scale | None]:
        return self.scales

    @property
    def output_shapes(self) -> list[tuple[int | None, ...] | None]:
        return list(self.shapes)

    @property
    def properties(self) -> dict[str, str]:
        return properties_behind(self.path)

    def why_not_run(self) -> str | None:
        unknown = [name for name in self.custom_operators if name != TRANSPOSED]
        if unknown:
            return f"LiteRT does not have its operators {', '.join(unknown)}"
        try:
            _site()
        except ToolError as error:
            return f"LiteRT is not at hand: {error}"
        return None

    def run(self, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
        # In a process of its own: LiteRT ends the whole process where it finds something wrong.
        with tempfile.TemporaryDirectory(prefix="run_model-") as folder:
            given, got = Path(folder, "inputs.npz"), Path(folder, "outputs.npz")
            np.savez(given, *[inputs[item.name] for item in self.inputs])
            path = self.path
            if TRANSPOSED in self.custom_operators or self.float_weights or self.data:
                path = Path(folder, "as_compiled.tflite")
                path.write_bytes(as_compiled(self.data or self.path.read_bytes(),
                                             self.float_weights))
            request = json.dumps({"site": str(_site()), "model": str(path),
                                  "inputs": str(given), "outputs": str(got)})
            made = subprocess.run(
                [sys.executable, str(PACKAGE / "tflite" / "run_litert.py"), request],
                capture_output=True, text=True, check=False)
            if made.returncode != 0:
                lines = made.stderr.strip().splitlines() or [f"exit status {made.returncode}"]
                raise ToolError(MALFORMED_FILE, f"LiteRT cannot run {self.path}: {lines[-1]}")
            with np.load(got) as outputs:
                return [outputs[f"arr_{i}"] for i in range(len(outputs.files))]


def properties_behind(path: Path) -> dict[str, str]:
    """What is in metadata.json of the archive at a file's end; nothing where there is none."""
    try:
        with zipfile.ZipFile(path) as archive:
            if archive.getinfo(_PROPERTIES).file_size > _MOST_PROPERTIES:
                return {}
            found = json.loads(archive.read(_PROPERTIES))
    except (zipfile.BadZipFile, KeyError, OSError, ValueError, RuntimeError, EOFError,
            NotImplementedError, RecursionError):
        return {}
    return {str(key): str(value) for key, value in found.items()} if isinstance(
        found, dict) else {}


def _site() -> Path:
    return pip_site(REQUIREMENTS, FOLDER, "the package that .tflite files are compared with",
                    "; without it the artifact says that it was not compared")


def is_tflite(path: Path) -> bool:
    """By the file's mark, or by its name where there is none."""
    try:
        with open(path, "rb") as file:
            start = file.read(8)
    except OSError:
        return path.suffix == ".tflite"
    return start[4:] == b"TFL3" or path.suffix == ".tflite"


def read_tflite(path: Path) -> TfliteModel:
    """Reads a .tflite file; raises ToolError (3, 4) with what is wrong with it."""
    if not path.is_file():
        raise ToolError(MISSING_FILE, f"{path} is not there, or is not a file.")
    try:
        file = read_network(path)
    except Malformed as error:
        raise ToolError(MALFORMED_FILE,
                        f"{path} is not a TensorFlow Lite model: {error}.") from None
    except ImportError:
        raise ToolError(MISSING_FILE, (
            f"{path} is a TensorFlow Lite model, and the Python package tflite that reads those "
            "is not installed: run scripts/setup.sh, or pip install tflite.")) from None
    except OSError as error:
        raise ToolError(MISSING_FILE, f"{path} cannot be read: {error.strerror}.") from None
    names = input_names(file)
    inputs = [ModelInput(name, file.tensors[i].shape, np.dtype(file.tensors[i].dtype),
                         scale_of(file.tensors[i]), _span(file, i))
              for name, i in zip(names, file.inputs)]
    before = [_before_floats(file, i) for i in file.outputs]
    return TfliteModel(
        path, sha256_of(path), inputs, [file.tensors[i].name for i in file.outputs], [],
        version=file.version, scales=[scale_of(file.tensors[i]) for i in file.outputs],
        custom_operators=sorted({o.name for g in file.graphs for o in g.operators if o.custom}),
        shapes=[file.tensors[i].shape for i in file.outputs],
        steps=[scale.scale if scale else None for _, scale in before],
        were_bytes=[dtype in ("int8", "uint8") for dtype, _ in before],
        probabilities=[any(o.name == "SOFTMAX" and i in o.outputs for o in file.operators)
                       for i in file.outputs],
        rounds=any(scale_of(g.tensors[i]) for g in file.graphs for o in g.operators
                   for i in o.outputs),
        notes=file.notes, data=file.data if file.notes else None,
        float_weights={(g.number, index): values for g in file.graphs
                       for index, values in _float_weights(g).items()})


def _span(file: TfliteFile, floats: int) -> tuple[float, float] | None:
    readers = [operator for operator in file.operators if floats in operator.inputs]
    if not readers or any(reader.name != "QUANTIZE" for reader in readers):
        return None
    made = file.tensors[readers[0].outputs[0]]
    scale = scale_of(made)
    if scale is None:
        return None
    whole = np.iinfo(made.dtype)
    low, high = ((end - scale.zero_point) * scale.scale for end in (whole.min, whole.max))
    return low, high


def _before_floats(file: TfliteFile, output: int) -> tuple[str, Scale | None]:
    """Of a float output, the type of the whole numbers that it was made of, and their scale."""
    for operator in file.operators:
        if output in operator.outputs and operator.name == "DEQUANTIZE":
            source = file.tensors[operator.inputs[0]]
            return source.dtype, scale_of(source)
    return "", None


def _float_weights(graph: TfliteGraph) -> dict[int, np.ndarray]:
    """Of operators on floats: LiteRT rounds what these are multiplied by, too."""
    users: dict[int, list[TfliteOperator]] = {}
    for operator in graph.operators:
        for index in operator.inputs:
            users.setdefault(index, []).append(operator)
    found = {}
    for index, operators in users.items():
        tensor = graph.tensors[index]
        if tensor.in_blocks and tensor.constant is not None:
            found[index] = tensor.constant
        elif (tensor.constant is not None and tensor.quantized is not None
                and tensor.dtype in ("int8", "uint8")
                and all(o.name not in ("CAST", "DEQUANTIZE")
                        and all(graph.tensors[i].dtype == "float32" for i in o.outputs)
                        for o in operators)):
            found[index] = tensor.quantized.to_numbers(tensor.constant)
    return found


def input_names(file: TfliteFile) -> list[str]:
    """What the inputs are called: as in the file, unless that is nothing or not unique there."""
    found = [file.tensors[i].name for i in file.inputs]
    return [name if name and found.count(name) == 1 else f"input_{i}"
            for i, name in enumerate(found)]


def scale_of(tensor: TfliteTensor) -> Scale | None:
    """How an input's or output's whole numbers stand for others, if they do."""
    if tensor.quantized is None or len(tensor.quantized.scales) != 1 or (
            np.dtype(tensor.dtype).kind not in "iu"):
        return None
    # The shortest decimals that are this float32.
    return Scale(float(str(tensor.quantized.scales[0])), int(tensor.quantized.zero_points[0]))
