"""TensorFlow Lite's Model Metadata in a .tflite file (metadata_schema.fbs of MediaPipe), of image
classifiers: how pixels become numbers, and the names of the classes.

A picture is squashed to the input, as MediaPipe's ImageClassifier does with such files; of other
networks the metadata does not say how a picture comes to the input's size, and nothing is taken.
"""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from run_model_tools.errors import MALFORMED_FILE, ToolError
from run_model_tools.pictures.preprocessing import Preprocessing, from_json
from run_model_tools.source_model import ModelInput, Scale

_NAME = b"TFLITE_METADATA"
_MOST, _MOST_LABEL_BYTES = 10_000, 1 << 24
# Fields by their numbers in the schema, and values of its enumerations.
_SUBGRAPHS, _INPUTS, _OUTPUTS = 3, 2, 3
_PROCESS_UNITS, _ASSOCIATED_FILES = 4, 6
_NORMALIZATION, _TENSOR_AXIS_LABELS = 1, 2


@dataclass(frozen=True)
class Metadata:
    """What it says of a network with one input and one output."""

    mean: list[float]
    std: list[float]
    """Of pixels of 0 to 255, for all channels or each; nothing where it says nothing."""
    labels: list[str]


class _Table:
    """A table of a flat buffer; offsets that lead out of it raise struct.error or IndexError."""

    def __init__(self, data: bytes, position: int) -> None:
        from flatbuffers.table import Table

        self._data, self._table = data, Table(data, position)

    @classmethod
    def root(cls, data: bytes) -> _Table:
        return cls(data, struct.unpack_from("<I", data, 0)[0])

    def byte(self, field: int) -> int:
        place = self._place(field)
        return self._data[self._table.Pos + place] if place else 0

    def text(self, field: int) -> str:
        place = self._place(field)
        return self._table.String(self._table.Pos + place).decode() if place else ""

    def table(self, field: int) -> _Table | None:
        place = self._place(field)
        return _Table(self._data, self._table.Indirect(self._table.Pos + place)) if place else None

    def tables(self, field: int) -> list[_Table]:
        start, count = self._vector(field)
        return [_Table(self._data, self._table.Indirect(start + 4 * i)) for i in range(count)]

    def numbers(self, field: int) -> list[float]:
        start, count = self._vector(field)
        return [struct.unpack_from("<f", self._data, start + 4 * i)[0] for i in range(count)]

    def _place(self, field: int) -> int:
        return int(self._table.Offset(4 + 2 * field))

    def _vector(self, field: int) -> tuple[int, int]:
        place = self._place(field)
        if not place:
            return 0, 0
        count = self._table.VectorLen(place)
        if count > _MOST:
            raise IndexError(f"a list of {count}")
        return self._table.Vector(place), count


def read(path: Path) -> Metadata | None:
    """What is in a file that has been read as a network; None where it has no such metadata, or is
    of several inputs or outputs.  Raises ToolError (4) where that is damaged."""
    data = path.read_bytes()
    try:
        buffer = _buffer(data)
        return None if buffer is None else _read(buffer, data)
    except (struct.error, IndexError, ValueError, TypeError, KeyError, OverflowError,
            zipfile.BadZipFile, EOFError, RuntimeError) as error:
        raise ToolError(MALFORMED_FILE, f"the metadata of {path} is damaged "
                                        f"({type(error).__name__}).") from None


def _buffer(data: bytes) -> bytes | None:
    import tflite

    model = tflite.Model.GetRootAs(data, 0)
    for i in range(min(model.MetadataLength(), _MOST)):
        entry: Any = model.Metadata(i)
        if entry.Name() == _NAME and entry.Buffer() < model.BuffersLength():
            found = model.Buffers(entry.Buffer()).DataAsNumpy()
            return found.tobytes() if isinstance(found, np.ndarray) else None
    return None


def _read(buffer: bytes, data: bytes) -> Metadata | None:
    graphs = _Table.root(buffer).tables(_SUBGRAPHS)
    if not graphs:
        return None
    inputs, outputs = graphs[0].tables(_INPUTS), graphs[0].tables(_OUTPUTS)
    if len(inputs) != 1 or len(outputs) != 1:
        return None
    mean, std = list[float](), list[float]()
    for unit in inputs[0].tables(_PROCESS_UNITS):
        options = unit.table(1)
        if unit.byte(0) == _NORMALIZATION and options is not None:
            mean, std = options.numbers(0), options.numbers(1)
    names = [file.text(0) for file in outputs[0].tables(_ASSOCIATED_FILES)
             if file.byte(2) == _TENSOR_AXIS_LABELS]
    return Metadata(mean, std, _labels(data, names[0]) if names else [])


def _labels(data: bytes, name: str) -> list[str]:
    """The lines of a file in the archive that lies behind the network."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        if archive.getinfo(name).file_size > _MOST_LABEL_BYTES:
            raise ValueError(name)
        return archive.read(name).decode("utf-8-sig").splitlines()


def tasks_of(found: Metadata, shapes: Sequence[tuple[int | None, ...] | None],
             ) -> list[dict[str, Any]]:
    """Classification, where there is a name for each number of the network's only output."""
    (shape,) = shapes
    if shape is None or len(shape) != 2 or shape[1] != len(found.labels):
        return []
    return [{"kind": "classification", "output": 0, "labels": found.labels}]


def preprocessing_of(found: Metadata, given: ModelInput, what: str) -> Preprocessing:
    """Raises ToolError (4) where it does not say what becomes of pixels."""
    mean, std = ([*numbers] * (3 // max(len(numbers), 1)) for numbers in (found.mean, found.std))
    if given.dtype == np.uint8:
        mean, std = [0.0] * 3, [1.0] * 3  # Pixels as they are.
    elif given.dtype == np.int8 and given.scale is not None and len(mean) == len(std) == 3:
        mean, std = _stored(mean, std, given.scale)
    return from_json({"resizer": "cv2-warp", "fit": "squash", "color_order": "RGB",
                      "divide_by": 1.0, "mean": mean, "std": std}, what)


def _stored(mean: list[float], std: list[float], scale: Scale) -> tuple[list[float], list[float]]:
    """For the whole numbers that stand for the others."""
    return ([m - scale.zero_point * scale.scale * s for m, s in zip(mean, std)],
            [s * scale.scale for s in std])
