"""A network's file -> Relay."""

import sys
from contextlib import nullcontext
from types import ModuleType

from run_model_tools.errors import last_line
from run_model_tools.inside_tvm import Refusal, faster_import, operators, pad_channels
from run_model_tools.inside_tvm.operators import quantized_lstm


def reading_once(tvm, request):
    """A function that gives the Relay module of the network, whose weights are constants in it.

    Its argument is the number of lanes that an ONNX file's channels are made multiples of
    (pad_channels), 0 by default.  Importing takes a good part of the time, so what was imported is
    given again where another time would make the same of it.  `names` of the function are those of
    an ONNX file's nodes.
    """
    from tvm import IRModule

    plain, names = {}, set()

    def kept(make):
        if "main" not in plain:
            plain["main"] = make()["main"]
        return IRModule.from_expr(plain["main"])

    def read(lanes=0):
        if "tflite" in request:
            from run_model_tools.inside_tvm.tflite.importer import read_tflite

            return kept(lambda: read_tflite(request["tflite"], request["shapes"]))
        import onnx

        model = onnx.load(request["onnx"])
        names.update(node.name for node in model.graph.node)
        padded = pad_channels.pad_channels(model, lanes)
        # Of recurrent layers another thing is made while our kernels' converters are installed.
        recurrent = ("LSTM", "GRU", quantized_lstm.NAME)
        if padded or any(node.op_type in recurrent for node in model.graph.node):
            return read_onnx(model, request)
        return kept(lambda: read_onnx(model, request))

    read.names = names
    return read


def read_onnx(model, request):
    """The Relay module of an onnx.ModelProto, all weights in it as constants."""
    import tvm
    from tvm import relay

    know_element_types()
    shapes = {k: tuple(v) for k, v in request["shapes"].items()}
    importer = faster_import.linear_importer(tvm) if request.get("fast", True) else nullcontext()
    try:
        with importer, operators.imported(tvm):
            return relay.frontend.from_onnx(model, shapes, freeze_params=True)[0]
    except Exception as error:
        raise Refusal("model", node_at_work(error) + last_line(error)) from error


def know_element_types():
    """Makes `onnx.mapping`, whose table TVM's importer reads and later releases of onnx lack."""
    try:
        import onnx.mapping  # noqa: F401
    except ImportError:
        from onnx import helper

        module = ModuleType("onnx.mapping")
        module.TENSOR_TYPE_TO_NP_TYPE = {kind: helper.tensor_dtype_to_np_dtype(kind)
                                         for kind in helper.get_all_tensor_dtypes() if kind}
        sys.modules["onnx.mapping"] = module


def node_at_work(error):
    """Which node the importer had in hand when it raised the error, as the start of a sentence."""
    trace, found = error.__traceback__, ""
    while trace is not None:
        node = trace.tb_frame.f_locals.get("node")
        if trace.tb_frame.f_code.co_name == "_construct_nodes" and node is not None:
            found = "at node '%s' (%s): " % (node.name, node.op_type)
        trace = trace.tb_next
    return found
