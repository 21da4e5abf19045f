"""ONNX Runtime's CPU provider."""

from __future__ import annotations

import numpy as np
import onnxruntime

VERSION = onnxruntime.__version__
SETTINGS = ("graph optimised for this machine beforehand (all levels); intra-op threads as given, "
            "spinning as by default; inputs and outputs bound")


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
        output = self._session.get_outputs()[0]
        self._output = onnxruntime.OrtValue.ortvalue_from_shape_and_type(output.shape, np.float32)
        self._binding.bind_ortvalue_output(output.name, self._output)

    def set_input(self, values: np.ndarray) -> None:
        value = onnxruntime.OrtValue.ortvalue_from_numpy(values)
        self._binding.bind_ortvalue_input(self._session.get_inputs()[0].name, value)

    def run(self) -> None:
        self._session.run_with_iobinding(self._binding)

    def output(self) -> np.ndarray:
        return self._output.numpy()


def convert(onnx: str, folder: str) -> str:
    """Writes the graph as all levels of optimisation for this machine leave it."""
    path = f"{folder}/optimised.onnx"
    options = session_options(1)
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.optimized_model_filepath = path
    onnxruntime.InferenceSession(onnx, options, providers=["CPUExecutionProvider"])
    return path
