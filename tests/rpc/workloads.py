"""Small libraries for the board that is tested, and what they compute here."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tvm
from board import BOARD, IS_NATIVE, compiled_c
from tvm import relay, te
from tvm.contrib import cc, graph_executor

#: What libraries are compiled for, and what links them.
BOARD_TARGET = tvm.target.Target("llvm" if IS_NATIVE else BOARD.tvm)
LINK = cc.cross_compiler(BOARD.compiler or "c++", output_format="so")

_HERE = Path(__file__).parent


@dataclass(frozen=True)
class Network:
    """Two convolutions with parameters, in all the forms that a user has them in."""

    export: Path
    """A library that holds graph and parameters, as lib.export_library makes it."""
    library: Path
    """The code alone."""
    graph: str
    params: dict[str, Any]
    picture: np.ndarray
    expected: np.ndarray
    """What this machine's TVM computes."""
    local: Any
    """The same network compiled for this machine."""


def add_one(folder: Path, target: tvm.target.Target = BOARD_TARGET, name: str = "add_one") -> Path:
    """A library whose entry function adds 1 to each of 1024 numbers."""
    a = te.placeholder((1024,), name="a", dtype="float32")
    b = te.compute(a.shape, lambda i: a[i] + te.const(1, "float32"), name="b")
    schedule = te.create_schedule(b.op)
    path = folder / f"{name}.so"
    tvm.build(schedule, [a, b], target, name="add_one").export_library(str(path), fcompile=LINK)
    return path


def c_functions(folder: Path) -> Path:
    """functions.c, compiled for the board."""
    return compiled_c(_HERE / "functions.c", folder, "-Wno-infinite-recursion")


def network(folder: Path) -> Network:
    random = np.random.default_rng(7)
    data = relay.var("data", shape=(1, 3, 12, 12), dtype="float32")
    weights = {name: random.standard_normal(shape).astype("float32")
               for name, shape in (("w1", (8, 3, 3, 3)), ("b1", (8,)), ("w2", (4, 8, 3, 3)))}
    w1, b1, w2 = (relay.var(name, shape=value.shape) for name, value in weights.items())
    hidden = relay.nn.relu(relay.nn.bias_add(relay.nn.conv2d(
        data, w1, padding=(1, 1), channels=8, kernel_size=(3, 3)), b1))
    scores = relay.nn.global_avg_pool2d(relay.nn.conv2d(
        hidden, w2, channels=4, kernel_size=(3, 3)))
    body = relay.nn.softmax(relay.nn.batch_flatten(scores))
    module = tvm.IRModule.from_expr(relay.Function([data, w1, b1, w2], body))
    params = {name: tvm.nd.array(value) for name, value in weights.items()}
    with tvm.transform.PassContext(opt_level=3):
        built = relay.build(module, target=BOARD_TARGET, params=params)
        local = built if IS_NATIVE else relay.build(module, target="llvm", params=params)
    export, library = folder / "network.so", folder / "code.so"
    built.export_library(str(export), fcompile=LINK)
    built.get_lib().export_library(str(library), fcompile=LINK)
    picture = random.standard_normal((1, 3, 12, 12)).astype("float32")
    return Network(export, library, built.get_graph_json(), dict(built.get_params()), picture,
                   run_network(graph_executor.GraphModule(local["default"](tvm.cpu())), picture),
                   local)


def run_network(executor: Any, picture: np.ndarray) -> np.ndarray:
    executor.set_input("data", picture)
    executor.run()
    return executor.get_output(0).numpy()


def check_result(result: np.ndarray, expected: np.ndarray) -> None:
    """The same code gives the same bits; other machines sum in another order."""
    if IS_NATIVE:
        np.testing.assert_array_equal(result, expected)
    else:
        np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)
