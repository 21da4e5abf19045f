"""How convolutions and products are divided among a GPU's threads where nothing was measured.

Without records the tiles of TVM's templates all have the extent 1: groups of one thread.  Here they
are chosen by counting what a thread does: multiplications, loads from shared memory and from
memory, how much of it lies beyond the result, and whether there are groups and threads enough for
the GPU's multiprocessors.  What each of these takes was fitted to one GPU; records of tuning take
its place.
"""

import math
from contextlib import contextmanager
from functools import lru_cache
from itertools import product

from run_model_tools.inside_tvm.bounded_code import implementation_of
from run_model_tools.inside_tvm.devices.kernels import MOST_DEEP

_UNITS = 32
"""Of a middling GPU, which is what is at hand where the target does not say."""
_UNITS_OF = {"sm_53": 1, "sm_62": 2, "sm_70": 80, "sm_72": 8, "sm_75": 40, "sm_80": 108,
             "sm_86": 46, "sm_87": 16, "sm_89": 76, "sm_90": 132}
"""Multiprocessors, by NVIDIA's data sheets, of a GPU of that architecture: of Jetsons theirs (Nano,
TX2, Xavier, Orin), else of the V100, the T4, the A100, the RTX 3070, the RTX 4080 and the H100."""
_ACCUMULATORS = 16
_MOST_CHANNELS = 16
"""Of a step: PoCL 3.1 breaks down over some kernels whose steps are longer."""
_MOST_CHANNELS_OF_CUDA = 32
_MOST_THREADS = 256
_STRIDE = 2
"""Of windows, at most, where it is not known."""
_NEAR = ((1, 1), (1, 1))
"""Strides and dilations where they are not known, and are counted."""
_STEP_COST = 2
"""Of the barriers and loads around a step, in channels."""
_MOST_PARTS = 16
_LEAST_PART = 64
"""Products that a thread sums up for a result before it is worth to divide them."""

# What follows is in instructions of a thread, fitted to 1530 kernels of the 51 convolutions of
# ResNet-18, SqueezeNet 1.1, MobileNet v2 and ShuffleNet v1 on an H200 (batch 1, float32): of each
# one's 30, those with the least cost took 1.2 times as long together as the fastest.
_INPUT, _WEIGHT = 25, 7
"""To load a number from memory, with its index and the wait; the input's may be beyond its edge."""
_SHARED_INPUT = 2
"""To load one from shared memory, where no other thread of a warp waits for the same bank; a
weight, which most of them share, takes one."""
_STORE = 10
"""Of a result, where neighbouring threads store neighbouring ones."""
_STEP = 10
"""Of the barriers around a step."""
_BANKS = _WARP = 32
_LEAST_WARPS = 2
"""Fewer in a group are not taken for faster: one subgroup of the widest GPUs."""
_ISSUED = 4
"""Warps of which a unit takes an instruction at a time."""
_WAIT = 4
"""Between a thread's instructions."""
_GUARD = 0.3
"""What it costs a multiplication to ask whether it is beyond the result."""
_SECOND_KERNEL, _PART = 2000, 0.1
"""To sum up parts: once, and of each result in each of them."""
_BYTES = 4


@contextmanager
def chosen(tvm):
    """While it is open, templates that have no record are given tiles of our choice."""
    from tvm.autotvm.task.space import FallbackConfigEntity

    original = FallbackConfigEntity.fallback_with_reference_log

    def choose(self, reference):
        original(self, reference)
        if not reference:
            _fill(self, tvm.target.Target.current())

    FallbackConfigEntity.fallback_with_reference_log = choose
    try:
        yield
    finally:
        FallbackConfigEntity.fallback_with_reference_log = original


