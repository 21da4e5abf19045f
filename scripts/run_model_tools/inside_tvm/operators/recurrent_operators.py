"""ONNX's LSTM and GRU as layers of our kernels, in the place of TVM's importer's unrolled steps.

The importer writes every step out, with a dozen operators each.  Here the products of all steps'
inputs are one product of matrices, and what follows is a layer (kernels/recurrent.py).
"""

from run_model_tools.inside_tvm.operators import quantized_lstm
from run_model_tools.inside_tvm.operators.onnx_converters import exchanged


def installed(isa):
    """While it is open, from_onnx makes such layers for the instruction set wherever there is a
    kernel."""
    from tvm.relay.frontend import onnx as importer

    return exchanged(importer, lambda known: {
        **known, **{name: _converter(name, isa, known[name]) for name in ("LSTM", "GRU")},
        quantized_lstm.NAME: quantized_lstm.converter(isa)})


def _converter(name, isa, otherwise):
    def convert(inputs, attributes, parameters):
        given = [inputs[i] if i < len(inputs) else None for i in range(8)]
        result = _layer(name, isa, given, attributes) if _is_usual(name, attributes) else None
        return otherwise(inputs, attributes, parameters) if result is None else result

    return convert


def _text(value):
    return value.decode() if isinstance(value, bytes) else str(value)


def _is_usual(name, attributes):
    """Whether the attributes are those that the kernels compute."""
    activations = [_text(a).lower() for a in attributes.get("activations") or ()]
    usual = ["sigmoid", "tanh", "tanh"] if name == "LSTM" else ["sigmoid", "tanh"]
    if activations and activations not in (usual, usual * 2):
        return False
    if name == "GRU" and int(attributes.get("linear_before_reset", 0)) != 1:
        return False
    return (not attributes.get("clip") and not attributes.get("input_forget")
            and not attributes.get("activation_alpha") and not attributes.get("activation_beta")
            and int(attributes.get("layout", 0)) == 0)


def _layer(name, isa, given, attributes):
    """The outputs of the node, None where something about it is not for the kernels."""
    import numpy as np
    from tvm import relay
    from tvm.relay.frontend.common import infer_shape, infer_type

    from run_model_tools.kernels import recurrent

    x, w, r, b, lengths, h, c, peepholes = given
    kind = name.lower()
    if lengths is not None or peepholes is not None or not all(
            isinstance(v, relay.Constant) for v in (w, r, *([] if b is None else [b]))):
        return None
    if str(infer_type(x).checked_type.dtype) != "float32":
        return None
    shape = infer_shape(x)
    if len(shape) != 3 or not all(isinstance(n, int) and n > 0 for n in shape):
        return None
    steps, batch, size = shape
    w, r = w.data.numpy(), r.data.numpy()
    wide = r.shape[0] * r.shape[1]
    layer, bias = recurrent.made_of_onnx(
        kind, steps, batch, r, None if b is None else b.data.numpy(),
        _text(attributes.get("direction", "forward")).lower() == "reverse", isa)
    flat = relay.reshape(x, (steps * batch, size))
    product = relay.nn.dense(flat, relay.const(np.ascontiguousarray(w.reshape(wide, size))))
    product = relay.add(product, relay.const(bias))
    return outputs_of(layer, relay.reshape(product, (steps, batch, wide)),
                      [h, c] if kind == "lstm" else [h])


def outputs_of(layer, products, states):
    """The node's outputs; of states that are not given, None, all are 0."""
    import numpy as np
    from tvm import relay

    from run_model_tools.kernels.relay import operators

    steps, (_, count, batch, hidden) = layer.inputs[0][0][0], layer.output_shape
    states = [relay.const(np.zeros((count, batch, hidden), np.float32)) if state is None else state
              for state in states]
    label = operators.operator_name(layer, f"{layer.kind}_{layer.symbol(0).split('_')[-2]}")
    call = operators.call(layer, [products, *states], label)

    def part(first, last):
        return relay.strided_slice(call, [first], [last], axes=[0])

    outputs = [part(0, steps)] + [relay.reshape(part(steps + i, steps + i + 1),
                                                (count, batch, hidden))
                                  for i in range(len(states))]
    return relay.expr.TupleWrapper(relay.Tuple(outputs), len(outputs))
