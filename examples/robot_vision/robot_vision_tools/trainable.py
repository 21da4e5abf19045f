"""An ONNX graph as a PyTorch module: its weights are parameters, its nodes are executed.

So the network that is trained and the one that is exported have one description,
run_model_tools.zoo.networks.yoeo.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import torch
from onnx import helper, numpy_helper
from torch import Tensor, nn
from torch.nn import functional

_STATISTICS = (".running_mean", ".running_var")


class TrainableGraph(nn.Module):
    """Gives the tensors `results` of a graph whose nodes up to there are those of an encoder and
    decoders of convolutions."""

    def __init__(self, model: onnx.ModelProto, results: Sequence[str]) -> None:
        super().__init__()
        self._results = list(results)
        self._nodes = _nodes_up_to(model.graph, self._results)
        self._input = model.graph.input[0].name
        used = {name for node in self._nodes for name in node.input}
        self._weights = nn.ParameterDict()
        self._names = {}
        for tensor in model.graph.initializer:
            if tensor.name in used and tensor.name != "twice":
                key = tensor.name.replace(".", "/")
                value = torch.from_numpy(np.array(numpy_helper.to_array(tensor)))
                self._weights[key] = nn.Parameter(
                    value, requires_grad=not tensor.name.endswith(_STATISTICS))
                self._names[tensor.name] = key

    def weight(self, name: str) -> Tensor:
        return self._weights[self._names[name]]

    def arrays(self) -> dict[str, np.ndarray]:
        """The weights by their names in the graph."""
        return {name: self.weight(name).detach().numpy().copy() for name in self._names}

    def forward(self, picture: Tensor) -> list[Tensor]:
        values = {self._input: picture}
        for node in self._nodes:
            attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
            given = [values[name] if name in values else self.weight(name)
                     for name in node.input if name in values or name in self._names]
            made = self._execute(node.op_type, given, attributes)
            values.update(zip(node.output, made))
        return [values[name] for name in self._results]

    def _execute(self, op: str, given: list[Tensor], attributes: dict) -> Sequence[Tensor]:
        if op == "Conv":
            return [functional.conv2d(*given, stride=attributes["strides"],
                                      padding=attributes["pads"][:2])]
        if op == "BatchNormalization":
            x, scale, shift, mean, variance = given
            return [functional.batch_norm(x, mean, variance, scale, shift, self.training, 0.05,
                                          attributes["epsilon"])]
        if op == "LeakyRelu":
            return [functional.leaky_relu(given[0], attributes["alpha"])]
        if op == "MaxPool":
            return [functional.max_pool2d(given[0], 2)]
        if op == "Split":
            return given[0].chunk(2, dim=attributes["axis"])
        if op == "Concat":
            return [torch.cat(given, dim=attributes["axis"])]
        if op == "Resize":
            return [functional.interpolate(given[0], scale_factor=2, mode="nearest")]
        raise AssertionError(f"no such operator here: {op}")


def _nodes_up_to(graph: onnx.GraphProto, results: Sequence[str]) -> list[onnx.NodeProto]:
    """What the results are computed from, in the graph's order."""
    wanted, kept = set(results), []
    for node in reversed(graph.node):
        if wanted.intersection(node.output):
            wanted.update(node.input)
            kept.append(node)
    return kept[::-1]
