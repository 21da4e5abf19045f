"""What has to be copied to a machine to run a model there."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from pathlib import Path

#: Parts of glibc and GCC's runtime, which every Debian machine with a C++ program has.
_OF_THE_SYSTEM = re.compile(
    r"^(linux-vdso|ld-linux.*|lib(c|m|dl|pthread|rt|stdc\+\+|gcc_s))\.so(\.\d+)*$")


def stripped_size(path: Path) -> int:
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / "stripped"
        subprocess.run(["strip", "-o", copy, path], check=True)
        return copy.stat().st_size


def needed_libraries(path: Path, library_path: Path | None = None) -> dict[str, int]:
    """Sizes of the shared libraries that `path` needs, beyond glibc and libstdc++."""
    environment = dict(os.environ)
    environment.pop("LD_LIBRARY_PATH", None)
    if library_path:
        environment["LD_LIBRARY_PATH"] = str(library_path)
    listing = subprocess.run(["ldd", str(path)], env=environment, capture_output=True, text=True,
                             check=True, cwd="/").stdout
    found = {}
    for line in listing.splitlines():
        name, _, rest = line.strip().partition(" ")
        if _OF_THE_SYSTEM.match(Path(name).name):
            continue
        location = re.match(r"=> (\S+) \(", rest)
        if location is None:
            raise FileNotFoundError(f"{path} needs {name}, which is not there")
        found[name] = Path(location[1]).stat().st_size
    return found
