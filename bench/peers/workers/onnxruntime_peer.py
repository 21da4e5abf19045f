"""ONNX Runtime's CPU provider."""

from __future__ import annotations

import numpy as np
import onnxruntime

VERSION = onnxruntime.__version__
SETTINGS = ("graph optimised for this machine beforehand (all levels); intra-op threads as given, "
            "spinning as by default; inputs and outputs bound")

_DTYPES = {"tensor(float)": np.float32, "tensor(float16)": np.float16,
           "tensor(double)": np.float64, "tensor(int64)": np.int64, "tensor(int32)": np.int32,
           "tensor(int8)": np.int8, "tensor(uint8)": np.uint8, "tensor(bool)": np.bool_}


def session_options(threads: int) -> onnxruntime.SessionOptions:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.log_severity_level = 3
    return options


class Model:
    """`path`: what convert() wrote."""

    def __init__(self, path: str, threads: int) -> None:
        options = session_options(threads)
        # What its documentation on graph optimisation calls the offline mode: the saved graph has
        # every optimisation in it, and looking for more would only make the start longer.
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        self._session = onnxruntime.InferenceSession(path, options,
                                                     providers=["CPUExecutionProvider"])
        self._binding = self._session.io_binding()
        for output in self._session.get_outputs():
            if all(isinstance(extent, int) for extent in output.shape):
                value = onnxruntime.OrtValue.ortvalue_from_shape_and_type(
                    output.shape, _DTYPES[output.type])
                self._binding.bind_ortvalue_output(output.name, value)
            else:  # known when it has run
                self._binding.bind_output(output.name)

    def set_inputs(self, values: dict[str, np.ndarray]) -> None:
        for name, array in values.items():
            self._binding.bind_ortvalue_input(
                name, onnxruntime.OrtValue.ortvalue_from_numpy(array))

    def run(self) -> None:
        self._session.run_with_iobinding(self._binding)

    def output(self) -> np.ndarray:
        return self._binding.get_outputs()[0].numpy()


def convert(onnx: str, folder: str) -> str:
    """Writes the graph as all levels of optimisation for this machine leave it."""
    path = f"{folder}/optimised.onnx"
    options = session_options(1)
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.optimized_model_filepath = path
    onnxruntime.InferenceSession(onnx, options, providers=["CPUExecutionProvider"])
    return path
