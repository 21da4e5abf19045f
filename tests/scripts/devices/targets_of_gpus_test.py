"""Small networks for GPUs: right numbers where a driver computes them on the CPU, groups of threads
within the targets' limits, and what cannot be done refused by a sentence."""

from __future__ import annotations

import json
import math
import re
import subprocess

import numpy as np
import pytest
from gpu_networks import (
    NETWORKS,
    TARGETS,
    check_limits,
    check_numbers,
    compile_all,
    compiled_fixture,
    limits_test,
    numbers_test,
)

from run_model_tools.compiling import explanation
from run_model_tools.environment import REPO_ROOT, host_program
from run_model_tools.tuning import selection
from small_networks import run_onnxruntime, save_classifier

# The others are tried in layers_slow_test.py.
QUICK = ("softmax", "two_devices", "not_a_number", "not_a_number_indices", "parts",
         "few_long_rows", "running_sums", "quantized_at_run_time", "inverse_functions")


compiled = compiled_fixture(QUICK, ("softmax", "cuda-sm_53"))
test_layers_keep_to_the_limits = limits_test(QUICK)
test_numbers = numbers_test(QUICK, ("two_devices", "not_a_number", "parts", "inverse_functions"))


@pytest.mark.parametrize("target", TARGETS)
def test_few_long_rows_are_summed_up_by_large_groups(compiled, target):
    made = json.loads((compiled / target / "few_long_rows" / "made.json").read_text())
    assert made["device"]["threads_per_group"] == 256
    replaced = {one["operator"] for one in made["plain_schedules"]}
    assert replaced == {"mean", "max", "argmax"}
    # Each of the planes by ten, and all together by thirty, whose results are summed up.
    assert made["device"]["longest_thread"]["steps"] < 4 * 42000 / 10 / 256


def test_no_kernel_takes_more_parts_than_it_reads(compiled):
    graph = json.loads((compiled / "vulkan" / "parts" / "model.json").read_text())
    steps = [node for node in graph["nodes"] if node["op"] == "tvm_op"]
    assert len(steps) >= 12 and max(len(node["inputs"]) for node in steps) <= 3


def test_more_groups_than_vulkan_promises(tmp_path, monkeypatch):
    # Of 64 threads that compute a number each there would be too many, too.
    monkeypatch.setitem(NETWORKS, "classes", (
        "i = ArgMax<axis=1>(x) y = Cast<to=1>(i)", (1, 2, 2100, 2100), {}))
    compile_all(tmp_path, [("classes", "vulkan")])
    check_limits(tmp_path, "classes", "vulkan")
    made = json.loads((tmp_path / "vulkan" / "classes" / "made.json").read_text())
    [replaced] = made["plain_schedules"]
    assert replaced["operator"] == "argmax" and "groups, and 65535 x" in replaced["because"]
    check_numbers(tmp_path, "classes", "vulkan")


def test_groups_that_sum_up_several_numbers_at_once(tmp_path):
    # TVM takes the axis of one image for more in the places of the largest of each window.
    compile_all(tmp_path, [("places", "vulkan")])
    made = json.loads((tmp_path / "vulkan" / "places" / "made.json").read_text())
    [replaced] = made["plain_schedules"]
    assert replaced["operator"] == "argmax" and "several numbers" in replaced["because"]
    check_numbers(tmp_path, "places", "vulkan")


def test_kernels_of_opencl_say_the_size_of_their_groups(compiled):
    made = json.loads((compiled / "opencl" / "softmax" / "made.json").read_text())
    code = (compiled / "opencl" / "softmax" / "model.so").read_bytes()
    kernels = re.findall(rb"\n__kernel (.*)void (\w+)\(.* \{", code)
    assert len({name for _, name in kernels}) == len(kernels) > 0
    threads = [math.prod(map(int, re.findall(rb"\d+", words))) for words, _ in kernels
               if words.startswith(b"__attribute__((reqd_work_group_size(")]
    assert len(threads) == len(kernels)
    assert max(threads) == made["device"]["threads_per_group"]


def run_model(*arguments: object) -> subprocess.CompletedProcess[str]:
    program = host_program("run_model")
    return subprocess.run([program, *map(str, arguments)], capture_output=True, text=True)


