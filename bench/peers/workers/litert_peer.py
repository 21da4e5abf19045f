"""LiteRT (TensorFlow Lite) with its XNNPACK delegate."""

from __future__ import annotations

import os
import shutil
import subprocess
from importlib import metadata
from pathlib import Path

import numpy as np
from ai_edge_litert.interpreter import Interpreter

VERSION = metadata.version("ai-edge-litert")
SETTINGS = "converted by onnx2tf to a float32 .tflite; XNNPACK as by default, threads as given"

#: onnx2tf tries every network on pictures that it downloads unless this file is in its folder.
_PICTURES = "calibration_image_sample_data_20x128x128x3_float32.npy"


class Model:
    def __init__(self, path: str, threads: int) -> None:
        self._interpreter = Interpreter(path, num_threads=threads)
        self._interpreter.allocate_tensors()

    def set_inputs(self, values: dict[str, np.ndarray]) -> None:
        """onnx2tf puts channels last."""
        details = self._interpreter.get_input_details()
        if len(values) != 1 or len(details) != 1:
            raise RuntimeError("onnx2tf gives inputs other names, and this network has several")
        (array,) = values.values()
        if tuple(details[0]["shape"]) != array.shape:
            array = np.moveaxis(array, 1, -1)
        self._interpreter.set_tensor(details[0]["index"], np.ascontiguousarray(array))

    def run(self) -> None:
        self._interpreter.invoke()

    def output(self) -> np.ndarray:
        return self._interpreter.get_tensor(self._interpreter.get_output_details()[0]["index"])


def convert(onnx: str, folder: str) -> str:
    """Uses the environment that RUN_MODEL_LITERT_CONVERTER names: onnx2tf needs TensorFlow."""
    program = Path(os.environ["RUN_MODEL_LITERT_CONVERTER"]) / "bin" / "onnx2tf"
    pictures = np.random.default_rng(1).random((20, 128, 128, 3), dtype=np.float32)
    np.save(Path(folder) / _PICTURES, pictures)
    done = subprocess.run([program, "-i", onnx, "-o", "tensorflow", "-n"], cwd=folder,
                          capture_output=True, text=True, check=False)
    made = sorted(Path(folder, "tensorflow").glob("*_float32.tflite"))
    if done.returncode != 0 or not made:
        raise RuntimeError(f"onnx2tf failed: {(done.stdout + done.stderr)[-2000:]}")
    path = Path(folder) / "model.tflite"
    made[0].rename(path)
    shutil.rmtree(Path(folder) / "tensorflow")
    return str(path)
