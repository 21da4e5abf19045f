"""Which networks keep the samples of a batch apart (onnx_repair/samples.py), against what ONNX
Runtime makes of a batch and of each of its samples."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from run_model_tools.onnx_repair.samples import Axes, NotApart, sample_axes

RANDOM = np.random.default_rng(5)
FIRST = Axes((0,), (0,))


def network(nodes, shape, constants=None, outputs=("y",), types=None):
    """Of an input x whose first axis is open."""
    values = {name: np.asarray(value) for name, value in (constants or {}).items()}
    graph = helper.make_graph(
        [helper.make_node(*node[:3], **(node[3] if len(node) > 3 else {})) for node in nodes],
        "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", *shape])],
        [helper.make_tensor_value_info(o, (types or {}).get(o, TensorProto.FLOAT), None)
         for o in outputs],
        [numpy_helper.from_array(array, name) for name, array in values.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def f(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


APART = {
    "convolutions": ([
        ("Conv", ["x", "w", "b"], ["a"], {"pads": [1] * 4}), ("Relu", ["a"], ["c"]),
        ("MaxPool", ["c"], ["d"], {"kernel_shape": [2, 2], "strides": [2, 2]}),
        ("GlobalAveragePool", ["d"], ["e"]), ("Flatten", ["e"], ["g"]),
        ("Gemm", ["g", "v", "u"], ["y"])], (3, 8, 8),
        {"w": f(4, 3, 3, 3), "b": f(4), "v": f(4, 5), "u": f(5)}),
    # Rows of all samples in one matrix, and heads beside samples: seven of each, as in a batch of
    # the size that is tried.
    "attention": ([
        ("Reshape", ["x", "rows"], ["a"]), ("MatMul", ["a", "w"], ["b"]),
        ("Reshape", ["b", "heads"], ["c"]), ("Transpose", ["c"], ["q"], {"perm": [0, 2, 1, 3]}),
        ("Transpose", ["c"], ["k"], {"perm": [0, 2, 3, 1]}), ("MatMul", ["q", "k"], ["s"]),
        ("Softmax", ["s"], ["p"], {"axis": -1}), ("MatMul", ["p", "q"], ["o"]),
        ("Transpose", ["o"], ["t"], {"perm": [0, 2, 1, 3]}), ("Reshape", ["t", "joined"], ["y"])],
        (7, 14), {"rows": [-1, 14], "w": f(14, 14), "heads": [-1, 7, 7, 2],
                  "joined": [-1, 7, 14]}),
    "a size asked for": ([
        ("Shape", ["x"], ["s"]), ("Gather", ["s", "zero"], ["n"]),
        ("Concat", ["n", "rest"], ["to"], {"axis": 0}), ("Reshape", ["x", "to"], ["y"])],
        (2, 6), {"zero": [0], "rest": [3, 4]}),
    "recurrent": ([
        ("Transpose", ["x"], ["t"], {"perm": [1, 0, 2]}),
        ("GRU", ["t", "w", "r"], ["all", "last"], {"hidden_size": 3}),
        ("Squeeze", ["last", "zero"], ["y"])], (4, 5),
        {"w": f(1, 9, 5), "r": f(1, 9, 3), "zero": [0]}),
    "best of a row": ([("TopK", ["x", "two"], ["v", "i"], {"axis": 1}),
                       ("Cast", ["i"], ["c"], {"to": TensorProto.FLOAT}),
                       ("Concat", ["v", "c"], ["y"], {"axis": 1})], (9,), {"two": [2]}),
    "one of a table": ([("ArgMax", ["x"], ["i"], {"axis": 1, "keepdims": 0}),
                        ("Gather", ["table", "i"], ["y"])], (6,), {"table": f(6, 4)}),
    "tiled": ([("Tile", ["x", "times"], ["y"])], (3, 2), {"times": [1, 2, 3]}),
    "einsum": ([("Einsum", ["x", "w"], ["a"], {"equation": "nij,jk->kni"}),
                ("Einsum", ["a", "x"], ["y"], {"equation": "kni,nij->nkj"})], (3, 4),
               {"w": f(4, 5)}),
    # As a deformable attention reads them.
    "sampled at computed places": ([
        ("Conv", ["x", "w"], ["a"]), ("Tanh", ["a"], ["t"]),
        ("Transpose", ["t"], ["grid"], {"perm": [0, 2, 3, 1]}),
        ("GridSample", ["x", "grid"], ["y"])], (3, 6, 5), {"w": f(2, 3, 2, 3)}),
    "expanded": ([
        ("Shape", ["x"], ["s"]), ("Gather", ["s", "zero"], ["n"]),
        ("Concat", ["n", "rest"], ["to"], {"axis": 0}), ("Expand", ["token", "to"], ["t"]),
        ("Concat", ["t", "x"], ["y"], {"axis": 1})], (3, 4),
        {"zero": [0], "rest": [1, 4], "token": f(1, 1, 4)})}

MIXED = {
    "mean of all": [("ReduceMean", ["x"], ["m"], {"keepdims": 1}), ("Sub", ["x", "m"], ["y"])],
    "mean over samples": [("ReduceMean", ["x", "zero"], ["m"]), ("Sub", ["x", "m"], ["y"])],
    "softmax over samples": [("Softmax", ["x"], ["y"], {"axis": 0})],
    "running sum over samples": [("CumSum", ["x", "zero"], ["y"])],
    "samples in another order": [("Slice", ["x", "last", "start", "zero", "back"], ["y"])],
    "one for all": [("Gather", ["x", "zero"], ["one"]), ("Add", ["x", "one"], ["y"])],
    "divided by how many": [
        ("Shape", ["x"], ["s"]), ("Gather", ["s", "zero"], ["n"]),
        ("Cast", ["n"], ["f"], {"to": TensorProto.FLOAT}), ("Div", ["x", "f"], ["y"])],
    "numbered": [
        ("Shape", ["x"], ["s"]), ("Gather", ["s", "none"], ["n"]),
        ("Range", ["none", "n", "step"], ["r"]), ("Cast", ["r"], ["c"], {"to": TensorProto.FLOAT}),
        ("Unsqueeze", ["c", "one"], ["u"]), ("Add", ["x", "u"], ["y"])],
    "rows against rows": [("Transpose", ["x"], ["t"]), ("MatMul", ["x", "t"], ["y"])],
    "columns of all samples": [("Transpose", ["x"], ["t"]), ("MatMul", ["t", "x"], ["y"])],
    "samples in columns": [("Transpose", ["x"], ["y"])],
    "tiled samples": [("Tile", ["x", "twice"], ["y"])],
    "einsum over samples": [("Einsum", ["x", "x"], ["y"], {"equation": "ni,nj->ij"})],
    "einsum of pairs": [("Einsum", ["x", "x"], ["y"], {"equation": "ni,mi->nm"})],
    "joined with itself": [("Concat", ["x", "x"], ["y"], {"axis": 0})],
    "split elsewhere": [("Transpose", ["x"], ["t"]), ("Reshape", ["t", "rows"], ["y"])],
    "nothing of it": [("Identity", ["table"], ["y"])]}


@pytest.mark.parametrize("name", APART)
def test_what_keeps_samples_apart_is_known(name):
    nodes, shape, constants = APART[name]
    model = network(nodes, shape, constants)
    assert sample_axes(model, {"x": (1, *shape)}) == FIRST
    # The claim itself: of other sizes than those that were looked at.
    session = onnxruntime.InferenceSession(model.SerializeToString(),
                                           providers=["CPUExecutionProvider"])
    x = f(5, *shape)
    together, = session.run(None, {"x": x})
    apart = np.concatenate([session.run(None, {"x": x[i:i + 1]})[0] for i in range(5)])
    np.testing.assert_allclose(apart, together, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", MIXED)
def test_what_mixes_samples_is_not_taken_apart(name):
    constants = {"zero": [0], "one": [1], "none": 0, "step": 1, "last": [-1], "start": [-99],
                 "back": [-1], "rows": [-1, 6], "twice": [2, 1], "table": f(1, 6)}
    with pytest.raises(NotApart):
        sample_axes(network(MIXED[name], (6,), constants), {"x": (1, 6)})


def test_samples_may_lie_along_a_later_axis_of_an_output():
    model = network([("Unsqueeze", ["x", "zero"], ["y"])], (3,), {"zero": [0]})
    assert sample_axes(model, {"x": (1, 3)}) == Axes((0,), (1,))


def test_the_reason_names_the_node():
    model = network([("ReduceMax", ["x", "zero"], ["y"], {"name": "over_all"})], (3,),
                    {"zero": [0]})
    with pytest.raises(NotApart, match="ReduceMax 'over_all' mixes samples"):
        sample_axes(model, {"x": (1, 3)})


