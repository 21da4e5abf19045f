"""Quantized 3x3 convolution with stride 1 by Winograd's F(4, 3) in whole numbers, which gives the
sums of the definition (kernels/c/u8s8-conv-winograd.c.in)."""

from __future__ import annotations

import math

import numpy as np

from run_model_tools.kernels.convolutions import winograd
from run_model_tools.kernels.convolutions.convolution import blocks_of, places_of
from run_model_tools.kernels.convolutions.winograd_cost import candidates
from run_model_tools.kernels.int8.convolution import in_words, of_words, per_channel
from run_model_tools.kernels.int8.quantized import QuantizedConvolution
from run_model_tools.kernels.isa import Isa
from run_model_tools.kernels.layer import Layer, Phase

_TILE = 4
_POSITIONS = (_TILE + 2) ** 2
# What is left of 32 bits once 2^6 has been divided out, half of it on either side of 0.
_MOST_SUM = 2**25


def options(quantized: QuantizedConvolution, isa: Isa) -> list[dict[str, int]]:
    """Parameter sets worth trying, best guess first, as winograd.options() has them for float32;
    none where instructions multiply four bytes at a time, which the definition takes less time
    with."""
    conv = quantized.convolution
    if not isa.widens_bytes or not winograd.can_do(conv):
        return []
    places = places_of(conv)
    if len(set(places)) != len(places) or _largest_sum(quantized) >= _MOST_SUM:
        return []
    return [{name: value for name, value in parameters.items() if name != "tile"}
            for parameters in candidates(conv, of_words(isa), math.inf)
            if parameters["tile"] == _TILE]


def _largest_sum(quantized: QuantizedConvolution) -> int:
    """Of bytes times weights."""
    weight = quantized.weight.astype(np.int64)
    return 255 * max(np.maximum(sign * weight, 0).sum(axis=(1, 2, 3)).max(initial=0)
                     for sign in (1, -1))


def make(quantized: QuantizedConvolution, isa: Isa, group: int, splits: int, pixels: int,
         vectors: int, taps: int) -> Layer:
    """The layer; parameters as in options(), `taps` counts input blocks."""
    quantized.check()
    conv, lanes = quantized.convolution, isa.lanes
    blocks = blocks_of(conv)
    taps = min(taps, len(blocks))
    tiles = math.prod(-(-size // _TILE) for size in conv.output_size)
    out_blocks = -(-conv.output_channels // lanes)
    parts = -(-out_blocks // vectors)
    defines = isa.defines() | quantized.output_defines() | {
        "IN_HEIGHT": conv.input_size[0], "IN_WIDTH": conv.input_size[1],
        "OUT_HEIGHT": conv.output_size[0], "OUT_WIDTH": conv.output_size[1],
        "PAD_TOP": conv.padding[0], "PAD_LEFT": conv.padding[1],
        "BLOCKS": len(blocks), "BLOCK_TENSOR": [t for t, _ in blocks],
        "BLOCK_INDEX": [b for _, b in blocks],
        "BLOCK_FILL": [quantized.inputs[tensor].zero_point for tensor, _ in blocks],
        "OUT_BLOCKS": out_blocks, "PARTS": parts, "VECTORS": vectors, "SPLITS": splits,
        "GROUP": group, "PIXELS": pixels, "TAP_BLOCKS": taps}
    numbers = (len(blocks) * group | 1) + 2 * (taps * lanes // 2 * vectors | 1)
    return Layer(
        kind="conv2d_int8_winograd4", template="u8s8-conv-winograd.c.in", defines=defines,
        phases=(Phase("int8_winograd", -(-tiles // group) * splits),),
        inputs=quantized.layer_inputs(lanes),
        constants=(_packed(quantized, lanes, vectors),
                   *per_channel(quantized, isa, parts * vectors)),
        output_shape=conv.output_shape(lanes), output_dtype=quantized.output_dtype,
        scratch_bytes=_POSITIONS * lanes * (2 * numbers + 4 * (group * vectors | 1)),
        variant=f"f{_TILE}x3_{isa.variant_of_bytes(pixels, vectors)}",
        note={"kernel": "int8_winograd", "group": group, "splits": splits, "pixels": pixels,
              "vectors": vectors, "taps": taps, "multiply_adds": conv.multiply_adds})


def _packed(quantized: QuantizedConvolution, lanes: int, vectors: int) -> np.ndarray:
    """int8 [part][input block][pair of channels][vector of the part][tap][lane][2]."""
    conv = quantized.convolution
    order = {key: i * lanes for i, key in enumerate(blocks_of(conv))}
    width = vectors * lanes
    parts = -(-conv.output_channels // width)
    full = np.zeros((parts * width, len(order) * lanes, 9), np.int8)
    full[:conv.output_channels, [order[tensor, block] + lane for tensor, block, lane
                                 in places_of(conv)]] = quantized.weight.reshape(
                                     conv.output_channels, -1, 9)
    full = full.reshape(parts, vectors, lanes, len(order) * lanes // 2, 2, 9)
    return in_words(full.transpose(0, 3, 1, 5, 2, 4), lanes)
