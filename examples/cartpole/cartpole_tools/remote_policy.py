"""The compiled policy on a board, step by step with TVM's own Python over RPC.

Import it where TVM can be imported: after run_model_tools.environment.enter_venv(tvm=True).
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
from tvm import rpc
from tvm.contrib.graph_executor import GraphModule

from cartpole_tools.policy_file import INPUT
from cartpole_tools.quiet_tvm import tvm
from run_model_tools.errors import FAILED_RUN, ToolError

_NAME = "policy.so"


def connect(host: str, port: int, key: str) -> Any:
    """A session with the server itself. Raises ToolError (8)."""
    try:
        return rpc.connect(host, port, key)
    except (RuntimeError, tvm.error.TVMError) as error:
        raise ToolError(FAILED_RUN, (
            f"there is no session with {host}:{port}: {reason(error)}; start rpc_server on the "
            "board with --host 0.0.0.0, and give both sides the same --key or none.")) from None


def request(host: str, port: int, key: str) -> Any:
    """A session with a board that a tracker knows; waits until one is free. Raises ToolError
    (8)."""
    try:
        return rpc.connect_tracker(host, port).request(key)
    except (RuntimeError, OSError, tvm.error.TVMError) as error:
        raise ToolError(FAILED_RUN, (
            f"the tracker {host}:{port} gave no board for the key '{key}': {reason(error)}; look "
            f"with python -m tvm.exec.query_rpc_tracker --host {host} --port {port}.")) from None


def reason(error: BaseException) -> str:
    """The line of TVM's error that says what happened."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return next((line for line in reversed(lines) if "Error:" in line), lines[-1] if lines else
                type(error).__name__)


class RemotePolicy:
    """Chooses actions on the board, as TVM's documentation does it, and times each part of a
    step."""

    def __init__(self, session: Any, library: Path) -> None:
        session.upload(str(library), _NAME)
        loaded = session.load_module(_NAME)
        self._module = GraphModule(loaded["default"](session.cpu(0)))
        self._times: list[tuple[float, float, float, float]] = []

    def choose(self, observation: np.ndarray) -> int:
        before = time.perf_counter()
        self._module.set_input(INPUT, observation.reshape(1, 4))
        is_set = time.perf_counter()
        self._module.run()
        has_run = time.perf_counter()
        q_values = self._module.get_output(0).numpy()
        action = int(np.argmax(q_values[0]))
        self._times.append((before, is_set, has_run, time.perf_counter()))
        return action

    def step_us(self) -> np.ndarray:
        """Microseconds of each step so far."""
        times = np.array(self._times)
        return (times[:, 3] - times[:, 0]) * 1e6

    def parts_us(self) -> dict[str, np.ndarray]:
        """Microseconds of each part of each step so far."""
        parts = np.diff(np.array(self._times), axis=1).T * 1e6
        return dict(zip(("set_input", "run", "get_output"), parts))

    def comparison_us(self, count: int) -> dict[str, np.ndarray]:
        """What a step is compared with, by turns and `count` times each:

        kept_step_us   a step with the input and output tensors asked for once, not at each step
        bare_call_us   a call of a function that only gives back a number: one round trip
        """
        given, result = self._module.get_input(INPUT), self._module.get_output(0)
        value = np.zeros((1, 4), dtype=np.float32)
        times: dict[str, list[float]] = {"kept_step_us": [], "bare_call_us": []}
        for _ in range(count):
            before = time.perf_counter()
            given.copyfrom(value)
            self._module.run()
            np.argmax(result.numpy()[0])
            between = time.perf_counter()
            self._module.get_num_inputs()
            times["bare_call_us"].append((time.perf_counter() - between) * 1e6)
            times["kept_step_us"].append((between - before) * 1e6)
        return {name: np.array(us) for name, us in times.items()}
