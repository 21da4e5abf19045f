"""Finds names that two files of a target both have for themselves.

Builds compile the files of a target a dozen together (CMAKE_UNITY_BUILD), where unnamed namespaces
are one. Two types or constants of a name then are an error, which the compiler tells; of two
functions of a name a call may silently take the other file's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

# The folders whose files are compiled together; the programs' tables of flags are not.
TARGETS = ("base/", "runtime/", "preprocess/", "labels/", "artifacts/", "rpc/", "run_model/shared/",
           "run_model/run_model/", "run_model/check_zoo/", "run_model/rpc_server/")

_UNNAMED = re.compile(r"^namespace \{\n(.*?)^\}  // namespace$", re.DOTALL | re.MULTILINE)
_TYPE = re.compile(r"^(?:struct|class|enum class|enum) (\w+)", re.MULTILINE)
# "std::string joined(", "constexpr std::size_t kLimit =", "[[noreturn]] void fail(".
_OTHER = re.compile(r"^(?!struct|class|enum|using|namespace|template|//|#|return|MATCHER)"
                    r"(?:\[\[\w+\]\] )?"
                    r"\w[\w:<>,*& \[\]]*?[ *&](\w+)(?:\(| =|\{|\[|;)", re.MULTILINE)


def local_names(text: str) -> Iterator[str]:
    """What a source defines in its unnamed namespaces, at the start of a line."""
    for body in _UNNAMED.findall(text):
        yield from _TYPE.findall(body)
        yield from _OTHER.findall(body)


def problems(root: Path, files: Iterable[str]) -> list[str]:
    """A line for each name that several files of a target define."""
    found: dict[tuple[str, str], set[str]] = {}
    for path in files:
        target = next((folder for folder in TARGETS if path.startswith(folder)), None)
        if target and path.endswith(".cc"):
            for name in local_names((root / path).read_text(encoding="utf-8")):
                found.setdefault((target, name), set()).add(path)
    return [f"{name} is defined in {' and in '.join(sorted(places))}: give one another name, or "
            "share it"
            for (_, name), places in sorted(found.items()) if len(places) > 1]
