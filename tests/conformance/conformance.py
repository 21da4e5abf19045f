"""Compiles cases as compile_model does, runs them with run_model, and judges their outputs."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from cases import Case

from run_model_tools import tvm_process
from run_model_tools.environment import host_program
from run_model_tools.errors import FAILED_RUN, ToolError
from run_model_tools.onnx_repair.refusal import NodeRefused

PROGRAM = host_program("run_model")
# A worker that breaks down takes the cases with it that it has not written yet.
_BATCH = 40


@dataclass
class Result:
    """What became of a case: "passes", "refused", "broke" (in TVM or run_model) or "wrong"."""

    outcome: str
    why: str = ""
    kind: str = ""
    """Of what is refused: refusal.Refused.kind, or "input" for what the model takes."""


def run_cases(cases: Iterable[Case], folder: Path) -> dict[str, Result]:
    """By name.  Artifacts are folder/NAME/native."""
    results: dict[str, Result] = {}
    compiled = []
    for case in cases:
        result = _ready(case)
        if result is None:
            compiled.append(case)
        else:
            results[case.name] = result
    for start in range(0, len(compiled), _BATCH):
        batch = compiled[start:start + _BATCH]
        failed = _compile(batch, folder)
        todo = [case for case in batch if case.name not in failed]
        with ThreadPoolExecutor(2) as pool:
            run = dict(zip([c.name for c in todo], pool.map(lambda c: _run(c, folder), todo)))
        results.update(failed)
        results.update(run)
    return results


def _ready(case: Case) -> Result | None:
    """Finds which inputs have to be frozen; what cannot be compiled is refused here."""
    if not case.has_tensors_only:
        return Result("refused", "it has strings, sequences or optionals as inputs or outputs",
                      "not tensors")
    try:
        case.repaired()
    except NodeRefused as refused:
        return Result("refused", str(refused), refused.kind)
    except ToolError as error:
        return Result("refused", str(error), "type")
    return None


def _compile(cases: list[Case], folder: Path) -> dict[str, Result]:
    """What did not compile."""
    requests = []
    for case in cases:
        directory = folder / case.name / "native"
        directory.mkdir(parents=True, exist_ok=True)
        requests.append({
            "onnx": str(case.path), "shapes": case.shapes(), "frozen": case.frozen_arrays(),
            "target": "native", "opt_level": 3, "kernels": "auto", "directory": str(directory)})
    try:
        answers = tvm_process.call("compile_many", None, requests=requests)["results"]
    except ToolError as error:
        if len(cases) == 1:
            return {cases[0].name: Result("broke", str(error))}
        half = len(cases) // 2
        return {**_compile(cases[:half], folder), **_compile(cases[half:], folder)}
    return {case.name: Result("broke", answer["error"])
            for case, answer in zip(cases, answers, strict=True) if "error" in answer}


def _run(case: Case, folder: Path) -> Result:
    given, got = folder / case.name / "in.npz", folder / case.name / "out.npz"
    used = _inputs_of(folder / case.name / "native" / "model.json")
    np.savez(given, **{n: a for n, a in case.inputs.items() if n in used})
    inputs = ["--inputs", str(given)] if used else []
    made = subprocess.run([str(PROGRAM), case.name, str(folder), *inputs, "--outputs", str(got)],
                          capture_output=True, text=True, check=False)
    # NaN and infinity are an error of its own, which comes after the outputs are written.
    if made.returncode != 0 and not (made.returncode == FAILED_RUN and got.exists()
                                     and "NaN or infinity" in made.stderr):
        lines = made.stderr.strip().splitlines() or [f"exit status {made.returncode}"]
        return Result("broke", f"run_model: {lines[-1]}")
    with np.load(got) as arrays:
        outputs = [arrays[f"output_{i}"] for i in range(len(arrays.files))]
    return judge(case, outputs)


def _inputs_of(graph: Path) -> set[str]:
    """The names of a compiled graph's inputs; those that nothing depends on are not among them."""
    import json

    text = json.loads(graph.read_text())
    return {text["nodes"][i]["name"] for i in text["arg_nodes"]}


def judge(case: Case, outputs: list[np.ndarray]) -> Result:
    """Compares with what the case has to give."""
    expected = case.outputs
    if len(outputs) != len(expected):
        return Result("wrong", f"{len(outputs)} outputs instead of {len(expected)}")
    for index, (want, have) in enumerate(zip(expected, outputs)):
        if want.shape != have.shape or want.dtype != have.dtype:
            return Result("wrong", f"output {index} is {have.dtype} {have.shape} instead of "
                                   f"{want.dtype} {want.shape}")
        if want.dtype.kind != "f":
            same = want == have
        else:
            # Sums of a few numbers in another order.
            room = 2e-6 * max(1.0, float(np.max(np.abs(want[np.isfinite(want)]), initial=0.0)))
            rtol = max(case.rtol, 2e-3 if want.dtype == np.float16 else 0)
            same = np.isclose(have, want, rtol=rtol, atol=max(case.atol, room), equal_nan=True)
        if not same.all():
            at = tuple(int(i) for i in np.argwhere(~same)[0])
            return Result("wrong", f"output {index} at {at} is {have[at]} instead of {want[at]} "
                                   f"({int((~same).sum())} of {same.size} differ)")
    return Result("passes")


def operators(case: Case) -> set[str]:
    """The operators of a case's model."""
    def of(graph: onnx.GraphProto) -> set[str]:
        found = {node.op_type for node in graph.node}
        for node in graph.node:
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    found |= of(attribute.g)
        return found

    return of(case.model.graph)
