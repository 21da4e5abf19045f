"""Which nodes of the ONNX file each node of a compiled graph computes.

The importer puts an ONNX node's name on what it makes of it, as the place in a source.  TVM's
passes keep those up to where operators are fused; the fused functions then become the graph's nodes
in the same order.
"""

import json

from run_model_tools.inside_tvm import called_operator

SEPARATOR = "\n"
"""Between names in one place: of what our kernels compute together."""

WHY = "why: "
"""What begins a sentence among the names: why an operator is left to TVM."""

COPY = "__copy"
"""The function of a graph's nodes that copy between devices."""


class Recorder:
    """Sees modules on their way through TVM: `instruments` are for the PassContext."""

    def __init__(self, tvm):
        seen = self.seen = []

        @tvm.instrument.pass_instrument
        class Instrument:
            def run_after_pass(self, module, info):
                if str(info.name) == "FuseOps":
                    seen.append(_functions(tvm.relay, module))

        self.instruments = [Instrument()]

    def annotate(self, graph, known):
        """The graph's JSON with "onnx_nodes", a list of names, among nodes' attributes, and
        "left_because", a list of sentences.

        known: the names that there are; the importer makes others for parameters.
        Where what was seen is not what the graph has, it comes back as it is.
        """
        described = json.loads(graph)
        nodes = [node for node in described["nodes"]
                 if node["op"] == "tvm_op" and node["attrs"]["func_name"] != COPY]
        for functions in reversed(self.seen):
            if _are_alike(functions, nodes):
                for (_, names), node in zip(functions, nodes):
                    of_file = [name for name in names if name in known]
                    if of_file:
                        node["attrs"]["onnx_nodes"] = json.dumps(of_file)
                    why = [name[len(WHY):] for name in names
                           if name.startswith(WHY) and name not in known]
                    if why:
                        node["attrs"]["left_because"] = json.dumps(why)
                return json.dumps(described, indent=1)
        return graph


def place_of(relay, names):
    """A span that says these names."""
    return relay.Span(relay.SourceName(SEPARATOR.join(names)), 0, 0, 0, 0)


def names_in(expr):
    """The names that an expression has."""
    span = getattr(expr, "span", None)
    spans = span.spans if type(span).__name__ == "SequentialSpan" else [span] if span else []
    names = [name for one in spans for name in one.source_name.name.split(SEPARATOR)]
    return list(dict.fromkeys(name for name in names if name))


def _functions(relay, module):
    """(first operator, names) of each fused function, in the order in which they are called."""
    if "main" not in [var.name_hint for var in module.get_global_vars()]:
        return []
    found = []

    def visit(expr):
        if isinstance(expr, relay.Call) and isinstance(expr.op, relay.Function):
            content = _content(relay, expr.op)
            if content[0] != "device_copy":
                found.append(content)

    relay.analysis.post_order_visit(module["main"].body, visit)
    return found


def _content(relay, function):
    names, operators = [], []

    def visit(expr):
        if isinstance(expr, relay.Call):
            operators.append(called_operator(expr))
            names.extend(names_in(expr))

    relay.analysis.post_order_visit(function.body, visit)
    return operators[0] if operators else "", list(dict.fromkeys(names))


def _are_alike(functions, nodes):
    """Whether they are as many, and their names begin with the same operators."""
    if not functions or len(functions) != len(nodes):
        return False
    for (operator, _), node in zip(functions, nodes):
        function = node["attrs"]["func_name"]
        if function != "__nop" and "fused_" + operator.replace(".", "_") not in function:
            return False
    return True
