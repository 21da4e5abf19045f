"""Operators of TensorFlow Lite that TVM's importer lacks, or takes only in part.

Each takes the converter and the operator, sees float32 numbers (tflite_import.py), and gives
expressions.
"""

import numpy as np

from run_model_tools.inside_tvm import Refusal
from run_model_tools.tflite.file import COMPLEX

_MOST_COMPARED = 1 << 28
"""run_model has no sorting functions, and does so many comparisons in 0.1 s."""

_MOVES = ("EXPAND_DIMS", "GATHER", "RESHAPE", "REVERSE_V2", "SLICE", "SQUEEZE", "STRIDED_SLICE",
          "TRANSPOSE")
"""Of complex numbers, which are pairs here."""


def converters(relay):
    """By the operators' names."""
    def unary(make):
        return lambda converter, op: make(_inputs(converter, op)[0])

    def binary(make):
        return lambda converter, op: make(*_inputs(converter, op))

    return {
        "SIGN": unary(relay.sign), "RELU_0_TO_1": unary(lambda x: relay.clip(x, 0, 1)),
        "ATAN2": binary(lambda y, x: _atan2(relay, y, x)),
        "SELECT_V2": binary(relay.where), "BITWISE_XOR": binary(relay.bitwise_xor),
        "RIGHT_SHIFT": binary(relay.right_shift),
        "EMBEDDING_LOOKUP": binary(lambda ids, table: relay.take(table, ids, axis=0)),
        "SELECT": lambda converter, op: _select(relay, converter, op),
        "BROADCAST_TO": lambda converter, op: relay.broadcast_to(
            _inputs(converter, op)[0], _known(converter, op, 1)),
        "CUMSUM": lambda converter, op: _cumsum(relay, converter, op),
        "TOPK_V2": lambda converter, op: _topk(relay, converter, op),
        "REDUCE_ALL": lambda converter, op: converter._convert_reduce(relay.all, op),
        "CONV_3D": lambda converter, op: _conv3d(relay, converter, op),
        "RFFT2D": lambda converter, op: _rfft2d(relay, converter, op),
        "REAL": lambda converter, op: _parts(converter, op)[0],
        "IMAG": lambda converter, op: _parts(converter, op)[1],
        "COMPLEX_ABS": lambda converter, op: relay.sqrt(
            relay.add(*(relay.multiply(part, part) for part in _parts(converter, op))))}


def activated(converter, op, expr, options):
    """An operator's result behind the activation that its options name."""
    return converter.convert_fused_activation_function(
        expr, _options(op, options).FusedActivationFunction())


def _inputs(converter, op):
    return [converter.value(index) for index in op.InputsAsNumpy()]


def _known(converter, op, number):
    """The whole numbers of an input that has to be known beforehand."""
    index = int(op.Inputs(number))
    return [int(n) for n in np.ravel(converter.known_value(index))]


def _shape(converter, index):
    """Of a tensor, without open extents."""
    shape = converter.file.tensors[int(index)].shape
    if any(extent is None for extent in shape):
        raise Refusal("model", "the tensor %s has an open shape, which its operator cannot have"
                      % converter.file.tensors[int(index)].name)
    return [int(extent) for extent in shape]


def _options(op, kind):
    found = kind()
    table = op.BuiltinOptions()
    found.Init(table.Bytes, table.Pos)
    return found


def _atan2(relay, y, x):
    zero, half = relay.const(np.float32(0)), relay.const(np.float32(np.pi / 2))
    is_zero = relay.equal(x, zero)
    angle = relay.atan(relay.divide(y, relay.where(is_zero, relay.const(np.float32(1)), x)))
    turn = relay.where(relay.less(y, zero), relay.const(np.float32(-np.pi)),
                       relay.const(np.float32(np.pi)))
    angle = relay.where(relay.less(x, zero), relay.add(angle, turn), angle)
    return relay.where(is_zero, relay.multiply(relay.sign(y), half), angle)


def _select(relay, converter, op):
    """A condition of one axis chooses rows."""
    condition, x, y = _inputs(converter, op)
    rows, shape = (_shape(converter, op.Inputs(number)) for number in (0, 1))
    if len(rows) == 1 and len(shape) > 1:
        condition = relay.reshape(condition, (*rows, *[1] * (len(shape) - 1)))
    return relay.where(condition, x, y)


def _cumsum(relay, converter, op):
    from tflite.CumsumOptions import CumsumOptions

    options = _options(op, CumsumOptions)
    x, (axis,) = _inputs(converter, op)[0], _known(converter, op, 1)
    if options.Reverse():
        x = relay.reverse(x, axis)
    total = relay.cumsum(x, axis=axis, exclusive=bool(options.Exclusive()))
    return relay.reverse(total, axis) if options.Reverse() else total


def _topk(relay, converter, op):
    """(the largest numbers of rows, where they are) by each one's rank: how many others go before
    it, of equal ones those that come first."""
    x, (k,) = _inputs(converter, op)[0], _known(converter, op, 1)
    shape = _shape(converter, op.Inputs(0))
    count, axis = shape[-1], len(shape)
    if int(np.prod(shape)) * count > _MOST_COMPARED:
        raise Refusal("model", "it sorts %d values in rows of %d, which is more than compiled code "
                      "can do without a sorting function" % (np.prod(shape), count))
    own, other = relay.expand_dims(x, axis), relay.expand_dims(x, axis - 1)
    numbers = np.arange(count, dtype=np.int32)
    earlier = relay.const(numbers[None] < numbers[:, None])
    before = relay.logical_or(relay.greater(other, own),
                              relay.logical_and(relay.equal(other, own), earlier))
    ranks = relay.sum(relay.cast(before, "int32"), axis)
    here = relay.equal(relay.expand_dims(ranks, axis - 1),
                       relay.const(np.arange(k, dtype=np.int32)[:, None]))
    places = relay.sum(relay.where(here, relay.const(numbers), relay.const(np.int32(0))), axis)
    return relay.Tuple([relay.gather(x, axis - 1, places), places])


def _conv3d(relay, converter, op):
    from tflite.Conv3DOptions import Conv3DOptions
    from tflite.Padding import Padding
    from tvm.relay.frontend.tflite import get_pad_value

    options = _options(op, Conv3DOptions)
    values = _inputs(converter, op)
    size, kernel = (_shape(converter, op.Inputs(number)) for number in (0, 1))
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


def _rfft2d(relay, converter, op):
    """(real, imaginary) parts, by products with the waves; the input is cut or filled up."""
    x, lengths = _inputs(converter, op)[0], _known(converter, op, 1)
    shape = _shape(converter, op.Inputs(0))
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
    """Of complex numbers."""
    return converter.exp_tab.get_expr(converter.names[int(op.Inputs(0))]).fields


def moves_complex(converter, operator):
    """Whether an operator gives complex numbers that it was given."""
    tensors = converter.file.tensors
    return (operator.name != "RFFT2D" and len(operator.outputs) == 1
            and all(tensors[i].dtype == COMPLEX for i in (*operator.inputs[:1], *operator.outputs)))


def moved(relay, converter, convert, op):
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
