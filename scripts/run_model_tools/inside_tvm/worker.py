"""The process that has TVM: does what the file says that its argument names.

What it has to say goes to the file that the request names: {"error": {...}} or the result of the
action.
"""

import json
import os
import signal
import sys
import traceback
from importlib import import_module

from run_model_tools.errors import last_line
from run_model_tools.inside_tvm import Refusal, quiet_stderr

# The module, here, and the function of each action; it is imported when it is asked for.
ACTIONS = {
    "compile": ("compile", "compile_model"),
    "compile_relax": ("relax.compile", "compile_model"),
    "compile_many_relax": ("relax.compile", "compile_many"),
    "run_many_relax": ("relax.run", "run_many"),
    "run_relax": ("relax.run", "run_model"),
    "compile_many": ("compile", "compile_many"),
    "run": ("run", "run_model"),
    "run_many": ("run", "run_many"),
    "run_on_device": ("run", "run_on_device"),
    "race": ("run", "race"),
    "find_device": ("run", "find_device"),
    "tuning_tasks": ("tuning.session", "list_tasks"),
    "layers": ("tuning.session", "list_layers"),
    "tune": ("tuning.session", "tune"),
    "replay": ("tuning.replay", "replay"),
    "record_space": ("tuning.recording", "record_space"),
    "tune_kernels": ("tuning.kernel_search", "tune_kernels"),
    "record_kernels": ("tuning.kernel_recording", "record_kernels"),
}


def act(tvm, request):
    """The result of the request's action."""
    module, function = ACTIONS[request["action"]]
    return getattr(import_module("run_model_tools.inside_tvm." + module), function)(tvm, request)


def end_with(lifeline, events):
    """Has a process wait for the end of who started us, which ends our group of processes: TVM's
    compiler does not look at signals or pipes for minutes."""
    if os.fork():
        os.close(lifeline)
        return
    # Held open, this one would keep the reader waiting for more.
    os.close(events)
    os.read(lifeline, 1)
    os.killpg(0, signal.SIGKILL)


def main():
    with open(sys.argv[1]) as file:
        request = json.load(file)
    if "lifeline" in request:
        end_with(request["lifeline"], request["events"])
    try:
        try:
            from run_model_tools.inside_tvm import faster_folding

            faster_folding.prepare_environment()
            with quiet_stderr():
                import tvm
                # TVM 0.20 and later have no Relay, earlier ones no Relax that could be used.
                import_module("tvm.relax.frontend.onnx" if request["action"].endswith("_relax")
                              else "tvm.relay")
        except ImportError as error:
            raise Refusal("import", str(error)) from error
        result = act(tvm, request)
        result["tvm_version"] = str(tvm.__version__)
    except Refusal as refusal:
        result = {"error": {"kind": refusal.kind, "message": str(refusal)}}
    except Exception as error:
        result = {"error": {"kind": "internal", "message": last_line(error),
                            "trace": traceback.format_exc()}}
    with open(request["result"], "w") as file:
        json.dump(result, file)
    if request.get("events"):
        # Children that hold the pipe open as well must not keep the reader waiting.
        os.write(request["events"], b'{"event": "end"}\n')
