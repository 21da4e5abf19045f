"""What is packed for a board, and what is said where a piece is missing."""

import json
import subprocess
import tarfile

import pytest
from conftest import ROOT

from run_model_tools.boards import board
from run_model_tools.errors import ToolError

PROGRAM = "int main() { return 0; }"


@pytest.fixture
def pieces(tmp_path):
    """Folders with one model for `native`, one reference result and its picture, and programs."""
    artifact = tmp_path / "artifacts" / "net" / "native"
    (artifact / "forms" / "tar").mkdir(parents=True)
    for name in ("model.so", "model.json", "model.params", "metadata.json", "forms/tar/net.tar"):
        (artifact / name).write_text("{}")
    golden = tmp_path / "golden" / "net"
    golden.mkdir(parents=True)
    (golden / "cat.json").write_text(json.dumps({"picture": {"file": "cat.png"}}))
    (golden / "cat.npy").write_bytes(b"npy")
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "cat.png").write_bytes(b"png")
    (tmp_path / "bin").mkdir()
    for name in board.PROGRAMS:
        subprocess.run(["cc", "-g", "-x", "c", "-", "-o", tmp_path / "bin" / name], input=PROGRAM,
                       text=True, check=True)
    return tmp_path


def plan(pieces, target="native", models=()):
    return board.plan(target, list(models), pieces / "artifacts", [pieces / "golden"],
                      pieces / "images", pieces / "bin")


def test_all_that_a_check_reads_and_nothing_else(pieces):
    made = plan(pieces)
    assert made.models == {"net": 1}
    assert sorted(made.files) == sorted([
        "run_model", "check_zoo", "labels/imagenet.txt", "images/cat.png",
        "artifacts/targets.json", "artifacts/tolerances.json", "artifacts/golden/net/cat.json",
        "artifacts/golden/net/cat.npy",
        *(f"artifacts/net/native/{name}" for name in
          ("model.so", "model.json", "model.params", "metadata.json"))])


def test_the_module_goes_with_its_library(pieces):
    (pieces / "bin" / "run_model.py").write_text("")
    assert "run_model.py" not in plan(pieces).files
    (pieces / "bin" / "librun_model.so").write_bytes(b"")
    made = plan(pieces)
    assert {"run_model.py", "librun_model.so"} <= made.files.keys()
    assert "librun_model.so" in made.programs and "run_model.py" not in made.programs


@pytest.mark.parametrize("missing, code, words", [
    ("bin/check_zoo", 3, "cmake --preset host"),
    ("images/cat.png", 3, "--images"),
    ("artifacts/net/native/metadata.json", 3, "scripts/make_zoo --targets native"),
])
def test_missing_pieces_are_named_with_what_makes_them(pieces, missing, code, words):
    (pieces / missing).unlink()
    with pytest.raises(ToolError, match=words) as refused:
        plan(pieces)
    assert refused.value.code == code


def test_unknown_names_are_refused(pieces):
    with pytest.raises(ToolError, match="there are native"):
        plan(pieces, target="toaster")
    with pytest.raises(ToolError, match="scripts/make_zoo --models other"):
        plan(pieces, models=["other"])


def test_the_archive_holds_stripped_programs(pieces):
    subprocess.run([ROOT / "scripts" / "pack_board", "native", "--artifacts", pieces / "artifacts",
                    "--golden", pieces / "golden", "--images", pieces / "images", "--programs",
                    pieces / "bin", "--out", pieces / "out"], check=True, capture_output=True)
    with tarfile.open(pieces / "out" / "native.tar.gz") as tar:
        sizes = {member.name: member.size for member in tar if member.isfile()}
    assert set(sizes) == {f"native/{place}" for place in plan(pieces).files}
    assert sizes["native/run_model"] < (pieces / "bin" / "run_model").stat().st_size
    assert [p.name for p in (pieces / "out").iterdir()] == ["native.tar.gz"]
