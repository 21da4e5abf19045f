"""What works on each number alone, as expressions of blocked tensors."""

from __future__ import annotations

import numpy as np

from run_model_tools.kernels.pictures.elementwise import Elementwise, Gather, Source
from run_model_tools.kernels.plan import ElementwiseStep, GatherStep
from run_model_tools.kernels.programs.expressions import Builder, Operand
from run_model_tools.kernels.relay import nodes as relay
from run_model_tools.kernels.relay.arithmetic import apply, is_elementwise, region_before
from run_model_tools.kernels.relay.graph import post_order, shape_of, users_of
from run_model_tools.kernels.relay.readers.network import Network, Value
from run_model_tools.kernels.tensors import Blocked, Tensor, lie_alike, plain

_MOST_INPUTS = 8


def find_regions(body: relay.Expr, taken: set[relay.Expr]) -> dict[relay.Expr, list[relay.Call]]:
    """By the last of them: operators on single numbers of which only the last is read by others.

    Those in `taken` are part of something else.
    """
    order = post_order(body)
    users, rank = users_of(order), {expr: index for index, expr in enumerate(order)}
    taken, found = set(taken), {}
    for expr in reversed(order):
        if expr not in taken and is_elementwise(expr):
            region = region_before(expr, users, rank, taken)
            taken.update(region)
            found[expr] = region
    return found


def read_region(net: Network, region: list[relay.Call]) -> Value:
    """The value of a region's last operator; None if no input of its is in blocks."""
    shape = shape_of(region[-1])
    builder = Builder()
    leaves: list[relay.Expr] = []
    known: dict[relay.Expr, Operand] = {}

    def operand_of(argument: relay.Expr) -> Operand:
        if argument not in known:
            known[argument] = Operand(input=len(leaves))
            leaves.append(argument)
        return known[argument]
    for call in region:
        known[call] = apply(builder, call, operand_of)
    values = [net.values[leaf] for leaf in leaves]
    whole = [value for value, leaf in zip(values, leaves)
             if isinstance(value, Blocked) and shape_of(leaf) == shape]
    if not whole or len(leaves) > _MOST_INPUTS or any(
            isinstance(value, relay.Constant) or _kind(shape_of(leaf), shape) is None
            or str(leaf.checked_type.dtype) != "float32" for value, leaf in zip(values, leaves)):
        return None
    like = _Arrangement(whole[0])
    tensors: list[Tensor] = []
    sources = [_source(net, like, value, _kind(shape_of(leaf), shape), tensors)
               for value, leaf in zip(values, leaves)]
    expression = builder.finish(known[region[-1]], len(leaves))
    work = Elementwise(
        expression.placed(like.places, like.blocks * like.lanes), tuple(sources),
        tuple(tensor.shape for tensor in tensors), like.channels(), whole[0].size)
    output = Tensor((shape[0], like.blocks, *whole[0].size, like.lanes))
    net.plan.steps.append(ElementwiseStep(tensors, output, work))
    return like.blocked(output)


def arranged(net: Network, value: Blocked, like: Blocked) -> Blocked:
    """The value with its channels where those of `like` are in their one tensor."""
    if lie_alike(value, like):
        return value
    blocks = like.tensors[0].shape[1]
    gather = Gather(tuple(t.shape for t in value.tensors), value.places, like.places[:, 1], blocks)
    output = Tensor((value.batch, blocks, *value.size, value.lanes))
    net.plan.steps.append(GatherStep(list(value.tensors), output, gather))
    return Blocked((output,), like.places)


def apart(net: Network, value: Blocked) -> Blocked | None:
    """The value with a place of its own for each channel, or None of whole numbers.  Where a tensor
    is concatenated with itself two channels have one place, and constants of one would be those of
    the other."""
    if len(np.unique(value.places, axis=0)) == value.channels:
        return value
    if not value.is_float:
        return None
    blocks = -(-value.channels // value.lanes)
    output = Tensor((value.batch, blocks, *value.size, value.lanes))
    return arranged(net, value, plain(output, value.channels))


class _Arrangement:
    """Where channels lie in an output that has the blocks of one of its inputs."""

    def __init__(self, like: Blocked):
        self.lanes, pieces = like.lanes, like.whole_blocks()
        self.places, self.blocks = pieces[1], len(pieces[0])

    def channels(self) -> tuple[int, ...]:
        """Of each lane the channel in it, or -1."""
        result = np.full(self.blocks * self.lanes, -1)
        result[self.places] = np.arange(len(self.places))
        return tuple(result.tolist())

    def blocked(self, output: Tensor) -> Blocked:
        return Blocked((output,), np.stack([np.zeros_like(self.places), self.places], 1))

    def blocks_of(self, value: Blocked) -> list[tuple[int, int]] | None:
        """(tensor, block) that hold the channels of each output block in the same lanes, or
        None."""
        found: list[tuple[int, int] | None] = [None] * self.blocks
        for place, (tensor, channel) in zip(self.places.tolist(), value.places.tolist()):
            block, lane = divmod(place, self.lanes)
            here = (tensor, channel // self.lanes)
            if channel % self.lanes != lane or found[block] not in (None, here):
                return None
            found[block] = here
        return [here for here in found if here is not None]


def _kind(shape: tuple[int, ...], whole: tuple[int, ...]) -> str | None:
    """Source.kind of an input of this shape, or None where there is none."""
    if shape == whole:
        return "blocks"
    if len(shape) == 4 and shape[:2] == whole[:2] and shape[2:] == (1, 1):
        return "vector"
    return "plane" if shape == (whole[0], 1, *whole[2:]) else None


def _source(net: Network, like: _Arrangement, value: Value, kind: str | None,
            tensors: list[Tensor]) -> Source:
    """The source of an input; adds the tensors that it reads to `tensors`."""
    def index(tensor: Tensor) -> int:
        if tensor not in tensors:
            tensors.append(tensor)
        return tensors.index(tensor)
    if kind == "blocks":
        blocked = net.blocked(value)
        assert blocked is not None
        blocks = like.blocks_of(blocked)
        if blocks is None:
            # Any output with these blocks will do to be like.
            target = like.blocked(Tensor((blocked.batch, like.blocks, *blocked.size, like.lanes)))
            blocked = arranged(net, blocked, target)
            blocks = [(0, block) for block in range(like.blocks)]
        return Source("blocks", tuple(index(blocked.tensors[tensor]) for tensor, _ in blocks),
                      tuple(block for _, block in blocks))
    if kind == "plane" and isinstance(value, Blocked) and value.is_plain:
        tensor = value.tensors[0]
    else:
        tensor = net.plain(value)
    assert kind is not None
    return Source(kind, (index(tensor),) * like.blocks, (0,) * like.blocks)
