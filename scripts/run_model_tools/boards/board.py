"""What goes into the archive for a board, and where it lies there."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

from run_model_tools import environment
from run_model_tools.errors import MISSING_FILE, USAGE, ToolError
from run_model_tools.targets import named_targets

PROGRAMS = ("run_model", "check_zoo")
# Packed where they have been built.
_MODULE, _MODULE_NEEDS = "run_model.py", "librun_model.so"
_MORE_PROGRAMS = ("rpc_server", _MODULE_NEEDS)
# What check_zoo reads beside the models and the reference results.
_TABLES = ("targets.json", "tolerances.json")


@dataclass(frozen=True)
class Plan:
    """`files`: place in the archive's folder -> the file here; `models`: reference results each."""

    files: dict[str, Path]
    programs: tuple[str, ...]
    models: dict[str, int]
    strip: str


def plan(target_name: str, models: list[str], artifacts: Path, golden: list[Path], images: Path,
         programs: Path | None) -> Plan:
    """Collects the files of `models` (all that are compiled, if empty) for one target.

    Raises ToolError (2) for a name that is not known, (3) naming what is missing and what makes it.
    """
    root, data = environment.REPO_ROOT, environment.DATA_ROOT / "artifacts"
    if target_name not in named_targets():
        raise ToolError(USAGE, f"'{target_name}' is not a target; there are "
                               f"{', '.join(named_targets())}.")
    target = named_targets()[target_name]
    files: dict[str, Path] = {}
    programs = programs or environment.BUILD_DIR / target.preset / "bin"
    for program in PROGRAMS:
        if not (programs / program).is_file():
            raise ToolError(MISSING_FILE, f"{programs / program} is not there: build it with "
                                          f"cmake --preset {target.preset} && cmake --build "
                                          f"--preset {target.preset} --target {program}.")
        files[program] = programs / program
    more = tuple(name for name in _MORE_PROGRAMS if (programs / name).is_file())
    module = (_MODULE,) if _MODULE_NEEDS in more else ()
    files |= {name: programs / name for name in (*more, *module)}
    for table in _TABLES:
        files[f"artifacts/{table}"] = data / table
    files["labels/imagenet.txt"] = root / "labels" / "imagenet.txt"

    compiled = sorted(p.parts[-3] for p in artifacts.glob(f"*/{target_name}/metadata.json"))
    for model in models or compiled:
        if model not in compiled:
            raise ToolError(MISSING_FILE, (
                f"{artifacts / model / target_name} is not there: compile it with scripts/make_zoo "
                f"--models {model} --targets {target_name}."))
    if not compiled:
        raise ToolError(MISSING_FILE, f"{artifacts} holds no model for {target_name}: compile one "
                                      f"with scripts/make_zoo --targets {target_name}.")
    counts = {}
    for model in models or compiled:
        folder = artifacts / model / target_name
        for file in sorted(p for p in folder.rglob("*") if p.is_file()):
            if "forms" not in file.relative_to(folder).parts:
                files[f"artifacts/{model}/{target_name}/{file.relative_to(folder)}"] = file
        counts[model] = _add_cases(files, model, golden, images)
    # strip belongs to the target's binutils, whose prefix is the compiler's.
    prefix = target.compiler.rpartition("-")[0] if target.compiler else ""
    strip = f"{prefix}-strip" if prefix else "strip"
    if shutil.which(strip) is None:
        raise ToolError(MISSING_FILE, f"{strip} was not found: run scripts/setup.sh once.")
    return Plan(files, PROGRAMS + more, counts, strip)


def _add_cases(files: dict[str, Path], model: str, golden: list[Path], images: Path) -> int:
    folder = next((g / model for g in golden if (g / model).is_dir()), None)
    if folder is None:
        return 0
    cases = sorted(folder.glob("*.json"))
    for case in cases:
        picture = images / json.loads(case.read_text())["picture"]["file"]
        if not picture.is_file():
            raise ToolError(MISSING_FILE, f"{picture}, the picture of {case}, is not there: name "
                                          "the folder that has it with --images.")
        files[f"images/{picture.name}"] = picture
        # Results with tasks have no array.
        for file in (case, case.with_suffix(".npy")):
            if file.is_file() or file == case:
                files[f"artifacts/golden/{model}/{file.name}"] = file
    return len(cases)
