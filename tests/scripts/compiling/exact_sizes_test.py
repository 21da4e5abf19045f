"""compile_model --exact: functions for some sizes beside the one for any."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from PIL import Image

from run_model_tools.compiling.exact_sizes import function_name, parse_exact
from run_model_tools.environment import host_program
from run_model_tools.errors import ToolError
from run_model_tools.onnx_repair.weights_file import WeightsFile
from small_networks import network, run_onnxruntime, save_network, weights

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = host_program("run_model")
needs_program = pytest.mark.skipif(not PROGRAM.exists(),
                                   reason=f"{PROGRAM} is not built, nor RUN_MODEL_PROGRAM set")
# Words meet in the softmax, so that samples are not computed one after the other.
TEXT = """(float[batch,words,32] x) => (float[] y, float[] z) {
    a = MatMul(x, w)
    y = Softmax<axis=1>(a)
    z = ReduceMax<keepdims=0>(y)
}"""
ROWS = """(float[n,24] x) => (float[n,20] y) {
    a = MatMul(x, w)
    y = Relu(a)
}"""


def compiled(command, folder, *flags):
    made = command("compile_model", "net.onnx", "--dynamic", "--kernels",
                   "ours", "--out", "out", "--json", *flags, cwd=folder)
    return json.loads(made.stdout)["metadata"]


def profiled(folder, x):
    """The outputs of an input, and the functions that they went through."""
    np.savez(folder / "in.npz", x=x)
    done = subprocess.run(
        [PROGRAM, folder / "out/net/native/model.so", "--inputs", folder / "in.npz", "--outputs",
         folder / "out.npz", "--profile", "--repeat", "1", "--json"],
        capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    with np.load(folder / "out.npz") as file:
        outputs = [file[name] for name in file.files]
    return outputs, json.loads(done.stdout)["profile"].get("functions")


@needs_program
def test_sizes_choose_their_functions(tmp_path, command):
    save_network(tmp_path / "net.onnx", TEXT, weights(1, w=(32, 40)), 18)
    metadata = compiled(command, tmp_path, "--exact", "batch=1,words=6/9", "--exact",
                        "batch=2,words=6")
    assert metadata["exact_sizes"] == [{"batch": 1, "words": 6}, {"batch": 1, "words": 9},
                                       {"batch": 2, "words": 6}]
    for exact in metadata["kernels"]["exact"]:
        assert exact["method"] == "ours" and "matmul" not in exact["left_to_tvm"]
    tried = [shapes["x"] for shapes in metadata["verification"]["shapes"]]
    assert all([*sizes.values(), 32] in tried for sizes in metadata["exact_sizes"])
    # What is for any size is compared at others.
    assert len(tried) >= 5 and metadata["verification"]["runs"] >= 5
    for shape, used in (((1, 6), "exact_batch_1_words_6"), ((1, 9), "exact_batch_1_words_9"),
                        ((2, 6), "exact_batch_2_words_6"), ((2, 9), "any_size"),
                        ((1, 7), "any_size")):
        x = np.random.default_rng(sum(shape)).standard_normal((*shape, 32)).astype(np.float32)
        have, functions = profiled(tmp_path, x)
        assert functions == [used]
        for one, wanted in zip(have, run_onnxruntime(tmp_path / "net.onnx", {"x": x}), strict=True):
            np.testing.assert_allclose(one, wanted, rtol=1e-4, atol=1e-5)
    shown = subprocess.run([PROGRAM, "--inspect", "--json", tmp_path / "out/net/native/model.so"],
                           capture_output=True, text=True, check=True)
    assert {"main", "any_size", "exact_batch_1_words_6"} <= set(
        json.loads(shown.stdout)["library"]["callable"])


@needs_program
def test_batches_of_samples_that_are_computed_apart(tmp_path, command):
    three_axes = ROWS.replace("[n,", "[n,4,")
    save_network(tmp_path / "net.onnx", three_axes, weights(1, w=(24, 20)), 18)
    metadata = compiled(command, tmp_path, "--exact", "n=8")
    assert metadata["kernels"]["method"] == metadata["kernels"]["exact"][0]["method"] == "ours"
    # What calls itself for one sample after the other is interpreted.
    for samples, used in ((8, ["exact_n_8"]), (3, None)):
        x = np.random.default_rng(samples).standard_normal((samples, 4, 24)).astype(np.float32)
        have, functions = profiled(tmp_path, x)
        assert functions == used
        np.testing.assert_allclose(have[0], run_onnxruntime(tmp_path / "net.onnx", {"x": x})[0],
                                   rtol=1e-4, atol=1e-5)


@needs_program
def test_pictures_are_seen_at_the_size_that_is_asked_for(tmp_path, command):
    save_network(tmp_path / "net.onnx", """(float[1,3,height,width] x) => (float[1,4] y) {
        a = Conv<strides=[2,2]>(x, w)
        b = Relu(a)
        c = ReduceMean<keepdims=0>(b, axes)
        y = Identity(c)
    }""", weights(1, w=(4, 3, 3, 3)) | {"axes": np.array([2, 3])}, 18)
    compiled(command, tmp_path, "--preprocessing", "imagenet", "--shape", "x:1,3,32,32")
    (tmp_path / "labels.txt").write_text("a\nb\nc\nd\n")
    pixels = np.random.default_rng(1).integers(0, 256, (40, 50, 3), np.uint8)
    Image.fromarray(pixels).save(tmp_path / "picture.png")

    def seen(*flags):
        return subprocess.run(
            [PROGRAM, "net", "out", "picture.png", "labels.txt", "--dump-input", "x.npy",
             "--outputs", "y.npz", *flags], cwd=tmp_path, capture_output=True, text=True,
            check=False)
    refused = seen()
    assert refused.returncode == 6 and "as --size 640x480 does" in refused.stderr
    for size, shape in (("24x32", (1, 3, 32, 24)), ("48x48", (1, 3, 48, 48))):
        done = seen("--size", size)
        assert done.returncode == 0, done.stderr
        x = np.load(tmp_path / "x.npy")
        assert x.shape == shape
        wanted, = run_onnxruntime(tmp_path / "net.onnx", {"x": x})
        with np.load(tmp_path / "y.npz") as file:
            np.testing.assert_allclose(file[file.files[0]], wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("flags, said", [
    (("--dynamic", "--exact", "m=8"), "open extents of net.onnx are n"),
    (("--dynamic", "--exact", "n=0"), "is not of the form"),
    (("--dynamic", "--exact", "n=" + "/".join(map(str, range(1, 66)))), "64 are possible"),
    (("--shape", "x:2,24", "--exact", "n=8"), "for --dynamic")])
def test_what_is_no_size_is_refused(tmp_path, command, flags, said):
    save_network(tmp_path / "net.onnx", ROWS, weights(1, w=(24, 20)), 18)
    made = command("compile_model", "net.onnx", "--compiler", "relax", *flags, cwd=tmp_path, code=2)
    assert said in made.stderr


def test_names_and_sizes_are_read():
    assert parse_exact(["a=1/2, b.c=3"]) == ((("a", (1, 2)), ("b.c", (3,))),)
    assert function_name({"a": 1, "b.c": 3}) == "exact_a_1_b_c_3"
    for wrong in ("a", "a=", "a=1,a=2", "a=-1", "a=1//2"):
        with pytest.raises(ToolError, match="is not of the form"):
            parse_exact([wrong])


def test_models_share_their_large_weights(tmp_path):
    file = WeightsFile(tmp_path / "weights.data")
    models = [network(f"(float[n,40] x) => (float[n,{wide}] y) {{ y = MatMul(x, w) }}",
                      weights(seed, w=(40, wide)), 18)
              for seed, wide in ((1, 50), (1, 50), (2, 60))]
    wanted = [numpy_helper.to_array(model.graph.initializer[0]) for model in models]
    for index, (model, array) in enumerate(zip(models, wanted)):
        file.take(model)
        path = tmp_path / f"{index}.onnx"
        path.write_bytes(model.SerializeToString())
        assert path.stat().st_size < 1000
        read = onnx.load(str(path)).graph.initializer[0]
        np.testing.assert_array_equal(numpy_helper.to_array(read), array)
    assert (tmp_path / "weights.data").stat().st_size == wanted[0].nbytes + wanted[2].nbytes
