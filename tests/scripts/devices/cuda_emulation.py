"""Runs artifacts for CUDA without a GPU: their kernels' text compiled for the CPU, started by
run_model through the stand-in for NVIDIA's driver, which checks every call.

It proves what the text computes and how it is launched, not what NVIDIA's compiler and a GPU make
of it.  tests/runtime/devices/cuda/emulation.h says how threads become fibers.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import numpy as np

from run_model_tools.environment import host_program

REPOSITORY = Path(__file__).resolve().parents[3]
PROGRAM = host_program("run_model")
STAND_IN = PROGRAM.parents[1] / "tests" / "runtime" / "devices" / "cuda" / "stand_in"
_HALVES = (('asm("{cvt.rn.f16.f32 %0, %1;}" : "=h"(bits) : "f"(x));',
            "bits = emulation::half_bits(x);"),
           ('float x; asm("{cvt.f32.f16 %0, %1;}" : "=f"(x) : "h"(bits)); return x;',
            "return emulation::half_value(bits);"))


def compile_kernels(folder: Path) -> Path:
    """The library of an artifact's kernels.cu."""
    text = (folder / "kernels.cu").read_text()
    for device, host in _HALVES:
        assert text.count(device) == 1, "cuda_text.PRELUDE has another float16_t"
        text = text.replace(device, host)
    names = re.findall(r'extern "C" __global__ void __launch_bounds__\(\d+\) (\w+)\(', text)
    table = ", ".join([*(f"EMULATED(in_{name}, {name})" for name in names), "{}"])
    source = folder / "emulated.cc"
    source.write_text(f'#include "tests/runtime/devices/cuda/emulation.h"\n{text}\n'
                      f'extern "C" const EmulatedKernel emulated_kernels[] = {{{table}}};\n')
    library = folder / "emulated.so"
    done = subprocess.run(["g++", "-std=c++20", "-O1", "-w", "-shared", "-fPIC",
                           "-fno-strict-aliasing", f"-I{REPOSITORY}", str(source), "-o",
                           str(library)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return library


def run(folder: Path, inputs: dict[str, np.ndarray]) -> list[list[np.ndarray]]:
    """The outputs, of threads and groups in two orders (emulation.h)."""
    np.savez(folder / "in.npz", **inputs)
    environment = dict(os.environ, LD_LIBRARY_PATH=str(STAND_IN),
                       RUN_MODEL_EMULATED_KERNELS=str(compile_kernels(folder)),
                       RUN_MODEL_STAND_IN_REPORT=str(folder / "calls.txt"))
    results = []
    for order in ("forwards", "backwards"):
        done = subprocess.run(
            [str(PROGRAM), str(folder / "model.so"), "--device", "cuda:0", "--inputs",
             str(folder / "in.npz"), "--outputs", str(folder / "out.npz")],
            capture_output=True, text=True,
            env=dict(environment, RUN_MODEL_EMULATION_ORDER=order))
        assert done.returncode == 0, done.stderr
        calls, _, problems = (folder / "calls.txt").read_text().partition("problems\n")
        assert problems == "" and "cuLaunchKernel" in calls, problems
        with np.load(folder / "out.npz") as file:
            results.append([file[key] for key in file.files])
    return results
