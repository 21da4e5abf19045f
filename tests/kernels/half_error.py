"""Measures how much the kernels in half precision round: the tables of kernels/half_error.md.

Run as `python tests/kernels/half_error.py`; needs build/tvm, the cross compiler of aarch64 and
QEMU, takes about a minute.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

import layer_runner
import reference
from run_model_tools.kernels.convolutions import direct, winograd
from run_model_tools.kernels.convolutions.convolution import Convolution
from run_model_tools.kernels.half.weights import RUN_PRODUCTS
from run_model_tools.kernels.isa import NEON64_HALF
from run_model_tools.kernels.layer import Layer
from winograd_error import LAYERS, layer

WHOLE_SUM = 1 << 20
# (heading, tile of Winograd's or 0 for the definition, products of a run)
WAYS = (("direct, runs of 32", 0, 32), ("**64**", 0, 64), ("128", 0, 128),
        ("all in float16", 0, WHOLE_SUM), ("F(2, 3), runs of 32", 2, 32),
        ("F(4, 3), runs of 16", 4, 16), ("**32**", 4, 32), ("64", 4, 64))


def made(conv: Convolution, tile: int, run: int) -> Layer:
    """The layer with runs of another length than usual."""
    if tile:
        found = winograd.make(conv, NEON64_HALF, tile=tile, group=8, splits=1, pixels=8, vectors=2)
    else:
        found = direct.make(conv, NEON64_HALF, **direct.options(conv, NEON64_HALF)[0])
    return replace(found, defines={**found.defines, "RUN_PRODUCTS": run})


def measure(seed: int) -> list[list[float]]:
    """For each of LAYERS and WAYS: the root mean square of the error, relative to that of the
    result."""
    rng = np.random.default_rng(seed)
    rows = []
    for shape in LAYERS:
        conv = layer(rng, *shape, NEON64_HALF)
        x = np.maximum(rng.standard_normal(conv.input_shapes[0]), 0).astype(np.float16)
        exact = reference.convolve(conv, [x], NEON64_HALF.lanes)
        with tempfile.TemporaryDirectory() as folder:
            outputs = layer_runner.run_layers([(made(conv, tile, run), [x])
                                               for _, tile, run in WAYS], Path(folder),
                                              layer_runner.AARCH64_HALF)
        rows.append([float(np.sqrt(np.mean(
            (reference.unblocked(output, conv.output_channels).astype(np.float64) - exact) ** 2)
            / np.mean(exact ** 2))) for output in outputs])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    assert RUN_PRODUCTS == 64 and winograd.WINOGRAD_RUN == 32, "the bold columns are what is used"
    print("| layer | " + " | ".join(heading for heading, _, _ in WAYS) + " |")
    print("|---" * (len(WAYS) + 1) + "|")
    for (size, channels, outputs), row in zip(LAYERS, measure(parser.parse_args().seed)):
        cells = " | ".join(f"{error:.1e}" for error in row)
        print(f"| {size}x{size}, {channels} to {outputs} | {cells} |")


if __name__ == "__main__":
    main()
