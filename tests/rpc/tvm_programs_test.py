"""TVM's own command-line programs on the server, which they get from TVM's tracker."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tvm
from board import BOARD
from server_process import wait_until
from tvm import relay
from tvm.driver import tvmc
from tvm.driver.tvmc.model import TVMCModel
from workloads import BOARD_TARGET

KEY = "oven"


def run(*arguments: object, folder: Path) -> str:
    # tvmc wants the defaults that TVM's sources have in a folder which packages of TVM may lack.
    (folder / "default.json").write_text('{"targets": [{"kind": "llvm"}]}')
    done = subprocess.run([sys.executable, "-m", *map(str, arguments)], cwd=folder,
                          capture_output=True, text=True, check=False,
                          env={**os.environ, "TVM_CONFIGS_JSON_DIR": str(folder)})
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def board(start_server, tracker):
    server = start_server("--tracker", f"{tracker.host}:{tracker.port}", "--key", KEY)
    wait_until(lambda: "registered" in server.log(), "the registration")
    return tracker


def test_query_rpc_tracker(board, tmp_path):
    printed = run("tvm.exec.query_rpc_tracker", "--host", board.host, "--port", board.port,
                  folder=tmp_path)
    row = next(line.split() for line in printed.splitlines() if line.startswith(KEY))
    assert row == [KEY, "1", "1", "0"]  # total, free, pending
    assert f"server:{KEY}" in printed


def test_tvmc_run(board, tmp_path):
    x = relay.var("x", shape=(2, 5), dtype="float32")
    doubled = tvm.IRModule.from_expr(relay.Function([x], relay.add(x, x)))
    tvmc.compile(TVMCModel(doubled, {}), target=str(BOARD_TARGET), cross=BOARD.compiler or "",
                 package_path=str(tmp_path / "double.tar"))
    value = np.random.default_rng(6).standard_normal((2, 5)).astype("float32")
    np.savez(tmp_path / "in.npz", x=value)
    printed = run("tvm.driver.tvmc", "run", "--device", "cpu", "--rpc-tracker",
                  f"{board.host}:{board.port}", "--rpc-key", KEY, "--inputs", "in.npz", "--outputs",
                  "out.npz", "--print-time", "--repeat", "3", "double.tar", folder=tmp_path)
    assert "mean (ms)" in printed
    np.testing.assert_array_equal(np.load(tmp_path / "out.npz")["output_0"], value + value)


def test_tvmc_run_with_a_profile(board, tmp_path):
    x = relay.var("x", shape=(2, 5), dtype="float32")
    root = tvm.IRModule.from_expr(relay.Function([x], relay.exp(relay.multiply(x, x))))
    tvmc.compile(TVMCModel(root, {}), target=str(BOARD_TARGET), cross=BOARD.compiler or "",
                 package_path=str(tmp_path / "exp.tar"))
    printed = run("tvm.driver.tvmc", "run", "--device", "cpu", "--rpc-tracker",
                  f"{board.host}:{board.port}", "--rpc-key", KEY, "--profile", "--fill-mode",
                  "ones", "exp.tar", folder=tmp_path)
    assert "tvmgen_default_fused_multiply_exp" in printed and "Duration" in printed
