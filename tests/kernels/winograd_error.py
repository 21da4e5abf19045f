"""Measures how much the Winograd kernel rounds: the tables of kernels/winograd_error.md.

Run as `python tests/kernels/winograd_error.py`; needs GCC and numpy, takes about a minute.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

import layer_runner
import reference
from run_model_tools.kernels.convolutions import direct, winograd, winograd_points
from run_model_tools.kernels.convolutions.convolution import Convolution, plain_lanes
from run_model_tools.kernels.isa import AVX512, Isa

# (height and width, input channels, output channels) of ResNet-18's and SqueezeNet's layers.
LAYERS = ((56, 64, 64), (28, 128, 128), (14, 256, 256), (7, 512, 512), (55, 16, 64), (13, 48, 192))
# The points that most of the literature takes, beside ours.
USUAL_POINTS = {4: (1.0, 2.0)}


def layer(rng: np.random.Generator, size: int, channels: int, outputs: int,
          isa: Isa) -> Convolution:
    """A convolution with normal weights of a trained network's scale."""
    weight = rng.standard_normal((outputs, channels, 3, 3)) * np.sqrt(2 / (9 * channels))
    return Convolution(
        weight=weight.astype(np.float32), bias=np.zeros(outputs, np.float32),
        input_shapes=((1, -(-channels // isa.lanes), size, size, isa.lanes),),
        input_lanes=plain_lanes(channels, isa.lanes), padding=(1, 1, 1, 1))


def made(conv: Convolution, isa: Isa, tile: int) -> object:
    """The layer with a tile that options() may not offer; 0 is the direct kernel."""
    if tile == 0:
        return direct.make(conv, isa, **direct.options(conv, isa)[0])
    return winograd.make(conv, isa, tile=tile, group=8, splits=1, pixels=8, vectors=2)


def measure(isa: Isa, tiles: tuple[int, ...], seed: int) -> list[list[tuple[float, float]]]:
    """For each of LAYERS and each tile: (root mean square, largest) error relative to sum
    |w||x|."""
    rng = np.random.default_rng(seed)
    convs = [layer(rng, *shape, isa) for shape in LAYERS]
    # What a ReLU leaves of normal sums.
    inputs = [np.maximum(rng.standard_normal(c.input_shapes[0]), 0).astype(np.float32)
              for c in convs]
    cases = [(made(conv, isa, tile), [x]) for conv, x in zip(convs, inputs) for tile in tiles]
    with tempfile.TemporaryDirectory() as folder:
        outputs = iter(layer_runner.run_layers(cases, Path(folder)))
    rows = []
    for conv, x in zip(convs, inputs):
        exact = reference.convolve(conv, [x], isa.lanes)
        absolute = Convolution(**{**conv.__dict__, "weight": abs(conv.weight)})
        scale = reference.convolve(absolute, [x], isa.lanes)
        row = []
        for _ in tiles:
            result = reference.unblocked(next(outputs), conv.output_channels)
            error = abs(result.astype(np.float64) - exact) / scale
            row.append((float(np.sqrt(np.mean(error ** 2))), float(error.max())))
        rows.append(row)
    return rows


def table(heads: list[str], rows: list[list[tuple[float, float]]]) -> str:
    """A Markdown table, one line a layer."""
    lines = ["| layer | " + " | ".join(heads) + " |", "|---" * (len(heads) + 1) + "|"]
    for (size, channels, outputs), row in zip(LAYERS, rows):
        cells = [f"{rms:.1e} / {largest:.1e}" for rms, largest in row]
        lines.append(f"| {size}x{size}, {channels} to {outputs} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    seed = parser.parse_args().seed
    rows = measure(AVX512, (0, 2, 4, 6), seed)
    winograd_points.POINTS.update(USUAL_POINTS)
    for row, usual in zip(rows, measure(AVX512, (4,), seed)):
        row += usual
    print(table(["direct", "F(2, 3)", "F(4, 3)", "F(6, 3)", "F(4, 3), points 1 and 2"], rows))


if __name__ == "__main__":
    main()
