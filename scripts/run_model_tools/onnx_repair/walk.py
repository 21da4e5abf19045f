"""Walks a model from its inputs to its outputs, and makes the repaired graph on its way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, helper

from run_model_tools.onnx_repair import rules
from run_model_tools.onnx_repair.evaluation import evaluate, is_function
from run_model_tools.onnx_repair.graph import Graph, unsupported_type
from run_model_tools.onnx_repair.inference import infer
from run_model_tools.onnx_repair.node_order import in_order
from run_model_tools.onnx_repair.open_extents import MOST_EXTENTS, decides_extents, varies
from run_model_tools.onnx_repair.refusal import RUN_TIME, NodeRefused, Refused, invalid
from run_model_tools.onnx_repair.values import (
    COMPUTED,
    Attributes,
    Beside,
    Chosen,
    Inputs,
    Node,
    Option,
    Sequence,
    Thing,
    Value,
    narrow_bits,
)

# A loop of a thousand iterations of a small body is unrolled; more is not a network of layers.
MOST_NODES = 100_000

# 8-bit weights stay as they are, for kernels that compute with them; and sums of products of bytes
# may end at 32767 in ONNX Runtime (serve_onnxruntime.py).
_KEPT = ("QuantizeLinear", "DequantizeLinear", "ConvInteger", "MatMulInteger",
         "MatMulIntegerToFloat", "QGemm", "QLinearConv", "QLinearMatMul")
_KNOW_FEW_BITS = ("BitCast", "Cast", "CastLike", "DequantizeLinear", "QuantizeLinear")
# Results of whole nodes are computed beforehand up to this size; operators that they are made of
# have their own measure (graph.py).
_FOLDED_BYTES = 1 << 20
_FOLDED_INDICES = 64 << 20
"""The same of whole numbers, which are no weights: an assignment to a slice is exported with the
places of all its elements, by which it is known to be one."""
_KNOWN = 64
"""Of operators that are kept, results of so many numbers may be parameters of others: what a Pad
writes, a Clip's bounds."""


RELAY, RELAX = "relay", "relax"
"""The importers that a model is repaired for."""
_UNKNOWN = {RELAY: (), RELAX: ("Celu", "DynamicQuantizeLSTM", "GRU", "LSTM", "RNN")}


