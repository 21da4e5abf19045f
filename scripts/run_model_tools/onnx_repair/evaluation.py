"""What one node of known inputs computes: in ONNX Runtime, or where it has no kernel in ONNX's
reference.  What whole models compute is in reference.py.
"""

from __future__ import annotations

import multiprocessing
from typing import Any

import numpy as np
import onnx
from onnx import helper

from run_model_tools.onnx_repair import onnxruntime_process

IR_VERSION = 10
MOST_IN_ONE_FILE = 1_900_000_000
"""Bytes of tensors.  Protocol buffers end at 2 GiB, and the rest of a model needs some of them;
weights beyond that go to a file of their own."""


_RANDOM = ("Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike",
           "RandomUniform", "RandomUniformLike")


def is_function(node: onnx.NodeProto) -> bool:
    """Whether what it makes depends on its inputs alone: not on chance, nor on what subgraphs read.
    """
    return node.op_type not in _RANDOM and all(
        a.type not in (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS)
        for a in node.attribute)


def evaluate(node: onnx.NodeProto, inputs: dict[str, tuple[onnx.TypeProto, np.ndarray]],
             domain: str, opset: int) -> list[Any] | None:
    """The outputs of a node that has no subgraphs; None where neither can compute it."""
    graph = helper.make_graph(
        [node], "one", [onnx.ValueInfoProto(name=name, type=kind)
                        for name, (kind, _) in inputs.items()],
        [onnx.ValueInfoProto(name=name) for name in node.output if name])
    imports = [helper.make_opsetid(domain, opset)]
    if domain:
        imports.append(helper.make_opsetid("", 18))
    model = helper.make_model(graph, opset_imports=imports, ir_version=IR_VERSION)
    arrays = {name: array for name, (_, array) in inputs.items()}
    for run in (_as_written, run_reference):
        try:
            results = run(model, arrays)
        except Exception:  # Each has its own kinds of what it cannot do.
            continue
        if all(isinstance(r, (np.ndarray, np.generic)) for r in results):
            return [np.asarray(r) for r in results]
    return None


def _as_written(model: onnx.ModelProto, inputs: dict[str, np.ndarray]) -> list[Any]:
    return onnxruntime_process.run(model.SerializeToString(), inputs, optimized=False)


def run_reference_within(seconds: float, model: onnx.ModelProto,
                         inputs: dict[str, np.ndarray]) -> list[Any]:
    """run_reference(), which computes some operators number by number in Python; raises
    TimeoutError."""
    ours, its = multiprocessing.Pipe(duplex=False)

    def run() -> None:
        try:
            its.send(run_reference(model, inputs))
        except Exception as error:  # It has its own kinds of what it cannot do.
            its.send(RuntimeError(str(error) or type(error).__name__))

    process = multiprocessing.get_context("fork").Process(target=run, daemon=True)
    process.start()
    its.close()
    try:
        if not ours.poll(seconds):
            raise TimeoutError(f"not done in {seconds:g} s")
        found = ours.recv()
    except EOFError:
        raise RuntimeError("it ended without a word") from None
    finally:
        process.kill()
        process.join()
        ours.close()
    if isinstance(found, Exception):
        raise found
    return found


def run_reference(model: onnx.ModelProto, inputs: dict[str, np.ndarray]) -> list[Any]:
    """In ONNX's own evaluator."""
    from onnx.reference import ReferenceEvaluator
    from onnx.reference.op_run import OpRun

    class Sigmoid(OpRun):
        """The evaluator's own calls Python for each element, which takes minutes for a picture."""

        def _run(self, x: np.ndarray) -> tuple[np.ndarray]:
            power = np.exp(-np.abs(x, dtype=np.float64))
            return ((np.where(x < 0, power, 1.0) / (1.0 + power)).astype(x.dtype),)

    with np.errstate(all="ignore"):
        return ReferenceEvaluator(model, new_ops=[Sigmoid]).run(None, inputs)
