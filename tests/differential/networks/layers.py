"""Layers with seeded weights, for writing a network in a few lines."""

from __future__ import annotations

import numpy as np
from tvm import relay

from .registry import Network, expression_network


class Layers:
    """Collects the parameters of the layers that it makes. NCHW throughout."""

    def __init__(self, rng: np.random.Generator, dtype: str = "float32"):
        self._rng = rng
        self._dtype = dtype
        self.params: dict[str, np.ndarray] = {}

    def parameter(self, shape: tuple[int, ...], scale: float = 1.0, offset: float = 0.0,
                  positive: bool = False) -> relay.Var:
        values = self._rng.standard_normal(shape) * scale + offset
        if positive:
            values = np.abs(values) + 0.1
        name = f"w{len(self.params)}"
        self.params[name] = values.astype(self._dtype)
        return relay.var(name, shape=shape, dtype=self._dtype)

    def conv(self, x: relay.Expr, channels: int, kernel: int | tuple[int, int] = 3, *,
             stride: int = 1, pad: int | tuple[int, ...] = 0, groups: int = 1, dilation: int = 1,
             bias: bool = True) -> relay.Expr:
        rows, columns = (kernel, kernel) if isinstance(kernel, int) else kernel
        in_channels = channels_of(x)
        shape = (channels, in_channels // groups, rows, columns)
        fan_in = shape[1] * rows * columns
        y = relay.nn.conv2d(x, self.parameter(shape, scale=fan_in ** -0.5),
                            strides=(stride, stride), padding=pad, dilation=(dilation, dilation),
                            groups=groups, channels=channels, kernel_size=(rows, columns))
        return relay.nn.bias_add(y, self.parameter((channels,), scale=0.1)) if bias else y

    def depthwise(self, x: relay.Expr, kernel: int = 3, *, stride: int = 1,
                  pad: int | tuple[int, ...] = 1, bias: bool = False) -> relay.Expr:
        channels = channels_of(x)
        return self.conv(x, channels, kernel, stride=stride, pad=pad, groups=channels, bias=bias)

    def batch_norm(self, x: relay.Expr) -> relay.Expr:
        shape = (channels_of(x),)
        return relay.nn.batch_norm(x, self.parameter(shape, 0.2, 1.0), self.parameter(shape, 0.1),
                                   self.parameter(shape, 0.1),
                                   self.parameter(shape, 0.2, positive=True))[0]

    def conv_norm(self, x: relay.Expr, channels: int, kernel: int = 3, **options) -> relay.Expr:
        return self.batch_norm(self.conv(x, channels, kernel, bias=False, **options))

    def dense(self, x: relay.Expr, units: int, bias: bool = True) -> relay.Expr:
        features = shape_of(x)[-1]
        y = relay.nn.dense(x, self.parameter((units, features), scale=features ** -0.5),
                           units=units)
        return relay.nn.bias_add(y, self.parameter((units,), scale=0.1)) if bias else y

    def network(self, outputs: relay.Expr | list[relay.Expr], inputs: dict[str, np.ndarray],
                **options: object) -> Network:
        return expression_network(outputs, inputs, params=self.params, **options)


def shape_of(x: relay.Expr) -> tuple[int, ...]:
    return tuple(int(d) for d in relay.transform.InferTypeLocal(x).shape)


def channels_of(x: relay.Expr) -> int:
    return shape_of(x)[1]


def relu6(x: relay.Expr) -> relay.Expr:
    return relay.clip(x, 0.0, 6.0)


def global_pool(x: relay.Expr) -> relay.Expr:
    return relay.nn.batch_flatten(relay.nn.global_avg_pool2d(x))


def channel_shuffle(x: relay.Expr, groups: int) -> relay.Expr:
    batch, channels, rows, columns = shape_of(x)
    y = relay.reshape(x, (batch, groups, channels // groups, rows, columns))
    y = relay.transpose(y, (0, 2, 1, 3, 4))
    return relay.reshape(y, (batch, channels, rows, columns))
