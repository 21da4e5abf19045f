"""The layers of a network that TVM has AutoTVM templates for; runs inside TVM's process.

TVM's own extraction lowers the whole network to find them.  Here the implementations of each
operator are asked for directly, which takes a second and also tells how often a layer occurs, in
which order, and which template would be taken untuned.
"""

import hashlib
import json

from run_model_tools.tuning import records

OPERATORS = ("nn.conv1d", "nn.conv2d", "nn.conv3d", "nn.conv2d_transpose", "nn.conv3d_transpose",
             "nn.dense", "nn.batch_matmul")


class Layer:
    """One distinct layer: equal operators on equal shapes are one.

    templates: (name, arguments) of each implementation with a template; the first is the one that
    TVM takes where nothing is tuned.  occurrences: in the network.
    """

    def __init__(self, operator, templates):
        self.operator = operator
        self.templates = templates
        self.occurrences = 0

    def keys(self):
        """The record keys of the templates, the default one first."""
        return [records.workload_key(name, args) for name, args in self.templates]


def find(tvm, mod, target):
    """(layers, sequence): the distinct layers, and the place in it of each operator in turn.

    mod: a module with types, its convolutions in the model's own layout.
    """
    from tvm import autotvm, relay, te
    from tvm.relay.backend import te_compiler

    calls = []

    def visit(node):
        if isinstance(node, relay.Call) and isinstance(node.op, tvm.ir.Op) \
                and node.op.name in OPERATORS:
            calls.append(node)

    relay.analysis.post_order_visit(mod["main"], visit)
    layers, places, sequence = [], {}, []
    # A context of its own, so that what is not tuned leaves no trace in the current one.
    with target, _untuned_context():
        for call in calls:
            types = [argument.checked_type for argument in call.args]
            if not all(isinstance(dim, tvm.tir.IntImm) for t in types for dim in t.shape):
                continue
            inputs = [te.placeholder(t.shape, dtype=t.dtype) for t in types]
            found = []
            for implementation in te_compiler.get_valid_implementations(
                    call.op, call.attrs, inputs, call.checked_type, target):
                outputs = implementation.compute(call.attrs, inputs, call.checked_type)
                workload = autotvm.task.get_workload(outputs)
                if workload is not None:
                    found.append((-implementation.plevel, str(workload[0]), plain(workload[1:])))
            if not found:
                continue
            found.sort(key=lambda item: item[0])
            layer = Layer(str(call.op.name), [item[1:] for item in found])
            key = json.dumps([layer.operator, *layer.keys()])
            if key not in places:
                places[key] = len(layers)
                layers.append(layer)
            layers[places[key]].occurrences += 1
            sequence.append(places[key])
    return layers, sequence


def _untuned_context():
    from tvm import autotvm
    from tvm.autotvm.task.space import FallbackConfigEntity

    class Untuned(autotvm.task.DispatchContext):
        """Answers with a fresh default each time, whose changes nobody sees."""

        def _query_inside(self, target, workload):
            return FallbackConfigEntity()

        def update(self, target, workload, cfg):
            pass

    return Untuned()


def plain(value):
    """A workload's argument as JSON would give it back."""
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    if value is None or isinstance(value, (bool, float, str)):
        return value
    if hasattr(value, "dtype") or isinstance(value, int):
        return int(value)
    return str(value)


def signature(layers, sequence):
    """What two networks of the same layers in the same order have in common, as a SHA-256."""
    text = json.dumps([layers[index].keys() for index in sequence])
    return hashlib.sha256(text.encode()).hexdigest()
