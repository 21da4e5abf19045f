"""Concatenations of many tensors, some of them at a time: a kernel takes a buffer for each, of
which GPUs allow as few as 24 or 32."""

_MOST = 24
_TOGETHER = 8
"""What is computed in the same kernel may take three buffers for each."""


def with_short_joins(tvm, module):
    """The module whose concatenations and stacks of too many tensors are made of shorter ones."""
    from tvm import relay

    def joined(fields, axis):
        parts = [fields[i:i + _TOGETHER] for i in range(0, len(fields), _TOGETHER)]
        if len(parts) == 1:
            return relay.concatenate(fields, axis)
        fenced = [relay.annotation.stop_fusion(relay.concatenate(part, axis)) if len(part) > 1
                  else part[0] for part in parts]
        return joined(fenced, axis)

    class Joins(relay.ExprMutator):
        def visit_call(self, call):
            made = super().visit_call(call)
            name = getattr(call.op, "name", "")
            if name not in ("concatenate", "stack") or not isinstance(made.args[0], relay.Tuple):
                return made
            fields, axis = list(made.args[0].fields), int(call.attrs.axis)
            if len(fields) <= _MOST:
                return made
            if name == "stack":
                # Counted from the end, axes are of the result.
                axis += len(call.checked_type.shape) if axis < 0 else 0
                fields = [relay.expand_dims(field, axis) for field in fields]
            whole = joined(fields, axis)
            return relay.Call(whole.op, whole.args, whole.attrs, whole.type_args, call.span)

    module = relay.transform.InferType()(module)
    module["main"] = Joins().visit(module["main"])
    return relay.transform.InferType()(module)
