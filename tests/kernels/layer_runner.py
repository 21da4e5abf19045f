"""Runs layers as plain C, without TVM: natively, under sanitizers, or for another CPU under
QEMU."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from run_model_tools.inside_tvm import cpu
from run_model_tools.kernels.c_compiler import CompileError, find_clang
from run_model_tools.kernels.isa import (
    AVX2,
    AVX512,
    AVX512_VNNI,
    GENERIC,
    NEON32,
    NEON64,
    NEON64_DOT,
    RVV,
    RVV256,
    Isa,
)
from run_model_tools.kernels.layer import Layer

KERNELS = Path(__file__).resolve().parents[2] / "kernels"

_MAIN = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int (*entry)();

/* Exactly as large as asked for, so that sanitizers see every access beyond it. */
static void *buffer(size_t bytes, int fill) {
  void *memory = NULL;
  if (posix_memalign(&memory, 64, bytes ? bytes : 1)) exit(2);
  memset(memory, fill, bytes);
  return memory;
}

static void read_all(FILE *file, void *to, size_t bytes) {
  if (bytes && fread(to, 1, bytes, file) != bytes) {
    fprintf(stderr, "input ends early\n");
    exit(2);
  }
}
"""


@dataclass(frozen=True)
class Toolchain:
    """How to make a program of C and run it."""

    compiler: tuple[str, ...]
    runner: tuple[str, ...] = ()


def _clang(gcc: str, *options: str) -> tuple[str, ...]:
    """The kernels' own compiler, with the headers that GCC has and it lacks here: GCC 12 computes
    on no vectors of float16 on x86 and fails on some on Arm."""
    try:
        clang = find_clang()
        headers = subprocess.run([gcc, "-print-file-name=include"], capture_output=True, text=True,
                                 check=True).stdout.strip()
    except (CompileError, OSError, subprocess.CalledProcessError):
        return (gcc,)
    return (clang, "-O2", "-static", *options, "-idirafter", headers)


#: Where the CPU lacks vectors as wide as a layer's, Clang splits them; GCC takes minutes to compile
#: their elements one by one.
NATIVE = Toolchain(_clang("gcc", "-march=native"))
SANITIZED = Toolchain(("gcc", "-O0", "-g1", "-march=native", "-fsanitize=address,undefined",
                       "-fno-sanitize-recover=all"))
AARCH64 = Toolchain(("aarch64-linux-gnu-gcc", "-O2", "-static"), ("qemu-aarch64",))
AARCH64_DOT = Toolchain(("aarch64-linux-gnu-gcc", "-O2", "-static", "-march=armv8.2-a+dotprod"),
                        ("qemu-aarch64", "-cpu", "max"))
ARMHF = Toolchain(("arm-linux-gnueabihf-gcc", "-O2", "-static", "-march=armv7-a",
                   "-mfpu=neon-vfpv4"),
                  ("qemu-arm",))
RISCV64 = Toolchain(("riscv64-linux-gnu-gcc", "-O2", "-static"), ("qemu-riscv64",))


def _riscv_vectors(bits: int) -> Toolchain:
    return Toolchain(_clang("riscv64-linux-gnu-gcc", "--target=riscv64-linux-gnu",
                            f"-march=rv64gcv_zvl{bits}b"),
                     ("qemu-riscv64", "-cpu", f"rv64,v=true,vext_spec=v1.0,vlen={bits}"))


#: The widest vectors that this CPU has registers for: GCC, which alone has sanitizers here, is slow
#: with wider ones.
WIDEST = AVX512_VNNI if cpu.x86_level(cpu.cpu_flags()) == "x86-64-v4" else AVX2


@dataclass(frozen=True)
class Machine:
    """Where random layers run: by which tools, for which instruction sets."""

    toolchain: Toolchain
    isas: tuple[Isa, ...]
    seed: int
    share: float = 1.0
    """How many of the layers that run natively are enough here."""

    def count(self, layers: int) -> int:
        return max(1, round(self.share * layers))

    def rng(self) -> np.random.Generator:
        return np.random.default_rng(self.seed)


