"""Small networks of matrix products, attention and normalised rows, as ONNX models."""

from __future__ import annotations

from typing import Callable

import numpy as np
import onnx

from network_builder import Network


class Rows(Network):
    """A network on an input of any shape."""

    def __init__(self, seed: int, *shape: int):
        super().__init__(seed)
        self.shape = {"x": shape}

    def linear(self, x: str, inputs: int, outputs: int) -> str:
        y = self.add("MatMul", [x, self.numbers(inputs, outputs, scale=inputs ** -0.5)])
        return self.add("Add", [y, self.numbers(outputs)])

    def reshape(self, x: str, *shape: int) -> str:
        return self.add("Reshape", [x, self.weight(np.array(shape, np.int64))])

    def transpose(self, x: str, *order: int) -> str:
        return self.add("Transpose", [x], perm=list(order))

    def number(self, value: float) -> str:
        return self.weight(np.float32(value))

    def layer_norm(self, x: str, size: int) -> str:
        """As exporters of old opsets spell it."""
        centred = self.add("Sub", [x, self.add("ReduceMean", [x], axes=[-1])])
        square = self.add("Pow", [centred, self.number(2)])
        variance = self.add("ReduceMean", [square], axes=[-1])
        deviation = self.add("Sqrt", [self.add("Add", [variance, self.number(1e-5)])])
        scaled = self.add("Mul", [self.add("Div", [centred, deviation]), self.numbers(size)])
        return self.add("Add", [scaled, self.numbers(size)])

    def gelu(self, x: str) -> str:
        erf = self.add("Erf", [self.add("Div", [x, self.number(1.41421356)])])
        product = self.add("Mul", [x, self.add("Add", [erf, self.number(1)])])
        return self.add("Mul", [product, self.number(0.5)])

    def recurrent(self, op: str, x: str, inputs: int, hidden: int, directions: int, *states: str,
                  **attributes) -> list[str]:
        gates = {"LSTM": 4, "GRU": 3}[op] * hidden
        weights = [self.numbers(directions, gates, k, scale=k ** -0.5) for k in (inputs, hidden)]
        bias = self.numbers(directions, 2 * gates)
        return self.add(op, [x, *weights, bias, "", *states], 3 if op == "LSTM" else 2,
                        hidden_size=hidden, **attributes)

    def attention(self, x: str, batch: int, length: int, heads: int, size: int,
                  mask: str | None = None) -> str:
        """By one product for queries, keys and values, cut afterwards."""
        width = heads * size
        three = self.reshape(self.linear(x, width, 3 * width), batch, length, 3, heads, size)
        parts = self.add("Split", [self.transpose(three, 2, 0, 3, 1, 4)], 3, axis=0)
        query, key, value = (self.add("Squeeze", [p, self.weight(np.array([0], np.int64))])
                             for p in parts)
        scores = self.add("MatMul", [query, self.transpose(key, 0, 1, 3, 2)])
        scores = self.add("Mul", [scores, self.number(size ** -0.5)])
        if mask is not None:
            scores = self.add("Add", [scores, mask])
        mixed = self.add("MatMul", [self.add("Softmax", [scores], axis=-1), value])
        joined = self.reshape(self.transpose(mixed, 0, 2, 1, 3), batch, length, width)
        return self.linear(joined, width, width)


def encoder_with_norms_first() -> onnx.ModelProto:
    n = Rows(1, 2, 13, 24)
    x = "x"
    for _ in range(2):
        x = n.add("Add", [x, n.attention(n.layer_norm(x, 24), 2, 13, 3, 8)])
        hidden = n.gelu(n.linear(n.layer_norm(x, 24), 24, 50))
        x = n.add("Add", [x, n.linear(hidden, 50, 24)])
    return n.model(n.layer_norm(x, 24))


