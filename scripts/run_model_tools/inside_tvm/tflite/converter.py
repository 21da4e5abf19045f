"""TVM's importer of TensorFlow Lite, with operators and tensors as this package takes them."""

from functools import partial

import numpy as np
import tvm
from tflite.TensorType import TensorType
from tvm import relay
from tvm.relay.frontend import tflite as frontend

from run_model_tools.inside_tvm import Refusal, faster_folding
from run_model_tools.inside_tvm.tflite import (
    control_flow,
    layout,
    means,
    operators,
    pieces,
    recurrent,
    segments,
    softmax,
    stablehlo,
    tables,
    transposed,
)
from run_model_tools.inside_tvm.tflite.seen_by_importer import (
    ComputedBuffer,
    NamedGraph,
    SeenTensor,
    StoredBuffer,
)
from run_model_tools.tflite.as_compiled import TRANSPOSED
from run_model_tools.tflite.file import COMPLEX, code_of

_REPRESENTATION = ("QUANTIZE", "DEQUANTIZE", "DENSIFY")
"""Operators that only say how numbers are stored: the importer sees numbers."""

_TAKING_NONE = ("CONCATENATION", "DYNAMIC_UPDATE_SLICE", "RANK", "SHAPE")
"""Operators that look at the shape, or leave out tensors without numbers."""

_TYPES = {"float32": TensorType.FLOAT32, "float16": TensorType.FLOAT16, "int32": TensorType.INT32,
          "uint8": TensorType.UINT8, "int64": TensorType.INT64, "bool": TensorType.BOOL,
          "int16": TensorType.INT16, "int8": TensorType.INT8}


def dequantized(expr, tensor):
    if not tensor.is_whole:
        return expr
    return relay.qnn.op.dequantize(expr, *_parameters(tensor))


def _quantized(expr, tensor):
    return relay.qnn.op.quantize(expr, *_parameters(tensor), out_dtype=tensor.dtype)


def _parameters(tensor):
    q = tensor.quantized
    if len(q.scales) != 1:
        raise Refusal("model", "an activation of it has a scale for each channel")
    return (relay.const(float(q.scales[0]), "float32"), relay.const(int(q.zero_points[0]), "int32"))


