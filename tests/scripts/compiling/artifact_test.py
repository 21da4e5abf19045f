"""Descriptions of an artifact's files."""

import json
import struct

import pytest

from run_model_tools.compiling import artifact
from run_model_tools.compiling.explanation import explain
from run_model_tools.compiling.graph_file import read_graph
from run_model_tools.errors import ToolError
from run_model_tools.files import json_text


def test_checksums(tmp_path):
    (tmp_path / "f").write_bytes(b"abc")
    # The published test vectors: FIPS 180-2 and xxHash 0.8.
    assert artifact.describe_file(tmp_path / "f") == {
        "bytes": 3, "sha256": "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        "xxh3_64": "78af5f94892f3950"}


@pytest.mark.parametrize("order, machine, name", [
    (1, 62, "x86_64"), (1, 183, "aarch64"), (1, 40, "armv7l"), (1, 243, "riscv64"),
    (2, 183, "aarch64"), (1, 999, "elf-machine-999")])
def test_machine(tmp_path, order, machine, name):
    header = b"\x7fELF\x02" + bytes([order]) + bytes(10) + struct.pack(
        "<HH" if order == 1 else ">HH", 3, machine)
    (tmp_path / "m.so").write_bytes(header)
    assert artifact.library_machine(tmp_path / "m.so") == name


@pytest.mark.parametrize("data", [b"", b"\x7fELF", b"{" * 64])
def test_no_library(tmp_path, data):
    (tmp_path / "m.so").write_bytes(data)
    with pytest.raises(ToolError, match="ELF"):
        artifact.library_machine(tmp_path / "m.so")


@pytest.mark.parametrize("shape, layout", [
    ((1, 3, 224, 224), "NCHW"), ((1, 224, 224, 3), "NHWC"), ((1, 1, 28, 28), "NCHW"),
    ((1, 3, 3, 3), None), ((1, 64, 56, 56), None),
    ((3, 224, 224), "CHW"), ((224, 224, 3), "HWC"), ((3, -1, -1), "CHW"), ((3, 224, 3), None),
    # Sequences, of features or points.
    ((1, 128, 768), None), ((1, 20, 3), None), ((3, 224), None)])
def test_layout_is_named_only_where_it_is_certain(shape, layout):
    assert artifact.guess_layout(shape) == layout


def test_changed_files_are_noticed(tmp_path):
    (tmp_path / "a").write_bytes(b"abc")
    metadata = {"files": {"a": artifact.describe_file(tmp_path / "a")}}
    assert artifact.files_match(tmp_path, metadata)
    (tmp_path / "a").write_bytes(b"abd")
    assert not artifact.files_match(tmp_path, metadata)
    (tmp_path / "a").unlink()
    assert not artifact.files_match(tmp_path, metadata)
    assert not artifact.files_match(tmp_path, {})


def test_graph_entries():
    graph = read_graph(json.dumps({
        "nodes": [{"op": "null", "name": "x"}, {"op": "null", "name": "p0"},
                  {"op": "tvm_op", "name": "split"}],
        "arg_nodes": [0, 1], "heads": [[2, 1, 0], [2, 0, 0]], "node_row_ptr": [0, 1, 2, 4],
        "attrs": {"shape": ["list_shape", [[1, 4], [4], [1, 2], [1, 3]]],
                  "dltype": ["list_str", ["float32", "float32", "int8", "int64"]]}}),
        {"p0"}, ["second", "first"])
    assert [(e.name, e.shape, e.dtype) for e in graph.inputs] == [("x", (1, 4), "float32")]
    assert [(e.name, e.shape, e.dtype) for e in graph.outputs] == [
        ("second", (1, 3), "int64"), ("first", (1, 2), "int8")]
    assert graph.parameters == ["p0"]


def test_truth_values_are_called_as_numpy_calls_them():
    # As TVM 0.18 writes them.
    text = json.dumps({
        "nodes": [{"op": "null", "name": "x"}, {
            "op": "tvm_op", "name": "not", "attrs": {"func_name": "tvmgen_default_fused_not"}}],
        "arg_nodes": [0], "heads": [[1, 0, 0]], "node_row_ptr": [0, 1, 2],
        "attrs": {"shape": ["list_shape", [[4], [4]]], "dltype": ["list_str", ["uint1"] * 2]}})
    graph = read_graph(text, ())
    assert [e.dtype for e in graph.inputs + graph.outputs] == ["bool", "bool"]
    assert explain(text, [])["nodes"][0]["outputs"] == [{"shape": [4], "dtype": "bool"}]


def test_text_of_a_file_is_json_and_short_lists_stay_on_a_line():
    value = {"a": [1, 2.5], "b": {"c": [{"d": "ä"}], "e": {}}, "f": None, "g": "x" * 200}
    text = json_text(value)
    assert json.loads(text) == value
    assert '"a": [1, 2.5]' in text and text.endswith("}\n") and "ä" in text
