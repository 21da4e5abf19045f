"""A network's convolutions and matrix products, as its ONNX file defines them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

MATRIX_PRODUCTS = ("Gemm", "MatMul")


@dataclass(frozen=True)
class NetworkLayer:
    """kernel, strides: (1, 1) for a matrix product, whose sizes are (1, 1) too.

    reads: the places in the network of the layers whose results it gets, whatever lies between.
    """

    name: str
    channels: tuple[int, int]
    input_size: tuple[int, int]
    output_size: tuple[int, int]
    kernel: tuple[int, int]
    strides: tuple[int, int]
    groups: int
    is_dense: bool
    reads: frozenset[int]

    @property
    def multiply_adds(self) -> int:
        """Each output value is a sum over the kernel and the channels of its group."""
        return (math.prod(self.output_size) * math.prod(self.kernel) * self.channels[1]
                * self.channels[0] // self.groups)

    @property
    def is_depthwise(self) -> bool:
        return self.groups > 1 and self.groups == self.channels[1]

    def __str__(self) -> str:
        if self.is_dense:
            return f"{self.channels[0]} → {self.channels[1]}"
        kind = f"{self.kernel[0]}×{self.kernel[1]}"
        if self.strides != (1, 1):
            kind += f"/{self.strides[0]}"
        if self.is_depthwise:
            kind += " depthwise"
        elif self.groups > 1:
            kind += f", {self.groups} groups"
        return (f"{self.channels[0]}×{self.input_size[0]}×{self.input_size[1]} → "
                f"{self.channels[1]}×{self.output_size[0]}×{self.output_size[1]}, {kind}")


def read_layers(path: Path) -> list[NetworkLayer]:
    """In the order of the file, which is one in which they can be run."""
    import onnx
    model = onnx.shape_inference.infer_shapes(onnx.load(path))
    graph = model.graph
    shapes = {value.name: tuple(d.dim_value for d in value.type.tensor_type.shape.dim)
              for value in (*graph.value_info, *graph.input, *graph.output)}
    shapes |= {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    layers: list[NetworkLayer] = []
    sources: dict[str, frozenset[int]] = {}
    for node in graph.node:
        reads = frozenset().union(*(sources.get(name, frozenset()) for name in node.input))
        layer = _layer(node, shapes, reads)
        if layer is not None:
            reads = frozenset([len(layers)])
            layers.append(layer)
        sources.update((name, reads) for name in node.output)
    return layers


def _layer(node, shapes: dict[str, tuple[int, ...]], reads: frozenset[int]) -> NetworkLayer | None:
    name = node.name or node.output[0]
    if node.op_type == "Conv":
        import onnx
        attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        weight, given, made = (shapes[n] for n in (*node.input[1::-1], node.output[0]))
        return NetworkLayer(name, (given[1], made[1]), given[2:], made[2:], weight[2:],
                            tuple(attributes.get("strides", (1, 1))), attributes.get("group", 1),
                            False, reads)
    if node.op_type in MATRIX_PRODUCTS:
        given, made = shapes[node.input[0]], shapes[node.output[0]]
        return NetworkLayer(name, (given[-1], made[-1]), (1, 1), (1, 1), (1, 1), (1, 1), 1, True,
                            reads)
    return None
