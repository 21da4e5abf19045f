"""Shared by the tests of the examples; run with build/venv's pytest."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CARTPOLE = ROOT / "examples" / "cartpole"


@pytest.fixture(scope="session")
def emulator() -> list[str]:
    """What runs the programs of the build that is tested; empty where they are for this machine."""
    return shlex.split(os.environ["RUN_MODEL_EMULATOR"])
