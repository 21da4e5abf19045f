"""YOEO, "You Only Encode Once" (Vahl, Gutsche, Bestmann, Zhang: RoboCup 2021): boxes and a
segmentation from one encoder.

The encoder and the decoder of boxes are those of YOLO v4 tiny (arxiv.org/abs/2011.08036, figure 4);
the segmentation's decoder goes back up to the picture's size, with what the encoder had at each
size beside it. Written from these descriptions; its weights have names of our own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto, helper

from run_model_tools.zoo.networks.graph import Graph, Tensor, symmetric_pads
from run_model_tools.zoo.networks.weights import Kind, Weights

INPUT = "InputLayer"
DETECTIONS, SEGMENTATION = "yolo_detections", "segmentation"

#: Widths and heights in pixels of the input, of YOLO v4 tiny: for cells of 32 pixels, and of 16.
TINY_ANCHORS = (((81, 82), (135, 169), (344, 319)), ((10, 14), (23, 27), (37, 58)))
#: Those of the pictures of examples/robot_vision: six clusters of the logarithms of the widths and
#: heights of 525 boxes.
FIELD_ANCHORS = (((17.8, 104.1), (45.2, 76.3), (71.8, 158.5)),
                 ((17.0, 17.6), (7.8, 65.9), (27.9, 43.6)))
FIELD_WIDTH = 0.25


@dataclass(frozen=True)
class Head:
    """What one layer of cells says before it is decoded: [1, anchors * (5 + classes), s, s]."""

    raw: Tensor
    anchors: Sequence[tuple[float, float]]
    stride: int


def build(weights: Weights, name: str = "yoeo", width: float = 1.0, classes: int = 3,
          areas: int = 3, anchors: Sequence[Sequence[tuple[float, float]]] = TINY_ANCHORS,
          size: int = 416) -> onnx.ModelProto:
    """InputLayer float32 [1, 3, size, size] (RGB, 0 to 1) -> yolo_detections float32
    [1, 3 * (s * s + 4 * s * s), 5 + classes] with s = size / 32, rows of centre, width and height
    in pixels of the input, objectness and classes; and segmentation uint8 [1, size, size], the
    number of each pixel's area.

    width: of all layers, where 1 is the published one.
    """
    graph = Graph(name, weights, INPUT, size)
    heads, scores = architecture(graph, width, classes, areas, anchors)
    rows = [_decode(graph, f"detection{index}", head, classes)
            for index, head in enumerate(heads)]
    graph.add("Concat", rows, Tensor(DETECTIONS, 5 + classes, 0), axis=1)
    best = graph.add("ArgMax", [scores.name], Tensor("segmentation.best", 1, size), axis=1,
                     keepdims=0)
    graph.add("Cast", [best.name], Tensor(SEGMENTATION, 1, size), to=TensorProto.UINT8)
    cells = sum(len(head.anchors) * head.raw.size ** 2 for head in heads)
    return graph.model_of([
        helper.make_tensor_value_info(DETECTIONS, TensorProto.FLOAT, [1, cells, 5 + classes]),
        helper.make_tensor_value_info(SEGMENTATION, TensorProto.UINT8, [1, size, size])])


def architecture(graph: Graph, width: float, classes: int, areas: int,
                 anchors: Sequence[Sequence[tuple[float, float]]]) -> tuple[list[Head], Tensor]:
    """The layers with weights: the heads before they are decoded, and the scores of the areas."""
    def wide(channels: int) -> int:
        return max(2, round(channels * width / 2) * 2)

    def block(layer: str, x: Tensor, channels: int, kernel: int = 3, stride: int = 1) -> Tensor:
        x = graph.conv(f"{layer}.conv", x, wide(channels), kernel, stride, symmetric_pads(kernel))
        return graph.leaky_relu(graph.batch_norm(f"{layer}.norm", x), layer)

    half = block("encoder.stem1", graph.input, 32, stride=2)
    x = quarter = block("encoder.stem2", half, 64, stride=2)
    kept = []
    for stage, channels in enumerate((64, 128, 256), 1):
        at = f"encoder.stage{stage}"
        first = block(f"{at}.first", x, channels)
        _, part = graph.halves(first, f"{at}.split")
        second = block(f"{at}.second", part, channels // 2)
        third = block(f"{at}.third", second, channels // 2)
        both = graph.concat([third, second], f"{at}.inner")
        mixed = block(f"{at}.mixed", both, channels, kernel=1)
        kept.append(mixed)
        x = graph.halve(f"{at}.pool", graph.concat([first, mixed], f"{at}.outer"))
    deepest = block("encoder.last", x, 512)

    each = len(anchors[0]) * (5 + classes)
    neck = block("detection.neck", deepest, 256, kernel=1)
    coarse = _plain(graph, "detection.coarse.raw", block("detection.coarse", neck, 512), each)
    up = graph.double("detection.up", block("detection.lateral", neck, 128, kernel=1))
    joined = graph.concat([up, kept[2]], "detection.joined")
    fine = _plain(graph, "detection.fine.raw", block("detection.fine", joined, 256), each)

    x = block("segmentation.neck", deepest, 256, kernel=1)
    for step, (beside, channels) in enumerate(((kept[2], 128), (kept[1], 64), (quarter, 32),
                                               (half, 32)), 1):
        x = graph.double(f"segmentation.up{step}", x)
        x = graph.concat([x, beside], f"segmentation.joined{step}")
        x = block(f"segmentation.step{step}", x, channels)
    x = graph.double("segmentation.up5", x)
    scores = _plain(graph, "segmentation.scores", x, areas, kernel=3)
    size = graph.input.size
    heads = [Head(coarse, anchors[0], size // coarse.size), Head(fine, anchors[1],
                                                                 size // fine.size)]
    return heads, scores


def _plain(graph: Graph, layer: str, x: Tensor, channels: int, kernel: int = 1) -> Tensor:
    return graph.conv(layer, x, channels, kernel, 1, symmetric_pads(kernel), bias=True,
                      kind=Kind.LINEAR_KERNEL)


def _decode(graph: Graph, name: str, head: Head, classes: int) -> str:
    """YOLO v3's rows: a sigmoid within the cell for the centre, an exponential times the anchor for
    width and height, sigmoids for the rest. Anchor by anchor, each cell by cell."""
    side, count = head.raw.size, len(head.anchors)
    values, cells = 5 + classes, side * side

    def step(op: str, what: str, *inputs: str, **attributes: object) -> str:
        return graph.add(op, inputs, Tensor(f"{name}.{what}", values, 0), **attributes).name

    def numbers(what: str, array: np.ndarray, dtype: type = np.float32) -> str:
        return graph.constant(f"{name}.{what}", array.astype(dtype))

    split = numbers("split_shape", np.array([1, count, values, cells]), np.int64)
    rows = step("Transpose", "rows", step("Reshape", "split", head.raw.name, split),
                perm=[0, 1, 3, 2])
    axis = graph.constant("last_axis", np.array([3], np.int64))
    at = [graph.constant(f"at{index}", np.array([index], np.int64)) for index in (0, 2, 4)]
    end = graph.constant("to_end", np.array([1 << 30], np.int64))
    centre = step("Sigmoid", "in_cell", step("Slice", "centre_raw", rows, at[0], at[1], axis))
    extent = step("Exp", "times", step("Slice", "extent_raw", rows, at[1], at[2], axis))
    scores = step("Sigmoid", "scores", step("Slice", "scores_raw", rows, at[2], end, axis))
    grid = np.stack(np.meshgrid(np.arange(side), np.arange(side)), -1).reshape(1, 1, cells, 2)
    centre = step("Mul", "centre", step("Add", "in_grid", centre, numbers("grid", grid)),
                  numbers("stride", np.array(head.stride)))
    extent = step("Mul", "extent", extent,
                  numbers("anchors", np.array(head.anchors).reshape(1, count, 1, 2)))
    whole = step("Concat", "decoded", centre, extent, scores, axis=3)
    flat = numbers("flat_shape", np.array([1, count * cells, values]), np.int64)
    return step("Reshape", "flat", whole, flat)