_ARM = (("aarch64", AARCH64, NEON64), ("armhf", ARMHF, NEON32))
_DOT, _SCALARS = ("aarch64-dot", AARCH64_DOT, NEON64_DOT), ("riscv64", RISCV64, GENERIC)
_RISCV_VECTORS = (("rvv", _riscv_vectors(128), RVV), ("rvv256", _riscv_vectors(256), RVV256))


def _machines(*emulated: tuple[str, Toolchain, Isa]) -> pytest.MarkDecorator:
    found = [pytest.param(Machine(NATIVE, (AVX512, AVX2, NEON64), 1), id="native"),
             pytest.param(Machine(SANITIZED, (WIDEST, NEON32), 2, 0.2), id="sanitized",
                          marks=pytest.mark.full)]
    found += [pytest.param(Machine(toolchain, (isa,), 3, 0.4), id=name, marks=pytest.mark.slow)
              for name, toolchain, isa in emulated]
    return pytest.mark.parametrize("machine", found)


#: Runs a test with a `machine`: here, under sanitizers, and each emulated one.
on_every_machine = _machines(*_ARM, *_RISCV_VECTORS, _SCALARS)
#: The same for kernels that are for vectors only, which the compiler makes of scalars for RISC-V.
on_machines_with_vectors = _machines(*_ARM, *_RISCV_VECTORS, ("riscv64", RISCV64, NEON64))

#: The same for kernels that multiply bytes by four where a CPU has instructions for that.
on_machines_with_dot = _machines(_DOT, *_ARM[1:], *_RISCV_VECTORS, _SCALARS)


def on_other_machines(test: Callable[..., None]) -> pytest.MarkDecorator:
    """Runs a slow test with an `isa` and a `toolchain`: each emulated machine's."""
    return pytest.mark.slow(pytest.mark.parametrize("isa, toolchain", [
        pytest.param(isa, toolchain, id=name)
        for name, toolchain, isa in (_DOT, *_ARM, *_RISCV_VECTORS, _SCALARS)])(test))


AARCH64_HALF = Toolchain(
    _clang("aarch64-linux-gnu-gcc", "--target=aarch64-linux-gnu", "-mcpu=cortex-a76"),
    ("qemu-aarch64", "-cpu", "cortex-a76"))
#: Runs a test of layers in half precision with a `toolchain`: the machine that they are for, and
#: here, where every operation is emulated.
in_half_precision = pytest.mark.parametrize("toolchain", [
    pytest.param(AARCH64_HALF, id="aarch64"),
    pytest.param(NATIVE, id="native", marks=pytest.mark.full)])


def skip_without(toolchain: Toolchain) -> None:
    for tool in (toolchain.compiler[0], *toolchain.runner[:1]):
        if not shutil.which(tool):
            pytest.skip(f"{tool} is not installed")


#: What this machine's compiler makes code for, by its width: a change needs to see the widest.
WIDEST_FIRST = (AVX512_VNNI, *(pytest.param(isa, marks=pytest.mark.full)
                               for isa in (AVX2, GENERIC)))


