"""Networks of a few layers as TensorFlow Lite files, written with the schema's own package."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import flatbuffers
import numpy as np
import tflite

_TYPES = {"float32": 0, "float16": 1, "int32": 2, "uint8": 3, "int64": 4, "bool": 6, "int16": 7,
          "complex64": 8, "int8": 9, "resource": 13, "int4": 17, "int2": 19}


class TfliteNetwork:
    """A file in the making: tensors have numbers, operators take and give them."""

    def __init__(self, seed: int = 0):
        self.random = np.random.default_rng(seed)
        self.tensors: list[dict[str, Any]] = []
        self.operators: list[tuple] = []
        self.inputs: list[int] = []
        self.outputs: list[int] = []
        self.graphs: list[TfliteNetwork] = []
        """Those that operators call, by numbers from 1 on."""
        self.has_earlier_codes = True
        """Whether files say what operators are for readers of before 2021, too."""
        self.behind: list[bytes] | None = None
        """A list, if constants are to lie behind all tables of the file."""

    def tensor(self, shape, dtype="float32", scale=None, zero=0, data=None, name=None,
               axis=0, signature=None, variable=False, blocks=None) -> int:
        """signature: the shape with -1 for what is known at run time only.  variable: whether it is
        a state.  blocks: the tensors of its scales and of its zero points (-1 of none), and how
        many numbers of the last axis share one."""
        self.tensors.append(dict(shape=tuple(shape), dtype=dtype, scale=scale, zero=zero, data=data,
                                 name=f"t{len(self.tensors)}" if name is None else name, axis=axis,
                                 signature=signature, variable=variable, blocks=blocks))
        return len(self.tensors) - 1

    def constant(self, values, **options) -> int:
        values = np.asarray(values)
        return self.tensor(values.shape, str(values.dtype), data=values, **options)

    def add(self, code: str, inputs, outputs, options: str | None = None, custom: bytes = b"",
            custom_code: str = "", **fields) -> int:
        self.operators.append((code, list(inputs), list(outputs), options, fields, custom,
                               custom_code))
        return outputs[0] if outputs else -1

    def like(self, x: int, shape, scale=None, zero=0) -> int:
        """A tensor of x's type."""
        return self.tensor(shape, self.tensors[x]["dtype"], scale, zero)

    def conv(self, x: int, outputs: int, kernel: int = 3, stride: int = 1, activation: int = 0,
             depthwise: bool = False, out=(None, 0), dilation: int = 1, same: bool = True) -> int:
        """A convolution; with `out` (scale, zero point) of bytes, weights with a scale a channel,
        and a bias of whole numbers."""
        source = self.tensors[x]
        batch, height, width, channels = source["shape"]
        depth = kernel * kernel * (1 if depthwise else channels)
        if depthwise:
            shape, axis = (1, kernel, kernel, outputs), 3
        else:
            shape, axis = (outputs, kernel, kernel, channels), 0
        weights = self.random.standard_normal(shape).astype(np.float32) / depth ** 0.5
        bias = self.random.standard_normal(outputs).astype(np.float32) / 4
        if out[0] is None:
            ins = [self.constant(weights), self.constant(bias)]
        else:
            ins = self._whole_weights(weights, bias, source, axis)
        reach = (kernel - 1) * dilation + 1
        size = [-(-n // stride) if same else (n - reach) // stride + 1 for n in (height, width)]
        y = self.like(x, (batch, *size, outputs), *out)
        options = dict(Padding=0 if same else 1, StrideH=stride, StrideW=stride,
                       FusedActivationFunction=activation, DilationHFactor=dilation,
                       DilationWFactor=dilation)
        if depthwise:
            return self.add("DEPTHWISE_CONV_2D", [x, *ins], [y], "DepthwiseConv2DOptions",
                            DepthMultiplier=outputs // channels, **options)
        return self.add("CONV_2D", [x, *ins], [y], "Conv2DOptions", **options)

    def _whole_weights(self, weights, bias, source, axis: int | None) -> list[int]:
        """Signed weights with a scale for each place of `axis`, or unsigned ones with one scale;
        and the bias in steps of the sum."""
        unsigned = source["dtype"] == "uint8"
        if axis is None or unsigned:
            scales = np.abs(weights).max().reshape(1) / 127
            grid = scales
        else:
            others = tuple(i for i in range(weights.ndim) if i != axis)
            scales = np.abs(weights).max(axis=others) / 127
            grid = scales.reshape([-1 if i == axis else 1 for i in range(weights.ndim)])
        ints = np.rint(weights / grid).astype(np.int8)
        zero = 0
        if unsigned:
            zero = 131
            ints = (ints.astype(int) + zero).clip(0, 255).astype(np.uint8)
        steps = scales.astype(np.float32) * np.float32(source["scale"])
        per_channel = np.broadcast_to(steps, bias.shape)
        return [self.constant(ints, scale=scales.astype(np.float32), axis=axis or 0, zero=zero),
                self.constant(np.rint(bias / per_channel).astype(np.int32), scale=steps)]

    def pool(self, x: int, code: str, window: int, stride: int) -> int:
        source = self.tensors[x]
        batch, height, width, channels = source["shape"]
        size = [-(-n // stride) for n in (height, width)]
        y = self.like(x, (batch, *size, channels), source["scale"], source["zero"])
        return self.add(code, [x], [y], "Pool2DOptions", Padding=0, StrideH=stride, StrideW=stride,
                        FilterHeight=window, FilterWidth=window)

    def mean(self, x: int, out=(None, 0)) -> int:
        """Over height and width."""
        shape = self.tensors[x]["shape"]
        y = self.like(x, (shape[0], shape[3]), *out)
        return self.add("MEAN", [x, self.constant(np.array([1, 2], np.int32))], [y],
                        "ReducerOptions", KeepDims=False)

    def dense(self, x: int, outputs: int, out=(None, 0)) -> int:
        source = self.tensors[x]
        rows, inputs = source["shape"]
        weights = self.random.standard_normal((outputs, inputs)).astype(np.float32) / inputs ** 0.5
        bias = self.random.standard_normal(outputs).astype(np.float32) / 4
        if out[0] is None:
            ins = [self.constant(weights), self.constant(bias)]
        else:
            ins = self._whole_weights(weights, bias, source, None)
        y = self.like(x, (rows, outputs), *out)
        return self.add("FULLY_CONNECTED", [x, *ins], [y], "FullyConnectedOptions")

    def binary(self, code: str, a: int, b: int, out=(None, 0), activation: int = 0) -> int:
        y = self.like(a, self.tensors[a]["shape"], *out)
        options = {"ADD": "AddOptions", "MUL": "MulOptions"}[code]
        return self.add(code, [a, b], [y], options, FusedActivationFunction=activation)

    def unary(self, code: str, x: int, out=(None, 0)) -> int:
        y = self.like(x, self.tensors[x]["shape"], *out)
        return self.add(code, [x], [y], {"SOFTMAX": "SoftmaxOptions"}.get(code), **(
            {"Beta": 1.0} if code == "SOFTMAX" else {}))

    def save(self, path: Path) -> Path:
        path.write_bytes(self._bytes())
        return path

    def _bytes(self) -> bytes:
        b = flatbuffers.Builder(1024)

        def table(kind: str, **fields) -> int:
            getattr(tflite, f"{kind}Start")(b)
            for name, value in fields.items():
                if value is not None:
                    getattr(tflite, f"{kind}Add{name}")(b, value)
            return getattr(tflite, f"{kind}End")(b)

        def ints(values) -> int:
            return b.CreateNumpyVector(np.asarray(values, np.int32))

        def offsets(values) -> int:
            b.StartVector(4, len(values), 4)
            for value in reversed(values):
                b.PrependUOffsetTRelative(value)
            return b.EndVector()

        codes = sorted({(o[0], o[6]) for n in (self, *self.graphs) for o in n.operators})
        buffers = [table("Buffer")]
        graphs = [n._graph(b, table, ints, offsets, codes, buffers) for n in (self, *self.graphs)]
        listed = []
        for code, custom_code in codes:
            number = getattr(tflite.BuiltinOperator, code)
            listed.append(table("OperatorCode", BuiltinCode=number,
                                Version=2 if code == "BROADCAST_TO" else 1,
                                DeprecatedBuiltinCode=min(number, 127)
                                if self.has_earlier_codes else None,
                                CustomCode=b.CreateString(custom_code) if custom_code else None))
        root = table("Model", Version=3, OperatorCodes=offsets(listed), Subgraphs=offsets(graphs),
                     Buffers=offsets(buffers), Description=b.CreateString("test"))
        b.Finish(root, b"TFL3")
        file = bytearray(b.Output())
        model = tflite.Model.GetRootAs(bytes(file), 0)
        stored = iter(self.behind or [])
        for table_of in (model.Buffers(i)._tab for i in range(model.BuffersLength())):
            if table_of.Offset(6):
                struct.pack_into("<Q", file, table_of.Pos + table_of.Offset(6), len(file))
                file += next(stored)
        return bytes(file)

    def _graph(self, b, table, ints, offsets, codes, buffers) -> int:
        """Writes a graph; adds to the buffers of the file."""
        tensors = []
        for t in self.tensors:
            buffer = 0
            if t["data"] is not None:
                data = np.frombuffer(np.ascontiguousarray(t["data"]).tobytes(), np.uint8)
                if self.behind is None:
                    buffers.append(table("Buffer", Data=b.CreateNumpyVector(data)))
                else:
                    buffers.append(table("Buffer", Offset=2, Size=data.size))
                    self.behind.append(data.tobytes() + bytes(-data.size % 16))
                buffer = len(buffers) - 1
            quantization = None
            if t["scale"] is not None:
                scales = np.atleast_1d(np.asarray(t["scale"], np.float32))
                quantization = table(
                    "QuantizationParameters", Scale=b.CreateNumpyVector(scales),
                    ZeroPoint=b.CreateNumpyVector(np.full(len(scales), t["zero"], np.int64)),
                    QuantizedDimension=t["axis"])
            if t["blocks"] is not None:
                b.StartObject(4)  # BlockwiseQuantization, which the package is older than.
                for slot, value in enumerate(t["blocks"]):
                    b.PrependInt32Slot(slot, value, 0)
                quantization = table("QuantizationParameters", DetailsType=2, Details=b.EndObject())
            signature = ints(t["signature"]) if t["signature"] is not None else None
            tensors.append(table("Tensor", Name=b.CreateString(t["name"]), Shape=ints(t["shape"]),
                                 Type=_TYPES[t["dtype"]], Buffer=buffer,
                                 Quantization=quantization, ShapeSignature=signature,
                                 IsVariable=t["variable"] or None))
        operators = []
        for code, inputs, outputs, options, fields, custom, custom_code in self.operators:
            lists = {name: b.CreateNumpyVector(np.asarray(
                value, np.float32 if any(isinstance(v, float) for v in value) else np.int64))
                for name, value in fields.items() if isinstance(value, list)}
            lists |= {name: b.CreateString(value) for name, value in fields.items()
                      if isinstance(value, str)}
            lists |= {name: b.CreateByteVector(value) for name, value in fields.items()
                      if isinstance(value, bytes)}
            made = table(options, **{**fields, **lists}) if options else None
            later = "2" if options and hasattr(tflite.BuiltinOptions2, options) else ""
            kinds = tflite.BuiltinOptions2 if later else tflite.BuiltinOptions
            said = {f"BuiltinOptions{later}": made, f"BuiltinOptions{later}Type": getattr(
                kinds, options)} if options else {}
            operators.append(table(
                "Operator", OpcodeIndex=codes.index((code, custom_code)), Inputs=ints(inputs),
                Outputs=ints(outputs), **said,
                CustomOptions=b.CreateNumpyVector(np.frombuffer(custom, np.uint8))
                if custom else None))
        return table("SubGraph", Tensors=offsets(tensors), Inputs=ints(self.inputs),
                     Outputs=ints(self.outputs), Operators=offsets(operators))


def float_network() -> TfliteNetwork:
    """Convolutions of all kinds, pooling, a sum, and a fully connected layer."""
    n = TfliteNetwork(1)
    x = n.tensor((1, 17, 14, 3), name="picture")
    n.inputs = [x]
    a = n.conv(x, 16, stride=2, activation=3)
    d = n.conv(a, 32, depthwise=True, activation=1)
    e = n.conv(d, 16, kernel=1)
    f = n.binary("ADD", a, e, activation=1)
    g = n.conv(f, 16, dilation=2, same=False)
    p = n.pool(f, "MAX_POOL_2D", 3, 2)
    q = n.pool(f, "AVERAGE_POOL_2D", 2, 2)
    n.outputs = [n.unary("SOFTMAX", n.dense(n.mean(p), 5)), g, n.unary("LOGISTIC", q)]
    return n


def byte_network(dtype: str = "int8", batch: int = 1) -> TfliteNetwork:
    """The same in whole numbers throughout."""
    n = TfliteNetwork(2)
    zero = 0 if dtype == "int8" else 128
    x = n.tensor((batch, 17, 14, 3), dtype, 1 / 128, zero, name="picture")
    n.inputs = [x]
    low = -128 + zero
    a = n.conv(x, 16, stride=2, activation=3, out=(0.02, low))
    d = n.conv(a, 32, depthwise=True, activation=1, out=(0.017, low))
    e = n.conv(d, 16, kernel=1, out=(0.021, zero + 7))
    f = n.binary("ADD", a, e, out=(0.03, low + 50), activation=1)
    p = n.pool(f, "MAX_POOL_2D", 3, 2)
    q = n.pool(f, "AVERAGE_POOL_2D", 2, 2)
    m = n.mean(p, out=(0.02, low))
    y = n.dense(m, 5, out=(0.03, zero + 3))
    n.outputs = [n.unary("SOFTMAX", y, out=(1 / 256, low)), y, q,
                 n.unary("LOGISTIC", e, out=(1 / 256, low))]
    return n
