"""TensorFlow Lite -> Relay, by TVM's importer, which sees float32 throughout.

A quantized tensor becomes what its whole numbers stand for, between a qnn.quantize and a
qnn.dequantize: the same picture that ONNX files with QuantizeLinear give, which the layers of bytes
read (kernels/int8).  Everything else rounds where the file says, and computes in float32 between.
"""

from pathlib import Path

from tvm import relay
from tvm.relay.frontend import tflite as frontend

from run_model_tools.errors import last_line
from run_model_tools.inside_tvm import Refusal
from run_model_tools.inside_tvm.tflite import layout
from run_model_tools.inside_tvm.tflite.converter import Converter, dequantized
from run_model_tools.inside_tvm.tflite.seen_by_importer import SharedTable
from run_model_tools.tflite.file import Malformed
from run_model_tools.tflite.model import input_names
from run_model_tools.tflite.states import read_network


def read_tflite(path, shapes):
    """The Relay module of a .tflite file, all weights in it as constants; NHWC at the interface."""
    try:
        file = read_network(Path(path))
    except Malformed as error:
        raise Refusal("model", str(error)) from error
    try:
        function = _converted(file, shapes)
    except Refusal:
        raise
    except Exception as error:
        raise Refusal("model", last_line(error)) from error
    return layout.channels_first(function)


def _converted(file, shapes):
    names = ["tensor_%d" % i for i in range(len(file.tensors))]
    inputs, table = [], SharedTable()
    for name, index in zip(input_names(file), file.inputs):
        names[index] = name
        tensor = file.tensors[index]
        inputs.append(relay.var(name, shape=tuple(shapes[name]), dtype=tensor.dtype))
        table.set_expr(name, dequantized(inputs[-1], tensor))
    converter = Converter(file, file, names, table)
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
    return relay.Function(inputs, table.with_constants(body))
