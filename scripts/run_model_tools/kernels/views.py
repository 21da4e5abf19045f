"""Tensors seen with other axes: reshaped, transposed, cut and scaled without moving a number."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from run_model_tools.kernels.tensors import Blocked, Tensor

Factor = tuple[int, int]
"""(extent, stride in numbers): an axis is a product of these, the outermost first."""

Axis = tuple[Factor, ...]


@dataclass(eq=False)
class ConstantTensor(Tensor):
    """Numbers that are known while compiling."""

    data: np.ndarray = field(default_factory=lambda: np.zeros(()))


def constant_tensor(data: np.ndarray) -> ConstantTensor:
    """The tensor of an array."""
    return ConstantTensor(data.shape, str(data.dtype), np.ascontiguousarray(data))


@dataclass(frozen=True, eq=False)
class View:
    """Numbers of a tensor in the order of `axes`, each times `scale`."""

    tensor: Tensor
    axes: tuple[Axis, ...]
    offset: int = 0
    scale: float = 1.0

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(extent(axis) for axis in self.axes)

    @property
    def is_whole(self) -> bool:
        """Whether it is all of the tensor as it lies, so that only the shape may differ."""
        flat = self.reshape((math.prod(self.tensor.shape),))
        return (self.scale == 1 and self.offset == 0
                and math.prod(self.shape) == math.prod(self.tensor.shape)
                and flat is not None and all(stride == 1 for _, stride in flat.axes[0]))

    @property
    def permutes(self) -> bool:
        """Whether it is each number of the tensor once, as it is."""
        expected = 1
        for count, stride in sorted((f for axis in self.axes for f in axis),
                                    key=lambda factor: factor[1]):
            if count > 1 and stride != expected:
                return False
            expected *= count
        return (self.scale == 1 and self.offset == 0
                and expected == math.prod(self.tensor.shape))

    def reshape(self, shape: Sequence[int]) -> View | None:
        """None where no strides say it."""
        if math.prod(shape) != math.prod(self.shape):
            return None
        rest = list(_joined([factor for axis in self.axes for factor in axis]))
        axes: list[Axis] = []
        for size in reversed(shape):
            axis: list[Factor] = []
            while size > 1:
                count, stride = rest.pop()
                if size % count == 0:
                    axis.insert(0, (count, stride))
                    size //= count
                elif count % size == 0:
                    axis.insert(0, (size, stride))
                    rest.append((count // size, stride * size))
                    size = 1
                else:
                    return None
            axes.insert(0, tuple(axis))
        return replace(self, axes=tuple(axes))

    def transpose(self, order: Sequence[int]) -> View:
        """Axis i is what axis order[i] was."""
        return replace(self, axes=tuple(self.axes[i] for i in order))

    def cut(self, axis: int, begin: int, count: int, step: int = 1) -> View | None:
        """`count` of an axis' numbers, every `step`th from `begin` on; None as in reshape()."""
        found = _cut(self.axes[axis], begin, count, step)
        if found is None:
            return None
        factors, offset = found
        axes = (*self.axes[:axis], factors, *self.axes[axis + 1:])
        return replace(self, axes=axes, offset=self.offset + offset)

    def broadcast(self, shape: Sequence[int]) -> View:
        """As NumPy does it: the last axes are aligned, and what is 1 is repeated."""
        axes = ((),) * (len(shape) - len(self.axes)) + self.axes
        return replace(self, axes=tuple(
            axis if extent(axis) == size else ((size, 0),) for axis, size in zip(axes, shape)))

    def tiled(self, shape: Sequence[int]) -> View:
        """As NumPy's tile() does it: the last axes are aligned, and each is gone through over and
        over until there are as many numbers as in `shape`, a multiple."""
        axes = ((),) * (len(shape) - len(self.axes)) + self.axes
        return replace(self, axes=tuple(
            axis if extent(axis) == size else ((size // extent(axis), 0), *axis)
            for axis, size in zip(axes, shape)))

    def seen_through(self, other: View) -> View | None:
        """What `other` shows of a tensor that has these numbers in a row; None where that is not
        each of them once, or where no strides say it."""
        flat = self.reshape((math.prod(other.shape),)) if other.permutes else None
        if flat is None:
            return None
        axes: list[Axis] = []
        for axis in other.axes:
            seen: list[Factor] = []
            for count, stride in axis:
                inner = _factors_of(flat.axes[0], count, stride)
                if inner is None:
                    return None
                seen += inner
            axes.append(tuple(seen))
        return replace(self, axes=tuple(axes))

    def times(self, number: float) -> View:
        """Each number multiplied."""
        return replace(self, scale=self.scale * number)


def extent(axis: Axis) -> int:
    """How many numbers an axis has."""
    return math.prod(count for count, _ in axis)


def whole(tensor: Tensor) -> View:
    """The tensor as it is."""
    strides = [math.prod(tensor.shape[i + 1:]) for i in range(len(tensor.shape))]
    return View(tensor, tuple(((size, stride),) if size != 1 else ()
                              for size, stride in zip(tensor.shape, strides)))


def of_blocks(value: Blocked) -> View | None:
    """Pictures that lie in blocks, as (batch, channels, height, width); None if strides do not
    say where their channels are."""
    lanes = value.lanes
    if not value.is_plain or value.channels > lanes and value.channels % lanes:
        return None
    height, width = value.size
    blocks = -(-value.channels // lanes)
    channels = ((blocks, height * width * lanes), (min(lanes, value.channels), 1))
    one = value.tensors[0].shape[1] * height * width * lanes
    return View(value.tensors[0], tuple(tuple(f for f in axis if f[0] != 1) for axis in (
        ((value.batch, one),), channels, ((height, width * lanes),), ((width, lanes),))))


def common_factors(axes: Sequence[Axis]) -> list[tuple[int, tuple[int, ...]]] | None:
    """One axis of several views: (extent, the stride of each view), the outermost first.

    None where the views cut the axis at places that no such list has.
    """
    cuts = {1}
    for axis in axes:
        inner = 1
        for count, _ in reversed(axis):
            inner *= count
            cuts.add(inner)
    ordered = sorted(cuts)
    if any(b % a for a, b in zip(ordered, ordered[1:])):
        return None
    found: list[tuple[int, tuple[int, ...]]] = []
    for low, high in zip(ordered, ordered[1:]):
        found.insert(0, (high // low, tuple(_stride_at(axis, low) for axis in axes)))
    return joined_factors(found)


def joined_factors(factors: Sequence[tuple[int, tuple[int, ...]]]
                   ) -> list[tuple[int, tuple[int, ...]]]:
    """Neighbours made one where all views have the inner one's numbers in a row."""
    found: list[tuple[int, tuple[int, ...]]] = []
    for count, strides in factors:
        if count == 1:
            continue
        if found and all(outer == inner * count for outer, inner in zip(found[-1][1], strides)):
            found[-1] = found[-1][0] * count, strides
        else:
            found.append((count, strides))
    return found


def _joined(factors: Sequence[Factor]) -> list[Factor]:
    return [(count, strides[0])
            for count, strides in joined_factors([(c, (s,)) for c, s in factors])]


def _stride_at(axis: Axis, inner: int) -> int:
    """How far apart the numbers `inner` apart are."""
    below = 1
    for count, stride in reversed(axis):
        if below <= inner < below * count:
            return stride * (inner // below)
        below *= count
    raise ValueError("the axis has no such number")


def _factors_of(axis: Axis, count: int, stride: int) -> list[Factor] | None:
    """Of an axis' numbers `count`, each `stride` after the one before, from the first one on."""
    below = 1
    found: list[Factor] = []
    for extent_, step in reversed(axis):
        if count > 1 and below <= stride < below * extent_:
            most = below * extent_ // stride
            here = min(count, most)
            if stride % below or below * extent_ % stride or count % here:
                return None
            found.insert(0, (here, step * (stride // below)))
            count, stride = count // here, stride * here
        below *= extent_
    return found if count == 1 else None


def _cut(axis: Axis, begin: int, count: int, step: int) -> tuple[Axis, int] | None:
    if not axis:
        return (), 0
    (_, stride), inner = axis[0], axis[1:]
    size = extent(inner)
    if not inner:
        return (((count, stride * step),) if count != 1 else ()), begin * stride
    if count == 1 or begin // size == (begin + (count - 1) * step) // size:
        found = _cut(inner, begin % size, count, step)
        return None if found is None else (found[0], found[1] + begin // size * stride)
    if step != 1 or begin % size or count % size:
        return None
    return ((count // size, stride), *inner), begin // size * stride
