"""Expansion, depthwise convolution and projection as one layer
(kernels/c/f32-inverted-residual.c.in)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from run_model_tools.kernels.convolutions import depthwise as depthwise_kernel
from run_model_tools.kernels.convolutions.convolution import Convolution, all_in_order
from run_model_tools.kernels.isa import Isa
from run_model_tools.kernels.layer import Layer, Phase
from run_model_tools.kernels.pictures.window import rows_of_parts
from run_model_tools.kernels.tiles import channel_runs, even, register_tiles, run_defines

_RING_BYTES = 24 << 10
"""Of the first-level cache, what the rows of an expanded block may take."""

_MOST_EXPANDED = 1.25
"""Rows of the expanded picture that all tasks together may make, of those there are."""


@dataclass(frozen=True)
class InvertedResidual:
    """Convolutions that follow each other: 1 x 1 (it may be missing), depthwise, 1 x 1; each reads
    all of what the one before it makes, and nothing else does.

    The inputs are those of the first, and last the residual of `project`, if it adds one.
    """

    expand: Convolution | None
    depthwise: Convolution
    project: Convolution

    @property
    def convolutions(self) -> Sequence[Convolution]:
        return [c for c in (self.expand, self.depthwise, self.project) if c]

    @property
    def output_size(self) -> tuple[int, int]:
        return self.project.output_size

    @property
    def first(self) -> Convolution:
        """The convolution that reads the inputs."""
        return self.expand or self.depthwise

    @property
    def multiply_adds(self) -> int:
        """Of the definition: what a task makes twice counts once."""
        return sum(c.multiply_adds for c in self.convolutions)


def options(block: InvertedResidual, isa: Isa) -> list[dict]:
    """Parameter sets worth trying, the best guess first; empty if the kernel cannot do it.

    `parts`: tasks, each some rows; `columns`: as in depthwise.py;
    `group`: rows that are expanded at once; `expand`, `project`: register tiles [pixels, vectors].
    """
    between = block.depthwise
    if (not between.depthwise or between.residual or between.dilation != (1, 1)
            or any(piece.first for piece in between.input_lanes)):
        return []
    if any(conv.expression and conv.expression.channels for conv in block.convolutions):
        return []
    for conv in (block.expand, block.project):
        if conv and (conv.kernel != (1, 1) or conv.strides != (1, 1) or conv.groups != 1
                     or any(conv.padding) or conv.planar):
            return []
    if not _whole(block.project):
        return []
    if block.expand and (block.expand.residual or not _whole(between)):
        return []
    widths = depthwise_kernel.column_groups(between, isa)
    height, width = between.output_size
    total = -(-block.project.output_channels // isa.lanes)
    found = []
    for parts in (4, 2, 8):
        if not widths or parts > height:
            continue
        found.append({"parts": parts, "columns": widths[0],
                      "project": _tile(height // parts * width, total, isa)})
        if block.expand:
            found[-1] |= _expansion(block, isa, parts)
    return found


def _expansion(block: InvertedResidual, isa: Isa, parts: int) -> dict[str, Any]:
    """`group` and `expand`."""
    between, depth = block.depthwise, len(block.depthwise.input_lanes)
    # With 32 registers, 28 sums of a single vector read the weights once for the most pixels.
    wide = isa.registers == 32 and isa.lanes == 16
    rows = _expanded_rows(between, parts)
    line = between.input_size[1] * isa.lanes * 4
    # A ring of two groups; or of one, if that is all.
    group = max(rows) if max(rows) * line <= _RING_BYTES else max(1, _RING_BYTES // 2 // line)
    fewest = min(min(r, r % group or group) for r in rows)
    return {"group": group,
            "expand": _tile(fewest * between.input_size[1], 1 if wide else depth, isa)}


def wins(block: InvertedResidual, isa: Isa) -> bool:
    """Whether this layer is better than one for each convolution: a rule from measurements.

    Measured on two x86-64 cores with 1 MB of second-level cache each: MobileNet v2 takes 0.95 of
    the time with it, ShuffleNet v2 0.99. Most is gained on planes of 28 rows and more; below 14,
    tasks of one or two rows are too unequal, and rows that neighbouring tasks both expand cost more
    than is saved.
    """
    parameters = options(block, isa)
    if not parameters:
        return False
    parts, between = parameters[0]["parts"], block.depthwise
    if between.output_size[0] < 3 * parts:
        return False
    return not block.expand or (
        sum(_expanded_rows(between, parts)) <= _MOST_EXPANDED * between.input_size[0])


def make(block: InvertedResidual, isa: Isa, parts: int, columns: int, project: list[int],
         group: int = 0, expand: Sequence[int] = ()) -> Layer:
    """The layer."""
    between, lanes = block.depthwise, isa.lanes
    blocks, (height, width) = len(between.input_lanes), between.output_size
    rows = -(-height // parts)
    defines = {
        **isa.defines(), **depthwise_kernel.row_defines(between, isa, columns),
        **_epilogue("DEPTHWISE", between), "BLOCKS": blocks, "PARTS": parts, "PART_ROWS": rows,
        "IN_HEIGHT": between.input_size[0], "OUT_HEIGHT": height, "STRIDE_Y": between.strides[0],
        "PAD_TOP": between.padding[0],
    }
    constants = [depthwise_kernel.packed_weights(between, isa)]
    inputs = [(tuple(shape), "float32") for shape in block.first.input_shapes]
    scratch = blocks * rows * width * lanes * 4
    if block.expand:
        runs, order = channel_runs(block.expand.input_lanes)
        most = max(_expanded_rows(between, parts))
        ring = group if group >= most else group * -(-(group + between.kernel[0] - 1) // group)
        defines |= {**run_defines(runs, math.prod(between.input_size) * lanes, lanes),
                    **_epilogue("EXPAND", block.expand), "EXPAND": len(constants), "TAPS": 1,
                    "RUNS": len(runs), "DEPTH": len(order), "EXPAND_PIXELS": expand[0],
                    "EXPAND_VECTORS": expand[1], "GROUP_ROWS": group, "RING_ROWS": ring}
        constants.append(_packed(block.expand, order, expand[1], lanes))
        scratch += expand[1] * ring * between.input_size[1] * lanes * 4
    else:
        defines |= {"BLOCK_TENSOR": [piece.tensor for piece in between.input_lanes],
                    "BLOCK_INDEX": [piece.block for piece in between.input_lanes]}
    shape = block.project.output_shape(lanes)
    # Only AVX-512 on a processor that halves its vectors gains; on others nothing is lost.
    half = (lanes == 16 and shape[1] == project[1]
            and 0 < block.project.output_channels % lanes <= lanes // 2)
    defines |= {**_epilogue("PROJECT", block.project, 2), "PROJECT": len(constants),
                "PROJECT_PIXELS": project[0], "PROJECT_VECTORS": project[1],
                "PROJECT_TILES": shape[1] // project[1], "PROJECT_HALF": half}
    constants.append(_packed(block.project, _order(block.project, lanes), project[1], lanes))
    if block.project.residual:
        defines["RESIDUAL"] = len(inputs)
        inputs.append((shape, "float32"))
    parameters = {"parts": parts, "columns": columns, "project": project}
    if block.expand:
        parameters |= {"group": group, "expand": expand}
    return Layer(
        kind=f"conv2d_{'expand_' if block.expand else ''}depthwise_project",
        template="f32-inverted-residual.c.in", defines=defines,
        phases=(Phase("inverted_residual", parts),),
        inputs=tuple(inputs), constants=tuple(constants), output_shape=shape, scratch_bytes=scratch,
        variant=isa.variant(*project),
        note={"kernel": "inverted_residual", **parameters, "multiply_adds": block.multiply_adds})


def _whole(conv: Convolution) -> bool:
    """Whether a convolution reads one tensor's blocks in order, from the first to the last."""
    return all_in_order(conv.input_lanes, conv.input_shapes[0][1])


