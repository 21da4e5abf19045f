"""Processes that are asked over a pipe, on scripts that speak the protocol."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from peers.processes import Process, Runner, RunnerFailed
from peers.starts import start_figures


def cpu_seconds(process: Process) -> float:
    """User and system time of the process so far (proc_pid_stat(5), fields 14 and 15)."""
    stat = Path(f"/proc/{process._process.pid}/stat").read_text(encoding="ascii")
    fields = stat.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_replies_and_what_the_process_is_given(fake_runner, tmp_path):
    with Process(fake_runner("one", 4.5), 3, tmp_path / "output") as process:
        assert process.ready["version"] == "1.0"
        assert process.ask("load")["threads"] == ["3", "3"]
        assert process.ask("run 2 5") == {"run_ms": [4.5] * 5, "warm_up": 2}
    assert np.fromfile(tmp_path / "output", dtype=np.float32).tolist() == [1, 2, 3]


def test_a_frozen_process_uses_no_cpu(fake_runner, tmp_path):
    with Process(fake_runner("spinner"), 1, tmp_path / "output") as process:
        process.ask("spin")
        while cpu_seconds(process) < 0.05:
            time.sleep(0.01)
        process.freeze()
        before = cpu_seconds(process)
        time.sleep(0.3)
        assert cpu_seconds(process) == before
        process.thaw()
        deadline = time.monotonic() + 20
        while cpu_seconds(process) == before and time.monotonic() < deadline:
            time.sleep(0.01)
        assert cpu_seconds(process) > before
        process._process.kill()


@pytest.mark.parametrize(("command", "message"), [
    ("nonsense", "this cannot be done"), ("chat", "chatter")])
def test_a_failure_carries_the_last_message(fake_runner, tmp_path, command, message):
    with Process(fake_runner("one"), 1, tmp_path / "output") as process:
        with pytest.raises(RunnerFailed, match=message):
            process.ask(command)
        with pytest.raises(RunnerFailed):
            process.ask("run 1 1")


def test_a_process_that_does_not_start(tmp_path):
    runner = Runner("broken", (sys.executable, "-c", "import a_module_that_is_not_there"))
    with pytest.raises(RunnerFailed, match="a_module_that_is_not_there"):
        Process(runner, 1, tmp_path / "output")


def test_figures_of_fresh_processes(fake_runner, tmp_path):
    runners = {"good": fake_runner("good"),
               "bad": Runner("bad", (sys.executable, "-c", "raise SystemExit('no licence')"))}
    starts = start_figures(list(runners), lambda name: Process(runners[name], 2, tmp_path / name),
                           3)
    assert starts.failures == {"bad": "no licence"}
    assert starts.figures == {"good": {
        "load_ms": [2.0] * 3, "first_ms": [3.0] * 3, "growth_kib": [4000] * 3,
        "anonymous_growth_kib": [2500] * 3, "whole_kib": [9000] * 3, "idle_kib": [5000] * 3,
        "bare_kib": [1000] * 3}}
