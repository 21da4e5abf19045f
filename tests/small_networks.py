"""Networks of a few layers as ONNX files, for tests of any room."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import ArrayLike
from onnx import numpy_helper, parser

from run_model_tools.onnx_repair.open_extents import COUNTING, HIDDEN, VALUE
from run_model_tools.onnx_repair.serve_onnxruntime import session


def network(text: str, constants: dict[str, ArrayLike] | None = None, opset: int = 13,
            ir_version: int = 8, **domains: int) -> onnx.ModelProto:
    """What ONNX's text form says: "(float[1,3] x) => (float[1,3] y) { y = Relu(x) }".

    A type without brackets is a number's, with empty ones that of any shape; before a node may
    stand its name, in brackets. `constants`: the initializers; `domains`: releases of others than
    ONNX's own operators.
    """
    named = r"(?<!\w)\[(\w+)\] (\w+)"
    names = {output: name for name, output in re.findall(named, text)}
    imports = {"": opset} | {domain.replace("_", "."): v for domain, v in domains.items()}
    releases = ", ".join(f'"{domain}": {release}' for domain, release in imports.items())
    model = parser.parse_model(f"<ir_version: {ir_version}, opset_import: [{releases}]> net "
                               + re.sub(named, r"\2", text))
    model.graph.initializer.extend(numpy_helper.from_array(np.asarray(array), name)
                                   for name, array in (constants or {}).items())
    for node in model.graph.node:
        node.name = names.get(node.output[0], "")
    return model


def save_network(path: Path, *description, **options) -> Path:
    """A file of network()."""
    onnx.save(network(*description, **options), str(path))
    return path


def weights(seed: int, **shapes: tuple[int, ...]) -> dict[str, np.ndarray]:
    """Normally distributed constants for network()."""
    random = np.random.default_rng(seed)
    return {name: random.standard_normal(shape).astype(np.float32)
            for name, shape in shapes.items()}


def run_onnxruntime(model: onnx.ModelProto | Path, inputs: dict[str, np.ndarray]) -> list:
    given = str(model) if isinstance(model, Path) else model.SerializeToString()
    return session(given, optimized=True, exact=True).run(None, inputs)


def save_classifier(path: Path, batch: int | str = 1) -> Path:
    """A network of conv, relu, pool, matmul and softmax for pictures of 8x8: 3 classes."""
    return save_network(path, f"""(float[{batch},3,8,8] image) => (float[{batch},3] prob) {{
        c = Conv<pads=[1,1,1,1]>(image, w, b)
        r = Relu(c)
        p = GlobalAveragePool(r)
        f = Flatten(p)
        logits = MatMul(f, m)
        prob = Softmax<axis=1>(logits)
    }}""", weights(1, w=(4, 3, 3, 3), b=(4,), m=(4, 3)), ir_version=7)


def save_two_by_two(path: Path) -> Path:
    """Two inputs (a float matrix, whole numbers) and two outputs, no weights."""
    return save_network(path, """(float[2,3] x, int64[2,3] n)
            => (float[2,3] sum, float[2,3] product) {
        nf = Cast<to=1>(n)
        sum = Add(x, nf)
        product = Mul(x, nf)
    }""", ir_version=7)


def hidden_numbers(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    """What stands behind the inputs of a network that was repaired for open sizes."""
    values = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    return {value.name: values[value.name + VALUE] if value.name.startswith(HIDDEN) else
            np.arange(value.type.tensor_type.shape.dim[0].dim_value)
            for value in model.graph.input if value.name.startswith((HIDDEN, COUNTING))}
