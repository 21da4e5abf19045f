"""Holds C and C++ files to the table of rooms in ARCHITECTURE.md, which says what each may include.

A room is a folder of the table, with the folders below it that are no rooms of their own. Entries
of "may include" are `room` (its installed headers), `room/*` (all of its headers) or `room/x.h`
(one that is not installed); entries of "libraries" are names in LIBRARIES. What no file needs must
not be in the table.
"""

from __future__ import annotations

import re
from pathlib import Path

SUFFIXES = (".h", ".cc", ".c", ".h.in", ".cc.in")
INSTALLED = "/include/run_model/"
# Tests and benches look into every room, and one of each kind is built against TVM; the rest are
# sources that TVM's compiler is given.
FREE = ("bench/", "kernels/", "scripts/", "tests/")
# Built by themselves against an installation: their own headers lie beside those who include them.
APPLICATIONS = ("examples",)

# How the headers of a library begin. No room may have any of TVM's.
LIBRARIES: dict[str, str | tuple[str, ...]] = {
    "DLPack": "dlpack/",
    "gflags": "gflags/",
    "glog": "glog/",
    "libjpeg-turbo": ("jpeglib.h", "jerror.h"),
    "libunwind": "libunwind.h",
    "nlohmann/json": "nlohmann/",
    "OpenCL": "CL/",
    "stb": "stb/",
    "Vulkan": "vulkan/",
    "xxhash": "xxhash.h",
    "zlib": "zlib.h",
}
# What a program that uses the library has to have at hand for the installed headers.
INSTALLED_LIBRARIES = ("DLPack",)
# Headers of C, POSIX, Linux and the compiler; C++'s have neither a folder nor a dot in their names.
SYSTEM_FOLDERS = ("arpa/", "gnu/", "linux/", "net/", "netinet/", "sys/")
SYSTEM_HEADERS = set("""
    assert cpuid dirent dlfcn elf errno fcntl float immintrin inttypes limits link malloc math netdb
    poll pthread sched signal spawn stdarg stdbool stddef stdint stdio stdlib string strings time
    ucontext unistd
""".split())

INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^">]+)[">]')


class Room:
    """A row of the table; `used` are those of its entries that a file has needed."""

    def __init__(self, name: str, includes: list[str], libraries: list[str]) -> None:
        self.name = name
        self.includes = includes
        self.libraries = libraries
        self.used: set[str] = set()


def read_rooms(text: str) -> dict[str, Room]:
    """The rooms by name, from the Markdown table in `text` whose first column is "room"."""
    lines = text.splitlines()
    head = next((n for n, line in enumerate(lines) if line.startswith("| room |")), None)
    if head is None:
        raise ValueError("there is no table that begins with '| room |'")
    columns = [cell.strip() for cell in lines[head].strip("|").split("|")]
    rooms = {}
    for line in lines[head + 2:]:
        if not line.startswith("|"):
            break
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        name = cells[0].strip("`/")
        rooms[name] = Room(name, re.findall(r"`([^`]+)`", cells[columns.index("may include")]),
                           re.findall(r"[A-Za-z][\w/-]*", cells[columns.index("libraries")]))
    return rooms


def find_cycles(edges: dict[str, list[str]]) -> list[list[str]]:
    """Ways through a graph that end where they begin; at least one if there is any."""
    done: set[str] = set()
    path: list[str] = []
    found = []

    def visit(node: str) -> None:
        if node in path:
            found.append([*path[path.index(node):], node])
        elif node not in done:
            path.append(node)
            for other in edges.get(node, ()):
                visit(other)
            path.pop()
            done.add(node)

    for node in sorted(edges):
        visit(node)
    return found


