"""Tensors as a file of ONNX stores them: whether what is there is what their shapes need.

ONNX's own reader cuts what lies beside the model short without a word, and reads to the file's end
where no length is given.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
from google.protobuf.message import Message
from onnx import SparseTensorProto, TensorProto, helper, numpy_helper

from run_model_tools.errors import MALFORMED_FILE, MISSING_FILE, ToolError
from run_model_tools.onnx_repair.refusal import Refused
from run_model_tools.onnx_repair.values import narrow_bits

_IN_PAIRS = (TensorProto.COMPLEX64, TensorProto.COMPLEX128)
# Of types that NumPy has not, which are others there.
_BYTES = {TensorProto.BFLOAT16: 2}
_MOST_BYTES = 1 << 31
"""Of a sparse tensor as a whole: its shape may name any number of zeros."""


def parts_of(message: Message) -> Iterator[Message]:
    """All messages of a model or a part of one, also in subgraphs and functions; tensors whole."""
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        for part in (value,) if isinstance(value, Message) else value:
            yield part
            if not isinstance(part, TensorProto):
                yield from parts_of(part)


def tensors_of(message: Message) -> Iterator[TensorProto]:
    """Weights, those of attributes, subgraphs and functions, and both of a sparse one."""
    return (part for part in parts_of(message) if isinstance(part, TensorProto))


def files_beside(path: Path, model: onnx.ModelProto | None = None) -> list[Path]:
    """The files in the folder of `path` that hold tensors of its model, sorted; links of that
    folder may lead anywhere, as in a cache of downloads.

    model: what the file `path` holds without them, where it has been read already.
    Raises ToolError (3, 4) for tensors that are not there; one without a length gets it.
    """
    files: dict[str, Path] = {}
    if model is None:
        model = onnx.load(str(path), load_external_data=False)
    for tensor in tensors_of(model):
        if tensor.data_location == TensorProto.EXTERNAL:
            place = next((e.value for e in tensor.external_data if e.key == "location"), "")
            if place not in files:
                files[place] = _file(path, place, tensor.name)
            _check_place(path, tensor, place, files[place].stat().st_size)
    return [files[place] for place in sorted(files)]


def _file(path: Path, place: str, name: str) -> Path:
    if "_ORT_MEM_ADDR_" in place:
        raise ToolError(MISSING_FILE, (
            f"{path} has no weights: ONNX Runtime wrote where they lay in its memory when it "
            "optimised the file; compile the file before that."))
    if not place:
        raise ToolError(MALFORMED_FILE, f"{path} does not say in which file the weights '{name}' "
                                        "lie; export the network once more.")
    inside = not Path(place).is_absolute() and ".." not in Path(place).parts
    if not inside or not (path.parent / place).is_file():
        raise ToolError(MISSING_FILE, f"{path} keeps weights in '{place}', which is no file in its "
                                      "folder.")
    return path.parent / place


def _check_place(path: Path, tensor: TensorProto, place: str, size: int) -> None:
    wanted = _stored_bytes(path, tensor)
    said = {entry.key: entry.value for entry in tensor.external_data}
    try:
        offset, length = int(said.get("offset", 0)), int(said.get("length", wanted))
    except ValueError:
        offset = length = -1
    if offset < 0 or length != wanted:
        raise ToolError(MALFORMED_FILE, (
            f"{path} says that the weights '{tensor.name}' are {said.get('length', 'all')} bytes "
            f"from byte {said.get('offset', 0)} of '{place}' on, and their shape "
            f"{list(tensor.dims)} needs {wanted}; export the network once more."))
    if offset + length > size:
        raise ToolError(MALFORMED_FILE, (
            f"{path} keeps the weights '{tensor.name}' in bytes {offset} to {offset + length} of "
            f"'{place}', which has {size}; it is cut short, or another network's: copy both files "
            "once more."))
    if "length" not in said:
        tensor.external_data.add(key="length", value=str(length))


def check_lengths(path: Path, model: onnx.ModelProto) -> None:
    """That as many numbers are stored of each tensor of a model as its shape needs, once what lies
    beside it is read; raises ToolError (4)."""
    for tensor in tensors_of(model):
        wanted, unit = _stored_bytes(path, tensor), "bytes"
        if tensor.HasField("raw_data"):
            found = len(tensor.raw_data)
        else:
            wanted, unit = _stored_numbers(tensor), "numbers"
            field = "int32_data" if narrow_bits(tensor.data_type) else (
                helper.tensor_dtype_to_field(tensor.data_type))
            found = len(getattr(tensor, field))
        if found != wanted:
            raise ToolError(MALFORMED_FILE, (
                f"{path} has {found} {unit} of the tensor '{tensor.name}', and its shape "
                f"{list(tensor.dims)} needs {wanted}; it is damaged, or was written wrongly: "
                "export the network once more."))


def stored_bytes(model: onnx.ModelProto) -> int:
    """What the tensors of a valid model take in a file, all of them in it: protocol buffers say
    that by making the file, in several times the memory."""
    return sum(_stored_bytes(Path(), tensor) for tensor in tensors_of(model))


def _stored_bytes(path: Path, tensor: TensorProto) -> int:
    if any(extent < 0 for extent in tensor.dims):
        raise ToolError(MALFORMED_FILE, f"{path} has a tensor '{tensor.name}' of the shape "
                                        f"{list(tensor.dims)}; export the network once more.")
    if narrow_bits(tensor.data_type) is not None:
        return _stored_numbers(tensor)
    try:
        dtype = helper.tensor_dtype_to_np_dtype(tensor.data_type)
    except KeyError:
        raise ToolError(MALFORMED_FILE, (
            f"{path} has a tensor '{tensor.name}' of type {tensor.data_type} of ONNX, which is not "
            "known here; export the network in float32 or whole numbers.")) from None
    return math.prod(tensor.dims) * _BYTES.get(tensor.data_type, dtype.itemsize)


def _stored_numbers(tensor: TensorProto) -> int:
    """How many a field of numbers has."""
    count = math.prod(tensor.dims)
    if (bits := narrow_bits(tensor.data_type)) is not None:
        return (count * bits + 7) // 8
    return count * (2 if tensor.data_type in _IN_PAIRS else 1)


def spread(sparse: SparseTensorProto) -> np.ndarray:
    """A sparse tensor as a whole one; raises Refused with what is wrong with it."""
    dims = tuple(sparse.dims)
    values, places = numpy_helper.to_array(sparse.values), numpy_helper.to_array(sparse.indices)
    size = math.prod(dims)
    if size * values.itemsize > _MOST_BYTES:
        raise Refused(f"the sparse tensor '{sparse.values.name}' of the shape {list(dims)} has "
                      "more than 2 GB as a whole", "export the network without it.", "invalid")
    if places.ndim == 2 and places.shape == (len(values), len(dims)) and (
            (places >= 0) & (places < dims)).all():
        places = np.ravel_multi_index(tuple(places.T), dims)
    if places.shape != values.shape or values.ndim != 1 or (
            (places < 0) | (places >= size)).any() or len(np.unique(places)) != len(places):
        raise Refused(f"the sparse tensor '{sparse.values.name}' of the shape {list(dims)} does "
                      "not have one place in it for each of its values",
                      "export the network once more.", "invalid")
    whole = np.zeros(size, values.dtype)
    whole[places] = values
    return whole.reshape(dims)
