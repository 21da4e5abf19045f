"""Random pooling layers, and what they make by their definition."""

from __future__ import annotations

import math

import numpy as np

from random_convolutions import EPS, choose
from run_model_tools.kernels.convolutions.convolution import Lanes, plain_lanes
from run_model_tools.kernels.isa import AVX2, Isa
from run_model_tools.kernels.pictures import pooling
from run_model_tools.kernels.pictures.pooling import Pooling


def random_pooling(rng: np.random.Generator, lanes: int) -> Pooling:
    """A random layer that a kernel can do: no window wholly in the padding."""
    while True:
        window = tuple(int(k) for k in rng.choice([1, 2, 3, 5, 11], 2, p=[.1, .3, .4, .1, .1]))
        channels = [int(c) for c in rng.integers(1, 2 * lanes + 2, rng.integers(1, 4))]
        pieces = [p for t, c in enumerate(channels) for p in plain_lanes(c, lanes, t)]
        order = rng.permutation(len(pieces))
        size = tuple(int(k + rng.integers(0, 25)) for k in window)
        pool = Pooling(
            kind=str(rng.choice(["max", "average"])), window=window,
            input_shapes=tuple((1, -(-c // lanes), *size, lanes) for c in channels),
            input_lanes=tuple(pieces[i] for i in order),
            strides=tuple(int(s) for s in rng.integers(1, 4, 2)),
            padding=tuple(int(rng.integers(0, window[axis % 2])) for axis in range(4)),
            dilation=(1, 1) if rng.random() < 0.8 else (2, 1), round_up=bool(rng.random() < 0.5),
            count_padding=bool(rng.random() < 0.5))
        if min(pool.output_size) > 0 and pooling.options(pool, AVX2):
            return pool


def random_global(rng: np.random.Generator, lanes: int) -> Pooling:
    """A global average of pieces of blocks, in any order."""
    size, tensors = (int(rng.integers(1, 9)), int(rng.integers(1, 9))), int(rng.integers(1, 4))
    pieces = []
    for tensor in range(tensors):
        for block in range(3):
            first = int(rng.integers(0, lanes)) if rng.random() < 0.5 else 0
            count = int(rng.integers(1, lanes - first + 1)) if rng.random() < 0.5 else lanes - first
            pieces.append(Lanes(tensor, block, first, count))
    order = rng.permutation(len(pieces))
    return Pooling("average", size, ((1, 3, *size, lanes),) * tensors,
                   tuple(pieces[i] for i in order), planar=True)


def expected(pool: Pooling, tensors: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The result in float64 and a bound of its error; NaN where there is no channel."""
    lanes = pool.input_shapes[0][-1]
    height, width = pool.output_size
    result = np.full((1, len(pool.input_lanes), height, width, lanes), np.nan)
    bound = np.zeros_like(result)
    for block, piece in enumerate(pool.input_lanes):
        lane = slice(piece.first, piece.first + piece.count)
        plane = tensors[piece.tensor][0, piece.block, :, :, lane].astype(np.float64)
        for y in range(height):
            for x in range(width):
                rows, columns = ([start + tap * dilation for tap in range(taps)
                                  if 0 <= start + tap * dilation < size]
                                 for start, taps, dilation, size in zip(
                                     (y * pool.strides[0] - pool.padding[0],
                                      x * pool.strides[1] - pool.padding[1]),
                                     pool.window, pool.dilation, pool.input_size))
                values = plane[np.ix_(rows, columns)].reshape(-1, piece.count)
                if pool.kind == "max":
                    result[0, block, y, x, lane] = values.max(axis=0)
                else:
                    count = math.prod(pool.window) if pool.count_padding else len(values)
                    result[0, block, y, x, lane] = values.sum(axis=0) / count
                    # A rounding for each sum, the division's and the reciprocal's.
                    bound[0, block, y, x, lane] = ((len(values) + 2) * EPS
                                                   * abs(values).sum(axis=0) / count)
    if pool.planar:
        used = ~np.isnan(result[0, :, 0, 0])
        return tuple(a[0, :, 0, 0][used].reshape(1, -1, 1, 1) for a in (result, bound))
    return result, bound


def draw(rng: np.random.Generator, isas: tuple[Isa, ...], count: int
         ) -> list[tuple[Pooling, Isa, dict]]:
    pools = []
    for isa in isas:
        pools += [(random_pooling(rng, isa.lanes), isa) for _ in range(count)]
        pools += [(random_global(rng, isa.lanes), isa) for _ in range(max(2, count // 4))]
        # ResNet's, SqueezeNet's (both sizes that the padding or the rounding decides).
        for size, pad, up in ((28, 1, False), (27, 0, True), (28, 0, True)):
            pools.append((Pooling("max", (3, 3), ((1, 2, size, size, isa.lanes),),
                                  plain_lanes(2 * isa.lanes, isa.lanes), (2, 2), (pad,) * 4,
                                  round_up=up), isa))
    return choose(rng, pooling, pools)
