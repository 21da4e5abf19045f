"""Operators of TensorFlow Lite that TVM's importer lacks, or takes only in part.

Each takes the converter and the operator, sees float32 numbers (importer.py), and gives
expressions.
"""

import numpy as np
from tvm import relay

from run_model_tools.inside_tvm import Refusal
from run_model_tools.inside_tvm.operators import chosen_boxes
from run_model_tools.tflite.file import COMPLEX

_MOVES = ("EXPAND_DIMS", "GATHER", "RESHAPE", "REVERSE_V2", "SLICE", "SQUEEZE", "STRIDED_SLICE",
          "TRANSPOSE")
"""Operators that move complex numbers, which are pairs here, part by part."""


def _inputs(converter, op):
    """Expressions; what is left out at the end is not among them."""
    return [converter.value(index) for index in op.InputsAsNumpy() if index >= 0]


def options_of(op, kind):
    """The options of an operator, as the schema's table of this kind."""
    found, table = kind(), op.BuiltinOptions()
    found.Init(table.Bytes, table.Pos)
    return found


def _atan2(y, x):
    zero, half = relay.const(np.float32(0)), relay.const(np.float32(np.pi / 2))
    is_zero = relay.equal(x, zero)
    angle = relay.atan(relay.divide(y, relay.where(is_zero, relay.const(np.float32(1)), x)))
    turn = relay.where(relay.less(y, zero), relay.const(np.float32(-np.pi)),
                       relay.const(np.float32(np.pi)))
    angle = relay.where(relay.less(x, zero), relay.add(angle, turn), angle)
    return relay.where(is_zero, relay.multiply(relay.sign(y), half), angle)


def _select(converter, op):
    """A condition of one axis chooses rows."""
    condition, x, y = _inputs(converter, op)
    rows, shape = (converter.shape_of(op.Inputs(number)) for number in (0, 1))
    if len(rows) == 1 and len(shape) > 1:
        condition = relay.reshape(condition, (*rows, *[1] * (len(shape) - 1)))
    return relay.where(condition, x, y)


def _squeeze(converter, op):
    from tflite.SqueezeOptions import SqueezeOptions

    options, x = options_of(op, SqueezeOptions), _inputs(converter, op)[0]
    # Without a list it is all axes of extent 1.
    axes = options.SqueezeDimsAsNumpy() if options.SqueezeDimsLength() else None
    return relay.squeeze(x, axis=None if axes is None else [int(axis) for axis in axes])


def _place_of_extreme(converter, op, largest_or_smallest):
    """Of the first largest or smallest number along an axis, in the type that the file says."""
    (axis,) = converter.known_numbers(op.Inputs(1))
    found = largest_or_smallest(_inputs(converter, op)[0], axis=axis)
    return relay.cast(found, converter.graph.tensors[int(op.Outputs(0))].dtype)


def _gelu(converter, op):
    from tflite.GeluOptions import GeluOptions

    x, half = _inputs(converter, op)[0], relay.const(np.float32(0.5))
    if options_of(op, GeluOptions).Approximate():
        cube = relay.multiply(relay.multiply(x, x), x)
        inner = relay.add(x, relay.multiply(cube, relay.const(np.float32(0.044715))))
        bent = relay.tanh(relay.multiply(inner, relay.const(np.float32((2 / np.pi) ** 0.5))))
    else:
        bent = relay.erf(relay.multiply(x, relay.const(np.float32(0.5 ** 0.5))))
    return relay.multiply(x, relay.add(half, relay.multiply(bent, half)))


