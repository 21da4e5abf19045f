"""Reads the commands out of a page of instructions, and plays the board that they speak of."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

from run_model_tools.targets import named_targets

# The host part of ssh's and scp's arguments is not looked at: there is one board.
_SCP = """#!/bin/bash
# scp [-r] FILE... HOST:[PATH]
set -euo pipefail
args=()
for arg in "$@"; do [[ $arg == -* ]] || args+=("$arg"); done
destination=${args[-1]#*:}
unset 'args[-1]'
cp -r -- "${args[@]}" "$BOARD_HOME/${destination:-.}"
"""

# Bash takes functions with a slash in their name, which then stand for the file: so a program for
# another machine starts under its emulator without binfmt_misc, which would need root.
_SSH = """#!/bin/bash
# ssh HOST COMMAND
set -euo pipefail
shift
cd -- "$BOARD_HOME"
{functions}
eval "$*"
"""


def read_sections(text: str) -> dict[str, str]:
    """The commands of each section, in the page's order.

    A section starts at a heading whose text has a name in backquotes, and ends at the next heading
    of the same or a higher level.  Other blocks than ```sh (```console, indented ones) are not
    commands.
    """
    sections: dict[str, list[str]] = {}
    name, level, block, in_block = None, 0, "", False
    for line in text.splitlines():
        if line.startswith("```"):
            in_block = not in_block
            block = line[3:].strip() if in_block else ""
            continue
        if in_block:
            if block == "sh" and name is not None:
                sections.setdefault(name, []).append(line)
            continue
        heading = re.match(r"(#+) (.*)", line)
        if heading:
            named = re.search(r"`([^`]+)`", heading[2])
            if named:
                name, level = named[1], len(heading[1])
            elif len(heading[1]) <= level:
                name = None
    return {name: "\n".join(lines) for name, lines in sections.items()}


def board_environment(scratch: Path, target: str) -> dict[str, str]:
    """The environment in which ssh and scp reach a board of `target` that lives in `scratch`."""
    emulator = emulators().get(target, [])
    home, commands = scratch / "home", scratch / "bin"
    home.mkdir()
    commands.mkdir()
    functions = "\n".join(
        f'{name}() {{ {shlex.join(emulator)} {name} "$@"; }}'
        for name in ("./run_model", "./check_zoo")) if emulator else ""
    for name, text in (("scp", _SCP), ("ssh", _SSH.replace("{functions}", functions))):
        (commands / name).write_text(text)
        (commands / name).chmod(0o755)
    return {**os.environ, "BOARD_HOME": str(home), "PATH": f"{commands}:{os.environ['PATH']}"}


def emulators() -> dict[str, list[str]]:
    return {name: list(target.emulator) for name, target in named_targets().items()}
