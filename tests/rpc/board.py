"""The board that is tested, and C code for it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from server_process import TARGET

from run_model_tools.targets import named_targets

BOARD = named_targets()[TARGET]
IS_NATIVE = BOARD.compiler is None
# The board is what this machine is, so that all is worth testing; elsewhere a selection.
native_only = pytest.mark.skipif(not IS_NATIVE, reason="the same code as in the native server")


def compiled_c(source: Path, folder: Path, *flags: str) -> Path:
    """A library of a C file, for the board."""
    path = folder / f"{source.stem}.so"
    compiler = (BOARD.compiler or "g++").replace("g++", "gcc")
    subprocess.run([compiler, "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", *flags,
                    str(source), "-o", str(path)], check=True)
    return path
