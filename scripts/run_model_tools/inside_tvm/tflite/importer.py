"""TensorFlow Lite -> Relay, by TVM's importer, which sees float32 throughout.

A quantized tensor becomes what its whole numbers stand for, between a qnn.quantize and a
qnn.dequantize: the same picture that ONNX files with QuantizeLinear give, which the layers of bytes
read (kernels/int8).  Everything else rounds where the file says, and computes in float32 between.
"""

from functools import partial
from hashlib import sha256
from itertools import count

import numpy as np

from run_model_tools.inside_tvm import Refusal, faster_folding
from run_model_tools.inside_tvm.tflite import (
    boxes,
    control_flow,
    layout,
    operators,
    pieces,
    recurrent,
    segments,
    softmax,
    transposed,
)
from run_model_tools.tflite.as_compiled import TRANSPOSED
from run_model_tools.tflite.file import COMPLEX, Malformed, code_of, read_file
from run_model_tools.tflite.model import input_names

# Operators that only say how numbers are stored: the importer sees numbers.
_REPRESENTATION = ("QUANTIZE", "DEQUANTIZE", "DENSIFY")


def read_tflite(tvm, path, shapes):
    """The Relay module of a .tflite file, all weights in it as constants; NHWC at the interface."""
    from pathlib import Path

    from tvm import relay

    try:
        file = read_file(Path(path))
    except Malformed as error:
        raise Refusal("model", str(error)) from error
    try:
        body, inputs = _convert(relay, file, shapes)
    except Refusal:
        raise
    except Exception as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise Refusal("model", lines[-1]) from error
    return layout.channels_first(tvm, relay.Function(inputs, body))


def _convert(relay, file, shapes):
    from tvm.relay.frontend import tflite as frontend

    names = ["tensor_%d" % i for i in range(len(file.tensors))]
    inputs = {}
    for name, index in zip(input_names(file), file.inputs):
        names[index] = name
        tensor = file.tensors[index]
        inputs[index] = relay.var(name, shape=tuple(shapes[name]), dtype=tensor.dtype)
    known = {}
    for index, var in inputs.items():
        known[names[index]] = _dequantized(relay, var, file.tensors[index])
    table = _table(frontend)
    for name, expr in known.items():
        table.set_expr(name, expr)
    converter = _converter_class(relay, frontend)(file, file, names, table)
    # The importer knows tensors by their names, which need not differ in a file.
    original = frontend.get_tensor_name
    frontend.get_tensor_name = lambda subgraph, index: subgraph.names[index]
    try:
        converter.check_unsupported_ops()
        converter.convert_op_to_relay()
        outputs = [converter.output(index) for index in file.outputs]
    finally:
        frontend.get_tensor_name = original
    body = outputs[0] if len(outputs) == 1 else relay.Tuple(outputs)
    return _with_weights(relay, body, table), [inputs[i] for i in file.inputs]


def _table(frontend):
    class Table(frontend.ExprTable):
        """Expressions by names, with equal constants once: a loop has them in each iteration."""

        def __init__(self):
            super().__init__()
            self.constants = {}

        def new_const(self, value, shape=None, dtype="float32", source_name=None):
            array = np.asarray(value, order="C")  # np.ascontiguousarray() makes rows of scalars
            key = (str(dtype), array.dtype.str, array.shape, sha256(array).digest())
            if key not in self.constants:
                self.constants[key] = super().new_const(value, shape, dtype, source_name)
            return self.constants[key]

    return Table()


def _with_weights(relay, body, table):
    found = [var for var in relay.analysis.free_vars(body) if var.name_hint in table.params]
    # relay.const() takes int64 for int32, unless it is told.
    return relay.bind(body, {var: relay.const(np.array(table.params[var.name_hint]),
                                              var.type_annotation.dtype) for var in found})


def _dequantized(relay, expr, tensor):
    if not tensor.is_whole:
        return expr
    return relay.qnn.op.dequantize(expr, *_parameters(relay, tensor))


def _quantized(relay, expr, tensor):
    return relay.qnn.op.quantize(expr, *_parameters(relay, tensor), out_dtype=tensor.dtype)


def _parameters(relay, tensor):
    q = tensor.quantized
    if len(q.scales) != 1:
        raise Refusal("model", "an activation of it has a scale for each channel")
    return (relay.const(float(q.scales[0]), "float32"), relay.const(int(q.zero_points[0]), "int32"))


class _Stored:
    """A buffer of the flatbuffer, as the importer sees it."""

    def __init__(self, value):
        self.value = value

    def DataAsNumpy(self):
        return np.frombuffer(np.ascontiguousarray(self.value).tobytes(), np.uint8)

    def DataLength(self):
        return self.value.nbytes