def _gather(converter, op):
    from tflite.GatherOptions import GatherOptions

    options = options_of(op, GatherOptions)
    data, places = (int(index) for index in op.InputsAsNumpy())
    shape, batches = converter.shape_of(data), options.BatchDims()
    axis = options.Axis() % len(shape)
    if batches < 0:
        batches += len(converter.shape_of(places))
    known = converter.graph.tensors[places].constant
    if known is not None and ((known < 0) | (known >= shape[axis])).any():
        raise Refusal("model", "it gathers places that the tensor %s does not have"
                      % converter.graph.tensors[data].name)
    table, numbers = converter.value(data), relay.cast(converter.value(places), "int32")
    if known is None:
        # These are the caller's, who may not read beyond a tensor.
        numbers = relay.clip(numbers, 0, shape[axis] - 1)
    if not batches:
        return relay.take(table, numbers, axis, mode="fast")
    # The batches' rows one behind the other; topi's own batch_dims of take is wrong.
    between = list(range(batches, axis))
    front = [*range(batches), axis, *between, *range(axis + 1, len(shape))]
    if between:
        table, shape = relay.transpose(table, front), [shape[i] for i in front]
    count = int(np.prod(shape[:batches]))
    where = converter.shape_of(places)
    first = np.arange(count, dtype=np.int32).reshape(
        *shape[:batches], *[1] * (len(where) - batches)) * shape[batches]
    rows = relay.reshape(table, (count * shape[batches], *shape[batches + 1:]))
    made = relay.take(rows, relay.add(numbers, relay.const(first)), 0, mode="fast")
    if between:
        first, last = len(where), len(where) + len(between)
        made = relay.transpose(made, [*range(batches), *range(first, last), *range(batches, first),
                                      *range(last, len(where) + len(shape) - batches - 1)])
    return made


def _cast(converter, op):
    """LiteRT casts the whole numbers of a quantized tensor, and not what they stand for, and of
    complex numbers the real parts."""
    source, target = (converter.graph.tensors[int(i)] for i in (op.Inputs(0), op.Outputs(0)))
    if target.dtype == COMPLEX:
        raise Refusal("model", "it makes complex numbers of others (CAST)")
    x = _parts(converter, op)[0] if source.dtype == COMPLEX else _inputs(converter, op)[0]
    kind = target.dtype
    if source.is_whole or target.is_whole:
        raise Refusal("model", "it casts (CAST) the quantized tensor %s; use QUANTIZE or DEQUANTIZE"
                      % (source if source.is_whole else target).name)
    if kind == "bool":
        # A byte that is neither 0 nor 1 is no flag.
        return relay.not_equal(x, relay.const(0, source.dtype))
    return relay.cast(x, kind)


def _batch_matmul(converter, op):
    """Products of matrices, the batches of one factor repeated for the other where it has more.

    The importer's own gives the result the batches of the first factor, whatever the second one
    has, and takes no two matrices without batches.
    """
    from tflite.BatchMatMulOptions import BatchMatMulOptions

    shapes = [converter.shape_of(index) for index in op.InputsAsNumpy()]
    wanted = list(np.broadcast_shapes(*(shape[:-2] for shape in shapes)))
    options = options_of(op, BatchMatMulOptions)
    a, b = (relay.reshape(x if shape[:-2] == wanted
                          else relay.broadcast_to(x, [*wanted, *shape[-2:]]), (-1, *shape[-2:]))
            for x, shape in zip(_inputs(converter, op), shapes))
    if options.AdjX():
        a = relay.transpose(a, (0, 2, 1))
    if not options.AdjY():
        b = relay.transpose(b, (0, 2, 1))
    return relay.reshape(relay.nn.batch_matmul(a, b),
                         (*wanted, shapes[0][-1 if options.AdjX() else -2],
                          shapes[1][-2 if options.AdjY() else -1]))


def _around_zero(converter, op, make):
    """What puts numbers between zeros: of quantized tensors between those that are stored as 0,
    whatever that stands for."""
    tensor = converter.graph.tensors[int(op.Outputs(0))]
    if not tensor.is_whole:
        return make(converter, op, tensor.dtype, lambda x: x)
    stored = relay.const(np.float32(tensor.quantized.zero_points[0] * tensor.quantized.scales[0]))
    return relay.subtract(
        make(converter, op, "float32", lambda x: relay.add(x, stored)), stored)


def _reversed(converter, op):
    """Along axes; of quantized tensors what is stored, whatever the scales of both are."""
    source, target = (converter.graph.tensors[int(i)] for i in (op.Inputs(0), op.Outputs(0)))
    x = _inputs(converter, op)[0]
    for axis in converter.known_numbers(op.Inputs(1)):
        x = relay.reverse(x, axis)
    return _as_stored(x, source, target)


