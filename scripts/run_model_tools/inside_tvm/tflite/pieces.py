"""SLICE, STRIDED_SLICE, SPLIT_V, CONCATENATION and DYNAMIC_UPDATE_SLICE of TensorFlow Lite.

Loops write row by row into a tensor by joining what lies before the row, the row and what lies
behind it.  What was joined is remembered, so that a part of it is the piece that it came from: of a
loop that is unrolled the rows are joined once, at its end.
"""

from tvm import relay

from run_model_tools.inside_tvm import Refusal
from run_model_tools.inside_tvm.tflite.operators import options_of


class Pieces:
    """What expressions were joined of."""

    def __init__(self):
        self._joined = {}
        """By expression: (axis, [(piece, extent along the axis)])."""

    def join(self, pieces, axis):
        """[(expression, extent)] one behind the other."""
        flat = []
        for piece, extent in pieces:
            known = self._joined.get(piece)
            flat += known[1] if known is not None and known[0] == axis else [(piece, extent)]
        if len(flat) == 1:
            return flat[0][0]
        made = relay.concatenate([piece for piece, _ in flat], axis)
        self._joined[made] = (axis, flat)
        return made

    def part(self, expr, shape, begin, end):
        """expr, which has the shape, from begin up to end; None where nothing lies there."""
        if any(first >= last for first, last in zip(begin, end)):
            return None
        cut = [axis for axis, extent in enumerate(shape)
               if (begin[axis], end[axis]) != (0, extent)]
        if not cut:
            return expr
        known = self._joined.get(expr)
        if known is None or cut != [known[0]]:
            return relay.strided_slice(expr, begin, end)
        axis, found, start = known[0], [], 0
        for piece, extent in known[1]:
            first, last = max(begin[axis] - start, 0), min(end[axis] - start, extent)
            if first < last:
                whole = (first, last) == (0, extent)
                found.append((piece if whole else relay.strided_slice(
                    piece, [first], [last], axes=[axis]), last - first))
            start += extent
        return self.join(found, axis)


def _slice(converter, op):
    data, first, size = (int(index) for index in op.InputsAsNumpy())
    begin, sizes = converter.known_numbers(first), converter.known_numbers(size)
    shape = converter.shape_of(data)
    end = [extent if count == -1 else start + count
           for start, count, extent in zip(begin, sizes, shape)]
    if any(not 0 <= start <= stop <= extent for start, stop, extent in zip(begin, end, shape)):
        raise Refusal("model", "it takes a part of the tensor %s that reaches out of it"
                      % converter.graph.tensors[data].name)
    converter.found_shapes[int(op.Outputs(0))] = [b - a for a, b in zip(begin, end)]
    part = converter.pieces.part(converter.value(data), shape, begin, end)
    return converter.value(data) if part is None else part


def _strided_slice(converter, op):
    """As Python slices, which the importer's own does not where strides are negative."""
    from tflite.StridedSliceOptions import StridedSliceOptions

    options, data = options_of(op, StridedSliceOptions), int(op.Inputs(0))
    shape = converter.shape_of(data)
    slices, extents = _slices(options, shape, *(converter.known_numbers(op.Inputs(number))
                                                for number in (1, 2, 3)))
    converter.found_shapes[int(op.Outputs(0))] = extents
    # Forwards first, then turned around.
    ranges = [range(*cut) if cut[2] > 0 else range(*cut)[::-1] for cut in slices]
    begin, end = ([found(r) for r in ranges] for found in (
        lambda r: r.start, lambda r: r[-1] + 1 if r else r.start))
    steps = [r.step if len(r) > 1 else 1 for r in ranges]
    whole = converter.value(data)
    if set(steps) == {1}:
        made = converter.pieces.part(whole, shape, begin, end)
    else:
        made = relay.strided_slice(whole, begin, end, steps) if all(ranges) else None
    if made is None:
        return whole
    for axis, (cut, taken) in enumerate(zip(slices, ranges)):
        if cut[2] < 0 and len(taken) > 1:
            made = relay.reverse(made, axis)
    lengths = [len(taken) for taken in ranges]
    return made if extents == lengths else relay.reshape(made, extents)


