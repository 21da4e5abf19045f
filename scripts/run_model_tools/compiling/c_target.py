"""The artifact of the target `c`: C source, what it includes, and how to build it anywhere."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from pathlib import Path

from run_model_tools.errors import MISMATCH, USAGE, ToolError

# link_mlf runs under any Python, so nothing here may need what artifact.py imports.
LIBRARY = "model.so"
SOURCE = "model.c"
MAKEFILE = "Makefile"
HEADERS = "include"
OWN_HEADERS = Path(__file__).with_name("c_headers") / "include"

# -fno-math-errno lets sqrtf and the like become single instructions and changes no result.
DEFAULT_FLAGS = "-O3 -fno-math-errno"
_ALWAYS = ("-std=gnu11", "-fPIC", "-shared", f"-I{HEADERS}", "-w")

_MAKEFILE_TEXT = f"""\
# Builds model.so, which run_model loads, with the compiler of the machine that is to run it:
#   make CFLAGS="-O3 -fno-math-errno -mcpu=native"
# or for it:
#   make CC=arm-linux-gnueabihf-gcc CFLAGS="-O3 -fno-math-errno -mcpu=cortex-a9 -mfpu=neon"
CC = cc
CFLAGS = {DEFAULT_FLAGS}

{LIBRARY}: {SOURCE}
\t$(CC) $(CFLAGS) {' '.join(_ALWAYS)} -o $@ {SOURCE} -lm
"""


def is_c(target: str) -> bool:
    """Whether a target string of TVM asks for C source."""
    return target.split()[:1] == ["c"]


def add_build_files(folder: Path) -> list[str]:
    """Puts the Makefile and the headers beside the source; gives their names in the folder."""
    (folder / MAKEFILE).write_text(_MAKEFILE_TEXT)
    shutil.copytree(OWN_HEADERS, folder / HEADERS)
    headers = sorted((folder / HEADERS).rglob("*.h"))
    return [SOURCE, MAKEFILE, *(str(header.relative_to(folder)) for header in headers)]


def build(folder: Path, compiler: str | None, flags: str | None) -> None:
    """Makes the library as the Makefile does; raises ToolError where the compiler fails."""
    command = shlex.split(compiler or os.environ.get("CC") or "cc")
    if shutil.which(command[0]) is None:
        raise ToolError(USAGE, f"the C compiler {command[0]} was not found: install it, name "
                               "another with --cc, or leave building to the board with --no-build.")
    command += [*shlex.split(DEFAULT_FLAGS if flags is None else flags), *_ALWAYS, "-s",
                "-o", LIBRARY, SOURCE, "-lm"]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise ToolError(MISMATCH, f"{shlex.join(command)} failed:\n{result.stderr.strip()[-4000:]}")
