"""How the kernels cut pixels and output channels into register tiles, and weights to fit them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from run_model_tools.kernels.convolutions.convolution import Convolution, Lanes
from run_model_tools.kernels.half import weights as half_weights
from run_model_tools.kernels.isa import Isa
from run_model_tools.kernels.programs.expressions import of_channel


@dataclass(frozen=True)
class Even:
    """`total` things in `tiles` tiles, of which the first `larger` have one more than `size`."""

    total: int
    tiles: int

    @property
    def size(self) -> int:
        return self.total // self.tiles

    @property
    def larger(self) -> int:
        return self.total % self.tiles

    @property
    def largest(self) -> int:
        """How many things the largest tile has."""
        return self.size + bool(self.larger)

    def ranges(self) -> list[range]:
        """What each tile has of 0 ... total."""
        starts = [t * self.size + min(t, self.larger) for t in range(self.tiles + 1)]
        return [range(a, b) for a, b in zip(starts, starts[1:])]

    def spread(self) -> list[range]:
        """Ranges of the same sizes, with the larger ones spread among the others: part_start()."""
        starts = [t * self.total // self.tiles for t in range(self.tiles + 1)]
        return [range(a, b) for a, b in zip(starts, starts[1:])]

    def defines(self, tiles: str, of: str) -> dict[str, object]:
        """`tiles`_TILES, LARGER_`tiles`_TILES and TILE_`of`, which tile.h's tile_start() wants."""
        return {f"{tiles}_TILES": self.tiles, f"LARGER_{tiles}_TILES": self.larger,
                f"TILE_{of}": self.size}