class Check:
    """The `files` (paths below `root`) and the table; `problems` are lines of text."""

    def __init__(self, root: Path, files: list[str], rooms: dict[str, Room]) -> None:
        self.root = root
        self.rooms = rooms
        self.sources = [path for path in files
                        if path.endswith(SUFFIXES) and not path.startswith(FREE)]
        self.known = set(self.sources)
        self.installed = {path.split("/include/", 1)[1]: path
                          for path in self.sources if INSTALLED in path}
        self.edges: dict[str, list[str]] = {}
        self.problems: list[str] = []

    def room_of(self, path: str) -> Room | None:
        """The room whose folder is the innermost around `path`."""
        return max((room for room in self.rooms.values() if path.startswith(room.name + "/")),
                   key=lambda room: len(room.name), default=None)

    def check_files(self) -> None:
        for path in self.sources:
            room = self.room_of(path)
            if room is None:
                self.problems.append(f"{path}: lies in no room of ARCHITECTURE.md's table")
                continue
            text = (self.root / path).read_text(encoding="utf-8", errors="replace")
            for number, line in enumerate(text.splitlines(), 1):
                include = INCLUDE.match(line)
                problem = include and self.problem_of(path, room, include[1] == "<", include[2])
                if problem:
                    self.problems.append(f"{path}:{number}: {problem}")
        for cycle in find_cycles(self.edges):
            self.problems.append(f"{cycle[0]}: headers include each other: {' → '.join(cycle)}")

    def problem_of(self, path: str, room: Room, in_angles: bool, name: str) -> str | None:
        """What is wrong with one include of `path`; notes it in the graph of files."""
        if in_angles and not name.startswith("run_model/"):
            return self.problem_of_library(path, room, name)
        target = self.installed.get(name) if in_angles else self.internal_file(path, room, name)
        if target is None:
            return (f"<{name}> is no installed header" if in_angles else
                    f'"{name}" is no file, seen from the top of the tree')
        self.edges.setdefault(path, []).append(target)
        if not in_angles and INSTALLED in target:
            return f'"{name}" is installed: include <{target.split("/include/", 1)[1]}>'
        if INSTALLED in path and INSTALLED not in target:
            return f'an installed header must not include "{name}", which is not installed'
        other = self.room_of(target)
        if other is None or other is room:
            return None
        granted = [f"{other.name}/*", other.name if INSTALLED in target else target]
        entry = next((entry for entry in granted if entry in room.includes), None)
        if entry is None:
            return f"{room.name} must not include {target} (the table in ARCHITECTURE.md)"
        room.used.add(entry)
        return None

    def problem_of_library(self, path: str, room: Room, name: str) -> str | None:
        if (name.startswith(SYSTEM_FOLDERS) or "/" not in name
                and ("." not in name or name.removesuffix(".h") in SYSTEM_HEADERS)):
            return None
        library = next((library for library, beginning in LIBRARIES.items()
                        if name.startswith(beginning)), None)
        if library not in room.libraries:
            return f"{room.name} must not include <{name}> (the table in ARCHITECTURE.md)"
        if INSTALLED in path and library not in INSTALLED_LIBRARIES:
            return f"an installed header must not include <{name}>"
        room.used.add(library)
        return None

    def internal_file(self, path: str, room: Room, name: str) -> str | None:
        """The file that #include "name" means; for a header that CMake writes, its template."""
        candidates = [name, name + ".in", f"{room.name}/{name}.in"]
        if room.name in APPLICATIONS:
            candidates.append(f"{path.rpartition('/')[0]}/{name}")
        return next((file for file in candidates if file in self.known), None)

    def check_table(self) -> None:
        uses: dict[str, list[str]] = {}
        for room in self.rooms.values():
            for entry in room.includes + room.libraries:
                if entry not in room.used:
                    self.problems.append(f"ARCHITECTURE.md: {room.name} does not need {entry}")
            others = [self.room_of(entry.removesuffix("*") + "/") for entry in room.includes]
            uses[room.name] = [other.name for other in others if other and other is not room]
        for cycle in find_cycles(uses):
            self.problems.append(f"ARCHITECTURE.md: rooms use each other: {' → '.join(cycle)}")

    def check_installation(self) -> None:
        """A header in an include folder is in the library's list, or it would not be installed."""
        for path in self.installed.values():
            folder, _, header = path.partition("/include/")
            makefile = self.root / folder / "CMakeLists.txt"
            if f"include/{header}" not in makefile.read_text(encoding="utf-8").split():
                self.problems.append(f"{path}: is not among the HEADERS in {folder}/CMakeLists.txt")


def problems(root: Path, files: list[str]) -> list[str]:
    """What breaks the rules among `files` (paths below `root`), a line for each."""
    check = Check(root, files, read_rooms((root / "ARCHITECTURE.md").read_text(encoding="utf-8")))
    check.check_files()
    check.check_table()
    check.check_installation()
    return check.problems
