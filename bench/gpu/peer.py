"""Measures a peer of run_model's on a GPU: one network, in a process of its own.

Usage: peer.py PEER MODEL INPUTS.npz OUTPUTS.npz SECONDS

PEER is onnxruntime (CUDA provider, as it is by default), onnxruntime-graph (the same as a CUDA
graph, its input and output bound to memory of the GPU) or ncnn (Vulkan, float32). Inputs come from
and outputs go to memory of the host in every run. Prints one line of JSON: the peer's version, the
milliseconds from its library to the first result, and each run's. Needs what it measures, NumPy
and the driver.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

Run = Callable[[], list[np.ndarray]]


def onnxruntime_run(model: str, inputs: dict[str, np.ndarray], graph: bool) -> tuple[Run, str]:
    import onnxruntime
    onnxruntime.set_default_logger_severity(3)
    options = {"enable_cuda_graph": "1"} if graph else {}
    session = onnxruntime.InferenceSession(model, providers=[("CUDAExecutionProvider", options)])
    if session.get_providers()[0] != "CUDAExecutionProvider":
        raise RuntimeError("ONNX Runtime has no CUDA provider here")
    outputs = session.get_outputs()
    if not graph:
        names = [one.name for one in outputs]
        return lambda: session.run(names, inputs), onnxruntime.__version__
    binding = session.io_binding()
    given = {key: onnxruntime.OrtValue.ortvalue_from_numpy(value, "cuda", 0)
             for key, value in inputs.items()}
    for key, value in given.items():
        binding.bind_ortvalue_input(key, value)
    made = [onnxruntime.OrtValue.ortvalue_from_shape_and_type(one.shape, np.float32, "cuda", 0)
            for one in outputs]
    for one, value in zip(outputs, made):
        binding.bind_ortvalue_output(one.name, value)

    def run() -> list[np.ndarray]:
        for key, value in given.items():
            value.update_inplace(inputs[key])
        session.run_with_iobinding(binding)
        return [value.numpy() for value in made]

    return run, onnxruntime.__version__


def ncnn_run(model: str, inputs: dict[str, np.ndarray]) -> tuple[Run, str]:
    """model: the .param file, with the .bin beside it."""
    import ncnn
    if ncnn.get_gpu_count() == 0:
        raise RuntimeError("ncnn finds no Vulkan device")
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "peers" / "workers"))
    from ncnn_peer import Model
    peer = Model(model, os.cpu_count() or 1, vulkan=True)
    peer.set_inputs(inputs)

    def run() -> list[np.ndarray]:
        peer.run()
        return [peer.output()]

    return run, ncnn.__version__


def main() -> None:
    peer, model, inputs_file, outputs_file, seconds = sys.argv[1:]
    with np.load(inputs_file) as file:
        inputs = {key: file[key] for key in file.files}
    module = peer.partition("-")[0]
    __import__(module)
    begin = time.perf_counter()
    if module == "ncnn":
        run, version = ncnn_run(model, inputs)
    else:
        run, version = onnxruntime_run(model, inputs, peer.endswith("-graph"))
    outputs = run()
    first = time.perf_counter() - begin
    times_until(float(seconds) / 2, run)
    samples = times_until(float(seconds), run)
    np.savez(outputs_file, **{f"output_{i}": made for i, made in enumerate(outputs)})
    print(json.dumps({"version": version, "first_ms": first * 1e3, "samples_ms": samples}))


def times_until(seconds: float, run: Run) -> list[float]:
    """Of the runs that begin within so many seconds, in milliseconds."""
    samples = []
    end = time.perf_counter() + seconds
    while (before := time.perf_counter()) < end:
        run()
        samples.append((time.perf_counter() - before) * 1e3)
    return samples


if __name__ == "__main__":
    main()
