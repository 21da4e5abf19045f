"""Links an archive in TVM's Model Library Format into files that run_model runs.

  link_mlf model.tar --out FOLDER [--cc aarch64-linux-gnu-gcc]

writes FOLDER/model.so, model.json and model.params, all or nothing.  Such an archive holds objects,
which LLVM made for one kind of machine, or C sources, which suit any; the compiler has to be for
the machine that is to run the model.  Packages of tvmc compile --output-format tar are taken too.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from run_model_tools.compiling.c_target import DEFAULT_FLAGS, OWN_HEADERS
from run_model_tools.errors import (
    MALFORMED_FILE,
    MISMATCH,
    MISSING_FILE,
    USAGE,
    WRONG_MACHINE,
    ToolError,
    command,
)
from run_model_tools.files import directory_in_the_making

# The formats are those of TVM's micro/model_library_format.py (versions 1 to 7) and
# driver/tvmc/model.py.  Nothing but the standard library is used here, so that this works where
# nothing has been set up.

WRITTEN = ("model.so", "model.json", "model.params")

_MAX_MEMBERS = 4096
_MAX_BYTES = 4 << 30
_NEWEST_VERSION = 7


@dataclass(frozen=True)
class UnlinkedModel:
    """What an archive holds; code is by file name, ending in .o or .c."""

    code: dict[str, bytes]
    graph: bytes
    params: bytes


def read(path: Path) -> UnlinkedModel:
    """Reads an archive without unpacking it anywhere; raises ToolError where it is no such one."""
    files = _read_tar(path)
    if "metadata.json" in files:
        return _read_library_format(files, path)
    if "mod.tar" in files and "mod.json" in files:
        inner = _read_tar(path, io.BytesIO(files["mod.tar"]))
        return UnlinkedModel(_code(inner, path), files["mod.json"], files.get("mod.params", b""))
    if "mod.so" in files:
        raise ToolError(USAGE, f"{path} is linked already: run_model takes it as it is.")
    raise ToolError(MALFORMED_FILE,
                    f"{path} has neither metadata.json, as the Model Library Format, "
                    "nor mod.tar and mod.json, as tvmc's packages.")


def _read_tar(path: Path, stream: BinaryIO | None = None) -> dict[str, bytes]:
    """The regular files by their names; whatever else there is but folders is refused."""
    files: dict[str, bytes] = {}
    total = 0
    try:
        with tarfile.open(path if stream is None else None, fileobj=stream) as archive:
            for count, member in enumerate(archive):
                total += member.size
                if count >= _MAX_MEMBERS or total > _MAX_BYTES:
                    raise ToolError(MALFORMED_FILE, f"{path} holds more than a model has.")
                if member.isdir():
                    continue
                name = PurePosixPath(member.name)
                if not member.isfile() or name.is_absolute() or ".." in name.parts:
                    raise ToolError(MALFORMED_FILE, f"{path}: {member.name!r} is no file inside of "
                                                    "the archive.")
                content = archive.extractfile(member)
                data = content.read() if content else b""
                if len(data) != member.size or str(name) in files:
                    raise ToolError(MALFORMED_FILE, f"{path}: {member.name!r} is cut off or there "
                                                    "twice.")
                files[str(name)] = data
    except FileNotFoundError:
        raise ToolError(MISSING_FILE, f"{path} is not there.") from None
    except (tarfile.TarError, EOFError, OSError, ValueError) as error:
        raise ToolError(MALFORMED_FILE,
                        f"{path} cannot be read as a tar archive: {error}.") from None
    return files


def _read_library_format(files: dict[str, bytes], path: Path) -> UnlinkedModel:
    try:
        metadata = json.loads(files["metadata.json"])
        version = int(metadata["version"])
        models = list(metadata["modules"].values()) if "modules" in metadata else [metadata]
        executors = [e for m in models for e in m.get("executors", m.get("runtimes", []))]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ToolError(MALFORMED_FILE,
                        f"{path}: its metadata.json is not that of the Model Library "
                        "Format.") from None
    if version > _NEWEST_VERSION:
        raise ToolError(WRONG_MACHINE,
                        f"{path} is in version {version} of the Model Library Format, "
                        f"and 1 to {_NEWEST_VERSION} are known.")
    if "graph" not in executors:
        raise ToolError(WRONG_MACHINE, f"{path} was compiled for the executor "
                                       f"{', '.join(map(str, executors)) or 'unknown'}, and "
                                       "run_model has the graph executor: compile with --executor "
                                       "graph.")
    devices = {name.split("/")[1] for name in files if re.match(r"codegen/[^/]+/(lib|src)/", name)}
    if devices - {"host"}:
        raise ToolError(WRONG_MACHINE,
                        f"{path} has code for {', '.join(sorted(devices - {'host'}))}, "
                        "and run_model runs on the CPU alone.")
    code = {name: data for name, data in files.items() if name.startswith("codegen/host/")}
    return UnlinkedModel(
        _code(code, path),
        _only(files, r"(executor|runtime)-config/graph/[^/]+\.(json|graph)", "graph", path),
        _only(files, r"parameters/[^/]+\.params", "file of parameters", path))


def _only(files: dict[str, bytes], pattern: str, what: str, path: Path) -> bytes:
    found = [name for name in files if re.fullmatch(pattern, name)]
    if len(found) != 1:
        raise ToolError(WRONG_MACHINE if found else MALFORMED_FILE,
                        f"{path} has {len(found)} of the kind '{what}', and one was expected.")
    return files[found[0]]


def _code(files: dict[str, bytes], path: Path) -> dict[str, bytes]:
    code = {PurePosixPath(name).name: data for name, data in files.items()
            if name.endswith((".o", ".c"))}
    if not code:
        raise ToolError(MALFORMED_FILE, f"{path} holds neither objects (.o) nor C sources (.c).")
    return code


def link(model: UnlinkedModel, out: Path, compiler: str | None, flags: str | None) -> None:
    """Writes WRITTEN into the folder `out`; raises ToolError where the compiler fails."""
    linker = shlex.split(compiler or os.environ.get("CC") or "cc")
    if shutil.which(linker[0]) is None:
        raise ToolError(USAGE, f"the C compiler {linker[0]} was not found: install it, or name "
                               "another with --cc.")
    library, graph, params = WRITTEN
    with tempfile.TemporaryDirectory(prefix="run_model-") as work:
        # Names of the archive are kept out of the command line: one could look like an option.
        inputs = []
        for index, (name, data) in enumerate(sorted(model.code.items())):
            inputs.append(Path(work, f"{index}{PurePosixPath(name).suffix}"))
            inputs[-1].write_bytes(data)
        with directory_in_the_making(out, WRITTEN) as folder:
            linker += [*shlex.split(DEFAULT_FLAGS if flags is None else flags), "-std=gnu11", "-w",
                       "-fPIC", "-shared", "-s", f"-I{OWN_HEADERS}", "-o", str(folder / library),
                       *map(str, inputs), "-lm"]
            result = subprocess.run(linker, capture_output=True, text=True, check=False)
            if result.returncode != 0:
                raise ToolError(MISMATCH, f"{linker[0]} could not link the archive's code; is it "
                                          "for another machine?  It said:\n"
                                          f"{result.stderr.strip()[-4000:]}")
            (folder / graph).write_bytes(model.graph)
            (folder / params).write_bytes(model.params)


@command
def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("archive", type=Path, metavar="ARCHIVE.tar")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER",
                        help="where model.so, model.json and model.params go")
    parser.add_argument("--cc", metavar="COMPILER", help="C compiler (default: $CC, or cc)")
    parser.add_argument("--cflags", metavar="FLAGS",
                        help=f"how C sources are compiled (default: {DEFAULT_FLAGS})")
    args = parser.parse_args()
    library = read(args.archive)
    link(library, args.out, args.cc, args.cflags)
    for name in WRITTEN:
        print(args.out / name)
    return 0