def _fill(config, target):
    names = config.space_map
    if not {"tile_f", "tile_y", "tile_x"} <= set(names) or len(config["tile_f"].size) != 4:
        return
    f, y, x = (int(names[name].product) for name in ("tile_f", "tile_y", "tile_x"))
    depth = int(names["tile_d"].product) if "tile_d" in names else 1
    reduced = [int(names[name].product) if name in names else 1
               for name in ("tile_rc", "tile_ry", "tile_rx")]
    threads = int(target.max_num_threads)
    shared = int(target.attrs.get("max_shared_memory_per_block", 16384))
    # A depthwise template loads its whole input of a tile at once.
    is_depthwise = "tile_rc" not in names
    best = best_tiles(f, y, x, reduced, min(threads, _MOST_THREADS), shared // 2, is_depthwise,
                      depth, most_deep=MOST_DEEP)
    for name, sizes in zip(("tile_f", "tile_y", "tile_x"), best["tiles"]):
        config[name].size = sizes
    if "tile_d" in names:
        config["tile_d"].size = [depth, 1, 1, 1]
    if not is_depthwise:
        config["tile_rc"].size = [-(-reduced[0] // best["channels"]), best["channels"]]
        for name, extent in zip(("tile_ry", "tile_rx", "tile_rd"), [*reduced[1:], None]):
            if name in names:
                extent = int(names[name].product)
                config[name].size = [1, extent]


def left_to_products(compute, name):
    """An implementation of an operator that has no schedule but that of products.py."""
    def schedule(attrs, outs, target):
        raise ValueError("no tiles within the limits")

    return implementation_of(compute, schedule, name)


def reaches_far(reach, kernel):
    """Whether a convolution reads numbers further apart than tiles take them to be where they do
    not know; reach as for best_tiles(), kernel: its rows and columns."""
    return any(stride > _STRIDE or dilation > 1 and size > 1
               for (stride, dilation), size in zip(reach, kernel))


def best_within(target, f, y, x, reduced, images, reach):
    """best_tiles() for schedules of our own, on the target's GPU."""
    threads = min(int(target.max_num_threads), _MOST_THREADS)
    shared = int(target.attrs.get("max_shared_memory_per_block", 16384))
    channels = _MOST_CHANNELS_OF_CUDA if target.kind.name == "cuda" else _MOST_CHANNELS
    return best_tiles(f, y, x, reduced, threads, shared // 2, images=images, ragged=True,
                      reach=reach, most_parts=_MOST_PARTS, units=units_of(target),
                      most_channels=channels)


def units_of(target):
    """How many multiprocessors a target's GPU has, or is taken to have."""
    return _UNITS_OF.get(str(target.attrs.get("arch", "")), _UNITS)


def best_tiles(f, y, x, reduced, threads, shared_bytes, is_depthwise=False, images=1,
               ragged=False, most_deep=None, reach=None, most_parts=1, units=_UNITS,
               most_channels=_MOST_CHANNELS):
    """{"tiles": the four extents (groups, virtual threads, threads, inner) of channels, rows and
    columns, "channels": input channels of a step, "parts": into how many the input channels are
    divided, for groups of their own, "cost": what it takes, comparable for results of the same
    extents}.

    f, y, x: the result's extents; reduced: input channels, rows and columns of the kernel; ragged:
    whether the last step may have fewer channels than the others; most_deep: threads of channels at
    most, where these are a dimension of their own; reach: (stride, dilation) of rows and of
    columns, None where they are not known.
    """
    best, lowest = None, None
    taps = math.prod(reduced[1:])
    all_parts = [parts for parts in range(1, most_parts + 1) if parts == 1 or (
        reduced[0] % parts == 0 and reduced[0] // parts * taps >= _LEAST_PART)]
    for tx, ty in product(extents(x, threads), extents(y, threads)):
        if tx * ty > threads:
            continue
        for tf in channel_threads(f, min(threads // (tx * ty), most_deep or threads)):
            for fi, vx, vy in product(_powers(min(f // tf, 8)), (1, 2, 4), (1, 2)):
                if fi * vx * vy > _ACCUMULATORS or vx * tx >= 2 * x or vy * ty >= 2 * y:
                    continue
                if is_depthwise and (fi > 1 or vy > 1):
                    continue
                tile = (tf * fi, ty * vy, tx * vx)
                step = _channels_of_a_step(tile, reduced, shared_bytes, is_depthwise, ragged,
                                           reach, most_channels)
                if not step:
                    continue
                counted = _Tile((f, y, x), tile, (tf, ty, tx), fi, reduced, is_depthwise, images,
                                reach, units)
                for parts in all_parts:
                    step = min(step, reduced[0] // parts)
                    cost = counted.cost(step, parts)
                    if lowest is None or cost < lowest:
                        lowest = cost
                        best = {"tiles": [[-(-f // tile[0]), 1, tf, fi],
                                          [-(-y // tile[1]), vy, ty, 1],
                                          [-(-x // tile[2]), vx, tx, 1]],
                                "channels": step, "parts": parts, "cost": cost}
    if best is None:
        best = {"tiles": [[f, 1, 1, 1], [y, 1, 1, 1], [-(-x // 32), 1, min(x, 32), 1]],
                "channels": 1, "parts": 1, "cost": math.inf}
    return best


def _window(tile, reduced, reach):
    """The rows and columns of an input channel that a tile is computed of, and all between them."""
    return [(extent - 1) * stride + (size - 1) * dilation + 1
            for extent, size, (stride, dilation) in zip(tile[1:], reduced[1:], reach)]


def _channels_of_a_step(tile, reduced, shared_bytes, is_depthwise, ragged, reach, most):
    """The most input channels, up to `most`, whose numbers fit into shared memory; 0 for none.
    Where the last step may have fewer, those of which few are missing there."""
    f, y, x = tile
    _, rows, columns = reduced
    # Strides of two make an input tile four times the result's.
    inputs = math.prod(_window(tile, reduced, reach)) if reach else (
        y * x if rows * columns == 1 else (_STRIDE * y + rows) * (_STRIDE * x + columns))
    each = inputs + f * rows * columns
    if is_depthwise:
        # TVM's template keeps rows and columns of as many channels, and reads all of the kernel.
        return 1 if f * ((2 * y + 7) * (2 * x + 7) + 49) * _BYTES <= shared_bytes else 0
    if ragged:
        most = min(most, reduced[0], shared_bytes // (each * _BYTES))
        return min(range(most, 0, -1), default=0,
                   key=lambda step: -(-reduced[0] // step) * (step + _STEP_COST))
    for step in (most, 8, 4, 3, 2, 1):
        if reduced[0] % step == 0 and step * each * _BYTES <= shared_bytes:
            return step
    return 0


class _Tile:
    """What a group computes, of which the time for the whole result is counted."""

    def __init__(self, extents, tile, threads, fi, reduced, is_depthwise, images, reach, units):
        """threads: of channels, rows and columns; fi: channels of each."""
        f, y, x = tile
        self.channels, rows, columns = reduced
        taps = rows * columns
        self.count = math.prod(threads)
        self.warps = max(_LEAST_WARPS, -(-self.count // _WARP))
        self.groups = images * math.prod(-(-extent // part) for extent, part in zip(extents, tile))
        self.numbers = images * math.prod(extents)
        self.units = units
        stride, _ = (reach or _NEAR)[1]
        _, row = window = _window(tile, reduced, reach or _NEAR)
        # What reaches beyond the result is asked for at each multiplication.
        guarded = any(extent % part for extent, part in zip(extents, tile))
        results = f * y * x / self.count
        self.products = taps * (1 + _GUARD * guarded) * (
            results + fi + results / fi * _SHARED_INPUT * _waiting(
                *threads[1:], stride, stride * row))
        self.inputs = math.prod(window)
        self.weights = 0 if is_depthwise else f * taps
        # Eight neighbouring numbers are one access.
        self.stores = results * _STORE * max(1.0, min(8, extents[2]) / threads[2])
        self.input = _INPUT * max(1.0, 8 / row) ** 0.5
        self.weight = _WEIGHT * max(1.0, 8 / f) ** 0.5

    def cost(self, step, parts):
        """In instructions of a thread; step: input channels."""
        steps = -(-self.channels // (step * parts))
        thread = steps * (step * self.products + _STEP
                          + self.input * -(-step * self.inputs // self.count)
                          + self.weight * -(-step * self.weights // self.count)) + self.stores
        groups = -(-self.groups * parts // self.units)
        cost = thread * max(_WAIT, groups * self.warps / _ISSUED)
        if parts > 1:
            cost += _SECOND_KERNEL + _PART * parts * self.numbers / self.units
        return cost


@lru_cache(maxsize=None)
def _waiting(rows, columns, stride, row):
    """How many different numbers the threads of a warp read from one bank of shared memory, where
    their neighbours' lie `stride` and the next row's `row` apart."""
    banks = {}
    for lane in range(min(_WARP, rows * columns)):
        place = lane // columns % rows * row + lane % columns * stride
        banks.setdefault(place % _BANKS, set()).add(place)
    return max(map(len, banks.values()))


def extents(extent, most):
    """Numbers of threads along an axis: those that divide it, and powers of two beyond none."""
    found = {d for d in range(1, min(extent, most, 64) + 1) if extent % d == 0}
    power = 1
    while power <= min(most, 32):
        if power < 2 * extent:
            found.add(power)
        power *= 2
    return sorted(found)


def channel_threads(channels, most):
    """Numbers of threads along channels: powers of two, and those that divide them."""
    dividing = {d for d in range(1, min(channels, most) + 1) if channels % d == 0}
    return sorted(dividing.union(_powers(min(channels, most))))


def _powers(most):
    power = 1
    while power <= most:
        yield power
        power *= 2
