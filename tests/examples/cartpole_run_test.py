"""The ways in which examples/cartpole/run reaches a board, and what it says when something is
wrong."""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from conftest import CARTPOLE

from cartpole_tools.policy_file import policy_file
from run_model_tools import environment
from run_model_tools.tuners.q_network import QNetwork

BUILD = Path(os.environ["RUN_MODEL_BUILD"])
SERVER = BUILD / "bin" / "rpc_server"
LOCAL = BUILD / "examples" / "cartpole" / "cartpole_local"


def run(out: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    """On this machine, two episodes."""
    return subprocess.run([CARTPOLE / "run", "--target", "native", "--episodes", "2", "--out", out,
                           *map(str, arguments)], cwd="/", capture_output=True, text=True,
                          check=False, timeout=120)


@contextlib.contextmanager
def started(command: list[object], log: Path, ready: str,
            env: dict[str, str] | None = None) -> Iterator[re.Match[str]]:
    """A program for as long as the body runs, from when its output matches `ready`."""
    with log.open("wb") as output:
        process = subprocess.Popen([*map(str, command)], stdout=output, stderr=output, env=env)
    try:
        end = time.monotonic() + 60
        while (found := re.search(ready, log.read_text())) is None:
            assert process.poll() is None and time.monotonic() < end, log.read_text()
            time.sleep(0.05)
        yield found
    finally:
        process.terminate()
        process.wait()


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def test_server_that_runs_already_and_local_command(tmp_path: Path) -> None:
    with started([SERVER, "--port", 0, "--key", "pynq"], tmp_path / "server.log",
                 r"listening on 127\.0\.0\.1:(\d+)") as found:
        where = f"127.0.0.1:{found[1]}"
        # The first run leaves the policy that the local command then takes.
        alone = run(tmp_path, "--connect", where, "--key", "pynq")
        assert alone.returncode == 0, alone.stderr
        assert "local" not in alone.stdout and "average reward 500.0" in alone.stdout
        both = run(tmp_path, "--connect", where, "--key", "pynq", "--local",
                   f"{LOCAL} {tmp_path}/policy.so", "--json")
        assert both.returncode == 0, both.stderr
        assert json.loads(both.stdout)["local"]["rewards"] == [500, 500]
        assert json.loads(both.stdout)["board"] == where
        other = run(tmp_path, "--connect", where, "--key", "another")
        assert other.returncode == 8 and "--key" in other.stderr


def test_board_of_a_tracker(tmp_path: Path) -> None:
    port = free_port()
    with started([environment.VENV_PYTHON, "-m", "tvm.exec.rpc_tracker", "--host", "127.0.0.1",
                  "--port", port, "--port-end", port + 1], tmp_path / "tracker.log", "bind to",
                 environment.tvm_environment()):
        with started([SERVER, "--port", 0, "--key", "pynq", "--tracker", f"127.0.0.1:{port}"],
                     tmp_path / "server.log", "listening on"):
            result = run(tmp_path, "--tracker", f"127.0.0.1:{port}", "--key", "pynq")
    assert result.returncode == 0, result.stderr
    assert "average reward 500.0" in result.stdout


def test_nobody_listens(tmp_path: Path) -> None:
    port = free_port()
    result = run(tmp_path, "--connect", f"127.0.0.1:{port}")
    assert result.returncode == 8
    assert f"no session with 127.0.0.1:{port}" in result.stderr and "rpc_server" in result.stderr
    assert "Traceback" not in result.stderr


def test_bad_policy_is_no_success(tmp_path: Path) -> None:
    """One that pushes to the left whatever happens."""
    network = QNetwork((4, 3, 2), np.random.default_rng(1))
    network.parameters[-2][:] = 0
    network.parameters[-1][:] = (1, 0)
    (tmp_path / "left.onnx").write_bytes(policy_file(network))
    result = run(tmp_path, "--emulate", "--build", BUILD, "--policy", tmp_path / "left.onnx")
    assert result.returncode == 8
    assert "average reward over RPC is" in result.stderr and "at least 475" in result.stderr
    assert (tmp_path / "results.json").exists() and "| RPC: a step " in result.stdout