class Walk:
    """The state of a walk; rules use `graph`, `run`, `node_in` and `producer`, who wrote the
    model."""

    def __init__(self, path: str, functions: Iterable[onnx.FunctionProto] = (),
                 importer: str = RELAY, is_open: bool = False, producer: str = "",
                 keeps_layers: bool = False) -> None:
        self.path = path
        self.importer = importer
        self.is_open = is_open
        """Whether the shapes are one example of many (open_extents.py)."""
        self.keeps_layers = keeps_layers
        """Whether recurrent layers that our kernels compute stay, though the importer takes none
        (inside_tvm/relax/recurrent.py)."""
        self.producer = producer
        self.graph = Graph()
        self.rules = rules.load()
        self.functions = {(f.domain, f.name, f.overload): f for f in functions}
        self.counts: dict[str, NodeRefused] = {}
        """Values that tell how many rows are chosen, and why nothing may have their shape."""
        self.joined: dict[tuple[str, ...], Value] = {}
        """Masks of several tensors' rows behind each other, by the names of theirs."""
        self.partitions: set[tuple[str, ...]] = set()
        """Names of masks of which one holds for each row, in the order of the rows."""
        self.rerolled: dict[tuple[str, ...], Value | None] = {}
        """What values of several iterations are with these along a first axis (rerolled.py)."""
        self.rows_replaced: dict[str, tuple[Value, int]] = {}
        """Values of which one row is another than in the one before (triangular.py)."""
        self.has_parts = False
        """Whether parts are taken whose lengths nobody knows, one by each iteration perhaps
        (rerolled.py)."""
        self._count = 0
        self._depth = 0

    def knows(self, operator: str) -> bool:
        """Whether the importer takes an operator that rules can write otherwise."""
        if self.is_open and operator in ("GRU", "LSTM", "RNN"):
            return True  # As a function of any number of steps (inside_tvm/relax/recurrent.py).
        return operator not in _UNKNOWN[self.importer]

    def run(self, nodes: Iterable[onnx.NodeProto], scope: dict[str, Thing | None],
            opsets: Mapping[str, int], prefix: str = "", beside: Beside | None = None) -> None:
        """Runs nodes; `scope` knows their inputs, and gets their outputs.  `beside`, if they are
        not all of their graph."""
        ordered = in_order(nodes)
        beside = beside or Beside(ordered)
        for proto in ordered:
            self._count += 1
            if self._count > MOST_NODES:
                raise self._refused(proto, opsets, Refused(
                    f"the network has more than {MOST_NODES} operators once its loops are unrolled",
                    "give its loops fewer iterations."))
            try:
                results = self._run_one(proto, scope, opsets, prefix, beside)
            except Refused as refused:
                raise self._chosen_before(proto, scope, refused) or self._refused(
                    proto, opsets, refused) from None
            for name, result in zip(proto.output, results):
                if name:
                    scope[name] = result

    def _chosen_before(self, proto: onnx.NodeProto, scope: Mapping[str, Thing | None],
                       refused: Refused) -> NodeRefused | None:
        """What is to be said where a node would need to know how many rows are chosen."""
        if refused.kind != RUN_TIME or not self.counts:
            return None
        given = (scope.get(name) for name in proto.input)
        behind = self.graph.behind(value.name for value in given if isinstance(value, Value))
        return next((why for name, why in self.counts.items() if name in behind), None)

    def _refused(self, proto: onnx.NodeProto, opsets: Mapping[str, int],
                 refused: Refused) -> NodeRefused:
        domain = _domain(proto.domain)
        if value := self.graph.values.get(refused.value):
            inputs = self.graph.inputs_behind(value)
            if inputs != [value.name]:
                refused = refused.behind(inputs, len(inputs) in (0, len(self.graph.inputs)))
        return NodeRefused(self.path, proto.op_type, domain, opsets.get(domain, 1), proto.name,
                           refused)

    def _run_one(self, proto: onnx.NodeProto, scope: dict[str, Thing | None],
                 opsets: Mapping[str, int], prefix: str, beside: Beside) -> list[Thing | None]:
        domain = _domain(proto.domain)
        node = _node(proto, scope, opsets.get(domain, 1), beside)
        function = self.functions.get((domain, proto.op_type, proto.overload))
        if function is not None:
            return self.call(function, {i.domain: i.version for i in function.opset_import}, node)
        self.graph.source = prefix + (proto.name or next(filter(None, proto.output), proto.op_type))
        if not domain and node.op not in _KNOW_FEW_BITS:
            node.inputs = [self.graph.held(i) if isinstance(i, Value) and i.is_constant else i
                           for i in node.inputs]
        folded = self._fold(node)
        if folded is None and not self.is_open:
            folded = self._nothing(node)
        if folded is not None:
            return folded
        rule = self.rules.get((domain, proto.op_type))
        if any(isinstance(i, Chosen) for i in node.inputs):
            from run_model_tools.onnx_repair.rules.chosen.following import of_chosen as rule
        elif rule and any(isinstance(i, Value) and i.pictures is not None for i in node.inputs):
            from run_model_tools.onnx_repair.rules.volumes import of_volumes
            rule = partial(of_volumes, rule)
        if rule is not None:
            self.graph.kept = self.is_open and varies(node.inputs)
            node.inputs = given = Inputs(node.inputs)
            try:
                made = rule(self, node)
            finally:
                self.graph.kept = False
            _check_attributes(node)
            _check_inputs(node, given)
            if ((node.op in _KEPT or _has_kept(node)) and isinstance(made, Value)
                    and made.size <= _KNOWN and not _has_few_bits(node)):
                found = self._evaluate(node)
                made.known = None if found is None else found[0]
            return list(made) if isinstance(made, (list, tuple)) and not isinstance(
                made, Sequence) else [made]  # type: ignore[list-item]
        body = _standard_function(node)
        if body is None:
            raise Refused("there is no rule how to compute this operator",
                          "replace it by simpler operators, or register a function for it in the "
                          "file when exporting it.")
        return self.call(body, {i.domain: i.version for i in body.opset_import} or
                          {"": node.opset}, node)

    def call(self, function: onnx.FunctionProto, opsets: dict[str, int],
              node: Node) -> list[Thing | None]:
        """A function's body in the place of a node."""
        if self._depth > 50:
            raise invalid("the functions of the model call each other without end")
        # Graphs that the node has stand in the body (SequenceMap's), and see the values around it.
        has_graph = any(a.type == AttributeProto.GRAPH for a in node.proto.attribute)
        scope: dict[str, Thing | None] = {**(node.scope if has_graph else {}), "": None}
        for index, name in enumerate(function.input):
            scope[name] = node.inputs[index] if index < len(node.inputs) else None
        given = {a.name: a for a in function.attribute_proto}
        given.update({a.name: a for a in _defaults(node)})
        given.update({a.name: a for a in node.proto.attribute})
        body = [_with_attributes(proto, given) for proto in function.node]
        self._depth += 1
        self.run(body, scope, {_domain(d): v for d, v in opsets.items()},
                 prefix=f"{node.name or node.op}/")
        self._depth -= 1
        return [scope.get(name) for name in function.output[:node.outputs]]

    def node_beside(self, node: Node, proto: onnx.NodeProto) -> Node:
        """Another node of the node's graph and of its domain, whose inputs there are by now."""
        return _node(proto, node.scope, node.opset, node.beside)

    def subgraph(self, graph: onnx.GraphProto, node: Node, inputs: list[Thing | None],
                 opsets: Mapping[str, int] | None = None) -> list[Thing | None]:
        """The outputs of a node's subgraph, which sees the values around the node."""
        scope = dict(node.scope)
        for value, thing in zip(graph.input, inputs):
            scope[value.name] = thing
        for tensor in graph.initializer:
            if tensor.name not in {v.name for v in graph.input[:len(inputs)]}:
                scope[tensor.name] = self.graph.initializer(tensor)
        self.run(graph.node, scope, opsets or {"": node.opset})
        return [_lookup(scope, output.name) for output in graph.output]

    def node_in(self, op: str, opset: int, inputs: list[Thing | None], outputs: int = 1,
                **attrs: Any) -> Any:
        """What another rule makes of a node; its one output, or all of several."""
        proto = helper.make_node(op, [], [f"o{i}" for i in range(outputs)], **{
            k: v for k, v in attrs.items() if v is not None})
        node = Node(op=op, domain="", name=self.graph.source, opset=opset, inputs=inputs,
                    attrs=Attributes({a.name: _attribute(a) for a in proto.attribute}),
                    outputs=outputs,
                    wanted=[True] * outputs, proto=proto)
        made = self.rules["", op](self, node)
        if isinstance(made, (list, tuple)) and not isinstance(made, Sequence):
            return made[0] if outputs == 1 else made
        return made

    def _nothing(self, node: Node) -> list[Thing | None] | None:
        """Results without elements, of inputs that have none: nothing is left to be computed."""
        if not any(isinstance(i, Value) and i.size == 0 for i in node.inputs):
            return None
        types = _types_of_results(node)
        kinds = [types[f"o{n}"].tensor_type for n in range(node.outputs) if f"o{n}" in types]
        shapes = [[d.dim_value for d in kind.shape.dim] for kind in kinds]
        if len(kinds) != node.outputs or any(
                0 not in shape or kind.elem_type not in COMPUTED
                or not all(d.HasField("dim_value") for d in kind.shape.dim)
                for kind, shape in zip(kinds, shapes)):
            return None
        return [self.graph.constant(np.zeros(shape), helper.tensor_dtype_to_np_dtype(
            kind.elem_type)) for kind, shape in zip(kinds, shapes)]

    def _fold(self, node: Node) -> list[Thing | None] | None:
        """The results of a node all of whose inputs are constants, if they are not too large."""
        if node.op in _KEPT or decides_extents(node.op, node.inputs) or _has_few_bits(node):
            return None
        found = self._evaluate(node)
        if found is None:
            return None
        values = [i for i in node.inputs if i is not None]
        if varies(values) and any(np.size(f) > MOST_EXTENTS for f in found):
            return None
        if _has_kept(node) and any(f.dtype.kind == "f" for f in found):
            return None
        results = iter(found)
        made = [self.graph.constant(next(results)) if wanted else None for wanted in node.wanted]
        for one in made:
            if one is not None:
                one.varies = varies(values) and node.op not in ("Shape", "Size")
        return list(made)

    def _evaluate(self, node: Node) -> list[np.ndarray] | None:
        """What a node of constants, or of numbers that are known though their operators are kept,
        gives, if it is not too large and known beforehand."""
        values = [i for i in node.inputs if i is not None]
        if (not values or not is_function(node.proto) or not all(
                isinstance(v, Value) and (v.is_constant or v.known is not None) for v in values)):
            return None
        if _is_too_large(node, 2 * sum(
                v.size * v.dtype.itemsize for v in values if isinstance(v, Value))):
            return None
        names = {id(v): f"i{n}" for n, v in enumerate(values)}
        proto = onnx.NodeProto()
        proto.CopyFrom(node.proto)
        proto.input[:] = [names[id(i)] if i is not None else "" for i in node.inputs]
        proto.output[:] = [f"o{n}" if wanted else "" for n, wanted in enumerate(node.wanted)]
        found = evaluate(proto, {
            names[id(v)]: (v.type_proto(),
                           v.array if v.is_constant else v.known)  # type: ignore[misc]
            for v in values if isinstance(v, Value)}, node.domain, node.opset)
        if found is None or any(np.dtype(f.dtype).kind not in "fiub" for f in found):
            return None
        return found


