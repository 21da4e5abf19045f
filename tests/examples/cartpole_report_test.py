"""The table, the picture and the programs of examples/cartpole/run, without a board."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from conftest import CARTPOLE

from cartpole_tools import board_programs, episodes, latency
from cartpole_tools.reward_plot import reward_plot
from cartpole_tools.run_arguments import parse_arguments
from run_model_tools.errors import ToolError

REPORT = {
    "local": {"step_us": {"count": 4, "mean": 2.5, "median": 2.0, "p95": 12.25, "p99": 140.4}},
    "rpc": {"step_us": {"count": 4, "mean": 1000.0, "median": 800.0, "p95": 2000.0, "p99": 3000.0},
            "parts_us": {"run": {"count": 4, "mean": 90.0, "median": 80.0, "p95": 99.0,
                                 "p99": 99.0}},
            "kept_step_us": {"count": 4, "mean": 1.0, "median": 1.0, "p95": 1.0, "p99": 1.0},
            "bare_call_us": {"count": 4, "mean": 100.0, "median": 100.0, "p95": 1.0, "p99": 1.0}},
}


def test_summaries_are_numpys() -> None:
    values = np.random.default_rng(1).exponential(100, 1000)
    assert latency.summary(values) == {
        "count": 1000, "mean": round(values.mean(), 3), "median": round(np.median(values), 3),
        "p95": round(np.percentile(values, 95), 3), "p99": round(np.percentile(values, 99), 3)}


def test_table_is_markdown_in_columns() -> None:
    assert latency.table(REPORT) == """\