def _one_hot(converter, op):
    """One value where an index says so and another elsewhere; of quantized tensors what is stored,
    whatever the scales of all are."""
    from tflite.OneHotOptions import OneHotOptions

    target = converter.graph.tensors[int(op.Outputs(0))]
    indices, _, on, off = _inputs(converter, op)
    on, off = (_as_stored(x, converter.graph.tensors[int(op.Inputs(i))], target)
               for i, x in ((2, on), (3, off)))
    return relay.one_hot(indices, relay.reshape(on, ()), relay.reshape(off, ()),
                         converter.known_numbers(op.Inputs(1))[0],
                         options_of(op, OneHotOptions).Axis(),
                         "float32" if target.is_whole else target.dtype)


def _as_stored(x, source, target):
    """Numbers of one quantized tensor, as what is stored for them stands for in another."""
    if not source.is_whole or not target.is_whole:
        return x
    (old, zero), (new, other) = ((t.quantized.scales[0], int(t.quantized.zero_points[0]))
                                 for t in (source, target))
    if old == new and zero == other:
        return x
    stored = relay.add(relay.divide(x, relay.const(np.float32(old))),
                       relay.const(np.float32(zero - other)))
    return relay.multiply(stored, relay.const(np.float32(new)))


def _diagonal(converter, op, dtype, shifted):
    shape = converter.shape_of(op.Inputs(0))
    return relay.matrix_set_diag(relay.zeros((*shape, shape[-1]), dtype),
                                 shifted(_inputs(converter, op)[0]))


def _scattered(converter, op, dtype, shifted):
    """Numbers that go to the same place are added up."""
    places, updates, _ = _inputs(converter, op)
    axes = len(converter.shape_of(op.Inputs(0)))
    shape = converter.known_numbers(op.Inputs(2))
    known = converter.graph.tensors[int(op.Inputs(0))].constant
    if known is not None and ((known < 0) | (known >= np.array(shape)[:known.shape[-1]])).any():
        raise Refusal("model", "it writes (SCATTER_ND) to places that the tensor %s does not have"
                      % converter.graph.tensors[int(op.Outputs(0))].name)
    return relay.scatter_nd(
        relay.zeros(shape, dtype), relay.transpose(places, (axes - 1, *range(axes - 1))),
        shifted(updates), mode="add")


def _cumsum(converter, op):
    from tflite.CumsumOptions import CumsumOptions

    options = options_of(op, CumsumOptions)
    x, (axis,) = _inputs(converter, op)[0], converter.known_numbers(op.Inputs(1))
    if options.Reverse():
        x = relay.reverse(x, axis)
    total = relay.cumsum(x, axis=axis, exclusive=bool(options.Exclusive()))
    return relay.reverse(total, axis) if options.Reverse() else total


def _topk(converter, op):
    x, (k,) = _inputs(converter, op)[0], converter.known_numbers(op.Inputs(1))
    made = relay.topk(x, int(k), ret_type="both", dtype="int32")
    return relay.Tuple([made[0], made[1]])


def _conv3d(converter, op):
    from tflite.Conv3DOptions import Conv3DOptions
    from tflite.Padding import Padding
    from tvm.relay.frontend.tflite import get_pad_value

    options = options_of(op, Conv3DOptions)
    values = _inputs(converter, op)
    size, kernel = (converter.shape_of(op.Inputs(number)) for number in (0, 1))
    strides = [options.StrideD(), options.StrideH(), options.StrideW()]
    dilation = [options.DilationDFactor(), options.DilationHFactor(), options.DilationWFactor()]
    pads = [(0, 0)] * 3
    if options.Padding() == Padding.SAME:
        pads = [get_pad_value(extent, (k - 1) * d + 1, stride) for extent, k, d, stride in zip(
            size[1:4], kernel[:3], dilation, strides)]
    made = relay.nn.conv3d(
        relay.transpose(values[0], (0, 4, 1, 2, 3)), relay.transpose(values[1], (4, 3, 0, 1, 2)),
        strides=strides, dilation=dilation, groups=size[4] // kernel[3], channels=kernel[4],
        kernel_size=kernel[:3], padding=[before for before, _ in pads] + [b for _, b in pads])
    made = relay.transpose(made, (0, 2, 3, 4, 1))
    if len(values) > 2:
        made = relay.add(made, values[2])
    return converter.convert_fused_activation_function(made, options.FusedActivationFunction())


