"""What generated code asks of a runtime: barriers, workspaces, calls by name, odd graphs.

The ones with `build` are written in TIR with a hand-made graph, because no operator leads there.
"""

import json

import numpy as np
import tvm
from tvm import relay, te

from .layers import Layers
from .registry import BASELINE_TARGET, Built, Network, expression_network, network, variable, zeros


@network
def barriers_bitserial(rng: np.random.Generator) -> Network:
    """x86's bit-serial convolution packs its data in one parallel region with a barrier."""
    data = zeros(1, 8, 10, 10, dtype="int8")
    kernel = relay.const(rng.integers(0, 2, (16, 8, 3, 3), dtype=np.int8))
    y = relay.nn.bitserial_conv2d(variable("data", data), kernel, padding=(1, 1), channels=16,
                                  kernel_size=(3, 3), activation_bits=2, weight_bits=1,
                                  pack_dtype="uint8", out_dtype="int16", unipolar=True)
    return expression_network(y, {"data": data},
                              draw=lambda values: {"data": values.integers(0, 4, data.shape,
                                                                           dtype=np.int8)})


@network
def barrier_between_loops(rng: np.random.Generator) -> Network:
    """One parallel region: after a barrier, each thread reads what the others wrote.

    The scratch buffer between the loops is a workspace that the threads share.
    """
    length = 4096

    def write_loops(x: tvm.tir.Buffer, y: tvm.tir.Buffer) -> tvm.tir.Stmt:
        code = tvm.tir.ir_builder.create()
        source, target = code.buffer_ptr(x), code.buffer_ptr(y)
        doubled = code.allocate("float32", (length,), name="doubled", scope="global")
        with code.new_scope():
            code.scope_attr(tvm.tir.StringImm("region"), "pragma_parallel_launch_point", 1)
            with code.new_scope():
                code.scope_attr(tvm.tir.StringImm("first"),
                                "pragma_parallel_barrier_when_finish", 1)
                with code.for_range(0, length, name="i", kind="parallel") as i:
                    doubled[i] = source[i] * 2.0
            with code.for_range(0, length, name="j", kind="parallel") as j:
                target[j] = doubled[length - 1 - j] + source[j]
        return code.get()

    def build() -> Built:
        x = te.placeholder((length,), name="x")
        y = te.extern((length,), [x], lambda ins, outs: write_loops(ins[0], outs[0]), name="y",
                      dtype="float32")
        return _single_function(te.create_schedule(y.op), [x, y], [length])

    return Network(None, {"x": zeros(length)}, build=build)


@network
def flattened_arguments(rng: np.random.Generator) -> Network:
    """flatten_data, which graphs of TVM's first years set: the function takes 1-D tensors."""

    def build() -> Built:
        x = te.placeholder((24,), name="x")
        y = te.compute((24,), lambda i: x[i] * 3.0, name="y")
        return _single_function(te.create_schedule(y.op), [x, y], [2, 3, 4], flatten=True)

    return Network(None, {"x": zeros(2, 3, 4)}, build=build)


@network
def large_workspaces(rng: np.random.Generator) -> Network:
    """Padding and layout changes inside fused functions, megabytes at a time and per thread."""
    n, data = Layers(rng), zeros(1, 16, 112, 112)
    x = relay.nn.relu(n.conv(variable("x", data), 16, 5, pad=2))
    x = relay.nn.conv2d_transpose(x, n.parameter((16, 8, 3, 3), 0.1), strides=(2, 2),
                                  padding=(1, 1), channels=8, kernel_size=(3, 3))
    return n.network(relay.nn.max_pool2d(x, pool_size=(5, 5), strides=(4, 4), padding=(2, 2)),
                     {"x": data})


@network
def sorting(rng: np.random.Generator) -> Network:
    """Sorting is not compiled: the code calls functions of the runtime."""
    data, boxes = zeros(3, 8), zeros(1, 12, 6)
    x = variable("x", data)
    counts, valid, indices = relay.vision.get_valid_counts(
        variable("boxes", boxes), relay.const(0.0), id_index=0, score_index=1)
    kept = relay.vision.non_max_suppression(
        relay.nn.relu(valid), counts, indices, relay.const(-1), relay.const(0.5),
        return_indices=False, top_k=5)
    both = relay.topk(x, 3, axis=0, ret_type="both", is_ascend=True, dtype="int64")
    return expression_network(
        [both[0], both[1], relay.topk(x, 2, ret_type="values"),
         relay.topk(x, 0, ret_type="indices"), relay.argsort(x, axis=1, is_ascend=False),
         relay.sort(x, axis=0), kept], {"x": data, "boxes": boxes})


@network
def calls_registered_function(rng: np.random.Generator) -> Network:
    """The code calls a function that a program registered with TVM's library."""

    def build() -> Built:
        @tvm.register_func("registered.doubled", override=True)
        def doubled(x: tvm.nd.NDArray, y: tvm.nd.NDArray) -> None:
            y.copyfrom(2 * x.numpy())

        x = te.placeholder((3, 8), name="x")
        y = te.extern((3, 8), [x], lambda given, made: tvm.tir.call_packed(
            "registered.doubled", given[0], made[0]), name="y")
        return _single_function(te.create_schedule(y.op), [x, y], [3, 8])

    return Network(None, {"x": zeros(3, 8)}, build=build, refused="registered.doubled")


def _single_function(schedule: te.Schedule, arguments: list, shape: list[int],
                     flatten: bool = False) -> Built:
    """A graph of one node that calls the function `work` made of `schedule`."""
    module = tvm.build(schedule, arguments, target=BASELINE_TARGET, name="work")
    graph = {
        "nodes": [
            {"op": "null", "name": "x", "inputs": []},
            {"op": "tvm_op", "name": "work", "inputs": [[0, 0, 0]],
             "attrs": {"func_name": "work", "num_inputs": "1", "num_outputs": "1",
                       "flatten_data": "1" if flatten else "0"}}],
        "arg_nodes": [0],
        "heads": [[1, 0, 0]],
        "node_row_ptr": [0, 1, 2],
        "attrs": {"dltype": ["list_str", ["float32", "float32"]],
                  "shape": ["list_shape", [shape, shape]],
                  "storage_id": ["list_int", [0, 1]]},
    }
    return json.dumps(graph), module, {}
