"""Networks of this project's own, of kinds for which no library of networks is at hand."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def conv_silu(inputs: int, outputs: int, kernel: int = 3, stride: int = 1) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False),
                         nn.BatchNorm2d(outputs), nn.SiLU())


class Split(nn.Module):
    """Half of the channels through residual units, then all of them joined."""

    def __init__(self, channels: int, units: int) -> None:
        super().__init__()
        half = channels // 2
        self.enter = conv_silu(channels, channels, 1)
        self.units = nn.ModuleList(
            nn.Sequential(conv_silu(half, half), conv_silu(half, half)) for _ in range(units))
        self.leave = conv_silu(half * (2 + units), channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        parts = list(self.enter(x).chunk(2, 1))
        for unit in self.units:
            parts.append(parts[-1] + unit(parts[-1]))
        return self.leave(torch.cat(parts, 1))


class FastPyramidPool(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.enter = conv_silu(channels, channels // 2, 1)
        self.pool = nn.MaxPool2d(5, 1, 2)
        self.leave = conv_silu(channels * 2, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        parts = [self.enter(x)]
        for _ in range(3):
            parts.append(self.pool(parts[-1]))
        return self.leave(torch.cat(parts, 1))


class Detector(nn.Module):
    """A one-stage detector: SiLU, three scales, an up and a down path, anchor-free boxes decoded
    from a distribution over distances. Gives 1 x (4 + classes) x positions."""

    def __init__(self, width: int = 16, classes: int = 80, bins: int = 16) -> None:
        super().__init__()
        a, b, c, d = width * 2, width * 4, width * 8, width * 16
        self.stem = nn.Sequential(conv_silu(3, width, 3, 2), conv_silu(width, a, 3, 2), Split(a, 1))
        self.to8 = nn.Sequential(conv_silu(a, b, 3, 2), Split(b, 2))
        self.to16 = nn.Sequential(conv_silu(b, c, 3, 2), Split(c, 2))
        self.to32 = nn.Sequential(conv_silu(c, d, 3, 2), Split(d, 1), FastPyramidPool(d))
        self.up = nn.Upsample(scale_factor=2, mode="nearest")
        self.up16, self.up8 = conv_silu(c + d, c, 1), conv_silu(b + c, b, 1)
        self.down16, self.down32 = conv_silu(b, b, 3, 2), conv_silu(c, c, 3, 2)
        self.join16, self.join32 = conv_silu(b + c, c, 1), conv_silu(c + d, d, 1)
        self.boxes = nn.ModuleList(
            nn.Sequential(conv_silu(n, b), nn.Conv2d(b, 4 * bins, 1)) for n in (b, c, d))
        self.scores = nn.ModuleList(
            nn.Sequential(conv_silu(n, b), nn.Conv2d(b, classes, 1)) for n in (b, c, d))
        self.bins = bins
        self.register_buffer("steps", torch.arange(bins, dtype=torch.float32))

    def forward(self, picture: Tensor) -> Tensor:
        p8 = self.to8(self.stem(picture))
        p16 = self.to16(p8)
        p32 = self.to32(p16)
        p16 = self.up16(torch.cat([self.up(p32), p16], 1))
        p8 = self.up8(torch.cat([self.up(p16), p8], 1))
        p16 = self.join16(torch.cat([self.down16(p8), p16], 1))
        p32 = self.join32(torch.cat([self.down32(p16), p32], 1))
        found = [self._decode(i, level) for i, level in enumerate((p8, p16, p32))]
        return torch.cat(found, 2)

    def _decode(self, index: int, level: Tensor) -> Tensor:
        stride = 8 << index
        batch, _, height, width = level.shape
        distances = self.boxes[index](level).view(batch, 4, self.bins, height * width)
        distances = (distances.softmax(2) * self.steps.view(1, 1, -1, 1)).sum(2)
        rows, columns = torch.meshgrid(torch.arange(height) + 0.5, torch.arange(width) + 0.5,
                                       indexing="ij")
        centres = torch.stack([columns, rows]).view(1, 2, -1)
        first, second = centres - distances[:, :2], centres + distances[:, 2:]
        boxes = torch.cat([(first + second) / 2, second - first], 1) * stride
        return torch.cat([boxes, self.scores[index](level).flatten(2).sigmoid()], 1)


class UNet(nn.Module):
    """Four levels; upwards by transposed convolutions, or by bilinear resizing."""

    def __init__(self, width: int = 16, classes: int = 4, bilinear: bool = False) -> None:
        super().__init__()
        sizes = [width << i for i in range(4)]
        self.down = nn.ModuleList(
            self._double(i, o) for i, o in zip([3, *sizes], [*sizes, width << 4]))
        self.pool = nn.MaxPool2d(2)
        self.up, self.join = nn.ModuleList(), nn.ModuleList()
        for size in reversed(sizes):
            self.up.append(nn.Sequential(
                nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True),
                nn.Conv2d(2 * size, size, 1)) if bilinear
                else nn.ConvTranspose2d(2 * size, size, 2, 2))
            self.join.append(self._double(2 * size, size))
        self.head = nn.Conv2d(width, classes, 1)

    @staticmethod
    def _double(inputs: int, outputs: int) -> nn.Sequential:
        return nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs),
            nn.ReLU(), nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
            nn.BatchNorm2d(outputs), nn.ReLU())

    def forward(self, x: Tensor) -> Tensor:
        kept = []
        for layer in self.down[:-1]:
            x = layer(x)
            kept.append(x)
            x = self.pool(x)
        x = self.down[-1](x)
        for up, join in zip(self.up, self.join):
            x = join(torch.cat([kept.pop(), up(x)], 1))
        return self.head(x)


class AudioClassifier(nn.Module):
    """One second at 16 kHz: convolutions along time, from a wide one with a large step."""

    def __init__(self, classes: int = 35, width: int = 32) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for inputs, outputs, kernel, stride in ((1, width, 15, 4), (width, width, 3, 1),
                                                (width, 2 * width, 3, 1),
                                                (2 * width, 2 * width, 3, 1)):
            layers += [nn.Conv1d(inputs, outputs, kernel, stride), nn.BatchNorm1d(outputs),
                       nn.ReLU(), nn.MaxPool1d(4)]
        self.layers = nn.Sequential(*layers)
        self.classify = nn.Linear(2 * width, classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.classify(self.layers(x).mean(-1)).log_softmax(-1)


class Recurrent(nn.Module):
    """Two LSTM layers and a GRU over a sequence, and a classifier of its last step."""

    def __init__(self, features: int = 40, hidden: int = 128, classes: int = 12) -> None:
        super().__init__()
        self.lstm = nn.LSTM(features, hidden, num_layers=2, batch_first=True)
        self.gru = nn.GRU(hidden, hidden, batch_first=True)
        self.classify = nn.Linear(hidden, classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.classify(self.gru(self.lstm(x)[0])[0][:, -1])


def _twice3d(inputs: int, outputs: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for given in (inputs, outputs):
        layers += [nn.Conv3d(given, outputs, 3, padding=1, bias=False),
                   nn.InstanceNorm3d(outputs, affine=True), nn.LeakyReLU(0.01)]
    return nn.Sequential(*layers)


class VolumeUNet(nn.Module):
    """Segments volumes, as of tomography: 2 classes for each place."""

    def __init__(self, width: int = 16, levels: int = 3) -> None:
        super().__init__()
        widths = [width << level for level in range(levels)]
        self.down = nn.ModuleList(_twice3d(a, b) for a, b in zip([1, *widths], widths))
        self.pool = nn.MaxPool3d(2)
        self.up = nn.ModuleList(nn.ConvTranspose3d(b, a, 2, 2)
                                for a, b in zip(widths, widths[1:]))
        self.join = nn.ModuleList(_twice3d(2 * a, a) for a in widths[:-1])
        self.classes = nn.Conv3d(width, 2, 1)

    def forward(self, volume: Tensor) -> Tensor:
        kept = [self.down[0](volume)]
        for level in self.down[1:]:
            kept.append(level(self.pool(kept[-1])))
        x = kept.pop()
        for up, join in zip(reversed(self.up), reversed(self.join)):
            x = join(torch.cat([up(x), kept.pop()], 1))
        return self.classes(x)


class _VideoUnit(nn.Module):
    """Out to more channels, each by itself over space and time, squeezed and excited, and back."""

    def __init__(self, channels: int, stride: int) -> None:
        super().__init__()
        inner = channels * 2
        self.enter = nn.Sequential(nn.Conv3d(channels, inner, 1, bias=False),
                                   nn.BatchNorm3d(inner), nn.ReLU())
        self.each = nn.Sequential(
            nn.Conv3d(inner, inner, 3, (1, stride, stride), 1, groups=inner, bias=False),
            nn.BatchNorm3d(inner))
        self.gate = nn.Sequential(nn.AdaptiveAvgPool3d(1), nn.Conv3d(inner, inner // 4, 1),
                                  nn.ReLU(), nn.Conv3d(inner // 4, inner, 1), nn.Sigmoid())
        self.leave = nn.Sequential(nn.SiLU(), nn.Conv3d(inner, channels, 1, bias=False),
                                   nn.BatchNorm3d(channels))
        self.alone = stride == 1

    def forward(self, x: Tensor) -> Tensor:
        y = self.each(self.enter(x))
        y = self.leave(y * self.gate(y))
        return torch.relu(x + y if self.alone else y)


class VideoClassifier(nn.Module):
    """Names what happens where and when: space and time apart at first, then by depthwise
    convolutions over both."""

    def __init__(self, width: int = 24, classes: int = 40) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv3d(3, width, (1, 3, 3), (1, 2, 2), (0, 1, 1), bias=False),
            nn.Conv3d(width, width, (5, 1, 1), padding=(2, 0, 0), bias=False),
            nn.BatchNorm3d(width), nn.ReLU(), nn.MaxPool3d(3, (1, 2, 2), 1))
        self.units = nn.Sequential(*(_VideoUnit(width, stride) for stride in (1, 2, 1, 2)))
        self.pool = nn.AvgPool3d((2, 2, 2), (2, 2, 2))
        self.classes = nn.Conv3d(width, classes, 1)

    def forward(self, pictures: Tensor) -> Tensor:
        return self.classes(self.pool(self.units(self.stem(pictures))))
