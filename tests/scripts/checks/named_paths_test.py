"""Paths in documents and comments, on a small repository."""

from __future__ import annotations

import subprocess

import pytest

from checks import named_paths

FILES = [".gitignore", "CMakeLists.txt", "README.md", "base/read_file.cc", "base/read_file.h",
         "bench/README.md", "runtime/include/run_model/tensor.h", "scripts/make_zoo"]


@pytest.fixture
def repository(tmp_path):
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text({".gitignore": "build/\n", "bench/README.md": "# How\n"
                                      "## What `x.y` does, and why\n"}.get(name, "\n"))
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    return tmp_path


def problems(repository, file, text):
    (repository / file).write_text(text)
    return named_paths.problems(repository, FILES)


@pytest.mark.parametrize("text", [
    "Run `scripts/make_zoo --models x`, read [this](bench/README.md#how) or base/read_file.h.",
    "# Here\n[there](bench/README.md#what-xy-does-and-why) and [here](#here)",
    "    scripts/make_zoo > build/log.txt",
    "`base/NAME.h`, base/*.h and base/{a,b}.h stand for others, `tensor.h` is runtime's",
    "#include <run_model/tensor.h> and <run_model/NAME.h>",
    "TVM's `tests/python`, src/runtime/thing.cc and https://example.org/base/nothing.h",
    "faster than 3 GB/s and/or nlohmann/json",
])
def test_what_is_there_or_is_not_ours(repository, text):
    assert problems(repository, "README.md", text + "\n") == []


@pytest.mark.parametrize(("file", "text", "missing"), [
    ("README.md", "see `scripts/make_zoos`", "scripts/make_zoos"),
    ("README.md", "    base/read_files.cc", "base/read_files.cc"),
    ("README.md", "[old](bench/OLD.md)", "bench/OLD.md"),
    ("README.md", "[moved](bench/README.md#why)", "bench/README.md#why"),
    ("README.md", "[gone](#how)", "#how"),
    ("README.md", "`write_file.h` has it", "write_file.h"),
    ("README.md", "#include <run_model/tensors.h>", "<run_model/tensors.h>"),
    ("base/read_file.cc", "int a;  // as in base/tensor.h", "base/tensor.h"),
    ("CMakeLists.txt", "# base/CMakeLists.txt has them", "base/CMakeLists.txt"),
])
def test_what_is_not_there(repository, file, text, missing):
    assert problems(repository, file, f"\n{text}\n") == [f"{file}:2: there is no {missing}"]


def test_code_is_not_looked_at(repository):
    assert problems(repository, "base/read_file.cc", 'read("base/nothing.h");\n') == []


def test_a_path_may_start_beside_the_document(repository):
    assert problems(repository, "bench/README.md", "[up](../base/read_file.h), `README.md`\n") == []
    assert problems(repository, "bench/README.md", "[up](../base/write.h)\n") == [
        "bench/README.md:1: there is no ../base/write.h"]
