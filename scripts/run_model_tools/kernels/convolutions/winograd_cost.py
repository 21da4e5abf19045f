"""Which tiles, groups and register tiles of the Winograd kernel are worth trying.

By a model of its time, whose unit is that of one multiplication of vectors.  The figures were
fitted to measurements on a processor with AVX-512; what matters is only the order they give.
"""

from __future__ import annotations

import math

from run_model_tools.kernels.convolutions.convolution import Convolution
from run_model_tools.kernels.isa import Isa
from run_model_tools.kernels.tiles import register_tiles, tile_cost

_TILES = (4, 2)
"""F(6, 3) saves little over F(4, 3) and rounds four times as much: kernels/winograd_error.md."""

_TRANSFORMS = {2: (90, 50), 4: (180, 150), 6: (320, 320)}
"""Of one tile and vector: (input's, output's with the storing of products)."""

_TAPS = {2: 60, 4: 100, 6: 220}
"""Of transforming one kernel's taps, for one vector of output channels."""

_TAP_BYTES = 160 << 10
"""What a task's transformed taps may take of the second-level cache."""

_STREAM = 0.008
"""Of a byte of weights for 16 lanes, which come from far away: what multiplying does not hide."""

_MEMORY = 1 / 8
"""Of a byte of weights for 16 lanes, where a core's share of memory is slower than multiplying."""

_CACHE = 800_000
"""Bytes of scratch that the second-level cache holds."""

_THREADS = {1: 1, 2: 2, 4: 1}
"""Numbers of threads that should be served well, and the weight of each."""


def candidates(conv: Convolution, isa: Isa, price: float) -> list[dict]:
    """Parameter sets of winograd.make(), the one of least cost first, none that is far behind; none
    at all where the definition costs less.

    `price`: of a byte more than the kernels themselves have.
    """
    kinds = [(tile, taps) for tile in _TILES for taps in (False, True)
             if taps or math.isfinite(price)]
    scored = sorted((item for kind in kinds for item in _costs(conv, isa, *kind, price)),
                    key=lambda item: item[0])
    most = _direct_cost(conv, isa)
    kept: dict[tuple, dict] = {}
    for cost, parameters in scored:
        kind = *(parameters[name] for name in ("tile", "vectors", "splits")), "taps" in parameters
        if cost < min(1.4 * scored[0][0], most):
            kept.setdefault(kind, parameters)
    return list(kept.values())[:10]


def _direct_cost(conv: Convolution, isa: Isa) -> float:
    """Of the direct kernel, in the unit of _costs()."""
    out_blocks = -(-conv.output_channels // isa.lanes)
    kernels = out_blocks * conv.input_channels
    weights = 9 * kernels * 64
    time = max(9 * math.prod(conv.output_size) * kernels, weights * _MEMORY)
    return sum(_THREADS.values()) * (time + weights * _STREAM)


def _costs(conv: Convolution, isa: Isa, tile: int, taps: bool, price: float
           ) -> list[tuple[float, dict]]:
    tiles = math.prod(-(-size // tile) for size in conv.output_size)
    out_blocks = -(-conv.output_channels // isa.lanes)
    blocks = len({(piece.tensor, piece.block) for piece in conv.input_lanes})
    found = []
    for most, vectors in register_tiles(isa):
        if vectors > out_blocks:
            continue
        parts = -(-out_blocks // vectors)
        for group in sorted({-(-tiles // n) for n in range(1, min(tiles, 64) + 1)}):
            pixels = -(-group // -(-group // most))
            for splits in (1, 2, 4):
                if splits > parts:
                    continue
                pieces = _tap_pieces(conv, isa, tile, vectors) if taps else 0
                task = _task_cost(conv, isa, tile, group, -(-parts // splits), pixels, vectors,
                                  blocks, pieces)
                tasks = -(-tiles // group) * splits
                # What it costs all cores together, the idle ones included.
                total = sum(weight * threads * -(-tasks // threads) * task
                            for threads, weight in _THREADS.items())
                if not taps:
                    total += sum(_THREADS.values()) * price * 64 * (
                        ((tile + 2) ** 2 - 9) * parts * vectors * conv.input_channels)
                found.append((total, {"tile": tile, "group": group, "splits": splits,
                                      "pixels": pixels, "vectors": vectors,
                                      **({"taps": pieces} if taps else {})}))
    return found


def _tap_pieces(conv: Convolution, isa: Isa, tile: int, vectors: int) -> int:
    """Of how many pieces of the input channels the taps are transformed at a time."""
    one = (tile + 2) ** 2 * isa.lanes * vectors * isa.lanes * isa.number_bytes
    count = -(-len(conv.input_lanes) // max(1, _TAP_BYTES // one))
    return -(-len(conv.input_lanes) // count)


def _task_cost(conv: Convolution, isa: Isa, tile: int, group: int, parts: int, pixels: int,
               vectors: int, blocks: int, taps: int) -> float:
    """Of one task with `parts` parts of the output channels; `taps` as in winograd.options()."""
    positions = (tile + 2) ** 2
    tiles_in, tiles_out = _TRANSFORMS[tile]
    sizes = [pixels] * (group // pixels) + [group % pixels] * (group % pixels > 0)
    multiply = positions * parts * sum(conv.input_channels * tile_cost(isa, size, vectors) + 12
                                       for size in sizes)
    # As bytes for 16 lanes: shorter vectors are multiplied in less time, not so fetched.
    weights = (9 if taps else positions) * parts * conv.input_channels * vectors * 64
    scratch = positions * group * (blocks + vectors) * isa.lanes * 4
    if taps:
        scratch += positions * taps * isa.lanes * vectors * isa.lanes * 4
        again = -(-len(conv.input_lanes) // taps) - 1
        multiply += parts * vectors * (_TAPS[tile] * conv.input_channels
                                       + 2 * again * positions * group)
    if scratch > _CACHE:
        multiply *= 1.2
    stream = 0 if taps else weights * _STREAM  # fetched ahead of their use
    return (max(multiply, weights * _MEMORY) + stream + tiles_in * blocks * group
            + tiles_out * parts * vectors * group + 1000)