def _slices(options, shape, begin, end, strides):
    """(start, stop, step) of each axis, and the extents of what they give."""
    def masked(mask, number):
        return bool(mask >> number & 1)

    added = sum(masked(options.NewAxisMask(), number) for number in range(len(begin)))
    slices, extents = [], []
    for number, (first, last, step) in enumerate(zip(begin, end, strides)):
        if masked(options.EllipsisMask(), number):
            missing = len(shape) - (len(begin) - 1 - added)
            there = shape[len(slices):len(slices) + missing]
            slices += [(0, extent, 1) for extent in there]
            extents += there
        elif masked(options.NewAxisMask(), number):
            extents.append(1)
        elif masked(options.ShrinkAxisMask(), number):
            extent = shape[len(slices)]
            place = first + extent if first < 0 else first
            if not 0 <= place < extent:
                raise Refusal("model", "it takes (STRIDED_SLICE) the place %d of an axis of %d"
                              % (first, extent))
            slices.append((place, place + 1, 1))
        else:
            cut = slice(None if masked(options.BeginMask(), number) else first,
                        None if masked(options.EndMask(), number) else last, step)
            slices.append(cut.indices(shape[len(slices)]))
            extents.append(len(range(*slices[-1])))
    rest = shape[len(slices):]
    return slices + [(0, extent, 1) for extent in rest], extents + rest


def _concatenation(converter, op):
    from tflite.ConcatenationOptions import ConcatenationOptions

    options = options_of(op, ConcatenationOptions)
    indices = [int(index) for index in op.InputsAsNumpy()]
    shapes = [converter.shape_of(index) for index in indices]
    axis = options.Axis() % len(shapes[0])
    whole = list(shapes[0])
    whole[axis] = sum(shape[axis] for shape in shapes)
    converter.found_shapes[int(op.Outputs(0))] = whole
    there = [(converter.value(index), shape[axis]) for index, shape in zip(indices, shapes)
             if 0 not in shape]
    made = converter.pieces.join(there, axis) if there else converter.value(indices[0])
    return converter.convert_fused_activation_function(made, options.FusedActivationFunction())


def _split(converter, op):
    """Parts of given lengths, also of none: tf.signal.frame, and with it tf.signal.stft, takes the
    axes before and behind its own so."""
    data, lengths, axis = (int(index) for index in op.InputsAsNumpy())
    shape, sizes = converter.shape_of(data), converter.known_numbers(lengths)
    if 0 not in sizes:
        return converter.convert_split_v(op)
    axis = converter.known_numbers(axis)[0] % len(shape)
    rest = shape[axis] - sum(size for size in sizes if size != -1)
    sizes = [rest if size == -1 else size for size in sizes]
    if min(sizes) < 0 or sum(sizes) != shape[axis]:
        raise Refusal("model", "it splits (SPLIT_V) an axis of %d into parts of %s"
                      % (shape[axis], ", ".join(map(str, sizes))))
    whole, parts, start = converter.value(data), [], 0
    for index, size in zip(op.OutputsAsNumpy(), sizes):
        begin, end = [0] * len(shape), list(shape)
        begin[axis], end[axis] = start, start + size
        start += size
        converter.found_shapes[int(index)] = [b - a for a, b in zip(begin, end)]
        part = converter.pieces.part(whole, shape, begin, end)
        parts.append(whole if part is None else part)
    return parts if len(parts) > 1 else parts[0]


def _update(converter, op):
    """The first input with the second one in it from the place on that the third one says, or as
    near to it as there is room."""
    whole, update, places = (int(index) for index in op.InputsAsNumpy())
    shape, extents = converter.shape_of(whole), converter.shape_of(update)
    begin = [max(0, min(place, extent - length)) for place, extent, length in zip(
        converter.known_numbers(places), shape, extents)]
    made = converter.value(update)
    # Axis by axis, what lies before and behind it in the tensor is put around it.
    for axis in reversed(range(len(shape))):
        if extents[axis] == shape[axis]:
            continue
        around = []
        for first, last in ((0, begin[axis]), (begin[axis] + extents[axis], shape[axis])):
            start = [*begin[:axis], first, *[0] * (len(shape) - axis - 1)]
            stop = [b + e for b, e in zip(begin[:axis], extents[:axis])] + [last, *shape[axis + 1:]]
            part = converter.pieces.part(converter.value(whole), shape, start, stop)
            around.append((part, last - first))
        there = [p for p in (around[0], (made, extents[axis]), around[1]) if p[1]]
        made = converter.pieces.join(there, axis)
    return made


CONVERTERS = {"SLICE": _slice, "STRIDED_SLICE": _strided_slice, "CONCATENATION": _concatenation,
              "SPLIT_V": _split, "DYNAMIC_UPDATE_SLICE": _update}
"""By operators' names, functions of the importer's converter and one operator."""
