"""Networks as today's exporters write them, compiled for this machine and run by run_model.

Every network of artifacts/modern comes out as ONNX Runtime has it, or stands in
modern_exceptions.json with the reason; one that comes out right has to leave that list. The times
that compiling took are in build/modern/conformance.json.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

from run_model_tools.environment import REPO_ROOT, host_program
from run_model_tools.files import json_text, locked, write_atomically
from run_model_tools.zoo.modern.manifest import FILLED, Network, read_networks

NETWORKS = read_networks()
EXCEPTIONS = json.loads((Path(__file__).parent / "modern_exceptions.json").read_text())
#: A few that compile in seconds, of many kinds of operators; the others are for -m slow.
QUICK = ("squeezenet1_1-default", "mobilenet_v3_small-new18", "shufflenet_v2-new22")
#: The tools' ONNX Runtime knows opsets up to 21; of the same network, weights have the same bits.
STANDS_IN = {"shufflenet_v2-new22": "shufflenet_v2-new21"}
REPORT = FILLED / "conformance.json"
#: What takes longer will not end.
COMPILE_SECONDS = 900
RUN_MODEL = host_program("run_model")


class Failed(Exception):
    """What became of a network that did not come out right."""


def compile_network(path: Path, network: Network, out: Path) -> float:
    """The seconds that it took."""
    start = time.monotonic()
    process = subprocess.Popen(
        [REPO_ROOT / "scripts" / "compile_model", path, "--name", network.name, "--target",
         "native", "--preprocessing", "none", "--out", out], stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        _, messages = process.communicate(timeout=COMPILE_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # the compiler is a process of its own
        process.communicate()
        raise Failed(f"does not end within {COMPILE_SECONDS} s") from None
    except BaseException:
        os.killpg(process.pid, signal.SIGTERM)
        raise
    if process.returncode != 0:
        raise Failed(messages.strip())
    return time.monotonic() - start


def run_network(name: str, out: Path, given: dict[str, np.ndarray]) -> list[np.ndarray]:
    np.savez(out / "in.npz", **given)
    done = subprocess.run([RUN_MODEL, name, out, "--inputs", out / "in.npz", "--outputs",
                           out / "out.npz"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failed(f"run_model: {done.stderr.strip()}")
    with np.load(out / "out.npz") as arrays:
        return [arrays[f"output_{i}"] for i in range(len(arrays.files))]


def reference(path: Path, given: dict[str, np.ndarray]) -> list[np.ndarray]:
    """Of ONNX Runtime without its own rewriting of the graph."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return session.run(None, given)


def compare(got: list[np.ndarray], wanted: list[np.ndarray], tolerance: float) -> float:
    """The largest difference, of the largest value of its slice along the second axis.

    By slices, so that a wrong score beside large coordinates of a box shows.
    """
    if [a.shape for a in got] != [a.shape for a in wanted]:
        raise Failed(f"gives the shapes {[a.shape for a in got]} instead of "
                     f"{[a.shape for a in wanted]}")
    worst = 0.0
    for have, want in zip(got, wanted):
        have, want = have.astype(np.float64), want.astype(np.float64)
        if not np.isfinite(have).all():
            raise Failed("gives values that are not finite")
        axes = tuple(axis for axis in range(want.ndim) if axis != 1) if want.ndim > 2 else None
        largest = np.abs(want).max(axes, keepdims=True, initial=1e-30)
        # A slice of values close to zero is as exact as the numbers that it was summed of.
        largest = np.maximum(largest, 0.01 * np.abs(want).max(initial=1e-30))
        worst = max(worst, float((np.abs(have - want) / largest).max(initial=0.0)))
    if worst > tolerance:
        raise Failed(f"is wrong: differs by {worst:.2g} of the largest value, {tolerance:g} is "
                     "allowed")
    return worst


def record(name: str, **facts: object) -> None:
    with locked(FILLED / ".conformance.lock"):
        known = json.loads(REPORT.read_text()) if REPORT.is_file() else {"schema_version": 1}
        known[name] = facts
        write_atomically(REPORT, json_text(known).encode())


def check(network: Network, out: Path) -> None:
    path = network.fill()
    given = network.sample(seed=5)
    stand_in = NETWORKS[STANDS_IN.get(network.name, network.name)].fill()
    wanted = reference(stand_in, given)
    assert all(np.isfinite(a).all() and (a.size <= 1 or a.std() > 0) for a in wanted)
    # It answers its input, or nothing would be shown.
    others = reference(stand_in, network.sample(seed=6))
    assert any(np.abs(a - b).max() > 0.01 * np.abs(a).max() for a, b in zip(wanted, others))
    try:
        seconds = compile_network(path, network, out)
        worst = compare(run_network(network.name, out, given), wanted, network.tolerance)
    except Failed as error:
        record(network.name, failed=str(error))
        raise
    record(network.name, compile_seconds=round(seconds, 1), relative_difference=worst)


@pytest.mark.parametrize("name", [
    pytest.param(name, marks=[] if name in QUICK else [pytest.mark.slow]) for name in NETWORKS])
def test_comes_out_right(name, tmp_path):
    try:
        check(NETWORKS[name], tmp_path)
    except Failed as error:
        if name not in EXCEPTIONS:
            raise
        pytest.xfail(f"{EXCEPTIONS[name]}: {error}")
    assert name not in EXCEPTIONS, f"{name} comes out right: take it out of modern_exceptions.json"


def test_exceptions_are_networks():
    assert set(EXCEPTIONS) <= set(NETWORKS)


def test_the_comparison_sees_one_score_beside_large_boxes():
    wanted = np.ones((1, 84, 10), np.float32)
    wanted[:, :4] = 300
    got = wanted.copy()
    got[0, 40, 3] += 0.1
    with pytest.raises(Failed, match="is wrong"):
        compare([got], [wanted], 1e-2)
    assert compare([wanted], [wanted], 0) == 0