def _has_few_bits(node: Node) -> bool:
    """Whether a node reads or makes numbers of types that only its rule can tell (narrow.py)."""
    named = (dict.get(node.attrs, name) for name in ("to", "output_dtype"))
    kinds = (i.elem_type for i in node.inputs if isinstance(i, Value))
    return any(narrow_bits(kind) is not None for kind in (*named, *kinds) if kind is not None)


def _has_kept(node: Node) -> bool:
    """Whether an input is the result of an operator that is kept, and known all the same: of what
    is made of it, only what are no floats can become constants, for kernels that compute with
    bytes look for the operators between floats."""
    return any(isinstance(i, Value) and not i.is_constant and i.known is not None
               for i in node.inputs)


def _check_attributes(node: Node) -> None:
    """Refuses attributes that the rule has not looked at and that are none of those that ONNX
    gives the operator here: releases after it may have given it another sense."""
    try:
        known = set(onnx.defs.get_schema(node.op, node.opset, node.domain).attributes)
    except onnx.defs.SchemaError:
        known = set()
    known |= rules.IGNORED.get((node.domain, node.op), set())
    strange = sorted(str(name) for name in node.attrs.unread - known)
    if strange:
        raise Refused(f"nothing is known of its attribute '{strange[0]}', which may change what it "
                      "computes")