def encoder_with_norms_last_and_a_mask() -> onnx.ModelProto:
    n = Rows(2, 3, 10, 32)
    mask = n.weight(np.where(n.random.random((3, 1, 1, 10)) < 0.3, -1e4, 0).astype(np.float32))
    x = n.layer_norm(n.add("Add", ["x", n.attention("x", 3, 10, 2, 16, mask)]), 32)
    hidden = n.add("Tanh", [n.linear(x, 32, 20)])
    x = n.layer_norm(n.add("Add", [n.linear(hidden, 20, 32), x]), 32)
    first = n.add("Gather", [x, n.weight(np.array(0, np.int64))], axis=1)
    return n.model(x, n.add("Tanh", [n.linear(first, 32, 7)]))


def tokens_of_a_picture() -> onnx.ModelProto:
    """From blocks to tokens, and back to a picture that a convolution reads."""
    n = Rows(3, 1, 3, 16, 12)
    x = n.conv("x", 3, 32, 2, strides=[2, 2], pads=[0, 0, 0, 0])
    tokens = n.transpose(n.reshape(x, 1, 32, 48), 0, 2, 1)
    tokens = n.add("Add", [tokens, n.numbers(1, 48, 32)])
    tokens = n.add("Add", [tokens, n.attention(n.layer_norm(tokens, 32), 1, 48, 4, 8)])
    picture = n.reshape(n.transpose(tokens, 0, 2, 1), 1, 32, 8, 6)
    y = n.add("Add", [n.conv(picture, 32, 32, 3, 32), x])
    last = n.transpose(n.gelu(n.linear(n.layer_norm(n.transpose(y, 0, 2, 3, 1), 32), 32, 20)),
                       0, 3, 1, 2)
    return n.model(n.conv(last, 20, 8), n.add("ReduceMean", [tokens], axes=[1]))


def windows_shifted_and_mixed() -> onnx.ModelProto:
    """A window partition as Swin's, and its way back."""
    n = Rows(4, 2, 8, 12, 16)
    six = n.reshape(n.layer_norm("x", 16), 2, 2, 4, 3, 4, 16)
    windows = n.reshape(n.transpose(six, 0, 1, 3, 2, 4, 5), 12, 16, 16)
    mixed = n.attention(windows, 12, 16, 2, 8, n.numbers(1, 2, 16, 16))
    six = n.transpose(n.reshape(mixed, 2, 2, 3, 4, 4, 16), 0, 1, 3, 2, 4, 5)
    return n.model(n.add("Add", ["x", n.reshape(six, 2, 8, 12, 16)]))


def mixer_and_gates() -> onnx.ModelProto:
    """Products along either axis, a gate of two products, root mean squares, sums of rows."""
    n = Rows(5, 2, 9, 40)
    across = n.transpose(n.linear(n.transpose("x", 0, 2, 1), 9, 9), 0, 2, 1)
    x = n.add("Add", ["x", across])
    mean = n.add("ReduceMean", [n.add("Mul", [x, x])], axes=[-1])
    root = n.add("Sqrt", [n.add("Add", [mean, n.number(1e-6)])])
    x = n.add("Mul", [n.add("Mul", [x, n.add("Reciprocal", [root])]), n.numbers(40)])
    gate = n.linear(x, 40, 23)
    gate = n.add("Mul", [gate, n.add("Sigmoid", [gate])])
    x = n.linear(n.add("Mul", [gate, n.linear(x, 40, 23)]), 23, 6)
    tokens = n.add("Mul", [n.add("Exp", [n.add("Neg", [n.add("Abs", [x])])]), n.numbers(2, 1, 6)])
    return n.model(tokens, n.add("ReduceMax", [x], axes=[-1], keepdims=0),
                   n.add("LogSoftmax", [x], axis=-1), n.add("Transpose", [x], perm=[1, 2, 0]))


def products_of_inputs() -> onnx.ModelProto:
    """Neither side is a constant; batches that are broadcast; a vector of one row."""
    n = Rows(6, 2, 3, 7, 11)
    square = n.add("MatMul", ["x", n.transpose("x", 0, 1, 3, 2)])
    one = n.add("Slice", ["x", *(n.weight(np.array([v], np.int64)) for v in (1, 2, 1))])
    wide = n.add("MatMul", [one, n.numbers(2, 1, 11, 19)])
    rows = n.reshape("x", 42, 11)
    gemm = n.add("Gemm", [rows, n.numbers(5, 11), n.numbers(5)], alpha=0.5, beta=2.0, transB=1)
    stepped = n.add("Slice", [gemm, *(n.weight(np.array([v], np.int64)) for v in (1, 40, 0, 3))])
    return n.model(square, wide, gemm, stepped)


