"""TopK and non-maximum suppression on CPUs, as code: TVM 0.18 calls functions of its own runtime,
which graph executors elsewhere do not have.

What is suppressed is decided as ONNX Runtime's NonMaxSuppression does, number by number: whether
one box overlaps another by more than a threshold has to come out the same.
"""

import math

from run_model_tools.inside_tvm.operators import own_operators
from run_model_tools.inside_tvm.operators.onnx_converters import exchanged
from run_model_tools.inside_tvm.operators.scatter_and_scan import compute_by

_OPERATOR = "suppressed_boxes"
_TOGETHER = 16
"""Kept boxes that one is compared with before it is asked whether one of these was enough."""


@own_operators.once
def install(tvm):
    """Lets Relay's operators be computed so in this process."""
    from tvm import relay, topi

    def sorted_(attrs, inputs, out_type):
        rank = len(inputs[0].shape)
        if attrs.k is None or int(attrs.axis) % rank != rank - 1:
            return topi.topk(inputs[0], attrs.k, attrs.axis, attrs.ret_type, attrs.is_ascend,
                             attrs.dtype)
        found = top_k(tvm, inputs[0], int(attrs.k), bool(attrs.is_ascend), str(attrs.dtype))
        return {"both": found, "values": found[:1], "indices": found[1:]}[str(attrs.ret_type)]

    compute_by(tvm, "topk", sorted_)

    def type_of(arguments, attributes):
        batch, classes, _ = arguments[0].shape
        return relay.TensorType((batch, classes, int(attributes["most"]) + 1), "int64")

    def compute(attributes, inputs):
        return suppressed(tvm, *inputs, most=int(attributes["most"]),
                          centers=bool(attributes["centers"]))

    own_operators.register(
        tvm, _OPERATOR, "Boxes that no better one overlaps.",
        ("order", "boxes", "counts", "threshold"), type_of, compute,
        "whether a box is kept depends on those before it")


def kept(inputs, most, centers):
    """A call of the operator that suppressed() computes, of its first four arguments."""
    import tvm

    install(tvm)
    return own_operators.called(tvm, _OPERATOR, inputs, most=most, centers=centers)


def converters():
    """While it is open, Relay's from_onnx takes the nodes that NonMaxSuppression is repaired to,
    and TopK of the least too."""
    import tvm
    from tvm.relay.frontend import onnx as importer

    def convert(inputs, attributes, parameters):
        return kept([inputs[i] for i in range(4)], int(attributes["most"]),
                    int(attributes["center_point_box"]))

    def sort(inputs, attributes, parameters):
        (k,) = importer.infer_value(inputs[1], parameters).numpy().tolist()
        return tvm.relay.topk(inputs[0], k, int(attributes["axis"]), "both",
                              not int(attributes.get("largest", 1)), "int64")

    return exchanged(importer, lambda known: {**known, "SuppressedBoxes": convert, "TopK": sort})


