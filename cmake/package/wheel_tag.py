"""Which systems a wheel is for: the platform tag of what its libraries ask of glibc and libstdc++
(PEP 600), `linux_MACHINE`, which is this machine's alone, where no such tag is true."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

# What every system of such a tag has.
SYSTEM = re.compile(r"lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s)\.so\.\d+|ld-linux[-\w]*\.so\.\d+")

# The libstdc++ and libgcc that systems with a release of glibc have, as auditwheel's policies say:
# of each name the newest version that may be asked for.
RELEASES = {
    31: {"GLIBCXX": (3, 4, 28), "CXXABI": (1, 3, 12), "GCC": (7, 0, 0)},
    34: {"GLIBCXX": (3, 4, 29), "CXXABI": (1, 3, 13), "GCC": (7, 0, 0)},
    35: {"GLIBCXX": (3, 4, 30), "CXXABI": (1, 3, 13), "GCC": (12, 0, 0)},
    39: {"GLIBCXX": (3, 4, 33), "CXXABI": (1, 3, 15), "GCC": (14, 0, 0)},
}
# What libstdc++ names otherwise, all older than the releases above.
OLD = {"ARM_1.3.3", "TM_1", "FLOAT128", "LDBL_1.3", "LDBL_3.4"}


def system_asked_for(shown: str, present: set[str]) -> int | None:
    """N of glibc 2.N, by what readelf shows of a library; None where it needs what is neither in
    `present` nor on every system."""
    needed = re.findall(r"\(NEEDED\).*\[(.+)\]", shown)
    if any(name not in present and not SYSTEM.fullmatch(name) for name in needed):
        return None
    oldest = min(RELEASES)
    required = shown.partition("Version needs section")[2]
    for name, text in re.findall(r"Name: ([A-Z]+)_(\S+)", required):
        if text == "ABI_DT_RELR":
            oldest = max(oldest, 36)
            continue
        if name not in ("GLIBC", *RELEASES[35]) or text in OLD:
            continue  # of a library that is present, or on every system
        if not re.fullmatch(r"\d+(\.\d+)*", text):
            return None
        version = tuple(map(int, text.split(".")))
        if name == "GLIBC":
            oldest = max(oldest, version[1])
        else:
            with_it = (release for release, newest in RELEASES.items() if version <= newest[name])
            release = next(with_it, None)
            if release is None:
                return None
            oldest = max(oldest, release)
    return oldest


def platform_tag(readelf: str, machine: str, libraries: dict[str, Path]) -> str:
    """Of the libraries that a wheel has, by the names that they are needed by."""
    releases = []
    for path in libraries.values():
        shown = subprocess.run([readelf, "--wide", "--dynamic", "--version-info", path], check=True,
                               capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"})
        releases.append(system_asked_for(shown.stdout, set(libraries)))
    if None in releases:
        return f"linux_{machine}"
    return f"manylinux_2_{max(releases)}_{machine}"