def rows_of_one_number() -> onnx.ModelProto:
    """Attention to a single key, normalised single numbers, and rows whose numbers are alike."""
    n = Rows(7, 2, 4, 24)
    key = n.linear(n.add("Slice", ["x", *map(n.weight, (np.array([0]), np.array([1]),
                                                        np.array([1])))]), 24, 24)
    scores = n.add("MatMul", ["x", n.transpose(key, 0, 2, 1)])
    seen = n.add("MatMul", [n.add("Softmax", [scores], axis=-1), key])
    wide = n.add("Expand", [scores, n.weight(np.array([2, 4, 6]))])
    alike = n.add("MatMul", [n.add("Softmax", [wide], axis=-1), n.numbers(6, 5)])
    return n.model(seen, alike, n.layer_norm(scores, 1),
                   n.add("LogSoftmax", [scores], axis=-1))


def nothing_left_of_numbers_that_are_alike() -> onnx.ModelProto:
    """The range of scaled numbers, as networks of sounds take it in silence: which is 0 exactly,
    in each row and in all, however many places the product is computed in."""
    n = Rows(9, 6, 40)
    alike = n.add("MatMul", ["x", n.weight(np.zeros((40, 24), np.float32))])
    alike = n.add("Exp", [n.add("Add", [alike, n.number(-0.7313)])])
    log, outputs = n.add("Log", [alike]), []
    # Twice over each row in a kernel, and in kernels of their own.
    for factor, axes in ((n.weight(np.full(24, 4.3429446, np.float32)), [1]),
                         (n.number(4.3429446), [1, 2])):
        scaled = n.add("Mul", [log, factor])
        above = n.add("Sub", [scaled, n.add("ReduceMin", [scaled], axes=axes)])
        outputs.append(n.add("Mul", [above, n.number(1e9)]))
        log = n.reshape(log, 1, 6, 24)
    return n.model(*outputs)


def recurrent_in_both_directions() -> onnx.ModelProto:
    """As torch writes them, two alike after each other, and a last state that is read."""
    n = Rows(7, 6, 3, 10)

    def joined(y: str, width: int) -> str:
        return n.reshape(n.transpose(y, 0, 2, 1, 3), 6, 3, width)
    states = [n.numbers(2, 3, 20), n.numbers(2, 3, 20)]
    both = {"direction": "bidirectional"}
    first = n.recurrent("LSTM", "x", 10, 20, 2, *states, **both)
    second = n.recurrent("LSTM", joined(first[0], 40), 40, 20, 2, *states, **both)
    third = n.recurrent("LSTM", joined(second[0], 40), 40, 20, 2, *states, **both)
    gru = n.recurrent("GRU", joined(third[0], 40), 40, 17, 1, linear_before_reset=1)
    plain = n.recurrent("GRU", joined(gru[0], 17), 17, 5, 1)
    return n.model(first[2], second[1], gru[0], gru[1], plain[0])


def recurrent_with_kernels() -> onnx.ModelProto:
    """One of them backwards, one without biases, and first states that are computed."""
    n = Rows(8, 5, 2, 6)
    first = n.add("Squeeze", [n.add("Slice", [
        "x", *(n.weight(np.array([v], np.int64)) for v in (2, 3, 0))])])
    both = n.transpose(n.reshape(n.linear(first, 6, 22), 2, 2, 11), 1, 0, 2)
    lstm = n.recurrent("LSTM", "x", 6, 11, 2, both, both, direction="bidirectional")
    joined = n.reshape(n.transpose(lstm[0], 0, 2, 1, 3), 5, 2, 22)
    gru = n.recurrent("GRU", joined, 22, 7, 1, linear_before_reset=1, direction="reverse")
    plain = n.add("LSTM", ["x", n.numbers(1, 12, 6), n.numbers(1, 12, 3)], 3, hidden_size=3)
    return n.model(lstm[1], lstm[2], gru[0], gru[1], plain[0], plain[2])