def _tile(pixels: int, vectors: int, isa: Isa) -> list[int]:
    """[pixels, vectors] of the largest register tile with which tiles that cover so many overlap
    little."""
    largest = {count: most for most, count in register_tiles(isa)}
    count = next(n for n in (2, 3, 1) if n in largest and vectors % n == 0)
    return [even(pixels, largest[count]).largest, count]


def _expanded_rows(conv: Convolution, parts: int) -> list[int]:
    """Rows of the input that each part of the output's rows reads."""
    return rows_of_parts(parts, (conv.input_size[0], conv.output_size[0]), conv.kernel[0],
                         conv.strides[0], conv.padding[0])


def _epilogue(stage: str, conv: Convolution, inputs: int = 1) -> dict[str, object]:
    """`stage`_EPILOGUE of the sum and, with two inputs, of the residual."""
    if conv.expression:
        return replace(conv.expression, inputs=inputs).macro(f"{stage}_EPILOGUE")

    def text(value: float) -> str:
        if math.isinf(value):
            return "(-__builtin_inff())" if value < 0 else "__builtin_inff()"
        return float(np.float32(value)).hex() + "f"
    value = "x0 + x1" if conv.residual else "x0"
    parameters = "x0, x1, channel" if inputs == 2 else "x0, channel"
    return {f"{stage}_EPILOGUE({parameters})":
            f"bounded({value}, {text(conv.low)}, {text(conv.high)})"}


def _order(conv: Convolution, lanes: int) -> list[int]:
    """For each lane of all blocks that are read, the channel in it, or -1."""
    order, channel = [], 0
    for piece in conv.input_lanes:
        order += list(range(channel, channel + piece.count)) + [-1] * (lanes - piece.count)
        channel += piece.count
    return order


def _packed(conv: Convolution, order: list[int], vectors: int, lanes: int) -> np.ndarray:
    """[tile][bias, then each input channel][output channel], zeros where there is no channel."""
    blocks = -(-conv.output_channels // lanes)
    matrix = np.zeros((len(order) + 1, blocks * lanes), np.float32)
    matrix[0, :conv.output_channels] = conv.bias
    used = [i for i, channel in enumerate(order) if channel >= 0]
    matrix[1 + np.array(used), :conv.output_channels] = conv.weight[
        :, [order[i] for i in used], 0, 0].T
    tiles = matrix.reshape(len(order) + 1, blocks // vectors, vectors * lanes)
    return np.ascontiguousarray(tiles.transpose(1, 0, 2))
