"""Where the largest element of each resized plane is, of planes that are resized to sizes that are
computed: a plane may be as large as a picture, so none is ever held.

Elements are computed as ONNX Runtime's Resize does it, along rows first, so that the same one of
those that are nearly equal is the largest.
"""

from run_model_tools.inside_tvm.operators import own_operators

_OPERATOR = "largest_of_resized"
_COLUMNS = 64
"""Of a resized plane, which are computed together: the planes' rows resized to them stay in the
nearest cache."""
_MOST = 1 << 24
"""Rows and columns of a resized plane."""


@own_operators.once
def install(tvm):
    """Lets Relay's operator be computed so in this process."""

    def type_of(arguments, attributes):
        return tvm.relay.TensorType(arguments[2].shape[:2], "int64")

    def compute(attributes, inputs):
        return largest(tvm, *inputs, cubic=float(attributes["a"]) if attributes["cubic"] else None,
                       single_first=bool(attributes["single_first"]))

    own_operators.register(
        tvm, _OPERATOR, "Places of the largest elements of resized planes.",
        ("heights", "widths", "planes"), type_of, compute,
        "how many elements a plane has is computed")


def converters(known):
    """Of the nodes that an ArgMax of resized planes is repaired to."""
    import tvm

    def convert(inputs, attributes, parameters):
        return own_operators.called(
            tvm, _OPERATOR, [inputs[i] for i in range(3)], cubic=int(attributes["cubic"]),
            a=float(attributes["cubic_coeff_a"]), single_first=int(attributes["single_first"]))

    return {"LargestOfResized": convert}


class _Taps:
    """Of which elements of a line those of the resized line are sums, `lanes` of them at once."""

    def __init__(self, tir, ib, name, extent, lanes, cubic, single_first):
        self.tir, self.ib, self.extent, self.lanes = tir, ib, extent, lanes
        self.cubic, self.single_first = cubic, single_first
        self.count = 2 if cubic is None else 4
        self.places, self.shares = (
            ib.allocate(dtype, (self.count * lanes,), name=kind + name,
                        scope="local" if lanes == 1 else "global")
            for kind, dtype in (("place_", "int32"), ("share_", "float32")))

    def find(self, at, size, lane):
        """Those of the element at a place of the line, whose resized size is given."""
        tir, ib = self.tir, self.ib
        half = _number(tir, 0.5)
        position = (at.astype("float32") + half) / (
            size.astype("float32") / _number(tir, self.extent)) - half
        if self.single_first:
            position = tir.Select(size < 2, _number(tir, 0), position)
        position = ib.let("position", position)
        first = ib.let("first", tir.floor(position))
        share = ib.let("share", position - first)
        for i, weight in enumerate(_weights(tir, share, self.cubic)):
            place = first.astype("int32") + (i - self.count // 2 + 1)
            self.places[i * self.lanes + lane] = tir.max(tir.min(place, self.extent - 1), 0)
            self.shares[i * self.lanes + lane] = weight

    def sum(self, lane, element):
        """`element`: gives that at a place of the line."""
        total = _number(self.tir, 0)
        for i in range(self.count):
            at = i * self.lanes + lane
            total = total + self.shares[at] * element(self.places[at])
        return total


def _number(tir, value):
    return tir.const(value, "float32")


def _weights(tir, share, cubic):
    """Of the elements around a place that lies so far behind the last one before it."""
    one = _number(tir, 1)
    if cubic is None:
        return [one - share, share]

    def near(d):
        return (_number(tir, cubic + 2) * d - _number(tir, cubic + 3)) * d * d + one

    def far(d):
        return ((_number(tir, cubic) * d - _number(tir, 5 * cubic)) * d
                + _number(tir, 8 * cubic)) * d - _number(tir, 4 * cubic)

    return [far(share + one), near(share), near(one - share), far(_number(tir, 2) - share)]


def largest(tvm, heights, widths, planes, cubic, single_first):
    """[count, each]: where the largest element is, counted row by row, the first of equal ones.

    heights, widths: [count, 1] whole numbers, the sizes that planes [count, each, rows, columns]
    are resized to; of nothing the place is 0.  cubic: the coefficient of cubic interpolation, None
    for a linear one.  single_first: what is resized to one element is resized to the first.
    """
    tir, te = tvm.tir, tvm.te
    count, each, rows, columns = (int(extent) for extent in planes.shape)

    def loops(ins, outs):
        ib = tir.ir_builder.create()
        high, wide, source, out = map(ib.buffer_ptr, [*ins, *outs])
        none, most = (tir.const(extent, "int64") for extent in (0, _MOST))

        def size_of(name, extents, plane):
            extent = extents[tir.indexdiv(plane, each)]
            return ib.let(name, tir.max(tir.min(extent, most), none).astype("int32"))

        with ib.for_range(0, count * each, "plane", kind="parallel") as plane:
            across = _Taps(tir, ib, "x", columns, _COLUMNS, cubic, single_first)
            down = _Taps(tir, ib, "y", rows, 1, cubic, single_first)
            lines = ib.allocate("float32", (rows * _COLUMNS,), name="lines", scope="global")
            line = ib.allocate("float32", (_COLUMNS,), name="line", scope="global")
            best = ib.allocate("float32", (1,), name="best", scope="local")
            where = ib.allocate("int64", (1,), name="where", scope="local")
            best[0], where[0] = tir.min_value("float32"), none
            height, width = size_of("height", high, plane), size_of("width", wide, plane)
            with ib.for_range(0, tir.indexdiv(width + (_COLUMNS - 1), _COLUMNS), "block") as block:
                left = block * _COLUMNS
                with ib.for_range(0, _COLUMNS, "lane") as lane:
                    across.find(left + lane, width, lane)
                with ib.for_range(0, rows, "row") as row:
                    begin = plane * (rows * columns) + row * columns
                    with ib.for_range(0, _COLUMNS, "lane") as lane:
                        lines[row * _COLUMNS + lane] = across.sum(
                            lane, lambda place, begin=begin: source[begin + place])
                with ib.for_range(0, height, "y") as y:
                    down.find(y, height, 0)
                    with ib.for_range(0, _COLUMNS, "lane") as lane:
                        line[lane] = down.sum(
                            0, lambda place, lane=lane: lines[place * _COLUMNS + lane])
                    with ib.for_range(0, tir.min(width - left, _COLUMNS), "lane") as lane:
                        place = (y.astype("int64") * width.astype("int64")
                                 + (left + lane).astype("int64"))
                        with ib.if_scope(tir.any(line[lane] > best[0], tir.all(
                                tir.EQ(line[lane], best[0]), place < where[0]))):
                            best[0] = line[lane]
                            where[0] = place
            out[plane] = where[0]
        return ib.get()

    out = tir.decl_buffer((count, each), "int64", "places")
    return te.extern([out.shape], [heights, widths, planes], loops, out_buffers=[out],
                     dtype="int64", name=_OPERATOR, tag=_OPERATOR)
