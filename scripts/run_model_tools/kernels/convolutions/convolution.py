"""A convolution as kernels get it: blocked activations, folded bias, what happens to the sum."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from run_model_tools.kernels.programs.expressions import Expression, of_channel


@dataclass(frozen=True)
class Lanes:
    """Lanes `first` to `first + count` of block `block` of input tensor `tensor`."""

    tensor: int
    block: int
    first: int
    count: int


@dataclass(frozen=True)
class Convolution:
    """A 2-D convolution of one picture, with all that is done to its result.

    Activations are float32 tensors [1][blocks][height][width][lanes]: channel c of a tensor is lane
    c % lanes of block c // lanes.  The input channels may lie in several tensors (what the network
    concatenates) and in any part of their blocks (what it splits or shuffles); `input_lanes` lists
    them in the order of the weight's second axis, so no layer is spent on such operators.  For a
    depthwise convolution every piece is a whole block or the last of a tensor, and the output has
    the same lanes in the same order of blocks.

    The output has ceil(output channels / lanes) blocks; lanes past the last channel are written
    with any finite number.
    """

    weight: np.ndarray
    """float32 (output channels, input channels / groups, kernel height, kernel width)."""
    bias: np.ndarray
    """float32 (output channels,)."""
    input_shapes: tuple[tuple[int, ...], ...]
    """Of each input tensor: (1, blocks, height, width, lanes), or (1, channels, height, width) for
    a planar picture (then `input_lanes` is empty and all channels are read)."""
    input_lanes: tuple[Lanes, ...]
    strides: tuple[int, int] = (1, 1)
    padding: tuple[int, int, int, int] = (0, 0, 0, 0)
    """top, left, bottom, right; zeros."""
    dilation: tuple[int, int] = (1, 1)
    groups: int = 1
    low: float = -math.inf
    high: float = math.inf
    """The result is clamped between them: ReLU is (0, inf), ReLU6 (0, 6)."""
    residual: bool = False
    """Whether the last input is a tensor of the output's shape that is added before clamping."""
    expression: Expression | None = None
    """What becomes of the sum with its bias (input 0) and of the residual (input 1) instead of
    adding and clamping."""
    unused: int = 0
    """Output channels that the network does not have: lanes of a depthwise convolution's blocks."""

    @property
    def planar(self) -> bool:
        return not self.input_lanes

    @property
    def depthwise(self) -> bool:
        return self.groups > 1 and self.groups == self.output_channels == self.input_channels

    @property
    def output_channels(self) -> int:
        return self.weight.shape[0]

    @property
    def input_channels(self) -> int:
        return self.weight.shape[1] * self.groups

    @property
    def kernel(self) -> tuple[int, int]:
        return self.weight.shape[2], self.weight.shape[3]

    @property
    def input_size(self) -> tuple[int, int]:
        """Height and width of the input."""
        return self.input_shapes[0][2], self.input_shapes[0][3]

    @property
    def output_size(self) -> tuple[int, int]:
        """Height and width of the output."""
        height, width = map(positions, self.input_size, self.kernel, self.strides, self.dilation,
                            self.padding[:2], self.padding[2:])
        return height, width

    @property
    def multiply_adds(self) -> int:
        """Of the definition, whatever a kernel makes of it."""
        real = self.output_channels - self.unused
        return math.prod(self.output_size) * real * math.prod(self.weight.shape[1:])

    def output_shape(self, lanes: int) -> tuple[int, ...]:
        """(1, blocks, height, width, lanes) of the output."""
        return (1, -(-self.output_channels // lanes), *self.output_size, lanes)

    def layer_inputs(self, lanes: int, number: str = "float32",
                     ) -> tuple[tuple[tuple[int, ...], str], ...]:
        """Layer.inputs: the input tensors and, last, the residual.  `number`: the type of what is
        in blocks; a picture is float32 always."""
        inputs = [(shape, "float32" if self.planar else number) for shape in self.input_shapes]
        if self.residual:
            inputs.append((self.output_shape(lanes), number))
        return tuple(inputs)

    def clamp_defines(self) -> dict[str, object]:
        """vector.h's CLAMP_LOW and CLAMP_HIGH."""
        bounds = {"CLAMP_LOW": self.low, "CLAMP_HIGH": self.high}
        return {name: float(value) for name, value in bounds.items() if math.isfinite(value)}

    def epilogue_defines(self, places: int) -> dict[str, object]:
        """epilogue.h's macros; `places`: from one constant by channel to the next."""
        return self.expression.defines(places) if self.expression else self.clamp_defines()

    def channel_constants(self, places: int) -> np.ndarray:
        """The bias, then the expression's constants by channel, of `places` numbers each."""
        constants = [self.bias, *(self.expression.channels if self.expression else ())]
        return np.concatenate([of_channel(values, places) for values in constants])

    def without_data(self) -> Convolution:
        """This convolution with weights of zeros that take no memory, for messages of tests."""
        return replace(self, weight=np.broadcast_to(np.float32(0), self.weight.shape),
                       bias=np.broadcast_to(np.float32(0), self.bias.shape))


def places_of(conv: Convolution) -> list[tuple[int, int, int]]:
    """(tensor, block, lane) of each input channel."""
    return [(p.tensor, p.block, lane) for p in conv.input_lanes
            for lane in range(p.first, p.first + p.count)]


def blocks_of(conv: Convolution) -> list[tuple[int, int]]:
    """(tensor, block) of what is read, in order."""
    return sorted({(piece.tensor, piece.block) for piece in conv.input_lanes})


def padded_size(conv: Convolution) -> tuple[int, int]:
    """Height and width of the input with its border."""
    top, left, bottom, right = conv.padding
    return conv.input_size[0] + top + bottom, conv.input_size[1] + left + right


def border_defines(conv: Convolution) -> dict[str, object]:
    """Macros of a phase that copies the input with its border: how large the input is, and what
    lies before it."""
    return {"PADDING_TOP": conv.padding[0], "PADDING_LEFT": conv.padding[1],
            "INPUT_HEIGHT": conv.input_size[0], "INPUT_WIDTH": conv.input_size[1]}


def copied_blocks(conv: Convolution) -> dict[str, object]:
    """Macros of such a phase: the blocks that are copied, in order."""
    used = blocks_of(conv)
    return {"COPY_SOURCE": [tensor for tensor, _ in used],
            "COPY_BLOCK": [block for _, block in used]}


def without_idle_taps(conv: Convolution, size: tuple[int, ...]) -> Convolution:
    """A convolution that gives the same on a picture of `size`, without rows and columns of taps
    that only ever fall into the padding: with a dilation as wide as the picture, all but the middle
    ones."""
    weight, padding = conv.weight, list(conv.padding)
    for axis in (0, 1):
        extent, stride, dilation = size[axis], conv.strides[axis], conv.dilation[axis]
        begin, end, (before, after) = 0, weight.shape[2 + axis], padding[axis::2]
        last = positions(extent, end, stride, dilation, before, after) - 1
        # Padding stays what it is, so what is before the picture can only be left out as a whole.
        while end - begin > 1 and before >= dilation and last * stride < before:
            begin, before = begin + 1, before - dilation
        while end - begin > 1 and after >= dilation and (
                (end - 1 - begin) * dilation - before >= extent):
            end, after = end - 1, after - dilation
        weight = weight.take(range(begin, end), 2 + axis)
        padding[axis::2] = before, after
    return replace(conv, weight=weight, padding=(padding[0], padding[1], padding[2], padding[3]))


def plain_lanes(channels: int, lanes: int, tensor: int = 0) -> tuple[Lanes, ...]:
    """All channels of one tensor in their order."""
    return tuple(Lanes(tensor, block, 0, min(lanes, channels - block * lanes))
                 for block in range(-(-channels // lanes)))


def all_in_order(pieces: tuple[Lanes, ...], blocks: int) -> bool:
    """Whether they are all blocks of one tensor in their order."""
    return [(p.tensor, p.block, p.first) for p in pieces] == [
        (0, block, 0) for block in range(blocks)]


def positions(size: int, window: int, stride: int, dilation: int, before: int, after: int,
              round_up: bool = False) -> int:
    """How often a window fits into `size` numbers with padding before and after them.

    round_up: whether a last one counts that lies only partly in the padded numbers ("ceil mode").
    """
    free = size + before + after - ((window - 1) * dilation + 1)
    return (free + (stride - 1) * round_up) // stride + 1
