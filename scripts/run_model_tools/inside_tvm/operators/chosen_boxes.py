"""Non-maximum suppression on CPUs, as code: TVM 0.18 calls functions of its own runtime, which
graph executors elsewhere do not have.

What is suppressed is decided as ONNX Runtime's NonMaxSuppression does, number by number: whether
one box overlaps another by more than a threshold has to come out the same.
"""

from run_model_tools.inside_tvm.operators import own_operators

_OPERATOR = "suppressed_boxes"
_TOGETHER = 16
"""Kept boxes that one is compared with before it is asked whether one of these was enough."""

_STRIPE, _MOST_STRIPES = 64, 128
"""Kept boxes lie in stripes by their lower x, so that one is compared only with those of stripes
that reach it: detectors move each class's boxes to a place of its own and suppress all together.
As many stripes as bring this many boxes to each; looking at empty ones costs time too."""


@own_operators.once
def install(tvm):
    """Makes the operator known in this process."""
    from tvm import relay

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

    return own_operators.called(tvm, _OPERATOR, inputs, most=most, centers=centers)


def converters(known):
    """Of the nodes that NonMaxSuppression is repaired to."""
    def convert(inputs, attributes, parameters):
        return kept([inputs[i] for i in range(4)], int(attributes["most"]),
                    int(attributes["center_point_box"]))

    return {"SuppressedBoxes": convert}


def suppressed(tvm, order, boxes, counts, threshold, most, centers):
    """[batch, classes, most + 1]: the number of boxes that are kept, their places, and zeros.

    order: [batch, classes, any], places of boxes, the best first; counts: [batch, classes], how
    many of these there are; boxes: [batch, boxes, 4], two opposite corners or, with `centers`, (x,
    y, width, height); threshold: [1], of the intersection over the union.
    """
    tir, te = tvm.tir, tvm.te
    batch, classes, listed = (int(extent) for extent in order.shape)
    total = int(boxes.shape[1])

    def loops(ins, outs):
        ib = tir.ir_builder.create()
        places, corners, candidates, limit, out = map(ib.buffer_ptr, [*ins, *outs])
        each = batch * classes
        with ib.for_range(0, each, "each", kind="parallel" if each > 1 else "serial") as one:
            own = ib.allocate("float32", (5,), name="own", scope="local")
            kept = _Kept(tvm, ib, own, most, listed)
            # How many are kept, and have been looked at.
            found, seen = (ib.allocate("int32", (1,), name=name, scope="local")
                           for name in ("found", "seen"))
            begin = one * (most + 1)
            with ib.for_range(0, most + 1, "i") as i:
                out[begin + i] = tir.const(0, "int64")
            many = ib.let("many", tir.max(tir.min(candidates[one], tir.const(listed, "int64")),
                                          tir.const(0, "int64")).astype("int32"))

            def take(candidate):
                """Loads a candidate's box; its place, and whether there is a box at it."""
                place = ib.let("place", places[one * listed + candidate])
                inside = tir.all(place >= 0, place < total)
                with ib.if_scope(inside):
                    at = (tir.indexdiv(one, classes) * total + place.astype("int32")) * 4
                    _corners(tir, own, [corners[at + i] for i in range(4)], centers)
                return place, inside

            def each_candidate(do):
                with ib.for_range(0, many, "candidate") as candidate:
                    _, inside = take(candidate)
                    with ib.if_scope(inside):
                        do()

            kept.prepare(each_candidate)
            found[0], seen[0] = 0, 0
            with ib.while_loop(tir.all(seen[0] < many, found[0] < most)):
                place, inside = take(seen[0])
                with ib.if_scope(inside):
                    with ib.if_scope(kept.none_overlaps(limit[0])):
                        kept.add()
                        out[begin + 1 + found[0]] = place
                        found[0] = found[0] + 1
                seen[0] = seen[0] + 1
            out[begin] = found[0].astype("int64")
        return ib.get()

    out = tir.decl_buffer((batch, classes, most + 1), "int64", "kept")
    return te.extern([out.shape], [order, boxes, counts, threshold], loops, out_buffers=[out],
                     dtype="int64", name=_OPERATOR, tag=_OPERATOR)


