"""Microseconds of a network's nodes, by run_model's and ONNX Runtime's profilers."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

from trials import clean_environment

HERE = Path(__file__).resolve().parent


class ProfileFailed(Exception):
    """What the program said."""


@dataclass(frozen=True)
class Node:
    """One call of an operator.

    output, weight: shapes as the runtime stores them; weight is () where there is none.
    multiply_adds, kernel: of our kernels' layers (model.json).
    """

    name: str
    operator: str
    output: tuple[int, ...]
    weight: tuple[int, ...]
    microseconds: float
    multiply_adds: int | None = None
    kernel: dict | None = None


def nodes_of_profile(profile: dict, graph: dict) -> list[Node]:
    """profile: `run_model --profile --json`'s "profile"; graph: model.json.

    Nodes that only look at memory in another way are left out, since they do nothing.
    """
    attributes = {node["name"]: node.get("attrs", {}) for node in graph["nodes"]}
    nodes = []
    for node in sorted(profile["nodes"], key=lambda n: n["index"]):
        if node["family"] == "view":
            continue
        attrs = attributes.get(node["name"], {})
        inputs = node["inputs"]
        nodes.append(Node(
            node["name"], node["function"], tuple(node["outputs"][0]["shape"]),
            tuple(inputs[1]["shape"]) if len(inputs) > 1 else (), node["time_ms"]["p50"] * 1e3,
            int(attrs["multiply_adds"]) if "multiply_adds" in attrs else None,
            json.loads(attrs["kernel"]) if "kernel" in attrs else None))
    return nodes


def profile_artifact(program: Path, artifact: Path, threads: int, runs: int) -> list[Node]:
    """One process of run_model; artifact: FOLDER/MODEL/TARGET. Medians over the runs."""
    command = [program, artifact.parent.name, artifact.parent.parent, "--target", artifact.name,
               "--fill-mode", "random", "--profile", "--json", "--repeat", str(runs),
               "--warmup", "5"]
    output = _run(command, clean_environment() | {"TVM_NUM_THREADS": str(threads)})
    graph = json.loads((artifact / "model.json").read_text(encoding="utf-8"))
    return nodes_of_profile(json.loads(output)["profile"], graph)


def nodes_of_onnxruntime(reply: list[dict]) -> list[Node]:
    """reply: what onnxruntime_profile.py prints."""
    nodes = []
    for entry in reply:
        inputs = entry["inputs"]
        nodes.append(Node(entry["name"], entry["op"], tuple(entry["outputs"][0]),
                          tuple(inputs[1]) if len(inputs) > 1 else (), entry["us"]))
    return nodes


def profile_onnxruntime(python: Path, model: Path, threads: int, runs: int) -> list[Node]:
    """One process of ONNX Runtime. Medians over the runs."""
    output = _run([python, HERE / "onnxruntime_profile.py", model, str(threads), str(runs)],
                  clean_environment())
    return nodes_of_onnxruntime(json.loads(output))


def fastest(rounds: list[list[Node]]) -> list[Node]:
    """Each node's smallest time of the rounds: what disturbs a layer never makes it faster."""
    first = rounds[0]
    for other in rounds:
        if [node.name for node in other] != [node.name for node in first]:
            raise ProfileFailed("two runs of one network have different nodes")
    return [replace(node, microseconds=min(r[i].microseconds for r in rounds))
            for i, node in enumerate(first)]


def _run(command: list[object], environment: dict[str, str]) -> str:
    done = subprocess.run([str(word) for word in command], env=environment, capture_output=True,
                          text=True, check=False)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise ProfileFailed(f"{command[0]}: {lines[-1]}")
    return done.stdout
