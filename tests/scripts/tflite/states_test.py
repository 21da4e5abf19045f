"""Variables of TensorFlow Lite: what LiteRT keeps from run to run is handed over here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tflite_test import compile_many, litert_or_skip, outputs_of

from run_model_tools.tflite.model import FOLDER
from tflite_networks import TfliteNetwork

pytestmark = pytest.mark.full  # layers that few networks have

RUNS, MEMORY, UNITS, WIDTH = 3, 6, 4, 5

RUN_BY_RUN = """
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType
model = Interpreter(sys.argv[2], experimental_op_resolver_type=(
    OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES))
model.allocate_tensors()
found = []
for row in np.load(sys.argv[3]):
    model.set_tensor(model.get_input_details()[0]["index"], row)
    model.invoke()
    found.append([model.get_tensor(d["index"]) for d in model.get_output_details()])
np.savez(sys.argv[4], *[np.stack(column) for column in zip(*found)])
"""


def svdf(stored: str, rank: int = 2) -> TfliteNetwork:
    """stored: of floats, of weights of bytes beside floats ("hybrid"), or whole ("int8")."""
    n, rows = TfliteNetwork(3), UNITS * rank
    features, times, bias = (n.random.standard_normal(shape).astype(np.float32)
                             for shape in ((rows, WIDTH), (rows, MEMORY), UNITS))

    def whole(values, dtype, scale) -> int:
        return n.constant(np.rint(values / scale).astype(dtype), scale=scale)

    if stored == "int8":
        x, kept = n.tensor((1, WIDTH), "int8", 0.03, -3, name="x"), ("int16", 8 / 32767)
        y = n.tensor((1, UNITS), "int8", 0.1, -128)
        step = np.abs(times).max() / 32767
        weights = [whole(features, np.int8, np.abs(features).max() / 127),
                   whole(times, np.int16, step), whole(bias, np.int32, kept[1] * step)]
    else:
        x, kept, y = n.tensor((1, WIDTH), name="x"), (), n.tensor((1, UNITS))
        weights = [whole(v, np.int8, np.abs(v).max() / 127) if stored == "hybrid"
                   else n.constant(v) for v in (features, times)] + [n.constant(bias)]
    state = n.tensor((1, MEMORY * rows), *kept, name="state", variable=True)
    n.inputs = [x]
    n.outputs = [n.add("SVDF", [x, *weights, state], [y], "SVDFOptions", Rank=rank,
                       FusedActivationFunction=1)]
    return n


def variable(n: TfliteNetwork, name: str) -> int:
    return n.add("VAR_HANDLE", [], [n.tensor((), "resource")], "VarHandleOptions",
                 SharedName=name)


def sums() -> TfliteNetwork:
    """total += x * factor, where both are variables, which begin as `first` and stay `factor`; y is
    read behind that, and before it, from the second reading."""
    first, factor = (np.array([values], np.float32) for values in ([1, -2, 0], [3, 0.5, 7]))
    n, once = TfliteNetwork(4), TfliteNetwork(5)
    for name, values in (("total", first), ("factor", factor)):
        once.add("ASSIGN_VARIABLE", [variable(once, name), once.constant(values)], [])
    n.graphs = [once]
    n.inputs = [n.tensor((1, 3), name="x")]
    n.add("CALL_ONCE", [], [], "CallOnceOptions", InitSubgraphIndex=1)
    total, other = variable(n, "total"), variable(n, "factor")

    def read(handle: int) -> int:
        return n.add("READ_VARIABLE", [handle], [n.tensor((1, 3))])

    before = [read(total), read(total)]
    made = n.binary("ADD", before[0], n.binary("MUL", n.inputs[0], read(other)))
    n.add("ASSIGN_VARIABLE", [total, made], [])
    n.outputs = [n.binary("MUL", read(total), before[1]), n.binary("ADD", before[1], before[1])]
    return n


def in_a_branch() -> TfliteNetwork:
    n, way = sums(), TfliteNetwork(6)
    way.outputs = [way.add("READ_VARIABLE", [variable(way, "total")], [way.tensor((1, 3))])]
    n.graphs += [way, way]
    condition = n.constant(np.bool_(True))
    n.outputs.append(n.add("IF", [condition], [n.tensor((1, 3))], "IfOptions",
                           ThenSubgraphIndex=2, ElseSubgraphIndex=3))
    return n


NETWORKS = {"floats": svdf("float"), "bytes beside floats": svdf("hybrid", 1),
            "bytes": svdf("int8"), "sums": sums()}


@pytest.fixture(scope="module")
def compiled(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("states")
    answers = compile_many(NETWORKS, folder)
    assert not {name: a["error"] for name, a in answers.items() if "error" in a}
    return folder


@pytest.mark.parametrize("name", [name for name in NETWORKS if name != "bytes beside floats"])
def test_handed_over_they_are_what_litert_keeps(compiled, tmp_path, name):
    model = litert_or_skip(compiled / name / "net.tflite")
    x, state = model.inputs
    random = np.random.default_rng(7)
    rows = (random.standard_normal((RUNS, *x.shape)) * (30 if x.scale else 1)).astype(x.dtype)
    np.save(tmp_path / "rows.npy", rows)
    subprocess.run([sys.executable, "-c", RUN_BY_RUN, FOLDER, model.path, tmp_path / "rows.npy",
                    tmp_path / "theirs.npz"], check=True)
    value = np.array([[1, -2, 0]], np.float32) if name == "sums" else np.zeros(
        state.shape, state.dtype)
    with np.load(tmp_path / "theirs.npz") as theirs:
        for row in range(RUNS):
            *ours, value = outputs_of(compiled / name, {"x": rows[row], state.name: value})
            assert len(ours) == len(theirs.files)
            for number, made in enumerate(ours):
                np.testing.assert_allclose(made, theirs[f"arr_{number}"][row], rtol=1e-5,
                                           atol=1 if x.scale else 1e-5)


@pytest.mark.parametrize("name", NETWORKS)
def test_any_state_that_is_given(compiled, name):
    model = litert_or_skip(compiled / name / "net.tflite")
    random = np.random.default_rng(8)
    inputs = {i.name: (random.standard_normal(i.shape) * (40 if i.scale else 1)).astype(i.dtype)
              for i in model.inputs}
    ours = outputs_of(compiled / name, inputs)
    for made, theirs, scale in zip(ours, model.run(inputs), model.output_scales, strict=True):
        np.testing.assert_allclose(made, theirs, rtol=1e-5, atol=1 if scale else 1e-5)


def test_what_the_artifact_says_of_them(compiled):
    model = litert_or_skip(compiled / "sums" / "net.tflite")
    note, = model.source()["notes"]
    assert [i.name for i in model.inputs] == ["x", "total"]
    assert note.startswith("the variable 'total' is an input, whose first value is in the file, "
                           "numbers from -2.0 to 1.0")
    assert f"the output '{model.outputs[-1]}'" in note


def test_one_that_a_branch_reads_is_refused(tmp_path, command):
    result = command("compile_model", in_a_branch().save(tmp_path / "m.tflite"), "--out",
                     tmp_path / "out", code=4)
    assert "READ_VARIABLE" in result.stderr and "Traceback" not in result.stderr
