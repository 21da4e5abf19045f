#!/usr/bin/env python3
"""One peer in a process of its own that is asked over a pipe, as bench/serve.h is.

  worker.py PEER INPUTS OUTPUT MODEL THREADS

INPUTS is an .npz file of the network's inputs by name; OUTPUT gets its first output as bare float32
values. One line of JSON says that the interpreter and the peer's library are loaded, with the
memory of the process at that point; each line on standard input is then a command, answered by one
line of JSON:

  load                 load the model and run it once
  run WARM_UP RUNS     {"run_ms": milliseconds of each of RUNS inferences}

The end of standard input ends the process.
"""

from __future__ import annotations


def memory_kib(field: str) -> int:
    """A field of /proc/self/status (proc(5)) in KiB."""
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(field + ":"))


BARE_KIB = memory_kib("VmRSS")  # the interpreter alone

import importlib
import json
import os
import sys
import time
from typing import Any, Callable, TextIO

import numpy as np

#: Module of each peer: VERSION, SETTINGS, convert(), and Model(path, threads) with set_inputs(),
#: run() and output().
PEERS = {"onnxruntime": "onnxruntime_peer", "openvino": "openvino_peer", "ncnn": "ncnn_peer",
         "mnn": "mnn_peer", "litert": "litert_peer"}


def take_standard_output() -> TextIO:
    """The pipe for replies; what a library prints to standard output goes to standard error."""
    replies = os.fdopen(os.dup(1), "w", buffering=1, encoding="ascii")
    os.dup2(2, 1)
    return replies


def reset_peak_memory() -> None:
    """VmHWM starts anew at what is resident now (proc_pid_clear_refs(5))."""
    try:
        with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
            file.write("5")
    except OSError:
        pass  # a kernel without it: the peak then includes that of the imports


def load(make_model: Callable[[], Any], values: dict[str, np.ndarray],
         output: str) -> tuple[Any, dict[str, float]]:
    """From before the model is loaded until its first result is there as an array."""
    start = time.perf_counter()
    model = make_model()
    load_ms = (time.perf_counter() - start) * 1e3
    model.set_inputs(values)
    model.run()
    result = model.output()
    first_ms = (time.perf_counter() - start) * 1e3
    figures = {"load_ms": load_ms, "first_ms": first_ms, "peak_kib": memory_kib("VmHWM"),
               "anonymous_kib": memory_kib("RssAnon")}
    np.ascontiguousarray(result, dtype=np.float32).tofile(output)
    return model, figures


def run(model: Any, warm_up: int, runs: int) -> dict[str, list[float]]:
    for _ in range(warm_up):
        model.run()
    times = []
    for _ in range(runs):
        start = time.perf_counter_ns()
        model.run()
        times.append((time.perf_counter_ns() - start) / 1e6)
    return {"run_ms": times}


def main(peer_name: str, input_path: str, output: str, model_path: str,
         threads: str) -> None:
    replies = take_standard_output()
    peer = importlib.import_module(PEERS[peer_name])
    with np.load(input_path) as arrays:
        values = {name: arrays[name] for name in arrays.files}
    reset_peak_memory()
    print(json.dumps({"ready": True, "version": peer.VERSION, "settings": peer.SETTINGS,
                      "bare_kib": BARE_KIB, "idle_kib": memory_kib("VmRSS"),
                      "idle_anonymous_kib": memory_kib("RssAnon")}), file=replies)
    model = None
    for line in sys.stdin:
        command, *numbers = line.split()
        if command == "load":
            model, figures = load(lambda: peer.Model(model_path, int(threads)), values, output)
        elif command == "run" and model is not None:
            figures = run(model, *map(int, numbers))
        else:
            sys.exit(f"worker.py: unknown command {line!r}")
        print(json.dumps(figures), file=replies)


if __name__ == "__main__":
    if len(sys.argv) != 6:
        sys.exit(__doc__)
    main(*sys.argv[1:])
