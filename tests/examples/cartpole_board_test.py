"""The policy on a board: this machine, or a Pynq-Z1 that QEMU plays, as RUN_MODEL_TARGET says."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from conftest import CARTPOLE, ROOT

BUILD = Path(os.environ["RUN_MODEL_BUILD"])
TARGET = os.environ["RUN_MODEL_TARGET"]
LOCAL = BUILD / "examples" / "cartpole" / "cartpole_local"
EPISODES = int(os.environ["RUN_MODEL_EPISODES"])


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([CARTPOLE / "run", *map(str, arguments)], cwd="/", capture_output=True,
                          text=True, check=False)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("policy")
    subprocess.run([ROOT / "scripts" / "compile_model", CARTPOLE / "policy.onnx", "--name",
                    "cartpole", "--target", TARGET, "--single-file", "--out", folder], check=True,
                   capture_output=True)
    return folder / "cartpole" / TARGET / "model_single.so"


def local(emulator: list[str], *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*emulator, str(LOCAL), *map(str, arguments)], capture_output=True,
                          text=True, check=False)


def test_board_alone_balances_for_100_episodes(emulator: list[str], library: Path) -> None:
    result = local(emulator, library, "--json")
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert report["schema_version"] == 1 and report["episodes"] == len(report["rewards"]) == 100
    assert report["average_reward"] == pytest.approx(np.mean(report["rewards"])) and (
        report["average_reward"] >= 475)
    assert max(report["rewards"]) == 500
    times = report["step_us"]
    assert times["count"] == sum(report["rewards"])
    assert 0 < times["median"] <= times["p95"] <= times["p99"]
    assert times["mean"] * times["count"] < report["elapsed_s"] * 1e6


def test_board_alone_tells_it_in_words(emulator: list[str], library: Path) -> None:
    result = local(emulator, library, "--episodes", 2, "--seed", 4)
    assert result.returncode == 0
    lines = result.stdout.splitlines()
    assert lines[0] == "episodes        2 (seed 4)"
    assert lines[2] == "average reward  500.00"
    assert "microseconds" in lines[3] and len(lines) == 4


@pytest.mark.parametrize("arguments, code, part", [
    ([], 2, "usage: cartpole_local POLICY.so"),
    (["a.so", "b.so"], 2, "'b.so' is not expected"),
    (["a.so", "--episodes"], 2, "--episodes takes a number"),
    (["a.so", "--episodes", "-3"], 2, "--episodes takes a number up to 999999, not '-3'"),
    (["a.so", "--episodes", "0"], 2, "at least one episode"),
    (["not_there.so"], 3, "not_there.so"),
    ([str(CARTPOLE / "policy.onnx")], 4, "policy.onnx")])
def test_board_alone_refuses(emulator: list[str], arguments: list[str], code: int,
                             part: str) -> None:
    result = local(emulator, *arguments)
    assert result.returncode == code and part in result.stderr


def test_host_drives_the_board(tmp_path: Path) -> None:
    result = run("--emulate", "--target", TARGET, "--build", BUILD, "--episodes", EPISODES, "--out",
                 tmp_path, "--json")
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert report == json.loads((tmp_path / "results.json").read_text())
    assert report["schema_version"] == 1 and report["target"] == TARGET
    for played in (report["rpc"], report["local"]):
        assert len(played["rewards"]) == EPISODES
        assert played["average_reward"] == pytest.approx(np.mean(played["rewards"]))
        assert played["average_reward"] >= 475
        assert played["step_us"]["count"] == sum(played["rewards"])
    assert np.mean(report["random_rewards"]) < 100
    rpc = report["rpc"]
    # set_input and get_output take several round trips each, and a whole step all of them.
    assert 0 < rpc["bare_call_us"]["median"] < rpc["step_us"]["median"]
    assert sum(part["mean"] for part in rpc["parts_us"].values()) == pytest.approx(
        rpc["step_us"]["mean"], rel=0.01)
    table = (tmp_path / "latency.md").read_text()
    assert "| local: a step on the board" in table and "| RPC: a step " in table
    circles = ElementTree.parse(tmp_path / "rewards.svg").iter("{http://www.w3.org/2000/svg}circle")
    assert len(list(circles)) == 3 * (EPISODES + 1)
