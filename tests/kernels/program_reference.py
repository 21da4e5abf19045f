"""Views and programs by their definition, in float64."""

from __future__ import annotations

import numpy as np

from run_model_tools.kernels.programs.expressions import FUNCTIONS
from run_model_tools.kernels.programs.program import Program
from run_model_tools.kernels.tensors import Tensor
from run_model_tools.kernels.views import ConstantTensor, View


def numbers_of(view: View, arrays: dict[Tensor, np.ndarray]) -> np.ndarray:
    """What a view shows, of the arrays that its tensors hold."""
    tensor = view.tensor
    array = tensor.data if isinstance(tensor, ConstantTensor) else arrays[tensor]
    at = np.full((1,), view.offset)
    for axis in view.axes:
        for count, stride in axis:
            at = (at[:, None] + np.arange(count) * stride).reshape(-1)
    return array.reshape(-1)[at].astype(np.float64).reshape(view.shape) * view.scale


def evaluate(program: Program, arrays: dict[Tensor, np.ndarray],
             product: np.ndarray | None = None) -> np.ndarray:
    """The program's result; `product` is what the node of that name stands for."""
    values: list[np.ndarray] = []
    for node in program.nodes:
        args = [values[a] for a in node.args]
        if node.op == "input":
            values.append(numbers_of(program.inputs[int(node.value)], arrays))
        elif node.op == "constant":
            values.append(np.full((1,) * len(program.shape), np.float64(np.float32(node.value))))
        elif node.op == "product":
            values.append(product)
        elif node.op in ("sum", "max", "min"):
            whole = np.broadcast_to(args[0], program.shape)
            values.append(getattr(np, node.op)(whole, axis=-1, keepdims=True))
        else:
            values.append(FUNCTIONS[node.op][1](*args))
    if program.gives_rows:
        return values[-1][..., 0]
    return np.broadcast_to(values[-1], program.shape)
