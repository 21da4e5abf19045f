"""What is read from an ONNX file, and the shapes that it leaves open."""

import numpy as np
import onnx
import pytest

from run_model_tools.errors import ToolError
from run_model_tools.onnx_model import read_model, run_onnx
from run_model_tools.onnx_repair import reference
from run_model_tools.source_model import resolve_shapes
from small_networks import save_classifier, save_network, save_two_by_two


def test_facts(classifier):
    model = read_model(classifier)
    assert [(i.name, i.shape, i.dtype) for i in model.inputs] == [
        ("image", (1, 3, 8, 8), np.dtype("float32"))]
    assert model.outputs == ["prob"] and model.opset == 13 and len(model.sha256) == 64


def test_weights_among_the_inputs_are_no_inputs(tmp_path):
    """Models of IR version 3 list every weight as an input."""
    path = save_network(tmp_path / "old.onnx", """(float[2] w, float[2] x) => (float[2] y) {
        y = Add(x, w)
    }""", {"w": np.ones(2, np.float32)}, 7, ir_version=3)
    assert [i.name for i in read_model(path).inputs] == ["x"]


def test_an_open_batch_is_one(tmp_path):
    model = read_model(save_classifier(tmp_path / "m.onnx", batch="N"))
    assert resolve_shapes(model, {}) == {"image": (1, 3, 8, 8)}
    assert resolve_shapes(model, {"image": (5, 3, 8, 8)}) == {"image": (5, 3, 8, 8)}


def test_other_open_extents_must_be_given(tmp_path):
    model = read_model(save_network(
        tmp_path / "m.onnx", "(float[N,T,4] x) => (float[N,T,4] y) { y = Relu(x) }"))
    with pytest.raises(ToolError, match="--shape x:1,1,4") as caught:
        resolve_shapes(model, {})
    assert caught.value.code == 2
    assert resolve_shapes(model, {"x": (1, 9, 4)}) == {"x": (1, 9, 4)}


def test_all_open_inputs_are_named_at_once(tmp_path):
    model = read_model(save_network(
        tmp_path / "m.onnx", """(float[N,T,4] x, float[4] b, float[T,N] z) => (float[N,T,4] y) {
            y = Add(x, b)
        }"""))
    with pytest.raises(ToolError, match=r"'x' open \(\?,\?,4\), 'z' open \(\?,\?\): add "
                                        r"--shape x:1,1,4 --shape z:1,1 with"):
        resolve_shapes(model, {})


@pytest.mark.parametrize("given, says", [
    ({"picture": (1, 3, 8, 8)}, "image"), ({"image": (1, 3, 8)}, "contradicts"),
    ({"image": (1, 3, 8, 9)}, "contradicts"), ({"image": (2, 3, 8, 8)}, "contradicts")])
def test_shapes_that_contradict_the_model(classifier, given, says):
    with pytest.raises(ToolError, match=says) as caught:
        resolve_shapes(read_model(classifier), given)
    assert caught.value.code == 6


@pytest.mark.parametrize("data, code",
                         [(None, 3), (b"", 4), (b"not a model", 4), (b"\x7fELF" * 9, 4)])
def test_what_is_no_model(tmp_path, data, code):
    path = tmp_path / "m.onnx"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(ToolError) as caught:
        read_model(path)
    assert caught.value.code == code and "m.onnx" in str(caught.value)


def test_weights_beside_the_model_are_part_of_it(classifier):
    moved = classifier.parent / "moved.onnx"
    onnx.save_model(onnx.load(str(classifier)), str(moved), save_as_external_data=True,
                    location="weights.bin", size_threshold=0)
    first = read_model(moved).data_sha256
    assert len(first) == 1
    weights = classifier.parent / "weights.bin"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\0")
    assert read_model(moved).data_sha256 != first
    weights.unlink()
    with pytest.raises(ToolError, match="weights.bin") as caught:
        read_model(moved)
    assert caught.value.code == 3


def test_addresses_of_onnx_runtimes_memory_are_no_weights(classifier):
    """As it writes them of weights that it unpacks while it optimises."""
    model = onnx.load(str(classifier))
    onnx.external_data_helper.set_external_data(model.graph.initializer[0], "*/_ORT_MEM_ADDR_/*",
                                                length=64)
    model.graph.initializer[0].ClearField("raw_data")
    path = classifier.parent / "optimised.onnx"
    path.write_bytes(model.SerializeToString())
    with pytest.raises(ToolError, match="optimised.onnx has no weights: ONNX Runtime wrote where"):
        read_model(path)


def test_runs_in_onnx_runtime(tmp_path):
    path = save_two_by_two(tmp_path / "two.onnx")
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    n = np.full((2, 3), 4, np.int64)
    total, product = run_onnx(path, {"x": x, "n": n})
    assert np.array_equal(total, x + 4) and np.array_equal(product, x * 4)


def test_what_the_evaluator_does_not_end_with_is_left_to_the_repaired_model(tmp_path, monkeypatch):
    """ONNX Runtime has no DeformConv, and ONNX's evaluator calls Python for each pixel."""
    path = save_network(tmp_path / "m.onnx", """(float[1,1,99,99] x) => (float[1,1,198,198] y) {
        doubled = DeformConv<kernel_shape = [1, 1]> (x, two, nowhere)
        y = Resize<mode = "linear"> (doubled, , scales)
    }""", {"scales": np.array([1, 1, 2, 2], np.float32),
           "two": np.full((1, 1, 1, 1), 2, np.float32),
           "nowhere": np.zeros((1, 2, 99, 99), np.float32)}, 19)
    x = np.random.default_rng(1).standard_normal((1, 1, 99, 99)).astype(np.float32)
    monkeypatch.setattr(reference, "_SECONDS", 0.3)
    (y,), who = read_model(path).run_by({"x": x})
    assert who == reference.REPAIRED and y.shape == (1, 1, 198, 198)
    np.testing.assert_allclose(y[0, 0, 0, 0], 2 * x[0, 0, 0, 0], rtol=1e-5)
    with pytest.raises(reference.NoReference,
                       match=r"ONNX Runtime .*DeformConv.*not done in 0.3 s"):
        reference.reference_outputs(path, {"x": x})
