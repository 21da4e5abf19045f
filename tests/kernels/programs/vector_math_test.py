"""The functions of vector_math.h against float64, over all exponents of float32."""

from __future__ import annotations

import math
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import layer_runner

_PROGRAM = r"""
#include <stdio.h>
#include "vector_math.h"

int main(void) {
  float x[LANES];
  while (fread(x, sizeof x, 1, stdin) == 1) {
    store(x, FUNCTION(load(x)));
    fwrite(x, sizeof x, 1, stdout);
  }
  return 0;
}
"""


def _each(function: Callable[[float], float]) -> Callable[[np.ndarray], np.ndarray]:
    return np.vectorize(function, otypes=[np.float64])


def _of_finite(function: Callable[[float], float]) -> Callable[[float], float]:
    return lambda x: function(x) if math.isfinite(x) else math.nan


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return np.where(x < 0, np.exp(x) / (1 + np.exp(x)), 1 / (1 + np.exp(-x)))


def _softplus(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0) + np.log1p(np.exp(-abs(x)))


def _normal(numbers: np.ndarray) -> np.ndarray:
    return np.where(numbers < 2.0 ** -126, 0, numbers)


# Float64 and the error that is allowed, in units of the last place of the float32 result.
FUNCTIONS: dict[str, tuple[Callable[[np.ndarray], np.ndarray], float]] = {
    "exponential": (np.exp, 2),
    "normal_exponential": (lambda x: _normal(np.exp(x)), 2),
    "logarithm": (np.log, 2), "error_function": (_each(math.erf), 6),
    "hyperbolic_tangent": (np.tanh, 3), "sine": (_each(_of_finite(math.sin)), 2),
    "cosine": (_each(_of_finite(math.cos)), 2),
    "tangent": (_each(_of_finite(math.tan)), 4), "arctangent": (np.arctan, 2),
    "sigmoid": (lambda x: _normal(_sigmoid(x)), 3),
    "softplus": (lambda x: _normal(_softplus(x)), 3),
    "tanh_of_softplus": (lambda x: _normal(np.tanh(_softplus(x))), 4),
    "square_root": (np.sqrt, 1), "absolute": (np.abs, 0)}


def numbers(seed: int, each: int) -> np.ndarray:
    """`each` numbers of every exponent and sign; what is special; more of those around zero."""
    rng = np.random.default_rng(seed)
    exponents = np.repeat(np.arange(512, dtype=np.uint32), each)
    bits = exponents << 23 | rng.integers(0, 1 << 23, len(exponents), dtype=np.uint32)
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 1.0, -1.0, 88.72284,
               -103.97, 3.93]
    found = np.concatenate([bits.view(np.float32), np.float32(special),
                            rng.uniform(-20, 20, 200 * each).astype(np.float32),
                            rng.uniform(-110, 90, 200 * each).astype(np.float32)])
    return np.concatenate([found, np.zeros(-len(found) % 16, np.float32)])


def compute(name: str, lanes: int, x: np.ndarray, folder: Path,
            toolchain: layer_runner.Toolchain) -> np.ndarray:
    layer_runner.skip_without(toolchain)
    source, program = folder / f"{name}.c", folder / f"{name}_{lanes}"
    source.write_text(_PROGRAM)
    subprocess.run([*toolchain.compiler, "-ffp-contract=fast", "-std=gnu17", "-w",
                    f"-I{layer_runner.KERNELS / 'c'}", f"-DLANES={lanes}", f"-DFUNCTION={name}",
                    "-o", str(program), str(source), "-lm"], check=True)
    done = subprocess.run([*toolchain.runner, str(program)], input=x.tobytes(),
                          capture_output=True, check=True)
    return np.frombuffer(done.stdout, np.float32)


def check(name: str, lanes: int, x: np.ndarray, folder: Path, toolchain: layer_runner.Toolchain,
          has_denormals: bool = True) -> None:
    function, allowed = FUNCTIONS[name]
    if name == "normal_exponential":
        x = -abs(x)
    if not has_denormals:
        x = np.where(abs(x) < 2.0 ** -126, np.float32(0), x)
    got = compute(name, lanes, x, folder, toolchain)
    with np.errstate(all="ignore"):
        want = function(x.astype(np.float64))
        rounded = want.astype(np.float32)
        assert np.array_equal(np.isnan(got), np.isnan(want)), name
        edge = np.isinf(rounded) | np.isinf(got)
        # At the largest number, one unit decides between it and infinity.
        fine = ~edge | (got == rounded) | (abs(want) > 3.402e38)
        assert fine.all(), (name, x[~fine][:5], got[~fine][:5])
        inside = np.isfinite(rounded) & np.isfinite(got)
        unit = np.spacing(abs(rounded[inside])).astype(np.float64)
        error = abs(got[inside] - want[inside])
        if not has_denormals:
            error = np.where(abs(want[inside]) < 2.0 ** -126, 0, error)
    worst = int((error / unit).argmax())
    assert (error <= allowed * unit).all(), (
        name, lanes, float((error / unit)[worst]), float(x[inside][worst]))


@pytest.mark.parametrize("lanes", [16, 8, 4])
def test_errors_are_a_few_units_of_the_last_place(tmp_path, lanes):
    x = numbers(lanes, 100)
    for name in FUNCTIONS:
        check(name, lanes, x, tmp_path, layer_runner.NATIVE)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["AARCH64", "ARMHF", "RISCV64"])
def test_other_machines(tmp_path, name):
    for function in FUNCTIONS:
        check(function, 4, numbers(1, 20), tmp_path, getattr(layer_runner, name), name != "ARMHF")
