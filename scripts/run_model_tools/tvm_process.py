"""Starts inside_tvm/worker.py under the interpreter that has TVM, and reads what it answers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Callable

from run_model_tools import relax_compiler
from run_model_tools.environment import (
    BUILD_DIR,
    IS_INSTALLED,
    PACKAGE,
    REPO_ROOT,
    TVM_DIR,
    VENV_PYTHON,
    tvm_environment,
)
from run_model_tools.errors import (
    FAILED_RUN,
    MALFORMED_FILE,
    MISMATCH,
    MISSING_FILE,
    USAGE,
    ToolError,
)
from run_model_tools.onnx_repair.repair import load, write_repaired
from run_model_tools.onnx_repair.walk import RELAX, RELAY
from run_model_tools.onnx_repair.weights_file import WeightsFile
from run_model_tools.targets import named_targets

OWN_TVM_VARIABLE = "RUN_MODEL_TVM_PYTHON"
TRACE_VARIABLE = "RUN_MODEL_TRACE"
"""Set to anything, errors inside TVM come with where they were raised."""

_START = """\
from run_model_tools.inside_tvm.worker import main

main()
"""


class SizesDiffer(ToolError):
    """A network is not seen to be the same at several sizes."""


def own_tvm_python(flag: str | None) -> str | None:
    """The interpreter that the user named to be used instead of build/tvm, if any."""
    return flag or os.environ.get(OWN_TVM_VARIABLE) or None


def identity(python: str | None) -> str:
    """What stands for the compiler in a build key: the pinned one, or the user's interpreter."""
    if python:
        return python
    stamp = BUILD_DIR / "stamps" / "compiler"
    return stamp.read_text().strip() if stamp.exists() else "unknown"


def call(action: str, python: str | None, *, environment: dict[str, str] | None = None,
         on_event: Callable[[dict[str, Any]], None] | None = None,
         **request: Any) -> dict[str, Any]:
    """Runs one action of the worker and gives its result.

    environment: variables that are added.  on_event: gets what the action tells on its way.  An
    ONNX file (`onnx`, with the inputs' `shapes` and `frozen` arrays) is repaired for TVM's importer
    (onnx_repair) before the worker gets it, where with_repaired_model() has not been called and
    `unrepaired` does not say why it is taken as it is.
    Raises ToolError with what TVM found wrong.
    """
    if python:
        command, env = [python], dict(os.environ)
        env.setdefault("TOPHUB_LOCATION", "NONE")
    elif action.endswith("_relax"):
        command, env = [str(VENV_PYTHON)], relax_compiler.environment()
    else:
        if not (TVM_DIR / "python" / "tvm" / "libtvm.so").exists():
            first = ("name the build/ of a repository whose scripts/setup.sh was run in "
                     "RUN_MODEL_TOOLS_BUILD"
                     if IS_INSTALLED else f"run {REPO_ROOT}/scripts/setup.sh once")
            raise ToolError(MISSING_FILE, (
                f"the TVM compiler {TVM_DIR} is not there: {first}, or name your own with "
                "--tvm-python."))
        command, env = [str(VENV_PYTHON)], tvm_environment()
    for name, value in (environment or {}).items():
        # Lists of folders are added to; build/tvm's own come first.
        env[name] = f"{env[name]}:{value}" if name == "PYTHONPATH" and env.get(name) else value
    with tempfile.TemporaryDirectory(prefix="run_model-") as folder:
        importer = RELAX if action.endswith("_relax") else RELAY
        repaired, refused = _with_repaired_models(request, Path(folder), importer)
        command.append(str(_start_file(Path(folder, "packages"), env)))
        result_path = Path(folder, "result.json")
        request_path = Path(folder, "request.json")
        try:
            if on_event is None:
                _write_request(request_path, {**repaired, "action": action}, result_path)
                process = subprocess.run([*command, str(request_path)], env=env,
                                         capture_output=True, text=True, check=False)
            else:
                process = _run_with_events([*command, str(request_path)], env,
                                           {**repaired, "action": action}, request_path,
                                           result_path, on_event)
        except OSError as error:
            raise ToolError(MISSING_FILE, f"{command[0]} could not be started: {error.strerror}; "
                                          "name an interpreter that has tvm and onnx.") from None
        if not result_path.exists():
            said = process.stderr.strip().splitlines()[-1:] or ["it said nothing"]
            raise ToolError(1, f"TVM broke down (exit status {process.returncode}) in "
                               f"'{action}'{_about(request)}: {said[0][-1000:]}")
        result = json.loads(result_path.read_text())
    if "error" in result:
        raise _explain(result["error"], command[0], request)
    for index, message in refused:
        result["results"].insert(index, {"error": message})
    return result