def top_k(tvm, data, k, ascending, index_type):
    """(values, places) of the k first in each row (the last axis) once it is sorted; of equal ones
    those that come first.  A NaN is as large as infinity.

    A heap has the k best so far, the worst of them in front: most of the others are worse than that
    and cost one comparison.
    """
    tir, te = tvm.tir, tvm.te
    shape = [int(extent) for extent in data.shape]
    count, rows = shape[-1], math.prod(shape[:-1])

    def loops(ins, outs):
        ib = tir.ir_builder.create()
        source, values, places = map(ib.buffer_ptr, [*ins, *outs])
        with ib.for_range(0, rows, "row", kind="parallel" if rows > 1 else "serial") as row:
            keys = ib.allocate(data.dtype, (k,), name="keys", scope="global")
            which = ib.allocate("int32", (k,), name="which", scope="global")
            at = ib.allocate("int32", (1,), name="at", scope="local")
            child = ib.allocate("int32", (1,), name="child", scope="local")

            def number(i):
                key = source[row * count + i]
                if not data.dtype.startswith("float"):
                    return key
                return tir.Select(tir.isnan(key), tir.infinity(data.dtype), key)

            def is_worse(key, index, other, other_index):
                less = key > other if ascending else key < other
                return tir.any(less, tir.all(tir.EQ(key, other), index > other_index))

            def put_down(key, index, begin, size):
                """Puts a number into the heap's places from `begin` on, where it belongs."""
                at[0] = begin
                child[0] = 2 * at[0] + 1
                with ib.while_loop(child[0] < size):
                    after = child[0] + 1
                    last = tir.min(after, size - 1)
                    with ib.if_scope(tir.all(after < size, is_worse(
                            keys[last], which[last], keys[child[0]], which[child[0]]))):
                        child[0] = after
                    with ib.if_scope(is_worse(keys[child[0]], which[child[0]], key, index)):
                        keys[at[0]] = keys[child[0]]
                        which[at[0]] = which[child[0]]
                        at[0] = child[0]
                        child[0] = 2 * at[0] + 1
                    with ib.else_scope():
                        child[0] = size
                keys[at[0]] = key
                which[at[0]] = index

            with ib.for_range(0, k, "i") as i:
                keys[i] = number(i)
                which[i] = i
            with ib.for_range(0, k // 2, "before") as before:
                begin = k // 2 - 1 - before
                put_down(ib.let("key", keys[begin]), ib.let("index", which[begin]), begin, k)
            with ib.for_range(0, count - k, "rest") as rest:
                i = k + rest
                key = ib.let("key", number(i))
                with ib.if_scope(key < keys[0] if ascending else key > keys[0]):
                    put_down(key, i, 0, k)
            with ib.for_range(0, k, "done") as done:
                end = k - 1 - done
                values[row * k + end] = keys[0]
                places[row * k + end] = which[0].astype(index_type)
                put_down(ib.let("key", keys[end]), ib.let("index", which[end]), 0, end)
        return ib.get()

    outs = [tir.decl_buffer((*shape[:-1], k), dtype, name)
            for dtype, name in ((data.dtype, "values"), (index_type, "places"))]
    made = te.extern([out.shape for out in outs], [data], loops, out_buffers=outs,
                     dtype=[data.dtype, index_type], name="top_k", tag="top_k")
    return list(made)


def suppressed(tvm, order, boxes, counts, threshold, most, centers):
    """[batch, classes, most + 1]: the number of boxes that are kept, their places, and zeros.

    order: [batch, classes, any], places of boxes, the best first; counts: [batch, classes], how
    many of these there are; boxes: [batch, boxes, 4], two opposite corners or, with `centers`, (x,
    y, width, height); threshold: [1], of the intersection over the union.
    """
    tir, te = tvm.tir, tvm.te
    batch, classes, listed = (int(extent) for extent in order.shape)
    total = int(boxes.shape[1])
    room = -(-most // _TOGETHER) * _TOGETHER

    def loops(ins, outs):
        ib = tir.ir_builder.create()
        places, corners, candidates, limit, out = map(ib.buffer_ptr, [*ins, *outs])
        each = batch * classes
        with ib.for_range(0, each, "each", kind="parallel" if each > 1 else "serial") as one:
            kept = [ib.allocate("float32", (room,), name=name, scope="global")
                    for name in ("low_x", "low_y", "high_x", "high_y", "area")]
            own = ib.allocate("float32", (5,), name="own", scope="local")
            # How many are kept, and have been looked at; with how many of the former one has been
            # compared, and how many of these overlap it.  (What a condition says of a variable, TVM
            # takes for true as long as that goes on, so that sums are formed, no minima.)
            found, seen, against, hits = (
                ib.allocate("int32", (1,), name=name, scope="local")
                for name in ("found", "seen", "against", "hits"))
            begin = one * (most + 1)
            with ib.for_range(0, most + 1, "i") as i:
                out[begin + i] = tir.const(0, "int64")
            found[0], seen[0] = 0, 0
            many = ib.let("many", tir.min(candidates[one], tir.const(listed, "int64")))
            with ib.while_loop(tir.all(seen[0].astype("int64") < many, found[0] < most)):
                place = ib.let("place", places[one * listed + seen[0]])
                inside = tir.all(place >= 0, place < total)
                against[0], hits[0] = 0, 0
                with ib.if_scope(inside):
                    at = (tir.indexdiv(one, classes) * total + place.astype("int32")) * 4
                    _corners(tir, own, [corners[at + i] for i in range(4)], centers)
                    with ib.while_loop(tir.all(hits[0] < 1, against[0] < found[0])):
                        with ib.for_range(0, _TOGETHER, "i") as i:
                            other = [part[against[0] + i] for part in kept]
                            hits[0] = hits[0] + tir.Select(
                                _overlap(tir, [own[j] for j in range(5)], other, limit[0]), 1, 0)
                        against[0] = against[0] + _TOGETHER
                with ib.if_scope(tir.all(inside, hits[0] < 1)):
                    with ib.if_scope(tir.indexmod(found[0], _TOGETHER) < 1):
                        with ib.for_range(0, _TOGETHER, "i") as i:
                            for part in kept:
                                part[found[0] + i] = tir.const(0, "float32")
                    for part, number in zip(kept, range(5)):
                        part[found[0]] = own[number]
                    out[begin + 1 + found[0]] = place
                    found[0] = found[0] + 1
                seen[0] = seen[0] + 1
            out[begin] = found[0].astype("int64")
        return ib.get()

    out = tir.decl_buffer((batch, classes, most + 1), "int64", "kept")
    return te.extern([out.shape], [order, boxes, counts, threshold], loops, out_buffers=[out],
                     dtype="int64", name=_OPERATOR, tag=_OPERATOR)


def _corners(tir, own, numbers, centers):
    """Stores the lower and higher x and y, and the area."""
    if centers:
        x, y, width, height = numbers
        half = tir.const(2, "float32")
        sides = [(x - width / half, x + width / half), (y - height / half, y + height / half)]
    else:
        sides = [(tir.min(a, b), tir.max(a, b))
                 for a, b in ((numbers[1], numbers[3]), (numbers[0], numbers[2]))]
    for axis, (low, high) in enumerate(sides):
        own[axis], own[axis + 2] = low, high
    own[4] = (own[2] - own[0]) * (own[3] - own[1])


def _overlap(tir, one, other, limit):
    """Whether two boxes intersect by more than the limit."""
    width = tir.min(one[2], other[2]) - tir.max(one[0], other[0])
    height = tir.min(one[3], other[3]) - tir.max(one[1], other[1])
    nothing = tir.const(0, "float32")
    common = width * height
    both = one[4] + other[4] - common
    return tir.all(width > nothing, height > nothing, common > nothing, one[4] > nothing,
                   other[4] > nothing, both > nothing, common / both > limit)
