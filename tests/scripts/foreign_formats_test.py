"""What compile_model says of files that are no networks it can read."""

from __future__ import annotations

import struct
import zipfile

import pytest

from run_model_tools.errors import MALFORMED_FILE, ToolError
from run_model_tools.foreign_formats import instead_of_network
from run_model_tools.onnx_model import read_model

BEGINNINGS = [
    (b"\x89HDF\r\n\x1a\n", "HDF5"), (struct.pack("<Q", 60) + b'{"w":', "safetensors"),
    (b"GGUF\3\0\0\0", "llama.cpp"), (b" \0\0\0ORTM", "ONNX Runtime's own format"),
    (b'<?xml version="1.0"?>\n<net name="x">', "OpenVINO"), (b"<!doctype HTML><html>", "web"),
    (b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"), (b"7767517\n75 83", "ncnn"),
    (b"\x7fELF\2\1\1", "run_model"), (b"\x1f\x8b\x08", "unpack"),
    (b"\x80\x02\x8a\nl\xfc\x9c", "pickle"), (b"", "empty"), (b"\xff\xfe\xfd", "neither ONNX"),
]
MEMBERS = [
    ("net/data.pkl", "PyTorch saves"), ("net/archive_format", "torch.export.load"),
    ("model.weights.h5", "Keras"), ("a/saved_model.pb", "tf2onnx"), ("net.onnx", "unpack"),
    ("notes.txt", "without a network"),
]


@pytest.mark.parametrize(("start", "says"), BEGINNINGS)
def test_a_file_is_told_by_its_beginning(tmp_path, start, says):
    path = tmp_path / "net.onnx"
    path.write_bytes(start + bytes(100 if start else 0))
    with pytest.raises(ToolError, match=says) as raised:
        read_model(path)
    assert raised.value.code == MALFORMED_FILE
    assert str(raised.value).startswith(f"{path} is not an ONNX model: it is ")


@pytest.mark.parametrize(("member", "says"), MEMBERS)
def test_an_archive_is_told_by_what_is_in_it(tmp_path, member, says):
    path = tmp_path / "net.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(member, "x")
    assert says in instead_of_network(path)


def test_damaged_archives_and_folders(tmp_path):
    (tmp_path / "net.pt").write_bytes(b"PK\3\4" + bytes(30))
    assert "without a network" in instead_of_network(tmp_path / "net.pt")
    assert "name a file" in instead_of_network(tmp_path)
    (tmp_path / "net.onnx").touch()
    assert "name the file: net.onnx" in instead_of_network(tmp_path)
    (tmp_path / "saved_model.pb").write_bytes(b"\x08\x01\x12\x04")
    assert "tf2onnx" in instead_of_network(tmp_path)
    with pytest.raises(ToolError, match="SavedModel"):
        read_model(tmp_path)
