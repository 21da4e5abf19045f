"""An exported ONNX network without its weights, and one with weights of a seed out of it."""

from __future__ import annotations

import lzma
import sys
from collections.abc import Iterator
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError
from onnx import TensorProto

from run_model_tools.errors import MALFORMED_FILE, MISSING_FILE, ToolError
from run_model_tools.files import write_atomically
from run_model_tools.zoo.modern.tensors import (
    describe,
    entries_of,
    fill_of,
    set_entries,
    values_of,
)

#: Where the new exporter says which line of which source file each node comes from.
STACK_TRACE = "pkg.torch.onnx.stack_trace"


def make_skeleton(path: Path, keep_traces: bool) -> onnx.ModelProto:
    """Of an exporter's file: its model, weights described instead of held."""
    model = onnx.load(str(path), load_external_data=False)
    kept = _quantisation_parameters(model)
    for name, tensor in _tensors(model):
        place = entries_of(tensor)
        if tensor.data_location == TensorProto.EXTERNAL:
            data = (path.parent / place["location"]).open("rb")
            with data:
                data.seek(int(place.get("offset", 0)))
                tensor.raw_data = data.read(int(place["length"]))
            tensor.data_location = TensorProto.DEFAULT
        fill = None if name in kept else fill_of(tensor)
        if fill is not None:
            describe(tensor, fill)
    for node in _nodes(model):
        left = [entry for entry in node.metadata_props if keep_traces or entry.key != STACK_TRACE]
        for entry in left:  # where Python is installed says something about a machine only
            entry.value = entry.value.replace(sys.prefix, "/usr")
        del node.metadata_props[:]
        node.metadata_props.extend(left)
    return model


def fill_skeleton(model: onnx.ModelProto, seed: int, path: Path) -> None:
    """Writes `path`, and beside it the files of weights that the exporter wrote."""
    files: dict[str, bytearray] = {}
    for name, tensor in _tensors(model):
        values = values_of(tensor, name, seed)
        place = {key: value for key, value in entries_of(tensor).items()
                 if key in ("location", "offset", "length", "checksum")}
        if "location" not in place:
            if "fill" in entries_of(tensor):
                tensor.raw_data = values
            set_entries(tensor, {})
            continue
        if Path(place["location"]).name != place["location"]:
            raise ToolError(MALFORMED_FILE, f"a skeleton keeps '{name}' in "
                                            f"'{place['location']}', where a file's name without "
                                            "folders is expected: export it again.")
        file = files.setdefault(place["location"], bytearray())
        offset = int(place.get("offset", 0))
        file.extend(bytes(max(0, offset + len(values) - len(file))))
        file[offset:offset + len(values)] = values
        for field in ("raw_data", "float_data", "int32_data", "int64_data"):
            tensor.ClearField(field)
        tensor.data_location = TensorProto.EXTERNAL
        set_entries(tensor, place)
    for file_name, data in files.items():
        write_atomically(path.parent / file_name, bytes(data))
    write_atomically(path, model.SerializeToString())


def save_skeleton(model: onnx.ModelProto, path: Path) -> None:
    write_atomically(path, lzma.compress(model.SerializeToString(deterministic=True),
                                         format=lzma.FORMAT_XZ, preset=9 | lzma.PRESET_EXTREME))


def load_skeleton(path: Path) -> onnx.ModelProto:
    try:
        return onnx.ModelProto.FromString(lzma.decompress(path.read_bytes()))
    except OSError as error:
        raise ToolError(MISSING_FILE, f"{path} cannot be read: {error.strerror}.") from None
    except (lzma.LZMAError, DecodeError) as error:
        raise ToolError(MALFORMED_FILE, f"{path} is no skeleton, which is an ONNX model compressed "
                                        f"with xz: {error}.") from None


def _quantisation_parameters(model: onnx.ModelProto) -> set[str]:
    """Scales and zero points, which fit the activations and each other."""
    return {name for node in _nodes(model)
            if node.op_type in ("QuantizeLinear", "DequantizeLinear") for name in node.input[1:]}


def _nodes(model: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    """Of the graph, the graphs inside its nodes, and functions."""
    pending = list(model.graph.node)
    for function in model.functions:
        pending.extend(function.node)
    while pending:
        node = pending.pop()
        yield node
        for attribute in node.attribute:
            for graph in (attribute.g, *attribute.graphs):
                pending.extend(graph.node)


def _tensors(model: onnx.ModelProto) -> Iterator[tuple[str, TensorProto]]:
    """Every tensor that the model holds, with a name; those in Constant nodes have the value's."""
    for tensor in model.graph.initializer:
        yield tensor.name, tensor
    for node in _nodes(model):
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield node.output[0], attribute.t
            for graph in (attribute.g, *attribute.graphs):
                for tensor in graph.initializer:
                    yield tensor.name, tensor
