"""What runs inside of TVM, in a process of its own that tvm_process.py starts.

It may be any interpreter with TVM 0.8 to 0.19, so that Python 3.8 has to understand this package
(scripts/lint vermin): it has no annotations and no newer syntax, imports nothing of this project
but itself, tuning/records.py, params_file.py and errors.py, and TVM's modules where they are used.
What needs TVM 0.18 is left to it: tuning (the sub-package `tuning`) and our kernels
(run_model_tools.kernels), which are imported when a request asks for them.  What is for TVM 0.25
and later is in the sub-package `relax`.
"""

import json
import os
import sys
from contextlib import contextmanager

from run_model_tools.errors import last_line


class Refusal(Exception):
    """Something that the user can change; `kind` tells the caller what."""

    def __init__(self, kind, message):
        Exception.__init__(self, message)
        self.kind = kind


def is_supported(tvm):
    """Whether it is the release whose importers, passes and operators are changed here: others,
    which --tvm-python may name, do what they do."""
    return str(tvm.__version__).startswith("0.18.")


def tell(request, event, **more):
    """Says what is being done to who asked to hear it (tvm_process.call's on_event)."""
    if request.get("events"):
        os.write(request["events"], (json.dumps(dict(more, event=event)) + "\n").encode())


def result_or_error(action, tvm, request):
    """What the action gives, or {"error": the last line of what it says}."""
    try:
        return action(tvm, request)
    except Exception as error:
        return {"error": last_line(error)}


def called_operator(expr):
    """As "nn.conv2d", "relax.add" or "tir.exp"; "" of what calls no operator, but a function or
    nothing at all."""
    op = expr.op if type(expr).__name__ == "Call" else None
    return str(op.name) if type(op).__name__ == "Op" else ""


@contextmanager
def quiet_stderr():
    """TVM's C++ side logs harmless complaints about targets nobody asked for when imported."""
    sys.stderr.flush()
    saved = os.dup(2)
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(saved, 2)
        os.close(saved)
        os.close(null)
