"""MNN's CPU backend."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata

import MNN
import numpy as np

VERSION = metadata.version("mnn")
SETTINGS = "converted by mnnconvert; CPU backend, precision high (float32), threads as given"

_TYPES = {"float32": MNN.Halide_Type_Float, "int32": MNN.Halide_Type_Int}


class Model:
    def __init__(self, path: str, threads: int) -> None:
        self._interpreter = MNN.Interpreter(path)
        self._session = self._interpreter.createSession(
            {"backend": "CPU", "precision": "high", "numThread": threads})
        self._output = self._interpreter.getSessionOutput(self._session)

    def set_inputs(self, values: dict[str, np.ndarray]) -> None:
        for name, array in values.items():
            if array.dtype == np.int64:  # MNN has no other whole numbers
                array = array.astype(np.int32)
            if array.dtype.name not in _TYPES:
                raise RuntimeError(f"MNN takes no inputs of {array.dtype.name}")
            tensor = MNN.Tensor(array.shape, _TYPES[array.dtype.name], array,
                                MNN.Tensor_DimensionType_Caffe)
            self._interpreter.getSessionInput(self._session, name).copyFrom(tensor)

    def run(self) -> None:
        self._interpreter.runSession(self._session)

    def output(self) -> np.ndarray:
        shape = self._output.getShape()
        tensor = MNN.Tensor(shape, MNN.Halide_Type_Float, np.zeros(shape, dtype=np.float32),
                            MNN.Tensor_DimensionType_Caffe)
        self._output.copyToHostTensor(tensor)
        return np.array(tensor.getData(), dtype=np.float32)


def convert(onnx: str, folder: str) -> str:
    path = f"{folder}/model.mnn"
    converter = "from MNN.tools.mnnconvert import main; main()"
    done = subprocess.run([sys.executable, "-c", converter, "-f", "ONNX", "--modelFile", onnx,
                           "--MNNModel", path, "--bizCode", "bench"], capture_output=True,
                          text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"mnnconvert failed: {(done.stdout + done.stderr)[-2000:]}")
    return path
