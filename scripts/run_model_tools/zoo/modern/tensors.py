"""A tensor's description in a skeleton, and the values that a seed fills it with.

A described tensor has its name, shape and type but no values; external_data, the list of keys and
texts that ONNX keeps beside a tensor, says how to make them:

  fill      "uniform"
  low, high the range; whole numbers of quantised tensors are rounded to the nearest
  zero_sum  axes (as in "1,2,3") along which the values' sum is zero, as it is in filters that let
            no common mean grow from layer to layer; without it: no such axes

`location`, `offset` and `length` are as the exporter wrote them, where it kept the tensor in a file
of its own.
"""

from __future__ import annotations

import lzma
import math
import zlib
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

#: What a seed may make: weights. Other types hold indices, shapes and flags.
_FILLED_TYPES = {TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.INT8, TensorProto.UINT8}
#: Shorter tensors are kept as they are: a description would hardly be smaller.
_SHORT_BYTES = 512
#: Random values do not get smaller than this share; tables, masks and constants do.
_RANDOM_SHARE = 0.7

_HALF_RANGE = 1 << 15


@dataclass(frozen=True)
class Fill:
    """Values between low and high with equal probability."""

    low: float
    high: float
    zero_sum: tuple[int, ...] = ()

    def entries(self) -> dict[str, str]:
        found = {"fill": "uniform", "low": f"{self.low:.6g}", "high": f"{self.high:.6g}"}
        if self.zero_sum:
            found["zero_sum"] = ",".join(map(str, self.zero_sum))
        return found

    @staticmethod
    def of(entries: dict[str, str]) -> Fill:
        axes = entries.get("zero_sum", "")
        return Fill(float(entries["low"]), float(entries["high"]),
                    tuple(int(axis) for axis in axes.split(",") if axis))


def entries_of(tensor: TensorProto) -> dict[str, str]:
    return {entry.key: entry.value for entry in tensor.external_data}


def set_entries(tensor: TensorProto, entries: dict[str, str]) -> None:
    del tensor.external_data[:]
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=value)


def fill_of(tensor: TensorProto) -> Fill | None:
    """How a seed would make values like the tensor's; None: the tensor is to be kept as it is."""
    values = numpy_helper.to_array(tensor)
    if tensor.data_type not in _FILLED_TYPES or values.nbytes <= _SHORT_BYTES:
        return None
    raw = values.tobytes()[:1 << 16]
    if len(lzma.compress(raw, preset=0)) < _RANDOM_SHARE * len(raw):
        return None
    exact = values.astype(np.float64)
    mean, half_width = float(exact.mean()), math.sqrt(3.0) * float(exact.std())
    low, high = mean - half_width, mean + half_width
    if exact.min() > 0:  # variances and scales
        low, high = max(low, float(exact.min())), min(high, float(exact.max()))
    return Fill(low, high, _zero_sum_axes(exact))


def _zero_sum_axes(values: np.ndarray) -> tuple[int, ...]:
    """The axes of one filter, if every filter's sum is about zero."""
    candidates = [tuple(range(1, values.ndim)), (values.ndim - 2,)] if values.ndim >= 2 else []
    for axes in candidates:
        count = math.prod(values.shape[axis] for axis in axes)
        limit = 0.02 * float(values.std()) * count / math.sqrt(max(count, 1))
        if count > 1 and float(np.abs(values.sum(axes)).max()) < limit:
            return axes
    return ()


def describe(tensor: TensorProto, fill: Fill) -> None:
    """Takes the values out of the tensor and says how to make others."""
    place = entries_of(tensor)
    for field in ("raw_data", "float_data", "int32_data"):
        tensor.ClearField(field)
    set_entries(tensor, place | fill.entries())


def values_of(tensor: TensorProto, name: str, seed: int) -> bytes:
    """The bytes of a tensor of a skeleton: those that it has, or those that the seed makes.

    The same bits on every machine and in any order of asking: whole numbers from the generator
    times constants, so that no library function rounds differently elsewhere.
    """
    entries = entries_of(tensor)
    if "fill" not in entries:
        return numpy_helper.to_array(tensor).tobytes()
    fill = Fill.of(entries)
    random = np.random.Generator(np.random.PCG64([seed, zlib.crc32(name.encode())]))
    values = random.integers(-_HALF_RANGE, _HALF_RANGE, tuple(tensor.dims), dtype=np.int32)
    if fill.zero_sum:
        count = math.prod(tensor.dims[axis] for axis in fill.zero_sum)
        sums = values.sum(fill.zero_sum, dtype=np.int64, keepdims=True)
        values -= (sums // count).astype(np.int32)
    middle, half_width = (fill.low + fill.high) / 2, (fill.high - fill.low) / 2
    exact = values * (half_width / _HALF_RANGE) + middle
    dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        exact = np.clip(np.rint(exact), limits.min, limits.max)
    return exact.astype(dtype).tobytes()
