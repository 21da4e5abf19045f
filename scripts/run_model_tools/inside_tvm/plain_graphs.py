"""Relay modules that are operators on tensors alone: no functions within, branches or references.

Relay's own ExprMutator asks TVM several times for each node; on networks of thousands of nodes that
takes seconds.
"""


def is_plain(tvm, mod):
    relay = tvm.relay
    plain = (relay.Call, relay.Constant, relay.Tuple, relay.TupleGetItem, relay.Var, tvm.ir.Op)
    return all(isinstance(node, plain) for node in nodes_of(relay, mod))


def nodes_of(relay, mod):
    """Those of the function main, each behind what it reads."""
    order = []
    relay.analysis.post_order_visit(mod["main"].body, order.append)
    return order


def mapped(relay, mod, change):
    """The plain module with change(call, args) in the place of each call, or the call itself of
    these args where that is None; itself where nothing changes.  args: what its operands have
    become."""
    changed = {}

    def now(node):
        return changed.get(node, node)

    for node in nodes_of(relay, mod):
        new = None
        if isinstance(node, relay.Call):
            args = [now(a) for a in node.args]
            new = change(node, args)
            if new is None and any(a in changed for a in node.args):
                new = relay.Call(node.op, args, node.attrs, node.type_args, node.span)
        elif isinstance(node, relay.Tuple) and any(f in changed for f in node.fields):
            new = relay.Tuple([now(f) for f in node.fields], node.span)
        elif isinstance(node, relay.TupleGetItem) and node.tuple_value in changed:
            new = relay.TupleGetItem(now(node.tuple_value), node.index, node.span)
        if new is not None:
            changed[node] = new
    body = mod["main"].body
    return with_body(relay, mod, changed[body]) if body in changed else mod


def without_fence(call, args):
    """What is behind a fence that stopped a pass, for mapped()."""
    return args[0] if getattr(call.op, "name", None) == "annotation.stop_fusion" else None


def with_body(relay, mod, body):
    """The module with another body of main, with types."""
    main = mod["main"]
    mod = mod.clone()
    mod["main"] = relay.Function(main.params, body, main.ret_type, main.type_params, main.attrs,
                                 main.span)
    return relay.transform.InferType()(mod)
