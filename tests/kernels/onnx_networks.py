"""Small networks that put the reading of networks to the test, as ONNX models."""

from __future__ import annotations

from typing import Callable

import numpy as np
import onnx

from network_builder import Network


def residual_of_two_convolutions() -> onnx.ModelProto:
    n = Network(1)
    stem = n.relu(n.conv("x", 3, 20, 3, strides=[2, 2]))
    main = n.conv(n.relu(n.conv(stem, 20, 36, 3)), 36, 36, 3)
    short = n.conv(stem, 20, 36)
    joined = n.relu(n.add("Add", [main, short]))
    # Not a plain residual: ReLU first.
    again = n.add("Add", [n.relu(n.conv(joined, 36, 36, 3)), joined])
    return n.model(n.add("Clip", [again, n.weight(np.float32(-0.5)), n.weight(np.float32(2))]))


def residual_of_concatenated_channels() -> onnx.ModelProto:
    n = Network(2)
    stem = n.relu(n.conv("x", 3, 13, 3))
    both = n.concat(n.add("AveragePool", [stem], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
                    n.conv(stem, 13, 22))
    return n.model(n.relu(n.add("Add", [both, n.norm(n.conv(both, 35, 35, 1, 5, bias=False), 35)])))


def channels_that_are_there_twice() -> onnx.ModelProto:
    """What is done to a channel is not done to its copy."""
    n = Network(25)
    stem = n.relu(n.conv("x", 3, 13, 3))
    twice = n.norm(n.concat(stem, stem), 26)
    picked = n.add("Gather", [stem, n.weight(np.array([3, 0, 3, 12, 12, 7]))], axis=1)
    again = n.add("Mul", [n.conv("x", 3, 6), picked])
    return n.model(twice, n.conv(picked, 6, 6, 3, 6), again)


def shuffled_units() -> onnx.ModelProto:
    n = Network(3)
    x = n.relu(n.conv("x", 3, 44, 3))
    for _ in range(3):
        left, right = n.split(x, 22, 22)
        right = n.relu(n.conv(right, 22, 22))
        right = n.relu(n.conv(n.conv(right, 22, 22, 3, 22), 22, 22))
        x = n.shuffle(n.concat(left, right), 2, (44, 17, 14))
    down = n.conv(x, 44, 44, 3, 44, strides=[2, 2])
    return n.model(n.conv(down, 44, 10), n.add("MaxPool", [x], kernel_shape=[2, 2], strides=[2, 2]))


def squeeze_and_excite() -> onnx.ModelProto:
    n = Network(4)
    x = n.conv("x", 3, 24, 3, strides=[2, 1])
    gate = n.relu(n.conv(n.add("GlobalAveragePool", [x]), 24, 6))
    gate = n.add("Sigmoid", [n.conv(gate, 6, 24)])
    x = n.add("Mul", [x, gate])
    x = n.add("LeakyRelu", [n.conv(x, 24, 24, 5, 24)], alpha=0.2)
    return n.model(n.add("Softmax", [n.add("Flatten", [n.add("GlobalAveragePool", [x])])], axis=1))


def pools_of_every_kind() -> onnx.ModelProto:
    n = Network(5)
    x = n.concat(n.relu(n.conv("x", 3, 17, 1)), n.conv("x", 3, 9, 3))
    pools = [n.add("MaxPool", [x], kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1),
             n.add("MaxPool", [x], kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 0]),
             n.add("AveragePool", [x], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
             n.add("AveragePool", [x], kernel_shape=[2, 2], strides=[1, 2], pads=[0, 1, 1, 1],
                   count_include_pad=1),
             n.add("GlobalMaxPool", [x])]
    return n.model(*pools)


def pre_activation_and_slices() -> onnx.ModelProto:
    n = Network(6)
    x = n.conv("x", 3, 19, 3)
    for _ in range(2):  # as in DenseNet: normalised before the convolution, concatenated after it
        x = n.concat(x, n.conv(n.relu(n.norm(x, 19 if _ == 0 else 26)), 19 if _ == 0 else 26, 7, 3))

    def piece(begin: int, end: int, step: int) -> str:
        return n.add("Slice", [x]
                     + [n.weight(np.array([v], np.int64)) for v in (begin, end, 1, step)])
    y = n.concat(piece(-9, 33, 1), piece(3, 17, 1))
    return n.model(n.conv(y, 23, 12), n.conv(piece(1, 30, 3), 10, 5, 3, strides=[2, 2]), x)


def layers_left_to_the_compiler() -> onnx.ModelProto:
    n = Network(7)
    x = n.relu(n.conv("x", 3, 11, 3, dilations=[2, 2], pads=[2, 2, 2, 2]))
    weight = n.numbers(11, 6, 2, 2, scale=0.2)
    x = n.add("ConvTranspose", [x, weight], strides=[2, 2])
    x = n.add("Add", [n.conv(x, 6, 16, 3, pads=[0, 2, 1, 0]), n.numbers(1, 1, 33, 28)])
    x = n.add("Mul", [n.conv(x, 16, 40, 3, 8), n.weight(np.float32(0.3))])
    return n.model(n.add("Transpose", [x], perm=[0, 2, 3, 1]),
                   n.add("ReduceMean", [x], axes=[2, 3]))


def activations() -> onnx.ModelProto:
    """All that exporters write after a convolution, with sums before and after it."""
    n = Network(8, size=(9, 10))

    def gelu(x: str) -> str:
        erf = n.add("Erf", [n.add("Div", [x, n.weight(np.float32(2 ** 0.5))])])
        half = n.add("Mul", [x, n.weight(np.float32(0.5))])
        return n.add("Mul", [half, n.add("Add", [erf, n.weight(np.float32(1))])])

    def hard_swish(x: str) -> str:
        inner = n.add("Clip", [n.add("Add", [x, n.weight(np.float32(3))]),
                               n.weight(np.float32(0)), n.weight(np.float32(6))])
        return n.add("Div", [n.add("Mul", [x, inner]), n.weight(np.float32(6))])

    def silu(x: str) -> str:
        return n.add("Mul", [x, n.add("Sigmoid", [x])])

    def mish(x: str) -> str:
        return n.add("Mul", [x, n.add("Tanh", [n.add("Softplus", [x])])])

    def snake(x: str) -> str:
        square = n.add("Pow", [n.add("Sin", [n.add("Mul", [x, n.numbers(11, 1, 1)])]),
                               n.weight(np.float32(2))])
        return n.add("Add", [x, n.add("Mul", [square, n.numbers(11, 1, 1)])])
    functions: list[Callable[[str], str]] = [
        silu, gelu, hard_swish, mish, lambda x: n.add("Elu", [x], alpha=0.7),
        lambda x: n.add("Selu", [x]), lambda x: n.add("Celu", [x], alpha=1.5),
        lambda x: n.add("HardSigmoid", [x], alpha=0.3), lambda x: n.add("LeakyRelu", [x]),
        lambda x: n.add("PRelu", [x, n.numbers(11, 1, 1)]), lambda x: n.add("Softplus", [x]),
        lambda x: n.norm(n.relu(x), 11), snake, lambda x: n.add("Cos", [x])]
    x, ends = silu(n.conv("x", 3, 11, 3)), []
    for i, function in enumerate(functions):
        y = n.conv(x, 11, 11, 1 + i % 2 * 2, 11 if i % 3 == 0 else 1)
        # The sum before the activation, after it, or none.
        y = function(n.add("Add", [y, x])) if i % 3 == 1 else function(y)
        y = n.add("Add", [x, y]) if i % 3 == 2 else y
        x = n.add("Mul", [y, n.weight(np.float32(0.7))])
        ends.append(x)
    gate = silu(n.conv(n.add("GlobalAveragePool", [x]), 11, 5))
    gate = n.add("HardSigmoid", [n.conv(gate, 5, 11)])
    return n.model(*ends[2::4], n.add("Mul", [gate, x]), silu(x))


def pixels_elsewhere() -> onnx.ModelProto:
    """Resized, flipped, cut out and padded pictures of channels that lie anywhere."""
    n = Network(9, size=(9, 10))
    x = n.relu(n.conv("x", 3, 21, 3))
    x = n.concat(n.conv(x, 21, 9), x)

    def resize(x: str, height: int, width: int, **attributes) -> str:
        sizes = n.weight(np.array([1, 30, height, width], np.int64))
        return n.add("Resize", [x, "", "", sizes], **attributes)

    def cut(x: str, axes: list[int], begin: list[int], end: list[int], step: list[int]) -> str:
        return n.add("Slice", [x, *(n.weight(np.array(v, np.int64))
                                    for v in (begin, end, axes, step))])

    def pad(x: str, mode: str) -> str:
        widths = n.weight(np.array([0, 0, 2, 1, 0, 0, 3, 4], np.int64))
        value = [n.weight(np.float32(0.5))] if mode == "constant" else []
        return n.add("Pad", [x, widths, *value], mode=mode)
    last = -2 ** 31
    return n.model(
        resize(x, 18, 20, mode="nearest", coordinate_transformation_mode="asymmetric",
               nearest_mode="floor"),
        resize(x, 13, 7, mode="nearest"),
        resize(x, 20, 13, mode="linear"),
        resize(x, 5, 30, mode="linear", coordinate_transformation_mode="align_corners"),
        resize(x, 17, 15, mode="cubic", cubic_coeff_a=-0.75),
        cut(x, [2, 3], [-1, -1], [last, last], [-1, -1]), cut(x, [3], [-1], [last], [-1]),
        cut(x, [1, 3], [25, 8], [2, 1], [-2, -3]), cut(x, [2, 1], [1, 3], [8, 20], [3, 1]),
        pad(x, "constant"), pad(x, "edge"), pad(x, "reflect"))


def transposed_convolutions() -> onnx.ModelProto:
    """Kernels larger and smaller than their strides, cropped and enlarged results."""
    n = Network(10, size=(6, 7))
    x = n.relu(n.conv("x", 3, 19, 3))
    y = n.add("ConvTranspose", [x, n.numbers(19, 21, 2, 2, scale=0.2), n.numbers(21)],
              strides=[2, 2])
    z = n.add("ConvTranspose", [x, n.numbers(19, 9, 4, 4, scale=0.1), n.numbers(9)],
              strides=[2, 2], pads=[1, 1, 1, 1])
    small = n.add("ConvTranspose", [x, n.numbers(19, 5, 3, 2, scale=0.2)], strides=[3, 4],
                  pads=[2, 0, 1, 1], output_padding=[1, 2])
    odd = n.add("ConvTranspose", ["x", n.numbers(3, 17, 3, 5, scale=0.2), n.numbers(17)],
                strides=[1, 3], pads=[1, 4, 0, 4])
    both = n.add("Mul", [y, n.add("Sigmoid", [y])])
    return n.model(n.conv(n.concat(both, z), 30, 7, 3), n.relu(small), n.norm(n.relu(odd), 17))


def vectors_as_pictures() -> onnx.ModelProto:
    """Pictures of one pixel: convolutions of them with and without padding, in groups, strided."""
    n = Network(14)
    x = n.add("GlobalAveragePool", [n.relu(n.conv("x", 3, 20, 3))])
    wide = n.conv(x, 20, 18, pads=[1, 0, 2, 1])
    every = n.relu(n.conv(n.conv(x, 20, 8, strides=[2, 2]), 8, 20, 3))
    return n.model(n.conv(wide, 18, 5, 3), n.conv(every, 20, 20, 1, 4), n.conv(x, 20, 20, 1, 20),
                   n.add("Mul", [every, x]))


def explicit_padding() -> onnx.ModelProto:
    """Padding by an operator of its own, before what pads and what does not."""
    n = Network(12, size=(9, 11))

    def pad(x: str, *widths: int) -> str:
        return n.add("Pad", [x, n.weight(np.array([0, 0, *widths[:2], 0, 0, *widths[2:]]))])
    x = n.relu(n.conv(pad("x", 1, 0, 2, 3), 3, 18, 3, strides=[2, 2], pads=[0] * 4))
    y = n.conv(pad(x, 2, 1, 1, 2), 18, 18, 5, 18, pads=[0, 1, 0, 1])
    z = n.add("MaxPool", [pad(x, 1, 1, 1, 1)], kernel_shape=[3, 3])
    # Without count_include_pad, ONNX Runtime 1.31 makes the zeros padding that does not count.
    return n.model(n.conv(y, 18, 20), z, n.add("AveragePool", [pad(x, 0, 1, 1, 0)],
                                               kernel_shape=[2, 2], count_include_pad=1))


def batch_of_three() -> onnx.ModelProto:
    """Several pictures: all kinds of layers, gates of their own, a fully connected layer."""
    n = Network(13, size=(20, 14), batch=3)
    x = n.relu(n.conv("x", 3, 20, 3, strides=[2, 1]))
    gate = n.relu(n.conv(n.add("GlobalAveragePool", [x]), 20, 6))
    x = n.add("Mul", [x, n.add("Sigmoid", [n.conv(gate, 6, 20)])])
    y = n.conv(n.relu(n.conv(n.relu(n.conv(x, 20, 48)), 48, 48, 3, 48)), 48, 20)
    y = n.shuffle(n.concat(n.add("Add", [x, y]), n.conv(x, 20, 12, 3, dilations=[6, 6],
                                                        pads=[6] * 4)), 2, (32, 10, 14), 3)
    small = n.add("MaxPool", [y], kernel_shape=[2, 2], strides=[2, 2])
    up = n.add("ConvTranspose", [small, n.numbers(32, 9, 2, 2, scale=0.2)], strides=[2, 2])
    flat = n.add("Flatten", [n.add("GlobalAveragePool", [n.conv(y, 32, 24, 3, 2)])])
    dense = n.add("Gemm", [flat, n.numbers(24, 10), n.numbers(10)])
    of_unit_length = n.add("Div", [x, n.add("ReduceL2", [x], axes=[1])])
    return n.model(n.concat(up, y), dense, n.add("AveragePool", [x], kernel_shape=[3, 3]),
                   of_unit_length)


def windows_of_pictures() -> onnx.ModelProto:
    """Some pictures of a batch, and zeros or the nearest beside them, as volumes are taken apart
    (onnx_repair/rules/volumes.py)."""
    n = Network(17, size=(13, 11), batch=5)

    def pad(x: str, before: int, after: int, **attributes) -> str:
        return n.add("Pad", [x, n.weight(np.array([before, 0, 0, 0, after, 0, 0, 0]))],
                     **attributes)

    def cut(x: str, first: int, end: int, step: int = 1) -> str:
        return n.add("Slice", [x, *(n.weight(np.array([v])) for v in (first, end, 0, step))])

    x = n.relu(n.conv("x", 3, 16, 3))
    wide = pad(x, 1, 1)
    seen = [cut(wide, k, k + 5) for k in range(3)]
    y = n.relu(n.conv(n.concat(*seen), 48, 24, 3))
    gate = n.conv(n.add("GlobalAveragePool", [seen[0]]), 16, 16)
    each = n.add("Mul", [n.conv(seen[0], 16, 16, 3, 16), n.add("Sigmoid", [gate])])
    each = n.add("Add", [each, n.conv(seen[2], 16, 16, 3, 16)])
    other = n.conv(n.concat(cut(wide, 0, 7, 3), cut(y, 1, 4)), 40, 32, strides=[2, 2])
    # Planes of a transposed convolution lie behind each other in the channels.
    planes = n.add("Reshape", [other, n.weight(np.array([6, 16, 7, 6]))])
    edge = pad(x, 2, 1, mode="edge")
    most = n.add("Max", [cut(edge, 0, 7, 2), cut(edge, 1, 8, 2)])
    small = n.add("MaxPool", [cut(cut(edge, 2, 8), 1, 6, 2)], kernel_shape=[2, 2], strides=[2, 2])
    return n.model(n.conv(planes, 16, 9), n.conv(n.concat(y, each), 40, 8, 3),
                   n.add("CumSum", [seen[2], n.weight(np.array(1))]),
                   n.add("Softmax", [seen[1]], axis=1), most, cut(y, 0, 5, 2),
                   n.add("Resize", [small, "", n.numbers(0), n.weight(np.array([3, 16, 12, 10]))],
                         mode="nearest", coordinate_transformation_mode="asymmetric",
                         nearest_mode="floor"))


def one_row() -> onnx.ModelProto:
    """Along one axis: convolutions with and without groups, poolings, sums."""
    n = Network(11, channels=2, size=(203,))

    def conv(x: str, inputs: int, outputs: int, kernel: int, **attributes) -> str:
        depth = inputs // attributes.get("group", 1)
        return n.add("Conv", [x, n.numbers(outputs, depth, kernel, scale=(depth * kernel) ** -0.5),
                              n.numbers(outputs)], **attributes)
    x = n.relu(n.norm(conv("x", 2, 20, 15, strides=[4], pads=[7, 3]), 20))
    y = n.add("MaxPool", [x], kernel_shape=[3], strides=[2], pads=[1, 1])
    y = n.add("Add", [y, n.relu(conv(y, 20, 20, 5, group=20, pads=[4, 4], dilations=[2]))])
    y = conv(n.add("AveragePool", [y], kernel_shape=[2], strides=[2]), 20, 33, 1)
    y = n.add("Mul", [y, n.add("Sigmoid", [y])])
    return n.model(y, n.add("GlobalAveragePool", [y]), x)


def rows_cut_and_joined() -> onnx.ModelProto:
    """Along one axis: gates of a split, channels taken and joined, a normalisation of all numbers,
    one number of each row, a transposed convolution with overlap."""
    n = Network(26, channels=5, size=(61,))

    def conv(x: str, inputs: int, outputs: int, kernel: int = 1, **attributes) -> str:
        return n.add("Conv", [x, n.numbers(outputs, inputs, kernel, scale=0.3),
                              n.numbers(outputs)], **attributes)
    x = conv("x", 5, 24)
    left, right = n.split(conv(x, 24, 48, 3, dilations=[4], pads=[4, 4]), 24, 24)
    x = n.add("Add", [x, n.add("Mul", [n.add("Tanh", [left]), n.add("Sigmoid", [right])])])
    some = n.add("Slice", [x, *(n.weight(np.array([i], np.int64)) for i in (3, 24, 1, 2))])
    x = conv(n.concat(x, some), 35, 16)
    shape = n.weight(np.array([1, 1, -1], np.int64))
    flat = n.add("InstanceNormalization", [n.add("Reshape", [x, shape]), n.numbers(1),
                                           n.numbers(1)])
    back = n.add("Reshape", [flat, n.weight(np.array([1, 16, 61], np.int64))])
    x = n.relu(conv(n.add("Mul", [back, n.numbers(16, 1)]), 16, 20, 3))
    normal = n.add("InstanceNormalization", [x, n.numbers(20), n.numbers(20)])
    mean = n.add("ReduceMean", [normal], axes=[2], keepdims=1)
    most = n.add("ReduceMax", [normal], axes=[2], keepdims=0)
    up = n.add("ConvTranspose", [n.add("Mul", [normal, mean]), n.numbers(20, 6, 7, scale=0.2),
                                 n.numbers(6)], strides=[3], pads=[2, 1], output_padding=[1])
    return n.model(n.relu(up), most)


def numbers_of_planes() -> onnx.ModelProto:
    """Of each channel: lengths of vectors, largest and smallest numbers, means and variances; along
    channels and rows too."""
    n = Network(27)
    x = n.relu(n.conv("x", 3, 21, 3))
    length = n.add("ReduceL2", [x], axes=[2, 3], keepdims=1)
    scaled = n.add("Mul", [x, n.add("Div", [length, n.add("ReduceMean", [length], axes=[1],
                                                          keepdims=1)])])
    normal = n.add("InstanceNormalization", [n.conv(scaled, 21, 21), n.numbers(21), n.numbers(21)])
    most = n.add("ReduceMax", [normal], axes=[2, 3], keepdims=1)
    least = n.add("ReduceMin", [normal], axes=[3, 2], keepdims=1)
    apart = n.add("Sigmoid", [n.add("Add", [n.add("GlobalMaxPool", [scaled]),
                                            n.add("Sub", [most, least])])])
    x = n.conv(n.add("Mul", [normal, apart]), 21, 24)
    there = n.add("Sigmoid", [n.conv(n.concat(n.add("ReduceMax", [x], axes=[1], keepdims=1),
                                              n.add("ReduceMean", [x], axes=[1], keepdims=1)),
                                     2, 1, 3)])
    x = n.conv(n.add("Mul", [x, there]), 24, 16)
    squares = n.add("ReduceMean", [n.add("Mul", [x, x])], axes=[2, 3], keepdims=0)
    # As torch.nn.functional.normalize is exported.
    tokens = n.add("Reshape", [x, n.weight(np.array([1, 4, 4, 238], np.int64))])
    lengths = n.add("Expand", [n.add("ReduceL2", [tokens], axes=[-1], keepdims=1),
                               n.weight(np.array([1, 4, 4, 238], np.int64))])
    along_rows = n.add("ReduceSum", [x, n.weight(np.array([3], np.int64))], keepdims=0)
    return n.model(x, squares, n.add("Div", [tokens, lengths]), along_rows)


def branches_that_are_added() -> onnx.ModelProto:
    """Each of the first three sums is one convolution; the others stay apart."""
    n = Network(31, 20)

    def add(first: str, *rest: str) -> str:
        return n.add("Add", [first, add(*rest)]) if rest else first

    x = n.relu(add(n.norm(n.conv("x", 20, 20, 3, bias=False), 20), n.norm("x", 20),
                   n.norm(n.conv("x", 20, 20), 20)))
    by_channel = [n.norm(n.conv(x, 20, 20, kernel, 20, strides=[2, 2]), 20)
                  for kernel in (1, 3, 3, 1)]
    # A sum that a convolution reads as it is.
    y = n.conv(add(*by_channel), 20, 20)
    wide = n.conv(y, 20, 24, 5, bias=False)
    spread = n.conv(y, 20, 24, 3, pads=[2] * 4, dilations=[2, 2])
    corner = n.conv(y, 20, 24, 4, pads=[2, 1, 1, 2])
    z = n.relu(add(corner, wide, spread))
    # Together they would read what neither reads.
    across = [n.add("Conv", [z, n.numbers(24, 24, *size, scale=0.1)],
                    pads=[size[0] // 2, size[1] // 2] * 2) for size in ((1, 3), (3, 1))]
    # One is read by others too; groups and strides that differ.
    twice = n.conv(z, 24, 24)
    grouped = add(n.conv(z, 24, 24, 3, 4), twice)
    strided = add(n.conv(z, 24, 24, 3, strides=[2, 2]),
                  n.conv(n.add("MaxPool", [z], kernel_shape=[1, 1], strides=[2, 2]), 24, 24))
    return n.model(add(*across), grouped, twice, strided)


def weights_made_at_run_time() -> onnx.ModelProto:
    """Mixtures of kernels for each sample, modulated ones, and a picture sought in another one."""
    n = Network(32, 16, (13, 10), batch=2)

    def shaped(x: str, *shape: int) -> str:
        return n.add("Reshape", [x, n.weight(np.array(shape, np.int64))])

    mean = n.add("Flatten", [n.add("GlobalAveragePool", ["x"])])
    shares = n.add("Sigmoid", [n.add("MatMul", [mean, n.numbers(16, 4)])])

    def mixed(x: str, inputs: int, outputs: int, kernel: int, size: tuple[int, int],
              **attributes) -> str:
        """Of each sample by kernels of its own."""
        taps = kernel * kernel
        kernels = n.add("MatMul", [shares, n.numbers(4, outputs * inputs * taps,
                                                     scale=(inputs * taps) ** -0.5)])
        return n.add("Conv", [shaped(x, 1, 2 * inputs, *size),
                              shaped(kernels, 2 * outputs, inputs, kernel, kernel)],
                     group=2, **attributes)

    y = n.relu(n.norm(shaped(mixed("x", 16, 24, 1, (13, 10)), 2, 24, 13, 10), 24))
    z = shaped(mixed(y, 24, 12, 3, (13, 10), pads=[1] * 4, strides=[2, 1]), 2, 12, 7, 10)
    z = n.relu(n.add("Add", [z, n.numbers(12, 1, 1)]))
    w = shaped(mixed(z, 12, 5, 3, (7, 10), pads=[2, 1, 3, 2], dilations=[2, 1]), 2, 5, 8, 11)
    style = shaped(n.add("MatMul", [mean, n.numbers(16, 16)]), 2, 1, 16, 1, 1)
    styled = n.add("Mul", [n.numbers(1, 8, 16, 3, 3, scale=0.1), style])
    v = n.add("Conv", [shaped("x", 1, 32, 13, 10), shaped(styled, 16, 16, 3, 3)], group=2)
    # Every sample of one tensor by all kernels cut out of another: batch and groups differ.
    cut = n.add("Slice", ["x", *(n.weight(np.array(at, np.int64)) for at in (
        [4, 3], [9, 6], [2, 3]))])
    found = n.add("Conv", ["x", shaped(cut, 8, 4, 5, 3)], group=4)
    return n.model(w, v, found, n.conv(y, 24, 8, 3))


def random_network(seed: int) -> onnx.ModelProto:
    """Any order of convolutions, poolings, concatenations, splits, shuffles and sums."""
    n = Network(seed, size=(12, 11))
    n.random = np.random.default_rng(seed)
    pick = n.random.integers
    values = [(n.relu(n.conv("x", 3, 18, 3)), 18)]
    for _ in range(14):
        x, channels = values[pick(max(0, len(values) - 3), len(values))]
        kind = pick(8)
        if kind <= 1:
            outputs = int(pick(1, 41))
            y = n.conv(x, channels, outputs, int(1 + 2 * pick(2)))
            values.append((n.relu(y) if pick(2) else y, outputs))
        elif kind == 2:
            values.append((n.conv(x, channels, channels, 3, channels), channels))
        elif kind == 3 and channels <= 60:
            other, more = values[pick(len(values))]
            values.append((n.concat(x, other), channels + more))
        elif kind == 4 and channels > 2:
            cut = int(pick(1, channels))
            values += list(zip(n.split(x, cut, channels - cut), (cut, channels - cut)))
        elif kind == 5 and channels % 2 == 0:
            values.append((n.shuffle(x, 2, (channels, 12, 11)), channels))
        elif kind == 6:
            same = [v for v, count in values if count == channels]
            total = n.add("Add", [n.conv(x, channels, channels), same[pick(len(same))]])
            values.append((n.relu(total) if pick(2) else total, channels))
        else:
            values.append((n.add("MaxPool", [x], kernel_shape=[3, 3], pads=[1, 1, 1, 1]), channels))
    ends = sorted({values[-1][0], values[-2][0], values[int(pick(len(values)))][0]})
    return n.model(*ends)


NETWORKS: dict[str, Callable[[], onnx.ModelProto]] = {
    f.__name__: f for f in (
        residual_of_two_convolutions, residual_of_concatenated_channels,
        channels_that_are_there_twice, shuffled_units, squeeze_and_excite, activations,
        pixels_elsewhere, transposed_convolutions, vectors_as_pictures, explicit_padding,
        batch_of_three, windows_of_pictures, branches_that_are_added, one_row,
        rows_cut_and_joined, numbers_of_planes,
        pools_of_every_kind, pre_activation_and_slices, layers_left_to_the_compiler,
        weights_made_at_run_time)}
