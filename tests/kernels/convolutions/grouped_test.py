"""The grouped kernel against the convolution's definition, over a sweep of shapes."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import numpy as np

import reference
from layer_runner import AARCH64_HALF, Toolchain, on_every_machine, run_layers
from random_convolutions import Case, check, choose, random_conv
from run_model_tools.kernels.convolutions import grouped
from run_model_tools.kernels.convolutions.convolution import places_of
from run_model_tools.kernels.isa import AVX2, NEON64_HALF, Isa


def draw(rng: np.random.Generator, isas: tuple[Isa, ...], count: int) -> list[Case]:
    convs = []
    for isa in isas:
        for number in range(2 * count):
            groups = int(rng.integers(2, 6))
            # Every other one as a product of matrices.
            fixed = {"kernel": (1, 1), "strides": (1, 1),
                     "padding": (0, 0, 0, 0)} if number % 2 else {}
            fixed["channels"] = [groups * int(rng.integers(1, isa.lanes)), groups]
            convs.append((random_conv(rng, isa.lanes, groups=groups,
                                      outputs=groups * int(rng.integers(2, isa.lanes + 4)),
                                      **fixed),
                          isa))
    return choose(rng, grouped, convs)


@on_every_machine
def test_equals_the_definition(tmp_path, machine):
    cases = draw(machine.rng(), machine.isas, machine.count(4))
    check(grouped, cases, tmp_path, machine.toolchain)


def groups_stay_apart(rng: np.random.Generator, isas: tuple[Isa, ...], folder: Path,
                      toolchain: Toolchain, tolerance: float = 1e-4) -> None:
    """A NaN and an infinity in one group, whose outputs share vectors with those of others; half
    precision makes a NaN of both."""
    cases = []
    for isa in isas:
        for fixed in ({"kernel": (3, 2)},
                      {"kernel": (1, 1), "strides": (1, 1), "padding": (0, 0, 0, 0)}):
            conv = dataclasses.replace(
                random_conv(rng, isa.lanes, groups=3, channels=[9], outputs=21, size=(6, 20),
                            **fixed),
                residual=False, expression=None, low=-math.inf, high=math.inf)
            x = rng.standard_normal(conv.input_shapes[0]).astype(isa.number)
            _, block, lane = places_of(conv)[4]
            x[0, block, 2, 3, lane], x[0, block, 5, 16, lane] = np.nan, np.inf
            cases += [(conv, grouped.make(conv, isa, **parameters), x)
                      for parameters in grouped.options(conv, isa)[::2]]
    outputs = run_layers([(layer, [x]) for _, layer, x in cases], folder, toolchain)
    for (conv, layer, x), output in zip(cases, outputs):
        assert "APART" in layer.defines
        want = reference.convolve(conv, [x.astype(np.float32)], x.shape[-1])
        assert not np.isfinite(want).all() and np.isfinite(want[:7]).all()
        if x.dtype == np.float16:
            want[~np.isfinite(want)] = np.nan
        np.testing.assert_allclose(reference.unblocked(output, 21), want, tolerance, tolerance)


@on_every_machine
def test_what_is_not_finite_stays_in_its_group(tmp_path, machine):
    groups_stay_apart(machine.rng(), machine.isas, tmp_path, machine.toolchain)


def test_what_is_not_finite_stays_in_its_group_in_half_precision(tmp_path):
    groups_stay_apart(np.random.default_rng(6), (NEON64_HALF,), tmp_path, AARCH64_HALF, 0.02)


def test_each_vector_reads_its_groups_only():
    rng = np.random.default_rng(4)
    conv = random_conv(rng, 8, kernel=(1, 1), strides=(1, 1), padding=(0, 0, 0, 0), groups=3,
                       channels=[24], outputs=60, scattered=False)
    layer = grouped.make(conv, AVX2, tile=[12, 1], parts=[1, 1], outside="pixels")
    # A group has 20 outputs: only the vector of 16 ... 23 has some of two groups.
    assert layer.defines["TILE_DEPTH"] == [8, 8, 16, 8, 8, 8, 8, 8]


def test_refuses_what_it_cannot_do():
    rng = np.random.default_rng(5)
    assert grouped.options(random_conv(rng, 8, channels=[8]), AVX2) == []
    depthwise = random_conv(rng, 8, channels=[8], outputs=8, groups=8)
    assert grouped.options(depthwise, AVX2) == []