def _check_inputs(node: Node, given: Inputs) -> None:
    """Refuses inputs that the rule has not looked at and that ONNX does not give the operator here,
    since they may change what it computes."""
    try:
        known = onnx.defs.get_schema(node.op, node.opset, node.domain).max_input
    except onnx.defs.SchemaError:
        known = 0
    strange = sorted(index for index in given.unread if index >= known)
    if strange:
        raise Refused(f"nothing is known of its input {strange[0]}, which may change what it "
                      "computes")


def _types_of_results(node: Node) -> dict[str, onnx.TypeProto]:
    """By the names o0, o1 ...; none where ONNX cannot tell."""
    try:
        proto = onnx.NodeProto()
        proto.CopyFrom(node.proto)
        proto.input[:] = [f"i{n}" if i is not None else "" for n, i in enumerate(node.inputs)]
        proto.output[:] = [f"o{n}" for n in range(node.outputs)]
        given = {f"i{n}": i for n, i in enumerate(node.inputs) if isinstance(i, Value)}
        return infer(proto, list(given.values()), list(given), node.domain, node.opset)
    except Exception:
        return {}


def _is_too_large(node: Node, least: int) -> bool:
    """Whether results are larger than is computed beforehand, `least` bytes in any case; False
    where ONNX cannot tell."""
    whole = others = 0
    for kind in _types_of_results(node).values():
        tensor = kind.tensor_type
        size = int(np.prod([d.dim_value for d in tensor.shape.dim], dtype=np.int64)) * 8
        if tensor.elem_type in (TensorProto.INT32, TensorProto.INT64):
            whole += size
        else:
            others += size
    return whole > max(_FOLDED_INDICES, least) or others > max(_FOLDED_BYTES, least)


def _domain(domain: str) -> str:
    return "" if domain == "ai.onnx" else domain


