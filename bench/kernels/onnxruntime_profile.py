#!/usr/bin/env python3
"""ONNX Runtime's own profile of a network, as a list of nodes in the order in which they run.

  onnxruntime_profile.py MODEL.onnx THREADS RUNS

Prints [{"name", "op", "inputs": [shape...], "outputs": [shape...], "us": median}]. Runs in the
environment of the peers.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnxruntime

WARM_UP = 5


def nodes_of_events(events: list[dict], warm_up: int) -> list[dict]:
    """events: the profile's; those of the first `warm_up` runs are left out."""
    times: dict[str, list[float]] = {}
    seen: dict[str, dict] = {}
    for event in events:
        if event.get("cat") != "Node" or not event["name"].endswith("_kernel_time"):
            continue
        index = event["args"]["node_index"]
        seen.setdefault(index, event)
        times.setdefault(index, []).append(event["dur"])
    nodes = []
    for index, event in seen.items():
        arguments = event["args"]
        nodes.append({"name": event["name"].removesuffix("_kernel_time"),
                      "op": arguments["op_name"], "inputs": _shapes(arguments["input_type_shape"]),
                      "outputs": _shapes(arguments["output_type_shape"]),
                      "us": statistics.median(times[index][warm_up:])})
    return nodes


def _shapes(described: list[dict[str, list[int]]]) -> list[list[int]]:
    """Of [{"float": [1, 3, 224, 224]}, ...]."""
    return [shape for one in described for shape in one.values()]


def profile(model: str, threads: int, runs: int, folder: str) -> list[dict]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    options.enable_profiling = True
    options.profile_file_prefix = f"{folder}/profile"
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    given = session.get_inputs()[0]
    values = np.random.default_rng(1).standard_normal(given.shape, dtype=np.float32)
    for _ in range(WARM_UP + runs):
        session.run(None, {given.name: values})
    return nodes_of_events(json.loads(Path(session.end_profiling()).read_text(encoding="utf-8")),
                           WARM_UP)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as scratch:
        print(json.dumps(profile(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), scratch)))
