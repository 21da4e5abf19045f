"""Operators that only move elements, or tell of shapes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import TensorProto

from run_model_tools.onnx_repair.refusal import Refused, invalid
from run_model_tools.onnx_repair.rules import rule
from run_model_tools.onnx_repair.rules.elementwise import reshaped
from run_model_tools.onnx_repair.values import Chosen, Node, Value
from run_model_tools.onnx_repair.walk import Walk


@rule("Shape")
def shape(walk: Walk, node: Node) -> Value:
    x = node.tensor(0)
    return _extents(walk, x, list(x.shape)[node.attrs.get("start"):node.attrs.get("end")])


@rule("Size")
def size(walk: Walk, node: Node) -> Value:
    x = node.tensor(0)
    return _extents(walk, x, x.size)


def _extents(walk: Walk, x: Value, numbers: list[int] | int) -> Value:
    made = walk.graph.constant(numbers, np.int64)
    made.varies = walk.is_open and not x.is_constant
    return made


@rule("Reshape")
def reshape(walk: Walk, node: Node) -> Value:
    x = node.tensor(0)
    wanted = node.attrs.get("shape") if node.opset < 5 else node.ints(1, "the shape")
    assert wanted is not None
    extents = list(wanted)
    if not node.attrs.get("allowzero", 0):
        extents = [x.shape[i] if d == 0 and i < x.rank else d for i, d in enumerate(extents)]
    if -1 in extents:
        known = int(np.prod([d for d in extents if d != -1], dtype=np.int64))
        extents[extents.index(-1)] = x.size // known if known else 0
    if int(np.prod(extents, dtype=np.int64)) != x.size:
        raise Refused(f"it reshapes {list(x.shape)} to {list(wanted)}, which has another number of "
                      "elements", "if the network was exported for another batch or picture, "
                      "export it with dynamic axes, or give that shape with --shape.", "invalid")
    source = reshaped_from(walk, x)
    if source is not None and source.pictures is not None and source.shape == tuple(extents):
        return source
    if len(extents) == 2 and x.rank > 2 and extents[0] == x.shape[0]:
        return walk.graph.op("Flatten", x, axis=1)
    return reshaped(walk, x, tuple(extents))


def reshaped_from(walk: Walk, x: Value) -> Value | None:
    """What a value is a Reshape of."""
    maker = walk.graph.makers.get(x.name)
    if maker is None or maker.op_type != "Reshape" or walk.is_open:
        return None
    return walk.graph.values[maker.input[0]]


@rule("Flatten")
def flatten(walk: Walk, node: Node) -> Value:
    x = node.tensor(0)
    axis = node.attrs.get("axis", 1)
    axis += x.rank if axis < 0 else 0
    if axis == 1 and x.rank > 1:
        return walk.graph.op("Flatten", x, axis=1)
    before = int(np.prod(x.shape[:axis], dtype=np.int64))
    return reshaped(walk, x, (before, x.size // before if before else 0))


@rule("Squeeze")
def squeeze(walk: Walk, node: Node) -> Value:
    x = node.tensor(0)
    axes = node.axes()
    gone = {a % x.rank for a in axes} if axes is not None else {
        i for i, d in enumerate(x.shape) if d == 1}
    if any(x.shape[i] != 1 for i in gone):
        raise Refused(f"it squeezes axes {sorted(gone)} of {list(x.shape)}, which are not all 1",
                      "look at the shapes given with --shape.", "invalid")
    if not gone:
        return x
    return walk.graph.op("Squeeze", x, np.array(sorted(gone), np.int64))


@rule("Unsqueeze")
def unsqueeze(walk: Walk, node: Node) -> Value:
    x = node.tensor(0)
    axes = node.axes() or []
    rank = x.rank + len(axes)
    if not axes:
        return x
    return walk.graph.op("Unsqueeze", x, np.array(sorted(a % rank for a in axes), np.int64))


@rule("Transpose")
def transpose(walk: Walk, node: Node) -> Value:
    x = node.tensor(0)
    perm = node.attrs.get("perm") or list(reversed(range(x.rank)))
    if sorted(p + x.rank if p < 0 else p for p in perm) != list(range(x.rank)):
        raise invalid(f"it orders axes as {perm}, and its input has {x.rank} of them")
    return transposed(walk, x, perm)


def transposed(walk: Walk, x: Value, perm: list[int]) -> Value:
    perm = [int(p) % x.rank for p in perm]
    if perm == list(range(x.rank)):
        return x
    return walk.graph.op("Transpose", x, perm=perm)


def pictures_of(walk: Walk, x: Value) -> Value:
    """(N, C, D, H, W) as (N * D, C, H, W)."""
    if x.pictures is None:
        batch, channels, depth, *size = x.shape
        if min(channels, depth) > 1:
            x.pictures = reshaped(walk, transposed(walk, x, [0, 2, 1, 3, 4]),
                                  (batch * depth, channels, *size))
        else:
            x.pictures = reshaped(walk, x, (batch * depth, channels, *size))
    return x.pictures


def volume_of(walk: Walk, pictures: Value, batch: int) -> Value:
    """The value (N, C, D, H, W) of pictures (N * D, C, H, W)."""
    count, channels, *size = pictures.shape
    depth = count // batch
    if min(channels, depth) > 1:
        made = transposed(walk, reshaped(walk, pictures, (batch, depth, channels, *size)),
                          [0, 2, 1, 3, 4])
    else:
        made = reshaped(walk, pictures, (batch, channels, depth, *size))
    if made is not pictures:
        made.pictures = pictures
    return made


@rule("Concat")
def concat(walk: Walk, node: Node) -> Value:
    values = node.tensors()
    axis = node.attrs.get("axis", 1) % max(values[0].rank, 1)
    return concatenated(walk, values, axis)


def concatenated(walk: Walk, values: list[Value], axis: int) -> Value:
    """One after the other along an axis, without those that are empty."""
    full = [v for v in values if v.size] or values[:1]
    return full[0] if len(full) == 1 else walk.graph.op("Concat", *full, axis=axis)


@rule("Split")
def split(walk: Walk, node: Node) -> Sequence[Value | Chosen]:
    from run_model_tools.onnx_repair.rules.chosen.among import parts_of_rows

    x = node.tensor(0)
    axis = node.attrs.get("axis", 0) % x.rank
    if not axis and (of_rows := parts_of_rows(walk, node, x)) is not None:
        return of_rows
    parts = node.attrs.get("split") or node.ints(1, "the sizes of the parts")
    if not parts:
        count = node.attrs.get("num_outputs", node.outputs)
        each = -(-x.shape[axis] // count)
        parts = [min(each, max(x.shape[axis] - each * i, 0)) for i in range(count)]
    return split_into(walk, x, axis, parts)


def split_into(walk: Walk, x: Value, axis: int, parts: list[int]) -> list[Value]:
    """Parts of the given extents along an axis."""
    if sum(parts) != x.shape[axis]:
        raise Refused(f"it splits {x.shape[axis]} into parts of {parts}",
                      "the model is not valid for these shapes: look at --shape.", "invalid")
    if len(parts) == 1:
        return [x]
    if 0 in parts:
        ends = np.cumsum(parts)
        return [walk.graph.op("Slice", x, np.array([e - p]), np.array([e]), np.array([axis]))
                for e, p in zip(ends, parts)]
    return walk.graph.ops("Split", [x, np.array(parts, np.int64)], len(parts), axis=axis)


@rule("Expand")
def expand(walk: Walk, node: Node) -> Value | Chosen:
    from run_model_tools.onnx_repair.rules.chosen.axes import repeated

    x = node.tensor(0)
    if node.tensor(1).array is None and (rows := repeated(walk, node)) is not None:
        return rows
    extents = node.ints(1, "the shape")
    assert extents is not None
    try:
        wanted = np.broadcast_shapes(x.shape, tuple(extents))
    except ValueError:
        raise invalid("its inputs do not fit together: "
                      f"{list(x.shape)} cannot be expanded to {extents}") from None
    return expanded(walk, x, wanted)


def expanded(walk: Walk, x: Value, extents: tuple[int, ...]) -> Value:
    if x.shape == tuple(extents):
        return x
    return walk.graph.op("Expand", x, np.array(extents, np.int64))


@rule("Tile")
def tile(walk: Walk, node: Node) -> Value:
    x = node.tensor(0)
    if node.opset < 6:
        repeats = [1] * x.rank
        repeats[(node.ints(2, "the axis") or [0])[0]] = (node.ints(1, "the repeats") or [1])[0]
    else:
        repeats = node.ints(1, "the repeats") or []
    if all(r == 1 for r in repeats):
        return x
    if not walk.is_open:
        return walk.graph.op("Tile", x, np.array(repeats, np.int64))
    # Of a Tile TVM's importer makes a loop with fixed extents.
    pairs = list(zip(repeats, x.shape, strict=True))
    apart = reshaped(walk, x, tuple(e for _, extent in pairs for e in (1, extent)))
    spread_out = expanded(walk, apart, tuple(e for pair in pairs for e in pair))
    return reshaped(walk, spread_out, tuple(count * extent for count, extent in pairs))


@rule("DepthToSpace")
def depth_to_space(walk: Walk, node: Node) -> Value:
    n, c, h, w = (x := node.tensor(0)).shape
    b = node.attrs["blocksize"]
    if node.attrs.get("mode", "DCR") == "DCR":
        parts, perm = (n, b, b, c // b // b, h, w), [0, 3, 4, 1, 5, 2]
    else:
        parts, perm = (n, c // b // b, b, b, h, w), [0, 1, 4, 2, 5, 3]
    moved = transposed(walk, reshaped(walk, x, parts), perm)
    return reshaped(walk, moved, (n, c // b // b, h * b, w * b))


@rule("SpaceToDepth")
def space_to_depth(walk: Walk, node: Node) -> Value:
    n, c, h, w = (x := node.tensor(0)).shape
    b = node.attrs["blocksize"]
    perm = [0, 3, 5, 1, 2, 4] if node.attrs.get("mode", "DCR") == "DCR" else [0, 1, 3, 5, 2, 4]
    moved = transposed(walk, reshaped(walk, x, (n, c, h // b, b, w // b, b)), perm)
    return reshaped(walk, moved, (n, c * b * b, h // b, w // b))


@rule("Trilu")
def trilu(walk: Walk, node: Node) -> Value:
    x = node.tensor(0)
    k = (node.ints(1, "the diagonal") or [0])[0]
    if walk.is_open and not x.is_constant:
        return _open_triangle(walk, x, node.attrs.get("upper", 1), k)
    mask = np.tri(x.shape[-2], x.shape[-1], k - 1 if node.attrs.get("upper", 1) else k,
                  dtype=np.bool_)
    mask = ~mask if node.attrs.get("upper", 1) else mask
    if x.elem_type == TensorProto.BOOL:
        return walk.graph.op("And", x, mask)
    return walk.graph.op("Where", walk.graph.constant(mask), x, walk.graph.like(0, x))


def _open_triangle(walk: Walk, x: Value, upper: int, k: int) -> Value:
    graph = walk.graph
    rows = graph.op("Unsqueeze", graph.counting(x.shape[-2]), np.array([1]))
    columns = graph.counting(x.shape[-1])
    mask = graph.op("GreaterOrEqual" if upper else "LessOrEqual", columns,
                    graph.op("Add", rows, k) if k else rows)
    if x.elem_type == TensorProto.BOOL:
        return graph.op("And", x, mask)
    return graph.op("Where", mask, x, graph.like(0, x))