class _Computed:
    """What the importer wants as a buffer and the file computes, as shapes are of open batches."""

    def __init__(self, compute):
        self._compute = compute

    def DataAsNumpy(self):
        return _Stored(self._compute()).DataAsNumpy()

    def DataLength(self):
        return 0


class _Seen:
    """A tensor of the flatbuffer, as the importer sees it: of float32 and without scales."""

    def __init__(self, tensor, original, kind):
        self._tensor, self._original, self._kind = tensor, original, kind

    def Type(self):
        return self._kind

    def Quantization(self):
        return None

    def Sparsity(self):
        return None

    def __getattr__(self, name):
        return getattr(self._original, name)


def _converter_class(relay, frontend):
    import tvm
    from tflite.SubGraph import SubGraph
    from tflite.TensorType import TensorType

    numbers = {"float32": TensorType.FLOAT32, "float16": TensorType.FLOAT16,
               "int32": TensorType.INT32, "uint8": TensorType.UINT8, "int64": TensorType.INT64,
               "bool": TensorType.BOOL, "int16": TensorType.INT16, "int8": TensorType.INT8}

    joined, calls = pieces.Pieces(relay), count()

    class Named(SubGraph):
        """A graph, with names of its tensors."""

    class Converter(frontend.OperatorConverter):
        """The importer's own but for how tensors are stored, of one graph of the file."""

        def __init__(self, file, graph, names, table):
            named, stored = Named(), file.model.Subgraphs(graph.number)
            named.Init(stored._tab.Bytes, stored._tab.Pos)
            named.names = names
            super().__init__(file.model, named, table)
            self.file, self.graph, self.names = file, graph, names
            self.found_shapes = {}
            """Of tensors whose shapes are computed; one with an extent of 0 is none of TVM's, and
            another expression stands for it."""
            self.convert_map["PRELU"] = self.convert_prelu
            for name, convert in {**boxes.converters(relay),
                                  **operators.converters(relay),
                                  **pieces.converters(relay, joined),
                                  **recurrent.converters(relay),
                                  **segments.converters(relay),
                                  **softmax.converters(relay),
                                  **transposed.converters(relay)}.items():
                self.convert_map[name] = partial(convert, self)
            self.quantize_exprs = {}

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
                              if o.name not in self.convert_map and not o.graphs
                              and o.name != "TFLite_Detection_PostProcess"})
            if missing:
                raise Refusal("model", "it has operators that are not supported: "
                                       + ", ".join(missing))

        def _called_graphs(self):
            """This one, and those that its operators call."""
            numbers = [self.graph.number]
            for number in numbers:
                numbers += {called for o in self.file.graphs[number].operators
                            for called in o.graphs}.difference(numbers)
            return [self.file.graphs[number] for number in numbers]

        def called(self, graph, values):
            """What another graph of the file gives of these expressions, one for each input."""
            call = next(calls)
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
                if operator.graphs:
                    made = (control_flow.while_loop(self, operator)
                            if operator.name == "WHILE"
                            else control_flow.branches(relay, self, operator))
                    for i, expr in zip(operator.outputs, made):
                        self.exp_tab.set_expr(self.names[i], expr)
                    continue
                if operator.name in _REPRESENTATION:
                    result = self.value(operator.inputs[0])
                else:
                    convert = self.convert_map[self.get_op_code_str(op)]
                    result = (operators.moved(relay, self, convert, op)
                              if operators.moves_complex(self, operator) else convert(op))
                for number, i in enumerate(operator.outputs):
                    self.keep(i, result if len(operator.outputs) == 1 else result[number])

        def keep(self, index, expr):
            """Takes the importer's expression for a tensor, rounded as the file says."""
            tensor = self.graph.tensors[index]
            if tensor.is_whole:
                self.quantize_exprs[index] = _quantized(relay, expr, tensor)
                expr = _dequantized(relay, self.quantize_exprs[index], tensor)
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
            body = _with_weights(relay, expr, self.exp_tab)
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
            if index in self.quantize_exprs:
                return self.quantize_exprs[index]
            expr = self.value(index)
            return _quantized(relay, expr, tensor) if tensor.is_whole else expr

        def get_tensors(self, tensors_idx_list):
            result = []
            for index in map(int, tensors_idx_list):
                if index < 0:
                    result.append(frontend.TensorWrapper(index, 0, 0))
                    continue
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
                if dtype not in numbers:
                    raise Refusal("model", "the tensor %s has a type that is not supported"
                                  % tensor.name)
                seen = _Seen(tensor, self.subgraph.Tensors(index), numbers[dtype])
                stored = (_Stored(value) if value is not None
                          else _Computed(partial(self.known_value, index)))
                result.append(frontend.TensorWrapper(index, seen, stored))
            return result

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
            made = layout.prelu(relay, self.get_expr(data.tensor_idx), shape,
                                       self.get_tensor_value(slopes))
            return super().convert_prelu(op) if made is None else made

    return Converter
