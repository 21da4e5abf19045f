"""TopHub's logs, and what is said of how well they rank, on made-up records."""

import json
import subprocess
import sys
from math import prod

import numpy as np
import pytest

from run_model_tools.environment import REPO_ROOT
from run_model_tools.errors import MALFORMED_FILE, MISSING_FILE, ToolError
from run_model_tools.tuners import ranking, tophub
from run_model_tools.tuners.recording import Recording
from run_model_tools.tuners.space import Knob

BENCH = REPO_ROOT / "bench" / "tuners" / "rank_tophub"
RK3399 = "llvm -device=arm_cpu -model=rk3399 -mtriple=aarch64-linux-gnu"
A53 = "llvm -device=arm_cpu -model=bcm2837 -mtriple=armv7l-linux-gnueabihf"
TITAN = "cuda -model=titanx"


def line(target, channels, tile, word="unroll", template="conv.cpu", seconds=1e-3):
    """A layer whose channels are cut so that `tile` is the innermost part."""
    return json.dumps({
        "input": [target, template, [["TENSOR", [1, channels, 8, 8], "float32"], [1, 1]], {}],
        "config": {"index": 3, "code_hash": None, "entity": [
            ["tile", "sp", [channels // tile, tile]], ["order", "re", [0, 1]],
            ["words", "an", [word, "vec"]]]},
        "result": [[seconds], 0, 1.0, 1.5e9], "version": 0.2, "tvm_version": "0.7.dev0"})


@pytest.fixture
def folder(tmp_path):
    """Two boards on which tiles of 8 are fastest, whatever the layer."""
    (tmp_path / "arm.log").write_text("# comment\n" + "\n".join(
        line(target, 16 * n, 8, "unroll" if n % 2 else "none")
        for target in (RK3399, A53) for n in range(1, 9)) + '\n{"input": [')
    return tmp_path


def test_records_are_read_with_their_machines(folder):
    found = tophub.read_folder(folder)
    assert {best.machine for best in found} == {"rk3399 (llvm)", "bcm2837 (llvm)"}
    assert {best.architecture for best in found} == {"aarch64", "arm"} and len(found) == 16
    assert tophub.machine_of("llvm -mcpu=skylake-avx512") == "skylake-avx512 (llvm)"
    assert tophub.machine_of(TITAN) == "titanx (cuda)"


def test_what_are_no_logs_is_said(tmp_path):
    with pytest.raises(ToolError, match="github.com/tlc-pack/tophub") as error:
        tophub.read_folder(tmp_path)
    assert error.value.code == MISSING_FILE
    (tmp_path / "a.log").write_text("nothing")
    with pytest.raises(ToolError, match="a.log has no record") as error:
        tophub.read_folder(tmp_path)
    assert error.value.code == MALFORMED_FILE


@pytest.mark.parametrize(("extent", "parts", "count"), [(16, 2, 5), (16, 3, 15), (58, 2, 4),
                                                         (1, 4, 1), (12, 3, 18)])
def test_all_cuts_of_an_extent(extent, parts, count):
    made = tophub.cuts(extent, parts)
    assert len(made) == len({tuple(c) for c in made}) == count
    assert all(len(cut) == parts and prod(cut) == extent for cut in made)


def test_a_space_has_every_cut_and_every_word_that_was_seen(folder):
    records = tophub.read_folder(folder)
    best = records[2]
    space = tophub.space_like(records, best)
    assert [len(knob.choices) for knob in space.knobs] == [len(tophub.cuts(48, 2)), 1, 2]
    genes = space.genes(tophub.index_of(space, best))
    assert space.knobs[0].choices[genes[0]] == [6, 8]
    uncut = json.loads(line(RK3399, 16, 4))
    uncut["config"]["entity"][0][2] = [-1, 4]
    (folder / "b.log").write_text(json.dumps(uncut))
    assert tophub.space_like(records, tophub.read_folder(folder)[-1]) is None


def test_what_one_machine_has_taught_ranks_high_what_is_best_on_another(folder):
    made = ranking.rank_operator(tophub.read_folder(folder), 6, 50)
    rows = {(row["machine"], row["learnt_from"]): row for row in made["machines"]}
    assert rows["rk3399 (llvm)", "own"]["layers"] == 6
    # By chance it would lie in the middle.
    assert rows["rk3399 (llvm)", "others"]["median_place"] < 0.2
    assert ("rk3399 (llvm)", "near") not in rows
    assert {(row["machine"], row["learnt_from"]) for row in made["pairs"]} == {
        ("rk3399 (llvm)", "bcm2837 (llvm)"), ("bcm2837 (llvm)", "rk3399 (llvm)")}


def test_ranks_and_chances_are_those_of_the_definition():
    assert ranking.spearman(np.array([1., 2, 3]), np.array([10., 20, 30])) == pytest.approx(1)
    assert ranking.spearman(np.array([1., 2, 3]), np.array([3., 2, 1])) == pytest.approx(-1)
    # Equal values share the rank 1.5: by hand, 0.8660.
    assert ranking.spearman(np.array([1., 1, 2]), np.array([1., 2, 3])) == pytest.approx(0.8660254)
    speeds = np.array([0.2, 1.0, 0.5, 0.4])
    pairs = [max(a, b) for i, a in enumerate(speeds) for b in speeds[i + 1:]]
    assert ranking._best_by_chance(speeds, 2) == pytest.approx(np.mean(pairs))
    assert ranking._best_by_chance(speeds, 9) == 1.0


def test_the_bench_writes_its_report(folder, tmp_path):
    """Here, tiles of 8 are fastest too, and the search that knows it finds them at once."""
    knobs = (Knob("tile", [[-1, 2 ** i] for i in range(8)]), Knob("order", [[0, 1]]),
             Knob("words", [["unroll", "vec"], ["none", "vec"], ["none", "none"]]))
    tiles = np.tile(np.arange(8), 3)
    seconds = 1e-3 * 2.0 ** np.abs(tiles - 3) * np.repeat([1.0, 1.5, 3.0], 8)
    (tmp_path / "recordings").mkdir()
    Recording("here", "held_out", "conv.cpu", [["TENSOR", [1, 128, 9, 9], "float32"], [1, 1]],
              "llvm", 1.0, knobs, seconds).write(tmp_path / "recordings" / "here.json")
    command = [sys.executable, BENCH, "--out", tmp_path / "out", "--layers", "4", "--among", "20",
               "--seeds", "3", "--recordings", tmp_path / "recordings"]
    result = subprocess.run([*command, "--tophub", folder], capture_output=True, text=True,
                            check=False)
    assert result.returncode == 0, result.stderr
    report = json.loads((tmp_path / "out" / "tophub.json").read_text())
    row, = report["recordings"]
    assert row["rank_correlation"] > 0.5 and row["best_of_first_8"] == 1.0
    assert row["best_of_8_by_chance"] < 1.0 and row["trials_to_95"]["tophub"] <= 10
    assert "| here | " in result.stdout and "rk3399 (llvm)" in result.stdout
    refused = subprocess.run([*command, "--tophub", tmp_path / "none"], capture_output=True,
                             text=True, check=False)
    assert refused.returncode == MISSING_FILE and "TopHub's logs" in refused.stderr
