"""The man pages say what --help says: the same flags, the same exit codes.

RUN_MODEL_PROGRAM_FOLDER has the programs, RUN_MODEL_INSTALLED_PROGRAMS lists them.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(os.environ["RUN_MODEL_PROGRAM_FOLDER"])
PROGRAMS = os.environ["RUN_MODEL_INSTALLED_PROGRAMS"].split(",")


def help_text(program: str) -> str:
    return subprocess.run([FOLDER / program, "--help"], check=True, capture_output=True,
                          text=True).stdout


def page(program: str) -> str:
    return (ROOT / "run_model" / f"{program}.1").read_text()


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_same_flags(program: str) -> None:
    # "--mean-order=rgb", "-i"; not the dash inside a word.
    of_help = set(re.findall(r"(?<![\w-])(--?[a-z][a-z-]*)", help_text(program)))
    # In mdoc, "Fl -mean" is --mean and "Fl i" is -i; \- is a dash in the examples.
    of_page = {"-" + name for name in re.findall(r"\bFl (-?[a-z][a-z-]*)", page(program))}
    assert len(of_help) > 10
    assert of_page == of_help


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_same_exit_codes(program: str) -> None:
    of_help = dict(re.findall(r"^  (\d+) +(\S.*)$", help_text(program), re.MULTILINE))
    status = page(program).split(".Sh EXIT STATUS")[1].split(".Sh ")[0]
    of_page = dict(re.findall(r"^\.It (\d+)\n(.*)$", status, re.MULTILINE))
    assert len(of_help) > 3
    assert of_page == of_help
