"""One file with the weights of several models that have many in common."""

from __future__ import annotations

import hashlib
from pathlib import Path

import onnx

_LEAST = 4096
"""Bytes of what is put there."""


class WeightsFile:
    """Models lie beside it, and name it as where their data are."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._places: dict[str, tuple[int, int]] = {}
        self._end = 0

    def take(self, model: onnx.ModelProto) -> None:
        """Puts the model's large initializers into the file, equal ones once."""
        for tensor in model.graph.initializer:
            # Read once, since each time is a copy.
            data = tensor.raw_data
            if len(data) < _LEAST:
                continue
            offset, length = self._place(data)
            name, kind, dims = tensor.name, tensor.data_type, list(tensor.dims)
            tensor.Clear()
            tensor.name, tensor.data_type = name, kind
            tensor.dims.extend(dims)
            tensor.data_location = onnx.TensorProto.EXTERNAL
            for key, value in (("location", self._path.name), ("offset", str(offset)),
                               ("length", str(length))):
                tensor.external_data.add(key=key, value=value)

    def _place(self, data: bytes) -> tuple[int, int]:
        digest = hashlib.sha256(data).hexdigest()
        if digest not in self._places:
            with open(self._path, "ab") as file:
                file.write(data)
            self._places[digest] = (self._end, len(data))
            self._end += len(data)
        return self._places[digest]