def _node(proto: onnx.NodeProto, scope: dict[str, Thing | None], opset: int,
          beside: Beside) -> Node:
    inputs = [_lookup(scope, name) for name in proto.input]
    while inputs and inputs[-1] is None:
        inputs.pop()
    node = Node(
        op=proto.op_type, domain=_domain(proto.domain), name=proto.name, opset=opset,
        inputs=inputs, attrs=Attributes({a.name: _attribute(a) for a in proto.attribute}),
        outputs=len(proto.output), scope=scope, proto=proto, beside=beside,
        wanted=[bool(name) and (beside.read is None or name in beside.read)
                for name in proto.output])
    node.attrs.pop("consumed_inputs", None)
    return node


def _lookup(scope: Mapping[str, Thing | None], name: str) -> Thing | None:
    if not name:
        return None
    if name not in scope:
        raise invalid(f"its input '{name}' is made by no node before it")
    return scope[name]


def _attribute(attribute: AttributeProto) -> Any:
    value = helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if attribute.type == AttributeProto.STRINGS:
        return [v.decode("utf-8", "replace") for v in value]
    return list(value) if attribute.type in (
        AttributeProto.INTS, AttributeProto.FLOATS) else value


def _with_attributes(proto: onnx.NodeProto,
                     given: Mapping[str, AttributeProto]) -> onnx.NodeProto:
    """A node of a function's body, in which references to the function's attributes stand."""
    references = any(a.ref_attr_name for a in proto.attribute)
    graphs = any(a.type in (AttributeProto.GRAPH, AttributeProto.GRAPHS) for a in proto.attribute)
    if not references and not graphs:
        return proto
    made = onnx.NodeProto()
    made.CopyFrom(proto)
    del made.attribute[:]
    for attribute in proto.attribute:
        copy = AttributeProto()
        if attribute.ref_attr_name:
            if attribute.ref_attr_name not in given:
                continue
            copy.CopyFrom(given[attribute.ref_attr_name])
            copy.name = attribute.name
        else:
            copy.CopyFrom(attribute)
            for graph in ([copy.g] if copy.HasField("g") else []) + list(copy.graphs):
                inner = [_with_attributes(n, given) for n in graph.node]
                del graph.node[:]
                graph.node.extend(inner)
        made.attribute.append(copy)
    return made


def _defaults(node: Node) -> list[AttributeProto]:
    """The attributes that ONNX gives an operator which does not name them."""
    try:
        schema = onnx.defs.get_schema(node.op, node.opset, node.domain)
    except onnx.defs.SchemaError:
        return []
    return [a.default_value for a in schema.attributes.values() if a.default_value.name]


def _standard_function(node: Node) -> onnx.FunctionProto | None:
    """The body by which ONNX defines an operator for these inputs; None of a primitive one."""
    try:
        schema = onnx.defs.get_schema(node.op, node.opset, node.domain)
    except onnx.defs.SchemaError:
        return None
    if schema.has_context_dependent_function:
        kinds = [thing_type(i).SerializeToString() for i in node.inputs]
        proto = onnx.NodeProto()
        proto.CopyFrom(node.proto)
        proto.input[:] = [f"i{n}" if i is not None else "" for n, i in enumerate(node.inputs)]
        proto.output[:] = [o or f"unused{n}" for n, o in enumerate(proto.output)]
        versions = [v for v in schema.context_dependent_function_opset_versions
                    if v <= node.opset]
        for version in sorted(versions, reverse=True):
            text = schema.get_context_dependent_function_with_opset_version(
                version, proto.SerializeToString(), kinds)
            if text:
                body = onnx.FunctionProto()
                body.ParseFromString(text)
                return body
    if schema.has_function:
        return schema.function_body
    return None


def thing_type(thing: Thing | None) -> onnx.TypeProto:
    """The ONNX type of something."""
    if thing is None:
        return onnx.TypeProto()
    if isinstance(thing, Value):
        return thing.type_proto()
    if isinstance(thing, Sequence):
        return helper.make_sequence_type_proto(
            thing[0].type_proto() if thing else
            helper.make_tensor_type_proto(thing.elem_type, None))
    assert isinstance(thing, Option)
    held = thing_type(thing.held) if thing.held is not None else helper.make_tensor_type_proto(
        TensorProto.FLOAT, None)
    return helper.make_optional_type_proto(held)


def check_type(elem_type: int, name: str) -> None:
    """Refuses inputs of types that compiled code has not."""
    if elem_type not in COMPUTED:
        refused = unsupported_type(elem_type)
        raise Refused(f"input '{name}' is of such a type: {refused.reason}", refused.advice, "type")


