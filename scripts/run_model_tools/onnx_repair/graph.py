"""The repaired graph while it is made: nodes of opset 18, each with its type and shape known."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Sequence as Items
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from run_model_tools.onnx_repair.evaluation import evaluate
from run_model_tools.onnx_repair.inference import infer
from run_model_tools.onnx_repair.open_extents import COUNTING, EXTENTS, HIDDEN, MOST_EXTENTS, VALUE
from run_model_tools.onnx_repair.refusal import Refused, data_dependent, invalid
from run_model_tools.onnx_repair.values import (
    COMPUTED,
    NARROW_WHOLES,
    Value,
    narrow_bits,
    type_name,
)

OPSET = 18
"""Of everything that is emitted."""

# What is computed beforehand may be larger by this than what it is made of: TVM folds the rest
# itself, where it helps.
_FREE_BYTES = 1 << 18
# Their weights have to stay in 8 bits for kernels that compute so.
_NEVER_FOLDED = ("QuantizeLinear", "DequantizeLinear")

Operand = Value | np.ndarray | float | int | bool | None


class Graph:
    """Takes operators one by one (`op`), and gives a model of what its outputs need."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.makers: dict[str, onnx.NodeProto] = {}
        """The nodes by the names of their outputs."""
        self.values: dict[str, Value] = {}
        self.inputs: list[Value] = []
        self.source = ""
        """The name of the node whose rule is at work."""
        self.kept = False
        """Whether what that node makes of constants depends on open extents (open_extents.py)."""
        self.hidden: dict[str, Value] = {}
        """Constants that are inputs for the importer, by the names of these."""
        self._taken: dict[str, int] = {}
        """Up to which number names of that beginning are taken."""
        self._imports = [helper.make_opsetid("", OPSET)]
        self._functions: dict[str, onnx.FunctionProto] = {}

    def input(self, name: str, elem_type: int, shape: tuple[int, ...]) -> Value:
        value = self._keep(Value(name, elem_type, shape))
        self.inputs.append(value)
        return value

    def initializer(self, tensor: TensorProto) -> Value:
        """A tensor of the model, as it is."""
        return self._keep(Value(self._free(tensor.name), tensor.data_type, tuple(tensor.dims),
                                tensor=tensor))

    def constant(self, array: Any, dtype: Any = None) -> Value:
        array = np.asarray(array, dtype)
        return self._keep(Value(self._free("constant"), helper.np_dtype_to_tensor_dtype(
            array.dtype), tuple(array.shape), array=array))

    def held(self, value: Value) -> Value:
        """Constants of few bits as the bytes or float32 that hold the same numbers."""
        if narrow_bits(value.elem_type) is None:
            return value
        if value.array is None:
            raise unsupported_type(value.elem_type)
        few = NARROW_WHOLES.get(value.elem_type)
        return self.constant(np.asarray(value.array).astype(few.held if few else np.float32))

    def like(self, number: float, value: Value) -> Value:
        """A constant without dimensions of the type of a value."""
        return self.constant(number, value.dtype)

    def op(self, op: str, *operands: Operand, **attrs: Any) -> Value:
        """Emits an operator with one output."""
        return self.ops(op, operands, 1, **attrs)[0]

    def ops(self, op: str, operands: Items[Operand], outputs: int, **attrs: Any) -> list[Value]:
        """Emits an operator of opset 18; constants are computed at once.

        Numbers among the operands become constants of the first tensor's type.
        """
        first = next((o for o in operands if isinstance(o, Value)), None)
        inputs = [self._operand(o, first) for o in operands]
        while inputs and inputs[-1] is None:
            inputs.pop()
        attrs = {key: value for key, value in attrs.items() if value is not None}
        names = [self._free(f"{self.source or op}") for _ in range(outputs)]
        node = helper.make_node(op, [i.name if i is not None else "" for i in inputs], names,
                                name=names[0], doc_string=self.source, **attrs)
        made = self._infer(node, [i for i in inputs if i is not None], names)
        given = [i for i in inputs if i is not None]
        if given and all(i.is_constant for i in given) and op not in _NEVER_FOLDED:
            if self.kept and (op in EXTENTS or any(m.size > MOST_EXTENTS for m in made)):
                node.input[0] = self.behind_input(given[0]).name
                self._add(node)
                return [self._keep(m) for m in made]
            room = max(_FREE_BYTES, 2 * sum(_bytes(i) for i in given))
            if sum(_bytes(m) for m in made) <= room:
                folded = evaluate(node, {i.name: (i.type_proto(), _array(i)) for i in given},
                                  "", OPSET)
                if folded is not None:
                    results = [self.constant(f, m.dtype) for f, m in zip(folded, made)]
                    for result in results:
                        result.varies = self.kept
                    return results
        if not any(m.size for m in made) and not self.kept:
            return [self.constant(np.zeros(m.shape), m.dtype) for m in made]
        self._add(node)
        return [self._keep(m) for m in made]

    def foreign(self, domain: str, op: str, operands: Items[Value | None], shapes: Items[
            tuple[int, ...]], definition: str = "", **attrs: Any) -> list[Value]:
        """Emits an operator that the importer knows and ONNX does not: its outputs have the first
        operand's type and these shapes.  With a definition, the text of a function in ONNX's
        operators, others can run the model too."""
        if all(known.domain != domain for known in self._imports):
            self._imports.append(helper.make_opsetid(domain, 1))
        if definition and op not in self._functions:
            self._functions[op] = onnx.parser.parse_function(
                f'<domain: "{domain}", opset_import: ["": {OPSET}]> {op} {definition}')
        names = [self._free(self.source or op) for _ in shapes]
        self._add(helper.make_node(
            op, [o.name if o is not None else "" for o in operands], names, name=names[0],
            doc_string=self.source, domain=domain, **attrs))
        first = operands[0]
        assert first is not None
        return [self._keep(Value(name, first.elem_type, shape))
                for name, shape in zip(names, shapes)]

    def rounded(self, x: Value) -> Value:
        """Numbers in float32 that are those of bfloat16: by a Cast there and one back, of which the
        importers' converters make one operator (inside_tvm/operators/onnx_converters.py)."""
        names = [self._free(self.source or "Cast") for _ in range(2)]
        for name, source, to in zip(names, (x.name, names[0]),
                                    (TensorProto.BFLOAT16, TensorProto.FLOAT)):
            self._add(helper.make_node("Cast", [source], [name], name=name,
                                       doc_string=self.source, to=to))
        self._keep(Value(names[0], TensorProto.BFLOAT16, x.shape))
        return self._keep(Value(names[1], TensorProto.FLOAT, x.shape))

    def _add(self, node: onnx.NodeProto) -> None:
        self.nodes.append(node)
        self.makers.update(dict.fromkeys(node.output, node))

    def behind_input(self, value: Value) -> Value:
        """A constant as something that is known at run time only."""
        for name, known in self.hidden.items():
            if known is value:
                return self.values[name]
        made = self.input(self._free(f"{HIDDEN}{len(self.hidden)}"), value.elem_type, value.shape)
        self.hidden[made.name] = value
        return made

    def inputs_behind(self, value: Value) -> list[str]:
        """The inputs of the model that a value is computed of, in their order."""
        needed = self.behind([value.name])
        return [known.name for known in self.inputs
                if known.name in needed and not known.name.startswith((HIDDEN, COUNTING))]

    def behind(self, names: Iterable[str]) -> set[str]:
        """These names, and those of all that leads to them."""
        needed = set(names)
        for node in reversed(self.nodes):
            if needed.intersection(node.output):
                needed.update(node.input)
        return needed

    def counting(self, count: int) -> Value:
        """0, 1, 2 ... as whole numbers, of a count that is open."""
        name = self._free(f"{COUNTING}{len(self.inputs)}")
        return self.input(name, TensorProto.INT64, (count,))

    def _operand(self, operand: Operand, first: Value | None) -> Value | None:
        if operand is None or isinstance(operand, Value):
            return operand
        if isinstance(operand, np.ndarray):
            return self.constant(operand)
        if first is None:
            raise TypeError("a number among operands without a tensor")
        return self.constant(operand, first.dtype)

    def _infer(self, node: onnx.NodeProto, inputs: list[Value], names: list[str]) -> list[Value]:
        try:
            types = infer(node, inputs, [i.name for i in inputs], "", OPSET)
        except (onnx.shape_inference.InferenceError, onnx.checker.ValidationError,
                ValueError) as error:
            raise invalid(f"its inputs do not fit together ({_short(str(error))})") from None
        made = []
        for name in names:
            tensor = types[name].tensor_type if name in types else None
            if tensor is None or not tensor.HasField("shape") or any(
                    not d.HasField("dim_value") for d in tensor.shape.dim):
                raise data_dependent("the shape of its result")
            if tensor.elem_type not in COMPUTED:
                raise unsupported_type(tensor.elem_type)
            made.append(Value(name, tensor.elem_type, tuple(d.dim_value for d in tensor.shape.dim)))
        return made

    def _free(self, wanted: str) -> str:
        name, count = wanted, self._taken.get(wanted, 0)
        while not name or name in self.values:
            count += 1
            name = f"{wanted}_{count}"
        self._taken[wanted] = count
        self.values[name] = None  # type: ignore[assignment]
        return name

    def _keep(self, value: Value) -> Value:
        self.values[value.name] = value
        return value

    def model(self, outputs: list[tuple[str, Value]]) -> onnx.ModelProto:
        """The model with these outputs, without what none of them needs."""
        needed = {value.name for _, value in outputs}
        nodes = []
        for node in reversed(self.nodes):
            if needed.intersection(node.output):
                nodes.append(node)
                needed.update(i for i in node.input if i)
        nodes.reverse()
        produced = {name for node in nodes for name in node.output}
        renamed: dict[str, str] = {}
        ends = []
        for name, value in outputs:
            ends.append(self._free(name))
            if value.name in produced and value.name not in renamed:
                renamed[value.name] = ends[-1]
            else:
                # Inputs and constants cannot be outputs, nor one value two of them.
                nodes.append(helper.make_node("Identity", [value.name], [ends[-1]]))
        for node in nodes:
            for names in (node.input, node.output):
                names[:] = [renamed.get(name, name) for name in names]
        constants = [self.values[name] for name in sorted(needed)
                     if self.values[name] is not None and self.values[name].is_constant]
        graph = helper.make_graph(
            nodes, "repaired",
            [helper.make_tensor_value_info(i.name, i.elem_type, i.shape) for i in self.inputs
             if i.name in needed or not i.name.startswith((HIDDEN, COUNTING))],
            [helper.make_tensor_value_info(end, value.elem_type, value.shape)
             for end, (_, value) in zip(ends, outputs)])
        used = {node.op_type for node in nodes}
        model = helper.make_model(
            graph, opset_imports=self._imports, ir_version=8, producer_name="run_model",
            functions=[made for name, made in self._functions.items() if name in used])
        # Once it is a part of the model, since it is copied to become one.
        for value in constants:
            model.graph.initializer.append(tensor_of(value))
        model.graph.initializer.extend(
            numpy_helper.from_array(_array(value), name + VALUE)
            for name, value in self.hidden.items() if name in needed)
        return model


def unsupported_type(elem_type: int) -> Refused:
    return Refused(f"it computes with {type_name(elem_type)} values, which compiled code has not",
                   "export the network in float32 or whole numbers.", "type")


def tensor_of(value: Value) -> TensorProto:
    if value.tensor is None:
        return numpy_helper.from_array(np.ascontiguousarray(_array(value)).reshape(value.shape),
                                       value.name)
    if value.tensor.name == value.name:
        return value.tensor
    copy = TensorProto()
    copy.CopyFrom(value.tensor)
    copy.name = value.name
    return copy


def _array(value: Value) -> np.ndarray:
    array = value.array
    assert array is not None, value.name
    return array


def _bytes(value: Value) -> int:
    return value.size * value.dtype.itemsize


def _short(text: str) -> str:
    return " ".join(text.split())[:200]
