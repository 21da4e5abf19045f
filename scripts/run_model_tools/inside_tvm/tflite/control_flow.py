"""WHILE and IF of TensorFlow Lite, unrolled or decided where what decides is known beforehand, and
operators that stand for a graph.

Keras' recurrent layers come as WHILE, as do loops of JAX and PyTorch: their conditions look at
counters.  So after each iteration what can be computed of the state without the inputs is computed.
"""

from tvm import relay

from run_model_tools.inside_tvm import Refusal

MOST_ITERATIONS = 1000
"""TVM's passes and its builds of a network of so many copies of a loop's body take minutes."""

_ENDS_PROGRAMS = ("DIV", "FLOOR_DIV", "FLOOR_MOD")
"""Operators that end a program where they divide whole numbers by 0."""


def while_loop(converter, operator):
    """The state after the last iteration."""
    condition, body = (converter.file.graphs[number] for number in operator.graphs)
    state = [converter.value(index) for index in operator.inputs]
    may_be_known = [True] * len(state)
    for _ in range(MOST_ITERATIONS + 1):
        for place, index in enumerate(body.inputs):
            if may_be_known[place] and _decides(body.tensors[index]):
                known = converter.known(state[place])
                may_be_known[place] = known is not None
                state[place] = state[place] if known is None else known
        goes_on = converter.known(converter.called(condition, state)[0])
        if goes_on is None:
            raise Refusal("model", "it has a loop (WHILE) whose number of iterations depends on "
                          "the values of inputs, and compiled code needs to know it; give the "
                          "model a loop of as many iterations as there may be")
        if not goes_on.data.numpy().item():
            return state
        state = converter.called(body, state)
    raise Refusal("model", "it has a loop (WHILE) of more than %d iterations, and they are "
                  "unrolled; give it fewer" % MOST_ITERATIONS)


def _decides(tensor):
    """Whether conditions may look at a tensor: counters, flags and places."""
    return tensor.dtype in ("int32", "int64", "bool") and len(tensor.shape) <= 1


def branches(converter, operator):
    """IF's results: of one branch, or chosen number by number among those of both."""
    ways = [converter.file.graphs[number] for number in operator.graphs]
    given = [converter.value(index) for index in operator.inputs]
    known = converter.known(given[0])
    if known is not None:
        return converter.called(ways[0] if known.data.numpy().item() else ways[1], given[1:])
    for way in ways:
        for one in way.operators:
            if one.name in _ENDS_PROGRAMS and way.tensors[one.outputs[0]].dtype != "float32":
                raise Refusal("model", "which branch of an IF it takes depends on the values of "
                              "inputs, and one of them divides whole numbers, which might be by 0 "
                              "where the result is not to be used")
    made = [converter.called(way, given[1:]) for way in ways]
    for a, b in zip(*(way.outputs for way in ways)):
        if ways[0].tensors[a].shape != ways[1].tensors[b].shape:
            raise Refusal("model", "which branch of an IF it takes depends on the values of "
                          "inputs, and their results have different shapes")
    condition = relay.reshape(given[0], ())
    return [relay.where(condition, a, b) for a, b in zip(*made)]


def composite(converter, operator):
    """What a graph gives that the operator stands for, of which other devices have a kernel."""
    return converter.called(converter.file.graphs[operator.graphs[0]],
                            [converter.value(index) for index in operator.inputs])


CALLS = {"WHILE": while_loop, "IF": branches, "STABLEHLO_COMPOSITE": composite}
"""By operators' names, functions of the converter and one operator."""
