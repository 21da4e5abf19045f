"""How commands end when what they print cannot be written, and what exceptions say."""

import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

from run_model_tools.errors import last_line

_PROGRAM = """
import os, sys
from run_model_tools.errors import ToolError, run_command
def main():
    print("a line")
    if "fails" in sys.argv:
        raise ToolError(4, "no good")
    if "breaks" in sys.argv:
        reader, writer = os.pipe()
        os.close(reader)
        os.write(writer, b"to nobody")
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


def test_readers_that_go_away_hide_no_failure(tmp_path):
    assert _ended(tmp_path, "| true", "fails") == (4, "tool: no good\n")
    code, said = _ended(tmp_path, "| cat", "breaks")
    assert code == 1 and "BrokenPipeError" in said


@pytest.mark.parametrize("arguments", [(), ("--help",)])
def test_full_disks_are_said_in_a_sentence(tmp_path, arguments):
    assert _ended(tmp_path, ">/dev/full", *arguments) == (
        3, "tool: cannot write all of its output: No space left on device\n")


def test_commands_need_no_standard_output(tmp_path):
    assert _ended(tmp_path, ">&-") == (0, "")


def test_failures_keep_their_exit_code_on_a_full_disk(tmp_path):
    assert _ended(tmp_path, ">/dev/full", "fails") == (
        4, "tool: no good\ntool: cannot write all of its output: No space left on device\n")


@pytest.mark.parametrize(("error", "said"), [
    (ValueError("\nTraceback:\n  File tvm.cc\nCheck failed: an axis\n"), "Check failed: an axis"),
    (RuntimeError(), "RuntimeError"), (KeyError(" "), "' '")])
def test_an_exception_is_said_in_its_last_line(error, said):
    assert last_line(error) == said
