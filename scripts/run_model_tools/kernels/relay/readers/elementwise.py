"""What works on each number alone: TVM computes it, on blocks where the numbers lie in blocks."""

from __future__ import annotations

from tvm import relay

from run_model_tools.kernels.epilogues import operator, shape_of
from run_model_tools.kernels.relay.readers.network import Network, Value
from run_model_tools.kernels.tensors import Blocked, lie_alike


def _single(net: Network, expr: relay.Expr) -> Value:
    data = net.values[expr.args[0]]
    if not isinstance(data, Blocked) or str(expr.checked_type.dtype) != "float32":
        return None
    tensors = tuple(
        net.add_relay([t], t.shape, "float32",
                      lambda x: relay.Call(expr.op, [x], expr.attrs), operator(expr))
        for t in data.tensors)
    return Blocked(tensors, data.places)


def _pair(net: Network, expr: relay.Expr) -> Value:
    a, b = (net.values[x] for x in expr.args)
    if (not isinstance(a, Blocked) or not isinstance(b, Blocked) or not lie_alike(a, b, (1, 1))
            or str(expr.checked_type.dtype) != "float32"):
        return None
    size = shape_of(expr)[2:]
    shape = (*a.tensors[0].shape[:2], *size, a.lanes)
    output = net.add_relay([a.tensors[0], b.tensors[0]], shape, "float32",
                           lambda x, y: relay.Call(expr.op, [x, y], expr.attrs),
                           operator(expr))
    return Blocked((output,), a.places)


# They may run on the blocked form, whatever unused lanes hold.
READERS = {
    **dict.fromkeys(("nn.relu", "clip", "sigmoid", "tanh", "exp", "nn.leaky_relu", "erf", "abs",
                     "negative", "sqrt", "copy"), _single),
    **dict.fromkeys(("add", "multiply", "subtract", "maximum", "minimum"), _pair)}