class Converter(frontend.OperatorConverter):
    """The importer's own but for how tensors are stored, of one graph of the file."""

    def __init__(self, file, graph, names, shared):
        super().__init__(file.model, NamedGraph(file.model.Subgraphs(graph.number), names), shared)
        self.file, self.graph, self.names, self.pieces = file, graph, names, shared.pieces
        self.found_shapes = {}
        """Of tensors whose shapes are computed; one with an extent of 0 is none of TVM's, and
        another expression stands for it."""
        self.quantized = {}
        """Of tensors that the file has in whole numbers, the expressions of those."""
        for family in (means, operators, pieces, recurrent, segments, softmax, stablehlo, tables,
                       transposed):
            self.convert_map.update((name, partial(convert, self))
                                    for name, convert in family.CONVERTERS.items())

    def get_op_code_str(self, op):
        # Read once more, since the importer hands operators on and not their numbers.
        code = self.model.OperatorCodes(op.OpcodeIndex())
        custom = (code.CustomCode() or b"").decode("utf-8", "replace")
        if custom == TRANSPOSED:
            return TRANSPOSED
        return ("DETECTION_POSTPROCESS" if custom == "TFLite_Detection_PostProcess"
                else self.builtin_op_code[code_of(code)])

    def check_unsupported_ops(self):
        missing = sorted({o.name for graph in self._called_graphs() for o in graph.operators
                          if o.name not in self.convert_map and o.name not in control_flow.CALLS
                          and o.name != "TFLite_Detection_PostProcess"})
        if missing:
            # TensorFlow's, as the converter is allowed them by SELECT_TF_OPS.
            advice = ("; convert it with TFLITE_BUILTINS as its only operators, and with its batch "
                      "known, to be without those of TensorFlow (Flex)"
                      if any(name.startswith("Flex") for name in missing) else "")
            raise Refusal("model", "it has operators that are not supported: "
                                   + ", ".join(missing) + advice)

    def _called_graphs(self):
        """This one, and those that its operators call."""
        numbers = [self.graph.number]
        for number in numbers:
            numbers += {called for o in self.file.graphs[number].operators
                        for called in o.graphs}.difference(numbers)
        return [self.file.graphs[number] for number in numbers]

    def called(self, graph, values):
        """What another graph of the file gives of these expressions, one for each input."""
        call = next(self.exp_tab.calls)
        names = ["call_%d_%d" % (call, i) for i in range(len(graph.tensors))]
        for index, value in zip(graph.inputs, values):
            self.exp_tab.set_expr(names[index], value)
        inner = Converter(self.file, graph, names, self.exp_tab)
        inner.convert_op_to_relay()
        return [inner.value(index) for index in graph.outputs]

    def convert_op_to_relay(self):
        for index, operator in enumerate(self.graph.operators):
            if all(self.graph.tensors[i].constant is not None for i in operator.outputs):
                continue
            op = self.subgraph.Operators(index)
            follow = control_flow.CALLS.get(operator.name)
            if follow is not None:
                for i, expr in zip(operator.outputs, follow(self, operator)):
                    self.exp_tab.set_expr(self.names[i], expr)
                continue
            self._refuse_numbers_of_none(operator)
            if operator.name in _REPRESENTATION:
                result = self.value(operator.inputs[0])
            else:
                convert = self.convert_map[self.get_op_code_str(op)]
                result = (operators.moved(self, convert, op)
                          if operators.moves_complex(self, operator) else convert(op))
            for number, i in enumerate(operator.outputs):
                self.keep(i, result if len(operator.outputs) == 1 else result[number])

    def _refuse_numbers_of_none(self, operator):
        """What stands for a tensor without numbers (found_shapes) has some, which must not go into
        a sum of none, or between pads."""
        def is_empty(index, is_open):
            shape = self.found_shapes.get(index, self.graph.tensors[index].shape) or ()
            return 0 in shape or is_open and None in shape

        tensors = self.graph.tensors
        of_none = [tensors[i].name for i in operator.inputs if i >= 0 and is_empty(i, False)
                   and tensors[i].constant is None and "float" in tensors[i].dtype]
        if of_none and operator.name not in _TAKING_NONE and not any(
                is_empty(i, True) for i in operator.outputs):
            raise Refusal("model", "it computes (%s) numbers from the tensor %s, which has none"
                          % (operator.name, of_none[0]))

    def keep(self, index, expr):
        """Takes the importer's expression for a tensor, rounded as the file says."""
        tensor = self.graph.tensors[index]
        if tensor.is_whole:
            self.quantized[index] = _quantized(expr, tensor)
            expr = dequantized(self.quantized[index], tensor)
        self.exp_tab.set_expr(self.names[index], expr)

    def value(self, index):
        """A tensor's numbers."""
        return self.get_tensor_expr(self.get_tensors([index])[0])

    def get_expr(self, index):
        # Where the importer expects activations, files have constants too.
        if not self.has_expr(index) and self.graph.tensors[int(index)].constant is not None:
            return self.value(index)
        return super().get_expr(index)

    def known(self, expr):
        """The constant that an expression is, or None where it depends on inputs' values."""
        body = self.exp_tab.with_constants(expr)
        if isinstance(body, relay.Constant):
            return body
        mod = relay.transform.InferType()(tvm.IRModule.from_expr(body))
        body = faster_folding.fold(tvm, mod)["main"].body
        return body if isinstance(body, relay.Constant) else None

    def known_value(self, index):
        """A tensor's numbers, which depend on shapes only."""
        tensor = self.graph.tensors[int(index)]
        if tensor.constant is None and not self.has_expr(index):
            raise Refusal("model", "the tensor %s has no numbers, and no operator makes them"
                          % tensor.name)
        body = self.known(self.value(index))
        if body is None:
            raise Refusal("model", "the tensor %s, which has to be known beforehand, depends "
                          "on the values of inputs" % self.graph.tensors[index].name)
        return body.data.numpy().astype(self.graph.tensors[index].dtype)

    def known_numbers(self, index):
        """known_value() of a list of whole numbers."""
        return [int(n) for n in np.ravel(self.known_value(index))]

    def shape_of(self, index):
        """Of a tensor: as was found, as the file has it, or as it is where that leaves it
        open."""
        index = int(index)
        shape = self.graph.tensors[index].shape
        if index in self.found_shapes:
            shape = self.found_shapes[index]
        elif not shape or None in shape:
            shape = frontend._infer_shape(self.value(index))
        return [int(extent) for extent in shape]

    def get_tensor_shape(self, tensor_wrapper):
        index = int(tensor_wrapper.tensor_idx)
        if index in self.found_shapes or None in self.graph.tensors[index].shape:
            return np.array(self.shape_of(index))
        return super().get_tensor_shape(tensor_wrapper)

    def output(self, index):
        """A tensor as the file stores it."""
        tensor = self.graph.tensors[index]
        if index in self.quantized:
            return self.quantized[index]
        expr = self.value(index)
        return _quantized(expr, tensor) if tensor.is_whole else expr

    def get_tensors(self, tensors_idx_list):
        return [frontend.TensorWrapper(index, *(self._as_seen(index) if index >= 0 else (0, 0)))
                for index in map(int, tensors_idx_list)]

    def _as_seen(self, index):
        """A tensor and its buffer, for the importer."""
        tensor = self.graph.tensors[index]
        value, dtype = tensor.constant, tensor.dtype
        if tensor.is_whole or (tensor.quantized is not None and value is not None
                               and dtype in ("int32", "int64")):
            # Biases are whole numbers with scales too.
            dtype = "float32"
            if value is not None and value.dtype.kind in "iu":
                value = tensor.quantized.to_numbers(value)
        if dtype == COMPLEX:
            dtype = "float32"  # of each part
        if dtype not in _TYPES:
            raise Refusal("model", "the tensor %s has a type that is not supported" % tensor.name)
        return (SeenTensor(self.subgraph.Tensors(index), _TYPES[dtype]),
                StoredBuffer(value) if value is not None
                else ComputedBuffer(partial(self.known_value, index)))

    def _convert_arg_min_max(self, relay_op, op):
        # -1 stands for no number that is more than the least that there is.
        place = super()._convert_arg_min_max(relay_op, op)
        return relay.maximum(place, relay.const(0, "int32"))

    def convert_reshape(self, op):
        # The importer looks for the extents with a copy of all weights at hand, each time.
        computed = op.InputsLength() == 2 and self.has_expr(op.Inputs(1))
        extents = self.known(self.value(op.Inputs(1))) if computed else None
        if extents is None:
            return super().convert_reshape(op)
        return relay.reshape(self.get_expr(op.Inputs(0)),
                             [int(n) for n in extents.data.numpy().ravel()])

    def convert_prelu(self, op):
        data, slopes = self.get_input_tensors(op)
        shape = self.shape_of(data.tensor_idx)
        if self.graph.tensors[slopes.tensor_idx].constant is None:
            return super().convert_prelu(op)
        made = layout.prelu(self.get_expr(data.tensor_idx), shape, self.get_tensor_value(slopes))
        return super().convert_prelu(op) if made is None else made
