"""Convolutions of open extents, as functions that Relax calls (c/f32-open-convolution.c.in;
c/f32-open-pointwise.c.in for windows of 1x1, c/f32-open-winograd.c.in for such of 3x3, and
c/f32-open-depthwise.c.in)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from run_model_tools.kernels.convolutions import winograd_points
from run_model_tools.kernels.isa import Isa
from run_model_tools.kernels.layer import c_defines
from run_model_tools.kernels.programs.code import expression
from run_model_tools.kernels.programs.program import Program
from run_model_tools.kernels.tiles import open_convolution_tile

_WINOGRAD_TILE = 4
_FEWEST_FOR_WINOGRAD = 16
"""Channels of a group, given and made, from which on transforming tiles takes less time than it
saves."""
_MOST_PLACES_OF_DEPTHWISE = 64
"""Its code names each place in the window."""
_TEMPLATES = {"convolution": "f32-open-convolution.c.in", "pointwise": "f32-open-pointwise.c.in",
              "winograd": "f32-open-winograd.c.in", "depthwise": "f32-open-depthwise.c.in"}


@dataclass
class OpenConvolution:
    """What is known of one while compiling; pictures are NC[H]W."""

    weights: np.ndarray
    """(output channels, input channels of a group, height, width)"""
    strides: tuple[int, int]
    padding: tuple[int, int]
    """Before the first row and column."""
    dilation: tuple[int, int]
    groups: int
    epilogue: Program = field(default_factory=lambda: just_the_product())
    """Of its node "product"; operands are its inputs by number."""
    is_full: tuple[bool, ...] = ()
    """Of each operand: whether it is as large as the result, or has a number a channel at most."""

    def numbers(self) -> np.ndarray:
        """What the function is told of it."""
        return np.array([*self.weights.shape[2:], *self.strides, *self.padding, *self.dilation,
                         self.groups], np.int64)


def just_the_product() -> Program:
    """What is done to a result that is stored as it is."""
    program = Program((), [])
    program.add("product")
    return program


def kernel(conv: OpenConvolution) -> str:
    """"winograd" (minimal filtering), "depthwise", "pointwise", or "convolution" for all others."""
    count, channels, height, width = conv.weights.shape
    if channels == 1 and conv.groups > 1 and height * width <= _MOST_PLACES_OF_DEPTHWISE:
        return "depthwise"
    if ((height, width) == (3, 3) and conv.strides == conv.dilation == (1, 1)
            and min(count // conv.groups, channels) >= _FEWEST_FOR_WINOGRAD):
        return "winograd"
    if (height, width) == conv.strides == (1, 1) and not any(conv.padding):
        return "pointwise"
    return "convolution"


def tile(conv: OpenConvolution, isa: Isa) -> tuple[int, int]:
    """Rows of channels (of the picture for "depthwise") and vectors of pixels in registers."""
    if kernel(conv) == "depthwise":
        return (4, 1) if conv.weights.shape[2] > 1 else (1, 4)
    return open_convolution_tile(isa, len(conv.weights) // conv.groups)


def packed_weights(conv: OpenConvolution, isa: Isa) -> np.ndarray:
    """[group][block of a tile's rows][input channel][place in the window][row]; for Winograd's
    [group][block][vector of (input channel, row)][place][lane]."""
    rows = 1 if kernel(conv) == "depthwise" else tile(conv, isa)[0]
    count, channels, height, width = conv.weights.shape
    of_group = conv.weights.reshape(conv.groups, count // conv.groups, channels, height * width)
    more = -of_group.shape[1] % rows
    padded = np.pad(of_group, [(0, 0), (0, more), (0, 0), (0, 0)])
    blocks = padded.reshape(conv.groups, -1, rows, channels, height * width)
    if kernel(conv) == "winograd":
        flat = blocks.transpose(0, 1, 3, 2, 4).reshape(*blocks.shape[:2], -1, height * width)
        flat = np.pad(flat, [(0, 0), (0, 0), (0, -flat.shape[2] % isa.lanes), (0, 0)])
        packed = flat.reshape(*flat.shape[:2], -1, isa.lanes, height * width).swapaxes(-1, -2)
    else:
        packed = blocks.transpose(0, 1, 3, 4, 2)
    return np.ascontiguousarray(packed, np.float32).reshape(-1)


def source(name: str, conv: OpenConvolution, isa: Isa) -> str:
    """C code, to follow ffi_c's, of the function `name` (picture, packed weights, numbers(),
    operands ..., [result])."""
    rows, vectors = tile(conv, isa)
    height, width = conv.weights.shape[2:]
    which = kernel(conv)
    defines: dict[str, object] = {"TILE_ROWS": rows, "TILE_VECTORS": vectors}
    if which == "convolution":
        defines["HAS_GAPS"] = int(height * width > 1 and max(conv.dilation) > 1)
    if which == "winograd":
        defines |= winograd_points.defines(winograd_points.POINTS[_WINOGRAD_TILE])
    if which == "depthwise":
        defines = {"TILE_ROWS": 1, "TILE_VECTORS": 1, "ROWS": rows, "VECTORS": vectors,
                   "TAPS_Y": height, "TAPS_X": width}
        for what, numbers in (("STRIDE", conv.strides), ("DILATION", conv.dilation)):
            defines |= {f"{what}_Y": numbers[0], f"{what}_X": numbers[1]}
    return c_defines({
        **isa.defines(), **defines, "FUNCTION": f"__tvm_ffi_{name}", "TAPS": height * width,
        "OPERANDS": len(conv.is_full), "OPERAND_FULL": [*map(int, conv.is_full), 0],
        "PROGRAM": _program(conv)}) + f'#include "{_TEMPLATES[which]}"\n'


def _program(conv: OpenConvolution) -> str:
    steps = []
    for index, node in enumerate(conv.epilogue.nodes):
        which = int(node.value) if node.op == "input" else 0
        if node.op == "product":
            value = "product"
        elif node.op == "input":
            value = f"fulls[{which}]" if conv.is_full[which] else f"splat(*operands[{which}])"
        else:
            value = expression(node, "n{}".format)
        steps.append(f"const vec n{index} = {value};")
    return " ".join([*steps, f"const vec value = n{len(conv.epilogue.nodes) - 1};"])
