"""The bench beside busy loops on a small network, with the ONNX Runtime that the tools have."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import psutil
from runtime_vs_peers_test import SMALL

from busy.rounds import as_markdown, busy_loops
from small_networks import save_network

ROOT = Path(__file__).resolve().parents[2]


def test_loops_are_as_many_as_asked_for_and_end():
    before = set(psutil.Process().children())
    with busy_loops(2):
        loops = set(psutil.Process().children()) - before
        assert len(loops) == 2 and all(loop.is_running() for loop in loops)
    assert not any(loop.is_running() for loop in loops)


def test_table_compares_the_slowdowns():
    figures = {"idle_ms": 2.0, "busy_ms": 5.0, "slower": 2.5}
    better = {"idle_ms": 2.0, "busy_ms": 4.0, "slower": 2.0}
    table = as_markdown({"a": {"run_model": better, "onnxruntime": figures},
                         "b": {"run_model": figures, "onnxruntime": better}}).splitlines()
    assert table[2] == "| a | 2.00 | 4.00 | 2.00× | 2.00 | 5.00 | 2.50× | 0.80 | ≤ 1.00 | reached |"
    assert table[3].endswith("| 1.25 | ≤ 1.00 | not reached |")


def test_measures_and_reports(tmp_path: Path):
    save_network(tmp_path / "small.onnx", *SMALL)
    done = subprocess.run(
        [ROOT / "bench" / "busy_machine", "--networks", tmp_path / "small.onnx", "--threads", "2",
         "--loops", "1", "--rounds", "2", "--build", os.environ["RUN_MODEL_BUILD_FOLDER"], "--work",
         tmp_path / "work", "--json", tmp_path / "report.json"], cwd="/", capture_output=True,
        text=True, check=False)
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert report["settings"] == {"threads": 2, "loops": 1, "rounds": 2}
    small = report["networks"]["small"]
    assert list(small) == ["run_model", "onnxruntime"]
    for figures in small.values():
        assert [len(samples) for samples in figures["samples"].values()] == [2, 2]
        assert figures["idle_ms"] > 0
    assert "| small |" in done.stdout