@pytest.mark.parametrize("device", ("opencl", "vulkan"))
def test_the_program_says_what_ran_where(compiled, tmp_path, device):
    given = np.random.default_rng(8).standard_normal(NETWORKS["softmax"][1]).astype(np.float32)
    np.savez(tmp_path / "in.npz", x=given)
    library = compiled / device / "softmax" / "model.so"
    done = run_model(library, "--inputs", tmp_path / "in.npz", "--outputs", tmp_path / "out.npz",
                     "--repeat", 3, "--profile", "--json")
    assert done.returncode == 0, done.stderr
    nodes = json.loads(done.stdout)["profile"]["nodes"]
    assert nodes and all(node["device"] == f"{device}:0" for node in nodes)
    expected = run_onnxruntime(compiled / "softmax.onnx", {"x": given})
    with np.load(tmp_path / "out.npz") as file:
        np.testing.assert_allclose(file[file.files[0]], expected[0], rtol=1e-4, atol=1e-5)


def test_what_a_gpu_cannot_do_is_done_by_the_cpu(compiled, tmp_path):
    folder = compiled / "vulkan" / "two_devices"
    (placed,) = json.loads((folder / "made.json").read_text())["device"]["on_cpu"]
    assert placed["operator"] == "sin", placed
    assert "the function sin of float64" in placed["because"]
    explained = explanation.explain((folder / "model.json").read_text(), [])
    on_cpu = [node for node in explained["nodes"] if node["device"] == "cpu"]
    assert [node["function"].startswith("__copy") for node in on_cpu] == [True, False]
    assert on_cpu[1]["onnx_nodes"] == ["sines"]
    assert f"    it is computed on the CPU: {placed['because']}" in explanation.as_text(explained)
    given = np.random.default_rng(8).standard_normal((1, 3, 6, 6)).astype(np.float32)
    np.savez(tmp_path / "in.npz", x=given)
    done = run_model(folder / "model.so", "--inputs", tmp_path / "in.npz", "--outputs",
                     tmp_path / "out.npz", "--repeat", 2, "--profile", "--json")
    assert done.returncode == 0, done.stderr
    devices = {node["function"]: node["device"]
               for node in json.loads(done.stdout)["profile"]["nodes"]}
    assert devices["tvmgen_default_fused_sin"] == "cpu"
    assert "vulkan:0" in devices.values()