def _rfft2d(converter, op):
    """(real, imaginary) parts, by products with the waves; the input is cut or filled up."""
    x, lengths = _inputs(converter, op)[0], converter.known_numbers(op.Inputs(1))
    shape = converter.shape_of(op.Inputs(0))
    extents = [min(have, length) for have, length in zip(shape[-2:], lengths)]
    if extents != shape[-2:]:
        x = relay.strided_slice(
            x, [0, 0], extents, [1, 1], axes=[len(shape) - 2, len(shape) - 1])

    def waves(count, length, frequencies):
        angles = -2 * np.pi / length * np.outer(np.arange(count), np.arange(frequencies))
        return [relay.const(wave.astype(np.float32)) for wave in (np.cos(angles), np.sin(angles))]

    def product(a, rows, columns, wave):
        """a, whose last axes are these, times a wave."""
        flat = relay.reshape(a, (-1, columns))
        made = relay.nn.dense(flat, relay.transpose(wave))
        return relay.reshape(made, (*shape[:-2], rows, -1))

    frequencies = lengths[1] // 2 + 1
    real, imaginary = (product(x, *extents, wave)
                       for wave in waves(extents[1], lengths[1], frequencies))
    if lengths[0] > 1:
        axes = [*range(len(shape) - 2), len(shape) - 1, len(shape) - 2]
        real, imaginary = (relay.transpose(part, axes) for part in (real, imaginary))
        cosine, sine = waves(extents[0], lengths[0], lengths[0])
        parts = [[product(part, frequencies, extents[0], wave) for wave in (cosine, sine)]
                 for part in (real, imaginary)]
        real = relay.subtract(parts[0][0], parts[1][1])
        imaginary = relay.add(parts[0][1], parts[1][0])
        real, imaginary = (relay.transpose(part, axes) for part in (real, imaginary))
    return relay.Tuple([real, imaginary])


def _parts(converter, op):
    """The real and imaginary parts of an operator's complex input."""
    return converter.exp_tab.get_expr(converter.names[int(op.Inputs(0))]).fields


def moves_complex(converter, operator):
    """Whether an operator gives complex numbers that it was given."""
    tensors = converter.graph.tensors
    return (operator.name != "RFFT2D" and len(operator.outputs) == 1
            and all(tensors[i].dtype == COMPLEX for i in (*operator.inputs[:1], *operator.outputs)))


def moved(converter, convert, op):
    """What moves numbers, done to both parts."""
    if converter.get_op_code_str(op) not in _MOVES:
        raise Refusal("model", "it computes with complex numbers")
    name, pair = converter.names[int(op.Inputs(0))], _parts(converter, op)
    made = []
    for part in pair:
        converter.exp_tab.exprs[name] = part
        made.append(convert(op))
    converter.exp_tab.exprs[name] = relay.Tuple(pair)
    return relay.Tuple(made)


def _unary(make):
    return lambda converter, op: make(_inputs(converter, op)[0])


def _binary(make):
    return lambda converter, op: make(*_inputs(converter, op))


def _squared(x):
    # The importer's own is a power, which there is of floats only.
    return relay.multiply(x, x)


