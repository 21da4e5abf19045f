"""Which files of tuning records a compilation gets: the committed ones that fit, or the user's."""

from __future__ import annotations

import platform
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from run_model_tools.environment import DATA_ROOT
from run_model_tools.errors import MALFORMED_FILE, MISSING_FILE, USAGE, ToolError
from run_model_tools.files import sha256_of
from run_model_tools.inside_tvm import cpu
from run_model_tools.targets import Target, named_targets
from run_model_tools.tuning import records as tuning_records

COMMITTED = DATA_ROOT / "kernels" / "records"

_NAME = re.compile(r"(?P<family>[A-Za-z0-9][A-Za-z0-9_+-]*)\.(?P<target>[a-z0-9_]+)\."
                   rf"(?P<kind>{'|'.join(tuning_records.KINDS)})")

# Boards of TopHub's records whose CPUs are a target's own or the nearest to it, nearest first:
# rk3399 has the Pi 4's Cortex-A72 and bcm2837 is the Pi 3's chip. TopHub has no GPU of some
# architectures: a Jetson is taken to be like the TX2, and any other one like the V100.
BOARDS = {"raspi4_aarch64": ("rk3399",), "raspi5_aarch64": ("rk3399",),
          "raspi_armv7": ("bcm2837", "rasp3b"), "pynq_z1": ("pynq",),
          "cuda-sm_53": ("jetson-nano", "tx2"), "cuda-sm_60": ("1080ti", "titanx"),
          "cuda-sm_61": ("1080ti", "titanx"), "cuda-sm_62": ("tx2", "jetson-nano"),
          "cuda-sm_72": ("tx2",), "cuda-sm_87": ("tx2",),
          **{f"cuda-sm_{number}": ("v100",) for number in (70, 75, 80, 86, 89, 90)}}


@dataclass(frozen=True)
class RecordFile:
    """A file of records by its name FAMILY.TARGET.KIND; `kind` is None where the lines tell it."""

    path: Path
    family: str | None
    target: str | None
    kind: str | None

    @property
    def name(self) -> str:
        return self.path.name


@dataclass(frozen=True)
class Selection:
    """The files for one compilation.  explicit: the user named one, committed ones are left out."""

    files: tuple[RecordFile, ...] = ()
    explicit: bool = False
    boards: tuple[str, ...] = ()

    def key(self) -> list[Any] | None:
        """What stands for the records in a build key; None without any."""
        if not self.files:
            return None
        # Of the user's file, the name does not change what is compiled.
        return [self.explicit, [[None if self.explicit else f.name, sha256_of(f.path)]
                                for f in self.files]]

    def request(self) -> dict[str, Any] | None:
        """The worker's "tuning" object (inside_tvm/tuning/application.py)."""
        if not self.files:
            return None
        return {"files": [{"name": f.name, "path": str(f.path.resolve()), "kind": f.kind}
                          for f in self.files],
                "explicit": self.explicit, "boards": list(self.boards)}

    def describe(self, used: dict[str, Any] | None) -> dict[str, Any] | None:
        """metadata.json's "tuning": the worker's report, with the SHA-256 of each file used, and
        what tune_model has measured of the file's own network, where it has."""
        if used is None:
            return None
        paths = {f.name: f.path for f in self.files}
        files = []
        for entry in used["files"]:
            described = {"name": entry["name"], "sha256": sha256_of(paths[entry["name"]]),
                         **{key: value for key, value in entry.items() if key != "name"}}
            header = tuning_records.read_header(paths[entry["name"]])
            if "whole_network" in header:
                described["whole_network"] = {"of": header.get("family"),
                                              **header["whole_network"]}
            files.append(described)
        return {**used, "files": files}


def parse_name(path: Path) -> RecordFile | None:
    """The parts of FAMILY.TARGET.KIND, or None for another name."""
    match = _NAME.fullmatch(path.name)
    return RecordFile(path, match["family"], match["target"], match["kind"]) if match else None


def record_target(target: Target, flags: set[str] | None = None) -> str | None:
    """The name of the committed records that fit a target; None: there are none for it.

    flags: those of this machine's CPU, as /proc/cpuinfo names them (default: read there).
    """
    if target.is_native:
        if platform.machine() == "x86_64":
            level = cpu.x86_level(cpu.cpu_flags() if flags is None else flags)
            name = level.replace("-", "_")
            return name if name in ("x86_64_v3", "x86_64_v4") else None
        return None
    for named in named_targets().values():
        if named.tvm == target.tvm and named.name not in ("native", "c"):
            return named.name
    return None


def choose(tuning: str, records: Path | None, target: Target,
           folder: Path = COMMITTED) -> Selection:
    """The selection for --tuning (auto or none) and --tuning-records (None: not given).

    Raises ToolError where the user's file is not there (3) or has no record in it (4).
    """
    name = record_target(target)
    boards = BOARDS.get(name or "", ())
    if records is not None:
        if tuning == "none":
            raise ToolError(USAGE, "--tuning none and --tuning-records contradict each other: "
                                   "leave one out.")
        if not records.is_file():
            raise ToolError(MISSING_FILE, f"{records} is not there.")
        if not tuning_records.read(records)[1]:
            raise ToolError(MALFORMED_FILE, (
                f"{records} is not a file of tuning records: no line of it is a record of AutoTVM, "
                "the auto-scheduler or MetaSchedule (as this project writes it)."))
        named = parse_name(records)
        kind = named.kind if named else None
        return Selection((RecordFile(records, None, None, kind),), True, boards)
    if tuning == "none" or name is None or not folder.is_dir():
        return Selection()
    files = [parse_name(path) for path in sorted(folder.iterdir())]
    return Selection(tuple(f for f in files if f is not None and f.target == name
                           and (not target.is_native or _of_this_cpu(f.path))), False, boards)


def _of_this_cpu(path: Path) -> bool:
    """Whether a file's times are of a CPU like this machine's: what is fastest on one loses on
    another that has the same instructions.  Files that do not say what they are of are believed."""
    return tuning_records.read_header(path).get("cpu") in (None, cpu.cpu_model())