def _with_repaired_models(request: dict[str, Any], folder: Path,
                          importer: str) -> tuple[dict[str, Any], list[tuple[int, str]]]:
    """The request with repaired models in the place of those that it names.

    Of several requests in one, those that are refused are left out: (index, why) of each.
    """
    if "unrepaired" in request and "exact" not in request:
        return request, []
    if "onnx" in request:
        return _with_repaired(request, folder / "model", importer), []
    if "requests" not in request:
        return request, []
    kept, refused = [], []
    for index, one in enumerate(request["requests"]):
        try:
            kept.append(_with_repaired(one, folder / f"model{index}", importer)
                        if "onnx" in one else one)
        except ToolError as error:
            refused.append((index, str(error)))
    return {**request, "requests": kept}, refused


def with_repaired_model(request: dict[str, Any], folder: Path,
                        importer: str = RELAY) -> dict[str, Any]:
    """A request of a model that is repaired in a folder, for several calls."""
    if "onnx" not in request:
        return request
    source, target = Path(request["onnx"]), folder / "repaired.onnx"
    layers = _place_of_layers(request, target, importer)
    counted = write_repaired(load(source, request.get("outputs", ())), target, request["shapes"],
                             request.get("frozen"), str(source), importer, layers=layers)
    left = {key: value for key, value in request.items() if key not in ("frozen", "outputs")}
    return {**left, "repaired": str(target), "counted_outputs": counted, **_with_layers(layers)}


def _place_of_layers(request: dict[str, Any], target: Path, importer: str) -> Path | None:
    """Where the repaired model with recurrent layers as nodes goes, which the worker makes layers
    of our kernels.  Relay's importer knows such nodes itself."""
    ours = importer == RELAX and request.get("kernels", "stock") != "stock"
    return target.with_suffix(".layers.onnx") if ours else None


def _with_layers(layers: Path | None) -> dict[str, str]:
    return {"onnx_with_layers": str(layers)} if layers is not None and layers.exists() else {}


def _with_repaired(request: dict[str, Any], folder: Path, importer: str) -> dict[str, Any]:
    """What the worker gets: the repaired model is the model."""
    if "repaired" not in request:
        folder.mkdir()
        if "opened" in request or "exact" in request:
            request = _with_readings(request, folder, importer)
        if "readings" in request or "unrepaired" in request:
            return {key: request[key] for key in request if key not in ("frozen", "outputs")}
        request = with_repaired_model(request, folder, importer)
    left = {key: value for key, value in request.items() if key != "repaired"}
    return {**left, "onnx": request["repaired"]}


def _with_readings(request: dict[str, Any], folder: Path, importer: str) -> dict[str, Any]:
    """A request of a model with open extents, repaired for each of its samples and exact sizes,
    with one file of weights."""
    model = load(Path(request["onnx"]))
    weights = WeightsFile(folder / "weights.data")

    def written(number: int, shapes: dict[str, Any], is_open: bool) -> dict[str, str]:
        target = folder / f"reading{number}.onnx"
        layers = None if is_open else _place_of_layers(request, target, importer)
        write_repaired(model, target, shapes, None, request["onnx"], importer, is_open, weights,
                       layers)
        return {"onnx": str(target), **_with_layers(layers)}

    samples = request.get("opened", {}).get("shapes", ())
    exact = request.get("exact", ())
    made: dict[str, Any] = {}
    if samples:
        made["readings"] = [{**written(i, shapes, True), "shapes": shapes}
                            for i, shapes in enumerate(samples)]
    if exact:
        made["exact"] = [{**one, **written(len(samples) + i, one["shapes"], False)}
                         for i, one in enumerate(exact)]
    return {**request, **made}


def _about(request: dict[str, Any]) -> str:
    return f" of {request['onnx']}" if "onnx" in request else ""


def _start_file(packages: Path, env: dict[str, str]) -> Path:
    """A program in the folder `packages` that runs the worker; its processes can import us too.

    This package is all that they see of what lies beside it: the interpreter may be another one
    than this, with packages of its own.
    """
    packages.mkdir()
    (packages / PACKAGE.name).symlink_to(PACKAGE)
    env["PYTHONPATH"] = ":".join(filter(None, [str(packages), env.get("PYTHONPATH")]))
    start = packages / "start.py"
    start.write_text(_START)
    return start


def _write_request(path: Path, request: dict[str, Any], result: Path) -> None:
    path.write_text(json.dumps({**request, "result": str(result)}, default=str))


