"""OpenVINO's CPU plugin."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import openvino

VERSION = openvino.__version__.split("-")[0]
PRECISION = os.environ.get("RUN_MODEL_PEER_PRECISION", "f32")
SETTINGS = ("float32 IR with the plugin's model cache filled; PERFORMANCE_HINT=LATENCY, "
            f"INFERENCE_PRECISION_HINT={PRECISION}, INFERENCE_NUM_THREADS as given")


class Model:
    """`path`: what convert() wrote. The first process that loads it fills the cache beside it."""

    def __init__(self, path: str, threads: int) -> None:
        settings = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": PRECISION,
                    "INFERENCE_NUM_THREADS": threads, "CACHE_DIR": str(Path(path).parent / "cache")}
        compiled = openvino.Core().compile_model(path, "CPU", settings)
        self._request = compiled.create_infer_request()

    def set_inputs(self, values: dict[str, np.ndarray]) -> None:
        for name, array in values.items():
            self._request.set_tensor(name, openvino.Tensor(array, shared_memory=True))

    def run(self) -> None:
        # infer() would also make arrays of the results.
        self._request.start_async()
        self._request.wait()

    def output(self) -> np.ndarray:
        return np.array(self._request.get_output_tensor(0).data)


def convert(onnx: str, folder: str) -> str:
    path = f"{folder}/model.xml"
    openvino.save_model(openvino.convert_model(onnx), path, compress_to_fp16=False)
    return path
