"""Where things are, and which Python runs: nobody activates an environment.

A program of scripts/ calls ``launch()``, any other one of the repository ``enter_venv()`` before it
imports more than the standard library.  Under another interpreter than build/venv's that replaces
the process, with the same arguments.  LD_LIBRARY_PATH is read when a process starts, so the
compiler's libraries are set the same way.

Installed by pip, the package runs in the interpreter that it was installed for, which has what it
needs; its data is inside it, and what the tools make goes to the user's cache.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent

IS_INSTALLED = (PACKAGE / "share").is_dir()
"""Whether this is an installed package, and not the one of a repository."""

REPO_ROOT = Path.cwd() if IS_INSTALLED else PACKAGE.parents[1]
"""The repository; of an installed package, the folder that has artifacts/ and images/ in its
place."""
DATA_ROOT = PACKAGE / "share" if IS_INSTALLED else REPO_ROOT
"""Where what belongs to the tools is: the repository, or what pyproject.toml takes of it."""


def _build_folder() -> Path:
    if not IS_INSTALLED:
        return REPO_ROOT / "build"
    named = os.environ.get("RUN_MODEL_TOOLS_BUILD")
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(named).resolve() if named else Path(cache) / "run_model"


BUILD_DIR = _build_folder()
"""What the tools make and keep; of an installed package, what RUN_MODEL_TOOLS_BUILD names, or
~/.cache/run_model.  To use the compiler of a repository's scripts/setup.sh, name its build/."""
VENV_PYTHON = Path(sys.executable) if IS_INSTALLED else BUILD_DIR / "venv" / "bin" / "python"
"""The interpreter with what the tools and TVM import."""
SCRIPTS = Path(sys.executable).parent if IS_INSTALLED else REPO_ROOT / "scripts"
"""Where the commands are, as programs that any Python runs."""
TVM_DIR = BUILD_DIR / "tvm"

# Says which interpreter this process was started as, so that it is replaced once only.  A child
# process inherits it, and compares it with what it needs itself.
_MARK = "RUN_MODEL_TOOLS_ENVIRONMENT"


def host_program(name: str) -> Path:
    """A program of build/host, or the one beside run_model where RUN_MODEL_PROGRAM names that."""
    named = os.environ.get("RUN_MODEL_PROGRAM")
    return Path(named).with_name(name) if named else BUILD_DIR / "host" / "bin" / name


def tvm_environment() -> dict[str, str]:
    """The environment variables under which VENV_PYTHON can import build/tvm's TVM.

    TVM_FFI=ctypes because the packaged Cython module is for another Python; TOPHUB_LOCATION=NONE
    because compiling a model must not download anything.
    """
    env = dict(os.environ)
    libraries = [str(TVM_DIR / "lib")]
    libraries += [p for p in env.get("LD_LIBRARY_PATH", "").split(":") if p and p not in libraries]
    env["LD_LIBRARY_PATH"] = ":".join(libraries)
    env["PYTHONPATH"] = str(TVM_DIR / "python")
    if not IS_INSTALLED:
        env["PYTHONPATH"] += f":{PACKAGE.parent}"
    env["PYTHONNOUSERSITE"] = "1"
    env["TVM_FFI"] = "ctypes"
    env["TOPHUB_LOCATION"] = "NONE"
    return env


def launch(command: str, venv: bool = True) -> None:
    """Runs a command of this package: the whole of a program in scripts/.

    command: its module, as seen from the package, which has a function main().  venv: whether it
    needs more than Python's standard library.
    """
    if venv:
        enter_venv()
    import_module(f"{__package__}.{command}").main()


def enter_venv(tvm: bool = False) -> None:
    """Goes on in build/venv's interpreter, with TVM importable if `tvm`.

    NumPy's products get one thread, unless the caller's environment says otherwise: those here are
    too small to gain by a second one, and take 20 times as long where that has to wait for a CPU.
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
    env.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.execve(VENV_PYTHON, [str(VENV_PYTHON), os.path.abspath(sys.argv[0]), *sys.argv[1:]], env)


def _give_up(what: str) -> None:
    sys.stderr.write(f"{Path(sys.argv[0]).name}: {what}: run {REPO_ROOT}/scripts/setup.sh once.\n")
    sys.exit(3)
