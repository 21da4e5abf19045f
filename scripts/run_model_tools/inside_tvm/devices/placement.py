"""Operators that a GPU cannot do, on the CPU: found by trying, and annotated for TVM's planner of
devices, which puts copies around them.

An operator is known by its name and the shapes that it takes.  What was simplified on the way to a
schedule has other shapes than in the network; all operators of that name are placed then.
"""

import re

from run_model_tools.inside_tvm import called_operator, node_names

_ROUNDS = 12
"""Of compiling again, each with another operator placed: a network with more of them than this is
none for a GPU."""
_FUSED = "fused_"
ON_CPU = "it is computed on the CPU: "
"""What begins such a reason in --explain."""


class Placement:
    """What has to be on the CPU: [(operator, shapes or None, why)]."""

    def __init__(self):
        self.found = []
        self._dropped = set()

    def drop(self, prefix):
        """Forgets operators whose names begin so, which no CPU has; whether there ever were any."""
        kept = [one for one in self.found if not one[0].startswith(prefix)]
        if len(kept) < len(self.found):
            self._dropped.add(prefix)
        self.found = kept
        return prefix in self._dropped

    def note(self, operator, shapes, why):
        """Takes an operator in."""
        if (operator, shapes) not in [one[:2] for one in self.found]:
            self.found.append((operator, shapes, why))

    def note_kernel(self, tvm, kernel, why):
        """Takes in what a fused function computes, of which there is only its name: the operators
        in it that the reason names, else those that are more than arithmetic by elements."""
        name = kernel.partition(_FUSED)[2].partition("_kernel")[0]
        known = {str(op).replace(".", "_"): str(op) for op in tvm.ir.Op.list_op_names()}
        found = []
        while name:
            match = next((name[:end] for end in range(len(name), 0, -1)
                          if name[:end] in known and name[end:end + 1] in ("", "_")), None)
            if match is None:
                name = name.partition("_")[2]
                continue
            found.append(known[match])
            name = name[len(match) + 1:]
        named = [op for op in found if re.search(r"\b%s\b" % op.rpartition(".")[2], why)]
        found = named or found
        patterns = {op: int(tvm.ir.Op.get(op).get_attr("TOpPattern") or 0) for op in found}
        for op in found:
            if patterns[op] == max(patterns.values()):
                self.note(op, None, why)

    def describe(self):
        """For metadata.json."""
        return [{"operator": operator, "shapes": shapes, "because": why}
                if shapes else {"operator": operator, "because": why}
                for operator, shapes, why in self.found]


def rounds(placement, build):
    """What build() gives, called again as long as it fails with more to be placed."""
    for _ in range(_ROUNDS):
        before = len(placement.found)
        try:
            return build()
        except Exception:
            if len(placement.found) == before:
                raise
    return build()


def annotated(tvm, module, placement, gpu):
    """The module with what has to be on the CPU marked so, and why, for --explain.

    TVM's planner takes what nothing separates for one device's: each tensor that goes into or out
    of the CPU gets a mark that lets it be copied.  Tuples cannot be, so their members are.
    """
    from tvm import relay

    module = relay.transform.InferType()(module)
    on_device = relay.annotation.on_device
    cpu = tvm.cpu(0)
    exact = _exact(relay, module, placement)

    def is_on_cpu(expr):
        while isinstance(expr, relay.TupleGetItem):
            expr = expr.tuple_value
        return isinstance(expr, relay.Call) and _why(placement, exact, expr) is not None

    class Mark(relay.ExprMutator):
        def _moved(self, argument):
            """What an operator on the CPU takes."""
            if isinstance(argument, relay.Constant):
                return argument
            if isinstance(argument, relay.Tuple):
                return relay.Tuple([self._moved(field) for field in argument.fields])
            made = self.visit(argument)
            if is_on_cpu(argument):
                # Without its mark, which has one device's result for all who take it.
                return made if made.attrs.constrain_result else made.args[0]
            return on_device(made, gpu, constrain_result=False)

        def visit_call(self, call):
            why = _why(placement, exact, call)
            if why is None:
                return super().visit_call(call)
            names = node_names.names_in(call) + [node_names.WHY + ON_CPU + why]
            made = relay.Call(call.op, [self._moved(one) for one in call.args], call.attrs,
                              call.type_args, node_names.place_of(relay, names))
            is_tuple = hasattr(call.checked_type, "fields")
            return on_device(made, cpu, constrain_result=is_tuple)

        def visit_tuple_getitem(self, item):
            made = super().visit_tuple_getitem(item)
            if not is_on_cpu(item.tuple_value):
                return made
            return on_device(made, cpu, constrain_result=False)

    module["main"] = Mark().visit(module["main"])
    return relay.transform.InferType()(module)


def _exact(relay, module, placement):
    """Of what is to be placed, that which the network has with these very shapes."""
    there = set()

    def visit(expr):
        if called_operator(expr):
            there.add((called_operator(expr), shapes_of(expr)))

    relay.analysis.post_order_visit(module["main"], visit)
    return {one[:2] for one in placement.found if one[:2] in there}


def _why(placement, exact, call):
    for operator, shapes, why in placement.found:
        if operator != called_operator(call):
            continue
        if (operator, shapes) not in exact or shapes == shapes_of(call):
            return why
    return None


def shapes_of(call):
    """The shapes of a typed call's arguments, of tuples those of their members."""
    return tuple(shape for argument in call.args for shape in _shapes(argument.checked_type))


def _shapes(kind):
    fields = getattr(kind, "fields", None)
    if fields is not None:
        return [shape for field in fields for shape in _shapes(field)]
    return [tuple(int(d) if hasattr(d, "value") else -1 for d in kind.shape)]
