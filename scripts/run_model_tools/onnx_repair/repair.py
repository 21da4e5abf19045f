"""The way in: a model and what is known of its inputs -> the model that TVM's importer gets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import helper

from run_model_tools.errors import MALFORMED_FILE, MISMATCH, ToolError
from run_model_tools.onnx_repair.bfloat16 import as_float32
from run_model_tools.onnx_repair.exact_quotients import keep_quotients
from run_model_tools.onnx_repair.half_precision import in_float32
from run_model_tools.onnx_repair.importer_dialect import to_dialect
from run_model_tools.onnx_repair.node_order import in_order
from run_model_tools.onnx_repair.outputs import needed, reads, where_to_cut, with_outputs
from run_model_tools.onnx_repair.refusal import NodeRefused, Refused
from run_model_tools.onnx_repair.rules.chosen.axes import rows_of_output
from run_model_tools.onnx_repair.smallest_cut import UNCUTTABLE
from run_model_tools.onnx_repair.stored_tensors import (
    check_lengths,
    files_beside,
    spread,
    stored_bytes,
)
from run_model_tools.onnx_repair.values import (
    Beside,
    Chosen,
    Thing,
    Value,
    narrow_bits,
    type_name,
)
from run_model_tools.onnx_repair.walk import RELAY, Walk, check_type
from run_model_tools.onnx_repair.weights_file import WeightsFile

_LARGE = 1 << 26
"""Bytes of weights that go to a file of their own: protocol buffers take several times the memory
of a file to make it."""

_COUNTED = "counted_outputs"


def repair(model: onnx.ModelProto, shapes: Mapping[str, tuple[int, ...]],
           frozen: Mapping[str, np.ndarray] | None = None,
           path: str = "the model", importer: str = RELAY,
           is_open: bool = False, keeps_layers: bool = False,
           counts: bool = False) -> onnx.ModelProto:
    """An equal model of opset 18, of plain operators, fixed shapes and the same outputs.

    shapes: of every input that is not frozen and leaves an extent open.  frozen: constants in the
    place of inputs.  path: how errors name the model.  importer: which of TVM's is to read it.
    is_open: the shapes are one example of many.  keeps_layers: recurrent layers that our kernels
    compute stay nodes.  counts: outputs may have as many rows as only the run time knows: they are
    as long as they can be, and numbers of rows are further outputs (counted_outputs()).
    Raises ToolError (4, 6), which names the node that cannot be taken.
    """
    walk = Walk(path, model.functions, importer, is_open, model.producer_name, keeps_layers)
    graph, scope = model.graph, _scope(walk, path, model.graph, shapes, frozen or {})
    opsets = {"" if i.domain == "ai.onnx" else i.domain: i.version for i in model.opset_import}
    opsets.setdefault("", 1)
    ends = {value.name for value in graph.output}
    nodes = needed(in_order(graph.node), ends)
    beside = Beside(nodes, read=ends.union(*map(reads, nodes)))
    for index, node in enumerate(nodes):
        try:
            walk.run([node], scope, opsets, beside=beside)
            for name in ends.intersection(node.output):
                if isinstance(thing := scope[name], Chosen) and not counts:
                    raise thing.why
        except NodeRefused as refused:
            taken = _left_open(graph, shapes)
            if refused.kind == "invalid" and taken:
                raise refused.with_extents(taken) from None
            raise _with_cut(refused, model, walk, nodes, index, scope, opsets) from None
    outputs, counted = _outputs(walk, path, graph, scope)
    keep_quotients(walk.graph, is_open)
    made = walk.graph.model(outputs)
    if counted:
        helper.set_model_props(made, {_COUNTED: " ".join(map(str, counted))})
    return made


def _scope(walk: Walk, path: str, graph: onnx.GraphProto, shapes: Mapping[str, tuple[int, ...]],
           frozen: Mapping[str, np.ndarray]) -> dict[str, Thing | None]:
    """What names stand for before the first node: constants and inputs."""
    scope: dict[str, Thing | None] = {"": None}
    for tensor in graph.initializer:
        scope[tensor.name] = walk.graph.initializer(tensor)
    for sparse in graph.sparse_initializer:
        try:
            scope[sparse.values.name] = walk.graph.constant(spread(sparse))
        except Refused as refused:
            raise ToolError(MALFORMED_FILE, f"{path} cannot be compiled: {refused.reason}; "
                                            f"{refused.advice}") from None
    for value in graph.input:
        if value.name in frozen:
            scope[value.name] = walk.graph.constant(_as_declared(path, value, frozen[value.name]))
        elif value.name not in scope:
            scope[value.name] = _input(walk, path, value, shapes)
    return scope


def _outputs(walk: Walk, path: str, graph: onnx.GraphProto, scope: Mapping[str, Thing | None]
             ) -> tuple[list[tuple[str, Value]], list[int]]:
    """The outputs by name, those that say how many rows others have behind them; and what
    counted_outputs() gives, empty if there are none such."""
    outputs, numbers, counted = [], dict[str, tuple[int, str, Value]](), list[int]()
    for value in graph.output:
        thing = scope.get(value.name)
        if isinstance(thing, Chosen):
            mask = thing.mask.name
            thing, number, axis = rows_of_output(walk, thing)
            which, *_ = numbers.setdefault(mask, (len(numbers), f"rows of {value.name}", number))
            counted += [len(graph.output) + which, axis]
        else:
            counted += [-1, 0]
        if narrow_bits(kind := value.type.tensor_type.elem_type) is not None:
            raise ToolError(MALFORMED_FILE, (
                f"{path} cannot be compiled: its output '{value.name}' is {type_name(kind)}, of "
                "which no program has tensors; end the network before it is rounded to that "
                "(compile_model --outputs)."))
        if not isinstance(thing, Value):
            raise ToolError(MALFORMED_FILE, (
                f"{path} cannot be compiled: its output '{value.name}' is no tensor "
                f"({'made by no node' if thing is None else 'a sequence or an optional'}); make "
                "the tensors in it outputs of their own."))
        outputs.append((value.name, thing))
    outputs += [(name, number) for _, name, number in numbers.values()]
    return outputs, counted if numbers else []


def counted_outputs(repaired: onnx.ModelProto) -> list[int]:
    """Of each output of the network that was repaired so, which of the repaired one's says how many
    rows of it are results, -1 if all are, and along which axis these lie; empty if all of all are.
    """
    found = next((p.value for p in repaired.metadata_props if p.key == _COUNTED), "")
    return [int(number) for number in found.split()]


def _left_open(graph: onnx.GraphProto,
               shapes: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """The shapes of inputs of which the model does not say all extents."""
    return {value.name: shapes[value.name] for value in graph.input if value.name in shapes and any(
        not extent.HasField("dim_value") for extent in value.type.tensor_type.shape.dim)}


def _with_cut(refused: NodeRefused, model: onnx.ModelProto, walk: Walk,
              nodes: list[onnx.NodeProto], index: int, scope: dict[str, Thing | None],
              opsets: Mapping[str, int]) -> NodeRefused:
    """The refusal of nodes[index], with the tensors up to which the model can be compiled."""
    if refused.kind in ("invalid", "size"):
        return refused
    computed, unknown = set(range(index)), set(nodes[index].output)
    for later in range(index + 1, len(nodes)):
        try:
            if not unknown & reads(nodes[later]):
                walk.run([nodes[later]], scope, opsets)
                computed.add(later)
                continue
        except NodeRefused:
            pass
        unknown.update(nodes[later].output)

    def weight(name: str) -> int:
        thing = scope.get(name)
        if isinstance(thing, Value):
            return 0 if thing.is_constant else 1
        return UNCUTTABLE if thing is not None else 0

    cut = where_to_cut(model, nodes, computed, weight)
    return refused.up_to(cut, len(needed(nodes, cut)), len(nodes)) if cut else refused


def _input(walk: Walk, path: str, value: onnx.ValueInfoProto,
           shapes: Mapping[str, tuple[int, ...]]) -> Value:
    kind = value.type.WhichOneof("value")
    if kind != "tensor_type":
        raise ToolError(MALFORMED_FILE, (
            f"{path} cannot be compiled: its input '{value.name}' is no tensor but a "
            f"{(kind or 'thing without a type').replace('_type', '')}; export the network with "
            "tensors as inputs."))
    try:
        check_type(value.type.tensor_type.elem_type, value.name)
    except Refused as refused:
        raise ToolError(MALFORMED_FILE,
                        f"{path} cannot be compiled: {refused.reason}; {refused.advice}") from None
    tensor = value.type.tensor_type
    extents = shapes.get(value.name)
    if extents is None:
        if not tensor.HasField("shape") or any(
                not d.HasField("dim_value") for d in tensor.shape.dim):
            raise ToolError(MISMATCH, f"{path} cannot be compiled without the shape of its input "
                                      f"'{value.name}': add --shape {value.name}:D0,D1,...")
        extents = tuple(d.dim_value for d in tensor.shape.dim)
    return walk.graph.input(value.name, tensor.elem_type, tuple(extents))


def _as_declared(path: str, value: onnx.ValueInfoProto, array: np.ndarray) -> np.ndarray:
    """A frozen input's array, if it is what the model declares."""
    tensor = value.type.tensor_type
    if value.type.WhichOneof("value") == "tensor_type":
        wanted = np.dtype(helper.tensor_dtype_to_np_dtype(tensor.elem_type))
        if array.dtype != wanted:
            raise ToolError(MISMATCH, f"--freeze {value.name}: it is given {array.dtype} and "
                                      f"{path} declares {wanted}.")
        if tensor.HasField("shape"):
            extents = [d.dim_value if d.HasField("dim_value") else None for d in tensor.shape.dim]
            if len(extents) != array.ndim or any(
                    e is not None and e != a for e, a in zip(extents, array.shape)):
                raise ToolError(MISMATCH, f"--freeze {value.name}: it is given the shape "
                                          f"{list(array.shape)} and {path} declares {extents}.")
    return array


