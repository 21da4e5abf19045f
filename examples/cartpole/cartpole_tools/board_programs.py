"""What runs on the board: its RPC server, played here by an emulator, and cartpole_local."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from run_model_tools import environment
from run_model_tools.errors import FAILED_RUN, MISSING_FILE, USAGE, ToolError
from run_model_tools.targets import NamedTarget, aliases, named_targets

#: Where a build has them, from its own folder.
SERVER, LOCAL = "bin/rpc_server", "examples/cartpole/cartpole_local"
_START_SECONDS = 30
_LOOPBACK = "127.0.0.1"


def emulated_target(name: str) -> NamedTarget:
    """Raises ToolError (2) where there is no such target or this machine cannot run its
    programs."""
    target = named_targets().get(aliases().get(name, name))
    if target is None:
        raise ToolError(USAGE, f"'{name}' is no target of artifacts/targets.json, so nothing is "
                               "known to emulate it with: use --connect or --tracker.")
    return target


def emulated(target: NamedTarget, program: str, build: Path | None) -> list[str]:
    """The command that runs a built program of the target on this machine.

    `build`: the build folder, by default that of the target's preset. Raises ToolError (3).
    """
    path = (build or environment.BUILD_DIR / target.preset) / program
    if not path.is_file():
        raise ToolError(MISSING_FILE, f"{path} is not there: build it with cmake --preset "
                                      f"{target.preset} && cmake --build --preset {target.preset} "
                                      f"--target {path.name}.")
    return [*target.emulator, str(path)]


@contextmanager
def server(command: list[str]) -> Iterator[tuple[str, int]]:
    """The RPC server for as long as the body runs, and where it listens. Raises ToolError (8)."""
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen([*command, "--host", _LOOPBACK, "--port", "0"],
                                   stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            yield _LOOPBACK, _listening_port(process, log)
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _listening_port(process: subprocess.Popen, log: IO[bytes]) -> int:
    end = time.monotonic() + _START_SECONDS
    text, ended = "", False
    while not ended and time.monotonic() < end:
        ended = process.poll() is not None
        text = os.pread(log.fileno(), 1 << 16, 0).decode(errors="replace")
        found = re.search(rf"{re.escape(_LOOPBACK)}:(\d+)\b.*\n", text)
        if found and not ended:
            return int(found[1])
        time.sleep(0.02)
    raise ToolError(FAILED_RUN,
                    f"{shlex.join(process.args)} did not say which port it listens on, but "
                    f"'{text.strip()[-400:]}'.")


def run_local(command: list[str], episodes: int, seed: int) -> dict:
    """What cartpole_local reports when `command` starts it with a policy. Raises ToolError (3,
    8)."""
    command = [*command, "--episodes", str(episodes), "--seed", str(seed), "--json"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise ToolError(MISSING_FILE,
                        f"{command[0]} could not be started: {error.strerror}.") from None
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        raise ToolError(FAILED_RUN,
                        f"{shlex.join(command)} failed with exit code {done.returncode}: "
                        f"{lines[-1] if lines else 'it said nothing'}.")
    try:
        report = json.loads(done.stdout)
        if report["schema_version"] != 1 or len(report["rewards"]) != episodes:
            raise ValueError
    except (ValueError, KeyError, TypeError):
        raise ToolError(FAILED_RUN,
                        f"{shlex.join(command)} did not give cartpole_local's report, but "
                        f"'{done.stdout[:200].strip()}'.") from None
    del report["schema_version"]
    return report
