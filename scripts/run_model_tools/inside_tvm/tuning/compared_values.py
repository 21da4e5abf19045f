"""The values by which two builds of a network are compared; runs inside TVM's process.

Sums that are added in another order differ in their last bits, which is allowed.  An integer that
was made of such values, the number of the best class, the place of a pixel's area, an answer yes or
no, then differs by anything.  So where an output is an integer, the floating values that it was
made of are compared in its place.
"""

import numpy as np


class Departure(Exception):
    """Outputs that differ by more than rounding does."""


def with_values(tvm, mod):
    """`mod` with the values behind its integers as outputs in their place; `mod` itself where there
    are none.  mod: a module with types."""
    from tvm import relay

    body = mod["main"].body
    outputs = list(body.fields) if isinstance(body, relay.Tuple) else [body]
    compared = []
    for output in outputs:
        compared.extend(_floating(tvm, output) or [output])
    if len(compared) == len(outputs) and all(
            one.same_as(other) for one, other in zip(compared, outputs)):
        return mod
    function = relay.Function(relay.analysis.free_vars(relay.Tuple(compared)),
                              relay.Tuple(compared))
    return relay.transform.InferType()(tvm.IRModule.from_expr(function))


def check(ours, theirs, tolerance):
    """Raises Departure unless all of `ours` are those of `theirs`, but for `tolerance` of the
    largest of each."""
    for one, other in zip(ours, theirs):
        # Differences of unsigned integers would wrap around.
        one, other = one.astype(np.float64), other.astype(np.float64)
        if one.size == 0:
            continue
        worst, limit = np.abs(one - other).max(), tolerance * np.abs(other).max()
        if not worst <= limit:
            raise Departure("departs by %g where %g is allowed" % (worst, limit))


def _floating(tvm, output):
    """The nearest computed floating tensors that an integer output depends on.  Nothing for an
    output that is floating, and where one of its ways leads back to an input without such a value:
    integers that are computed of integers have to be equal."""
    from tvm import relay

    found, seen = [], set()
    waiting = [output]
    while waiting:
        node = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        if isinstance(node, relay.Constant):
            continue
        if isinstance(node, relay.TupleGetItem):
            waiting.append(node.tuple_value)
        elif isinstance(node, relay.Tuple):
            waiting.extend(node.fields)
        elif not isinstance(node, relay.Call):
            return []
        elif isinstance(node.checked_type, tvm.ir.TensorType) and \
                node.checked_type.dtype.startswith(("float", "bfloat")):
            found.append(node)
        else:
            waiting.extend(node.args)
    return found

