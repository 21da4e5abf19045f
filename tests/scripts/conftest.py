"""Shared by the tests of the tools; run with build/venv's pytest."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Callable

import pytest

from small_networks import save_classifier

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def classifier(tmp_path: Path) -> Path:
    return save_classifier(tmp_path / "tiny.onnx")


@pytest.fixture
def command() -> Callable[..., subprocess.CompletedProcess]:
    """Runs a command of scripts/ as a user does, from another folder than the repository."""
    def run(name: str, *arguments: object, env: dict[str, str] | None = None,
            cwd: str | Path = "/") -> subprocess.CompletedProcess:
        return subprocess.run([str(ROOT / "scripts" / name), *map(str, arguments)], env=env,
                              cwd=cwd, capture_output=True, text=True, check=False)
    return run
