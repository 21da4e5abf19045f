"""What was compiled wrongly is refused, wherever it is run; what is only rounded is not."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from run_model_tools import params_file, tvm_process
from run_model_tools.compiling import artifact, c_target
from run_model_tools.errors import FAILED_RUN, ToolError
from run_model_tools.onnx_model import read_model
from run_model_tools.targets import named_targets
from run_model_tools.verifying import agreement, execution, verification
from run_model_tools.verifying.execution import Machine, NotRun, judge
from small_networks import save_network, save_two_by_two, weights

# Of the emulated machines one; those of the others, what is made for the zoo is run on.
TARGETS = ("native", "x86_64_v3", "raspi4_aarch64", "c")
SHAPE = (1, 3, 12, 12)


def save_squeeze_and_excite(path: Path, axes: tuple[int, ...]) -> Path:
    """A block that weighs channels by means over `axes`: broadcasting hides the wrong ones."""
    found = weights(3, w=(8, 3, 3, 3), b=(8,), v=(8, 8, 1, 1), m=(8, 5))
    return save_network(path, f"""(float[1,3,12,12] x) => (float[1,5] y) {{
        c = Conv<pads=[1,1,1,1]>(x, w, b)
        r = Relu(c)
        mean = ReduceMean<axes={list(axes)},keepdims=1>(r)
        squeezed = Conv(mean, v)
        weight = Sigmoid(squeezed)
        weighted = Mul(r, weight)
        pooled = GlobalAveragePool(weighted)
        flat = Flatten(pooled)
        y = MatMul(flat, m)
    }}""", {name: array / 4 for name, array in found.items()}, ir_version=7)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """right.onnx, and TARGET/right and TARGET/wrong: files compiled of it and of another one."""
    folder = tmp_path_factory.mktemp("planted")
    save_squeeze_and_excite(folder / "right.onnx", (2, 3))
    save_squeeze_and_excite(folder / "wrong.onnx", (2,))
    requests = []
    for target in TARGETS:
        for name in ("right", "wrong"):
            (folder / target / name).mkdir(parents=True)
            requests.append({
                "onnx": str(folder / f"{name}.onnx"), "target": named_targets()[target].tvm,
                "shapes": {"x": SHAPE}, "opt_level": 3, "kernels": "auto",
                "cc": named_targets()[target].compiler or "g++",
                "directory": str(folder / target / name)})
    answers = tvm_process.call("compile_many", None, requests=requests)["results"]
    assert not [answer["error"] for answer in answers if "error" in answer]
    for name in ("right", "wrong"):
        c_target.add_build_files(folder / "c" / name)
        c_target.build(folder / "c" / name, None, None)
    return folder


def verify(folder: Path, target: str, name: str, tolerance: float = 1e-3) -> dict:
    def host_plan(into: Path) -> str:
        # What this machine is given is as wrong as what it stands for.
        shutil.copytree(folder / "native" / name, into, dirs_exist_ok=True)
        return "native"

    compiler = named_targets()[target].compiler or "g++"
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not there")
    return verification.verify(verification.Subject(
        read_model(folder / "right.onnx"), folder / target / name, {"x": SHAPE}, None,
        named_targets()[target].tvm, [[compiler]], host_plan), tolerance)


@pytest.mark.parametrize("target", TARGETS)
def test_what_is_right_passes_where_its_code_runs(compiled: Path, target: str) -> None:
    done = verify(compiled, target, "right")
    assert done["done"] and done["runs"] == 2 and done["relative_difference"] < 1e-5
    emulator = named_targets()[target].emulator
    if target == "raspi4_aarch64" and shutil.which(emulator[0]):
        assert done["where"] == emulator[0]
    if target in ("native", "c"):
        assert done["where"] == "native"


@pytest.mark.parametrize("target", TARGETS)
def test_a_dropped_axis_is_refused(compiled: Path, target: str) -> None:
    with pytest.raises(ToolError, match="output 'y'.*was not written") as error:
        verify(compiled, target, "wrong")
    assert error.value.code == 8


@pytest.mark.parametrize("target", TARGETS)
def test_a_changed_weight_is_refused(compiled: Path, target: str, tmp_path: Path) -> None:
    folder = tmp_path / "planted"
    shutil.copytree(compiled, folder)
    path = folder / target / "right" / artifact.PARAMS
    data = bytearray(path.read_bytes())
    tensors = params_file.read_params(bytes(data))
    largest = max((t for t in tensors.values() if t.dtype_name == "float32"),
                  key=lambda t: len(t.data))
    values = np.frombuffer(data, np.float32, len(largest.data) // 4, largest.offset)
    values[np.argmax(np.abs(values))] *= -1
    path.write_bytes(data)
    with pytest.raises(ToolError, match="differs from the reference"):
        verify(folder, target, "right")


def test_without_an_emulator_the_plan_is_run_here(
        compiled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verification, "machines", lambda machine, target: [])
    done = verify(compiled, "raspi4_aarch64", "right")
    assert done["where"] == "host plan" and done["not_executed_because"]
    with pytest.raises(ToolError, match="compiled for this machine"):
        verify(compiled, "raspi4_aarch64", "wrong")


def test_code_that_this_cpu_lacks_instructions_for_is_run_elsewhere(
        compiled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = []

    def refuse(folder, machine, compilers, inputs):
        ran.append(machine.where)
        if len(ran) == 1:
            raise NotRun("it has instructions that the CPU lacks")
        return real(folder, machine, compilers, inputs)

    real = verification.run_artifact
    monkeypatch.setattr(verification, "run_artifact", refuse)
    done = verify(compiled, "x86_64_v3", "right")
    assert ran[0] == "native" and len(ran) > 1
    assert done["where"] in ("qemu-x86_64", "host plan")


def test_what_was_left_out_is_in_the_metadata(command, tmp_path: Path) -> None:
    save_squeeze_and_excite(tmp_path / "net.onnx", (2, 3))
    result = command("compile_model", "net.onnx", "--no-verify", cwd=tmp_path)
    assert "NOT VERIFIED" in result.stdout
    metadata = json.loads((tmp_path / "artifacts/net/native/metadata.json").read_text())
    assert metadata["verification"] == {"done": False, "reason": "not asked for"}
    # Who asks for it now does not get what was never compared.
    command("compile_model", "net.onnx", "--check", "--no-verify",
            cwd=tmp_path)
    command("compile_model", "net.onnx", "--check", cwd=tmp_path, code=1)


@pytest.mark.full
def test_without_an_emulator_compile_model_compiles_the_plan_again(
        monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from run_model_tools.compiling.job import Job
    from run_model_tools.compiling.relay_job import compile_job
    from run_model_tools.targets import find_target

    monkeypatch.setattr(verification, "machines", lambda machine, target: [])
    repairs = []
    original = tvm_process.write_repaired

    def repaired(*given, **named):
        repairs.append(given)
        return original(*given, **named)

    monkeypatch.setattr(tvm_process, "write_repaired", repaired)
    path = save_squeeze_and_excite(tmp_path / "net.onnx", (2, 3))
    report = compile_job(Job("net", read_model(path), find_target("raspi4_aarch64"), tmp_path,
                             {"x": SHAPE}))
    checked = report["metadata"]["verification"]
    assert checked["done"] and checked["where"] == "host plan"
    # Our kernels for vectors of four numbers, as on the board.
    assert report["metadata"]["kernels"]["method"] == "ours"
    assert "run_model_plain" in checked["host_plan"]
    assert len(repairs) == 1


def test_a_tolerance_of_zero_is_a_tolerance(tmp_path: Path) -> None:
    from run_model_tools.compiling.job import Job
    from run_model_tools.targets import find_target

    job = Job("net", read_model(save_squeeze_and_excite(tmp_path / "net.onnx", (2, 3))),
              find_target("native"), tmp_path, {"x": SHAPE}, calibration=tmp_path)
    assert job.allowed == agreement.ERROR
    assert replace(job, tolerance=0.0).allowed == 0
    assert replace(job, calibration=None).allowed == verification.TOLERANCE


def test_whole_numbers_are_made_up(command, tmp_path: Path) -> None:
    save_two_by_two(tmp_path / "two.onnx")
    result = command("compile_model", "two.onnx", "--json", cwd=tmp_path)
    assert json.loads(result.stdout)["metadata"]["verification"]["done"]


@pytest.mark.parametrize("offset, done", [(1, True), (np.nan, False)])
def test_what_is_nan_throughout_is_not_called_compared(
        tmp_path: Path, offset: float, done: bool) -> None:
    """Unless smaller numbers help: what is added where a mask is 0 overflows where it is 9."""
    model = read_model(save_network(
        tmp_path / "masked.onnx", """(float[1,64] x, int64[1,64] kept) => (float[1,64] y) {
            one = Cast<to=1>(kept)
            left = Sub(offset, one)
            beside = Mul(left, lowest)
            scores = Add(x, beside)
            y = Softmax(scores)
        }""", {"offset": np.float32(offset), "lowest": np.float32(-3.4e38)}))
    outputs = []

    def run(_folder, _machine, _compilers, given):
        outputs.extend(model.run(inputs) for inputs in given)
        return outputs

    verified = verification.verify(verification.Subject(
        model, tmp_path, {"x": (1, 64), "kept": (1, 64)}, None, "llvm", [],
        lambda into: "native", run), 1e-3)
    assert verified["done"] == done and np.isfinite(outputs).all()
    assert done or "NaN throughout" in verified["reason"]


def test_a_network_of_8_bits_that_names_other_classes_is_refused(tmp_path: Path) -> None:
    views = [{"x": np.zeros((1, 4), np.float32)} for _ in range(60)]

    class Scores:
        """Names class 2, by little."""
        outputs, reference = ["scores"], "somebody"

        def run(self, inputs):
            return [np.float32([[0, 0, 1, 0.99]])]

    def subject(wrong: int) -> verification.Subject:
        def run(folder, machine, compilers, given):
            return [[np.float32([[0, 0, 0.98 if i < wrong else 1, 0.99]])]
                    for i in range(len(given))]
        return verification.Subject(Scores(), tmp_path, {}, None, "llvm",  # type: ignore[arg-type]
                                    [], lambda into: "this machine", run)

    # Three of 60 are no wonder where one in fifty is another one.
    checked = verification.verify_int8(subject(3), views, 0.1, 0.98)
    assert checked["top1_agreement"] == pytest.approx(57 / 60)
    with pytest.raises(ToolError, match="4 of 60 views, and 98.0% are to be the same"):
        verification.verify_int8(subject(4), views, 0.1, 0.98)
    with pytest.raises(ToolError, match="1 of 60 views"):
        verification.verify_int8(subject(1), views, 0.1, 1.0)


def test_a_compiler_that_fails_is_named_beside_one_that_is_missing(tmp_path):
    """As on a full disk, where g++ fails, and there is no clang."""
    with pytest.raises(NotRun, match="^false makes no program: .*; no-such-cc was not found$"):
        execution._compile(tmp_path, [["false"], ["no-such-cc"]])


def test_a_division_of_whole_numbers_by_zero_is_named():
    died = subprocess.CompletedProcess(["run_graph"], -signal.SIGFPE, "", "")
    with pytest.raises(ToolError, match="divides a whole number by zero .*--freeze") as caught:
        judge(died, Machine("native"))
    assert caught.value.code == FAILED_RUN


@pytest.mark.parametrize("died", [
    subprocess.CompletedProcess(["run_graph"], -signal.SIGILL, "", ""),
    subprocess.CompletedProcess(["run_model"], 5, "", "run_model: the compiled code has an "
                                "instruction that this CPU does not know: compile it for this")])
def test_code_that_is_not_for_its_targets_cpu(died):
    with pytest.raises(ToolError, match="that its target's CPU lacks .qemu-riscv64") as caught:
        judge(died, Machine("qemu-riscv64", ("qemu-riscv64",), True))
    assert caught.value.code == FAILED_RUN
    with pytest.raises(NotRun, match="instructions that the CPU lacks"):
        judge(died, Machine("qemu-riscv64"))


def test_an_emulator_that_breaks_down_says_nothing_of_the_network():
    """QEMU 7.2 does, at some pairs of RISC-V's vector instructions."""
    said = "qemu-riscv64: ../translate.c:213: decode_save_opc: Assertion `insn_start' failed."
    died = subprocess.CompletedProcess(["qemu-riscv64"], -signal.SIGABRT, "", said)
    with pytest.raises(NotRun, match="the emulator broke down: qemu-riscv64"):
        judge(died, Machine("qemu-riscv64"))
