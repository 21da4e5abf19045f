"""Loops and branches of TensorFlow Lite, held to LiteRT."""

from __future__ import annotations

import numpy as np
import pytest
from tflite_test import compile_many, litert_or_skip, outputs_of

from run_model_tools.errors import ToolError
from run_model_tools.tflite.model import read_tflite
from tflite_networks import TfliteNetwork

pytestmark = pytest.mark.full  # layers that few networks have

ITERATIONS, SIZE = 5, 4


def iterations_below(limit: int | None) -> TfliteNetwork:
    """Whether (counter, written, state, rows, factor) has a counter below a number, or the state a
    number below 0.9."""
    n = arguments()
    counter, state = n.inputs[0], n.inputs[2]
    if limit is None:
        least = n.add("REDUCE_MAX", [state, n.constant(np.array([0, 1], np.int32))],
                      [n.tensor(())], "ReducerOptions")
        n.outputs = [n.add("LESS", [least, n.constant(np.float32(0.9))], [n.tensor((), "bool")])]
    else:
        n.outputs = [n.add("LESS", [counter, n.constant(np.int32(limit))],
                           [n.tensor((), "bool")])]
    return n


def arguments() -> TfliteNetwork:
    n = TfliteNetwork(21)
    n.inputs = [n.tensor((), "int32"), n.tensor((ITERATIONS, 1, SIZE)), n.tensor((1, SIZE)),
                n.tensor((ITERATIONS, 1, SIZE)), n.tensor((1, SIZE))]
    return n


def step(stored: bool) -> TfliteNetwork:
    """state = tanh(W state + rows[counter] * factor), written to its row by what joins the rows
    before, the state and the rows behind; with weights of bytes, if they are to be stored so."""
    n = arguments()
    counter, written, state, rows, factor = n.inputs
    weights = n.random.standard_normal((SIZE, SIZE)).astype(np.float32)
    if stored:
        scales = np.abs(weights).max(axis=1) / 127
        matrix = n.constant(np.rint(weights / scales[:, None]).astype(np.int8),
                            scale=scales.astype(np.float32))
    else:
        matrix = n.constant(weights)
    row = n.add("GATHER", [rows, counter], [n.tensor((1, SIZE))], "GatherOptions")
    product = n.add("FULLY_CONNECTED", [state, matrix, -1], [n.tensor((1, SIZE))],
                    "FullyConnectedOptions")
    made = n.binary("ADD", product, n.binary("MUL", row, factor))
    state = n.add("TANH", [made], [n.tensor((1, SIZE))])
    place = [n.constant(np.array(values, np.int32)) for values in ((1,), (0, 0), (-1, -1))]
    following = n.binary("ADD", counter, n.constant(np.int32(1)))

    def triple(first: int, rest: int) -> int:
        one = n.add("RESHAPE", [first, place[0]], [n.tensor((1,), "int32")])
        return n.add("CONCATENATION", [one, rest], [n.tensor((3,), "int32")],
                     "ConcatenationOptions")

    start = n.constant(np.zeros(3, np.int32))
    before = n.add("SLICE", [written, start, triple(counter, place[2])],
                   [n.tensor((1, 1, SIZE), signature=(-1, 1, SIZE))], "SliceOptions")
    behind = n.add("SLICE", [written, triple(following, place[1]),
                             n.constant(np.full(3, -1, np.int32))],
                   [n.tensor((1, 1, SIZE), signature=(-1, 1, SIZE))], "SliceOptions")
    wide = n.add("EXPAND_DIMS", [state, n.constant(np.int32(0))], [n.tensor((1, 1, SIZE))])
    joined = n.add("CONCATENATION", [before, wide, behind], [n.tensor((ITERATIONS, 1, SIZE))],
                   "ConcatenationOptions")
    n.outputs = [following, joined, state, rows, factor]
    return n


def looping(limit: int | None = ITERATIONS, stored: bool = False) -> TfliteNetwork:
    n = TfliteNetwork(22)
    rows, factor = n.tensor((ITERATIONS, 1, SIZE), name="rows"), n.tensor((1, SIZE), name="factor")
    n.inputs = [rows, factor]
    zeros = [n.constant(np.zeros(shape, np.float32))
             for shape in ((ITERATIONS, 1, SIZE), (1, SIZE))]
    results = [n.tensor(n.tensors[i]["shape"], n.tensors[i]["dtype"])
               for i in (n.constant(np.int32(0)), *zeros, rows, factor)]
    first = n.constant(np.int32(0))
    n.graphs = [iterations_below(limit), step(stored)]
    n.add("WHILE", [first, *zeros, rows, factor], results, "WhileOptions", CondSubgraphIndex=1,
          BodySubgraphIndex=2)
    n.outputs = results[:3]
    return n


def branching() -> TfliteNetwork:
    """One of two results, which the sum of the input decides."""
    n = TfliteNetwork(23)
    x = n.tensor((2, 3), name="x")
    n.inputs = [x]
    total = n.add("SUM", [x, n.constant(np.array([0, 1], np.int32))], [n.tensor(())],
                  "ReducerOptions")
    is_positive = n.add("GREATER", [total, n.constant(np.float32(0))], [n.tensor((), "bool")])
    for code in ("TANH", "ABS"):
        way = TfliteNetwork()
        way.inputs = [way.tensor((2, 3))]
        way.outputs = [way.add(code, way.inputs, [way.tensor((2, 3))])]
        n.graphs.append(way)
    n.outputs = [n.add("IF", [is_positive, x], [n.tensor((2, 3))], "IfOptions",
                       ThenSubgraphIndex=1, ElseSubgraphIndex=2)]
    return n


def test_they_give_what_litert_gives(tmp_path):
    networks = {"looping": looping(), "none": looping(0), "stored": looping(stored=True),
                "branching": branching()}
    answers = compile_many(networks, tmp_path)
    assert not {name: a["error"] for name, a in answers.items() if "error" in a}
    random = np.random.default_rng(24)
    for name in networks:
        model = litert_or_skip(tmp_path / name / "net.tflite")
        for sign in (1, -1):
            inputs = {item.name: sign * random.uniform(0.1, 1, item.shape).astype(np.float32)
                      for item in model.inputs}
            for ours, theirs in zip(outputs_of(tmp_path / name, inputs), model.run(inputs)):
                assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
                np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6, err_msg=name)


def test_iterations_that_inputs_decide_are_refused(tmp_path, command):
    path = looping(None).save(tmp_path / "m.tflite")
    result = command("compile_model", path, "--out", tmp_path / "out", code=4)
    assert "number of iterations depends on the values of inputs" in result.stderr


@pytest.mark.parametrize("number, said", [(0, "not there"), (7, "not there"),
                                          (3, "another number of inputs")])
def test_graphs_that_cannot_be_called_are_damage(tmp_path, number, said):
    n = looping()
    n.graphs.append(TfliteNetwork())
    code, inputs, outputs, options, fields, *rest = n.operators[-1]
    n.operators[-1] = (code, inputs, outputs, options, {**fields, "BodySubgraphIndex": number},
                       *rest)
    with pytest.raises(ToolError, match=said):
        read_tflite(n.save(tmp_path / "m.tflite"))


def test_graphs_that_call_each_other_are_damage(tmp_path):
    n = looping()
    body = n.graphs[1]
    body.add("WHILE", body.inputs, body.outputs, "WhileOptions", CondSubgraphIndex=1,
             BodySubgraphIndex=2)
    with pytest.raises(ToolError, match="in a circle"):
        read_tflite(n.save(tmp_path / "m.tflite"))