class _Kept:
    """Boxes that are kept, in stripes of equal width by their lower x: what a box is compared with.

    Its methods emit code, on the box (lower and higher x and y, area) that `own` holds.  A number
    is never in a later stripe than a larger one; those that are not finite are in any, for their
    boxes overlap none.
    """

    def __init__(self, tvm, ib, own, most, listed):
        """At most `most` boxes, of `listed` candidates."""
        self._tir, self._ib, self._own, self._most = tvm.tir, ib, own, most
        self._stripes = stripes = min(max(1, min(most, listed) // _STRIPE), _MOST_STRIPES)
        room = min(listed, stripes * most) + stripes * _TOGETHER
        self._boxes = [ib.allocate("float32", (room,), name=name, scope="global")
                       for name in ("low_x", "low_y", "high_x", "high_y", "area")]
        # Where a stripe's boxes begin among these, how many there are, and how far they reach.
        self._first, self._filled = (ib.allocate("int32", (stripes,), name=name, scope="local")
                                     for name in ("first", "filled"))
        self._reach = ib.allocate("float32", (stripes,), name="reach", scope="local")
        self._least, self._largest, self._scale = (
            ib.allocate("float32", (1,), name=name, scope="local")
            for name in ("least", "largest", "scale"))
        # With how many of a stripe the box has been compared, and how many of these overlap it.
        # (What a condition says of a variable, TVM takes for true as long as that goes on, so that
        # sums are formed, no minima.)
        self._against, self._hits, self._end = (
            ib.allocate("int32", (1,), name=name, scope="local")
            for name in ("against", "hits", "end"))

    def prepare(self, each):
        """Makes room in each stripe for the candidates in it; each(do): does do() for each box."""
        tir, ib = self._tir, self._ib
        zero = tir.const(0, "float32")
        self._least[0], self._largest[0] = tir.max_value("float32"), tir.min_value("float32")

        def widen():
            low = self._own[0]
            self._least[0] = tir.Select(low < self._least[0], low, self._least[0])
            self._largest[0] = tir.Select(low > self._largest[0], low, self._largest[0])

        each(widen)
        span = self._largest[0] - self._least[0]
        self._scale[0] = tir.Select(span > zero, tir.const(self._stripes, "float32") / span, zero)
        with ib.for_range(0, self._stripes, "i") as i:
            self._filled[i] = 0
            self._reach[i] = tir.min_value("float32")

        def count():
            stripe = ib.let("stripe", self._stripe(self._own[0]))
            self._filled[stripe] = self._filled[stripe] + 1

        each(count)
        self._end[0] = 0
        with ib.for_range(0, self._stripes, "i") as i:
            self._first[i] = self._end[0]
            self._end[0] = self._end[0] + tir.indexdiv(
                tir.min(self._filled[i], self._most) + _TOGETHER - 1, _TOGETHER) * _TOGETHER
            self._filled[i] = 0

    def none_overlaps(self, limit):
        """Whether no box overlaps the own one by more than the limit."""
        tir, ib, own, hits, against = self._tir, self._ib, self._own, self._hits, self._against
        hits[0] = 0
        with ib.for_range(0, self._stripe(own[2]) + 1, "stripe") as stripe:
            against[0] = 0
            with ib.if_scope(self._reach[stripe] > own[0]):
                with ib.while_loop(tir.all(hits[0] < 1, against[0] < self._filled[stripe])):
                    group = ib.let("group", self._first[stripe] + against[0])
                    with ib.for_range(0, _TOGETHER, "i") as i:
                        other = [part[group + i] for part in self._boxes]
                        hits[0] = hits[0] + tir.Select(
                            _overlap(tir, [own[j] for j in range(5)], other, limit), 1, 0)
                    against[0] = against[0] + _TOGETHER
        return hits[0] < 1

    def add(self):
        """Keeps the own box."""
        tir, ib, own, filled = self._tir, self._ib, self._own, self._filled
        stripe = ib.let("stripe", self._stripe(own[0]))
        end = ib.let("end", self._first[stripe] + filled[stripe])
        with ib.if_scope(tir.indexmod(filled[stripe], _TOGETHER) < 1):
            with ib.for_range(0, _TOGETHER, "i") as i:
                for part in self._boxes:
                    part[end + i] = tir.const(0, "float32")
        for part, number in zip(self._boxes, range(5)):
            part[end] = own[number]
        filled[stripe] = filled[stripe] + 1
        reach = self._reach[stripe]
        self._reach[stripe] = tir.Select(own[2] > reach, own[2], reach)

    def _stripe(self, number):
        tir = self._tir
        at = (number - self._least[0]) * self._scale[0]
        zero, last = tir.const(0, "float32"), tir.const(self._stripes - 1, "float32")
        return tir.Select(at > zero, tir.Select(at < last, at, last), zero).astype("int32")


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
