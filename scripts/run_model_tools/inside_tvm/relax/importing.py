"""An ONNX file -> Relax."""

from contextlib import contextmanager

from run_model_tools.errors import last_line
from run_model_tools.inside_tvm import Refusal
from run_model_tools.inside_tvm.operators.onnx_converters import to_bfloat16


def read_onnx(tvm, request):
    """The Relax module of the ONNX file that the request names, all weights in it as constants."""
    import onnx
    import onnx.inliner
    from tvm.relax.frontend.onnx import from_onnx

    model = onnx.load(request["onnx"])
    if model.functions:  # Of a model that was not repaired; the importer does not look at them.
        model = onnx.inliner.inline_local_functions(model)
    shapes = None
    if not request.get("dynamic"):
        # Inputs that stand for constants are the file's own.
        shapes = {value.name: [d.dim_value for d in value.type.tensor_type.shape.dim]
                  for value in model.graph.input}
        shapes.update({name: list(shape) for name, shape in request["shapes"].items()})
    try:
        with operators_instead_of_loops(tvm), to_bfloat16(tvm):
            return from_onnx(model, shape_dict=shapes, sanitize_input_names=False)
    except Exception as error:
        raise Refusal("model", last_line(error)) from error


@contextmanager
def operators_instead_of_loops(tvm):
    """Has the importer write operators where it writes their loops, which nothing sees through
    (clamps and paddings), and the smaller of two numbers as that and not as one of a list."""
    from tvm import relax, topi
    from tvm.relax.frontend.onnx import onnx_frontend

    def bound(operator):
        def make(data, other):
            if isinstance(other, (int, float)):
                other = relax.const(other, str(data.ty.dtype))
            return operator(data, other)
        return make

    def pad(data, before, after, value=0.0):
        widths = [int(w) for pair in zip(before, after) for w in pair]
        value = float(value.value.numpy()) if isinstance(value, tvm.ir.GenericConst) else value
        if not isinstance(value, (int, float)):
            return None
        return relax.op.nn.pad(data, widths, "constant", float(value))

    def repeating(mode):
        def make(data, before, after, *_):
            return relax.op.nn.pad(data, [int(w) for pair in zip(before, after) for w in pair],
                                   mode)
        return make

    makers = {topi.maximum: bound(relax.op.maximum), topi.minimum: bound(relax.op.minimum),
              topi.nn.pad: pad, topi.nn.mirror_pad: repeating("reflect"),
              topi.nn.replicate_pad: repeating("replicate")}
    plain = relax.BlockBuilder.emit_te

    def emit_te(self, function, *arguments, **named):
        made = None
        if function in makers and not named:
            made = makers[function](*arguments)
        return plain(self, function, *arguments, **named) if made is None else self.emit(made)

    def of_two(cls, bb, inputs, attr, params):
        return cls._impl_dynamic(bb, inputs) if len(inputs) == 2 else listed(
            cls, bb, inputs, attr, params)

    lists = onnx_frontend.MultiInputBase
    listed = lists._impl_v1.__func__
    relax.BlockBuilder.emit_te = emit_te
    for operator in (onnx_frontend.Min, onnx_frontend.Max):
        operator._impl_v1 = classmethod(of_two)
    try:
        yield
    finally:
        relax.BlockBuilder.emit_te = plain
        for operator in (onnx_frontend.Min, onnx_frontend.Max):
            del operator._impl_v1