def _run_with_events(command: list[str], env: dict[str, str], request: dict[str, Any],
                     request_path: Path, result_path: Path,
                     on_event: Callable[[dict[str, Any]], None],
                     ) -> subprocess.CompletedProcess[str]:
    """The worker with a pipe for its events; an interrupt of ours ends it and its children, and so
    does our end, whatever it comes by: nobody has another pipe, `lifeline`, open for writing then.
    """
    reading, writing = os.pipe()
    lifeline, ours = os.pipe()
    _write_request(request_path, {**request, "events": writing, "lifeline": lifeline}, result_path)
    with tempfile.TemporaryFile() as output, open(reading, encoding="utf-8") as events, \
            open(ours, "wb"):
        process = subprocess.Popen(
            command, env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            pass_fds=(writing, lifeline), start_new_session=True)
        os.close(writing)
        os.close(lifeline)
        try:
            for line in events:
                event = json.loads(line)
                if event["event"] == "end":
                    break
                on_event(event)
            status = process.wait()
        except BaseException:
            _end_group(process)
            raise
        finally:
            # Measuring processes that outlive the worker would go on using the machine.
            _end_group(process)
        output.seek(0)
        return subprocess.CompletedProcess(command, status, "",
                                           output.read().decode(errors="replace"))


def _end_group(process: subprocess.Popen[bytes]) -> None:
    for signal_number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, signal_number)
        except ProcessLookupError:
            return
        if process.poll() is None:
            try:
                process.wait(2)
            except subprocess.TimeoutExpired:
                continue
        time.sleep(0.05)


def _explain(error: dict[str, str], python: str, request: dict[str, Any]) -> ToolError:
    kind, message = error["kind"], error["message"]
    if kind == "import" and request.get("compiler") == "relax":
        return ToolError(MISSING_FILE, (
            f"{python} cannot import TVM with Relax: {message}; name an interpreter that has TVM "
            "0.25 to 0.27 and onnx with --tvm-python, or none."))
    if kind == "import":
        return ToolError(MISSING_FILE, (
            f"{python} cannot import TVM with Relay: {message}; run scripts/setup.sh, or name an "
            "interpreter that has TVM 0.8 to 0.19 and onnx with --tvm-python."))
    if kind == "target":
        return ToolError(USAGE, (
            f"TVM does not know the target '{request['target']}': {message}; give one of "
            f"{', '.join(named_targets())}, or one as TVM writes it, \"llvm -mcpu=…\"."))
    if kind == "model":
        path = request.get("tflite") or request["onnx"]
        return ToolError(MALFORMED_FILE, f"TVM cannot take {path}: {message}")
    if kind == "open":
        return SizesDiffer(MALFORMED_FILE, (
            f"{request['onnx']} cannot be compiled for inputs of any size: {message}."))
    if kind == "records":
        path = request["tuning"]["files"][0]["path"]
        return ToolError(MALFORMED_FILE, f"{path} is not a file of tuning records: {message}.")
    if kind == "generator":
        return ToolError(USAGE, f"the target '{request['target']}' cannot be compiled for: "
                                f"{message}.")
    if kind == "tasks":
        return ToolError(USAGE, f"{message}.")
    if kind == "recording":
        return ToolError(MISMATCH, f"{message}; record it anew with bench/tuners/record.")
    if kind == "device":
        return ToolError(MISSING_FILE,
                         f"{message}; start TVM's tracker and an RPC server with that "
                         "key on the board.")
    if kind == "gpu":
        return ToolError(MISSING_FILE, f"{message}; run_model --list-devices says there what each "
                                       "kind of GPU has or lacks.")
    if kind == "kernels" and request.get("precision", "float32") != "float32":
        return ToolError(USAGE, f"--precision {request['precision']} is not possible here: "
                                f"{message}.")
    if kind == "kernels":
        return ToolError(USAGE, f"--kernels ours is not possible here: {message}; use --kernels "
                                "auto or --kernels stock.")
    if kind == "wrong":
        return ToolError(FAILED_RUN, f"a kernel computes something wrong: {message}")
    if kind == "link":
        # TVM's linker adds its command, hundreds of object files long.
        said = message.partition("Command line:")[0].strip()
        return ToolError(MISMATCH, f"the library could not be linked: {said}")
    trace = f"\n{error.get('trace', '')}" if os.environ.get(TRACE_VARIABLE) else ""
    return ToolError(1, f"TVM failed{_about(request)}: {message.rstrip('.')}; if this is no fault "
                        f"of the network, report it with what is printed with {TRACE_VARIABLE}=1."
                        f"{trace}")
