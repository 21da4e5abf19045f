"""Keeps TVM from writing one value out again and again until there is no end.

Operators on single numbers are fused, and what is fused is written out wherever it is read.  Where
each step reads the one before it twice (a binary search out of Where, an iteration), that doubles
with every step.  Beyond a limit a value is therefore put down in memory, by a fence which TVM does
not fuse through.
"""

from run_model_tools.inside_tvm.plain_graphs import nodes_of, with_body

LIMIT = 400
"""Of operators in one expression.  Networks' activations and embeddings of places have 5 to 50, and
each residual block adds two or three to what is counted here, though most of that is in memory."""

_INJECTIVE = 2
_TIMES = {"maximum": 3, "minimum": 3, "tanh": 5, "isfinite": 3, "nn.leaky_relu": 3, "cosh": 2,
          "isinf": 2, "sign": 2, "sinh": 2, "tan": 2, "floor_divide": 6, "floor_mod": 8}
"""How often an operator's code has its operand: of the first two, of floats, in comparisons that
keep a NaN (nan_arithmetic.py), of the last two, of whole numbers, three and four times, of which
two are compared with something (whole_division.py)."""
_COMPARISONS = ("equal", "greater", "greater_equal", "less", "less_equal", "not_equal")
_PROOFS = 8
"""So often TVM goes through a comparison of whole numbers, to prove that it always or never holds:
of comparisons in each other (rounded down quotients that are compared) it is a power of their
depth.
"""


def bounded(tvm, mod):
    """A plain module, as relay.build has it before it fuses, with fences where it needs any."""
    from tvm import relay

    mod = relay.transform.InferType()(mod)
    sizes, changed = {}, {}
    for node in nodes_of(relay, mod):
        if isinstance(node, relay.Tuple):
            parts = list(node.fields)
        elif isinstance(node, relay.TupleGetItem):
            parts = [node.tuple_value]
        elif isinstance(node, relay.Call) and isinstance(node.op, tvm.ir.Op):
            parts = list(node.args)
        else:
            continue
        is_call = isinstance(node, relay.Call)
        if is_call and not _is_written_out(node.op):
            fenced, size = [], 0
        else:
            times = _times(node) if is_call else 1
            fenced, size = _fenced(parts, sizes, (LIMIT - 1) // times)
            size = size * times + is_call
        sizes[node] = size
        new = [_now(relay, part, changed, part in fenced) for part in parts]
        if all(a is b for a, b in zip(new, parts)):
            continue
        changed[node] = (relay.Tuple(new, node.span) if isinstance(node, relay.Tuple) else
                         relay.TupleGetItem(new[0], node.index, node.span) if not is_call else
                         relay.Call(node.op, new, node.attrs, node.type_args, node.span))
    if not changed:
        return mod
    return with_body(relay, mod, changed[mod["main"].body])


def _times(call):
    if call.op.name in _COMPARISONS and "int" in call.args[0].checked_type.dtype:
        return _PROOFS
    return _TIMES.get(call.op.name, 1)


def _is_written_out(op):
    pattern = op.get_attr("TOpPattern")
    return pattern is not None and pattern <= _INJECTIVE


def _fenced(parts, sizes, room):
    """(which parts get a fence so that the others' sizes fit into the room, these sizes' sum)."""
    fenced, size = [], sum(sizes.get(part, 0) for part in parts)
    for part in sorted(dict.fromkeys(parts), key=lambda part: -sizes.get(part, 0)):
        if size <= room:
            break
        fenced.append(part)
        size -= sizes.get(part, 0) * sum(part == other for other in parts)
    return fenced, size


def _now(relay, part, changed, is_fenced):
    """A part as it is now; one fence for all who read it."""
    now = changed.get(part, part)
    if not is_fenced or isinstance(part.checked_type, relay.TupleType):
        return now
    key = ("fence", part)
    if key not in changed:
        changed[key] = relay.annotation.stop_fusion(now)
    return changed[key]
