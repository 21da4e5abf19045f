"""What flows along the edges of a graph: tensors of known shape, lists of them, and options."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from run_model_tools import few_bits
from run_model_tools.onnx_repair.refusal import NodeRefused, Refused, invalid, not_constant

FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16)
SIGNED = (TensorProto.INT8, TensorProto.INT16, TensorProto.INT32, TensorProto.INT64)
UNSIGNED = (TensorProto.UINT8, TensorProto.UINT16, TensorProto.UINT32, TensorProto.UINT64)
INTEGERS = SIGNED + UNSIGNED
NUMBERS = FLOATS + INTEGERS
COMPUTED = (*NUMBERS, TensorProto.BOOL)
"""The element types that compiled code computes with."""


class Value:
    """A tensor of the repaired graph; `array` is what it holds, where that is constant."""

    def __init__(self, name: str, elem_type: int, shape: tuple[int, ...],
                 tensor: TensorProto | None = None, array: np.ndarray | None = None) -> None:
        self.name = name
        self.elem_type = elem_type
        self.shape = shape
        self.tensor = tensor
        self._array = array
        self.varies = False
        """Of a constant: it says how large something of open extents is (open_extents.py)."""
        self.counts_in: tuple[int, ...] | None = None
        """Of a pooling's places, the shape of the tensor in which they are counted."""
        self.pictures: Value | None = None
        """Of a value over three axes, its planes as pictures (rules/volumes.py)."""
        self.extents_of: Chosen | None = None
        """Of which rows it is the shape, or the number."""
        self.known: np.ndarray | None = None
        """What it holds, where that is known and it is computed all the same: quantised
        constants, whose numbers kernels of bytes take as they are stored."""

    @property
    def is_constant(self) -> bool:
        return self.tensor is not None or self._array is not None

    @property
    def array(self) -> np.ndarray | None:
        """Read-only, and None of what is known at run time only."""
        if self._array is None and self.tensor is not None:
            self._array = array_of(self.tensor)
        return self._array

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(helper.tensor_dtype_to_np_dtype(self.elem_type))

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def is_float(self) -> bool:
        return self.elem_type in FLOATS

    @property
    def type_name(self) -> str:
        return type_name(self.elem_type)

    def ints(self) -> list[int] | None:
        """The whole numbers of a constant, flat; None of anything else."""
        return None if self.array is None else [int(x) for x in self.array.ravel()]

    def type_proto(self) -> onnx.TypeProto:
        return helper.make_tensor_type_proto(self.elem_type, self.shape)


@dataclass(frozen=True)
class Whole:
    """Whole numbers of a type without bytes of its own, and a type that holds them."""

    bits: int
    low: int
    high: int
    held: type


# Types that the ONNX here does not know.
FLOAT4, FLOAT8_SCALE, UINT2, INT2 = 23, 24, 25, 26
LATER = {FLOAT4: "float4e2m1", FLOAT8_SCALE: "float8e8m0", UINT2: "uint2", INT2: "int2"}
NARROW_WHOLES = {TensorProto.INT4: Whole(4, -8, 7, np.int8),
                 TensorProto.UINT4: Whole(4, 0, 15, np.uint8),
                 UINT2: Whole(2, 0, 3, np.uint8), INT2: Whole(2, -2, 1, np.int8)}
NARROW_FLOATS = {**dict.fromkeys((TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E4M3FNUZ,
                                  TensorProto.FLOAT8E5M2, TensorProto.FLOAT8E5M2FNUZ), 8),
                 FLOAT4: 4, FLOAT8_SCALE: 8}
"""Bits of floats that nothing computes with: constants, and what others are rounded to."""


def narrow_bits(elem_type: int) -> int | None:
    """How many bits a number of one of these types takes; None of any other."""
    whole = NARROW_WHOLES.get(elem_type)
    return whole.bits if whole else NARROW_FLOATS.get(elem_type)


def array_of(tensor: TensorProto) -> np.ndarray:
    """The numbers of a tensor; ONNX calls Python for each of 4 bits, and of 8 where they are
    floats, whose negative ones it does not read."""
    kind, bits = tensor.data_type, narrow_bits(tensor.data_type)
    known = kind in TensorProto.DataType.values()
    if bits is None or known and not tensor.raw_data:
        return numpy_helper.to_array(tensor)
    stored = np.frombuffer(tensor.raw_data or bytes(tensor.int32_data), np.uint8)
    parts = stored[:, None] >> np.arange(0, 8, bits, np.uint8)
    whole: np.ndarray = parts & np.uint8((1 << bits) - 1)
    whole = whole.reshape(-1)[:int(np.prod(tensor.dims, dtype=np.int64))].reshape(tensor.dims)
    if kind in NARROW_FLOATS:
        return _table_of(kind)[whole]
    if NARROW_WHOLES[kind].low:
        sign = np.uint8(1 << bits - 1)
        whole = (whole ^ sign).astype(np.int8) - np.int8(sign)
    return whole.astype(helper.tensor_dtype_to_np_dtype(kind)) if known else whole


@cache
def _table_of(kind: int) -> np.ndarray:
    """What each pattern of bits of a type of NARROW_FLOATS means."""
    if kind == FLOAT4:
        return few_bits.FLOAT4
    if kind == FLOAT8_SCALE:
        return np.array([*(2.0 ** np.arange(-127, 128)), np.nan], np.float32)
    return numpy_helper.to_array(TensorProto(data_type=kind, dims=[256], int32_data=range(256)))


