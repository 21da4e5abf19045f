"""Shared by the tests of the tools; run with build/venv's pytest."""

from __future__ import annotations

import contextlib
import importlib
import io
import re
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Callable

import pytest

from small_networks import save_classifier

ROOT = Path(__file__).resolve().parents[2]


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Long texts, of networks mostly, go by the parameter's name and a number: a test's name is a
    line of a report, and what -k takes."""
    return argname if isinstance(val, (str, bytes)) and len(val) > 60 else None


@pytest.fixture
def classifier(tmp_path: Path) -> Path:
    return save_classifier(tmp_path / "tiny.onnx")


def run_command(name: str, *arguments: object, env: dict[str, str] | None = None,
                cwd: str | Path = "/") -> subprocess.CompletedProcess[str]:
    """Runs a command of scripts/ as a user does, from another folder than the repository: in this
    process, where it finds what it imports, unless it is to have another environment."""
    given = [str(ROOT / "scripts" / name), *map(str, arguments)]
    if env is not None:
        return subprocess.run(given, env=env, cwd=cwd, capture_output=True, text=True, check=False)
    launched = re.search(r'^launch\("([\w.]+)"', Path(given[0]).read_text(), re.MULTILINE)
    assert launched, f"{given[0]} launches no command"
    output, errors, code = io.StringIO(), io.StringIO(), None
    with (contextlib.chdir(cwd), contextlib.redirect_stdout(output),
          contextlib.redirect_stderr(errors), pytest.MonkeyPatch.context() as patch):
        patch.setattr(sys, "argv", given)
        try:
            importlib.import_module(f"run_model_tools.{launched[1]}").main()
        except SystemExit as end:
            code = end.code
        except Exception:
            traceback.print_exc()
            code = 1
    return subprocess.CompletedProcess(given, code, output.getvalue(), errors.getvalue())


@pytest.fixture
def command() -> Callable[..., subprocess.CompletedProcess[str]]:
    """run_command() of what has to end with `code`, if that is not None."""
    def run(*arguments: object, code: int | None = 0, env: dict[str, str] | None = None,
            cwd: str | Path = "/") -> subprocess.CompletedProcess[str]:
        done = run_command(str(arguments[0]), *arguments[1:], env=env, cwd=cwd)
        assert code in (None, done.returncode), f"{done.returncode}: {done.stderr}"
        return done

    return run
