"""Activations of a plan: stored tensors, and channels that lie in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from run_model_tools.kernels.convolutions.convolution import Lanes


@dataclass(eq=False)
class Tensor:
    """One stored activation; two are the same only if they are the same object."""

    shape: tuple[int, ...]
    dtype: str = "float32"

    @property
    def shape_of_one(self) -> tuple[int, ...]:
        """For one picture of the batch."""
        return (1, *self.shape[1:])


@dataclass(frozen=True, eq=False)
class Blocked:
    """Channels of a picture, each anywhere in tensors of the layout
    [batch][blocks][H][W][lanes].

    Concatenating, splitting and shuffling channels makes another list of places and moves nothing.
    """

    tensors: tuple[Tensor, ...]
    places: np.ndarray
    """int (channels, 2): of each channel, its tensor (an index of `tensors`) and channel there.  In
    the values of a network no two are the same."""

    @property
    def channels(self) -> int:
        return len(self.places)

    @property
    def batch(self) -> int:
        """How many pictures."""
        return self.tensors[0].shape[0]

    @property
    def size(self) -> tuple[int, int]:
        """Height and width."""
        return self.tensors[0].shape[2], self.tensors[0].shape[3]

    @property
    def lanes(self) -> int:
        return self.tensors[0].shape[4]

    @property
    def is_float(self) -> bool:
        """Whether it holds what the kernels of float32 read; whole numbers are only moved."""
        return all(tensor.dtype == "float32" for tensor in self.tensors)

    @property
    def is_plain(self) -> bool:
        """Whether it is all of one tensor, in order (lanes past the last channel aside)."""
        tensor = self.tensors[0]
        return (len(self.tensors) == 1
                and np.array_equal(self.places[:, 1], np.arange(self.channels))
                and self.channels > (tensor.shape[1] - 1) * tensor.shape[4])

    def take(self, order: Sequence[int] | np.ndarray) -> Blocked:
        """Some of the channels, in another order; tensors that are not used any more go."""
        places = self.places[np.asarray(order)]
        used = sorted(set(places[:, 0]))
        renamed = {old: new for new, old in enumerate(used)}
        first = np.array([renamed[t] for t in places[:, 0]])
        return Blocked(tuple(self.tensors[t] for t in used), np.stack([first, places[:, 1]], 1))

    def storage_order(self) -> np.ndarray:
        """The channels' indices in the order in which they lie in memory."""
        return np.lexsort((self.places[:, 1], self.places[:, 0]))

    def pieces(self) -> tuple[Lanes, ...]:
        """The channels in their order as runs of lanes of a block."""
        result: list[Lanes] = []
        for tensor, channel in self.places.tolist():
            block, lane = divmod(channel, self.lanes)
            last = result[-1] if result else None
            if last and (last.tensor, last.block, last.first + last.count) == (tensor, block, lane):
                result[-1] = Lanes(tensor, block, last.first, last.count + 1)
            else:
                result.append(Lanes(tensor, block, lane, 1))
        return tuple(result)

    def whole_blocks(self) -> tuple[tuple[Lanes, ...], np.ndarray]:
        """For what treats each lane alone: (the blocks that hold channels, the channels' places).

        The places are those in an output that has just these blocks, in this order.
        """
        keys = sorted({(t, c // self.lanes) for t, c in self.places.tolist()})
        index = {key: i for i, key in enumerate(keys)}
        channels = np.array([index[t, c // self.lanes] * self.lanes + c % self.lanes
                             for t, c in self.places.tolist()])
        return tuple(Lanes(t, b, 0, self.lanes) for t, b in keys), channels


def plain(tensor: Tensor, channels: int) -> Blocked:
    """The first `channels` channels of one tensor."""
    return Blocked((tensor,), np.stack([np.zeros(channels, int), np.arange(channels)], 1))


def concatenate(values: Sequence[Blocked]) -> Blocked:
    """The channels of all values; they have one height and width."""
    tensors: list[Tensor] = []
    places = []
    for value in values:
        for tensor in value.tensors:
            if tensor not in tensors:
                tensors.append(tensor)
        index = np.array([tensors.index(t) for t in value.tensors])
        places.append(np.stack([index[value.places[:, 0]], value.places[:, 1]], 1))
    return Blocked(tuple(tensors), np.concatenate(places))


def lie_alike(a: Blocked, b: Blocked, broadcast: tuple[int, int] | None = None) -> bool:
    """Whether the channels have the same places in one tensor each.

    `broadcast`: a size that either may have beside that of the other.
    """
    if len(a.tensors) != 1 or len(b.tensors) != 1 or not np.array_equal(a.places, b.places):
        return False
    if a.tensors[0].shape[1] != b.tensors[0].shape[1]:
        return False
    return a.size == b.size or broadcast is not None and broadcast in (a.size, b.size)
