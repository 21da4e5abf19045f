"""Graphs that are unusual as graphs: what is an input, an output, a view, a copy."""

import numpy as np
from tvm import relay

from .layers import Layers
from .registry import Network, expression_network, network, variable, zeros


@network
def two_inputs_three_outputs(rng: np.random.Generator) -> Network:
    n = Layers(rng)
    inputs = {"left": zeros(1, 4, 9, 9), "right": zeros(1, 4, 9, 9)}
    left, right = (variable(name, example) for name, example in inputs.items())
    both = relay.nn.relu(n.conv(relay.concatenate([left, right], axis=1), 6, pad=1))
    return n.network([both, relay.nn.global_avg_pool2d(both), left * right], inputs)


@network
def output_is_input(rng: np.random.Generator) -> Network:
    data = zeros(2, 5)
    x = variable("x", data)
    return expression_network([x, relay.exp(x)], {"x": data})


@network
def output_is_parameter(rng: np.random.Generator) -> Network:
    n, data = Layers(rng), zeros(3, 4)
    weight = n.parameter((3, 4))
    return n.network([weight, variable("x", data) + weight], {"x": data})


@network
def output_is_constant(rng: np.random.Generator) -> Network:
    data = zeros(3, 4)
    constant = relay.const(rng.standard_normal((3, 4)).astype("float32"))
    return expression_network([constant, variable("x", data) - constant], {"x": data})


@network
def same_output_twice(rng: np.random.Generator) -> Network:
    data = zeros(2, 3)
    y = relay.tanh(variable("x", data))
    return expression_network([y, relay.exp(y), y], {"x": data})


@network
def unused_input(rng: np.random.Generator) -> Network:
    inputs = {"used": zeros(4), "unused": zeros(7, dtype="int8")}
    return expression_network(relay.sqrt(relay.abs(variable("used", inputs["used"]))), inputs)


@network
def reshape_views(rng: np.random.Generator) -> Network:
    """Reshapes become __nop nodes: views of an input, of an intermediate and as an output."""
    data = zeros(2, 3, 4)
    x = variable("x", data)
    total = relay.sum(relay.reshape(x, (6, 4)), axis=1)
    y = relay.nn.softmax(relay.reshape(x, (4, 6)))
    return expression_network(
        [total, relay.reshape(y, (24,)), relay.reshape(relay.exp(x), (1, 2, 12, 1))], {"x": data},
        record_nodes=True)


@network
def reshaped_input_is_output(rng: np.random.Generator) -> Network:
    """The only node is a __nop, and the output shares the input's storage."""
    data = zeros(2, 3, 4)
    return expression_network(relay.reshape(variable("x", data), (4, 6)), {"x": data})


@network
def chained_views(rng: np.random.Generator) -> Network:
    """A view of a view, each of which is read by something else as well."""
    data = zeros(2, 8)
    x = variable("x", data)
    first = relay.reshape(x, (4, 4))
    second = relay.reshape(relay.nn.softmax(first), (16,))
    third = relay.reshape(second, (1, 16))
    return expression_network([relay.nn.softmax(third), relay.sum(second, axis=0), first],
                              {"x": data})


@network
def split_and_concatenate(rng: np.random.Generator) -> Network:
    """A node with three outputs, of which one is read twice and one is an output."""
    data = zeros(2, 12, 5)
    a, b, c = relay.split(variable("x", data), [3, 7], axis=1)
    return expression_network([b, relay.concatenate([c, a, relay.nn.softmax(c)], axis=1)],
                              {"x": data}, record_nodes=True)


@network
def storage_reused_over_a_chain(rng: np.random.Generator) -> Network:
    """Long enough for the storage plan to reuse blocks of several sizes, with a late reader."""
    n, data = Layers(rng), zeros(1, 8, 20, 20)
    x = early = variable("x", data)
    for channels, stride in ((16, 1), (4, 2), (24, 1), (8, 1), (12, 2)):
        x = relay.nn.relu(n.conv(x, channels, pad=1, stride=stride))
    early = relay.nn.max_pool2d(early, pool_size=(4, 4), strides=(4, 4))
    return n.network(relay.concatenate([x, early], axis=1), {"x": data}, record_nodes=True)


@network
def scalars(rng: np.random.Generator) -> Network:
    inputs = {"s": zeros(), "t": zeros(), "v": zeros(6)}
    s, t, v = (variable(name, example) for name, example in inputs.items())
    return expression_network([s * t, relay.sum(v) + s, v * t], inputs)


@network
def copy_nodes(rng: np.random.Generator) -> Network:
    """__copy, which the compiler emits between devices, put in by hand before the last node."""
    data = zeros(3, 4)
    x = variable("x", data)
    net = expression_network(relay.nn.softmax(relay.nn.softmax(x)), {"x": data}, record_nodes=True)
    net.edit_graph = _insert_copy
    return net


def _insert_copy(graph: dict) -> dict:
    """Lets the last node read a copy of its first input, kept in new storage."""
    last = graph["nodes"].pop()
    source = last["inputs"][0]
    position = len(graph["nodes"])
    graph["nodes"] += [
        {"op": "tvm_op", "name": "copied", "inputs": [source],
         "attrs": {"func_name": "__copy", "num_inputs": "1", "num_outputs": "1",
                   "flatten_data": "0"}},
        last | {"inputs": [[position, 0, 0]] + last["inputs"][1:]}]
    graph["heads"] = [[position + 1, 0, 0]]
    graph["node_row_ptr"].append(graph["node_row_ptr"][-1] + 1)
    entry = graph["node_row_ptr"][source[0]] + source[1]
    for key, attribute in graph["attrs"].items():
        value = attribute[1][entry]
        if key == "storage_id":
            value = max(attribute[1]) + 1
        attribute[1].insert(position, value)
    return graph


@network
def without_parameters(rng: np.random.Generator) -> Network:
    data = zeros(1, 3, 10, 10)
    return expression_network(relay.nn.lrn(variable("x", data)), {"x": data})


@network
def without_fusion(rng: np.random.Generator) -> Network:
    """Every operator a node of its own: many small nodes, many views."""
    n, data = Layers(rng), zeros(1, 6, 12, 12)
    x = relay.nn.relu(n.conv_norm(variable("x", data), 8, pad=1))
    x = relay.clip(relay.sigmoid(x) * x + relay.const(0.5), 0.0, 2.0)
    x = n.dense(relay.nn.batch_flatten(x), 10)
    return n.network(relay.nn.log_softmax(x), {"x": data}, opt_level=0,
                     config={"relay.FuseOps.max_depth": 1}, record_nodes=True)