def _suppression(converter, op):
    """Places, of the fifth version their scores too, and how many there are, zeros behind them; by
    the operator that ONNX's suppression is computed by."""
    boxes, scores, *parameters = (int(index) for index in op.InputsAsNumpy())
    most, overlap, least, *sigma = (converter.known_value(index).ravel() for index in parameters)
    if any(number.any() for number in sigma):
        raise Refusal("model", "it lowers the scores of boxes that overlap (NON_MAX_SUPPRESSION_V5 "
                      "with a sigma), and only leaving them out is supported")
    (total,), most = converter.shape_of(scores), int(most[0])
    # An overlap that is as large as the limit is too large here, and not in ONNX.
    limit = np.nextafter(overlap.astype(np.float32), np.float32(-1))
    scores = converter.value(scores)
    candidates = relay.sum(relay.cast(relay.greater(
        scores, relay.const(least.astype(np.float32))), "int64"), keepdims=True)
    order = relay.topk(scores, total, ret_type="indices", dtype="int64")
    found = relay.reshape(chosen_boxes.kept(
        [relay.reshape(order, (1, 1, total)), relay.expand_dims(converter.value(boxes), 0),
         relay.reshape(candidates, (1, 1)), relay.const(limit)], most, 0), (most + 1,))
    found = relay.cast(found, "int32")
    places = relay.strided_slice(found, [1], [most + 1])
    count = relay.strided_slice(found, [0], [1])
    there = relay.less(relay.const(np.arange(most, dtype=np.int32)), count)
    chosen = relay.where(there, relay.take(scores, places, mode="fast"),
                         relay.const(np.zeros(most, np.float32)))
    count = relay.reshape(count, ())
    return relay.Tuple([places, chosen, count] if sigma else [places, count])


CONVERTERS = {
    "SIGN": _unary(relay.sign), "RELU_0_TO_1": _unary(lambda x: relay.clip(x, 0, 1)),
    "ATAN2": _binary(_atan2), "SQUARE": _unary(_squared),
    "SQUARED_DIFFERENCE": _binary(lambda a, b: _squared(relay.subtract(a, b))),
    "SELECT_V2": _binary(relay.where), "BITWISE_XOR": _binary(relay.bitwise_xor),
    "RIGHT_SHIFT": _binary(relay.right_shift),
    "EMBEDDING_LOOKUP": _binary(lambda ids, table: relay.take(table, ids, axis=0)),
    "GELU": _gelu, "SQUEEZE": _squeeze, "CAST": _cast, "BATCH_MATMUL": _batch_matmul,
    "GATHER": _gather, "SELECT": _select, "ONE_HOT": _one_hot, "REVERSE_V2": _reversed,
    "CUMSUM": _cumsum, "TOPK_V2": _topk, "CONV_3D": _conv3d, "RFFT2D": _rfft2d,
    "NON_MAX_SUPPRESSION_V4": _suppression, "NON_MAX_SUPPRESSION_V5": _suppression,
    "ARG_MAX": lambda converter, op: _place_of_extreme(converter, op, relay.argmax),
    "ARG_MIN": lambda converter, op: _place_of_extreme(converter, op, relay.argmin),
    "BROADCAST_TO": lambda converter, op: relay.broadcast_to(
        _inputs(converter, op)[0], converter.known_numbers(op.Inputs(1))),
    "FILL": lambda converter, op: relay.full(
        _inputs(converter, op)[1], converter.known_numbers(op.Inputs(0))),
    "MATRIX_DIAG": lambda converter, op: _around_zero(converter, op, _diagonal),
    "SCATTER_ND": lambda converter, op: _around_zero(converter, op, _scattered),
    "RANK": lambda converter, op: relay.const(
        np.int32(len(converter.shape_of(op.Inputs(0))))),
    "BROADCAST_ARGS": lambda converter, op: relay.const(np.array(
        np.broadcast_shapes(*(converter.known_numbers(i) for i in op.InputsAsNumpy())),
        converter.graph.tensors[int(op.Outputs(0))].dtype)),
    "REDUCE_ALL": lambda converter, op: converter._convert_reduce(relay.all, op),
    "REAL": lambda converter, op: _parts(converter, op)[0],
    "IMAG": lambda converter, op: _parts(converter, op)[1],
    "COMPLEX_ABS": lambda converter, op: relay.sqrt(
        relay.add(*(_squared(part) for part in _parts(converter, op))))}
"""By operators' names, functions of the importer's converter and one operator."""
