"""Maximum, average and global average pooling (kernels/c/f32-pool.c.in, and as a sum of planes)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from run_model_tools.kernels.convolutions.convolution import Lanes, positions
from run_model_tools.kernels.isa import Isa
from run_model_tools.kernels.layer import Layer, Phase
from run_model_tools.kernels.pictures.plane_reduction import PlaneReduction, best_tasks, layer_of
from run_model_tools.kernels.pictures.window import cuts, group_widths


@dataclass(frozen=True)
class Pooling:
    """Pooling of one picture's blocked activations, see Convolution.

    The output's blocks are those of `input_lanes`, in that order, with the same lanes used:
    every piece begins at lane 0.  With `planar` the window is the whole picture, pieces are any
    lanes, and the output is (1, channels, 1, 1) with the channels in the order of `input_lanes`.
    """

    kind: str
    """"max" or "average"."""
    window: tuple[int, int]
    input_shapes: tuple[tuple[int, ...], ...]
    """Of each input tensor: (1, blocks, height, width, lanes)."""
    input_lanes: tuple[Lanes, ...]
    strides: tuple[int, int] = (1, 1)
    padding: tuple[int, int, int, int] = (0, 0, 0, 0)
    """top, left, bottom, right; a maximum never is of padding."""
    dilation: tuple[int, int] = (1, 1)
    round_up: bool = False
    """Whether a last window counts that lies only partly in the padded picture ("ceil mode")."""
    count_padding: bool = False
    """Whether an average is divided by the whole window's size instead of by that of its part
    within the picture."""
    planar: bool = False

    @property
    def input_size(self) -> tuple[int, int]:
        """Height and width of the input."""
        return self.input_shapes[0][2], self.input_shapes[0][3]

    @property
    def output_size(self) -> tuple[int, int]:
        """Height and width of the output."""
        height, width = map(positions, self.input_size, self.window, self.strides, self.dilation,
                            self.padding[:2], self.padding[2:], (self.round_up, self.round_up))
        return height, width

    @property
    def channels(self) -> int:
        return sum(piece.count for piece in self.input_lanes)

    def output_shape(self, lanes: int) -> tuple[int, ...]:
        if self.planar:
            return (1, self.channels, 1, 1)
        return (1, len(self.input_lanes), *self.output_size, lanes)


def options(pool: Pooling, isa: Isa) -> list[dict]:
    """Parameter sets worth trying, the best guess first; empty if the kernel cannot do it.

    `columns`: output columns that are computed together, 0 for each by itself; `strips`: how many
    parts a plane's rows are cut into; `tasks`: parallel tasks.  A planar one has `tasks` only.
    """
    pieces = len(pool.input_lanes)
    operations = pieces * isa.lanes * math.prod(pool.output_size) * math.prod(pool.window)
    if pool.planar:
        whole = (pool.window == pool.input_size and pool.output_size == (1, 1)
                 and not any(pool.padding))
        tasks = best_tasks(pieces, math.prod(pool.input_size), isa)
        return [{"tasks": tasks}] if whole and pool.kind == "average" else []
    if any(piece.first for piece in pool.input_lanes) or not _windows_touch_picture(pool):
        return []
    widths = group_widths(pool.output_size[1], pool.input_size[1], pool.window[1], pool.strides[1],
                          pool.dilation[1], pool.padding[1], min(8, isa.registers - 4))
    if pool.window[1] > 9:
        # Unrolled windows of this size would be too much code for what a group of columns saves.
        widths = []
    return [{"columns": columns, "strips": strips, "tasks": tasks} for columns in widths[:2] or [0]
            for strips, tasks in cuts(pieces, pool.output_size[0], operations)]


def make(pool: Pooling, isa: Isa, tasks: int, columns: int = 0, strips: int = 1) -> Layer:
    """The layer."""
    if pool.planar:
        return _global_average(pool, isa, tasks)
    defines = {
        **isa.defines(), "MAXIMUM" if pool.kind == "max" else "AVERAGE": 1,
        "BLOCKS": len(pool.input_lanes),
        "BLOCK_TENSOR": [piece.tensor for piece in pool.input_lanes],
        "BLOCK_INDEX": [piece.block for piece in pool.input_lanes],
        "TAPS_Y": pool.window[0], "TAPS_X": pool.window[1],
        "STRIDE_Y": pool.strides[0], "STRIDE_X": pool.strides[1],
        "DILATION_Y": pool.dilation[0], "DILATION_X": pool.dilation[1],
        "PAD_TOP": pool.padding[0], "PAD_LEFT": pool.padding[1],
        "IN_HEIGHT": pool.input_size[0], "IN_WIDTH": pool.input_size[1],
        "OUT_HEIGHT": pool.output_size[0], "OUT_WIDTH": pool.output_size[1],
        "COLUMNS": columns or 1, "STRIPS": strips, "TASKS": tasks,
    }
    if not columns:
        defines["PLAIN"] = 1
    if pool.count_padding:
        defines["COUNT_PADDING"] = 1
    return Layer(
        kind=f"{pool.kind}_pool2d", template="f32-pool.c.in", defines=defines,
        phases=(Phase("pooling", tasks),),
        inputs=tuple((tuple(shape), isa.number) for shape in pool.input_shapes), constants=(),
        output_shape=pool.output_shape(isa.lanes), output_dtype=isa.number,
        variant=isa.variant(*[columns] if columns else []),
        note={"kernel": "pooling", "columns": columns, "strips": strips, "tasks": tasks})


def _global_average(pool: Pooling, isa: Isa, tasks: int) -> Layer:
    mean = PlaneReduction("sum", pool.input_shapes, pool.input_lanes,
                          1 / math.prod(pool.input_size))
    return layer_of(mean, isa, tasks, "global_average", "global_avg_pool2d")


def _windows_touch_picture(pool: Pooling) -> bool:
    """Whether each window has a tap in the picture; else there is nothing to take a maximum of."""
    for axis in (0, 1):
        for position in range(pool.output_size[axis]):
            start = position * pool.strides[axis] - pool.padding[axis]
            taps = (start + tap * pool.dilation[axis] for tap in range(pool.window[axis]))
            if not any(0 <= tap < pool.input_size[axis] for tap in taps):
                return False
    return True
