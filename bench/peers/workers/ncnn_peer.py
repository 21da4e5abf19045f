"""ncnn, with models that pnnx converted."""

from __future__ import annotations

import subprocess
from importlib.util import find_spec
from pathlib import Path

import ncnn
import numpy as np

VERSION = ncnn.__version__
SETTINGS = ("converted by pnnx with fp16=0; half and bfloat16 off; Winograd, sgemm, packing and "
            "light mode on as by default; OpenMP threads as given")

_HALF_OPTIONS = ("use_fp16_packed", "use_fp16_storage", "use_fp16_arithmetic", "use_bf16_packed",
                 "use_bf16_storage")


class Model:
    """`path`: the .param file; the .bin file lies beside it.  vulkan: whether a GPU computes."""

    def __init__(self, path: str, threads: int, vulkan: bool = False) -> None:
        self._net = ncnn.Net()
        self._net.opt.num_threads = threads
        self._net.opt.use_vulkan_compute = vulkan
        for name in _HALF_OPTIONS:
            if hasattr(self._net.opt, name):
                setattr(self._net.opt, name, False)
        weights = str(Path(path).with_suffix(".bin"))
        if self._net.load_param(path) != 0 or self._net.load_model(weights) != 0:
            raise RuntimeError(f"ncnn cannot load {path}")
        self._input_name = self._net.input_names()[0]
        self._output_name = self._net.output_names()[0]

    def set_inputs(self, values: dict[str, np.ndarray]) -> None:
        if len(values) != 1:
            raise RuntimeError("pnnx gives inputs other names, and this network has several")
        (array,) = values.values()
        if array.dtype != np.float32 or array.shape[0] != 1:
            raise RuntimeError("ncnn takes one float32 input without a batch dimension")
        self._values = np.ascontiguousarray(array[0])
        self._input = ncnn.Mat(self._values)

    def run(self) -> None:
        extractor = self._net.create_extractor()
        extractor.input(self._input_name, self._input)
        status, self._output = extractor.extract(self._output_name)
        if status != 0:
            raise RuntimeError(f"ncnn failed with status {status}")

    def output(self) -> np.ndarray:
        return np.array(self._output)


def convert(onnx: str, folder: str) -> str:
    stated = Path(folder) / "model.onnx"
    _state_split_sizes(onnx, stated)
    # Not imported: that would need PyTorch, and the program does not.
    program = Path(find_spec("pnnx").submodule_search_locations[0]) / "pnnx"
    done = subprocess.run([program, stated.name, "fp16=0"], cwd=folder, capture_output=True,
                          text=True, check=False)
    path = Path(folder) / "model.ncnn.param"
    if done.returncode != 0 or not path.exists():
        raise RuntimeError(f"pnnx failed: {(done.stdout + done.stderr)[-2000:]}")
    return str(path)


def _state_split_sizes(source: str, destination: Path) -> None:
    """pnnx makes a Slice without sizes, which crashes ncnn, of a Split that leaves them out."""
    import onnx
    model = onnx.load(source)
    inferred = onnx.shape_inference.infer_shapes(model).graph
    shapes = {value.name: [d.dim_value for d in value.type.tensor_type.shape.dim]
              for value in (*inferred.value_info, *inferred.output)}
    for node in model.graph.node:
        if node.op_type != "Split" or len(node.input) > 1:
            continue
        if any(attribute.name == "split" for attribute in node.attribute):
            continue  # opset 12 and before
        axis = next((a.i for a in node.attribute if a.name == "axis"), 0)
        sizes = np.array([shapes[name][axis] for name in node.output], dtype=np.int64)
        name = f"{node.output[0]}_sizes"
        model.graph.initializer.append(onnx.numpy_helper.from_array(sizes, name))
        node.input.append(name)
    onnx.save(model, destination)