def write_repaired(model: onnx.ModelProto, target: Path, shapes: Mapping[str, tuple[int, ...]],
                   frozen: Mapping[str, np.ndarray] | None = None,
                   path: str = "the model", importer: str = RELAY, is_open: bool = False,
                   weights: WeightsFile | None = None, layers: Path | None = None) -> list[int]:
    """Repairs a model and writes it for the importer; gives its counted_outputs().

    weights: takes the large ones, for several models beside each other that have many in common.
    layers: where the model is written in which recurrent layers that our kernels compute are nodes;
    without such layers, nothing is.
    """
    def repaired(keeps_layers: bool) -> onnx.ModelProto:
        return to_dialect(in_float32(repair(model, shapes, frozen, path, importer, is_open,
                                            keeps_layers, importer == RELAY)), importer)

    made = repaired(layers is not None)
    if layers is not None and any(node.op_type in ("LSTM", "GRU") for node in made.graph.node):
        _write(made, layers, weights)
        made = repaired(False)
    counted = counted_outputs(made)
    _write(made, target, weights)
    return counted


def _write(model: onnx.ModelProto, target: Path, weights: WeightsFile | None) -> None:
    if weights is None and stored_bytes(model) > _LARGE:
        weights = WeightsFile(target.with_suffix(".data"))
    if weights is not None:
        weights.take(model)
    target.write_bytes(model.SerializeToString())


def load(path: Path, outputs: Sequence[str] = ()) -> onnx.ModelProto:
    """A model with all of its weights, also of the files beside it; up to `outputs`, if given.
    What it has in bfloat16 is float32."""
    try:
        model = onnx.load(str(path), load_external_data=False)
        files_beside(path, model)
        onnx.load_external_data_for_model(model, str(path.parent))
    except (OSError, ValueError, RuntimeError, onnx.checker.ValidationError) as error:
        reason = " ".join(str(error).split())[:300]
        raise ToolError(MALFORMED_FILE, f"{path} cannot be read with its weights: {reason}.") \
            from None
    check_lengths(path, model)
    as_float32(model)
    return with_outputs(model, outputs) if outputs else model
