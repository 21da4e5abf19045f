"""examples/robot_vision from weights to figures: compiled, run by run_model, by a C++ program, and
in rpc_server under TVM's own client, each held to ONNX Runtime with NumPy after it."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import ROOT

from robot_vision_tools import weights_file
from robot_vision_tools.field_picture import draw_picture
from robot_vision_tools.reference import Reference
from run_model_tools.evaluating.predictions import areas_of

ROBOT_VISION = ROOT / "examples" / "robot_vision"
PROGRAM = os.environ["RUN_MODEL_PROGRAM"]
FIRST, COUNT = 300, 8
NAME = weights_file.NAME


def run(*command: object) -> str:
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def artifacts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("robot_vision")
    run(ROBOT_VISION / "export", "--out", folder / f"{NAME}.onnx")
    run(ROOT / "scripts" / "compile_model", folder / f"{NAME}.onnx", "--name", NAME, "--out",
        folder)
    run(ROBOT_VISION / "draw_pictures", "--first-seed", FIRST, "--count", COUNT, "--out",
        folder / "field")
    return folder


@pytest.fixture(scope="module")
def board() -> Iterator[str]:
    server = Path(os.environ["RUN_MODEL_BUILD"]) / "bin" / "rpc_server"
    with subprocess.Popen([server, "--port", "0"], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout
        found = re.search(r":(\d+)", process.stdout.readline())
        assert found
        yield f"127.0.0.1:{found[1]}"
        process.terminate()


def test_run_model_sees_what_the_reference_sees(artifacts: Path) -> None:
    reference = Reference(weights_file.network())
    lines = run(PROGRAM, NAME, artifacts, artifacts / "field" / "JPEGImages", "--json")
    reports = [json.loads(line) for line in lines.splitlines() if '"results"' in line]
    assert len(reports) == COUNT
    things = 0
    for seed, report in enumerate(reports, FIRST):
        seen = reference.see(draw_picture(seed).pixels, 0.5)
        found, areas = report["results"]
        things += len(seen.boxes)
        assert [one["class"] for one in found["detections"]] == seen.classes.tolist()
        for one, box, score in zip(found["detections"], seen.boxes, seen.scores):
            np.testing.assert_allclose(one["box"], box, atol=0.05)
            assert one["score"] == pytest.approx(score, abs=1e-3)
        assert np.mean(areas_of(areas)[0] == seen.areas) > 0.999
    assert things >= COUNT


def figures(artifacts: Path, dataset: str, *flags: str) -> dict[str, Any]:
    report = json.loads(run(ROOT / "scripts" / "evaluate_model", NAME, artifacts, "--dataset",
                            dataset, "--program", PROGRAM, "--json", *flags))
    assert report["judged"] == COUNT and not report["failed"]
    return report["figures"]


def test_figures_are_good_and_the_same_on_a_board(artifacts: Path, board: str) -> None:
    field = artifacts / "field"
    boxes = f"coco:{field}/annotations.json:{field}/JPEGImages"
    here = figures(artifacts, boxes, "--jobs", "2")
    assert here["ap50"] > 0.7  # of few pictures; README.md has the figures of 200
    there = figures(artifacts, boxes, "--rpc", board)
    assert there["ap"] == pytest.approx(here["ap"], abs=0.005)
    masks = figures(artifacts, f"voc-masks:{field}")
    assert masks["miou"] >= 0.8
    assert figures(artifacts, f"voc-masks:{field}", "--rpc", board)["miou"] == pytest.approx(
        masks["miou"], abs=1e-4)


def test_a_program_of_ones_own_draws_the_same(artifacts: Path, tmp_path: Path) -> None:
    picture = artifacts / "field" / "JPEGImages" / f"field_{FIRST:06d}.png"
    said = run(os.environ["RUN_MODEL_SEE_FIELD"], NAME, artifacts, picture, tmp_path / "own.png")
    run(PROGRAM, NAME, artifacts, picture, "--draw", tmp_path / "drawn.png")
    assert (tmp_path / "own.png").read_bytes() == (tmp_path / "drawn.png").read_bytes()
    seen = Reference(weights_file.network()).see(draw_picture(FIRST).pixels, 0.5)
    assert len(said.splitlines()) == len(seen.boxes)


def test_tvms_own_client_runs_it_on_a_board(artifacts: Path, board: str) -> None:
    picture = artifacts / "field" / "JPEGImages" / f"field_{FIRST:06d}.png"
    said = run(ROBOT_VISION / "over_rpc", artifacts / NAME / "native", picture, "--board", board)
    assert said.startswith("(1, 2535, 8) (1, 416, 416)") and "mean (ms)" in said
