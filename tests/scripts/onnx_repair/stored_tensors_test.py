"""What files of ONNX store of their tensors, where it is not what their shapes need."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from run_model_tools.errors import ToolError
from run_model_tools.onnx_model import read_model
from run_model_tools.onnx_repair.reference import reference_outputs
from run_model_tools.onnx_repair.repair import load, repair
from run_model_tools.onnx_repair.stored_tensors import spread

WEIGHTS = np.arange(40, dtype=np.float32).reshape(8, 5) / 40
X = np.linspace(-1, 1, 16, dtype=np.float32).reshape(2, 8)


def product(weights: list[TensorProto], nodes: list[onnx.NodeProto] | None = None,
            opset: int = 18, **graph) -> onnx.ModelProto:
    """x times w, which initializers or nodes make."""
    made = helper.make_graph(
        [*(nodes or []), helper.make_node("MatMul", ["x", "w"], ["y"])], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (2, 8))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (2, 5))], weights, **graph)
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


def beside(folder: Path, **said: str | None) -> Path:
    """A model whose weights lie in d.bin, with what it says of their place changed."""
    path = folder / "net.onnx"
    onnx.save(product([numpy_helper.from_array(WEIGHTS, "w")]), str(path),
              save_as_external_data=True, location="d.bin", size_threshold=0)
    model = onnx.load(str(path), load_external_data=False)
    tensor = model.graph.initializer[0]
    entries = {e.key: e.value for e in tensor.external_data} | said
    del tensor.external_data[:]
    for key, value in entries.items():
        if value is not None:
            tensor.external_data.add(key=key, value=value)
    path.write_bytes(model.SerializeToString())
    return path


def computed(model: onnx.ModelProto) -> np.ndarray:
    made = repair(model, {"x": (2, 8)})
    return ReferenceEvaluator(made).run(None, {"x": X})[0]


@pytest.mark.parametrize("said, says", [
    ({"offset": "100000"}, "bytes 100000 to 100160 of 'd.bin', which has 160"),
    ({"offset": "-4"}, r"160 bytes from byte -4 of 'd.bin' on, and their shape \[8, 5\] needs 160"),
    ({"offset": "start"}, "from byte start of 'd.bin'"),
    ({"length": "100000"}, "are 100000 bytes .* needs 160"),
    ({"length": "80"}, "are 80 bytes .* needs 160"),
    ({"location": None}, "does not say in which file the weights 'w' lie"),
    ({"location": "../d.bin"}, "in '../d.bin', which is no file in its folder"),
    ({"location": "/etc/hostname"}, "in '/etc/hostname', which is no file in its folder")])
def test_a_place_that_does_not_hold_the_weights(tmp_path, said, says):
    with pytest.raises(ToolError, match=says):
        read_model(beside(tmp_path, **said))


def test_a_file_of_weights_that_is_cut_short(tmp_path):
    path = beside(tmp_path)
    (tmp_path / "d.bin").write_bytes(b"\0" * 100)
    with pytest.raises(ToolError, match="bytes 0 to 160 of 'd.bin', which has 100; it is cut"):
        read_model(path)


def test_without_a_length_it_is_what_the_shape_needs(tmp_path):
    path = beside(tmp_path, length=None)
    with open(tmp_path / "d.bin", "ab") as file:
        file.write(b"more")
    read_model(path)
    np.testing.assert_allclose(computed(load(path)), X @ WEIGHTS, rtol=1e-6)


def test_a_link_of_the_folder_may_lead_anywhere(tmp_path):
    """As in a cache of downloads, which keeps files by their hashes."""
    (tmp_path / "snapshot").mkdir()
    path = beside(tmp_path / "snapshot")
    (tmp_path / "snapshot" / "d.bin").rename(tmp_path / "0123")
    (tmp_path / "snapshot" / "d.bin").symlink_to("../0123")
    assert len(read_model(path).data_sha256) == 1
    np.testing.assert_allclose(computed(load(path)), X @ WEIGHTS, rtol=1e-6)


def test_weights_of_attributes_beside_the_model_are_part_of_it(tmp_path):
    path = tmp_path / "net.onnx"
    made = helper.make_node("Constant", [], ["w"], value=numpy_helper.from_array(WEIGHTS))
    onnx.save(product([], [made]), str(path), save_as_external_data=True, location="d.bin",
              size_threshold=0, convert_attribute=True)
    first = read_model(path).data_sha256
    (tmp_path / "d.bin").write_bytes(bytes(160))
    assert len(first) == 1 and read_model(path).data_sha256 != first
    assert not computed(load(path)).any()


def raw(change: bytes | None) -> TensorProto:
    tensor = numpy_helper.from_array(WEIGHTS, "w")
    tensor.raw_data = tensor.raw_data[:-4] if change is None else tensor.raw_data + change
    return tensor


@pytest.mark.parametrize("tensor, says", [
    (raw(None), r"has 156 bytes of the tensor 'w', and its shape \[8, 5\] needs 160"),
    (raw(b"more"), "has 164 bytes"),
    (TensorProto(name="w", data_type=1, dims=[8, 5], float_data=[1.0] * 39), "has 39 numbers"),
    (TensorProto(name="w", data_type=1, dims=[8, -5]), r"of the shape \[8, -5\]"),
    (TensorProto(name="w", data_type=1, dims=[1 << 40, 5]), "has 0 numbers"),
    (TensorProto(name="w", data_type=77, dims=[8, 5]), "of type 77 of ONNX")])
def test_a_tensor_with_another_number_of_numbers(tmp_path, tensor, says):
    path = tmp_path / "net.onnx"
    path.write_bytes(product([tensor]).SerializeToString())
    with pytest.raises(ToolError, match=says):
        load(path)


def sparse(indices, dims=(8, 5), values=(1, 2, 3, 4)) -> onnx.SparseTensorProto:
    return helper.make_sparse_tensor(
        numpy_helper.from_array(np.array(values, np.float32), "w"),
        numpy_helper.from_array(np.array(indices, np.int64)), dims)


def test_sparse_constants_become_whole_ones():
    whole = np.zeros((8, 5), np.float32)
    whole[[0, 1, 2, 7], [1, 2, 2, 4]] = 1, 2, 3, 4
    by_axes = sparse([[0, 1], [1, 2], [2, 2], [7, 4]])
    assert (spread(by_axes) == whole).all() and (spread(sparse([1, 7, 12, 39])) == whole).all()
    node = helper.make_node("Constant", [], ["w"], sparse_value=by_axes)
    for model in (product([], sparse_initializer=[by_axes]), product([], [node])):
        np.testing.assert_allclose(computed(model), X @ whole, rtol=1e-6)


@pytest.mark.parametrize("wrong, says", [
    (sparse([1, 7, 12]), "one place in it for each of its values"),
    (sparse([1, 7, 12, -1]), "one place"), (sparse([1, 7, 12, 40]), "one place"),
    (sparse([1, 7, 12, 12]), "one place"),
    (sparse([[0, 1], [1, 2], [2, 2], [7, 5]]), "one place"),
    (sparse([[0, 1], [1, 2], [2, 2], [-1, 4]]), "one place"),
    (sparse([1, 7, 12, 39], (1 << 30, 1 << 20)), "more than 2 GB as a whole")])
def test_sparse_constants_that_contradict_themselves(wrong, says):
    node = helper.make_node("Constant", [], ["w"], sparse_value=wrong)
    for model in (product([], sparse_initializer=[wrong]), product([], [node])):
        with pytest.raises(ToolError, match=says):
            repair(model, {"x": (2, 8)})


@pytest.mark.parametrize("raw", [False, True])
@pytest.mark.parametrize("kind", ["FLOAT8E4M3FN", "FLOAT8E5M2"])
def test_weights_of_eight_bits_that_are_floats(kind, raw, tmp_path):
    weights = helper.make_tensor("b", getattr(TensorProto, kind), (8, 5), WEIGHTS.ravel().tolist())
    if raw:
        weights.raw_data = bytes(weights.int32_data)
        weights.ClearField("int32_data")
    scales = np.linspace(0.5, 2, 5, dtype=np.float32)
    wide = helper.make_node("DequantizeLinear", ["b", "s"], ["w"], axis=1)
    path = tmp_path / "net.onnx"
    onnx.save(product([weights, numpy_helper.from_array(scales, "s")], [wide], 19), str(path))
    expected, reference = reference_outputs(path, {"x": X})
    assert reference == "onnxruntime"
    np.testing.assert_allclose(computed(load(path)), expected[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("form, says", [("json", "as JSON"), ("textproto", "text of protobuf"),
                                        ("onnxtxt", "textual syntax")])
def test_models_written_as_text(form, says, tmp_path):
    model = product([numpy_helper.from_array(WEIGHTS, "w")])
    named, unnamed = tmp_path / f"net.{form}", tmp_path / "net.onnx"
    for path in (named, unnamed):
        onnx.save(model, str(path), format=form)
    read_model(named)
    expected, reference = reference_outputs(named, {"x": X})
    assert reference == "onnxruntime"
    np.testing.assert_allclose(expected[0], X @ WEIGHTS, rtol=1e-6)
    with pytest.raises(ToolError, match=says):
        read_model(unnamed)
    named.write_text(named.read_text()[:-40])
    with pytest.raises(ToolError, match="is not an ONNX model"):
        read_model(named)