def run_layers(cases: list[tuple[Layer, list[np.ndarray]]], folder: Path,
               toolchain: Toolchain = NATIVE) -> list[np.ndarray]:
    """The output of each (layer, its inputs).

    Outputs, shared and scratch memory hold NaNs before, so what is read without having been written
    shows; tasks run from the last to the first, since no order is promised.  Skips the test where
    another machine's compiler or QEMU is not installed.
    """
    skip_without(toolchain)
    sources, calls = [], []
    data = folder / "data.bin"
    with open(data, "wb") as file:
        for index, (layer, inputs) in enumerate(cases):
            path = folder / f"layer_{index}.c"
            path.write_text(layer.c_source())
            sources.append(str(path))
            arrays = list(inputs) + list(layer.constants)
            for array, (shape, dtype) in zip(inputs, layer.inputs, strict=True):
                assert array.shape == tuple(shape) and array.dtype == dtype
            for array in arrays:
                file.write(np.ascontiguousarray(array).tobytes())
            calls.append(_call(layer, [a.nbytes for a in arrays]))
    entries = "".join(f"int {layer.symbol(i)}();\n" for layer, _ in cases
                      for i in range(len(layer.phases)))
    main = folder / "main.c"
    main.write_text(_MAIN + entries + "int main(int argc, char **argv) {\n"
                    "  FILE *in = fopen(argv[1], \"rb\"), *out = fopen(argv[2], \"wb\");\n"
                    "  if (argc != 3 || !in || !out) return 2;\n" + "".join(calls)
                    + "  return fclose(out) ? 2 : 0;\n}\n")
    program = folder / "program"
    # Equal layers have equal names; the second would be a duplicate.
    unique = list({layer.symbol(0): source for (layer, _), source in zip(cases, sources)}.values())
    _run([*toolchain.compiler, "-ffp-contract=fast", "-std=gnu17", "-w", f"-I{KERNELS / 'c'}",
          "-o", str(program), str(main),
          *unique, "-lm"])
    results = folder / "results.bin"
    _run([*toolchain.runner, str(program), str(data), str(results)])
    raw, outputs, offset = results.read_bytes(), [], 0
    for layer, _ in cases:
        count = int(np.prod(layer.output_shape))
        outputs.append(np.frombuffer(raw, layer.output_dtype, count, offset)
                       .reshape(layer.output_shape))
        offset += outputs[-1].nbytes
    assert offset == len(raw)
    return outputs


def run_on_noise(layers: list[Layer], rng: np.random.Generator, folder: Path,
                 toolchain: Toolchain = NATIVE) -> list[tuple[list[np.ndarray], np.ndarray]]:
    """(inputs, output) of each of the layers, on normally distributed numbers."""
    inputs = [[rng.standard_normal(shape).astype(dtype) for shape, dtype in layer.inputs]
              for layer in layers]
    outputs = run_layers(list(zip(layers, inputs)), folder, toolchain)
    return list(zip(inputs, outputs, strict=True))


def run_cases(kernel: ModuleType, cases: list[tuple[Any, Isa, dict]], rng: np.random.Generator,
              folder: Path, toolchain: Toolchain = NATIVE,
              ) -> Iterator[tuple[tuple[Any, Isa, dict], tuple[list[np.ndarray], np.ndarray]]]:
    """Each case, (what the kernel computes, for which CPU, its parameters), and what
    run_on_noise() gives of it."""
    layers = [kernel.make(what, isa, **parameters) for what, isa, parameters in cases]
    return zip(cases, run_on_noise(layers, rng, folder, toolchain))


def _call(layer: Layer, sizes: list[int]) -> str:
    size = int(np.prod(layer.output_shape)) * np.dtype(layer.output_dtype).itemsize
    lines = ["  {"]
    for i, bytes_ in enumerate(sizes):
        lines.append(f"    void *b{i} = buffer({bytes_}, 0); read_all(in, b{i}, {bytes_});")
    lines.append(f"    void *o = buffer({size}, 0xff), *shared = buffer({layer.shared_bytes}, "
                 "0xff);")
    arguments = "".join(f"b{i}, " for i in range(len(sizes)))
    for phase, loop in enumerate(layer.phases):
        lines += [f"    for (int t = {loop.tasks} - 1; t >= 0; t--) {{",
                  f"      void *scratch = buffer({layer.scratch_bytes}, 0xff);",
                  f"      {layer.symbol(phase)}(t, {arguments}o, shared, scratch);",
                  "      free(scratch);", "    }"]
    lines.append(f"    fwrite(o, 1, {size}, out); free(o); free(shared);")
    lines += [f"    free(b{i});" for i in range(len(sizes))]
    return "\n".join(lines) + "\n  }\n"


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise AssertionError(f"{' '.join(command)}\nfailed with {done.returncode}:\n"
                             f"{(done.stdout + done.stderr)[-4000:]}")
