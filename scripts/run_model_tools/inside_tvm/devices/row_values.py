"""Numbers of tensors, and what programs make of them, as expressions of TVM: what the kernels of
row_kernels.py and along_rows.py have in common."""

import math


class Loads:
    """Numbers of a layer's tensors, by view and place.  inputs: tensors of TVM, or in a kernel the
    buffers that stand for them, in the order of `sources` (program_code.Sources)."""

    def __init__(self, tvm, sources, inputs):
        self._tvm, self._sources, self._inputs = tvm, sources, inputs

    def __call__(self, view, places):
        """places: (index, factors of (extent, stride)) of each axis."""
        tir, parts = self._tvm.tir, []
        for index, factors in places:
            inner = math.prod(count for count, _ in factors)
            for position, (count, stride) in enumerate(factors):
                inner //= count
                if stride and count > 1:
                    part = index if inner == 1 else tir.floordiv(index, inner)
                    parts.append((tir.floormod(part, count) if position else part, count, stride))
        which = self._sources.index(view.tensor)
        at = _in_axes(tir, parts, view.offset, [int(d) for d in self._inputs[which].shape])
        if at is not None:
            return self._read(which, at)
        return self.number(which, sum((part * stride for part, _, stride in parts),
                                      tir.const(view.offset, "int32")))

    def number(self, index, at):
        """Number `at` of an input, whatever its shape is."""
        return self._read(index, apart(self._tvm, at, self._inputs[index].shape))

    def _read(self, index, places):
        read = self._inputs[index]
        return (self._tvm.tir.BufferLoad(read, places)
                if isinstance(read, self._tvm.tir.Buffer) else read(*places))


def _in_axes(tir, parts, offset, shape):
    """The place in a tensor of a shape where `parts` of (index, extent, stride) lead together, each
    as indices of the axes that it goes along, so that nothing is put together to be taken apart;
    None where they would reach from one axis into the next."""
    strides = [math.prod(shape[axis + 1:]) for axis in range(len(shape))]
    indices = [tir.const(offset // stride % extent, "int32")
               for stride, extent in zip(strides, shape)]
    farthest = [offset // stride % extent for stride, extent in zip(strides, shape)]
    parts = list(parts)
    while parts:
        index, count, stride = parts.pop()
        axis = next((a for a, s in enumerate(strides) if shape[a] > 1 and stride % s == 0
                     and s <= stride), None)
        if axis is None:
            return None
        step = stride // strides[axis]
        if step * (count - 1) >= shape[axis]:
            inner = shape[axis] // step
            if inner < 2 or shape[axis] % step or count % inner:
                return None
            parts.append((tir.floordiv(index, inner), count // inner, stride * inner))
            index, count = tir.floormod(index, inner), inner
        indices[axis] = indices[axis] + index * step
        farthest[axis] += step * (count - 1)
    return indices if all(a < b for a, b in zip(farthest, shape)) else None


def flat(places, shape):
    """The number of the place in a tensor of a shape."""
    at = 0
    for place, extent in zip(places, shape):
        at = at * extent + place
    return at


def apart(tvm, at, shape):
    """The place of a number in a tensor of a shape."""
    places, inner = [], 1
    for position, extent in reversed(list(enumerate(map(int, shape)))):
        place = at if inner == 1 else tvm.tir.floordiv(at, inner)
        places.insert(0, tvm.tir.floormod(place, extent) if position else place)
        inner *= extent
    return places


def value(tvm, program, load, product=None):
    """The result of a program without reductions; load: from the number of an input to its
    number; product: what its node "product" is."""
    values = []
    for node in program.nodes:
        values.append(load(int(node.value)) if node.op == "input" else
                      product if node.op == "product" else
                      applied(tvm, program, node, [values[a] for a in node.args]))
    return values[-1]


def applied(tvm, program, node, args):
    """What a node is of its arguments' values."""
    tir = tvm.tir
    if node.op in ("constant", "columns"):
        return tir.const(program.shape[-1] if node.op == "columns" else node.value, "float32")
    return {
        "identity": lambda x: x,
        "add": lambda a, b: a + b, "subtract": lambda a, b: a - b,
        "multiply": lambda a, b: a * b, "divide": lambda a, b: a / b,
        "maximum": lambda a, b: chosen(tvm, "max", a, b),
        "minimum": lambda a, b: chosen(tvm, "min", a, b),
        "negative": lambda x: tir.const(0, "float32") - x,
        "abs": tir.abs, "sqrt": tir.sqrt, "exp": tir.exp, "normal_exp": tir.exp, "log": tir.log,
        "tanh": tir.tanh, "sin": tir.sin, "cos": tir.cos, "tan": tir.tan, "atan": tir.atan,
        "erf": tir.erf, "sigmoid": tir.sigmoid,
        "rsqrt": lambda x: tir.const(1, "float32") / tir.sqrt(x),
        "if_less": lambda a, b, x, y: tir.Select(a < b, x, y),
        "if_less_equal": lambda a, b, x, y: tir.Select(a <= b, x, y),
        "if_equal": lambda a, b, x, y: tir.Select(tir.EQ(a, b), x, y)}[node.op](*args)


def chosen(tvm, choice, a, b):
    """The larger or smaller one ("max", "min"); NaN where one is.  TVM gives the second of two that
    cannot be compared."""
    choose = getattr(tvm.te, choice)
    if isinstance(b, tvm.tir.FloatImm):
        return choose(b, a)
    if isinstance(a, tvm.tir.FloatImm):
        return choose(a, b)
    return tvm.tir.Select(tvm.tir.isnan(a), a, choose(a, b))
