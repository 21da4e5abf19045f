"""Where the largest element of each resized plane is, of planes that are resized to sizes that are
computed: a plane may be as large as a picture, so none is ever held.

Elements are computed as ONNX Runtime's Resize does it, along rows first, so that the same one of
those that are nearly equal is the largest.
"""

from run_model_tools.inside_tvm.operators import own_operators
from run_model_tools.inside_tvm.operators.onnx_converters import exchanged

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


def converters():
    """While it is open, Relay's from_onnx takes the nodes that an ArgMax of resized planes is
    repaired to."""
    import tvm
    from tvm.relay.frontend import onnx as importer

    def convert(inputs, attributes, parameters):
        install(tvm)
        return own_operators.called(
            tvm, _OPERATOR, [inputs[i] for i in range(3)], cubic=int(attributes["cubic"]),
            a=float(attributes["cubic_coeff_a"]), single_first=int(attributes["single_first"]))

    return exchanged(importer, lambda known: {**known, "LargestOfResized": convert})


def largest(tvm, heights, widths, planes, cubic, single_first):
    """[count, each]: where the largest element is, counted row by row, the first of equal ones.

    heights, widths: [count, 1] whole numbers, the sizes that planes [count, each, rows, columns]
    are resized to; of nothing the place is 0.  cubic: the coefficient of cubic interpolation, None
    for a linear one.  single_first: what is resized to one element is resized to the first.
    """
    tir, te = tvm.tir, tvm.te
    count, each, rows, columns = (int(extent) for extent in planes.shape)
    taps = 2 if cubic is None else 4

    def number(value):
        return tir.const(value, "float32")

    def weights(s):
        if cubic is None:
            return [number(1) - s, s]
        a = cubic

        def near(d):
            return (number(a + 2) * d - number(a + 3)) * d * d + number(1)

        def far(d):
            return ((number(a) * d - number(5 * a)) * d + number(8 * a)) * d - number(4 * a)

        return [far(s + number(1)), near(s), near(number(1) - s), far(number(2) - s)]

    def loops(ins, outs):
        ib = tir.ir_builder.create()
        high, wide, source, out = map(ib.buffer_ptr, [*ins, *outs])

        def store_taps(at, size, extent, places, shares, stride, lane):
            """Of which elements the one at a place of the resized line is a sum."""
            position = ((at.astype("float32") + number(0.5)) / (
                size.astype("float32") / number(extent)) - number(0.5))
            if single_first:
                position = tir.Select(size < 2, number(0), position)
            position = ib.let("position", position)
            first = ib.let("first", tir.floor(position))
            share = ib.let("share", position - first)
            for i, weight in enumerate(weights(share)):
                place = first.astype("int32") + (i - taps // 2 + 1)
                places[i * stride + lane] = tir.max(tir.min(place, extent - 1), 0)
                shares[i * stride + lane] = weight

        with ib.for_range(0, count * each, "plane", kind="parallel") as plane:
            across = [ib.allocate(dtype, (taps * _COLUMNS,), name=name, scope="global")
                      for dtype, name in (("int32", "place_x"), ("float32", "share_x"))]
            down = [ib.allocate(dtype, (taps,), name=name, scope="local")
                    for dtype, name in (("int32", "place_y"), ("float32", "share_y"))]
            lines = ib.allocate("float32", (rows * _COLUMNS,), name="lines", scope="global")
            line = ib.allocate("float32", (_COLUMNS,), name="line", scope="global")
            best = ib.allocate("float32", (1,), name="best", scope="local")
            where = ib.allocate("int64", (1,), name="where", scope="local")
            best[0], where[0] = tir.min_value("float32"), tir.const(0, "int64")
            height, width = (ib.let(name, tir.max(tir.min(
                extents[tir.indexdiv(plane, each)], tir.const(_MOST, "int64")),
                tir.const(0, "int64")).astype("int32")) for name, extents in (
                    ("height", high), ("width", wide)))
            begin = plane * (rows * columns)
            with ib.for_range(0, tir.indexdiv(width + (_COLUMNS - 1), _COLUMNS), "block") as block:
                left = block * _COLUMNS
                with ib.for_range(0, _COLUMNS, "lane") as lane:
                    store_taps(left + lane, width, columns, *across, _COLUMNS, lane)
                with ib.for_range(0, rows, "row") as row:
                    with ib.for_range(0, _COLUMNS, "lane") as lane:
                        total = number(0)
                        for i in range(taps):
                            at = i * _COLUMNS + lane
                            total = total + across[1][at] * source[
                                begin + row * columns + across[0][at]]
                        lines[row * _COLUMNS + lane] = total
                with ib.for_range(0, height, "y") as y:
                    store_taps(y, height, rows, *down, 1, 0)
                    with ib.for_range(0, _COLUMNS, "lane") as lane:
                        total = number(0)
                        for i in range(taps):
                            total = total + lines[down[0][i] * _COLUMNS + lane] * down[1][i]
                        line[lane] = total
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
