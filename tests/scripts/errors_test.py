"""How commands end when what they print cannot be written."""

import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

_PROGRAM = """
import sys
from run_model_tools.errors import run_command
def main():
    print("a line")
    if "--help" in sys.argv:
        sys.exit(0)
run_command(main)
"""


def _ended(tmp_path: Path, redirection: str, *arguments: str) -> tuple[int, str]:
    program = tmp_path / "tool"
    program.write_text(_PROGRAM)
    done = subprocess.run(
        ["bash", "-c", f'"$@" {redirection}; exit ${{PIPESTATUS[0]}}', "bash", sys.executable,
         str(program), *arguments],
        env={"PYTHONPATH": str(ROOT / "scripts"), "PATH": "/usr/bin:/bin"}, text=True,
        stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, check=False)
    return done.returncode, done.stderr


@pytest.mark.parametrize("arguments", [(), ("--help",)])
def test_readers_that_go_away_are_no_failure(tmp_path, arguments):
    assert _ended(tmp_path, "| true", *arguments) == (0, "")


@pytest.mark.parametrize("arguments", [(), ("--help",)])
def test_full_disks_are_said_in_a_sentence(tmp_path, arguments):
    assert _ended(tmp_path, ">/dev/full", *arguments) == (
        3, "tool: cannot write all of its output: No space left on device\n")


def test_commands_need_no_standard_output(tmp_path):
    assert _ended(tmp_path, ">&-") == (0, "")
