"""Networks of many small tensors, as unrolled recurrent layers are, in a form that is for GPUs.

A kernel takes a buffer for each tensor that it reads, of which GPUs allow as few as 24 or 32, and
code on the host checks them all: so parts are cut out where they are used, few tensors are joined
at a time, and equal weights are one constant.
"""

import hashlib

_MOST_PARTS = 8
"""Gates of a recurrent layer, heads or branches are fewer, and are used together."""
_MOST_JOINED = 24
_TOGETHER = 8
"""What is computed in the same kernel may take three buffers for each."""
_LEAST_BYTES = 1024
"""Of constants that are worth it to be one."""


def with_few_buffers(module):
    """The module with a slice for each part of a split into many that is used alone, and with
    concatenations and stacks of too many tensors made of shorter ones."""
    from tvm import relay

    from run_model_tools.kernels.relay.graph import operator

    class Few(relay.ExprMutator):
        def visit_tuple_getitem(self, item):
            # What is fused with a part of a split would take all parts, of which it reads one.
            split = item.tuple_value
            if operator(split) != "split":
                return super().visit_tuple_getitem(item)
            shapes = [[int(extent) for extent in field.shape]
                      for field in split.checked_type.fields]
            if len(shapes) <= _MOST_PARTS:
                return super().visit_tuple_getitem(item)
            axis = int(split.attrs.axis) % len(shapes[0])
            begin = sum(shape[axis] for shape in shapes[:item.index])
            return _in_place_of(relay, split, relay.strided_slice(
                self.visit(split.args[0]), begin=[begin],
                end=[begin + shapes[item.index][axis]], strides=[1], axes=[axis]))

        def visit_call(self, call):
            made = super().visit_call(call)
            name = operator(call)
            if name not in ("concatenate", "stack") or not isinstance(made.args[0], relay.Tuple):
                return made
            fields, axis = list(made.args[0].fields), int(call.attrs.axis)
            if len(fields) <= _MOST_JOINED:
                return made
            if name == "stack":
                # Counted from the end, axes are of the result.
                axis += len(call.checked_type.shape) if axis < 0 else 0
                fields = [relay.expand_dims(field, axis) for field in fields]
            return _in_place_of(relay, call, _joined(relay, fields, axis))

    module = relay.transform.InferType()(module)
    module["main"] = Few().visit(module["main"])
    return relay.transform.InferType()(module)


def _joined(relay, fields, axis):
    parts = [fields[i:i + _TOGETHER] for i in range(0, len(fields), _TOGETHER)]
    if len(parts) == 1:
        return relay.concatenate(fields, axis)
    fenced = [relay.annotation.stop_fusion(relay.concatenate(part, axis)) if len(part) > 1
              else part[0] for part in parts]
    return _joined(relay, fenced, axis)


def _in_place_of(relay, call, made):
    """A call with the names that another one has."""
    return relay.Call(made.op, made.args, made.attrs, made.type_args, call.span)


def with_shared_constants(module):
    """The module, which has types, with one constant for all that are equal to the bit: the
    importer gives each step of an unrolled layer weights of its own."""
    from tvm import relay

    kept, changed = {}, {}

    def visit(expr):
        if not isinstance(expr, relay.Constant):
            return
        array = expr.data.numpy()
        if array.nbytes >= _LEAST_BYTES:
            key = (str(array.dtype), array.shape, hashlib.sha256(array.tobytes()).digest())
            first = kept.setdefault(key, expr)
            if first is not expr:
                changed[expr] = first

    relay.analysis.post_order_visit(module["main"].body, visit)
    if not changed:
        return module

    class Shared(relay.ExprMutator):
        def visit_constant(self, constant):
            return changed.get(constant, constant)

    module["main"] = Shared().visit(module["main"])
    return relay.transform.InferType()(module)