def record_of_pointwise(seconds: float, threads: tuple[int, int, int], target: str) -> str:
    """AutoTVM's line for the layer of the network "pointwise", with so many threads of channels,
    rows and columns."""
    extents = {"tile_f": 96, "tile_y": 7, "tile_x": 7}
    tiles = [[name, "sp", [1, 1, count, extent // count]]
             for (name, extent), count in zip(extents.items(), threads)]
    return json.dumps({
        "input": [target, "conv2d_nchw.cuda", [
            ["TENSOR", [1, 40, 7, 7], "float32"], ["TENSOR", [96, 40, 1, 1], "float32"], [1, 1],
            [0, 0, 0, 0], [1, 1], "float32"], {}],
        "config": {"index": 1, "code_hash": None, "entity": [
            *tiles, ["tile_rc", "sp", [10, 4]], ["tile_ry", "sp", [1, 1]],
            ["tile_rx", "sp", [1, 1]], ["auto_unroll_max_step", "ot", 0],
            ["unroll_explicit", "ot", 0]]},
        "result": [[seconds], 0, 1.0, 1.5e9], "version": 0.2, "tvm_version": "0.7.dev0"})


def test_records_are_used_within_the_limits_of_the_target(tmp_path):
    path = tmp_path / "records.log"
    path.write_text("\n".join([
        record_of_pointwise(1e-6, (32, 7, 7), "cuda -model=v100"),
        record_of_pointwise(1e-6, (96, 1, 1), "cuda -model=v100"),
        record_of_pointwise(2e-6, (32, 1, 7), "cuda -model=v100"),
        record_of_pointwise(3e-6, (48, 1, 1), "cuda -model=v100"),
        record_of_pointwise(1e-7, (8, 1, 7), "cuda -model=tx2"),
        record_of_pointwise(1e-7, (16, 1, 7), "opencl -model=1080ti")]))
    compile_all(tmp_path, [("pointwise", "cuda-sm_80")], tuning={
        "files": [{"name": path.name, "path": str(path)}], "explicit": True,
        "boards": selection.BOARDS["cuda-sm_80"]})
    made = json.loads((tmp_path / "cuda-sm_80" / "pointwise" / "made.json").read_text())
    assert made["tuning"]["tuned_layers"] == made["tuning"]["layers"] == 1, made
    assert made["tuning"]["left_out"] == {
        "beyond_the_limits_of_the_target": 2, "other_board": 1, "other_target": 1}
    assert made["device"]["threads_per_group"] == 32 * 7
    check_numbers(tmp_path, "pointwise", "cuda")


def test_a_record_of_mali_is_used_with_the_kernels_it_was_measured_with(tmp_path):
    """Of which some lay out what the others read, with groups of one thread."""
    save_classifier(tmp_path / "tiny.onnx")
    (tmp_path / "mali.log").write_text(json.dumps({
        "input": ["opencl -device=mali -model=rk3399", "conv2d_nchw_spatial_pack.mali", [
            ["TENSOR", [1, 3, 8, 8], "float32"], ["TENSOR", [4, 3, 3, 3], "float32"], [1, 1],
            [1, 1, 1, 1], [1, 1], "float32"], {}],
        "config": {"index": 1, "code_hash": None, "entity": [
            ["tile_co", "sp", [1, 2, 2]], ["tile_oh", "sp", [8, 1, 1]],
            ["tile_ow", "sp", [2, 2, 2]],
            ["reorder_0", "re", [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]],
            ["ann_reduce", "an", ["none", "none"]],
            ["ann_spatial", "an", ["none", "none", "vec"]]]},
        "result": [[1e-5], 0, 1.0, 1.5e9], "version": 0.2, "tvm_version": "0.7.dev0"}))
    done = subprocess.run(
        [REPO_ROOT / "scripts" / "compile_model", "tiny.onnx", "--target", "opencl -device=mali",
         "--tuning-records", "mali.log", "--json"], cwd=tmp_path, capture_output=True, text=True,
        check=False)
    assert done.returncode == 0, done.stderr
    metadata = json.loads(done.stdout)["metadata"]
    assert metadata["tuning"]["files"][0]["records"] == 1 and "left_out" not in metadata["tuning"]
    assert not any(one["operator"] == "nn.conv2d" for one in metadata.get("plain_schedules", ()))
    assert metadata["verification"]["done"]


def test_devices_are_listed():
    done = run_model("--list-devices", "--json")
    assert done.returncode == 0, done.stderr
    drivers = {driver["driver"]: driver for driver in json.loads(done.stdout)["drivers"]}
    for name in ("opencl", "vulkan"):
        assert drivers[name]["missing"] is None
        assert drivers[name]["devices"][0]["name"] == f"{name}:0"
        assert drivers[name]["devices"][0]["threads_per_group"] > 0


@pytest.mark.parametrize("device, code, complaint", [
    ("opencl:99", 5, "there is no device opencl:99"),
    ("cpu", 6, "opencl"),
    ("toaster", 2, "toaster")])
def test_devices_that_cannot_be_are_refused(compiled, device, code, complaint):
    done = run_model(compiled / "opencl" / "softmax" / "model.so", "--device", device,
                     "--repeat", 1)
    assert done.returncode == code, done.stderr
    assert complaint in done.stderr


def test_libraries_are_for_the_cpu_behind(compiled):
    path = compiled / "cuda-sm_53" / "softmax" / "model.so"
    assert path.read_bytes()[18:20] == b"\xb7\x00"


@pytest.mark.parametrize("options, complaint", [
    (("--target", "opencl", "--kernels", "ours"), "--kernels ours is not for the target opencl"),
    (("--target", "vulkan", "--compiler", "relax"), "--compiler relax is not for"),
    (("--target", "cuda-sm_80", "--forms", "linked"), "--forms linked is not for"),
    (("--target", "opencl", "--single-file"), "--single-file is not for"),
    (("--target", "cuda-sm_12",), "there is no GPU target 'cuda-sm_12'")])
def test_what_gpus_have_not_is_refused(command, tmp_path, options, complaint):
    save_classifier(tmp_path / "net.onnx")
    result = command("compile_model", "net.onnx", *options, cwd=tmp_path, code=2)
    assert complaint in result.stderr
    assert not (tmp_path / "artifacts").exists()
