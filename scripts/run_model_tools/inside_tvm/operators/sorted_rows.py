"""TopK on CPUs, as code: TVM 0.18 calls functions of its own runtime, which graph executors
elsewhere do not have.

A few of many are found by a heap, whose loop passes over most of the others with one comparison;
otherwise the whole row is sorted by its numbers' bytes, a time that does not depend on the numbers.
"""

import math

from run_model_tools.inside_tvm.operators import own_operators
from run_model_tools.inside_tvm.operators.scatter_and_scan import compute_by

_STEP, _NUMBER, _TABLE = 11, 19, 1500
"""Nanoseconds on a Zen 1: a step down a heap; a number that is sorted by its bytes; their counts,
cleared and summed."""
_BYTES = 4
"""Of a number that is sorted by its bytes."""


@own_operators.once
def install(tvm):
    """Lets Relay's topk be computed so in this process."""
    from tvm import topi

    def sorted_(attrs, inputs, out_type):
        rank = len(inputs[0].shape)
        if attrs.k is None or int(attrs.axis) % rank != rank - 1:
            return topi.topk(inputs[0], attrs.k, attrs.axis, attrs.ret_type, attrs.is_ascend,
                             attrs.dtype)
        found = top_k(tvm, inputs[0], int(attrs.k), bool(attrs.is_ascend), str(attrs.dtype))
        return {"both": found, "values": found[:1], "indices": found[1:]}[str(attrs.ret_type)]

    compute_by(tvm, "topk", sorted_)


def converters(known):
    """Of TopK, of the least too."""
    import tvm
    from tvm.relay.frontend import onnx as importer

    def sort(inputs, attributes, parameters):
        (k,) = importer.infer_value(inputs[1], parameters).numpy().tolist()
        return tvm.relay.topk(inputs[0], k, int(attributes["axis"]), "both",
                              not int(attributes.get("largest", 1)), "int64")

    return {"TopK": sort}


def top_k(tvm, data, k, ascending, index_type):
    """(values, places) of the k first in each row (the last axis) once it is sorted; of equal ones
    those that come first.  A NaN is as large as infinity."""
    tir, te = tvm.tir, tvm.te
    shape = [int(extent) for extent in data.shape]
    count, rows = shape[-1], math.prod(shape[:-1])
    find = _by_bytes if _has_bytes(data.dtype) and _is_work_for_bytes(count, k) else _by_heap

    def loops(ins, outs):
        ib = tir.ir_builder.create()
        source, values, places = map(ib.buffer_ptr, [*ins, *outs])
        with ib.for_range(0, rows, "row", kind="parallel" if rows > 1 else "serial") as row:

            def put(rank, place):
                values[row * k + rank] = source[row * count + place]
                places[row * k + rank] = place.astype(index_type)

            def number(i):
                value = source[row * count + i]
                if not data.dtype.startswith("float"):
                    return value
                return tir.Select(tir.isnan(value), tir.infinity(data.dtype), value)

            find(tir, ib, number, put, (count, k), ascending)
        return ib.get()

    outs = [tir.decl_buffer((*shape[:-1], k), dtype, name)
            for dtype, name in ((data.dtype, "values"), (index_type, "places"))]
    made = te.extern([out.shape for out in outs], [data], loops, out_buffers=outs,
                     dtype=[data.dtype, index_type], name="top_k", tag="top_k")
    return list(made)


def _by_heap(tir, ib, number, put, counts, ascending):
    """A heap has the k best so far, the worst of them in front: most of the others are worse than
    that and cost one comparison.

    number(i): a row's i-th number, infinity for a NaN; put(rank, place): says that the number at
    `place` has the rank; counts: of the row's numbers, and of those that are asked for.
    """
    count, k = counts
    keys = ib.allocate(number(0).dtype, (k,), name="keys", scope="global")
    which = ib.allocate("int32", (k,), name="which", scope="global")
    at = ib.allocate("int32", (1,), name="at", scope="local")
    child = ib.allocate("int32", (1,), name="child", scope="local")

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
        put(end, which[0])
        put_down(ib.let("key", keys[end]), ib.let("index", which[end]), 0, end)


def _is_work_for_bytes(count, k):
    """Whether a heap takes longer: of random numbers k (1 + ln(count / k)) come into it, and k are
    taken out."""
    steps = k * math.log2(max(k, 2)) * (2 + math.log(count / k))
    return count + _STEP * steps > _TABLE + _NUMBER * count


def _has_bytes(dtype):
    return dtype in ("float16", "float32", "int8", "uint8", "int16", "int32", "bool")


def _by_bytes(tir, ib, number, put, counts, ascending):
    """All are sorted by their last byte, then by the one before, and so on; those whose bytes are
    equal stay in their order.  Arguments as _by_heap."""
    count, k = counts
    keys, which = ([ib.allocate(dtype, (count,), name=name + str(i), scope="global")
                    for i in range(2)] for dtype, name in (("uint32", "keys"), ("int32", "which")))
    # How many numbers have a byte, then where the next of them goes.
    ends = ib.allocate("int32", (_BYTES * 256,), name="ends", scope="global")
    total = ib.allocate("int32", (1,), name="total", scope="local")

    def entry(byte, key):
        return byte * 256 + ((key >> tir.const(8 * byte, "uint32"))
                             & tir.const(255, "uint32")).astype("int32")

    with ib.for_range(0, _BYTES * 256, "i") as i:
        ends[i] = 0
    with ib.for_range(0, count, "i") as i:
        key = ib.let("key", _ordered(tir, number(i), ascending))
        keys[0][i] = key
        which[0][i] = i
        for byte in range(_BYTES):
            at = ib.let("at", entry(byte, key))
            ends[at] = ends[at] + 1
    for byte in range(_BYTES):
        source, target = byte % 2, 1 - byte % 2
        total[0] = 0
        with ib.for_range(0, 256, "i") as i:
            many = ib.let("many", ends[byte * 256 + i])
            ends[byte * 256 + i] = total[0]
            total[0] = total[0] + many
        with ib.for_range(0, count, "i") as i:
            key = ib.let("key", keys[source][i])
            at = ib.let("at", entry(byte, key))
            end = ib.let("end", ends[at])
            keys[target][end] = key
            which[target][end] = which[source][i]
            ends[at] = end + 1
    with ib.for_range(0, k, "rank") as rank:
        put(rank, which[0][rank])


def _ordered(tir, number, ascending):
    """Whole numbers in the order in which these numbers are to come, equal ones for equal ones."""
    sign = tir.const(1 << 31, "uint32")
    if number.dtype.startswith("float"):
        zero, number = tir.const(0, "float32"), number.astype("float32")
        number = tir.Select(tir.EQ(number, zero), zero, number)  # -0 too.
        bits = tir.reinterpret("uint32", number)
        ordered = tir.Select(bits < sign, bits | sign, ~bits)
    else:
        ordered = number.astype("int32").astype("uint32") ^ sign
    return ordered if ascending else ~ordered
