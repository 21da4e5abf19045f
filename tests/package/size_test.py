"""How large the programs are when they are stripped, as they are in the packages.

RUN_MODEL_PROGRAM_FOLDER is the folder with the programs, RUN_MODEL_INSTALLED_PROGRAMS their names.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

PROGRAM_FOLDER = Path(os.environ["RUN_MODEL_PROGRAM_FOLDER"])
PROGRAMS = os.environ["RUN_MODEL_INSTALLED_PROGRAMS"].split(",")

#: Bytes, at most a hundredth above what bench/FIGURES.md says; with GCC 12 and gold on x86-64.
LIMITS = {"run_model": 2_445_000, "check_zoo": 2_070_000, "rpc_server": 1_527_000}


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_stripped_program_is_small(program: str, tmp_path: Path) -> None:
    stripped = tmp_path / program
    subprocess.run(["strip", "-o", stripped, PROGRAM_FOLDER / program], check=True)
    size = stripped.stat().st_size
    assert size <= LIMITS[program], (
        f"{program} has {size} bytes, more than the {LIMITS[program]} that are its limit; "
        "bench/FIGURES.md says how sizes are found out")