class Sequence(list):
    """A sequence of known length; `elem_type` is that of its tensors."""

    def __init__(self, items: Any = (), elem_type: int = TensorProto.FLOAT) -> None:
        super().__init__(items)
        self.elem_type = items[0].elem_type if items else elem_type


@dataclass
class Option:
    """An optional that holds something or, known beforehand, nothing."""

    held: Value | Sequence | None


@dataclass
class Chosen:
    """Rows of a tensor, at which a mask of as many elements holds, one after another; only the run
    time knows how many these are (rules/chosen/rows.py)."""

    rows: Value
    mask: Value
    why: NodeRefused
    """What is said where it cannot be followed."""
    along: int = 0
    """The axis of the tensor along which the rows lie; it is the first of `rows`."""
    cut: bool = False
    """Whether as many of them are taken as something else says."""
    first: bool = False
    """Whether the mask holds at the first places, and at no others."""
    lead: int = 0
    """Axes of one element before that of the rows, which `rows` does not have."""
    of: Chosen | None = None
    """What the rows, whole numbers, are places in: counted among all rows of its tensor."""
    column: int | None = None
    """The only column of the rows that has such places."""

    @property
    def axis(self) -> int:
        """The axis of the tensor along which the rows lie."""
        return self.along or self.lead

    def but(self, **changes: Any) -> Chosen:
        return replace(self, **changes)


Thing = Value | Sequence | Option | Chosen


class Attributes(dict):
    """A node's attributes by name, which know the ones that nobody has looked at."""

    def __init__(self, attributes: Mapping[str, Any]) -> None:
        super().__init__(attributes)
        self.unread: set[object] = set(attributes)

    def __getitem__(self, name: str) -> Any:
        if name not in self:
            raise invalid(f"it has no attribute '{name}', which its operator needs")
        return super().__getitem__(name)

    def __contains__(self, name: object) -> bool:
        self.unread.discard(name)
        return super().__contains__(name)

    def get(self, name: str, default: Any = None) -> Any:
        self.unread.discard(name)
        return super().get(name, default)

    def but(self, *names: str) -> dict[str, Any]:
        """All others, to be handed on."""
        self.unread.clear()
        return {name: value for name, value in self.items() if name not in names}


class Inputs(list):
    """A node's inputs, which know the ones that nobody has looked at."""

    def __init__(self, inputs: Iterable[Thing | None]) -> None:
        given = list(inputs)
        super().__init__(given)
        self.unread = {index for index, item in enumerate(given) if item is not None}

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            self.unread.difference_update(range(*index.indices(len(self))))
        else:
            self.unread.discard(index % len(self) if self else index)
        return super().__getitem__(index)

    def __iter__(self) -> Iterator[Any]:
        """Handed on as a whole."""
        self.unread.clear()
        return super().__iter__()


@dataclass
class Beside:
    """The nodes of one graph, while it is walked."""

    nodes: list[onnx.NodeProto]
    made: dict[int, Any] = field(default_factory=dict)
    """What the rule of one of them has made for another, by id() of the latter."""
    read: set[str] | None = None
    """The names that they or the graph's outputs read, where that is known."""


@dataclass
class Node:
    """A node of the model that is repaired, with what its inputs are now."""

    op: str
    domain: str
    name: str
    opset: int
    """Of its domain."""
    inputs: list[Thing | None]
    attrs: Attributes
    outputs: int
    """How many it has; those at the end that nobody names are not among them."""
    wanted: list[bool]
    """Which of the outputs have a name, and as far as is known a reader."""
    scope: Any = None
    """Where the names in its subgraphs are looked up."""
    proto: onnx.NodeProto = field(default_factory=onnx.NodeProto)
    beside: Beside = field(default_factory=lambda: Beside([]))

    def get(self, index: int) -> Value | None:
        """The tensor that is input `index`, None where it is left out."""
        item = self.inputs[index] if index < len(self.inputs) else None
        if item is None or isinstance(item, Value):
            return item
        if isinstance(item, Option) and isinstance(item.held, Value):
            return item.held
        raise Refused("one of its inputs is a sequence or an optional, where a tensor is expected")

    def tensor(self, index: int) -> Value:
        item = self.get(index)
        if item is None:
            raise Refused(f"its input {index} is missing")
        return item

    def tensors(self) -> list[Value]:
        return [self.tensor(i) for i in range(len(self.inputs))]

    def constant(self, index: int, what: str) -> np.ndarray | None:
        """The array of a constant input, None where it is left out; refuses any other."""
        item = self.get(index)
        if item is None:
            return None
        array = item.known if item.array is None else item.array
        if array is None:
            raise not_constant(what, item.name)
        return array

    def ints(self, index: int, what: str) -> list[int] | None:
        array = self.constant(index, what)
        return None if array is None else [int(x) for x in array.ravel()]

    def axes(self) -> list[int] | None:
        """Of a reduction, Squeeze or Unsqueeze, which are an attribute or an input by its opset."""
        axes = self.attrs.get("axes")
        return self.ints(1, "the axes") if axes is None else axes


def type_name(elem_type: int) -> str:
    """As ONNX writes it: float16, int64 ..."""
    if elem_type not in TensorProto.DataType.values():
        return LATER.get(elem_type, f"unknown (type {elem_type})")
    return {TensorProto.FLOAT: "float32", TensorProto.DOUBLE: "float64"}.get(
        elem_type, TensorProto.DataType.Name(elem_type).lower())
