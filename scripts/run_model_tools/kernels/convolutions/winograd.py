"""3x3 convolution with stride 1 by Winograd's F(2, 3), F(4, 3), F(6, 3)
(kernels/c/f32-conv-winograd.c.in)."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from run_model_tools.kernels.convolutions import winograd_points
from run_model_tools.kernels.convolutions.convolution import Convolution
from run_model_tools.kernels.convolutions.winograd_bytes import price
from run_model_tools.kernels.convolutions.winograd_cost import candidates
from run_model_tools.kernels.half import weights as half_weights
from run_model_tools.kernels.isa import Isa
from run_model_tools.kernels.layer import Layer, Phase
from run_model_tools.kernels.tiles import bias_and_constants, common_defines

WINOGRAD_RUN = 32
"""The most products that are summed up in float16, half of what other kernels take: transforms make
more of their error (kernels/half_error.md)."""


def options(conv: Convolution, isa: Isa) -> list[dict]:
    """Parameter sets worth trying, the best guess first.

    `tile`: outputs of a tile along an axis; `group`: tiles of a task; `splits`: shares that the
    output channels are cut into; `pixels` and `vectors`: the register tile; `taps`, if it is there:
    that the weights are stored as they are, and of how many pieces of the input channels each task
    transforms them at a time.
    """
    return candidates(conv, isa, price()) if can_do(conv) else []


def can_do(conv: Convolution) -> bool:
    """Whether a convolution is one for Winograd."""
    return (conv.kernel == (3, 3) and conv.strides == (1, 1) and conv.dilation == (1, 1)
            and conv.groups == 1 and not conv.planar)


def make(conv: Convolution, isa: Isa, tile: int, group: int, splits: int, pixels: int,
         vectors: int, taps: int = 0) -> Layer:
    """The layer; parameters as in options()."""
    points = winograd_points.POINTS[tile]
    height, width = conv.output_size
    tiles = math.prod(-(-size // tile) for size in (height, width))
    out_blocks = -(-conv.output_channels // isa.lanes)
    parts = -(-out_blocks // vectors)
    blocks = list(dict.fromkeys((piece.tensor, piece.block) for piece in conv.input_lanes))
    weights, scales = _in_parts(conv, isa, vectors), None
    if isa.half:
        scales = _scales(weights, points)
        weights = weights / scales.reshape(*weights.shape[:2], 1, 1, 1)
        scales = scales.reshape(-1)[:conv.output_channels]
        conv = replace(conv, bias=conv.bias / scales)
    defines = {
        **common_defines(conv, isa, parts * vectors * isa.lanes),
        **({"RUN_PRODUCTS": WINOGRAD_RUN} if isa.half else {}),
        **winograd_points.defines(points),
        "IN_HEIGHT": conv.input_size[0], "IN_WIDTH": conv.input_size[1],
        "OUT_HEIGHT": height, "OUT_WIDTH": width,
        "PAD_TOP": conv.padding[0], "PAD_LEFT": conv.padding[1],
        "BLOCKS": len(blocks), "BLOCK_TENSOR": [t for t, _ in blocks],
        "BLOCK_INDEX": [b for _, b in blocks],
        "CHANNELS": conv.input_channels, "OUT_BLOCKS": out_blocks, "PARTS": parts,
        "VECTORS": vectors, "SPLITS": splits, "GROUP": group, "PIXELS": pixels,
    }
    in_pieces = (any(piece.count != isa.lanes for piece in conv.input_lanes)
                 or len(blocks) < len(conv.input_lanes))
    if in_pieces:
        defines.update({
            "PIECES": len(conv.input_lanes),
            "PIECE_BLOCK": [blocks.index((p.tensor, p.block)) for p in conv.input_lanes],
            "PIECE_FIRST": [p.first for p in conv.input_lanes],
            "PIECE_COUNT": [p.count for p in conv.input_lanes]})
    parameters = {"tile": tile, "group": group, "splits": splits, "pixels": pixels,
                  "vectors": vectors}
    scratch = scratch_bytes(isa, tile, group, len(blocks), vectors)
    if taps:
        parameters["taps"] = taps
        defines["TAP_PIECES"] = taps
        if in_pieces:
            counts = [piece.count for piece in conv.input_lanes]
            defines["PIECE_CHANNEL"] = [sum(counts[:i]) for i in range(len(counts) + 1)]
        scratch += (tile + 2) ** 2 * (taps * vectors * isa.lanes | 1) * isa.lanes * isa.number_bytes
    return Layer(
        kind=f"conv2d_winograd{tile}", template="f32-conv-winograd.c.in", defines=defines,
        phases=(Phase("winograd", -(-tiles // group) * splits),),
        inputs=conv.layer_inputs(isa.lanes, isa.number),
        constants=((plain_weights(weights, isa) if taps
                    else transformed_weights(weights, points)).astype(isa.number),
                   bias_and_constants(conv, isa, scales, parts * vectors * isa.lanes)),
        output_shape=conv.output_shape(isa.lanes), output_dtype=isa.number,
        scratch_bytes=scratch,
        variant=f"f{tile}x3_{isa.variant(pixels, vectors)}",
        note={"kernel": "winograd", **parameters, "multiply_adds": conv.multiply_adds})


def scratch_bytes(isa: Isa, tile: int, group: int, blocks: int, vectors: int) -> int:
    """A task's transformed input and products: f32-conv-winograd.c.in's VALUE_STRIDE and
    PRODUCT_STRIDE."""
    return (tile + 2) ** 2 * isa.lanes * ((blocks * group | 1) * isa.number_bytes
                                          + (group * vectors | 1) * 4)


def _scales(weights: np.ndarray, points: tuple[float, ...]) -> np.ndarray:
    """What the weights of each output channel are divided by in half precision, [part][channel]."""
    transformed = transformed_weights(weights, points)
    parts, positions, _, width = transformed.shape
    rows = transformed.transpose(0, 3, 1, 2).reshape(parts * width * positions, -1)
    return half_weights.powers(rows, WINOGRAD_RUN).reshape(parts, width, positions).max(axis=2)


def _in_parts(conv: Convolution, isa: Isa, vectors: int) -> np.ndarray:
    """[part][output channel of the part][input channel][3][3], zeros past the last channel."""
    out_channels, in_channels = conv.weight.shape[:2]
    width = vectors * isa.lanes
    parts = -(-out_channels // width)
    padded = np.zeros((parts * width, in_channels, 3, 3), np.float32)
    padded[:out_channels] = conv.weight
    return padded.reshape(parts, width, in_channels, 3, 3)


def transformed_weights(weights: np.ndarray, points: tuple[float, ...]) -> np.ndarray:
    """float32 [part][position][input channel][output channel of the part], computed in float64."""
    _, taps, _ = winograd_points.matrices(points)
    values = np.einsum("ai,pocij,bj->pabco", taps, weights.astype(np.float64), taps, optimize=True)
    return np.ascontiguousarray(
        values.reshape(len(values), len(taps) ** 2, *values.shape[3:]), np.float32)


def plain_weights(weights: np.ndarray, isa: Isa) -> np.ndarray:
    """[part][input channel][vector of the part][tap][lane]."""
    parts, width, in_channels = weights.shape[:3]
    by_vector = weights.reshape(parts, width // isa.lanes, isa.lanes, in_channels, 9)
    return np.ascontiguousarray(by_vector.transpose(0, 3, 1, 4, 2))
