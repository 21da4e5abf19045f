"""Starts tvm_worker.py under the interpreter that has TVM, and reads what it answers."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from run_model_tools import bootstrap
from run_model_tools.errors import MALFORMED_FILE, MISMATCH, MISSING_FILE, USAGE, ToolError

_WORKER = Path(__file__).with_name("tvm_worker.py")
OWN_TVM_VARIABLE = "RUN_MODEL_TVM_PYTHON"


def own_tvm_python(flag: str | None) -> str | None:
    """The interpreter that the user named to be used instead of build/tvm, if any."""
    return flag or os.environ.get(OWN_TVM_VARIABLE) or None


def identity(python: str | None) -> str:
    """What stands for the compiler in a build key: the pinned one, or the user's interpreter."""
    if python:
        return python
    stamp = bootstrap.BUILD_DIR / "stamps" / "compiler"
    return stamp.read_text().strip() if stamp.exists() else "unknown"


def call(action: str, python: str | None, **request: Any) -> dict[str, Any]:
    """Runs one action of the worker and gives its result.

    Raises ToolError with what TVM found wrong; the output of a worker that broke down is in it.
    """
    if python:
        command, env = [python], dict(os.environ)
        env.setdefault("TOPHUB_LOCATION", "NONE")
    else:
        if not (bootstrap.TVM_DIR / "python" / "tvm" / "libtvm.so").exists():
            raise ToolError(MISSING_FILE, (
                f"the TVM compiler {bootstrap.TVM_DIR} is not there: run "
                f"{bootstrap.REPO_ROOT}/scripts/setup.sh once, or name your own with "
                f"--tvm-python."))
        command, env = [str(bootstrap.VENV_PYTHON)], bootstrap.tvm_environment()
    with tempfile.TemporaryDirectory(prefix="run_model-") as folder:
        result_path = Path(folder, "result.json")
        request_path = Path(folder, "request.json")
        request_path.write_text(json.dumps({
            **request, "action": action, "result": str(result_path)}, default=str))
        try:
            process = subprocess.run([*command, str(_WORKER), str(request_path)], env=env,
                                     capture_output=True, text=True, check=False)
        except OSError as error:
            raise ToolError(MISSING_FILE, f"{command[0]} could not be started: {error.strerror}; "
                                          "name an interpreter that has tvm and onnx.") from None
        if not result_path.exists():
            raise ToolError(1, f"TVM broke down (exit status {process.returncode}) in "
                               f"'{action}':\n{process.stderr.strip()[-4000:]}")
        result = json.loads(result_path.read_text())
    if "error" in result:
        raise _explain(result["error"], command[0], request)
    return result


def _explain(error: dict[str, str], python: str, request: dict[str, Any]) -> ToolError:
    kind, message = error["kind"], error["message"]
    if kind == "import":
        return ToolError(MISSING_FILE, (
            f"{python} cannot import TVM with Relay: {message}; run scripts/setup.sh, or name an "
            "interpreter that has TVM 0.8 to 0.19 and onnx with --tvm-python."))
    if kind == "target":
        return ToolError(USAGE, f"TVM does not know the target '{request['target']}': {message}")
    if kind == "model":
        return ToolError(MALFORMED_FILE, f"TVM cannot take {request['onnx']}: {message}")
    if kind == "records":
        return ToolError(MALFORMED_FILE, f"{request['tuning']['files'][0]['path']} is not a file of tuning "
                                         f"records: {message}.")
    if kind == "link":
        return ToolError(MISMATCH, f"the library could not be linked: {message}")
    return ToolError(1, f"TVM failed: {message}\n{error.get('trace', '')}".rstrip())
