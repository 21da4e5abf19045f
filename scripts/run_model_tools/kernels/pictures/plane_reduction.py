"""One number of each channel's whole plane: sums, means, largest and smallest numbers
(kernels/c/f32-plane-reduction.c.in)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from run_model_tools.kernels.convolutions.convolution import Lanes
from run_model_tools.kernels.isa import Isa
from run_model_tools.kernels.layer import Layer, Phase
from run_model_tools.kernels.pictures.window import cuts
from run_model_tools.kernels.programs.expressions import Expression, c_number

_JOINED = {"sum": ("((a) + (b))", "0.0f"),
           "max": ("maximum(a, b)", "-__builtin_inff()"),
           "min": ("minimum(a, b)", "__builtin_inff()")}


@dataclass(frozen=True)
class PlaneReduction:
    """Of one picture's blocked activations; the output is (1, channels, 1, 1)."""

    kind: str
    """"sum", "max" or "min"."""
    input_shapes: tuple[tuple[int, ...], ...]
    """Of each input tensor: (1, blocks, height, width, lanes)."""
    input_lanes: tuple[Lanes, ...]
    """The channels in their order, as Blocked.pieces() gives them."""
    factor: float = 1.0
    """The result is multiplied by it."""
    expression: Expression | None = None
    """What is reduced, of each number (input 0) and, if it has a second input, of a number that the
    channel has in the layer's last input, (1, channels, 1, 1)."""

    @property
    def channels(self) -> int:
        return sum(piece.count for piece in self.input_lanes)

    @property
    def pixels(self) -> int:
        """Of a plane."""
        return math.prod(self.input_shapes[0][2:4])

    @property
    def by_channel(self) -> bool:
        """Whether there is an input of a number for each channel."""
        return self.expression is not None and self.expression.inputs == 2


def best_tasks(pieces: int, pixels: int, isa: Isa) -> int:
    """How many tasks so many pieces are shared out in: four at least each, for there may be very
    few."""
    return min(cuts(pieces, 1, pieces * isa.lanes * pixels)[0][1], -(-pieces // 4))


def make(work: PlaneReduction, isa: Isa) -> Layer:
    """The layer that reduces each plane to a number."""
    tasks = best_tasks(len(work.input_lanes), work.pixels, isa)
    return layer_of(work, isa, tasks, "plane_reduction", f"{work.kind}_of_planes")


def layer_of(work: PlaneReduction, isa: Isa, tasks: int, kernel: str, kind: str) -> Layer:
    """Such a layer under the name of a kernel and a kind of layer, cut into so many tasks."""
    pieces = work.input_lanes
    joined, neutral = _JOINED[work.kind]
    defines = {
        **isa.defines(), "PIECES": len(pieces),
        "PIECE_TENSOR": [piece.tensor for piece in pieces],
        "PIECE_BLOCK": [piece.block for piece in pieces],
        "PIECE_FIRST": [piece.first for piece in pieces],
        "PIECE_COUNT": [piece.count for piece in pieces],
        "PIECE_CHANNEL": [sum(p.count for p in pieces[:i]) for i in range(len(pieces))],
        "PIXELS": work.pixels, "TASKS": tasks, "JOINED(a, b)": joined, "NEUTRAL": neutral,
        "FACTOR": c_number(work.factor)}
    inputs: tuple[tuple[tuple[int, ...], str], ...] = tuple(
        (tuple(shape), isa.number) for shape in work.input_shapes)
    if work.expression is not None:
        defines |= work.expression.macro("EXPRESSION", as_array=True)
    if work.by_channel:
        defines["CHANNEL_INPUT"] = len(inputs)
        inputs += (((1, work.channels, 1, 1), "float32"),)
    return Layer(
        kind=kind, template="f32-plane-reduction.c.in", defines=defines,
        phases=(Phase("plane_reduction", tasks),), inputs=inputs, constants=(),
        output_shape=(1, work.channels, 1, 1), variant=isa.variant(),
        note={"kernel": kernel, "tasks": tasks})
