"""run_model on CPUs of several ages, each played by qemu: what must run, what must be refused.

RUN_MODEL_PROGRAM and RUN_MODEL_MACHINE say which program is tested and for which machine it is.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from run_model_tools.targets import named_targets
from small_networks import save_network, weights

ROOT = Path(__file__).resolve().parents[2]

PROGRAM = os.environ["RUN_MODEL_PROGRAM"]
MACHINE = os.environ["RUN_MODEL_MACHINE"]

# By machine: the targets that one folder holds.
TARGETS = {
    "x86_64": ("x86_64_v2", "x86_64_v3", "x86_64_v4"),
    "aarch64": ("raspi4_aarch64", "raspi5_aarch64"),
    "armv7l": ("pynq_z1", "raspi_armv7"),
    "riscv64": ("riscv64", "riscv64_v", "spacemit_k1"),
}


@dataclass(frozen=True)
class Cpu:
    """A CPU of qemu's, the targets that run on it, the last of them the one to choose, and a
    feature that the others are refused for."""

    name: str
    runs: tuple[str, ...]
    lacks: str = ""


CPUS = {
    # qemu 7.2 knows AVX2 and not AVX-512.
    "x86_64": [Cpu("Nehalem", ("x86_64_v2",), "avx2"),
               Cpu("max", ("x86_64_v2", "x86_64_v3"), "avx512f")],
    "aarch64": [Cpu("cortex-a53", ("raspi4_aarch64",), "dotprod"),
                Cpu("cortex-a76", ("raspi4_aarch64", "raspi5_aarch64"))],
    "armv7l": [Cpu("cortex-a9", ("pynq_z1",), "vfp4"),
               Cpu("cortex-a7", ("pynq_z1", "raspi_armv7"))],
    "riscv64": [Cpu("rv64", ("riscv64",), "v"),
                Cpu("rv64,v=true,vext_spec=v1.0,vlen=128", ("riscv64", "riscv64_v"), "zvl256b"),
                Cpu("rv64,v=true,vext_spec=v1.0,vlen=256,zba=true,zbb=true,zbs=true",
                    ("riscv64", "riscv64_v", "spacemit_k1"))],
}[MACHINE]


def emulated(cpu: Cpu, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Runs the program with those arguments on that CPU."""
    command = list(next(target.emulator for target in named_targets().values()
                        if target.machine == MACHINE))
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not there (Debian: qemu-user)")
    command[command.index("-cpu") + 1] = cpu.name
    return subprocess.run([*command, PROGRAM, *map(str, arguments)], capture_output=True, text=True,
                          check=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The artifacts of a small network, an input and what ONNX Runtime makes of it.

    For casts of 64 bits a CPU of 32 bits calls functions, by conventions that its triple decides.
    """
    folder = tmp_path_factory.mktemp("cpus")
    model = save_network(folder / "tiny.onnx", """(float[1,3,8,8] image)
            => (float[1,3] prob, float[1,1] place) {
        c = Conv<pads=[1,1,1,1]>(image, w, b)
        r = Relu(c)
        p = GlobalAveragePool(r)
        f = Flatten(p)
        logits = MatMul(f, m)
        prob = Softmax<axis=1>(logits)
        best = ArgMax<axis=1>(prob)
        counted = Add(best, far)
        place = Cast<to=1>(counted)
    }""", weights(1, w=(4, 3, 3, 3), b=(4,), m=(4, 3)) | {"far": np.int64(1 << 33)}, ir_version=7)
    for name in TARGETS[MACHINE]:
        subprocess.run([ROOT / "scripts" / "compile_model", model, "--target", name, "--out",
                        folder / "artifacts", "--preprocessing", "none"], check=True,
                       capture_output=True)
    image = np.random.default_rng(2).standard_normal((1, 3, 8, 8)).astype(np.float32)
    np.savez(folder / "in.npz", image=image)
    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    np.savez(folder / "expected.npz", *session.run(None, {"image": image}))
    return folder


def run_tensors(cpu: Cpu, folder: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    (folder / "out.npz").unlink(missing_ok=True)
    return emulated(cpu, "tiny", folder / "artifacts", "--inputs", folder / "in.npz", "--outputs",
                    folder / "out.npz", "--json", *flags)


@pytest.mark.parametrize("cpu", CPUS, ids=lambda cpu: cpu.name)
@pytest.mark.parametrize("target", TARGETS[MACHINE])
def test_runs_or_refuses(cpu: Cpu, target: str, folder: Path) -> None:
    result = run_tensors(cpu, folder, "--target", target)
    if target in cpu.runs:
        assert result.returncode == 0, result.stderr
        with np.load(folder / "out.npz") as outputs, np.load(folder / "expected.npz") as expected:
            for have, want in (("output_0", "arr_0"), ("output_1", "arr_1")):
                np.testing.assert_allclose(outputs[have], expected[want], rtol=1e-5, atol=1e-6)
        return
    assert result.returncode == 5, result.stderr
    message = json.loads(result.stdout)["error"]["message"]
    assert f"'{target}', which needs what this CPU lacks: " in message
    assert cpu.lacks in message.split("lacks: ")[1].split(";")[0].split(", ")
    assert f"--target {cpu.runs[-1]}, which fits this CPU" in message


@pytest.mark.parametrize("cpu", CPUS, ids=lambda cpu: cpu.name)
def test_chooses_what_makes_the_most_of_the_cpu(cpu: Cpu, folder: Path) -> None:
    result = run_tensors(cpu, folder)
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["artifact"]["target"] == cpu.runs[-1]


@pytest.mark.parametrize("cpu", CPUS, ids=lambda cpu: cpu.name)
def test_inspect_says_whether_it_runs(cpu: Cpu, folder: Path) -> None:
    for target in TARGETS[MACHINE]:
        result = emulated(cpu, "--inspect", "tiny", folder / "artifacts", "--target", target,
                          "--json")
        report = json.loads(result.stdout)
        assert report["runs_here"] == (target in cpu.runs), report["problems"]
        assert report["artifact"]["cpu_features"]
