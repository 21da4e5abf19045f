"""How TVM's templates for GPUs divide a convolution where nothing was measured.

Without records a template's tiles all have the extent 1: groups of one thread.  Here they are
chosen by counting: what a group loads into shared memory for each multiplication, how much of it
lies beyond the result, and whether there are groups and threads enough for a whole GPU.  Nothing
here is fitted to one device; records of tuning take its place.
"""

import math
from contextlib import contextmanager
from itertools import product

from run_model_tools.inside_tvm.devices.kernels import MOST_DEEP

_THREADS = 64
"""Fewer in a group do not hide the time that memory takes: two subgroups of the widest GPUs."""
_GROUPS = 64
"""As many groups as middling GPUs have units, two or three each."""
_ACCUMULATORS = 16
_MOST_CHANNELS = 16
_MOST_THREADS = 256
_STRIDE = 2
"""Of windows, at most, where it is not known."""
_GUARD = 0.2
_STEP_COST = 2
"""Of the barriers and loads around a step, in channels."""
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


def reaches_far(reach, kernel):
    """Whether a convolution reads numbers further apart than tiles take them to be where they do
    not know; reach as for best_tiles(), kernel: its rows and columns."""
    return any(stride > _STRIDE or dilation > 1 and size > 1
               for (stride, dilation), size in zip(reach, kernel))


def best_within(target, f, y, x, reduced, images, reach):
    """best_tiles() for schedules of our own, on the target's GPU."""
    threads = min(int(target.max_num_threads), _MOST_THREADS)
    shared = int(target.attrs.get("max_shared_memory_per_block", 16384))
    return best_tiles(f, y, x, reduced, threads, shared // 2, images=images, ragged=True,
                      reach=reach)


def best_tiles(f, y, x, reduced, threads, shared_bytes, is_depthwise=False, images=1,
               ragged=False, most_deep=None, reach=None):
    """{"tiles": the four extents (groups, virtual threads, threads, inner) of channels, rows and
    columns, "channels": input channels of a step, "cost": what it takes, comparable for results of
    the same extents}.

    f, y, x: the result's extents; reduced: input channels, rows and columns of the kernel; ragged:
    whether the last step may have fewer channels than the others; most_deep: threads of channels at
    most, where these are a dimension of their own; reach: (stride, dilation) of rows and of
    columns, None where they are not known.
    """
    channels, rows, columns = reduced
    best, lowest = None, None
    for tx, ty in product(_extents(x, threads), _extents(y, threads)):
        if tx * ty > threads:
            continue
        for tf in _channel_threads(f, min(threads // (tx * ty), most_deep or threads)):
            for fi, vx, vy in product(_powers(min(f // tf, 8)), (1, 2, 4), (1, 2)):
                if fi * vx * vy > _ACCUMULATORS or vx * tx >= 2 * x or vy * ty >= 2 * y:
                    continue
                if is_depthwise and (fi > 1 or vy > 1):
                    continue
                tile = (tf * fi, ty * vy, tx * vx)
                step = _channels_of_a_step(tile, reduced, shared_bytes, is_depthwise, ragged,
                                           reach)
                if not step:
                    continue
                cost = _cost((f, y, x), tile, tf * ty * tx, tx, fi * vx * vy, reduced, step,
                             is_depthwise, images, reach)
                if lowest is None or cost < lowest:
                    lowest = cost
                    best = {"tiles": [[-(-f // tile[0]), 1, tf, fi], [-(-y // tile[1]), vy, ty, 1],
                                      [-(-x // tile[2]), vx, tx, 1]],
                            "channels": step, "cost": cost}
    if best is None:
        best = {"tiles": [[f, 1, 1, 1], [y, 1, 1, 1], [-(-x // 32), 1, min(x, 32), 1]],
                "channels": 1, "cost": math.inf}
    return best


def _window(tile, reduced, reach):
    """How many numbers of an input channel a tile is computed of, and all that lie between them."""
    return math.prod((extent - 1) * stride + (size - 1) * dilation + 1
                     for extent, size, (stride, dilation) in zip(tile[1:], reduced[1:], reach))


def _channels_of_a_step(tile, reduced, shared_bytes, is_depthwise, ragged, reach):
    """The most input channels, up to 16, whose numbers fit into shared memory; 0 for none.  Where
    the last step may have fewer, those of which few are missing there."""
    f, y, x = tile
    _, rows, columns = reduced
    # Strides of two make an input tile four times the result's.
    inputs = _window(tile, reduced, reach) if reach else (
        y * x if rows * columns == 1 else (_STRIDE * y + rows) * (_STRIDE * x + columns))
    each = inputs + f * rows * columns
    if is_depthwise:
        # TVM's template keeps rows and columns of as many channels, and reads all of the kernel.
        return 1 if f * ((2 * y + 7) * (2 * x + 7) + 49) * _BYTES <= shared_bytes else 0
    if ragged:
        most = min(_MOST_CHANNELS, reduced[0], shared_bytes // (each * _BYTES))
        return min(range(most, 0, -1), default=0,
                   key=lambda step: -(-reduced[0] // step) * (step + _STEP_COST))
    for step in (_MOST_CHANNELS, 8, 4, 3, 2, 1):
        if reduced[0] % step == 0 and step * each * _BYTES <= shared_bytes:
            return step
    return 0


def _cost(extents, tile, threads, tx, accumulators, reduced, step, is_depthwise, images,
          reach):
    """Time for the whole result, in multiplications of one thread at best."""
    f, y, x = tile
    groups = images
    for extent, part in zip(extents, tile):
        groups *= -(-extent // part)
    rows, columns = reduced[1:]
    work = groups * f * y * x
    # Loads from memory for each multiplication of a group, and of a thread from shared memory.
    window = _window(tile, reduced, reach or ((1, 1), (1, 1)))
    loads = (window / (f * y * x * rows * columns)
             + (0 if is_depthwise else 1 / (y * x)))
    shared = 0.5 / accumulators + 0.1
    idle = max(1.0, _THREADS / threads) * max(1.0, _GROUPS / groups) ** 0.5
    # Neighbouring threads of a row load and store neighbouring numbers, which is one access.
    scattered = max(1.0, min(8, extents[2]) / tx) ** 0.5
    # Each step ends with a barrier.
    waits = 4.0 / (step * rows * columns * accumulators)
    # What reaches beyond the result is asked for at each multiplication.
    guarded = any(extent % part for extent, part in zip(extents, tile))
    return work * idle * (1 + 8 * loads * scattered + shared + waits + _GUARD * guarded)


def _extents(extent, most):
    """Numbers of threads along an axis: those that divide it, and powers of two beyond none."""
    found = {d for d in range(1, min(extent, most, 64) + 1) if extent % d == 0}
    power = 1
    while power <= min(most, 32):
        if power < 2 * extent:
            found.add(power)
        power *= 2
    return sorted(found)


def _channel_threads(channels, most):
    """Numbers of threads along channels: powers of two, and those that divide them."""
    dividing = {d for d in range(1, min(channels, most) + 1) if channels % d == 0}
    return sorted(dividing.union(_powers(min(channels, most))))


def _powers(most):
    power = 1
    while power <= most:
        yield power
        power *= 2