def steps_quantised_at_run_time() -> onnx.ModelProto:
    """As ONNX Runtime's quantiser writes an LSTM: signed and unsigned weights, steps for columns
    and for directions, the outputs of one read by the next, states that are given."""
    n = Rows(3, 2, 3, 10)

    def layer(x: str, inputs: int, hidden: int, dtype: type, columns: bool, *states: str,
              direction: str) -> list[str]:
        count = 1 + (direction == "bidirectional")
        shape = (count, 4 * hidden) if columns else (count,)
        rng, low = np.random.default_rng(inputs), np.iinfo(dtype).min
        weights = [n.weight(rng.integers(low, low + 256, (count, k, 4 * hidden)).astype(dtype))
                   for k in (inputs, hidden)]
        steps = [n.weight(rng.uniform(0.5, 1, shape).astype(np.float32) / 70 / k ** 0.5)
                 for k in (inputs, hidden)]
        zeros = [n.weight(np.full(shape, low + z, dtype)) for z in (128, 120)]
        return n.add("DynamicQuantizeLSTM", [
            x, *weights, n.numbers(count, 8 * hidden), "", *(states or ("", "")), "", steps[0],
            zeros[0], steps[1], zeros[1]], 3, domain="com.microsoft", hidden_size=hidden,
            direction=direction)
    states = [n.numbers(2, 3, 20), n.numbers(2, 3, 20)]
    first = layer("x", 10, 20, np.uint8, True, *states, direction="bidirectional")
    joined = n.reshape(n.transpose(first[0], 0, 2, 1, 3), 2, 3, 40)
    second = layer(joined, 40, 7, np.int8, False, direction="reverse")
    return n.model(first[1], first[2], second[0], second[1])


def numbers_chosen_by_comparison() -> onnx.ModelProto:
    n = Rows(64, 6, 24)
    limit, none = n.numbers(24), n.number(0)
    least = n.add("Where", [n.add("Less", ["x", limit]), "x", limit])
    same = n.add("Where", [n.add("Equal", [least, limit]), n.number(2), n.add("Atan", ["x"])])
    other = n.add("Where", [n.add("Not", [n.add("Equal", [least, "x"])]), same, n.numbers(6, 1)])
    inside = n.add("And", [n.add("GreaterOrEqual", ["x", none]),
                           n.add("LessOrEqual", ["x", limit])])
    outside = n.add("Or", [n.add("Not", [inside]), n.add("Greater", ["x", n.numbers(6, 24)])])
    counted = n.add("Cast", [outside], to=onnx.TensorProto.FLOAT)
    return n.model(n.add("Where", [inside, other, n.add("Tan", ["x"])]), counted)


def numbers_in_other_places() -> onnx.ModelProto:
    """Over and over, and with two neighbours, of two and of three rows, taken in turns."""
    n = Rows(65, 1, 12, 7, 5)
    again = n.add("Tile", [n.add("Exp", ["x"]), n.weight(np.array([2, 1, 3, 2], np.int64))])
    return n.model(again, n.add("DepthToSpace", ["x"], blocksize=2),
                   n.add("DepthToSpace", ["x"], blocksize=2, mode="CRD"),
                   n.transpose(n.reshape("x", 3, 4, 35), 1, 2, 0))


NETWORKS: dict[str, Callable[[], onnx.ModelProto]] = {
    f.__name__: f for f in (
        encoder_with_norms_first, encoder_with_norms_last_and_a_mask, tokens_of_a_picture,
        windows_shifted_and_mixed, mixer_and_gates, products_of_inputs,
        rows_of_one_number, nothing_left_of_numbers_that_are_alike,
        recurrent_in_both_directions, recurrent_with_kernels, numbers_chosen_by_comparison,
        numbers_in_other_places)}
