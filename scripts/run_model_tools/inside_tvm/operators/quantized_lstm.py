"""ONNX Runtime's DynamicQuantizeLSTM, which TVM's importer does not know.

Inputs are quantised by the range that all of them have, and before every step so is the state, by
that of all rows of the batch.  What is multiplied are whole numbers, here in float32, where sums
below 2^24 are exact.
"""

NAME = "DynamicQuantizeLSTM"


def converters(known):
    """One step after the other, unless the layers are our kernels' (recurrent_operators.py)."""
    return {} if NAME in known else {NAME: converter(None)}


def converter(isa):
    """What makes a layer of our kernels for the instruction set, if that is not None."""
    def convert(inputs, attributes, parameters):
        given = [inputs[i] if i < len(inputs) else None for i in range(12)]
        direction = attributes.get("direction", "forward")
        direction = direction.decode() if isinstance(direction, bytes) else str(direction)
        return _outputs(isa, given, direction == "reverse")

    return convert


def _outputs(isa, given, backwards):
    import numpy as np
    from tvm import relay
    from tvm.relay.frontend.common import infer_shape

    x, w, r, b, _, h, c, _ = given[:8]
    steps, batch, size = infer_shape(x)
    w, w_steps = _whole_weights(w, *given[8:10])
    r, r_steps = _whole_weights(r, *given[10:12])
    count, wide, hidden = r.shape
    factors, scale = _quantised(relay.reshape(x, (steps * batch, size)))
    products = relay.nn.dense(factors, _constant(w.reshape(count * wide, size)))
    products = relay.multiply(products, relay.multiply(
        scale, _constant(w_steps.reshape(1, count * wide))))
    if b is not None:
        b = b.data.numpy()
        products = relay.add(products, _constant((b[:, :wide] + b[:, wide:]).reshape(-1)))
    products = relay.reshape(products, (steps, batch, count * wide))
    if isa is None:
        zeros = _constant(np.zeros((count, batch, hidden)))
        states = [zeros if state is None else state for state in (h, c)]
        outputs = _unrolled(products, states, r, r_steps, steps, backwards)
        return relay.expr.TupleWrapper(relay.Tuple(outputs), 3)
    from run_model_tools.inside_tvm.operators.recurrent_operators import outputs_of
    from run_model_tools.kernels import recurrent

    layer = recurrent.make(recurrent.Recurrent(
        "lstm", steps, batch, r, np.zeros((count, hidden), np.float32), backwards, r_steps), isa)
    return outputs_of(layer, products, [h, c])


def _whole_weights(weights, steps, zeros):
    """(float32 whole numbers [directions, gates * hidden, inputs], their steps [directions, gates *
    hidden]) of what lies transposed, with one step and zero point for each direction or column."""
    import numpy as np

    whole = weights.data.numpy().astype(np.float32)
    count, _, columns = whole.shape
    if zeros is not None:
        whole = whole - zeros.data.numpy().astype(np.float32).reshape(count, 1, -1)
    steps = np.broadcast_to(steps.data.numpy().reshape(count, -1), (count, columns))
    return np.ascontiguousarray(whole.transpose(0, 2, 1)), np.ascontiguousarray(steps)


def _quantised(x):
    """(whole numbers less their zero point, as float32, their step)."""
    from tvm import relay

    from run_model_tools.kernels.relay.quantization import to_even

    high = relay.maximum(relay.max(x), _constant(0))
    low = relay.minimum(relay.min(x), _constant(0))
    step = relay.divide(relay.subtract(high, low), _constant(255))
    # Where all are 0, any step will do.
    divisor = relay.where(relay.equal(step, _constant(0)), _constant(1), step)
    zero = relay.clip(to_even(relay.divide(relay.negative(low), divisor)), 0, 255)
    whole = relay.clip(relay.add(to_even(relay.divide(x, divisor)), zero), 0, 255)
    return relay.subtract(whole, zero), step


def _unrolled(products, given, r, r_steps, steps, backwards):
    """The outputs, of the products of all inputs with their biases."""
    from tvm import relay

    count, wide, _ = r.shape
    states, last_h, last_c = [], [], []
    for d in range(count):
        weights, columns = _constant(r[d]), _constant(r_steps[d])
        state, cell = (relay.squeeze(relay.strided_slice(s, [d], [d + 1], axes=[0]), [0])
                       for s in given)
        made = {}
        for at in reversed(range(steps)) if backwards or d else range(steps):
            factors, scale = _quantised(state)
            here = relay.squeeze(relay.strided_slice(
                products, [at, d * wide], [at + 1, (d + 1) * wide], [1, 1], [0, 2]), [0])
            sums = relay.multiply(relay.nn.dense(factors, weights), relay.multiply(scale, columns))
            i, o, f, g = relay.split(relay.add(sums, here), 4, axis=1)
            cell = relay.add(relay.multiply(relay.sigmoid(f), cell),
                             relay.multiply(relay.sigmoid(i), relay.tanh(g)))
            state = relay.multiply(relay.sigmoid(o), relay.tanh(cell))
            made[at] = state
        states.append(relay.stack([made[at] for at in range(steps)], axis=0))
        last_h.append(state)
        last_c.append(cell)
    return [relay.stack(states, axis=1), relay.stack(last_h, axis=0), relay.stack(last_c, axis=0)]


def _constant(numbers):
    import numpy as np
    from tvm import relay

    return relay.const(np.asarray(numbers, np.float32, order="C"))
