"""The input channels and weights of each tile of output vectors (c/channels.h)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from run_model_tools.kernels.convolutions.convolution import Convolution
from run_model_tools.kernels.isa import Isa
from run_model_tools.kernels.parts import rounded
from run_model_tools.kernels.tiles import (
    Even,
    Run,
    channel_runs,
    packed_weights,
    run_defines,
    vectors,
)

_FETCHED_BYTES = 200 << 10
"""Of a layer's weights, from which on they are fetched ahead, since the layers before have taken
the second-level cache: 1x1 convolutions of 7x7 pixels took 0.7 to 0.9 of the time (Skylake)."""


@dataclass(frozen=True)
class Channels:
    """What channels.h reads."""

    runs: list[Run]
    weights: np.ndarray
    """Of Isa.number, [tile][tap][input channel][output channel]."""
    tables: dict[str, object] = field(default_factory=dict)
    """RUNS and DEPTH, or those of the tiles."""

    def defines(self, block_floats: int, lanes: int, first_blocks: list[int] | None = None
                ) -> dict[str, object]:
        """channels.h's macros; arguments as of tiles.run_defines()."""
        return {**run_defines(self.runs, block_floats, lanes, first_blocks), **self.tables}


def vector_tiles(conv: Convolution, isa: Isa, tile: list[int], parts: list[int]) -> Even:
    """The tiles of vectors of output channels for which weights are packed here."""
    return rounded(vectors(conv.output_channels, isa), tile[1], parts[1])


def lines_ahead(conv: Convolution, isa: Isa, count: int, shares: int) -> int:
    """AHEAD_LINES for tiles of `count` vectors that `shares` tiles of pixels read one after the
    other; 0 for none. Only x86 was measured."""
    if isa.by_lane or conv.weight.size * isa.number_bytes < _FETCHED_BYTES:
        return 0
    return -(-isa.lanes * count * isa.lanes * isa.number_bytes // (64 * max(1, shares)))


def all_channels(conv: Convolution, isa: Isa, tiles: Even) -> Channels:
    """Every tile of output vectors reads all inputs."""
    runs, order = channel_runs(conv.input_lanes)
    weights = [packed_weights(conv.weight, order, part, isa.lanes) for part in tiles.spread()]
    return Channels(runs, np.concatenate(weights).astype(isa.number),
                    {"TAPS": math.prod(conv.kernel), "RUNS": len(runs), "DEPTH": len(order)})


def inputs_of_vectors(conv: Convolution, part: range, isa: Isa) -> range:
    """Input channels of all groups that the output vectors `part` have channels of."""
    depth = conv.weight.shape[1]
    per_group = conv.output_channels // conv.groups
    first = part.start * isa.lanes // per_group
    last = (min(part.stop * isa.lanes, conv.output_channels) - 1) // per_group
    return range(first * depth, (last + 1) * depth)


def grouped_channels(conv: Convolution, isa: Isa, tiles: Even) -> Channels:
    """A tile reads the inputs of all groups that it has outputs of; between an output and the
    inputs of another group, weights are -0, which none of the convolution's is."""
    depth, per_group = conv.weight.shape[1], conv.output_channels // conv.groups
    runs: list[Run] = []
    weights: list[np.ndarray] = []
    run_starts, weight_starts, depths, apart = [0], [0], [], False
    for part in tiles.spread():
        inputs = inputs_of_vectors(conv, part, isa)
        outputs = range(part.start * isa.lanes, min(part.stop * isa.lanes, conv.output_channels))
        whole = np.full((len(part) * isa.lanes, len(inputs), *conv.kernel), -0.0, np.float32)
        for row, channel in enumerate(outputs):
            first = channel // per_group * depth - inputs.start
            own = conv.weight[channel].astype(isa.number) + np.float32(0)
            whole[row, first:first + depth] = own
            apart |= depth < len(inputs)
        found, order = channel_runs(conv.input_lanes, set(inputs))
        packed = packed_weights(whole, [c - inputs.start for c in order], range(len(part)),
                                isa.lanes)
        runs += found
        weights.append(packed)
        run_starts.append(len(runs))
        weight_starts.append(weight_starts[-1] + packed.size)
        depths.append(len(order))
    return Channels(runs, np.concatenate(weights).astype(isa.number), {
        "TAPS": math.prod(conv.kernel), "TILE_RUNS": run_starts, "TILE_WEIGHTS": weight_starts[:-1],
        "TILE_DEPTH": depths, **({"APART": 1} if apart else {})})
