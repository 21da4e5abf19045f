"""The bench against TVM's virtual machine, on the chain of calls that it compiles itself."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

BENCH = Path(__file__).resolve().parents[2] / "bench/relax_vs_tvm"


def test_what_a_call_costs(tmp_path):
    done = subprocess.run(
        [BENCH, "--build", os.environ["RUN_MODEL_BUILD_FOLDER"], "--work", tmp_path, "--models",
         "--rounds", "2", "--json"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["schema_version"] == 1
    (row,) = report["rows"]
    assert row["figure"] == "one call of a function" and row["unit"] == "ns"
    # Even on a busy machine: TVM's machine interprets what is one call through a pointer here.
    assert 0 < row["ratio"] < 1 and row["run_model"] < row["tvm"]
    assert row["reached"] == (row["run_model"] <= row["target"])
