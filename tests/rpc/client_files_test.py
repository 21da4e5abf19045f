"""Files that TVM's client sends and asks for, and libraries that are loaded of them."""

from __future__ import annotations

import os
import re

import numpy as np
import pytest
import tvm
from board import IS_NATIVE, native_only
from tvm_client import connect, error_of, upload


@pytest.mark.parametrize("size", [0, 1, 4096, 1_000_003])
def test_a_file_comes_back_as_it_went(remote, size):
    content = np.random.default_rng(size).bytes(size)
    remote.upload(bytearray(content), "dat.bin")
    assert bytes(remote.download("dat.bin")) == content


def test_an_upload_replaces_an_older_file(remote):
    remote.upload(bytearray(b"a long first text"), "note.txt")
    remote.upload(bytearray(b"short"), "note.txt")
    assert bytes(remote.download("note.txt")) == b"short"


def test_a_removed_file_is_gone(remote):
    remote.upload(bytearray(b"x"), "x.bin")
    remote.remove("x.bin")
    assert "x.bin" in error_of(remote.download, "x.bin")


@native_only
@pytest.mark.parametrize("name", ["../x", "/tmp/x", "a/b", "..", ".", "", ".hidden"])
def test_files_stay_in_the_session_s_folder(remote, name):
    upload_function = remote.get_function("tvm.rpc.server.upload")
    for call in (lambda: upload_function(name, bytearray(b"x")), lambda: remote.download(name),
                 lambda: remote.load_module(name)):
        assert "name" in error_of(call)
    assert upload_function("good", bytearray(b"x")) is None


@native_only
def test_removing_what_tuners_remove(remote, tmp_path):
    """They give the host's name, which upload has put under its last part, and then too much."""
    here = tmp_path / "tmp_func.so"
    here.write_bytes(b"x")
    remote.upload(str(here))
    for name in (str(here), str(here), "tmp_func.tar", ""):
        remote.remove(name)
    assert here.exists() and "tmp_func.so" in error_of(remote.download, "tmp_func.so")
    for name in ("../x", "a/b", "..", "/tmp/.."):
        assert "name" in error_of(remote.remove, name)


@native_only
def test_sessions_do_not_see_each_other_s_files(server, remote):
    remote.upload(bytearray(b"mine"), "mine.txt")
    other = connect(server)
    assert "mine.txt" in error_of(other.download, "mine.txt")


@native_only
def test_uploads_beyond_the_limit(start_server):
    server = start_server("--file-limit", "1M")
    remote = connect(server, "")
    remote.upload(bytearray(700_000), "a.bin")
    for size in (700_000, 3_000_000):
        assert "limit" in error_of(remote.upload, bytearray(size), "b.bin")
    remote.remove("a.bin")
    remote.upload(bytearray(700_000), "b.bin")


def test_a_library_for_another_cpu(remote, add_one):
    foreign = bytearray(add_one.read_bytes())
    foreign[18:20] = (22).to_bytes(2, "little")  # e_machine: IBM's S/390, which no build is for
    remote.upload(foreign, "foreign.so")
    message = error_of(remote.load_module, "foreign.so")
    assert "foreign.so" in message and re.search(r"another CPU|machine|S/?390", message), message


@native_only
def test_files_that_are_no_libraries(remote, add_one):
    remote.upload(bytearray(b"some text"), "text.so")
    assert "text.so" in error_of(remote.load_module, "text.so")
    remote.upload(bytearray(add_one.read_bytes()[:2000]), "cut.so")
    assert "cut.so" in error_of(remote.load_module, "cut.so")
    remote.upload(bytearray(b"x"), "picture.png")
    assert "picture.png" in error_of(remote.load_module, "picture.png")
    assert "missing.so" in error_of(remote.load_module, "missing.so")


@native_only
def test_objects_are_linked_where_there_is_a_compiler(remote, tmp_path):
    """AutoTVM's and TVM's tutorials' default: a .tar of objects."""
    n = tvm.te.placeholder((8,), name="n")
    twice = tvm.te.compute((8,), lambda i: n[i] * 2)
    built = tvm.build(tvm.te.create_schedule(twice.op), [n, twice], "llvm", name="twice")
    built.export_library(str(tmp_path / "twice.tar"))
    function = upload(remote, tmp_path / "twice.tar")["twice"]
    a, b = (tvm.nd.array(np.arange(8, dtype="float32"), remote.cpu()) for _ in range(2))
    function(a, b)
    np.testing.assert_array_equal(b.numpy(), 2 * np.arange(8, dtype="float32"))
    linked = bytes(remote.download_linked_module("twice.tar"))
    (tmp_path / "linked.so").write_bytes(linked)
    assert tvm.runtime.load_module(str(tmp_path / "linked.so"))["twice"]


def test_objects_without_a_compiler_get_advice(start_server, tmp_path):
    server = start_server(environment={"PATH": "/nonexistent" if IS_NATIVE else os.environ["PATH"],
                                       "CXX": "/nonexistent/c++"})
    remote = connect(server, "")
    (tmp_path / "net.tar").write_bytes(b"\0" * 1024)
    message = error_of(upload, remote, tmp_path / "net.tar")
    assert "export_library" in message and "g++" in message
