"""3x3 convolution with stride 1 by Winograd's F(2, 3), F(4, 3), F(6, 3)
(kernels/c/f32-conv-winograd.c.in)."""

from __future__ import annotations

import math

import numpy as np

from run_model_tools.kernels import winograd_points
from run_model_tools.kernels.convolution import Convolution
from run_model_tools.kernels.isa import Isa
from run_model_tools.kernels.layer import Layer, Phase
from run_model_tools.kernels.winograd_bytes import largest_tile
from run_model_tools.kernels.winograd_cost import candidates


def options(conv: Convolution, isa: Isa) -> list[dict]:
    """Parameter sets worth trying, the best guess first.

    `tile`: outputs of a tile along an axis; `group`: tiles of a task; `splits`: shares that the
    output channels are cut into; `pixels` and `vectors`: the register tile.
    """
    return candidates(conv, isa, largest_tile(conv)) if can_do(conv) else []


def can_do(conv: Convolution) -> bool:
    """Whether a convolution is one for Winograd."""
    return (conv.kernel == (3, 3) and conv.strides == (1, 1) and conv.dilation == (1, 1)
            and conv.groups == 1 and not conv.planar)


def make(conv: Convolution, isa: Isa, tile: int, group: int, splits: int, pixels: int,
         vectors: int) -> Layer:
    """The layer; parameters as in options()."""
    points = winograd_points.POINTS[tile]
    height, width = conv.output_size
    tiles = math.prod(-(-size // tile) for size in (height, width))
    out_blocks = -(-conv.output_channels // isa.lanes)
    parts = -(-out_blocks // vectors)
    blocks = list(dict.fromkeys((piece.tensor, piece.block) for piece in conv.input_lanes))
    defines = {
        **isa.defines(), **conv.epilogue_defines(parts * vectors * isa.lanes),
        **winograd_points.defines(points),
        "IN_HEIGHT": conv.input_size[0], "IN_WIDTH": conv.input_size[1],
        "OUT_HEIGHT": height, "OUT_WIDTH": width,
        "PAD_TOP": conv.padding[0], "PAD_LEFT": conv.padding[1],
        "BLOCKS": len(blocks), "BLOCK_TENSOR": [t for t, _ in blocks],
        "BLOCK_INDEX": [b for _, b in blocks],
        "CHANNELS": conv.input_channels, "OUT_BLOCKS": out_blocks, "PARTS": parts,
        "VECTORS": vectors, "SPLITS": splits, "GROUP": group, "PIXELS": pixels,
    }
    if (any(piece.count != isa.lanes for piece in conv.input_lanes)
            or len(blocks) < len(conv.input_lanes)):
        defines.update({
            "PIECES": len(conv.input_lanes),
            "PIECE_BLOCK": [blocks.index((p.tensor, p.block)) for p in conv.input_lanes],
            "PIECE_FIRST": [p.first for p in conv.input_lanes],
            "PIECE_COUNT": [p.count for p in conv.input_lanes]})
    if conv.residual:
        defines["RESIDUAL"] = len(conv.input_shapes)
    parameters = {"tile": tile, "group": group, "splits": splits, "pixels": pixels,
                  "vectors": vectors}
    return Layer(
        kind=f"conv2d_winograd{tile}", template="f32-conv-winograd.c.in", defines=defines,
        phases=(Phase("winograd", -(-tiles // group) * splits),),
        inputs=conv.layer_inputs(isa.lanes),
        constants=(transformed_weights(conv, isa, points, vectors),
                   conv.channel_constants(parts * vectors * isa.lanes)),
        output_shape=conv.output_shape(isa.lanes),
        scratch_bytes=scratch_bytes(isa, tile, group, len(blocks), vectors),
        variant=f"f{tile}x3_{isa.variant(pixels, vectors)}",
        note={"kernel": "winograd", **parameters, "multiply_adds": conv.multiply_adds})


def scratch_bytes(isa: Isa, tile: int, group: int, blocks: int, vectors: int) -> int:
    """A task's transformed input and products: f32-conv-winograd.c.in's VALUE_STRIDE and
    PRODUCT_STRIDE."""
    return (tile + 2) ** 2 * ((blocks * group | 1) + (group * vectors | 1)) * isa.lanes * 4


def transformed_weights(conv: Convolution, isa: Isa, points: tuple[float, ...],
                        vectors: int) -> np.ndarray:
    """float32 [part][position][input channel][output channel of the part], computed in float64."""
    _, taps, _ = winograd_points.matrices(points)
    out_channels, in_channels = conv.weight.shape[:2]
    width = vectors * isa.lanes
    parts = -(-out_channels // width)
    padded = np.zeros((parts * width, in_channels, 3, 3))
    padded[:out_channels] = conv.weight
    values = np.einsum("ai,ocij,bj->abco", taps, padded, taps, optimize=True)
    values = values.reshape(len(taps) ** 2, in_channels, parts, width)
    return np.ascontiguousarray(values.transpose(2, 0, 1, 3), np.float32)
