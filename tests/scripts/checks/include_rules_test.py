"""The include rules, on small trees with one violation each."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import ROOT

from checks import include_rules

TABLE = """
| room | holds | may include | libraries |
|---|---|---|---|
| `base/` | bytes | – | nlohmann/json |
| `runtime/` | models | `base/*`, `runtime/elf/*` | DLPack |
| `runtime/elf/` | libraries | `base/*` | – |
| `labels/` | names | `base/*`, `runtime`, `runtime/halves.h` | – |
| `examples/` | applications | `labels` | – |

| a new thing | goes |
"""

# A tree that keeps the rules, and needs all that the table grants.
TREE = {
    "base/bytes.h": "#pragma once\n#include <span>\n#include <sys/stat.h>\n",
    "base/json.cc": '#include "base/bytes.h"\n#include <nlohmann/json.hpp>\n#include <unistd.h>\n',
    "runtime/CMakeLists.txt": "HEADERS\n  include/run_model/tensor.h\n  PUBLIC",
    "runtime/include/run_model/tensor.h": "#include <dlpack/dlpack.h>\n#include <string>\n",
    "runtime/tensor.cc": '#include <run_model/tensor.h>\n#include "base/bytes.h"\n'
                         '#include "runtime/elf/file.h"\n#include "runtime/made.h"\n',
    "runtime/made.h.in": "@text@\n",
    "runtime/halves.h": "#include <cstdint>\n",
    "runtime/elf/file.h": '#include "base/bytes.h"\n',
    "labels/CMakeLists.txt": "include/run_model/labels.h",
    "labels/include/run_model/labels.h": "#include <run_model/tensor.h>\n",
    "labels/labels.cc": '#include <run_model/labels.h>\n#include "base/bytes.h"\n'
                        '#include "runtime/halves.h"\n',
    "examples/app/app.cc": '#include <run_model/labels.h>\n#include "app.h"\n',
    "examples/app/app.h": "",
    "tests/any_test.cc": '#include <tvm/runtime/module.h>\n#include "labels/nothing.h"\n',
}


def check(folder: Path, tree: dict[str, str], table: str = TABLE) -> list[str]:
    for name, text in {**tree, "ARCHITECTURE.md": table}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return include_rules.problems(folder, list(tree))


def test_a_tree_that_keeps_the_rules(tmp_path):
    assert check(tmp_path, TREE) == []


@pytest.mark.parametrize(("file", "line", "problem"), [
    ("base/json.cc", '#include "runtime/halves.h"', "base must not include runtime/halves.h"),
    ("base/json.cc", "  #  include <run_model/tensor.h>", "base must not include runtime/include/"),
    ("base/json.cc", "#include <gflags/gflags.h>", "base must not include <gflags/gflags.h>"),
    ("base/json.cc", "#include <tvm/runtime/c_runtime_api.h>", "base must not include <tvm/"),
    ("base/json.cc", "#include <unknown.h>", "base must not include <unknown.h>"),
    ("base/json.cc", '#include "bytes.h"', '"bytes.h" is no file, seen from the top'),
    ("base/json.cc", "#include <run_model/nothing.h>", "<run_model/nothing.h> is no installed"),
    ("runtime/elf/file.h", '#include "runtime/halves.h"', "runtime/elf must not include"),
    ("labels/labels.cc", '#include "runtime/elf/file.h"', "labels must not include runtime/elf/"),
    ("labels/labels.cc", '#include "runtime/include/run_model/tensor.h"', "is installed: include"),
    ("examples/app/app.cc", '#include "base/bytes.h"', "examples must not include base/bytes.h"),
    ("labels/include/run_model/labels.h", '#include "base/bytes.h"', "which is not installed"),
    ("base/bytes.h", '#include "base/bytes.h"', "headers include each other"),
])
def test_a_violation_is_named(tmp_path, file, line, problem):
    found = check(tmp_path, {**TREE, file: f"{TREE[file]}{line}\n"})
    assert len(found) == 1 and problem in found[0], found
    assert found[0].startswith(file)
    if "each other" not in problem:
        assert found[0].startswith(f"{file}:{TREE[file].count(chr(10)) + 1}: ")


def test_headers_that_include_each_other(tmp_path):
    ring = {"base/a.h": "base/b.h", "base/b.h": "base/c.h", "base/c.h": "base/a.h"}
    headers = {header: f'#include "{other}"\n' for header, other in ring.items()}
    found = check(tmp_path, {**TREE, **headers})
    assert found == ["base/a.h: headers include each other: "
                     "base/a.h → base/b.h → base/c.h → base/a.h"]


def test_an_installed_header_has_to_be_installed(tmp_path):
    found = check(tmp_path, {**TREE, "labels/CMakeLists.txt": "include/run_model/others.h"})
    assert found == ["labels/include/run_model/labels.h: is not among the HEADERS in "
                     "labels/CMakeLists.txt"]


def test_an_installed_header_needs_no_library_but_dlpack(tmp_path):
    table = TABLE.replace("| DLPack |", "| DLPack, nlohmann/json |")
    header = "runtime/include/run_model/tensor.h"
    found = check(tmp_path, {**TREE, "runtime/x.cc": "#include <nlohmann/json.hpp>\n",
                             header: TREE[header] + "#include <nlohmann/json.hpp>\n"}, table)
    assert found == [f"{header}:3: an installed header must not include <nlohmann/json.hpp>"]


@pytest.mark.parametrize(("old", "new", "problem"), [
    ("| nlohmann/json |", "| nlohmann/json, zlib |", "base does not need zlib"),
    ("`runtime/halves.h`", "`runtime/halves.h`, `runtime/elf/*`", "labels does not need runtime/e"),
    ("| bytes | – |", "| bytes | `runtime` |", "rooms use each other: base → runtime → base"),
])
def test_the_table_grants_only_what_is_needed(tmp_path, old, new, problem):
    assert any(problem in found for found in check(tmp_path, TREE, TABLE.replace(old, new)))


def test_a_folder_that_is_no_room(tmp_path):
    found = check(tmp_path, {**TREE, "devices/gpu.cc": ""})
    assert found == ["devices/gpu.cc: lies in no room of ARCHITECTURE.md's table"]


def test_the_table_of_this_tree_has_all_rooms():
    rooms = include_rules.read_rooms((ROOT / "ARCHITECTURE.md").read_text())
    assert {"base", "runtime", "runtime/elf", "runtime/cpu", "preprocess", "labels", "artifacts",
            "rpc"} <= set(rooms)
    # The rooms below know nothing of those above, nor preprocess and labels of each other.
    assert rooms["base"].includes == []
    assert rooms["runtime/elf"].includes == rooms["runtime/cpu"].includes == ["base/*"]
    for room, other in (("preprocess", "labels"), ("labels", "preprocess")):
        assert not [entry for entry in rooms[room].includes if entry.startswith(other)]
