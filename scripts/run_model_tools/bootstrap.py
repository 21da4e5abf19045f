"""Lets a command in scripts/ find its own Python: nobody activates an environment.

A command calls ``enter_venv()`` first of all.  Under any other interpreter that replaces the
process by build/venv's, with the same arguments; the standard library alone is used until then.
LD_LIBRARY_PATH is read when a process starts, so the compiler's libraries are set the same way.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

REPO_ROOT = Path(__file__).resolve().parents[2]
BUILD_DIR = REPO_ROOT / "build"
VENV_PYTHON = BUILD_DIR / "venv" / "bin" / "python"
TVM_DIR = BUILD_DIR / "tvm"

# Says which interpreter this process was started as, so that it is replaced once only.  A child
# process inherits it, and compares it with what it needs itself.
_MARK = "RUN_MODEL_TOOLS_ENVIRONMENT"


def tvm_environment(base: dict[str, str] | None = None) -> dict[str, str]:
    """The environment variables under which build/venv's Python can import build/tvm's TVM.

    TVM_FFI=ctypes because the packaged Cython module is for another Python; TOPHUB_LOCATION=NONE
    because compiling a model must not download anything.
    """
    env = dict(os.environ if base is None else base)
    libraries = [str(TVM_DIR / "lib")]
    libraries += [p for p in env.get("LD_LIBRARY_PATH", "").split(":") if p and p not in libraries]
    env["LD_LIBRARY_PATH"] = ":".join(libraries)
    env["PYTHONPATH"] = f"{TVM_DIR / 'python'}:{REPO_ROOT / 'scripts'}"
    env["PYTHONNOUSERSITE"] = "1"
    env["TVM_FFI"] = "ctypes"
    env["TOPHUB_LOCATION"] = "NONE"
    return env


def enter_venv(tvm: bool = False) -> None:
    """Goes on in build/venv's interpreter, with TVM importable if `tvm`.

    Ends the program with exit code 3 and a sentence where the environment has not been set up.
    """
    wanted = f"{VENV_PYTHON} tvm={int(tvm)}"
    if os.environ.get(_MARK) == wanted and Path(sys.prefix) == VENV_PYTHON.parents[1]:
        return
    if not VENV_PYTHON.exists():
        _give_up(f"the Python environment {VENV_PYTHON.parents[1]} is not there")
    if tvm and not (TVM_DIR / "python" / "tvm" / "libtvm.so").exists():
        _give_up(f"the TVM compiler {TVM_DIR} is not there")
    env = tvm_environment() if tvm else dict(os.environ)
    env[_MARK] = wanted
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(VENV_PYTHON, [str(VENV_PYTHON), os.path.abspath(sys.argv[0]), *sys.argv[1:]], env)


def _give_up(what: str) -> None:
    sys.stderr.write(f"{Path(sys.argv[0]).name}: {what}: run {REPO_ROOT}/scripts/setup.sh once.\n")
    sys.exit(3)