| step latency, µs              | mean | median |  p95 |  p99 |
|-------------------------------|-----:|-------:|-----:|-----:|
| local: a step on the board    | 2.50 |   2.00 | 12.2 |  140 |
| RPC: a step                   | 1000 |    800 | 2000 | 3000 |
|   of which `run`              | 90.0 |   80.0 | 99.0 | 99.0 |
| RPC: a step, tensors kept     | 1.00 |   1.00 | 1.00 | 1.00 |
| RPC: a call that does nothing |  100 |    100 | 1.00 | 1.00 |
"""


def test_cost_compares_medians() -> None:
    assert latency.cost_of_rpc(REPORT) == (
        "RPC makes a step 400 times as long: 800 µs instead of 2.00 µs (medians), or 8.0 calls "
        "that do nothing.")
    assert latency.cost_of_rpc({**REPORT, "local": None}) is None
    assert "local" not in latency.table({**REPORT, "local": None})


def circles(picture: str, look: str) -> list[tuple[float, float]]:
    """The centres of the circles of a series, without the one of its name."""
    groups = [g for g in ElementTree.fromstring(picture).iter("{http://www.w3.org/2000/svg}g")
              if g.get("fill") == look]
    return [(float(c.get("cx")), float(c.get("cy"))) for g in groups for c in g]


def test_picture_has_every_episode_at_its_place() -> None:
    picture = reward_plot("one & two",
                          [("rpc", "over RPC", [0, 250, 500]), ("local", "local", [500])])
    dots, rings = circles(picture, "#1d3557"), circles(picture, "none")
    assert len(dots) == 3 and len(rings) == 1
    assert dots[1][0] - dots[0][0] == pytest.approx(dots[2][0] - dots[1][0], abs=0.2)
    assert dots[0][1] - dots[1][1] == pytest.approx(dots[1][1] - dots[2][1], abs=0.2)
    assert dots[0][1] - dots[1][1] > 50
    assert rings[0] == (dots[0][0], dots[2][1])
    texts = [t.text for t in ElementTree.fromstring(picture).iter("{http://www.w3.org/2000/svg}text")]
    assert "one & two" in texts and "over RPC: average 250.0" in texts and "3" in texts


@pytest.mark.parametrize("count", [1, 2, 7, 100, 5000])
def test_picture_numbers_some_episodes(count: int) -> None:
    picture = reward_plot("t", [("rpc", "r", [1] * count)])
    labels = [int(t.text) for t in
              ElementTree.fromstring(picture).iter("{http://www.w3.org/2000/svg}text")
              if t.get("text-anchor") == "middle" and t.text.isdigit()]
    assert labels[0] == 1 and 1 <= len(labels) <= 13
    assert labels == sorted(set(labels)) and labels[-1] <= count


def test_seeds_decide_episodes() -> None:
    seen: list[np.ndarray] = []

    def left(observation: np.ndarray) -> int:
        seen.append(observation)
        return 0

    rewards = episodes.play(left, 3, seed=5)
    assert len(seen) == sum(rewards) and all(8 <= reward <= 11 for reward in rewards)
    assert rewards[1:] == episodes.play(left, 2, seed=6)
    assert seen[0].dtype == np.float32 and seen[0].shape == (4,)
    assert episodes.play_at_random(30, 1) == episodes.play_at_random(30, 1)
    assert 10 < np.mean(episodes.play_at_random(200, 1)) < 40


@pytest.mark.parametrize("arguments, part", [
    ([], "one of the arguments"),
    (["--emulate", "--connect", "a:1"], "not allowed with"),
    (["--connect", "pynq"], "is not HOST:PORT"),
    (["--connect", "pynq:0"], "is not HOST:PORT"),
    (["--connect", "pynq:70000"], "is not HOST:PORT"),
    (["--tracker", "host:9190"], "--tracker needs --key"),
    (["--emulate", "--episodes", "0"], "--episodes"),
    (["--emulate", "--seed", "-1"], "--seed")])
def test_arguments_are_checked(arguments: list[str], part: str,
                               capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        parse_arguments("", arguments)
    assert caught.value.code == 2 and part in capsys.readouterr().err


def test_addresses_may_be_of_version_6() -> None:
    settings = parse_arguments("", ["--connect", "[fe80::1]:9090"])
    assert settings.connect == ("fe80::1", 9090) and settings.target == "pynq_z1"


def test_help_answers_at_once() -> None:
    result = subprocess.run([CARTPOLE / "run", "--help"], cwd="/", capture_output=True, text=True,
                            check=False)
    assert result.returncode == 0 and "--emulate" in result.stdout


def test_programs_that_are_missing_are_named(tmp_path: Path) -> None:
    target = board_programs.emulated_target("armhf")
    assert target.name == "pynq_z1"
    with pytest.raises(ToolError,
                       match="cmake --build --preset armhf --target rpc_server") as caught:
        board_programs.emulated(target, board_programs.SERVER, tmp_path)
    assert caught.value.code == 3
    with pytest.raises(ToolError, match="use --connect"):
        board_programs.emulated_target("llvm -mcpu=skylake")


def test_server_that_does_not_listen_is_told() -> None:
    with pytest.raises(ToolError, match="no such luck") as caught:
        with board_programs.server(["sh", "-c", "echo no such luck; exit 1"]):
            pass
    assert caught.value.code == 8


@pytest.mark.parametrize("code, reason", [
    ("print('{}')", "did not give cartpole_local's report"),
    ("print('no JSON')", "no JSON"),
    ("raise SystemExit('policy.so is not there')", "policy.so is not there")])
def test_local_program_that_fails_is_told(code: str, reason: str) -> None:
    with pytest.raises(ToolError, match=reason) as caught:
        board_programs.run_local([sys.executable, "-c", code], 3, 1)
    assert caught.value.code == 8


def test_local_program_gets_episodes_and_seed() -> None:
    code = ("import json, sys; print(json.dumps({'schema_version': 1, 'rewards': [1, 2], "
            "'said': sys.argv[1:]}))")
    report = board_programs.run_local([sys.executable, "-c", code], 2, 9)
    assert report == {"rewards": [1, 2], "said": ["--episodes", "2", "--seed", "9", "--json"]}
    assert json.dumps(report)