def even(total: int, most: int) -> Even:
    """As few tiles as there can be, none with more than `most`."""
    return Even(total, -(-total // min(most, total)))


def register_tiles(isa: Isa) -> list[tuple[int, int]]:
    """(pixels, vectors) of the largest register tile of each width."""
    if isa.tiles:
        return list(isa.tiles)
    found = []
    for count in (1, 2, 3, 4):
        if count == isa.tile[1]:
            found.append(isa.tile)
            continue
        # Beside the sums, registers hold the weights and an input; one vector needs neither.
        pixels = (isa.registers - (1 if count == 1 else count + 1)) // count
        if isa.by_lane:  # See tile.h: an input register a pixel.
            pixels = (isa.registers - count) // (count + 1)
        found.append((min(28, pixels), count))
    return found


def tile_cost(isa: Isa, pixels: int, count: int) -> float:
    """Of one channel of a register tile, in the time of one multiplication.

    As many loads can be done as multiplications, and eight sums are needed to hide the latency of
    adding to one.  Inputs are near after the first tile of output channels; weights are not.  Of
    processors that multiply by lanes some do one thing at a time: there the number of instructions
    counts, of which one loads two vectors of weights.
    """
    if isa.by_lane:
        inputs = pixels / isa.lanes if isa.registers < 32 or isa.tile[1] > 1 else pixels
        return max(pixels * count, 8) + inputs + 0.5 * count + 1
    inputs = pixels
    return max(pixels * count, inputs + count, 8) + 0.05 * inputs + 0.25 * count


@cache
def best_tiles(isa: Isa, pixels: int, count: int) -> tuple[tuple[int, int], ...]:
    """Register tiles for `pixels` pixels x `count` vectors, the best first; no hopeless ones."""
    def cost(tile: tuple[int, int]) -> float:
        return sum(tile_cost(isa, len(p), len(v)) for p in even(pixels, tile[0]).ranges()
                   for v in even(count, tile[1]).ranges())
    costs = {tile: cost(tile) for tile in register_tiles(isa) if tile[1] <= count}
    if not costs:
        return (isa.tile,)
    least = min(costs.values())
    return tuple(sorted((t for t in costs if costs[t] <= 1.25 * least), key=lambda t: costs[t]))


_OF_LANES = {16: (8, 3), 8: (4, 3)}
_OF_REGISTERS_OF_FOUR = {32: (8, 3), 16: (4, 2), 8: (6, 1)}


def _open_tile(isa: Isa) -> tuple[int, int]:
    return _OF_REGISTERS_OF_FOUR[isa.registers] if isa.lanes == 4 else _OF_LANES[isa.lanes]


def open_products_tile(isa: Isa) -> tuple[int, int]:
    """Of products of open extents: rows of the left matrix and vectors of columns; with four lanes,
    each row has a register (c/tile.h)."""
    return (8, 2) if isa.lanes == 4 and isa.registers == 32 else _open_tile(isa)


def open_convolution_tile(isa: Isa, channels: int) -> tuple[int, int]:
    """Of convolutions of open extents: rows of a group's output channels and vectors of pixels."""
    rows, count = _open_tile(isa)
    return (rows, count) if channels >= rows else (channels, min(8, rows * count // channels))


def vectors(channels: int, isa: Isa) -> int:
    """Vectors that hold so many channels."""
    return -(-channels // isa.lanes)


@dataclass(frozen=True)
class Run:
    """`count` lanes from `first` on of each of `blocks` successive blocks of an input tensor."""

    tensor: int
    block: int
    first: int
    count: int
    blocks: int


def channel_runs(pieces: tuple[Lanes, ...],
                 only: set[int] | None = None) -> tuple[list[Run], list[int]]:
    """The runs that hold all channels, and the channels' numbers (axis 1 of the weight) in order.

    A sum may be done in any order, so channels that a network shuffled are read as they lie.
    `only`: leave out all other channels.
    """
    channels = [(p.tensor, p.block, p.first + i) for p in pieces for i in range(p.count)]
    order = sorted((c for c in range(len(channels)) if only is None or c in only),
                   key=lambda c: (channels[c], c))
    pieces_: list[Lanes] = []
    for tensor, block, lane in (channels[c] for c in order):
        last = pieces_[-1] if pieces_ else None
        if last and (last.tensor, last.block, last.first + last.count) == (tensor, block, lane):
            pieces_[-1] = Lanes(tensor, block, last.first, last.count + 1)
        else:
            pieces_.append(Lanes(tensor, block, lane, 1))
    runs: list[Run] = []
    for p in pieces_:
        before = runs[-1] if runs else None
        if before and (before.tensor, before.block + before.blocks, before.first,
                       before.count) == (p.tensor, p.block, p.first, p.count):
            runs[-1] = Run(p.tensor, before.block, p.first, p.count, before.blocks + 1)
        else:
            runs.append(Run(p.tensor, p.block, p.first, p.count, 1))
    return runs, order


def run_defines(runs: list[Run], block_floats: int, lanes: int,
                first_blocks: list[int] | None = None) -> dict[str, object]:
    """channels.h's tables.  `first_blocks`: of each tensor, if all lie one after another in one."""
    starts = first_blocks or [0] * (1 + max(run.tensor for run in runs))
    found: dict[str, object] = {
        "RUN_TENSOR": [0 if first_blocks else run.tensor for run in runs],
        "RUN_OFFSET": [(starts[run.tensor] + run.block) * block_floats + run.first for run in runs],
        "RUN_BLOCKS": [run.blocks for run in runs],
        "INPUT_BLOCK": block_floats}
    if any(run.count != lanes for run in runs):
        found["RUN_COUNT"] = [run.count for run in runs]
    return found


def packed_weights(weight: np.ndarray, order: list[int], channels: range, lanes: int) -> np.ndarray:
    """[tap][input channel][output channel] of the vectors `channels`, zeros past the last channel.

    `weight`: (outputs, inputs, height, width); `order`: the inputs wanted.
    """
    part = weight[channels.start * lanes:channels.stop * lanes, order]
    part = np.pad(part, [(0, len(channels) * lanes - part.shape[0]), (0, 0), (0, 0), (0, 0)])
    return part.transpose(2, 3, 1, 0).ravel()


def bfloat16_bits(values: np.ndarray) -> np.ndarray:
    """uint16: the float32 numbers rounded to bfloat16, ties to even (c/bfloat16.h)."""
    bits = values.astype(np.float32).view(np.uint32)
    rounded = bits + np.uint32(0x7fff) + (bits >> np.uint32(16) & np.uint32(1))
    return (np.where(np.isnan(values), bits | np.uint32(0x400000), rounded) >> 16).astype(np.uint16)


def bias_and_constants(conv: Convolution, isa: Isa, scales: np.ndarray | None = None,
                       places: int | None = None) -> np.ndarray:
    """What common_defines() promises epilogue.h and, of numbers in half precision, half_tile.h."""
    places = places or vectors(conv.output_channels, isa) * isa.lanes
    constants = conv.channel_constants(places)
    return constants if scales is None else np.concatenate([constants, of_channel(scales, places)])


def common_defines(conv: Convolution, isa: Isa, places: int | None = None) -> dict[str, object]:
    """LANES, epilogue.h's macros, RESIDUAL and half_tile.h's macros; `places`: of the constants by
    channel, if they are not as many as the output has lanes."""
    places = places or vectors(conv.output_channels, isa) * isa.lanes
    found = {**isa.defines(), **conv.epilogue_defines(places)}
    if isa.half:
        by_channel = len(conv.expression.channels) if conv.expression else 0
        found |= {"RUN_PRODUCTS": half_weights.RUN_PRODUCTS,
                  "SCALE_STEP": places * (1 + by_channel)}
    if conv.residual:
        found["RESIDUAL"] = len(conv.input_shapes)
    return found
