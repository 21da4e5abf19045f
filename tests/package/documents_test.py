"""Manual pages and completion, as they are made from the tables of the programs' flags.

RUN_MODEL_DOCUMENTS is the folder that has man/ and completions/, RUN_MODEL_PROGRAM_FOLDER has the
programs, RUN_MODEL_INSTALLED_PROGRAMS lists them.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

DOCUMENTS = Path(os.environ["RUN_MODEL_DOCUMENTS"])
FOLDER = Path(os.environ["RUN_MODEL_PROGRAM_FOLDER"])
PROGRAMS = os.environ["RUN_MODEL_INSTALLED_PROGRAMS"].split(",")
FLAG = r"(?<![\w-])(--?[a-z][a-z-]*)"


def help_text(program: str) -> str:
    return subprocess.run([FOLDER / program, "--help"], check=True, capture_output=True,
                          text=True).stdout


def shown_page(program: str) -> str:
    """The page as a reader sees it, on one line."""
    if shutil.which("man") is None:
        pytest.skip("man is not there")
    result = subprocess.run(
        ["man", "--warnings", "-E", "UTF-8", "-l", DOCUMENTS / "man" / f"{program}.1"],
        check=True, capture_output=True, text=True, env={**os.environ, "MANWIDTH": "100"})
    assert result.stderr == ""
    return result.stdout


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_page_has_every_flag_of_help(program: str) -> None:
    of_help = set(re.findall(FLAG, help_text(program)))
    assert len(of_help) > 10
    assert of_help <= set(re.findall(FLAG, shown_page(program)))


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_page_has_all_sections_and_exit_codes(program: str) -> None:
    page = shown_page(program)
    sections = re.findall(r"^[A-Z][A-Z ]+$", page, re.MULTILINE)
    wanted = ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "EXAMPLES", "SEE ALSO"]
    assert [name for name in sections if name in wanted] == wanted
    status = page.split("EXIT STATUS")[1].split("\n\n\n")[0]
    for code, words in re.findall(r"^  (\d+) +(\S.*)$", help_text(program), re.MULTILINE):
        assert re.search(rf"^ +{code} +{re.escape(words)}$", status, re.MULTILINE), code


def completed(program: str, *words: str, cwd: Path | None = None) -> list[str]:
    """What bash offers for the last of the words."""
    script = f"""
        source {shlex.quote(str(DOCUMENTS / "completions" / program))}
        COMP_WORDS=({shlex.join([program, *words])})
        COMP_CWORD={len(words)}
        function=$(complete -p {program} | sed 's/.*-F \\([^ ]*\\).*/\\1/')
        "$function" {program}
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    result = subprocess.run(["bash", "--norc", "-c", script], check=True, capture_output=True,
                            text=True, cwd=cwd)
    assert result.stderr == ""
    return [line for line in result.stdout.splitlines() if line]


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_flag_is_completed(program: str) -> None:
    offered = completed(program, "--")
    lines = re.findall(r"^  (?:-[a-z], )?(--[a-z-]+)", help_text(program), re.MULTILINE)
    assert set(lines) <= set(offered)
    for flag in offered:
        assert flag in completed(program, flag)
    assert completed(program, "--there-is-none") == []


def test_choices_are_completed() -> None:
    fits = ["crop", "squash", "letterbox", "pad", "squash-crop"]
    assert completed("run_model", "--fit", "") == fits
    assert completed("run_model", "net", "--fit", "=", "l") == ["letterbox"]
    assert completed("run_model", "--fit", "=") == fits
    assert completed("run_model", "--topk", "") == []
    assert completed("run_model", "--no-v") == ["--no-verify"]


def test_lists_are_completed() -> None:
    if "check_zoo" not in PROGRAMS:
        pytest.skip("not built")
    assert completed("check_zoo", "--forms", "tr") == ["triple"]
    assert completed("check_zoo", "--forms", "triple,li") == ["triple,linked"]


def test_files_and_folders_are_completed(tmp_path: Path) -> None:
    (tmp_path / "one file.npz").touch()
    (tmp_path / "one folder").mkdir()
    both = ["one file.npz", "one folder"]
    for words in (["--inputs", "one"], ["-i", "one"], ["--inputs", "=", "one"], ["net", "one"]):
        assert sorted(completed("run_model", *words, cwd=tmp_path)) == both
    if "check_zoo" in PROGRAMS:
        assert completed("check_zoo", "--images", "one", cwd=tmp_path) == ["one folder"]
        assert completed("check_zoo", "--golden", "a,one", cwd=tmp_path) == ["a,one folder"]
