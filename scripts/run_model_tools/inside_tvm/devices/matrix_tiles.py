"""How products of row_kernels.py are divided among the threads of a GPU through CUDA: as tiles.py
counts for convolutions, but each number of a step is there, and what a step waits for memory weighs
more.  PoCL 3.1 gives wrong numbers where such tiles reach beyond the result, so OpenCL and Vulkan
have those of tiles.py."""

from functools import lru_cache

from run_model_tools.inside_tvm.devices import tiles

# In instructions of a thread, fitted to 2100 kernels of 26 products of transformers on an H200
# (float32).  Of each one's 85, what the counts chose from all that there are took 1.13 times as
# long, as a geometric mean, as the fastest that was tried.
_LEFT, _RIGHT = 7, 13
"""To load a number from memory into shared memory."""
_SHARED_RIGHT = 3.4
"""To load one of the right factor from shared memory; of the left one it takes one."""
_STORE, _STEP = 2, 7
_LATENCY = 200
"""Of a step, which waits for memory, for so many groups at a time on a multiprocessor:"""
_AT_A_TIME = 2.2
_LEAST_WARPS, _ISSUED, _WAIT = 4, 3.5, 4
_GUARD = 0.24
"""What it costs a multiplication to ask whether it is beyond the result."""
_SECOND_KERNEL, _PART = 1650, 0.1
_WARP = 32
_THREADS = 256
_PARTS = (1, 2, 3, 4, 6, 8, 12, 16)
_LEAST_PART = 32
_STEPS = (8, 16, 32, 64, 96)
_MOST_RESULTS = 32
_BYTES = 4


def best_within(target, batch, rows, columns, depth):
    """tiles.best_within() for such a product."""
    return _best(batch, rows, columns, depth,
                 int(target.attrs.get("max_shared_memory_per_block", 16384)) // 2,
                 tiles.units_of(target))


@lru_cache(maxsize=None)
def _best(batch, rows, columns, depth, shared_bytes, units):
    steps = sorted({min(step, depth) for step in _STEPS}
                   | {-(-depth // -(-depth // _STEPS[-1]))})
    parts = [n for n in _PARTS if n == 1 or depth % n == 0 and depth // n >= _LEAST_PART]
    best, lowest = None, None
    for tile in _tiles(rows, columns):
        tf, fi, tx, vx = tile
        height, width, count = tf * fi, tx * vx, tf * tx
        results = fi * vx
        groups = batch * -(-rows // height) * -(-columns // width)
        product = (1 + _GUARD * bool(rows % height or columns % width)) * (
            results + fi + vx * _SHARED_RIGHT)
        stores = results * _STORE * max(1.0, min(8, columns) / tx)
        right = _RIGHT * max(1.0, 8 / width) ** 0.5
        warps = max(_LEAST_WARPS, -(-count // _WARP))
        for part in parts:
            on_each = -(-groups * part // units)
            together = max(_WAIT, on_each * warps / _ISSUED)
            waiting = _LATENCY * max(1, on_each / _AT_A_TIME)
            apart = 0 if part == 1 else (
                _SECOND_KERNEL + _PART * part * batch * rows * columns / units)
            for step in steps:
                step = min(step, depth // part)
                if (height + width) * step * _BYTES > shared_bytes:
                    break
                iterations = -(-depth // (step * part))
                thread = stores + iterations * (
                    step * product + _STEP + right * -(-step * width // count)
                    + _LEFT * max(1.0, 8 / step) ** 0.5 * -(-step * height // count))
                cost = thread * together + iterations * waiting + apart
                if lowest is None or cost < lowest:
                    lowest = cost
                    best = {"tiles": [[-(-rows // height), 1, tf, fi], [1, 1, 1, 1],
                                      [-(-columns // width), vx, tx, 1]],
                            "channels": step, "parts": part, "cost": cost}
    return best


def _tiles(rows, columns):
    """(threads of rows, rows of each, threads of columns, columns of each): none that reach beyond
    the result by more than half of themselves."""
    for tx in tiles.extents(columns, _THREADS):
        for tf in tiles.channel_threads(rows, _THREADS // tx):
            if tf * tx < _WARP and tf * tx < rows * columns:
                continue
            for fi in (1, 2, 4, 8):
                for vx in (1, 2, 4, 8):
                    if (fi * vx <= _MOST_RESULTS and (fi == 1 or tf * fi < 2 * rows)
                            and (vx == 1 or tx * vx < 2 * columns)):
                        yield tf, fi, tx, vx
