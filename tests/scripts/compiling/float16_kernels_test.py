"""compile_model --precision float16: which networks it makes, and which it refuses."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from run_model_tools.compiling.job import Job
from run_model_tools.compiling.relay_job import compile_job
from run_model_tools.errors import ToolError
from run_model_tools.onnx_model import read_model
from run_model_tools.targets import find_target, named_targets
from run_model_tools.verifying import verification
from run_model_tools.verifying.execution import machines, run_artifact
from small_networks import run_onnxruntime, save_network, weights

SHAPE = (1, 3, 33, 30)
PI = named_targets()["raspi5_aarch64"]


def save_residual_network(path: Path) -> Path:
    """Layers of all kinds that have kernels in half precision, with channels that are concatenated
    and a softmax, which has none."""
    text = f"""(float{list(SHAPE)} x) => (float[1,10] prob, float[1,40,8,7] maps) {{
        c0 = Conv<pads=[1,1,1,1], strides=[2,2]>(x, w0, b0)
        [stem] r0 = Clip(c0, zero, six)
        c1 = Conv<pads=[1,1,1,1], group=24>(r0, w1, b1)
        r1 = Relu(c1)
        c2 = Conv(r1, w2, b2)
        s2 = Add(c2, r0)
        c3 = Conv<pads=[1,1,1,1]>(s2, w3, b3)
        g3 = Sigmoid(c3)
        m3 = Mul(c3, g3)
        both = Concat<axis=1>(m3, s2)
        maps = MaxPool<kernel_shape=[2,2], strides=[2,2]>(both)
        c4 = Conv<pads=[1,1,1,1], group=2>(maps, w4, b4)
        a4 = AveragePool<kernel_shape=[2,2], strides=[2,2]>(c4)
        p = GlobalAveragePool(a4)
        f = Flatten(p)
        logits = Gemm<transB=1>(f, w5, b5)
        prob = Softmax<axis=1>(logits)
    }}"""
    shapes = {"w0": (24, 3, 3, 3), "w1": (24, 1, 3, 3), "w2": (24, 24, 1, 1), "w3": (16, 24, 3, 3),
              "w4": (20, 20, 3, 3), "w5": (10, 20), **{f"b{i}": (n,) for i, n in enumerate(
                  (24, 24, 24, 16, 20, 10))}}
    constants = weights(3, **shapes)
    for array in constants.values():
        array *= np.prod(array.shape[1:]) ** -0.5
    return save_network(path, text, {**constants, "zero": np.float32(0), "six": np.float32(6)})


def job_of(path: Path, target: str, **options) -> Job:
    model = read_model(path)
    shapes = {item.name: SHAPE for item in model.inputs}
    return Job("net", model, find_target(target), path.parent, shapes, kernels="ours",
               precision="float16", **options)


def needs_the_emulator() -> None:
    for tool in (PI.compiler, PI.emulator[0]):
        if not shutil.which(str(tool)):
            pytest.skip(f"{tool} is not there")


def test_a_network_in_half_precision_answers_as_in_float32(tmp_path: Path) -> None:
    needs_the_emulator()
    path = save_residual_network(tmp_path / "net.onnx")
    metadata = compile_job(job_of(path, "raspi5_aarch64"))["metadata"]
    assert [item["dtype"] for item in metadata["inputs"] + metadata["outputs"]] == ["float32"] * 3
    assert "fullfp16" in metadata["target"]["features"]
    kernels = metadata["kernels"]
    assert kernels["precision"] == "float16" and kernels["instruction_set"] == "neon64fp16"
    assert (kernels["float16_layers"], kernels["float32_layers"]) == (9, 1)
    checked = metadata["verification"]
    assert checked["done"] and checked["where"] == "qemu-aarch64"
    assert checked["top1_agreement"] == 1
    # Less than what was asked for, and more than float32 rounds: it did compute in half precision.
    assert 1e-5 < checked["relative_error"] < verification.HALF_TOLERANCE

    folder = tmp_path / "net" / "raspi5_aarch64"
    x = {"x": np.random.default_rng(1).standard_normal(SHAPE).astype(np.float32)}
    [outputs] = run_artifact(folder, machines("aarch64", PI.tvm)[0], [["aarch64-linux-gnu-gcc"]],
                             [x])
    for have, want in zip(outputs, run_onnxruntime(path, x), strict=True):
        assert have.dtype == np.float32
        assert np.sqrt(np.mean((have - want) ** 2) / np.mean(want ** 2)) < 0.01
    nodes = [node for node in json.loads((folder / "model.json").read_text())["nodes"]
             if node["op"] == "tvm_op"]
    assert any("conv2d_planar_f16" in node["name"] and "stem" in node["attrs"]["onnx_nodes"]
               for node in nodes)
    assert any("conv2d_depthwise_f16" in node["name"] for node in nodes)


@pytest.mark.full
def test_without_an_emulator_the_same_plan_runs_here(
        monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    needs_the_emulator()
    monkeypatch.setattr(verification, "machines", lambda machine, target: [])
    path = save_residual_network(tmp_path / "net.onnx")
    checked = compile_job(job_of(path, "raspi5_aarch64"))["metadata"]["verification"]
    assert checked["done"] and checked["where"] == "host plan"
    assert 1e-5 < checked["relative_error"] < verification.HALF_TOLERANCE


def test_activations_beyond_float16_are_refused(tmp_path: Path) -> None:
    needs_the_emulator()
    # A layer of a million and one that takes it back to a tenth.
    path = save_network(tmp_path / "net.onnx", f"""(float{list(SHAPE)} x) => (float[1,8,33,30] y) {{
        c = Conv(x, large, b)
        y = Conv(c, small, b)
    }}""", {"large": np.full((8, 3, 1, 1), 1e6, np.float32), "b": np.zeros(8, np.float32),
            "small": np.full((8, 8, 1, 1), 1e-7, np.float32)})
    with pytest.raises(ToolError, match="activations beyond 65504") as refused:
        compile_job(job_of(path, "raspi5_aarch64"))
    assert refused.value.code == 8
    assert not (tmp_path / "net" / "raspi5_aarch64").exists()


@pytest.mark.parametrize("target", ["raspi4_aarch64", "x86_64_v4"])
def test_a_cpu_without_half_precision_is_refused_by_its_name(tmp_path: Path, target: str) -> None:
    path = save_residual_network(tmp_path / "net.onnx")
    cpu = {"raspi4_aarch64": "cortex-a72", "x86_64_v4": "x86-64-v4"}[target]
    with pytest.raises(ToolError, match=rf"target's CPU \({cpu}\).*raspi5_aarch64") as refused:
        compile_job(job_of(path, target, cc="true"))
    assert refused.value.code == 2


def subject(have: list[np.ndarray], folder: Path) -> verification.Subject:
    """A network whose reference gives 1 and a large second score, and that gives `have`."""
    class Scores:
        inputs, outputs, reference, file_format = [], ["scores"], "somebody", "none"
        path = folder

        def why_not_run(self):
            return None

        def run_by(self, inputs):
            return [np.float32([[1, 4, 1, 1]])], self.reference

    return verification.Subject(Scores(), folder, {}, None, "llvm",  # type: ignore[arg-type]
                                [], lambda into: "this machine",
                                lambda folder, machine, compilers, given: [have] * len(given))


def test_what_is_compared_decides(tmp_path: Path) -> None:
    def checked(*scores: float) -> dict:
        return verification.verify_rounded(subject([np.float32([scores])], tmp_path), 0.05,
                                           "float16")

    found = checked(1, 4, 1.1, 1)
    assert found["relative_error"] == pytest.approx(0.1 / np.sqrt(19 / 4) / 2, rel=1e-3)
    assert found["top1_agreement"] == 1
    assert found["reference"] == "somebody, float32"
    with pytest.raises(ToolError, match="differs from float32 by 0.069 .* and 0.05 is allowed"):
        checked(1, 4, 1.3, 1)
    with pytest.raises(ToolError, match="has nan in float16 where float32 has 4"):
        checked(1, np.nan, 1, 1)
